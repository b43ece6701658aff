//! Parameters of a memory: its controllers and its media.

use durasim_types::{ConfigError, Picos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The queues of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ControllerConfig {
    /// Reads in flight at most.
    pub read_queue_entries: u32,
    /// Entries of the write pending queue.
    pub write_queue_entries: u32,
    /// Whether a write joins a waiting entry of the same line and cause.
    pub coalesce_writes: bool,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        ControllerConfig { read_queue_entries: 64, write_queue_entries: 64, coalesce_writes: true }
    }
}

/// Media with one fixed latency for reads and one for writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MediaConfig {
    /// Latency of a read in nanoseconds.
    pub read_latency_ns: u64,
    /// Latency of a write in nanoseconds.
    pub write_latency_ns: u64,
    /// Accesses in service at a time; lines are spread over the banks by address.
    pub banks: u32,
    /// Bandwidth of the channel in MB/s (10^6 bytes).
    pub bandwidth_mb_per_s: u64,
    /// What one write costs the media at least, in bytes: shorter writes count as this much.
    pub write_granularity_bytes: u32,
}

impl Default for MediaConfig {
    fn default() -> Self {
        MediaConfig {
            read_latency_ns: 150,
            write_latency_ns: 100,
            banks: 16,
            bandwidth_mb_per_s: 12_800,
            write_granularity_bytes: 64,
        }
    }
}

/// One kind of memory of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// Capacity in MiB.
    pub capacity_mib: u64,
    /// The queues.
    pub controller: ControllerConfig,
    /// The media.
    pub media: MediaConfig,
}

impl MemoryConfig {
    /// Refuses what cannot be built; `field` is the path of this section.
    pub fn check(&self, field: &str) -> Result<(), ConfigError> {
        let range = |name: &str, value: u64, low: u64, high: u64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(ConfigError::new(format!("{field}.{name}"), format!("{value} is not between {low} and {high}")))
            }
        };
        range("capacity_mib", self.capacity_mib, 1, 1 << 21)?;
        range("controller.read_queue_entries", self.controller.read_queue_entries.into(), 1, 4096)?;
        range("controller.write_queue_entries", self.controller.write_queue_entries.into(), 1, 4096)?;
        range("media.read_latency_ns", self.media.read_latency_ns, 1, 1_000_000)?;
        range("media.write_latency_ns", self.media.write_latency_ns, 1, 1_000_000)?;
        range("media.banks", self.media.banks.into(), 1, 1024)?;
        range("media.bandwidth_mb_per_s", self.media.bandwidth_mb_per_s, 1, 10_000_000)?;
        range("media.write_granularity_bytes", self.media.write_granularity_bytes.into(), 1, 4096)
    }
}

impl MediaConfig {
    /// Time a line occupies the channel.
    pub fn transfer_ps(&self) -> Picos {
        (64 * 1_000_000u64).div_ceil(self.bandwidth_mb_per_s)
    }
}
