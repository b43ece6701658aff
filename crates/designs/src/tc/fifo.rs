//! The transaction cache itself: a FIFO of entries, its overflow register, and their nonvolatile form.

use super::planted;
use super::shadow::{Overflow, Shadow, ShadowSlots};
use super::spec::TcSpec;
use crate::ports::Ports;
use durasim_contract::{ActiveFault, Store, Token, Wait};
use durasim_types::{CoreId, Cycle, Line, LineAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The state of an entry (section 4.1): available, active or committed. What is in progress with an active or committed
/// one is known to the controller of the transaction cache, and kept here too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EntryState {
    /// Free, but still between tail and head: the tail has not reached it.
    Available,
    /// Of an open transaction.
    Active,
    /// Of an open transaction, its old line in flight to the shadow area; this many acknowledgements are missing.
    Copying { token: Token, left: u8 },
    /// To be issued to the NVRAM, when the array has been written and read.
    Committed { issued_at: Cycle },
    /// Issued; the acknowledgement frees it. Of an open transaction only after a safe shadow copy.
    Issued(Token),
}

impl EntryState {
    /// Whether the entry leaves by itself.
    pub fn drains(self) -> bool {
        matches!(self, EntryState::Committed { .. } | EntryState::Issued(_))
    }

    pub fn copying(self) -> bool {
        matches!(self, EntryState::Copying { .. })
    }

    pub fn in_flight(self) -> bool {
        matches!(self, EntryState::Copying { .. } | EntryState::Issued(_))
    }

    /// The acknowledgement the entry waits for.
    pub fn token(self) -> Option<Token> {
        match self {
            EntryState::Copying { token, .. } | EntryState::Issued(token) => Some(token),
            EntryState::Available | EntryState::Active | EntryState::Committed { .. } => None,
        }
    }

    /// The event after which the entry has made its next step, if it makes one by itself.
    pub fn wait(self, now: Cycle) -> Option<Wait> {
        match self {
            EntryState::Committed { issued_at } => Some(Wait::Cycles(issued_at.saturating_sub(now).max(1))),
            _ => self.token().map(Wait::Acked),
        }
    }
}

/// An entry: a store, or the stores of one transaction to one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its transaction, 0 if it has none.
    pub tx: TxId,
    /// The hardware's name for that: the TxID of the entry, with which commits and aborts are compared.
    pub id: u16,
    pub line: LineAddr,
    /// The bytes of the line that it holds: bit `i` stands for byte `i`.
    pub mask: u64,
    #[serde(with = "serde_bytes")]
    pub data: Line,
    pub state: EntryState,
    /// When the array begins to write it, with all that has joined it until then.
    pub write_begins: Cycle,
}

impl Entry {
    pub fn new(tx: TxId, id: u16, store: &Store<'_>, state: EntryState) -> Self {
        let mut entry = Entry { tx, id, line: store.line(), mask: 0, data: [0; 64], state, write_begins: 0 };
        entry.merge(store);
        entry
    }

    /// Whether the entry still counts: the acknowledgement of the NVRAM frees it (section 4.1).
    #[inline]
    pub fn is_held(&self, fault: ActiveFault) -> bool {
        !(fault.skips(planted::FREED_AT_ISSUE) && matches!(self.state, EntryState::Issued(_)))
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

/// The transaction cache of one core. The front of the queue is the entry that the tail points to, its end the one before
/// the head; entries between them that are available again take room until the tail has passed them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TransactionCache {
    pub entries: VecDeque<Entry>,
    /// The core's next transaction register (section 4.2).
    pub next_id: u16,
    /// Whether that has been at its end.
    pub has_wrapped: bool,
    /// One register for each transaction that overflowed; threads that take turns on a core may have several.
    pub overflows: Vec<Overflow>,
    /// Shadow copies that were in flight when their transaction committed, each with the acknowledgements that are
    /// missing: no other transaction may use the shadow area before them.
    pub late_copies: Vec<(Token, u8)>,
    /// Commits that wait until their entries are home (`commit = "acknowledged"`), each with its TxID.
    pub committing: Vec<(TxId, u16)>,
    slots: ShadowSlots,
    pub write_ports: Ports,
    pub read_ports: Ports,
}

impl TransactionCache {
    /// An empty one.
    pub fn new(spec: &TcSpec) -> Self {
        TransactionCache {
            entries: VecDeque::new(),
            next_id: 1,
            has_wrapped: false,
            overflows: Vec::new(),
            late_copies: Vec::new(),
            committing: Vec::new(),
            slots: ShadowSlots::default(),
            write_ports: Ports::new(spec.write_ports, spec.latency_write_cycles, spec.pipelined),
            read_ports: Ports::new(spec.read_ports, spec.latency_read_cycles, spec.pipelined),
        }
    }
}

impl TransactionCache {
    /// Entries that are not available, oldest first.
    pub fn occupied(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter().filter(|e| e.state != EntryState::Available)
    }

