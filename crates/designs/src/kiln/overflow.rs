//! The fall-back path: hardware copy-on-write where FIFOs are almost full, or where all ways of a set of the last level
//! are uncommitted. The old line is copied to the copy area, a record names its home, and only when both are durable the
//! new data is written to its home address [kiln-overflow].

use super::COPY;
use super::area::Area;
use super::planted;
use super::spec::{OverflowOf, Versions};
use super::state::{Purpose, State};
use super::transaction::{CopyStage, Fifo, OldLine, Phase};
use durasim_contract::{AbortCause, Action, Actions, CopyRequest, Evict, Origin, Token, Wait};
use durasim_types::{Cause, CoreId, EventKind, LINE_BYTES, LineAddr, TxId};
use std::collections::BTreeSet;

/// The copy area is full: this transaction is in the way.
pub(super) struct AreaFull(pub TxId);

impl State {
    /// Takes a slot of the copy area for the old version of a line.
    fn reserve_slot(&mut self, tx: TxId, line: LineAddr) -> Option<()> {
        let slot = self.contents.slots.take(self.area.lines)?;
        let slot = self.fault.swaps(planted::SLOT_SHARED, slot, 0);
        let open = self.contents.open.get_mut(&tx)?;
        open.copies.insert(line, OldLine { slot, stage: CopyStage::Reserved });
        Some(())
    }

    /// The old line goes to the copy area: home has the last committed version now.
    fn copy_old_line(&mut self, tx: TxId, line: LineAddr, out: &mut Actions) -> Option<Token> {
        let token = self.expect(Purpose::Copy(tx, line), 1, Vec::new());
        let old = self.contents.open.get_mut(&tx)?.copies.get_mut(&line)?;
        old.stage = CopyStage::Copying(token);
        let to = self.area.old_line(old.slot);
        // A committed version beside an uncommitted one is written to its home address: the copy is made of the bytes
        // there.
        if self.spec.versions == Versions::TwoInLlc && !self.fault.skips(planted::COPIES_HOME_WITHOUT_OLDER) {
            out.push(Action::WriteOlderHome(line));
        }
        out.push(Action::Copy(CopyRequest {
            by: Origin::Llc,
            from: line.base(),
            to,
            len: LINE_BYTES as u8,
            below_held: false,
            cause: Cause::Log,
            token: Some(token),
        }));
        if self.fault.skips(planted::COPY_NOT_AWAITED) {
            return self.record_old_line(tx, line, out);
        }
        Some(token)
    }

    /// The copy is durable: its record follows.
    pub(super) fn record_old_line(&mut self, tx: TxId, line: LineAddr, out: &mut Actions) -> Option<Token> {
        let old = self.contents.open.get(&tx)?.copies.get(&line)?;
        let CopyStage::Copying(_) = old.stage else { return None };
        let at = self.area.record(old.slot);
        let token = self.expect(Purpose::Record(tx, line), 1, Vec::new());
        self.contents.open.get_mut(&tx)?.copies.get_mut(&line)?.stage = CopyStage::Recording(token);
        out.append(Origin::Llc, at, &Area::record_of(line, self.number(tx)), Cause::Metadata, Some(token));
        Some(token)
    }

    /// The record is durable: from now on the old line is restored unless the transaction commits. A line that had to
    /// leave a FIFO is written to its home address.
    pub(super) fn old_line_recorded(&mut self, tx: TxId, line: LineAddr, out: &mut Actions) {
        let Some(old) = self.contents.open.get_mut(&tx).and_then(|open| open.copies.get_mut(&line)) else { return };
        old.stage = CopyStage::Safe;
        out.event(EventKind::DesignStep, self.area.record(old.slot));
        let leaves = self.contents.fifos.iter().flatten().any(|e| e.tx == tx && e.line == line && e.leaving);
        if leaves {
            self.leave_fifo(tx, line, out);
        }
    }

