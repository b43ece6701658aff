//! Modules of persistent memory: cells that are read and written in blocks of several lines, behind a buffer of blocks that
//! were read lately and a buffer in which written lines are combined to blocks (Izraelevitz et al., "Basic Performance
//! Measurements of the Intel Optane DC Persistent Memory Module", arXiv:1903.05714; Yang et al., "An Empirical Guide to the
//! Behavior and Use of Scalable Persistent Memory", FAST 2020; DEVIATIONS.md, pmem-module).
//!
//! - A read of a line that no buffer has reads its block from the cells. A read that follows shortly finds it in the buffer.
//! - A written line enters the buffer of blocks being written, which power failures do not reach: there it is written as far as the
//!   controller is concerned. A block that is complete is written to the cells at once.
//! - A block that lacks lines stays until such blocks take all places; then the one written to longest ago leaves. What it lacks is
//!   read from the cells before it is written. A write that finds all places taken waits for one that the cells are about to hold.

use super::{Access, Direction, MediaConfig};
use crate::reservations::Reservations;
use crate::trace::{Command, CommandKind, Trace};
use durasim_types::{LINE_BYTES, Picos};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::Hasher;

/// Blocks whose writes may leave the write queue in any order.
const BANKS: u64 = 64;

/// What the buffers of modules have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleStats {
    /// Reads that found their line in a buffer.
    pub read_hits: u64,
    /// Writes that joined a block being combined.
    pub combined_writes: u64,
    /// Blocks read from the cells.
    pub block_reads: u64,
    /// Blocks written to the cells.
    pub block_writes: u64,
    /// Those of them that lacked lines, so that the cells were read before.
    pub partial_block_writes: u64,
}

impl ModuleStats {
    /// Adds the counters of another module.
    pub fn add(&mut self, other: &ModuleStats) {
        self.read_hits += other.read_hits;
        self.combined_writes += other.combined_writes;
        self.block_reads += other.block_reads;
        self.block_writes += other.block_writes;
        self.partial_block_writes += other.partial_block_writes;
    }

    /// What was counted since `before`.
    pub(crate) fn since(&self, before: &ModuleStats) -> ModuleStats {
        ModuleStats {
            read_hits: self.read_hits - before.read_hits,
            combined_writes: self.combined_writes - before.combined_writes,
            block_reads: self.block_reads - before.block_reads,
            block_writes: self.block_writes - before.block_writes,
            partial_block_writes: self.partial_block_writes - before.partial_block_writes,
        }
    }
}

/// A block that was read.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ReadBlock {
    block: u64,
    /// When it is in the buffer.
    ready_ps: Picos,
}

/// A block of which lines were written.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct WrittenBlock {
    block: u64,
    /// Its lines that were written.
    lines: u64,
    /// When the last of them has come over the bus.
    changed_ps: Picos,
    /// When the cells hold it, once it has left for them.
    leaves_ps: Option<Picos>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Module {
    block_lines: u64,
    read_ps: Picos,
    buffer_ps: Picos,
    transfer_ps: Picos,
    /// How long the cells are taken by a block.
    cells_read_ps: Picos,
    cells_write_ps: Picos,
    read_blocks: usize,
    write_blocks: usize,
    /// The block that was asked for longest ago first.
    reads: VecDeque<ReadBlock>,
    /// The block written to longest ago first.
    writes: VecDeque<WrittenBlock>,
    cells: Reservations,
    bus: Reservations,
    pub(super) stats: ModuleStats,
}

impl Module {
    pub fn new(config: &MediaConfig) -> Self {
        let complete = "the defaults of the kind are in";
        Module {
            block_lines: u64::from(config.block_bytes.expect(complete)) / LINE_BYTES,
            read_ps: config.read_latency_ns.expect(complete) * 1000,
            buffer_ps: config.buffer_latency_ns.expect(complete) * 1000,
            transfer_ps: config.transfer_ps(),
            cells_read_ps: config.block_ps(config.cell_read_mb_per_s),
            cells_write_ps: config.block_ps(config.cell_write_mb_per_s),
            read_blocks: config.read_buffer_blocks.expect(complete) as usize,
            write_blocks: config.write_buffer_blocks.expect(complete) as usize,
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            cells: Reservations::default(),
            bus: Reservations::default(),
            stats: ModuleStats::default(),
        }
    }

    fn block(&self, line: u64) -> u64 {
        line / self.block_lines
    }

