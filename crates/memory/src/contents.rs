//! The ranges that the media of a memory hold: one range of addresses, or two that share controllers and media.

use durasim_types::{Line, LineAddr, Pages, PhysAddr};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// The ranges, in the order of their addresses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    regions: Vec<Pages>,
    /// The number of the first line of the second range; greater than all lines if there is one range.
    second_line: u64,
}

impl Contents {
    pub fn new(regions: Vec<Pages>) -> Self {
        assert!(matches!(regions.len(), 1 | 2), "a memory has one range of addresses, or two");
        let second_line = regions.get(1).map_or(u64::MAX, |second| second.base().line().0);
        assert!(regions[0].base().line().0 < second_line, "ranges come in the order of their addresses");
        Contents { regions, second_line }
    }

    /// Number of ranges.
    pub fn count(&self) -> usize {
        self.regions.len()
    }

    /// The number of the first line of the second range; greater than all lines if there is one range.
    pub fn second_line(&self) -> u64 {
        self.second_line
    }

    /// The range of a line.
    #[inline]
    pub fn region_of(&self, line: LineAddr) -> usize {
        usize::from(line.0 >= self.second_line)
    }

    pub fn region(&self, region: usize) -> &Pages {
        &self.regions[region]
    }

    pub fn region_mut(&mut self, region: usize) -> &mut Pages {
        &mut self.regions[region]
    }

    #[inline]
    pub fn contains(&self, addr: PhysAddr) -> bool {
        self.regions.iter().any(|pages| pages.contains(addr))
    }

    #[inline]
    pub fn line(&self, line: LineAddr) -> Line {
        self.regions[self.region_of(line)].line(line)
    }

    pub fn write(&mut self, addr: PhysAddr, bytes: &[u8]) {
        let region = self.region_of(addr.line());
        self.regions[region].write(addr, bytes);
    }

    pub fn write_masked(&mut self, line: LineAddr, mask: u64, data: &Line) {
        let region = self.region_of(line);
        self.regions[region].write_masked(line, mask, data);
    }

    pub fn digest(&self, hasher: &mut dyn Hasher) {
        self.regions.iter().for_each(|pages| pages.digest(hasher));
    }
}
