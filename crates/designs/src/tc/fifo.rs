//! The transaction cache itself: a FIFO of entries, its overflow register, and their nonvolatile form.

use super::planted;
use durasim_design::{Fault, Store, Token};
use durasim_types::{Line, LineAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The state of an entry (section 4.1). An available entry is one that is not in the FIFO; the two states that send
/// something tell what they wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub tx: TxId,
    pub line: LineAddr,
    /// The bytes of the line that it holds: bit `i` stands for byte `i`.
    pub mask: u64,
    #[serde(with = "serde_bytes")]
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

/// A line that the fall-back path has copied to the shadow area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shadow {
    pub line: LineAddr,
    /// Where in the core's part of the shadow area.
    pub slot: u64,
    /// Whether the copy has been acknowledged: only then may home change.
    pub safe: bool,
    /// The bytes that it is the old version of. Undoing writes these and no other: other transactions may have committed
    /// the rest of the line meanwhile. No two shadows of a transaction share a byte.
    pub mask: u64,
    /// Somebody else has written the line home since: bytes that the transaction writes later need a newer copy.
    pub closed: bool,
}

impl Shadow {
    /// The bytes to undo as runs: offset and length.
    pub fn runs(&self) -> Vec<(u64, u8)> {
        let mut runs: Vec<(u64, u8)> = Vec::new();
        for byte in (0..64).filter(|byte| self.mask >> byte & 1 == 1) {
            match runs.last_mut() {
                Some((start, len)) if *start + u64::from(*len) == byte => *len += 1,
                _ => runs.push((byte, 1)),
            }
        }
        runs
    }
}

/// The register of the fall-back path: which transaction overflowed, and which lines it has shadowed. Nonvolatile;
/// commits clear it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Overflow {
    pub tx: TxId,
    pub shadows: Vec<Shadow>,
    /// The abort that is bringing the old lines back.
    pub restoring: Option<Token>,
}

impl Overflow {
    pub fn new(tx: TxId) -> Self {
        Overflow { tx, shadows: Vec::new(), restoring: None }
    }

    pub fn holds(&self, line: LineAddr) -> bool {
        self.shadows.iter().any(|shadow| shadow.line == line)
    }
}

/// The transaction cache of one core; the front of the queue is its tail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TransactionCache {
    pub entries: VecDeque<Entry>,
    /// One register for each transaction that overflowed; threads that take turns on a core may have several.
    pub overflows: Vec<Overflow>,
    /// Shadow copies that were on their way when their transaction committed, each with the acknowledgements that are
    /// missing: no other transaction may use the shadow area before them.
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

    /// The overflow register of a transaction.
    pub fn overflow_of(&mut self, tx: TxId) -> Option<&mut Overflow> {
        self.overflows.iter_mut().find(|overflow| overflow.tx == tx)
    }

    /// Bytes of an entry of which its transaction has no old version yet. A shadow that is not closed takes them in.
    pub fn not_shadowed(&mut self, entry: &Entry) -> u64 {
        let Some(overflow) = self.overflow_of(entry.tx) else { return entry.mask };
        let mut of_line: Vec<&mut Shadow> = overflow.shadows.iter_mut().filter(|s| s.line == entry.line).collect();
        let missing = of_line.iter().fold(entry.mask, |missing, shadow| missing & !shadow.mask);
        match of_line.iter_mut().find(|shadow| !shadow.closed) {
            Some(shadow) => {
                shadow.mask |= missing;
                0
            }
            None => missing,
        }
    }

    /// Somebody writes a line home: shadows of other transactions take in no more of it.
    pub fn close_shadows(&mut self, line: LineAddr, writer: TxId) {
        let others = self.overflows.iter_mut().filter(|overflow| overflow.tx != writer);
        for shadow in others.flat_map(|overflow| &mut overflow.shadows).filter(|shadow| shadow.line == line) {
            shadow.closed = true;
        }
    }

    /// The first of so many slots of the shadow area that nobody uses.
    pub fn free_slot(&self, slots: u64) -> Option<u64> {
        let mut used: Vec<u64> = self.overflows.iter().flat_map(|o| &o.shadows).map(|shadow| shadow.slot).collect();
        used.sort_unstable();
        let free = (0..).zip(&used).find(|(slot, used)| slot != *used).map_or(used.len() as u64, |(slot, _)| slot);
        (free < slots).then_some(free)
    }

    /// The youngest acknowledgement that a committed entry of the line waits for.
    pub fn draining(&self, line: LineAddr) -> Option<Token> {
        self.entries.iter().rev().filter(|e| e.line == line && e.state.drains()).find_map(|e| e.state.token())
    }
}

