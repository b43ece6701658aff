//! Miss status holding registers: how many misses a cache can have in flight.

use crate::occupancy::Occupancy;
use durasim_types::Cycle;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The misses in flight of one cache, known by the cycle in which each ends. A second miss on a line in flight is not
/// a new miss: the line is in the array already and becomes ready later.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "State", into = "State")]
pub struct Mshrs {
    capacity: usize,
    ends: BinaryHeap<Reverse<Cycle>>,
    /// The registers taken at each time, where two threads share them. A thread may ask for an earlier cycle than the
    /// other one, whose misses it finds in the calendar; of one thread alone the ends say enough.
    shared: Option<Box<Occupancy>>,
    /// Cycles that misses waited for a free register.
    pub stall_cycles: Cycle,
}

impl Mshrs {
    /// Registers for `capacity` misses.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a cache without MSHRs cannot miss");
        Mshrs { capacity, ends: BinaryHeap::with_capacity(capacity + 1), shared: None, stall_cycles: 0 }
    }

    /// Registers shared by two threads whose requests do not come in the order of their times.
    pub fn shared_by_threads(capacity: usize) -> Self {
        Mshrs { shared: Some(Box::new(Occupancy::new())), ..Self::new(capacity) }
    }

    /// The cycle in which a miss that arrives at `at` gets a register.
    pub fn acquire(&mut self, at: Cycle) -> Cycle {
        if let Some(shared) = &mut self.shared {
            let start = shared.first_free(at, self.capacity);
            self.stall_cycles += start - at;
            return start;
        }
        while self.ends.peek().is_some_and(|&Reverse(end)| end <= at) {
            self.ends.pop();
        }
        if self.ends.len() < self.capacity {
            return at;
        }
        let Reverse(start) = self.ends.pop().expect("all registers are taken, so there is one");
        self.stall_cycles += start - at;
        start
    }

    /// A miss that got a register ends at `end`.
    pub fn release_at(&mut self, end: Cycle) {
        match &mut self.shared {
            Some(shared) => shared.take_until(end),
            None => self.ends.push(Reverse(end)),
        }
    }
}

/// The registers in a snapshot: the ends in ascending order, whatever order the heap has them in.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    capacity: u64,
    ends: Vec<Cycle>,
    shared: Option<Box<Occupancy>>,
    stall_cycles: Cycle,
}

impl From<Mshrs> for State {
    fn from(mshrs: Mshrs) -> Self {
        let mut ends: Vec<Cycle> = mshrs.ends.into_iter().map(|Reverse(end)| end).collect();
        ends.sort_unstable();
        State { capacity: mshrs.capacity as u64, ends, shared: mshrs.shared, stall_cycles: mshrs.stall_cycles }
    }
}

impl TryFrom<State> for Mshrs {
    type Error = &'static str;

    fn try_from(state: State) -> Result<Self, Self::Error> {
        if state.capacity == 0 {
            return Err("a cache without MSHRs cannot miss");
        }
        let ends = state.ends.into_iter().map(Reverse).collect();
        let State { shared, stall_cycles, .. } = state;
        Ok(Mshrs { capacity: state.capacity as usize, ends, shared, stall_cycles })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_miss_beyond_the_registers_waits_for_the_first_to_end() {
        let mut m = Mshrs::new(2);
        assert_eq!(m.acquire(0), 0);
        m.release_at(100);
        assert_eq!(m.acquire(1), 1);
        m.release_at(90);
        assert_eq!(m.acquire(2), 90);
        m.release_at(190);
        assert_eq!(m.stall_cycles, 88);
        assert_eq!(m.acquire(99), 100, "both are taken until 100");
        m.release_at(300);
        assert_eq!(m.acquire(200), 200);
    }

    #[test]
    fn a_thread_that_asks_late_for_an_earlier_cycle_finds_what_the_other_has_taken() {
        let mut m = Mshrs::shared_by_threads(2);
        for begin in [0, 0, 50, 50, 100, 100] {
            assert_eq!(m.acquire(begin), begin);
            m.release_at(begin + 50);
        }
        assert_eq!(m.acquire(10), 150, "both are taken from 0 to 150");
        m.release_at(200);
        assert_eq!((m.acquire(10), m.stall_cycles), (150, 280));
        m.release_at(160);
        assert_eq!(m.acquire(150), 160);
        assert_eq!(m.acquire(1 << 30), 1 << 30, "what was long ago is forgotten");
        let saved = postcard::to_stdvec(&m).unwrap();
        assert_eq!(postcard::from_bytes::<Mshrs>(&saved).unwrap().acquire(150), 160);
    }
}
