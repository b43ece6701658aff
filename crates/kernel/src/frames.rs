//! Page frames of the DRAM.

use crate::{MemoryMap, PhysMemory};
use durasim_types::{PAGE_BYTES, PhysAddr};
use serde::{Deserialize, Serialize};

/// Frames that a processor takes at a time [D:page-frames].
const RUN_FRAMES: u64 = 63;

/// The frames of one processor: what it has given back, and the rest of its run of untouched ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct List {
    next: u64,
    end: u64,
    returned: Vec<PhysAddr>,
}

impl List {
    /// Returned frames first: they are likely still in the simulated caches, as with a real kernel's free lists.
    fn take(&mut self) -> Option<PhysAddr> {
        if let Some(frame) = self.returned.pop() {
            return Some(frame);
        }
        let frame = (self.next < self.end).then_some(PhysAddr(self.next))?;
        self.next += PAGE_BYTES;
        Some(frame)
    }

    fn available(&self) -> u64 {
        self.returned.len() as u64 + (self.end - self.next) / PAGE_BYTES
    }
}

/// Hands out page frames that are all zero: those that the processor has given back, latest first, else untouched ones.
///
/// As in a kernel, each processor has a list of its own, which takes untouched frames in runs, in ascending order. Threads
/// that touch pages in turns would otherwise get frames with a stride, which share few sets of a cache. When no untouched
/// frame is left, a processor takes frames from the lists of others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frames {
    /// The first frame that no list has had.
    next_fresh: u64,
    end: u64,
    lists: Vec<List>,
    /// The processor that takes frames and gives them back.
    processor: usize,
}

impl Frames {
    pub(crate) fn new(map: &MemoryMap) -> Self {
        let end = map.dram_base.0 + map.dram_bytes;
        Frames { next_fresh: map.dram_base.0, end, lists: vec![List::default()], processor: 0 }
    }

    /// The work that follows is done on this processor.
    pub(crate) fn run_on(&mut self, processor: usize) {
        if self.processor == processor {
            return;
        }
        self.processor = processor;
        if self.lists.len() <= processor {
            self.lists.resize_with(processor + 1, List::default);
        }
    }

    /// The DRAM has another size from now on; false if more of it is in use.
    pub(crate) fn resize(&mut self, map: &MemoryMap) -> bool {
        let end = map.dram_base.0 + map.dram_bytes;
        if self.lists.iter().any(|list| list.next > end) {
            return false;
        }
        for list in &mut self.lists {
            list.end = list.end.min(end);
        }
        self.next_fresh = self.next_fresh.min(end);
        self.end = end;
        true
    }

    /// A zeroed frame, or nothing if the DRAM is used up.
    pub(crate) fn take(&mut self) -> Option<PhysAddr> {
        if let Some(frame) = self.lists[self.processor].take() {
            return Some(frame);
        }
        let begin = self.next_fresh;
        if begin == self.end {
            return self.lists.iter_mut().find_map(List::take);
        }
        self.next_fresh = self.end.min(begin + RUN_FRAMES * PAGE_BYTES);
        let list = &mut self.lists[self.processor];
        (list.next, list.end) = (begin, self.next_fresh);
        list.take()
    }

    /// Takes a frame back and clears it, so that [`Frames::take`] needs no memory.
    pub(crate) fn give_back(&mut self, frame: PhysAddr, mem: &mut dyn PhysMemory) {
        mem.write(frame, &[0; PAGE_BYTES as usize]);
        self.lists[self.processor].returned.push(frame);
    }

    /// The number of frames that can still be taken.
    pub(crate) fn available(&self) -> u64 {
        self.lists.iter().map(List::available).sum::<u64>() + (self.end - self.next_fresh) / PAGE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlatMemory;

    const BASE: u64 = 0x8000_0000;

    fn map(frames: u64) -> MemoryMap {
        MemoryMap {
            dram_base: PhysAddr(BASE),
            dram_bytes: frames * PAGE_BYTES,
            pmem_base: PhysAddr(0),
            pmem_data_bytes: 0,
        }
    }

    /// The numbers of the frames that `count` processors get which take frames in turns.
    fn taken_in_turns(frames: &mut Frames, count: usize, rounds: usize) -> Vec<Vec<u64>> {
        let mut taken = vec![Vec::new(); count];
        for _ in 0..rounds {
            for (processor, taken) in taken.iter_mut().enumerate() {
                frames.run_on(processor);
                taken.push((frames.take().unwrap().0 - BASE) / PAGE_BYTES);
            }
        }
        taken
    }

    #[test]
    fn processors_that_take_frames_in_turns_get_runs_of_them() {
        let mut frames = Frames::new(&map(1000));
        for (processor, taken) in taken_in_turns(&mut frames, 4, 40).into_iter().enumerate() {
            let first = processor as u64 * RUN_FRAMES;
            assert_eq!(taken, (first..first + 40).collect::<Vec<_>>());
        }
        assert_eq!(frames.available(), 1000 - 160);
        // One processor alone gets them in ascending order.
        let taken = taken_in_turns(&mut Frames::new(&map(1000)), 1, 1000);
        assert_eq!(taken[0], (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn all_frames_can_be_taken_whichever_list_they_are_in() {
        let mut mem = FlatMemory::default();
        let mut frames = Frames::new(&map(100));
        taken_in_turns(&mut frames, 3, 2);
        assert_eq!(frames.available(), 94);
        frames.give_back(PhysAddr(BASE), &mut mem);
        frames.run_on(1);
        let mut taken: Vec<u64> = std::iter::from_fn(|| frames.take()).map(|frame| frame.0).collect();
        assert_eq!((taken.len(), frames.available()), (95, 0));
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 95, "none is taken twice");
    }

    #[test]
    fn a_smaller_memory_has_to_hold_what_is_in_use() {
        let mut frames = Frames::new(&map(1000));
        taken_in_turns(&mut frames, 2, 10);
        assert!(!frames.resize(&map(RUN_FRAMES + 9)));
        assert!(frames.resize(&map(RUN_FRAMES + 10)));
        assert_eq!(frames.available(), RUN_FRAMES - 10);
        assert!(frames.resize(&map(500)));
        assert_eq!(frames.available(), 500 - 20);
    }

    #[test]
    fn returned_frames_come_back_zeroed_and_the_end_is_respected() {
        let map = map(2);
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
