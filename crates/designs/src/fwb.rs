//! FWB: Ogleari, Miller and Zhao, "Steal but No Force: Efficient Hardware Undo+Redo Logging for Persistent Memory
//! Systems", HPCA 2018. The paper is not available here: [D:key] marks an entry of DEVIATIONS.md.
//!
//! Each word that is stored makes a record with its old and its new value. Records pass a small volatile buffer and go,
//! in order and around the caches, to a circular log in persistent memory. Lines may leave the caches at any time once
//! their records are durable (steal), a commit waits for its records and for no data (no force). Before the log wraps
//! around to a record its data has to be at its home address: a scan of the caches sets a bit on dirty lines and writes
//! those home that have it from the scan before. A torn bit that changes with each round of the log shows recovery where
//! it ends.
//!
//! On a machine whose caches survive (the variant `fwb-eadr`) nothing is redone, so nothing is scanned; undo records are
//! durable before their stores reach a cache [D:fwb-eadr].
//!
//! This file has the hooks and the records of stores, `log.rs` the log buffer and the log, `scan.rs` force write-back and the
//! head of the log, `recovery.rs` recovery.
//!
//! FWB isolates nothing: programs keep transactions that touch the same bytes apart.

mod log;
mod log_region;
mod planted;
mod record;
mod recovery;
mod scan;
mod spec;
#[cfg(test)]
mod tests;
pub(crate) mod variant;

pub use spec::FwbSpec;

use crate::undo::Undo;
use durasim_contract::{
    AbortCause, Actions, ActiveFault, CrashImage, Ctx, Design, Durability, Evict, FlushVerdict, Gate, Geometry,
    HardwareCost, Hooks, Interleave, LevelId, LineTag, PlantedFault, RecoveryCut, RecoveryReport, RegionRequest,
    Scanned, SpecError, Stateful, Store, Token, Wait, kept,
};
use durasim_types::{CoreId, Cycle, Domain, EventKind, Line, LineAddr, PhysAddr, StallCause, Stats, TxId};
use log::{Drain, Log};
use record::{Kind, NO_TX, RECORD_BYTES, Record, word_in, words_of};
use scan::{LogSpace, SCAN, TIMER};
use serde::{Deserialize, Serialize};
use spec::Reached;
use std::collections::BTreeMap;

/// Retry interval, in cycles, of a request that needs room in the log. Requests wait in two ways, and a signal would wake
/// only one of them.
const ROOM_RETRY_CYCLES: Cycle = 100;

/// The design.
pub struct Fwb;

impl Design for Fwb {
    const NAME: &'static str = "fwb";
    const HOOKS: Hooks = Hooks::TX.with(Hooks::STORE).with(Hooks::EVICT).with(Hooks::FLUSH);
    const PLANTED: &'static [PlantedFault] = planted::ALL;
    const MARKS: &'static [&'static str] = &[
        "transaction_open",
        "record_buffered",
        "records_out_of_order",
        "log_wrapped",
        "log_full",
        "scan_in_progress",
        "head_in_flight",
        "abort_in_progress",
    ];
    const SCALED: &'static [&'static str] = &["log_bytes", "scan_period_cycles"];
    const ENGINES: &'static [&'static str] = &["scans"];
    const STRUCTURES: &'static [&'static str] = &["log", "log_buffer"];
    type Spec = FwbSpec;

    fn reserve(spec: &FwbSpec, _: &Geometry) -> Vec<RegionRequest> {
        vec![
            RegionRequest { name: "log", size_bytes: spec.capacity() * RECORD_BYTES },
            RegionRequest { name: "log_head", size_bytes: log_region::HEAD_BYTES },
        ]
    }

    fn build(spec: &FwbSpec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        State::new(spec, geometry)
    }

    fn recover(spec: &FwbSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        recovery::recover(spec, geometry, image)
    }

    fn cost(spec: &FwbSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    stores: u64,
    records: u64,
    buffer_full: u64,
    log_full: u64,
    held_write_backs: u64,
    scans: u64,
    lines_left: u64,
    forced_write_backs: u64,
    head_moves: u64,
    undone_words: u64,
}

/// The undoing of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Undoing {
    token: Token,
    /// Whether the abort has waited for the restored bytes in persistent memory.
    awaited: bool,
}

/// A transaction that has begun and is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OpenTx {
    /// Its TxID register.
    id: u16,
    /// The number of its first record.
    first: Option<u64>,
    /// Its stores. The hardware finds them in the log.
    undo: Vec<Undo>,
    /// The number of its commit record.
    commit: Option<u64>,
    /// Its stores are being undone.
    undoing: Option<Undoing>,
}

