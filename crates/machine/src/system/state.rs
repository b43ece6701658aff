//! The state of the memory system: forked, saved, put into a new system of the same configuration, and taken over by a
//! system of another one.

use super::System;
use crate::parts::caches::{CachedLines, SavedCaches};
use crate::parts::{
    agenda, caches, filters, interconnect, line_locks, memories, observers, open_transactions, stall_attribution,
};
use durasim_contract::Variant;
use durasim_types::{ConfigError, Cycle, DataRange, PAGE_BYTES, Pages};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of all parts by reference, to be saved.
#[derive(Serialize)]
pub(crate) struct Written<'a> {
    caches: caches::Written<'a>,
    interconnect: interconnect::Written<'a>,
    memories: memories::Written<'a>,
    persist_buffers: &'a super::PersistBuffers,
    line_locks: line_locks::Written<'a>,
    filters: filters::Written<'a>,
    agenda: agenda::Written<'a>,
    transactions: open_transactions::Written<'a>,
    observers: observers::Written<'a>,
    stalls: stall_attribution::Written<'a>,
    block_counts: &'a super::BlockCounts,
    design: Vec<u8>,
}

/// The state as it was saved: the same parts in the same order.
#[derive(Deserialize)]
pub(crate) struct Read {
    caches: SavedCaches,
    interconnect: interconnect::SavedInterconnect,
    memories: memories::SavedMemories,
    persist_buffers: super::PersistBuffers,
    line_locks: line_locks::SavedLineLocks,
    filters: filters::SavedFilters,
    agenda: agenda::SavedAgenda,
    transactions: open_transactions::SavedTransactions,
    observers: observers::SavedObservers,
    stalls: stall_attribution::SavedStallAttribution,
    block_counts: super::BlockCounts,
    design: Vec<u8>,
}

impl System {
    /// All that changes while the system works. The work list is empty between two requests.
    pub(crate) fn state(&self) -> Written<'_> {
        let System {
            caches,
            interconnect,
            memories,
            persist_buffers,
            line_locks,
            filters,
            agenda,
            transactions,
            observers,
            stalls,
            block_counts,
            design,
            ..
        } = self;
        Written {
            caches: caches.state(),
            interconnect: interconnect.state(),
            memories: memories.state(),
            persist_buffers,
            line_locks: line_locks.state(),
            filters: filters.state(),
            agenda: agenda.state(),
            transactions: transactions.state(),
            observers: observers.state(),
            stalls: stalls.state(),
            block_counts,
            design: design.save(),
        }
    }

    /// Puts a saved state into this system, which was built for the same plan.
    ///
    /// # Errors
    /// A state of the design that it refuses.
    pub(crate) fn put_state(&mut self, variant: &Variant, spec: &Value, read: Read) -> Result<(), ConfigError> {
        let loaded = (variant.hardware.load)(spec, &self.geometry, &read.design);
        self.design.put(loaded.map_err(|e| ConfigError::new("from", e.problem))?);
        self.caches.put_state(read.caches);
        self.interconnect.put_state(read.interconnect);
        self.memories.put_state(read.memories);
        self.persist_buffers = read.persist_buffers;
        self.line_locks.put_state(read.line_locks);
        self.filters.put_state(read.filters);
        self.agenda.put_state(read.agenda);
        self.transactions.put_state(read.transactions);
        self.observers.put_state(read.observers);
        self.stalls.put_state(read.stalls);
        self.block_counts = read.block_counts;
        Ok(())
    }

    /// A second system in the same state, which continues independently. It has no observer.
    pub(crate) fn fork(&mut self) -> System {
        System {
            geometry: self.geometry.clone(),
            domain: self.domain,
            caches: self.caches.fork(),
            interconnect: self.interconnect.fork(),
            memories: self.memories.fork(),
            persist_buffers: self.persist_buffers.clone(),
            line_locks: self.line_locks.fork(),
            filters: self.filters.fork(),
            design: self.design.fork(),
            agenda: self.agenda.fork(),
            transactions: self.transactions.fork(),
            observers: self.observers.fork(),
            stalls: self.stalls.fork(),
            block_counts: self.block_counts.clone(),
            work: self.work.fork(),
        }
    }

    /// Names what is in progress right now: what a snapshot of this moment has to hold beside caches and memory.
    pub fn in_progress(&self) -> Vec<&'static str> {
        let names = [
            ("open transaction", self.transactions.any_open()),
            ("aborted transaction", self.transactions.any_abort_notice()),
            ("suspended request", self.agenda.is_any_suspended()),
            ("queued write", self.memories.any_queued()),
            ("persist buffer", self.persist_buffers.resident_lines() > 0),
            ("write in flight", self.memories.any_in_flight()),
            ("waiting write", self.memories.any_waiting()),
            ("awaited acknowledgement", self.agenda.is_anything_outstanding()),
            ("awaited clean", self.agenda.any_unacked_clean()),
            ("scheduled work", self.agenda.is_anything_scheduled()),
            ("instruction timer", self.agenda.any_instruction_timer()),
        ];
        names.into_iter().filter_map(|(name, is)| is.then_some(name)).collect()
    }

    /// Bytes of the pages of both memories that were ever written.
    pub fn written_bytes(&self) -> u64 {
        self.written_pages() * PAGE_BYTES
    }

    /// Pages of both memories that were ever written.
    pub(crate) fn written_pages(&self) -> u64 {
        let memories = [self.memories.dram_media(), self.memories.pmem_media()];
        memories.iter().map(|pages| pages.touched().count() as u64).sum()
    }

    /// Whether some transaction is open.
    pub(crate) fn has_open_transactions(&self) -> bool {
        self.transactions.any_open()
    }

    /// The DRAM with the newest copy of each line, once the queues have drained.
    pub(crate) fn quiesced_dram(&self) -> Pages {
        let mut dram = self.memories.dram_media().clone();
        self.caches.write_dram_home(&mut dram);
        dram
    }

    /// Number of lines that the LLC holds.
    pub fn llc_lines(&self) -> usize {
        self.caches.llc().slots().count()
    }

    /// The lines in all caches.
    pub(crate) fn cached_lines(&self) -> CachedLines {
        self.caches.cached_lines()
    }

    /// The range that the program declared, and the number of transactions so far.
    pub(crate) fn declared(&self) -> (Option<DataRange>, u64) {
        (self.memories.data_range(), self.transactions.count())
    }

    /// The range that the program declared last.
    pub fn data_range(&self) -> Option<DataRange> {
        self.memories.data_range()
    }

    /// Starts at `cycle`, after a part of the program that was executed elsewhere. The memories hold what they held
    /// there; what a design keeps in regions of its own does not come along.
    pub(crate) fn resume_at(&mut self, cycle: Cycle, instructions: u64, declared: (Option<DataRange>, u64)) {
        self.observers.start_at(cycle);
        self.agenda.start_after(instructions);
        self.memories.declare_data(declared.0);
        self.transactions.start_after(declared.1);
    }

    /// Replaces the contents of persistent memory before the simulation starts.
    pub fn load_pmem(&mut self, pages: &Pages) {
        self.memories.load_pmem(pages);
    }

    /// Puts contents into both memories, as far as programs may use them. Nothing is copied before it is written.
    pub(crate) fn load_memories(&mut self, dram: &Pages, pmem: &Pages) {
        self.memories.load(dram, pmem);
    }

    /// Fills the empty caches with clean copies of lines that others held.
    pub(crate) fn warm(&mut self, cached: &CachedLines) {
        self.caches.warm(cached, &self.memories);
    }
}
