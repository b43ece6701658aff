//! Stores outside of transactions that are not promised yet, by aligned words of eight bytes. A word with one such store,
//! the usual one, takes 32 bytes. Copies share pages until one side changes them.

use super::{Number, Stored, byte_of};
use durasim_types::{PAGE_BYTES, Pages, PhysAddr, Write};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const WORD_BYTES: u64 = 8;

/// All values that bytes may have, oldest first: the first of each is certain to have survived.
#[derive(Clone, Debug, Default)]
pub(super) struct Loose(Arc<BTreeMap<u64, Arc<Vec<Word>>>>);

/// The stores to a word, whose number in its page is `index`.
#[derive(Clone, Debug)]
enum Word {
    /// One store to the bytes of `mask`, over what was certain.
    One { index: u16, mask: u8, before: u64, number: Number, data: u64 },
    /// Anything else, by ascending number.
    Many { index: u16, stores: Vec<PartialWord> },
}

/// Some bytes of a word that have come with one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartialWord {
    number: Number,
    data: u64,
    mask: u8,
}

type WordBytes = [Vec<Stored>; WORD_BYTES as usize];

impl Word {
    fn index(&self) -> u16 {
        match self {
            Word::One { index, .. } | Word::Many { index, .. } => *index,
        }
    }

    fn stores(&self) -> ([PartialWord; 2], &[PartialWord]) {
        const NONE: PartialWord = PartialWord { number: 0, data: 0, mask: 0 };
        match self {
            Word::One { mask, before, number, data, .. } => (
                [
                    PartialWord { number: 0, data: *before, mask: *mask },
                    PartialWord { number: *number, data: *data, mask: *mask },
                ],
                &[],
            ),
            Word::Many { stores, .. } => ([NONE; 2], stores),
        }
    }

    /// The values of a byte.
    fn byte(&self, byte: usize) -> Vec<Stored> {
        let (two, many) = self.stores();
        let covering = two.iter().chain(many).filter(|store| store.mask >> byte & 1 == 1);
        covering.map(|store| (store.number, store.data.to_le_bytes()[byte])).collect()
    }

    fn bytes(&self) -> WordBytes {
        std::array::from_fn(|byte| self.byte(byte))
    }

    /// The word with these values; `None` if there are none.
    fn of(index: u16, bytes: &WordBytes) -> Option<Word> {
        let mut stores: BTreeMap<Number, PartialWord> = BTreeMap::new();
        for (at, values) in bytes.iter().enumerate() {
            for &(number, value) in values {
                let store = stores.entry(number).or_insert(PartialWord { number, data: 0, mask: 0 });
                store.data |= u64::from(value) << (8 * at);
                store.mask |= 1 << at;
            }
        }
        let stores: Vec<PartialWord> = stores.into_values().collect();
        match stores[..] {
            [] => None,
            [PartialWord { number: 0, data: before, mask }, store] if store.mask == mask => {
                Some(Word::One { index, mask, before, number: store.number, data: store.data })
            }
            _ => Some(Word::Many { index, stores }),
        }
    }

    /// One more store; `false` if it is to a byte that has no store yet.
    fn push(&mut self, store: PartialWord, is_repetition_left_out: bool) -> bool {
        let (two, many) = self.stores();
        let known = two.iter().chain(many).fold(0, |known, store| known | store.mask);
        if store.mask & !known != 0 {
            return false;
        }
        let last = many.last().unwrap_or(&two[1]);
        if is_repetition_left_out && (last.data, last.mask) == (store.data, store.mask) {
            return true;
        }
        match self {
            Word::Many { stores, .. } => stores.push(store),
            Word::One { index, .. } => *self = Word::Many { index: *index, stores: vec![two[0], two[1], store] },
        }
        true
    }
}

fn page_and_index(word: u64) -> (u64, u16) {
    (word / PAGE_BYTES, (word % PAGE_BYTES / WORD_BYTES) as u16)
}

fn position(words: &[Word], index: u16) -> Result<usize, usize> {
    // Programs mostly continue after the last word.
    match words.last() {
        Some(last) if last.index() < index => Err(words.len()),
        _ => words.binary_search_by_key(&index, Word::index),
    }
}

impl Loose {
    fn word(&self, addr: PhysAddr) -> Option<&Word> {
        let (page, index) = page_and_index(addr.0);
        let words = self.0.get(&page)?;
        position(words, index).ok().map(|at| &words[at])
    }

    /// The values of a byte; none if it was not stored to, or only the last store is possible.
    pub fn values(&self, addr: PhysAddr) -> Vec<Stored> {
        self.word(addr).map(|word| word.byte((addr.0 % WORD_BYTES) as usize)).unwrap_or_default()
    }

    /// Whether some byte of a range has more than one value.
    pub fn any_in(&self, bytes: Range<PhysAddr>) -> bool {
        words_of(&bytes).any(|word| {
            let inside = |byte: &u64| bytes.contains(&PhysAddr(word + byte));
            let known = || self.word(PhysAddr(word)).map(Word::bytes).unwrap_or_default();
            self.word(PhysAddr(word)).is_some()
                && (0..WORD_BYTES).filter(inside).any(|byte| !known()[byte as usize].is_empty())
        })
    }

