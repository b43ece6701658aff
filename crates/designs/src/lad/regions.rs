//! The regions to which LAD's controllers write: the undo log of each controller (section 4.6) and the purgatory (section
//! 4.8).

use crate::dtx::Dtx;
use durasim_contract::{CrashImage, Geometry, StagedWrite};
use durasim_types::{LINE_BYTES, LineAddr, PhysAddr};

/// An undo entry: a line with the old value, and a line with its place and its DTX.
pub(super) const UNDO_RECORD_BYTES: u64 = 2 * LINE_BYTES;
/// An entry of the purgatory: a line with its place, group and mask, and a line with its bytes.
pub(super) const PURGATORY_RECORD_BYTES: u64 = 2 * LINE_BYTES;

/// The layout of the undo logs: each controller's log is in lines of its own, so that it writes to no other controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct UndoRegion {
    base: PhysAddr,
    controllers: u64,
    /// The controller of the first block of the region.
    first: u64,
    block_bytes: u64,
}

impl UndoRegion {
    pub fn new(geometry: &Geometry) -> Self {
        let base = geometry.region("undo-log").base;
        // Blocks are whole from the first boundary on.
        let block_bytes = geometry.interleave_bytes;
        let base = PhysAddr(base.0.next_multiple_of(block_bytes));
        UndoRegion {
            base,
            controllers: geometry.controllers.into(),
            first: geometry.controller_of(base.line()).into(),
            block_bytes,
        }
    }

    /// The n-th line of the log of a controller.
    fn line(&self, controller: u16, n: u64) -> PhysAddr {
        let own = (u64::from(controller) + self.controllers - self.first) % self.controllers;
        let lines_per_block = self.block_bytes / LINE_BYTES;
        let (block, in_block) = (n / lines_per_block, n % lines_per_block);
        self.base.plus((block * self.controllers + own) * self.block_bytes + in_block * LINE_BYTES)
    }

    /// The address of the old value of an entry.
    pub fn old_value(&self, controller: u16, slot: u64) -> PhysAddr {
        self.line(controller, 2 * slot)
    }

    /// The address of the header of an entry, with its home address and its DTX.
    pub fn header(&self, controller: u16, slot: u64) -> PhysAddr {
        self.line(controller, 2 * slot + 1)
    }
}

/// The header of an undo entry.
pub(super) fn undo_header(line: LineAddr, dtx: Dtx) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&line.base().0.to_le_bytes());
    bytes[8..].copy_from_slice(&dtx.number().to_le_bytes());
    bytes
}

/// The header of an entry of the purgatory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PurgatoryHeader {
    pub home: PhysAddr,
    /// The DTX of a speculative entry; `None`: an ordinary write-back that arrived after one of its line.
    pub dtx: Option<Dtx>,
    pub mask: u64,
}

impl PurgatoryHeader {
    pub fn of(write: &StagedWrite) -> Self {
        PurgatoryHeader { home: write.line.base(), dtx: write.group.map(Dtx::of), mask: write.mask }
    }

    pub fn bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let number = self.dtx.map_or(0, Dtx::number);
        for (at, word) in [self.home.0, number, self.mask].into_iter().enumerate() {
            bytes[8 * at..][..8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub fn read(image: &CrashImage, at: PhysAddr) -> Self {
        let number = image.read_u64(at.plus(8));
        let dtx = (number != 0).then(|| Dtx::of(number));
        PurgatoryHeader { home: PhysAddr(image.read_u64(at)), dtx, mask: image.read_u64(at.plus(16)) }
    }
}

/// The address of an entry of the purgatory; its bytes are in the next line.
pub(super) fn purgatory_record(geometry: &Geometry, index: u64) -> PhysAddr {
    geometry.region("purgatory").base.plus((1 + index) * PURGATORY_RECORD_BYTES)
}

/// The address of the number of entries in the purgatory.
pub(super) fn purgatory_count(geometry: &Geometry) -> PhysAddr {
    geometry.region("purgatory").base
}
