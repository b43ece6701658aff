//! The bytes of memory that the next instruction is going to access, for debuggers.

use crate::hart::Hart;
use crate::inst::Inst;
use crate::op::{Class, Op};
use durasim_types::LINE_BYTES;

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataAccess {
    /// The virtual address of its first byte.
    pub addr: u64,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// Whether it reads memory.
    pub loads: bool,
    /// Whether it writes memory. A store-conditional may fail.
    pub stores: bool,
}

impl DataAccess {
    /// Whether it touches one of `size_bytes` bytes from `addr` on.
    pub fn overlaps(&self, addr: u64, size_bytes: u64) -> bool {
        self.addr < addr.saturating_add(size_bytes) && addr < self.addr.saturating_add(self.size_bytes)
    }
}

impl Inst {
    /// The access that this instruction makes with these registers; `None` if it makes none, or one whose address hardware
    /// checks decide.
    pub fn data_access(&self, hart: &Hart) -> Option<DataAccess> {
        let base = hart.x[usize::from(self.rs1)];
        let (loads, stores) = match self.class() {
            Class::Load => (true, false),
            Class::Store => (false, true),
            Class::Atomic => (!self.op.info().name.starts_with("sc."), !self.op.info().name.starts_with("lr.")),
            _ => return None,
        };
        if self.op == Op::CboZero {
            return Some(DataAccess { addr: base & !(LINE_BYTES - 1), size_bytes: LINE_BYTES, loads, stores });
        }
        let size_bytes = self.access_bytes()?;
        let offset = if self.class() == Class::Atomic { 0 } else { i64::from(self.imm) };
        Some(DataAccess { addr: base.wrapping_add_signed(offset), size_bytes, loads, stores })
    }

    /// Bytes of a load, store or atomic access.
    fn access_bytes(&self) -> Option<u64> {
        let name = self.op.info().name;
        Some(match self.op {
            Op::Lb | Op::Lbu | Op::Sb => 1,
            Op::Lh | Op::Lhu | Op::Sh | Op::Flh | Op::Fsh => 2,
            Op::Lw | Op::Lwu | Op::Sw | Op::Flw | Op::Fsw => 4,
            Op::Ld | Op::Sd | Op::Fld | Op::Fsd => 8,
            _ if self.class() == Class::Atomic => {
                if name.ends_with(".w") {
                    4
                } else {
                    8
                }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode;

    fn access(bits: u32) -> Option<DataAccess> {
        let mut hart = Hart::default();
        hart.x[10] = 0x1010;
        decode(bits).unwrap().data_access(&hart)
    }

    #[test]
    fn the_address_and_the_length_follow_from_the_encoding() {
        let is = |addr, size_bytes, loads, stores| Some(DataAccess { addr, size_bytes, loads, stores });
        assert_eq!(access(0xfeb5_3c23), is(0x1008, 8, false, true), "sd a1, -8(a0)");
        assert_eq!(access(0x0045_0583), is(0x1014, 1, true, false), "lb a1, 4(a0)");
        assert_eq!(access(0x1005_25af), is(0x1010, 4, true, false), "lr.w a1, (a0)");
        assert_eq!(access(0x18c5_35af), is(0x1010, 8, false, true), "sc.d a1, a2, (a0)");
        assert_eq!(access(0x00c5_352f), is(0x1010, 8, true, true), "amoadd.d a0, a2, (a0)");
        assert_eq!(access(0x0045_200f), is(0x1000, 64, false, true), "cbo.zero (a0)");
        assert_eq!(access(0x0000_0013), None, "nop");
    }

    #[test]
    fn accesses_overlap_where_they_share_a_byte() {
        let eight = DataAccess { addr: 8, size_bytes: 8, loads: true, stores: false };
        assert!(eight.overlaps(15, 1) && eight.overlaps(0, 9));
        assert!(!eight.overlaps(16, 8) && !eight.overlaps(0, 8));
    }
}
