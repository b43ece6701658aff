//! Address slices: the commit records. Each entry is one word that names the first slice of a committed transaction.
//!
//! Entries are written in the order of commits, so those of several transactions share an address slice of 16 words.
//! The slices form a ring. An entry holds its number, which counts commits and decides its place: it is an entry of this
//! round if it is newer than the last collected one, whose number is kept in a word of its own, the mark
//! [D:hoop-address-slices]. What an older round has left says by its number that it is old.

use super::planted;
use super::slice::SLICE_BYTES;
use durasim_contract::{ActiveFault, CrashImage, PmRegion, RecoveryCut};
use durasim_types::PhysAddr;

const FIRST_BITS: u32 = 24;

/// Entries of an address slice.
pub(super) const ENTRIES: u64 = SLICE_BYTES / 8;

/// The ring in persistent memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressSlices {
    region: PmRegion,
    entries: u64,
}

impl AddressSlices {
    /// The ring in this region, whose first slice's place holds the mark.
    pub fn new(region: PmRegion, slices: u32) -> Self {
        AddressSlices { region, entries: u64::from(slices) * ENTRIES }
    }

    /// Bytes of a region with this many address slices.
    pub fn region_bytes(slices: u32) -> u64 {
        (u64::from(slices) + 1) * SLICE_BYTES
    }

    /// The number of commits that can wait for their collection.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The place of the mark: the number of the last collected commit.
    pub fn mark(&self) -> PhysAddr {
        self.region.base
    }

    fn base(&self) -> PhysAddr {
        self.region.base.plus(SLICE_BYTES)
    }

    /// The place of the entry of a commit.
    pub fn place(&self, number: u64) -> PhysAddr {
        self.base().plus(8 * (number % self.entries))
    }

    /// The entry of a commit with this first slice.
    pub fn entry(number: u64, first: u32) -> u64 {
        number << FIRST_BITS | u64::from(first)
    }

    /// Commits that are not collected, oldest first: numbers and first slices.
    pub fn read(&self, image: &CrashImage, fault: ActiveFault) -> Vec<(u64, u32)> {
        let mark = image.read_u64(self.mark());
        let valid = |place: u64| {
            let entry = image.read_u64(self.base().plus(8 * place));
            let (number, first) = (entry >> FIRST_BITS, entry as u32 & ((1 << FIRST_BITS) - 1));
            // It is newer than the last collected one.
            let is_of_this_round = number > mark && number - mark <= self.entries;
            let is_valid = fault.swaps(planted::RECOVERY_IGNORES_MARK, is_of_this_round, number > 0);
            (is_valid && number % self.entries == place).then_some((number, first))
        };
        let mut commits: Vec<(u64, u32)> = (0..self.entries).filter_map(valid).collect();
        commits.sort_unstable();
        commits
    }

    /// Lines of the ring that hold something.
    fn used_lines(&self, image: &CrashImage) -> Vec<PhysAddr> {
        let lines = (0..self.entries / 8).map(|line| self.base().plus(64 * line));
        lines.filter(|&at| image.line(at) != [0; 64]).collect()
    }

    /// The region becomes that of a new machine. Where this is cut, all commits are marked as collected already, so that
    /// what is left of the address slices means nothing.
    pub fn clear(&self, newest: Option<u64>, image: &mut CrashImage) -> Result<(), RecoveryCut> {
        if let Some(number) = newest {
            image.write_u64(self.mark(), number)?;
        }
        for at in self.used_lines(image) {
            image.write(at, &[0; 64])?;
        }
        if image.read_u64(self.mark()) != 0 {
            image.write_u64(self.mark(), 0)?;
        }
        Ok(())
    }
}
