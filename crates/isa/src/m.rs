//! M: multiplication and division. Division never traps: by zero it gives all ones (the remainder is the dividend), and
//! the one signed overflow gives the dividend (the remainder is 0).

use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode_op(fields: Fields) -> Inst {
    const OPS: [Op; 8] = [Op::Mul, Op::Mulh, Op::Mulhsu, Op::Mulhu, Op::Div, Op::Divu, Op::Rem, Op::Remu];
    fields.inst(OPS[fields.funct3() as usize], 0)
}

pub(crate) fn decode_op_32(fields: Fields) -> Option<Inst> {
    let op = match fields.funct3() {
        0 => Op::Mulw,
        4 => Op::Divw,
        5 => Op::Divuw,
        6 => Op::Remw,
        7 => Op::Remuw,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}

pub(crate) fn mulh(a: u64, b: u64) -> u64 {
    ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
}

/// High half of signed `a` times unsigned `b`. The product fits: |a| < 2^63 and b < 2^64.
pub(crate) fn mulhsu(a: u64, b: u64) -> u64 {
    ((i128::from(a as i64) * i128::from(b)) >> 64) as u64
}

pub(crate) fn mulhu(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

pub(crate) fn div(a: u64, b: u64) -> u64 {
    if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 }
}

pub(crate) fn divu(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(u64::MAX)
}

pub(crate) fn rem(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { (a as i64).wrapping_rem(b as i64) as u64 }
}

pub(crate) fn remu(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(a)
}

pub(crate) fn divw(a: u32, b: u32) -> u32 {
    if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 }
}

pub(crate) fn divuw(a: u32, b: u32) -> u32 {
    a.checked_div(b).unwrap_or(u32::MAX)
}

pub(crate) fn remw(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 }
}

pub(crate) fn remuw(a: u32, b: u32) -> u32 {
    a.checked_rem(b).unwrap_or(a)
}
