//! Held entries: they give up their places, become ordinary ones, or vanish.

use super::Controller;
use crate::media::EntryUntil;
use crate::queue::Entry;
use crate::{Write, WriteToken};
use durasim_types::{LineAddr, Picos};

impl Controller {
    /// Writes wait for room: as many of the oldest yielding entries become ordinary as it takes for each of those writes to
    /// have an entry that leaves for it.
    pub(super) fn yield_held(&mut self, at_ps: Picos) {
        let has_room = self.occupied() < self.write_queue_entries;
        if self.held == 0 || self.inbound.is_empty() || has_room {
            return;
        }
        let follows_held =
            |at: usize, line| self.queue.iter().take(at).any(|older| older.is_held() && older.write.line == line);
        // An entry that is free with its command leaves no place when the cells have it.
        let leaves_place = |entry: &Entry| self.write_entry_until == EntryUntil::Data || entry.finish_ps.is_none();
        let is_leaving = |at: usize, e: &Entry| !e.is_held() && leaves_place(e) && !follows_held(at, e.write.line);
        let leaving = self.queue.iter().enumerate().filter(|(at, entry)| is_leaving(*at, entry)).count();
        let missing = self.inbound().filter(|write| write.mask != 0).count().saturating_sub(leaving);
        if missing == 0 {
            return;
        }
        self.upcoming = None;
        for entry in self.queue.iter_mut().filter(|e| e.is_held() && e.write.yields).take(missing) {
            entry.write.held = None;
            entry.start_bound_ps = entry.start_bound_ps.max(at_ps);
            self.held -= 1;
            self.counters[usize::from(entry.write.line.0 >= self.second_line)].stats.yielded += 1;
        }
        self.index_release();
        self.submit_to_rows(at_ps);
        self.drain_if_full(at_ps);
    }

    /// Held entries of `group` become ordinary ones at `at_ps`; those of one line, if one is named.
    pub fn release(&mut self, group: u64, of_line: Option<LineAddr>, at_ps: Picos) {
        let is_meant = |write: &Write| write.held == Some(group) && of_line.is_none_or(|line| line == write.line);
        self.upcoming = None;
        self.index_release();
        for entry in self.queue.iter_mut().filter(|e| is_meant(&e.write)) {
            entry.write.held = None;
            entry.start_bound_ps = entry.start_bound_ps.max(at_ps);
            self.held -= 1;
        }
        if of_line.is_none() {
            // Those that still wait for room too: they would come in held without end.
            for waiting in self.inbound.iter_mut().filter(|w| w.write.held == Some(group)) {
                waiting.write.held = None;
            }
        }
        self.submit_to_rows(at_ps);
        self.ask_again();
        self.refresh();
    }

    /// Held entries of `group` vanish, and those of the group that still wait for room: their tokens are given back,
    /// since no controller will acknowledge them.
    pub fn discard(&mut self, group: u64, at_ps: Picos) -> Vec<WriteToken> {
        let waiting = self.inbound().filter(|w| w.held == Some(group));
        let tokens = waiting.filter_map(|w| w.token).collect();
        self.inbound.retain(|w| w.write.held != Some(group));
        for entry in self.queue.iter().filter(|e| e.write.held == Some(group)) {
            self.counters[usize::from(entry.write.line.0 >= self.second_line)].stats.discarded += 1;
        }
        (self.upcoming, self.index) = (None, None);
        self.queue.retain(|e| e.write.held != Some(group));
        self.held = self.queue.iter().filter(|e| e.is_held()).count();
        self.freed_ps = self.freed_ps.max(at_ps);
        self.submit_to_rows(at_ps);
        self.ask_again();
        self.refresh();
        tokens
    }
}
