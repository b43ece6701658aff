//! A memory controller in front of media with fixed latencies: reads first, writes drain in order from the write
//! pending queue whenever their bank and the channel are free. State advances lazily: callers bring the controller to
//! a time with [`Controller::step`] before they use it at that time.

use crate::{MemoryConfig, Write, WriteToken, queue::Entry, reservations::Reservations};
use durasim_types::{Cause, Line, LineAddr, Pages, PhysAddr, Picos};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::Hasher;

/// More banks than any configuration may have.
const BANKS_MAX: usize = 1024;

/// A finished read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The newest accepted data.
    pub data: Line,
    /// When it is there.
    pub done_ps: Picos,
}

/// A change inside the controller that its owner must know of, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The queue accepted a write that had been waiting outside.
    Accepted {
        /// When.
        at_ps: Picos,
        /// Where.
        line: LineAddr,
        /// Why.
        cause: Cause,
        /// Who asked.
        token: Option<WriteToken>,
    },
    /// The media finished a write.
    Written {
        /// When.
        at_ps: Picos,
        /// Where.
        line: LineAddr,
        /// Why.
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
}

/// A controller with its media.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Controller {
    config: MemoryConfig,
    transfer_ps: Picos,
    media: Pages,
    queue: VecDeque<Entry>,
    /// Writes that wait outside for room, oldest first, with their arrival.
    inbound: VecDeque<(Write, Picos)>,
    banks: Vec<Reservations>,
    channel: Reservations,
    /// When each read in flight ends.
    reads_in_flight: Vec<Picos>,
    /// When the queue last gave up an entry: a waiting write cannot be accepted earlier.
    freed_ps: Picos,
    /// Held entries in the queue.
    held: usize,
    /// Nothing happens before this time.
    next_ps: Picos,
    /// Counters since the last reset.
    pub stats: ControllerStats,
}

impl Controller {
    /// A controller with empty queues in front of `media`.
    pub fn new(config: &MemoryConfig, media: Pages) -> Self {
        Controller {
            config: config.clone(),
            transfer_ps: config.media.transfer_ps(),
            media,
            queue: VecDeque::new(),
            inbound: VecDeque::new(),
            banks: vec![Reservations::default(); config.media.banks as usize],
            channel: Reservations::default(),
            reads_in_flight: Vec::new(),
            freed_ps: 0,
            held: 0,
            next_ps: Picos::MAX,
            stats: ControllerStats::default(),
        }
    }

    /// Whether this controller owns the address.
    #[inline]
    pub fn contains(&self, addr: PhysAddr) -> bool {
        self.media.contains(addr)
    }

    /// The media as they are now, without the queues.
    pub fn media(&self) -> &Pages {
        &self.media
    }

    /// Accepted writes, oldest first.
    pub fn queue(&self) -> impl Iterator<Item = &Entry> {
        self.queue.iter()
    }

    /// Writes that wait outside for room, oldest first.
    pub fn inbound(&self) -> impl Iterator<Item = &Write> {
        self.inbound.iter().map(|(write, _)| write)
    }

    /// Number of writes that wait outside for room.
    pub fn inbound_len(&self) -> usize {
        self.inbound.len()
    }

    /// The bank of a line: adjacent lines lie in different banks, and higher address bits permute the banks (as Zhang,
    /// Zhu and Zhang, MICRO 2000, do with pages), or a victim would always meet the line that replaces it.
    fn bank(&self, line: LineAddr) -> usize {
        let mut hash = line.0;
        for shift in [20, 10, 5] {
            hash ^= hash >> shift;
        }
        (hash % self.banks.len() as u64) as usize
    }

    /// The newest data of a line, wherever the controller holds it.
    pub fn peek(&self, line: LineAddr) -> Line {
        let mut data = self.media.line(line);
        for entry in self.queue.iter().filter(|e| e.write.line == line) {
            entry.write.overlay(&mut data);
        }
        for (write, _) in self.inbound.iter().filter(|(w, _)| w.line == line) {
            write.overlay(&mut data);
        }
        data
    }

