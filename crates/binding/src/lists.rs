//! Lists of designs and machines, and the schemas.

use crate::errors::to_python;
use crate::registry::variants;
use durasim_contract::{CommitRule, HardwareCost, PlantedFault, Promise, Variant};
use durasim_crash::CrashRequest;
use durasim_machine::{MachineConfig, Plan, RunRequest, RunResult, presets};
use durasim_types::{ConfigError, Domain, Error};
use pyo3::prelude::*;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The machine whose geometry prices the designs; also the default of the command line.
const DEFAULT_MACHINE: &str = "hercules-tecs23-modern";

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("DOMAINS", Domain::ALL.map(Domain::name))?;
    module.add_function(wrap_pyfunction!(designs, module)?)?;
    module.add_function(wrap_pyfunction!(planted, module)?)?;
    module.add_function(wrap_pyfunction!(backends_of, module)?)?;
    module.add_function(wrap_pyfunction!(machines, module)?)?;
    module.add_function(wrap_pyfunction!(machine_toml, module)?)?;
    module.add_function(wrap_pyfunction!(machine_schema, module)?)?;
    module.add_function(wrap_pyfunction!(run_schemas, module)?)
}

/// A variant of the registry as users see it; the order of the fields is that of the JSON.
#[derive(Serialize)]
struct DesignVariant {
    name: &'static str,
    aliases: &'static [&'static str],
    hardware: &'static str,
    backend: &'static str,
    interfaces: Vec<&'static str>,
    domains: Vec<&'static str>,
    default_domain: &'static str,
    promise: String,
    /// When commit instructions retire: `early`, before the commit is acknowledged, or `at gate`.
    commits_retire: &'static str,
    /// The data that programs have to lock, because the design does not isolate it.
    locking: &'static str,
    control: bool,
    summary: &'static str,
    paper: &'static str,
    assumptions: &'static [&'static str],
    marks: Vec<&'static str>,
    scaled: &'static [&'static str],
    engines: &'static [&'static str],
    cost: HardwareCost,
}

/// A preset as users see it.
#[derive(Serialize)]
struct MachineEntry {
    name: &'static str,
    description: String,
    cores: u16,
    frequency_mhz: u64,
}

/// The names of the backends that a program was built for; none if its file does not say or cannot be read.
#[pyfunction]
fn backends_of(program: PathBuf) -> Vec<String> {
    durasim_kernel::read_elf_file(&program).map(|data| durasim_kernel::backends(&data)).unwrap_or_default()
}

/// The variants of the registry as a JSON list, in their order.
#[pyfunction]
fn designs(py: Python<'_>) -> PyResult<String> {
    let machine = preset(py, DEFAULT_MACHINE)?;
    let variants: Result<Vec<DesignVariant>, Error> =
        variants().iter().map(|variant| describe(variant, &machine)).collect();
    variants.map(|variants| to_json(&variants)).map_err(|error| to_python(py, &error))
}

fn describe(variant: &Variant, machine: &MachineConfig) -> Result<DesignVariant, Error> {
    let hardware = &variant.hardware;
    let plan = Plan::new(machine, variant, variant.default_domain())?;
    let cost = (hardware.cost)(&plan.spec, &plan.geometry)
        .map_err(|e| ConfigError::new(format!("design.{}.{}", hardware.name, e.field), e.problem))?;
    let built = (hardware.build)(&plan.spec, &plan.geometry)
        .map_err(|e| ConfigError::new(format!("design.{}.{}", hardware.name, e.field), e.problem))?;
    Ok(DesignVariant {
        name: variant.name,
        aliases: variant.aliases,
        hardware: hardware.name,
        backend: variant.backend.name,
        interfaces: variant.interfaces.iter().map(|interface| interface.name()).collect(),
        domains: variant.domains.iter().map(|domain| domain.name()).collect(),
        default_domain: variant.default_domain().name(),
        promise: match variant.promise {
            Promise::Immediate => "immediate".to_owned(),
            Promise::Epoch(epochs) => format!("epoch({epochs})"),
        },
        commits_retire: match built.commit_rule() {
            CommitRule::AtGate => "at gate",
            CommitRule::Blocking => "at gate, blocking",
            CommitRule::Early => "early",
        },
        locking: variant.locking.name(),
        control: variant.control,
        summary: variant.summary,
        paper: variant.paper,
        assumptions: variant.assumptions,
        marks: [hardware.marks, variant.backend.situations].concat(),
        scaled: hardware.scaled,
        engines: hardware.engines,
        cost,
    })
}

