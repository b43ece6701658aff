//! Zfhmin: loads, stores, moves and conversions of half-precision values. There is no arithmetic on them.

use crate::fields::Fields;
use crate::float::rounding_field_is_valid;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode_load(fields: Fields) -> Inst {
    fields.inst(Op::Flh, fields.imm_i())
}

pub(crate) fn decode_store(fields: Fields) -> Inst {
    fields.inst(Op::Fsh, fields.imm_s())
}

/// The operations with one of their formats half-precision.
pub(crate) fn decode_op_fp(fields: Fields) -> Option<Inst> {
    let (op, rounds) = match (fields.funct7(), fields.rs2(), fields.funct3()) {
        (0x20, 2, _) => (Op::FcvtSH, true),
        (0x21, 2, _) => (Op::FcvtDH, true),
        (0x22, 0, _) => (Op::FcvtHS, true),
        (0x22, 1, _) => (Op::FcvtHD, true),
        (0x72, 0, 0) => (Op::FmvXH, false),
        (0x7a, 0, 0) => (Op::FmvHX, false),
        _ => return None,
    };
    (!rounds || rounding_field_is_valid(fields)).then(|| fields.inst(op, 0))
}
