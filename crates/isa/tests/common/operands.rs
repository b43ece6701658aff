//! Operands at the edges of their formats, where mistakes hide.

use durasim_types::Rng;

pub fn integer(rng: &mut Rng) -> u64 {
    const EDGES: [u64; 16] = [
        0,
        1,
        2,
        u64::MAX,
        1 << 63,
        (1 << 63) - 1,
        (1 << 63) + 1,
        1 << 31,
        (1 << 31) - 1,
        1 << 32,
        (1 << 32) - 1,
        0xffff_ffff_8000_0000,
        0xffff_ffff_7fff_ffff,
        0x8000_0000_8000_0000,
        0x7fff,
        0x80,
    ];
    match rng.below(4) {
        0 | 1 => EDGES[rng.below(16) as usize],
        2 => rng.next_u64() >> rng.below(64),
        _ => rng.next_u64(),
    }
}

/// Bits of a floating-point number with `exponent_bits` and `fraction_bits`.
fn float(rng: &mut Rng, exponent_bits: u32, fraction_bits: u32) -> u64 {
    let exponent_max = (1u64 << exponent_bits) - 1;
    let bias = exponent_max >> 1;
    let fraction_max = (1u64 << fraction_bits) - 1;
    let sign = rng.below(2) << (exponent_bits + fraction_bits);
    let exponent = match rng.below(8) {
        0 => 0,
        1 => exponent_max,
        2 => 1,
        3 => exponent_max - 1 - rng.below(2),
        4 => bias - 1 + rng.below(3),
        5 => bias + 29 + rng.below(37),
        6 => bias - u64::from(fraction_bits) / 2 + rng.below(u64::from(fraction_bits)),
        _ => rng.below(exponent_max + 1),
    };
    let fraction = match rng.below(8) {
        0 | 1 => 0,
        2 => 1,
        3 => fraction_max,
        4 => 1 << (fraction_bits - 1),
        5 => fraction_max << rng.below(u64::from(fraction_bits)) & fraction_max,
        _ => rng.next_u64() & fraction_max,
    };
    sign | exponent << fraction_bits | fraction
}

pub fn double(rng: &mut Rng) -> u64 {
    float(rng, 11, 52)
}

/// A boxed half-precision number, now and then badly boxed.
pub fn half(rng: &mut Rng) -> u64 {
    let bits = float(rng, 5, 10);
    match rng.below(16) {
        0 => bits,
        1 => bits | rng.next_u64() << 16,
        _ => bits | 0xffff_ffff_ffff_0000,
    }
}

/// A boxed single-precision number, now and then badly boxed.
pub fn single(rng: &mut Rng) -> u64 {
    let bits = float(rng, 8, 23);
    match rng.below(16) {
        0 => bits,
        1 => bits | rng.next_u64() << 32,
        _ => bits | 0xffff_ffff_0000_0000,
    }
}
