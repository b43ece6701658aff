//! Epochs and the asynchronous cache scan.
//!
//! An epoch is due after a number of instructions and ends at the first moment at which no transaction is open; begins
//! are held back until then [D:picl-epoch-boundary]. Ending costs nothing: SystemEID continues by one. The scan follows
//! `scan_gap_epochs` later: it writes home the lines that were last stored to in its epoch, the undo buffer is flushed,
//! and when all of that is accepted PersistedEID advances in persistent memory, together with the head of the log. No
//! epoch ends while the scan that its end would start cannot start yet.

use super::{ARMED, END, EPOCH_ENDS, HOLD, ROOM_RETRY_CYCLES, SCAN, State, planted};
use durasim_contract::{AbortCause, Action, Actions, Gate, LineTag, Origin, Scanned, Token, Wait};
use durasim_types::{Cause, EventKind, LineAddr, TxId};
use serde::{Deserialize, Serialize};

/// The phase of the scan of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// The pre-images of earlier epochs in the undo buffer become durable.
    FlushBefore,
    /// The caches are looked at.
    Lines,
    /// The pre-images of lines that were stored to meanwhile become durable.
    FlushAfter,
    /// Every controller accepts what was written before; this many have not.
    Barrier(Token, u16),
    /// The registers in persistent memory.
    Registers(Token),
}

/// The scan of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Scan {
    pub epoch: u64,
    pub phase: Phase,
}

/// Epochs: SystemEID, PersistedEID, and the scan between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Epochs {
    /// SystemEID: the epoch that is in progress, from 1.
    pub system: u64,
    /// PersistedEID: the last epoch that recovery can restore.
    pub persisted: u64,
    /// The timer of the epoch is running.
    pub armed: bool,
    /// The epoch is as long as it should be, or the log is full.
    pub due: bool,
    pub scan: Option<Scan>,
    /// A timer runs that lets begins go.
    pub holding: bool,
    /// Begins continue although the epoch is due: a thread with an open transaction may wait for one of them.
    pub let_go: bool,
    /// A request waits for room in the log: scans follow each other whatever the gap is.
    pub room_wanted: bool,
}

impl Default for Epochs {
    fn default() -> Self {
        Epochs {
            system: 1,
            persisted: 0,
            armed: false,
            due: false,
            scan: None,
            holding: false,
            let_go: false,
            room_wanted: false,
        }
    }
}

impl State {
    /// The note on a line that was last stored to in this epoch: the low bits of its number, and that there is one.
    pub(super) fn note_of(&self, epoch: u64) -> LineTag {
        LineTag(1 << 63 | epoch & ((1 << self.spec.eid_bits) - 1))
    }

    /// The epoch that a note stands for, if it is one that is not persisted: identifiers wrap around.
    pub(super) fn epoch_of(&self, note: LineTag) -> Option<u64> {
        if !note.is_some() {
            return None;
        }
        let (system, size) = (self.protocol.epochs.system, 1u64 << self.spec.eid_bits);
        let age = system.wrapping_sub(note.0 & (size - 1)) % size;
        system.checked_sub(age).filter(|epoch| *epoch > self.protocol.epochs.persisted)
    }

    /// The instructions of the epoch are counted from the first store or transaction on.
    pub(super) fn arm(&mut self, out: &mut Actions) {
        if !self.protocol.epochs.armed {
            self.protocol.epochs.armed = true;
            out.push(Action::InstructionTimer { id: ARMED, after_instructions: self.spec.epoch_instructions });
        }
    }

    /// Whether the epoch ends as soon as no transaction is open.
    pub(super) fn is_ending(&self) -> bool {
        // The scan is far enough for another epoch to end.
        let Epochs { system, persisted, due, .. } = self.protocol.epochs;
        let is_near = persisted + u64::from(self.spec.scan_gap_epochs) + 1 >= system;
        due && self.fault.assumes(planted::EPOCH_OVERTAKES_SCAN, is_near)
    }

