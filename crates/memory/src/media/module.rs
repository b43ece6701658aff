//! Modules of persistent memory: cells that are read and written in blocks of several lines, with a buffer of blocks that
//! were read lately and a buffer in which written lines are combined to blocks (Izraelevitz et al., "Basic Performance
//! Measurements of the Intel Optane DC Persistent Memory Module", arXiv:1903.05714; Yang et al., "An Empirical Guide to the
//! Behavior and Use of Scalable Persistent Memory", FAST 2020, with the data of its figures; Wang et al., "Characterizing and
//! Modeling Non-Volatile Memory Systems", MICRO 2020, with its data; DEVIATIONS.md, pmem-module).
//!
//! - A read of a line that no buffer has reads its block from the cells. A read that follows shortly finds it in the buffer.
//! - Before the cells read or write a block they need the table entry of its page. The module holds some entries; another one
//!   delays the block, not those after it.
//! - A written line enters the buffer of blocks being written, which power failures do not reach: there it is written as far as the
//!   controller is concerned. A block that is complete leaves for the cells at once.
//! - A block that lacks lines leaves when a block of another line needs its place, chosen at random among those in the buffer: the
//!   measured write amplification rises slowly with the size of a region that is larger than the buffer, where the oldest one
//!   leaving would make a step. What it lacks is read before it is written. That takes time, but no turn of the cells: measured
//!   random writes of 64 and 128 bytes cost as much as a whole block, within 1 %.
//! - A limited number of blocks may be in flight to the cells. A write that would send another one waits.

use super::{Access, Direction, MediaConfig};
use crate::reservations::Reservations;
use crate::trace::{Command, CommandKind, Trace};
use durasim_types::{LINE_BYTES, Picos, Rng};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hasher;

/// Blocks whose writes may leave the write queue in any order.
const BANKS: u64 = 64;

/// Bytes of a page of the table of addresses (Wang et al., MICRO 2020).
const PAGE_BYTES: u64 = 4096;

/// The work of the buffers of modules.
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
    /// Blocks read or written whose page had no entry in the table of addresses.
    pub table_misses: u64,
}

impl ModuleStats {
    /// Adds the counters of another module.
    pub fn add(&mut self, other: &ModuleStats) {
        self.read_hits += other.read_hits;
        self.combined_writes += other.combined_writes;
        self.block_reads += other.block_reads;
        self.block_writes += other.block_writes;
        self.partial_block_writes += other.partial_block_writes;
        self.table_misses += other.table_misses;
    }

    /// The counts since `before`.
    pub(crate) fn since(&self, before: &ModuleStats) -> ModuleStats {
        ModuleStats {
            read_hits: self.read_hits - before.read_hits,
            combined_writes: self.combined_writes - before.combined_writes,
            block_reads: self.block_reads - before.block_reads,
            block_writes: self.block_writes - before.block_writes,
            partial_block_writes: self.partial_block_writes - before.partial_block_writes,
            table_misses: self.table_misses - before.table_misses,
        }
    }
}

/// A block that was read.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ReadBlock {
    block: u64,
    /// The time at which it is in the buffer.
    ready_ps: Picos,
}

/// A block with the lines that were written.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct WrittenBlock {
    block: u64,
    /// Its lines that were written.
    lines: u64,
    /// The time at which the last of them has come over the bus.
    changed_ps: Picos,
    /// The time at which the cells hold it, once it has left for them.
    leaves_ps: Option<Picos>,
}

/// The entries of the table of addresses that the module holds: those of the pages used last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Table {
    /// The time at which each page was used last, in uses.
    used: BTreeMap<u64, u64>,
    /// The page of each of these uses.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

