//! RV64I: the base integer instructions, the markers hidden in its HINT space, and Zihintpause.

use crate::encodings::Marker;
use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode_load(fields: Fields) -> Option<Inst> {
    let op = match fields.funct3() {
        0 => Op::Lb,
        1 => Op::Lh,
        2 => Op::Lw,
        3 => Op::Ld,
        4 => Op::Lbu,
        5 => Op::Lhu,
        6 => Op::Lwu,
        _ => return None,
    };
    Some(fields.inst(op, fields.imm_i()))
}

pub(crate) fn decode_store(fields: Fields) -> Option<Inst> {
    let op = match fields.funct3() {
        0 => Op::Sb,
        1 => Op::Sh,
        2 => Op::Sw,
        3 => Op::Sd,
        _ => return None,
    };
    Some(fields.inst(op, fields.imm_s()))
}

pub(crate) fn decode_branch(fields: Fields) -> Option<Inst> {
    let op = match fields.funct3() {
        0 => Op::Beq,
        1 => Op::Bne,
        4 => Op::Blt,
        5 => Op::Bge,
        6 => Op::Bltu,
        7 => Op::Bgeu,
        _ => return None,
    };
    Some(fields.inst(op, fields.imm_b()))
}

pub(crate) fn decode_op_imm(fields: Fields) -> Option<Inst> {
    let imm = fields.imm_i();
    let shift_kind = fields.0 >> 26;
    let (op, imm) = match fields.funct3() {
        0 => (Op::Addi, imm),
        1 if shift_kind == 0 => (Op::Slli, imm & 63),
        2 if fields.rd() == 0 && Marker::from_imm(imm).is_some() => (Op::Marker, imm),
        2 => (Op::Slti, imm),
        3 => (Op::Sltiu, imm),
        4 => (Op::Xori, imm),
        5 if shift_kind == 0 => (Op::Srli, imm & 63),
        5 if shift_kind == 0x10 => (Op::Srai, imm & 63),
        6 => (Op::Ori, imm),
        7 => (Op::Andi, imm),
        _ => return None,
    };
    Some(fields.inst(op, imm))
}

pub(crate) fn decode_op_imm_32(fields: Fields) -> Option<Inst> {
    let imm = fields.imm_i();
    let (op, imm) = match (fields.funct3(), fields.funct7()) {
        (0, _) => (Op::Addiw, imm),
        (1, 0) => (Op::Slliw, imm & 31),
        (5, 0) => (Op::Srliw, imm & 31),
        (5, 0x20) => (Op::Sraiw, imm & 31),
        _ => return None,
    };
    Some(fields.inst(op, imm))
}

pub(crate) fn decode_op(fields: Fields) -> Option<Inst> {
    let op = match (fields.funct7(), fields.funct3()) {
        (0, 0) => Op::Add,
        (0x20, 0) => Op::Sub,
        (0, 1) => Op::Sll,
        (0, 2) => Op::Slt,
        (0, 3) => Op::Sltu,
        (0, 4) => Op::Xor,
        (0, 5) => Op::Srl,
        (0x20, 5) => Op::Sra,
        (0, 6) => Op::Or,
        (0, 7) => Op::And,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}

pub(crate) fn decode_op_32(fields: Fields) -> Option<Inst> {
    let op = match (fields.funct7(), fields.funct3()) {
        (0, 0) => Op::Addw,
        (0x20, 0) => Op::Subw,
        (0, 1) => Op::Sllw,
        (0, 5) => Op::Srlw,
        (0x20, 5) => Op::Sraw,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}

/// FENCE in all its forms. The manual asks that reserved fields be ignored. PAUSE (Zihintpause) is the one FENCE with
/// these 32 bits; other fences with an empty set order nothing and need no case of their own.
pub(crate) fn decode_fence(fields: Fields) -> Inst {
    const PAUSE: u32 = 0x0100_000f;
    fields.inst(if fields.0 == PAUSE { Op::Pause } else { Op::Fence }, fields.imm_i() & 0xfff)
}

pub(crate) fn decode_environment(fields: Fields) -> Option<Inst> {
    let op = match fields.0 {
        0x0000_0073 => Op::Ecall,
        0x0010_0073 => Op::Ebreak,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}
