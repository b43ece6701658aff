//! Steps of Kiln that a planted fault can break: each is what the design does, with the faults of that step beside it.

pub(super) mod banks;

use super::banks::tx_of;
use super::planted;
use super::sequence::COPY;
use super::spec::Versions;
use super::state::State;
use super::survivors::{self, Survivor};
use super::transaction::{CopyStage, Entry, OldLine, Transaction};
use banks::Consensus;
use durasim_design::{Action, Actions, ActiveFault, CachedLine, CrashSink, LineTag, Merge, Store, Token};
use durasim_types::{CoreId, LineAddr, TxId};
use std::collections::BTreeSet;
use std::ops::Range;

/// How many lines of a commit have changed their states.
pub(super) enum Flipped {
    FirstHalf,
    All,
}

/// Caches.
impl State {
    /// The version before the first write of a transaction goes below: an abort finds it there, and what has been cleaned
    /// is durable there.
    #[inline]
    pub(super) fn keep_older_version_below(&self, store: &Store<'_>, out: &mut Actions) {
        if self.fault.is(planted::PRE_IMAGE_FORGOTTEN) {
            return;
        }
        if !self.upper_levels_survive {
            out.push(Action::PushToLlc { line: store.line(), token: None });
        } else if store.dirty {
            out.push(Action::CopyDown(store.line()));
        }
    }

    /// Whether a committed version goes home before an uncommitted one takes its place.
    pub(super) fn goes_home_first(&self, resident: LineTag, incoming: LineTag) -> bool {
        if self.fault.is(planted::COMMITTED_OVERWRITTEN) {
            return false;
        }
        !resident.is_some() && incoming.is_some()
    }

    /// What becomes of the committed version of a line in the last level for which an uncommitted one comes down.
    pub(super) fn merge_in_llc(&mut self) -> Merge {
        match self.spec.versions {
            Versions::HomeFirst => {
                self.counters.committed_pushed_home += 1;
                Merge::PushDownFirst
            }
            Versions::TwoInLlc => {
                self.counters.committed_kept += 1;
                Merge::KeepBoth
            }
        }
    }

    /// A committed version beside an uncommitted one goes home: its copy is made of what home has.
    pub(super) fn bring_older_version_home(&self, line: LineAddr, out: &mut Actions) {
        if self.spec.versions == Versions::TwoInLlc && !self.fault.is(planted::COPIES_HOME_WITHOUT_OLDER) {
            out.push(Action::WriteOlderHome(line));
        }
    }

    /// The lines of a transaction are committed: the last level drops the versions before them.
    pub(super) fn drop_older_versions(&self, committed: &Transaction, out: &mut Actions) {
        self.drop_older_of(committed.lines.iter().copied(), out);
    }

    /// The same for some of its lines.
    pub(super) fn drop_older_of(&self, lines: impl Iterator<Item = LineAddr>, out: &mut Actions) {
        if self.spec.versions == Versions::TwoInLlc && !self.fault.is(planted::OLDER_VERSION_KEPT) {
            lines.for_each(|line| out.push(Action::DropOlder(line)));
        }
    }

    /// The open transaction whose uncommitted data of a line the fall-back path has brought home.
    pub(super) fn owner_at_home(&self, line: LineAddr) -> Option<TxId> {
        if self.fault.is(planted::FILL_UNTAGGED) {
            return None;
        }
        let brought = self.contents.open.iter().filter(|(_, open)| open.copies.contains_key(&line)).map(|(tx, _)| *tx);
        brought.into_iter().find(|&tx| !self.has_flipped_in_bank(self.tag(tx, line)))
    }
}

/// Commits.
impl State {
    /// The FIFOs that a commit walks: those of all cores, for its thread may have changed cores.
    pub(super) fn walked_fifos(&self, core: CoreId) -> Range<usize> {
        if self.fault.is(planted::FLUSH_MISSES_OTHER_CORES) {
            return usize::from(core.0)..usize::from(core.0) + 1;
        }
        0..self.contents.fifos.len()
    }

    /// A commit flushes every line that it finds in the FIFOs.
    pub(super) fn lines_to_flush(&self, mut found: Vec<LineAddr>) -> Vec<LineAddr> {
        if self.fault.is(planted::FLUSH_MISSES_NEWEST) {
            found.pop();
        }
        if self.fault.is(planted::COMMIT_NOT_FLUSHED) {
            found.clear();
        }
        found
    }

