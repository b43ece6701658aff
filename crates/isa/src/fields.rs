//! The fields of a 32-bit encoding, which all extensions read alike.

use crate::inst::Inst;
use crate::op::Op;

/// Fields of a 32-bit encoding, under the names of the RISC-V manual.
#[derive(Clone, Copy)]
pub(crate) struct Fields(pub u32);

impl Fields {
    pub fn rd(self) -> u8 {
        (self.0 >> 7 & 31) as u8
    }
    pub fn rs1(self) -> u8 {
        (self.0 >> 15 & 31) as u8
    }
    pub fn rs2(self) -> u8 {
        (self.0 >> 20 & 31) as u8
    }
    pub fn rs3(self) -> u8 {
        (self.0 >> 27) as u8
    }
    pub fn funct3(self) -> u32 {
        self.0 >> 12 & 7
    }
    pub fn funct7(self) -> u32 {
        self.0 >> 25
    }
    pub fn imm_i(self) -> i32 {
        self.0 as i32 >> 20
    }
    pub fn imm_s(self) -> i32 {
        (self.0 as i32 >> 25) << 5 | (self.0 >> 7 & 31) as i32
    }
    pub fn imm_b(self) -> i32 {
        (self.0 as i32 >> 31) << 12
            | ((self.0 >> 7 & 1) << 11 | (self.0 >> 25 & 0x3f) << 5 | (self.0 >> 8 & 0xf) << 1) as i32
    }
    pub fn imm_u(self) -> i32 {
        (self.0 & 0xffff_f000) as i32
    }
    pub fn imm_j(self) -> i32 {
        (self.0 as i32 >> 31) << 20
            | (self.0 & 0xff000) as i32
            | ((self.0 >> 20 & 1) << 11 | (self.0 >> 21 & 0x3ff) << 1) as i32
    }

    /// An instruction with all register fields taken from their usual places and `imm` as given.
    pub fn inst(self, op: Op, imm: i32) -> Inst {
        Inst {
            op,
            rd: self.rd(),
            rs1: self.rs1(),
            rs2: self.rs2(),
            rs3: self.rs3(),
            rm: self.funct3() as u8,
            len: 4,
            imm,
        }
    }
}
