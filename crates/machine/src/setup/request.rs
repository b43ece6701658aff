//! The request of a run, with its names resolved and its parameters checked.

use super::budget::{Budget, MEMORY_MIB};
use super::config::MachineConfig;
use super::inserted::Inserted;
use super::plan::Plan;
use super::program::{PoolContents, Program, read_elf};
use super::{presets, shrink};
use durasim_contract::Variant;
use durasim_kernel::PoolFile;
use durasim_types::{ConfigError, Domain, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Threads that a workload may be asked for. Those beyond the number of cores take turns.
const THREADS_MAX: u32 = 64;

/// The request of a run. The sentence at a field is its help on the command line and in the Python package, which have an
/// option for every field that they do not set themselves (`SET_BY_PACKAGE` in tools/generate_schemas.py). `x-metavar`
/// names its value.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// A preset, or the path of a TOML file.
    pub machine: String,
    /// Durability design.
    pub design: String,
    /// Domain other than the variant's default.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub domain: Option<Domain>,
    /// Whether a case that is expected to fail may run.
    #[serde(default)]
    pub control: bool,
    /// Overrides, each `path.to.key=value`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Makes the machine smaller by this factor before `set`: its data caches, and what the design says of its own.
    #[serde(default)]
    pub shrink: Option<u64>,
    /// The program.
    pub elf: PathBuf,
    /// Its name, which is its first argument.
    pub elf_name: String,
    /// Target of its `/proc/self/exe`, if that is not its name.
    #[serde(default)]
    pub exe_link: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its environment.
    #[serde(default)]
    pub env: Vec<String>,
    /// The folder of the host that the guest sees as its files; none if not given. Its changes stay in memory.
    #[serde(default)]
    #[schemars(extend("x-metavar" = "DIR"))]
    pub root: Option<PathBuf>,
    /// Let the guest change files of the folder `root` on the host.
    #[serde(default)]
    pub root_write: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// The file that keeps the guest's persistent memory; a fresh pool if not given.
    #[serde(default)]
    #[schemars(extend("x-metavar" = "FILE"))]
    pub pool: Option<PathBuf>,
    /// Name of the program in the result.
    pub workload: String,
    /// Operations asked for, for the result of a program that marks none.
    #[serde(default)]
    pub ops: Option<u64>,
    /// Threads of the guest.
    #[serde(default = "one")]
    pub threads: u32,
    /// Stop the guest after this many instructions.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_instructions: Option<u64>,
    /// Stop the guest once it has written this much memory, in whole pages (default: 8,192 MiB).
    #[serde(default)]
    #[schemars(range(min = 1), extend("x-metavar" = "MIB"))]
    pub max_memory_mib: Option<u64>,
    /// Run functionally to the end, without caches and time: only instructions, operations, transactions and checks of the
    /// hardware are counted.
    #[serde(default)]
    pub functional: bool,
    /// Save the machine when the guest passes the snapshot point of this number for the first time; workloads pass point 0
    /// between populating and measuring.
    #[serde(default)]
    #[schemars(extend("x-metavar" = "MARK"))]
    pub snapshot_at: Option<u64>,
    /// The file that the snapshot goes to.
    #[serde(default)]
    #[schemars(extend("x-metavar" = "FILE"))]
    pub snapshot: Option<PathBuf>,
    /// Resume from this snapshot. Design, domain and parameters may differ; guest code and arguments must match.
    #[serde(default)]
    #[schemars(extend("x-metavar" = "FILE"))]
    pub from: Option<PathBuf>,
    /// Run functionally, without caches and time, up to the snapshot point of this number or to the begin of the region of
    /// interest (roi).
    #[serde(default)]
    #[schemars(extend("x-metavar" = "MARK|roi", "type" = ["integer", "string", "null"]))]
    pub fast_forward: Option<String>,
    /// Train caches and predictors for what starts after a snapshot point.
    #[serde(default = "yes")]
    pub warm: bool,
    /// Stop at the end of the region of interest: what the program does after it, such as its checks, is not simulated, and
    /// it has no exit code.
    #[serde(default)]
    pub stop_after_roi: bool,
    /// Report the cache-block operations and fences of the detailed part of the run by line of the program's source: which had
    /// nothing to do, what they cost, and which stores none followed.
    #[serde(default)]
    pub persistence_report: bool,
    /// Report in the document counters at the ends of 32 to 63 batches of operations of the region of interest, from which
    /// intervals of numbers of one run follow.
    #[serde(default)]
    pub batches: bool,
    /// Data that only the front end has, for the result of the run.
    #[serde(default)]
    pub origin: Origin,
}

