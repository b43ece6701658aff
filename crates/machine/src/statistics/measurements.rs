//! Measurements of a run: the region of interest, latencies of operations, and the state of all counters at its end.

use super::batches::{BatchReadings, Batches};
use super::latency::{Latency, LoadLatency};
use super::metrics::Metrics;
use durasim_isa::Marker;
use durasim_kernel::ThreadId;
use durasim_types::{CoreId, Cycle, PhysAddr, Stats};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Instructions and cycles at a moment of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moment {
    pub instructions: u64,
    pub cycle: Cycle,
}

/// Everything the result reports of a region, taken at its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RegionEnd {
    pub at: Moment,
    pub stats: Stats,
    pub metrics: Metrics,
    pub ops: u64,
    /// None unless batches are recorded.
    pub batches: Option<Batches>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measurements {
    pub roi_begin: Option<Moment>,
    pub roi_end: Option<RegionEnd>,
    /// A marker of the region of interest that the machine has not yet seen.
    pub pending: Option<(Marker, Cycle)>,
    /// A snapshot point that the machine has not yet seen.
    pub mark: Option<u64>,
    pub data_base: Option<PhysAddr>,
    pub cache_block_operations: u64,
    /// The thread on each core, whose operations are measured.
    pub threads: Vec<ThreadId>,
    op_begun: BTreeMap<ThreadId, Cycle>,
    pub ops: u64,
    pub op_latency: Latency,
    /// From the issue of a load of persistent memory to its data; those that the store buffer answers are none.
    pub pmem_load_latency: LoadLatency,
    pub pmem_stores: u64,
    /// The batches of the region up to now; none unless they are recorded.
    pub batches: Option<BatchReadings>,
}

impl Measurements {
    pub fn new(cores: u16) -> Self {
        Measurements {
            roi_begin: None,
            roi_end: None,
            pending: None,
            mark: None,
            data_base: None,
            cache_block_operations: 0,
            threads: vec![ThreadId::FIRST; cores.into()],
            op_begun: BTreeMap::new(),
            ops: 0,
            op_latency: Latency::new(),
            pmem_load_latency: LoadLatency::new(),
            pmem_stores: 0,
            batches: None,
        }
    }

    /// A region begins: what was counted so far belongs to no region.
    pub fn reset(&mut self) {
        self.cache_block_operations = 0;
        self.op_begun.clear();
        self.ops = 0;
        self.op_latency.reset();
        self.pmem_load_latency = LoadLatency::new();
        self.pmem_stores = 0;
        if let Some(batches) = &mut self.batches {
            *batches = BatchReadings::default();
        }
    }

    pub fn op_begin(&mut self, core: CoreId, at: Cycle) {
        self.op_begun.insert(self.threads[core.0 as usize], at);
    }

    pub fn op_end(&mut self, core: CoreId, at: Cycle) {
        if let Some(begun) = self.op_begun.remove(&self.threads[core.0 as usize]) {
            self.ops += 1;
            self.op_latency.record(at.saturating_sub(begun));
        }
    }
}