    /// A store with this number; `before` is what was certain. A store that repeats the last one is left out if nothing else
    /// can have come between them.
    pub fn store(&mut self, write: &Write, number: Number, before: &Pages, is_repetition_left_out: bool) {
        let end = write.addr.plus(write.len.into());
        for word in words_of(&(write.addr..end)) {
            let mut store = PartialWord { number, data: 0, mask: 0 };
            for (addr, value) in super::bytes_of(write).filter(|(addr, _)| addr.0 & !(WORD_BYTES - 1) == word) {
                store.data |= u64::from(value) << (8 * (addr.0 - word));
                store.mask |= 1 << (addr.0 - word);
            }
            let (page, index) = page_and_index(word);
            let words = Arc::make_mut(Arc::make_mut(&mut self.0).entry(page).or_default());
            let at = position(words, index);
            if let Ok(at) = at
                && words[at].push(store, is_repetition_left_out)
            {
                continue;
            }
            let mut bytes = at.map(|at| words[at].bytes()).unwrap_or_default();
            for (byte, values) in bytes.iter_mut().enumerate().filter(|(byte, _)| store.mask >> byte & 1 == 1) {
                if values.is_empty() {
                    values.push((0, byte_of(before, PhysAddr(word + byte as u64))));
                }
                values.push((number, store.data.to_le_bytes()[byte]));
            }
            let new = Word::of(index, &bytes).expect("the store has a byte");
            match at {
                Ok(at) => words[at] = new,
                Err(at) => words.insert(at, new),
            }
        }
    }

    /// Lets `change` change the values of the bytes of a range that have more than one; those that are left with one are
    /// certain.
    pub fn change(&mut self, bytes: Range<PhysAddr>, mut change: impl FnMut(PhysAddr, &mut Vec<Stored>)) {
        for word in words_of(&bytes) {
            let Some(found) = self.word(PhysAddr(word)) else { continue };
            let (mut values, index) = (found.bytes(), found.index());
            for (addr, values) in (word..).map(PhysAddr).zip(&mut values) {
                if !values.is_empty() && bytes.contains(&addr) {
                    change(addr, values);
                    if values.len() == 1 {
                        values.clear();
                    }
                }
            }
            let (page, _) = page_and_index(word);
            let pages = Arc::make_mut(&mut self.0);
            let words = Arc::make_mut(pages.get_mut(&page).expect("the word was found there"));
            let at = position(words, index).expect("the word was found there");
            match Word::of(index, &values) {
                Some(word) => words[at] = word,
                None => {
                    words.remove(at);
                    if words.is_empty() {
                        pages.remove(&page);
                    }
                }
            }
        }
    }
}

fn words_of(bytes: &Range<PhysAddr>) -> impl Iterator<Item = u64> + use<> {
    (bytes.start.0 & !(WORD_BYTES - 1)..bytes.end.0).step_by(WORD_BYTES as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: PhysAddr = PhysAddr(0x1000);

    fn write(offset: u64, len: u8, data: u64) -> Write {
        Write { addr: BASE.plus(offset), len, data }
    }

    #[test]
    fn a_word_with_one_store_is_small() {
        assert_eq!(size_of::<Word>(), 32);
    }

    #[test]
    fn values_are_those_of_a_list_for_each_byte() {
        let before = Pages::new(BASE, 1 << 16);
        let mut loose = Loose::default();
        let mut model: BTreeMap<PhysAddr, Vec<Stored>> = BTreeMap::new();
        let mut rng = durasim_types::Rng::new(7);
        for number in 1..2000 {
            let at = write(rng.below(64), 1 + rng.below(8) as u8, rng.next_u64());
            let copy = loose.clone();
            if rng.below(4) == 0 {
                let last = number - rng.below(9).min(number);
                let range = at.addr..at.addr.plus(2 * u64::from(at.len));
                let to_floor = |values: &mut Vec<Stored>| {
                    let floor = values.iter().rposition(|(number, _)| *number <= last).unwrap_or(0);
                    values.drain(..floor);
                };
                for (_, values) in model.range_mut(range.clone()) {
                    to_floor(values);
                }
                model.retain(|_, values| values.len() > 1);
                loose.change(range, |_, values| to_floor(values));
            } else {
                for (addr, byte) in super::super::bytes_of(&at) {
                    model.entry(addr).or_insert_with(|| vec![(0, byte_of(&before, addr))]).push((number, byte));
                }
                loose.store(&at, number, &before, false);
            }
            for addr in (0..80).map(|offset| BASE.plus(offset)) {
                assert_eq!(loose.values(addr), model.get(&addr).cloned().unwrap_or_default(), "{addr} at {number}");
                assert_eq!(loose.any_in(addr..addr.plus(3)), model.range(addr..addr.plus(3)).next().is_some());
            }
            drop(copy);
        }
    }

    #[test]
    fn a_store_that_repeats_the_last_one_takes_no_memory() {
        let before = Pages::new(BASE, 1 << 16);
        let mut loose = Loose::default();
        (1..100).for_each(|number| loose.store(&write(0, 4, 1), number, &before, true));
        assert_eq!(loose.values(BASE), [(0, 0), (1, 1)]);
        loose.store(&write(0, 4, 2), 100, &before, true);
        loose.store(&write(0, 4, 1), 101, &before, true);
        assert_eq!(loose.values(BASE), [(0, 0), (1, 1), (100, 2), (101, 1)]);
    }
}
