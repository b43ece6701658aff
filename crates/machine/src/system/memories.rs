//! The two memories below the last level: reads, writes and the passing of time at their controllers, and what a power
//! failure finds there.

#[cfg(test)]
mod tests;
mod unfenced;

pub(super) use unfenced::Chooser;
use unfenced::Unfenced;

use super::{DRAM_BASE, PMEM_BASE};
use crate::MachineConfig;
use crate::system::counters::memory_stats;
use durasim_design::{Geometry, HeldWrite};
use durasim_memory::{Command, Entry, Memory, Step, Write, WriteToken};
use durasim_types::{Cause, Clock, CoreId, Cycle, DataRange, Domain, Line, LineAddr, Pages, PhysAddr, Picos, Stats};
use std::hash::Hasher;

const WORDS_PER_LINE: u32 = 8;

super::part::part! {
    /// The part of the memory system that holds the controllers and the media.
    pub(crate) struct Memories saved as SavedMemories {
        saved {
            pmem: Memory,
            dram: Memory,
            data_range: Option<DataRange>,
        }
        kept {
            clock: Clock,
            domain: Domain,
            request_cycles: Cycle,
            response_cycles: Cycle,
            write_back_buffers: usize,
            /// End of what programs may use of persistent memory; the regions of the design follow.
            program_end: PhysAddr,
            unfenced: Option<Box<Unfenced>>,
        }
    }
}

/// Whether a line lies in persistent memory.
#[inline]
pub(super) fn is_pmem(line: LineAddr) -> bool {
    line.0 >= PMEM_BASE.line().0
}

impl Memories {
    pub(super) fn new(config: &MachineConfig, geometry: &Geometry) -> Self {
        Memories {
            pmem: Memory::new(&config.pmem, Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20)),
            dram: Memory::new(&config.dram, Pages::new(DRAM_BASE, config.dram.capacity_mib << 20)),
            data_range: None,
            clock: geometry.clock,
            domain: geometry.domain,
            request_cycles: config.interconnect.memory_request_cycles,
            response_cycles: config.interconnect.memory_response_cycles,
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
            data_range: self.data_range,
            clock: self.clock,
            domain: self.domain,
            request_cycles: self.request_cycles,
            response_cycles: self.response_cycles,
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

    /// Cycles of a request from the last level to a controller.
    pub(super) fn request_cycles(&self) -> Cycle {
        self.request_cycles
    }

    /// Cycles of an answer from a controller to the last level.
    pub(super) fn response_cycles(&self) -> Cycle {
        self.response_cycles
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

    /// Reads a line from its controller: the newest data, and the cycle in which it arrives at the last level.
    pub(super) fn read(&mut self, line: LineAddr, at: Cycle) -> (Line, Cycle) {
        let at_ps = self.clock.picos(at + self.request_cycles);
        let read = self.of_mut(line).read(line, at_ps);
        (read.data, self.clock.cycles(read.done_ps) + self.response_cycles)
    }

    /// The newest data of a line outside the caches.
    pub(super) fn peek(&self, line: LineAddr) -> Line {
        self.of(line).peek(line)
    }

    /// Replaces the newest bytes of DRAM.
    pub(super) fn write_dram(&mut self, addr: PhysAddr, bytes: &[u8]) {
        self.dram.write_newest(addr, bytes);
    }

    /// Lets held entries of persistent memory drain.
    pub(super) fn release(&mut self, controller: u16, group: u64) {
        self.pmem.release(controller, group);
    }

    /// Discards held entries of persistent memory; the tokens of their writes.
    pub(super) fn discard(&mut self, controller: u16, group: u64, at: Cycle) -> Vec<WriteToken> {
        self.pmem.discard(controller, group, self.clock.picos(at))
    }

    /// The cycle before which no queue does anything by itself.
    #[inline]
    pub(super) fn due(&self) -> Cycle {
        let first_ps = self.pmem.next_ps().min(self.dram.next_ps());
        if first_ps == Picos::MAX { Cycle::MAX } else { self.clock.cycles(first_ps) }
    }

    fn picos(&self, at: Cycle) -> Picos {
        if at == Cycle::MAX { Picos::MAX } else { self.clock.picos(at) }
    }

    /// Whether work that is scheduled at this cycle comes before the next step of the memories.
    pub(super) fn are_due_after(&self, scheduled: Cycle) -> bool {
        self.picos(scheduled) <= self.pmem.next_ps().min(self.dram.next_ps())
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
        let waiting = if persist_buffers { 0 } else { self.pmem.inbound_len() };
        waiting < limit && self.dram.inbound_len() < limit
    }

    /// Whether all queues have drained, but for entries that a design holds.
    pub(super) fn are_dry(&self) -> bool {
        let queued = |memory: &Memory| memory.queue().filter(|(_, entry)| entry.write.held.is_none()).count();
        queued(&self.pmem) + queued(&self.dram) + self.pmem.inbound_len() + self.dram.inbound_len() == 0
    }

    /// Whether any write is in a queue.
    pub(super) fn any_queued(&self) -> bool {
        self.pmem.queue().next().is_some() || self.dram.queue().next().is_some()
    }

    /// Writes of persistent memory that wait for room in a queue.
    pub(super) fn waiting_for_pmem(&self) -> usize {
        self.pmem.inbound_len()
    }

    /// Whether any write waits for room in a queue.
    pub(super) fn any_waiting(&self) -> bool {
        self.pmem.inbound_len() + self.dram.inbound_len() > 0
    }

    /// Writes of persistent memory that no queue has accepted, oldest first.
    pub(super) fn inbound(&self) -> impl Iterator<Item = &Write> {
        self.pmem.inbound()
    }

    /// The queued writes of persistent memory, each with its controller.
    pub(super) fn queue(&self) -> impl Iterator<Item = (u16, &Entry)> {
        self.pmem.queue()
    }

    /// Whether a write of the line has been handed over and is not durable.
    pub(super) fn is_write_pending(&self, line: LineAddr) -> bool {
        self.pmem.inbound().any(|w| w.line == line)
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
        if self.domain.llc_is_durable() {
            // Write-back buffers belong to the last level: what left the LLC and waits for the queue survives.
            for write in self.pmem.inbound() {
                pmem.write_masked(write.line, write.mask, &write.data);
            }
        }
        pmem
    }

    /// The words that the media is writing and that no durable queue keeps, each with its bytes as a mask.
    pub(super) fn torn_words(&self) -> impl Iterator<Item = (&Write, u64)> {
        let in_flight = self.pmem.queue().filter(|(_, e)| e.in_service() && !self.domain.queue_is_durable());
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
        self.pmem.owed_bytes()
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
    }

    pub(super) fn stats(&self, stats: &mut Stats) {
        memory_stats(stats, "pmem", &self.pmem);
        memory_stats(stats, "dram", &self.dram);
    }

    pub(super) fn reset_stats(&mut self) {
        self.pmem.reset_stats();
        self.dram.reset_stats();
    }

    /// Notes a write that is handed over, if unfenced cleans are tracked; `clean` if a cache-block operation of `core`
    /// asked for it. A write of no bytes asks for the acknowledgement of those before it.
    pub(super) fn note_unfenced(&mut self, core: CoreId, write: &Write, clean: bool) {
        let Some(mut unfenced) = self.unfenced.take() else { return };
        unfenced.note(core, write, clean, self);
        self.unfenced = Some(unfenced);
    }
}
