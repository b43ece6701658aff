//! C: 16-bit encodings. Each expands to the operation of a 32-bit instruction with `len` 2.

use crate::inst::Inst;
use crate::op::Op;

/// Fields of a 16-bit encoding.
#[derive(Clone, Copy)]
struct Half(u32);

impl Half {
    /// Bits `from` (width `width`), moved to bit `to`.
    fn at(self, from: u32, width: u32, to: u32) -> i32 {
        ((self.0 >> from & ((1 << width) - 1)) << to) as i32
    }
    /// The full register field at bit 7: rd or rs1.
    fn rd(self) -> u8 {
        (self.0 >> 7 & 31) as u8
    }
    /// The full register field at bit 2: rs2.
    fn rs2(self) -> u8 {
        (self.0 >> 2 & 31) as u8
    }
    /// The short register field at bit 7, one of x8 to x15: rs1' or rd'.
    fn high(self) -> u8 {
        (self.0 >> 7 & 7) as u8 + 8
    }
    /// The short register field at bit 2: rs2' or rd'.
    fn low(self) -> u8 {
        (self.0 >> 2 & 7) as u8 + 8
    }
    /// The 6-bit immediate of arithmetic instructions.
    fn imm6(self) -> i32 {
        (self.at(12, 1, 5) | self.at(2, 5, 0)) << 26 >> 26
    }
    /// The six bits of an immediate without a sign: shift amounts.
    fn shamt(self) -> i32 {
        self.at(12, 1, 5) | self.at(2, 5, 0)
    }
    /// Offset of word loads and stores.
    fn offset_w(self) -> i32 {
        self.at(5, 1, 6) | self.at(10, 3, 3) | self.at(6, 1, 2)
    }
    /// Offset of doubleword loads and stores.
    fn offset_d(self) -> i32 {
        self.at(5, 2, 6) | self.at(10, 3, 3)
    }
    /// Offset of word loads from the stack.
    fn offset_lwsp(self) -> i32 {
        self.at(2, 2, 6) | self.at(12, 1, 5) | self.at(4, 3, 2)
    }
    /// Offset of doubleword loads from the stack.
    fn offset_ldsp(self) -> i32 {
        self.at(2, 3, 6) | self.at(12, 1, 5) | self.at(5, 2, 3)
    }
    /// Offset of word stores to the stack.
    fn offset_swsp(self) -> i32 {
        self.at(7, 2, 6) | self.at(9, 4, 2)
    }
    /// Offset of doubleword stores to the stack.
    fn offset_sdsp(self) -> i32 {
        self.at(7, 3, 6) | self.at(10, 3, 3)
    }
    fn offset_jump(self) -> i32 {
        let imm = self.at(12, 1, 11)
            | self.at(8, 1, 10)
            | self.at(9, 2, 8)
            | self.at(6, 1, 7)
            | self.at(7, 1, 6)
            | self.at(2, 1, 5)
            | self.at(11, 1, 4)
            | self.at(3, 3, 1);
        imm << 20 >> 20
    }
    fn offset_branch(self) -> i32 {
        let imm = self.at(12, 1, 8) | self.at(5, 2, 6) | self.at(2, 1, 5) | self.at(10, 2, 3) | self.at(3, 2, 1);
        imm << 23 >> 23
    }
}

const SP: u8 = 2;

fn inst(op: Op, rd: u8, rs1: u8, rs2: u8, imm: i32) -> Option<Inst> {
    Some(Inst { op, rd, rs1, rs2, rs3: 0, rm: 0, len: 2, imm })
}

fn load(op: Op, rd: u8, base: u8, offset: i32) -> Option<Inst> {
    inst(op, rd, base, 0, offset)
}

fn store(op: Op, value: u8, base: u8, offset: i32) -> Option<Inst> {
    inst(op, 0, base, value, offset)
}

/// Expands a 16-bit encoding whose low two bits are not both set; `None` for reserved ones.
pub(crate) fn decode(bits: u16) -> Option<Inst> {
    let half = Half(u32::from(bits));
    match bits & 3 {
        0 => decode_quadrant_0(half),
        1 => decode_quadrant_1(half),
        2 => decode_quadrant_2(half),
        _ => None,
    }
}

