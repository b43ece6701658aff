//! F: encodings of single-precision floating point. The arithmetic is in `float.rs`, shared with D.

use crate::fields::Fields;
use crate::float::rounding_field_is_valid;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode_load(fields: Fields) -> Inst {
    fields.inst(Op::Flw, fields.imm_i())
}

pub(crate) fn decode_store(fields: Fields) -> Inst {
    fields.inst(Op::Fsw, fields.imm_s())
}

pub(crate) fn decode_fused(fields: Fields) -> Option<Inst> {
    const OPS: [Op; 4] = [Op::FmaddS, Op::FmsubS, Op::FnmsubS, Op::FnmaddS];
    rounding_field_is_valid(fields).then(|| fields.inst(OPS[(fields.0 >> 2 & 3) as usize], 0))
}

pub(crate) fn decode_op_fp(fields: Fields) -> Option<Inst> {
    let (rs2, funct3) = (fields.rs2(), fields.funct3());
    let (op, rounds) = match (fields.funct7() >> 2, rs2, funct3) {
        (0b00000, ..) => (Op::FaddS, true),
        (0b00001, ..) => (Op::FsubS, true),
        (0b00010, ..) => (Op::FmulS, true),
        (0b00011, ..) => (Op::FdivS, true),
        (0b01011, 0, _) => (Op::FsqrtS, true),
        (0b00100, _, 0) => (Op::FsgnjS, false),
        (0b00100, _, 1) => (Op::FsgnjnS, false),
        (0b00100, _, 2) => (Op::FsgnjxS, false),
        (0b00101, _, 0) => (Op::FminS, false),
        (0b00101, _, 1) => (Op::FmaxS, false),
        (0b10100, _, 0) => (Op::FleS, false),
        (0b10100, _, 1) => (Op::FltS, false),
        (0b10100, _, 2) => (Op::FeqS, false),
        (0b01000, 1, _) => (Op::FcvtSD, true),
        (0b11000, 0, _) => (Op::FcvtWS, true),
        (0b11000, 1, _) => (Op::FcvtWuS, true),
        (0b11000, 2, _) => (Op::FcvtLS, true),
        (0b11000, 3, _) => (Op::FcvtLuS, true),
        (0b11010, 0, _) => (Op::FcvtSW, true),
        (0b11010, 1, _) => (Op::FcvtSWu, true),
        (0b11010, 2, _) => (Op::FcvtSL, true),
        (0b11010, 3, _) => (Op::FcvtSLu, true),
        (0b11100, 0, 0) => (Op::FmvXW, false),
        (0b11100, 0, 1) => (Op::FclassS, false),
        (0b11110, 0, 0) => (Op::FmvWX, false),
        _ => return None,
    };
    (!rounds || rounding_field_is_valid(fields)).then(|| fields.inst(op, 0))
}
