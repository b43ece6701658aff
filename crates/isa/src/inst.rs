//! A decoded instruction.

use crate::bus::FenceSet;
use crate::op::{Class, Op};

/// A decoded instruction, small enough to be passed in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inst {
    /// The operation.
    pub op: Op,
    /// Destination register, 0 to 31, in the register file that the operation implies.
    pub rd: u8,
    /// First source register; for `csrrwi`, `csrrsi` and `csrrci` the 5-bit immediate.
    pub rs1: u8,
    /// Second source register.
    pub rs2: u8,
    /// Third source register; of checked stores the register of the offset, if that is no constant.
    pub rs3: u8,
    /// Rounding mode of floating-point operations (7 = that of `frm`); `aq << 1 | rl` of atomic ones; funct7 of checked
    /// accesses and persistent stores.
    pub rm: u8,
    /// Bytes of the encoding: 2 or 4.
    pub len: u8,
    /// Immediate, sign-extended and scaled: the value of `lui` and `auipc`, a byte offset, a shift amount, the number of
    /// a CSR, marker or check register, or `fm << 8 | pred << 4 | succ` of a FENCE.
    pub imm: i32,
}

const _: () = assert!(size_of::<Inst>() <= 16);

/// Registers that calling conventions use for return addresses: ra and t0.
const fn is_link(register: u8) -> bool {
    register == 1 || register == 5
}

impl Inst {
    /// The kind of work.
    #[inline]
    pub fn class(&self) -> Class {
        self.op.info().class
    }

    /// The registers read, as unified ids: 1 to 31 are x1 to x31, 32 to 63 are f0 to f31, 0 is none (or x0).
    #[inline]
    pub fn sources(&self) -> [u8; 3] {
        let banks = &self.op.info().sources;
        [banks[0].id(self.rs1), banks[1].id(self.rs2), banks[2].id(self.rs3)]
    }

    /// The register written, as a unified id; 0 is none (or x0).
    #[inline]
    pub fn dest(&self) -> u8 {
        self.op.info().dest.id(self.rd)
    }

    /// Whether a return address predictor pushes `pc + len`: a jump that links to x1 or x5 (RISC-V unprivileged manual,
    /// table of return-address stack hints).
    #[inline]
    pub fn is_call(&self) -> bool {
        matches!(self.op, Op::Jal | Op::Jalr) && is_link(self.rd)
    }

    /// Whether a return address predictor pops: a `jalr` through x1 or x5 that does not link to the same register. An
    /// instruction may be both a return and a call, and then pops before it pushes.
    #[inline]
    pub fn is_return(&self) -> bool {
        self.op == Op::Jalr && is_link(self.rs1) && !(is_link(self.rd) && self.rd == self.rs1)
    }

    /// The sets of a FENCE. Reserved values of fm act as a plain FENCE, as the manual asks.
    #[inline]
    pub fn fence_set(&self) -> FenceSet {
        let (fm, pred, succ) = (self.imm >> 8 & 15, self.imm >> 4 & 15, self.imm & 15);
        FenceSet { pred: pred as u8, succ: succ as u8, tso: fm == 8 && pred == 3 && succ == 3 }
    }

    /// Whether no instruction after this one belongs to the same basic block. A checked access does not end one: it seldom
    /// jumps, and the executor of a block leaves it then.
    #[inline]
    pub fn ends_block(&self) -> bool {
        matches!(
            self.class(),
            Class::Branch | Class::Jump | Class::IndirectJump | Class::System | Class::FenceI | Class::CheckReturn
        )
    }

    /// The name of the operation in assembly.
    pub fn mnemonic(&self) -> &'static str {
        self.op.mnemonic()
    }
}

/// `name dest, sources, immediate`: enough for an error message, not the syntax of an assembler.
impl std::fmt::Display for Inst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.mnemonic())?;
        let mut separator = " ";
        if matches!(self.op, Op::LogLoad | Op::LogFlush) {
            write!(f, " lr{}", self.rd)?;
            separator = ", ";
        }
        for id in std::iter::once(self.dest()).chain(self.sources()).filter(|&id| id != 0) {
            let (file, index) = if id < 32 { ('x', id) } else { ('f', id - 32) };
            write!(f, "{separator}{file}{index}")?;
            separator = ", ";
        }
        if self.class() == Class::CheckRegister {
            write!(f, "{separator}cr{}", self.imm)?;
        } else if self.imm != 0 {
            write!(f, "{separator}{}", self.imm)?;
            separator = ", ";
        }
        if matches!(self.class(), Class::CheckedLoad | Class::CheckedStore) {
            write!(f, "{separator}{}", self.access_text())?;
        }
        Ok(())
    }
}