    /// An entry becomes available; the tail continues to the first one that is not.
    pub fn free(&mut self, index: usize) {
        self.entries[index].state = EntryState::Available;
        while self.entries.front().is_some_and(|e| e.state == EntryState::Available) {
            self.entries.pop_front();
        }
    }

    /// Active entries with a TxID become available.
    pub fn free_active(&mut self, id: u16) {
        for index in (0..self.entries.len()).rev() {
            if self.entries[index].id == id && self.entries[index].state == EntryState::Active {
                self.free(index);
            }
        }
    }

    /// The entries of a line that have been issued, from the tail on: the order of issue and place of each.
    pub fn in_flight(&self, line: LineAddr) -> impl Iterator<Item = (Token, usize)> {
        let of_line = (0..).zip(&self.entries).filter(move |(_, e)| e.line == line);
        of_line
            .filter_map(|(index, e)| if let EntryState::Issued(token) = e.state { Some((token, index)) } else { None })
    }

    /// The entry that an acknowledgement with this address is for. The controller handles writes to one line in the order in
    /// which they were issued, so it is the one in flight that was issued first: nearest the tail, as section 4.1 has
    /// it, unless threads that take turns have committed in another order than they have stored [D:tc-acknowledgement].
    pub fn acknowledged(&self, line: LineAddr, fault: ActiveFault) -> Option<usize> {
        let order = |(token, index): &(Token, usize)| {
            let issued = fault.swaps(planted::ACK_FREES_NEAREST_TAIL, token.0, *index as u64);
            fault.swaps(planted::ACK_FREES_YOUNGEST, issued, u64::MAX - *index as u64)
        };
        self.in_flight(line).min_by_key(order).map(|(_, index)| index)
    }

    /// An acknowledgement that the machine names by the token of the entry at `arrived` frees the one at `freed`. The other
    /// entries of the line that are in flight wait for the tokens that are left, and keep their order: messages to the core
    /// may overtake each other, so that of the third write can come before that of the second.
    pub fn keep_order_of_issue(&mut self, arrived: usize, freed: usize, fault: ActiveFault) {
        if fault.skips(planted::ACK_SWAPS_ENTRIES) {
            self.entries[arrived].state = self.entries[freed].state;
            return;
        }
        let mut in_flight: Vec<(Token, usize)> = self.in_flight(self.entries[arrived].line).collect();
        in_flight.sort_unstable();
        let tokens = in_flight.iter().filter(|(_, index)| *index != arrived).map(|(token, _)| *token);
        let places = in_flight.iter().filter(|(_, index)| *index != freed).map(|(_, index)| *index);
        for (token, place) in tokens.zip(places) {
            self.entries[place].state = EntryState::Issued(token);
        }
    }

    /// An entry with what younger active entries of its line and transaction hold, as far as no other entry of the line lies
    /// between them, and the places of these.
    pub fn gathered(&self, index: usize) -> (Entry, Vec<usize>) {
        let mut whole = self.entries[index];
        let mut joining = Vec::new();
        for (younger, entry) in self.entries.iter().enumerate().skip(index + 1).filter(|(_, e)| e.line == whole.line) {
            match entry.state {
                EntryState::Available => {}
                EntryState::Active if entry.tx == whole.tx => {
                    entry.overlay(&mut whole.data);
                    whole.mask |= entry.mask;
                    joining.push(younger);
                }
                _ => break,
            }
        }
        (whole, joining)
    }

    /// The younger entries join the one at `index`.
    pub fn gather(&mut self, index: usize, whole: Entry, joining: &[usize]) {
        self.entries[index] = whole;
        joining.iter().for_each(|&younger| self.free(younger));
    }

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

