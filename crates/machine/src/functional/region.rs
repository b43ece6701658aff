//! Counters of a functional run: instructions, operations and transactions of its region of interest, and what checks and
//! filters did there.

use crate::statistics::filter_statistics::FilterStatistics;
use crate::statistics::transactions::TxStats;
use durasim_isa::Marker;
use durasim_types::Stats;

/// The counts of a region that has ended.
#[derive(Clone, Debug)]
pub struct FunctionalRegion {
    /// Instructions of all threads.
    pub instructions: u64,
    /// Operations that ended in it.
    pub ops: u64,
    /// Transactions by their markers.
    pub tx: TxStats,
    /// Counters of checks and filters, where the design has them.
    pub stats: Stats,
}

/// The region of interest that is being counted; the whole program until it marks one.
#[derive(Default)]
pub(super) struct RegionCounts {
    begin_instructions: u64,
    ops: u64,
    tx: TxStats,
    is_marked: bool,
    end: Option<FunctionalRegion>,
}

impl RegionCounts {
    /// A marker was executed, the instruction of this number. Checks are counted only with a design that has them.
    pub(super) fn marker(
        &mut self,
        marker: Marker,
        instructions: u64,
        has_checks: bool,
        checks: &mut FilterStatistics,
    ) {
        match marker {
            Marker::RoiBegin => {
                *self = RegionCounts { begin_instructions: instructions, is_marked: true, ..RegionCounts::default() };
                checks.reset();
            }
            Marker::RoiEnd if self.is_marked => self.end = Some(self.counts(instructions, has_checks, checks)),
            Marker::OpEnd => self.ops += 1,
            Marker::TxBegin => self.tx.begun += 1,
            Marker::TxCommit => self.tx.committed += 1,
            Marker::TxAbort => self.tx.aborted += 1,
            _ => {}
        }
    }

    /// Whether a transaction of the region was aborted.
    pub(super) fn has_aborted(&self) -> bool {
        self.tx.aborted > 0
    }

    /// The region, which ends here if it has not ended before.
    pub(super) fn finish(self, instructions: u64, has_checks: bool, checks: &FilterStatistics) -> FunctionalRegion {
        match self.end {
            Some(region) => region,
            None => self.counts(instructions, has_checks, checks),
        }
    }

    fn counts(&self, instructions: u64, has_checks: bool, checks: &FilterStatistics) -> FunctionalRegion {
        let mut stats = Stats::default();
        if has_checks {
            checks.stats(&mut stats);
        }
        FunctionalRegion { instructions: instructions - self.begin_instructions, ops: self.ops, tx: self.tx, stats }
    }
}