impl RunRequest {
    /// The limits of the run: as many instructions as the request says, or any number, and its memory.
    pub fn budget(&self) -> Budget {
        Budget {
            instructions: self.max_instructions.unwrap_or(u64::MAX),
            memory_bytes: self.max_memory_mib.unwrap_or(MEMORY_MIB).saturating_mul(1 << 20),
        }
    }
}

/// Data of a run that only the front end has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Hash of the sources that durasim was built from.
    pub durasim_build: String,
    /// Scale of machine, design and data, relative to the sizes of the paper.
    pub scale: String,
    /// Arguments of the workload by name, with defaults filled in; empty for a program.
    pub workload_args: Map<String, Value>,
    /// The compiler of the guest program; null for a program of the user.
    pub guest_compiler: Option<String>,
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

/// A request whose names are resolved and whose parameters are checked.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The machine.
    pub config: MachineConfig,
    /// The design in it.
    pub plan: Plan,
    /// The program.
    pub program: Program,
    /// The hash of the pool file that was given, if one was.
    pub pool_hash: Option<String>,
    /// Start of the run, if that is not the program's first instruction on this machine.
    pub start: Option<Value>,
    /// The hash of the snapshot that the run resumes from, if it does.
    pub snapshot_hash: Option<String>,
}

/// Reads the machine file or preset.
fn machine_of(request: &RunRequest, variant: &Variant) -> Result<MachineConfig, Error> {
    let name = &request.machine;
    let text = match presets::text(name) {
        Some(text) => text.to_owned(),
        None => std::fs::read_to_string(name).map_err(|e| {
            let presets: Vec<&str> = presets::PRESETS.iter().map(|(n, _)| *n).collect();
            let problem = format!("'{name}' is neither a preset ({}) nor a readable file: {e}", presets.join(", "));
            ConfigError::new("machine", problem)
        })?,
    };
    let mut set = Vec::new();
    if let Some(divisor) = request.shrink {
        set = shrink::overrides(&MachineConfig::parse(name, &text, &[])?, variant, divisor)?;
    }
    set.extend_from_slice(&request.set);
    Ok(MachineConfig::parse(name, &text, &set)?)
}

/// The domain of a request on a variant, or the refusal of one that the variant does not tolerate.
fn domain_of(request: &RunRequest, variant: &Variant) -> Result<Domain, ConfigError> {
    let domain = request.domain.unwrap_or(variant.default_domain());
    if !variant.domains.contains(&domain) && !request.control {
        let names: Vec<&str> = variant.domains.iter().map(|d| d.name()).collect();
        let problem = format!(
            "{} is not durable on {domain}, only on {}; --control runs the failing case",
            variant.name,
            names.join(", ")
        );
        return Err(ConfigError::new("domain", problem));
    }
    Ok(domain)
}

