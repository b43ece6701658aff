//! Loads of a core.

use super::lost::Lost;
use crate::parts::caches::AccessMode;
use crate::system::System;
use durasim_cache::Slot;
use durasim_contract::{Gate, Hooks, LevelId, LineTag, Load};
use durasim_types::{CoreId, Cycle, Line, LineAddr, PhysAddr, StallSegment, TxId};

/// Place of `len` bytes from `offset` on in the eight bytes of a line that hold them: first byte of the eight, bits
/// below the bytes, and a mask of the bytes. A copy of a length that is not known in advance would be a call.
#[inline(always)]
pub(super) fn place_in_word(offset: usize, len: u8) -> (usize, u32, u64) {
    let first = offset.min(56);
    (first, 8 * (offset - first) as u32, u64::MAX >> (64 - 8 * u32::from(len)))
}

#[inline(always)]
pub(super) fn read_word(line: &[u8; 64], offset: usize, len: u8) -> u64 {
    let (first, shift, mask) = place_in_word(offset, len);
    let word: [u8; 8] = line[first..first + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(word) >> shift & mask
}

impl System {
    /// Loads up to eight bytes that do not cross a line.
    #[inline]
    pub fn load(&mut self, core: CoreId, addr: PhysAddr, len: u8, tx: Option<TxId>, at: Cycle) -> (u64, Cycle) {
        let array = self.caches.l1d_mut(core);
        if !self.transactions.diverts()
            && let Some(slot) = array.find(addr.line())
        {
            array.touch(slot);
            let done = (at + array.geometry().latency_cycles).max(array.ready(slot));
            let tag = array.tag(slot);
            let word = read_word(array.data(slot), addr.offset(), len);
            self.caches.count_l1d(core);
            return match tag {
                LineTag::NONE => (word, done),
                tag if self.design.is_own(tag, tx) => (word, done + self.design.tagged_access_cycles(LevelId::L1d)),
                _ => self.load_from_tagged(core, addr, len, tx, slot, done),
            };
        }
        self.load_slow_path(core, addr, len, tx, at)
    }

    /// Loads from a tagged line that is in the L1D.
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
        let tag = self.design.live(self.caches.l1d(core).tag(slot));
        if !tag.is_some() {
            // A tag that is no longer live need not be looked at again.
            self.caches.l1d_mut(core).set_tag(slot, LineTag::NONE);
        }
        let done = self.tagged_access(core, LevelId::L1d, addr.line(), tag, at);
        self.load_from(core, addr, len, tx, slot, done)
    }

    /// The bytes in a slot, unless the design wants to be notified of it.
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
        let array = self.caches.l1d(core);
        if self.design.has(Hooks::LOAD) && (array.tag(slot).is_some() || self.transactions.hardware_on(core).is_some())
        {
            return self.load_through_design(core, addr, len, tx, done);
        }
        (read_word(array.data(slot), addr.offset(), len), done)
    }

    #[inline(never)]
    fn load_slow_path(&mut self, core: CoreId, addr: PhysAddr, len: u8, tx: Option<TxId>, at: Cycle) -> (u64, Cycle) {
        match self.line_in_l1d(core, addr.line(), tx, AccessMode::Read, at) {
            Ok((slot, done)) => self.load_from(core, addr, len, tx, slot, done),
            // The core processes the abort before anything comes of this value.
            Err(lost) => (0, lost.at()),
        }
    }

    /// A load from a tagged line, or in a hardware transaction, which the design may hold up, change the tag of, or abort.
    fn load_through_design(
        &mut self,
        core: CoreId,
        addr: PhysAddr,
        len: u8,
        tx: Option<TxId>,
        at: Cycle,
    ) -> (u64, Cycle) {
        let line = addr.line();
        // Making room for the line may have aborted the hardware transaction.
        if self.transactions.hardware_on(core).is_some() && self.is_aborted(core) {
            return (0, at);
        }
        self.stalls.begin(core);
        let done = self.through_or_note_abort(core, at, |s, cx, out| {
            let Some(slot) = s.caches.l1d(core).find(line) else { return Gate::Done };
            let mut tag = s.design.live(s.caches.l1d(core).tag(slot));
            let load = Load { addr, tx: s.tx_of_design(core, tx) };
            let gate = s.design.load(cx, &load, &mut tag, out);
            s.caches.l1d_mut(core).set_tag(slot, tag);
            gate
        });
        match self.caches.l1d(core).find(line) {
            Some(slot) => (read_word(self.caches.l1d(core).data(slot), addr.offset(), len), done),
            // It left while the design held the load up.
            None if !self.is_aborted(core) && !self.halted() => self.load(core, addr, len, tx, done),
            None => (0, done),
        }
    }

    /// Asks for a line that a store will write; the cycle in which it is there.
    #[inline]
    pub fn prefetch_own(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, at: Cycle) -> Cycle {
        if let Some(slot) = self.caches.usable_in_l1d(core, line, AccessMode::Write) {
            return self.caches.l1d(core).ready(slot).max(at);
        }
        self.line_in_l1d(core, line, tx, AccessMode::Write, at).map_or_else(Lost::at, |(_, done)| done)
    }

    /// Reports what the last request of a core waited for; see [`durasim_core::Port::explain_wait`].
    pub fn explain_wait(
        &mut self,
        core: CoreId,
        line: Option<LineAddr>,
        from: Cycle,
        until: Cycle,
        report: impl FnMut(StallSegment),
    ) {
        self.stalls.explain(core, line, from, until, report);
    }

    /// The newest data of a line, wherever it is.
    pub(super) fn peek_line(&self, line: LineAddr) -> Line {
        self.caches.newest_data(line).unwrap_or_else(|| self.memories.peek(line))
    }

    /// The newest eight bytes at an address; `None` if they cross a line.
    pub(crate) fn newest_word(&self, addr: PhysAddr) -> Option<[u8; 8]> {
        let at = addr.offset();
        self.peek_line(addr.line()).get(at..at + 8).map(|bytes| bytes.try_into().expect("eight bytes"))
    }
}
