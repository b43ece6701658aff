//! Requests that wait while the other cores continue: the machine makes each again when what it waits for has come.

use super::Agenda;
use durasim_contract::{Signal, Token, Wait};
use durasim_types::{CoreId, Cycle};
use serde::{Deserialize, Serialize};

/// Condition of a suspended request.
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

impl Agenda {
    /// Suspends the request of `core`, whose hook has run if it has `passed`. Whether the wait is over already.
    pub(crate) fn suspend(&mut self, core: CoreId, wait: Wait, at: Cycle, passed: bool) -> bool {
        let (awaited, over_at) = match wait {
            Wait::Cycles(n) => (Awaited::Time, Some(at + n)),
            Wait::Acked(token) => (Awaited::Acked(token), (!self.is_outstanding(token)).then_some(at)),
            Wait::Signal(signal) => (Awaited::Signal(signal), self.take_signal(signal).then_some(at)),
        };
        self.suspended[core.0 as usize] = Some(Suspension { awaited, passed, since: at, over_at });
        over_at == Some(at)
    }

    /// A fence of `core` waits for the acknowledgements of its cache-block operations.
    pub(crate) fn suspend_for_cleans(&mut self, core: CoreId, at: Cycle) {
        let index = core.0 as usize;
        let over_at = (self.cleans[index] == 0).then_some(self.clean_acks[index]);
        self.suspended[index] = Some(Suspension { awaited: Awaited::Cleans, passed: false, since: at, over_at });
    }

    pub(crate) fn is_suspended(&self, core: CoreId) -> bool {
        self.suspended[core.0 as usize].is_some()
    }

    pub(crate) fn is_any_suspended(&self) -> bool {
        self.suspended.iter().any(Option::is_some)
    }

    /// Whether any core waits for something that only the memory system can bring.
    pub(crate) fn has_waiters(&self) -> bool {
        self.suspended.iter().flatten().any(|s| s.over_at.is_none())
    }

    /// Changes whenever it becomes known when a suspended request can be made again.
    pub(crate) fn resumptions(&self) -> u64 {
        self.resumptions
    }

    /// Takes a suspension away; whether the request has passed its gate.
    pub(crate) fn take_suspension(&mut self, core: CoreId) -> bool {
        self.suspended[core.0 as usize].take().is_some_and(|s| s.passed)
    }

    #[inline]
    pub(crate) fn forget_suspension(&mut self, core: CoreId) {
        self.suspended[core.0 as usize] = None;
    }

    /// Cycle in which the suspended request of `core` can be made again, if that is known.
    pub(crate) fn resumes_at(&self, core: CoreId) -> Option<Cycle> {
        self.suspended[core.0 as usize].and_then(|s| s.over_at.map(|at| at.max(s.since)))
    }

    /// Since when the request of `core` is suspended; 0 if it is not.
    pub(crate) fn suspended_since(&self, core: CoreId) -> Cycle {
        self.suspended[core.0 as usize].map_or(0, |s| s.since)
    }

    fn end_suspensions(&mut self, at: Cycle, over: impl Fn(usize, Awaited) -> Option<Cycle>) {
        for (index, suspension) in self.suspended.iter_mut().enumerate() {
            if let Some(suspension) = suspension.as_mut().filter(|s| s.over_at.is_none()) {
                suspension.over_at = over(index, suspension.awaited).map(|over| over.max(at));
                self.resumptions += u64::from(suspension.over_at.is_some());
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

    /// A design raises a signal: for the requests that wait, else for the next one that will.
    pub(crate) fn raise(&mut self, signal: Signal, at: Cycle) {
        let waits = |s: &Suspension| s.awaited == Awaited::Signal(signal) && s.over_at.is_none();
        if self.suspended.iter().flatten().any(waits) {
            self.end_suspensions(at, |_, awaited| (awaited == Awaited::Signal(signal)).then_some(at));
        } else {
            self.raised.insert(signal.0);
        }
    }

    /// The transaction that runs on `core` was aborted: what it waits for does not matter any more.
    pub(crate) fn interrupt(&mut self, core: CoreId, at: Cycle) {
        if let Some(suspension) = &mut self.suspended[core.0 as usize] {
            suspension.over_at = Some(at);
            self.resumptions += 1;
        }
    }
}
