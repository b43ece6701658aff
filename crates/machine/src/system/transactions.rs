//! Transactions: their numbers, their journal, and the design's begin, commit and abort.

use super::System;
use super::gates::Patience;
use durasim_core::Outcome;
use durasim_design::{AbortCause, CommitRule, Gate, Hooks, LineTag};
use durasim_types::{CoreId, Cycle, DataRange, HistoryStep, LineAddr, TxId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Numbers of transactions in the region of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TxStats {
    /// Transactions begun.
    pub begun: u64,
    /// Transactions committed and acknowledged.
    pub committed: u64,
    /// Transactions aborted.
    pub aborted: u64,
}

/// A transaction between the moment its begin left the store buffer and the end of its commit, or until its thread has
/// taken notice of its abort.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OpenTx {
    begun_at: Cycle,
    /// The core that its thread runs on, or ran on last.
    core: CoreId,
    /// Its thread has left a core in the middle of it: lines of it may lie in caches of cores that it does not run on.
    moved: bool,
    /// Its commit has left the store buffer.
    pub committing: bool,
    /// Lines that its stores have tagged.
    pub lines: Vec<LineAddr>,
    /// When it was aborted, and the value for a0.
    aborted: Option<(Cycle, u64)>,
}

impl OpenTx {
    fn new(core: CoreId, begun_at: Cycle) -> Self {
        OpenTx { begun_at, core, moved: false, committing: false, lines: Vec::new(), aborted: None }
    }
}

impl System {
    /// The number of the next transaction, taken in program order.
    pub fn new_tx(&mut self) -> TxId {
        self.tx_count += 1;
        TxId(self.tx_count)
    }

    /// Whether commit instructions retire before their commit is done.
    pub fn commits_retire_early(&self) -> bool {
        self.design.commit_rule() == CommitRule::Early
    }