/// A store that waits for its record, where caches survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HeldStore {
    undo: Undo,
    tx: TxId,
    number: u64,
}

/// All state that changes in a run, except the counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProtocolState {
    log: Log,
    open: BTreeMap<TxId, OpenTx>,
    last_id: u16,
    log_space: LogSpace,
    /// By core, the store that its record holds back.
    held: BTreeMap<CoreId, HeldStore>,
    tokens: u64,
}

#[derive(Clone)]
struct State {
    spec: FwbSpec,
    /// Whether caches survive.
    undo_only: bool,
    interleave: Interleave,
    head_register: PhysAddr,
    fault: ActiveFault,
    protocol: ProtocolState,
    counters: Counters,
}

impl State {
    fn new(spec: &FwbSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        spec.check()?;
        let log = Log::new(geometry.region("log").base, spec.capacity());
        let protocol = ProtocolState {
            log,
            open: BTreeMap::new(),
            last_id: NO_TX,
            log_space: LogSpace::default(),
            held: BTreeMap::new(),
            tokens: 0,
        };
        Ok(State {
            spec: spec.clone(),
            undo_only: geometry.domain == Domain::Eadr,
            interleave: geometry.interleave(),
            head_register: geometry.region("log_head").base,
            fault: geometry.planted,
            protocol,
            counters: Counters::default(),
        })
    }

    /// An identifier that no other open transaction uses.
    fn new_identifier(&mut self) -> u16 {
        let mut id = self.protocol.last_id;
        loop {
            id = if id == u16::MAX { NO_TX + 1 } else { id + 1 };
            if !self.protocol.open.values().any(|open| open.id == id) {
                break;
            }
        }
        self.protocol.last_id = id;
        self.fault.swaps(planted::IDENTIFIER_SHARED, id, 1)
    }

    /// Whether the log has room for more records. Each transaction that may still end has one set aside, and the last line one
    /// that fills it up.
    fn has_room(&self, more: u64) -> bool {
        let set_aside = self.protocol.open.values().filter(|open| open.commit.is_none()).count() as u64;
        let used = self.protocol.log.used() + u64::from(self.spec.whole_lines);
        let is_free = used + self.spec.places(set_aside + more) <= self.spec.capacity();
        self.fault.assumes(planted::LOG_OVERRUN, is_free)
    }

    /// Hands records to the controller.
    fn drain(&mut self, all: bool, out: &mut Actions) {
        let ProtocolState { log, tokens, .. } = &mut self.protocol;
        if self.spec.whole_lines && all {
            log.fill_up();
        }
        let combine = self.spec.whole_lines || self.spec.write_combining && !self.undo_only;
        let how = Drain { combine, all, to_medium: self.spec.follows_to_medium() };
        log.drain(how, tokens, self.fault, out);
    }

    /// Hands all records to the controller; what to wait for until the oldest is durable.
    fn wait_for_records(&mut self, out: &mut Actions) -> Wait {
        self.wait_for(Reached::Domain, out)
    }

    /// Hands all records to the controller; what to wait for until the oldest has come so far.
    fn wait_for(&mut self, what: Reached, out: &mut Actions) -> Wait {
        self.drain(true, out);
        Wait::Acked(self.protocol.log.oldest_write(what).expect("a record that has not come so far is in flight"))
    }

    /// The number of the oldest record of a transaction that may have to be undone, with the transaction.
    fn oldest_needed(&self) -> Option<(u64, TxId)> {
        let durable = self.protocol.log.durable;
        let needed = self.protocol.open.iter().filter(|(_, open)| open.commit.is_none_or(|commit| commit >= durable));
        needed.filter_map(|(tx, open)| open.first.map(|first| (first, *tx))).min()
    }

    /// The log is full: what the request does instead [D:fwb-full-log].
    fn full(&mut self, out: &mut Actions) -> Gate {
        self.counters.log_full += 1;
        out.stalls_for(StallCause::Structure(0));
        if let Some((first, tx)) = self.oldest_needed()
            && first <= self.protocol.log.head
        {
            return match self.protocol.open[&tx].commit {
                Some(_) => Gate::Retry(self.wait_for_records(out)),
                // Nothing after its records can be given up before it ends, and it may wait for the requester here. If others
                // have filled the log it is tried again.
                None => {
                    let records = self.protocol.open[&tx].undo.len() as u64;
                    let is_large = 2 * self.spec.places(records) >= self.spec.capacity();
                    Gate::Abort(tx, if is_large { AbortCause::Capacity } else { AbortCause::Conflict })
                }
            };
        }
        self.make_room(out);
        Gate::Retry(Wait::Cycles(ROOM_RETRY_CYCLES))
    }

