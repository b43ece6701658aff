//! Floating-point arithmetic of F and D, exact to the last bit and flag.
//!
//! The arithmetic is Berkeley SoftFloat in its RISC-V specialisation (canonical NaNs, tininess after rounding, saturating
//! conversions). SoftFloat keeps rounding mode and flags in variables of the thread; every function here sets them
//! before and collects them after each operation, so nothing leaks between harts or threads.

use crate::fields::Fields;
use crate::hart::Hart;
use crate::inst::Inst;
use crate::stop::Stop;
use softfloat_wrapper::{ExceptionFlags, F32, F64, Float, RoundingMode};

const INEXACT: u32 = 1;
const INVALID: u32 = 16;

/// Whether the rm field of an encoding is one of the five modes or 7, the dynamic one.
pub(crate) fn rounding_field_is_valid(fields: Fields) -> bool {
    !matches!(fields.funct3(), 5 | 6)
}

/// The rounding mode of an instruction; a reserved value of `frm` makes every dynamic instruction illegal.
#[inline]
fn rounding(hart: &Hart, inst: Inst) -> Result<RoundingMode, Stop> {
    let mode = if inst.rm == 7 { hart.fcsr >> 5 & 7 } else { u32::from(inst.rm) };
    match mode {
        0 => Ok(RoundingMode::TiesToEven),
        1 => Ok(RoundingMode::TowardZero),
        2 => Ok(RoundingMode::TowardNegative),
        3 => Ok(RoundingMode::TowardPositive),
        4 => Ok(RoundingMode::TiesToAway),
        _ => Err(Stop::Illegal),
    }
}

/// Runs `compute` and adds the flags it raises to `fcsr`.
#[inline]
fn with_flags<R>(hart: &mut Hart, compute: impl FnOnce() -> R) -> R {
    let mut flags = ExceptionFlags::default();
    flags.set();
    let result = compute();
    flags.get();
    hart.fcsr |= u32::from(flags.to_bits());
    result
}

/// An operation of two operands that rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

/// The four fused operations by the signs of product and addend.
#[derive(Clone, Copy)]
pub(crate) struct FusedSigns {
    pub negate_product: bool,
    pub negate_addend: bool,
}

/// A floating-point format as registers hold it.
pub(crate) trait Format: Float + Copy {
    /// Bits of the sign, the exponent and the fraction, and the first bit of the fraction.
    const SIGN: u64;
    const EXPONENT: u64;
    const FRACTION: u64;
    const QUIET: u64;

    /// The value of a register; a single-precision value that is not NaN-boxed reads as the canonical NaN.
    fn unbox(register: u64) -> Self;
    /// The register that holds the value.
    fn boxed(self) -> u64;
    /// The bits of the value, zero-extended.
    fn raw(self) -> u64;
    /// The value with these bits.
    fn from_raw(bits: u64) -> Self;
    /// The host's result, rounded to nearest even, or `None` unless it is finite and well above the subnormals.
    fn on_host(op: Arithmetic, a: Self, b: Self) -> Option<Self>;

    fn canonical_nan() -> Self {
        Self::from_raw(Self::EXPONENT | Self::QUIET)
    }
    fn is_normal_or_zero(self) -> bool {
        let exponent = self.raw() & Self::EXPONENT;
        exponent != Self::EXPONENT && (exponent != 0 || self.raw() & Self::FRACTION == 0)
    }
}

macro_rules! format {
    ($format:ty, $host:ty, $bits:ty, $sign:expr, $exponent:expr, $quiet:expr, $unbox:expr, $box:expr) => {
        impl Format for $format {
            const SIGN: u64 = $sign;
            const EXPONENT: u64 = $exponent;
            const FRACTION: u64 = $sign - 1 - $exponent;
            const QUIET: u64 = $quiet;

            #[inline]
            fn unbox(register: u64) -> Self {
                Self::from_bits($unbox(register))
            }
            #[inline]
            fn boxed(self) -> u64 {
                $box(self.to_bits())
            }
            #[inline]
            fn raw(self) -> u64 {
                u64::from(self.to_bits())
            }
            #[inline]
            fn from_raw(bits: u64) -> Self {
                Self::from_bits(bits as $bits)
            }
            #[inline]
            fn on_host(op: Arithmetic, a: Self, b: Self) -> Option<Self> {
                let (a, b) = (<$host>::from_bits(a.to_bits()), <$host>::from_bits(b.to_bits()));
                let result = match op {
                    Arithmetic::Add => a + b,
                    Arithmetic::Sub => a - b,
                    Arithmetic::Mul => a * b,
                    Arithmetic::Div => a / b,
                };
                let safe = result.is_finite() && result.abs() > <$host>::MIN_POSITIVE;
                safe.then(|| Self::from_bits(result.to_bits()))
            }
        }
    };
}

