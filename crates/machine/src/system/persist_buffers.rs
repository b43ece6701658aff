//! Battery-backed persist buffers of the domain `bbb` (BBB: Alshboul, Ramrakhyani, Wang, Tuck and Solihin, HPCA 2021).
//!
//! Each core has a buffer of lines beside its L1D. A store to persistent memory enters both in one step, so it becomes
//! durable when it becomes visible. Stores to a line that is in the buffer join it. From here alone persistent memory is
//! written: a dirty line that leaves the last level is dropped, after the entry of the line, if there still is one, has
//! begun to drain. Entries drain to the write queue first come, first served, while a buffer holds more than its
//! threshold (DEVIATIONS.md, bbb-drain); an entry stays until the queue has accepted it. When another core stores to a line, the entry moves to the
//! buffer of that core; a line is in one buffer at most, beside older versions of it that drain.

use super::System;
use crate::PersistBufferConfig;
use durasim_design::{CrashSink, Token};
use durasim_memory::{Write, WriteToken};
use durasim_types::{CoreId, Cycle, Line, LineAddr};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::Hasher;

/// Tokens with this bit are entries that drain; it is not used by designs.
const DRAIN: u64 = 1 << 62;

/// Whether a write is an entry that drains.
pub(super) const fn is_drain_token(token: WriteToken) -> bool {
    token.0 & (DRAIN | 1 << 63) == DRAIN
}

/// A line of persistent memory that is newer here than in memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    line: LineAddr,
    #[serde(with = "serde_bytes")]
    data: Line,
}

/// The buffer of one core.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Buffer {
    /// Lines that stores can join, oldest first.
    resident: VecDeque<Entry>,
    /// Entries that wait for the write queue, which has their data.
    draining: VecDeque<u64>,
}

impl Buffer {
    fn position(&self, line: LineAddr) -> Option<usize> {
        self.resident.iter().position(|entry| entry.line == line)
    }

    fn taken(&self) -> usize {
        self.resident.len() + self.draining.len()
    }
}

/// Counters of the buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct BufferStats {
    stores: u64,
    joined: u64,
    moved: u64,
    drained: u64,
    forced: u64,
    full: u64,
    dropped: u64,
}

/// The buffers of all cores; none where the domain is another one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PersistBuffers {
    cores: Vec<Buffer>,
    entries: usize,
    /// A buffer with more resident entries drains its oldest one.
    keeps: usize,
    drains: u64,
    stats: BufferStats,
}

impl PersistBuffers {
    /// Empty buffers for so many cores.
    pub(super) fn new(config: &PersistBufferConfig, cores: usize) -> Self {
        let entries = config.entries as usize;
        PersistBuffers {
            cores: vec![Buffer::default(); cores],
            entries,
            keeps: entries * config.drain_threshold_percent as usize / 100,
            ..PersistBuffers::default()
        }
    }

    /// Whether the machine has such buffers.
    #[inline]
    pub(super) fn exist(&self) -> bool {
        !self.cores.is_empty()
    }

    /// The entry of a line that stores can join, and whose buffer it is in.
    fn find(&self, line: LineAddr) -> Option<(usize, usize)> {
        self.cores.iter().enumerate().find_map(|(core, buffer)| Some((core, buffer.position(line)?)))
    }

    /// Lines whose newest data are here and not in the write queue.
    pub(super) fn resident_lines(&self) -> usize {
        self.cores.iter().map(|buffer| buffer.resident.len()).sum()
    }

    /// The entry of a line that stores can join, with its core.
    pub(super) fn copies(&self, line: LineAddr) -> impl Iterator<Item = (CoreId, Line)> + '_ {
        let entry = self.find(line).map(|(core, at)| (CoreId(core as u16), self.cores[core].resident[at].data));
        entry.into_iter()
    }

    /// Saves what a power failure finds here. `draining` are the writes on their way to the queue, oldest first.
    pub(super) fn save<'a>(
        &self,
        draining: impl Iterator<Item = &'a Write>,
        sink: &mut CrashSink<'_>,
    ) -> Result<(), durasim_design::BudgetSpent> {
        for write in draining {
            sink.write(write.line.base(), &write.data)?;
        }
        let residents = self.cores.iter().flat_map(|buffer| &buffer.resident);
        residents.into_iter().try_for_each(|entry| sink.write(entry.line.base(), &entry.data))
    }

    pub(super) fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        if self.cores.iter().any(|buffer| buffer.taken() >= self.entries) {
            mark("persist_buffer_full");
        }
        if self.cores.iter().any(|buffer| !buffer.draining.is_empty()) {
            mark("persist_buffer_drains");
        }
    }

    pub(super) fn reset_stats(&mut self) {
        self.stats = BufferStats::default();
    }

    pub(super) fn digest(&self, hasher: &mut dyn Hasher) {
        for buffer in &self.cores {
            hasher.write_u64(buffer.draining.len() as u64);
            for entry in &buffer.resident {
                hasher.write_u64(entry.line.0);
                hasher.write(&entry.data);
            }
        }
    }

    pub(super) fn stats(&self, stats: &mut durasim_types::Stats) {
        if !self.exist() {
            return;
        }
        let s = &self.stats;
        stats.count("bbb.stores", s.stores, "Stores that entered a persist buffer");
        stats.count("bbb.joined", s.joined, "Stores that joined an entry of their line");
        stats.count("bbb.moved", s.moved, "Entries that moved to the buffer of another core");
        stats.count("bbb.drained", s.drained, "Entries that left for the write queue");
        stats.count("bbb.forced", s.forced, "Entries that had to, before the buffer was fuller than its threshold");
        stats.count("bbb.full", s.full, "Times a store found the buffer full and waited");
        stats.count("bbb.dropped", s.dropped, "Dirty lines that left the last level and were dropped");
    }
}

