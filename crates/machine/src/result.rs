//! The result of a run, as JSON users see it.

use crate::measure::{Moment, RegionEnd};
use crate::system::TxStats;
use durasim_types::{Cause, Clock, Cycle, Latencies, Stats};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Instructions and cycles of a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// Retired instructions.
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

/// Bytes that the media of persistent memory accepted, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of Cause")]
pub struct Bytes {
    pub total: u64,
    pub data: u64,
    pub log: u64,
    pub metadata: u64,
    pub migration: u64,
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

/// What the run cost on the host; the only part that differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Wall time of the simulation in seconds.
    pub seconds: f64,
    /// Million simulated instructions per second.
    pub mips: f64,
    /// Largest resident memory of the process so far, in bytes.
    pub peak_rss_bytes: u64,
}

impl Host {
    /// The cost of so many instructions in so much time.
    pub fn new(instructions: u64, elapsed: std::time::Duration) -> Self {
        let seconds = elapsed.as_secs_f64();
        let mips = if seconds == 0.0 { 0.0 } else { instructions as f64 / seconds / 1e6 };
        Host { seconds, mips, peak_rss_bytes: peak_rss_bytes() }
    }
}

/// VmHWM of this process; 0 where the host does not tell.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.trim().strip_suffix(" kB")).and_then(|n| n.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Name and version of this document.
    pub schema: String,
    /// Version of durasim.
    pub durasim_version: String,
    /// Row of the registry.
    pub design: String,
    /// Name of the workload or program.
    pub workload: String,
    /// Name of the machine.
    pub machine: String,
    /// Persistence domain.
    pub domain: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads of the guest.
    pub threads: u32,
    /// Operations in the region of interest.
    pub ops: Option<u64>,
    /// The region of interest; the whole program if it marks none.
    pub roi: Region,
    /// The whole program.
    pub program: Region,
    /// Operations per simulated microsecond of the region of interest.
    pub throughput_ops_per_us: Option<f64>,
    /// Bytes the media accepted in the region of interest.
    pub pmem_write_bytes: Bytes,
    /// Bytes of persistent memory that are dirty in caches or wait in queues at the end of the region of interest.
    pub pmem_residual_dirty_bytes: u64,
    /// Latency of operations in nanoseconds; of transactions if the program marks no operations.
    pub latency_ns: Option<Latencies>,
    /// Transactions of the region of interest.
    pub tx: TxStats,
    /// Proves two runs equal.
    pub digest: String,
    /// Exit code of the program.
    pub guest_exit_code: i32,
    /// Cost on the host.
    pub host: Host,
    /// The machine and the design's parameters, as they were after all overrides.
    pub configuration: Value,
    /// Every counter.
    pub stats: Stats,
}

/// Percentiles of a histogram of cycles.
pub(crate) fn latencies(histogram: &Histogram<u64>, clock: Clock) -> Option<Latencies> {
    if histogram.is_empty() {
        return None;
    }
    let at = |quantile: f64| clock.nanos(histogram.value_at_quantile(quantile));
    Some(Latencies { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: clock.nanos(histogram.max()) })
}

/// Operations of a region: those the program marks, else its committed transactions.
pub(crate) fn ops_of(region: &RegionEnd) -> Option<u64> {
    if region.ops > 0 { Some(region.ops) } else { (region.tx.committed > 0).then_some(region.tx.committed) }
}
