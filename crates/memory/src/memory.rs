//! A memory: contents, and the controllers among which its lines are dealt out. Adjacent blocks of
//! `interleave_bytes` belong to controllers in turn; each controller has queues, banks and a channel of its own, and
//! knows nothing of the others.
//!
//! Two ranges of addresses may share the controllers with all they have. The lines of each range are dealt out from its
//! first one on, and those of the second range follow those of the first in the media of a controller. Counters and
//! contents are kept by range.

use crate::contents::Contents;
use crate::controller::{Controller, ControllerStats, Read, Step};
use crate::media::{ModuleStats, RowStats};
use crate::trace::Command;
use crate::{Entry, MemoryConfig, Write, WriteToken};
use durasim_contract::Occupancy;
use durasim_types::{LINE_BYTES, Line, LineAddr, Pages, PhysAddr, Picos};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// A memory with its controllers. Like a controller it advances lazily; see [`Memory::step`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    contents: Contents,
    /// For each range, the number of its first line, and that line's number among the lines of its controller.
    first_lines: Vec<(u64, u64)>,
    /// A block of lines that belong to one controller has two to the power of this.
    block_shift: u32,
    controllers: Vec<Controller>,
}

impl Memory {
    /// A memory with empty queues and these contents. What the configuration leaves out has its default.
    pub fn new(config: &MemoryConfig, contents: Pages) -> Self {
        Memory::build(config, vec![contents])
    }

    /// A memory with two ranges of addresses, the lower one first.
    pub fn shared(config: &MemoryConfig, first: Pages, second: Pages) -> Self {
        Memory::build(config, vec![first, second])
    }

    fn build(config: &MemoryConfig, ranges: Vec<Pages>) -> Self {
        let first_line = ranges[0].base().line().0;
        // Blocks of the second range start after the last one that the first range has at any controller.
        let round_bytes = config.interleave_bytes * u64::from(config.controllers);
        let second_local = ranges[0].size_bytes().div_ceil(round_bytes) * (config.interleave_bytes / LINE_BYTES);
        let first_lines = ranges.iter().map(|pages| pages.base().line().0).zip([0, second_local]).collect();
        let contents = Contents::new(ranges);
        let controller = || Controller::new(config, first_line, &contents);
        Memory {
            first_lines,
            block_shift: (config.interleave_bytes / LINE_BYTES).ilog2(),
            controllers: (0..config.controllers).map(|_| controller()).collect(),
            contents,
        }
    }

    /// The controller of a line, and the line's number among the lines of that controller.
    #[inline]
    fn route(&self, line: LineAddr) -> (usize, u64) {
        let (first_line, first_local) = self.first_lines[self.contents.region_of(line)];
        let number = line.0 - first_line;
        let controllers = self.controllers.len() as u64;
        if controllers == 1 {
            return (0, first_local + number);
        }
        let block = number >> self.block_shift;
        let in_block = number & ((1 << self.block_shift) - 1);
        ((block % controllers) as usize, first_local + ((block / controllers) << self.block_shift | in_block))
    }

    /// The controller of a line.
    #[inline]
    pub fn controller_of(&self, line: LineAddr) -> u16 {
        self.route(line).0 as u16
    }

    /// The first line of each controller in a range.
    pub fn a_line_of_each_controller(&self, range: usize) -> impl Iterator<Item = LineAddr> {
        let (first_line, _) = self.first_lines[range];
        (0..self.controllers.len() as u64).map(move |n| LineAddr(first_line + (n << self.block_shift)))
    }

    /// Number of controllers.
    pub fn controllers(&self) -> u16 {
        self.controllers.len() as u16
    }

    /// The range of a line: 0, or 1 for the second of two.
    #[inline]
    pub fn range_of(&self, line: LineAddr) -> usize {
        self.contents.region_of(line)
    }

    /// Whether this memory owns the address.
    #[inline]
    pub fn contains(&self, addr: PhysAddr) -> bool {
        self.contents.contains(addr)
    }

    /// The contents of a range in the media of all controllers now, without the queues.
    pub fn media(&self, range: usize) -> &Pages {
        self.contents.region(range)
    }

    /// Accepted writes with their controllers: controller by controller, oldest first.
    pub fn queue(&self) -> impl Iterator<Item = (u16, &Entry)> {
        (0u16..).zip(&self.controllers).flat_map(|(number, c)| c.queue().map(move |entry| (number, entry)))
    }

