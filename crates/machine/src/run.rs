//! From a request to a result.

use crate::machine::{Ending, Machine, PoolContents, Program, read_elf};
use crate::measure::Moment;
use crate::result::{Bytes, Host, Region, RunResult, latencies, ops_of};
use crate::system::Plan;
use crate::{FunctionalEnding, MachineConfig, presets, run_functionally};
use durasim_design::Row;
use durasim_guest::{Output, PoolFile};
use durasim_types::{ConfigError, Domain, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Threads that a workload may be asked for. Those beyond the number of cores take turns.
const THREADS_MAX: u32 = 64;

/// What is to be run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// A preset, or the path of a TOML file.
    pub machine: String,
    /// Row of the registry.
    pub design: String,
    /// Domain other than the row's default.
    #[serde(default)]
    pub domain: Option<Domain>,
    /// Whether a case that is expected to fail may run.
    #[serde(default)]
    pub control: bool,
    /// Overrides, each `path.to.key=value`.
    #[serde(default)]
    pub set: Vec<String>,
    /// The program.
    pub elf: PathBuf,
    /// Its name, which is its first argument.
    pub elf_name: String,
    /// Where its `/proc/self/exe` leads, if not to its name.
    #[serde(default)]
    pub exe_link: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its environment.
    #[serde(default)]
    pub env: Vec<String>,
    /// The folder of the host that it sees.
    #[serde(default)]
    pub root: Option<PathBuf>,
    /// Seed of everything random.
    pub seed: u64,
    /// The host file that keeps its pool.
    #[serde(default)]
    pub pool: Option<PathBuf>,
    /// What the result calls the program.
    pub workload: String,
    /// Operations asked for, for the result of a program that marks none.
    #[serde(default)]
    pub ops: Option<u64>,
    /// Threads of the guest.
    #[serde(default = "one")]
    pub threads: u32,
    /// Stops the guest after so many instructions.
    #[serde(default)]
    pub max_instructions: Option<u64>,
    /// Execution without caches, timing or design.
    #[serde(default)]
    pub functional: bool,
}

const fn one() -> u32 {
    1
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
}

/// Reads the machine file or preset.
fn machine_of(name: &str, set: &[String]) -> Result<MachineConfig, Error> {
    if let Some(text) = presets::text(name) {
        return Ok(MachineConfig::parse(name, text, set)?);
    }
    let text = std::fs::read_to_string(name).map_err(|e| {
        let presets: Vec<&str> = presets::PRESETS.iter().map(|(n, _)| *n).collect();
        let problem = format!("'{name}' is neither a preset ({}) nor a readable file: {e}", presets.join(", "));
        ConfigError::new("machine", problem)
    })?;
    Ok(MachineConfig::parse(name, &text, set)?)
}

/// The domain of a request on a row, or the refusal of one that the row does not tolerate.
fn domain_of(request: &RunRequest, row: &Row) -> Result<Domain, ConfigError> {
    let domain = request.domain.unwrap_or(row.default_domain());
    if matches!(domain, Domain::Bbb | Domain::NvLlc) {
        return Err(ConfigError::new("domain", format!("{domain} needs hardware that no machine has yet")));
    }
    if !row.domains.contains(&domain) && !request.control {
        let names: Vec<&str> = row.domains.iter().map(|d| d.name()).collect();
        let problem = format!(
            "{} is not durable on {domain}, only on {}; --control runs the failing case",
            row.name,
            names.join(", ")
        );
        return Err(ConfigError::new("domain", problem));
    }
    Ok(domain)
}

/// Resolves and checks a request.
///
/// # Errors
/// Everything that is refused before cycle 0.
pub fn prepare(request: &RunRequest, registry: &[Row]) -> Result<Prepared, Error> {
    let config = machine_of(&request.machine, &request.set)?;
    let known = |name: &str| registry.iter().any(|row| row.hardware.name == name);
    if let Some(name) = config.design.keys().find(|name| !known(name)) {
        return Err(ConfigError::new(format!("design.{name}"), "no such design has parameters").into());
    }
    let row = registry.iter().find(|row| row.name == request.design).ok_or_else(|| {
        let names: Vec<&str> = registry.iter().map(|r| r.name).collect();
        ConfigError::new("design", format!("'{}' is none of {}", request.design, names.join(", ")))
    })?;
    let plan = Plan::new(&config, row, domain_of(request, row)?)?;
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
        seed: request.seed,
        pool,
    };
    Ok(Prepared { config, plan, program, pool_hash })
}

/// The machine and the design's parameters as a result reports them.
fn configuration(prepared: &Prepared) -> Value {
    let mut machine = serde_json::to_value(&prepared.config).expect("a machine is plain data");
    if let Some(fields) = machine.as_object_mut() {
        let design = if prepared.plan.spec.as_object().is_some_and(|s| s.is_empty()) {
            json!({})
        } else {
            json!({ prepared.plan.row.hardware.name: prepared.plan.spec })
        };
        fields.insert("design".into(), design);
    }
    machine
}

