//! The extension of each memory controller, all of it battery-backed: DTX_CID and the speculative entries of its queue
//! (section 4.3), the commit (section 4.4), and the undo log of the fall-back (section 4.6).

use super::planted;
use super::regions::{UndoRegion, undo_header};
use super::spec::LadSpec;
use crate::dtx::{Dtx, Ids, THREADS};
use durasim_contract::{Accept, Action, Actions, ActiveFault, Arrival, CopyRequest, Occupancy, Origin, Token};
use durasim_types::{Cause, EventKind, LineAddr, PhysAddr};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// The token of writes to the undo log of a controller, whose number is in the low bits.
pub(super) const UNDO_TOKEN: u64 = 1 << 32;
/// The token of the write that voids an undo entry.
pub(super) const VOID_TOKEN: u64 = 1 << 34;
/// Queue entries reserved for writes that never wait there: without them no undo entry could be written, and no speculative
/// entry would ever leave.
const RESERVED_ENTRIES: u32 = 2;

/// A line of a DTX.
pub(super) type LineOfDtx = (LineAddr, u64);

/// The action of a controller for an undo entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Logging {
    #[default]
    Idle,
    /// The old value is in flight to the log.
    OldValue(LineOfDtx),
    /// It is there; the place and the DTX follow.
    Header(LineOfDtx),
}

/// The registers of a memory controller (section 4.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct McExtension {
    number: u16,
    /// DTX_CID: the last committed DTX_ID of each thread.
    pub committed: Vec<u8>,
    /// Speculative entries, oldest first: lines with the numbers of their DTXs.
    pub speculative: VecDeque<LineOfDtx>,
    /// Lines that are in the undo log, for each DTX once: what it writes over them later is undone with them.
    logged: BTreeSet<LineOfDtx>,
    logging: Logging,
    /// Undo entries, oldest first: the DTX of each, 0 if it is void. The oldest is in the slot `head`.
    pub records: VecDeque<u64>,
    /// Slots of entries that are about to be void.
    voiding: BTreeSet<u64>,
    pub head: u64,
    /// Entries that the log has room for.
    pub capacity: u64,
    /// The operating system has been asked for more.
    grows: bool,
    /// The entry that waits for room in the log.
    wanted: Option<LineOfDtx>,
    /// The system's thread is going to look at the log.
    pub reclaim_armed: bool,
    /// Lines with ordinary entries that wait for a speculative one: what arrived as such, and what was released before an older
    /// version.
    pub waiting_for_held: BTreeSet<LineAddr>,
    /// Counters.
    pub undo_entries: u64,
    pub held_max: u32,
    pub refused: u64,
    pub log_full: u64,
    pub reclaimed: u64,
}

impl McExtension {
    pub fn new(number: u16, spec: &LadSpec) -> Self {
        McExtension {
            number,
            committed: vec![0; THREADS],
            speculative: VecDeque::new(),
            logged: BTreeSet::new(),
            logging: Logging::Idle,
            records: VecDeque::new(),
            voiding: BTreeSet::new(),
            head: 0,
            capacity: spec.undo_log_entries,
            grows: false,
            wanted: None,
            reclaim_armed: false,
            waiting_for_held: BTreeSet::new(),
            undo_entries: 0,
            held_max: 0,
            refused: 0,
            log_full: 0,
            reclaimed: 0,
        }
    }

    fn token(&self) -> Option<Token> {
        Some(Token(UNDO_TOKEN | u64::from(self.number)))
    }

    fn is_pressed(&self, held: u32, entries: u32, spec: &LadSpec) -> bool {
        held * 100 >= entries * spec.logging_percent
    }

    fn is_speculative(&self, line: LineAddr) -> bool {
        self.speculative.iter().any(|(held, _)| *held == line)
    }

    /// A write that is no DTX_Flush. While a speculative entry of its line is in the queue, it takes none of the reserved
    /// entries.
    pub fn accept_ordinary(&mut self, arrival: &Arrival, cx: &mut LogContext<'_>) -> Accept {
        if !self.is_speculative(arrival.line) {
            return Accept::Queue { held: None };
        }
        if arrival.queue.free() <= RESERVED_ENTRIES {
            self.refused += 1;
            if !self.has_ordinary_to_drain(&arrival.queue) {
                self.log_oldest(cx);
            }
            return Accept::Refuse;
        }
        self.waiting_for_held.insert(arrival.line);
        Accept::Queue { held: None }
    }

