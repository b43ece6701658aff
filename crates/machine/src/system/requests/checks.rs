//! Requests of cores for checks of accesses and changes of filters (P-INSPECT, MICRO 2020, sections V-C and VI-C).

use super::lost::Lost;
use crate::parts::caches::AccessMode;
use crate::parts::work_list::Task;
use crate::statistics::filter_statistics::FilterStatistics;
use crate::system::System;
use durasim_contract::LevelId;
use durasim_types::{
    CheckRegisters, CheckVerdict, CheckedAccess, CoreId, Cycle, Error, FILTER_LINES, FilterOperation, LineAddr,
    SEED_LINE,
};

/// Attempts to bring all lines of filters. Each time the oldest lines of a set make room, so a level with room for them
/// has them all soon, whichever lines leave.
const ATTEMPTS: usize = 64;

impl System {
    /// Whether the machine has checked accesses and stores that persist.
    pub fn has_checks(&self) -> bool {
        self.filters.exist()
    }

    /// Cycles from a check that asks for a handler to the handler, beyond those of a misprediction.
    pub fn handler_entry_cycles(&self) -> Cycle {
        self.filters.handler_entry_cycles()
    }

    /// Contents of filters, and their counters.
    pub(crate) fn filter_statistics(&self) -> &FilterStatistics {
        self.filters.statistics()
    }

    /// The filters have been in use elsewhere: counters continue from there.
    pub(crate) fn put_filter_statistics(&mut self, statistics: FilterStatistics) {
        self.filters.put_statistics(statistics);
    }

    /// Whether `core` can check an access now. If not, [`System::resumes_at`] returns when.
    pub fn may_check(&mut self, core: CoreId, at: Cycle) -> bool {
        self.filters.may_check(core, at)
    }

    /// Whether `core`, whose store buffer is empty, can change filters now. If not, [`System::resumes_at`] returns when, and
    /// no other core begins to look at them before.
    pub fn may_change_filters(&mut self, core: CoreId, at: Cycle) -> bool {
        self.filters.may_change(core, at)
    }

    /// Since when `core` waits to look at filters, or to change them.
    pub fn waits_for_filters_since(&self, core: CoreId) -> Option<Cycle> {
        self.filters.waits_since(core)
    }

    /// The thread on a core gives it up: an instruction that waited is executed again later, maybe elsewhere.
    pub fn leave_filters(&mut self, core: CoreId) {
        self.filters.leave(core);
    }

    /// A store that the hardware has checked enters the store buffer of a core.
    pub fn checked_store_enters(&mut self, core: CoreId) {
        self.filters.store_enters(core);
    }

    /// Checks an access against the filters that begin with the line `first`: what becomes of it, and the cycle in which that
    /// is known. It overlaps the access.
    pub fn check(
        &mut self,
        core: CoreId,
        first: LineAddr,
        registers: &CheckRegisters,
        access: &CheckedAccess,
        at: Cycle,
    ) -> (CheckVerdict, Cycle) {
        let ready = self.bring_filters(core, first, AccessMode::Read, at);
        let Some((lines, _)) = self.caches.filters(core, first) else {
            // The machine has stopped on the way.
            return (CheckVerdict::Hardware { persistent: false }, ready);
        };
        let verdict = self.filters.check(registers, access, &lines);
        (verdict, ready + self.filters.look_up_cycles())
    }

    /// A core that has executed `instructions` so far makes a change, with which a sweep of the pointer update thread may
    /// begin or end. It is counted.
    pub(crate) fn note_sweep(&mut self, core: CoreId, operation: FilterOperation, instructions: u64) {
        self.filters.note_sweep(core, operation, instructions);
    }

    /// Changes the filters that begin with the line `first`: the value for the destination register, and the cycle in which
    /// the lines are free again.
    pub fn change_filters(
        &mut self,
        core: CoreId,
        first: LineAddr,
        operation: FilterOperation,
        object: u64,
        at: Cycle,
    ) -> (u64, Cycle) {
        let owned = self.bring_filters(core, first, AccessMode::Write, at);
        let Some((lines, _)) = self.caches.filters(core, first) else { return (0, owned) };
        let before = lines.map(|line| *line);
        let (after, value) = self.filters.change(operation, object, before);
        let done = owned + self.filters.look_up_cycles();
        self.caches.write_filters(core, first, &before, &after, done);
        self.filters.end_change(done);
        (value, done)
    }

    /// Brings all lines of filters into the buffer of a core; the cycle in which they are there. One of them can take
    /// another one away, where room is made below: it is asked for again then.
    fn bring_filters(&mut self, core: CoreId, first: LineAddr, want: AccessMode, at: Cycle) -> Cycle {
        let mut at = self.point_filters_to(core, first, at);
        for _ in 0..ATTEMPTS {
            if self.halted() {
                return at;
            }
            if let Some((_, ready)) = self.caches.filters(core, first)
                && (want == AccessMode::Read || self.owns_filters(core, first))
            {
                return ready.max(at);
            }
            let line = |index: usize| LineAddr(first.0 + index as u64);
            let (mut asked, mut done) = (at, at);
            if want == AccessMode::Write {
                asked = self.bring_filter_line(core, line(SEED_LINE), want, at).unwrap_or_else(Lost::at);
                done = asked;
            }
            for index in (0..FILTER_LINES).filter(|&index| want == AccessMode::Read || index != SEED_LINE) {
                let brought = self.bring_filter_line(core, line(index), want, asked);
                done = done.max(brought.unwrap_or_else(Lost::at));
                asked += 1;
            }
            at = done;
        }
        let what = format!(
            "the caches below the L1D of core {} cannot hold {FILTER_LINES} lines of filters at a time",
            core.0
        );
        self.observers.fail(Error::Stuck { cycle: at, what });
        at
    }

    fn owns_filters(&self, core: CoreId, first: LineAddr) -> bool {
        (0..FILTER_LINES).all(|index| self.caches.owns(core, LineAddr(first.0 + index as u64)))
    }

    /// The buffer of a core is for the filters that begin with this line from now on: what it has of others goes down.
    fn point_filters_to(&mut self, core: CoreId, first: LineAddr, at: Cycle) -> Cycle {
        let before = self.caches.filter_base(core);
        if before == Some(first) {
            return at;
        }
        self.caches.set_filter_base(core, first);
        let Some(before) = before else { return at };
        let to = self.caches.levels().below(LevelId::L1d).expect("the L1D is not the last level");
        let mut at = at;
        for index in 0..FILTER_LINES {
            let line = LineAddr(before.0 + index as u64);
            if self.caches.in_filter_buffer(core, line).is_some() {
                self.caches.pin(line);
                at = self.complete(Task::Move { from: LevelId::FilterBuffer, to, core, line }, at);
                self.caches.unpin();
            }
        }
        at
    }
}
