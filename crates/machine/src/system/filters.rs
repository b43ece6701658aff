//! Checks of accesses, and changes of the filters that they look at (P-INSPECT, MICRO 2020, sections V-C and VI-C).
//!
//! The lines of the filters are ordinary lines of DRAM, which a buffer beside each L1D holds (`caches/filters.rs`). A check
//! needs all nine of them. Who changes filters owns all nine, the seed line first, which decides between two that want to.
//! Both are one step of the machine: what hardware does by locking lines and by reading them again is a wait here.
//!
//! A check happens when its instruction is executed, and its store is made later, when it leaves the store buffer. An object
//! that begins to forward in between would lose the store. So a change waits until all stores of other cores that the
//! hardware has checked have left, and no other core checks an access meanwhile.

use super::System;
use super::caches::AccessMode;
use super::work::Task;
use crate::filter_statistics::FilterStatistics;
use durasim_design::{ActiveFault, Checks, LevelId, check_faults};
use durasim_types::{
    CheckRegisters, CheckVerdict, CheckedAccess, CoreId, Cycle, FILTER_LINES, FilterOperation, Line, LineAddr,
    SEED_LINE, Stats,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a core waits for before an instruction can look at filters, and since when.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct FilterWait {
    changes: bool,
    since: Cycle,
}

super::part::part! {
    /// The part of the memory system that knows who looks at filters and who changes them.
    pub(crate) struct Filters saved as SavedFilters {
        saved {
            /// Stores in the store buffer of each core that the hardware has checked.
            checked_stores: Vec<u32>,
            /// When the last of these left, of any core.
            stores_left: Cycle,
            /// The core that changes filters, or waits to.
            changing: Option<CoreId>,
            /// When the last change was complete.
            changed: Cycle,
            waiting: Vec<Option<FilterWait>>,
            /// Instructions that waited.
            waits: u64,
            statistics: FilterStatistics,
        }
        kept {
            /// On machines whose design has checks.
            checks: Option<Arc<dyn Checks>>,
            fault: ActiveFault,
        }
    }
}

impl Filters {
    pub(super) fn new(checks: Option<Arc<dyn Checks>>, cores: usize, fault: ActiveFault) -> Self {
        Filters {
            checked_stores: vec![0; cores],
            stores_left: 0,
            changing: None,
            changed: 0,
            waiting: vec![None; cores],
            waits: 0,
            statistics: FilterStatistics::default(),
            checks,
            fault,
        }
    }

    pub(super) fn fork(&self) -> Self {
        Filters {
            checked_stores: self.checked_stores.clone(),
            stores_left: self.stores_left,
            changing: self.changing,
            changed: self.changed,
            waiting: self.waiting.clone(),
            waits: self.waits,
            statistics: self.statistics.clone(),
            checks: self.checks.clone(),
            fault: self.fault,
        }
    }

    pub(super) fn exist(&self) -> bool {
        self.checks.is_some()
    }

    fn checks(&self) -> &Arc<dyn Checks> {
        self.checks.as_ref().expect("only a machine with checks is asked for one")
    }

    /// Whether no other core changes filters.
    fn is_free_for(&self, core: CoreId) -> bool {
        self.changing.is_none_or(|changing| changing == core)
    }

    /// Whether no store that another core's hardware has checked waits in its store buffer.
    fn others_have_left(&self, core: CoreId) -> bool {
        let mut others = self.checked_stores.iter().enumerate().filter(|&(other, _)| other != core.0 as usize);
        others.all(|(_, stores)| *stores == 0) || self.fault.is(check_faults::FILTERS_GIVEN_UP_EARLY)
    }

    fn wait(&mut self, core: CoreId, changes: bool, at: Cycle) -> bool {
        self.waits += u64::from(self.waiting[core.0 as usize].is_none());
        self.waiting[core.0 as usize] = Some(FilterWait { changes, since: at });
        false
    }

    /// When the instruction of a core that waits can be executed, if that is known. The outer `None`: it does not wait.
    pub(super) fn resumes_at(&self, core: CoreId) -> Option<Option<Cycle>> {
        let wait = self.waiting[core.0 as usize]?;
        let is_over = self.is_free_for(core) && (!wait.changes || self.others_have_left(core));
        let left = if wait.changes { self.stores_left } else { 0 };
        Some(is_over.then(|| wait.since.max(self.changed).max(left)))
    }

    pub(super) fn reset_stats(&mut self) {
        self.waits = 0;
        self.statistics.reset();
    }

    pub(super) fn stats(&self, stats: &mut Stats) {
        if self.exist() {
            self.statistics.stats(stats);
            let waits = "Instructions that waited for a change of filters, or for checked stores of other cores";
            stats.count("p_inspect.waits", self.waits, waits);
        }
    }
}

impl System {
    /// Whether the machine has checked accesses and stores that persist.
    pub fn has_checks(&self) -> bool {
        self.filters.exist()
    }

    /// Cycles from a check that asks for a handler to the handler, beyond those of a misprediction.
    pub fn handler_entry_cycles(&self) -> Cycle {
        self.filters.checks().handler_entry_cycles()
    }

    /// Whether `core` can check an access now. If not, [`System::resumes_at`] tells when.
    pub fn may_check(&mut self, core: CoreId, at: Cycle) -> bool {
        if !self.filters.is_free_for(core) {
            return self.filters.wait(core, false, at);
        }
        self.filters.waiting[core.0 as usize] = None;
        true
    }

    /// Whether `core`, whose store buffer is empty, can change filters now. If not, [`System::resumes_at`] tells when, and
    /// nobody else begins to look at them before.
    pub fn may_change_filters(&mut self, core: CoreId, at: Cycle) -> bool {
        if !self.filters.is_free_for(core) {
            return self.filters.wait(core, true, at);
        }
        self.filters.changing = Some(core);
        if !self.filters.others_have_left(core) {
            return self.filters.wait(core, true, at);
        }
        self.filters.waiting[core.0 as usize] = None;
        true
    }

    /// The thread on a core gives it up: an instruction that waited is executed again later, maybe elsewhere.
    pub fn leave_filters(&mut self, core: CoreId) {
        self.filters.waiting[core.0 as usize] = None;
        if self.filters.changing == Some(core) {
            self.filters.changing = None;
        }
    }

    /// A store that the hardware has checked enters the store buffer of a core.
    pub fn checked_store_enters(&mut self, core: CoreId) {
        self.filters.checked_stores[core.0 as usize] += 1;
    }

    /// It has left, in this cycle.
    pub fn checked_store_leaves(&mut self, core: CoreId, at: Cycle) {
        self.filters.checked_stores[core.0 as usize] -= 1;
        self.filters.stores_left = self.filters.stores_left.max(at);
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
        let Filters { checks, statistics, .. } = &mut self.filters;
        let checks = checks.as_deref().expect("only a machine with checks is asked for one");
        let verdict = statistics.check(checks, registers, access, &lines);
        (verdict, ready + checks.look_up_cycles())
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
        let before: [Line; FILTER_LINES] = lines.map(|line| *line);
        let mut after = before;
        let checks = self.filters.checks();
        let value = checks.update(operation, object, &mut after);
        let done = owned + checks.look_up_cycles();
        self.caches.write_filters(core, first, &before, &after, done);
        let Filters { checks, statistics, .. } = &mut self.filters;
        let checks = checks.as_deref().expect("only a machine with checks is asked for one");
        statistics.change(checks, operation, object, &after);
        self.filters.changing = None;
        self.filters.changed = self.filters.changed.max(done);
        (value, done)
    }

    /// Brings all lines of filters into the buffer of a core; the cycle in which they are there. One of them can take
    /// another one away, where room is made below: it is asked for again then.
    fn bring_filters(&mut self, core: CoreId, first: LineAddr, want: AccessMode, at: Cycle) -> Cycle {
        let mut at = self.point_filters_to(core, first, at);
        while !self.halted() {
            if let Some((_, ready)) = self.caches.filters(core, first)
                && (want == AccessMode::Read || self.owns_filters(core, first))
            {
                return ready.max(at);
            }
            let line = |index: usize| LineAddr(first.0 + index as u64);
            let (mut asked, mut done) = (at, at);
            if want == AccessMode::Write {
                asked = self.bring_filter_line(core, line(SEED_LINE), want, at);
                done = asked;
            }
            for index in (0..FILTER_LINES).filter(|&index| want == AccessMode::Read || index != SEED_LINE) {
                done = done.max(self.bring_filter_line(core, line(index), want, asked));
                asked += 1;
            }
            at = done;
        }
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
