//! The stalls of a core as slices of time, for a trace of the run. It is off unless asked for; then each stall costs one comparison
//! more.

use super::Core;
use super::stall_place::StallPlace;
use durasim_types::{Cycle, EventRoom, StallCause};
use std::ops::Range;

/// The counter that a cycle without a commit belongs to; see [`super::StallCycles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StallKind {
    /// The next instruction had not been fetched, decoded and renamed.
    FrontEnd,
    /// The oldest instruction was computing.
    Execution,
    /// System calls, threads that change, and instructions that empty the pipeline.
    System,
    /// A transaction was rolled back.
    Abort,
    /// An instruction of this kind waited for this.
    Wait(StallPlace, StallCause),
}

impl StallKind {
    /// The name of its counter in results; `structures` are those of the design.
    pub fn name(self, structures: &[&str]) -> String {
        match self {
            StallKind::FrontEnd => "front_end".to_owned(),
            StallKind::Execution => "execution".to_owned(),
            StallKind::System => "system".to_owned(),
            StallKind::Abort => "abort".to_owned(),
            StallKind::Wait(place, cause) => match cause {
                StallCause::Structure(number) => {
                    format!("{}.{}.{}", place.name(), cause.name(), structures[usize::from(number)])
                }
                _ => format!("{}.{}", place.name(), cause.name()),
            },
        }
    }
}

/// Cycles of a core without a commit that have the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallSlice {
    /// The reason.
    pub kind: StallKind,
    /// The first cycle.
    pub from: Cycle,
    /// The cycle after the last one.
    pub until: Cycle,
    /// Whether the counters at the end of the region of interest have them.
    pub is_in_region: bool,
}

/// Slices of a window of the run.
#[derive(Debug)]
struct Slices {
    window: Range<Cycle>,
    room: EventRoom,
    slices: Vec<StallSlice>,
    is_in_region: bool,
}

/// The slices so far, if they are requested. A copy of the core has none.
#[derive(Debug, Default)]
pub(super) struct StallTrace(Option<Box<Slices>>);

impl Clone for StallTrace {
    fn clone(&self) -> Self {
        StallTrace(None)
    }
}

impl StallTrace {
    /// Adds cycles that were counted.
    #[inline(always)]
    pub fn add(&mut self, kind: StallKind, from: Cycle, until: Cycle) {
        if let Some(slices) = &mut self.0 {
            slices.add(kind, from, until);
        }
    }
}

impl Slices {
    #[inline(never)]
    fn add(&mut self, kind: StallKind, from: Cycle, until: Cycle) {
        let (from, until) = (from.max(self.window.start), until.min(self.window.end));
        if from >= until {
            return;
        }
        let is_in_region = self.is_in_region;
        if let Some(last) = self.slices.last_mut()
            && (last.kind, last.until, last.is_in_region) == (kind, from, is_in_region)
        {
            last.until = until;
        } else if self.room.take() {
            self.slices.push(StallSlice { kind, from, until, is_in_region });
        }
    }

    /// Slices so far belong to no region, and those that follow do.
    fn begin_region(&mut self) {
        self.slices.iter_mut().for_each(|slice| slice.is_in_region = false);
        self.is_in_region = true;
    }
}

impl Core {
    /// Keeps the stalls of a window of the run from now on, as far as there is room. A program that marks no region of interest is
    /// one as a whole.
    pub fn start_stall_trace(&mut self, window: Range<Cycle>, room: EventRoom) {
        self.stalls.trace.0 = Some(Box::new(Slices { window, room, slices: Vec::new(), is_in_region: true }));
    }

    /// The region of interest has begun: counters start again from zero.
    pub(super) fn begin_traced_region(&mut self) {
        if let Some(slices) = &mut self.stalls.trace.0 {
            slices.begin_region();
        }
    }

    /// The region of interest has ended: counters were read.
    pub fn end_traced_region(&mut self) {
        if let Some(slices) = &mut self.stalls.trace.0 {
            slices.is_in_region = false;
        }
    }

    /// The stalls since then, in the order in which instructions committed; none are kept from now on.
    pub fn take_stall_trace(&mut self) -> Vec<StallSlice> {
        self.stalls.trace.0.take().map_or_else(Vec::new, |slices| slices.slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(room: u64) -> Slices {
        Slices { window: 10..100, room: EventRoom::new(room), slices: Vec::new(), is_in_region: true }
    }

    #[test]
    fn slices_are_cut_at_the_window_and_joined_where_they_touch() {
        let mut slices = traced(10);
        slices.add(StallKind::Execution, 0, 5);
        slices.add(StallKind::Execution, 5, 20);
        slices.add(StallKind::Execution, 20, 30);
        slices.add(StallKind::Execution, 31, 32);
        slices.add(StallKind::System, 32, 32);
        slices.add(StallKind::FrontEnd, 90, 110);
        let found: Vec<_> = slices.slices.iter().map(|s| (s.kind, s.from, s.until)).collect();
        let expected = [(StallKind::Execution, 10, 30), (StallKind::Execution, 31, 32), (StallKind::FrontEnd, 90, 100)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_region_that_begins_takes_what_came_before_out_of_it() {
        let mut slices = traced(10);
        slices.add(StallKind::Execution, 10, 20);
        slices.begin_region();
        slices.add(StallKind::Execution, 20, 30);
        let found: Vec<_> = slices.slices.iter().map(|s| (s.from, s.until, s.is_in_region)).collect();
        assert_eq!(found, [(10, 20, false), (20, 30, true)]);
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut slices = traced(1);
        slices.add(StallKind::Execution, 10, 20);
        slices.add(StallKind::Execution, 20, 30);
        assert!(!slices.room.is_exceeded(), "the second one is the first one continued");
        slices.add(StallKind::System, 30, 40);
        assert!(slices.room.is_exceeded());
        assert_eq!(slices.slices.len(), 1);
    }
}
