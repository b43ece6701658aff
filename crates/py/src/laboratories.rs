//! How the variants of the registry are tested, for the tests and tools in Python.

use durasim_contract::{Alternatives, Laboratory, ShortCampaign};
use durasim_designs::VARIANTS;
use durasim_types::Domain;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

/// Adds the function to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(laboratories, module)?)
}

/// The descriptions by the name of the variant: a JSON object. What the random tester alone has to know is left out.
#[pyfunction]
fn laboratories() -> String {
    let variants = VARIANTS.iter().map(|variant| (variant.name.to_owned(), describe(variant.laboratory)));
    Value::Object(variants.collect::<Map<String, Value>>()).to_string()
}

fn describe(laboratory: &Laboratory) -> Value {
    let common = &laboratory.common_on_tiny;
    json!({
        "campaigns": laboratory.campaigns.concat().iter().map(campaign).collect::<Vec<_>>(),
        "quick_faults": laboratory.quick_faults,
        "canary": laboratory.canary,
        "common_counters": common.counters,
        "common_marks": common.marks,
        "short_run_settings": laboratory.short_run_settings,
        "overflow_settings": laboratory.overflow_settings,
        "alternatives": laboratory.alternatives.iter().map(alternatives).collect::<Vec<_>>(),
    })
}

fn campaign(of: &ShortCampaign) -> Value {
    json!({
        "workload": of.workload,
        "arguments": of.arguments,
        "threads": of.threads,
        "ops": of.ops,
        "points": of.points,
        "faults": of.faults,
        "settings": of.settings.concat(),
        "domain": of.domain.map(Domain::name),
        "rehearsals": of.rehearsals,
        "seeds": of.seeds,
    })
}

fn alternatives(of: &Alternatives) -> Value {
    json!({
        "key": of.key,
        "points": of.points,
        "workload": of.workload,
        "threads": of.threads,
        "machines": of.machines,
        "beside": of.beside,
    })
}
