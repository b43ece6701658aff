//! The controller's state of transactions: words in the OOP data buffers, slices that were written, commits that wait for
//! their collection, and the tokens of writes in flight.

use super::slice::{SLICE_WORDS, Word};
use durasim_contract::{Part, Token};
use durasim_types::{LineAddr, PhysAddr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The purpose of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenPurpose {
    /// Slices of the transaction with this number.
    Slices(u64),
    /// The slice of a plain store.
    Plain(u64),
    /// The entry of a commit in its address slice.
    Entry(u64),
    /// Reads and writes of this collection.
    Collection(u64),
    /// A line that becomes persistent is written to its home address.
    Home(u64),
}

impl TokenPurpose {
    pub fn token(self) -> Token {
        let (kind, value) = match self {
            TokenPurpose::Slices(tx) => (0, tx),
            TokenPurpose::Plain(serial) => (1, serial),
            TokenPurpose::Entry(number) => (2, number),
            TokenPurpose::Collection(number) => (3, number),
            TokenPurpose::Home(serial) => (4, serial),
        };
        Token(value << 3 | kind)
    }

    /// Whether commits wait for it.
    pub fn is_of_commit(self) -> bool {
        matches!(self, TokenPurpose::Slices(_) | TokenPurpose::Plain(_) | TokenPurpose::Entry(_))
    }

    pub fn of(token: Token) -> TokenPurpose {
        let number = token.when_accepted().0;
        let value = number >> 3;
        match number & 7 {
            0 => TokenPurpose::Slices(value),
            1 => TokenPurpose::Plain(value),
            2 => TokenPurpose::Entry(value),
            3 => TokenPurpose::Collection(value),
            _ => TokenPurpose::Home(value),
        }
    }
}

/// Words of a transaction in the OOP data buffer that will be its next slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingSlice {
    /// The slice that it will be.
    pub slice: u32,
    pub words: Vec<Word>,
    /// Messages with words of it that have not come to the buffer.
    pub on_the_way: u32,
}

impl PendingSlice {
    pub fn new(slice: u32) -> Self {
        PendingSlice { slice, words: Vec::new(), on_the_way: 0 }
    }

    /// Whether all of these words have a place.
    pub fn has_room(&self, words: impl Iterator<Item = Word>) -> bool {
        let new = words.filter(|word| !self.words.iter().any(|w| w.addr == word.addr)).count();
        self.words.len() + new <= SLICE_WORDS
    }

    /// Takes a word in; words of one address share a place.
    pub fn take(&mut self, word: Word) {
        match self.words.iter_mut().find(|w| w.addr == word.addr) {
            Some(older) => older.update(&word),
            None => self.words.push(word),
        }
    }
}

/// A slice that no store adds words to any more, and that waits for words on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClosedSlice {
    pub pack: PendingSlice,
    /// The slice that it names as the next.
    pub next: u32,
}

/// A slice of an open transaction as its metadata describe it: the words in it with those of their bytes that were stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WrittenSlice {
    pub slice: u32,
    words: Vec<(PhysAddr, u8)>,
}

impl WrittenSlice {
    pub fn new(slice: u32, words: &[Word]) -> Self {
        WrittenSlice { slice, words: words.iter().map(|word| (word.addr, word.mask)).collect() }
    }

    /// The pieces of a line that the slice at `place` holds.
    pub fn parts(&self, line: LineAddr, place: PhysAddr) -> Vec<Part> {
        let mut parts = Vec::new();
        for (position, (addr, mask)) in (0..).zip(&self.words).filter(|(_, (addr, _))| addr.line() == line) {
            let mut first = 0;
            while first < 8 {
                let len = (mask >> first).trailing_ones() as u8;
                if len > 0 {
                    let from = place.plus(8 * position + u64::from(first));
                    parts.push(Part { from, offset: addr.offset() as u8 + first, len });
                }
                first += len.max(1);
            }
        }
        parts
    }
}

/// A transaction whose commit is not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenTx {
    /// The core on which it began, whose OOP data buffer has its words [D:hoop-home].
    pub core: u16,
    /// Its commit has begun: it waits for the acknowledgement of its slices.
    pub committing: bool,
    /// The words that are not in a slice.
    pub pack: Option<PendingSlice>,
    /// Slices that wait for words on the way, oldest first.
    pub closed: Vec<ClosedSlice>,
    /// The slice that its last written one names as the next.
    pub next: Option<u32>,
    /// All its slices in the order of the chain, `pack` and `next` included.
    pub slices: Vec<u32>,
    /// The lines that it has changed.
    pub lines: BTreeSet<LineAddr>,
    /// Its written slices.
    pub written: Vec<WrittenSlice>,
}

impl OpenTx {
    pub fn new(core: u16) -> Self {
        OpenTx {
            core,
            committing: false,
            pack: None,
            closed: Vec::new(),
            next: None,
            slices: Vec::new(),
            lines: BTreeSet::new(),
            written: Vec::new(),
        }
    }
}

/// A plain store to a persistent line, between its slice and its commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlainStore {
    pub addr: PhysAddr,
    pub len: u8,
    pub data: u64,
    pub serial: u64,
    pub slice: u32,
}

/// A commit that is not collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Commit {
    pub number: u64,
    pub slices: Vec<u32>,
    /// Its entry in the address slices is durable.
    pub durable: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_is_awaited() {
        let all = [
            TokenPurpose::Slices(7),
            TokenPurpose::Plain(0),
            TokenPurpose::Entry(1 << 40),
            TokenPurpose::Collection(3),
            TokenPurpose::Home(9),
        ];
        for awaited in all {
            assert_eq!(TokenPurpose::of(awaited.token()), awaited);
            assert_eq!(TokenPurpose::of(awaited.token().when_written()), awaited);
        }
    }

    #[test]
    fn eight_distinct_words_are_a_slice() {
        let word = |i: u64| Word { addr: PhysAddr(8 * i), mask: 0xff, value: i };
        let mut pack = PendingSlice::new(0);
        for i in (0..8).chain(0..8) {
            assert!(pack.has_room([word(i)].into_iter()));
            pack.take(word(i));
        }
        assert!(
            pack.has_room([word(7)].into_iter())
                && !pack.has_room([word(8)].into_iter())
                && !pack.has_room([word(7), word(8)].into_iter())
        );
        assert_eq!(pack.words.len(), 8);
    }
}
