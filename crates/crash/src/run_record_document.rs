//! The record of a run as JSON users see it (python/durasim/schemas/run-record.json).

use durasim_types::{Cycle, DataRange, Domain};
use serde::Serialize;

use crate::causes::Frame;

/// All steps of a run without a power failure, in the order in which the machine made them.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    /// Name and version of this document.
    pub schema: String,
    /// The design.
    pub design: String,
    /// The program.
    pub workload: String,
    /// The machine.
    pub machine: String,
    /// The persistence domain.
    pub domain: String,
    /// The number of cores.
    pub cores: u16,
    /// The number of controllers of persistent memory.
    pub controllers: u16,
    /// The parts of the machine that survive a power failure besides the media.
    pub survives: Survivors,
    /// The number of persist events.
    pub events: u64,
    /// The last cycle.
    pub cycles: Cycle,
    /// The data that the program has declared.
    pub data: Option<DataRange>,
    /// The regions of persistent memory that the design has reserved.
    pub regions: Vec<RecordedRegion>,
    /// The sentence that says what the debug information lacks; null if it lacks nothing.
    pub debug_information: Option<String>,
    /// The instructions of the steps.
    pub places: Vec<RecordedPlace>,
    /// The steps.
    pub steps: Vec<RecordedStep>,
}

/// The parts of a machine that survive a power failure besides the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Survivors {
    /// The caches of the cores.
    pub private_caches: bool,
    /// The last level.
    pub last_level: bool,
    /// The persist buffers beside the L1Ds.
    pub persist_buffers: bool,
    /// The write queues of the controllers.
    pub write_queues: bool,
}

impl From<Domain> for Survivors {
    fn from(domain: Domain) -> Survivors {
        Survivors {
            private_caches: domain.caches_are_durable(),
            last_level: domain.llc_is_durable(),
            persist_buffers: domain == Domain::Bbb,
            write_queues: domain.queue_is_durable(),
        }
    }
}

/// A region of persistent memory that the design has reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedRegion {
    /// Its name.
    pub name: String,
    /// Its first byte.
    pub base: u64,
    /// Its length in bytes.
    pub size_bytes: u64,
}

/// An instruction with its place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedPlace {
    /// Its address.
    pub pc: u64,
    /// Its function first, then those into which the compiler has put that one. At least one.
    pub frames: Vec<Frame>,
}

/// A step of a program, of a cache or of a controller. What a step does not have is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordedStep {
    /// `store`, `clean`, `fence`, `other_fence`, `evict`, `begin`, `suspended`, `resumed`, `committing`, `acknowledged`, `aborted`,
    /// or the kind of a persist event.
    pub what: &'static str,
    /// When, in cycles.
    pub cycle: Cycle,
    /// The number of the persist event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<u16>,
    /// The thread of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The first byte of a store or of a persist event, or of the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Length of a store in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u8>,
    /// The stored value, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<u64>,
    /// The cache level that evicts the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<&'static str>,
    /// The controller of a persist event of queues and media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<u16>,
    /// The cause of a write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// The index of its instruction in the places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
}