    /// What the commit waits for before it writes the register: its lines are in the last level.
    pub(super) fn flush_before_register(&self, flush: Token) -> Option<Token> {
        if self.fault.is(planted::FLUSH_NOT_AWAITED) {
            return None;
        }
        Some(flush)
    }

    /// The token under which uncommitted lines of a transaction go home, if its commit has to wait for them.
    pub(super) fn token_of_way_home(&mut self, tx: TxId) -> Option<Token> {
        if !self.queues_are_lost {
            return None;
        }
        let known = self.contents.open.get(&tx).and_then(|open| open.going_home);
        Some(known.unwrap_or_else(|| {
            self.contents.tokens += 1;
            Token(self.contents.tokens)
        }))
    }

    /// What a commit waits for before it flushes: lines that have left a FIFO are on the media.
    pub(super) fn take_way_home(&mut self, tx: TxId) -> Option<Token> {
        let token = self.contents.open.get_mut(&tx)?.going_home.take();
        if self.fault.is(planted::WAY_HOME_NOT_AWAITED) { None } else { token }
    }

    /// The commit point: the committing register takes the TxID.
    pub(super) fn write_register(&mut self, core: usize, tx: TxId) {
        if self.fault.is(planted::REGISTER_NOT_WRITTEN) {
            return;
        }
        self.contents.registers[core] = Some(tx);
    }

    /// The register keeps the TxID until all states have changed and no record of an old line is left: until then recovery
    /// has to finish what it names.
    pub(super) fn keep_register(&mut self, core: CoreId, flipped: Flipped) {
        let cleared_at_once = match flipped {
            Flipped::FirstHalf => planted::REGISTER_CLEARED_EARLY,
            Flipped::All => planted::REGISTER_OVERTAKES_RECORDS,
        };
        if self.fault.is(cleared_at_once) {
            self.contents.registers[usize::from(core.0)] = None;
        }
    }

    /// The slots whose records a commit clears: those of all its old lines.
    pub(super) fn records_of_commit(&self, committed: &Transaction) -> Vec<u64> {
        if self.fault.is(planted::RECORDS_KEPT) {
            return Vec::new();
        }
        committed.copies.values().map(|old| old.slot).collect()
    }
}

/// Aborts.
impl State {
    /// The lines of an aborted transaction are invalidated in all caches.
    pub(super) fn invalidate_lines(&self, tx: TxId, out: &mut Actions) {
        if self.fault.is(planted::ABORT_KEEPS_LINES) {
            return;
        }
        out.push(Action::InvalidateTagged(tx));
    }

    /// The old lines that an abort brings back, with their slots: those whose homes may have changed.
    pub(super) fn old_lines_to_restore(&self, aborted: &Transaction) -> Vec<(LineAddr, u64)> {
        if self.fault.is(planted::ABORT_NOT_UNDONE) {
            return Vec::new();
        }
        let safe = aborted.copies.iter().filter(|(_, old)| old.stage == CopyStage::Safe);
        safe.map(|(line, old)| (*line, old.slot)).collect()
    }

    /// The slots whose records an abort clears: those of the old lines that are home again.
    pub(super) fn records_of_abort(&self, restored: &[&OldLine]) -> Vec<u64> {
        if self.fault.is(planted::ABORT_KEEPS_RECORDS) {
            return Vec::new();
        }
        restored.iter().map(|old| old.slot).collect()
    }
}

/// The fall-back path.
impl State {
    /// A slot of the copy area that holds no other old line.
    pub(super) fn take_slot(&mut self) -> Option<u64> {
        let slot = self.contents.slots.take(self.area.lines)?;
        if self.fault.is(planted::SLOT_SHARED) {
            return Some(0);
        }
        Some(slot)
    }

    /// What the record of an old line waits for: the copy is durable.
    pub(super) fn copy_before_record(
        &mut self,
        copy: Token,
        tx: TxId,
        line: LineAddr,
        out: &mut Actions,
    ) -> Option<Token> {
        if self.fault.is(planted::COPY_NOT_AWAITED) {
            return self.record_old_line(tx, line, out);
        }
        Some(copy)
    }

    /// How far the copy of an old line is, without which new data must not leave a FIFO; `None` if it has not begun.
    pub(super) fn stage_of_old_line(&self, open: &Transaction, line: LineAddr) -> Option<CopyStage> {
        let stage = open.copies.get(&line).map(|old| old.stage);
        if self.fault.is(planted::COPY_SKIPPED) {
            return stage.or(Some(CopyStage::Safe));
        }
        stage
    }

