//! The transaction cache itself: a FIFO of entries, its overflow register, and their nonvolatile form.

use durasim_design::{Store, Token};
use durasim_types::{Line, LineAddr, TxId};
use std::collections::VecDeque;

/// The state of an entry (section 4.1). An available entry is one that is not in the FIFO; the two states that send
/// something tell what they wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Of an open transaction.
    Active,
    /// Of an open transaction, its old line on the way to the shadow area; so many acknowledgements are missing.
    Copying { token: Token, left: u8 },
    /// To be issued to the NVRAM.
    Committed,
    /// Issued; the acknowledgement frees it. Of an open transaction only behind a safe shadow copy.
    Issued(Token),
}

impl State {
    /// Whether the entry leaves by itself.
    pub fn drains(self) -> bool {
        matches!(self, State::Committed | State::Issued(_))
    }

    pub fn copying(self) -> bool {
        matches!(self, State::Copying { .. })
    }

    pub fn in_flight(self) -> bool {
        matches!(self, State::Copying { .. } | State::Issued(_))
    }

    /// The acknowledgement the entry waits for.
    pub fn token(self) -> Option<Token> {
        match self {
            State::Copying { token, .. } | State::Issued(token) => Some(token),
            State::Active | State::Committed => None,
        }
    }
}

/// An entry: a store, or the stores of one transaction to one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub tx: TxId,
    pub line: LineAddr,
    /// The bytes of the line that it holds: bit `i` stands for byte `i`.
    pub mask: u64,
    pub data: Line,
    pub state: State,
}

impl Entry {
    pub fn new(tx: TxId, store: &Store<'_>, state: State) -> Self {
        let mut entry = Entry { tx, line: store.line(), mask: 0, data: [0; 64], state };
        entry.merge(store);
        entry
    }

    /// Takes in a further store to the line.
    pub fn merge(&mut self, store: &Store<'_>) {
        let (at, len) = (store.addr.offset(), store.len as usize);
        self.data[at..at + len].copy_from_slice(&store.bytes()[..len]);
        self.mask |= ((1u64 << len) - 1) << at;
    }

    /// Puts its bytes over `under`.
    pub fn overlay(&self, under: &mut Line) {
        for (i, byte) in under.iter_mut().enumerate().filter(|(i, _)| self.mask >> i & 1 == 1) {
            *byte = self.data[i];
        }
    }
}

/// The register of the fall-back path: which transaction overflowed, and which lines it has shadowed, in the order of
/// their slots. Nonvolatile; commits clear it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Overflow {
    pub tx: TxId,
    /// Each shadowed line, and whether its copy has been acknowledged: only then may home change.
    pub lines: Vec<(LineAddr, bool)>,
    /// The abort that is bringing the old lines back.
    pub restoring: Option<Token>,
}

impl Overflow {
    pub fn new(tx: TxId) -> Self {
        Overflow { tx, lines: Vec::new(), restoring: None }
    }

    pub fn holds(&self, line: LineAddr) -> bool {
        self.lines.iter().any(|(l, _)| *l == line)
    }

    pub fn acknowledge(&mut self, line: LineAddr) {
        for (_, safe) in self.lines.iter_mut().filter(|(l, _)| *l == line) {
            *safe = true;
        }
    }
}

/// The transaction cache of one core; the front of the queue is its tail.
#[derive(Clone, Debug, Default)]
pub(super) struct TransactionCache {
    pub entries: VecDeque<Entry>,
    pub overflow: Option<Overflow>,
    /// Shadow copies that were on their way when their transaction committed, each with the acknowledgements that are
    /// missing: the next transaction may not use the shadow area before them.
    pub late_copies: Vec<(Token, u8)>,
}

impl TransactionCache {
    /// Counts an acknowledgement of a late copy; false if it is of something else.
    pub fn late_copy_acked(&mut self, token: Token) -> bool {
        let Some(index) = self.late_copies.iter().position(|(t, _)| *t == token) else { return false };
        self.late_copies[index].1 -= 1;
        self.late_copies.retain(|(_, left)| *left > 0);
        true
    }
}

/// What is left of a transaction cache after a power failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    /// Committed entries, oldest first: line, mask and bytes.
    pub committed: Vec<(LineAddr, u64, Line)>,
    /// Active entries.
    pub active: u64,
    /// Slots of the shadow area that hold old lines of an uncommitted transaction.
    pub shadows: Vec<u64>,
}

const RECORD_BYTES: usize = 24 + 64;

impl TransactionCache {
    /// The nonvolatile contents: number and numbers of the shadow slots that are safe, then a record for each entry.
    pub fn save(&self) -> Vec<u8> {
        let lines = self.overflow.as_ref().map_or(&[][..], |o| &o.lines);
        let safe: Vec<u64> = (0..).zip(lines).filter(|(_, (_, safe))| *safe).map(|(slot, _)| slot).collect();
        let mut bytes = (safe.len() as u64).to_le_bytes().to_vec();
        safe.iter().for_each(|slot| bytes.extend(slot.to_le_bytes()));
        for entry in &self.entries {
            let uncommitted = self.overflow.as_ref().is_some_and(|o| o.tx == entry.tx)
                || matches!(entry.state, State::Active | State::Copying { .. });
            bytes.extend(entry.line.0.to_le_bytes());
            bytes.extend(entry.mask.to_le_bytes());
            bytes.extend(u64::from(!uncommitted).to_le_bytes());
            bytes.extend(entry.data);
        }
        bytes
    }
}

impl Saved {
    /// Reads what [`TransactionCache::save`] wrote.
    pub fn load(bytes: &[u8]) -> Self {
        let mut saved = Saved::default();
        let mut words = bytes.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")));
        let Some(count) = words.next() else { return saved };
        saved.shadows = words.take(count as usize).collect();
        let records = &bytes[8 * (1 + saved.shadows.len())..];
        for record in records.chunks_exact(RECORD_BYTES) {
            let word = |i: usize| u64::from_le_bytes(record[8 * i..8 * i + 8].try_into().expect("eight bytes"));
            if word(2) == 1 {
                let data = record[24..].try_into().expect("a line");
                saved.committed.push((LineAddr(word(0)), word(1), data));
            } else {
                saved.active += 1;
            }
        }
        saved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_what_is_loaded() {
        let entry =
            |tx, line, state| Entry { tx: TxId(tx), line: LineAddr(line), mask: 0xf0, data: [line as u8; 64], state };
        let mut cache = TransactionCache::default();
        cache.entries.push_back(entry(1, 1, State::Issued(Token(1))));
        cache.entries.push_back(entry(2, 2, State::Issued(Token(2))));
        cache.entries.push_back(entry(2, 3, State::Active));
        cache.overflow = Some(Overflow::new(TxId(2)));
        let overflow = cache.overflow.as_mut().unwrap();
        overflow.lines = vec![(LineAddr(1), false), (LineAddr(2), false)];
        overflow.acknowledge(LineAddr(2));
        let saved = Saved::load(&cache.save());
        assert_eq!(saved.shadows, [1]);
        assert_eq!(saved.committed, [(LineAddr(1), 0xf0, [1; 64])]);
        assert_eq!(saved.active, 2);
        assert_eq!(Saved::load(&[]), Saved::default());
    }
}