    /// Writes that wait outside for room: controller by controller, oldest first.
    pub fn inbound(&self) -> impl Iterator<Item = &Write> {
        self.controllers.iter().flat_map(Controller::inbound)
    }

    /// Number of writes that wait outside for room.
    #[inline]
    pub fn inbound_len(&self) -> usize {
        self.controllers.iter().map(Controller::inbound_len).sum()
    }

    /// Number of writes to a range that wait outside for room.
    #[inline]
    pub fn inbound_len_of(&self, range: usize) -> usize {
        if self.first_lines.len() == 1 {
            return self.inbound_len();
        }
        self.inbound().filter(|write| self.range_of(write.line) == range).count()
    }

    /// The newest data of a line, wherever the memory holds it.
    pub fn peek(&self, line: LineAddr) -> Line {
        let mut data = self.contents.line(line);
        self.controllers[self.route(line).0].overlay(line, &mut data);
        data
    }

    /// Writes media directly, for loaders before the simulation starts.
    pub fn poke(&mut self, addr: PhysAddr, bytes: &[u8]) {
        self.contents.write(addr, bytes);
    }

    /// Puts whole pages into the media of a range, those of `pages` that begin before `end`, for loaders before the
    /// simulation starts. They are shared until one side writes.
    pub fn load(&mut self, range: usize, pages: &Pages, end: PhysAddr) {
        self.contents.region_mut(range).share_from(pages, end);
    }

    /// Changes the newest copy of (part of) a line in place, in no time: how a kernel's writes reach volatile memory.
    pub fn write_newest(&mut self, addr: PhysAddr, bytes: &[u8]) {
        let controller = self.route(addr.line()).0;
        self.controllers[controller].write_held(addr.line(), addr.offset(), bytes);
        self.contents.write(addr, bytes);
    }

    /// Serves a read that arrives at `at_ps`. The memory must have been brought to that time.
    pub fn read(&mut self, line: LineAddr, at_ps: Picos) -> Read {
        let (controller, local) = self.route(line);
        let data = self.contents.line(line);
        self.controllers[controller].read(line, local, data, false, at_ps)
    }

    /// The bytes below the oldest held entry of the line.
    pub fn read_below_held(&mut self, line: LineAddr, at_ps: Picos) -> Read {
        let (controller, local) = self.route(line);
        let data = self.contents.line(line);
        self.controllers[controller].read(line, local, data, true, at_ps)
    }

    /// From now on, queues ask before they take a write: [`Step::HasRoom`].
    pub fn ask_before_accepting(&mut self) {
        self.controllers.iter_mut().for_each(Controller::ask_before_accepting);
    }

    /// From now on, the start of each write to the media is a step: [`Step::Started`].
    pub fn report_starts(&mut self) {
        self.controllers.iter_mut().for_each(Controller::report_starts);
    }

    /// The write that a queue which asks has room for now.
    pub fn next_candidate(&self, controller: u16) -> Option<&Write> {
        self.controllers[usize::from(controller)].next_candidate()
    }

    /// The occupancy of the queue of a controller.
    pub fn occupancy(&self, controller: u16) -> Occupancy {
        self.controllers[usize::from(controller)].occupancy()
    }

    /// A queue takes the write that it was asked about, held in a group or not; the write.
    pub fn admit(&mut self, controller: u16, held: Option<u64>, yields: bool) -> Write {
        self.controllers[usize::from(controller)].admit(held, yields)
    }

    /// A queue does not take the write that it was asked about before it has changed.
    pub fn refuse(&mut self, controller: u16) {
        self.controllers[usize::from(controller)].refuse();
    }

    /// Hands over a write that arrives at `at_ps`: true if its queue accepts it at once, else it waits outside and a
    /// later [`Step::Accepted`] reports. Order among writes to one controller is kept.
    pub fn submit(&mut self, write: Write, at_ps: Picos) -> bool {
        assert!(self.contains(write.line.base()), "a write to {} reached the wrong memory", write.line);
        let (controller, local) = self.route(write.line);
        self.controllers[controller].submit(write, local, at_ps)
    }

    /// The time before which nothing is scheduled.
    #[inline]
    pub fn next_ps(&self) -> Picos {
        self.controllers.iter().map(Controller::next_ps).min().unwrap_or(Picos::MAX)
    }

