//! Readers and writers of the filters of checked accesses (P-INSPECT, MICRO 2020, section VI-C).
//!
//! The lines of the filters are ordinary lines of DRAM, which a buffer beside each L1D holds (`caches/filter_buffers.rs`). A check
//! needs all nine of them. Who changes filters owns all nine, the seed line first, which decides between two that want to.
//! Both are one step of the machine: what hardware does by locking lines and by reading them again is a wait here.
//!
//! A check happens when its instruction is executed, and its store is made later, when it leaves the store buffer. An object
//! that begins to forward in between would lose the store. So a change waits until all stores of other cores that the
//! hardware has checked have left, and no other core checks an access meanwhile (DEVIATIONS.md, pinspect-changes).

use crate::statistics::filter_statistics::FilterStatistics;
use durasim_contract::{ActiveFault, Checks, check_faults};
use durasim_types::{
    CheckRegisters, CheckVerdict, CheckedAccess, CoreId, Cycle, FILTER_LINES, FilterOperation, Line, Stats,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Wait of a core before an instruction can look at filters, and its start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct FilterWait {
    changes: bool,
    since: Cycle,
}

super::part::part! {
    /// The part of the memory system with the readers and writers of filters.
    pub(crate) struct Filters saved as SavedFilters {
        saved {
            /// Stores in the store buffer of each core that the hardware has checked.
            checked_stores: Vec<u32>,
            /// Cycle in which the last of these left, of any core.
            stores_left: Cycle,
            /// The core that changes filters, or waits to.
            changing: Option<CoreId>,
            /// Cycle in which the last change was complete.
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
    pub(crate) fn new(checks: Option<Arc<dyn Checks>>, cores: usize, fault: ActiveFault) -> Self {
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

    pub(crate) fn fork(&self) -> Self {
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

    pub(crate) fn exist(&self) -> bool {
        self.checks.is_some()
    }

    fn checks(&self) -> &dyn Checks {
        self.checks.as_deref().expect("only a machine with checks is asked for one")
    }

    /// Cycles of a look into lines that are there.
    pub(crate) fn look_up_cycles(&self) -> Cycle {
        self.checks().look_up_cycles()
    }

    /// Cycles from a check that asks for a handler to the handler, beyond those of a misprediction.
    pub(crate) fn handler_entry_cycles(&self) -> Cycle {
        self.checks().handler_entry_cycles()
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

    /// Whether `core` can check an access now. If not, it waits.
    pub(crate) fn may_check(&mut self, core: CoreId, at: Cycle) -> bool {
        if !self.is_free_for(core) {
            return self.wait(core, false, at);
        }
        self.waiting[core.0 as usize] = None;
        true
    }

    /// Whether `core` can change filters now. If not, it waits, and no other core begins to look at them before it.
    pub(crate) fn may_change(&mut self, core: CoreId, at: Cycle) -> bool {
        if !self.is_free_for(core) {
            return self.wait(core, true, at);
        }
        self.changing = Some(core);
        if !self.others_have_left(core) || self.stores_left > at {
            return self.wait(core, true, at);
        }
        self.waiting[core.0 as usize] = None;
        true
    }

    /// Cycle in which the instruction of a core that waits can be executed, if that is known. The outer `None`: it does not wait.
    pub(crate) fn resumes_at(&self, core: CoreId) -> Option<Option<Cycle>> {
        let wait = self.waiting[core.0 as usize]?;
        let is_over = self.is_free_for(core) && (!wait.changes || self.others_have_left(core));
        let left = if wait.changes { self.stores_left } else { 0 };
        Some(is_over.then(|| wait.since.max(self.changed).max(left)))
    }

    /// Whether any core waits.
    pub(crate) fn any_waits(&self) -> bool {
        self.waiting.iter().any(Option::is_some)
    }

    /// Since when a core waits.
    pub(crate) fn waits_since(&self, core: CoreId) -> Option<Cycle> {
        self.waiting[core.0 as usize].map(|wait| wait.since)
    }

    /// The thread on a core gives it up: an instruction that waited is executed again later, maybe elsewhere.
    pub(crate) fn leave(&mut self, core: CoreId) {
        self.waiting[core.0 as usize] = None;
        if self.changing == Some(core) {
            self.changing = None;
        }
    }

    /// A store that the hardware has checked enters the store buffer of a core.
    pub(crate) fn store_enters(&mut self, core: CoreId) {
        self.checked_stores[core.0 as usize] += 1;
    }

    /// It has left, in this cycle.
    pub(crate) fn store_leaves(&mut self, core: CoreId, at: Cycle) {
        self.checked_stores[core.0 as usize] -= 1;
        self.stores_left = self.stores_left.max(at);
    }

    /// Verdict about an access.
    pub(crate) fn check(
        &mut self,
        registers: &CheckRegisters,
        access: &CheckedAccess,
        lines: &[&Line; FILTER_LINES],
    ) -> CheckVerdict {
        let checks = self.checks.as_deref().expect("only a machine with checks is asked for one");
        self.statistics.check(checks, registers, access, lines)
    }

    /// The lines after a change, and its value for the destination register.
    pub(crate) fn change(
        &mut self,
        operation: FilterOperation,
        object: u64,
        before: [Line; FILTER_LINES],
    ) -> ([Line; FILTER_LINES], u64) {
        let checks = self.checks.as_deref().expect("only a machine with checks is asked for one");
        let mut lines = before;
        let value = checks.update(operation, object, &mut lines);
        self.statistics.change(checks, operation, object, &lines);
        (lines, value)
    }

    /// The change is complete in this cycle.
    pub(crate) fn end_change(&mut self, done: Cycle) {
        self.changing = None;
        self.changed = self.changed.max(done);
    }

    pub(crate) fn note_sweep(&mut self, core: CoreId, operation: FilterOperation, instructions: u64) {
        self.statistics.sweep(core.0.into(), operation, instructions);
    }

    pub(crate) fn statistics(&self) -> &FilterStatistics {
        &self.statistics
    }

    pub(crate) fn put_statistics(&mut self, statistics: FilterStatistics) {
        self.statistics = statistics;
    }

    pub(crate) fn reset_stats(&mut self) {
        self.waits = 0;
        self.statistics.reset();
    }

    pub(crate) fn stats(&self, stats: &mut Stats) {
        if self.exist() {
            self.statistics.stats(stats);
            let waits = "Instructions that waited for a change of filters, or for checked stores of other cores";
            stats.count("p_inspect.waits", self.waits, waits);
        }
    }
}
