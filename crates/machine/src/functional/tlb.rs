//! Slots of a [`Flat`](super::memory::Flat) with the pages that a program has used last.

use super::memory::Slot;
use durasim_types::PAGE_BYTES;

/// Pages: 16 MiB of data. More than a real TLB has, since a walk costs here as much as there.
const ENTRIES: usize = 4096;

/// Slots by page number, direct mapped.
pub(super) struct Tlb {
    /// The number of a page plus 1, and its slot. An unused entry is 0: the host gives memory only for what is used.
    entries: Box<[(u64, u32)]>,
    /// Entries that may be in use, while they are few: recoveries are short and clear what they know with each mapping.
    inserted: Vec<u16>,
}

impl Default for Tlb {
    fn default() -> Self {
        Tlb { entries: vec![(0, 0); ENTRIES].into(), inserted: Vec::new() }
    }
}

impl Tlb {
    /// The slot of the page of `addr`, if it is known.
    #[inline(always)]
    pub(super) fn slot(&self, addr: u64) -> Option<Slot> {
        let tag = tag_of(addr);
        let (known, slot) = self.entries[tag as usize % ENTRIES];
        (known == tag).then_some(Slot(slot))
    }

    pub(super) fn insert(&mut self, addr: u64, slot: Slot) {
        let tag = tag_of(addr);
        let index = tag as usize % ENTRIES;
        self.entries[index] = (tag, slot.0);
        if self.inserted.len() < ENTRIES / 2 {
            self.inserted.push(index as u16);
        }
    }

    pub(super) fn clear(&mut self) {
        self.forget(|_| true);
        self.inserted.clear();
    }

    /// Forgets pages that may move when they are written.
    pub(super) fn forget_shared(&mut self) {
        self.forget(Slot::is_shared);
    }

    fn forget(&mut self, is_gone: impl Fn(Slot) -> bool) {
        let forget = |entry: &mut (u64, u32)| {
            if is_gone(Slot(entry.1)) {
                *entry = (0, 0);
            }
        };
        if self.inserted.len() < ENTRIES / 2 {
            self.inserted.iter().for_each(|&index| forget(&mut self.entries[usize::from(index)]));
        } else {
            self.entries.iter_mut().for_each(forget);
        }
    }
}

/// Not 0, also for the first page of an address space.
#[inline(always)]
const fn tag_of(addr: u64) -> u64 {
    addr / PAGE_BYTES + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_known_until_others_take_their_place() {
        let mut tlb = Tlb::default();
        assert_eq!(tlb.slot(0), None);
        let far = ENTRIES as u64 * PAGE_BYTES;
        tlb.insert(8, Slot(3));
        tlb.insert(PAGE_BYTES, Slot(u32::MAX));
        assert_eq!(
            (tlb.slot(PAGE_BYTES - 1), tlb.slot(PAGE_BYTES), tlb.slot(far)),
            (Some(Slot(3)), Some(Slot(u32::MAX)), None)
        );
        tlb.forget_shared();
        assert_eq!((tlb.slot(0), tlb.slot(PAGE_BYTES)), (Some(Slot(3)), None));
        tlb.insert(far, Slot(4));
        assert_eq!((tlb.slot(0), tlb.slot(far)), (None, Some(Slot(4))));
        tlb.clear();
        assert_eq!(tlb.slot(far), None);
    }

    #[test]
    fn many_pages_are_forgotten_too() {
        let mut tlb = Tlb::default();
        for turn in 0..2 {
            for page in 0..ENTRIES as u64 {
                tlb.insert(page * PAGE_BYTES, Slot(turn));
            }
            assert_eq!(tlb.slot(PAGE_BYTES * (ENTRIES as u64 - 1)), Some(Slot(turn)));
            tlb.clear();
            assert!((0..ENTRIES as u64).all(|page| tlb.slot(page * PAGE_BYTES).is_none()));
        }
    }
}
