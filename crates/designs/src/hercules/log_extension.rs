//! Log extension (section 4.4): a log zone that is used up grows by space elsewhere, taken when it is needed; the end of
//! the default log zone holds the indirect indexes to it.
//!
//! The new space is handed out in chunks of log entries. The address of a chunk goes into the index at the end of the log
//! before the first of its entries is used; an eWPQ entry has one more bit that tells whether its log entry has to be
//! looked up there. Garbage collection, LogHead and LogTail know the default log alone: entries of the extension are
//! used again as they become free [D:hercules-log-extension].
//!
//! Section 4.2 (transaction abortion) proposes a threshold, 80 % of persistent memory for example: a chunk that would
//! exceed it is not handed out, and the transaction that needs it aborts.

use super::zone::PartZone;
use super::{ONCE_WRITTEN, State};
use durasim_design::{Actions, ActiveFault, Wait};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The extension of the log of a controller.
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

/// Where a line that finds the log full goes.
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
        zone.index_chunk(self.chunks, fault, out);
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

    /// Why a state that was read from outside cannot be, if it cannot: `used` are the entries that the eWPQ names.
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
        let chunks: u64 = self.parts.iter().map(|part| part.extension.chunks * part.zone.chunk_bytes).sum();
        let blocks = self.parts.iter().map(|part| part.ewpq.chained_blocks(&part.zone) * part.zone.block_bytes);
        self.spec.log_zone_bytes + chunks + blocks.sum::<u64>()
    }

    /// Whether so many bytes more would be too many.
    pub(super) fn exceeds_threshold(&self, bytes: u64) -> bool {
        let used = u128::from(self.used_bytes() + bytes);
        used * 100 > u128::from(self.pmem_bytes) * u128::from(self.spec.abort_threshold_percent)
    }

    /// The log is full: an entry of the extension, which may have to grow first.
    pub(super) fn extend_log(&mut self, controller: usize, out: &mut Actions) -> LogPlacement {
        let part = &self.parts[controller];
        if let Some(entry) = part.extension.free_entry(&part.zone) {
            return LogPlacement::Entry(entry);
        }
        if part.extension.chunks >= part.zone.chunks || self.exceeds_threshold(part.zone.chunk_bytes) {
            return LogPlacement::None;
        }
        let part = &mut self.parts[controller];
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
