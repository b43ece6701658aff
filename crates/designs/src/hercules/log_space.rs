//! The space of the log (section 4.4): garbage collection on log entries, then log extension.
//!
//! Garbage collection (Figure 4). LogHead and LogTail frame the window of log entries in
//! use; one transaction that stays open for long keeps LogTail where it is, however many entries after it are invalid.
//!
//! When the two are further apart than a threshold, the controller takes a chunk of successive entries at LogTail. It
//! appends each valid uncommitted one at LogHead, lets its eWPQ entry name the new place once the copy is there, and
//! only then moves LogHead by one. Entries of committed transactions are sent home, which is where they are wanted.
//! Then LogTail slides to the next valid entry.
//!
//! The paper collects when the threshold is exceeded. So does a log that is full while a chunk and more of it is
//! invalid: a smaller zone would never reach the threshold [D:hercules-gc].

use super::ewpq::Mapping;
use super::registers::Phase;
use super::state::State;
use super::zone::{PartZone, entry_header};
use super::{COLLECT, ONCE_WRITTEN, planted};
use durasim_contract::{Action, Actions, ActiveFault, CopyRequest, Origin, Token, Wait};
use durasim_types::{Cause, EventKind, LineAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The collector of a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Gc {
    chunk: Option<Chunk>,
    /// LogHead has to come here before the threshold is looked at again.
    not_before: u64,
}

/// Successive log entries, with those that have been visited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Chunk {
    next: u64,
    end: u64,
    moving: Option<Moving>,
}

/// An entry in flight to LogHead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Moving {
    home: LineAddr,
    from: u64,
    to: u64,
    token: Token,
    /// The eWPQ names the new place, LogHead has not moved.
    named: bool,
}

impl Gc {
    /// Whether a chunk is being collected: LogTail stays until its end.
    pub fn is_at_work(&self) -> bool {
        self.chunk.is_some()
    }

    /// The copy that is in flight to LogHead.
    pub fn copying(&self) -> Option<Token> {
        self.moving().map(|moving| moving.token)
    }

    /// Whether an eWPQ entry names the place at LogHead.
    pub fn has_named(&self) -> bool {
        self.moving().is_some_and(|moving| moving.named)
    }

    fn moving(&self) -> Option<Moving> {
        self.chunk.as_ref().and_then(|chunk| chunk.moving)
    }

    /// Whether a state that was read from outside is impossible.
    pub fn contradicts(&self, log_head: u64) -> bool {
        // A chunk in which nothing moves is at its end.
        let moving = |chunk: &Chunk| chunk.moving.is_some_and(|m| m.to == log_head && m.from < log_head);
        self.chunk.as_ref().is_some_and(|chunk| chunk.end > log_head || !moving(chunk))
    }
}

impl State {
    /// A premature flush has taken this log entry: the window may have become too wide.
    pub(super) fn collect_if_wide(&mut self, controller: usize, newest: u64, out: &mut Actions) {
        let part = &self.contents.parts[controller];
        let wide = part.ewpq.window() > self.spec.log_gc_trigger_entries;
        if wide && part.gc.chunk.is_none() && part.ewpq.log_head() >= part.gc.not_before {
            // The newest entry is in flight into the log.
            self.collect(controller, newest, out);
        }
    }

    /// The log is full, but most of it may be invalid: what a premature flush waits for until there is room.
    pub(super) fn make_room_in_the_log(&mut self, controller: usize, out: &mut Actions) -> Option<Token> {
        let part = &self.contents.parts[controller];
        if let Some(token) = part.gc.copying() {
            return Some(token);
        }
        // Entries that are all valid would be moved around without end.
        let invalid = part.ewpq.window().saturating_sub(part.ewpq.log_entries());
        if invalid < u64::from(self.spec.log_gc_chunk_entries) {
            return None;
        }
        self.collect(controller, part.ewpq.log_head(), out);
        let part = &self.contents.parts[controller];
        part.gc.copying().or_else(|| {
            // LogTail stays at an entry whose fate is being decided.
            let oldest = part.ewpq.oldest_in(part.ewpq.log_tail(), part.ewpq.log_head())?;
            match self.contents.registers.get(oldest.tx)?.phase {
                Phase::StoringLen(token) => Some(token),
                _ => None,
            }
        })
    }

    /// Starts on the chunk at LogTail, which ends before this entry at the latest.
    fn collect(&mut self, controller: usize, end: u64, out: &mut Actions) {
        let part = &mut self.contents.parts[controller];
        let next = part.ewpq.log_tail();
        let end = end.min(next + u64::from(self.spec.log_gc_chunk_entries));
        part.gc.chunk = Some(Chunk { next, end, moving: None });
        self.counters.gc_chunks += 1;
        self.go_on(controller, out);
    }

