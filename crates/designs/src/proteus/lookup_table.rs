//! The log lookup table: which blocks the running transaction has logged, as far as it remembers.

use super::entry::BLOCK_BYTES;
use super::spec::ProteusSpec;
use durasim_types::PhysAddr;
use serde::{Deserialize, Serialize};

/// The table of one core: sets of blocks, the one that was used last at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LookupTable {
    sets: Vec<Vec<PhysAddr>>,
    ways: usize,
}

impl LookupTable {
    pub fn new(spec: &ProteusSpec) -> Self {
        let sets = (spec.llt_entries / spec.llt_ways) as usize;
        LookupTable { sets: vec![Vec::new(); sets], ways: spec.llt_ways as usize }
    }

    /// Whether it is one of that shape, with no more blocks than fit.
    pub fn has_shape_of(&self, other: &LookupTable) -> bool {
        self.sets.len() == other.sets.len()
            && self.ways == other.ways
            && self.sets.iter().all(|set| set.len() <= self.ways)
    }

    fn set(&mut self, block: PhysAddr) -> &mut Vec<PhysAddr> {
        let index = (block.0 / BLOCK_BYTES) as usize % self.sets.len();
        &mut self.sets[index]
    }

    /// Whether it remembers the block, which is then the last one used.
    pub fn hit(&mut self, block: PhysAddr) -> bool {
        let set = self.set(block);
        match set.iter().position(|known| *known == block) {
            Some(at) => {
                let known = set.remove(at);
                set.push(known);
                true
            }
            None => false,
        }
    }

    /// Remembers a block, in the place of the least recently used one of a full set; whether one had to go.
    pub fn insert(&mut self, block: PhysAddr) -> bool {
        let ways = self.ways;
        let set = self.set(block);
        let replaces = set.len() == ways;
        if replaces {
            set.remove(0);
        }
        set.push(block);
        replaces
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.sets.iter_mut().for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_set_forgets_the_block_that_was_used_least_recently() {
        let spec = ProteusSpec { llt_entries: 4, llt_ways: 2, ..ProteusSpec::default() };
        let mut table = LookupTable::new(&spec);
        let block = |n: u64| PhysAddr(n * BLOCK_BYTES);
        assert!(!table.insert(block(0)) && !table.insert(block(2)) && !table.insert(block(1)));
        assert!(table.hit(block(0)) && !table.hit(block(4)));
        assert!(table.insert(block(4)));
        assert!(table.hit(block(0)) && !table.hit(block(2)) && table.hit(block(1)));
        table.clear();
        assert!(!table.hit(block(0)));
    }
}