    /// The overflow register of a transaction is cleared; its part of the shadow area is free.
    pub fn clear_overflow(&mut self, tx: TxId) {
        let Some(index) = self.overflows.iter().position(|overflow| overflow.tx == tx) else { return };
        let cleared = self.overflows.remove(index);
        self.slots.give_back(cleared.shadows().map(|shadow| shadow.slot), self.overflows.is_empty());
    }

    /// Bytes of an entry that are in no shadow of its transaction yet. A shadow that is not closed takes them in.
    pub fn not_shadowed(&mut self, entry: &Entry) -> u64 {
        match self.overflow_of(entry.tx) {
            Some(overflow) => overflow.take_in(entry.line, entry.mask),
            None => entry.mask,
        }
    }

    /// A line is written home: shadows of other transactions take in no more of it.
    pub fn close_shadows(&mut self, line: LineAddr, writer: TxId) {
        self.overflows.iter_mut().filter(|overflow| overflow.tx != writer).for_each(|overflow| overflow.close(line));
    }

    /// Takes the first free one of this many slots of the shadow area.
    pub fn take_slot(&mut self, slots: u64) -> Option<u64> {
        self.slots.take(slots)
    }

    /// The event after which the youngest committed entry with some of these bytes of the line has made its next step.
    pub fn draining(&self, line: LineAddr, mask: u64, now: Cycle) -> Option<Wait> {
        let draining = self.occupied().rev().filter(|e| e.line == line && e.mask & mask != 0 && e.state.drains());
        draining.into_iter().find_map(|e| e.state.wait(now))
    }
}

/// The name of a core's transaction cache in a crash image.
pub(super) fn structure_name(core: CoreId) -> String {
    format!("tc.core{}", core.0)
}

/// The contents of a transaction cache after a power failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    /// Committed entries, oldest first: line, mask and bytes.
    pub committed: Vec<(LineAddr, u64, Line)>,
    /// Active entries.
    pub active: u64,
    /// Slots of the shadow area that hold old lines of an uncommitted transaction, each with the bytes to undo.
    pub shadows: Vec<(u64, u64)>,
}

const SHADOW_BYTES: usize = 16;
const RECORD_BYTES: usize = 24 + 64;

impl TransactionCache {
    /// The nonvolatile contents: number of the shadows that are safe, slot and mask of each, then a record for each entry.
    pub fn save(&self, fault: ActiveFault) -> Vec<u8> {
        let safe: Vec<&Shadow> =
            self.overflows.iter().flat_map(Overflow::shadows).filter(|shadow| shadow.safe).collect();
        let mut bytes = (safe.len() as u64).to_le_bytes().to_vec();
        for shadow in safe {
            bytes.extend(shadow.slot.to_le_bytes());
            bytes.extend(shadow.mask.to_le_bytes());
        }
        let is_lost = |e: &Entry| e.state.copying() && fault.skips(planted::COPYING_ENTRIES_LOST);
        for entry in self.occupied().filter(|e| e.is_held(fault) && !is_lost(e)) {
            bytes.extend(entry.line.0.to_le_bytes());
            bytes.extend(entry.mask.to_le_bytes());
            // Recovery writes it home unless it is active, or in flight by the fall-back path.
            let drains = entry.state.drains() && self.overflows.iter().all(|overflow| overflow.tx != entry.tx);
            bytes.extend(u64::from(fault.assumes(planted::RECOVERY_REPLAYS_ACTIVE, drains)).to_le_bytes());
            bytes.extend(entry.data);
        }
        bytes
    }
}

