//! What runtimes tell of their threads: rare situations, and how far they are with the replay of their logs.

use durasim_isa::SITUATIONS;
use durasim_types::Cycle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The situation of a thread that waits for room in its log.
const LOG_FULL: &str = "log-full";

/// Replay of redo logs in the region of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayStats {
    /// Logged transactions applied to the persistent heap.
    pub transactions: u64,
    /// The largest number of transactions that a pass over the logs found waiting and applied.
    pub lag_max: u64,
    /// Cycles that threads waited for room in their logs, added up.
    pub stall_cycles: u64,
}

/// The situations of all threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Situations {
    /// Bit n for situation n; threads in none are left out.
    threads: BTreeMap<u32, u32>,
    /// Threads that wait for room in their logs, and since when.
    stalled_since: BTreeMap<u32, Cycle>,
    replay: ReplayStats,
}

impl Situations {
    /// A thread begins or leaves a situation of this number. One without a name is no situation.
    pub(super) fn note(&mut self, thread: u32, situation: u64, begins: bool, at: Cycle) {
        let Some(&name) = usize::try_from(situation).ok().and_then(|number| SITUATIONS.get(number)) else { return };
        let bits = self.threads.entry(thread).or_default();
        *bits = if begins { *bits | 1 << situation } else { *bits & !(1 << situation) };
        if *bits == 0 {
            self.threads.remove(&thread);
        }
        if name != LOG_FULL {
            return;
        }
        if begins {
            self.stalled_since.entry(thread).or_insert(at);
        } else if let Some(since) = self.stalled_since.remove(&thread) {
            self.replay.stall_cycles += at.saturating_sub(since);
        }
    }

    /// A replayer has gone over the logs once and applied so many transactions.
    pub(super) fn note_pass(&mut self, transactions: u64) {
        self.replay.transactions += transactions;
        self.replay.lag_max = self.replay.lag_max.max(transactions);
    }

    /// Those that some thread is in.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let all = self.threads.values().fold(0, |all, bits| all | bits);
        SITUATIONS.into_iter().enumerate().filter_map(move |(number, name)| (all >> number & 1 == 1).then_some(name))
    }

    /// Counters since the last reset, with the waits that go on at `now`.
    pub(super) fn replay(&self, now: Cycle) -> ReplayStats {
        let waiting: u64 = self.stalled_since.values().map(|&since| now.saturating_sub(since)).sum();
        ReplayStats { stall_cycles: self.replay.stall_cycles + waiting, ..self.replay }
    }

    pub(super) fn reset_stats(&mut self, now: Cycle) {
        self.replay = ReplayStats::default();
        for since in self.stalled_since.values_mut() {
            *since = now.max(*since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_of(name: &str) -> u64 {
        SITUATIONS.iter().position(|&other| other == name).unwrap() as u64
    }

    #[test]
    fn waits_for_room_count_once_however_often_they_are_told_and_from_the_region_of_interest_on() {
        let (mut situations, full) = (Situations::default(), number_of(LOG_FULL));
        situations.note(3, full, true, 100);
        situations.note(3, full, true, 120);
        situations.note(4, full, false, 130);
        assert_eq!(situations.replay(150).stall_cycles, 50);
        situations.reset_stats(150);
        situations.note(3, full, false, 175);
        situations.note(3, full, false, 190);
        assert_eq!(situations.replay(200).stall_cycles, 25);
        assert_eq!(situations.names().count(), 0);
    }

    #[test]
    fn passes_add_up_and_the_largest_is_the_lag() {
        let mut situations = Situations::default();
        for transactions in [3, 9, 0, 4] {
            situations.note_pass(transactions);
        }
        assert_eq!(situations.replay(0), ReplayStats { transactions: 16, lag_max: 9, stall_cycles: 0 });
    }

    #[test]
    fn situations_of_all_threads_are_told_and_numbers_without_a_name_are_none() {
        let mut situations = Situations::default();
        situations.note(0, number_of("replay"), true, 0);
        situations.note(1, number_of("log-wrapped"), true, 0);
        situations.note(1, u64::MAX, true, 0);
        assert_eq!(situations.names().collect::<Vec<_>>(), ["log-wrapped", "replay"]);
        situations.note(0, number_of("replay"), false, 0);
        assert_eq!(situations.names().collect::<Vec<_>>(), ["log-wrapped"]);
    }
}
