//! Requests that end before they are done, because the transaction of their core was aborted or the machine stopped.

use crate::system::System;
use durasim_types::{CoreId, Cycle};

/// The end of a request that cannot be completed, with its cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The transaction that runs on the core was aborted. The core processes the abort at its next step.
    Aborted(Cycle),
    /// The machine has stopped.
    Halted(Cycle),
}

impl Lost {
    /// The cycle in which the request ended.
    #[inline]
    pub(super) fn at(self) -> Cycle {
        match self {
            Lost::Aborted(at) | Lost::Halted(at) => at,
        }
    }
}

impl System {
    /// Whether the transaction that runs on `core` has been aborted and its thread has not yet processed the abort.
    #[inline]
    pub fn is_aborted(&self, core: CoreId) -> bool {
        self.transactions.is_aborted(core)
    }

    /// Ends a request of `core` at `at` if its transaction has been aborted.
    #[inline]
    pub(super) fn unless_aborted(&self, core: CoreId, at: Cycle) -> Result<Cycle, Lost> {
        if self.is_aborted(core) { Err(Lost::Aborted(at)) } else { Ok(at) }
    }

    /// Ends a request at `at` if the machine has stopped.
    #[inline]
    pub(super) fn unless_halted(&self, at: Cycle) -> Result<Cycle, Lost> {
        if self.halted() { Err(Lost::Halted(at)) } else { Ok(at) }
    }
}