fn save_pool(path: &Path, contents: &PoolContents, row: &str) -> Result<(), Error> {
    contents.to_file(row).save(path).map(drop)
}

/// Runs a request to its end.
///
/// # Errors
/// What is refused before cycle 0, faults of the guest, a stuck machine, and host files that cannot be written.
pub fn run(request: &RunRequest, registry: &[Row], output: &mut dyn Output) -> Result<RunResult, Error> {
    let prepared = prepare(request, registry)?;
    if request.functional {
        return run_flat(request, &prepared, output);
    }
    let mut machine = Machine::new(&prepared.config, &prepared.plan, &prepared.program)?;
    let started = Instant::now();
    let ending = machine.run(request.max_instructions, output)?;
    let elapsed = started.elapsed();
    let guest_exit_code = exit_code(&ending, request)?;

    let end = machine.now();
    let (begin, region) = match (machine.measure.roi_begin, machine.measure.roi_end.take()) {
        (Some(begin), Some(region)) => (begin, region),
        (Some(begin), None) => (begin, machine.region_end(end)),
        (None, _) => (Moment::default(), machine.region_end(end)),
    };
    let clock = machine.system().geometry().clock;
    let roi = Region::between(begin, region.at);
    let ops = ops_of(&region).or(request.ops);
    let microseconds = clock.nanos(roi.cycles) / 1000.0;
    let mut digest = machine.digest();
    if let Some(hash) = &prepared.pool_hash {
        digest = blend(&digest, hash);
    }
    let result = RunResult {
        schema: "durasim-run/1".into(),
        durasim_version: env!("CARGO_PKG_VERSION").into(),
        design: prepared.plan.row.name.into(),
        workload: request.workload.clone(),
        machine: prepared.config.name.clone(),
        domain: prepared.plan.domain.name().into(),
        seed: request.seed,
        threads: request.threads,
        ops,
        roi,
        program: Region::between(Moment::default(), end),
        throughput_ops_per_us: ops.filter(|_| microseconds > 0.0).map(|n| n as f64 / microseconds),
        pmem_write_bytes: Bytes::of(region.media_write_bytes),
        pmem_residual_dirty_bytes: region.residual_dirty_bytes,
        latency_ns: latencies(&region.latency, clock),
        tx: region.tx,
        digest,
        guest_exit_code,
        host: Host::new(end.instructions, elapsed),
        configuration: configuration(&prepared),
        stats: region.stats,
    };
    if let Some(path) = &request.pool {
        save_pool(path, &machine.shut_down(&prepared)?, prepared.plan.row.name)?;
    }
    Ok(result)
}

fn exit_code(ending: &Ending, request: &RunRequest) -> Result<i32, Error> {
    match ending {
        Ending::Exited(code) => Ok(*code),
        Ending::InstructionLimit | Ending::Stopped => {
            let limit = request.max_instructions.unwrap_or(u64::MAX);
            let problem = format!("the program did not end within {limit} instructions");
            Err(ConfigError::new("max_instructions", problem).into())
        }
    }
}

/// Ties the hash of a given pool file into a digest.
fn blend(digest: &str, pool_hash: &str) -> String {
    use std::hash::Hasher;
    let mut both = durasim_types::Digest::default();
    both.write(digest.as_bytes());
    both.write(pool_hash.as_bytes());
    both.hex()
}

fn run_flat(request: &RunRequest, prepared: &Prepared, output: &mut dyn Output) -> Result<RunResult, Error> {
    let started = Instant::now();
    let limit = request.max_instructions.unwrap_or(u64::MAX);
    let FunctionalEnding { exit_code, instructions, pool, .. } =
        run_functionally(&prepared.config, &prepared.plan, &prepared.program, limit, output)?;
    let ending = exit_code.map_or(Ending::InstructionLimit, Ending::Exited);
    let guest_exit_code = self::exit_code(&ending, request)?;
    let mut digest = durasim_types::Digest::default();
    pool.pages.digest(&mut digest);
    let region = Region { instructions, cycles: 0, ipc: 0.0 };
    if let Some(path) = &request.pool {
        save_pool(path, &pool, prepared.plan.row.name)?;
    }
    Ok(RunResult {
        schema: "durasim-run/1".into(),
        durasim_version: env!("CARGO_PKG_VERSION").into(),
        design: prepared.plan.row.name.into(),
        workload: request.workload.clone(),
        machine: prepared.config.name.clone(),
        domain: prepared.plan.domain.name().into(),
        seed: request.seed,
        threads: request.threads,
        ops: request.ops,
        roi: region,
        program: region,
        throughput_ops_per_us: None,
        pmem_write_bytes: Bytes::default(),
        pmem_residual_dirty_bytes: 0,
        latency_ns: None,
        tx: crate::TxStats::default(),
        digest: digest.hex(),
        guest_exit_code,
        host: Host::new(instructions, started.elapsed()),
        configuration: configuration(prepared),
        stats: durasim_types::Stats::default(),
    })
}
