//! Floating-point instructions of F and D, exact to the last bit and flag.
//!
//! `soft_float` computes; here operands come out of registers, flags are added to `fcsr`, and what needs no rounding
//! (comparisons, signs, classes) is done on the bits.

use crate::fields::Fields;
use crate::hart::Hart;
use crate::inst::Inst;
use crate::soft_float::{self, Arithmetic, F32, F64, Format, INEXACT, INVALID, Rounded};
use crate::stop::Stop;
use rustc_apfloat::Round;

/// Whether the rm field of an encoding is one of the five modes or 7, the dynamic one.
pub(crate) fn rounding_field_is_valid(fields: Fields) -> bool {
    !matches!(fields.funct3(), 5 | 6)
}

/// The rounding mode of an instruction; a reserved value of `frm` makes every dynamic instruction illegal.
#[inline]
fn rounding(hart: &Hart, inst: Inst) -> Result<Round, Stop> {
    let mode = if inst.rm == 7 { hart.fcsr >> 5 & 7 } else { u32::from(inst.rm) };
    match mode {
        0 => Ok(Round::NearestTiesToEven),
        1 => Ok(Round::TowardZero),
        2 => Ok(Round::TowardNegative),
        3 => Ok(Round::TowardPositive),
        4 => Ok(Round::NearestTiesToAway),
        _ => Err(Stop::Illegal),
    }
}

/// Adds the flags of a result to `fcsr`.
#[inline]
fn with_flags<R>(hart: &mut Hart, rounded: Rounded<R>) -> R {
    hart.fcsr |= rounded.flags;
    rounded.value
}

/// The four fused operations by the signs of product and addend.
#[derive(Clone, Copy)]
pub(crate) struct FusedSigns {
    pub negate_product: bool,
    pub negate_addend: bool,
}

#[inline(always)]
fn operand<T: Format>(hart: &Hart, register: u8) -> T {
    T::unbox(hart.f[(register & 31) as usize])
}

#[inline(always)]
fn set<T: Format>(hart: &mut Hart, register: u8, value: T) {
    hart.f[(register & 31) as usize] = value.boxed();
}

/// The bits that a conversion or comparison leaves in an integer register.
#[inline(always)]
fn set_integer(hart: &mut Hart, register: u8, value: u64) {
    hart.x[(register & 31) as usize] = value;
    hart.x[0] = 0;
}

/// Whether the host's arithmetic gives the same bits and flags, as long as operands and result stay away from the edges
/// of the format.
///
/// The mode is to nearest even and the inexact flag is already set, so that an operation can change no flag; the host's
/// arithmetic is IEEE 754 too (the idea of Cota and Carloni, "Cross-ISA Machine Instrumentation using Fast and Scalable
/// Dynamic Binary Translation", VEE 2019, section 3.3).
#[inline(always)]
fn host_is_exact(hart: &Hart, mode: Round) -> bool {
    hart.fcsr & INEXACT != 0 && matches!(mode, Round::NearestTiesToEven)
}

/// `fadd`, `fsub`, `fmul`, `fdiv`.
#[inline(always)]
pub(crate) fn arithmetic<T: Format>(hart: &mut Hart, inst: Inst, op: Arithmetic) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let (a, b): (T, T) = (operand(hart, inst.rs1), operand(hart, inst.rs2));
    if host_is_exact(hart, mode)
        && a.is_normal_or_zero()
        && b.is_normal_or_zero()
        && let Some(result) = T::on_host(op, a, b)
    {
        set(hart, inst.rd, result);
        return Ok(());
    }
    let result = with_flags(hart, soft_float::arithmetic(op, a, b, mode));
    set(hart, inst.rd, result);
    Ok(())
}

/// `fsqrt`.
pub(crate) fn square_root<T: Format>(hart: &mut Hart, inst: Inst) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let a: T = operand(hart, inst.rs1);
    let result = with_flags(hart, soft_float::sqrt(a, mode));
    set(hart, inst.rd, result);
    Ok(())
}

/// `fmadd`, `fmsub`, `fnmsub`, `fnmadd`: one rounding at the end.
pub(crate) fn fused<T: Format>(hart: &mut Hart, inst: Inst, signs: FusedSigns) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let flip = |value: T, negate: bool| if negate { value.negated() } else { value };
    let a = flip(operand(hart, inst.rs1), signs.negate_product);
    let b: T = operand(hart, inst.rs2);
    let c = flip(operand(hart, inst.rs3), signs.negate_addend);
    if host_is_exact(hart, mode)
        && a.is_normal_or_zero()
        && b.is_normal_or_zero()
        && c.is_normal_or_zero()
        && let Some(result) = T::fused_on_host(a, b, c)
    {
        set(hart, inst.rd, result);
        return Ok(());
    }
    let result = with_flags(hart, soft_float::fused_mul_add(a, b, c, mode));
    set(hart, inst.rd, result);
    Ok(())
}

/// `fsgnj`, `fsgnjn`, `fsgnjx`: the first operand with the sign that `sign` makes of both.
#[inline(always)]
pub(crate) fn sign_inject<T: Format>(hart: &mut Hart, inst: Inst, sign: impl FnOnce(u64, u64) -> u64) {
    let (a, b) = (operand::<T>(hart, inst.rs1).raw(), operand::<T>(hart, inst.rs2).raw());
    set(hart, inst.rd, T::from_raw(a & !T::SIGN | sign(a, b) & T::SIGN));
}

