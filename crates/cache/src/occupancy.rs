//! The number of registers taken in each cycle, where requests do not come in the order of their times.

use durasim_types::Cycle;
use serde::{Deserialize, Serialize};

/// Cycles of a block. Most of a long miss is counted by blocks.
const BLOCK: usize = 64;
/// Blocks that are remembered: more cycles than a miss takes and than two threads are apart. What is further ahead than that
/// shares entries, which only ever delays.
const BLOCKS: usize = 128;

/// The registers that are taken in the cycles of a block; none in a later round of the calendar than the block's own.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Block {
    round: u32,
    /// In all of its cycles.
    throughout: u16,
    /// In addition, in each of them.
    partly: Vec<u16>,
}

/// A calendar of the registers of one cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Occupancy {
    blocks: Vec<Block>,
    /// The time at which the request that was answered last gets its register.
    start: Cycle,
}

impl Occupancy {
    pub fn new() -> Self {
        Occupancy { blocks: vec![Block { round: 0, throughout: 0, partly: vec![0; BLOCK] }; BLOCKS], start: 0 }
    }

    /// The block of a cycle.
    fn block(&mut self, cycle: Cycle) -> &mut Block {
        let number = cycle / BLOCK as Cycle;
        let block = &mut self.blocks[number as usize % BLOCKS];
        let round = (number / BLOCKS as Cycle) as u32;
        if block.round < round {
            (block.round, block.throughout) = (round, 0);
            block.partly.fill(0);
        }
        block
    }

    /// The first cycle from `at` on in which fewer than `capacity` registers are taken.
    pub fn first_free(&mut self, at: Cycle, capacity: usize) -> Cycle {
        let mut cycle = at;
        loop {
            let block = self.block(cycle);
            let first = cycle as usize % BLOCK;
            let is_free = |partly: &u16| usize::from(block.throughout + partly) < capacity;
            if let Some(later) = block.partly[first..].iter().position(is_free) {
                self.start = cycle + later as Cycle;
                return self.start;
            }
            cycle += (BLOCK - first) as Cycle;
        }
    }

    /// The register that was found last is taken until `end`.
    pub fn take_until(&mut self, end: Cycle) {
        let end = end.min(self.start + (BLOCK * BLOCKS) as Cycle);
        let mut cycle = self.start;
        while cycle < end {
            let first = cycle as usize % BLOCK;
            let last = BLOCK.min(first + (end - cycle) as usize);
            let block = self.block(cycle);
            if last - first == BLOCK {
                block.throughout += 1;
            } else {
                block.partly[first..last].iter_mut().for_each(|taken| *taken += 1);
            }
            cycle += (last - first) as Cycle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a plain count by cycle.
    #[test]
    fn it_counts_what_is_taken_in_each_cycle() {
        let (mut occupancy, mut plain) = (Occupancy::new(), vec![0_usize; BLOCK * BLOCKS]);
        let mut random = durasim_types::Rng::new(7);
        for _ in 0..150 {
            let at = random.below(3000);
            let first = (at..).find(|&cycle| plain[cycle as usize] < 3).unwrap();
            assert_eq!(occupancy.first_free(at, 3), first);
            let cycles_max = [20, 400][random.below(2) as usize];
            let end = first + random.below(cycles_max);
            occupancy.take_until(end);
            plain[first as usize..end as usize].iter_mut().for_each(|taken| *taken += 1);
        }
    }
}