    /// Goes on to the next step that happens at or before `until_ps`, of whichever controller. `None`: all of that time
    /// has passed.
    pub fn step(&mut self, until_ps: Picos) -> Option<Step> {
        loop {
            let next = self.controllers.iter().enumerate().map(|(index, c)| (c.next_ps(), index)).min()?;
            if next.0 > until_ps {
                return None;
            }
            let others = self.controllers.iter().enumerate().filter(|&(index, _)| index != next.1);
            let others_ps = others.map(|(_, c)| c.next_ps()).min().unwrap_or(Picos::MAX);
            // No further than to where another controller has something to do. `None`: what was announced comes later.
            let step = self.controllers[next.1].step(&mut self.contents, until_ps.min(others_ps));
            if step.is_some() || next.0 == Picos::MAX {
                return step;
            }
        }
    }

    /// The granularity of writes in the media, in bytes: each write costs a multiple of it.
    pub fn write_granularity_bytes(&self) -> u64 {
        self.controllers[0].write_granularity_bytes()
    }

    /// Bytes of a range that the queues still owe the media.
    pub fn owed_bytes(&self, range: usize) -> u64 {
        self.controllers.iter().map(|c| c.owed_bytes(|line| self.range_of(line) == range)).sum()
    }

    /// Held entries of `group` at a controller become ordinary ones at `at_ps`; those of one line, if one is named.
    pub fn release(&mut self, controller: u16, group: u64, line: Option<LineAddr>, at_ps: Picos) {
        self.controllers[usize::from(controller)].release(group, line, at_ps);
    }

    /// Held entries of `group` at a controller vanish, and those of the group that still wait there for room: their
    /// tokens are returned, since no controller will acknowledge them.
    pub fn discard(&mut self, controller: u16, group: u64, at_ps: Picos) -> Vec<WriteToken> {
        self.controllers[usize::from(controller)].discard(group, at_ps)
    }

    /// Counters of each controller for a range, since the last reset.
    pub fn controller_stats(&self, range: usize) -> impl Iterator<Item = (&ControllerStats, Option<RowStats>)> {
        self.controllers.iter().map(move |c| (c.stats(range), c.row_stats(range)))
    }

    /// Counters of all controllers together for a range.
    pub fn stats(&self, range: usize) -> (ControllerStats, Option<RowStats>) {
        let mut sum = ControllerStats::default();
        let mut rows: Option<RowStats> = None;
        for (stats, of_rows) in self.controller_stats(range) {
            sum.add(stats);
            if let Some(of_rows) = of_rows {
                let rows = rows.get_or_insert_default();
                rows.hits += of_rows.hits;
                rows.misses += of_rows.misses;
                rows.conflicts += of_rows.conflicts;
            }
        }
        (sum, rows)
    }

    /// The work of the buffers of each controller's module for a range, of modules of persistent memory.
    pub fn controller_module_stats(&self, range: usize) -> impl Iterator<Item = Option<ModuleStats>> {
        self.controllers.iter().map(move |c| c.module_stats(range))
    }

    /// The work of the buffers of all modules for a range, of modules of persistent memory.
    pub fn module_stats(&self, range: usize) -> Option<ModuleStats> {
        self.controller_module_stats(range).flatten().reduce(|mut sum, of_one| {
            sum.add(&of_one);
            sum
        })
    }

    /// Counters start again from zero; state stays.
    pub fn reset_stats(&mut self) {
        self.controllers.iter_mut().for_each(Controller::reset_stats);
    }

    /// Keeps the commands of all controllers from now on, in this memory and not in copies of it. A checker wants them
    /// from the first access on.
    pub fn start_trace(&mut self) {
        self.controllers.iter_mut().for_each(Controller::start_trace);
    }

    /// The commands since then by their times, refreshes up to `until_ps` included; none are kept from now on.
    pub fn take_trace(&mut self, until_ps: Picos) -> Vec<Command> {
        let mut all = Vec::new();
        for (number, controller) in (0u16..).zip(&mut self.controllers) {
            let commands = controller.take_trace(until_ps);
            all.extend(commands.into_iter().map(|command| Command { controller: number, ..command }));
        }
        all.sort_unstable();
        all
    }

    /// Feeds contents, queues and clocks into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        self.contents.digest(hasher);
        self.controllers.iter().for_each(|c| c.digest(hasher));
    }
}
