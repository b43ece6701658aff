//! PiCL: Nguyen and Wentzlaff, "PiCL: A Software-Transparent, Persistent Cache Log for Nonvolatile Main Memory",
//! MICRO 2018. The paper is not available here: [D:key] marks an entry of DEVIATIONS.md.
//!
//! The machine checkpoints itself in epochs, and recovers to the end of an earlier one; it knows no transactions. The
//! first store of an epoch to a line sends the line as it was to an undo buffer on the chip, which goes to an undo log in
//! persistent memory in bursts. A line may leave the caches once its pre-image is in the log: a Bloom filter over the
//! buffer answers whether it may not be. An asynchronous scan writes the lines of an epoch home some epochs later, and
//! then the epoch is persisted.
//!
//! The real system resumes the program in the middle of whatever it did, with its registers, which are not modelled here:
//! only memory is recovered. So an epoch ends where no transaction is open [D:picl-epoch-boundary].
//!
//! This file has the hooks and pre-images, `undo_log.rs` undo buffer and log, `epochs.rs` epochs and the scan, `recovery.rs`
//! recovery.

mod bloom;
mod epochs;
mod log_region;
mod planted;
mod recovery;
mod spec;
#[cfg(test)]
mod tests;
mod undo_log;
pub(crate) mod variant;

pub(crate) use spec::PROMISED_EPOCHS;
pub use spec::PiclSpec;

use crate::undo::Undo;
use durasim_contract::{
    AbortCause, Actions, ActiveFault, CrashImage, Ctx, Design, Durability, Evict, FlushVerdict, Gate, Geometry,
    HardwareCost, Hooks, Interleave, LevelId, LineTag, PlantedFault, RecoveryCut, RecoveryReport, RegionRequest,
    Scanned, Signal, SpecError, Stateful, Store, Token, Wait, kept,
};
use durasim_types::{Cycle, Line, LineAddr, PhysAddr, StallCause, Stats, TxId};
use epochs::{Epochs, Phase};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use undo_log::{PreImage, UndoLog};

/// Raised when an epoch has ended.
const EPOCH_ENDS: Signal = Signal(1);
/// Retry interval, in cycles, of a request that needs room in the log. Requests wait in two ways, and a signal would wake
/// only one of them.
const ROOM_RETRY_CYCLES: Cycle = 100;
/// The epoch is as long as it should be.
const ARMED: u64 = 0;
/// The end of an epoch.
const END: u64 = 1;
/// The asynchronous cache scan.
const SCAN: u64 = 2;
/// Begins have been delayed for long enough.
const HOLD: u64 = 3;

/// The design.
pub struct Picl;

impl Design for Picl {
    const NAME: &'static str = "picl";
    const HOOKS: Hooks = Hooks::TX.with(Hooks::STORE).with(Hooks::EVICT).with(Hooks::FLUSH);
    const PLANTED: &'static [PlantedFault] = planted::ALL;
    const MARKS: &'static [&'static str] = &[
        "pre_image_buffered",
        "burst_in_flight",
        "scan_in_progress",
        "two_epochs_persisted",
        "eid_wrapped",
        "begin_held_back",
        "undo_log_wrapped",
    ];
    const SCALED: &'static [&'static str] = &["epoch_instructions", "log_bytes"];
    const ENGINES: &'static [&'static str] = &["epochs", "scans"];
    const STRUCTURES: &'static [&'static str] = &["undo_buffer", "undo_log"];
    type Spec = PiclSpec;

    fn reserve(spec: &PiclSpec, _: &Geometry) -> Vec<RegionRequest> {
        vec![
            RegionRequest { name: "log", size_bytes: spec.superblocks() * spec.superblock_bytes() },
            RegionRequest { name: "registers", size_bytes: log_region::REGISTER_BYTES },
        ]
    }

    fn build(spec: &PiclSpec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        State::new(spec, geometry)
    }

    fn recover(spec: &PiclSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        recovery::recover(spec, geometry, image)
    }

    fn cost(spec: &PiclSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    pre_images: u64,
    bursts: u64,
    filter_hits: u64,
    false_positives: u64,
    buffer_full: u64,
    log_full: u64,
    epochs: u64,
    scans: u64,
    scanned_lines: u64,
    held_begins: u64,
    undone_stores: u64,
}

/// An open transaction. The hardware knows nothing of it: it keeps epochs from ending, and what it overwrote is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OpenTx {
    /// The superblock that the log would have written next when it began.
    began_at: u64,
    undo: Vec<Undo>,
    /// Its stores are being undone.
    undoing: Option<Token>,
    awaited: bool,
}

/// All state that changes in a run, except the counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProtocolState {
    epochs: Epochs,
    log: UndoLog,
    open: BTreeMap<TxId, OpenTx>,
    begin_held: bool,
    tokens: u64,
}

#[derive(Clone)]
struct State {
    spec: PiclSpec,
    interleave: Interleave,
    log: PhysAddr,
    registers: PhysAddr,
    fault: ActiveFault,
    protocol: ProtocolState,
    counters: Counters,
}