impl System {
    /// What a store to `line` has to wait for before it can enter the buffer of `core`. `None`: nothing.
    pub(super) fn persist_buffer_full(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Option<Token> {
        let index = core.0 as usize;
        let entries = self.persist_buffers.entries;
        let full = |s: &System| {
            let buffer = &s.persist_buffers.cores[index];
            buffer.taken() >= entries && buffer.position(line).is_none()
        };
        if !full(self) {
            return None;
        }
        if self.persist_buffers.cores[index].draining.is_empty() {
            self.drain_entry(index, 0, at);
            if !full(self) {
                return None;
            }
        }
        let waits_for = self.persist_buffers.cores[index].draining.front().copied();
        self.persist_buffers.stats.full += u64::from(waits_for.is_some());
        waits_for.map(Token)
    }

    /// A store that has just been made to a line in the L1D of `core` enters its buffer, which has room.
    pub(super) fn enter_persist_buffer(&mut self, core: CoreId, line: LineAddr, data: Line) {
        let index = core.0 as usize;
        let buffers = &mut self.persist_buffers;
        buffers.stats.stores += 1;
        match buffers.find(line) {
            Some((owner, position)) if owner == index => {
                buffers.stats.joined += 1;
                buffers.cores[index].resident[position].data = data;
                return;
            }
            Some((owner, position)) => {
                buffers.stats.moved += 1;
                buffers.cores[owner].resident.remove(position);
            }
            None => {}
        }
        buffers.cores[index].resident.push_back(Entry { line, data });
    }

    /// Lets the oldest entry of `core` drain if its buffer is fuller than it should be and none drains yet.
    pub(super) fn relieve_persist_buffer(&mut self, core: CoreId, at: Cycle) {
        let index = core.0 as usize;
        let buffer = &self.persist_buffers.cores[index];
        if buffer.resident.len() > self.persist_buffers.keeps && buffer.draining.is_empty() {
            self.drain_entry(index, 0, at);
        }
    }

    /// A dirty line leaves the last level: memory gets it from the buffers, if it has not got it yet.
    pub(super) fn drop_write_back(&mut self, line: LineAddr, at: Cycle) {
        self.persist_buffers.stats.dropped += 1;
        self.drain_line(line, at);
    }

    /// The entry of a line drains, if there is one.
    pub(super) fn drain_line(&mut self, line: LineAddr, at: Cycle) {
        if self.persist_buffers.find(line).is_some() {
            // What is due happens while the entry is still in its buffer.
            self.advance(at);
            if let Some((index, position)) = self.persist_buffers.find(line) {
                self.persist_buffers.stats.forced += 1;
                self.drain_entry(index, position, at);
            }
        }
    }

    fn drain_entry(&mut self, index: usize, position: usize, at: Cycle) {
        self.advance(at);
        let buffers = &mut self.persist_buffers;
        // An acceptance that was due may have let the entry drain.
        let Some(entry) = buffers.cores[index].resident.remove(position) else { return };
        buffers.drains += 1;
        buffers.stats.drained += 1;
        let token = DRAIN | buffers.drains;
        buffers.cores[index].draining.push_back(token);
        let cause = self.home_cause(entry.line);
        let write = Write { token: Some(WriteToken(token)), ..Write::line(entry.line, entry.data, cause) };
        self.submit(CoreId(index as u16), write, at);
    }

    /// The write queue has accepted an entry, whose place is free now.
    pub(super) fn entry_drained(&mut self, token: WriteToken, at: Cycle) {
        let buffers = &mut self.persist_buffers.cores;
        let owner = buffers.iter().position(|buffer| buffer.draining.contains(&token.0));
        let index = owner.expect("an entry that drains has its place in a buffer");
        buffers[index].draining.retain(|&other| other != token.0);
        self.forget_outstanding(token.0, at);
        self.relieve_persist_buffer(CoreId(index as u16), at);
    }

    /// Checks that a line has one entry that stores can join, which is the newest version, and a copy in a cache.
    pub(super) fn check_persist_buffers(&self, line: LineAddr) -> Result<(), String> {
        let entries = self.persist_buffers.cores.iter().flat_map(|buffer| &buffer.resident);
        let mut entries = entries.filter(|entry| entry.line == line);
        let Some(entry) = entries.next() else { return Ok(()) };
        if entries.next().is_some() {
            return Err(format!("{line}: it is in two persist buffers, or twice in one"));
        }
        match self.newest_cached(line) {
            Some(newest) if !newest.dirty => Err(format!("{line}: clean in all caches, and still in a persist buffer")),
            Some(newest) if newest.data != entry.data => Err(format!("{line}: a persist buffer has another version")),
            Some(_) => Ok(()),
            None => Err(format!("{line}: in a persist buffer, and in no cache")),
        }
    }
}
