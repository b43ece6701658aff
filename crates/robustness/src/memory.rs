//! Memory that notices every access outside of it.

use durasim_kernel::{MemoryMap, PhysMemory};
use durasim_types::{Pages, PhysAddr};

/// The two memories of a machine, without caches. An access outside of both, or across the end of one, panics.
pub(crate) struct Fenced {
    dram: Pages,
    pub pmem: Pages,
}

impl Fenced {
    pub fn new(map: &MemoryMap) -> Self {
        Fenced { dram: Pages::new(map.dram_base, map.dram_bytes), pmem: Pages::new(map.pmem_base, map.pmem_data_bytes) }
    }
}

impl PhysMemory for Fenced {
    fn read(&mut self, addr: PhysAddr, bytes: &mut [u8]) {
        let of = if self.dram.contains(addr) { &self.dram } else { &self.pmem };
        of.read(addr, bytes);
    }

    fn write(&mut self, addr: PhysAddr, bytes: &[u8]) {
        let of = if self.dram.contains(addr) { &mut self.dram } else { &mut self.pmem };
        of.write(addr, bytes);
    }

    /// There are no caches.
    fn persist(&mut self, _: PhysAddr, _: u64) {}
}

/// Small memories for programs that do little.
pub(crate) fn small_map() -> MemoryMap {
    MemoryMap {
        dram_base: PhysAddr(0x8000_0000),
        dram_bytes: 32 << 20,
        pmem_base: PhysAddr(0x1_0000_0000),
        pmem_data_bytes: 1 << 20,
    }
}
