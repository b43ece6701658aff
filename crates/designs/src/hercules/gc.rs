//! Garbage collection on log entries (section 4.4, Figure 4). LogHead and LogTail frame the window of log entries in
//! use; one transaction that stays open for long keeps LogTail where it is, however many entries after it are invalid.
//!
//! When the two are further apart than a threshold, the controller takes a chunk of successive entries at LogTail. It
//! appends each valid uncommitted one at LogHead, lets its eWPQ entry name the new place once the copy is there, and
//! only then moves LogHead by one. Entries of committed transactions are sent home, which is where they are wanted.
//! Then LogTail slides to the next valid entry.
//!
//! The paper collects when the threshold is exceeded. So does a log that is full while a chunk and more of it is
//! invalid: a smaller zone would never come to the threshold [D:hercules-gc].

use super::registers::Phase;
use super::{COLLECT, State};
use durasim_design::{Action, Actions, Token};
use durasim_types::{EventKind, LineAddr, TxId};
use serde::{Deserialize, Serialize};

/// The collector of a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Gc {
    chunk: Option<Chunk>,
    /// LogHead has to come here before the threshold is looked at again.
    not_before: u64,
}

/// Successive log entries, some of which have been looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Chunk {
    next: u64,
    end: u64,
    moving: Option<Moving>,
}

/// An entry in flight to LogHead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moving {
    pub home: LineAddr,
    pub from: u64,
    pub to: u64,
    pub token: Token,
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

    /// Why a state that was read from outside cannot be, if it cannot.
    pub fn contradicts(&self, log_head: u64) -> bool {
        // A chunk in which nothing moves is at its end.
        let moving = |chunk: &Chunk| chunk.moving.is_some_and(|m| m.to == log_head && m.from < log_head);
        self.chunk.as_ref().is_some_and(|chunk| chunk.end > log_head || !moving(chunk))
    }
}

impl State {
    /// A premature flush has taken this log entry: the window may have become too wide.
    pub(super) fn collect_if_wide(&mut self, controller: usize, newest: u64, out: &mut Actions) {
        let part = &self.parts[controller];
        let wide = part.ewpq.window() > self.spec.log_gc_trigger_entries;
        if wide && part.gc.chunk.is_none() && part.ewpq.log_head() >= part.gc.not_before {
            // The newest entry is in flight into the log.
            self.collect(controller, newest, out);
        }
    }

    /// The log is full, but most of it may be invalid: what a premature flush waits for until there is room.
    pub(super) fn make_room_in_the_log(&mut self, controller: usize, out: &mut Actions) -> Option<Token> {
        let part = &self.parts[controller];
        if let Some(token) = part.gc.copying() {
            return Some(token);
        }
        // Entries that are all valid would be moved around without end.
        let invalid = part.ewpq.window().saturating_sub(part.ewpq.log_entries());
        if invalid < u64::from(self.spec.log_gc_chunk_entries) {
            return None;
        }
        self.collect(controller, part.ewpq.log_head(), out);
        let part = &self.parts[controller];
        part.gc.copying().or_else(|| {
            // LogTail stays at an entry whose fate is being decided.
            let oldest = part.ewpq.oldest_in(part.ewpq.log_tail(), part.ewpq.log_head())?;
            match self.registers.get(oldest.tx)?.phase {
                Phase::StoringLen(token) => Some(token),
                _ => None,
            }
        })
    }

    /// Starts on the chunk at LogTail, which ends before this entry at the latest.
    fn collect(&mut self, controller: usize, end: u64, out: &mut Actions) {
        let part = &mut self.parts[controller];
        let next = part.ewpq.log_tail();
        let end = end.min(next + u64::from(self.spec.log_gc_chunk_entries));
        part.gc.chunk = Some(Chunk { next, end, moving: None });
        self.counters.gc_chunks += 1;
        self.go_on(controller, out);
    }

    /// Whether this entry may be appended anew: its transaction runs, nobody is about to decide on it.
    pub(super) fn is_running(&self, tx: TxId) -> bool {
        self.registers.get(tx).is_some_and(|open| open.phase == Phase::Running)
    }

    /// Continues with a chunk until an entry is in flight or the chunk is at its end.
    fn go_on(&mut self, controller: usize, out: &mut Actions) {
        loop {
            let part = &self.parts[controller];
            let Some(chunk) = &part.gc.chunk else { return };
            let Some(entry) = part.ewpq.oldest_in(chunk.next, chunk.end) else { break };
            let running = self.is_running(entry.tx);
            // An early end: what was moved so far makes room for the rest.
            if running && part.ewpq.window() >= part.zone.log_entries {
                break;
            }
            let part = &mut self.parts[controller];
            let chunk = part.gc.chunk.as_mut().expect("just seen");
            chunk.next = entry.log + 1;
            if running && entry.migration.is_none() {
                self.tokens += 1;
                let (to, token) = (part.ewpq.log_head(), Token(self.tokens));
                let moving = Moving { home: entry.home, from: entry.log, to, token, named: false };
                chunk.moving = Some(moving);
                part.append_at_log_head(&entry, &moving, self.fault, out);
                return;
            }
            if !running {
                self.migrate_one(controller, entry.home, out);
            }
        }
        self.slide(controller);
    }

    /// The end of a chunk: LogTail slides to the next valid entry.
    fn slide(&mut self, controller: usize) {
        let part = &mut self.parts[controller];
        let Some(chunk) = part.gc.chunk.take() else { return };
        part.gc.not_before = part.ewpq.log_head() + u64::from(self.spec.log_gc_chunk_entries);
        part.slide_behind_chunk(chunk.next, self.fault);
    }

    /// A write under this token has arrived: was it the copy of an entry? Then the eWPQ names the new place. An entry
    /// that was loaded, discarded or committed in the meantime stays what and where it is.
    pub(super) fn collected(&mut self, controller: usize, token: Token, out: &mut Actions) -> bool {
        let part = &self.parts[controller];
        let Some(moving) = part.gc.moving().filter(|moving| moving.token == token) else { return false };
        let is_named = self.is_still_valid_and_open(part, &moving);
        let part = &mut self.parts[controller];
        let chunk = part.gc.chunk.as_mut().expect("something moves");
        if !is_named {
            // If it has committed, it is to go home.
            (chunk.next, chunk.moving) = (moving.from, None);
            self.go_on(controller, out);
            return true;
        }
        chunk.moving = Some(Moving { named: true, ..moving });
        part.name_new_place(&moving, self.fault, out);
        self.counters.gc_moved_entries += 1;
        out.event(EventKind::DesignStep, moving.home.base());
        out.push(Action::Resume { id: COLLECT | controller as u64 });
        true
    }

    /// LogHead moves by one, no sooner than the eWPQ entry names the new place (section 4.4).
    pub(super) fn move_log_head(&mut self, controller: usize, out: &mut Actions) {
        let part = &mut self.parts[controller];
        part.move_log_head(self.fault);
        if let Some(chunk) = &mut part.gc.chunk {
            chunk.moving = None;
        }
        self.go_on(controller, out);
    }
}
