//! The two memories below the last level: reads, writes and the passing of time at their controllers, and what a power
//! failure finds there.

mod path;
#[cfg(test)]
mod tests;
mod unfenced;

pub(super) use path::Behind;
use path::{InFlight, Path};
pub(super) use unfenced::Chooser;
use unfenced::Unfenced;

use super::{DRAM_BASE, PMEM_BASE};
use crate::MachineConfig;
use crate::system::counters::memory_stats;
use durasim_design::{Geometry, HeldWrite, Node, Origin};
use durasim_memory::{Command, Entry, Memory, Step, Write, WriteToken};
use durasim_types::{
    Cause, Clock, CoreId, Cycle, DataRange, Domain, LINE_BYTES, Line, LineAddr, Pages, PhysAddr, Picos, Stats,
};
use std::hash::Hasher;

const WORDS_PER_LINE: u32 = 8;

super::part::part! {
    /// The part of the memory system that holds the controllers and the media.
    pub(crate) struct Memories saved as SavedMemories {
        saved {
            pmem: Memory,
            dram: Memory,
            path: Path,
            data_range: Option<DataRange>,
        }
        kept {
            clock: Clock,
            domain: Domain,
            write_back_buffers: usize,
            /// End of what programs may use of persistent memory; the regions of the design follow.
            program_end: PhysAddr,
            unfenced: Option<Box<Unfenced>>,
        }
    }
}

/// A line that is read from its controller, and the cycles of its way.
#[derive(Clone, Copy)]
pub(super) struct LineRead {
    pub data: Line,
    /// The request is at the controller.
    pub asked: Cycle,
    /// The media begins with it.
    pub started: Cycle,
    /// The media has read it.
    pub done: Cycle,
    /// It is where it was asked for.
    pub arrives: Cycle,
}

/// Whether a line lies in persistent memory.
#[inline]
pub(super) fn is_pmem(line: LineAddr) -> bool {
    line.0 >= PMEM_BASE.line().0
}

