//! Cycles in which a core commits nothing, by the instruction at the head of the reorder buffer and the cause of its wait.
//!
//! Instructions are taken in program order, so each one is at the head from the cycle after the commit before it until its
//! own. Of these cycles, those until it could have committed at the earliest after its dispatch belong to the front end, or to
//! the store queue if dispatch waited for an entry of it; the rest is its execution, or its wait for the memory system. The
//! port names the causes of that ([`Port::explain_wait`]).

use super::Core;
use super::stall_place::StallPlace;
use super::stall_trace::{StallKind, StallTrace};
use crate::Port;
use durasim_types::{Cycle, LineAddr, StallCause, StallSegment};
use serde::{Deserialize, Serialize};

type CyclesByCause = [u64; StallCause::COUNT];

/// Cycles in which nothing committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallCycles {
    /// The reorder buffer was empty, and the front end had not brought the next instruction.
    pub front_end: u64,
    /// The oldest instruction was computing.
    pub execution: u64,
    /// System calls, threads that change, and instructions that empty the pipeline.
    pub system: u64,
    /// Transactions that aborted were rolled back.
    pub abort: u64,
    waits: [CyclesByCause; StallPlace::ALL.len()],
}

impl StallCycles {
    /// The cycles of a place that have a cause.
    pub fn of(&self, place: StallPlace, cause: StallCause) -> u64 {
        self.waits[place as usize][cause.index()]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        let waits: u64 = self.waits.iter().flatten().sum();
        self.front_end + self.execution + self.system + self.abort + waits
    }

    /// Adds those of another core.
    pub fn add(&mut self, other: &StallCycles) {
        self.front_end += other.front_end;
        self.execution += other.execution;
        self.system += other.system;
        self.abort += other.abort;
        for (sum, cycles) in self.waits.iter_mut().flatten().zip(other.waits.iter().flatten()) {
            *sum += cycles;
        }
    }
}

/// Adds the cycles of a wait to their causes, and what no segment explains to another one.
struct Distribution<'a> {
    into: &'a mut CyclesByCause,
    trace: WaitTrace<'a>,
    at: Cycle,
    until: Cycle,
    otherwise: StallCause,
}

/// The trace of the waits at a place. Their cycles count so much later there.
struct WaitTrace<'a> {
    trace: &'a mut StallTrace,
    place: StallPlace,
    later_cycles: Cycle,
}

impl WaitTrace<'_> {
    #[inline]
    fn add(&mut self, cause: StallCause, from: Cycle, until: Cycle) {
        self.trace.add(StallKind::Wait(self.place, cause), from + self.later_cycles, until + self.later_cycles);
    }
}

impl<'a> Distribution<'a> {
    fn new(
        into: &'a mut CyclesByCause,
        trace: WaitTrace<'a>,
        from: Cycle,
        until: Cycle,
        otherwise: StallCause,
    ) -> Self {
        Distribution { into, trace, at: from, until, otherwise }
    }

    #[inline]
    fn add(&mut self, segment: StallSegment) {
        let (begin, end) = (segment.from.max(self.at), segment.until.min(self.until));
        if begin < end {
            self.into[self.otherwise.index()] += begin - self.at;
            self.into[segment.cause.index()] += end - begin;
            self.trace.add(self.otherwise, self.at, begin);
            self.trace.add(segment.cause, begin, end);
            self.at = end;
        }
    }

    #[inline]
    fn end(mut self) {
        self.into[self.otherwise.index()] += self.until.saturating_sub(self.at);
        self.trace.add(self.otherwise, self.at, self.until);
    }
}

/// Counts the cycles of one core.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StallCounter {
    pub cycles: StallCycles,
    #[serde(skip)]
    pub trace: StallTrace,
    /// Cycles from dispatch to the earliest commit.
    refill_cycles: Cycle,
    /// Cycles from completion to commit.
    commit_cycles: Cycle,
    l1d_latency_cycles: Cycle,
}

impl StallCounter {
    pub(super) fn new(complete_to_commit_cycles: Cycle, l1d_latency_cycles: Cycle) -> Self {
        StallCounter {
            refill_cycles: 1 + complete_to_commit_cycles,
            commit_cycles: complete_to_commit_cycles,
            l1d_latency_cycles,
            ..StallCounter::default()
        }
    }

    /// The front end's part of the cycles between the commits `before` and `committed` of two instructions; the
    /// second was dispatched in `dispatched`; where the rest begins.
    #[inline(always)]
    fn until_dispatched(&self, before: Cycle, committed: Cycle, dispatched: Cycle) -> Cycle {
        (dispatched + self.refill_cycles).clamp(before + 1, committed)
    }

    /// An instruction that computes has committed, cycles after the commit before it, `before`. A call, since most
    /// instructions have nothing to count, and the loop that executes them needs the registers.
    #[inline(never)]
    pub(super) fn computed(&mut self, before: Cycle, committed: Cycle, dispatched: Cycle) {
        let rest = self.until_dispatched(before, committed, dispatched);
        self.cycles.front_end += rest - before - 1;
        self.cycles.execution += committed - rest;
        self.trace.add(StallKind::FrontEnd, before + 1, rest);
        self.trace.add(StallKind::Execution, rest, committed);
    }