format!(F32, f32, u32, 1 << 31, 0x7f80_0000, 1 << 22, unbox_single, box_single);
format!(F64, f64, u64, 1 << 63, 0x7ff0_0000_0000_0000, 1 << 51, std::convert::identity, std::convert::identity);

const BOX: u64 = 0xffff_ffff_0000_0000;

#[inline]
fn unbox_single(register: u64) -> u32 {
    if register & BOX == BOX { register as u32 } else { 0x7fc0_0000 }
}

/// The register that holds these bits of a single-precision value.
#[inline]
pub(crate) fn box_single(bits: u32) -> u64 {
    BOX | u64::from(bits)
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

/// `fadd`, `fsub`, `fmul`, `fdiv`.
///
/// When the inexact flag is already up, the mode is to nearest even and neither operands nor result come near the edges
/// of the format, the operation can change no flag, and the host's own arithmetic, which is IEEE 754 too, gives the same
/// bits sooner (the idea of Cota and Carloni, "Cross-ISA Machine Instrumentation using Fast and Scalable Dynamic Binary
/// Translation", VEE 2019, section 3.3).
#[inline(always)]
pub(crate) fn arithmetic<T: Format>(hart: &mut Hart, inst: Inst, op: Arithmetic) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let (a, b): (T, T) = (operand(hart, inst.rs1), operand(hart, inst.rs2));
    if hart.fcsr & INEXACT != 0
        && matches!(mode, RoundingMode::TiesToEven)
        && a.is_normal_or_zero()
        && b.is_normal_or_zero()
        && let Some(result) = T::on_host(op, a, b)
    {
        set(hart, inst.rd, result);
        return Ok(());
    }
    let result = with_flags(hart, || match op {
        Arithmetic::Add => a.add(b, mode),
        Arithmetic::Sub => a.sub(b, mode),
        Arithmetic::Mul => a.mul(b, mode),
        Arithmetic::Div => a.div(b, mode),
    });
    set(hart, inst.rd, result);
    Ok(())
}

/// `fsqrt`.
pub(crate) fn square_root<T: Format>(hart: &mut Hart, inst: Inst) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let a: T = operand(hart, inst.rs1);
    let result = with_flags(hart, || a.sqrt(mode));
    set(hart, inst.rd, result);
    Ok(())
}

/// `fmadd`, `fmsub`, `fnmsub`, `fnmadd`: one rounding at the end.
pub(crate) fn fused<T: Format>(hart: &mut Hart, inst: Inst, signs: FusedSigns) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let flip = |value: T, negate: bool| if negate { T::from_raw(value.raw() ^ T::SIGN) } else { value };
    let a = flip(operand(hart, inst.rs1), signs.negate_product);
    let b: T = operand(hart, inst.rs2);
    let c = flip(operand(hart, inst.rs3), signs.negate_addend);
    let result = with_flags(hart, || a.fused_mul_add(b, c, mode));
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
    let result = with_flags(hart, || match integer {
        Integer::W => a.to_i32(mode, true) as u64,
        Integer::Wu => a.to_u32(mode, true) as i32 as u64,
        Integer::L => a.to_i64(mode, true) as u64,
        Integer::Lu => a.to_u64(mode, true),
    });
    set_integer(hart, inst.rd, result);
    Ok(())
}

/// `fcvt` from an integer.
pub(crate) fn from_integer<T: Format>(hart: &mut Hart, inst: Inst, integer: Integer) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let a = hart.x[(inst.rs1 & 31) as usize];
    let result = with_flags(hart, || match integer {
        Integer::W => T::from_i32(a as i32, mode),
        Integer::Wu => T::from_u32(a as u32, mode),
        Integer::L => T::from_i64(a as i64, mode),
        Integer::Lu => T::from_u64(a, mode),
    });
    set(hart, inst.rd, result);
    Ok(())
}

/// `fcvt.s.d`.
pub(crate) fn narrow(hart: &mut Hart, inst: Inst) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let a: F64 = operand(hart, inst.rs1);
    let result = with_flags(hart, || a.to_f32(mode));
    set(hart, inst.rd, result);
    Ok(())
}

/// `fcvt.d.s`: exact, yet a reserved rounding mode is refused as everywhere.
pub(crate) fn widen(hart: &mut Hart, inst: Inst) -> Result<(), Stop> {
    let mode = rounding(hart, inst)?;
    let a: F32 = operand(hart, inst.rs1);
    let result = with_flags(hart, || a.to_f64(mode));
    set(hart, inst.rd, result);
    Ok(())
}
