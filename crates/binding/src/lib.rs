//! The binding to Python: JSON strings in and out, so that everything with a shape is defined once, in the machine
//! and in the typed results of the Python package.
//!
//! `crates/py` makes the module `durasim._core` of it. A crate outside of this repository makes a module with designs of
//! its own beside those of durasim: it calls [`fill`] with them.

mod errors;
mod lists;
mod random;
mod registry;
mod simulate;
mod snapshots;
mod supervise;
mod test_plans;

pub use registry::OwnDesign;

use pyo3::prelude::*;

/// Fills a module with the Rust core of the package `durasim` and with the designs `own`. A process has one such module.
///
/// # Errors
/// A name of a design exists already, or the process has another such module.
pub fn fill(module: &Bound<'_, PyModule>, own: &[OwnDesign]) -> PyResult<()> {
    registry::add(own)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("__build__", registry::build(own))?;
    errors::register(module)?;
    test_plans::register(module)?;
    lists::register(module)?;
    random::register(module)?;
    simulate::register(module)?;
    snapshots::register(module)
}
