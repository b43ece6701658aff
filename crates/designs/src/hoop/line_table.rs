//! The line table: which lines have words that are not home, in OOP data buffers or in slices of transactions that are not
//! collected [D:hoop-line-table]. It has a limited number of entries, and only what is not home needs one. It does not say
//! where the words are: that is in the metadata of the slices.

use durasim_types::LineAddr;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The entry of a line in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Pending {
    /// Open transactions that have changed it.
    writers: u32,
    /// The newest commit with words of it that are not collected; 0 is none.
    newest: u64,
}

/// The entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LineTable(BTreeMap<LineAddr, Pending>);

impl LineTable {
    /// An open transaction changes a line for the first time.
    pub fn open(&mut self, line: LineAddr) {
        self.0.entry(line).or_default().writers += 1;
    }

    /// A transaction that has changed these lines is commit `number`.
    pub fn commit(&mut self, number: u64, lines: &BTreeSet<LineAddr>) {
        for line in lines {
            if let Some(pending) = self.0.get_mut(line) {
                pending.writers -= 1;
                pending.newest = number;
            }
        }
    }

    /// A commit of its own has changed a line.
    pub fn commit_plain(&mut self, number: u64, line: LineAddr) {
        self.0.entry(line).or_default().newest = number;
    }

    /// A transaction that has changed these lines is aborted.
    pub fn abort(&mut self, lines: &BTreeSet<LineAddr>) {
        for line in lines {
            if let Some(pending) = self.0.get_mut(line) {
                pending.writers -= 1;
                if *pending == Pending::default() {
                    self.0.remove(line);
                }
            }
        }
    }

    /// All commits up to this number are collected.
    pub fn collect(&mut self, number: u64) {
        self.0.retain(|_, pending| {
            if pending.newest <= number {
                pending.newest = 0;
            }
            *pending != Pending::default()
        });
    }

    /// Loses one line that no open transaction has changed: what a full table must not do.
    pub fn forget_one(&mut self) {
        let found = self.0.iter().find(|(_, pending)| pending.writers == 0).map(|(line, _)| *line);
        found.map(|line| self.0.remove(&line));
    }

    /// Whether some words of the line are not home.
    pub fn has(&self, line: LineAddr) -> bool {
        self.0.contains_key(&line)
    }

    /// Whether words of the line are committed and not collected.
    pub fn has_committed(&self, line: LineAddr) -> bool {
        self.0.get(&line).is_some_and(|pending| pending.newest > 0)
    }

    /// Whether some words of the line are not home and not of the commits up to this number.
    pub fn has_newer(&self, line: LineAddr, number: u64) -> bool {
        self.0.get(&line).is_some_and(|pending| pending.writers > 0 || pending.newest > number)
    }

    /// Entries in use.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_an_entry_until_its_newest_commit_is_collected() {
        let mut table = LineTable::default();
        let (a, b) = (LineAddr(1), LineAddr(2));
        table.open(a);
        table.open(a);
        table.open(b);
        table.commit(1, &BTreeSet::from([a]));
        assert!(table.has_committed(a) && !table.has_committed(b) && table.has(b));
        table.collect(1);
        assert!(table.has(a) && !table.has_committed(a), "another transaction has changed it");
        assert!(table.has_newer(a, 1));
        table.commit(2, &BTreeSet::from([a]));
        assert!(table.has_newer(a, 1) && !table.has_newer(a, 2));
        table.abort(&BTreeSet::from([b]));
        assert_eq!((table.has(b), table.len()), (false, 1));
        table.commit_plain(3, a);
        table.collect(2);
        assert!(table.has(a));
        table.collect(3);
        assert_eq!(table.len(), 0);
    }
}
