//! Cached translations. They cost no simulated time (see LIMITS.md) and are dropped whenever mappings change.

use durasim_types::{PAGE_BYTES, PhysAddr};

const ENTRIES: usize = 256;
const EMPTY: u64 = u64::MAX;

/// Translations of one kind of access.
#[derive(Clone, Debug)]
pub(crate) struct Tlb {
    pages: [u64; ENTRIES],
    frames: [u64; ENTRIES],
}

impl Default for Tlb {
    fn default() -> Self {
        Tlb::new()
    }
}

impl Tlb {
    pub(crate) fn new() -> Self {
        Tlb { pages: [EMPTY; ENTRIES], frames: [0; ENTRIES] }
    }

    #[inline]
    pub(crate) fn get(&self, addr: u64) -> Option<PhysAddr> {
        let page = addr / PAGE_BYTES;
        let at = page as usize % ENTRIES;
        (self.pages[at] == page).then(|| PhysAddr(self.frames[at] + addr % PAGE_BYTES))
    }

    pub(crate) fn put(&mut self, addr: u64, phys: PhysAddr) {
        let at = (addr / PAGE_BYTES) as usize % ENTRIES;
        self.pages[at] = addr / PAGE_BYTES;
        self.frames[at] = phys.0 - addr % PAGE_BYTES;
    }

    pub(crate) fn clear(&mut self) {
        self.pages = [EMPTY; ENTRIES];
    }
}