    /// Whether this entry may be appended anew: its transaction runs, and its commit is not being decided.
    fn is_running(&self, tx: TxId) -> bool {
        self.contents.registers.get(tx).is_some_and(|open| open.phase == Phase::Running)
    }

    /// Continues with a chunk until an entry is in flight or the chunk is at its end.
    fn go_on(&mut self, controller: usize, out: &mut Actions) {
        loop {
            let part = &self.contents.parts[controller];
            let Some(chunk) = &part.gc.chunk else { return };
            let Some(entry) = part.ewpq.oldest_in(chunk.next, chunk.end) else { break };
            let running = self.is_running(entry.tx);
            // An early end: what was moved so far makes room for the rest.
            if running && part.ewpq.window() >= part.zone.log_entries {
                break;
            }
            let part = &mut self.contents.parts[controller];
            let chunk = part.gc.chunk.as_mut().expect("just seen");
            chunk.next = entry.log + 1;
            if running && entry.migration.is_none() {
                self.contents.tokens += 1;
                let (to, token) = (part.ewpq.log_head(), Token(self.contents.tokens));
                // The eWPQ entry names the new place when the copy is there.
                let is_named_first = self.fault.skips(planted::GC_NAMES_FIRST);
                chunk.moving = Some(Moving { home: entry.home, from: entry.log, to, token, named: is_named_first });
                if !self.fault.skips(planted::GC_COPIES_NO_HEADER) {
                    let header = entry_header(entry.home, entry.hardware_id);
                    let at = part.zone.entry_header_at(to);
                    out.append(Origin::Controller, at, &header, Cause::Metadata, None);
                }
                out.push(Action::Copy(CopyRequest {
                    by: Origin::Controller,
                    from: part.zone.entry_data(entry.log),
                    to: part.zone.entry_data(to),
                    len: 64,
                    below_held: false,
                    cause: Cause::Log,
                    token: Some(token),
                }));
                if is_named_first {
                    part.ewpq.relocate(entry.home, to, &part.zone, self.fault, out);
                }
                return;
            }
            if !running {
                self.migrate_one(controller, entry.home, out);
            }
        }
        self.slide(controller);
    }

    /// The end of a chunk: LogTail slides to the next valid entry, which may be one of the chunk that is not home yet.
    fn slide(&mut self, controller: usize) {
        let part = &mut self.contents.parts[controller];
        let Some(chunk) = part.gc.chunk.take() else { return };
        part.gc.not_before = part.ewpq.log_head() + u64::from(self.spec.log_gc_chunk_entries);
        if self.fault.skips(planted::GC_SLIDES_OVER_COMMITTED) {
            part.ewpq.slide_to(chunk.next);
        }
        part.slide();
    }

    /// A write under this token has arrived. If it was the copy of an entry, the eWPQ names the new place. An entry
    /// that was loaded, discarded or committed in the meantime stays what and where it is.
    pub(super) fn collected(&mut self, controller: usize, token: Token, out: &mut Actions) -> bool {
        let part = &self.contents.parts[controller];
        let Some(moving) = part.gc.moving().filter(|moving| moving.token == token) else { return false };
        let is_moved = |m: &&Mapping| (m.log, m.indirect) == (moving.from, false) && m.migration.is_none();
        let entry = part.ewpq.entry(moving.home, &part.zone).filter(is_moved);
        let is_named = moving.named || entry.is_some_and(|entry| self.is_running(entry.tx));
        let part = &mut self.contents.parts[controller];
        let chunk = part.gc.chunk.as_mut().expect("something moves");
        if !is_named {
            // If it has committed, it is to go home.
            (chunk.next, chunk.moving) = (moving.from, None);
            self.go_on(controller, out);
            return true;
        }
        chunk.moving = Some(Moving { named: true, ..moving });
        if !moving.named {
            part.ewpq.relocate(moving.home, moving.to, &part.zone, self.fault, out);
        }
        self.counters.gc_moved_entries += 1;
        out.event(EventKind::DesignStep, moving.home.base());
        out.push(Action::Resume { id: COLLECT | controller as u64 });
        true
    }

    /// LogHead moves by one, no sooner than the eWPQ entry names the new place (section 4.4).
    pub(super) fn move_log_head(&mut self, controller: usize, out: &mut Actions) {
        let part = &mut self.contents.parts[controller];
        if !self.fault.skips(planted::GC_KEEPS_LOG_HEAD) {
            part.ewpq.move_log_head();
        }
        if let Some(chunk) = &mut part.gc.chunk {
            chunk.moving = None;
        }
        self.go_on(controller, out);
    }
}

