//! Commits and aborts.
//!
//! A commit walks the FIFOs and flushes the lines of its transaction into the last level, where they stay uncommitted; the
//! copies above stay, clean. When all are there the committing register takes the TxID, which is the commit point; then
//! the lines become committed, in any order, and the register is cleared [kiln-commit].

use super::banks::Banks;
use super::sequence::{FLIP_FIRST_HALF, FLIP_SECOND_HALF, RELEASE};
use super::state::{Purpose, State};
use super::steps::Flipped;
use super::transaction::{CopyStage, Entry, OldLine, Phase};
use durasim_design::{Action, Actions, Ctx, Gate, Token, Wait};
use durasim_types::{CoreId, Cycle, EventKind, LineAddr, TxId};

impl State {
    /// Takes the entries of a transaction out of the FIFOs, oldest first.
    fn take_entries(&mut self, core: CoreId, tx: TxId) -> Vec<LineAddr> {
        let mut lines = Vec::new();
        for number in self.walked_fifos(core) {
            let fifo = &mut self.contents.fifos[number];
            let (own, others): (Vec<Entry>, Vec<Entry>) = fifo.iter().partition(|entry| entry.tx == tx);
            lines.extend(own.iter().map(|entry| entry.line));
            *fifo = others.into();
        }
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.tracked.clear();
        }
        self.lines_to_flush(lines)
    }

    /// Flushes the lines that the FIFOs name ("clean on commit"); what the commit has to wait for.
    fn flush(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Option<Token> {
        let lines = self.take_entries(cx.core, tx);
        if lines.is_empty() {
            return None;
        }
        let count = lines.len() as u64;
        self.counters.flushed_lines += count;
        let token = self.expect(Purpose::Flush(tx), count, Vec::new());
        let walk_cycles = count * self.spec.fifo_walk_cycles;
        self.contents.open.get_mut(&tx)?.phase = Phase::Flushing { since: cx.cycle, walk_cycles, token };
        for &line in &lines {
            out.push(Action::PushToLlc { line, token: Some(token) });
        }
        self.flush_before_register(token)
    }

    pub(super) fn commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let Some(open) = self.contents.open.get(&tx) else { return Gate::Done };
        let home = usize::from(open.home.0);
        let mut walk_left: Cycle = 0;
        match open.phase {
            Phase::Running => {
                if let Some(token) = open.copy_under_way() {
                    return Gate::Retry(Wait::Acked(token));
                }
                if let Some(token) = self.take_way_home(tx) {
                    return Gate::Retry(Wait::Acked(token));
                }
                if let Some(token) = self.flush(cx, tx, out) {
                    return Gate::Retry(Wait::Acked(token));
                }
            }
            Phase::Flushing { since, walk_cycles, token } => {
                if self.awaits(token) {
                    return Gate::Retry(Wait::Acked(token));
                }
                if let Some(token) = open.copy_under_way() {
                    return Gate::Retry(Wait::Acked(token));
                }
                walk_left = (since + walk_cycles).saturating_sub(cx.cycle);
                self.counters.flush_cycles += cx.cycle.saturating_sub(since) + walk_left;
            }
            _ => return Gate::Done,
        }
        if let Some(banks) = self.banks.as_ref().map(Banks::count) {
            return self.tell_banks(cx, tx, banks, out);
        }
        // The register still names a transaction whose records are being cleared.
        if let Some(token) = self.release_under_way(home) {
            self.counters.register_waits += 1;
            return Gate::Retry(Wait::Acked(token));
        }
        let Some(open) = self.contents.open.get_mut(&tx) else { return Gate::Done };
        if open.lines.is_empty() {
            self.contents.open.remove(&tx);
            out.event(EventKind::Commit, self.area.record(0));
            return Gate::Done;
        }
        open.phase = Phase::Flipping;
        self.write_register(home, tx);
        out.event(EventKind::DesignStep, self.area.record(0));
        out.push(Action::Resume { id: FLIP_FIRST_HALF | tx.0 });
        Gate::After(Wait::Cycles(walk_left + self.spec.llc_write_latency_cycles))
    }

    fn release_under_way(&self, core: usize) -> Option<Token> {
        self.contents.registers[core]?;
        let release = Purpose::Release(CoreId(core as u16));
        self.contents.awaited.iter().find(|(_, awaited)| awaited.purpose == release).map(|(token, _)| *token)
    }

    /// The first half of the lines is committed by its own state.
    pub(super) fn flip_first_half(&mut self, tx: TxId, out: &mut Actions) {
        let Some(open) = self.contents.open.get_mut(&tx) else { return };
        open.phase = Phase::HalfFlipped;
        let home = open.home;
        self.keep_register(home, Flipped::FirstHalf);
        out.event(EventKind::DesignStep, self.area.record(0));
        out.push(Action::Resume { id: FLIP_SECOND_HALF | tx.0 });
    }

    /// All of them are. The register stays until no record of an old line is left.
    pub(super) fn flip_second_half(&mut self, tx: TxId, out: &mut Actions) {
        let Some(open) = self.contents.open.remove(&tx) else { return };
        self.drop_older_versions(&open, out);
        out.event(EventKind::Commit, self.area.record(0));
        let slots = self.records_of_commit(&open);
        if slots.is_empty() {
            out.push(Action::Resume { id: RELEASE | u64::from(open.home.0) });
            return;
        }
        self.clear_records(Purpose::Release(open.home), slots, out);
        self.keep_register(open.home, Flipped::All);
    }

    /// Uncommitted lines are invalidated everywhere, and old lines come back that the fall-back path has copied.
    pub(super) fn abort(&mut self, tx: TxId, out: &mut Actions) -> Gate {
        let Some(open) = self.contents.open.get_mut(&tx) else { return Gate::Done };
        let phase = open.phase;
        match phase {
            Phase::Running | Phase::Flushing { .. } => {
                open.tracked.clear();
                let in_progress = open.copy_under_way();
                for fifo in &mut self.contents.fifos {
                    fifo.retain(|entry| entry.tx != tx);
                }
                if let Some(token) = in_progress {
                    return Gate::Retry(Wait::Acked(token));
                }
                self.invalidate_lines(tx, out);
                if let Some(token) = self.restore_old_lines(tx, out) {
                    self.set_phase(tx, Phase::Restoring(token));
                    return Gate::Retry(Wait::Acked(token));
                }
                self.forget_copies(tx, out)
            }
            Phase::Restoring(token) | Phase::Forgetting(token) if self.awaits(token) => Gate::Retry(Wait::Acked(token)),
            Phase::Restoring(_) => self.forget_copies(tx, out),
            Phase::Forgetting(_) => {
                self.forget_aborted(tx);
                Gate::Done
            }
            // It has committed.
            Phase::Flipping | Phase::HalfFlipped | Phase::Committing => Gate::Done,
        }
    }

    fn set_phase(&mut self, tx: TxId, phase: Phase) {
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.phase = phase;
        }
    }

    /// The old lines are home: their records go. Places without a record are free at once.
    fn forget_copies(&mut self, tx: TxId, out: &mut Actions) -> Gate {
        let Some(open) = self.contents.open.get(&tx) else { return Gate::Done };
        let (safe, reserved): (Vec<&OldLine>, Vec<&OldLine>) =
            open.copies.values().partition(|old| old.stage == CopyStage::Safe);
        self.contents.slots.give_back(reserved.iter().map(|old| old.slot));
        let slots = self.records_of_abort(&safe);
        if slots.is_empty() {
            self.forget_aborted(tx);
            return Gate::Done;
        }
        let token = self.clear_records(Purpose::Undo, slots, out);
        self.set_phase(tx, Phase::Forgetting(token));
        Gate::Retry(Wait::Acked(token))
    }
}
