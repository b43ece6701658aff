//! Memory without caches, in a form in which a page once found is one look away.

use crate::setup::memory_map::PMEM_BASE;
use durasim_kernel::PhysMemory;
use durasim_types::{PAGE_BYTES, Pages, PhysAddr};
use std::sync::Arc;

pub(super) type Page = [u8; PAGE_BYTES as usize];

/// A page that is in use. Numbers from [`SHARED`] on are those of pages that were only read until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u32);

const SHARED: u32 = 1 << 31;
const NO_SLOT: u32 = u32::MAX;
const SLOTS_PER_LEAF: usize = 1024;

impl Slot {
    /// Whether the page may move when it is written.
    pub(super) fn is_shared(self) -> bool {
        self.0 >= SHARED
    }
}

/// DRAM or persistent memory: pages that are not yet in use, and the slots of the rest.
struct Region {
    contents: Pages,
    slots: Vec<Option<Box<[u32; SLOTS_PER_LEAF]>>>,
}

impl Region {
    fn new(contents: Pages) -> Self {
        Region { contents, slots: Vec::new() }
    }

    fn slot(&self, addr: PhysAddr) -> u32 {
        let page = (addr.0.wrapping_sub(self.contents.base().0) / PAGE_BYTES) as usize;
        let leaf = self.slots.get(page / SLOTS_PER_LEAF).and_then(Option::as_deref);
        leaf.map_or(NO_SLOT, |leaf| leaf[page % SLOTS_PER_LEAF])
    }

    fn set_slot(&mut self, addr: PhysAddr, slot: u32) {
        let page = ((addr.0 - self.contents.base().0) / PAGE_BYTES) as usize;
        if self.slots.len() <= page / SLOTS_PER_LEAF {
            self.slots.resize(page / SLOTS_PER_LEAF + 1, None);
        }
        let leaf = self.slots[page / SLOTS_PER_LEAF].get_or_insert_with(|| Box::new([NO_SLOT; SLOTS_PER_LEAF]));
        leaf[page % SLOTS_PER_LEAF] = slot;
    }
}

/// DRAM and persistent memory of one hart, which has them to itself. Pages that are written leave the shared
/// [`Pages`] and belong to this memory until [`Flat::into_pages`]; a write then needs no permission.
pub(super) struct Flat {
    dram: Region,
    pmem: Region,
    owned: Vec<Box<Page>>,
    /// Their address.
    owned_at: Vec<PhysAddr>,
    shared: Vec<Arc<Page>>,
    shared_at: Vec<PhysAddr>,
    /// Contents of all pages that were never written.
    zero: Arc<Page>,
    /// Whether a shared page has become an owned one: its old slot means nothing any more.
    moved: bool,
}

impl Flat {
    pub(super) fn new(dram: Pages, pmem: Pages) -> Self {
        Flat {
            dram: Region::new(dram),
            pmem: Region::new(pmem),
            owned: Vec::new(),
            owned_at: Vec::new(),
            shared: Vec::new(),
            shared_at: Vec::new(),
            zero: Arc::new([0; PAGE_BYTES as usize]),
            moved: false,
        }
    }

    /// The contents of DRAM and persistent memory. Pages that were only read are those that were there before.
    pub(super) fn into_pages(self) -> (Pages, Pages) {
        let (mut dram, mut pmem) = (self.dram.contents, self.pmem.contents);
        drop(self.shared);
        for (addr, page) in self.owned_at.into_iter().zip(self.owned) {
            let memory = if addr.0 >= PMEM_BASE.0 { &mut pmem } else { &mut dram };
            memory.put_page(addr, Arc::from(page));
        }
        (dram, pmem)
    }

    /// The contents of persistent memory now. Pages that are as in `before` are shared with it.
    pub(super) fn pmem_contents(&self, before: Option<&Pages>) -> Pages {
        let mut contents = self.pmem.contents.clone();
        for (&addr, page) in self.owned_at.iter().zip(&self.owned).filter(|(addr, _)| addr.0 >= PMEM_BASE.0) {
            let known = before.and_then(|before| before.share_page(addr)).filter(|known| **known == **page);
            contents.put_page(addr, known.unwrap_or_else(|| Arc::new(**page)));
        }
        contents
    }

    /// Bytes of the pages that were written.
    pub(super) fn written_bytes(&self) -> u64 {
        self.owned.len() as u64 * PAGE_BYTES
    }

    fn region(&mut self, addr: PhysAddr) -> &mut Region {
        if addr.0 >= PMEM_BASE.0 { &mut self.pmem } else { &mut self.dram }
    }

    /// The slot of the page that holds `addr`, to read there.
    pub(super) fn slot_to_read(&mut self, addr: PhysAddr) -> Slot {
        let region = self.region(addr);
        let known = region.slot(addr);
        if known != NO_SLOT {
            return Slot(known);
        }
        let slot = SHARED + u32::try_from(self.shared.len()).expect("fewer than 2^31 pages");
        let region = self.region(addr);
        region.set_slot(addr, slot);
        let page = region.contents.share_page(addr);
        let page = page.unwrap_or_else(|| self.zero.clone());
        self.shared.push(page);
        self.shared_at.push(page_of(addr));
        Slot(slot)
    }

