//! Steps of a store: its line arrives, the design is asked, the L1D changes.

use super::bring_up::Found;
use super::gates::{GateOutcome, WaitMode};
use super::loads::place_in_word;
use super::lost::Lost;
use crate::parts::caches::AccessMode;
use crate::parts::work_list::Task;
use crate::system::System;
use durasim_cache::Slot;
use durasim_contract::{Gate, LevelId, LineTag, Store, Token, Wait};
use durasim_core::{Outcome, PendingStore};
use durasim_types::{CoreId, Cycle, EventKind, LineAddr, PhysAddr, StallCause, TxId, Write};

#[inline(always)]
pub(super) fn write_word(line: &mut [u8; 64], offset: usize, len: u8, data: u64) {
    let (first, shift, mask) = place_in_word(offset, len);
    let place: &mut [u8; 8] = (&mut line[first..first + 8]).try_into().expect("eight bytes");
    let word = u64::from_le_bytes(*place) & !(mask << shift) | (data & mask) << shift;
    *place = word.to_le_bytes();
}

/// Outcome of the answer of the design to a store.
enum StoreVerdict {
    /// The design has taken it at this cycle, and gives its line a tag.
    Accepted(Cycle, LineTag),
    /// It is made again at this cycle.
    Retry(Cycle),
    /// The request is suspended.
    Suspended,
}

impl System {
    /// The line of a store, and the cycle in which it is there and may be written. Lookups are pipelined: a store waits for
    /// its line and for the right to write it, and the next one follows in the next cycle.
    #[inline]
    pub(super) fn line_to_write(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, at: Cycle) -> Found {
        if !self.transactions.diverts()
            && let Some(slot) = self.caches.usable_in_l1d(core, line, AccessMode::Write)
        {
            let array = self.caches.l1d_mut(core);
            array.touch(slot);
            let tag = array.tag(slot);
            self.caches.count_l1d(core);
            if tag.is_some() {
                let array = self.caches.l1d(core);
                let done = (at + array.geometry().latency_cycles).max(array.ready(slot));
                let tag = self.design.live(tag);
                self.tagged_access(core, LevelId::L1d, line, tag, done);
            }
            return Ok((slot, at.max(self.caches.l1d(core).ready(slot))));
        }
        let shared = self.caches.is_read_only_in_l1d(core, line);
        let (slot, done) = self.line_in_l1d(core, line, tx, AccessMode::Write, at)?;
        let from = at.max(self.caches.l1d(core).ready(slot));
        let made = if shared { from.max(done) } else { from };
        self.note_access(line, made);
        Ok((slot, made))
    }

    /// A store ends the reservation that another thread of the core has on its line: the threads share the copy, so no
    /// coherence request would end it.
    #[inline]
    pub(super) fn clear_sibling_reservation(&mut self, core: CoreId, line: LineAddr) {
        if self.caches.are_shared_by_threads() {
            self.caches.end_reservations(Some(core), line);
        }
    }

    #[inline]
    pub(super) fn write_l1d(&mut self, core: CoreId, slot: Slot, addr: PhysAddr, len: u8, data: u64) {
        self.clear_sibling_reservation(core, addr.line());
        let array = self.caches.l1d_mut(core);
        write_word(array.data_mut(slot), addr.offset(), len, data);
        array.set_dirty(slot, true);
    }

    /// A store to persistent memory, or in a hardware transaction. An abort of its transaction on the way is noticed by the caller.
    pub(super) fn store_through_design(
        &mut self,
        core: CoreId,
        store: &PendingStore,
        at: Cycle,
        mode: WaitMode,
    ) -> Outcome {
        self.try_store(core, store, at, mode).unwrap_or_else(|lost| Outcome::Done(lost.at()))
    }

    fn try_store(&mut self, core: CoreId, store: &PendingStore, at: Cycle, mode: WaitMode) -> Result<Outcome, Lost> {
        let line = store.addr.line();
        let mut at = at;
        self.agenda.forget_suspension(core);
        loop {
            let (slot, from) = self.line_to_write(core, line, store.tx, at)?;
            at = from;
            let mut new_tag = None;
            if self.design.is_asked_about_all_stores() || self.transactions.hardware_on(core).is_some() {
                match self.ask_store(core, store, slot, at, mode)? {
                    StoreVerdict::Accepted(cycle, tag) => (at, new_tag) = (cycle, Some(tag)),
                    StoreVerdict::Retry(cycle) => {
                        at = cycle;
                        continue;
                    }
                    StoreVerdict::Suspended => return Ok(Outcome::Pending),
                }
            }
            if self.persist_buffers.exist()
                && let Some(token) = self.persist_buffer_full(core, line, at)
            {
                self.note_gate(core, Wait::Acked(token), Some(StallCause::PersistBuffer), at);
                if mode == WaitMode::Suspend {
                    self.suspend(core, Wait::Acked(token), at, false);
                    return Ok(Outcome::Pending);
                }
                at = self.resolve(Wait::Acked(token), at);
                self.unless_halted(at)?;
                continue;
            }
            // Carrying out actions may have moved other lines, never this one, which is pinned; but they may have
            // aborted the transaction of the store.
            self.unless_aborted(core, at)?;
            self.write_store_to_l1d(core, store, slot, new_tag, at);
            return Ok(Outcome::Done(at));
        }
    }

