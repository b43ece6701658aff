//! Statistics of checks and filters, for figures. A filter does not know its false positives: the objects that were inserted are
//! kept here beside it, for counting alone.

use durasim_contract::Checks;
use durasim_types::{
    AccessKind, CheckRegisters, CheckVerdict, CheckedAccess, FILTER_LINES, FilterOperation, Line, Stats,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Handlers of a program.
const HANDLERS: usize = 4;
/// Bits of the forwarding filters that the paper compares (Figure 8).
const SIZES_BITS: [u32; 4] = [511, 1023, 2047, 4095];
/// More than addresses of objects have.
const ADDRESS_BITS: u32 = 48;

/// The objects in the filters of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Inserted {
    active: BTreeSet<u64>,
    inactive: BTreeSet<u64>,
    trans: BTreeSet<u64>,
}

impl Inserted {
    fn forwards(&self, object: u64) -> bool {
        self.active.contains(&object) || self.inactive.contains(&object)
    }
}

/// A forwarding filter of another size, which gets what the real one gets. It is emptied as soon as it is so full that the
/// pointer update thread would work.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct SizedFilter {
    set: BTreeSet<u32>,
    fills: u64,
}

impl SizedFilter {
    fn insert(&mut self, checks: &dyn Checks, object: u64, size_bits: u32) {
        self.set.extend(checks.bits_of(object, size_bits));
        if self.set.len() as u32 >= checks.wake_bits(size_bits) {
            self.set.clear();
            self.fills += 1;
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Counters {
    loads: u64,
    stores_h: u64,
    stores_both: u64,
    handlers: [u64; HANDLERS],
    handlers_false_positive: u64,
    lookups: u64,
    false_positives: u64,
    lookups_trans: u64,
    false_positives_trans: u64,
    /// Percent of the active filter that is set, summed over look-ups.
    occupancy_percent: f64,
    inserts: u64,
    inserts_trans: u64,
    changes: u64,
    sweeps: u64,
    sweep_instructions: u64,
}

/// Counters of checks and filters, and what they are counted by.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FilterStatistics {
    inserted: Inserted,
    /// Percent of the active filter that is set now.
    occupancy_percent: f64,
    /// Filters of [`SIZES_BITS`].
    sizes: [SizedFilter; SIZES_BITS.len()],
    /// Number of changes of the active filter since the start.
    generation: u64,
    /// Core, or thread of a functional run, that has begun a sweep of the pointer update thread, and the instructions that
    /// it had executed then.
    sweep: Option<(u32, u64)>,
    counters: Counters,
}

impl FilterStatistics {
    /// Checks an access, and counts it.
    pub fn check(
        &mut self,
        checks: &dyn Checks,
        registers: &CheckRegisters,
        access: &CheckedAccess,
        lines: &[&Line; FILTER_LINES],
    ) -> CheckVerdict {
        let FilterStatistics { inserted, occupancy_percent, counters, .. } = self;
        let mut may_forward = |object| {
            let found = checks.may_forward(lines, object);
            counters.lookups += 1;
            counters.occupancy_percent += *occupancy_percent;
            counters.false_positives += u64::from(found && !inserted.forwards(object));
            found
        };
        let (mut lookups_trans, mut false_positives_trans) = (0, 0);
        let mut may_be_queued = |object| {
            let found = checks.may_be_queued(lines, object);
            lookups_trans += 1;
            false_positives_trans += u64::from(found && !inserted.trans.contains(&object));
            found
        };
        let verdict = checks.decide(registers, access, &mut may_forward, &mut may_be_queued);
        counters.lookups_trans += lookups_trans;
        counters.false_positives_trans += false_positives_trans;
        *match access.kind {
            AccessKind::Load => &mut counters.loads,
            AccessKind::StoreH => &mut counters.stores_h,
            AccessKind::StoreBoth => &mut counters.stores_both,
        } += 1;
        if let CheckVerdict::Handler(number) = verdict {
            counters.handlers[usize::from(number) - 1] += 1;
            let mut forwards = |object| inserted.forwards(object);
            let exact = checks.decide(registers, access, &mut forwards, &mut |object| inserted.trans.contains(&object));
            counters.handlers_false_positive += u64::from(matches!(exact, CheckVerdict::Hardware { .. }));
        }
        verdict
    }

    /// Notes a change that has left these lines.
    pub fn change(
        &mut self,
        checks: &dyn Checks,
        operation: FilterOperation,
        object: u64,
        lines: &[Line; FILTER_LINES],
    ) {
        let Inserted { active, inactive, trans } = &mut self.inserted;
        self.counters.changes += 1;
        match operation {
            FilterOperation::InsertFwd => {
                self.counters.inserts += 1;
                active.insert(object);
                // Memory that a sweep has freed is used for other objects later, which a larger filter would not have seen freed.
                let distinct = object ^ self.generation << ADDRESS_BITS;
                for (filter, size_bits) in self.sizes.iter_mut().zip(SIZES_BITS) {
                    filter.insert(checks, distinct, size_bits);
                }
            }
            FilterOperation::InsertTrans => {
                self.counters.inserts_trans += 1;
                trans.insert(object);
            }
            FilterOperation::ClearFwd => inactive.clear(),
            FilterOperation::ClearTrans => trans.clear(),
            FilterOperation::ChangeActive => {
                std::mem::swap(active, inactive);
                self.generation += 1;
            }
        }
        let (set, bits) = checks.occupancy(&lines.each_ref());
        self.occupancy_percent = 100.0 * f64::from(set) / f64::from(bits);
    }

    /// A core, or a thread of a functional run, that has executed `instructions` so far makes a change. The pointer update
    /// thread begins a sweep when it changes the active filter, and ends it when it clears the other one.
    pub fn sweep(&mut self, by: u32, operation: FilterOperation, instructions: u64) {
        match operation {
            FilterOperation::ChangeActive => {
                self.counters.sweeps += 1;
                self.sweep = Some((by, instructions));
            }
            FilterOperation::ClearFwd => {
                if let Some((_, begun)) = self.sweep.take_if(|(begun_by, _)| *begun_by == by) {
                    self.counters.sweep_instructions += instructions.saturating_sub(begun);
                }
            }
            _ => {}
        }
    }

    /// Counters start again from zero; what is in filters stays.
    pub fn reset(&mut self) {
        self.counters = Counters::default();
        self.sizes.iter_mut().for_each(|filter| filter.fills = 0);
    }

    /// A program leaves functional execution: what was counted on the way belongs to no run.
    pub fn leave_functional_run(&mut self) {
        self.reset();
        self.sweep = None;
    }

    /// The counters, below `p_inspect`.
    pub fn stats(&self, stats: &mut Stats) {
        let of = &self.counters;
        let kinds = [("load", of.loads), ("store_h", of.stores_h), ("store_both", of.stores_both)];
        for (name, count) in kinds {
            stats.count(format!("p_inspect.checks.{name}"), count, "Accesses that the hardware has checked");
        }
        for (number, count) in (1..).zip(of.handlers) {
            stats.count(format!("p_inspect.handlers.{number}"), count, "Accesses that went to this handler");
        }
        let false_positives = "Accesses that went to a handler because of false positives alone";
        stats.count("p_inspect.handlers.false_positive", of.handlers_false_positive, false_positives);
        stats.count("p_inspect.fwd.lookups", of.lookups, "Objects that were looked up in the forwarding filters");
        stats.count("p_inspect.fwd.inserts", of.inserts, "Objects inserted into the forwarding filters");
        let found = "Objects that were found in the forwarding filters and are not there";
        stats.count("p_inspect.fwd.false_positives", of.false_positives, found);
        let occupancy = if of.lookups == 0 { 0.0 } else { of.occupancy_percent / of.lookups as f64 };
        let description = "Bits of the active forwarding filter that are set, in percent, averaged over look-ups";
        stats.set("p_inspect.fwd.occupancy_percent", occupancy, "percent", description);
        stats.count("p_inspect.trans.lookups", of.lookups_trans, "Objects that were looked up in the TRANS filter");
        let found = "Objects that were found in the TRANS filter and are not there";
        stats.count("p_inspect.trans.false_positives", of.false_positives_trans, found);
        stats.count("p_inspect.trans.inserts", of.inserts_trans, "Objects inserted into the TRANS filter");
        stats.count("p_inspect.changes", of.changes, "Operations that changed filters");
        for (filter, size_bits) in self.sizes.iter().zip(SIZES_BITS) {
            let name = format!("p_inspect.fwd.fills.{size_bits}");
            stats.count(
                name,
                filter.fills,
                "Times that a forwarding filter of this many bits would have been full enough to sweep",
            );
        }
        stats.count("p_inspect.put.calls", of.sweeps, "Sweeps that the pointer update thread has begun");
        let instructions = "Instructions of its core in sweeps that have ended";
        stats.count("p_inspect.put.instructions", of.sweep_instructions, instructions);
    }
}
