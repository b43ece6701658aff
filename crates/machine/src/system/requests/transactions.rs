//! Transactions: the design's begin, commit and abort, and threads that change on a core inside them.

use super::gates::WaitMode;
use crate::system::System;
use durasim_contract::{AbortCause, Action, Actions, Ctx, Gate, Hooks};
use durasim_core::Outcome;
use durasim_types::{CoreId, Cycle, DataRange, PhysAddr, StallCause, TxId};

impl System {
    /// The number of the next transaction, taken in program order.
    pub fn new_tx(&mut self) -> TxId {
        self.transactions.next_number()
    }

    /// Whether the design has a place for transactions of the thread on a core.
    pub fn may_have_transactions(&self, core: CoreId) -> bool {
        self.transactions.thread_on(core) < self.design.threads_max()
    }

    /// Number of threads of a program that may have transactions.
    pub fn threads_max(&self) -> u32 {
        self.design.threads_max()
    }

    /// Whether begin instructions wait for the store buffer to be empty.
    pub fn begins_wait(&self) -> bool {
        self.design.begins_wait()
    }

    /// Whether commit instructions retire before their commit is done.
    pub fn commits_retire_early(&self) -> bool {
        self.design.commits_retire_early()
    }

    /// Whether younger accesses of the core to memory wait until a commit is done.
    pub fn commits_block(&self) -> bool {
        self.design.commits_block()
    }

    /// The begin of a transaction leaves the store buffer.
    pub fn tx_begin(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Outcome {
        self.advance(at);
        if self.transactions.begin(core, tx, at) {
            self.observers.began(core, at, tx);
        }
        self.gate(core, at, |s, cx, out| s.design.tx_begin(cx, tx, out))
    }

    /// A software commit of `tx` is in the stores that follow.
    pub fn tx_committing(&mut self, core: CoreId, tx: TxId, at: Cycle) {
        self.observers.may_commit(core, at, tx);
    }

    /// Whether a thread can make stores inside its transaction that are not part of it: where no hardware tracks them.
    pub fn may_suspend_transactions(&self) -> bool {
        !self.design.tracks_transactions()
    }

    /// The name of the hardware design.
    pub fn design_name(&self) -> &'static str {
        self.design.name()
    }

    /// The thread on a core suspends its transaction, or resumes it.
    pub fn tx_suspended(&mut self, core: CoreId, tx: TxId, is_suspended: bool, at: Cycle) {
        self.observers.suspended(core, at, tx, is_suspended);
    }

    /// The commit of a transaction whose stores have all left the store buffer.
    pub fn tx_commit(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Outcome {
        self.advance(at);
        if let Some((cycle, code)) = self.take_abort(core) {
            return Outcome::Aborted(cycle, code);
        }
        if !self.agenda.is_suspended(core) {
            self.observers.committing(core, at, tx);
            self.transactions.start_commit(tx, at);
        }
        let outcome = self.gate(core, at, |s, cx, out| {
            out.stalls_by_default(StallCause::Commit);
            let gate = s.design.tx_commit(cx, tx, out);
            if out.is_prepared() {
                s.transactions.start_commit_phase(tx, cx.cycle);
            }
            gate
        });
        if let Outcome::Done(done) = outcome
            && !self.halted()
        {
            self.transactions.end_commit(core, tx, done);
            self.observers.committed(core, done, tx);
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

    /// Asks the design about a begin or a commit, if it wants to be notified of transactions. The core waits if the design wants
    /// it to.
    fn gate(
        &mut self,
        core: CoreId,
        at: Cycle,
        mut ask: impl FnMut(&mut System, &Ctx, &mut Actions) -> Gate,
    ) -> Outcome {
        if !self.design.has(Hooks::TX) {
            return Outcome::Done(at);
        }
        self.begin_waits(core);
        self.through_from(core, at, WaitMode::Suspend, |system, cx, out| {
            let gate = ask(system, cx, out);
            (gate, system.store_for_design(cx, out))
        })
    }

    /// Makes the stores among the actions that the design itself makes through the caches, with all actions before
    /// them; the cycle in which the last of them is done. The other actions stay in `out`.
    fn store_for_design(&mut self, cx: &Ctx, out: &mut Actions) -> Cycle {
        let mut done = cx.cycle;
        let is_store = |action: &Action| matches!(action, Action::PutCached { .. });
        if !out.as_slice().iter().any(is_store) {
            return done;
        }
        let mut before = self.design.actions();
        for index in 0..out.as_slice().len() {
            let Action::PutCached { addr, payload } = out.as_slice()[index] else {
                before.push(out.as_slice()[index]);
                continue;
            };
            let list = std::mem::replace(&mut before, self.design.actions());
            self.carry_out(cx.core, cx.cycle, list);
            if !self.halted() {
                done = done.max(self.put_cached(cx.core, addr, payload.bytes(), cx.cycle));
            }
        }
        before.keep_stall_cause(out);
        self.design.put_back(std::mem::replace(out, before));
        done
    }

    /// A thread of the program takes its place on a core.
    pub fn assign_thread(&mut self, core: CoreId, thread: u32) {
        self.transactions.assign_thread(core, thread);
        self.caches.assign_thread(core, thread);
    }

    /// Another thread takes over the core: the open transactions of both. The cycle in which it may start.
    ///
    /// A fence that the leaving thread makes on its next core has to cover its cache-block operations on this one: they
    /// are waited for here, as the barrier in a kernel's context switch does.
    pub fn context_switch(&mut self, core: CoreId, leaving: Option<TxId>, coming: Option<TxId>, at: Cycle) -> Cycle {
        let at = self.wait_for_cleans(core, at);
        self.transactions.switch(core, leaving, coming);
        if !self.design.has(Hooks::CONTEXT_SWITCH) {
            return at;
        }
        // A transaction that was aborted while its thread had no core is noticed by the core.
        self.through_or_note_abort(core, at, |s, cx, out| s.design.context_switch(cx, leaving, coming, out))
    }

    /// A page of persistent memory has got a private copy in a frame of the DRAM, or lost it.
    pub fn page_copied(&mut self, frame: PhysAddr, original: Option<PhysAddr>) {
        self.observers.page_copied(frame, original);
    }

    /// The program declares its data range.
    pub fn declare_data(&mut self, range: DataRange) {
        self.memories.declare_data(Some(range));
        self.observers.data_range(range);
    }
}
