//! Policy `read-first` in front of media without rows: drains that are placed as a whole.

use super::Controller;
use crate::ControllerConfig;
use crate::busy_intervals::BusyIntervals;
use durasim_types::Picos;
use serde::{Deserialize, Serialize};

/// The drain of a write queue, in entries, and the reads that it and the writes outside of it have to respect.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReadFirst {
    /// The number of entries in the queue that starts a drain.
    start_entries: usize,
    /// The largest number of entries that wait when it ends.
    stop_entries: usize,
    /// The time at which the last drain started, and that at which its last write starts.
    pub(super) drain_ps: (Picos, Picos),
    /// The times at which reads wait or are in service.
    pub(super) reads: BusyIntervals,
}

impl ReadFirst {
    /// The thresholds of complete queues.
    pub(super) fn new(queues: &ControllerConfig) -> Self {
        let percent = |percent: Option<u32>| {
            queues.write_queue_entries as usize * percent.expect("the policy has its thresholds") as usize
        };
        ReadFirst {
            start_entries: percent(queues.drain_start_percent).div_ceil(100),
            stop_entries: percent(queues.drain_stop_percent) / 100,
            drain_ps: (0, 0),
            reads: BusyIntervals::default(),
        }
    }
}

impl Controller {
    /// If the queue is full enough and no drain is in progress, a drain begins: its writes are given their places down to the
    /// low threshold. Reads that arrive before the last of them starts find these places taken, as they would find a
    /// controller that looks at its writes alone. Writes that arrive meanwhile do not belong to it, or it might never end.
    pub(super) fn drain_if_full(&mut self, at_ps: Picos) {
        let Some(read_first) = &self.read_first else { return };
        let (stop_entries, (begin_ps, end_ps)) = (read_first.stop_entries, read_first.drain_ps);
        if (begin_ps..end_ps).contains(&at_ps) || self.queue.len() < read_first.start_entries {
            return;
        }
        let mut waiting = self.waiting();
        let mut last_ps = None;
        while waiting > stop_entries
            && let Some((index, start_ps)) = self.next_start_from(at_ps)
        {
            self.start_write(index, start_ps);
            last_ps = last_ps.max(Some(start_ps));
            waiting -= 1;
        }
        let (Some(last_ps), Some(read_first)) = (last_ps, &mut self.read_first) else { return };
        read_first.drain_ps = (at_ps, last_ps);
        // The queue is one, whatever it holds.
        self.counters.iter_mut().for_each(|counters| counters.stats.drains += 1);
    }
}