/// `fmin`, `fmax`: minimumNumber and maximumNumber of IEEE 754-2019, -0 below +0.
pub(crate) fn extremum<T: Format>(hart: &mut Hart, inst: Inst, largest: bool) {
    let (a, b): (T, T) = (operand(hart, inst.rs1), operand(hart, inst.rs2));
    if a.is_signaling_nan() || b.is_signaling_nan() {
        hart.fcsr |= INVALID;
    }
    let result = match (a.is_nan(), b.is_nan()) {
        (true, true) => T::canonical_nan(),
        (true, false) => b,
        (false, true) => a,
        (false, false) if order_key(a) < order_key(b) => {
            if largest {
                b
            } else {
                a
            }
        }
        (false, false) => {
            if largest {
                a
            } else {
                b
            }
        }
    };
    set(hart, inst.rd, result);
}

/// An integer that orders numbers as their values, -0 below +0.
fn order_key<T: Format>(value: T) -> i64 {
    let magnitude = (value.raw() & !T::SIGN) as i64;
    if value.raw() & T::SIGN != 0 { !magnitude } else { magnitude }
}

/// The comparisons.
#[derive(Clone, Copy)]
pub(crate) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
}

/// `feq` (quiet), `flt`, `fle` (signaling).
#[inline]
pub(crate) fn compare<T: Format>(hart: &mut Hart, inst: Inst, comparison: Comparison) {
    let (a, b): (T, T) = (operand(hart, inst.rs1), operand(hart, inst.rs2));
    let result = if a.is_nan() || b.is_nan() {
        if !matches!(comparison, Comparison::Equal) || a.is_signaling_nan() || b.is_signaling_nan() {
            hart.fcsr |= INVALID;
        }
        false
    } else {
        let both_zero = (a.raw() | b.raw()) & !T::SIGN == 0;
        match comparison {
            Comparison::Equal => both_zero || a.raw() == b.raw(),
            Comparison::Less => !both_zero && order_key(a) < order_key(b),
            Comparison::LessOrEqual => both_zero || order_key(a) <= order_key(b),
        }
    };
    set_integer(hart, inst.rd, u64::from(result));
}

/// `fclass`: one bit of ten.
pub(crate) fn classify<T: Format>(hart: &mut Hart, inst: Inst) {
    let value: T = operand(hart, inst.rs1);
    let negative = value.raw() & T::SIGN != 0;
    let (exponent, fraction) = (value.raw() & T::EXPONENT, value.raw() & T::FRACTION);
    let bit = if value.is_nan() {
        if fraction & T::QUIET == 0 { 8 } else { 9 }
    } else {
        let magnitude = match (exponent, fraction) {
            (0, 0) => 0,
            (0, _) => 1,
            (e, _) if e == T::EXPONENT => 3,
            _ => 2,
        };
        if negative { 3 - magnitude } else { 4 + magnitude }
    };
    set_integer(hart, inst.rd, 1 << bit);
}

/// An integer type of a conversion.
#[derive(Clone, Copy)]
pub(crate) enum Integer {
    W,
    Wu,
    L,
    Lu,
}

/// `fcvt` to an integer: out of range saturates and is invalid; 32-bit results are sign-extended, unsigned ones too.
pub(crate) fn to_integer<T: Format>(hart: &mut Hart, inst: Inst, integer: Integer) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let a: T = operand(hart, inst.rs1);
    let result = match integer {
        Integer::W => with_flags(hart, soft_float::to_signed(a, 32, mode)) as u64,
        Integer::Wu => with_flags(hart, soft_float::to_unsigned(a, 32, mode)) as i32 as u64,
        Integer::L => with_flags(hart, soft_float::to_signed(a, 64, mode)) as u64,
        Integer::Lu => with_flags(hart, soft_float::to_unsigned(a, 64, mode)),
    };
    set_integer(hart, inst.rd, result);
    Ok(())
}

/// `fcvt` from an integer.
pub(crate) fn from_integer<T: Format>(hart: &mut Hart, inst: Inst, integer: Integer) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let a = hart.x[(inst.rs1 & 31) as usize];
    let integer = match integer {
        Integer::W => i128::from(a as i32),
        Integer::Wu => i128::from(a as u32),
        Integer::L => i128::from(a as i64),
        Integer::Lu => i128::from(a),
    };
    let result: T = with_flags(hart, soft_float::from_integer(integer, mode));
    set(hart, inst.rd, result);
    Ok(())
}

/// `fcvt.s.d`.
pub(crate) fn narrow(hart: &mut Hart, inst: Inst) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let a: F64 = operand(hart, inst.rs1);
    let result: F32 = with_flags(hart, soft_float::narrow(a, mode));
    set(hart, inst.rd, result);
    Ok(())
}

/// `fcvt.d.s`: exact, yet a reserved rounding mode is refused as everywhere.
pub(crate) fn widen(hart: &mut Hart, inst: Inst) -> Result<(), Stop> {
    rounding(hart, inst)?;
    let a: F32 = operand(hart, inst.rs1);
    let result: F64 = with_flags(hart, soft_float::widen(a));
    set(hart, inst.rd, result);
    Ok(())
}

/// `fcvt.h.s`, `fcvt.h.d`.
pub(crate) fn narrow_to_half<T: Format>(hart: &mut Hart, inst: Inst) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let a: T = operand(hart, inst.rs1);
    let result = with_flags(hart, soft_float::narrow_to_half(a, mode));
    hart.f[(inst.rd & 31) as usize] = soft_float::box_half(result);
    Ok(())
}

/// `fcvt.s.h`, `fcvt.d.h`: exact.
pub(crate) fn widen_half<T: Format>(hart: &mut Hart, inst: Inst) -> Result<(), Stop> {
    rounding(hart, inst)?;
    let a = soft_float::unbox_half(hart.f[(inst.rs1 & 31) as usize]);
    let result: T = with_flags(hart, soft_float::widen_half(a));
    set(hart, inst.rd, result);
    Ok(())
}
