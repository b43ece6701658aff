//! Reports of runtimes about their threads: rare situations, and the progress of the replay of their logs.

use crate::statistics::transactions::ReplayStats;
use durasim_isa::SITUATIONS;
use durasim_types::Cycle;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The situation of a thread that waits for room in its log, and that of one that has pages of its shadow leave the DRAM.
const LOG_FULL: &str = "log-full";
const PAGE_OUT: &str = "page-out";

/// The situations of all threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Situations {
    /// Bit n for situation n; threads in none are left out.
    threads: BTreeMap<u32, u32>,
    /// Threads that wait for room in their logs, and since when.
    stalled_since: BTreeMap<u32, Cycle>,
    /// Threads that have pages leave the DRAM, and since when.
    paging_since: BTreeMap<u32, Cycle>,
    replay: ReplayStats,
}

impl Situations {
    /// A thread begins or leaves a situation of this number. One without a name is no situation.
    pub(crate) fn note(&mut self, thread: u32, situation: u64, begins: bool, at: Cycle) {
        let Some(&name) = usize::try_from(situation).ok().and_then(|number| SITUATIONS.get(number)) else { return };
        let bits = self.threads.entry(thread).or_default();
        *bits = if begins { *bits | 1 << situation } else { *bits & !(1 << situation) };
        if *bits == 0 {
            self.threads.remove(&thread);
        }
        let (since, cycles) = match name {
            LOG_FULL => (&mut self.stalled_since, &mut self.replay.stall_cycles),
            PAGE_OUT => (&mut self.paging_since, &mut self.replay.page_out_cycles),
            _ => return,
        };
        if begins {
            since.entry(thread).or_insert(at);
        } else if let Some(since) = since.remove(&thread) {
            *cycles += at.saturating_sub(since);
            self.replay.page_outs += u64::from(name == PAGE_OUT);
        }
    }

    /// A replayer has gone over the logs once and applied this many transactions.
    pub(crate) fn note_pass(&mut self, transactions: u64) {
        self.replay.transactions += transactions;
        self.replay.lag_max = self.replay.lag_max.max(transactions);
    }

    /// Those that some thread is in.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let all = self.threads.values().fold(0, |all, bits| all | bits);
        SITUATIONS.into_iter().enumerate().filter_map(move |(number, name)| (all >> number & 1 == 1).then_some(name))
    }

    /// Counters since the last reset, with the waits in progress at `now`.
    pub(crate) fn replay(&self, now: Cycle) -> ReplayStats {
        let until_now =
            |since: &BTreeMap<u32, Cycle>| -> u64 { since.values().map(|&at| now.saturating_sub(at)).sum() };
        ReplayStats {
            stall_cycles: self.replay.stall_cycles + until_now(&self.stalled_since),
            page_out_cycles: self.replay.page_out_cycles + until_now(&self.paging_since),
            ..self.replay
        }
    }

    pub(crate) fn reset_stats(&mut self, now: Cycle) {
        self.replay = ReplayStats::default();
        for since in self.stalled_since.values_mut().chain(self.paging_since.values_mut()) {
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
    fn waits_for_room_count_once_however_often_they_are_reported_and_from_the_region_of_interest_on() {
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
        assert_eq!(situations.replay(0), ReplayStats { transactions: 16, lag_max: 9, ..ReplayStats::default() });
    }

    #[test]
    fn pages_that_leave_count_when_they_have_left() {
        let (mut situations, out) = (Situations::default(), number_of(PAGE_OUT));
        situations.note(2, out, true, 10);
        assert_eq!((situations.replay(15).page_outs, situations.replay(15).page_out_cycles), (0, 5));
        situations.note(2, out, false, 30);
        assert_eq!((situations.replay(40).page_outs, situations.replay(40).page_out_cycles), (1, 20));
        assert_eq!(situations.replay(40).stall_cycles, 0);
    }

    #[test]
    fn situations_of_all_threads_are_listed_and_numbers_without_a_name_are_none() {
        let mut situations = Situations::default();
        situations.note(0, number_of("replay"), true, 0);
        situations.note(1, number_of("log-wrapped"), true, 0);
        situations.note(1, u64::MAX, true, 0);
        assert_eq!(situations.names().collect::<Vec<_>>(), ["log-wrapped", "replay"]);
        situations.note(0, number_of("replay"), false, 0);
        assert_eq!(situations.names().collect::<Vec<_>>(), ["log-wrapped"]);
    }
}
