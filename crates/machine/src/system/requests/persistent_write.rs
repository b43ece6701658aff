//! Stores that are written to persistent memory as they are made: P-INSPECT's persistentWrite (Kokolis, Shull, Huang and
//! Torrellas, MICRO 2020, section V-E), with the clean of its line, or with that and a fence.
//!
//! The store goes down to the directory with the request for its line. The entry of the line is locked, other cores lose their
//! copies, and dirty bytes come along. From there the write continues to its controller: all of the line if any copy of it was
//! dirty, else the bytes of the store alone. A line that no cache has is read beside that, so both share one trip to memory. A
//! core whose own caches have the line for itself sends the write as a cache-block operation does. The line is then in the L1D,
//! exclusive and clean. The entry stays locked until the acknowledgement of the persistence domain has passed it.
//!
//! The write takes the path of all writes: loads, reads and power failures see it in flight as they see others. The next
//! fence waits for it, as for a cache-block operation; after a store that brings a fence with it later entries of the store
//! buffer wait.
//!
//! If the last level alone is durable, the write ends there, as a cache-block operation does: the store is made, then
//! cleaned.

use super::gates::WaitMode;
use crate::parts::agenda::persistent_write_token;
use crate::parts::line_locks::{AtDirectory, WriteShape};
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::Origin;
use durasim_core::{Outcome, PendingStore, PersistentStores};
use durasim_isa::CacheBlockOp;
use durasim_memory::Write;
use durasim_types::{CoreId, Cycle, LineAddr, StoreKind};

/// The bytes of a store in its line, as a mask.
fn bytes_of(store: &PendingStore) -> u64 {
    (u64::MAX >> (64 - u32::from(store.len))) << store.addr.offset()
}

impl System {
    /// Implementation of stores that persist, for a line.
    pub fn persistent_stores(&self, line: LineAddr) -> PersistentStores {
        match self.line_locks.persistent_stores() {
            _ if !self.has_to_persist(line) => PersistentStores::Plain,
            stores => stores,
        }
    }

    /// Whether a store to a line is durable only when it has been written there.
    fn has_to_persist(&self, line: LineAddr) -> bool {
        is_pmem(line) && !self.domain.stores_are_durable()
    }

    /// Whether a store takes the way of this file.
    #[inline]
    pub(super) fn is_persistent_write(&self, store: &PendingStore) -> bool {
        store.kind != StoreKind::Plain && self.has_to_persist(store.addr.line())
    }

    /// A store with its clean, and maybe a fence, leaves the store buffer, or its request is made again. The line is pinned
    /// by the caller.
    pub(super) fn write_persistently(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> Outcome {
        if let Some(there) = self.line_locks.sent(core) {
            return self.await_persistent_write(core, there, at);
        }
        assert!(!self.design.has_hooks(), "{} has to be asked about each store", self.design.name());
        self.agenda.forget_suspension(core);
        let there = if self.llc_alone_is_durable() {
            self.store_and_clean(core, store, at)
        } else {
            self.send_persistent_write(core, store, at)
        };
        if self.halted() || store.kind != StoreKind::CleanAndFence {
            return Outcome::Done(there);
        }
        self.line_locks.send(core, there);
        if store.checked {
            self.filters.store_leaves(core, there);
        }
        self.await_persistent_write(core, there, at)
    }

    /// The store of a core has been sent, and all earlier cleans of the core: waits for their acknowledgements as a fence
    /// does.
    fn await_persistent_write(&mut self, core: CoreId, there: Cycle, at: Cycle) -> Outcome {
        if self.agenda.has_unacked_cleans(core) {
            self.agenda.suspend_for_cleans(core, at.max(there));
            return Outcome::Pending;
        }
        self.agenda.forget_suspension(core);
        self.line_locks.end(core);
        let done = at.max(there).max(self.agenda.take_clean_ack(core));
        self.stalls.cleans_are_acked(core, there);
        self.fence_passes(core, done);
        Outcome::Done(done)
    }

    /// Makes a store and sends it to its controller; the cycle in which its line is in the L1D.
    fn send_persistent_write(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> Cycle {
        let (line, begun) = (store.addr.line(), at);
        let mut at = at;
        let own = self.caches.newest_private(core, line).filter(|_| self.caches.owns(core, line));
        if own.is_some() {
            // Nothing has to be asked for. It leaves so that the entry is free when it comes to the directory.
            let down = at + self.caches.way_down(core);
            at += self.await_unlocked(line, down) - down;
            if self.halted() {
                return at;
            }
        }
        // From the level that has the line, once that has it.
        let from_core = own.map_or(at, |(level, slot)| self.caches.array(level, core).ready(slot).max(at));
        let read_cycles = self.caches.data_cycles(line);
        self.line_locks.take_directory();
        let (slot, there) = match self.line_to_write(core, line, store.tx, at) {
            Ok(found) => found,
            Err(lost) => return lost.at(),
        };
        let directory = self.line_locks.take_directory();
        let is_dirty = self.caches.newest_if_dirty(line).is_some();
        let (from, leaves) = match directory {
            None => (Origin::Core(core), from_core + if is_dirty { read_cycles } else { 0 }),
            Some(AtDirectory { at, .. }) => {
                let llc = self.caches.llc().geometry();
                (Origin::Llc, at + if is_dirty { llc.latency_cycles - llc.tag_latency_cycles } else { 0 })
            }
        };

        self.note_store(core, store, there);
        self.observers.cleaned(core, there, line);
        self.write_l1d(core, slot, store.addr, store.len, store.data);
        let data = *self.caches.l1d(core).data(slot);
        let mask = if is_dirty { u64::MAX } else { bytes_of(store) };
        let token = Some(persistent_write_token(core));
        let write = Write { mask, token, ..Write::line(line, data, self.memories.home_cause(line)) };
        let shape = WriteShape {
            fenced: store.kind == StoreKind::CleanAndFence,
            whole_line: is_dirty,
            from_memory: directory.is_some_and(|directory| directory.missed),
        };
        self.line_locks.lock(line, begun, shape);
        self.submit(core, from, write, leaves);
        if self.halted() {
            return there;
        }
        self.caches.clean_copies(line, data, self.design.tags_follow_newest_data());
        self.debug_check(line);
        there
    }

    /// Makes a store and cleans its line, where the last level alone is durable; the cycle in which the line is in the L1D.
    fn store_and_clean(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> Cycle {
        let there = match self.store_through_design(core, store, at, WaitMode::MemoryOnly) {
            Outcome::Done(there) => there,
            other => unreachable!("nothing holds a store up or aborts it: {other:?}"),
        };
        if !self.halted() {
            let fenced = store.kind == StoreKind::CleanAndFence;
            self.line_locks.count(WriteShape { fenced, whole_line: true, from_memory: false });
            self.cache_block(core, CacheBlockOp::Clean, store.addr.line(), there);
        }
        there
    }
}
