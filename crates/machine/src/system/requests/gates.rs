//! Requests that a design may hold up: asked again until it lets them through, or aborted.
//!
//! A request of a core that has to wait is suspended: other cores continue, the machine makes the request again when what it
//! waits for has come. Where a request cannot be left in its middle, the memory system alone continues.

use super::lost::Lost;
use crate::parts::work_list::Condition;
use crate::system::System;
use durasim_contract::{Actions, Ctx, Gate, Hooks, Wait};
use durasim_core::Outcome;
use durasim_types::{CoreId, Cycle, Error, LineAddr, StallCause, TxId};

/// Components that continue while a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitMode {
    /// All cores: the core is notified that its request is pending.
    Suspend,
    /// The memory system only.
    MemoryOnly,
}

/// Outcome of one answer of a design.
pub(super) enum GateOutcome {
    /// Go on at this cycle.
    Proceed(Cycle),
    /// Ask again at this cycle.
    Retry(Cycle),
    /// The request is suspended.
    Suspended,
}

impl System {
    /// Carries out the actions of a gate and takes its way.
    pub(super) fn pass(
        &mut self,
        core: CoreId,
        gate: Gate,
        out: Actions,
        at: Cycle,
        mode: WaitMode,
    ) -> Result<GateOutcome, Lost> {
        let why = out.stall_cause();
        self.carry_out(core, at, out);
        self.resolve_gate(core, gate, why, at, mode)
    }

    /// Takes the way of a gate whose actions have been carried out.
    fn resolve_gate(
        &mut self,
        core: CoreId,
        gate: Gate,
        why: Option<StallCause>,
        at: Cycle,
        mode: WaitMode,
    ) -> Result<GateOutcome, Lost> {
        // The design's request may have evicted a line that could only leave by an abort.
        self.unless_aborted(core, at)?;
        if let Gate::After(wait) | Gate::Retry(wait) = gate {
            self.note_gate(core, wait, why, at);
        }
        if !matches!(gate, Gate::Retry(_)) {
            self.agenda.forget_retries();
        }
        Ok(match gate {
            Gate::Done => GateOutcome::Proceed(at),
            Gate::After(Wait::Cycles(n)) => GateOutcome::Proceed(at + n),
            Gate::After(wait) if mode == WaitMode::Suspend => self.suspend(core, wait, at, true),
            Gate::After(wait) => GateOutcome::Proceed(self.resolve(wait, at)),
            Gate::Retry(wait) if mode == WaitMode::Suspend => self.suspend(core, wait, at, false),
            Gate::Retry(wait) => {
                self.check_retries(at);
                let resolved = self.resolve(wait, at);
                GateOutcome::Retry(self.unless_halted(resolved)?)
            }
            Gate::Abort(tx, why) => {
                let aborted = self.abort(tx, why, at);
                self.unless_aborted(core, at)?;
                GateOutcome::Retry(self.unless_halted(aborted)?)
            }
        })
    }

    /// Asks the design until it lets the request through.
    pub(super) fn through(
        &mut self,
        core: CoreId,
        at: Cycle,
        mode: WaitMode,
        mut ask: impl FnMut(&mut System, &Ctx, &mut Actions) -> Gate,
    ) -> Outcome {
        self.through_from(core, at, mode, |system, cx, out| (ask(system, cx, out), cx.cycle))
    }

    /// As [`System::through`], where carrying out a part of the answer takes time: the request continues at the cycle beside the gate.
    pub(super) fn through_from(
        &mut self,
        core: CoreId,
        at: Cycle,
        mode: WaitMode,
        mut ask: impl FnMut(&mut System, &Ctx, &mut Actions) -> (Gate, Cycle),
    ) -> Outcome {
        if mode == WaitMode::Suspend && self.agenda.take_suspension(core) {
            return Outcome::Done(at);
        }
        let mut at = at;
        loop {
            let mut out = self.design.actions();
            let cx = self.cx(core, at);
            let (gate, from) = ask(self, &cx, &mut out);
            let why = out.stall_cause();
            self.carry_out(core, at, out);
            match self.resolve_gate(core, gate, why, from, mode) {
                Ok(GateOutcome::Proceed(cycle)) | Err(Lost::Halted(cycle)) => return Outcome::Done(cycle),
                Ok(GateOutcome::Retry(cycle)) => at = cycle,
                Ok(GateOutcome::Suspended) => return Outcome::Pending,
                Err(Lost::Aborted(_)) => {
                    let (cycle, code) = self.take_abort(core).expect("the abort was just seen");
                    return Outcome::Aborted(cycle, code);
                }
            }
        }
    }

