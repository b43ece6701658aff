//! Structures of a design at the smallest size that the machine accepts: where every ring wraps around, every table is full
//! and every identifier comes back within a few transactions.

use durasim_contract::Variant;
use durasim_machine::{MachineConfig, Plan, presets};
use durasim_test_plans::test_plan;
use durasim_types::{Domain, Rng};
use serde_json::Value;

/// Endings of the names of parameters that give the size of a structure.
const SIZES: [&str; 9] =
    ["_entries", "_entries_max", "_bytes", "_bytes_max", "_bits", "_lines", "_ways", "_slices", "_in_flight"];
/// Doublings that are tried, from the least value that the schema allows.
const DOUBLINGS_MAX: u32 = 24;

/// The sizes among the parameters of a variant's hardware that may become small, with the least value that the schema allows for each.
fn sizes(variant: &Variant) -> Vec<(String, u64)> {
    let schema = (variant.hardware.schema)().to_value();
    let Some(Value::Object(properties)) = schema.get("properties") else { return Vec::new() };
    let kept = test_plan(variant.name).random.sizes_kept;
    let is_size = |name: &str| SIZES.iter().any(|end| name.ends_with(end)) && !kept.contains(&name);
    let integers = properties.iter().filter(|(name, of)| is_size(name) && of["type"] == "integer");
    let path = |name: &str| format!("design.{}.{name}", variant.hardware.name);
    let mut sizes: Vec<(String, u64)> =
        integers.map(|(name, of)| (path(name), of["minimum"].as_u64().unwrap_or(0).max(1))).collect();
    sizes.sort();
    sizes
}

/// Gives one size of the design, or all of them, the least value that the machine accepts beside the other settings, and at
/// times a little more. A region whose least size `smallest_region` finds is left alone: it depends on what is set here.
pub(crate) fn shrink(rng: &mut Rng, variant: &Variant, domain: Domain, sets: &mut Vec<String>) {
    let region = test_plan(variant.name).random.smallest_region.map(|region| region.parameter);
    let mut sizes = sizes(variant);
    sizes.retain(|(parameter, _)| Some(parameter.as_str()) != region);
    if sizes.is_empty() {
        return;
    }
    if rng.below(4) > 0 {
        let chosen = rng.below(sizes.len() as u64) as usize;
        sizes = vec![sizes.swap_remove(chosen)];
    }
    for (parameter, least) in sizes {
        let more = rng.below(3) / 2;
        let set = |value: u64| format!("{parameter}={value}");
        let accepted =
            (0..DOUBLINGS_MAX).map(|n| least << n).find(|value| is_accepted(variant, domain, sets, set(*value)));
        let Some(value) = accepted else { continue };
        let value = if is_accepted(variant, domain, sets, set(value + more)) { value + more } else { value };
        sets.push(set(value));
    }
}

/// Whether the machine takes one more setting.
pub(crate) fn is_accepted(variant: &Variant, domain: Domain, sets: &[String], set: String) -> bool {
    let text = presets::text("tiny").expect("tiny is a preset");
    let sets: Vec<String> = sets.iter().cloned().chain([set]).collect();
    let config = MachineConfig::parse("tiny", text, &sets).expect("the settings are sound");
    let plan = Plan::new(&config, variant, domain);
    plan.is_ok_and(|plan| (variant.hardware.build)(&plan.spec, &plan.geometry).is_ok())
}
