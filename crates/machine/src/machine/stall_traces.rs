//! The stalls of all cores as slices of time, for a trace of the run.

use super::Machine;
use durasim_core::{StallKind, StallSlice};
use durasim_types::{Cycle, EventRoom};
use std::ops::Range;

/// The stalls of a hardware thread.
#[derive(Clone, Debug)]
pub struct CoreStalls {
    /// Its name in statistics.
    pub core: String,
    /// Its stalls, in the order in which instructions committed.
    pub slices: Vec<StallSlice>,
}

impl Machine {
    /// Keeps the stalls of all cores in a window of the run from now on, as far as there is room.
    pub fn start_stall_traces(&mut self, window: &Range<Cycle>, room: &EventRoom) {
        self.cores.iter_mut().for_each(|core| core.start_stall_trace(window.clone(), room.clone()));
    }

    /// The stalls since then; none are kept from now on.
    pub fn take_stall_traces(&mut self) -> Vec<CoreStalls> {
        let taken: Vec<_> = self.cores.iter_mut().map(|core| core.take_stall_trace()).collect();
        let named = |(number, slices)| CoreStalls { core: self.name_of(number), slices };
        taken.into_iter().enumerate().map(named).collect()
    }

    /// The name of a kind of stalls in statistics, after `core.stalls.`.
    pub fn stall_name(&self, kind: StallKind) -> String {
        kind.name(self.system.structures())
    }
}
