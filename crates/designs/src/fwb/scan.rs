//! Force write-back and the room in the log.
//!
//! A scan sets the fwb bit of dirty lines that do not have it and writes those home that do. What was stored before a scan
//! began is home when the next one has ended: its lines were marked by the first, and were written by then or by the second.
//! A line with a record that is not durable waits for it, and stores to that line wait with it: one that is stored to all the
//! time would never let its old data be written home. So the head of the log follows the beginning of the scan before the
//! last. It stops at the first record of a transaction that may have to be undone, and of one whose undoing is younger than
//! that scan or whose abort record is not durable. It may stop between the records of a transaction whose undone bytes are
//! at their home addresses: the abort record names the first of them for recovery.
//!
//! The head moves in persistent memory first. Before that, all that the caches gave away up to the scan's end has to be
//! accepted: an empty write to each controller comes after it.

use super::{ProtocolState, State, planted};
use durasim_contract::{Action, Actions, LineTag, Origin, Scanned, Token};
use durasim_types::{Cause, EventKind, LineAddr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Timer of the scans.
pub(super) const TIMER: u64 = 0;
/// The scan.
pub(super) const SCAN: u64 = 1;
/// The tag of a line with its fwb bit set.
const FWB: LineTag = LineTag(1);

/// The head in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeadUpdate {
    pub to: u64,
    pub token: Token,
    /// Controllers that have not accepted all that was before; none: the head itself is being written.
    unacknowledged: u16,
}

/// The state of the scans, which keep room in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogSpace {
    timer_runs: bool,
    /// The tail when the scan began that is in progress.
    scanning: Option<u64>,
    /// Lines that the scan has left until their records are durable.
    left: BTreeSet<LineAddr>,
    /// The scan has ended and waits for those.
    ending: bool,
    /// The tail when the scan before the last began.
    home: Option<u64>,
    /// The tail when the last scan began.
    last_scan: Option<u64>,
    /// A request waits for room.
    wanted: bool,
    pub head_update: Option<HeadUpdate>,
    /// First record and abort record of transactions whose undoing may not be home yet.
    pub aborted: Vec<(u64, u64)>,
}

impl LogSpace {
    pub fn note_abort(&mut self, first: u64, record: u64) {
        self.aborted.push((first, record));
    }

    pub fn is_room_wanted(&self) -> bool {
        self.wanted
    }

    pub fn is_scanning(&self) -> bool {
        self.scanning.is_some() || self.ending
    }

    /// Whether the scan waits for the records of a line, which must not get another one.
    pub fn waits_for(&self, line: LineAddr) -> bool {
        self.left.contains(&line)
    }

    pub fn is_moving_head(&self) -> bool {
        self.head_update.is_some()
    }
}

impl State {
    /// Scans come in periods while there is something in the log.
    fn start_timer(&mut self, out: &mut Actions) {
        if !self.protocol.log_space.timer_runs {
            self.protocol.log_space.timer_runs = true;
            out.push(Action::Timer { id: TIMER, after_cycles: self.spec.scan_period_cycles });
        }
    }

    pub(super) fn timer_is_due(&mut self, out: &mut Actions) {
        self.protocol.log_space.timer_runs = false;
        if self.protocol.log.used() > 0 {
            self.start_timer(out);
            self.start_scan(out);
        }
    }

    /// A record has arrived: scans run in periods, and more often where the log fills faster than that.
    pub(super) fn keep_room(&mut self, out: &mut Actions) {
        self.start_timer(out);
        if self.is_filling() {
            self.start_scan(out);
        }
    }

    /// Records that the head is about to pass are ignored.
    fn is_filling(&self) -> bool {
        let ProtocolState { log, log_space, .. } = &self.protocol;
        let needed = log.tail - log_space.head_update.map_or(log.head, |head_update| head_update.to);
        100 * needed >= u64::from(self.spec.scan_from_percent) * self.spec.capacity()
    }

    fn start_scan(&mut self, out: &mut Actions) {
        if !self.protocol.log_space.is_scanning() {
            self.drain(true, out);
            self.protocol.log_space.scanning = Some(self.protocol.log.tail);
            out.push(Action::Scan {
                id: SCAN,
                lines_per_cycle: self.spec.scan_lines_per_cycle,
                takes_ports: self.spec.scan_takes_ports,
            });
        }
    }

    /// A request waits for room: a scan at once, or where caches survive just a new head.
    pub(super) fn make_room(&mut self, out: &mut Actions) {
        self.protocol.log_space.wanted = true;
        if self.undo_only {
            self.drain(true, out);
            self.move_head(self.protocol.log.durable, out);
        } else {
            self.start_scan(out);
        }
    }