    /// A place in the buffer for this many records, or what to wait for.
    fn place(&mut self, records: u64, out: &mut Actions) -> Option<Gate> {
        let free_at = self.spec.free_at;
        if self.protocol.log.buffered(free_at) + records <= self.spec.log_buffer_entries.into() {
            return None;
        }
        self.counters.buffer_full += 1;
        out.stalls_for(StallCause::Structure(1));
        Some(Gate::Retry(self.wait_for(free_at, out)))
    }

    fn push(&mut self, record: Record) -> u64 {
        self.counters.records += 1;
        let number = self.protocol.log.push(record);
        if self.spec.whole_lines && !self.spec.write_combining {
            self.protocol.log.fill_up();
        }
        number
    }

    /// Records of a store with the old and the new value of each word; the number of the last.
    fn log_store(&mut self, core: CoreId, store: &Store<'_>) -> Option<u64> {
        let open = store.tx.and_then(|tx| self.protocol.open.get(&tx));
        let id = open.map_or(NO_TX, |open| open.id);
        let mut last = None;
        // All words that the store touches, however often that was.
        let words = self.fault.swaps(planted::SECOND_WORD_FORGOTTEN, 2, 1);
        let is_second = |open: &OpenTx| open.undo.iter().any(|undo| undo.line() == store.line());
        let words = match self.fault.skips(planted::STORE_NOT_LOGGED) && open.is_some_and(is_second) {
            true => 0,
            false => words,
        };
        for (addr, mask, shift) in words_of(store.addr, store.len).take(words) {
            let old = word_in(store.before, addr);
            let new = if shift >= 0 { store.data << shift } else { store.data >> -shift };
            // If caches survive, nothing is redone [D:fwb-eadr].
            let undo = self.fault.swaps(planted::UNDO_TAKES_NEW, old, new);
            let redo = if self.undo_only { 0 } else { self.fault.swaps(planted::REDO_TAKES_OLD, new, old) };
            let record = Record { kind: Kind::Update, mask, id, thread: core.0 as u8, addr, undo, redo };
            last = Some(self.push(record));
        }
        last
    }

    /// Notes what a store of a transaction overwrites.
    fn note_undo(&mut self, store: &Store<'_>, records_from: u64) {
        let undo = Undo::of(store);
        if let Some(open) = store.tx.and_then(|tx| self.protocol.open.get_mut(&tx)) {
            open.first.get_or_insert(records_from);
            open.undo.push(undo);
        }
    }

    /// On machines with durable caches a store waits until its undo record is durable [D:fwb-eadr].
    fn store_after_record(&mut self, cx: &Ctx, store: &Store<'_>, out: &mut Actions) -> Gate {
        let Some(tx) = store.tx else { return Gate::Done };
        let undo = Undo::of(store);
        let held = self.protocol.held.get(&cx.core).copied().filter(|held| held.tx == tx && held.undo == undo);
        if let Some(held) = held {
            if held.number >= self.protocol.log.durable {
                return Gate::Retry(self.wait_for_records(out));
            }
            self.protocol.held.remove(&cx.core);
            return Gate::Done;
        }
        let records = words_of(store.addr, store.len).count() as u64;
        if !self.has_room(records) {
            return self.full(out);
        }
        if let Some(gate) = self.place(records, out) {
            return gate;
        }
        self.counters.stores += 1;
        let first = self.protocol.log.tail;
        let Some(number) = self.log_store(cx.core, store) else { return Gate::Done };
        self.note_undo(store, first);
        self.drain(true, out);
        if self.fault.skips(planted::STORE_NOT_HELD) {
            return Gate::Done;
        }
        self.protocol.held.insert(cx.core, HeldStore { undo, tx, number });
        Gate::Retry(self.wait_for_records(out))
    }

