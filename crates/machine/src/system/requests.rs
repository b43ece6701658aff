//! Loads, stores and atomic operations of a core.

use super::System;
use super::coherence::Want;
use super::gates::{Passed, Patience};
use super::hierarchy::Found;
use durasim_cache::Slot;
use durasim_core::{Outcome, PendingStore};
use durasim_design::{Gate, Hooks, LevelId, LineTag, Wait};
use durasim_types::{CoreId, Cycle, EventKind, LineAddr, PhysAddr, TxId, Write};

/// Where to find `len` bytes from `offset` on in the eight bytes of a line that hold them: first byte of the eight, bits
/// below the bytes, and a mask of the bytes. A copy of a length that is not known in advance would be a call.
#[inline(always)]
fn place_in_word(offset: usize, len: u8) -> (usize, u32, u64) {
    let first = offset.min(56);
    (first, 8 * (offset - first) as u32, u64::MAX >> (64 - 8 * u32::from(len)))
}

#[inline(always)]
fn read_word(line: &[u8; 64], offset: usize, len: u8) -> u64 {
    let (first, shift, mask) = place_in_word(offset, len);
    let word: [u8; 8] = line[first..first + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(word) >> shift & mask
}

#[inline(always)]
pub(super) fn write_word(line: &mut [u8; 64], offset: usize, len: u8, data: u64) {
    let (first, shift, mask) = place_in_word(offset, len);
    let place: &mut [u8; 8] = (&mut line[first..first + 8]).try_into().expect("eight bytes");
    let word = u64::from_le_bytes(*place) & !(mask << shift) | (data & mask) << shift;
    *place = word.to_le_bytes();
}

impl System {
    /// Loads up to eight bytes that do not cross a line.
    #[inline]
    pub fn load(&mut self, core: CoreId, addr: PhysAddr, len: u8, tx: Option<TxId>, at: Cycle) -> (u64, Cycle) {
        let array = &mut self.l1d[core.0 as usize];
        if !self.moved_tx
            && let Some(slot) = array.find(addr.line())
        {
            array.stats.accesses += 1;
            array.touch(slot);
            let done = (at + array.geometry().latency_cycles).max(array.ready(slot));
            let tag = array.tag(slot);
            let word = read_word(array.data(slot), addr.offset(), len);
            return match tag {
                LineTag::NONE => (word, done),
                tag if self.is_own(tag, tx) => (word, done + self.tagged_access_cycles[LevelId::L1d as usize]),
                _ => self.load_from_tagged(core, addr, len, tx, slot, done),
            };
        }
        self.load_slowly(core, addr, len, tx, at)
    }

    /// Whether the design need not hear of an access of `tx` to a line with this tag.
    #[inline(always)]
    fn is_own(&self, tag: LineTag, tx: Option<TxId>) -> bool {
        self.own_lines_are_silent && tx.is_some_and(|tx| tag.0 == tx.0)
    }

    /// The same from a tagged line that is there.
    #[inline(never)]
    fn load_from_tagged(
        &mut self,
        core: CoreId,
        addr: PhysAddr,
        len: u8,
        tx: Option<TxId>,
        slot: Slot,
        at: Cycle,
    ) -> (u64, Cycle) {
        let tag = self.live(self.l1d[core.0 as usize].tag(slot));
        if !tag.is_some() {
            // What has no meaning any more need not be looked at again.
            self.l1d[core.0 as usize].set_tag(slot, LineTag::NONE);
        }
        let done = self.tagged_access(core, LevelId::L1d, addr.line(), tag, at);
        self.load_from(core, addr, len, tx, slot, done)
    }

    /// The bytes in a slot, unless the design wants to hear of it.
    #[inline]
    fn load_from(
        &mut self,
        core: CoreId,
        addr: PhysAddr,
        len: u8,
        tx: Option<TxId>,
        slot: Slot,
        done: Cycle,
    ) -> (u64, Cycle) {
        let array = &self.l1d[core.0 as usize];
        if array.tag(slot).is_some() && self.hooks.has(Hooks::LOAD) {
            return self.load_tagged(core, addr, len, tx, done);
        }
        (read_word(array.data(slot), addr.offset(), len), done)
    }

    #[inline(never)]
    fn load_slowly(&mut self, core: CoreId, addr: PhysAddr, len: u8, tx: Option<TxId>, at: Cycle) -> (u64, Cycle) {
        match self.line_in_l1d(core, addr.line(), tx, Want::Read, at) {
            Ok((slot, done)) => self.load_from(core, addr, len, tx, slot, done),
            // The core takes notice of the abort before anything comes of this value.
            Err(cycle) => (0, cycle),
        }
    }

    /// A load from a tagged line, which the design may hold up, change the tag of, or abort.
    fn load_tagged(&mut self, core: CoreId, addr: PhysAddr, len: u8, tx: Option<TxId>, at: Cycle) -> (u64, Cycle) {
        let line = addr.line();
        let index = core.0 as usize;
        let done = self.through_or_note_abort(core, at, |s, cx, out| {
            let Some(slot) = s.l1d[index].find(line) else { return Gate::Done };
            let mut tag = s.live(s.l1d[index].tag(slot));
            let gate = s.design.load(cx, addr, &mut tag, out);
            s.l1d[index].set_tag(slot, tag);
            gate
        });
        match self.l1d[index].find(line) {
            Some(slot) => (read_word(self.l1d[index].data(slot), addr.offset(), len), done),
            // It left while the design held the load up.
            None if !self.is_aborted(core) && !self.halted => self.load(core, addr, len, tx, done),
            None => (0, done),
        }
    }

    /// Asks for a line that a store will write; the cycle in which it is there.
    #[inline]
    pub fn prefetch_own(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, at: Cycle) -> Cycle {
        let array = &self.l1d[core.0 as usize];
        if let Some(slot) = array.find(line)
            && self.may_write(core, slot)
        {
            return array.ready(slot).max(at);
        }
        match self.line_in_l1d(core, line, tx, Want::Own, at) {
            Ok((_, done)) => done,
            Err(cycle) => cycle,
        }
    }

    /// A store leaves the store buffer.
    #[inline]
    pub fn store(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> Outcome {
        match self.store_simply(core, store, at) {
            Some(from) => Outcome::Done(from),
            None => self.store_with(core, store, at, Patience::Core),
        }
    }

    /// A store of which the design need not hear: nothing is due before it, and its line is there, may be written, and
    /// has no tag or that of the store's own transaction. The cycle in which it is made.
    #[inline(always)]
    fn store_simply(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> Option<Cycle> {
        let line = store.addr.line();
        let pmem = self.is_pmem(line);
        if self.due <= at || self.abort_notices > 0 || self.moved_tx || pmem && self.persist_buffers.exist() {
            return None;
        }
        let alone = self.alone();
        let array = &self.l1d[core.0 as usize];
        let slot = array.find(line)?;
        if !alone && !array.is_exclusive(slot) {
            return None;
        }
        let from = at.max(array.ready(slot));
        let tag = array.tag(slot);
        if (tag.is_some() || pmem && self.hooks.has(Hooks::STORE)) && !(self.is_own(tag, store.tx) && self.due > from) {
            return None;
        }
        let array = &mut self.l1d[core.0 as usize];
        array.stats.accesses += 1;
        array.touch(slot);
        write_word(array.data_mut(slot), store.addr.offset(), store.len, store.data);
        array.set_dirty(slot, true);
        if pmem {
            self.forget_suspension(core);
            self.note_store(core, store, from);
            if self.domain.stores_are_durable() {
                self.event(EventKind::CacheStore, from, store.addr, Some(core));
            }
        }
        Some(from)
    }

    fn store_with(&mut self, core: CoreId, store: &PendingStore, at: Cycle, patience: Patience) -> Outcome {
        self.advance(at);
        if store.tx.is_some()
            && let Some((cycle, code)) = self.take_abort(core)
        {
            // Another core, or an eviction since the last store or load, aborted the transaction.
            return Outcome::Aborted(cycle, code);
        }
        let line = store.addr.line();
        self.pinned.push(line);
        let outcome = if self.is_pmem(line) {
            self.store_pmem(core, store, at, patience)
        } else {
            match self.line_to_write(core, line, store.tx, at) {
                Ok((slot, from)) => {
                    self.write_l1d(core, slot, store.addr, store.len, store.data);
                    Outcome::Done(from)
                }
                Err(cycle) => Outcome::Done(cycle),
            }
        };
        self.pinned.pop();
        match self.take_abort(core) {
            Some((cycle, code)) => Outcome::Aborted(cycle, code),
            None => outcome,
        }
    }

    /// The line of a store, and the cycle in which it is there and may be written. Lookups are pipelined: a store waits for
    /// its line and for the right to write it, and the next one follows in the next cycle.
    #[inline]
    fn line_to_write(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, at: Cycle) -> Found {
        let index = core.0 as usize;
        let alone = self.alone();
        let array = &mut self.l1d[index];
        if !self.moved_tx
            && let Some(slot) = array.find(line)
            && (alone || array.is_exclusive(slot))
        {
            array.stats.accesses += 1;
            array.touch(slot);
            let tag = array.tag(slot);
            if tag.is_some() {
                let done = (at + array.geometry().latency_cycles).max(array.ready(slot));
                let tag = self.live(tag);
                self.tagged_access(core, LevelId::L1d, line, tag, done);
            }
            return Ok((slot, at.max(self.l1d[index].ready(slot))));
        }
        let shared = !alone && self.l1d[index].find(line).is_some_and(|slot| !self.may_write(core, slot));
        let (slot, done) = self.line_in_l1d(core, line, tx, Want::Own, at)?;
        let from = at.max(self.l1d[index].ready(slot));
        Ok((slot, if shared { from.max(done) } else { from }))
    }

    #[inline]
    fn write_l1d(&mut self, core: CoreId, slot: Slot, addr: PhysAddr, len: u8, data: u64) {
        let array = &mut self.l1d[core.0 as usize];
        write_word(array.data_mut(slot), addr.offset(), len, data);
        array.set_dirty(slot, true);
    }

    /// A store to persistent memory. An abort of its transaction on the way is noticed by the caller.
    fn store_pmem(&mut self, core: CoreId, store: &PendingStore, at: Cycle, patience: Patience) -> Outcome {
        let line = store.addr.line();
        let mut at = at;
        self.forget_suspension(core);
        loop {
            let slot = match self.line_to_write(core, line, store.tx, at) {
                Ok((slot, from)) => {
                    at = from;
                    slot
                }
                Err(cycle) => return Outcome::Done(cycle),
            };
            let mut new_tag = None;
            if self.hooks.has(Hooks::STORE) {
                // What is due happens before the design takes the store, not between that and the writes it asks for.
                self.advance(at);
                // Making room for the line may have aborted the transaction of the store.
                if self.is_aborted(core) {
                    return Outcome::Done(at);
                }
                let array = &self.l1d[core.0 as usize];
                let dirty = array.is_dirty(slot);
                let mut tag = self.live(array.tag(slot));
                let had_tag = tag.is_some();
                let mut out = self.actions();
                let cx = self.cx(core, at);
                let request = durasim_design::Store {
                    addr: store.addr,
                    len: store.len,
                    data: store.data,
                    tx: store.tx,
                    before: self.l1d[core.0 as usize].data(slot),
                    dirty,
                };
                let gate = self.design.store(&cx, &request, &mut tag, &mut out);
                let made = matches!(gate, Gate::Done | Gate::After(_));
                if made {
                    // The design has taken it, so its place among the stores to these bytes is decided: the journal
                    // hears of it before anything of it becomes durable.
                    self.note_store(core, store, at);
                }
                // Behind a hook that has run the store follows at once.
                let patience = if made { Patience::Alone } else { patience };
                match self.pass(core, gate, out, at, patience) {
                    Passed::Now(cycle) => at = cycle,
                    Passed::Suspended => return Outcome::Pending,
                    Passed::Again(cycle) => {
                        at = cycle;
                        if self.halted {
                            return Outcome::Done(at);
                        }
                        continue;
                    }
                    Passed::Aborted => return Outcome::Done(at),
                }
                if tag.is_some() {
                    self.note_tagged(store.tx, line);
                    if !had_tag {
                        at = self.obey_l1d_tag_limit(core, line, tag, at);
                    }
                }
                new_tag = Some(tag);
            }
            if self.persist_buffers.exist()
                && let Some(token) = self.persist_buffer_full(core, line, at)
            {
                if patience == Patience::Core {
                    self.suspend(core, Wait::Acked(token), at, false);
                    return Outcome::Pending;
                }
                at = self.resolve(Wait::Acked(token), at);
                if self.halted {
                    return Outcome::Done(at);
                }
                continue;
            }
            // Carrying out actions may have moved other lines, never this one, which is pinned; but they may have
            // aborted the transaction of the store.
            if self.is_aborted(core) {
                return Outcome::Done(at);
            }
            let array = &self.l1d[core.0 as usize];
            let slot = if array.holds(slot, line) { Some(slot) } else { array.find(line) };
            let slot = slot.expect("a pinned line stays");
            match new_tag {
                Some(tag) => self.l1d[core.0 as usize].set_tag(slot, tag),
                None => self.note_store(core, store, at),
            }
            self.write_l1d(core, slot, store.addr, store.len, store.data);
            if self.persist_buffers.exist() {
                let data = *self.l1d[core.0 as usize].data(slot);
                self.enter_persist_buffer(core, line, data);
            }
            if self.domain.stores_are_durable() {
                self.event(EventKind::CacheStore, at, store.addr, Some(core));
            }
            if self.persist_buffers.exist() {
                self.relieve_persist_buffer(core, at);
            }
            return Outcome::Done(at);
        }
    }

    /// Tells the journal of a store that is being made.
    fn note_store(&mut self, core: CoreId, store: &PendingStore, at: Cycle) {
        if let Some(journal) = &mut self.journal {
            journal.moment(core, at);
            journal.store(store.tx, Write { addr: store.addr, len: store.len, data: store.data });
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
        let pmem = self.is_pmem(place.addr.line());
        if pmem && self.hooks.has(Hooks::ATOMIC) {
            match self.through(core, at, Patience::Alone, |s, cx, out| s.design.atomic(cx, place.addr, out)) {
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
                match self.store_with(core, &store, done, Patience::Alone) {
                    Outcome::Done(stored) => Outcome::Done(stored.max(done)),
                    other => other,
                }
            }
            None => Outcome::Done(done),
        };
        (old, outcome)
    }

    /// The newest data of a line, wherever it is.
    pub(super) fn peek_line(&self, line: LineAddr) -> [u8; 64] {
        for core in self.holders(line) {
            if let Some((level, slot)) = self.newest_private(core, line) {
                return *self.array(level, core).data(slot);
            }
        }
        match self.llc.find(line) {
            Some(slot) => *self.llc.data(slot),
            None => self.peek_memory(line),
        }
    }

    /// Two bytes of code.
    pub fn code(&self, addr: PhysAddr) -> u16 {
        read_word(&self.peek_line(addr.line()), addr.offset(), 2) as u16
    }

    /// Reads bytes as the kernel does in a system call: the newest copy, in no time. A line of persistent memory that no
    /// cache has may lie where only the design knows: it is loaded.
    pub fn read_newest(&mut self, core: CoreId, addr: PhysAddr, bytes: &mut [u8], tx: Option<TxId>, at: Cycle) {
        let mut done = 0;
        while done < bytes.len() {
            let place = addr.plus(done as u64);
            let (line, offset) = (place.line(), place.offset());
            let n = (64 - offset).min(bytes.len() - done);
            let known_to_design = self.is_pmem(line) && self.hooks.has(Hooks::FILL);
            let data = if known_to_design {
                match self.line_in_l1d(core, line, tx, Want::Read, at) {
                    Ok((slot, _)) => *self.l1d[core.0 as usize].data(slot),
                    // The core takes notice of the abort and will make the call again.
                    Err(_) => return,
                }
            } else {
                self.peek_line(line)
            };
            bytes[done..done + n].copy_from_slice(&data[offset..offset + n]);
            done += n;
        }
    }

    /// Writes bytes as the kernel does in a system call. To persistent memory they are stores like any other and meet
    /// the design; volatile lines change in place, in no time.
    pub fn write_newest(&mut self, core: CoreId, addr: PhysAddr, bytes: &[u8], tx: Option<TxId>, at: Cycle) {
        let mut done = 0;
        while done < bytes.len() {
            let place = addr.plus(done as u64);
            if self.is_pmem(place.line()) {
                let n = (8 - place.0 as usize % 8).min(bytes.len() - done);
                let mut word = [0; 8];
                word[..n].copy_from_slice(&bytes[done..done + n]);
                let store = PendingStore { addr: place, len: n as u8, data: u64::from_le_bytes(word), tx };
                if self.kernel_store(core, &store, at) {
                    return;
                }
                done += n;
            } else {
                let n = (64 - place.offset()).min(bytes.len() - done);
                self.write_volatile(place, &bytes[done..done + n]);
                done += n;
            }
        }
    }

    /// A store by the kernel; whether the transaction of the core was aborted on the way, of which the core takes notice
    /// itself.
    fn kernel_store(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> bool {
        self.end_reservations(None, store.addr.line());
        if self.is_aborted(core) {
            return true;
        }
        let mut at = at;
        if let Some(tx) = self.begun(store.tx)
            && self.has_log_operations()
        {
            at = self.log_for_kernel(core, store.addr, tx, at);
            if self.is_aborted(core) {
                return true;
            }
        }
        self.advance(at);
        self.pinned.push(store.addr.line());
        self.store_pmem(core, store, at, Patience::Alone);
        self.pinned.pop();
        self.is_aborted(core)
    }

    /// All copies of a line of DRAM change; one of them, or the memory below clean ones, keeps the change.
    fn write_volatile(&mut self, addr: PhysAddr, bytes: &[u8]) {
        let line = addr.line();
        self.end_reservations(None, line);
        let range = addr.offset()..addr.offset() + bytes.len();
        let mut kept = false;
        for core in self.holders(line).collect::<Vec<_>>() {
            let owns = self.owns(core, line);
            for level in [LevelId::L1d, LevelId::L2] {
                let array = self.array_mut(level, core);
                if let Some(slot) = array.find(line) {
                    array.data_mut(slot)[range.clone()].copy_from_slice(bytes);
                    if owns && !kept {
                        array.set_dirty(slot, true);
                        kept = true;
                    }
                }
            }
        }
        if let Some(slot) = self.llc.find(line) {
            self.llc.data_mut(slot)[range].copy_from_slice(bytes);
            if !kept {
                self.llc.set_dirty(slot, true);
            }
        } else if !kept {
            self.dram.write_newest(addr, bytes);
        }
    }
}