    /// The scan visits a line that is dirty or has its bit set.
    pub(super) fn visit(&mut self, line: LineAddr, dirty: bool, tag: &mut LineTag) -> Scanned {
        if !dirty {
            // It went home by another way since it was marked.
            *tag = LineTag::NONE;
            return Scanned::Leave;
        }
        if *tag != FWB {
            *tag = FWB;
            return Scanned::Leave;
        }
        // It stays until its records are durable.
        if self.fault.ignores(planted::SCAN_NOT_HELD, self.protocol.log.is_pending(line)) {
            self.protocol.log_space.left.insert(line);
            self.counters.lines_left += 1;
            return Scanned::Leave;
        }
        *tag = LineTag::NONE;
        if self.fault.skips(planted::SCAN_WRITES_NOTHING) {
            return Scanned::Leave;
        }
        self.counters.forced_write_backs += 1;
        Scanned::Clean
    }

    pub(super) fn scan_is_over(&mut self, out: &mut Actions) {
        let Some(began) = self.protocol.log_space.scanning.take() else { return };
        self.counters.scans += 1;
        let before = self.protocol.log_space.last_scan.replace(began);
        self.protocol.log_space.home = self.fault.swaps(planted::HEAD_AFTER_ONE_SCAN, before, Some(began));
        self.protocol.log_space.ending = true;
        self.drain(true, out);
        self.write_left_lines(out);
    }

    /// Lines that a scan has left go home as soon as their records are durable; then the scan is at its end.
    pub(super) fn write_left_lines(&mut self, out: &mut Actions) {
        let ProtocolState { log, log_space, .. } = &mut self.protocol;
        let counters = &mut self.counters;
        log_space.left.retain(|line| {
            let stays = log.is_pending(*line);
            if !stays {
                counters.forced_write_backs += 1;
                out.push(Action::CleanTo { line: *line, to: None, token: None });
            }
            stays
        });
        if !log_space.ending || !log_space.left.is_empty() {
            return;
        }
        log_space.ending = false;
        if let Some(home) = log_space.home.take() {
            self.move_head(home, out);
        }
        if self.protocol.log_space.wanted || self.is_filling() {
            self.start_scan(out);
        }
    }

    /// The place that the head may move to once the data of records before `home` is at its home address. It stops at the
    /// first record of a transaction that may have to be undone, and of one whose undone bytes may not be at their home
    /// addresses.
    fn new_head(&self, home: u64) -> u64 {
        let safe = home.min(self.protocol.log.durable);
        let mut to = safe;
        if let Some((first, _)) = self.oldest_needed().filter(|_| !self.fault.skips(planted::HEAD_PASSES_OPEN)) {
            to = to.min(first);
        }
        if self.fault.ignores(planted::HEAD_PASSES_ABORTED, !self.undo_only) {
            // Without its abort record, which may still be in flight, it would be undone again, and only in part.
            let recent = self.protocol.log_space.aborted.iter().filter(|(_, record)| *record >= safe);
            to = recent.map(|(first, _)| *first).fold(to, u64::min);
        }
        to
    }

    /// Begins to move the head to where all data of older records is home.
    fn move_head(&mut self, home: u64, out: &mut Actions) {
        if self.protocol.log_space.head_update.is_some() {
            return;
        }
        let to = self.new_head(home);
        if to <= self.protocol.log.head {
            return;
        }
        self.protocol.tokens += 1;
        let token = Token(self.protocol.tokens);
        let controllers = if self.undo_only { 0 } else { self.interleave.controllers };
        self.protocol.log_space.head_update = Some(HeadUpdate { to, token, unacknowledged: controllers });
        if controllers == 0 {
            self.write_head(out);
        } else {
            out.push(Action::Barrier { token, cause: Cause::Metadata });
        }
    }

    /// The head moves in persistent memory. The room is given when that is accepted.
    fn write_head(&mut self, out: &mut Actions) {
        let Some(HeadUpdate { to, token, .. }) = self.protocol.log_space.head_update else { return };
        out.append(Origin::Controller, self.head_register, &to.to_le_bytes(), Cause::Metadata, Some(token));
        if self.fault.skips(planted::HEAD_NOT_AWAITED) {
            self.give_room(out);
        }
    }

    /// A write that precedes the new head, or the head itself, is accepted.
    pub(super) fn head_acked(&mut self, token: Token, out: &mut Actions) {
        let Some(head_update) =
            self.protocol.log_space.head_update.as_mut().filter(|head_update| head_update.token == token)
        else {
            return;
        };
        if head_update.unacknowledged == 0 {
            return self.give_room(out);
        }
        head_update.unacknowledged -= 1;
        if head_update.unacknowledged == 0 {
            self.write_head(out);
        }
    }

    /// The head has moved: what is before it may be overwritten.
    fn give_room(&mut self, out: &mut Actions) {
        let Some(HeadUpdate { to, .. }) = self.protocol.log_space.head_update.take() else { return };
        self.counters.head_moves += 1;
        self.protocol.log.head = to;
        self.protocol.log_space.aborted.retain(|(first, _)| *first >= to);
        self.protocol.log_space.wanted = false;
        out.event(EventKind::Background, self.head_register);
    }
}
