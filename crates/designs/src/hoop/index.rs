//! Which slices hold words of a line: what a walk over the slices of transactions that are not collected would find.

use super::slice::{SLICE_BYTES, Word};
use durasim_design::Part;
use durasim_types::{LineAddr, PhysAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Whose word it is. Committed words come before open ones, in the order of their commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Owner {
    /// Of the commit with this number.
    Committed(u64),
    Open(TxId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Located {
    word: u8,
    mask: u8,
    position: u8,
    slice: u32,
    owner: Owner,
}

/// The words by line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index(BTreeMap<LineAddr, Vec<Located>>);

impl Index {
    /// A slice with these words has been appended.
    pub fn add(&mut self, words: &[Word], slice: u32, owner: Owner) {
        for (position, word) in (0..).zip(words) {
            let located = Located { word: word.index() as u8, mask: word.mask, position, slice, owner };
            let of_line = self.0.entry(word.line()).or_default();
            of_line.retain(|old| old.owner != owner || old.word != located.word || old.mask & !located.mask != 0);
            of_line.push(located);
        }
    }

    /// Words of a transaction on these lines are committed.
    pub fn commit(&mut self, tx: TxId, number: u64, lines: &BTreeSet<LineAddr>) {
        for line in lines {
            let Some(of_line) = self.0.get_mut(line) else { continue };
            let own: Vec<Located> = of_line.iter().filter(|w| w.owner == Owner::Open(tx)).copied().collect();
            let covered = |old: &Located| {
                let newer = own.iter().filter(|new| new.word == old.word).fold(0, |mask, new| mask | new.mask);
                matches!(old.owner, Owner::Committed(_)) && old.mask & !newer == 0
            };
            of_line.retain(|old| !covered(old));
            for word in of_line.iter_mut().filter(|w| w.owner == Owner::Open(tx)) {
                word.owner = Owner::Committed(number);
            }
            // Stable: words of one owner stay in the order in which they were stored.
            of_line.sort_by_key(|word| word.owner);
        }
    }

    /// Words of an aborted transaction on these lines are gone.
    pub fn abort(&mut self, tx: TxId, lines: &BTreeSet<LineAddr>) {
        for line in lines {
            if let Some(of_line) = self.0.get_mut(line) {
                of_line.retain(|word| word.owner != Owner::Open(tx));
                if of_line.is_empty() {
                    self.0.remove(line);
                }
            }
        }
    }

    /// All commits up to this number are collected.
    pub fn collect(&mut self, number: u64) {
        self.0.retain(|_, of_line| {
            of_line.retain(|word| word.owner > Owner::Committed(number));
            !of_line.is_empty()
        });
    }

    /// Whether some slice holds words of the line.
    pub fn has(&self, line: LineAddr) -> bool {
        self.0.contains_key(&line)
    }

    /// Whether some slice holds words of the line that are not of the commits up to this number.
    pub fn has_newer(&self, line: LineAddr, number: u64) -> bool {
        self.0.get(&line).is_some_and(|of_line| of_line.iter().any(|word| word.owner > Owner::Committed(number)))
    }

    /// The pieces of a line, oldest first, where slices begin at `base`.
    pub fn parts(&self, line: LineAddr, base: PhysAddr) -> Vec<Part> {
        let mut parts = Vec::new();
        for word in self.0.get(&line).into_iter().flatten() {
            let from = base.plus(u64::from(word.slice) * SLICE_BYTES + 8 * u64::from(word.position));
            let mut first = 0;
            while first < 8 {
                let run = (word.mask >> first).trailing_ones() as u8;
                if run > 0 {
                    let offset = 8 * word.word + first;
                    parts.push(Part { from: from.plus(first.into()), offset, len: run });
                }
                first += run.max(1);
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::PhysAddr;

    #[test]
    fn the_newest_committed_words_come_last_but_for_open_ones() {
        let base = PhysAddr(1 << 40);
        let word = |i: u64, mask| Word { addr: base.plus(8 * i), mask, value: 0 };
        let mut index = Index::default();
        let (line, lines) = (base.line(), BTreeSet::from([base.line()]));
        index.add(&[word(0, 0xff)], 3, Owner::Open(TxId(7)));
        index.add(&[word(1, 0x0f), word(0, 0x01)], 4, Owner::Open(TxId(8)));
        index.commit(TxId(8), 1, &lines);
        let froms =
            |index: &Index| index.parts(line, PhysAddr(0)).iter().map(|p| (p.from.0, p.len)).collect::<Vec<_>>();
        assert_eq!(froms(&index), [(512, 4), (520, 1), (384, 8)]);
        index.commit(TxId(7), 2, &lines);
        assert_eq!(froms(&index), [(512, 4), (384, 8)], "a word that a newer one covers is nobody's");
        assert!(index.has_newer(line, 1) && !index.has_newer(line, 2));
        index.collect(1);
        assert_eq!(froms(&index), [(384, 8)]);
        index.add(&[word(2, 0x81)], 5, Owner::Open(TxId(9)));
        assert_eq!(froms(&index)[1..], [(640, 1), (647, 1)]);
        index.abort(TxId(9), &lines);
        index.collect(2);
        assert!(!index.has(line));
    }
}