    /// Puts whole pages into the media, those of `pages` that begin before `end`, for loaders before the simulation starts.
    /// They are shared until one side writes.
    pub fn load(&mut self, pages: &Pages, end: PhysAddr) {
        self.media.share_from(pages, end);
    }

    /// Changes the newest copy of (part of) a line in place, in no time: how a kernel's writes reach volatile memory.
    pub fn write_newest(&mut self, addr: PhysAddr, bytes: &[u8]) {
        let line = addr.line();
        let range = addr.offset()..addr.offset() + bytes.len();
        let mask = bytes.iter().enumerate().fold(0u64, |mask, (i, _)| mask | 1 << (range.start + i));
        let queued = self.queue.iter_mut().map(|e| &mut e.write).chain(self.inbound.iter_mut().map(|(w, _)| w));
        for write in queued.filter(|w| w.line == line) {
            // In every copy on its way: each of them would otherwise bring the old bytes back.
            write.data[range.clone()].copy_from_slice(bytes);
            write.mask |= mask;
        }
        self.media.write(addr, bytes);
    }

    /// Serves a read that arrives at `at_ps`. The controller must have been brought to that time.
    pub fn read(&mut self, line: LineAddr, at_ps: Picos) -> Read {
        self.stats.reads += 1;
        let full = u64::MAX;
        let covered = self.queue.iter().map(|e| &e.write).chain(self.inbound.iter().map(|(w, _)| w));
        let covered = covered.filter(|w| w.line == line).fold(0, |mask, w| mask | w.mask);
        let data = self.peek(line);
        if covered == full {
            self.stats.forwards += 1;
            return Read { data, done_ps: at_ps };
        }
        let mut start_ps = at_ps;
        self.reads_in_flight.retain(|&end| end > at_ps);
        if self.reads_in_flight.len() >= self.config.controller.read_queue_entries as usize {
            let first = *self.reads_in_flight.iter().min().expect("the queue is full, so it is not empty");
            self.reads_in_flight.retain(|&end| end > first);
            start_ps = first;
        }
        let latency_ps = self.config.media.read_latency_ns * 1000;
        let start_ps = self.book(self.bank(line), start_ps, latency_ps);
        let done_ps = start_ps + latency_ps;
        self.reads_in_flight.push(done_ps);
        self.stats.read_latency_ps += done_ps - at_ps;
        // Bookings only delay waiting writes: `next_ps` stays a lower bound.
        Read { data, done_ps }
    }

    /// The first time, not before `at_ps`, at which a bank is free for so long and the channel for a transfer.
    fn first_start(&self, bank: usize, at_ps: Picos, latency_ps: Picos) -> Picos {
        let mut start = at_ps;
        loop {
            let free = self.channel.first_gap(self.banks[bank].first_gap(start, latency_ps), self.transfer_ps);
            if free == start {
                return start;
            }
            start = free;
        }
    }

    fn book(&mut self, bank: usize, at_ps: Picos, latency_ps: Picos) -> Picos {
        let start_ps = self.first_start(bank, at_ps, latency_ps);
        self.banks[bank].book(start_ps, latency_ps);
        self.channel.book(start_ps, self.transfer_ps);
        start_ps
    }

    /// Hands over a write that arrives at `at_ps`: true if the queue accepts it at once, else it waits outside and a
    /// later [`Step::Accepted`] tells. Order among writes is kept.
    pub fn submit(&mut self, write: Write, at_ps: Picos) -> bool {
        assert!(self.contains(write.line.base()), "a write to {} reached the wrong controller", write.line);
        if self.inbound.is_empty() && self.place(write, at_ps) {
            return true;
        }
        self.stats.queue_full += 1;
        self.inbound.push_back((write, at_ps));
        self.refresh();
        false
    }

