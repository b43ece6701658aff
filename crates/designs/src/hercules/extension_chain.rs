//! Further blocks of the eWPQ extension area. "Excessive transactional data might occasionally overfill the entire CPU
//! cache" (section 4.4), and then the extension area, which is "ten times larger than the eWPQ" (section 4.2): a
//! transaction of 60,000 lines (section 5.2) needs more than both hold.
//!
//! An extension area that is full and has nothing in flight to the home address grows by a block, which is chained to what there was: the
//! saved registers point to the first block, the header of each block to the next. The header of a new block ends the
//! chain before the pointer to it is written, and that before the first of its slots is used. Slots that are not in use
//! are zero at all times, in every run: recovery clears those in use, then the pointers from the last one on. So blocks
//! are in a region of their own, and stay in the chain until then [D:hercules-extension-chain].
//!
//! A search goes by address (section 4.2: "with a target home address"): the part of the home address that entries hold
//! chooses a line of eight slots in the area and in each block, and an entry is in one of these lines. If all of them are
//! full, a block is chained. With the other lookup entries are anywhere, and a search reads them all
//! [D:hercules-extension-search].

use super::planted;
use super::state::State;
use super::zone::PartZone;
use durasim_contract::{AbortCause, Actions, ActiveFault, CrashImage, Origin};
use durasim_types::{Cause, LineAddr, PhysAddr};
use std::ops::Range;

/// The numbers of entries in the extension area itself and in each block: a search reads these.
#[derive(Clone, Debug, Default)]
pub(super) struct Occupancy {
    entries: Vec<u64>,
    /// Lines of eight slots that hold them.
    lines: u64,
    /// Areas that hold any.
    areas: u64,
}

impl Occupancy {
    fn change(&mut self, area: usize, change: impl FnOnce(&mut u64)) {
        if self.entries.len() <= area {
            self.entries.resize(area + 1, 0);
        }
        let entries = &mut self.entries[area];
        self.lines -= entries.div_ceil(8);
        self.areas -= u64::from(*entries > 0);
        change(entries);
        self.lines += entries.div_ceil(8);
        self.areas += u64::from(*entries > 0);
    }

    /// Areas that hold any, up to and including this one.
    pub fn areas_to(&self, last: usize) -> u64 {
        self.entries.iter().take(last + 1).filter(|entries| **entries > 0).count() as u64
    }

    /// Areas that hold any.
    pub fn areas(&self) -> u64 {
        self.areas
    }

    /// Lines that hold any, if they lie side by side.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// A slot is in use.
    pub fn add(&mut self, slot: usize, zone: &PartZone) {
        self.change(zone.area_of(slot as u64), |entries| *entries += 1);
    }

    /// A slot is free again.
    pub fn remove(&mut self, slot: usize, zone: &PartZone) {
        self.change(zone.area_of(slot as u64), |entries| *entries -= 1);
    }
}

impl PartZone {
    /// The number of the area with this slot: 0 for the extension area itself, then the blocks.
    pub fn area_of(&self, slot: u64) -> usize {
        slot.checked_sub(self.extension_entries).map_or(0, |slot| 1 + slot / self.block_entries) as usize
    }

    /// The slots of the line in an area that the home address of an entry chooses.
    pub fn bucket(&self, area: usize, home: LineAddr) -> Range<usize> {
        let (first, slots) = match area as u64 {
            0 => (0, self.extension_entries),
            block => (self.extension_entries + (block - 1) * self.block_entries, self.block_entries),
        };
        // Lines that follow each other, and those at any distance, are spread evenly.
        let spread = self.partial_home(home).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let start = ((spread * slots.div_ceil(8)) >> 32) * 8;
        (first + start) as usize..(first + slots.min(start + 8)) as usize
    }

    /// The pointer to the block of that number, which the one before it holds.
    pub fn block_pointer(&self, block: u64) -> PhysAddr {
        if block == 0 { self.chain_start() } else { self.block(block - 1) }
    }

    /// The blocks of the chain that a power failure left, `None` if a pointer leads nowhere.
    pub fn saved_chain(&self, image: &CrashImage) -> Option<u64> {
        for block in 0..=self.blocks {
            match image.read_u64(self.block_pointer(block)) {
                0 => return Some(block),
                next if block < self.blocks && next == self.block(block).0 => {}
                _ => return None,
            }
        }
        None
    }

    /// The chain grows by a block.
    fn chain(&self, block: u64, fault: ActiveFault, out: &mut Actions) {
        out.append(Origin::Controller, self.block(block), &[0; 8], Cause::Metadata, None);
        if !fault.skips(planted::CHAIN_POINTER_NOT_WRITTEN) {
            let (pointer, next) = (self.block_pointer(block), self.block(block).0.to_le_bytes());
            out.append(Origin::Controller, pointer, &next, Cause::Metadata, None);
        }
    }
}

impl State {
    /// A full eWPQ evicts an entry to its extension area, which grows by a block if it has to; otherwise why it cannot.
    pub(super) fn chain_block(&mut self, controller: usize, out: &mut Actions) -> Result<(), AbortCause> {
        let zone = &self.contents.parts[controller].zone;
        let block = self.contents.parts[controller].ewpq.chained_blocks(zone);
        if block >= zone.blocks {
            return Err(AbortCause::Capacity);
        }
        if self.exceeds_threshold(zone.block_bytes) {
            return Err(AbortCause::OutOfMemory);
        }
        let part = &mut self.contents.parts[controller];
        part.zone.chain(block, self.fault, out);
        part.ewpq.add_block(&part.zone);
        self.counters.chained_blocks += 1;
        Ok(())
    }
}
