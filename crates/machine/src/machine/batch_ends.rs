//! The ends of batches of operations, at which the counters are read.

use super::Machine;
use crate::statistics::batches::{BatchReadings, Reading};
use crate::statistics::metrics::Bytes;
use durasim_types::ConfigError;

/// Instructions after which a turn of a core is interrupted where batches are recorded, so that the end of a batch is noticed
/// soon. An interruption changes no result.
pub(super) const STEP_INSTRUCTIONS: u64 = 1000;

impl Machine {
    /// Records batches of operations from now on, or none. Those of a snapshot are continued.
    ///
    /// # Errors
    /// Operations of the region of interest that were done before.
    pub fn record_batches(&mut self, wanted: bool) -> Result<(), ConfigError> {
        if !wanted {
            self.measure.batches = None;
        } else if self.measure.batches.is_none() {
            if self.measure.roi_begin.is_some() && self.ops() > 0 {
                let problem = "operations of the region of interest were done before the snapshot: leave batches out";
                return Err(ConfigError::new("batches", problem));
            }
            self.measure.batches = Some(BatchReadings::default());
        }
        Ok(())
    }

    /// Operations of the region so far: those that the program marks, else its committed transactions.
    fn ops(&self) -> u64 {
        if self.measure.ops > 0 { self.measure.ops } else { self.system.tx_stats().committed }
    }

    /// Reads the counters if a batch has ended. Nothing is read before and after the region of interest.
    pub(super) fn end_batch(&mut self) {
        let Some(batches) = &self.measure.batches else { return };
        let ops = self.ops();
        if self.measure.roi_end.is_some() || !batches.is_due(ops) {
            return;
        }
        let (now, begin) = (self.now(), self.measure.roi_begin.unwrap_or_default());
        let bytes = Bytes::of(self.system.media_write_bytes());
        let [reads, writes] = self.system.media_accesses();
        let reading = Reading::new(ops, &bytes, &self.system.tx_stats(), &self.stats())
            .with("roi.cycles", now.cycle.saturating_sub(begin.cycle))
            .with("roi.instructions", now.instructions - begin.instructions)
            .with("media_reads", reads)
            .with("media_writes", writes);
        if let Some(batches) = &mut self.measure.batches {
            batches.add(reading);
        }
    }
}