/// Log extension (section 4.4): a log zone that is used up grows by space elsewhere, taken when it is needed; the end of
/// the default log zone holds the indirect indexes to it.
///
/// The new space is handed out in chunks of log entries. The address of a chunk goes into the index at the end of the log
/// before the first of its entries is used; an eWPQ entry has one more bit that says whether its log entry has to be
/// looked up there. Garbage collection, LogHead and LogTail know the default log alone: entries of the extension are used
/// again as they become free [D:hercules-log-extension].
///
/// Section 4.2 (transaction abortion) proposes a threshold, 80 % of persistent memory for example: a chunk that would
/// exceed it is not handed out, and the transaction that needs it aborts.
///
/// This is the extension of the log of one controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogExtension {
    /// Chunks that have been handed out.
    chunks: u64,
    /// Entries from here on were never in use.
    next: u64,
    /// Free entries before that one.
    free: BTreeSet<u64>,
    /// A chunk is being handed out: the line that needs it waits.
    asked: bool,
}

/// The destination of a line that finds the log full.
pub(super) enum LogPlacement {
    /// To this entry of the extension.
    Entry(u64),
    /// Nowhere yet.
    After(Wait),
    /// Nowhere.
    None,
}

impl LogExtension {
    /// Hands out a chunk: its address is in the index before anything is in the chunk.
    fn add_chunk(&mut self, zone: &PartZone, fault: ActiveFault, out: &mut Actions) {
        if !fault.skips(planted::LOG_INDEX_NOT_WRITTEN) {
            let (at, chunk) = (zone.index_slot(self.chunks), zone.chunk(self.chunks).0.to_le_bytes());
            out.append(Origin::Controller, at, &chunk, Cause::Metadata, None);
        }
        self.chunks += 1;
    }

    /// The free entry that is used next, if there is one.
    fn free_entry(&self, zone: &PartZone) -> Option<u64> {
        let fresh = Some(self.next).filter(|next| *next < self.chunks * zone.chunk_entries);
        self.free.first().copied().or(fresh)
    }

    /// An entry is in use from now on.
    pub fn take(&mut self, entry: u64) {
        if !self.free.remove(&entry) {
            self.next = entry + 1;
        }
    }

    /// An entry is free again.
    pub fn release(&mut self, entry: u64) {
        self.free.insert(entry);
    }

    /// Chunks that have been handed out.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Whether entries are in use.
    pub fn is_in_use(&self) -> bool {
        self.next > self.free.len() as u64
    }

    /// Whether a state that was read from outside is impossible: `used` are the entries that the eWPQ names.
    pub fn contradicts(&self, zone: &PartZone, used: impl Iterator<Item = u64>) -> bool {
        let used: Vec<u64> = used.collect();
        self.chunks > zone.chunks
            || self.next > self.chunks * zone.chunk_entries
            || self.free.last().is_some_and(|entry| *entry >= self.next)
            || used.len() as u64 + self.free.len() as u64 != self.next
            || used.iter().any(|entry| *entry >= self.next || self.free.contains(entry))
    }
}

impl State {
    /// Bytes of persistent memory that the design uses: the log zone and what was handed out beside it.
    fn used_bytes(&self) -> u64 {
        let chunks: u64 = self.contents.parts.iter().map(|part| part.extension.chunks * part.zone.chunk_bytes).sum();
        let blocks =
            self.contents.parts.iter().map(|part| part.ewpq.chained_blocks(&part.zone) * part.zone.block_bytes);
        self.spec.log_zone_bytes + chunks + blocks.sum::<u64>()
    }

    /// Whether this many more bytes would be too many.
    pub(super) fn exceeds_threshold(&self, bytes: u64) -> bool {
        let used = u128::from(self.used_bytes() + bytes);
        used * 100 > u128::from(self.pmem_bytes) * u128::from(self.spec.abort_threshold_percent)
    }

    /// The log is full: an entry of the extension, which may have to grow first.
    pub(super) fn extend_log(&mut self, controller: usize, out: &mut Actions) -> LogPlacement {
        let part = &self.contents.parts[controller];
        if let Some(entry) = part.extension.free_entry(&part.zone) {
            return LogPlacement::Entry(entry);
        }
        if part.extension.chunks >= part.zone.chunks || self.exceeds_threshold(part.zone.chunk_bytes) {
            return LogPlacement::None;
        }
        let part = &mut self.contents.parts[controller];
        if !part.extension.asked {
            part.extension.asked = true;
            return LogPlacement::After(Wait::Cycles(self.spec.log_extension_cycles));
        }
        part.extension.asked = false;
        part.extension.add_chunk(&part.zone, self.fault, out);
        self.counters.log_chunks += 1;
        LogPlacement::After(ONCE_WRITTEN)
    }
}
