//! The log-structured out-of-place region: blocks of slices, filled one after the other, and the table of their states. The
//! first unused block of that table is the next one, so that the region takes no more of memory than what is not collected
//! [D:hoop-collector].
//!
//! A block is used again when none of its slices is needed: all transactions in it are collected or aborted, and all
//! evicted lines in it have been read back or collected.

use serde::{Deserialize, Serialize};

/// The state of a block in the block index table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum BlockState {
    Unused,
    InUse,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Block {
    state: BlockState,
    /// Slices that are needed.
    live: u32,
}

/// The block index table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Region {
    blocks: Vec<Block>,
    slices_per_block: u32,
    current: u32,
    /// Slices of the current block that have been handed out.
    filled: u32,
    /// Times that the log has continued in a block in front of its last one.
    pub rounds: u64,
}

impl Region {
    pub fn new(blocks: u32, slices_per_block: u32) -> Self {
        let mut region = Region {
            blocks: vec![Block { state: BlockState::Unused, live: 0 }; blocks as usize],
            slices_per_block,
            current: 0,
            filled: 0,
            rounds: 0,
        };
        region.blocks[0].state = BlockState::InUse;
        region
    }

    /// Whether a snapshot holds a region of this shape.
    pub fn has_shape_of(&self, other: &Region) -> bool {
        self.blocks.len() == other.blocks.len()
            && self.slices_per_block == other.slices_per_block
            && (self.current as usize) < self.blocks.len()
            && self.filled <= self.slices_per_block
    }

    /// Number of slices.
    pub fn slices(&self) -> u32 {
        self.blocks.len() as u32 * self.slices_per_block
    }

    /// The next slice of the log; `None` if no block is free.
    pub fn append(&mut self) -> Option<u32> {
        if self.filled == self.slices_per_block {
            let full = &mut self.blocks[self.current as usize];
            full.state = if full.live == 0 { BlockState::Unused } else { BlockState::Full };
            let next = self.blocks.iter().position(|block| block.state == BlockState::Unused)? as u32;
            self.rounds += u64::from(next <= self.current);
            self.current = next;
            self.filled = 0;
            self.blocks[next as usize].state = BlockState::InUse;
        }
        let slice = self.current * self.slices_per_block + self.filled;
        self.filled += 1;
        self.blocks[self.current as usize].live += 1;
        Some(slice)
    }

    /// A slice is not needed any more.
    pub fn free(&mut self, slice: u32) {
        let block = &mut self.blocks[(slice / self.slices_per_block) as usize];
        block.live -= 1;
        if block.live == 0 && block.state == BlockState::Full {
            block.state = BlockState::Unused;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_used_again_when_its_slices_are_free() {
        let mut region = Region::new(3, 2);
        let slices: Vec<u32> = (0..6).map(|_| region.append().unwrap()).collect();
        assert_eq!(slices, [0, 1, 2, 3, 4, 5]);
        assert_eq!(region.append(), None);
        region.free(2);
        assert_eq!(region.append(), None, "slice 3 is needed");
        region.free(3);
        assert_eq!([region.append(), region.append(), region.append()], [Some(2), Some(3), None]);
        assert_eq!(region.rounds, 1);
        region.free(0);
        region.free(1);
        assert_eq!(region.append(), Some(0));
        assert_eq!(region.rounds, 2);
    }
}