    fn bit(&self, line: u64) -> u64 {
        1 << (line % self.block_lines)
    }

    fn is_complete(&self, lines: u64) -> bool {
        lines.count_ones() as u64 == self.block_lines
    }

    pub fn bank(&self, line: u64) -> usize {
        (self.block(line) % BANKS) as usize
    }

    /// When a line is in a buffer, if one has it or is about to.
    fn buffered(&self, line: u64, at_ps: Picos) -> Option<Picos> {
        let (block, bit) = (self.block(line), self.bit(line));
        // A read may come with an earlier time than a write that came before it.
        let is_here = |w: &WrittenBlock| {
            let is_in_buffer = w.changed_ps <= at_ps && w.leaves_ps.is_none_or(|leaves_ps| leaves_ps > at_ps);
            w.block == block && w.lines & bit != 0 && is_in_buffer
        };
        if self.writes.iter().any(is_here) {
            return Some(0);
        }
        self.reads.iter().find(|read| read.block == block).map(|read| read.ready_ps)
    }

    /// The block of those being combined that a write joins.
    fn joined(&self, block: u64) -> Option<usize> {
        self.writes.iter().position(|w| w.block == block && w.leaves_ps.is_none())
    }

    /// From when on there is a place for a write, not before `at_ps`. If all are taken, at least one block is leaving.
    fn place_ps(&self, block: u64, at_ps: Picos) -> Picos {
        let taken = self.writes.iter().filter(|w| w.leaves_ps.is_none_or(|leaves_ps| leaves_ps > at_ps)).count();
        if self.joined(block).is_some() || taken < self.write_blocks {
            return at_ps;
        }
        let leaving = self.writes.iter().filter_map(|w| w.leaves_ps).filter(|&leaves_ps| leaves_ps > at_ps);
        let mut leaving: Vec<Picos> = leaving.collect();
        leaving.sort_unstable();
        // Writes that came with earlier times may have taken more places than there are.
        leaving.get(taken - self.write_blocks).copied().unwrap_or(at_ps)
    }

    /// When the cells begin to write a block that leaves at `at_ps`, and when they hold it. What it lacks is read before.
    fn writing(&self, written: &WrittenBlock, at_ps: Picos) -> (Picos, Picos) {
        let mut from_ps = at_ps;
        if !self.is_complete(written.lines) {
            from_ps = self.cells.first_gap(at_ps, self.cells_read_ps) + self.read_ps;
        }
        let begin_ps = self.cells.first_gap(from_ps, self.cells_write_ps);
        (begin_ps, begin_ps + self.cells_write_ps)
    }

    pub fn first_start(&self, line: u64, direction: Direction, at_ps: Picos) -> Picos {
        match direction {
            // One that follows a read of its block before the cells have begun with that begins with it.
            Direction::Read => match self.buffered(line, at_ps) {
                Some(ready_ps) => at_ps.max(ready_ps.saturating_sub(self.read_ps)),
                None => self.cells.first_gap(at_ps, self.cells_read_ps),
            },
            Direction::Write => {
                // Whether there is a place changes while the bus is waited for, but only for the better.
                self.bus.first_gap(self.place_ps(self.block(line), at_ps), self.transfer_ps)
            }
        }
    }

    pub fn access(&mut self, line: u64, direction: Direction, at_ps: Picos, trace: &mut Trace) -> Access {
        let access = match direction {
            Direction::Read => self.read(line, at_ps, trace),
            Direction::Write => self.write(line, at_ps, trace),
        };
        let kind = if direction == Direction::Read { CommandKind::Rd } else { CommandKind::Wr };
        self.note(trace, access.start_ps, kind, line);
        access
    }

    /// The line goes over the bus at the end.
    fn read(&mut self, line: u64, at_ps: Picos, trace: &mut Trace) -> Access {
        let block = self.block(line);
        let found = self.buffered(line, at_ps);
        let before = self.reads.iter().position(|read| read.block == block).and_then(|index| self.reads.remove(index));
        let (start_ps, there_ps) = match found {
            Some(ready_ps) => {
                self.stats.read_hits += 1;
                self.reads.extend(before);
                (at_ps.max(ready_ps.saturating_sub(self.read_ps)), ready_ps.max(at_ps + self.buffer_ps))
            }
            None => {
                let start_ps = self.read_cells(block, at_ps, trace);
                let ready_ps = start_ps + self.read_ps;
                if self.reads.len() == self.read_blocks {
                    self.reads.pop_front();
                }
                self.reads.push_back(ReadBlock { block, ready_ps });
                (start_ps, ready_ps)
            }
        };
        let sent_ps = self.bus.first_gap(there_ps.saturating_sub(self.transfer_ps), self.transfer_ps);
        self.bus.book(sent_ps, self.transfer_ps);
        Access { start_ps, done_ps: sent_ps + self.transfer_ps }
    }

