//! The two memories below the last level: reads, writes and the passing of time at their controllers, and what a power
//! failure finds there.

mod durable;
mod path;
#[cfg(test)]
mod tests;
mod unfenced;

pub(crate) use path::WriteOrder;
use path::{InFlight, Path, Trip};
pub(crate) use unfenced::Chooser;
use unfenced::Unfenced;

use super::counters::memory_stats;
use super::interconnect::{End, Interconnect};
use crate::setup::config::MachineConfig;
use crate::setup::memory_map::{DRAM_BASE, PMEM_BASE, is_pmem};
use durasim_contract::{Geometry, Node, Occupancy, Origin};
use durasim_memory::{Command, ControllerStats, Entry, Memory, MemoryConfig, Read, Step, Write, WriteToken};
use durasim_types::{
    Cause, Clock, CoreId, Cycle, DataRange, Domain, LINE_BYTES, Line, LineAddr, Pages, PhysAddr, Picos, Stats,
};
use std::collections::BTreeSet;
use std::hash::Hasher;

const WORDS_PER_LINE: u32 = 8;

super::part::part! {
    /// The part of the memory system that holds the controllers and the media.
    pub(crate) struct Memories saved as SavedMemories {
        saved {
            /// Persistent memory, and the DRAM if that shares its controllers.
            pmem: Memory,
            /// The DRAM, if it has controllers of its own.
            dram: Option<Memory>,
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
            /// Queues of persistent memory ask the design before they take a write.
            design_accepts: bool,
        }
    }
}

/// A line that is read from its controller, and the cycles of its way.
#[derive(Clone, Copy)]
pub(crate) struct LineRead {
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

impl Memories {
    /// The memories of a machine; `design_accepts`: the design is asked about what queues take.
    pub(crate) fn new(config: &MachineConfig, geometry: &Geometry, design_accepts: bool) -> Self {
        let pages = |base, of: &MemoryConfig| Pages::new(base, of.capacity_mib << 20);
        let (dram, pmem) = (pages(DRAM_BASE, &config.dram), pages(PMEM_BASE, &config.pmem));
        let (dram, mut pmem) = if config.shared_controllers {
            (None, Memory::shared(&config.pmem, dram, pmem))
        } else {
            (Some(Memory::new(&config.dram, dram)), Memory::new(&config.pmem, pmem))
        };
        if design_accepts {
            pmem.ask_before_accepting();
        }
        if !geometry.domain.queue_is_durable() {
            pmem.report_starts();
        }
        let controllers = config.controllers();
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
            design_accepts,
        }
    }