    /// Undoes the stores of a transaction, youngest first [D:fwb-abort].
    fn undo(&mut self, tx: TxId, out: &mut Actions) -> Gate {
        let stores = self.protocol.open[&tx].undo.iter().copied();
        let mut undo: Vec<Undo> = stores.filter(|_| !self.fault.skips(planted::ABORT_NOT_UNDONE)).collect();
        if !self.fault.skips(planted::ABORT_OLDEST_FIRST) {
            undo.reverse();
        }
        self.protocol.tokens += 1;
        let token = Token(self.protocol.tokens);
        self.protocol.open.get_mut(&tx).expect("it was just found").undoing = Some(Undoing { token, awaited: false });
        self.counters.undone_words += undo.len() as u64;
        let cycles = self.spec.undo_cycles_per_record * undo.len() as u64;
        undo.into_iter().for_each(|undo| undo.restore(token, out));
        Gate::Retry(Wait::Cycles(cycles))
    }

    /// Whether a line has to stay because a record of it is not durable; what to wait for.
    fn hold_back(&mut self, line: LineAddr, out: &mut Actions) -> Option<Wait> {
        if !self.protocol.log.is_pending(line) {
            return None;
        }
        self.counters.held_write_backs += 1;
        Some(self.wait_for_records(out))
    }
}

impl Stateful for State {
    kept!(protocol: ProtocolState, counters: Counters);

    fn fits(&self, protocol: &ProtocolState) -> Result<(), &'static str> {
        if !protocol.log.is_state_of(&self.protocol.log) {
            return Err("a log of another size or place");
        }
        Ok(())
    }
}

impl Durability for State {
    /// A transaction gets an identifier that no other open one uses.
    fn tx_begin(&mut self, _: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        if self.protocol.open.contains_key(&tx) {
            return Gate::Done;
        }
        let open = self.protocol.open.len() as u64;
        if self.spec.places(open + 4) > self.spec.capacity() || open + 1 >= u64::from(u16::MAX) {
            return Gate::Abort(tx, AbortCause::Capacity);
        }
        if !self.has_room(1) {
            return self.full(out);
        }
        let id = self.new_identifier();
        let open = OpenTx { id, first: None, undo: Vec::new(), commit: None, undoing: None };
        self.protocol.open.insert(tx, open);
        Gate::Done
    }