    /// A store or cache-block operation has committed that waited for its translation, `before` being the commit before it.
    #[inline(never)]
    pub(super) fn translated(&mut self, before: Cycle, committed: Cycle, dispatched: Cycle, wait: StallSegment) {
        let rest = self.until_dispatched(before, committed, dispatched);
        self.cycles.front_end += rest - before - 1;
        // The commit follows so much later on the moments that count.
        let later = |cycle: Cycle| (cycle + self.commit_cycles).clamp(rest, committed);
        let (from, until) = (later(wait.from), later(wait.until));
        self.cycles.waits[StallPlace::Store as usize][wait.cause.index()] += until - from;
        self.cycles.execution += committed - rest - (until - from);
        self.trace.add(StallKind::FrontEnd, before + 1, rest);
        self.trace.add(StallKind::Execution, rest, from);
        self.trace.add(StallKind::Wait(StallPlace::Store, wait.cause), from, until);
        self.trace.add(StallKind::Execution, until, committed);
    }

    /// A load has committed whose access began in `executed`, cycles after the commit before it, `before`. False: it took
    /// longer than a hit of the L1D, and is not counted here.
    #[inline(never)]
    pub(super) fn hit(&mut self, before: Cycle, committed: Cycle, dispatched: Cycle, executed: Cycle) -> bool {
        if committed > executed + self.l1d_latency_cycles + self.commit_cycles {
            return false;
        }
        let rest = self.until_dispatched(before, committed, dispatched);
        self.cycles.front_end += rest - before - 1;
        self.cycles.waits[StallPlace::Load as usize][StallCause::PrivateCaches.index()] += committed - rest;
        self.trace.add(StallKind::FrontEnd, before + 1, rest);
        self.trace.add(StallKind::Wait(StallPlace::Load, StallCause::PrivateCaches), rest, committed);
        true
    }
}

impl Core {
    /// A load from `line` has committed.
    #[inline(never)]
    pub(super) fn count_load_stall<P: Port>(
        &mut self,
        port: &mut P,
        line: LineAddr,
        before: Cycle,
        committed: Cycle,
        dispatched: Cycle,
    ) {
        self.count_load(port, line, before, committed, dispatched, None);
    }

    /// Counts the stall of a load that waited for its translation.
    #[inline(never)]
    pub(super) fn count_translated_load_stall<P: Port>(
        &mut self,
        port: &mut P,
        line: LineAddr,
        before: Cycle,
        committed: Cycle,
        dispatched: Cycle,
        translated: StallSegment,
    ) {
        self.count_load(port, line, before, committed, dispatched, Some(translated));
    }

    #[inline(always)]
    fn count_load<P: Port>(
        &mut self,
        port: &mut P,
        line: LineAddr,
        before: Cycle,
        committed: Cycle,
        dispatched: Cycle,
        translated: Option<StallSegment>,
    ) {
        let StallCounter { cycles, trace, commit_cycles, .. } = &mut self.stalls;
        let rest = (dispatched + 1 + *commit_cycles).clamp(before + 1, committed);
        cycles.front_end += rest - before - 1;
        trace.add(StallKind::FrontEnd, before + 1, rest);
        let row = &mut cycles.waits[StallPlace::Load as usize];
        // The commit follows so much later on the moments that count.
        let (from, until) = (rest.saturating_sub(*commit_cycles), committed.saturating_sub(*commit_cycles));
        let traced = WaitTrace { trace, place: StallPlace::Load, later_cycles: committed - until };
        let mut wait = Distribution::new(row, traced, from, until, StallCause::PrivateCaches);
        if let Some(translated) = translated {
            wait.add(translated);
        }
        port.explain_wait(self.unit.id, Some(line), from, until, |segment| wait.add(segment));
        wait.end();
    }

    /// A store, marker or cache-block operation has committed whose dispatch waited for room in the store queue until
    /// `room`.
    #[inline(never)]
    pub(super) fn count_store_queue_stall(&mut self, before: Cycle, committed: Cycle, dispatched: Cycle, room: Cycle) {
        let rest = self.stalls.until_dispatched(before, committed, dispatched);
        let StallCounter { cycles, trace, .. } = &mut self.stalls;
        let row = &mut cycles.waits[StallPlace::StoreQueue as usize];
        let free = room.clamp(before + 1, rest);
        let traced = WaitTrace { trace, place: StallPlace::StoreQueue, later_cycles: 0 };
        let mut wait = Distribution::new(row, traced, before + 1, free, StallCause::StoreBuffer);
        self.unit.buffer.waits(before + 1).for_each(|segment| wait.add(segment));
        wait.end();
        row[StallCause::StoreBuffer.index()] += rest - free;
        cycles.execution += committed - rest;
        trace.add(StallKind::Wait(StallPlace::StoreQueue, StallCause::StoreBuffer), free, rest);
        trace.add(StallKind::Execution, rest, committed);
    }