/// What is left of a transaction cache after a power failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    /// Committed entries, oldest first: line, mask and bytes.
    pub committed: Vec<(LineAddr, u64, Line)>,
    /// Active entries.
    pub active: u64,
    /// Slots of the shadow area that hold old lines of an uncommitted transaction, each with the bytes to undo.
    pub shadows: Vec<(u64, u64)>,
}

const RECORD_BYTES: usize = 24 + 64;

impl TransactionCache {
    /// The nonvolatile contents: number of the shadows that are safe, slot and mask of each, then a record for each entry.
    pub fn save(&self, fault: Fault) -> Vec<u8> {
        let safe: Vec<&Shadow> = self.overflows.iter().flat_map(|o| &o.shadows).filter(|shadow| shadow.safe).collect();
        let mut bytes = (safe.len() as u64).to_le_bytes().to_vec();
        for shadow in safe {
            bytes.extend(shadow.slot.to_le_bytes());
            bytes.extend(shadow.mask.to_le_bytes());
        }
        for entry in &self.entries {
            if fault.is(planted::FREED_AT_ISSUE) && matches!(entry.state, State::Issued(_))
                || fault.is(planted::COPYING_ENTRIES_LOST) && entry.state.copying()
            {
                continue;
            }
            let uncommitted = self.overflows.iter().any(|o| o.tx == entry.tx)
                || matches!(entry.state, State::Active | State::Copying { .. });
            bytes.extend(entry.line.0.to_le_bytes());
            bytes.extend(entry.mask.to_le_bytes());
            bytes.extend(u64::from(!uncommitted || fault.is(planted::RECOVERY_REPLAYS_ACTIVE)).to_le_bytes());
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
        for _ in 0..count {
            saved.shadows.extend(words.next().zip(words.next()));
        }
        let records = &bytes[8 + 16 * saved.shadows.len()..];
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
        let shadow = |line, slot, safe| Shadow { line: LineAddr(line), slot, safe, mask: 0xff, closed: false };
        cache
            .overflows
            .push(Overflow { shadows: vec![shadow(1, 0, false), shadow(2, 1, true)], ..Overflow::new(TxId(2)) });
        let saved = Saved::load(&cache.save(Fault::NONE));
        assert_eq!(saved.shadows, [(1, 0xff)]);
        assert_eq!(saved.committed, [(LineAddr(1), 0xf0, [1; 64])]);
        assert_eq!(saved.active, 2);
        assert_eq!(Saved::load(&[]), Saved::default());
    }

    #[test]
    fn a_slot_of_the_shadow_area_is_used_again() {
        let mut cache = TransactionCache::default();
        assert_eq!(cache.free_slot(2), Some(0));
        let shadow = |slot| Shadow { line: LineAddr(slot), slot, safe: false, mask: 0, closed: false };
        cache.overflows.push(Overflow { shadows: vec![shadow(1)], ..Overflow::new(TxId(1)) });
        assert_eq!(cache.free_slot(2), Some(0));
        cache.overflows.push(Overflow { shadows: vec![shadow(0)], ..Overflow::new(TxId(2)) });
        assert_eq!(cache.free_slot(2), None);
        assert_eq!(cache.free_slot(3), Some(2));
        cache.overflows.remove(0);
        assert_eq!(cache.free_slot(2), Some(1));
    }

    #[test]
    fn bytes_to_undo_are_runs() {
        let runs = |mask| Shadow { line: LineAddr(0), slot: 0, safe: true, mask, closed: false }.runs();
        assert_eq!(runs(0), []);
        assert_eq!(runs(u64::MAX), [(0, 64)]);
        assert_eq!(runs(0xff00_0000_0000_00f1), [(0, 1), (4, 4), (56, 8)]);
    }
}
