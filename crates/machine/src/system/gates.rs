//! Requests that a design may hold up: asked again until it lets them through, or aborted.
//!
//! A request of a core that has to wait is suspended: other cores go on, the machine makes the request again when what it
//! waits for has come. Where a request cannot be left in its middle, it waits alone: only the memory system goes on.

use super::System;
use durasim_core::Outcome;
use durasim_design::{Actions, Ctx, Gate, Signal, Token, Wait};
use durasim_types::{CoreId, Cycle};
use serde::{Deserialize, Serialize};

/// Who goes on while a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Everybody: the core is told that its request is pending.
    Core,
    /// The memory system only.
    Alone,
}

/// What a suspended request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Awaited {
    Time,
    Acked(Token),
    Signal(Signal),
    /// Acknowledgements of the core's cache-block operations.
    Cleans,
}

/// A request of a core that is suspended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Suspension {
    awaited: Awaited,
    /// The hook has run: the request is let through when it is made again.
    passed: bool,
    since: Cycle,
    over_at: Option<Cycle>,
}

/// What follows from one answer of a design.
pub(super) enum Passed {
    /// Go on at this cycle.
    Now(Cycle),
    /// Ask again at this cycle.
    Again(Cycle),
    /// The request is suspended.
    Suspended,
    /// The transaction that runs on the core was aborted.
    Aborted,
}

impl System {
    /// Carries out the actions of a gate and takes its way.
    pub(super) fn pass(&mut self, core: CoreId, gate: Gate, out: Actions, at: Cycle, patience: Patience) -> Passed {
        let at = if out.is_empty() {
            self.spare.push(out);
            at
        } else {
            self.carry_out(core, at, out)
        };
        // What the design asked for may have evicted a line that could only leave by an abort.
        if self.is_aborted(core) {
            return Passed::Aborted;
        }
        match gate {
            Gate::Done => Passed::Now(at),
            Gate::After(Wait::Cycles(n)) => Passed::Now(at + n),
            Gate::After(wait) if patience == Patience::Core => self.suspend(core, wait, at, true),
            Gate::After(wait) => Passed::Now(self.resolve(wait, at)),
            Gate::Retry(wait) if patience == Patience::Core => self.suspend(core, wait, at, false),
            Gate::Retry(wait) => Passed::Again(self.resolve(wait, at)),
            Gate::Abort(tx, why) => {
                let at = self.abort(tx, why, at);
                if self.is_aborted(core) { Passed::Aborted } else { Passed::Again(at) }
            }
        }
    }

