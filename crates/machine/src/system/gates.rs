//! Requests that a design may hold up: asked again until it lets them through, or aborted.

use super::System;
use durasim_core::Outcome;
use durasim_design::{Actions, Ctx, Gate};
use durasim_types::{CoreId, Cycle};

/// What follows from one answer of a design.
pub(super) enum Passed {
    /// Go on at this cycle.
    Now(Cycle),
    /// Ask again at this cycle.
    Again(Cycle),
    /// The transaction was aborted: the cycle and the value for a0.
    Aborted(Cycle, u64),
}

impl System {
    /// Carries out the actions of a gate and takes its way.
    pub(super) fn pass(&mut self, core: CoreId, gate: Gate, out: Actions, at: Cycle) -> Passed {
        let at = self.carry_out(core, at, out);
        // What the design asked for may have evicted a line that could only leave by an abort.
        if let Some((cycle, code)) = self.take_abort(core) {
            return Passed::Aborted(cycle, code);
        }
        match gate {
            Gate::Done => Passed::Now(at),
            Gate::After(wait) => Passed::Now(self.resolve(wait, at)),
            Gate::Retry(wait) => Passed::Again(self.resolve(wait, at)),
            Gate::Abort(tx, why) => {
                let (cycle, code) = self.abort(core, tx, why, at);
                Passed::Aborted(cycle, code)
            }
        }
    }

    /// Asks the design until it lets the request through.
    pub(super) fn through(
        &mut self,
        core: CoreId,
        at: Cycle,
        mut ask: impl FnMut(&mut System, &Ctx, &mut Actions) -> Gate,
    ) -> Outcome {
        let mut at = at;
        loop {
            let mut out = self.actions();
            let cx = self.cx(core, at);
            let gate = ask(self, &cx, &mut out);
            match self.pass(core, gate, out, at) {
                Passed::Now(cycle) => return Outcome::Done(cycle),
                Passed::Again(cycle) => at = cycle,
                Passed::Aborted(cycle, code) => return Outcome::Aborted(cycle, code),
            }
            if self.halted {
                return Outcome::Done(at);
            }
        }
    }

    /// As [`System::through`], where an abort is noticed by the core after its instruction.
    pub(super) fn through_or_note_abort(
        &mut self,
        core: CoreId,
        at: Cycle,
        ask: impl FnMut(&mut System, &Ctx, &mut Actions) -> Gate,
    ) -> Cycle {
        match self.through(core, at, ask) {
            Outcome::Done(cycle) => cycle,
            Outcome::Aborted(cycle, code) => {
                self.aborts[core.0 as usize] = Some((cycle, code));
                cycle
            }
        }
    }
}