    /// A DTX_Flush becomes a speculative entry. Under pressure the oldest of these are logged and written in place; where there
    /// is no place for it, it is logged itself and goes in place at once (section 4.6).
    pub fn accept_flush(&mut self, arrival: &Arrival, dtx: Dtx, cx: &mut LogContext<'_>) -> Accept {
        let of_dtx = (arrival.line, dtx.number());
        // A committed line, or one that is undone from the log, is written in place at once.
        if self.has_committed(dtx.number(), cx.ids) {
            return Accept::Queue { held: None };
        }
        if cx.fault.ignores(planted::SECOND_VERSION_LOGGED, self.logged.contains(&of_dtx)) {
            return Accept::Queue { held: None };
        }
        let Occupancy { entries, held, .. } = arrival.queue;
        if self.is_pressed(held + 1, entries, cx.spec) {
            self.log_oldest(cx);
        }
        if arrival.queue.free() <= RESERVED_ENTRIES {
            self.refused += 1;
            // Below 80 % it waits for ordinary entries to leave, if any can.
            if self.has_ordinary_to_drain(&arrival.queue) {
                return Accept::Refuse;
            }
            match self.speculative.front() {
                Some(&oldest) => self.log(oldest, cx),
                None => self.log(of_dtx, cx),
            }
            return Accept::Refuse;
        }
        self.held_max = self.held_max.max(held + 1);
        if cx.fault.skips(planted::SPECULATIVE_BIT_NOT_SET) {
            return Accept::Queue { held: None };
        }
        self.speculative.push_back(of_dtx);
        Accept::Queue { held: Some(dtx.number()) }
    }

    /// Whether ordinary entries are about to leave: none of them waits for a speculative entry of its line.
    fn has_ordinary_to_drain(&self, queue: &Occupancy) -> bool {
        queue.ordinary > 0 && self.waiting_for_held.is_empty()
    }

    /// An entry has left the queue: the next is logged, if there are still too many.
    pub fn drained(&mut self, line: LineAddr, queue: Occupancy, cx: &mut LogContext<'_>) {
        if !self.is_speculative(line) {
            self.waiting_for_held.remove(&line);
        }
        if self.is_pressed(queue.held, queue.entries, cx.spec) {
            self.log_oldest(cx);
        }
    }

    /// The oldest speculative entry is logged: FIFO (section 4.6).
    fn log_oldest(&mut self, cx: &mut LogContext<'_>) {
        if let Some(&of_dtx) = self.speculative.front() {
            self.log(of_dtx, cx);
        }
    }

    /// All that the queue has of a line whose old value is in the log goes in place: what follows it in the queue counts
    /// on the same undo entry, and must not be taken for the write of another.
    fn release_logged(&mut self, of_dtx: LineOfDtx, out: &mut Actions) {
        let (line, group) = of_dtx;
        out.push(Action::ReleaseHeld { controller: self.number, group, line: Some(line) });
        self.note_released(|of| *of == of_dtx);
        self.speculative.retain(|of| *of != of_dtx);
    }

    /// A released entry stays in the queue as long as an older version of its line is held.
    fn note_released(&mut self, is_released: impl Fn(&LineOfDtx) -> bool) {
        let mut held = BTreeSet::new();
        for of in &self.speculative {
            if !is_released(of) {
                held.insert(of.0);
            } else if held.contains(&of.0) {
                self.waiting_for_held.insert(of.0);
            }
        }
    }

    /// The old value of a line goes to the undo log, if that has room.
    fn log(&mut self, of_dtx: LineOfDtx, cx: &mut LogContext<'_>) {
        if self.logging != Logging::Idle {
            return;
        }
        self.ask_for_room(cx);
        let (room, _) = self.room_and_slots(cx);
        if self.records.len() as u64 >= room {
            self.log_full += 1;
            self.wanted = Some(of_dtx);
            return;
        }
        let slot = self.slot(self.records.len(), cx);
        self.logging = Logging::OldValue(of_dtx);
        cx.out.push(Action::Copy(CopyRequest {
            by: Origin::Controller,
            from: of_dtx.0.base(),
            to: cx.region.old_value(self.number, slot),
            len: 64,
            below_held: !cx.fault.skips(planted::UNDO_HAS_NEW_VALUE),
            cause: Cause::Log,
            token: self.token(),
        }));
        if cx.fault.skips(planted::UNDO_NOT_AWAITED) {
            self.release_logged(of_dtx, cx.out);
        }
    }

