//! The Bloom filter over the lines whose pre-images are in the undo buffer.

use durasim_types::LineAddr;
use serde::{Deserialize, Serialize};

/// Odd numbers without pattern, one for each hash function.
const FACTORS: [u64; 8] = [
    0x9e37_79b9_7f4a_7c15,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0xd6e8_feb8_6659_fd93,
    0xff51_afd7_ed55_8ccd,
    0xc4ce_b9fe_1a85_ec53,
    0x2545_f491_4f6c_dd1d,
    0x5851_f42d_4c95_7f2d,
];

/// More hash functions than this are not built.
pub(super) const HASHES_MAX: u32 = FACTORS.len() as u32;

/// The filter: a power of two of bits, and a number of hash functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bloom {
    words: Vec<u64>,
    bits: u32,
    hashes: u32,
}

impl Bloom {
    pub fn new(bits: u32, hashes: u32) -> Self {
        Bloom { words: vec![0; bits.div_ceil(64) as usize], bits, hashes }
    }

    /// Whether it has this shape.
    pub fn is_of(&self, bits: u32, hashes: u32) -> bool {
        (self.bits, self.hashes) == (bits, hashes) && self.words.len() == bits.div_ceil(64) as usize
    }

    /// Multiplicative hashing: the upper bits of the product.
    fn places(&self, line: LineAddr) -> impl Iterator<Item = u32> + use<> {
        let shift = 64 - self.bits.trailing_zeros();
        FACTORS.into_iter().take(self.hashes as usize).map(move |factor| (line.0.wrapping_mul(factor) >> shift) as u32)
    }

    pub fn add(&mut self, line: LineAddr) {
        for place in self.places(line) {
            self.words[(place / 64) as usize] |= 1 << (place % 64);
        }
    }

    /// Whether the line may be in it; never false if it is.
    pub fn may_have(&self, line: LineAddr) -> bool {
        self.places(line).all(|place| self.words[(place / 64) as usize] >> (place % 64) & 1 == 1)
    }

    pub fn clear(&mut self) {
        self.words.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_it_is_found_and_little_else() {
        let mut bloom = Bloom::new(4096, 2);
        let first = 1u64 << 34;
        (0..32).for_each(|n| bloom.add(LineAddr(first + 3 * n)));
        assert!((0..32).all(|n| bloom.may_have(LineAddr(first + 3 * n))));
        let wrong = (0..10_000).filter(|n| bloom.may_have(LineAddr(first + 100_000 + n))).count();
        assert!(wrong < 100, "{wrong} of 10000 lines are taken for others");
        bloom.clear();
        assert!(!bloom.may_have(LineAddr(first)));
    }

    #[test]
    fn a_small_filter_is_often_wrong() {
        let mut bloom = Bloom::new(64, 2);
        (0..32).for_each(|n| bloom.add(LineAddr(n)));
        let wrong = (0..1000).filter(|n| bloom.may_have(LineAddr(1_000_000 + n))).count();
        assert!(wrong > 100, "{wrong}");
    }
}
