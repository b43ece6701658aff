//! Accesses and misses of the data levels by thread of the program.

use durasim_contract::LevelId;
use durasim_types::{CoreId, Stats};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Count {
    accesses: u64,
    misses: u64,
}

/// Of one thread, by [`place`].
type Counts = [Count; 3];

const NAMES: [&str; 3] = ["l1d", "l2", "llc"];

/// Counts go to the hardware thread that makes an access, and from there to the thread of the program that has run on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LevelCounts {
    running: Vec<Counts>,
    /// The thread on each hardware thread.
    threads: Vec<u32>,
    of_threads: Vec<Counts>,
}

const fn place(level: LevelId) -> usize {
    match level {
        // Its lookups are parts of accesses to the L1D and are not counted.
        LevelId::FilterBuffer => panic!("no lookup of a filter buffer is counted"),
        LevelId::L1d => 0,
        LevelId::L2 => 1,
        LevelId::Llc => 2,
    }
}

impl LevelCounts {
    pub fn new(hardware_threads: usize) -> Self {
        LevelCounts {
            running: vec![Counts::default(); hardware_threads],
            threads: vec![0; hardware_threads],
            of_threads: Vec::new(),
        }
    }

    #[inline]
    pub fn access(&mut self, core: CoreId, level: LevelId) {
        self.running[core.0 as usize][place(level)].accesses += 1;
    }

    #[inline]
    pub fn miss(&mut self, core: CoreId, level: LevelId) {
        self.running[core.0 as usize][place(level)].misses += 1;
    }

    /// Another thread of the program comes to a hardware thread.
    pub fn assign(&mut self, core: CoreId, thread: u32) {
        let number = core.0 as usize;
        let counts = std::mem::take(&mut self.running[number]);
        add(&mut self.of_threads, self.threads[number], &counts);
        self.threads[number] = thread;
    }

    /// Accesses and misses of a level, of all threads.
    pub fn sum(&self, level: LevelId) -> (u64, u64) {
        let all = self.running.iter().chain(&self.of_threads).map(|counts| counts[place(level)]);
        all.fold((0, 0), |sum, count| (sum.0 + count.accesses, sum.1 + count.misses))
    }

    pub fn reset(&mut self) {
        self.running.fill(Counts::default());
        self.of_threads.clear();
    }

    pub fn stats(&self, stats: &mut Stats) {
        let mut all = self.of_threads.clone();
        for (counts, &thread) in self.running.iter().zip(&self.threads) {
            add(&mut all, thread, counts);
        }
        for (level, level_name) in NAMES.into_iter().enumerate() {
            let of_threads = all.iter().map(|counts| counts[level]).enumerate();
            for (thread, count) in of_threads.filter(|(_, count)| count.accesses > 0) {
                let name = |what| format!("{level_name}.thread_{thread}.{what}");
                stats.count(name("accesses"), count.accesses, "Lookups for this thread");
                stats.count(name("misses"), count.misses, "Lookups for this thread that found nothing");
            }
        }
    }
}

fn add(all: &mut Vec<Counts>, thread: u32, more: &Counts) {
    if *more == Counts::default() {
        return;
    }
    let thread = thread as usize;
    if thread >= all.len() {
        all.resize(thread + 1, Counts::default());
    }
    for (sum, count) in all[thread].iter_mut().zip(more) {
        sum.accesses += count.accesses;
        sum.misses += count.misses;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(counts: &LevelCounts, name: &str) -> Option<f64> {
        let mut stats = Stats::default();
        counts.stats(&mut stats);
        stats.get(name)
    }

    #[test]
    fn counts_go_with_the_thread_that_made_the_access() {
        let mut counts = LevelCounts::new(2);
        counts.assign(CoreId(0), 4);
        counts.access(CoreId(0), LevelId::L1d);
        counts.miss(CoreId(0), LevelId::L1d);
        counts.assign(CoreId(0), 1);
        counts.access(CoreId(0), LevelId::L1d);
        counts.assign(CoreId(1), 4);
        counts.access(CoreId(1), LevelId::L1d);
        assert_eq!(value(&counts, "l1d.thread_4.accesses"), Some(2.0));
        assert_eq!(value(&counts, "l1d.thread_4.misses"), Some(1.0));
        assert_eq!(value(&counts, "l1d.thread_1.accesses"), Some(1.0));
        assert_eq!(value(&counts, "l2.thread_4.accesses"), None);
        assert_eq!(counts.sum(LevelId::L1d), (3, 1));
        counts.reset();
        assert_eq!(counts.sum(LevelId::L1d), (0, 0));
        assert_eq!(value(&counts, "l1d.thread_4.accesses"), None);
    }
}
