//! A memory controller in front of its media: reads first; writes leave the write pending queue in order for each bank,
//! whenever the policy of writes lets them. State advances lazily: callers bring the controller to a time with
//! [`Controller::step`] before they use it at that time. The contents of the media belong to the memory and are passed
//! in; lines come with their number among the lines of this controller.

mod admission;
mod empty;
mod held;
mod index;
mod read_first;
mod rows;
mod schedule;

use crate::contents::Contents;
use crate::media::{Access, Direction, EntryUntil, Media, ModuleStats, RowStats};
use crate::trace::Command;
use crate::{MemoryConfig, Write, WritePolicy, WriteToken, queue::Entry};
use durasim_types::{Cause, Line, LineAddr, Picos};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::Hasher;

use index::Index;
use read_first::ReadFirst;
use schedule::Upcoming;

/// A finished read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The newest accepted data.
    pub data: Line,
    /// The time at which it took its entry of the read queue.
    pub queued_ps: Picos,
    /// The time at which the media started it.
    pub started_ps: Picos,
    /// The time at which it has arrived.
    pub done_ps: Picos,
}

/// A change inside the controller that its owner must know of, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The queue accepted a write that had been waiting outside, or one of no bytes has nothing in front of it outside.
    Accepted {
        /// When.
        at_ps: Picos,
        /// The line.
        line: LineAddr,
        /// The bytes: bit `i` stands for byte `i`.
        mask: u64,
        /// The cause.
        cause: Cause,
        /// The requester.
        token: Option<WriteToken>,
    },
    /// A queue that asks before it takes a write ([`crate::Memory::ask_before_accepting`]) has room for one that waits.
    HasRoom {
        /// When.
        at_ps: Picos,
        /// The line of that write.
        line: LineAddr,
    },
    /// The media began with a write, in a memory that reports starts ([`crate::Memory::report_starts`]).
    Started {
        /// When.
        at_ps: Picos,
        /// The line.
        line: LineAddr,
        /// The cause.
        cause: Cause,
        /// Whether a write-back buffer of the last level has it.
        from_llc_buffer: bool,
    },
    /// The media finished a write.
    Written {
        /// When.
        at_ps: Picos,
        /// The line.
        line: LineAddr,
        /// The cause.
        cause: Cause,
        /// Everybody who asked.
        tokens: Vec<WriteToken>,
    },
}

/// Counters of a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerStats {
    /// Reads served.
    pub reads: u64,
    /// Reads answered from the write queue.
    pub forwards: u64,
    /// Writes accepted.
    pub writes: u64,
    /// Writes that joined a waiting entry.
    pub joined: u64,
    /// Writes that found the queue full.
    pub queue_full: u64,
    /// Bytes accepted by the media, by cause in the order of [`Cause::ALL`].
    pub media_write_bytes: [u64; 5],
    /// Sum over reads of the time from arrival to data.
    pub read_latency_ps: u64,
    /// Drains of the write queue.
    pub drains: u64,
    /// Reads that arrived during a drain.
    pub reads_behind_drains: u64,
    /// Held entries that became ordinary ones because writes waited for room.
    pub yielded: u64,
    /// Held entries that were discarded.
    pub discarded: u64,
}

impl ControllerStats {
    /// Adds the counters of another controller.
    pub fn add(&mut self, other: &ControllerStats) {
        self.reads += other.reads;
        self.forwards += other.forwards;
        self.writes += other.writes;
        self.joined += other.joined;
        self.queue_full += other.queue_full;
        for (sum, bytes) in self.media_write_bytes.iter_mut().zip(other.media_write_bytes) {
            *sum += bytes;
        }
        self.read_latency_ps += other.read_latency_ps;
        self.drains += other.drains;
        self.reads_behind_drains += other.reads_behind_drains;
        self.yielded += other.yielded;
        self.discarded += other.discarded;
    }
}

/// The counters for one range of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    stats: ControllerStats,
    /// The states in which its accesses found rows, of media that have rows.
    rows: RowStats,
    /// The work of buffers for its accesses, of modules of persistent memory.
    module: ModuleStats,
}

/// A write that waits outside for room.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Waiting {
    write: Write,
    /// The line's number in the media.
    local: u64,
    arrived_ps: Picos,
    /// No write waited before it: it may join an entry of its line in a full queue, as without a design that decides.
    is_first: bool,
    /// The queue was asked and does not take it before it has changed.
    is_refused: bool,
}

