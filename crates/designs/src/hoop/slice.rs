//! Data slices of the out-of-place region: eight words and the line of metadata that says where they belong.
//!
//! The metadata has the published fields (eight 40-bit home addresses, a 32-bit TxID, the 24-bit number of the next slice,
//! a count, a start bit and a flag) in its first 48 bytes. Eight of the 16 bytes after them, which the paper leaves free,
//! hold which bytes of each word were stored [D:hoop-word-masks].

use durasim_types::{Line, LineAddr, PhysAddr};
use serde::{Deserialize, Serialize};

/// Two bursts of memory: eight words and the metadata.
pub(super) const SLICE_BYTES: u64 = 128;
/// Words of a slice.
pub(super) const SLICE_WORDS: usize = 8;
/// The number that stands for no next slice: the largest of 24 bits.
pub(super) const END: u32 = (1 << 24) - 1;

const START: u64 = 1;
const TRANSACTION: u64 = 2;
const EVICTED: u64 = 4;

/// A word of eight bytes with those of its bytes that were stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Word {
    /// Its address, a multiple of eight.
    pub addr: PhysAddr,
    /// Bit `i` stands for byte `i`.
    pub mask: u8,
    /// The bytes, little-endian.
    pub value: u64,
}

impl Word {
    /// The words that a store of up to eight bytes changes: two if it crosses from one to the next.
    pub fn of_store(addr: PhysAddr, len: u8, data: u64) -> impl Iterator<Item = Word> + Clone {
        let offset = addr.0 % 8;
        let bytes = (1u32 << len) - 1;
        let first =
            Word { addr: PhysAddr(addr.0 - offset), mask: (bytes << offset) as u8, value: data << (8 * offset) };
        let over = (bytes << offset >> 8) as u8;
        let value = if over == 0 { 0 } else { data >> (64 - 8 * offset) };
        let second = (over != 0).then_some(Word { addr: first.addr.plus(8), mask: over, value });
        [first].into_iter().chain(second)
    }

    /// Takes in a newer version of the same word.
    pub fn update(&mut self, newer: &Word) {
        let bits = spread(newer.mask);
        self.value = self.value & !bits | newer.value & bits;
        self.mask |= newer.mask;
    }

    pub fn line(&self) -> LineAddr {
        self.addr.line()
    }

    /// Its number among the words of its line.
    pub fn index(&self) -> usize {
        self.addr.offset() / 8
    }
}

/// Eight bits for each bit of a byte mask.
fn spread(mask: u8) -> u64 {
    (0..8).filter(|i| mask >> i & 1 == 1).fold(0, |bits, i| bits | 0xff << (8 * i))
}

/// A slice of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub words: Vec<Word>,
    /// The low 32 bits of the transaction's number.
    pub tx: u32,
    /// The number of the transaction's next slice, or [`END`].
    pub next: u32,
    /// Whether it is the transaction's first.
    pub start: bool,
}

impl Slice {
    /// Its two lines, home addresses as words from `base` on.
    pub fn encode(&self, base: PhysAddr) -> [Line; 2] {
        let (mut data, mut meta) = ([0; 64], [0; 64]);
        for (i, word) in self.words.iter().enumerate() {
            data[8 * i..8 * i + 8].copy_from_slice(&word.value.to_le_bytes());
            let home = (word.addr.0 - base.0) / 8;
            meta[5 * i..5 * i + 5].copy_from_slice(&home.to_le_bytes()[..5]);
            meta[48 + i] = word.mask;
        }
        let flags = TRANSACTION | if self.start { START } else { 0 };
        let fields = u64::from(self.tx) | u64::from(self.next) << 32 | (self.words.len() as u64) << 56 | flags << 60;
        meta[40..48].copy_from_slice(&fields.to_le_bytes());
        [data, meta]
    }

    /// Reads what [`Slice::encode`] wrote; `None` if it is no slice of a transaction.
    pub fn decode(base: PhysAddr, data: &Line, meta: &Line) -> Option<Slice> {
        let fields = u64::from_le_bytes(meta[40..48].try_into().expect("eight bytes"));
        let count = (fields >> 56 & 0xf) as usize;
        let flags = fields >> 60;
        if count > SLICE_WORDS || flags & !START != TRANSACTION {
            return None;
        }
        let word = |i: usize| {
            let mut home = [0; 8];
            home[..5].copy_from_slice(&meta[5 * i..5 * i + 5]);
            let value = u64::from_le_bytes(data[8 * i..8 * i + 8].try_into().expect("eight bytes"));
            Word { addr: base.plus(8 * u64::from_le_bytes(home)), mask: meta[48 + i], value }
        };
        Some(Slice {
            words: (0..count).map(word).collect(),
            tx: fields as u32,
            next: (fields >> 32) as u32 & END,
            start: flags & START != 0,
        })
    }
}

