//! Metrics of a region of interest, as the result of a run has them.

use super::latency::{PhaseLatencies, PhaseLatency};
use super::transactions::{ReplayStats, TxStats};
use durasim_types::{Cause, Clock};
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes that the media of persistent memory accepted, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bytes {
    /// The sum of the others.
    pub total: u64,
    /// The program's own data, at its home address.
    pub data: u64,
    /// Undo or redo copies of data.
    pub log: u64,
    /// Commit records, mapping tables, tags.
    pub metadata: u64,
    /// Copies moved between places of persistent memory in the background.
    pub migration: u64,
    /// Copies made for a checkpoint.
    pub checkpoint: u64,
}

impl Bytes {
    pub(crate) fn of(bytes: [u64; 5]) -> Self {
        let of = |cause: Cause| bytes[cause as usize];
        Bytes {
            total: bytes.iter().sum(),
            data: of(Cause::Data),
            log: of(Cause::Log),
            metadata: of(Cause::Metadata),
            migration: of(Cause::Migration),
            checkpoint: of(Cause::Checkpoint),
        }
    }
}

/// Latency of operations in simulated nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latencies {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest value.
    pub max: f64,
}

impl Latencies {
    /// Percentiles of a histogram of cycles; nothing of an empty one.
    pub(crate) fn of(histogram: &Histogram<u64>, clock: Clock) -> Option<Latencies> {
        if histogram.is_empty() {
            return None;
        }
        let at = |quantile: f64| clock.nanos(histogram.value_at_quantile(quantile));
        Some(Latencies { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: clock.nanos(histogram.max()) })
    }
}

/// Latency of one phase of the transactions of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Transactions that went through it and committed.
    pub count: u64,
    /// The mean in core cycles.
    pub mean_cycles: f64,
    /// The 99th percentile in core cycles, three digits exact.
    pub p99_cycles: u64,
}

impl Phase {
    fn of(latency: &PhaseLatency) -> Self {
        Phase { count: latency.count(), mean_cycles: latency.mean(), p99_cycles: latency.p99() }
    }
}

/// The phases of the transactions of a design that commits in two phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phases {
    /// From the begin to the moment at which the commit has left the store buffer.
    pub execute: Phase,
    /// From there until all that was stored is where the commit needs it.
    pub prepare: Phase,
    /// From there to the end of the commit instruction.
    pub commit: Phase,
}

impl Phases {
    /// Nothing of a design without phases.
    pub(crate) fn of(latencies: &PhaseLatencies) -> Option<Phases> {
        let [execute, prepare, commit] = latencies.all().map(Phase::of);
        (prepare.count > 0).then_some(Phases { execute, prepare, commit })
    }
}

/// Lines that all media, those of volatile memory too, read and wrote for each committed transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccessesPerTx {
    /// Reads; what a write queue answers is none.
    pub reads: f64,
    /// Writes that entered write queues; what joins a waiting write of its line is none.
    pub writes: f64,
}

/// Metrics of the region of interest at its end. `x-unit` makes a number a measure of `durasim diff` and of the
/// printed table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Bytes that the media of persistent memory accepted in the region of interest, by cause.
    pub pmem_write_bytes: Bytes,
    /// Bytes of persistent memory that are dirty in caches or wait in queues at the end of the region of interest.
    #[schemars(extend("x-unit" = "bytes", "x-label" = "pmem left dirty"))]
    pub pmem_residual_dirty_bytes: u64,
    /// Latency of an operation, or of a transaction if the program marks no operations; null without either.
    pub latency_ns: Option<Latencies>,
    /// Instructions of the region of interest, those between transactions included, for each transaction that it committed;
    /// null without transactions.
    #[schemars(extend("x-unit" = "instructions"))]
    pub instructions_per_transaction: Option<f64>,
    /// Phases of the committed transactions; null where the design does not commit in two phases.
    pub phases: Option<Phases>,
    /// Lines that all media read and wrote for each committed transaction; null without transactions.
    pub accesses_per_tx: Option<AccessesPerTx>,
    /// Transactions of the region of interest.
    pub tx: TxStats,
    /// Replay of redo logs by the runtime; null where the design has no hardware transactions.
    pub replay: Option<ReplayStats>,
}