/// A controller with its media.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Controller {
    read_queue_entries: usize,
    write_queue_entries: usize,
    read_entry_until: EntryUntil,
    write_entry_until: EntryUntil,
    coalesce_writes: bool,
    write_granularity_bytes: u64,
    media: Media,
    queue: VecDeque<Entry>,
    /// Writes that wait outside for room, oldest first.
    inbound: VecDeque<Waiting>,
    /// The design is asked about each write before the queue accepts it.
    asks: bool,
    /// The begin of each write to the media is a step of its own.
    reports_starts: bool,
    /// The times at which the taken entries of the read queue become free; unused with media that have rows.
    reads_in_flight: Vec<Picos>,
    /// Present if writes leave media without rows only while there is no read, or in a drain.
    read_first: Option<ReadFirst>,
    /// The time at which the queue last gave up an entry: a waiting write cannot be accepted earlier.
    freed_ps: Picos,
    /// Held entries in the queue.
    held: usize,
    /// Nothing happens before this time.
    next_ps: Picos,
    /// The next events of the entries; absent where a change has made them unknown.
    #[serde(skip)]
    upcoming: Option<Upcoming>,
    /// Finds entries of the queue.
    #[serde(skip)]
    index: Option<Index>,
    /// Counters since the last reset, by range of addresses.
    counters: Vec<Counters>,
    /// The number of the first line of the second range.
    second_line: u64,
}

impl Controller {
    /// A controller of `contents` with empty queues; `salt` as for [`Media::new`].
    pub fn new(config: &MemoryConfig, salt: u64, contents: &Contents) -> Self {
        let mut config = config.clone();
        config.complete();
        let queues = &config.controller;
        let entries = queues.write_queue_entries as usize;
        let is_read_first = queues.write_policy == Some(WritePolicy::ReadFirst) && !config.media.kind.is_ddr();
        let read_first = is_read_first.then(|| ReadFirst::new(queues));
        Controller {
            read_queue_entries: queues.read_queue_entries as usize,
            write_queue_entries: entries,
            read_entry_until: queues.read_entry_until.unwrap_or(EntryUntil::Data),
            write_entry_until: queues.write_entry_until.unwrap_or(EntryUntil::Data),
            coalesce_writes: queues.coalesce_writes,
            write_granularity_bytes: config.media.write_granularity_bytes.into(),
            media: Media::new(&config.media, config.media.kind.is_ddr().then(|| queues.seen_by_scheduler()), salt),
            queue: VecDeque::new(),
            inbound: VecDeque::new(),
            asks: false,
            reports_starts: false,
            reads_in_flight: Vec::new(),
            read_first,
            freed_ps: 0,
            held: 0,
            next_ps: Picos::MAX,
            upcoming: None,
            index: None,
            counters: vec![Counters::default(); contents.count()],
            second_line: contents.second_line(),
        }
    }

    /// Accepted writes, oldest first.
    pub fn queue(&self) -> impl Iterator<Item = &Entry> {
        self.queue.iter()
    }

    /// Writes that wait outside for room, oldest first.
    pub fn inbound(&self) -> impl Iterator<Item = &Write> {
        self.inbound.iter().map(|waiting| &waiting.write)
    }

    /// Number of writes that wait outside for room.
    #[inline]
    pub fn inbound_len(&self) -> usize {
        self.inbound.len()
    }

    /// Counters of a range.
    pub fn stats(&self, range: usize) -> &ControllerStats {
        &self.counters[range].stats
    }

    /// The states in which accesses of a range found rows, of media that have rows.
    pub fn row_stats(&self, range: usize) -> Option<RowStats> {
        self.media.has_rows().then(|| self.counters[range].rows)
    }

    /// The work of buffers for accesses of a range, of modules of persistent memory.
    pub fn module_stats(&self, range: usize) -> Option<ModuleStats> {
        self.media.module_stats().map(|_| self.counters[range].module)
    }

    /// Counters start again from zero.
    pub fn reset_stats(&mut self) {
        self.counters.fill(Counters::default());
        self.media.reset_stats();
    }

    #[inline]
    fn counters(&mut self, line: LineAddr) -> &mut Counters {
        &mut self.counters[usize::from(line.0 >= self.second_line)]
    }

