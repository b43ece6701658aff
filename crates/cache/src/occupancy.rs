//! How many of several registers are taken in each cycle, where requests do not come in the order of their times.

use durasim_types::Cycle;
use serde::{Deserialize, Serialize};

/// Cycles that are remembered: longer than a miss takes and than two threads are apart. What is further ahead than that shares
/// entries, which only ever delays.
const REACH: usize = 8192;

/// The registers that are taken in a cycle; none in a later round of the calendar than the entry's own.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Taken {
    round: u32,
    count: u32,
}

/// A calendar of the registers of one cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Occupancy {
    taken: Vec<Taken>,
    /// When the request that was answered last gets its register.
    start: Cycle,
}

impl Occupancy {
    pub fn new() -> Self {
        Occupancy { taken: vec![Taken::default(); REACH], start: 0 }
    }

    fn at(&mut self, cycle: Cycle) -> &mut u32 {
        let entry = &mut self.taken[cycle as usize % REACH];
        let round = (cycle / REACH as Cycle) as u32;
        if entry.round < round {
            *entry = Taken { round, count: 0 };
        }
        &mut entry.count
    }

    /// The first cycle from `at` on in which fewer than `capacity` registers are taken.
    pub fn first_free(&mut self, at: Cycle, capacity: usize) -> Cycle {
        self.start = at;
        while *self.at(self.start) as usize >= capacity {
            self.start += 1;
        }
        self.start
    }

    /// The register that was found last is taken until `end`.
    pub fn take_until(&mut self, end: Cycle) {
        let end = end.min(self.start + REACH as Cycle);
        (self.start..end).for_each(|cycle| *self.at(cycle) += 1);
    }
}
