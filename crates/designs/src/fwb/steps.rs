//! Steps of FWB that a planted fault can break: each is what the design does, with the faults of that step beside it.

pub(super) mod torn_bit;

use super::contents::{Contents, Words, write_home};
use super::log::Log;
use super::log_region::{ERASING, HEAD_BYTES, erase};
use super::planted;
use super::record::{Kind, NO_TX, Record, bits_of, words_of};
use super::scan::HeadUpdate;
use super::{FwbSpec, HeldStore, OpenTx, State};
use crate::undo::Undo;
use durasim_design::{
    Actions, ActiveFault, CrashImage, Gate, Geometry, Origin, RecoveryCut, Scanned, Store, Token, Wait,
};
use durasim_types::{Cause, CoreId, LineAddr, PhysAddr, TxId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Records of stores.
impl State {
    /// Whether a store makes records. One outside of transactions does where stores are redone [D:fwb-plain-stores].
    #[inline]
    pub(super) fn makes_records(&self, store: &Store<'_>) -> bool {
        store.tx.is_some() || !self.undo_only && !self.fault.is(planted::PLAIN_STORE_NOT_LOGGED)
    }

    /// The words that a store makes records of: all that it touches, however often that was.
    #[inline]
    pub(super) fn words_to_log(&self, store: &Store<'_>) -> impl Iterator<Item = (PhysAddr, u8, i32)> + use<> {
        let mut words = 2;
        if self.fault.is(planted::SECOND_WORD_FORGOTTEN) {
            words = 1;
        }
        if self.fault.is(planted::STORE_NOT_LOGGED) && self.has_stored_to(store.tx, store.line()) {
            words = 0;
        }
        words_of(store.addr, store.len).take(words)
    }

    fn has_stored_to(&self, tx: Option<TxId>, line: LineAddr) -> bool {
        let open = tx.and_then(|tx| self.protocol.open.get(&tx));
        open.is_some_and(|open| open.undo.iter().any(|undo| undo.line() == line))
    }

    /// The undo word and the redo word of a record. Where caches survive nothing is redone [D:fwb-eadr].
    #[inline]
    pub(super) fn undo_and_redo(&self, old: u64, new: u64) -> (u64, u64) {
        let undo = if self.fault.is(planted::UNDO_TAKES_NEW) { new } else { old };
        let redo = if self.fault.is(planted::REDO_TAKES_OLD) { old } else { new };
        (undo, if self.undo_only { 0 } else { redo })
    }

    /// An identifier that no other open transaction uses.
    pub(super) fn new_identifier(&mut self) -> u16 {
        let mut id = self.protocol.last_id;
        loop {
            id = if id == u16::MAX { NO_TX + 1 } else { id + 1 };
            if !self.protocol.open.values().any(|open| open.id == id) {
                break;
            }
        }
        self.protocol.last_id = id;
        if self.fault.is(planted::IDENTIFIER_SHARED) { 1 } else { id }
    }
}

/// The log.
impl State {
    /// Whether the log has room for more records. Each transaction that may still end has one set aside.
    pub(super) fn has_room(&self, more: u64) -> bool {
        let set_aside = self.protocol.open.values().filter(|open| open.commit.is_none()).count() as u64;
        self.protocol.log.used() + set_aside + more <= self.spec.capacity() || self.fault.is(planted::LOG_OVERRUN)
    }
}

impl Log {
    /// A write is accepted. It stands for its own records alone: older ones may still be in flight.
    pub fn note_accepted(&mut self, token: Token, fault: ActiveFault) {
        let Some(flight) = self.in_flight.iter_mut().find(|flight| flight.token == token) else { return };
        flight.acked = true;
        if fault.is(planted::DURABLE_OUT_OF_ORDER) {
            let end = flight.end;
            self.in_flight.iter_mut().filter(|older| older.end <= end).for_each(|older| older.acked = true);
        }
    }
}

/// What waits for records.
impl State {
    /// What a line waits for that leaves the caches: its records are durable before it [D:fwb-ordering].
    pub(super) fn hold_eviction(&mut self, line: LineAddr, out: &mut Actions) -> Option<Wait> {
        if self.fault.is(planted::EVICTION_NOT_HELD) {
            return None;
        }
        self.hold_back(line, out)
    }

    /// What a line waits for that the program cleans.
    pub(super) fn hold_clean(&mut self, line: LineAddr, out: &mut Actions) -> Option<Wait> {
        if self.fault.is(planted::CLEAN_NOT_HELD) {
            return None;
        }
        self.hold_back(line, out)
    }

    /// Whether the undo record of a store that was held is durable [D:fwb-eadr].
    pub(super) fn releases(&self, held: &HeldStore) -> bool {
        held.number < self.protocol.log.durable || self.fault.is(planted::STORE_NOT_HELD)
    }

    /// Where caches survive a store is held until its undo record is durable [D:fwb-eadr].
    pub(super) fn hold_store(&mut self, core: CoreId, held: HeldStore, out: &mut Actions) -> Gate {
        if self.fault.is(planted::STORE_NOT_HELD) {
            return Gate::Done;
        }
        self.protocol.held.insert(core, held);
        Gate::Retry(self.wait_for_records(out))
    }

    /// The first record of a transaction that needs a commit record: one that has stored.
    pub(super) fn first_to_commit(&self, open: &OpenTx) -> Option<u64> {
        open.first.filter(|_| !self.fault.is(planted::COMMIT_RECORD_FORGOTTEN))
    }

    /// Whether a commit ends: its record is durable, and with it all older ones.
    pub(super) fn commit_is_durable(&self, number: u64) -> bool {
        number < self.protocol.log.durable || self.fault.is(planted::COMMIT_NOT_AWAITED)
    }
}

/// Aborts [D:fwb-abort].
impl State {
    /// The stores of a transaction as an abort takes them back: youngest first.
    pub(super) fn undo_order(&self, open: &OpenTx) -> Vec<Undo> {
        if self.fault.is(planted::ABORT_NOT_UNDONE) {
            return Vec::new();
        }
        if self.fault.is(planted::ABORT_OLDEST_FIRST) {
            return open.undo.clone();
        }
        open.undo.iter().rev().copied().collect()
    }

    /// The abort record tells recovery that a transaction is undone, and where its records began.
    pub(super) fn log_abort(&mut self, core: CoreId, open: &OpenTx, out: &mut Actions) {
        let Some(first) = open.first.filter(|_| !self.fault.is(planted::ABORT_RECORD_FORGOTTEN)) else { return };
        let number = self.push(Record::end(Kind::Abort, open.id, core.0 as u8, first));
        self.protocol.log_space.note_abort(first, number);
        self.drain(true, out);
    }
}

/// Force write-back and the head of the log [D:fwb-scan].
impl State {
    /// Whether the scan leaves a line behind until its records are durable.
    pub(super) fn scan_waits_for(&self, line: LineAddr) -> bool {
        self.protocol.log.is_pending(line) && !self.fault.is(planted::SCAN_NOT_HELD)
    }

    /// The scan has come to a line that had its bit set before: it goes home.
    pub(super) fn force_write_back(&mut self) -> Scanned {
        if self.fault.is(planted::SCAN_WRITES_NOTHING) {
            return Scanned::Leave;
        }
        self.counters.forced_write_backs += 1;
        Scanned::Clean
    }

    /// The records whose data is home when a scan has ended: those before the tail at which the scan before it began.
    pub(super) fn home_after_scan(&self, began: u64, before_it: Option<u64>) -> Option<u64> {
        if self.fault.is(planted::HEAD_AFTER_ONE_SCAN) {
            return Some(began);
        }
        before_it
    }

    /// Where the head may go when the data of records before `home` is there. It stops at the first record of a
    /// transaction that may have to be undone, and of one whose undoing may not be home.
    pub(super) fn new_head(&self, home: u64) -> u64 {
        let safe = home.min(self.protocol.log.durable);
        let mut to = safe;
        if let Some((first, _)) = self.oldest_needed().filter(|_| !self.fault.is(planted::HEAD_PASSES_OPEN)) {
            to = to.min(first);
        }
        if !self.undo_only && !self.fault.is(planted::HEAD_PASSES_ABORTED) {
            // Without its abort record, which may still be in flight, it would be undone again, and only in part.
            let recent = self.protocol.log_space.aborted.iter().filter(|(_, record)| *record >= safe);
            to = recent.map(|(first, _)| *first).fold(to, u64::min);
        }
        to
    }

    /// The head moves in persistent memory. The room is given when that is accepted.
    pub(super) fn write_head(&mut self, out: &mut Actions) {
        let Some(HeadUpdate { to, token, .. }) = self.protocol.log_space.head_update else { return };
        out.append(Origin::Controller, self.head_register, &to.to_le_bytes(), Cause::Metadata, Some(token));
        if self.fault.is(planted::HEAD_NOT_AWAITED) {
            self.give_room(out);
        }
    }
}

// Recovery.

/// The record that recovery begins with.
pub(super) fn first_to_read(head: u64, capacity: u64, fault: ActiveFault) -> u64 {
    if fault.is(planted::RECOVERY_IGNORES_HEAD) {
        return head / capacity * capacity;
    }
    head
}

impl Contents {
    /// A word of a record goes home, those bytes that were stored.
    pub fn put(&mut self, record: &Record, value: u64) {
        let whole = self.fault.is(planted::RECOVERY_IGNORES_MASK);
        let bits = if whole { u64::MAX } else { bits_of(record.mask) };
        let (mask, word) = self.words.entry(record.addr).or_default();
        *word = *word & !bits | value & bits;
        *mask |= bits;
    }

    /// A committed transaction is redone at the place of its commit record.
    pub fn redo(&mut self, records: &[(u64, Record)]) {
        if self.undo_only || self.fault.is(planted::RECOVERY_REDOES_NOTHING) {
            return;
        }
        records.iter().for_each(|(_, record)| self.put(record, record.redo));
    }

    /// An aborted transaction is undone at the place of its abort record, if the log has all of its records. The head
    /// passes the first of them when all of its undoing is home; undoing the others alone would bring back what it had
    /// stored first.
    pub fn undo_aborted(&mut self, records: &[(u64, Record)], first: u64, head: u64) {
        let is_whole = first >= head || self.fault.is(planted::RECOVERY_UNDOES_PARTS);
        if self.undo_only || !is_whole {
            return;
        }
        records.iter().rev().for_each(|(_, record)| self.put(record, record.undo));
    }

    /// Transactions that never ended are undone, the youngest record of all first.
    pub fn undo_open(&mut self, open: BTreeMap<u16, Vec<(u64, Record)>>) {
        if self.fault.is(planted::RECOVERY_UNDOES_NOTHING) {
            return;
        }
        let mut records: Vec<(u64, Record)> = open.into_values().flatten().collect();
        records.sort_by_key(|(number, _)| Reverse(*number));
        if self.fault.is(planted::RECOVERY_UNDOES_OLDEST_FIRST) {
            records.reverse();
        }
        let redoes = self.fault.is(planted::RECOVERY_REDOES_OPEN);
        for (_, record) in &records {
            self.put(record, if redoes { record.redo } else { record.undo });
        }
    }
}

/// Brings all words home, line by line; the log stays until they are. How many lines there are.
pub(super) fn bring_home(
    words: &Words,
    spec: &FwbSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<u64, RecoveryCut> {
    let fault = geometry.planted;
    if fault.is(planted::RECOVERY_ERASES_FIRST) {
        erase(spec, geometry, image)?;
    }
    if fault.is(planted::RECOVERY_WRITES_TWICE) {
        write_home(words, image)?;
    }
    write_home(words, image)
}

/// All is home: the log is marked as being erased, if it is not already, erased, and restarts.
pub(super) fn start_empty_log(
    is_marked: bool,
    spec: &FwbSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<(), RecoveryCut> {
    let (register, fault) = (geometry.region("log_head").base, geometry.planted);
    if is_marked || !fault.is(planted::RECOVERY_KEEPS_LOG) {
        if !is_marked && !fault.is(planted::RECOVERY_FORGETS_ERASING) {
            let mut bytes = [0; HEAD_BYTES as usize];
            bytes[8..].copy_from_slice(&ERASING.to_le_bytes());
            image.write(register, &bytes)?;
        }
        erase(spec, geometry, image)?;
    }
    image.write(register, &[0; HEAD_BYTES as usize])
}