    /// Each word that is stored to makes a record: its old value from the line, its new one from the store. Stores outside of
    /// transactions are redone like others [D:fwb-plain-stores].
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, _: &mut LineTag, out: &mut Actions) -> Gate {
        if store.tx.is_none() && !self.fault.ignores(planted::PLAIN_STORE_NOT_LOGGED, !self.undo_only) {
            return Gate::Done;
        }
        if self.undo_only {
            return self.store_after_record(cx, store, out);
        }
        if self.protocol.log_space.waits_for(store.line()) {
            return Gate::Retry(self.wait_for_records(out));
        }
        let records = words_of(store.addr, store.len).count() as u64;
        if !self.has_room(records) {
            return self.full(out);
        }
        if let Some(gate) = self.place(records, out) {
            return gate;
        }
        self.counters.stores += 1;
        let first = self.protocol.log.tail;
        self.log_store(cx.core, store);
        self.note_undo(store, first);
        // No one else would hand over the last record of a store outside of transactions.
        self.drain(store.tx.is_none(), out);
        self.keep_room(out);
        Gate::Done
    }

    /// The commit record goes after all others; the commit waits until it is durable, and for no data.
    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let Some(open) = self.protocol.open.get(&tx) else { return Gate::Done };
        let (id, commit) = (open.id, open.commit);
        // One that has stored nothing needs no commit record.
        let Some(first) = open.first.filter(|_| !self.fault.skips(planted::COMMIT_RECORD_FORGOTTEN)) else {
            self.protocol.open.remove(&tx);
            return Gate::Done;
        };
        let number = match commit {
            Some(number) => number,
            None => {
                if let Some(gate) = self.place(1, out) {
                    return gate;
                }
                let number = self.push(Record::end(Kind::Commit, id, cx.core.0 as u8, first));
                self.protocol.open.get_mut(&tx).expect("it was just found").commit = Some(number);
                number
            }
        };
        // With its record all older ones have come so far.
        let awaited = self.spec.acknowledged_by;
        if self.fault.ignores(planted::COMMIT_NOT_AWAITED, number >= self.protocol.log.reached(awaited)) {
            return Gate::Retry(self.wait_for(awaited, out));
        }
        self.protocol.open.remove(&tx);
        out.event(EventKind::Commit, self.head_register);
        Gate::Done
    }

    /// The undo words go back to where the newest data is, youngest first; then an abort record follows [D:fwb-abort].
    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        let Some(open) = self.protocol.open.get_mut(&tx) else { return Gate::Done };
        let Some(undoing) = open.undoing.as_mut() else { return self.undo(tx, out) };
        if !undoing.awaited {
            // The undone words are in persistent memory before the log says that all is undone.
            undoing.awaited = true;
            return Gate::Retry(Wait::Acked(undoing.token));
        }
        self.protocol.held.retain(|_, held| held.tx != tx);
        if let Some(gate) = self.place(1, out) {
            return gate;
        }
        let open = self.protocol.open.remove(&tx).expect("it was just found");
        // The abort record names the transaction that is undone, and where its records began.
        if let Some(first) = open.first.filter(|_| !self.fault.skips(planted::ABORT_RECORD_FORGOTTEN)) {
            let number = self.push(Record::end(Kind::Abort, open.id, cx.core.0 as u8, first));
            self.protocol.log_space.note_abort(first, number);
            self.drain(true, out);
        }
        Gate::Done
    }

    /// Steal: a line may leave at any time, once its records are durable.
    fn evict(&mut self, _: &Ctx, _: LevelId, line: LineAddr, _: LineTag, _: &Line, out: &mut Actions) -> Evict {
        if self.fault.skips(planted::EVICTION_NOT_HELD) {
            return Evict::Proceed;
        }
        self.hold_back(line, out).map_or(Evict::Proceed, Evict::After)
    }

    fn flush(&mut self, _: &Ctx, line: LineAddr, _: LineTag, out: &mut Actions) -> FlushVerdict {
        if self.fault.skips(planted::CLEAN_NOT_HELD) {
            return FlushVerdict::Proceed;
        }
        self.hold_back(line, out).map_or(FlushVerdict::Proceed, FlushVerdict::After)
    }

    fn scanned(&mut self, _: &Ctx, _: u64, line: LineAddr, dirty: bool, tag: &mut LineTag) -> Scanned {
        self.visit(line, dirty, tag)
    }

    fn woken(&mut self, _: &Ctx, id: u64, out: &mut Actions) {
        match id {
            TIMER => self.timer_is_due(out),
            SCAN => self.scan_is_over(out),
            _ => {}
        }
    }

    fn acked(&mut self, _: &Ctx, token: Token, _: PhysAddr, out: &mut Actions) {
        if token.is_when_written() {
            return self.protocol.log.is_written(token);
        }
        self.protocol.log.acked(token, self.fault);
        self.write_left_lines(out);
        self.head_acked(token, out);
    }

    fn tags_follow_newest_data(&self) -> bool {
        true
    }

    /// Records that wait in the buffer reach the log.
    fn shut_down(&self, image: &mut CrashImage) {
        for (at, bytes) in self.protocol.log.waiting(self.fault) {
            image.pmem.write(at, &bytes);
        }
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        let ProtocolState { log, open, log_space, .. } = &self.protocol;
        let marks = [
            ("transaction_open", !open.is_empty()),
            ("record_buffered", log.buffered(self.spec.free_at) > 0),
            ("records_out_of_order", log.is_out_of_order()),
            ("log_wrapped", log.has_wrapped()),
            ("log_full", log_space.is_room_wanted()),
            ("scan_in_progress", log_space.is_scanning()),
            ("head_in_flight", log_space.is_moving_head()),
            ("abort_in_progress", open.values().any(|open| open.undoing.is_some())),
        ];
        marks.into_iter().filter(|(_, there)| *there).for_each(|(name, _)| mark(name));
    }

    fn occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("log_buffer", self.protocol.log.buffered(self.spec.free_at));
        report("log", self.protocol.log.used());
    }

    fn stats(&self, stats: &mut Stats) {
        let c = &self.counters;
        let mut count = |name: &str, value, text| stats.count(format!("fwb.{name}"), value, text);
        count("stores", c.stores, "Stores that were logged");
        count("records", c.records, "Records that entered the log buffer, of 32 bytes each");
        count("buffer_full", c.buffer_full, "Requests that found no place in the log buffer");
        count("log_full", c.log_full, "Requests that found the log full");
        count("held_write_backs", c.held_write_backs, "Write-backs that waited for a record of their line");
        count("scans", c.scans, "Scans of the caches that have ended");
        count("lines_left", c.lines_left, "Lines that a scan came to before their records were durable");
        count("forced_write_backs", c.forced_write_backs, "Lines that a scan wrote home");
        count("head_moves", c.head_moves, "Times at which the head of the log moved");
        count("undone_words", c.undone_words, "Stores that aborts undid");
    }
}
