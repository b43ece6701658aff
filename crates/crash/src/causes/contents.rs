//! The contents of an image in terms of the stores of its run: which of them it has, which it lacks, and what it would be with
//! others.

use crate::store_log::{Step, StoreLog};
use durasim_types::{Pages, PhysAddr, TxId};
use std::collections::{BTreeMap, BTreeSet};

const WORD_BYTES: u64 = 8;

/// The bytes of one store in one aligned word of eight bytes.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The number of the store in the log.
    index: usize,
    /// The bytes that it has stored, as a mask of bits.
    mask: u64,
    data: u64,
}

impl Piece {
    fn over(&self, value: u64) -> u64 {
        value & !self.mask | self.data & self.mask
    }
}

/// The stores of a run by word, without those of transactions that abort.
pub(super) struct Words(BTreeMap<u64, Vec<Piece>>);

impl Words {
    /// Those of a log.
    pub fn of(log: &StoreLog) -> Self {
        let aborted: BTreeSet<TxId> = log
            .steps
            .iter()
            .filter_map(|logged| if let Step::Aborted(tx) = logged.step { Some(tx) } else { None })
            .collect();
        let mut words: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
        for (index, logged) in log.steps.iter().enumerate() {
            let Step::Store(tx, write) = logged.step else { continue };
            if tx.is_some_and(|tx| aborted.contains(&tx)) {
                continue;
            }
            for byte in 0..u64::from(write.len) {
                let addr = write.addr.0 + byte;
                let (word, shift) = (addr & !(WORD_BYTES - 1), 8 * (addr % WORD_BYTES));
                let (mask, data) = (0xff << shift, (write.data >> (8 * byte) & 0xff) << shift);
                let pieces = words.entry(word).or_default();
                match pieces.last_mut().filter(|last| last.index == index) {
                    Some(last) => (last.mask, last.data) = (last.mask | mask, last.data | data),
                    None => pieces.push(Piece { index, mask, data }),
                }
            }
        }
        Words(words)
    }
}

/// A word of an image.
struct Word<'a> {
    pieces: &'a [Piece],
    /// The number of its first pieces that the image has.
    durable: usize,
    before: u64,
    found: u64,
}

/// An image, with what it has of each word.
pub(super) struct Contents<'a> {
    image: Pages,
    words: BTreeMap<u64, Word<'a>>,
}

impl<'a> Contents<'a> {
    /// The words of `image` in terms of the first `steps` steps of a run that began on `initial`. A word that no number of its stores explains
    /// counts as one that lacks all of them.
    pub fn of(image: &Pages, words: &'a Words, initial: &Pages, steps: usize) -> Self {
        let word = |(&addr, pieces): (&u64, &'a Vec<Piece>)| {
            let (before, found) = (initial.read_u64(PhysAddr(addr)), image.read_u64(PhysAddr(addr)));
            let made = pieces.partition_point(|piece| piece.index < steps);
            let (mut value, mut durable) = (before, 0);
            for (number, piece) in (1..).zip(&pieces[..made]) {
                value = piece.over(value);
                if value == found {
                    durable = number;
                }
            }
            (addr, Word { pieces, durable, before, found })
        };
        Contents { image: image.clone(), words: words.0.iter().map(word).collect() }
    }

    /// The stores among the first `steps` steps that the image lacks, in their order.
    pub fn missing(&self, steps: usize) -> Vec<usize> {
        let mut missing = BTreeSet::new();
        for word in self.words.values() {
            let made = word.pieces.partition_point(|piece| piece.index < steps);
            let lacking = &word.pieces[word.durable.min(made)..made];
            if lacking.iter().fold(word.found, |value, piece| piece.over(value)) != word.found {
                missing.extend(lacking.iter().map(|piece| piece.index));
            }
        }
        missing.into_iter().collect()
    }

    /// The stores that the image has, in their order.
    pub fn durable(&self) -> Vec<usize> {
        let pieces = self.words.values().flat_map(|word| &word.pieces[..word.durable]);
        pieces.map(|piece| piece.index).collect::<BTreeSet<usize>>().into_iter().collect()
    }

    /// The image with these stores, each over what it has and over earlier ones.
    pub fn with(&self, stores: &BTreeSet<usize>) -> Pages {
        let mut pages = self.image.clone();
        for (&addr, word) in &self.words {
            let added = word.pieces[word.durable..].iter().filter(|piece| stores.contains(&piece.index));
            let value = added.fold(word.found, |value, piece| piece.over(value));
            if value != word.found {
                pages.write(PhysAddr(addr), &value.to_le_bytes());
            }
        }
        pages
    }

    /// The image without its stores from the one with this number on.
    pub fn without_from(&self, index: usize) -> Pages {
        let mut pages = self.image.clone();
        for (&addr, word) in &self.words {
            let durable = &word.pieces[..word.durable];
            if durable.last().is_some_and(|last| last.index >= index) {
                let kept = durable.iter().filter(|piece| piece.index < index);
                let value = kept.fold(word.before, |value, piece| piece.over(value));
                pages.write(PhysAddr(addr), &value.to_le_bytes());
            }
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::{Journal, Write};
    use std::sync::Arc;

    const BASE: PhysAddr = PhysAddr(0x1000);

    fn log(stores: &[(u64, u8, u64)]) -> StoreLog {
        let mut recorder = crate::store_log::StoreRecorder::default();
        recorder.run_begins(Arc::default(), Pages::new(BASE, 0x1000));
        recorder.moment(durasim_types::CoreId(0), 0);
        for &(offset, len, data) in stores {
            recorder.store(None, Write { addr: BASE.plus(offset), len, data });
        }
        recorder.take()
    }

    #[test]
    fn an_image_has_a_prefix_of_the_stores_to_each_word() {
        // The fourth store crosses into the next word.
        let log = log(&[(0, 8, 1), (8, 8, 2), (0, 8, 3), (12, 8, 0x0506_0708_0102_0304)]);
        let words = Words::of(&log);
        let mut image = Pages::new(BASE, 0x1000);
        image.write(BASE, &1u64.to_le_bytes());
        let contents = Contents::of(&image, &words, &log.initial, 4);
        assert_eq!(contents.durable(), [0]);
        assert_eq!(contents.missing(4), [1, 2, 3]);
        assert_eq!(contents.missing(3), [1, 2]);
        let with = contents.with(&BTreeSet::from([1, 3]));
        assert_eq!(with.read_u64(BASE), 1, "the third store is not among them");
        assert_eq!(with.read_u64(BASE.plus(8)), 0x0102_0304_0000_0002);
        assert_eq!(with.read_u64(BASE.plus(16)), 0x0506_0708);
        assert_eq!(contents.without_from(0).read_u64(BASE), 0);
        assert_eq!(contents.without_from(1).read_u64(BASE), 1);
    }

    #[test]
    fn stores_that_change_nothing_are_not_missing() {
        let log = log(&[(0, 8, 1), (0, 8, 2), (0, 8, 1)]);
        let words = Words::of(&log);
        let mut image = Pages::new(BASE, 0x1000);
        image.write(BASE, &1u64.to_le_bytes());
        assert!(Contents::of(&image, &words, &log.initial, 3).missing(3).is_empty());
        assert_eq!(Contents::of(&image, &words, &log.initial, 2).missing(2), [1]);
    }
}