    /// A copy with the same contents and queues. It does not track unfenced cleans.
    pub(crate) fn fork(&self) -> Self {
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
            design_accepts: self.design_accepts,
        }
    }

    fn of(&self, line: LineAddr) -> &Memory {
        match &self.dram {
            Some(dram) if !is_pmem(line) => dram,
            _ => &self.pmem,
        }
    }

    fn of_mut(&mut self, line: LineAddr) -> &mut Memory {
        match &mut self.dram {
            Some(dram) if !is_pmem(line) => dram,
            _ => &mut self.pmem,
        }
    }

    /// The number of persistent memory among the ranges of its controllers.
    fn pmem_range(&self) -> usize {
        usize::from(self.dram.is_none())
    }

    /// The memory that the DRAM belongs to. It is the first of the ranges there.
    fn dram(&self) -> &Memory {
        self.dram.as_ref().unwrap_or(&self.pmem)
    }

    /// Time of the first step of a queue.
    #[inline]
    fn next_ps(&self) -> Picos {
        let of_dram = self.dram.as_ref().map_or(Picos::MAX, Memory::next_ps);
        self.pmem.next_ps().min(of_dram)
    }

    /// Starts the sequence of what is drawn on the path.
    pub(crate) fn seed(&mut self, seed: u64) {
        self.path.seed(seed);
    }

    /// The number of a line's controller among all of both memories.
    fn controller(&self, line: LineAddr) -> usize {
        match &self.dram {
            Some(dram) if !is_pmem(line) => {
                usize::from(self.pmem.controllers()) + usize::from(dram.controller_of(line))
            }
            _ => self.pmem.controller_of(line).into(),
        }
    }

    /// A write is sent to the controller of its line, after older ones. Given back if it has arrived at once.
    pub(crate) fn send(
        &mut self,
        on: &mut Interconnect,
        from: Origin,
        write: Write,
        order: WriteOrder,
        at: Cycle,
    ) -> Option<Write> {
        let controller = self.controller(write.line);
        self.path.send(on, InFlight { arrival: at, controller, from, write }, order)
    }

    /// Whether writes are acknowledged when they are sent: a planted fault.
    pub(crate) fn acknowledges_on_sending(&self) -> bool {
        self.path.acknowledges_on_sending()
    }

    /// A line of each controller of persistent memory.
    pub(crate) fn a_line_of_each_controller(&self) -> impl Iterator<Item = LineAddr> {
        self.pmem.a_line_of_each_controller(self.pmem_range())
    }

    /// Cycle in which the next write arrives at its controller; `Cycle::MAX` if none is in flight.
    pub(crate) fn next_arrival(&self) -> Cycle {
        self.path.next_arrival()
    }

    /// Takes the next write that arrives at its controller.
    pub(crate) fn take_arrival(&mut self) -> Option<Write> {
        self.path.take_next().map(|sent| sent.write)
    }

    /// The acknowledgement of a write to a line leaves its controller at `at`; the cycle in which it arrives.
    pub(crate) fn acknowledge(&mut self, on: &mut Interconnect, to: Origin, line: LineAddr, at: Cycle) -> Cycle {
        let trip = Trip { end: to, line, controller: self.controller(line), bytes: 0 };
        self.path.up(on, trip, at) + self.path.drawn_cycles(to)
    }

    /// A core asks the controller of a line whether it has all of it, at `at`: the cycle in which the controller is asked, and
    /// that in which its answer is at the core.
    pub(crate) fn ask_controller(
        &mut self,
        on: &mut Interconnect,
        core: CoreId,
        line: LineAddr,
        at: Cycle,
    ) -> (Cycle, Cycle) {
        let by = Origin::Core(core);
        let trip = Trip { end: by, line, controller: self.controller(line), bytes: 0 };
        let asked = self.path.down(on, trip, at);
        (asked, self.acknowledge(on, by, line, asked))
    }

    /// The controller of a line is asked for a copy; the cycle in which it begins.
    pub(crate) fn ask_for_copy(&mut self, on: &mut Interconnect, by: Origin, line: LineAddr, at: Cycle) -> Cycle {
        let trip = Trip { end: by, line, controller: self.controller(line), bytes: 0 };
        self.path.down(on, trip, at)
    }

    /// The controller of a line has read `bytes` for a copy to another line: where they are written from, and the cycle in
    /// which they leave there. Between two controllers they pass the last level.
    pub(crate) fn leave_for_copy(
        &mut self,
        on: &mut Interconnect,
        read: LineAddr,
        written: LineAddr,
        bytes: u64,
        at: Cycle,
    ) -> (Origin, Cycle) {
        let (from, to) = (self.controller(read), self.controller(written));
        if from == to {
            return (Origin::Controller, at);
        }
        // The write leaves from the bank of the line that is written.
        let trip = Trip { end: Origin::Llc, line: written, controller: from, bytes };
        (Origin::Llc, self.path.up(on, trip, at))
    }

    /// A message of a design leaves at `at`; the cycle in which it arrives.
    pub(crate) fn message(&mut self, on: &mut Interconnect, from: Node, to: Node, size_bytes: u64, at: Cycle) -> Cycle {
        let sent = match (from, to) {
            (Node::Core(core), _) | (_, Node::Core(core)) => at + self.path.drawn_cycles(Origin::Core(core)),
            _ => at,
        };
        if let Some(mesh) = on.mesh() {
            let end = |node| match node {
                Node::Core(core) => End::Core(core),
                Node::Controller(number) => End::Controller(number.into()),
                Node::LlcBank(number) => End::Bank(LineAddr(number.into())),
            };
            return self.path.message(mesh, end(from), end(to), size_bytes, sent);
        }
        // Without tiles the line of a message does not matter.
        let trip = |end, controller: u16| Trip {
            end,
            line: PMEM_BASE.line(),
            controller: controller.into(),
            bytes: size_bytes,
        };
        match (from, to) {
            (Node::Core(core), Node::Controller(to)) => self.path.down(on, trip(Origin::Core(core), to), sent),
            (Node::Controller(from), Node::Core(core)) => self.path.up(on, trip(Origin::Core(core), from), sent),
            (Node::Controller(from), Node::Controller(to)) => {
                let at = self.path.up(on, trip(Origin::Llc, from), sent);
                self.path.down(on, trip(Origin::Llc, to), at)
            }
            (Node::Core(core), Node::LlcBank(bank)) => on.message_to_bank(core, LineAddr(bank.into()), sent),
            (Node::LlcBank(bank), Node::Core(core)) => on.message_from_bank(core, LineAddr(bank.into()), sent),
            _ => unreachable!("designs send messages from and to cores, and between controllers"),
        }
    }

    /// The controller of a line of persistent memory.
    pub(crate) fn controller_of(&self, line: LineAddr) -> u16 {
        self.pmem.controller_of(line)
    }

    /// A write arrives at the controller of its line; whether its queue has accepted it.
    pub(crate) fn submit(&mut self, write: Write, at: Cycle) -> bool {
        let at_ps = self.clock.picos(at);
        self.of_mut(write.line).submit(write, at_ps)
    }

    /// Reads a line from its controller, for `missed`, which is the same line or one that is kept there: the newest data.
    pub(crate) fn read(
        &mut self,
        on: &mut Interconnect,
        by: Origin,
        missed: LineAddr,
        line: LineAddr,
        at: Cycle,
    ) -> LineRead {
        let trip = Trip { end: by, line: missed, controller: self.controller(line), bytes: 0 };
        let asked = self.path.down(on, trip, at);
        let asked_ps = self.clock.picos(asked);
        let read = self.of_mut(line).read(line, asked_ps);
        let mut data = read.data;
        self.path.overlay_for_read(line, &mut data);
        let (started, done) = (self.clock.cycles(read.started_ps), self.clock.cycles(read.done_ps));
        let arrives = self.path.line_up(on, Trip { bytes: LINE_BYTES, ..trip }, done);
        LineRead { data, asked, started, done, arrives }
    }

    /// The controller of a line reads the version below the oldest held entry of the line.
    pub(crate) fn read_below_held(&mut self, line: LineAddr, asked: Cycle) -> LineRead {
        let asked_ps = self.clock.picos(asked);
        let Read { data, started_ps, done_ps, .. } = self.pmem.read_below_held(line, asked_ps);
        let (started, done) = (self.clock.cycles(started_ps), self.clock.cycles(done_ps));
        LineRead { data, asked, started, done, arrives: done }
    }

    /// The newest data of a line outside the caches.
    pub(crate) fn peek(&self, line: LineAddr) -> Line {
        let mut data = self.of(line).peek(line);
        self.path.overlay(line, &mut data);
        data
    }

    /// Replaces the newest bytes of DRAM.
    pub(crate) fn write_dram(&mut self, addr: PhysAddr, bytes: &[u8]) {
        self.of_mut(addr.line()).write_newest(addr, bytes);
        self.path.write_newest(addr.line(), addr.offset(), bytes);
    }

    /// Whether the queue of a line is one that asks before it takes a write.
    pub(crate) fn asks(&self, line: LineAddr) -> bool {
        self.design_accepts && (is_pmem(line) || self.dram.is_none())
    }

    /// The write of persistent memory that a queue which asks has room for, and how full the queue is.
    pub(crate) fn next_candidate(&self, controller: u16) -> Option<(Write, Occupancy)> {
        self.pmem.next_candidate(controller).map(|write| (*write, self.pmem.occupancy(controller)))
    }

    /// Occupancy of the queue of a controller of persistent memory.
    pub(crate) fn occupancy(&self, controller: u16) -> Occupancy {
        self.pmem.occupancy(controller)
    }

    /// A queue takes the write that it was asked about; the write.
    pub(crate) fn admit(&mut self, controller: u16, held: Option<u64>, yields: bool) -> Write {
        self.pmem.admit(controller, held, yields)
    }

    /// A queue does not take the write that it was asked about before it has changed.
    pub(crate) fn refuse(&mut self, controller: u16) {
        self.pmem.refuse(controller);
    }

    /// Lets held entries of persistent memory drain; those of one line, if one is named.
    pub(crate) fn release(&mut self, controller: u16, group: u64, line: Option<LineAddr>, at: Cycle) {
        self.pmem.release(controller, group, line, self.clock.picos(at));
    }

    /// Discards held entries of persistent memory; the tokens of their writes.
    pub(crate) fn discard(&mut self, controller: u16, group: u64, at: Cycle) -> Vec<WriteToken> {
        self.pmem.discard(controller, group, self.clock.picos(at))
    }

    /// The cycle before which no queue has a step, and nothing arrives at one.
    #[inline]
    pub(crate) fn due(&self) -> Cycle {
        let first_ps = self.next_ps();
        let queues = if first_ps == Picos::MAX { Cycle::MAX } else { self.clock.cycles(first_ps) };
        queues.min(self.path.next_arrival())
    }

    fn picos(&self, at: Cycle) -> Picos {
        if at == Cycle::MAX { Picos::MAX } else { self.clock.picos(at) }
    }

    /// Whether work that is scheduled at this cycle comes before the next step of the memories.
    pub(crate) fn are_due_after(&self, scheduled: Cycle) -> bool {
        self.picos(scheduled) <= self.next_ps()
    }

    /// The last cycle in which scheduled work comes before the next step of the memories.
    pub(crate) fn last_cycle_before_next(&self) -> Cycle {
        let first_ps = self.next_ps();
        let before_queues = if first_ps == Picos::MAX {
            Cycle::MAX
        } else {
            let begun = self.clock.cycles(first_ps);
            if self.clock.picos(begun) <= first_ps { begun } else { begun - 1 }
        };
        before_queues.min(self.path.next_arrival())
    }

    /// Whether the next arrival comes before the next step of the memories: a queue has come to its time then.
    pub(crate) fn are_due_after_arrival(&self) -> bool {
        self.picos(self.path.next_arrival()) < self.next_ps()
    }

    /// The next step of a queue that is due by `until` and before work that is scheduled.
    pub(crate) fn step(&mut self, until: Cycle, scheduled: Cycle) -> Option<Step> {
        let bound = self.picos(until).min(self.picos(scheduled));
        let Some(dram) = &mut self.dram else { return self.pmem.step(bound) };
        if self.pmem.next_ps() <= dram.next_ps() {
            self.pmem.step(bound.min(dram.next_ps()))
        } else {
            dram.step(bound.min(self.pmem.next_ps()))
        }
    }

    /// A time of a controller in core cycles.
    pub(crate) fn cycles(&self, at_ps: Picos) -> Cycle {
        self.clock.cycles(at_ps)
    }

    /// Whether a line that leaves the last level finds a write-back buffer. What drains from persist buffers waits in
    /// those, and not here.
    pub(crate) fn has_write_back_buffer(&self, persist_buffers: bool) -> bool {
        let limit = self.write_back_buffers;
        let of_dram = self.dram.as_ref().map_or(0, Memory::inbound_len);
        let at_most = self.pmem.inbound_len() + of_dram + self.path.writes_in_flight();
        if at_most < limit && !self.domain.buffers_outlast_queue() {
            return true;
        }
        let mut waiting =
            if persist_buffers { 0 } else { self.pmem.inbound_len_of(self.pmem_range()) + self.path.evicted(is_pmem) };
        if self.domain.buffers_outlast_queue() {
            waiting += self.queue().filter(|(_, entry)| entry.write.from_llc_buffer).count();
        }
        waiting < limit && self.dram().inbound_len_of(0) + self.path.evicted(|line| !is_pmem(line)) < limit
    }

    /// Whether all queues have drained, except entries that a design holds and writes that wait for them.
    pub(crate) fn are_drained(&self) -> bool {
        let is_dry = |memory: &Memory| {
            let mut held = BTreeSet::new();
            memory.inbound_len() == 0
                && memory.queue().all(|(_, entry)| {
                    if entry.is_held() {
                        held.insert(entry.write.line);
                    }
                    held.contains(&entry.write.line)
                })
        };
        is_dry(&self.pmem) && self.dram.as_ref().is_none_or(is_dry) && self.path.is_empty()
    }

    /// Whether any write is in a queue.
    pub(crate) fn any_queued(&self) -> bool {
        let is_any = |memory: &Memory| memory.queue().next().is_some();
        is_any(&self.pmem) || self.dram.as_ref().is_some_and(is_any)
    }

    /// Whether any write waits for room in a queue.
    pub(crate) fn any_waiting(&self) -> bool {
        self.pmem.inbound_len() + self.dram.as_ref().map_or(0, Memory::inbound_len) > 0
    }

    /// Whether any write is in flight to a controller.
    pub(crate) fn any_in_flight(&self) -> bool {
        !self.path.is_empty()
    }

    /// Writes of persistent memory that have not arrived at their controller, oldest first for each line.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Write> {
        self.path.in_flight().filter(|write| is_pmem(write.line))
    }

    /// Writes of persistent memory that have arrived and wait for room in a queue, oldest first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Write> {
        self.pmem.inbound().filter(|write| is_pmem(write.line))
    }

    /// Writes of persistent memory that no queue has accepted, oldest first for each line.
    pub(crate) fn inbound(&self) -> impl Iterator<Item = &Write> {
        self.waiting().chain(self.in_flight())
    }

    /// The queued writes of persistent memory, each with its controller.
    pub(crate) fn queue(&self) -> impl Iterator<Item = (u16, &Entry)> {
        self.pmem.queue().filter(|(_, entry)| is_pmem(entry.write.line))
    }

    /// Whether a write of the line has been handed over and is not durable.
    pub(crate) fn is_write_pending(&self, line: LineAddr) -> bool {
        self.inbound().any(|w| w.line == line && w.mask != 0) || !self.domain.queue_is_durable() && self.is_queued(line)
    }

    /// The lines of writes that have been handed over and are not durable.
    pub(crate) fn pending_lines(&self) -> impl Iterator<Item = LineAddr> {
        let inbound = self.inbound().filter(|write| write.mask != 0).map(|write| write.line);
        let queued = self.queue().filter(|_| !self.domain.queue_is_durable()).map(|(_, entry)| entry.write.line);
        inbound.chain(queued)
    }

    /// Whether a queue of persistent memory has a write of the line.
    pub(crate) fn is_queued(&self, line: LineAddr) -> bool {
        self.queue().any(|(_, entry)| entry.write.line == line)
    }

    /// The program declares its data range.
    pub(crate) fn declare_data(&mut self, range: Option<DataRange>) {
        self.data_range = range;
    }

    pub(crate) fn data_range(&self) -> Option<DataRange> {
        self.data_range
    }

    /// The cause under which a line is written home: in persistent memory, what is outside the program's declared data
    /// is its log, what is in a design's region is metadata.
    pub(crate) fn home_cause(&self, line: LineAddr) -> Cause {
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

    /// Whether a line is in memory that programs may use.
    pub(crate) fn is_programs(&self, line: LineAddr) -> bool {
        let base = line.base();
        if is_pmem(line) { base < self.program_end } else { base >= DRAM_BASE && self.dram().media(0).contains(base) }
    }

    /// Replaces the contents of persistent memory before the simulation starts.
    pub(crate) fn load_pmem(&mut self, pages: &Pages) {
        self.pmem.load(self.pmem_range(), pages, PhysAddr(u64::MAX));
    }

    /// Puts contents into both memories, as far as programs may use them. Nothing is copied before it is written.
    pub(crate) fn load(&mut self, dram: &Pages, pmem: &Pages) {
        self.of_mut(DRAM_BASE.line()).load(0, dram, PhysAddr(u64::MAX));
        self.pmem.load(self.pmem_range(), pmem, self.program_end);
    }

    pub(crate) fn dram_media(&self) -> &Pages {
        self.dram().media(0)
    }

    pub(crate) fn pmem_media(&self) -> &Pages {
        self.pmem.media(self.pmem_range())
    }

    /// Bytes of persistent memory that wait in queues.
    pub(crate) fn owed_bytes(&self) -> u64 {
        let granularity = self.pmem.write_granularity_bytes();
        let in_flight = self.in_flight().map(|write| u64::from(write.mask.count_ones()).next_multiple_of(granularity));
        self.pmem.owed_bytes(self.pmem_range()) + in_flight.sum::<u64>()
    }

    /// Bytes accepted by the media of persistent memory since the last reset, in the order of `Cause::ALL`.
    pub(crate) fn media_write_bytes(&self) -> [u64; 5] {
        self.pmem.stats(self.pmem_range()).0.media_write_bytes
    }

    /// Lines that all media read and wrote since the last reset: what queues answered or joined is left out.
    pub(crate) fn media_accesses(&self) -> [u64; 2] {
        let pmem = self.pmem.stats(self.pmem_range()).0;
        let all = [self.dram().stats(0).0, pmem];
        let sum = |of: fn(&ControllerStats) -> u64| all.iter().map(of).sum();
        [sum(|s| s.reads - s.forwards), sum(|s| s.writes - s.joined).saturating_sub(sum(|s| s.discarded))]
    }

    /// Keeps the commands to all media from now on.
    pub(crate) fn start_traces(&mut self) {
        self.pmem.start_trace();
        self.dram.iter_mut().for_each(Memory::start_trace);
    }

    /// The commands to the DRAM and to persistent memory since then; none are kept from now on. Those to shared media are
    /// with persistent memory.
    pub(crate) fn take_traces(&mut self, until: Cycle) -> [Vec<Command>; 2] {
        let until_ps = self.clock.picos(until);
        [self.dram.as_mut().map_or_else(Vec::new, |dram| dram.take_trace(until_ps)), self.pmem.take_trace(until_ps)]
    }

    pub(crate) fn digest(&self, hasher: &mut dyn Hasher) {
        self.pmem.digest(hasher);
        self.dram.iter().for_each(|dram| dram.digest(hasher));
        self.path.digest(hasher);
    }

    pub(crate) fn stats(&self, stats: &mut Stats) {
        memory_stats(stats, "pmem", &self.pmem, self.pmem_range());
        memory_stats(stats, "dram", self.dram(), 0);
        self.path.stats(stats);
    }

    pub(crate) fn reset_stats(&mut self) {
        self.pmem.reset_stats();
        self.dram.iter_mut().for_each(Memory::reset_stats);
        self.path.reset_stats();
    }

    /// Notes a write that is handed over, if unfenced cleans are tracked; `clean` if a cache-block operation of `core`
    /// asked for it. A write of no bytes asks for the acknowledgement of those before it.
    pub(crate) fn note_unfenced(&mut self, core: CoreId, write: &Write, clean: bool) {
        let Some(mut unfenced) = self.unfenced.take() else { return };
        unfenced.note(core, write, clean, self);
        self.unfenced = Some(unfenced);
    }
}
