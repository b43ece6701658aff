//! The places of both memories in the physical address space.

use durasim_types::{LineAddr, PhysAddr};

/// First byte of the DRAM.
pub const DRAM_BASE: PhysAddr = PhysAddr(0x8000_0000);
/// First byte of the persistent memory.
pub const PMEM_BASE: PhysAddr = PhysAddr(0x100_0000_0000);

/// Whether a line is in persistent memory.
#[inline]
pub(crate) fn is_pmem(line: LineAddr) -> bool {
    line.0 >= PMEM_BASE.line().0
}