impl Table {
    /// Uses a page; whether it was there. Of more than `pages` the one used longest ago goes.
    fn touch(&mut self, page: u64, pages: usize) -> bool {
        self.uses += 1;
        let before = self.used.insert(page, self.uses);
        if let Some(before) = before {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.uses, page);
        if self.used.len() > pages
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.used.remove(&oldest);
        }
        before.is_some()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Module {
    block_lines: u64,
    read_ps: Picos,
    buffer_ps: Picos,
    transfer_ps: Picos,
    /// The time for which a block takes the cells.
    cells_read_ps: Picos,
    cells_write_ps: Picos,
    read_blocks: usize,
    write_blocks: usize,
    cell_queue_blocks: usize,
    table_pages: usize,
    table_miss_ps: Picos,
    table: Table,
    /// Chooses the block that leaves.
    rng: Rng,
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
            cell_queue_blocks: config.cell_queue_blocks.expect(complete) as usize,
            table_pages: config.table_pages.expect(complete) as usize,
            table_miss_ps: config.table_miss_ns.expect(complete) * 1000,
            table: Table::default(),
            rng: Rng::new(0),
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

    /// The time at which a line is in a buffer, if one has it or is about to.
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

    /// Blocks that lack lines and wait for them.
    fn combined(&self) -> impl Iterator<Item = &WrittenBlock> {
        self.writes.iter().filter(|w| w.leaves_ps.is_none())
    }

    /// From when on another block may leave for the cells, not before `at_ps`.
    fn cell_queue_ps(&self, at_ps: Picos) -> Picos {
        let leaving = self.writes.iter().filter_map(|w| w.leaves_ps).filter(|&leaves_ps| leaves_ps > at_ps);
        let mut leaving: Vec<Picos> = leaving.collect();
        if leaving.len() < self.cell_queue_blocks {
            return at_ps;
        }
        leaving.sort_unstable();
        leaving[leaving.len() - self.cell_queue_blocks]
    }

    /// From when on there is a place for a written line, not before `at_ps`: one that sends a block to the cells, because it
    /// completes it or takes its place, waits until there is room on the way.
    fn place_ps(&self, line: u64, at_ps: Picos) -> Picos {
        let joined = self.joined(self.block(line)).map(|index| self.writes[index].lines);
        let completes = self.is_complete(joined.unwrap_or(0) | self.bit(line));
        let takes_place = joined.is_none() && self.combined().count() >= self.write_blocks;
        if completes || takes_place { self.cell_queue_ps(at_ps) } else { at_ps }
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
                self.bus.first_gap(self.place_ps(line, at_ps), self.transfer_ps)
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
                let ready_ps = start_ps + self.read_ps + self.look_up(block);
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
        } else if self.combined().count() >= self.write_blocks {
            self.take_a_place(there_ps, trace);
        }
        self.writes.push_back(written);
        Access { start_ps, done_ps }
    }

    /// One of the blocks that lack lines leaves.
    fn take_a_place(&mut self, at_ps: Picos, trace: &mut Trace) {
        let lacking: Vec<usize> = (0..self.writes.len()).filter(|&n| self.writes[n].leaves_ps.is_none()).collect();
        let chosen = lacking[self.rng.below(lacking.len() as u64) as usize];
        let mut written = self.writes[chosen];
        self.write_cells(&mut written, at_ps, trace);
        self.writes[chosen] = written;
    }

    /// Looks up the table entry of a block; what that takes more than usual.
    fn look_up(&mut self, block: u64) -> Picos {
        let page = block * self.block_lines * LINE_BYTES / PAGE_BYTES;
        if self.table.touch(page, self.table_pages) {
            return 0;
        }
        self.stats.table_misses += 1;
        self.table_miss_ps
    }

    /// Reads a block; when that begins.
    fn read_cells(&mut self, block: u64, at_ps: Picos, trace: &mut Trace) -> Picos {
        let start_ps = self.cells.first_gap(at_ps, self.cells_read_ps);
        self.cells.book(start_ps, self.cells_read_ps);
        self.stats.block_reads += 1;
        self.note(trace, start_ps, CommandKind::Act, block * self.block_lines);
        start_ps
    }

    /// Sends a block that was combined to the cells. What it lacks is read before, which delays it and takes no turn of the
    /// cells.
    fn write_cells(&mut self, written: &mut WrittenBlock, at_ps: Picos, trace: &mut Trace) {
        // Requests do not come in the order of time: the block that has to leave may have come later than what needs its place.
        let mut from_ps = at_ps.max(written.changed_ps) + self.look_up(written.block);
        if !self.is_complete(written.lines) {
            from_ps += self.read_ps;
            self.stats.block_reads += 1;
            self.stats.partial_block_writes += 1;
        }
        let begin_ps = self.cells.first_gap(from_ps, self.cells_write_ps);
        self.cells.book(begin_ps, self.cells_write_ps);
        self.stats.block_writes += 1;
        self.note(trace, begin_ps, CommandKind::Pre, written.block * self.block_lines);
        written.leaves_ps = Some(begin_ps + self.cells_write_ps);
    }

    /// Notes a command: rows are blocks here, `Act` reads one from the cells, `Pre` writes it there,
    /// with what is read for it before.
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
        hasher.write_u64(self.rng.state());
        self.table.by_use.values().for_each(|&page| hasher.write_u64(page));
        for written in &self.writes {
            hasher.write_u64(written.block);
            hasher.write_u64(written.lines);
            hasher.write_u64(written.changed_ps);
            hasher.write_u64(written.leaves_ps.unwrap_or(0));
        }
    }
}