    /// The slot of the page that holds `addr`, to read and write there.
    pub(super) fn slot_to_write(&mut self, addr: PhysAddr) -> Slot {
        let region = self.region(addr);
        let known = region.slot(addr);
        if known < SHARED {
            return Slot(known);
        }
        let slot = u32::try_from(self.owned.len()).ok().filter(|&slot| slot < SHARED).expect("fewer than 2^31 pages");
        let region = self.region(addr);
        region.set_slot(addr, slot);
        let before = region.contents.take_page(addr);
        if known != NO_SLOT {
            self.shared[(known - SHARED) as usize] = self.zero.clone();
            self.moved = true;
        }
        let page = match before {
            Some(page) => Box::new(*page),
            None => Box::new([0; PAGE_BYTES as usize]),
        };
        self.owned.push(page);
        self.owned_at.push(page_of(addr));
        Slot(slot)
    }

    /// Whether slots that were given to read may mean nothing any more since the last call.
    pub(super) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// The page in a slot.
    #[inline(always)]
    pub(super) fn page(&self, slot: Slot) -> &Page {
        match self.owned.get(slot.0 as usize) {
            Some(page) => page,
            None => self.shared_page(slot),
        }
    }

    #[cold]
    #[inline(never)]
    fn shared_page(&self, slot: Slot) -> &Page {
        &self.shared[(slot.0 - SHARED) as usize]
    }

    /// The page in a slot that was given to write.
    #[inline(always)]
    pub(super) fn page_mut(&mut self, slot: Slot) -> &mut Page {
        &mut self.owned[slot.0 as usize]
    }

    /// Address of the page in a slot.
    #[inline(always)]
    pub(super) fn page_addr(&self, slot: Slot) -> PhysAddr {
        match self.owned_at.get(slot.0 as usize) {
            Some(&addr) => addr,
            None => self.shared_at[(slot.0 - SHARED) as usize],
        }
    }
}

const fn page_of(addr: PhysAddr) -> PhysAddr {
    PhysAddr(addr.0 & !(PAGE_BYTES - 1))
}

/// Number of `bytes` from `addr` on that are on its page.
pub(super) fn on_this_page(addr: u64, bytes: usize) -> usize {
    ((PAGE_BYTES - addr % PAGE_BYTES) as usize).min(bytes)
}

impl PhysMemory for Flat {
    fn read(&mut self, addr: PhysAddr, bytes: &mut [u8]) {
        let (mut addr, mut rest) = (addr, bytes);
        while !rest.is_empty() {
            let (now, later) = rest.split_at_mut(on_this_page(addr.0, rest.len()));
            let at = (addr.0 % PAGE_BYTES) as usize;
            let slot = self.slot_to_read(addr);
            now.copy_from_slice(&self.page(slot)[at..at + now.len()]);
            addr = addr.plus(now.len() as u64);
            rest = later;
        }
    }

    fn write(&mut self, addr: PhysAddr, bytes: &[u8]) {
        let (mut addr, mut rest) = (addr, bytes);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(on_this_page(addr.0, rest.len()));
            let at = (addr.0 % PAGE_BYTES) as usize;
            let slot = self.slot_to_write(addr);
            self.page_mut(slot)[at..at + now.len()].copy_from_slice(now);
            addr = addr.plus(now.len() as u64);
            rest = later;
        }
    }

    /// There are no caches.
    fn persist(&mut self, _: PhysAddr, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::memory_map::DRAM_BASE;

    #[test]
    fn pages_that_are_written_leave_and_come_back() {
        let mut dram = Pages::new(DRAM_BASE, 1 << 30);
        let at = |offset: u64| DRAM_BASE.plus(offset);
        dram.write(at(0), &[1; 8]);
        dram.write(at(0x5000), &[5; 8]);
        let before = dram.clone();
        let mut flat = Flat::new(dram, Pages::new(PMEM_BASE, 1 << 30));
        let mut bytes = [9; 8];
        flat.read(at(0x9000), &mut bytes);
        assert_eq!(bytes, [0; 8]);
        let read = flat.slot_to_read(at(0x5004));
        assert_eq!((flat.page(read)[0], flat.page_addr(read), flat.take_moved()), (5, at(0x5000), false));
        // Across a page that was written before and one that was not.
        flat.write(at(0x5ffc), &[7; 8]);
        assert!(flat.take_moved() && !flat.take_moved(), "the slot for reading 0x5000 is another now");
        flat.write(PMEM_BASE.plus(0x3000), &[3; 8]);
        flat.read(at(0x5ffc), &mut bytes);
        assert_eq!(bytes, [7; 8]);
        let (dram, pmem) = flat.into_pages();
        let touched: Vec<_> = dram.touched().map(|(addr, page)| (addr, page[0], page[4095])).collect();
        assert_eq!(touched, [(at(0), 1, 0), (at(0x5000), 5, 7), (at(0x6000), 7, 0)]);
        assert!(dram.shares_page(&before, at(0)) && !dram.shares_page(&before, at(0x5000)));
        assert_eq!(before.read_u64(at(0x5ff8)), 0, "the copy keeps its own");
        assert_eq!(pmem.touched().map(|(addr, _)| addr).collect::<Vec<_>>(), [PMEM_BASE.plus(0x3000)]);
    }
}