    /// Whether begins are delayed. A thread that has lost its core inside a transaction, or that waits there for one
    /// that would begin, cannot end it: after a while begins continue until a transaction ends.
    pub(super) fn holds_begins(&mut self, out: &mut Actions) -> bool {
        let holds = self.is_ending() && !self.protocol.epochs.let_go;
        if holds && !self.protocol.epochs.holding {
            self.protocol.epochs.holding = true;
            out.push(Action::Timer { id: HOLD, after_cycles: self.spec.hold_cycles });
        }
        holds
    }

    /// Begins have been delayed for long.
    pub(super) fn held_for_long(&mut self, out: &mut Actions) {
        self.protocol.epochs.holding = false;
        if self.is_ending() {
            self.protocol.epochs.let_go = true;
            out.push(Action::Raise(EPOCH_ENDS));
        }
    }

    /// A transaction is over: begins may be delayed again, or the epoch ends.
    pub(super) fn transaction_is_over(&mut self, out: &mut Actions) {
        self.protocol.epochs.let_go = false;
        self.end_soon(out);
    }

    /// Whether an epoch would end where no transaction is open.
    fn is_between_transactions(&self) -> bool {
        self.fault.assumes(planted::EPOCH_INSIDE_TRANSACTION, self.protocol.open.is_empty())
    }

    /// The epoch ends in the next cycle, if it can: what is acknowledged in this one belongs to it.
    pub(super) fn end_soon(&mut self, out: &mut Actions) {
        if self.is_ending() && self.is_between_transactions() {
            out.push(Action::Timer { id: END, after_cycles: 1 });
        }
    }

    /// The end of the epoch.
    pub(super) fn end_epoch(&mut self, out: &mut Actions) {
        if !self.is_ending() || !self.is_between_transactions() {
            return;
        }
        self.protocol.epochs.due = false;
        self.protocol.epochs.armed = false;
        self.protocol.epochs.let_go = false;
        self.protocol.epochs.system += 1;
        self.counters.epochs += 1;
        out.push(Action::EpochEnds);
        out.push(Action::Raise(EPOCH_ENDS));
        self.arm(out);
        self.start_scan(out);
    }

    /// The epoch is due.
    pub(super) fn schedule_due_work(&mut self, out: &mut Actions) {
        self.protocol.epochs.due = true;
        self.end_soon(out);
    }

    /// Starts the scan of the oldest epoch that is not persisted, if it is its turn.
    fn start_scan(&mut self, out: &mut Actions) {
        let Epochs { system, persisted, scan, room_wanted, .. } = self.protocol.epochs;
        let gap = if room_wanted { 0 } else { u64::from(self.spec.scan_gap_epochs) };
        let epoch = persisted + 1;
        if scan.is_none() && epoch + gap < system {
            self.protocol.epochs.scan = Some(Scan { epoch, phase: Phase::FlushBefore });
            self.go_on(out);
        }
    }

    pub(super) fn enter(&mut self, phase: Phase) {
        if let Some(scan) = &mut self.protocol.epochs.scan {
            scan.phase = phase;
        }
    }

    /// Takes the scan as far as it comes without waiting.
    pub(super) fn go_on(&mut self, out: &mut Actions) {
        let Some(Scan { phase, .. }) = self.protocol.epochs.scan else { return };
        match phase {
            Phase::FlushBefore => {
                if self.flush(out).is_some() {
                    return;
                }
                self.enter(Phase::Lines);
                out.push(Action::Scan {
                    id: SCAN,
                    lines_per_cycle: self.spec.scan_lines_per_cycle,
                    takes_ports: false,
                });
            }
            Phase::FlushAfter => {
                if !self.fault.skips(planted::SCAN_FORGETS_BUFFER) && self.flush(out).is_some() {
                    return;
                }
                // PersistedEID waits until every controller has accepted what was written before: an empty write comes after.
                let token = self.token();
                if self.fault.skips(planted::SCAN_NOT_AWAITED) {
                    self.enter(Phase::Barrier(token, 0));
                    return self.go_on(out);
                }
                self.enter(Phase::Barrier(token, self.interleave.controllers));
                out.push(Action::Barrier { token, cause: Cause::Checkpoint });
            }
            Phase::Barrier(_, 0) => {
                let token = self.token();
                self.enter(Phase::Registers(token));
                self.write_registers(token, out);
            }
            _ => {}
        }
    }