    /// Asks the design about a store, and follows its answer.
    fn ask_store(
        &mut self,
        core: CoreId,
        store: &PendingStore,
        slot: Slot,
        at: Cycle,
        mode: WaitMode,
    ) -> Result<StoreVerdict, Lost> {
        // Process pending events before the hook, not between the hook and the writes it requests.
        self.advance(at);
        // Making room for the line may have aborted the transaction of the store.
        self.unless_aborted(core, at)?;
        let cx = self.cx(core, at);
        let array = self.caches.l1d(core);
        let mut tag = self.design.live(array.tag(slot));
        let had_tag = tag.is_some();
        let mut out = self.design.actions();
        let PendingStore { addr, len, data, .. } = *store;
        let tx = self.tx_of_design(core, store.tx);
        let array = self.caches.l1d(core);
        let request = Store { addr, len, data, tx, before: array.data(slot), dirty: array.is_dirty(slot) };
        let gate = self.design.store(&cx, &request, &mut tag, &mut out);
        let made = matches!(gate, Gate::Done | Gate::After(_));
        if made {
            // The design has taken it, so its place among the stores to these bytes is decided: the journal
            // is notified of it before anything of it becomes durable.
            self.note_store(core, store, at);
        }
        // The store follows the hook at once, if that has taken it.
        let mode = if made { WaitMode::MemoryOnly } else { mode };
        let mut at = match self.pass(core, gate, out, at, mode)? {
            GateOutcome::Proceed(cycle) => cycle,
            GateOutcome::Suspended => return Ok(StoreVerdict::Suspended),
            GateOutcome::Retry(cycle) => return Ok(StoreVerdict::Retry(cycle)),
        };
        if tag.is_some() {
            self.transactions.note_tagged(tx, store.addr.line());
            if !had_tag {
                at = self.enforce_l1d_tag_limit(core, store.addr.line(), tag, at);
            }
        }
        Ok(StoreVerdict::Accepted(at, tag))
    }

    /// Writes a store to the L1D. If the design was asked about it, it has given the line a tag.
    fn write_store_to_l1d(&mut self, core: CoreId, store: &PendingStore, slot: Slot, tag: Option<LineTag>, at: Cycle) {
        let line = store.addr.line();
        let array = self.caches.l1d(core);
        let slot = if array.holds(slot, line) { Some(slot) } else { array.find(line) };
        let slot = slot.expect("a pinned line stays");
        match tag {
            Some(tag) => self.caches.l1d_mut(core).set_tag(slot, tag),
            None => self.note_store(core, store, at),
        }
        self.write_l1d(core, slot, store.addr, store.len, store.data);
        let persist_buffers = self.persist_buffers.exist();
        if persist_buffers {
            let data = *self.caches.l1d(core).data(slot);
            self.persist_buffers.enter(core, line, data);
        }
        if self.domain.stores_are_durable() && self.transactions.hardware_on(core).is_none() {
            self.event(EventKind::CacheStore, at, store.addr, Some(core));
            self.note_durable_store(core, store, at);
        }
        if persist_buffers && self.persist_buffers.has_to_drain(core) {
            self.complete(Task::DrainOldest { core, at }, at);
        }
    }

    /// Wait of a store to `line` before it can enter the persist buffer of `core`. `None`: it can enter.
    fn persist_buffer_full(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Option<Token> {
        if !self.persist_buffers.is_full_for(core, line) {
            return None;
        }
        if self.persist_buffers.none_drains(core) {
            self.complete(Task::DrainOldest { core, at }, at);
            if !self.persist_buffers.is_full_for(core, line) {
                return None;
            }
        }
        self.persist_buffers.wait_for_place(core)
    }

    /// Reports a store that is being made to the journal.
    #[inline]
    pub(super) fn note_store(&mut self, core: CoreId, store: &PendingStore, at: Cycle) {
        if self.observers.are_kept() {
            let write = Write { addr: store.addr, len: store.len, data: store.data };
            self.observers.stored(core, at, store.tx, write);
        }
    }

    /// Reports to the journal that this store, the last one made, survives. It comes after the event of the store: what was left
    /// by a power failure before that event need not have it.
    #[inline]
    pub(super) fn note_durable_store(&mut self, core: CoreId, store: &PendingStore, at: Cycle) {
        if self.observers.are_kept() {
            let write = Write { addr: store.addr, len: store.len, data: store.data };
            self.observers.store_is_durable(core, at, store.tx, write);
        }
    }

    /// A store by the hardware itself, through the caches of `core`, outside of any transaction; the cycle in which it is
    /// made.
    pub(super) fn put_cached(&mut self, core: CoreId, addr: PhysAddr, bytes: &[u8], at: Cycle) -> Cycle {
        let line = addr.line();
        self.caches.pin(line);
        let found = self.line_in_l1d(core, line, None, AccessMode::Write, at);
        self.caches.unpin();
        if self.is_aborted(core) {
            // Making room aborted the transaction for which the hardware stores.
            return at;
        }
        let mut done = at;
        if found.is_ok() {
            let array = self.caches.l1d_mut(core);
            let slot = array.find(line).expect("a pinned line stays");
            array.data_mut(slot)[addr.offset()..addr.offset() + bytes.len()].copy_from_slice(bytes);
            array.set_dirty(slot, true);
            done = done.max(array.ready(slot));
            self.stalls.gate_for_line(core, line, at, done);
        }
        if self.domain.caches_are_durable() {
            self.event(EventKind::CacheStore, done, addr, Some(core));
        }
        done
    }
}
