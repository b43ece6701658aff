//! Lines whose entry in the directory a persistent write has locked: from its request until its acknowledgement passes the
//! directory again. What else asks the directory for such a line waits.

use durasim_core::PersistentStores;
use durasim_types::{CoreId, Cycle, LineAddr, Stats};
use serde::{Deserialize, Serialize};

/// A locked line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lock {
    line: LineAddr,
    /// Cycle in which its write left the store buffer.
    begun: Cycle,
    /// Cycle in which the acknowledgement is back at the directory, once its controller has sent it.
    unlocked: Option<Cycle>,
}

/// Counters of persistent writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct WriteStats {
    writes: u64,
    fenced: u64,
    whole_lines: u64,
    from_memory: u64,
    acknowledged: u64,
    latency_cycles: Cycle,
    lock_waits: u64,
    lock_wait_cycles: Cycle,
}

/// Shape of a persistent write, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteShape {
    /// Later stores wait for it.
    pub fenced: bool,
    /// A cache had a dirty copy.
    pub whole_line: bool,
    /// No cache had the line.
    pub from_memory: bool,
}

/// Passage of the last request of a core through the directory, for a write that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtDirectory {
    /// Cycle in which others had lost the line and the tags of the last level were known.
    pub at: Cycle,
    /// Whether the last level has missed it.
    pub missed: bool,
}

super::part::part! {
    /// The part of the memory system that knows which lines persistent writes have locked.
    pub(crate) struct LineLocks saved as SavedLineLocks {
        saved {
            locks: Vec<Lock>,
            /// Of each core whose store waits for its acknowledgement: when its line is there.
            sent: Vec<Option<Cycle>>,
            stats: WriteStats,
        }
        kept {
            at_directory: Option<AtDirectory>,
            /// Implementation of stores that persist, for lines that only a write makes durable.
            persistent_stores: PersistentStores,
        }
    }
}

impl LineLocks {
    pub(crate) fn new(cores: usize) -> Self {
        LineLocks {
            locks: Vec::new(),
            sent: vec![None; cores],
            stats: WriteStats::default(),
            at_directory: None,
            persistent_stores: PersistentStores::Separate,
        }
    }

    pub(crate) fn fork(&self) -> Self {
        LineLocks {
            locks: self.locks.clone(),
            sent: self.sent.clone(),
            stats: self.stats,
            at_directory: None,
            persistent_stores: self.persistent_stores,
        }
    }

    /// Stores that persist are made in one from now on.
    pub(crate) fn combine_stores(&mut self, holds_commit: bool) {
        self.persistent_stores = PersistentStores::Combined { holds_commit };
    }

    /// Implementation of stores that persist, for lines that only a write makes durable.
    #[inline]
    pub(crate) fn persistent_stores(&self) -> PersistentStores {
        self.persistent_stores
    }

    /// A request has passed the directory.
    #[inline]
    pub(crate) fn note_directory(&mut self, at: Cycle, missed: bool) {
        self.at_directory = Some(AtDirectory { at, missed });
    }

    /// Takes the passage of the last request through the directory, if there was one since the last call.
    pub(crate) fn take_directory(&mut self) -> Option<AtDirectory> {
        self.at_directory.take()
    }

    /// Whether no line has been locked lately.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// Whether the acknowledgement for a locked line has not been sent.
    pub(crate) fn is_locked(&self, line: LineAddr) -> bool {
        self.locks.iter().any(|lock| lock.line == line && lock.unlocked.is_none())
    }

    /// Cycle in which the entry of a line is free, if it has been locked lately and that is known.
    pub(crate) fn unlocked_at(&self, line: LineAddr) -> Option<Cycle> {
        self.locks.iter().find(|lock| lock.line == line)?.unlocked
    }

    /// A write locks its line, which is not locked, in cycle `at`.
    pub(crate) fn lock(&mut self, line: LineAddr, at: Cycle, shape: WriteShape) {
        debug_assert!(!self.is_locked(line), "{line} is locked by two");
        self.locks.retain(|lock| lock.line != line && lock.unlocked.is_none_or(|unlocked| unlocked > at));
        self.locks.push(Lock { line, begun: at, unlocked: None });
        self.count(shape);
    }

    /// Counts a write.
    pub(crate) fn count(&mut self, shape: WriteShape) {
        self.stats.writes += 1;
        self.stats.fenced += u64::from(shape.fenced);
        self.stats.whole_lines += u64::from(shape.whole_line);
        self.stats.from_memory += u64::from(shape.from_memory);
    }