    /// The line comes over the bus at the beginning.
    fn write(&mut self, line: u64, at_ps: Picos, trace: &mut Trace) -> Access {
        let (block, bit) = (self.block(line), self.bit(line));
        let start_ps = self.first_start(line, Direction::Write, at_ps);
        self.bus.book(start_ps, self.transfer_ps);
        let mut written = WrittenBlock { block, lines: bit, changed_ps: start_ps + self.transfer_ps, leaves_ps: None };
        if let Some(before) = self.joined(block).and_then(|index| self.writes.remove(index)) {
            self.stats.combined_writes += 1;
            written.lines |= before.lines;
            // Writes find gaps on the bus, so this one may have come before those.
            written.changed_ps = written.changed_ps.max(before.changed_ps);
        }
        self.writes.retain(|w| w.leaves_ps.is_none_or(|leaves_ps| leaves_ps > start_ps));
        let done_ps = start_ps + self.buffer_ps;
        let there_ps = start_ps + self.transfer_ps;
        if self.is_complete(written.lines) {
            self.write_cells(&mut written, there_ps, trace);
        }
        self.writes.push_back(written);
        self.keep_a_place_free(there_ps, trace);
        Access { start_ps, done_ps }
    }

    /// When blocks being combined take all places, the oldest one leaves.
    fn keep_a_place_free(&mut self, at_ps: Picos, trace: &mut Trace) {
        let is_combined = |w: &WrittenBlock| w.leaves_ps.is_none();
        if self.writes.iter().filter(|w| is_combined(w)).count() < self.write_blocks {
            return;
        }
        let oldest = self.writes.iter().position(is_combined).expect("all of them are");
        let mut written = self.writes[oldest];
        self.write_cells(&mut written, at_ps, trace);
        self.writes[oldest] = written;
    }

    /// Reads a block; when that begins.
    fn read_cells(&mut self, block: u64, at_ps: Picos, trace: &mut Trace) -> Picos {
        let start_ps = self.cells.first_gap(at_ps, self.cells_read_ps);
        self.cells.book(start_ps, self.cells_read_ps);
        self.stats.block_reads += 1;
        self.note(trace, start_ps, CommandKind::Act, block * self.block_lines);
        start_ps
    }

    /// Sends a block that was combined to the cells.
    fn write_cells(&mut self, written: &mut WrittenBlock, at_ps: Picos, trace: &mut Trace) {
        let (begin_ps, end_ps) = self.writing(written, at_ps);
        if !self.is_complete(written.lines) {
            self.read_cells(written.block, at_ps, trace);
            self.stats.partial_block_writes += 1;
        }
        self.cells.book(begin_ps, self.cells_write_ps);
        self.stats.block_writes += 1;
        self.note(trace, begin_ps, CommandKind::Pre, written.block * self.block_lines);
        written.leaves_ps = Some(end_ps);
    }

    /// Notes a command: rows are blocks here, `Act` reads one from the cells, `Pre` writes it there.
    fn note(&self, trace: &mut Trace, at_ps: Picos, kind: CommandKind, line: u64) {
        trace.note(|| Command {
            at_ps,
            controller: 0,
            kind,
            rank: 0,
            bank: self.bank(line) as u16,
            row: self.block(line),
            column: (line % self.block_lines) as u32,
            auto_precharge: false,
        });
    }

    pub fn digest(&self, hasher: &mut dyn Hasher) {
        hasher.write_u64(self.cells.end());
        hasher.write_u64(self.bus.end());
        self.reads.iter().for_each(|read| hasher.write_u64(read.block ^ read.ready_ps << 20));
        for written in &self.writes {
            hasher.write_u64(written.block);
            hasher.write_u64(written.lines);
            hasher.write_u64(written.changed_ps);
            hasher.write_u64(written.leaves_ps.unwrap_or(0));
        }
    }
}