/// Refuses options about where a run starts and is saved that exclude each other.
fn check_start(request: &RunRequest) -> Result<(), ConfigError> {
    let refuse = |field: &str, problem: &str| Err(ConfigError::new(field, problem));
    match (&request.snapshot_at, &request.snapshot) {
        (Some(_), None) => {
            return refuse("snapshot", "snapshot_at needs snapshot, the file to write");
        }
        (None, Some(_)) => {
            return refuse("snapshot_at", "snapshot needs snapshot_at, the snapshot point at which it is taken");
        }
        _ => {}
    }
    if request.root_write && request.root.is_none() {
        return refuse("root_write", "there is no folder to write to: give root");
    }
    if request.root_write && request.from.is_some() {
        return refuse("root_write", "a run from a snapshot keeps its changes in memory: leave root_write out");
    }
    if request.from.is_some() && request.pool.is_some() {
        return refuse("pool", "a run from a snapshot uses the pool in it: leave pool out");
    }
    if request.from.is_some() && request.fast_forward.is_some() {
        return refuse("fast_forward", "a run from a snapshot starts there: leave fast_forward out");
    }
    if request.functional && (request.snapshot.is_some() || request.from.is_some() || request.fast_forward.is_some()) {
        return refuse(
            "functional",
            "a functional run has no machine state: it cannot write, continue or fast-forward to a snapshot",
        );
    }
    if request.stop_after_roi && request.functional {
        return refuse("stop_after_roi", "a functional run goes to its end: leave stop_after_roi out");
    }
    if request.persistence_report && request.functional {
        return refuse(
            "persistence_report",
            "a functional run has no caches and no waits: leave persistence_report out",
        );
    }
    if request.batches && request.functional {
        return refuse("batches", "a functional run has no cycles: leave batches out");
    }
    if request.stop_after_roi && request.pool.is_some() {
        return refuse("stop_after_roi", "a program that is stopped leaves no pool: leave pool or stop_after_roi out");
    }
    Ok(())
}

/// The variant of that name, or of that alias.
fn variant_of<'a>(name: &str, registry: &'a [Variant]) -> Result<&'a Variant, ConfigError> {
    registry.iter().find(|variant| variant.name == name || variant.aliases.contains(&name)).ok_or_else(|| {
        let names: Vec<&str> = registry.iter().map(|r| r.name).collect();
        ConfigError::new("design", format!("'{name}' is none of {}", names.join(", ")))
    })
}

/// Resolves and checks a request.
///
/// # Errors
/// Everything that is refused before cycle 0.
pub fn prepare(request: &RunRequest, registry: &[Variant]) -> Result<Prepared, Error> {
    check_start(request)?;
    let variant = variant_of(&request.design, registry)?;
    let config = machine_of(request, variant)?;
    let known = |name: &str| registry.iter().any(|variant| variant.hardware.name == name);
    if let Some(name) = config.design.keys().find(|name| !known(name)) {
        return Err(ConfigError::new(format!("design.{name}"), "no such design has parameters").into());
    }
    let plan = Plan::new(&config, variant, domain_of(request, variant)?)?;
    if !(1..=THREADS_MAX).contains(&request.threads) {
        let problem = format!("{} is not between 1 and {THREADS_MAX}", request.threads);
        return Err(ConfigError::new("threads", problem).into());
    }
    let (pool, pool_hash) = match &request.pool {
        Some(path) if path.exists() => {
            let (file, hash) = PoolFile::load(path, plan.geometry.pmem_data_bytes)?;
            (Some(PoolContents::of_file(&file)), Some(hash))
        }
        _ => (None, None),
    };
    let program = Program {
        elf: read_elf(&request.elf)?,
        elf_name: request.elf_name.clone(),
        exe_link: request.exe_link.clone(),
        args: request.args.clone(),
        env: request.env.clone(),
        root: request.root.clone(),
        root_write: request.root_write,
        seed: request.seed,
        pool,
        inserted: Inserted::default(),
    };
    Ok(Prepared { config, plan, program, pool_hash, start: None, snapshot_hash: None })
}

/// The machine and the design's parameters as a result reports them.
pub fn configuration(prepared: &Prepared) -> Value {
    let mut machine = serde_json::to_value(&prepared.config).expect("a machine is plain data");
    if let Some(fields) = machine.as_object_mut() {
        let design = if prepared.plan.spec.as_object().is_some_and(|s| s.is_empty()) {
            json!({})
        } else {
            json!({ prepared.plan.variant.hardware.name: prepared.plan.spec })
        };
        fields.insert("design".into(), design);
        if let Some(start) = &prepared.start {
            fields.insert("start".into(), start.clone());
        }
    }
    machine
}