    /// PersistedEID and the head of the log, in one write.
    fn write_registers(&mut self, token: Token, out: &mut Actions) {
        let Some(Scan { epoch, .. }) = self.protocol.epochs.scan else { return };
        let mut bytes = [0; 16];
        let persisted = self.fault.swaps(planted::PERSISTED_TOO_FAR, epoch, epoch + 1);
        bytes[..8].copy_from_slice(&persisted.to_le_bytes());
        bytes[8..].copy_from_slice(&self.first_needed(epoch).to_le_bytes());
        out.append(Origin::Llc, self.registers, &bytes, Cause::Metadata, Some(token));
    }

    /// The first superblock that is needed when this epoch is persisted.
    fn first_needed(&self, persisted: u64) -> u64 {
        let persisted = self.fault.swaps(planted::GARBAGE_TOO_EARLY, persisted, persisted + 1);
        self.protocol.log.first_needed(persisted)
    }

    /// A write of the scan is accepted.
    pub(super) fn scan_acked(&mut self, token: Token, out: &mut Actions) {
        match self.protocol.epochs.scan {
            Some(Scan { phase: Phase::Barrier(of, left), .. }) if of == token => {
                self.enter(Phase::Barrier(of, left - 1));
                self.go_on(out);
            }
            Some(Scan { epoch, phase: Phase::Registers(of) }) if of == token => {
                self.counters.scans += 1;
                self.protocol.epochs.persisted = epoch;
                self.protocol.epochs.scan = None;
                let first = self.first_needed(epoch);
                self.protocol.log.collect(first);
                out.event(EventKind::Background, self.registers);
                if self.protocol.epochs.room_wanted && self.has_room() {
                    self.protocol.epochs.room_wanted = false;
                }
                self.start_scan(out);
                self.end_soon(out);
            }
            _ => {}
        }
    }

    /// The scan visits a line.
    pub(super) fn visit(&mut self, line: LineAddr, dirty: bool, note: &mut LineTag) -> Scanned {
        let Some(Scan { epoch, .. }) = self.protocol.epochs.scan else { return Scanned::Leave };
        let of_line = self.epoch_of(*note);
        if of_line.is_some_and(|of_line| of_line > epoch) {
            return Scanned::Leave;
        }
        // The epoch in which a clean line was last stored to does not matter any more, and its identifier will recur.
        if dirty || !self.fault.skips(planted::STALE_EID_KEPT) {
            *note = LineTag::NONE;
        }
        if !dirty || self.fault.skips(planted::SCAN_SKIPS_LINES) && line.0 % 4 == 1 {
            return Scanned::Leave;
        }
        self.counters.scanned_lines += 1;
        Scanned::Clean
    }

    /// The log is full: the epoch ends as soon as possible, and all scans are made up for. A transaction in the way of
    /// that aborts, for the epoch cannot end inside it. It is tried again when there is room, unless half of the log
    /// was written since it began: then it is too large for the log.
    pub(super) fn full(&mut self, tx: Option<TxId>, out: &mut Actions) -> Gate {
        self.counters.log_full += 1;
        self.protocol.epochs.room_wanted = true;
        self.schedule_due_work(out);
        self.start_scan(out);
        let in_the_way = tx.or_else(|| self.protocol.open.keys().next().copied());
        if let Some((tx, open)) = in_the_way.and_then(|tx| self.protocol.open.get_key_value(&tx)) {
            let is_large = 2 * (self.protocol.log.tail - open.began_at) >= self.spec.superblocks();
            return Gate::Abort(*tx, if is_large { AbortCause::Capacity } else { AbortCause::Conflict });
        }
        Gate::Retry(Wait::Cycles(ROOM_RETRY_CYCLES))
    }

    /// Whether a transaction had better not begin: the log is full, and nothing but begins keeps scans from emptying it.
    pub(super) fn waits_for_room(&self) -> bool {
        self.protocol.epochs.room_wanted && self.protocol.open.is_empty() && !self.has_room()
    }
}
