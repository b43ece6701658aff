//! IEEE 754 arithmetic with the choices of RISC-V: one canonical NaN, tininess detected after rounding, saturating
//! conversions to integers (The RISC-V Instruction Set Manual, volume I, chapters "F" and "D").
//!
//! `rustc_apfloat`, the arithmetic of the Rust compiler's constant evaluator, rounds. It differs from RISC-V in three
//! places, which are decided here. It keeps the payload of NaNs. It detects tininess on the result as rounded to the
//! precision of subnormals, where RISC-V asks for rounding with an exponent without bounds. And it reports no overflow
//! where rounding gives the largest finite number. A second format with the same precision and a wider exponent answers
//! both questions in the only cases in which the two differ.

use rustc_apfloat::ieee::{Double, Half, IeeeFloat, Semantics, Single};
use rustc_apfloat::{Float, FloatConvert, Round, Status, StatusAnd};

/// The flags of `fcsr`.
pub(crate) const INEXACT: u32 = 1;
pub(crate) const UNDERFLOW: u32 = 2;
pub(crate) const OVERFLOW: u32 = 4;
pub(crate) const DIVIDE_BY_ZERO: u32 = 8;
pub(crate) const INVALID: u32 = 16;

/// A result and the flags that computing it raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounded<R> {
    pub value: R,
    pub flags: u32,
}

/// An operation of two operands that rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

/// The bits of a single-precision value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct F32(u32);

/// The bits of a double-precision value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct F64(u64);

/// The precision of `Single` with exponents that no operation on `Single` leaves.
pub(crate) struct WideSingle;

impl Semantics for WideSingle {
    const BITS: usize = 39;
    const EXP_BITS: usize = 15;
}

/// The precision of `Double` with exponents that no operation on `Double` leaves.
pub(crate) struct WideDouble;

impl Semantics for WideDouble {
    const BITS: usize = 68;
    const EXP_BITS: usize = 15;
}

/// The precision of `Half` with exponents that no conversion from `Double` leaves, except for numbers that are far too small.
pub(crate) struct WideHalf;

impl Semantics for WideHalf {
    const BITS: usize = 26;
    const EXP_BITS: usize = 15;
}

/// A floating-point format.
pub(crate) trait Format: Copy {
    /// Bits of the sign, the exponent and the fraction, and the first bit of the fraction.
    const SIGN: u64;
    const EXPONENT: u64;
    const FRACTION: u64;
    const QUIET: u64;
    /// Bits of the significand, the leading one included.
    const PRECISION: u32 = Self::QUIET.trailing_zeros() + 2;

    /// The format in `rustc_apfloat`.
    type Soft: Float + FloatConvert<Self::Wide> + FloatConvert<Half> + FloatConvert<IeeeFloat<WideHalf>>;
    /// The format with a wider exponent and equal precision.
    type Wide: Float + FloatConvert<Self::Soft>;

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
    /// Computes `a * b + c` on the host.
    fn fused_on_host(a: Self, b: Self, c: Self) -> Option<Self>;
    /// The host's square root, rounded to nearest even.
    fn sqrt_on_host(self) -> Self;
    /// The value as a double of the host.
    fn to_host(self) -> f64;
    /// The value of a half-precision one, which is no NaN.
    fn from_half(value: Half) -> Self;
    /// The value of a double of the host that this format holds exactly, or the nearest one.
    fn from_host(value: f64) -> Self;

    fn canonical_nan() -> Self {
        Self::from_raw(Self::EXPONENT | Self::QUIET)
    }
    fn is_normal_or_zero(self) -> bool {
        let exponent = self.raw() & Self::EXPONENT;
        exponent != Self::EXPONENT && (exponent != 0 || self.raw() & Self::FRACTION == 0)
    }
    fn is_nan(self) -> bool {
        self.raw() & !Self::SIGN > Self::EXPONENT
    }
    fn is_signaling_nan(self) -> bool {
        self.is_nan() && self.raw() & Self::QUIET == 0
    }
    fn is_infinite(self) -> bool {
        self.raw() & !Self::SIGN == Self::EXPONENT
    }
    fn is_zero(self) -> bool {
        self.raw() & !Self::SIGN == 0
    }
    fn negated(self) -> Self {
        Self::from_raw(self.raw() ^ Self::SIGN)
    }
    fn soft(self) -> Self::Soft {
        Self::Soft::from_bits(u128::from(self.raw()))
    }
    fn wide(self) -> Self::Wide {
        self.soft().convert(&mut false).value
    }
}

