//! A: load-reserved, store-conditional and atomic memory operations. All need an address that is a multiple of their
//! size; the check is made here, so that every [`Bus`] may rely on it.

use crate::bus::{AmoOp, Bus};
use crate::fields::Fields;
use crate::hart::Hart;
use crate::inst::Inst;
use crate::op::Op;
use crate::stop::Stop;
use crate::stop::{Access, AccessFault, AccessFaultKind};

pub(crate) fn decode(fields: Fields) -> Option<Inst> {
    let (word, double) = match fields.funct7() >> 2 {
        0b00010 if fields.rs2() == 0 => (Op::LrW, Op::LrD),
        0b00011 => (Op::ScW, Op::ScD),
        0b00001 => (Op::AmoswapW, Op::AmoswapD),
        0b00000 => (Op::AmoaddW, Op::AmoaddD),
        0b00100 => (Op::AmoxorW, Op::AmoxorD),
        0b01100 => (Op::AmoandW, Op::AmoandD),
        0b01000 => (Op::AmoorW, Op::AmoorD),
        0b10000 => (Op::AmominW, Op::AmominD),
        0b10100 => (Op::AmomaxW, Op::AmomaxD),
        0b11000 => (Op::AmominuW, Op::AmominuD),
        0b11100 => (Op::AmomaxuW, Op::AmomaxuD),
        _ => return None,
    };
    let op = match fields.funct3() {
        2 => word,
        3 => double,
        _ => return None,
    };
    let aq_rl = (fields.funct7() & 3) as u8;
    Some(Inst { rm: aq_rl, ..fields.inst(op, 0) })
}

#[inline(always)]
fn check_aligned(addr: u64, bytes: u8, access: Access) -> Result<(), Stop> {
    if addr.is_multiple_of(u64::from(bytes)) {
        Ok(())
    } else {
        Err(Stop::AccessFault(AccessFault { addr, access, why: AccessFaultKind::Misaligned }))
    }
}

/// The value of rd: a word is sign-extended.
#[inline(always)]
fn extend(bytes: u8, value: u64) -> u64 {
    if bytes == 4 { value as i32 as u64 } else { value }
}

#[inline(always)]
pub(crate) fn load_reserved<B: Bus>(hart: &Hart, inst: Inst, bytes: u8, bus: &mut B) -> Result<u64, Stop> {
    let addr = hart.x[(inst.rs1 & 31) as usize];
    check_aligned(addr, bytes, Access::Read)?;
    Ok(extend(bytes, bus.load_reserved(addr, bytes)?))
}

#[inline(always)]
pub(crate) fn store_conditional<B: Bus>(hart: &Hart, inst: Inst, bytes: u8, bus: &mut B) -> Result<u64, Stop> {
    let addr = hart.x[(inst.rs1 & 31) as usize];
    check_aligned(addr, bytes, Access::Write)?;
    let stored = bus.store_conditional(addr, bytes, hart.x[(inst.rs2 & 31) as usize])?;
    Ok(u64::from(!stored))
}

#[inline(always)]
pub(crate) fn amo<B: Bus>(hart: &Hart, inst: Inst, bytes: u8, op: AmoOp, bus: &mut B) -> Result<u64, Stop> {
    let addr = hart.x[(inst.rs1 & 31) as usize];
    check_aligned(addr, bytes, Access::Write)?;
    Ok(extend(bytes, bus.amo(addr, bytes, op, hart.x[(inst.rs2 & 31) as usize])?))
}