    /// Asks the design until it lets the request through.
    pub(super) fn through(
        &mut self,
        core: CoreId,
        at: Cycle,
        patience: Patience,
        mut ask: impl FnMut(&mut System, &Ctx, &mut Actions) -> Gate,
    ) -> Outcome {
        if patience == Patience::Core && self.take_suspension(core) {
            return Outcome::Done(at);
        }
        let mut at = at;
        loop {
            let mut out = self.actions();
            let cx = self.cx(core, at);
            let gate = ask(self, &cx, &mut out);
            match self.pass(core, gate, out, at, patience) {
                Passed::Now(cycle) => return Outcome::Done(cycle),
                Passed::Again(cycle) => at = cycle,
                Passed::Suspended => return Outcome::Pending,
                Passed::Aborted => {
                    let (cycle, code) = self.take_abort(core).expect("the abort was just seen");
                    return Outcome::Aborted(cycle, code);
                }
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
        mut ask: impl FnMut(&mut System, &Ctx, &mut Actions) -> Gate,
    ) -> Cycle {
        let mut at = at;
        loop {
            let mut out = self.actions();
            let cx = self.cx(core, at);
            let gate = ask(self, &cx, &mut out);
            match self.pass(core, gate, out, at, Patience::Alone) {
                Passed::Now(cycle) => return cycle,
                Passed::Again(cycle) => at = cycle,
                Passed::Suspended => unreachable!("nobody else acts"),
                Passed::Aborted => return at,
            }
            if self.halted {
                return at;
            }
        }
    }

    pub(super) fn suspend(&mut self, core: CoreId, wait: Wait, at: Cycle, passed: bool) -> Passed {
        let (awaited, over_at) = match wait {
            Wait::Cycles(n) => (Awaited::Time, Some(at + n)),
            Wait::Acked(token) => {
                let over = !self.outstanding.contains_key(&token.0);
                (Awaited::Acked(token), over.then_some(at))
            }
            Wait::Signal(signal) => (Awaited::Signal(signal), self.raised.remove(&signal.0).then_some(at)),
        };
        if over_at == Some(at) && !passed {
            self.stand_still(at);
        }
        self.suspended[core.0 as usize] = Some(Suspension { awaited, passed, since: at, over_at });
        Passed::Suspended
    }

    /// A fence of `core` waits for the acknowledgements of its cache-block operations.
    pub(super) fn suspend_for_cleans(&mut self, core: CoreId, at: Cycle) {
        let index = core.0 as usize;
        let over_at = (self.cleans[index] == 0).then_some(self.clean_acks[index]);
        self.suspended[index] = Some(Suspension { awaited: Awaited::Cleans, passed: false, since: at, over_at });
    }

    pub(super) fn is_suspended(&self, core: CoreId) -> bool {
        self.suspended[core.0 as usize].is_some()
    }

    /// Whether any core waits for something that only the memory system can bring.
    pub fn anyone_waits(&self) -> bool {
        self.suspended.iter().flatten().any(|s| s.over_at.is_none())
    }

    /// Takes a suspension away; whether the request has passed its gate.
    pub(super) fn take_suspension(&mut self, core: CoreId) -> bool {
        self.suspended[core.0 as usize].take().is_some_and(|s| s.passed)
    }

    pub(super) fn forget_suspension(&mut self, core: CoreId) {
        self.suspended[core.0 as usize] = None;
    }

    /// When the suspended request of `core` can be made again, if that is known.
    pub fn resumes_at(&self, core: CoreId) -> Option<Cycle> {
        self.suspended[core.0 as usize].and_then(|s| s.over_at.map(|at| at.max(s.since)))
    }

    /// Lets the memory system alone go on until the suspended request of `core` can be made again.
    pub fn wait_alone(&mut self, core: CoreId) -> Cycle {
        let since = self.suspended[core.0 as usize].map_or(0, |s| s.since);
        let now = self.wait_until(since, "a request of a core waits", |s| s.resumes_at(core).is_some());
        self.resumes_at(core).unwrap_or(now)
    }

    fn end_suspensions(&mut self, at: Cycle, over: impl Fn(usize, Awaited) -> Option<Cycle>) {
        for (index, suspension) in self.suspended.iter_mut().enumerate() {
            if let Some(suspension) = suspension.as_mut().filter(|s| s.over_at.is_none()) {
                suspension.over_at = over(index, suspension.awaited).map(|over| over.max(at));
            }
        }
    }

    /// All writes under `token` are acknowledged.
    pub(super) fn token_is_acked(&mut self, token: Token, at: Cycle) {
        self.end_suspensions(at, |_, awaited| (awaited == Awaited::Acked(token)).then_some(at));
    }

    /// All cache-block operations of `core` are acknowledged, the last one reaches it at `home`.
    pub(super) fn cleans_are_acked(&mut self, core: CoreId, home: Cycle) {
        self.end_suspensions(0, |index, awaited| {
            (index == core.0 as usize && awaited == Awaited::Cleans).then_some(home)
        });
    }

    /// A design raises a signal: for those who wait, else for the next who will.
    pub(super) fn raise(&mut self, signal: Signal, at: Cycle) {
        let waits = |s: &Suspension| s.awaited == Awaited::Signal(signal) && s.over_at.is_none();
        if self.suspended.iter().flatten().any(waits) {
            self.end_suspensions(at, |_, awaited| (awaited == Awaited::Signal(signal)).then_some(at));
        } else {
            self.raised.insert(signal.0);
        }
    }

    /// The transaction that runs on `core` was aborted: what it waits for does not matter any more.
    pub(super) fn interrupt(&mut self, core: CoreId, at: Cycle) {
        if let Some(suspension) = &mut self.suspended[core.0 as usize] {
            suspension.over_at = Some(at);
        }
    }
}
