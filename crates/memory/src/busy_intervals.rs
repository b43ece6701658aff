//! The times at which something is there, as a union of intervals.

use durasim_types::Picos;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Intervals that are remembered; older ones count as past.
const REMEMBERED: usize = 64;

/// Disjoint intervals, by start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BusyIntervals(VecDeque<(Picos, Picos)>);

impl BusyIntervals {
    /// Adds the interval from `start_ps` to `end_ps`, which does not belong to it.
    pub fn add(&mut self, start_ps: Picos, end_ps: Picos) {
        // All that it touches becomes one.
        let first = self.0.partition_point(|&(_, end)| end < start_ps);
        let last = self.0.partition_point(|&(start, _)| start <= end_ps);
        let (mut start_ps, mut end_ps) = (start_ps, end_ps);
        for (start, end) in self.0.drain(first..last) {
            (start_ps, end_ps) = (start_ps.min(start), end_ps.max(end));
        }
        self.0.insert(first, (start_ps, end_ps));
        if self.0.len() > REMEMBERED {
            self.0.pop_front();
        }
    }

    /// The first time, not before `at_ps`, in none of the intervals.
    pub fn first_absence(&self, at_ps: Picos) -> Picos {
        let first = self.0.partition_point(|&(_, end)| end <= at_ps);
        self.0.get(first).filter(|&&(start, _)| start <= at_ps).map_or(at_ps, |&(_, end)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::Rng;

    #[test]
    fn the_union_is_that_of_all_intervals() {
        let mut rng = Rng::new(3);
        let mut busy_intervals = BusyIntervals::default();
        let mut present = [false; 1000];
        for _ in 0..60 {
            let (start, len) = (rng.below(900), 1 + rng.below(30));
            busy_intervals.add(start, start + len);
            present[start as usize..(start + len) as usize].fill(true);
            for at in 0..1000 {
                let expected = (at..).find(|&t| t >= 1000 || !present[t]).expect("the end is absent");
                assert_eq!(busy_intervals.first_absence(at as Picos), expected as Picos);
            }
        }
    }
}