fn decode_quadrant_0(half: Half) -> Option<Inst> {
    match half.0 >> 13 {
        0b000 => {
            let imm = half.at(7, 4, 6) | half.at(11, 2, 4) | half.at(5, 1, 3) | half.at(6, 1, 2);
            // The all-zero halfword is among the reserved ones: zeroed memory does not execute.
            if imm == 0 { None } else { inst(Op::Addi, half.low(), SP, 0, imm) }
        }
        0b001 => load(Op::Fld, half.low(), half.high(), half.offset_d()),
        0b010 => load(Op::Lw, half.low(), half.high(), half.offset_w()),
        0b011 => load(Op::Ld, half.low(), half.high(), half.offset_d()),
        0b101 => store(Op::Fsd, half.low(), half.high(), half.offset_d()),
        0b110 => store(Op::Sw, half.low(), half.high(), half.offset_w()),
        0b111 => store(Op::Sd, half.low(), half.high(), half.offset_d()),
        _ => None,
    }
}

fn decode_quadrant_1(half: Half) -> Option<Inst> {
    let rd = half.rd();
    match half.0 >> 13 {
        0b000 => inst(Op::Addi, rd, rd, 0, half.imm6()),
        0b001 if rd != 0 => inst(Op::Addiw, rd, rd, 0, half.imm6()),
        0b010 => inst(Op::Addi, rd, 0, 0, half.imm6()),
        0b011 if half.imm6() == 0 => None,
        0b011 if rd == SP => {
            let imm = half.at(12, 1, 9) | half.at(3, 2, 7) | half.at(5, 1, 6) | half.at(2, 1, 5) | half.at(6, 1, 4);
            inst(Op::Addi, SP, SP, 0, imm << 22 >> 22)
        }
        0b011 => inst(Op::Lui, rd, 0, 0, half.imm6() << 12),
        0b100 => decode_arithmetic(half),
        0b101 => inst(Op::Jal, 0, 0, 0, half.offset_jump()),
        0b110 => inst(Op::Beq, 0, half.high(), 0, half.offset_branch()),
        0b111 => inst(Op::Bne, 0, half.high(), 0, half.offset_branch()),
        _ => None,
    }
}

fn decode_arithmetic(half: Half) -> Option<Inst> {
    let rd = half.high();
    match half.0 >> 10 & 3 {
        0 => inst(Op::Srli, rd, rd, 0, half.shamt()),
        1 => inst(Op::Srai, rd, rd, 0, half.shamt()),
        2 => inst(Op::Andi, rd, rd, 0, half.imm6()),
        _ => {
            let op = match (half.0 >> 12 & 1, half.0 >> 5 & 3) {
                (0, 0) => Op::Sub,
                (0, 1) => Op::Xor,
                (0, 2) => Op::Or,
                (0, _) => Op::And,
                (1, 0) => Op::Subw,
                (1, 1) => Op::Addw,
                _ => return None,
            };
            inst(op, rd, rd, half.low(), 0)
        }
    }
}

fn decode_quadrant_2(half: Half) -> Option<Inst> {
    let (rd, rs2) = (half.rd(), half.rs2());
    match half.0 >> 13 {
        0b000 => inst(Op::Slli, rd, rd, 0, half.shamt()),
        0b001 => load(Op::Fld, rd, SP, half.offset_ldsp()),
        0b010 if rd != 0 => load(Op::Lw, rd, SP, half.offset_lwsp()),
        0b011 if rd != 0 => load(Op::Ld, rd, SP, half.offset_ldsp()),
        0b100 => match (half.0 >> 12 & 1, rd, rs2) {
            (0, 0, 0) => None,
            (0, _, 0) => inst(Op::Jalr, 0, rd, 0, 0),
            (0, _, _) => inst(Op::Add, rd, 0, rs2, 0),
            (_, 0, 0) => inst(Op::Ebreak, 0, 0, 0, 0),
            (_, _, 0) => inst(Op::Jalr, 1, rd, 0, 0),
            (_, _, _) => inst(Op::Add, rd, rd, rs2, 0),
        },
        0b101 => store(Op::Fsd, rs2, SP, half.offset_sdsp()),
        0b110 => store(Op::Sw, rs2, SP, half.offset_swsp()),
        0b111 => store(Op::Sd, rs2, SP, half.offset_sdsp()),
        _ => None,
    }
}
