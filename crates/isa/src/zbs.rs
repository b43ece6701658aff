//! Zbs: single bits.

use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode_op(fields: Fields) -> Option<Inst> {
    let op = match (fields.funct7(), fields.funct3()) {
        (0x24, 1) => Op::Bclr,
        (0x24, 5) => Op::Bext,
        (0x34, 1) => Op::Binv,
        (0x14, 1) => Op::Bset,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}

pub(crate) fn decode_op_imm(fields: Fields) -> Option<Inst> {
    let op = match (fields.0 >> 26, fields.funct3()) {
        (0x12, 1) => Op::Bclri,
        (0x12, 5) => Op::Bexti,
        (0x1a, 1) => Op::Binvi,
        (0x0a, 1) => Op::Bseti,
        _ => return None,
    };
    Some(fields.inst(op, fields.imm_i() & 63))
}

/// The value of rd. The number of the bit is in rs2, or the immediate.
pub(crate) fn value(op: Op, rs1: u64, rs2: u64, imm: i32) -> u64 {
    let register = 1 << (rs2 & 63);
    let constant = 1 << (imm & 63);
    match op {
        Op::Bclr => rs1 & !register,
        Op::Bext => u64::from(rs1 & register != 0),
        Op::Binv => rs1 ^ register,
        Op::Bset => rs1 | register,
        Op::Bclri => rs1 & !constant,
        Op::Bexti => u64::from(rs1 & constant != 0),
        Op::Binvi => rs1 ^ constant,
        _ => rs1 | constant,
    }
}
