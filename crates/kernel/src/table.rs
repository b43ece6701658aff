//! The frame of each virtual page, in a form that is cheap to copy.

use durasim_types::PhysAddr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const PAGES_PER_LEAF: u64 = 512;
/// Not the address of a frame: it is not aligned.
const NO_FRAME: u64 = u64::MAX;
type Leaf = [u64; PAGES_PER_LEAF as usize];

/// Frames by virtual page number. A clone shares all leaves, each of 2 MB of addresses, until one side changes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageTable {
    leaves: BTreeMap<u64, Arc<Leaf>>,
}

impl PageTable {
    /// The frame of `page`.
    pub(crate) fn get(&self, page: u64) -> Option<PhysAddr> {
        let frame = self.leaves.get(&(page / PAGES_PER_LEAF))?[(page % PAGES_PER_LEAF) as usize];
        (frame != NO_FRAME).then_some(PhysAddr(frame))
    }

    /// Gives `frame` to `page`.
    pub(crate) fn insert(&mut self, page: u64, frame: PhysAddr) {
        let leaf = self.leaves.entry(page / PAGES_PER_LEAF);
        let leaf = leaf.or_insert_with(|| Arc::new([NO_FRAME; PAGES_PER_LEAF as usize]));
        Arc::make_mut(leaf)[(page % PAGES_PER_LEAF) as usize] = frame.0;
    }

    /// Takes all frames of a range of pages out, by ascending page.
    pub(crate) fn remove(&mut self, pages: Range<u64>) -> Vec<(u64, PhysAddr)> {
        let removed: Vec<_> = self.range(pages).collect();
        for &(page, _) in &removed {
            let leaf = self.leaves.get_mut(&(page / PAGES_PER_LEAF)).expect("the page was found in it");
            Arc::make_mut(leaf)[(page % PAGES_PER_LEAF) as usize] = NO_FRAME;
        }
        for leaf in removed.chunk_by(|a, b| a.0 / PAGES_PER_LEAF == b.0 / PAGES_PER_LEAF) {
            let number = leaf[0].0 / PAGES_PER_LEAF;
            if self.leaves[&number].iter().all(|&frame| frame == NO_FRAME) {
                self.leaves.remove(&number);
            }
        }
        removed
    }

    /// The pages of a range that have frames, in order.
    fn range(&self, pages: Range<u64>) -> impl Iterator<Item = (u64, PhysAddr)> {
        let leaves = self.leaves.range(pages.start / PAGES_PER_LEAF..pages.end.div_ceil(PAGES_PER_LEAF));
        let all = leaves.flat_map(|(&number, leaf)| (number * PAGES_PER_LEAF..).zip(leaf.iter()));
        all.filter(move |&(page, &frame)| frame != NO_FRAME && pages.contains(&page))
            .map(|(page, &frame)| (page, PhysAddr(frame)))
    }
}

impl Serialize for PageTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.range(0..u64::MAX - PAGES_PER_LEAF).collect::<Vec<_>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PageTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = PageTable::default();
        for (page, frame) in Vec::<(u64, PhysAddr)>::deserialize(deserializer)? {
            table.insert(page, frame);
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::Rng;

    #[test]
    fn does_what_a_map_does() {
        let mut rng = Rng::new(3);
        let (mut table, mut map) = (PageTable::default(), BTreeMap::new());
        for n in 0..2000 {
            let page = rng.below(5000);
            if rng.below(10) == 0 {
                let range = page..page + rng.below(900);
                let pages: Vec<u64> = map.range(range.clone()).map(|(&page, _)| page).collect();
                let removed: Vec<_> = pages.iter().map(|page| (*page, map.remove(page).unwrap())).collect();
                assert_eq!(table.remove(range), removed);
            } else {
                table.insert(page, PhysAddr(n * 4096));
                map.insert(page, PhysAddr(n * 4096));
            }
            let page = rng.below(5000);
            assert_eq!(table.get(page), map.get(&page).copied());
        }
        let before = table.clone();
        let back: PageTable = postcard::from_bytes(&postcard::to_stdvec(&table).unwrap()).unwrap();
        assert!(back.range(0..6000).eq(map.iter().map(|(&page, &frame)| (page, frame))));
        table.remove(0..6000);
        assert!(table.leaves.is_empty(), "empty leaves go away");
        assert!(before.range(0..6000).eq(back.range(0..6000)), "the clone keeps its own");
    }
}