impl State {
    fn new(spec: &PiclSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        spec.check()?;
        let protocol = ProtocolState {
            epochs: Epochs::default(),
            log: UndoLog::new(spec),
            open: BTreeMap::new(),
            begin_held: false,
            tokens: 0,
        };
        Ok(State {
            spec: spec.clone(),
            interleave: geometry.interleave(),
            log: geometry.region("log").base,
            registers: geometry.region("registers").base,
            fault: geometry.planted,
            protocol,
            counters: Counters::default(),
        })
    }

    fn token(&mut self) -> Token {
        self.protocol.tokens += 1;
        Token(self.protocol.tokens)
    }

    /// Sends the undo buffer to the log in one burst; what to wait for, if there is anything.
    fn flush(&mut self, out: &mut Actions) -> Option<Token> {
        let ProtocolState { log, tokens, .. } = &mut self.protocol;
        if log.bursting().is_none() && !log.is_empty() {
            self.counters.bursts += 1;
        }
        log.flush(&self.spec, self.log, tokens, self.fault, out)
    }

    /// A line that may have its pre-image in the buffer has to stay until that is durable.
    fn hold_back(&mut self, line: LineAddr, out: &mut Actions) -> Option<Wait> {
        if !self.protocol.log.may_hold(line) {
            return None;
        }
        self.counters.filter_hits += 1;
        self.counters.false_positives += u64::from(!self.protocol.log.holds(line));
        self.flush(out).map(Wait::Acked)
    }

    /// Whether stores may make more pre-images: a superblock for them, and spare ones for what is in the buffer.
    fn has_room(&self) -> bool {
        let is_free = self.protocol.log.used() + spec::SPARE_SUPERBLOCKS < self.spec.superblocks();
        self.fault.assumes(planted::LOG_OVERRUN, is_free)
    }

    /// The pre-image of the first store of an epoch to a line. ValidFrom is the epoch in which the line was last stored to, or
    /// PersistedEID if that is persisted; ValidTill is the current epoch.
    fn pre_image(&self, store: &Store<'_>, note: LineTag) -> PreImage {
        let Epochs { system, persisted, .. } = self.protocol.epochs;
        let mut data = *store.before;
        if self.fault.skips(planted::PRE_IMAGE_TAKES_NEW) {
            let offset = store.addr.offset();
            data[offset..][..usize::from(store.len)].copy_from_slice(&store.bytes()[..usize::from(store.len)]);
        }
        let valid_from = self.epoch_of(note).unwrap_or(persisted);
        let valid_from = self.fault.swaps(planted::VALID_FROM_ZERO, valid_from, 0);
        let early = (system - 1).max(valid_from + 1).min(system);
        let valid_till = self.fault.swaps(planted::VALID_TILL_EARLY, system, early);
        PreImage { line: store.line(), data, valid_from, valid_till }
    }

    /// The pre-image of a store goes to the buffer, or what to wait for.
    fn log_pre_image(&mut self, store: &Store<'_>, note: LineTag, out: &mut Actions) -> Option<Gate> {
        out.stalls_for(StallCause::Structure(0));
        if let Some(token) = self.protocol.log.bursting() {
            return Some(Gate::Retry(Wait::Acked(token)));
        }
        if !self.has_room() {
            out.stalls_for(StallCause::Structure(1));
            return Some(self.full(store.tx, out));
        }
        let entries = self.spec.undo_buffer_entries as usize;
        if self.protocol.log.len() < entries {
            let pre_image = self.pre_image(store, note);
            self.protocol.log.push(pre_image);
            self.counters.pre_images += 1;
        }
        if self.protocol.log.len() >= entries {
            self.counters.buffer_full += 1;
            self.flush(out);
        }
        None
    }
}

impl Stateful for State {
    kept!(protocol: ProtocolState, counters: Counters);

    fn fits(&self, protocol: &ProtocolState) -> Result<(), &'static str> {
        if !protocol.log.is_sound(&self.spec) {
            return Err("an undo log of another size");
        }
        if protocol.epochs.persisted >= protocol.epochs.system {
            return Err("an epoch is persisted that has not ended");
        }
        Ok(())
    }
}

impl Durability for State {
    /// While an epoch is about to end no transaction begins.
    fn tx_begin(&mut self, _: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        self.arm(out);
        self.protocol.begin_held = self.holds_begins(out);
        if self.protocol.begin_held {
            self.counters.held_begins += 1;
            self.end_soon(out);
            return Gate::Retry(Wait::Signal(EPOCH_ENDS));
        }
        if self.waits_for_room() {
            self.counters.held_begins += 1;
            return Gate::Retry(Wait::Cycles(ROOM_RETRY_CYCLES));
        }
        let began_at = self.protocol.log.tail;
        self.protocol.open.entry(tx).or_insert(OpenTx { began_at, ..OpenTx::default() });
        Gate::Done
    }