    /// An atomic operation on `line` has committed, before which the store buffer had to be empty.
    #[inline(never)]
    pub(super) fn count_atomic_stall<P: Port>(
        &mut self,
        port: &mut P,
        line: Option<LineAddr>,
        before: Cycle,
        committed: Cycle,
        translated: Option<StallSegment>,
    ) {
        let Some(wait) = translated.filter(|wait| wait.from > before) else {
            return self.count_wait(port, StallPlace::Atomic, line, before + 1, committed);
        };
        let (from, until) = (wait.from.min(committed), wait.until.min(committed));
        self.stalls.cycles.waits[StallPlace::Atomic as usize][wait.cause.index()] += until - from;
        self.count_wait(port, StallPlace::Atomic, line, before + 1, from);
        self.stalls.trace.add(StallKind::Wait(StallPlace::Atomic, wait.cause), from, until);
        self.count_wait(port, StallPlace::Atomic, line, until, committed);
    }

    /// The youngest instruction, which committed in `committed`, leaves the reorder buffer only in `done`: it waits for the
    /// store buffer to be empty, then for the port.
    #[inline(never)]
    pub(super) fn count_wait<P: Port>(
        &mut self,
        port: &mut P,
        place: StallPlace,
        line: Option<LineAddr>,
        committed: Cycle,
        done: Cycle,
    ) {
        let StallCounter { cycles, trace, .. } = &mut self.stalls;
        let row = &mut cycles.waits[place as usize];
        let left = self.unit.buffer.left().clamp(committed, done.max(committed));
        let traced = WaitTrace { trace, place, later_cycles: 0 };
        let mut wait = Distribution::new(row, traced, committed, left, StallCause::StoreBuffer);
        self.unit.buffer.waits(committed).for_each(|segment| wait.add(segment));
        wait.end();
        let otherwise = if line.is_some() { StallCause::PrivateCaches } else { StallCause::Commit };
        let traced = WaitTrace { trace, place, later_cycles: 0 };
        let mut wait = Distribution::new(row, traced, left, done, otherwise);
        port.explain_wait(self.unit.id, line, left, done, |segment| wait.add(segment));
        wait.end();
    }

    /// The pipeline is stopped until `cycle`, for a reason outside of the memory system.
    pub(super) fn count_system(&mut self, cycle: Cycle) {
        let from = self.window.commit_cycle();
        self.stalls.cycles.system += cycle.saturating_sub(from);
        self.stalls.trace.add(StallKind::System, from, cycle);
    }

    /// Counts the stall of an abort.
    pub(super) fn count_abort(&mut self, cycle: Cycle) {
        let from = self.window.commit_cycle();
        self.stalls.cycles.abort += cycle.saturating_sub(from);
        self.stalls.trace.add(StallKind::Abort, from, cycle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(from: Cycle, until: Cycle, cause: StallCause) -> StallSegment {
        StallSegment { from, until, cause }
    }

    fn distribute(row: &mut CyclesByCause, segments: &[StallSegment], from: Cycle, until: Cycle) {
        let mut trace = StallTrace::default();
        let traced = WaitTrace { trace: &mut trace, place: StallPlace::Load, later_cycles: 0 };
        let mut wait = Distribution::new(row, traced, from, until, StallCause::Llc);
        segments.iter().for_each(|&segment| wait.add(segment));
        wait.end();
    }

    #[test]
    fn what_no_segment_explains_has_the_other_cause() {
        let mut row = [0; StallCause::COUNT];
        let segments =
            [segment(5, 12, StallCause::Path), segment(12, 15, StallCause::Queue), segment(18, 40, StallCause::Pmem)];
        distribute(&mut row, &segments, 10, 30);
        let of = |cause: StallCause| row[cause.index()];
        assert_eq!(
            (of(StallCause::Path), of(StallCause::Queue), of(StallCause::Llc), of(StallCause::Pmem)),
            (2, 3, 3, 12)
        );
        assert_eq!(row.iter().sum::<u64>(), 20);
    }

    #[test]
    fn segments_that_overlap_are_counted_once() {
        let mut row = [0; StallCause::COUNT];
        let segments = [segment(0, 20, StallCause::Path), segment(10, 30, StallCause::Queue)];
        distribute(&mut row, &segments, 0, 25);
        assert_eq!((row[StallCause::Path.index()], row[StallCause::Queue.index()]), (20, 5));
    }

    #[test]
    fn the_cycles_of_an_instruction_that_computes_are_those_of_the_front_end_and_its_own() {
        let mut counter = StallCounter::new(2, 4);
        // Dispatched in cycle 20, it could have committed in cycle 23.
        counter.computed(10, 30, 20);
        assert_eq!((counter.cycles.front_end, counter.cycles.execution), (12, 7));
        // Dispatched late, it commits as early as it can.
        counter.computed(30, 35, 32);
        assert_eq!((counter.cycles.front_end, counter.cycles.execution), (16, 7));
    }
}