    /// A write to the undo log is durable.
    pub fn undo_written(&mut self, cx: &mut LogContext<'_>) {
        match self.logging {
            Logging::OldValue(of_dtx) => {
                let slot = self.slot(self.records.len(), cx);
                let Dtx { tid, id } = Dtx::of(of_dtx.1);
                let dtx = Dtx { tid, id: cx.fault.swaps(planted::UNDO_OF_ANOTHER_DTX, id, id.wrapping_sub(1)) };
                self.logging = Logging::Header(of_dtx);
                let header = undo_header(of_dtx.0, dtx);
                let at = cx.region.header(self.number, slot);
                cx.out.append(Origin::Controller, at, &header, Cause::Log, self.token());
            }
            Logging::Header(of_dtx) => {
                self.logging = Logging::Idle;
                self.undo_entries += 1;
                self.records.push_back(of_dtx.1);
                // The DTX may have committed meanwhile: the entry counts for nothing then.
                if !self.has_committed(of_dtx.1, cx.ids) {
                    self.logged.insert(of_dtx);
                }
                // In the same step: the next write to the line is ordinary, and must not wait for held versions.
                self.release_logged(of_dtx, cx.out);
                cx.out.event(EventKind::DesignStep, of_dtx.0.base());
            }
            Logging::Idle => unreachable!("nothing of the undo log was in flight"),
        }
    }

    /// Whether the controller has committed a DTX.
    pub fn has_committed(&self, group: u64, ids: Ids) -> bool {
        let dtx = Dtx::of(group);
        ids.is_committed(dtx.id, self.committed[usize::from(dtx.tid)])
    }

    /// DTX_Commit arrives (section 4.4): the vector, the speculative bits and the answer, in one step. An older message that
    /// comes late does not set DTX_CID back [D:lad-ids].
    pub fn commit(&mut self, dtx: Dtx, cx: &mut LogContext<'_>) {
        let last = &mut self.committed[usize::from(dtx.tid)];
        let is_late = cx.fault.ignores(planted::CID_GOES_BACK, cx.ids.is_committed(dtx.id, *last));
        if !is_late && !cx.fault.skips(planted::CID_NOT_UPDATED) {
            *last = dtx.id;
        }
        let group = dtx.number();
        let is_cleared = |of: u64| cx.fault.assumes(planted::COMMIT_CLEARS_ALL, of == group);
        let groups: BTreeSet<u64> = self.speculative.iter().map(|(_, of)| *of).filter(|of| is_cleared(*of)).collect();
        self.note_released(|(_, of)| groups.contains(of));
        self.speculative.retain(|(_, of)| !is_cleared(*of));
        self.logged.retain(|(_, of)| *of != group);
        self.waiting_for_held.retain(|line| self.speculative.iter().any(|(held, _)| held == line));
        cx.out.event(EventKind::DesignStep, PhysAddr(0));
        for group in groups {
            cx.out.push(Action::ReleaseHeld { controller: self.number, group, line: None });
        }
        self.wanted.take_if(|(_, of)| *of == group);
        if self.wanted.is_some() {
            self.reclaim(cx);
        }
    }

    /// Undo entries at the head of the log whose DTX has committed are given up: what the thread of the operating system does
    /// (section 4.6).
    pub fn reclaim(&mut self, cx: &mut LogContext<'_>) {
        let before = self.records.len();
        let may_go = |group: u64, mc: &Self| group == 0 || mc.has_committed(group, cx.ids);
        while let Some(&group) = self.records.front()
            && !self.voiding.contains(&self.head)
            && cx.fault.assumes(planted::RECLAIMED_WHILE_OPEN, may_go(group, self))
        {
            self.records.pop_front();
            self.head = (self.head + 1) % cx.slots();
        }
        self.reclaimed += (before - self.records.len()) as u64;
        if before > self.records.len() {
            cx.out.event(EventKind::DesignStep, PhysAddr(0));
            self.log_wanted(cx);
        }
    }

    /// Undo entries of a thread whose DTX has committed are voided in place, as the oldest entry of the log may be one
    /// of a DTX that stays open: else their ids would look like later ones [D:lad-ids].
    pub fn void_committed(&mut self, tid: u8, cx: &mut LogContext<'_>) {
        for index in 0..self.records.len() {
            let (group, slot) = (self.records[index], self.slot(index, cx));
            let is_meant = group != 0 && Dtx::of(group).tid == tid && self.has_committed(group, cx.ids);
            if is_meant && self.voiding.insert(slot) {
                let at = cx.region.header(self.number, slot).plus(8);
                let token = Some(Token(VOID_TOKEN | u64::from(self.number)));
                cx.out.append(Origin::Controller, at, &[0; 8], Cause::Log, token);
            }
        }
    }

