//! The designs of the module: those of durasim, and those that another crate adds when it fills its module.

use durasim_contract::Variant;
use durasim_designs::VARIANTS;
use durasim_test_plans::{TestPlan, add_test_plans};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use std::sync::OnceLock;

/// A design of another crate.
#[derive(Clone, Copy, Debug)]
pub struct OwnDesign {
    /// Its entry in the registry.
    pub variant: Variant,
    /// Its test plan: the campaigns of `durasim mutation`, and options of the random tester.
    pub plan: &'static TestPlan,
}

/// All variants: the functions of a module have no other way to reach what its crate has added.
static REGISTERED: OnceLock<Vec<Variant>> = OnceLock::new();

/// All variants, those of durasim first.
///
/// # Panics
/// If no module was filled.
pub fn variants() -> &'static [Variant] {
    REGISTERED.get().expect("a module is filled before its functions are called")
}

/// Adds designs to those of durasim, once in a process.
///
/// # Errors
/// A name exists already, or the process has designs already.
pub fn add(own: &[OwnDesign]) -> PyResult<()> {
    let mut all = VARIANTS.to_vec();
    for OwnDesign { variant, .. } in own {
        if let Some(problem) = refusal(variant, &all) {
            return Err(PyImportError::new_err(problem));
        }
        all.push(*variant);
    }
    let plans = own.iter().map(|own| (own.variant.name, own.plan)).collect();
    if REGISTERED.set(all).is_err() || !add_test_plans(plans) {
        return Err(PyImportError::new_err("this process has loaded a module with the designs of durasim already"));
    }
    Ok(())
}

/// The reason why a design cannot be added.
fn refusal(variant: &Variant, known: &[Variant]) -> Option<String> {
    let names = |of: &Variant| [&[of.name], of.aliases].concat();
    let name = names(variant).into_iter().find(|name| known.iter().any(|other| names(other).contains(name)));
    if let Some(name) = name {
        return Some(format!("the design '{name}' exists already: choose another name"));
    }
    let hardware = variant.hardware;
    // Variants of one crate may share hardware, and use that of durasim: then its parameters are the same.
    let is_other = |other: &&Variant| {
        other.hardware.name == hardware.name && (other.hardware.default_spec)() != (hardware.default_spec)()
    };
    let found = known.iter().find(is_other)?;
    Some(format!("hardware with the name '{}' and other parameters exists already", found.hardware.name))
}

/// The hash of the sources of durasim, followed by the names of the designs of another crate.
pub fn build(own: &[OwnDesign]) -> String {
    own.iter().fold(env!("DURASIM_BUILD").to_owned(), |text, own| format!("{text}+{}", own.variant.name))
}