macro_rules! format {
    ($format:ident, $host:ty, $bits:ty, $soft:ty, $wide:ty, $sign:expr, $exponent:expr, $quiet:expr, $unbox:expr, $box:expr) => {
        impl Format for $format {
            const SIGN: u64 = $sign;
            const EXPONENT: u64 = $exponent;
            const FRACTION: u64 = $sign - 1 - $exponent;
            const QUIET: u64 = $quiet;
            type Soft = $soft;
            type Wide = IeeeFloat<$wide>;

            #[inline]
            fn unbox(register: u64) -> Self {
                Self($unbox(register))
            }
            #[inline]
            fn boxed(self) -> u64 {
                $box(self.0)
            }
            #[inline]
            fn raw(self) -> u64 {
                u64::from(self.0)
            }
            #[inline]
            fn from_raw(bits: u64) -> Self {
                Self(bits as $bits)
            }
            #[inline]
            fn on_host(op: Arithmetic, a: Self, b: Self) -> Option<Self> {
                let (a, b) = (<$host>::from_bits(a.0), <$host>::from_bits(b.0));
                let result = match op {
                    Arithmetic::Add => a + b,
                    Arithmetic::Sub => a - b,
                    Arithmetic::Mul => a * b,
                    Arithmetic::Div => a / b,
                };
                let safe = result.is_finite() && result.abs() > <$host>::MIN_POSITIVE;
                safe.then(|| Self(result.to_bits()))
            }
            #[inline]
            fn fused_on_host(a: Self, b: Self, c: Self) -> Option<Self> {
                let (a, b, c) = (<$host>::from_bits(a.0), <$host>::from_bits(b.0), <$host>::from_bits(c.0));
                let result = a.mul_add(b, c);
                let safe = result.is_finite() && result.abs() > <$host>::MIN_POSITIVE;
                safe.then(|| Self(result.to_bits()))
            }
            #[inline]
            fn sqrt_on_host(self) -> Self {
                Self(<$host>::from_bits(self.0).sqrt().to_bits())
            }
            #[inline]
            fn to_host(self) -> f64 {
                f64::from(<$host>::from_bits(self.0))
            }
            fn from_half(value: Half) -> Self {
                let wider: $soft = value.convert(&mut false).value;
                Self(wider.to_bits() as $bits)
            }
            #[inline]
            fn from_host(value: f64) -> Self {
                Self((value as $host).to_bits())
            }
        }
    };
}

format!(F32, f32, u32, Single, WideSingle, 1 << 31, 0x7f80_0000, 1 << 22, unbox_single, box_single);
format!(
    F64,
    f64,
    u64,
    Double,
    WideDouble,
    1 << 63,
    0x7ff0_0000_0000_0000,
    1 << 51,
    std::convert::identity,
    std::convert::identity
);

const BOX: u64 = 0xffff_ffff_0000_0000;
const HALF_BOX: u64 = 0xffff_ffff_ffff_0000;
const HALF_NAN: u16 = 0x7e00;

#[inline]
fn unbox_single(register: u64) -> u32 {
    if register & BOX == BOX { register as u32 } else { 0x7fc0_0000 }
}

/// The register that holds these bits of a single-precision value.
#[inline]
pub(crate) fn box_single(bits: u32) -> u64 {
    BOX | u64::from(bits)
}

/// The half-precision bits in a register; the canonical NaN if they are not NaN-boxed.
pub(crate) fn unbox_half(register: u64) -> u16 {
    if register & HALF_BOX == HALF_BOX { register as u16 } else { HALF_NAN }
}

/// The register that holds these bits of a half-precision value.
pub(crate) fn box_half(bits: u16) -> u64 {
    HALF_BOX | u64::from(bits)
}

/// `op` on two values.
pub(crate) fn arithmetic<T: Format>(op: Arithmetic, a: T, b: T, mode: Round) -> Rounded<T> {
    if a.is_nan() || b.is_nan() {
        return canonical(a.is_signaling_nan() || b.is_signaling_nan());
    }
    finished(compute(op, a.soft(), b.soft(), mode), || compute(op, a.wide(), b.wide(), mode).value)
}

