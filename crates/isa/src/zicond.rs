//! Zicond: a value or zero, by a condition.

use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode_op(fields: Fields) -> Option<Inst> {
    let op = match (fields.funct7(), fields.funct3()) {
        (0x07, 5) => Op::CzeroEqz,
        (0x07, 7) => Op::CzeroNez,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}

/// The value of rd.
pub(crate) fn value(op: Op, rs1: u64, condition: u64) -> u64 {
    if (condition == 0) == (op == Op::CzeroEqz) { 0 } else { rs1 }
}
