//! Page frames of the DRAM.

use crate::{MemoryMap, PhysMemory};
use durasim_types::{PAGE_BYTES, PhysAddr};
use serde::{Deserialize, Serialize};

/// Hands out page frames that are all zero: returned ones, latest first, else untouched ones in ascending order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frames {
    next_fresh: u64,
    end: u64,
    returned: Vec<PhysAddr>,
}

impl Frames {
    pub(crate) fn new(map: &MemoryMap) -> Self {
        Frames { next_fresh: map.dram_base.0, end: map.dram_base.0 + map.dram_bytes, returned: Vec::new() }
    }

    /// The DRAM has another size from now on; false if more of it is in use.
    pub(crate) fn resize(&mut self, map: &MemoryMap) -> bool {
        let end = map.dram_base.0 + map.dram_bytes;
        if self.next_fresh > end {
            return false;
        }
        self.end = end;
        true
    }

    /// A zeroed frame, or nothing if the DRAM is used up.
    pub(crate) fn take(&mut self) -> Option<PhysAddr> {
        // Returned frames first: they are likely still in the simulated caches, as with a real kernel's free lists.
        if let Some(frame) = self.returned.pop() {
            return Some(frame);
        }
        if self.next_fresh + PAGE_BYTES > self.end {
            return None;
        }
        let frame = PhysAddr(self.next_fresh);
        self.next_fresh += PAGE_BYTES;
        Some(frame)
    }

    /// Takes a frame back and clears it, so that [`Frames::take`] needs no memory.
    pub(crate) fn give_back(&mut self, frame: PhysAddr, mem: &mut dyn PhysMemory) {
        mem.write(frame, &[0; PAGE_BYTES as usize]);
        self.returned.push(frame);
    }

    /// How many frames can still be taken.
    pub(crate) fn available(&self) -> u64 {
        self.returned.len() as u64 + (self.end - self.next_fresh) / PAGE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlatMemory;

    #[test]
    fn returned_frames_come_back_zeroed_and_the_end_is_respected() {
        let map = MemoryMap {
            dram_base: PhysAddr(0x8000_0000),
            dram_bytes: 2 * PAGE_BYTES,
            pmem_base: PhysAddr(0),
            pmem_data_bytes: 0,
        };
        let mut mem = FlatMemory::default();
        let mut frames = Frames::new(&map);
        let first = frames.take().unwrap();
        mem.write(first, &[1; 8]);
        frames.give_back(first, &mut mem);
        assert_eq!(frames.available(), 2);
        assert_eq!(frames.take(), Some(first));
        let mut word = [9; 8];
        mem.read(first, &mut word);
        assert_eq!(word, [0; 8]);
        assert_eq!(frames.take(), Some(PhysAddr(0x8000_1000)));
        assert_eq!(frames.take(), None);
    }
}
