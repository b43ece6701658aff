//! Stores and atomic operations of a core, and the way that each takes.

use super::gates::WaitMode;
use super::stores::write_word;
use crate::parts::caches::AccessMode;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::Hooks;
use durasim_core::{Outcome, PendingStore};
use durasim_types::{CoreId, Cycle, EventKind, StoreKind};

impl System {
    /// A store leaves the store buffer.
    #[inline]
    pub fn store(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> Outcome {
        let outcome = match self.store_fast_path(core, store, at) {
            Some(from) => Outcome::Done(from),
            None => self.store_with(core, store, at, WaitMode::Suspend),
        };
        // One that waits for its acknowledgement has left when it was sent.
        if store.checked
            && let Outcome::Done(done) = outcome
            && !(store.kind == StoreKind::CleanAndFence && self.is_persistent_write(store))
        {
            self.filters.store_leaves(core, done);
        }
        outcome
    }

    /// Fast path of a store that the design need not see: nothing is due before it, and its line is there, may be written, and
    /// has no tag or that of the store's own transaction. The cycle in which it is made.
    #[inline(always)]
    fn store_fast_path(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> Option<Cycle> {
        let line = store.addr.line();
        let pmem = is_pmem(line);
        let is_disturbed = || self.transactions.any_abort_notice() || self.transactions.diverts();
        // One condition: the kind of a plain store costs no branch of its own.
        let takes_other_way = || self.persist_buffers.exist() | (store.kind != StoreKind::Plain);
        if self.agenda.due() <= at || is_disturbed() || pmem && takes_other_way() {
            return None;
        }
        let slot = self.caches.usable_in_l1d(core, line, AccessMode::Write)?;
        let array = self.caches.l1d(core);
        let from = at.max(array.ready(slot));
        let tag = array.tag(slot);
        let is_silent = || self.design.is_own(tag, store.tx) && self.agenda.due() > from;
        if (tag.is_some() || pmem && self.design.is_asked_about_all_stores()) && !is_silent() {
            return None;
        }
        self.clear_sibling_reservation(core, line);
        self.caches.count_l1d(core);
        let array = self.caches.l1d_mut(core);
        array.touch(slot);
        write_word(array.data_mut(slot), store.addr.offset(), store.len, store.data);
        array.set_dirty(slot, true);
        if pmem {
            self.agenda.forget_suspension(core);
            self.note_store(core, store, from);
            if self.domain.stores_are_durable() {
                self.event(EventKind::CacheStore, from, store.addr, Some(core));
                self.note_durable_store(core, store, from);
            }
        } else if self.observers.any_copies() {
            self.note_store(core, store, from);
        }
        Some(from)
    }

    fn store_with(&mut self, core: CoreId, store: &PendingStore, at: Cycle, mode: WaitMode) -> Outcome {
        self.advance(at);
        let in_hardware_tx = self.transactions.hardware_on(core).is_some();
        if (store.tx.is_some() || in_hardware_tx)
            && let Some((cycle, code)) = self.take_abort(core)
        {
            // Another core, or an eviction since the last store or load, aborted the transaction.
            return Outcome::Aborted(cycle, code);
        }
        let line = store.addr.line();
        self.begin_waits(core);
        self.caches.pin(line);
        let outcome = if self.is_persistent_write(store) {
            self.write_persistently(core, store, at)
        } else if is_pmem(line) || in_hardware_tx {
            self.store_through_design(core, store, at, mode)
        } else {
            match self.line_to_write(core, line, store.tx, at) {
                Ok((slot, from)) => {
                    if self.observers.any_copies() {
                        self.note_store(core, store, from);
                    }
                    self.write_l1d(core, slot, store.addr, store.len, store.data);
                    Outcome::Done(from)
                }
                Err(lost) => Outcome::Done(lost.at()),
            }
        };
        self.caches.unpin();
        match self.take_abort(core) {
            Some((cycle, code)) => Outcome::Aborted(cycle, code),
            None => outcome,
        }
    }

    /// An atomic memory operation, done in one step of the machine. With `writes` the line is owned from the start.
    pub fn atomic(
        &mut self,
        core: CoreId,
        place: &PendingStore,
        writes: bool,
        at: Cycle,
        update: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> (u64, Outcome) {
        let mut at = at;
        let pmem = is_pmem(place.addr.line());
        if pmem && self.design.has(Hooks::ATOMIC) {
            match self.through(core, at, WaitMode::MemoryOnly, |s, cx, out| s.design.atomic(cx, place.addr, out)) {
                Outcome::Done(cycle) => at = cycle,
                other => return (0, other),
            }
        }
        if writes {
            at = self.prefetch_own(core, place.addr.line(), place.tx, at);
        }
        let (old, done) = self.load(core, place.addr, place.len, place.tx, at);
        if let Some((cycle, code)) = self.take_abort(core) {
            return (old, Outcome::Aborted(cycle, code));
        }
        let outcome = match update(old) {
            Some(new) => {
                let store = PendingStore { data: new, ..*place };
                match self.store_with(core, &store, done, WaitMode::MemoryOnly) {
                    Outcome::Done(stored) => {
                        self.note_access(place.addr.line(), stored.max(done));
                        Outcome::Done(stored.max(done))
                    }
                    other => other,
                }
            }
            None => Outcome::Done(done),
        };
        (old, outcome)
    }
}