    /// As [`System::through`], where an abort is noticed by the core after its instruction.
    pub(super) fn through_or_note_abort(
        &mut self,
        core: CoreId,
        at: Cycle,
        mut ask: impl FnMut(&mut System, &Ctx, &mut Actions) -> Gate,
    ) -> Cycle {
        let mut at = at;
        loop {
            let mut out = self.design.actions();
            let cx = self.cx(core, at);
            let gate = ask(self, &cx, &mut out);
            match self.pass(core, gate, out, at, WaitMode::MemoryOnly) {
                Ok(GateOutcome::Proceed(cycle)) => return cycle,
                Ok(GateOutcome::Retry(cycle)) => at = cycle,
                Ok(GateOutcome::Suspended) => unreachable!("no other core acts"),
                Err(lost) => return lost.at(),
            }
        }
    }

    /// A request of the core that may have to wait begins, unless it is made again.
    #[inline]
    pub(super) fn begin_waits(&mut self, core: CoreId) {
        if !self.agenda.is_suspended(core) {
            self.stalls.begin(core);
        }
    }

    /// A request of the core waits, as the design wants it: where its reason is that an acknowledgement has to come, the
    /// parts of that are known when it has.
    pub(super) fn note_gate(&mut self, core: CoreId, wait: Wait, why: Option<StallCause>, at: Cycle) {
        match (wait, why) {
            (Wait::Acked(token), None | Some(StallCause::Commit)) => self.stalls.await_ack(core, token, at),
            (Wait::Cycles(0), _) => {}
            (_, why) => self.stalls.gate(core, at, why.unwrap_or(StallCause::Design)),
        }
    }

    /// A request for which the cores are stopped is made again. Where no event is scheduled nothing will change until then.
    fn check_retries(&mut self, at: Cycle) {
        if self.agenda.due() == Cycle::MAX && !self.agenda.may_retry() && !self.halted() {
            let what =
                "a design has a request made again and again, and no scheduled event will change its answer".to_owned();
            self.observers.fail(Error::Stuck { cycle: at, what });
        }
    }

    pub(super) fn suspend(&mut self, core: CoreId, wait: Wait, at: Cycle, passed: bool) -> GateOutcome {
        let is_over = self.agenda.suspend(core, wait, at, passed);
        if is_over && !passed {
            self.check_progress(at);
        }
        GateOutcome::Suspended
    }

    /// The cycle in which the design lets a request of a core into the last level.
    #[inline]
    pub(super) fn llc_request(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        if self.design.has(Hooks::LLC_REQUEST) { self.ask_for_llc(core, line, at) } else { at }
    }

    fn ask_for_llc(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let mut at = at;
        loop {
            let cx = self.cx(core, at);
            match self.design.llc_request(&cx, line) {
                Gate::Done => return at,
                Gate::After(wait) => {
                    let done = self.resolve(wait, at);
                    self.stalls.add(core, StallCause::DesignLookup, done - at);
                    return done;
                }
                Gate::Retry(wait) => {
                    let done = self.resolve(wait, at);
                    self.stalls.add(core, StallCause::DesignLookup, done - at);
                    at = done;
                }
                Gate::Abort(..) => unreachable!("a request at the last level is let in or waits"),
            }
            if self.halted() {
                return at;
            }
        }
    }

    /// The abort of the transaction that runs on `core`: its cycle and the value for a0. It is over with that.
    #[inline]
    pub fn take_abort(&mut self, core: CoreId) -> Option<(Cycle, u64)> {
        if self.transactions.any_abort_notice() { self.take_abort_notice(core) } else { None }
    }

    fn take_abort_notice(&mut self, core: CoreId) -> Option<(Cycle, u64)> {
        let aborted = self.transactions.take_abort(core)?;
        self.agenda.forget_suspension(core);
        if self.transactions.hardware_on(core).is_none() {
            self.observers.stop_deferring(core);
        }
        Some(aborted)
    }

    /// The transaction in whose name a request is made, if its begin has left the store buffer.
    pub(super) fn begun(&self, tx: Option<TxId>) -> Option<TxId> {
        self.transactions.begun(tx)
    }

    /// Whether any core waits for something that only the memory system can bring.
    pub fn has_waiters(&self) -> bool {
        self.agenda.has_waiters()
    }

    /// Changes whenever it becomes known when a suspended request can be made again. `None` while an instruction waits for
    /// filters, for which that is not counted.
    pub fn resumptions(&self) -> Option<u64> {
        (!self.filters.any_waits()).then(|| self.agenda.resumptions())
    }

    /// Cycle in which the suspended request of `core` can be made again, or its instruction that waits for filters be executed, if that
    /// is known.
    pub fn resumes_at(&self, core: CoreId) -> Option<Cycle> {
        if self.agenda.is_suspended(core) {
            return self.agenda.resumes_at(core);
        }
        self.filters.resumes_at(core)?
    }

    /// Lets the memory system alone continue until the suspended request of `core` can be made again.
    pub fn wait_alone(&mut self, core: CoreId) -> Cycle {
        let now = self.wait_until(Condition::Resumes(core), self.agenda.suspended_since(core));
        self.resumes_at(core).unwrap_or(now)
    }
}
