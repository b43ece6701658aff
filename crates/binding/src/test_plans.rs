//! The test plans of variants, for tests and tools in Python.

use durasim_test_plans::{Alternatives, ShortCampaign, TestPlan, all_test_plans};
use durasim_types::Domain;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

/// Adds the function to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(test_plans, module)?)
}

/// The test plans by the name of the variant: a JSON object. Options of the random tester are left out.
#[pyfunction]
fn test_plans() -> String {
    let plans = all_test_plans().map(|(variant, plan)| (variant.to_owned(), describe(plan)));
    Value::Object(plans.collect::<Map<String, Value>>()).to_string()
}

fn describe(plan: &TestPlan) -> Value {
    json!({
        "campaigns": plan.campaigns.concat().iter().map(campaign).collect::<Vec<_>>(),
        "quick_faults": plan.quick_faults,
        "canary": plan.canary,
        "common_counters": plan.common_on_tiny.counters,
        "common_marks": plan.common_on_tiny.marks,
        "short_run_settings": plan.short_run_settings,
        "overflow_settings": plan.overflow_settings,
        "alternatives": plan.alternatives.iter().map(alternatives).collect::<Vec<_>>(),
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
        "rehearsals": of.abort_each_once,
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