impl Memories {
    pub(super) fn new(config: &MachineConfig, geometry: &Geometry) -> Self {
        let pmem = Memory::new(&config.pmem, Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20));
        let dram = Memory::new(&config.dram, Pages::new(DRAM_BASE, config.dram.capacity_mib << 20));
        let controllers = usize::from(pmem.controllers() + dram.controllers());
        Memories {
            path: Path::new(&config.interconnect, geometry, controllers),
            pmem,
            dram,
            data_range: None,
            clock: geometry.clock,
            domain: geometry.domain,
            write_back_buffers: config.interconnect.write_back_buffers as usize,
            program_end: geometry.pmem_base.plus(geometry.pmem_data_bytes),
            unfenced: None,
        }
    }

    /// The same contents and queues; nobody tracks unfenced cleans there.
    pub(super) fn fork(&self) -> Self {
        Memories {
            pmem: self.pmem.clone(),
            dram: self.dram.clone(),
            path: self.path.clone(),
            data_range: self.data_range,
            clock: self.clock,
            domain: self.domain,
            write_back_buffers: self.write_back_buffers,
            program_end: self.program_end,
            unfenced: None,
        }
    }

    fn of(&self, line: LineAddr) -> &Memory {
        if is_pmem(line) { &self.pmem } else { &self.dram }
    }

    fn of_mut(&mut self, line: LineAddr) -> &mut Memory {
        if is_pmem(line) { &mut self.pmem } else { &mut self.dram }
    }

    /// Starts the sequence of what is drawn on the path.
    pub(super) fn seed(&mut self, seed: u64) {
        self.path.seed(seed);
    }

    /// The number of a line's controller among all of both memories.
    fn controller(&self, line: LineAddr) -> usize {
        let of_pmem = usize::from(self.pmem.controllers());
        if is_pmem(line) {
            self.pmem.controller_of(line).into()
        } else {
            of_pmem + usize::from(self.dram.controller_of(line))
        }
    }

    /// The controllers of a memory among all of both.
    fn controllers(&self, of_pmem: bool) -> std::ops::Range<usize> {
        let (pmem, dram) = (usize::from(self.pmem.controllers()), usize::from(self.dram.controllers()));
        if of_pmem { 0..pmem } else { pmem..pmem + dram }
    }

    /// A write is sent to the controller of its line, behind older ones. Given back if it has arrived at once.
    pub(super) fn send(
        &mut self,
        from: Origin,
        core: CoreId,
        write: Write,
        behind: Behind,
        at: Cycle,
    ) -> Option<Write> {
        let controller = self.controller(write.line);
        self.path.send(InFlight { arrival: at, controller, from, core, write }, behind)
    }

    /// Whether writes are acknowledged when they are sent: a planted fault.
    pub(super) fn acknowledges_on_sending(&self) -> bool {
        self.path.acknowledges_on_sending()
    }

    /// A line of each controller of persistent memory.
    pub(super) fn a_line_of_each_controller(&self) -> impl Iterator<Item = LineAddr> {
        self.pmem.a_line_of_each_controller()
    }

    /// When the next write arrives at its controller; `Cycle::MAX` if none is in flight.
    pub(super) fn next_arrival(&self) -> Cycle {
        self.path.next_arrival()
    }

    /// Takes the next write that arrives at its controller.
    pub(super) fn take_arrival(&mut self) -> Option<(CoreId, Write)> {
        self.path.take_next().map(|InFlight { core, write, .. }| (core, write))
    }

    /// The controller of a line of persistent memory lets what arrives wait, or does so no more.
    pub(super) fn hold_arrivals(&mut self, line: LineAddr, is_held: bool) {
        let controller = self.controller(line);
        self.path.hold(controller, is_held);
    }

    /// The acknowledgement of a write to a line leaves its controller at `at`; the cycle in which it arrives.
    pub(super) fn acknowledge(&mut self, to: Origin, line: LineAddr, at: Cycle) -> Cycle {
        let controller = self.controller(line);
        self.path.up(to, controller, 0, at) + self.path.drawn_cycles(to)
    }

    /// The controller of a line is asked for a copy; the cycle in which it begins.
    pub(super) fn ask_for_copy(&mut self, by: Origin, line: LineAddr, at: Cycle) -> Cycle {
        let controller = self.controller(line);
        self.path.down(by, controller, 0, at)
    }

    /// The controller of a line has read `bytes` for a copy to another line: where they are written from, and the cycle in
    /// which they leave there. Between two controllers they pass the last level.
    pub(super) fn leave_for_copy(
        &mut self,
        read: LineAddr,
        written: LineAddr,
        bytes: u64,
        at: Cycle,
    ) -> (Origin, Cycle) {
        let (from, to) = (self.controller(read), self.controller(written));
        if from == to { (Origin::Controller, at) } else { (Origin::Llc, self.path.up(Origin::Llc, from, bytes, at)) }
    }

    /// A message of a design leaves at `at`; the cycle in which it arrives.
    pub(super) fn message(&mut self, from: Node, to: Node, size_bytes: u64, at: Cycle) -> Cycle {
        match (from, to) {
            (Node::Core(core), Node::Controller(to)) => {
                let sent = at + self.path.drawn_cycles(Origin::Core(core));
                self.path.down(Origin::Core(core), to.into(), size_bytes, sent)
            }
            (Node::Controller(from), Node::Core(core)) => {
                let sent = at + self.path.drawn_cycles(Origin::Core(core));
                self.path.up(Origin::Core(core), from.into(), size_bytes, sent)
            }
            (Node::Controller(from), Node::Controller(to)) => {
                let at = self.path.up(Origin::Llc, from.into(), size_bytes, at);
                self.path.down(Origin::Llc, to.into(), size_bytes, at)
            }
            (Node::Core(_), Node::Core(_)) => unreachable!("designs send nothing from core to core"),
        }
    }

    /// The controller of a line of persistent memory.
    pub(super) fn controller_of(&self, line: LineAddr) -> u16 {
        self.pmem.controller_of(line)
    }

    /// A write arrives at the controller of its line; whether its queue has accepted it.
    pub(super) fn submit(&mut self, write: Write, at: Cycle) -> bool {
        let at_ps = self.clock.picos(at);
        self.of_mut(write.line).submit(write, at_ps)
    }

    /// Reads a line from its controller: the newest data.
    pub(super) fn read(&mut self, by: Origin, line: LineAddr, at: Cycle) -> LineRead {
        let controller = self.controller(line);
        let asked = self.path.down(by, controller, 0, at);
        let asked_ps = self.clock.picos(asked);
        let read = self.of_mut(line).read(line, asked_ps);
        let mut data = read.data;
        self.path.overlay_for_read(line, &mut data);
        let (started, done) = (self.clock.cycles(read.started_ps), self.clock.cycles(read.done_ps));
        LineRead { data, asked, started, done, arrives: self.path.up(by, controller, LINE_BYTES, done) }
    }

    /// The newest data of a line outside the caches.
    pub(super) fn peek(&self, line: LineAddr) -> Line {
        let mut data = self.of(line).peek(line);
        self.path.overlay(line, &mut data);
        data
    }

    /// Replaces the newest bytes of DRAM.
    pub(super) fn write_dram(&mut self, addr: PhysAddr, bytes: &[u8]) {
        self.dram.write_newest(addr, bytes);
        self.path.write_newest(addr.line(), addr.offset(), bytes);
    }

    /// Lets held entries of persistent memory drain.
    pub(super) fn release(&mut self, controller: u16, group: u64) {
        self.pmem.release(controller, group);
    }

    /// Discards held entries of persistent memory; the tokens of their writes.
    pub(super) fn discard(&mut self, controller: u16, group: u64, at: Cycle) -> Vec<WriteToken> {
        self.pmem.discard(controller, group, self.clock.picos(at))
    }

    /// The cycle before which no queue does anything by itself, and nothing arrives at one.
    #[inline]
    pub(super) fn due(&self) -> Cycle {
        let first_ps = self.pmem.next_ps().min(self.dram.next_ps());
        let queues = if first_ps == Picos::MAX { Cycle::MAX } else { self.clock.cycles(first_ps) };
        queues.min(self.path.next_arrival())
    }

    fn picos(&self, at: Cycle) -> Picos {
        if at == Cycle::MAX { Picos::MAX } else { self.clock.picos(at) }
    }

    /// Whether work that is scheduled at this cycle comes before the next step of the memories.
    pub(super) fn are_due_after(&self, scheduled: Cycle) -> bool {
        self.picos(scheduled) <= self.pmem.next_ps().min(self.dram.next_ps())
    }

    /// Whether the next arrival comes before the next step of the memories: a queue has come to its time then.
    pub(super) fn are_due_after_arrival(&self) -> bool {
        self.picos(self.path.next_arrival()) < self.pmem.next_ps().min(self.dram.next_ps())
    }

    /// The next step of a queue that is due by `until` and before work that is scheduled.
    pub(super) fn step(&mut self, until: Cycle, scheduled: Cycle) -> Option<Step> {
        let bound = self.picos(until).min(self.picos(scheduled));
        if self.pmem.next_ps() <= self.dram.next_ps() {
            self.pmem.step(bound.min(self.dram.next_ps()))
        } else {
            self.dram.step(bound.min(self.pmem.next_ps()))
        }
    }

    /// A time of a controller in core cycles.
    pub(super) fn cycles(&self, at_ps: Picos) -> Cycle {
        self.clock.cycles(at_ps)
    }

    /// Whether a line that leaves the last level finds a write-back buffer. What drains from persist buffers waits in
    /// those, and not here.
    pub(super) fn has_write_back_buffer(&self, persist_buffers: bool) -> bool {
        let limit = self.write_back_buffers;
        let mut waiting =
            if persist_buffers { 0 } else { self.pmem.inbound_len() + self.path.evicted(self.controllers(true)) };
        if self.domain.buffers_outlast_queue() {
            waiting += self.pmem.queue().filter(|(_, entry)| entry.write.from_llc_buffer).count();
        }
        waiting < limit && self.dram.inbound_len() + self.path.evicted(self.controllers(false)) < limit
    }

    /// Whether all queues have drained, but for entries that a design holds.
    pub(super) fn are_dry(&self) -> bool {
        let queued = |memory: &Memory| memory.queue().filter(|(_, entry)| entry.write.held.is_none()).count();
        let waiting = self.pmem.inbound_len() + self.dram.inbound_len();
        queued(&self.pmem) + queued(&self.dram) + waiting == 0 && self.path.is_empty()
    }

    /// Whether any write is in a queue.
    pub(super) fn any_queued(&self) -> bool {
        self.pmem.queue().next().is_some() || self.dram.queue().next().is_some()
    }

    /// Whether any write waits for room in a queue.
    pub(super) fn any_waiting(&self) -> bool {
        self.pmem.inbound_len() + self.dram.inbound_len() > 0
    }

    /// Whether any write is in flight to a controller.
    pub(super) fn any_in_flight(&self) -> bool {
        !self.path.is_empty()
    }

    /// Writes of persistent memory that have not arrived at their controller, oldest first for each line.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = &Write> {
        self.path.in_flight(self.controllers(true))
    }

    /// Writes of persistent memory that have arrived and wait for room in a queue, oldest first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Write> {
        self.pmem.inbound()
    }

    /// Writes of persistent memory that no queue has accepted, oldest first for each line.
    pub(super) fn inbound(&self) -> impl Iterator<Item = &Write> {
        self.pmem.inbound().chain(self.in_flight())
    }

    /// The queued writes of persistent memory, each with its controller.
    pub(super) fn queue(&self) -> impl Iterator<Item = (u16, &Entry)> {
        self.pmem.queue()
    }

    /// Whether a write of the line has been handed over and is not durable.
    pub(super) fn is_write_pending(&self, line: LineAddr) -> bool {
        self.inbound().any(|w| w.line == line)
            || !self.domain.queue_is_durable() && self.pmem.queue().any(|(_, e)| e.write.line == line)
    }

    /// The program declares its data range.
    pub(super) fn declare_data(&mut self, range: Option<DataRange>) {
        self.data_range = range;
    }

    pub(super) fn data_range(&self) -> Option<DataRange> {
        self.data_range
    }

    /// The cause under which a line is written home: in persistent memory, what lies outside the program's declared data
    /// is its log, what lies in a design's region is metadata.
    pub(super) fn home_cause(&self, line: LineAddr) -> Cause {
        let addr = line.base();
        if !is_pmem(line) {
            return Cause::Data;
        }
        if addr >= self.program_end {
            return Cause::Metadata;
        }
        match self.data_range {
            Some(range) if !range.contains(addr) => Cause::Log,
            _ => Cause::Data,
        }
    }

    /// Whether a line lies in memory that programs may use.
    pub(super) fn is_programs(&self, line: LineAddr) -> bool {
        let base = line.base();
        if is_pmem(line) { base < self.program_end } else { base >= DRAM_BASE && self.dram.contains(base) }
    }

    /// Replaces the contents of persistent memory before the simulation starts.
    pub(super) fn load_pmem(&mut self, pages: &Pages) {
        self.pmem.load(pages, PhysAddr(u64::MAX));
    }

    /// Puts contents into both memories, as far as programs may use them. Nothing is copied before it is written.
    pub(super) fn load(&mut self, dram: &Pages, pmem: &Pages) {
        self.dram.load(dram, PhysAddr(u64::MAX));
        self.pmem.load(pmem, self.program_end);
    }

    pub(super) fn dram_media(&self) -> &Pages {
        self.dram.media()
    }

    pub(super) fn pmem_media(&self) -> &Pages {
        self.pmem.media()
    }

    /// What a power failure leaves of persistent memory, caches apart: the media, queues that survive, and what left a
    /// durable LLC.
    pub(super) fn durable_pmem(&self) -> Pages {
        let mut pmem = self.pmem.media().clone();
        if self.domain.queue_is_durable() {
            for (_, entry) in self.pmem.queue().filter(|(_, entry)| !entry.is_held()) {
                pmem.write_masked(entry.write.line, entry.write.mask, &entry.write.data);
            }
        }
        let buffers_alone = self.domain.buffers_outlast_queue();
        if buffers_alone {
            for (_, entry) in self.pmem.queue().filter(|(_, entry)| entry.write.from_llc_buffer) {
                pmem.write_masked(entry.write.line, entry.write.mask, &entry.write.data);
            }
        }
        if self.domain.llc_is_durable() {
            // Write-back buffers belong to the last level: what left the LLC and has not been accepted survives.
            for write in self.inbound().filter(|write| write.from_llc_buffer || !buffers_alone) {
                pmem.write_masked(write.line, write.mask, &write.data);
            }
        }
        pmem
    }

    /// The words that the media is writing and that no durable queue keeps, each with its bytes as a mask.
    pub(super) fn torn_words(&self) -> impl Iterator<Item = (&Write, u64)> {
        let kept = |write: &Write| {
            self.domain.queue_is_durable() || self.domain.buffers_outlast_queue() && write.from_llc_buffer
        };
        let in_flight = self.pmem.queue().filter(move |(_, e)| e.in_service() && !kept(&e.write));
        in_flight.flat_map(|(_, entry)| {
            let words = (0..WORDS_PER_LINE).map(|word| entry.write.mask & 0xff << (8 * word)).filter(|mask| *mask != 0);
            words.map(move |mask| (&entry.write, mask))
        })
    }

    /// The entries that a design holds in queues that survive.
    pub(super) fn held_writes(&self) -> Vec<HeldWrite> {
        if !self.domain.queue_is_durable() {
            return Vec::new();
        }
        let held = |(controller, entry): (u16, &Entry)| {
            let write = &entry.write;
            let held = |group| HeldWrite { controller, group, line: write.line, mask: write.mask, data: write.data };
            write.held.map(held)
        };
        self.pmem.queue().filter_map(held).collect()
    }

    /// Bytes of persistent memory that wait in queues.
    pub(super) fn owed_bytes(&self) -> u64 {
        let granularity = self.pmem.write_granularity_bytes();
        let in_flight = self.in_flight().map(|write| u64::from(write.mask.count_ones()).next_multiple_of(granularity));
        self.pmem.owed_bytes() + in_flight.sum::<u64>()
    }

    /// Bytes accepted by the media of persistent memory since the last reset, in the order of `Cause::ALL`.
    pub(super) fn media_write_bytes(&self) -> [u64; 5] {
        self.pmem.stats().0.media_write_bytes
    }

    /// Keeps the commands to all media from now on.
    pub(super) fn start_traces(&mut self) {
        self.pmem.start_trace();
        self.dram.start_trace();
    }

    /// The commands to the DRAM and to persistent memory since then; none are kept from now on.
    pub(super) fn take_traces(&mut self, until: Cycle) -> [Vec<Command>; 2] {
        let until_ps = self.clock.picos(until);
        [self.dram.take_trace(until_ps), self.pmem.take_trace(until_ps)]
    }

    pub(super) fn digest(&self, hasher: &mut dyn Hasher) {
        self.pmem.digest(hasher);
        self.dram.digest(hasher);
        self.path.digest(hasher);
    }

    pub(super) fn stats(&self, stats: &mut Stats) {
        memory_stats(stats, "pmem", &self.pmem);
        memory_stats(stats, "dram", &self.dram);
        self.path.stats(stats);
    }

    pub(super) fn reset_stats(&mut self) {
        self.pmem.reset_stats();
        self.dram.reset_stats();
        self.path.reset_stats();
    }

    /// Notes a write that is handed over, if unfenced cleans are tracked; `clean` if a cache-block operation of `core`
    /// asked for it. A write of no bytes asks for the acknowledgement of those before it.
    pub(super) fn note_unfenced(&mut self, core: CoreId, write: &Write, clean: bool) {
        let Some(mut unfenced) = self.unfenced.take() else { return };
        unfenced.note(core, write, clean, self);
        self.unfenced = Some(unfenced);
    }
}