    /// The acknowledgement for a line has been sent: it is at the directory in `unlocked`, and at its core in `arrives`.
    pub(crate) fn unlock(&mut self, line: LineAddr, unlocked: Cycle, arrives: Cycle) {
        let lock = self.locks.iter_mut().find(|lock| lock.line == line).expect("only locked lines are unlocked");
        lock.unlocked = Some(unlocked);
        self.stats.acknowledged += 1;
        self.stats.latency_cycles += arrives.saturating_sub(lock.begun);
    }

    /// A request has waited for a locked line.
    pub(crate) fn count_wait(&mut self, cycles: Cycle) {
        self.stats.lock_waits += 1;
        self.stats.lock_wait_cycles += cycles;
    }

    /// The store of `core` has been sent and waits for its acknowledgement; its line is there in `there`.
    pub(crate) fn send(&mut self, core: CoreId, there: Cycle) {
        self.sent[core.0 as usize] = Some(there);
    }

    /// Cycle in which the line of the store arrived that `core` has sent and that waits for its acknowledgement.
    #[inline]
    pub(crate) fn sent(&self, core: CoreId) -> Option<Cycle> {
        self.sent[core.0 as usize]
    }

    /// The store of `core` waits no more.
    pub(crate) fn end(&mut self, core: CoreId) {
        self.sent[core.0 as usize] = None;
    }

    pub(crate) fn reset_stats(&mut self) {
        self.stats = WriteStats::default();
    }

    /// Counters, on machines that make such writes.
    pub(crate) fn stats(&self, stats: &mut Stats) {
        let s = &self.stats;
        if self.persistent_stores == PersistentStores::Separate && s.writes == 0 {
            return;
        }
        stats.count(
            "persistent_writes.writes",
            s.writes,
            "Stores that were sent to persistent memory as they were made",
        );
        stats.count("persistent_writes.fenced", s.fenced, "Those of them for which later stores waited");
        stats.count("persistent_writes.whole_lines", s.whole_lines, "Those that found a dirty copy of their line");
        stats.count("persistent_writes.from_memory", s.from_memory, "Those whose line no cache had");
        let mean = if s.acknowledged == 0 { 0.0 } else { s.latency_cycles as f64 / s.acknowledged as f64 };
        stats.set(
            "persistent_writes.latency_mean",
            mean,
            "cycles",
            "Mean time from leaving the store buffer to the acknowledgement",
        );
        stats.count("persistent_writes.lock_waits", s.lock_waits, "Requests that found their line locked");
        stats.count("persistent_writes.lock_wait_cycles", s.lock_wait_cycles, "Cycles that they waited");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: LineAddr = LineAddr(7);
    const PLAIN: WriteShape = WriteShape { fenced: false, whole_line: false, from_memory: false };

    #[test]
    fn a_line_is_locked_until_its_acknowledgement_is_at_the_directory() {
        let mut locks = LineLocks::new(2);
        assert!(locks.is_empty() && !locks.is_locked(LINE));
        locks.lock(LINE, 100, PLAIN);
        assert!(locks.is_locked(LINE) && locks.unlocked_at(LINE).is_none());
        locks.unlock(LINE, 150, 153);
        assert!(!locks.is_locked(LINE));
        assert_eq!(locks.unlocked_at(LINE), Some(150));
        // Locks that have ended are removed with the next lock.
        locks.lock(LineAddr(8), 149, PLAIN);
        assert_eq!(locks.unlocked_at(LINE), Some(150));
        locks.lock(LineAddr(9), 150, PLAIN);
        assert_eq!(locks.unlocked_at(LINE), None);
    }

    #[test]
    fn counters_are_shown_where_there_is_something_to_count() {
        let mut locks = LineLocks::new(1);
        let shown = |locks: &LineLocks| {
            let mut stats = Stats::default();
            locks.stats(&mut stats);
            stats.get("persistent_writes.latency_mean")
        };
        assert_eq!(shown(&locks), None);
        locks.lock(LINE, 100, WriteShape { fenced: true, ..PLAIN });
        locks.unlock(LINE, 150, 153);
        assert_eq!(shown(&locks), Some(53.0));
        locks.reset_stats();
        assert_eq!(shown(&locks), None);
        locks.combine_stores(false);
        assert_eq!(shown(&locks), Some(0.0));
    }

    #[test]
    fn the_directory_is_asked_about_the_last_request_alone() {
        let mut locks = LineLocks::new(1);
        locks.note_directory(5, true);
        locks.note_directory(9, false);
        assert_eq!(locks.take_directory(), Some(AtDirectory { at: 9, missed: false }));
        assert_eq!(locks.take_directory(), None);
    }
}
