//! What there is to choose from: designs and machines.

use crate::errors::to_python;
use durasim_design::{Promise, Row};
use durasim_designs::ROWS;
use durasim_machine::{MachineConfig, Plan, presets};
use durasim_types::{ConfigError, Domain, Error};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

/// The machine whose geometry prices the designs; also the default of the command line.
const DEFAULT_MACHINE: &str = "hercules-tecs23";

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let domains = [Domain::Adr, Domain::Eadr, Domain::Bbb, Domain::NvLlc, Domain::NvTc, Domain::Media];
    module.add("DOMAINS", domains.map(Domain::name))?;
    module.add_function(wrap_pyfunction!(designs, module)?)?;
    module.add_function(wrap_pyfunction!(machines, module)?)?;
    module.add_function(wrap_pyfunction!(machine_toml, module)?)?;
    module.add_function(wrap_pyfunction!(machine_schema, module)?)
}

/// The rows of the registry as a JSON list, in their order.
#[pyfunction]
fn designs(py: Python<'_>) -> PyResult<String> {
    let machine = preset(py, DEFAULT_MACHINE)?;
    let rows: Result<Vec<Value>, Error> = ROWS.iter().map(|row| describe(row, &machine)).collect();
    rows.map(|rows| Value::from(rows).to_string()).map_err(|error| to_python(py, &error))
}

fn describe(row: &Row, machine: &MachineConfig) -> Result<Value, Error> {
    let hardware = &row.hardware;
    let plan = Plan::new(machine, row, row.default_domain())?;
    let cost = (hardware.cost)(&plan.spec, &plan.geometry)
        .map_err(|e| ConfigError::new(format!("design.{}.{}", hardware.name, e.field), e.problem))?;
    let promise = match row.promise {
        Promise::Immediate => "immediate".to_owned(),
        Promise::Epoch(epochs) => format!("epoch({epochs})"),
    };
    let domains: Vec<&str> = row.domains.iter().map(|domain| domain.name()).collect();
    Ok(json!({
        "name": row.name,
        "hardware": hardware.name,
        "backend": row.backend.name(),
        "domains": domains,
        "default_domain": row.default_domain().name(),
        "promise": promise,
        "control": row.control,
        "summary": row.summary,
        "paper": row.paper,
        "assumptions": row.assumptions,
        "cost": cost,
    }))
}

/// The machine presets as a JSON list, in their order.
#[pyfunction]
fn machines(py: Python<'_>) -> PyResult<String> {
    let mut list = Vec::new();
    for (name, _) in presets::PRESETS {
        let machine = preset(py, name)?;
        list.push(json!({
            "name": name,
            "description": machine.description,
            "cores": machine.cores,
            "frequency_mhz": machine.frequency_mhz,
        }));
    }
    Ok(Value::from(list).to_string())
}

/// The TOML text of the preset `name`.
#[pyfunction]
fn machine_toml(py: Python<'_>, name: &str) -> PyResult<String> {
    text_of(py, name).map(str::to_owned)
}

fn text_of(py: Python<'_>, name: &str) -> PyResult<&'static str> {
    presets::text(name).ok_or_else(|| {
        let names: Vec<&str> = presets::PRESETS.iter().map(|(name, _)| *name).collect();
        let problem = format!("unknown name '{name}' (allowed: {})", names.join(", "));
        to_python(py, &ConfigError::new("machine", problem).into())
    })
}

fn preset(py: Python<'_>, name: &str) -> PyResult<MachineConfig> {
    MachineConfig::parse(name, text_of(py, name)?, &[]).map_err(|error| to_python(py, &error.into()))
}

/// The JSON Schema of machine files, with the parameters of every design.
#[pyfunction]
fn machine_schema() -> String {
    let mut schema = schemars::schema_for!(MachineConfig).to_value();
    let mut sections = Map::new();
    let mut definitions = schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    for row in ROWS {
        let mut parameters = (row.hardware.schema)().to_value();
        let fields = parameters.as_object_mut().expect("parameters are a struct");
        fields.remove("$schema");
        // References count from the root of the whole schema.
        if let Some(Value::Object(own)) = fields.remove("$defs") {
            definitions.extend(own);
        }
        // What a machine file leaves out has the design's default.
        fields.remove("required");
        sections.insert(row.hardware.name.to_owned(), parameters);
    }
    schema["properties"]["design"] = json!({
        "description": "Parameters of durability designs by name; what is left out has the design's default.",
        "type": "object",
        "properties": sections,
        "additionalProperties": false,
    });
    schema["$defs"] = Value::Object(definitions);
    schema.to_string()
}
