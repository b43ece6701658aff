//! Transactions: their numbers, their journal, and the design's begin, commit and abort.

use super::System;
use durasim_core::Outcome;
use durasim_design::{AbortCause, CommitRule, Gate, Hooks};
use durasim_types::{CoreId, Cycle, DataRange, TxId};
use serde::{Deserialize, Serialize};

/// Counters of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TxStats {
    /// Begun.
    pub begun: u64,
    /// Committed and acknowledged.
    pub committed: u64,
    /// Aborted.
    pub aborted: u64,
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
        self.tx_stats.begun += 1;
        self.tx_begun_at.insert(tx, at);
        if let Some(journal) = &mut self.journal {
            journal.begin(tx);
        }
        self.gate(core, at, |s, cx, out| s.design.tx_begin(cx, tx, out))
    }

    /// A software commit of `tx` follows in the stores behind.
    pub fn tx_committing(&mut self, tx: TxId) {
        if let Some(journal) = &mut self.journal {
            journal.committing(tx);
        }
    }

    /// The commit of a transaction whose stores have all left the store buffer.
    pub fn tx_commit(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Outcome {
        self.advance(at);
        if let Some((cycle, code)) = self.take_abort(core) {
            return Outcome::Aborted(cycle, code);
        }
        if let Some(journal) = &mut self.journal {
            journal.committing(tx);
        }
        let outcome = self.gate(core, at, |s, cx, out| s.design.tx_commit(cx, tx, out));
        if let Outcome::Done(done) = outcome
            && !self.halted
        {
            self.tx_stats.committed += 1;
            if let Some(begun) = self.tx_begun_at.remove(&tx) {
                self.tx_latency.record(done - begun.min(done)).expect("the histogram grows");
            }
            if let Some(journal) = &mut self.journal {
                journal.acknowledged(tx);
            }
        }
        outcome
    }

    /// The program aborts its transaction.
    pub fn tx_abort(&mut self, core: CoreId, tx: TxId, code: u8, at: Cycle) -> Outcome {
        self.advance(at);
        if let Some((cycle, code)) = self.take_abort(core) {
            return Outcome::Aborted(cycle, code);
        }
        let (cycle, code) = self.abort(core, tx, AbortCause::Requested(code), at);
        Outcome::Aborted(cycle, code)
    }

    /// Aborts a transaction: the cycle in which it is gone, and the value for a0.
    pub(super) fn abort(&mut self, core: CoreId, tx: TxId, why: AbortCause, at: Cycle) -> (Cycle, u64) {
        self.tx_stats.aborted += 1;
        self.tx_begun_at.remove(&tx);
        if let Some(journal) = &mut self.journal {
            journal.aborted(tx);
        }
        match self.gate(core, at, |s, cx, out| s.design.tx_abort(cx, tx, why, out)) {
            Outcome::Done(cycle) | Outcome::Aborted(cycle, _) => (cycle, why.code()),
        }
    }

    /// Asks the design, if it wants to hear of transactions.
    fn gate(
        &mut self,
        core: CoreId,
        at: Cycle,
        ask: impl FnMut(&mut System, &durasim_design::Ctx, &mut durasim_design::Actions) -> Gate,
    ) -> Outcome {
        if self.hooks.has(Hooks::TX) { self.through(core, at, ask) } else { Outcome::Done(at) }
    }

    /// Another thread takes over the core: the open transactions of both. The cycle in which it may start.
    pub fn context_switch(&mut self, core: CoreId, leaving: Option<TxId>, coming: Option<TxId>, at: Cycle) -> Cycle {
        if !self.hooks.has(Hooks::CONTEXT_SWITCH) {
            return at;
        }
        self.through_or_note_abort(core, at, |s, cx, out| s.design.context_switch(cx, leaving, coming, out))
    }

    /// The program declares its data range.
    pub fn declare_data(&mut self, range: DataRange) {
        self.data_range = Some(range);
        if let Some(journal) = &mut self.journal {
            journal.data_range(range);
        }
    }
}
