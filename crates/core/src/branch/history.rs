//! Global branch history, folded to the widths of the tables.

use serde::{Deserialize, Serialize};
use std::hash::Hasher;

use super::PredictorConfig;

/// History lengths that are folded at a time: the tagged tables and, after them, the table of indirect targets.
pub(super) const LANES: usize = 16;
/// Lanes that advance together: those of one vector register.
pub(super) const HALF: usize = LANES / 2;
/// Width of the tags of indirect targets.
pub(super) const INDIRECT_TAG_BITS: u32 = 12;
pub(super) const HISTORY_BITS_MAX: u32 = 1000;
const RING_BITS: usize = 1024;

/// Global histories of all lengths, each folded by XOR to a fixed width. A fold is a cyclic shift register: a new bit
/// enters, the bit that leaves the history is taken out where it has rotated to. Lanes are arrays, and their loops
/// have neither branches nor a result that overlaps a source, so that the compiler advances all lengths with a few
/// vector instructions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Folded {
    pub(super) value: [u16; LANES],
    mask: [u16; LANES],
    /// 2^(17 - width): the upper half of a product with it is the top bit, moved to bit 0.
    to_bottom: [u16; LANES],
    leaving: [u16; LANES],
}

impl Folded {
    fn new() -> Self {
        Folded { value: [0; LANES], mask: [0; LANES], to_bottom: [0; LANES], leaving: [0; LANES] }
    }

    fn set_lane(&mut self, lane: usize, history_bits: u32, width_bits: u32) {
        self.mask[lane] = (((1u32 << width_bits) - 1) & 0xFFFF) as u16;
        self.to_bottom[lane] = 1 << (17 - width_bits);
        self.leaving[lane] = 1 << (history_bits % width_bits);
    }

    /// Advances one half of the lanes; `old` is all ones in the lanes whose leaving bit is set.
    #[inline(always)]
    fn push(&mut self, half: usize, new: u16, old: &[u16; HALF]) {
        let value = &mut self.value.as_chunks_mut().0[half];
        let mask: &[u16; HALF] = &self.mask.as_chunks().0[half];
        let to_bottom: &[u16; HALF] = &self.to_bottom.as_chunks().0[half];
        let leaving: &[u16; HALF] = &self.leaving.as_chunks().0[half];
        let mut next = [0; HALF];
        for lane in 0..HALF {
            let carry = ((u32::from(value[lane]) * u32::from(to_bottom[lane])) >> 16) as u16;
            let rotated = (value[lane] << 1 | carry) & mask[lane];
            next[lane] = rotated ^ new ^ (old[lane] & leaving[lane]);
        }
        *value = next;
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct History {
    /// The last outcomes: number n is bit n % 64 of word n / 64, modulo the size of the ring.
    ring: [u64; RING_BITS / 64],
    /// Outcomes so far.
    pushed: usize,
    /// One address bit of each branch in the history.
    pub(super) path: u32,
    lengths: [usize; LANES],
    lanes: usize,
    /// The next bits that leave each history, the first in bit 0. Histories of up to 16 bits are stored here whole; the
    /// others are refilled from the ring every 16 outcomes.
    queue: [u16; LANES],
    /// Position at which a new outcome enters the queue; 0 for histories of more than 16 bits.
    enter: [u16; LANES],
    pub(super) index: Folded,
    pub(super) tag: Folded,
    /// Folded one bit narrower, so that two histories with one fold rarely share the other.
    pub(super) tag_narrow: Folded,
}

impl History {
    pub(super) fn new(config: &PredictorConfig) -> Self {
        let mut history = History {
            ring: [0; RING_BITS / 64],
            pushed: 0,
            path: 0,
            lengths: [0; LANES],
            lanes: config.history_bits.len(),
            queue: [0; LANES],
            enter: [0; LANES],
            index: Folded::new(),
            tag: Folded::new(),
            tag_narrow: Folded::new(),
        };
        for (lane, &bits) in config.history_bits.iter().enumerate() {
            history.set_lane(lane, bits, config.tagged_entries.ilog2(), config.tag_bits);
        }
        if config.indirect_entries > 0 {
            let index_bits = config.indirect_entries.ilog2();
            history.set_lane(history.lanes, config.indirect_history_bits, index_bits, INDIRECT_TAG_BITS);
            history.lanes += 1;
        }
        history
    }

    fn set_lane(&mut self, lane: usize, bits: u32, index_bits: u32, tag_bits: u32) {
        self.lengths[lane] = bits as usize;
        self.enter[lane] = if bits <= 16 { 1 << (bits - 1) } else { 0 };
        self.index.set_lane(lane, bits, index_bits);
        self.tag.set_lane(lane, bits, tag_bits);
        self.tag_narrow.set_lane(lane, bits, tag_bits - 1);
    }

    pub(super) fn push(&mut self, pc: u64, bit: bool) {
        let word = &mut self.ring[self.pushed / 64 % (RING_BITS / 64)];
        let place = self.pushed % 64;
        *word = *word & !(1 << place) | u64::from(bit) << place;
        self.pushed += 1;
        self.path = self.path << 1 | (((pc >> 1) ^ (pc >> 4)) & 1) as u32;

        let new = u16::from(bit);
        self.push_half::<0>(new);
        if self.lanes > HALF {
            self.push_half::<1>(new);
        }
        if self.pushed.is_multiple_of(16) {
            self.refill();
        }
    }

    /// Advances one half of the lanes.
    #[inline(always)]
    fn push_half<const HALF_AT: usize>(&mut self, new: u16) {
        let half = HALF_AT;
        let queue = &mut self.queue.as_chunks_mut().0[half];
        let enter: &[u16; HALF] = &self.enter.as_chunks().0[half];
        let mut old = [0; HALF];
        let mut next = [0; HALF];
        for lane in 0..HALF {
            old[lane] = (queue[lane] & 1).wrapping_neg();
            next[lane] = queue[lane] >> 1 | new.wrapping_neg() & enter[lane];
        }
        *queue = next;
        // Lanes out of use hold the last bit alone and are never read.
        self.index.push(half, new, &old);
        self.tag.push(half, new, &old);
        self.tag_narrow.push(half, new, &old);
    }

    #[inline(never)]
    fn refill(&mut self) {
        for lane in 0..self.lanes {
            if self.lengths[lane] <= 16 {
                continue;
            }
            let first = self.pushed.wrapping_sub(self.lengths[lane]) % RING_BITS;
            let (word, place) = (first / 64, first % 64);
            let pair = u128::from(self.ring[(word + 1) % self.ring.len()]) << 64 | u128::from(self.ring[word]);
            self.queue[lane] = (pair >> place) as u16;
        }
    }

    pub(super) fn digest(&self, h: &mut dyn Hasher) {
        // The folds and queues follow from the ring.
        self.ring.iter().for_each(|&word| h.write_u64(word));
        h.write_u64(self.pushed as u64);
        h.write_u32(self.path);
    }
}