/// The planted faults of each variant's hardware, by the name of the variant: a JSON object of lists.
#[pyfunction]
fn planted() -> String {
    let faults = |variant: &Variant| -> Vec<Value> {
        let describe = |p: PlantedFault| json!({ "name": p.name, "summary": p.summary, "equivalent": p.equivalent });
        variant.planted().map(describe).collect()
    };
    let variants: Map<String, Value> =
        variants().iter().map(|variant| (variant.name.to_owned(), faults(variant).into())).collect();
    Value::Object(variants).to_string()
}

/// The machine presets as a JSON list, in their order.
#[pyfunction]
fn machines(py: Python<'_>) -> PyResult<String> {
    let entries: PyResult<Vec<MachineEntry>> = presets::PRESETS
        .iter()
        .map(|&(name, _)| {
            let machine = preset(py, name)?;
            let MachineConfig { description, cores, frequency_mhz, .. } = machine;
            Ok(MachineEntry { name, description, cores, frequency_mhz })
        })
        .collect();
    entries.map(|entries| to_json(&entries))
}

fn to_json<T: Serialize>(entries: &[T]) -> String {
    serde_json::to_string(entries).expect("entries are plain data")
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

/// The JSON Schemas of what is sent for a run and for a campaign and of what comes back from a run, from which
/// tools/generate_schemas.py makes the published schemas, the options and the typed result. `required` lists the fields
/// in the order of the document.
#[pyfunction]
fn run_schemas() -> String {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.inline_subschemas = true;
    let mut generator = settings.into_generator();
    let request = generator.root_schema_for::<RunRequest>();
    let result = generator.root_schema_for::<RunResult>();
    let crash = generator.root_schema_for::<CrashRequest>();
    json!({ "request": request, "result": result, "crash": crash }).to_string()
}

/// The JSON Schema of machine files, with the parameters of every design.
#[pyfunction]
fn machine_schema() -> String {
    let mut schema = schemars::schema_for!(MachineConfig).to_value();
    let mut sections = Map::new();
    let mut definitions = schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    for variant in variants() {
        let mut parameters = (variant.hardware.schema)().to_value();
        let fields = parameters.as_object_mut().expect("parameters are a struct");
        fields.remove("$schema");
        if let Some(Value::Object(own)) = fields.remove("$defs") {
            add_definitions(&mut definitions, own, variant.hardware.name, &mut parameters);
        }
        let fields = parameters.as_object_mut().expect("parameters are a struct");
        // Missing keys of a machine file have the design's defaults.
        fields.remove("required");
        sections.insert(variant.hardware.name.to_owned(), parameters);
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

/// Adds the definitions of a design to those of the whole schema, from whose root references count. If one of their names is
/// taken by another definition, all of them, and what refers to them in `parameters`, get the design's name in front.
fn add_definitions(
    definitions: &mut Map<String, Value>,
    own: Map<String, Value>,
    design: &str,
    parameters: &mut Value,
) {
    let is_taken = own.iter().any(|(name, value)| definitions.get(name).is_some_and(|known| known != value));
    if !is_taken {
        return definitions.extend(own);
    }
    let prefix = format!("{design}-");
    rename_references(parameters, &prefix);
    definitions.extend(own.into_iter().map(|(name, mut value)| {
        rename_references(&mut value, &prefix);
        (prefix.clone() + &name, value)
    }));
}

/// Puts `prefix` in front of the names of all definitions that a schema refers to.
fn rename_references(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(target) if name == "$ref" => {
                        *target = target.replacen("#/$defs/", &format!("#/$defs/{prefix}"), 1);
                    }
                    _ => rename_references(value, prefix),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rename_references(value, prefix)),
        _ => {}
    }
}
