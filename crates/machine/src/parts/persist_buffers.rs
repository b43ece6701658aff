//! Battery-backed persist buffers of the domain `bbb` (BBB: Alshboul, Ramrakhyani, Wang, Tuck and Solihin, HPCA 2021).
//!
//! Each core has a buffer of lines beside its L1D. A store to persistent memory enters both in one step, so it becomes
//! durable when it becomes visible. Stores to a line that is in the buffer join it. From here alone persistent memory is
//! written: a dirty line that leaves the last level is dropped, after the entry of the line, if there still is one, has
//! begun to drain. Entries drain to the write queue first come, first served, while a buffer holds more than its
//! threshold (DEVIATIONS.md, bbb-drain); an entry stays until the acknowledgement that the queue has accepted it is back.
//! If another core stores to a line, the entry moves to the buffer of that core; a line is in one buffer at most, beside
//! older versions of it that drain.

use crate::setup::config::PersistBufferConfig;
use durasim_cache::Version;
use durasim_contract::{CrashSink, Origin, Token};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Line, LineAddr};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::Hasher;

/// Tokens with this bit are entries that drain; it is not used by designs.
const DRAIN: u64 = 1 << 62;

/// Whether a write is an entry that drains.
pub(crate) const fn is_drain_token(token: WriteToken) -> bool {
    token.number & (DRAIN | 1 << 63) == DRAIN
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
    /// Empty buffers for this many cores.
    pub(crate) fn new(config: &PersistBufferConfig, cores: usize) -> Self {
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
    pub(crate) fn exist(&self) -> bool {
        !self.cores.is_empty()
    }

    /// The entry of a line that stores can join, and whose buffer it is in.
    fn find(&self, line: LineAddr) -> Option<(usize, usize)> {
        self.cores.iter().enumerate().find_map(|(core, buffer)| Some((core, buffer.position(line)?)))
    }

    /// Whether a store of `core` to `line` finds no place in its buffer.
    pub(crate) fn is_full_for(&self, core: CoreId, line: LineAddr) -> bool {
        let buffer = &self.cores[core.0 as usize];
        buffer.taken() >= self.entries && buffer.position(line).is_none()
    }

    /// Whether no entry of `core` drains.
    pub(crate) fn none_drains(&self, core: CoreId) -> bool {
        self.cores[core.0 as usize].draining.is_empty()
    }

    /// Wait of a store of `core` that has found its buffer full: for the oldest entry that drains.
    pub(crate) fn wait_for_place(&mut self, core: CoreId) -> Option<Token> {
        let waits_for = self.cores[core.0 as usize].draining.front().copied();
        self.stats.full += u64::from(waits_for.is_some());
        waits_for.map(Token)
    }

    /// A store that has just been made to a line in the L1D of `core` enters its buffer, which has room.
    pub(crate) fn enter(&mut self, core: CoreId, line: LineAddr, data: Line) {
        let index = core.0 as usize;
        self.stats.stores += 1;
        match self.find(line) {
            Some((owner, position)) if owner == index => {
                self.stats.joined += 1;
                self.cores[index].resident[position].data = data;
                return;
            }
            Some((owner, position)) => {
                self.stats.moved += 1;
                self.cores[owner].resident.remove(position);
            }
            None => {}
        }
        self.cores[index].resident.push_back(Entry { line, data });
    }

    /// Whether the buffer of `core` is fuller than it should be, and none of its entries drains yet.
    pub(crate) fn has_to_drain(&self, core: CoreId) -> bool {
        let buffer = &self.cores[core.0 as usize];
        buffer.resident.len() > self.keeps && buffer.draining.is_empty()
    }

    /// Whether a line has an entry that stores can join.
    pub(crate) fn has(&self, line: LineAddr) -> bool {
        self.find(line).is_some()
    }

    /// A dirty line has left the last level and was dropped.
    pub(crate) fn count_dropped(&mut self) {
        self.stats.dropped += 1;
    }

    /// The oldest entry of `core` begins to drain: its write.
    pub(crate) fn drain_oldest(&mut self, core: CoreId, cause: impl Fn(LineAddr) -> Cause) -> Option<Write> {
        self.drain(core.0 as usize, 0, cause)
    }

    /// The entry of a line begins to drain before its turn, if there is one: its core and its write.
    pub(crate) fn drain_line(&mut self, line: LineAddr, cause: impl Fn(LineAddr) -> Cause) -> Option<(CoreId, Write)> {
        let (index, position) = self.find(line)?;
        self.stats.forced += 1;
        self.drain(index, position, cause).map(|write| (CoreId(index as u16), write))
    }

    fn drain(&mut self, index: usize, position: usize, cause: impl Fn(LineAddr) -> Cause) -> Option<Write> {
        let entry = self.cores[index].resident.remove(position)?;
        self.drains += 1;
        self.stats.drained += 1;
        let token = WriteToken::new(DRAIN | self.drains, Origin::Core(CoreId(index as u16)));
        self.cores[index].draining.push_back(token.number);
        Some(Write { token: Some(token), ..Write::line(entry.line, entry.data, cause(entry.line)) })
    }

    /// The acknowledgement of an entry is back, and its place is free: the core of its buffer.
    pub(crate) fn end_drain(&mut self, token: WriteToken) -> CoreId {
        let owner = self.cores.iter().position(|buffer| buffer.draining.contains(&token.number));
        let index = owner.expect("an entry that drains has its place in a buffer");
        self.cores[index].draining.retain(|&other| other != token.number);
        CoreId(index as u16)
    }

    /// Checks that a line has one entry that stores can join, which is the newest version, and a copy in a cache.
    pub(crate) fn check(&self, line: LineAddr, newest: Option<Version>) -> Result<(), String> {
        let entries = self.cores.iter().flat_map(|buffer| &buffer.resident);
        let mut entries = entries.filter(|entry| entry.line == line);
        let Some(entry) = entries.next() else { return Ok(()) };
        if entries.next().is_some() {
            return Err(format!("{line}: it is in two persist buffers, or twice in one"));
        }
        match newest {
            Some(newest) if !newest.dirty => Err(format!("{line}: clean in all caches, and still in a persist buffer")),
            Some(newest) if newest.data != entry.data => Err(format!("{line}: a persist buffer has another version")),
            Some(_) => Ok(()),
            None => Err(format!("{line}: in a persist buffer, and in no cache")),
        }
    }

    /// Lines whose newest data are here and not in the write queue.
    pub(crate) fn resident_lines(&self) -> usize {
        self.cores.iter().map(|buffer| buffer.resident.len()).sum()
    }

    /// The entry of a line that stores can join, with its core.
    pub(crate) fn copies(&self, line: LineAddr) -> impl Iterator<Item = (CoreId, Line)> + '_ {
        let entry = self.find(line).map(|(core, at)| (CoreId(core as u16), self.cores[core].resident[at].data));
        entry.into_iter()
    }

    /// Saves what a power failure finds here. `draining` are the writes in flight to the queue, oldest first.
    pub(crate) fn save<'a>(
        &self,
        draining: impl Iterator<Item = &'a Write>,
        sink: &mut CrashSink<'_>,
    ) -> Result<(), durasim_contract::BudgetSpent> {
        for write in draining {
            sink.write(write.line.base(), &write.data)?;
        }
        let residents = self.cores.iter().flat_map(|buffer| &buffer.resident);
        residents.into_iter().try_for_each(|entry| sink.write(entry.line.base(), &entry.data))
    }

    pub(crate) fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        if self.cores.iter().any(|buffer| buffer.taken() >= self.entries) {
            mark("persist_buffer_full");
        }
        if self.cores.iter().any(|buffer| !buffer.draining.is_empty()) {
            mark("persist_buffer_drains");
        }
    }

    pub(crate) fn reset_stats(&mut self) {
        self.stats = BufferStats::default();
    }

    pub(crate) fn digest(&self, hasher: &mut dyn Hasher) {
        for buffer in &self.cores {
            hasher.write_u64(buffer.draining.len() as u64);
            for entry in &buffer.resident {
                hasher.write_u64(entry.line.0);
                hasher.write(&entry.data);
            }
        }
    }

    pub(crate) fn stats(&self, stats: &mut durasim_types::Stats) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const A: CoreId = CoreId(0);
    const B: CoreId = CoreId(1);

    fn buffers() -> PersistBuffers {
        PersistBuffers::new(&PersistBufferConfig { entries: 2, drain_threshold_percent: 50 }, 2)
    }

    fn cause(_: LineAddr) -> Cause {
        Cause::Data
    }

    #[test]
    fn stores_join_an_entry_and_take_it_to_their_core() {
        let mut buffers = buffers();
        buffers.enter(A, LineAddr(1), [1; 64]);
        buffers.enter(A, LineAddr(1), [2; 64]);
        assert_eq!(buffers.copies(LineAddr(1)).collect::<Vec<_>>(), [(A, [2; 64])]);
        buffers.enter(B, LineAddr(1), [3; 64]);
        assert_eq!(buffers.copies(LineAddr(1)).collect::<Vec<_>>(), [(B, [3; 64])]);
        assert_eq!(buffers.resident_lines(), 1);
    }

    #[test]
    fn a_place_is_free_again_when_the_queue_has_accepted_the_entry() {
        let mut buffers = buffers();
        buffers.enter(A, LineAddr(1), [1; 64]);
        assert!(!buffers.has_to_drain(A));
        buffers.enter(A, LineAddr(2), [2; 64]);
        assert!(buffers.has_to_drain(A) && buffers.is_full_for(A, LineAddr(3)));
        assert!(!buffers.is_full_for(A, LineAddr(2)), "a store joins its entry");
        let write = buffers.drain_oldest(A, cause).unwrap();
        assert_eq!((write.line, write.data), (LineAddr(1), [1; 64]));
        assert!(buffers.is_full_for(A, LineAddr(3)), "an entry that drains still has its place");
        let token = write.token.unwrap();
        assert_eq!(buffers.wait_for_place(A), Some(Token(token.number)));
        assert_eq!(buffers.end_drain(token), A);
        assert!(!buffers.is_full_for(A, LineAddr(3)));
    }

    #[test]
    fn a_line_that_leaves_the_caches_drains_before_its_turn() {
        let mut buffers = buffers();
        buffers.enter(A, LineAddr(1), [1; 64]);
        buffers.enter(A, LineAddr(2), [2; 64]);
        let (core, write) = buffers.drain_line(LineAddr(2), cause).unwrap();
        assert_eq!((core, write.line), (A, LineAddr(2)));
        assert!(buffers.drain_line(LineAddr(2), cause).is_none());
    }
}