    /// Gives an access to media without rows its place, and counts what buffers did.
    fn access(&mut self, line: LineAddr, local: u64, direction: Direction, at_ps: Picos) -> Access {
        self.upcoming = None;
        let before = self.media.module_stats();
        let access = self.media.access(local, direction, at_ps);
        if let (Some(before), Some(after)) = (before, self.media.module_stats()) {
            self.counters(line).module.add(&after.since(&before));
        }
        access
    }

    /// Keeps the commands to the media from now on.
    pub fn start_trace(&mut self) {
        self.media.start_trace();
    }

    /// The commands since then.
    pub fn take_trace(&mut self, until_ps: Picos) -> Vec<Command> {
        self.media.take_trace(until_ps)
    }

    /// Puts what the controller holds of a line over what the media hold; the bytes that it covers.
    pub fn overlay(&self, line: LineAddr, data: &mut Line) -> u64 {
        let mut covered = 0;
        let entries = if self.may_have(line) { self.queue.len() } else { 0 };
        let held = self.queue.iter().take(entries).map(|e| &e.write).chain(self.inbound());
        for write in held.filter(|write| write.line == line) {
            write.overlay(data);
            covered |= write.mask;
        }
        covered
    }

    /// Changes what the controller holds of a line.
    pub fn write_held(&mut self, line: LineAddr, offset: usize, bytes: &[u8]) {
        let range = offset..offset + bytes.len();
        let mask = range.clone().fold(0u64, |mask, byte| mask | 1 << byte);
        let queued = self.queue.iter_mut().map(|e| &mut e.write).chain(self.inbound.iter_mut().map(|w| &mut w.write));
        for write in queued.filter(|w| w.line == line) {
            // In every copy in flight: each of them would otherwise bring the old bytes back.
            write.data[range.clone()].copy_from_slice(bytes);
            write.mask |= mask;
        }
    }

    /// The bytes of the line in the entries in front of its oldest held one.
    fn overlay_below_held(&self, line: LineAddr, data: &mut Line) -> u64 {
        let of_line = self.queue.iter().filter(|e| e.write.line == line);
        of_line.take_while(|e| !e.is_held()).fold(0, |covered, entry| {
            entry.write.overlay(data);
            covered | entry.write.mask
        })
    }

    /// Serves a read that arrives at `at_ps` and finds `data` in the media. The controller must have been brought to
    /// that time.
    pub fn read(&mut self, line: LineAddr, local: u64, data: Line, below_held: bool, at_ps: Picos) -> Read {
        self.counters(line).stats.reads += 1;
        let mut data = data;
        let covered = if below_held { self.overlay_below_held(line, &mut data) } else { self.overlay(line, &mut data) };
        if covered == u64::MAX {
            self.counters(line).stats.forwards += 1;
            return Read { data, queued_ps: at_ps, started_ps: at_ps, done_ps: at_ps };
        }
        if self.media.has_rows() {
            return self.read_row(line, local, data, at_ps);
        }
        let mut start_ps = at_ps;
        if let Some(ReadFirst { drain_ps: (begin_ps, end_ps), .. }) = self.read_first
            && (begin_ps..end_ps).contains(&at_ps)
        {
            self.counters(line).stats.reads_behind_drains += 1;
            start_ps = end_ps;
        }
        self.reads_in_flight.retain(|&end| end > at_ps);
        if self.reads_in_flight.len() >= self.read_queue_entries {
            let first = *self.reads_in_flight.iter().min().expect("the queue is full, so it is not empty");
            self.reads_in_flight.retain(|&end| end > first);
            start_ps = start_ps.max(first);
        }
        let queued_ps = start_ps;
        let Access { start_ps: started_ps, done_ps } = self.access(line, local, Direction::Read, start_ps);
        self.reads_in_flight.push(if self.read_entry_until == EntryUntil::Command { started_ps } else { done_ps });
        self.counters(line).stats.read_latency_ps += done_ps - at_ps;
        if let Some(read_first) = &mut self.read_first {
            read_first.reads.add(at_ps, done_ps);
        }
        // Bookings only delay waiting writes: `next_ps` stays a lower bound.
        Read { data, queued_ps, started_ps, done_ps }
    }