    /// The begin of a transaction leaves the store buffer.
    pub fn tx_begin(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Outcome {
        self.advance(at);
        if !self.open.contains_key(&tx) {
            self.tx_stats.begun += 1;
            self.open.insert(tx, OpenTx::new(core, at));
            self.running[core.0 as usize] = Some(tx);
            if let Some(journal) = &mut self.journal {
                journal.moment(core, at);
                journal.begin(tx);
            }
        }
        self.gate(core, at, |s, cx, out| s.design.tx_begin(cx, tx, out))
    }

    /// A software commit of `tx` follows in the stores behind.
    pub fn tx_committing(&mut self, core: CoreId, tx: TxId, at: Cycle) {
        if let Some(journal) = &mut self.journal {
            journal.moment(core, at);
            journal.committing(tx);
        }
        self.note(HistoryStep::Committing(tx));
    }

    /// The commit of a transaction whose stores have all left the store buffer.
    pub fn tx_commit(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Outcome {
        self.advance(at);
        if let Some((cycle, code)) = self.take_abort(core) {
            return Outcome::Aborted(cycle, code);
        }
        if !self.is_suspended(core) {
            if let Some(journal) = &mut self.journal {
                journal.moment(core, at);
                journal.committing(tx);
            }
            self.note(HistoryStep::Committing(tx));
            if let Some(open) = self.open.get_mut(&tx) {
                open.committing = true;
            }
        }
        let outcome = self.gate(core, at, |s, cx, out| s.design.tx_commit(cx, tx, out));
        if let Outcome::Done(done) = outcome
            && !self.halted
        {
            self.tx_stats.committed += 1;
            self.running[core.0 as usize] = None;
            if let Some(open) = self.open.remove(&tx) {
                if open.moved {
                    self.look_for_moved_tx();
                }
                self.tx_latency.record(done - open.begun_at.min(done));
            }
            if let Some(journal) = &mut self.journal {
                journal.moment(core, done);
                journal.acknowledged(tx);
            }
            self.note(HistoryStep::Acknowledged(tx));
        }
        outcome
    }

    /// The program aborts its transaction.
    pub fn tx_abort(&mut self, core: CoreId, tx: TxId, code: u8, at: Cycle) -> Outcome {
        self.advance(at);
        if !self.is_aborted(core) {
            self.abort(tx, AbortCause::Requested(code), at);
        }
        let (cycle, code) = self.take_abort(core).expect("an open transaction was aborted");
        Outcome::Aborted(cycle, code)
    }

    /// Aborts a transaction, whichever core it runs on; the cycle in which it is gone. Its core takes notice at its next
    /// step.
    pub(super) fn abort(&mut self, tx: TxId, why: AbortCause, at: Cycle) -> Cycle {
        let open = self.open.get_mut(&tx).expect("only an open transaction is aborted");
        if open.aborted.is_some() {
            return at;
        }
        let core = open.core;
        open.aborted = Some((at, why.code()));
        self.abort_notices += 1;
        self.tx_stats.aborted += 1;
        if let Some(journal) = &mut self.journal {
            journal.moment(core, at);
            journal.aborted(tx);
        }
        self.note(HistoryStep::Aborted(tx));
        let mut at = at;
        while self.hooks.has(Hooks::TX) && !self.halted {
            let mut out = self.actions();
            let cx = self.cx(core, at);
            let gate = self.design.tx_abort(&cx, tx, why, &mut out);
            at = self.carry_out(core, at, out);
            match gate {
                Gate::Done => break,
                Gate::After(wait) => {
                    at = self.resolve(wait, at);
                    break;
                }
                Gate::Retry(wait) => at = self.resolve(wait, at),
                Gate::Abort(..) => unreachable!("an abort cannot be aborted"),
            }
        }
        if let Some(open) = self.open.get_mut(&tx) {
            open.aborted = Some((at, why.code()));
        }
        if self.running[core.0 as usize] == Some(tx) {
            self.interrupt(core, at);
        }
        at
    }

    /// Whether the transaction that runs on `core` has been aborted and its thread does not know yet.
    #[inline]
    pub(super) fn is_aborted(&self, core: CoreId) -> bool {
        self.abort_notices > 0
            && self.running[core.0 as usize]
                .and_then(|tx| self.open.get(&tx))
                .is_some_and(|open| open.aborted.is_some())
    }

    /// Whether a tag is of a transaction that was aborted and whose thread does not know yet.
    pub(super) fn is_tag_aborted(&self, tag: LineTag) -> bool {
        let mut aborted = self.open.iter().filter(|(_, open)| open.aborted.is_some());
        aborted.any(|(tx, _)| self.design.belongs_to(tag, *tx))
    }

    /// The abort of the transaction that runs on `core`: its cycle and the value for a0. It is over with that.
    #[inline]
    pub fn take_abort(&mut self, core: CoreId) -> Option<(Cycle, u64)> {
        if self.abort_notices == 0 { None } else { self.take_abort_notice(core) }
    }

    fn take_abort_notice(&mut self, core: CoreId) -> Option<(Cycle, u64)> {
        let tx = self.running[core.0 as usize]?;
        let aborted = self.open.get(&tx)?.aborted?;
        self.abort_notices -= 1;
        if self.open.remove(&tx).is_some_and(|open| open.moved) {
            self.look_for_moved_tx();
        }
        self.running[core.0 as usize] = None;
        self.forget_suspension(core);
        Some(aborted)
    }

    /// The transaction in whose name a request is made, if its begin has left the store buffer.
    pub(super) fn begun(&self, tx: Option<TxId>) -> Option<TxId> {
        tx.filter(|tx| self.open.contains_key(tx))
    }

    /// A store of `tx` has tagged a line.
    pub(super) fn note_tagged(&mut self, tx: Option<TxId>, line: LineAddr) {
        if let Some(open) = tx.and_then(|tx| self.open.get_mut(&tx))
            && open.lines.last() != Some(&line)
        {
            open.lines.push(line);
        }
    }

    /// Asks the design, if it wants to hear of transactions. The core waits if the design wants it to.
    fn gate(
        &mut self,
        core: CoreId,
        at: Cycle,
        ask: impl FnMut(&mut System, &durasim_design::Ctx, &mut durasim_design::Actions) -> Gate,
    ) -> Outcome {
        if self.hooks.has(Hooks::TX) { self.through(core, at, Patience::Core, ask) } else { Outcome::Done(at) }
    }

    /// Another thread takes over the core: the open transactions of both. The cycle in which it may start.
    ///
    /// A fence that the leaving thread makes on its next core has to cover its cache-block operations on this one: they
    /// are waited for here, as the barrier in a kernel's context switch does.
    pub fn context_switch(&mut self, core: CoreId, leaving: Option<TxId>, coming: Option<TxId>, at: Cycle) -> Cycle {
        let at = self.wait_for_cleans(core, at);
        let coming_open = self.begun(coming);
        if let Some(open) = coming_open.and_then(|tx| self.open.get_mut(&tx)) {
            open.core = core;
        }
        if let Some(open) = leaving.and_then(|tx| self.open.get_mut(&tx)) {
            open.moved = true;
        }
        self.running[core.0 as usize] = coming_open;
        self.look_for_moved_tx();
        if !self.hooks.has(Hooks::CONTEXT_SWITCH) {
            return at;
        }
        // A transaction that was aborted while its thread had no core is noticed by the core.
        self.through_or_note_abort(core, at, |s, cx, out| s.design.context_switch(cx, leaving, coming, out))
    }

    fn look_for_moved_tx(&mut self) {
        self.moved_tx = self.open.values().any(|open| open.moved);
    }

    /// An epoch of the design ends.
    pub(super) fn end_epoch(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.epoch_ends();
        }
        self.note(HistoryStep::EpochEnds);
    }

    /// The program declares its data range.
    pub fn declare_data(&mut self, range: DataRange) {
        self.data_range = Some(range);
        if let Some(journal) = &mut self.journal {
            journal.data_range(range);
        }
    }
}
