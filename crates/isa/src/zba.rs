//! Zba: sums for addresses. `zext.w` is `add.uw` with x0.

use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode_op(fields: Fields) -> Option<Inst> {
    let op = match (fields.funct7(), fields.funct3()) {
        (0x10, 2) => Op::Sh1add,
        (0x10, 4) => Op::Sh2add,
        (0x10, 6) => Op::Sh3add,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}

pub(crate) fn decode_op_32(fields: Fields) -> Option<Inst> {
    let op = match (fields.funct7(), fields.funct3()) {
        (0x04, 0) => Op::AddUw,
        (0x10, 2) => Op::Sh1addUw,
        (0x10, 4) => Op::Sh2addUw,
        (0x10, 6) => Op::Sh3addUw,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}

pub(crate) fn decode_op_imm_32(fields: Fields) -> Option<Inst> {
    let is_slli_uw = fields.0 >> 26 == 0x02 && fields.funct3() == 1;
    is_slli_uw.then(|| fields.inst(Op::SlliUw, fields.imm_i() & 63))
}

/// The value of rd.
pub(crate) fn value(op: Op, rs1: u64, rs2: u64, shift: i32) -> u64 {
    let word = u64::from(rs1 as u32);
    match op {
        Op::Sh1add => (rs1 << 1).wrapping_add(rs2),
        Op::Sh2add => (rs1 << 2).wrapping_add(rs2),
        Op::Sh3add => (rs1 << 3).wrapping_add(rs2),
        Op::AddUw => word.wrapping_add(rs2),
        Op::Sh1addUw => (word << 1).wrapping_add(rs2),
        Op::Sh2addUw => (word << 2).wrapping_add(rs2),
        Op::Sh3addUw => (word << 3).wrapping_add(rs2),
        _ => word << shift,
    }
}