    /// A committed version that a cache holds goes home before the line there is copied. The copy begins after all that
    /// is pushed.
    pub(super) fn bring_committed_version_home(&self, entry: &Entry, out: &mut Actions) {
        if !self.fault.is(planted::COPIES_STALE_LINE) {
            out.push(Action::PushToLlc { line: entry.line, token: None });
        }
        if self.fault.is(planted::COPY_OVERTAKES_PUSH) {
            out.push(Action::Resume { id: COPY | entry.tx.0 });
        }
    }

    /// The open transaction of a line that leaves the last level: its old line has to be safe first.
    pub(super) fn needs_old_line_first(&self, tx: TxId) -> Option<&Transaction> {
        if self.fault.is(planted::EVICTED_WITHOUT_COPY) {
            return None;
        }
        self.contents.open.get(&tx)
    }
}

/// Power failure.
impl State {
    /// Whether a line is committed when the power fails, by its state or by a register.
    pub(super) fn survives_as_committed(&self, cached: &CachedLine) -> bool {
        if !cached.tag.is_some() || self.fault.is(planted::PENDING_GOES_HOME) {
            return true;
        }
        let tx = tx_of(cached.tag);
        let register = self.is_committing(tx) && !self.fault.is(planted::REGISTERS_LOST);
        self.has_flipped_in_bank(cached.tag)
            || self.contents.open.get(&tx).is_some_and(|open| open.has_flipped(cached.line))
            || self.upper_levels_survive && register
    }

    /// The committing registers are nonvolatile.
    pub(super) fn keep_registers(&self, sink: &mut CrashSink<'_>) {
        if self.fault.is(planted::REGISTERS_LOST) || self.banks.is_some() {
            return;
        }
        sink.keep(survivors::REGISTERS, survivors::save_registers(&self.contents.registers));
    }
}

/// What recovery goes by.
pub(super) enum Decision {
    /// The transactions that committing registers name.
    Registers(BTreeSet<TxId>),
    /// What any bank has committed.
    Banks(Consensus),
}

impl Decision {
    fn has_committed(&self, tx: TxId) -> bool {
        match self {
            Decision::Registers(committing) => committing.contains(&tx),
            Decision::Banks(consensus) => consensus.has_committed(tx),
        }
    }
}

/// Whether recovery finishes a transaction: a committing register names it, or a bank has committed it.
pub(super) fn is_finished(tx: TxId, decision: &Decision, fault: ActiveFault) -> bool {
    if fault.is(planted::RECOVERY_IGNORES_REGISTER) {
        return false;
    }
    decision.has_committed(tx)
}

/// The lines that recovery writes home: all that finished transactions have left in the last level.
pub(super) fn lines_to_finish(mut left: Vec<Survivor>, fault: ActiveFault) -> Vec<Survivor> {
    if fault.is(planted::RECOVERY_DROPS_LINE) {
        left.pop();
    }
    left
}

/// Whether recovery brings the old lines of a transaction back: no committing register names it, or no bank has committed it.
pub(super) fn is_undone(tx: TxId, decision: &Decision, fault: ActiveFault) -> bool {
    if fault.is(planted::RECOVERY_FORGETS_COPIES) {
        return false;
    }
    if fault.is(planted::RECOVERY_UNDOES_COMMITTING) {
        return true;
    }
    !decision.has_committed(tx)
}

/// A step of recovery.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// What a committing register names goes home from the last level.
    FinishCommits,
    /// Old lines of other transactions come back from the copy area.
    BringOldLinesBack,
    ClearRecords,
    /// The uncommitted lines of the last level are dropped.
    ClearLines,
    ClearRegisters,
}

/// The records go when the old lines are home, and the registers last, because they decide.
pub(super) fn recovery_order(fault: ActiveFault) -> &'static [Step] {
    use Step::{BringOldLinesBack, ClearLines, ClearRecords, ClearRegisters, FinishCommits};
    if fault.is(planted::RECOVERY_CLEARS_REGISTERS_FIRST) {
        return &[ClearRegisters, FinishCommits, BringOldLinesBack, ClearRecords, ClearLines];
    }
    if fault.is(planted::RECOVERY_CLEARS_RECORDS_FIRST) {
        return &[FinishCommits, ClearRecords, BringOldLinesBack, ClearRecords, ClearLines, ClearRegisters];
    }
    if fault.is(planted::RECOVERY_WRITES_TWICE) {
        return &[FinishCommits, FinishCommits, BringOldLinesBack, ClearRecords, ClearLines, ClearRegisters];
    }
    &[FinishCommits, BringOldLinesBack, ClearRecords, ClearLines, ClearRegisters]
}
