//! The result of a run, as JSON users see it.

use super::provenance::Provenance;
use crate::setup::request::{Prepared, RunRequest, configuration};
use crate::statistics::batches::Batches;
use crate::statistics::measurements::{Moment, RegionEnd};
use crate::statistics::metrics::Metrics;
use crate::statistics::persistence::PersistenceReport;
use durasim_types::{Cycle, Domain, Stats};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Instructions and cycles of a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// Retired instructions of all cores.
    pub instructions: u64,
    /// Core cycles.
    pub cycles: Cycle,
    /// Instructions per cycle.
    pub ipc: f64,
}

impl Region {
    pub(crate) fn between(begin: Moment, end: Moment) -> Self {
        let (instructions, cycles) = (end.instructions - begin.instructions, end.cycle - begin.cycle);
        Region { instructions, cycles, ipc: if cycles == 0 { 0.0 } else { instructions as f64 / cycles as f64 } }
    }
}

/// Cost of the run on the host; the only part that differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Wall time of the simulation, without the start-up of the process.
    pub seconds: f64,
    /// Million simulated instructions per second of wall time.
    pub mips: f64,
    /// Largest resident memory of the process so far.
    pub peak_rss_bytes: u64,
}

impl Host {
    /// The cost of `instructions` in the time `elapsed`.
    pub fn new(instructions: u64, elapsed: std::time::Duration) -> Self {
        let seconds = elapsed.as_secs_f64();
        let mips = if seconds == 0.0 { 0.0 } else { instructions as f64 / seconds / 1e6 };
        Host { seconds, mips, peak_rss_bytes: peak_rss_bytes() }
    }
}

/// VmHWM of this process; 0 where the host does not report it.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.trim().strip_suffix(" kB")).and_then(|n| n.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The result of `durasim run`. All but `host` is the same bytes on every run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunResult {
    /// Name and version of this document.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Version of durasim.
    pub durasim_version: &'static str,
    /// Durability design.
    pub design: &'static str,
    /// Name of the workload, or of the program's file.
    pub workload: String,
    /// Preset, or the name given in a machine file.
    pub machine: String,
    /// Persistence domain of the machine.
    #[schemars(extend("enum" = Domain::ALL.map(Domain::name)))]
    pub domain: &'static str,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads of the guest.
    #[schemars(range(min = 1))]
    pub threads: u32,
    /// Operations of the workload in the region of interest; null for a program that marks none.
    pub ops: Option<u64>,
    /// The region of interest; the whole program if it marks none.
    pub roi: Region,
    /// The whole program.
    pub program: Region,
    /// Operations per simulated microsecond of the region of interest; null without operations.
    pub throughput_ops_per_us: Option<f64>,
    /// Metrics at the end of the region of interest.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// 32 hexadecimal digits that prove two runs equal.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    pub digest: String,
    /// Exit code of the guest program; null if it was stopped after its region of interest.
    pub guest_exit_code: Option<i32>,
    /// The use of cache-block operations and fences by line of the source; null unless it was asked for.
    #[schemars(schema_with = "persistence_report")]
    pub persistence: Option<PersistenceReport>,
    /// Counters at the ends of batches of operations; null unless they were asked for.
    pub batches: Option<Batches>,
    /// Cost on this computer; the only part that differs from run to run.
    pub host: Host,
    /// Provenance of the run, beside machine, design, threads and seed.
    pub provenance: Provenance,
    /// The machine and the design's parameters, as they were after all overrides, in the shape of a machine file.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub configuration: Value,
    /// Every counter.
    #[schemars(schema_with = "stats_tree")]
    pub stats: Stats,
}

const SCHEMA: &str = "durasim-run/5";

/// Stands for the tree that documents of several kinds have.
fn stats_tree(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "#/$defs/tree" })
}

/// Stands for a schema of its own, in a file beside that of the result.
fn persistence_report(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "null" }, { "$ref": "persistence.json" }] })
}

/// End of a run.
pub(crate) struct RunEnd {
    pub ops: Option<u64>,
    pub roi: Region,
    pub program: Region,
    pub throughput_ops_per_us: Option<f64>,
    pub metrics: Metrics,
    pub stats: Stats,
    pub digest: String,
    pub guest_exit_code: Option<i32>,
    pub persistence: Option<PersistenceReport>,
    pub batches: Option<Batches>,
    pub host: Host,
}

impl RunResult {
    /// The result of a run of `request` with this end.
    pub(crate) fn of(request: &RunRequest, prepared: &Prepared, end: RunEnd) -> RunResult {
        RunResult {
            schema: SCHEMA,
            durasim_version: env!("CARGO_PKG_VERSION"),
            design: prepared.plan.variant.name,
            workload: request.workload.clone(),
            machine: prepared.config.name.clone(),
            domain: prepared.plan.domain.name(),
            seed: request.seed,
            threads: request.threads,
            ops: end.ops,
            roi: end.roi,
            program: end.program,
            throughput_ops_per_us: end.throughput_ops_per_us,
            metrics: end.metrics,
            digest: end.digest,
            guest_exit_code: end.guest_exit_code,
            persistence: end.persistence,
            batches: end.batches,
            host: end.host,
            provenance: Provenance::of(request, prepared),
            configuration: configuration(prepared),
            stats: end.stats,
        }
    }
}

/// Operations of a region: those the program marks, else its committed transactions.
pub(crate) fn ops_of(region: &RegionEnd) -> Option<u64> {
    let committed = region.metrics.tx.committed;
    if region.ops > 0 { Some(region.ops) } else { (committed > 0).then_some(committed) }
}