impl Saved {
    /// Reads what [`TransactionCache::save`] wrote; nothing of a cache is kept as no bytes. `None`: the bytes are damaged.
    pub fn load(bytes: &[u8]) -> Option<Self> {
        let mut saved = Saved::default();
        let Some((count, rest)) = bytes.split_first_chunk() else {
            return bytes.is_empty().then_some(saved);
        };
        let shadow_bytes = usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(SHADOW_BYTES)?;
        let (shadows, records) = rest.split_at_checked(shadow_bytes)?;
        let word =
            |record: &[u8], i: usize| u64::from_le_bytes(record[8 * i..8 * i + 8].try_into().expect("eight bytes"));
        for shadow in shadows.chunks_exact(SHADOW_BYTES) {
            saved.shadows.push((word(shadow, 0), word(shadow, 1)));
        }
        if !records.len().is_multiple_of(RECORD_BYTES) {
            return None;
        }
        for record in records.chunks_exact(RECORD_BYTES) {
            let data = record[24..].try_into().expect("a line");
            match word(record, 2) {
                0 => saved.active += 1,
                1 => saved.committed.push((LineAddr(word(record, 0)), word(record, 1), data)),
                _ => return None,
            }
        }
        Some(saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_what_is_loaded() {
        let entry = |tx, line, state| Entry {
            tx: TxId(tx),
            id: 1,
            line: LineAddr(line),
            mask: 0xf0,
            data: [line as u8; 64],
            state,
            write_begins: 0,
        };
        let mut cache = TransactionCache::new(&TcSpec::default());
        cache.entries.push_back(entry(1, 1, EntryState::Issued(Token(1))));
        cache.entries.push_back(entry(2, 2, EntryState::Issued(Token(2))));
        cache.entries.push_back(entry(2, 3, EntryState::Active));
        let mut overflow = Overflow::new(TxId(2));
        overflow.add(LineAddr(1), 0, 0xff);
        overflow.add(LineAddr(2), 1, 0xff);
        overflow.copied(LineAddr(2));
        cache.overflows.push(overflow);
        let saved = Saved::load(&cache.save(ActiveFault::NONE)).unwrap();
        assert_eq!(saved.shadows, [(1, 0xff)]);
        assert_eq!(saved.committed, [(LineAddr(1), 0xf0, [1; 64])]);
        assert_eq!(saved.active, 2);
        assert_eq!(Saved::load(&[]), Some(Saved::default()));
    }

    #[test]
    fn damaged_contents_are_noticed() {
        let mut cache = TransactionCache::new(&TcSpec::default());
        let entry = Entry {
            tx: TxId(1),
            id: 1,
            line: LineAddr(1),
            mask: 1,
            data: [1; 64],
            state: EntryState::Issued(Token(1)),
            write_begins: 0,
        };
        cache.entries.push_back(entry);
        let bytes = cache.save(ActiveFault::NONE);
        assert!(Saved::load(&bytes).is_some());
        assert_eq!(Saved::load(&bytes[..bytes.len() - 1]), None, "cut short");
        assert_eq!(Saved::load(&bytes[..7]), None, "cut shorter");
        for count in [1, 7, u64::MAX / 16 + 2, u64::MAX] {
            let more_shadows = [&count.to_le_bytes(), &bytes[8..]].concat();
            assert_eq!(Saved::load(&more_shadows), None, "{count} shadows");
        }
        let mut state = bytes;
        state[8 + 16] = 2;
        assert_eq!(Saved::load(&state), None, "neither active nor committed");
    }

    /// Acknowledgements come in any order of lines; the tail waits for the oldest.
    #[test]
    fn the_tail_passes_available_entries() {
        let mut cache = TransactionCache::new(&TcSpec::default());
        for (line, token) in [(1, 1), (2, 2), (1, 3), (3, 4)] {
            let state = EntryState::Issued(Token(token));
            cache.entries.push_back(Entry {
                tx: TxId(1),
                id: 1,
                line: LineAddr(line),
                mask: 1,
                data: [0; 64],
                state,
                write_begins: 0,
            });
        }
        assert_eq!(cache.acknowledged(LineAddr(2), ActiveFault::NONE), Some(1));
        cache.free(1);
        assert_eq!((cache.entries.len(), cache.occupied().count()), (4, 3), "the tail has not moved");
        assert_eq!(cache.acknowledged(LineAddr(1), ActiveFault::NONE), Some(0), "nearest the tail");
        cache.free(0);
        assert_eq!((cache.entries.len(), cache.occupied().count()), (2, 2), "it has passed two");
        assert_eq!(cache.acknowledged(LineAddr(2), ActiveFault::NONE), None);
    }

    #[test]
    fn the_entry_issued_first_is_acknowledged_first() {
        let mut cache = TransactionCache::new(&TcSpec::default());
        for token in [2, 1] {
            let state = EntryState::Issued(Token(token));
            cache.entries.push_back(Entry {
                tx: TxId(1),
                id: 1,
                line: LineAddr(1),
                mask: 1,
                data: [0; 64],
                state,
                write_begins: 0,
            });
        }
        assert_eq!(cache.acknowledged(LineAddr(1), ActiveFault::NONE), Some(1));
        assert_eq!(cache.acknowledged(LineAddr(1), planted::ACK_FREES_NEAREST_TAIL.fault()), Some(0));
    }
}
