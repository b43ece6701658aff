//! Cached translations. They cost no simulated time and are dropped whenever mappings change; what TLBs cost, on machines that
//! have them, is in [`crate::tlb`].

use durasim_types::{PAGE_BYTES, PhysAddr};
use serde::{Deserialize, Serialize};

const ENTRIES: usize = 256;
const EMPTY: u64 = u64::MAX;

/// Translations of one kind of access.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub(crate) struct Translations {
    /// Page and frame. Apart from the core, so that moving one costs little.
    entries: Box<[(u64, u64); ENTRIES]>,
}

impl Default for Translations {
    fn default() -> Self {
        Translations::new()
    }
}

impl From<Translations> for Vec<(u64, u64)> {
    fn from(cached: Translations) -> Self {
        cached.entries.iter().copied().filter(|(page, _)| *page != EMPTY).collect()
    }
}

impl From<Vec<(u64, u64)>> for Translations {
    fn from(saved: Vec<(u64, u64)>) -> Self {
        let mut cached = Translations::new();
        for (page, frame) in saved {
            cached.entries[page as usize % ENTRIES] = (page, frame);
        }
        cached
    }
}

impl Translations {
    pub(crate) fn new() -> Self {
        Translations { entries: Box::new([(EMPTY, 0); ENTRIES]) }
    }

    #[inline]
    pub(crate) fn get(&self, addr: u64) -> Option<PhysAddr> {
        let page = addr / PAGE_BYTES;
        let (cached, frame) = self.entries[page as usize % ENTRIES];
        (cached == page).then(|| PhysAddr(frame + addr % PAGE_BYTES))
    }

    pub(crate) fn put(&mut self, addr: u64, phys: PhysAddr) {
        let page = addr / PAGE_BYTES;
        self.entries[page as usize % ENTRIES] = (page, phys.0 - addr % PAGE_BYTES);
    }

    pub(crate) fn clear(&mut self) {
        self.entries.fill((EMPTY, 0));
    }
}