    /// Hands over a write that arrives at `at_ps`: true if the queue accepts it at once, else it waits outside and a
    /// later [`Step::Accepted`] reports. Order among writes is kept. A write of no bytes takes no room and is not
    /// counted.
    pub fn submit(&mut self, write: Write, local: u64, at_ps: Picos) -> bool {
        if write.mask == 0 && self.inbound.is_empty() {
            self.pass(&write);
            return true;
        }
        if !self.asks && self.inbound.is_empty() && self.place(write, local, at_ps) {
            return true;
        }
        let (line, is_first) = (write.line, self.inbound.is_empty());
        self.inbound.push_back(Waiting { write, local, arrived_ps: at_ps, is_first, is_refused: false });
        if write.mask != 0 && (!self.asks || !is_first || !self.can_accept()) {
            self.counters(line).stats.queue_full += 1;
        }
        self.yield_held(at_ps);
        self.refresh();
        false
    }

    fn place(&mut self, write: Write, local: u64, at_ps: Picos) -> bool {
        if self.coalesce_writes && self.may_have(write.line) {
            // Only the youngest entry of the line may be joined, or a byte could go back in time.
            let youngest = self.queue.iter_mut().rev().find(|e| e.write.line == write.line);
            if let Some(entry) =
                youngest.filter(|e| e.finish_ps.is_none() && e.write.held == write.held && e.write.cause == write.cause)
            {
                write.overlay(&mut entry.write.data);
                entry.write.mask |= write.mask;
                entry.write.from_llc_buffer |= write.from_llc_buffer;
                entry.joined.extend(write.token);
                let stats = &mut self.counters(write.line).stats;
                stats.writes += 1;
                stats.joined += 1;
                return true;
            }
        }
        if self.occupied() >= self.write_queue_entries {
            return false;
        }
        self.counters(write.line).stats.writes += 1;
        let bank = self.media.bank(local) as u16;
        let number = self.next_number();
        self.queue.push_back(Entry {
            write,
            local,
            bank,
            joined: Vec::new(),
            number,
            start_bound_ps: at_ps,
            request: None,
            finish_ps: None,
            unreported_start_ps: None,
        });
        self.held += usize::from(write.held.is_some());
        self.index_arrival();
        self.note_arrival();
        self.submit_to_rows(at_ps);
        self.next_ps = self.next_ps.min(at_ps);
        self.drain_if_full(at_ps);
        true
    }

    /// From now on, the start of each write to the media is a step.
    pub fn report_starts(&mut self) {
        self.reports_starts = true;
    }

    /// The time before which nothing is scheduled.
    #[inline]
    pub fn next_ps(&self) -> Picos {
        self.next_ps
    }

    /// Entries of the write queue that are taken.
    fn occupied(&self) -> usize {
        match self.write_entry_until {
            EntryUntil::Data => self.queue.len(),
            EntryUntil::Command => self.waiting(),
        }
    }

    fn can_accept(&self) -> bool {
        if self.is_empty_next() {
            return true;
        }
        let has_room = self.occupied() < self.write_queue_entries;
        if !self.asks {
            return has_room && !self.inbound.is_empty();
        }
        self.candidate().is_some_and(|index| has_room || self.inbound[index].is_first && self.joins(index))
    }

    fn refresh(&mut self) {
        let accept = if self.can_accept() { self.freed_ps } else { Picos::MAX };
        self.next_ps = self.upcoming().first_ps().min(accept);
    }