    /// The first store of an epoch to a line, inside of a transaction or not, sends the line to the undo buffer.
    fn store(&mut self, _: &Ctx, store: &Store<'_>, note: &mut LineTag, out: &mut Actions) -> Gate {
        self.arm(out);
        let current = self.note_of(self.protocol.epochs.system);
        let is_missed = self.fault.skips(planted::LINE_NOT_LOGGED) && store.line().0.is_multiple_of(4)
            || self.fault.skips(planted::PLAIN_STORE_NOT_LOGGED) && store.tx.is_none();
        if *note != current
            && !is_missed
            && let Some(gate) = self.log_pre_image(store, *note, out)
        {
            return gate;
        }
        *note = current;
        if let Some(open) = store.tx.and_then(|tx| self.protocol.open.get_mut(&tx)) {
            open.undo.push(Undo::of(store));
        }
        Gate::Done
    }

    /// Nothing becomes durable by a commit: that is what epochs are for.
    fn tx_commit(&mut self, _: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        self.protocol.open.remove(&tx);
        self.transaction_is_over(out);
        Gate::Done
    }

    /// The stores of the transaction are undone, youngest first. The epoch has not ended since, so the lines have their
    /// pre-images already [D:picl-abort].
    fn tx_abort(&mut self, _: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        let token = self.token();
        let Some(open) = self.protocol.open.get_mut(&tx) else { return Gate::Done };
        if let Some(token) = open.undoing {
            if !open.awaited {
                open.awaited = true;
                return Gate::Retry(Wait::Acked(token));
            }
            self.protocol.open.remove(&tx);
            self.transaction_is_over(out);
            return Gate::Done;
        }
        open.undoing = Some(token);
        let stores = open.undo.iter().copied();
        let mut undo: Vec<Undo> = stores.filter(|_| !self.fault.skips(planted::ABORT_NOT_UNDONE)).collect();
        if !self.fault.skips(planted::ABORT_OLDEST_FIRST) {
            undo.reverse();
        }
        self.counters.undone_stores += undo.len() as u64;
        let cycles = self.spec.undo_cycles_per_store * undo.len() as u64;
        undo.into_iter().for_each(|undo| undo.restore(token, out));
        Gate::Retry(Wait::Cycles(cycles))
    }

    /// A line whose pre-image may be in the buffer leaves after a burst.
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

    fn scanned(&mut self, _: &Ctx, _: u64, line: LineAddr, dirty: bool, note: &mut LineTag) -> Scanned {
        self.visit(line, dirty, note)
    }

    fn woken(&mut self, _: &Ctx, id: u64, out: &mut Actions) {
        match id {
            ARMED => self.schedule_due_work(out),
            END => self.end_epoch(out),
            HOLD => self.held_for_long(out),
            SCAN => {
                if let Some(scan) = &mut self.protocol.epochs.scan {
                    scan.phase = Phase::FlushAfter;
                    self.go_on(out);
                }
            }
            _ => {}
        }
    }

    fn acked(&mut self, _: &Ctx, token: Token, _: PhysAddr, out: &mut Actions) {
        let ProtocolState { log, tokens, .. } = &mut self.protocol;
        if log.acked(token, &self.spec, self.log, tokens, out) {
            self.go_on(out);
        }
        self.scan_acked(token, out);
    }

    fn tags_follow_newest_data(&self) -> bool {
        true
    }

    /// An orderly shutdown writes all lines home: no epoch has to be undone.
    fn shut_down(&self, image: &mut CrashImage) {
        image.pmem.write(self.registers, &u64::from(u32::MAX).to_le_bytes());
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        let ProtocolState { epochs, log, begin_held, .. } = &self.protocol;
        let marks = [
            ("pre_image_buffered", !log.is_empty()),
            ("burst_in_flight", log.bursting().is_some()),
            ("scan_in_progress", epochs.scan.is_some()),
            ("two_epochs_persisted", epochs.persisted >= 2),
            ("eid_wrapped", epochs.system >= 1 << self.spec.eid_bits),
            ("begin_held_back", *begin_held && epochs.due),
            ("undo_log_wrapped", log.tail > self.spec.superblocks()),
        ];
        marks.into_iter().filter(|(_, there)| *there).for_each(|(name, _)| mark(name));
    }

    fn occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("undo_buffer", self.protocol.log.len() as u64);
        report("undo_log", self.protocol.log.used());
    }

    fn stats(&self, stats: &mut Stats) {
        let c = &self.counters;
        let mut count = |name: &str, value, text| stats.count(format!("picl.{name}"), value, text);
        count("pre_images", c.pre_images, "Lines that went to the undo buffer");
        count("bursts", c.bursts, "Bursts of the undo buffer to the log");
        count("filter_hits", c.filter_hits, "Write-backs that the Bloom filter held up");
        count("false_positives", c.false_positives, "Those of them whose line had no pre-image in the buffer");
        count("buffer_full", c.buffer_full, "Bursts because the undo buffer was full");
        count("log_full", c.log_full, "Requests that found the undo log full");
        count("epochs", c.epochs, "Epochs that ended");
        count("scans", c.scans, "Scans of the caches that have ended");
        count("scanned_lines", c.scanned_lines, "Lines that a scan wrote home");
        count("held_begins", c.held_begins, "Begins of transactions that waited for the end of an epoch");
        count("undone_stores", c.undone_stores, "Stores that aborts undid");
    }
}
