//! Counters of a core.

use super::stalls::StallCycles;
use serde::{Deserialize, Serialize};

/// Counters of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreStats {
    /// Conditional branches.
    pub branches: u64,
    /// Branches and jumps whose direction or target was predicted wrongly.
    pub mispredictions: u64,
    /// Loads executed.
    pub loads: u64,
    /// Loads whose data came from the store buffer.
    pub forwards: u64,
    /// Loads that passed an older store to the same place and were executed again.
    pub order_violations: u64,
    /// Stores executed.
    pub stores: u64,
    /// Fences executed.
    pub fences: u64,
    /// Those of them that order writes and found no cache-block operation to wait for.
    pub fences_without_cleans: u64,
    /// Cycles in which fences held the commit of younger instructions.
    pub fence_stall_cycles: u64,
    /// Cycles in which commits of transactions held the commit of younger instructions.
    pub commit_stall_cycles: u64,
    /// Stores that persist with a fence of their own, in one operation or as a store, a clean and a fence.
    pub fenced_stores: u64,
    /// Cycles from when each of them could leave the store buffer until it was acknowledged. What came before it is left
    /// out, and so is what another one waits for.
    pub fenced_store_cycles: u64,
    /// System calls.
    pub system_calls: u64,
    /// Cycles in which nothing committed.
    pub stalls: StallCycles,
}

impl CoreStats {
    /// Adds the counters of another core.
    pub fn add(&mut self, other: &CoreStats) {
        self.branches += other.branches;
        self.mispredictions += other.mispredictions;
        self.loads += other.loads;
        self.forwards += other.forwards;
        self.order_violations += other.order_violations;
        self.stores += other.stores;
        self.fences += other.fences;
        self.fences_without_cleans += other.fences_without_cleans;
        self.fence_stall_cycles += other.fence_stall_cycles;
        self.commit_stall_cycles += other.commit_stall_cycles;
        self.fenced_stores += other.fenced_stores;
        self.fenced_store_cycles += other.fenced_store_cycles;
        self.system_calls += other.system_calls;
        self.stalls.add(&other.stalls);
    }
}