    fn place(&mut self, write: Write, at_ps: Picos) -> bool {
        if self.config.controller.coalesce_writes && write.held.is_none() {
            // Only the youngest entry of the line may be joined, or a byte could go back in time.
            let youngest = self.queue.iter_mut().rev().find(|e| e.write.line == write.line);
            if let Some(entry) =
                youngest.filter(|e| e.finish_ps.is_none() && e.write.held.is_none() && e.write.cause == write.cause)
            {
                write.overlay(&mut entry.write.data);
                entry.write.mask |= write.mask;
                entry.joined.extend(write.token);
                self.stats.writes += 1;
                self.stats.joined += 1;
                return true;
            }
        }
        if self.queue.len() >= self.config.controller.write_queue_entries as usize {
            return false;
        }
        self.stats.writes += 1;
        self.queue.push_back(Entry { write, joined: Vec::new(), start_bound_ps: at_ps, finish_ps: None });
        self.held += usize::from(write.held.is_some());
        self.next_ps = self.next_ps.min(at_ps);
        true
    }

    /// The time before which nothing happens by itself.
    #[inline]
    pub fn next_ps(&self) -> Picos {
        self.next_ps
    }

    /// The first waiting entry that may start, with its start. The first waiting entry of a bank goes first, so
    /// writes to one line never overtake each other.
    fn next_start(&mut self) -> Option<(usize, Picos)> {
        let latency_ps = self.config.media.write_latency_ns * 1000;
        let mut best: Option<(usize, Picos)> = None;
        let mut banks_seen = [0u64; BANKS_MAX / 64];
        for index in 0..self.queue.len() {
            let entry = &self.queue[index];
            let (line, bound_ps) = (entry.write.line, entry.start_bound_ps);
            if entry.finish_ps.is_some() || entry.is_held() {
                continue;
            }
            let bank = self.bank(line);
            let (word, bit) = (bank / 64, 1u64 << (bank % 64));
            if banks_seen[word] & bit != 0 {
                continue;
            }
            if self.held > 0 && self.queue.iter().take(index).any(|e| e.write.line == line && e.is_held()) {
                continue;
            }
            banks_seen[word] |= bit;
            if best.is_some_and(|(_, s)| bound_ps >= s) {
                continue;
            }
            // Behind an older write of the line that is being served, even if the bank has a gap before it.
            let older = self.queue.iter().take(index).filter(|e| e.write.line == line);
            let earliest = older.filter_map(|e| e.finish_ps).max().unwrap_or(0).max(bound_ps);
            let start = self.first_start(bank, earliest, latency_ps);
            self.queue[index].start_bound_ps = start;
            if best.is_none_or(|(_, s)| start < s) {
                best = Some((index, start));
            }
        }
        best
    }

    fn next_finish(&self) -> Option<(usize, Picos)> {
        let finishes = self.queue.iter().enumerate().filter_map(|(i, e)| e.finish_ps.map(|f| (i, f)));
        finishes.min_by_key(|&(i, f)| (f, i))
    }

    fn can_accept(&self) -> bool {
        !self.inbound.is_empty() && self.queue.len() < self.config.controller.write_queue_entries as usize
    }

    fn refresh(&mut self) {
        let start = self.next_start().map_or(Picos::MAX, |(_, s)| s);
        let finish = self.next_finish().map_or(Picos::MAX, |(_, f)| f);
        let accept = if self.can_accept() { self.freed_ps } else { Picos::MAX };
        self.next_ps = start.min(finish).min(accept);
    }

