//! The bloom filters of a process (sections V-A, VI-A and VI-B, Table VI): two FWD filters, red and black, and one TRANS
//! filter. New objects are inserted into the active FWD filter.
//!
//! The lines are memory of the process, so they may hold anything. Bits after those of a filter have no meaning, and
//! whatever the two Active bits say, the one of the red filter decides.

use super::PInspectSpec;
use super::crc::{CRC32, CRC32C};
use super::spec::FilterHash;
use durasim_types::{FILTER_LINES, FWD_LINES, LINE_BYTES, Line, SEED_LINE, TRANS_LINE};

const LINE_BITS: usize = 8 * LINE_BYTES as usize;
/// The most significant line of the black filter.
const BLACK_SEED_LINE: usize = SEED_LINE + FWD_LINES;
/// Active is the top bit of the most significant line, after the bits of the filter.
const ACTIVE_BYTE: usize = LINE_BYTES as usize - 1;
const ACTIVE: u8 = 0x80;

/// The sizes and the hash functions of the filters.
pub(super) struct Filters {
    fwd_bits: u32,
    trans_bits: u32,
    hash: FilterHash,
    wake_percent: u32,
}

impl Filters {
    pub fn new(spec: &PInspectSpec) -> Self {
        let PInspectSpec { fwd_bits, trans_bits, hash, wake_percent, .. } = *spec;
        Filters { fwd_bits, trans_bits, hash, wake_percent }
    }

    /// The number of set bits in an active FWD filter of this size from which on the pointer update thread has to work.
    pub fn wake_bits(&self, fwd_bits: u32) -> u32 {
        (fwd_bits * self.wake_percent).div_ceil(100)
    }

    /// Section VI-B: a look into both FWD filters, since one is emptied while the other one fills.
    pub fn may_forward(&self, lines: &[&Line; FILTER_LINES], object: u64) -> bool {
        let bits = self.bits_of(object, self.fwd_bits);
        [0, FWD_LINES].into_iter().any(|first| bits.into_iter().all(|bit| is_set(lines, first, bit as usize)))
    }

    /// A look into the TRANS filter.
    pub fn may_be_queued(&self, lines: &[&Line; FILTER_LINES], object: u64) -> bool {
        self.bits_of(object, self.trans_bits).into_iter().all(|bit| is_set(lines, TRANS_LINE, bit as usize))
    }

    /// Inserts an object into the active FWD filter; whether it is full enough for the pointer update thread.
    pub fn insert_fwd(&self, lines: &mut [Line; FILTER_LINES], object: u64) -> bool {
        let first = if is_red_active(&lines[SEED_LINE]) { 0 } else { FWD_LINES };
        self.bits_of(object, self.fwd_bits).into_iter().for_each(|bit| set(lines, first, bit as usize));
        self.bits_set(&lines.each_ref(), first) >= self.wake_bits(self.fwd_bits)
    }

    /// Inserts an object into the TRANS filter.
    pub fn insert_trans(&self, lines: &mut [Line; FILTER_LINES], object: u64) {
        self.bits_of(object, self.trans_bits).into_iter().for_each(|bit| set(lines, TRANS_LINE, bit as usize));
    }

    /// The bits of an object in a filter of this size: H0 and H1 [D:pinspect-hash].
    pub fn bits_of(&self, object: u64, bits: u32) -> [u32; 2] {
        match self.hash {
            FilterHash::Crc => [&CRC32, &CRC32C].map(|hash| hash.of(object) % bits),
            FilterHash::Constant => [0, 1],
        }
    }

    /// The number of bits of the active FWD filter that are set, and the number of its bits.
    pub fn occupancy(&self, lines: &[&Line; FILTER_LINES]) -> (u32, u32) {
        let first = if is_red_active(lines[SEED_LINE]) { 0 } else { FWD_LINES };
        (self.bits_set(lines, first), self.fwd_bits)
    }

    /// The number of set bits of the FWD filter that starts at this line.
    fn bits_set(&self, lines: &[&Line; FILTER_LINES], first: usize) -> u32 {
        let words = lines[first..][..FWD_LINES].iter().flat_map(|line| line.chunks_exact(8));
        let of_filter = |(n, word): (u32, &[u8])| {
            let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            match self.fwd_bits.saturating_sub(64 * n) {
                64.. => word.count_ones(),
                bits => (word & ((1 << bits) - 1)).count_ones(),
            }
        };
        (0..).zip(words).map(of_filter).sum()
    }
}

/// Clears the inactive FWD filter.
pub(super) fn clear_fwd(lines: &mut [Line; FILTER_LINES]) {
    let first = if is_red_active(&lines[SEED_LINE]) { FWD_LINES } else { 0 };
    lines[first..][..FWD_LINES].fill([0; LINE_BYTES as usize]);
}

/// Clears the TRANS filter.
pub(super) fn clear_trans(lines: &mut [Line; FILTER_LINES]) {
    lines[TRANS_LINE] = [0; LINE_BYTES as usize];
}

/// Toggles which FWD filter is active. Both bits are clear when a process starts; black is active then.
pub(super) fn change_active(lines: &mut [Line; FILTER_LINES]) {
    let red_becomes_active = !is_red_active(&lines[SEED_LINE]);
    for (line, is_active) in [(SEED_LINE, red_becomes_active), (BLACK_SEED_LINE, !red_becomes_active)] {
        let byte = &mut lines[line][ACTIVE_BYTE];
        *byte = *byte & !ACTIVE | if is_active { ACTIVE } else { 0 };
    }
}

fn is_red_active(seed: &Line) -> bool {
    seed[ACTIVE_BYTE] & ACTIVE != 0
}

fn is_set(lines: &[&Line; FILTER_LINES], first: usize, bit: usize) -> bool {
    lines[first + bit / LINE_BITS][bit % LINE_BITS / 8] >> (bit % 8) & 1 != 0
}

fn set(lines: &mut [Line; FILTER_LINES], first: usize, bit: usize) {
    lines[first + bit / LINE_BITS][bit % LINE_BITS / 8] |= 1 << (bit % 8);
}
