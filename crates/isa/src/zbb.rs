//! Zbb: logic with a complement, counts of bits, extrema, extensions, rotations and permutations of bytes.

use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode_op(fields: Fields) -> Option<Inst> {
    let op = match (fields.funct7(), fields.funct3()) {
        (0x20, 7) => Op::Andn,
        (0x20, 6) => Op::Orn,
        (0x20, 4) => Op::Xnor,
        (0x05, 4) => Op::Min,
        (0x05, 5) => Op::Minu,
        (0x05, 6) => Op::Max,
        (0x05, 7) => Op::Maxu,
        (0x30, 1) => Op::Rol,
        (0x30, 5) => Op::Ror,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}

pub(crate) fn decode_op_32(fields: Fields) -> Option<Inst> {
    let op = match (fields.funct7(), fields.funct3()) {
        (0x30, 1) => Op::Rolw,
        (0x30, 5) => Op::Rorw,
        (0x04, 4) if fields.rs2() == 0 => Op::ZextH,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}

pub(crate) fn decode_op_imm(fields: Fields) -> Option<Inst> {
    let (op, imm) = match (fields.funct3(), fields.imm_i()) {
        (1, 0x600) => (Op::Clz, 0),
        (1, 0x601) => (Op::Ctz, 0),
        (1, 0x602) => (Op::Cpop, 0),
        (1, 0x604) => (Op::SextB, 0),
        (1, 0x605) => (Op::SextH, 0),
        (5, 0x287) => (Op::OrcB, 0),
        (5, 0x6b8) => (Op::Rev8, 0),
        (5, imm) if imm >> 6 == 0x18 => (Op::Rori, imm & 63),
        _ => return None,
    };
    Some(fields.inst(op, imm))
}

pub(crate) fn decode_op_imm_32(fields: Fields) -> Option<Inst> {
    let (op, imm) = match (fields.funct3(), fields.imm_i()) {
        (1, 0x600) => (Op::Clzw, 0),
        (1, 0x601) => (Op::Ctzw, 0),
        (1, 0x602) => (Op::Cpopw, 0),
        (5, imm) if imm >> 5 == 0x30 => (Op::Roriw, imm & 31),
        _ => return None,
    };
    Some(fields.inst(op, imm))
}

/// The value of rd.
pub(crate) fn value(op: Op, rs1: u64, rs2: u64, shift: i32) -> u64 {
    let word = |value: u32| value as i32 as u64;
    let (amount, shift) = (rs2 as u32, shift as u32);
    match op {
        Op::Andn => rs1 & !rs2,
        Op::Orn => rs1 | !rs2,
        Op::Xnor => !(rs1 ^ rs2),
        Op::Min => (rs1 as i64).min(rs2 as i64) as u64,
        Op::Minu => rs1.min(rs2),
        Op::Max => (rs1 as i64).max(rs2 as i64) as u64,
        Op::Maxu => rs1.max(rs2),
        Op::Rol => rs1.rotate_left(amount & 63),
        Op::Ror => rs1.rotate_right(amount & 63),
        Op::Rori => rs1.rotate_right(shift),
        Op::Rolw => word((rs1 as u32).rotate_left(amount & 31)),
        Op::Rorw => word((rs1 as u32).rotate_right(amount & 31)),
        Op::Roriw => word((rs1 as u32).rotate_right(shift)),
        Op::Clz => rs1.leading_zeros().into(),
        Op::Ctz => rs1.trailing_zeros().into(),
        Op::Cpop => rs1.count_ones().into(),
        Op::Clzw => (rs1 as u32).leading_zeros().into(),
        Op::Ctzw => (rs1 as u32).trailing_zeros().into(),
        Op::Cpopw => (rs1 as u32).count_ones().into(),
        Op::SextB => rs1 as i8 as u64,
        Op::SextH => rs1 as i16 as u64,
        Op::ZextH => u64::from(rs1 as u16),
        Op::OrcB => u64::from_le_bytes(rs1.to_le_bytes().map(|byte| if byte == 0 { 0 } else { 0xff })),
        _ => rs1.swap_bytes(),
    }
}
