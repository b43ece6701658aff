//! One run: a drawn machine is started, crashed and started again.

use crate::REGION_BYTES;
use crate::power_cycle::PowerCycle;
use crate::settings::Setting;
use crate::tally::{Effort, Tally};
use crate::trace::Trace;
use durasim_contract::{Hooks, Variant};
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, presets};
use durasim_types::{Pages, Rng};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

/// Runs with this seed.
///
/// # Errors
/// The error of a run; a panic inside is an error too.
pub fn run(setting: &Setting, seed: u64, effort: Effort, trace: &Trace) -> Result<Tally, String> {
    run_until(&AtomicBool::new(false), setting, seed, effort, trace)
}

/// A [`run`] that ends early, as an error, once `stop` is true.
pub(crate) fn run_until(
    stop: &AtomicBool,
    setting: &Setting,
    seed: u64,
    effort: Effort,
    trace: &Trace,
) -> Result<Tally, String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| power_cycles(stop, setting, seed, effort, trace)));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn power_cycles(
    stop: &AtomicBool,
    setting: &Setting,
    seed: u64,
    effort: Effort,
    trace: &Trace,
) -> Result<Tally, String> {
    let text = presets::text("tiny").expect("tiny is a preset");
    let config = MachineConfig::parse("tiny", text, &setting.sets).map_err(|e| e.to_string())?;
    let mut plan = Plan::new(&config, &setting.variant, setting.domain).map_err(|e| e.to_string())?;
    if let Some(planted) = setting.planted {
        plan.geometry.planted = planted.fault();
    }
    let mut rng = Rng::new(seed);
    let mut pages = Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20);
    let mut first = vec![0; REGION_BYTES as usize];
    rng.fill(&mut first);
    pages.write(PMEM_BASE, &first);
    let mut tally = Tally::default();
    for _ in 0..effort.power_cycles {
        let mut cycle = PowerCycle::new(&config, &plan, setting, pages.clone(), rng.next_u64(), effort, trace)?;
        cycle.run(effort.ops, stop).map_err(|what| format!("after {} operations: {what}", cycle.tally.ops))?;
        cycle.finish(&mut tally);
        if setting.crashes {
            let (mut image, _) = cycle.system.crash_image(u64::MAX);
            let recover = setting.variant.hardware.recover;
            recover(&plan.spec, &plan.geometry, &mut image).map_err(|_| "an uncut recovery was cut".to_owned())?;
            cycle.shared.lock().expect("no thread panics with it").judge(&image.pmem)?;
            pages = image.pmem;
        }
    }
    Ok(tally)
}

/// Whether instructions begin and commit transactions, and programs recover: what markers do for other variants.
#[must_use]
pub fn has_hardware_transactions(variant: &Variant) -> bool {
    variant.hardware.hooks.has(Hooks::HARDWARE_TX)
}

/// Whether a variant differs in what is tried here from those before it: variants on hardware transactions on the same domains differ
/// in software alone.
#[must_use]
pub fn is_of_its_own(variant: &Variant, variants: &[Variant]) -> bool {
    let is_alike = |other: &&Variant| other.hardware.name == variant.hardware.name && other.domains == variant.domains;
    !has_hardware_transactions(variant)
        || variants.iter().find(is_alike).is_some_and(|first| first.name == variant.name)
}

/// The variants that differ in what is tried here: those with hardware of their own, and of the others, which differ in software
/// alone, the one that runs on the most domains.
#[must_use]
pub fn distinct_variants(variants: &[Variant]) -> Vec<Variant> {
    let without_hardware = variants.iter().filter(|variant| variant.hardware.hooks == Hooks::NONE);
    // Of several the last one, as `max_by_key` has it.
    let plain = without_hardware.max_by_key(|variant| variant.domains.len()).map(|variant| variant.name);
    let is_wanted = |variant: &&Variant| {
        if variant.hardware.hooks == Hooks::NONE {
            Some(variant.name) == plain
        } else {
            is_of_its_own(variant, variants)
        }
    };
    variants.iter().filter(is_wanted).copied().collect()
}