fn compute<S: Float>(op: Arithmetic, a: S, b: S, mode: Round) -> StatusAnd<S> {
    match op {
        Arithmetic::Add => a.add_r(b, mode),
        Arithmetic::Sub => a.sub_r(b, mode),
        Arithmetic::Mul => a.mul_r(b, mode),
        Arithmetic::Div => a.div_r(b, mode),
    }
}

/// `a * b + c` with one rounding; infinity times zero is invalid even when `c` is a quiet NaN.
pub(crate) fn fused_mul_add<T: Format>(a: T, b: T, c: T, mode: Round) -> Rounded<T> {
    let product_is_invalid = a.is_infinite() && b.is_zero() || a.is_zero() && b.is_infinite();
    if a.is_nan() || b.is_nan() || c.is_nan() || product_is_invalid {
        return canonical(product_is_invalid || [a, b, c].into_iter().any(T::is_signaling_nan));
    }
    finished(a.soft().mul_add_r(b.soft(), c.soft(), mode), || a.wide().mul_add_r(b.wide(), c.wide(), mode).value)
}

/// The square root: the host's, which IEEE 754 rounds to nearest, corrected by the sign of `root * root - a`.
///
/// The residual is computed in the wide format, where it cannot underflow. No square root is a tie, so both modes to
/// nearest give the host's result.
pub(crate) fn sqrt<T: Format>(a: T, mode: Round) -> Rounded<T> {
    if a.is_nan() {
        return canonical(a.is_signaling_nan());
    }
    if a.is_zero() {
        return Rounded { value: a, flags: 0 };
    }
    if a.raw() & T::SIGN != 0 {
        return canonical(true);
    }
    let root = a.sqrt_on_host();
    if a.is_infinite() {
        return Rounded { value: root, flags: 0 };
    }
    let residual = root.wide().mul_add(root.wide(), a.negated().wide()).value;
    let bits = match mode {
        Round::TowardPositive if residual.is_negative() => root.raw() + 1,
        Round::TowardNegative | Round::TowardZero if residual.is_finite_non_zero() && !residual.is_negative() => {
            root.raw() - 1
        }
        _ => root.raw(),
    };
    Rounded { value: T::from_raw(bits), flags: if residual.is_zero() { 0 } else { INEXACT } }
}

/// `fcvt.s.d`: the value in the smaller format.
pub(crate) fn narrow(a: F64, mode: Round) -> Rounded<F32> {
    if a.is_nan() {
        return canonical(a.is_signaling_nan());
    }
    finished(a.soft().convert_r(mode, &mut false), || a.soft().convert_r(mode, &mut false).value)
}

/// `fcvt.d.s`: the value in the larger format, which holds it exactly.
pub(crate) fn widen(a: F32) -> Rounded<F64> {
    if a.is_nan() {
        return canonical(a.is_signaling_nan());
    }
    Rounded { value: F64::from_host(a.to_host()), flags: 0 }
}

/// The half-precision bits of a value.
pub(crate) fn narrow_to_half<T: Format>(a: T, mode: Round) -> Rounded<u16> {
    if a.is_nan() {
        return Rounded { value: HALF_NAN, flags: if a.is_signaling_nan() { INVALID } else { 0 } };
    }
    let rounded: StatusAnd<Half> = a.soft().convert_r(mode, &mut false);
    let wide = || -> IeeeFloat<WideHalf> { a.soft().convert_r(mode, &mut false).value };
    Rounded { value: rounded.value.to_bits() as u16, flags: flags_of(&rounded, wide) }
}

/// The value of half-precision bits in a larger format, which holds it exactly.
pub(crate) fn widen_half<T: Format>(bits: u16) -> Rounded<T> {
    let half = Half::from_bits(bits.into());
    if half.is_nan() {
        return canonical(half.is_signaling());
    }
    Rounded { value: T::from_half(half), flags: 0 }
}