    /// Goes on to the next step that happens at or before `until_ps`. `None`: all of that time has passed.
    pub fn step(&mut self, until_ps: Picos) -> Option<Step> {
        while self.next_ps <= until_ps {
            if self.can_accept() {
                let (write, arrived_ps) = self.inbound.pop_front().expect("can_accept saw a waiting write");
                let at_ps = arrived_ps.max(self.freed_ps);
                let placed = self.place(write, at_ps);
                assert!(placed, "a queue with room refused a write");
                self.refresh();
                return Some(Step::Accepted { at_ps, line: write.line, cause: write.cause, token: write.token });
            }
            let start = self.next_start();
            let finish = self.next_finish();
            // `next_ps` is a lower bound only: what it announced may lie later, or be held.
            let first_ps = start.map_or(Picos::MAX, |(_, s)| s).min(finish.map_or(Picos::MAX, |(_, f)| f));
            if first_ps > until_ps || first_ps == Picos::MAX {
                self.next_ps = first_ps;
                return None;
            }
            match (start, finish) {
                (Some((index, start_ps)), finish) if finish.is_none_or(|(_, f)| start_ps < f) => {
                    self.start_write(index, start_ps);
                    self.refresh();
                }
                (_, Some((index, at_ps))) => {
                    let entry = self.queue.remove(index).expect("the index was just found");
                    self.media.write_masked(entry.write.line, entry.write.mask, &entry.write.data);
                    self.freed_ps = self.freed_ps.max(at_ps);
                    self.refresh();
                    let tokens = entry.write.token.into_iter().chain(entry.joined).collect();
                    return Some(Step::Written { at_ps, line: entry.write.line, cause: entry.write.cause, tokens });
                }
                _ => return None,
            }
        }
        None
    }

    fn start_write(&mut self, index: usize, start_ps: Picos) {
        let bank = self.bank(self.queue[index].write.line);
        let latency_ps = self.config.media.write_latency_ns * 1000;
        let finish_ps = self.book(bank, start_ps, latency_ps) + latency_ps;
        let entry = &mut self.queue[index];
        entry.finish_ps = Some(finish_ps);
        let cause = Cause::ALL.iter().position(|&c| c == entry.write.cause).expect("every cause is in ALL");
        let bytes = u64::from(entry.write.mask.count_ones());
        self.stats.media_write_bytes[cause] +=
            bytes.next_multiple_of(u64::from(self.config.media.write_granularity_bytes));
    }

    /// Bytes that the queues still owe the media, by cause.
    pub fn owed_bytes(&self) -> u64 {
        let granularity = u64::from(self.config.media.write_granularity_bytes);
        let waiting = self.queue.iter().filter(|e| e.finish_ps.is_none()).map(|e| e.write.mask);
        let masks = waiting.chain(self.inbound.iter().map(|(w, _)| w.mask));
        masks.map(|mask| u64::from(mask.count_ones()).next_multiple_of(granularity)).sum()
    }

    /// Held entries of `group` become ordinary ones.
    pub fn release(&mut self, group: u64) {
        for entry in self.queue.iter_mut().filter(|e| e.write.held == Some(group)) {
            entry.write.held = None;
            self.held -= 1;
        }
        // Those that still wait for room too: they would come in held for ever.
        for (write, _) in self.inbound.iter_mut().filter(|(w, _)| w.held == Some(group)) {
            write.held = None;
        }
        self.refresh();
    }

    /// Held entries of `group` vanish, and those of the group that still wait for room: their tokens are given back,
    /// since nobody will acknowledge them.
    pub fn discard(&mut self, group: u64, at_ps: Picos) -> Vec<WriteToken> {
        let waiting = self.inbound.iter().filter(|(w, _)| w.held == Some(group));
        let tokens = waiting.filter_map(|(w, _)| w.token).collect();
        self.inbound.retain(|(w, _)| w.held != Some(group));
        self.queue.retain(|e| e.write.held != Some(group));
        self.held = self.queue.iter().filter(|e| e.is_held()).count();
        self.freed_ps = self.freed_ps.max(at_ps);
        self.refresh();
        tokens
    }

    /// Feeds contents, queues and clocks into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        self.media.digest(hasher);
        let queued = self.queue.iter().map(|e| (&e.write, e.finish_ps.unwrap_or(0)));
        for (write, time) in queued.chain(self.inbound.iter().map(|(w, t)| (w, *t))) {
            hasher.write_u64(write.line.0);
            hasher.write_u64(write.mask);
            hasher.write(&write.data);
            hasher.write_u64(time);
        }
        self.banks.iter().chain([&self.channel]).for_each(|r| hasher.write_u64(r.end()));
    }
}

#[cfg(test)]
mod tests;