    /// A line whose old version is safe is written to its home address, and leaves its FIFO.
    fn leave_fifo(&mut self, tx: TxId, line: LineAddr, out: &mut Actions) {
        for fifo in &mut self.contents.fifos {
            fifo.retain(|entry| entry.tx != tx || entry.line != line);
        }
        let token = self.token_of_way_home(tx);
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.tracked.remove(&line);
            open.going_home = token;
        }
        out.push(Action::CleanTo { line, to: None, token });
    }

    /// The token under which uncommitted lines of a transaction go home, if its commit has to wait for them.
    fn token_of_way_home(&mut self, tx: TxId) -> Option<Token> {
        if !self.queues_are_lost {
            return None;
        }
        let known = self.contents.open.get(&tx).and_then(|open| open.going_home);
        Some(known.unwrap_or_else(|| {
            self.contents.tokens += 1;
            Token(self.contents.tokens)
        }))
    }

    /// Whether the FIFOs of a core are almost full, without entries that are leaving, or have those of all cores almost as many
    /// as the request queue takes [D:kiln-overflow]. FIFOs that are full give lines up in any case.
    fn is_almost_full(&self, core: usize) -> bool {
        let threshold = (self.overflow_capacity * self.spec.overflow_percent as usize).div_ceil(100);
        let staying = |fifos: &[Fifo]| fifos.iter().flatten().filter(|entry| !entry.leaving).count();
        let own = staying(&self.contents.fifos[core..=core]);
        let counted = match self.spec.overflow_of {
            OverflowOf::Fifos | OverflowOf::L1dFifo => own,
            OverflowOf::RequestQueue => staying(&self.contents.fifos),
        };
        counted >= threshold || own >= self.fifo_capacity
    }

    /// Makes room in FIFOs that are almost full, oldest entries first. Copies begin after all that is pushed: the first
    /// one begins those of its whole transaction, also of lines whose committed version would be in flight still.
    pub(super) fn relieve_fifo(&mut self, core: usize, out: &mut Actions) -> Result<(), AreaFull> {
        let mut copied = BTreeSet::new();
        let room = self.begin_to_leave(core, &mut copied, out);
        for tx in copied {
            out.push(Action::Resume { id: COPY | tx.0 });
        }
        room
    }

    /// Takes a slot of the copy area for each entry that is to leave, and brings committed versions of its line home; the
    /// transactions of such entries are added to `copied`.
    fn begin_to_leave(&mut self, core: usize, copied: &mut BTreeSet<TxId>, out: &mut Actions) -> Result<(), AreaFull> {
        let mut index = 0;
        while index < self.contents.fifos[core].len() && self.is_almost_full(core) {
            let entry = self.contents.fifos[core][index];
            let in_progress = self.contents.fifos[core].iter().filter(|entry| entry.leaving).count();
            if in_progress >= self.spec.copies_in_flight as usize {
                break;
            }
            let Some(open) = self.contents.open.get(&entry.tx).filter(|open| open.phase == Phase::Running) else {
                index += 1;
                continue;
            };
            // Without a copy of its old line new data must not leave a FIFO.
            let stage = open.copies.get(&entry.line).map(|old| old.stage);
            match stage.or(self.fault.swaps(planted::COPY_SKIPPED, None, Some(CopyStage::Safe))) {
                _ if entry.leaving => index += 1,
                Some(CopyStage::Safe) => self.leave_fifo(entry.tx, entry.line, out),
                Some(_) => index += 1,
                None => {
                    self.reserve_slot(entry.tx, entry.line).ok_or(AreaFull(entry.tx))?;
                    self.contents.fifos[core][index].leaving = true;
                    self.contents.counters.fifo_overflows += 1;
                    // A committed version that a cache holds is written to its home address before the line there is
                    // copied.
                    if !self.fault.skips(planted::COPIES_STALE_LINE) {
                        out.push(Action::PushToLlc { line: entry.line, token: None });
                    }
                    if self.fault.skips(planted::COPY_OVERTAKES_PUSH) {
                        out.push(Action::Resume { id: COPY | entry.tx.0 });
                    }
                    copied.insert(entry.tx);
                    index += 1;
                }
            }
        }
        Ok(())
    }

    /// Copies what has a place and nothing before it any more.
    pub(super) fn copy_reserved(&mut self, tx: TxId, out: &mut Actions) {
        let Some(open) = self.contents.open.get(&tx) else { return };
        let reserved = open.copies.iter().filter(|(_, old)| old.stage == CopyStage::Reserved).map(|(line, _)| *line);
        for line in reserved.collect::<Vec<_>>() {
            self.copy_old_line(tx, line, out);
        }
    }

    /// The event that the oldest entry that leaves the FIFOs of a core waits for.
    pub(super) fn fifo_relief(&self, core: usize) -> Option<Token> {
        let leaving = self.contents.fifos[core].iter().filter(|entry| entry.leaving);
        leaving.filter_map(|entry| self.contents.open.get(&entry.tx)?.copies.get(&entry.line)?.stage.token()).next()
    }

    /// All ways of a set of the last level are uncommitted, or they are no longer kept there.
    pub(super) fn evict_pending(&mut self, tx: TxId, line: LineAddr, out: &mut Actions) -> Evict {
        // Its old line has to be safe first.
        let open = self.contents.open.get(&tx).filter(|_| !self.fault.skips(planted::EVICTED_WITHOUT_COPY));
        let Some(open) = open else { return Evict::Proceed };
        let reserved = match open.copies.get(&line).map(|old| old.stage) {
            Some(CopyStage::Safe) => {
                // A line that has left its FIFO has been written home, newer than a version that was in flight meanwhile.
                let home = !self.upper_levels_survive && open.phase == Phase::Running && !open.tracked.contains(&line);
                return if home { Evict::Drop } else { Evict::Proceed };
            }
            Some(CopyStage::Copying(token) | CopyStage::Recording(token)) => {
                // This version is written to its home address by itself: the newest one must not go before it.
                for fifo in &mut self.contents.fifos {
                    fifo.iter_mut().filter(|e| e.tx == tx && e.line == line).for_each(|e| e.leaving = false);
                }
                return Evict::After(Wait::Acked(token));
            }
            Some(CopyStage::Reserved) => Some(()),
            None => {
                self.contents.counters.llc_overflows += 1;
                self.reserve_slot(tx, line)
            }
        };
        match reserved.and_then(|()| self.copy_old_line(tx, line, out)) {
            Some(token) => Evict::After(Wait::Acked(token)),
            None => Evict::Abort(tx, AbortCause::Capacity),
        }
    }

    /// Brings the old lines of an aborted transaction back.
    pub(super) fn restore_old_lines(&mut self, tx: TxId, out: &mut Actions) -> Option<Token> {
        let is_restored = |old: &OldLine| old.stage == CopyStage::Safe && !self.fault.skips(planted::ABORT_NOT_UNDONE);
        let copies = self.contents.open.get(&tx)?.copies.iter().filter(|(_, old)| is_restored(old));
        let old_lines: Vec<(LineAddr, u64)> = copies.map(|(line, old)| (*line, old.slot)).collect();
        if old_lines.is_empty() {
            return None;
        }
        self.contents.counters.undone_lines += old_lines.len() as u64;
        let token = self.expect(Purpose::Undo, old_lines.len() as u64, Vec::new());
        for (line, slot) in old_lines {
            let from = self.area.old_line(slot);
            let token = Some(token);
            out.push(Action::Copy(CopyRequest {
                by: Origin::Llc,
                from,
                to: line.base(),
                len: LINE_BYTES as u8,
                below_held: false,
                cause: Cause::Data,
                token,
            }));
        }
        Some(token)
    }

    /// Clears records; the slots are free when that is durable.
    pub(super) fn clear_records(&mut self, purpose: Purpose, slots: Vec<u64>, out: &mut Actions) -> Token {
        let token = self.expect(purpose, slots.len() as u64, slots.clone());
        for slot in slots {
            out.append(Origin::Llc, self.area.record(slot), &[0; 16], Cause::Metadata, Some(token));
        }
        token
    }

    /// The core whose committing register this acknowledgement frees.
    pub(super) fn release(&mut self, core: CoreId, out: &mut Actions) {
        self.contents.registers[usize::from(core.0)] = None;
        out.event(EventKind::Background, self.area.record(0));
    }
}