/// The metadata of a slice that holds a whole line which the last level has evicted. Recovery never reads it.
pub(super) fn evicted_metadata(base: PhysAddr, line: LineAddr) -> Line {
    let mut meta = [0; 64];
    for i in 0..SLICE_WORDS {
        let home = (line.base().0 - base.0) / 8 + i as u64;
        meta[5 * i..5 * i + 5].copy_from_slice(&home.to_le_bytes()[..5]);
        meta[48 + i] = 0xff;
    }
    let fields = u64::from(END) << 32 | (SLICE_WORDS as u64) << 56 | EVICTED << 60;
    meta[40..48].copy_from_slice(&fields.to_le_bytes());
    meta
}

/// Bytes of a line, newest first or oldest first put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Patch {
    /// The bytes: bit `i` stands for byte `i`.
    pub mask: u64,
    #[serde(with = "serde_bytes")]
    pub data: Line,
}

impl Default for Patch {
    fn default() -> Self {
        Patch { mask: 0, data: [0; 64] }
    }
}

impl Patch {
    /// Lays a newer word of the line over it.
    pub fn update(&mut self, word: &Word) {
        let bytes = word.value.to_le_bytes();
        for i in (0..8).filter(|i| word.mask >> i & 1 == 1) {
            self.data[8 * word.index() + i] = bytes[i];
        }
        self.mask |= u64::from(word.mask) << (8 * word.index());
    }

    /// Lays a newer patch over it.
    pub fn cover(&mut self, newer: &Patch) {
        for i in (0..64).filter(|i| newer.mask >> i & 1 == 1) {
            self.data[i] = newer.data[i];
        }
        self.mask |= newer.mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_what_is_decoded() {
        let base = PhysAddr(1 << 40);
        let word = |i: u64| Word { addr: base.plus(8 * i * i), mask: i as u8 | 1, value: i << 60 | i };
        for count in 0..=8 {
            let words = (0..count).map(word).collect();
            let slice = Slice { words, tx: u32::MAX - 1, next: END - 1, start: count % 2 == 0 };
            let [data, meta] = slice.encode(base);
            assert_eq!(Slice::decode(base, &data, &meta), Some(slice));
        }
        assert_eq!(Slice::decode(base, &[0; 64], &[0; 64]), None, "never written");
        assert_eq!(Slice::decode(base, &[1; 64], &[0xff; 64]), None, "damaged");
        assert_eq!(Slice::decode(base, &[1; 64], &evicted_metadata(base, base.line())), None, "an evicted line");
    }

    #[test]
    fn a_store_is_one_word_or_two() {
        let base = PhysAddr(1 << 40);
        let words = |offset, len, data| Word::of_store(base.plus(offset), len, data).collect::<Vec<_>>();
        assert_eq!(words(8, 8, 7), [Word { addr: base.plus(8), mask: 0xff, value: 7 }]);
        assert_eq!(words(13, 2, 0xabcd), [Word { addr: base.plus(8), mask: 0x60, value: 0xabcd << 40 }]);
        let two = words(7, 2, 0xabcd);
        assert_eq!((two[0].mask, two[0].value >> 56), (0x80, 0xcd));
        assert_eq!(two[1], Word { addr: base.plus(8), mask: 1, value: 0xab });
    }

    #[test]
    fn newer_bytes_win_and_older_ones_stay() {
        let addr = PhysAddr(1 << 40);
        let mut word = Word { addr, mask: 0x0f, value: 0x1111_1111 };
        word.update(&Word { addr, mask: 0x18, value: 0x22_2200_0000 });
        assert_eq!((word.mask, word.value), (0x1f, 0x22_2211_1111));
        let mut patch = Patch::default();
        patch.update(&word);
        patch.update(&Word { addr: addr.plus(56), mask: 0x80, value: 0x33 << 56 });
        assert_eq!((patch.mask, patch.data[4], patch.data[63]), (0x8000_0000_0000_001f, 0x22, 0x33));
        let mut older = Patch { mask: u64::MAX, data: [9; 64] };
        older.cover(&patch);
        assert_eq!((older.mask, older.data[0], older.data[5], older.data[63]), (u64::MAX, 0x11, 9, 0x33));
    }
}
