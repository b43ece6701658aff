//! D: encodings of double-precision floating point. The arithmetic is in `float.rs`, shared with F.

use crate::fields::Fields;
use crate::float::rounding_field_is_valid;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode_load(fields: Fields) -> Inst {
    fields.inst(Op::Fld, fields.imm_i())
}

pub(crate) fn decode_store(fields: Fields) -> Inst {
    fields.inst(Op::Fsd, fields.imm_s())
}

pub(crate) fn decode_fused(fields: Fields) -> Option<Inst> {
    const OPS: [Op; 4] = [Op::FmaddD, Op::FmsubD, Op::FnmsubD, Op::FnmaddD];
    rounding_field_is_valid(fields).then(|| fields.inst(OPS[(fields.0 >> 2 & 3) as usize], 0))
}

pub(crate) fn decode_op_fp(fields: Fields) -> Option<Inst> {
    let (rs2, funct3) = (fields.rs2(), fields.funct3());
    let (op, rounds) = match (fields.funct7() >> 2, rs2, funct3) {
        (0b00000, ..) => (Op::FaddD, true),
        (0b00001, ..) => (Op::FsubD, true),
        (0b00010, ..) => (Op::FmulD, true),
        (0b00011, ..) => (Op::FdivD, true),
        (0b01011, 0, _) => (Op::FsqrtD, true),
        (0b00100, _, 0) => (Op::FsgnjD, false),
        (0b00100, _, 1) => (Op::FsgnjnD, false),
        (0b00100, _, 2) => (Op::FsgnjxD, false),
        (0b00101, _, 0) => (Op::FminD, false),
        (0b00101, _, 1) => (Op::FmaxD, false),
        (0b10100, _, 0) => (Op::FleD, false),
        (0b10100, _, 1) => (Op::FltD, false),
        (0b10100, _, 2) => (Op::FeqD, false),
        (0b01000, 0, _) => (Op::FcvtDS, true),
        (0b11000, 0, _) => (Op::FcvtWD, true),
        (0b11000, 1, _) => (Op::FcvtWuD, true),
        (0b11000, 2, _) => (Op::FcvtLD, true),
        (0b11000, 3, _) => (Op::FcvtLuD, true),
        (0b11010, 0, _) => (Op::FcvtDW, true),
        (0b11010, 1, _) => (Op::FcvtDWu, true),
        (0b11010, 2, _) => (Op::FcvtDL, true),
        (0b11010, 3, _) => (Op::FcvtDLu, true),
        (0b11100, 0, 0) => (Op::FmvXD, false),
        (0b11100, 0, 1) => (Op::FclassD, false),
        (0b11110, 0, 0) => (Op::FmvDX, false),
        _ => return None,
    };
    (!rounds || rounding_field_is_valid(fields)).then(|| fields.inst(op, 0))
}