/// The integer of `bits` bits, saturated: a NaN counts as above the largest.
pub(crate) fn to_signed<T: Format>(a: T, bits: u32, mode: Round) -> Rounded<i64> {
    let (least, largest) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
    if mode == Round::TowardZero && a.to_host().abs() < (1u64 << (bits - 1)) as f64 {
        let value = a.to_host() as i64;
        return Rounded { value, flags: if value as f64 == a.to_host() { 0 } else { INEXACT } };
    }
    if a.is_nan() {
        return Rounded { value: largest, flags: INVALID };
    }
    let rounded = a.soft().to_i128_r(bits as usize, mode, &mut false);
    if rounded.status.contains(Status::INVALID_OP) {
        return Rounded { value: if a.raw() & T::SIGN == 0 { largest } else { least }, flags: INVALID };
    }
    Rounded { value: rounded.value as i64, flags: flags(rounded.status) }
}

/// Converts to an unsigned integer; what rounds to a negative number is invalid and gives 0.
pub(crate) fn to_unsigned<T: Format>(a: T, bits: u32, mode: Round) -> Rounded<u64> {
    let largest = u64::MAX >> (64 - bits);
    if mode == Round::TowardZero && (0.0..2.0 * (1u64 << (bits - 1)) as f64).contains(&a.to_host()) {
        let value = a.to_host() as u64;
        return Rounded { value, flags: if value as f64 == a.to_host() { 0 } else { INEXACT } };
    }
    if a.is_nan() {
        return Rounded { value: largest, flags: INVALID };
    }
    let rounded = a.soft().to_u128_r(bits as usize, mode, &mut false);
    if rounded.status.contains(Status::INVALID_OP) {
        return Rounded { value: if a.raw() & T::SIGN == 0 { largest } else { 0 }, flags: INVALID };
    }
    Rounded { value: rounded.value as u64, flags: flags(rounded.status) }
}

/// The value nearest to an integer of at most 64 bits in the direction of `mode`.
pub(crate) fn from_integer<T: Format>(integer: i128, mode: Round) -> Rounded<T> {
    if integer.unsigned_abs().checked_shr(T::PRECISION) == Some(0) {
        return Rounded { value: T::from_host(integer as f64), flags: 0 };
    }
    let rounded = T::Soft::from_i128_r(integer, mode);
    Rounded { value: T::from_raw(rounded.value.to_bits() as u64), flags: flags(rounded.status) }
}

fn canonical<T: Format>(invalid: bool) -> Rounded<T> {
    Rounded { value: T::canonical_nan(), flags: if invalid { INVALID } else { 0 } }
}

/// The result with the flags of RISC-V.
fn finished<T: Format>(rounded: StatusAnd<T::Soft>, wide: impl FnOnce() -> T::Wide) -> Rounded<T> {
    let flags = flags_of(&rounded, wide);
    let value = rounded.value;
    let value = if value.is_nan() { T::canonical_nan() } else { T::from_raw(value.to_bits() as u64) };
    Rounded { value, flags }
}

/// The flags of RISC-V for a result; `wide` computes it again with a wider exponent.
///
/// `rustc_apfloat` reports underflow for every inexact result below the normal numbers, and overflow for every infinity.
/// It does not report a result that becomes the smallest normal number only because subnormals have fewer bits,
/// and one that becomes the largest number because the mode rounds towards it.
fn flags_of<S: Float + FloatConvert<W>, W: Float>(rounded: &StatusAnd<S>, wide: impl FnOnce() -> W) -> u32 {
    let mut flags = flags(rounded.status);
    let value = rounded.value;
    if flags & INEXACT != 0 && (value.is_smallest_normalized() || value.is_largest()) {
        let unbounded = wide().abs();
        let bound: W = value.abs().convert(&mut false).value;
        if value.is_largest() && unbounded > bound {
            flags |= OVERFLOW;
        } else if value.is_smallest_normalized() && unbounded < bound {
            flags |= UNDERFLOW;
        }
    }
    flags
}

fn flags(status: Status) -> u32 {
    [
        (Status::INEXACT, INEXACT),
        (Status::UNDERFLOW, UNDERFLOW),
        (Status::OVERFLOW, OVERFLOW),
        (Status::DIV_BY_ZERO, DIVIDE_BY_ZERO),
        (Status::INVALID_OP, INVALID),
    ]
    .into_iter()
    .filter(|&(bit, _)| status.contains(bit))
    .fold(0, |all, (_, flag)| all | flag)
}