    /// Goes on to the next step that happens at or before `until_ps`. `None`: all of that time has passed.
    pub fn step(&mut self, contents: &mut Contents, until_ps: Picos) -> Option<Step> {
        while self.next_ps <= until_ps {
            if self.can_accept() {
                if self.is_empty_next() {
                    return self.pass_next();
                }
                if self.asks {
                    return self.has_room();
                }
                let Waiting { write, local, arrived_ps, .. } =
                    self.inbound.pop_front().expect("can_accept saw a waiting write");
                let at_ps = arrived_ps.max(self.freed_ps);
                let placed = self.place(write, local, at_ps);
                assert!(placed, "a queue with room refused a write");
                self.yield_held(at_ps);
                self.refresh();
                let Write { line, mask, cause, token, .. } = write;
                return Some(Step::Accepted { at_ps, line, mask, cause, token });
            }
            if self.media.has_rows() && self.serve_write_of_rows(until_ps) {
                self.refresh();
                continue;
            }
            let upcoming = self.upcoming();
            // `next_ps` is a lower bound only: what it announced may lie later, or be held.
            let first_ps = upcoming.first_ps();
            if first_ps > until_ps || first_ps == Picos::MAX {
                self.next_ps = first_ps;
                return None;
            }
            // A write may start as an older one of its line finishes, which comes first.
            let ends_before = upcoming.finish.is_some_and(|(_, at_ps)| at_ps == first_ps);
            if let Some((index, at_ps)) =
                upcoming.reported_start.filter(|(_, at_ps)| *at_ps == first_ps && !ends_before)
            {
                self.upcoming = None;
                self.queue[index].unreported_start_ps = None;
                self.refresh();
                let Write { line, cause, from_llc_buffer, .. } = self.queue[index].write;
                return Some(Step::Started { at_ps, line, cause, from_llc_buffer });
            }
            match (upcoming.start, upcoming.finish) {
                (Some((index, start_ps)), finish) if finish.is_none_or(|(_, f)| start_ps < f) => {
                    self.start_write(index, start_ps);
                    if self.write_entry_until == EntryUntil::Command {
                        self.freed_ps = self.freed_ps.max(start_ps);
                        self.ask_again();
                    }
                    self.refresh();
                }
                (_, Some((index, at_ps))) => {
                    let entry = self.queue.remove(index).expect("the index was just found");
                    self.index_departure(&entry);
                    self.note_departure(index);
                    contents.write_masked(entry.write.line, entry.write.mask, &entry.write.data);
                    self.freed_ps = self.freed_ps.max(at_ps);
                    self.ask_again();
                    self.refresh();
                    let tokens = entry.write.token.into_iter().chain(entry.joined).collect();
                    return Some(Step::Written { at_ps, line: entry.write.line, cause: entry.write.cause, tokens });
                }
                _ => {
                    // Media with rows may have commands left for reads, after which no write has its turn.
                    self.next_ps = Picos::MAX;
                    return None;
                }
            }
        }
        None
    }

    fn start_write(&mut self, index: usize, start_ps: Picos) {
        let (line, local) = (self.queue[index].write.line, self.queue[index].local);
        let finish_ps = self.access(line, local, Direction::Write, start_ps).done_ps;
        self.note_start(index, start_ps, finish_ps);
    }

    /// The media begin with a write at `start_ps` and will have it at `finish_ps`.
    fn note_start(&mut self, index: usize, start_ps: Picos, finish_ps: Picos) {
        let line = self.queue[index].write.line;
        // An open row takes a write of a line before its cells hold the one before. For a power failure it begins then.
        let reported_ps = start_ps.max(self.line_is_written_until(line, self.queue[index].number));
        let reports_starts = self.reports_starts;
        let entry = &mut self.queue[index];
        entry.finish_ps = Some(finish_ps);
        entry.unreported_start_ps = reports_starts.then_some(reported_ps);
        let cause = Cause::ALL.iter().position(|&c| c == entry.write.cause).expect("every cause is in ALL");
        let bytes = u64::from(entry.write.mask.count_ones());
        let bytes = bytes.next_multiple_of(self.write_granularity_bytes);
        self.index_start(index);
        self.counters(line).stats.media_write_bytes[cause] += bytes;
    }

    /// The granularity of writes in the media, in bytes: each write costs a multiple of it.
    pub fn write_granularity_bytes(&self) -> u64 {
        self.write_granularity_bytes
    }

    /// Bytes that the queues still owe the media for these lines.
    pub fn owed_bytes(&self, is_counted: impl Fn(LineAddr) -> bool) -> u64 {
        let waiting = self.queue.iter().filter(|e| e.finish_ps.is_none()).map(|e| &e.write);
        let writes = waiting.chain(self.inbound()).filter(|write| is_counted(write.line));
        writes
            .map(|write| write.mask)
            .map(|mask| u64::from(mask.count_ones()).next_multiple_of(self.write_granularity_bytes))
            .sum()
    }

    /// Feeds queues and clocks into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        let queued = self.queue.iter().map(|e| (&e.write, e.finish_ps.unwrap_or(0)));
        for (write, time) in queued.chain(self.inbound.iter().map(|w| (&w.write, w.arrived_ps))) {
            hasher.write_u64(write.line.0);
            hasher.write_u64(write.mask);
            hasher.write(&write.data);
            hasher.write_u64(time);
        }
        self.media.digest(hasher);
        if let Some(read_first) = &self.read_first {
            hasher.write_u64(read_first.drain_ps.1);
        }
    }
}