    /// An entry is void.
    pub fn voided(&mut self, header: PhysAddr, cx: &mut LogContext<'_>) {
        for index in 0..self.records.len() {
            let slot = self.slot(index, cx);
            if cx.region.header(self.number, slot).line() == header.line() && self.voiding.remove(&slot) {
                self.records[index] = 0;
            }
        }
        self.reclaim(cx);
    }

    /// The slot of the n-th oldest entry.
    fn slot(&self, index: usize, cx: &LogContext<'_>) -> u64 {
        let (_, slots) = self.room_and_slots(cx);
        (self.head + index as u64) % slots
    }

    /// Entries that the log has room for, and slots after which it wraps around.
    fn room_and_slots(&self, cx: &LogContext<'_>) -> (u64, u64) {
        cx.fault.swaps(planted::LOG_OVERRUN, (self.capacity, cx.slots()), (u64::MAX, self.capacity))
    }

    /// The log has room again.
    fn log_wanted(&mut self, cx: &mut LogContext<'_>) {
        if let Some(of_dtx) = self.wanted.take()
            && !self.has_committed(of_dtx.1, cx.ids)
        {
            self.log(of_dtx, cx);
        }
    }

    /// The log is nearly full: the system reclaims what it can, and is asked for more room.
    fn ask_for_room(&mut self, cx: &mut LogContext<'_>) {
        let margin = (self.capacity / 8).max(1);
        if self.records.len() as u64 + margin <= self.capacity {
            return;
        }
        self.reclaim(cx);
        let is_near = self.records.len() as u64 + margin > self.capacity;
        if is_near && !self.grows && self.capacity < cx.spec.undo_log_entries_max {
            self.grows = true;
            cx.out.push(Action::Timer {
                id: super::GROWN | u64::from(self.number) << 8,
                after_cycles: cx.spec.undo_log_growth_cycles,
            });
        }
    }

    /// The system has given the log more room.
    pub fn grown(&mut self, cx: &mut LogContext<'_>) {
        self.grows = false;
        self.capacity = (2 * self.capacity).min(cx.spec.undo_log_entries_max);
        self.log_wanted(cx);
    }

    /// Counters start again from zero.
    pub fn reset_counters(&mut self) {
        (self.undo_entries, self.held_max, self.refused, self.log_full, self.reclaimed) = (0, 0, 0, 0, 0);
    }

    /// Whether the log is full for good: it has its largest size, and its oldest entry is of an open DTX.
    pub fn is_stuck(&self, ids: Ids, spec: &LadSpec) -> bool {
        let is_full = self.wanted.is_some() && !self.grows && self.capacity >= spec.undo_log_entries_max;
        is_full && self.is_head_open(ids)
    }

    /// Whether the oldest entry of the log is of an open DTX, so that none can be reclaimed.
    pub fn is_head_open(&self, ids: Ids) -> bool {
        self.records.front().is_some_and(|group| *group != 0 && !self.has_committed(*group, ids))
    }

    /// The distance from the oldest id of a thread in an undo entry, one in flight too, or in an entry of the queue to
    /// this id; 0 if there is none.
    pub fn age(&self, tid: u8, id: u8, ids: Ids) -> u8 {
        let in_flight = match &self.logging {
            Logging::Idle => None,
            Logging::OldValue((_, group)) | Logging::Header((_, group)) => Some(group),
        };
        let held = self.speculative.iter().chain(&self.wanted).map(|(_, group)| group);
        let groups = self.records.iter().chain(held).chain(in_flight).filter(|group| **group != 0);
        groups
            .map(|group| Dtx::of(*group))
            .filter(|dtx| dtx.tid == tid)
            .map(|dtx| ids.distance(dtx.id, id))
            .max()
            .unwrap_or(0)
    }
}

/// The state of the design that the steps of a controller need.
pub(super) struct LogContext<'a> {
    pub spec: &'a LadSpec,
    pub ids: Ids,
    pub region: UndoRegion,
    pub fault: ActiveFault,
    pub out: &'a mut Actions,
}

impl LogContext<'_> {
    /// Slots of the ring. It is as long as it can become, so that growing moves nothing.
    fn slots(&self) -> u64 {
        self.spec.undo_log_entries_max
    }
}
