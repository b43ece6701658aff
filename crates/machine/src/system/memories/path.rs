//! The path between the cores, the last level and the controllers. Each message takes a latency, by its two ends, and its
//! turn on the link of its controller. ARCHITECTURE.md has the table ("The path to the controllers").
//!
//! A write is in flight until it arrives at its controller. Loads see it; writes to one line arrive in the order in which
//! they were sent. Each controller has a link into it and one out of it, with channels of their own for data and for requests
//! and acknowledgements, as on-chip buses have. A channel carries one message at a time: data for as many cycles as it is
//! wider than the link, another message for one cycle. Links of different controllers do not disturb each other.
//!
//! Cores run ahead, so links are booked by interval: a message with an earlier time takes the gap before a later one.

use crate::InterconnectConfig;
use durasim_design::{ActiveFault, Geometry, LevelId, Origin, path_faults};
use durasim_memory::{Reservations, Write};
use durasim_types::{CoreId, Cycle, Line, LineAddr, Rng, Stats};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::Hasher;

/// What a write arrives behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::system) enum Behind {
    /// Older writes of its line.
    Line,
    /// All that was sent to its controller before.
    Controller,
}

/// A write that has not arrived at its controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::system) struct InFlight {
    pub arrival: Cycle,
    /// The number of the controller, those of persistent memory before those of the DRAM.
    pub controller: usize,
    pub from: Origin,
    /// The core in whose name it was sent.
    pub core: CoreId,
    pub write: Write,
}

/// One direction of the link of a controller.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Link {
    data: Reservations,
    control: Reservations,
}

/// The two links of a controller.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Links {
    into: Link,
    out_of: Link,
    /// The controller takes nothing: it makes a write wait that has arrived.
    is_held: bool,
}

/// Cycles between a controller and what is not beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Latencies {
    core_to_controller: Cycle,
    controller_to_core: Cycle,
    llc_to_controller: Cycle,
    controller_to_llc: Cycle,
}

impl Latencies {
    /// The path of a core is that of a `cbo.clean`, unless the machine says otherwise: through the look-ups of all levels, and
    /// back as an answer comes back.
    fn new(config: &InterconnectConfig, geometry: &Geometry) -> Self {
        let levels = LevelId::ALL.len() as Cycle;
        let lookups: Cycle = LevelId::ALL.iter().map(|level| geometry.level(*level).latency_cycles).sum();
        let (llc_to_controller, controller_to_llc) = (config.memory_request_cycles, config.memory_response_cycles);
        let down = lookups + (levels - 1) * config.request_cycles + llc_to_controller;
        let up = controller_to_llc + levels * config.response_cycles;
        Latencies {
            core_to_controller: config.core_to_controller_cycles.unwrap_or(down),
            controller_to_core: config.controller_to_core_cycles.unwrap_or(up),
            llc_to_controller,
            controller_to_llc,
        }
    }

    fn down(self, from: Origin) -> Cycle {
        match from {
            Origin::Core(_) => self.core_to_controller,
            Origin::Llc => self.llc_to_controller,
            Origin::Controller => 0,
        }
    }

    fn up(self, to: Origin) -> Cycle {
        match to {
            Origin::Core(_) => self.controller_to_core,
            Origin::Llc => self.controller_to_llc,
            Origin::Controller => 0,
        }
    }
}

/// Counters of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PathStats {
    writes: u64,
    messages: u64,
    wait_cycles: Cycle,
    in_flight_max: usize,
}

/// The path to all controllers of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::system) struct Path {
    latencies: Latencies,
    link_bytes: u64,
    jitter_cycles: Cycle,
    jitter: Rng,
    /// What goes wrong on purpose.
    #[serde(skip)]
    fault: ActiveFault,
    links: Vec<Links>,
    /// By arrival, and those of one cycle in the order in which they were sent.
    in_flight: VecDeque<InFlight>,
    /// When the first of them arrives whose controller lets it.
    next_arrival: Cycle,
    stats: PathStats,
}

impl Path {
    pub(super) fn new(config: &InterconnectConfig, geometry: &Geometry, controllers: usize) -> Self {
        Path {
            latencies: Latencies::new(config, geometry),
            link_bytes: config.controller_link_bytes.into(),
            jitter_cycles: config.path_jitter_cycles,
            jitter: Rng::new(0),
            fault: geometry.planted,
            links: vec![Links::default(); controllers],
            in_flight: VecDeque::new(),
            next_arrival: Cycle::MAX,
            stats: PathStats::default(),
        }
    }

    /// Starts the sequence of drawn latencies.
    pub(super) fn seed(&mut self, seed: u64) {
        self.jitter = Rng::new(seed);
    }

    /// What a message takes more that something may overtake: all but reads, which the caches wait for.
    pub(super) fn drawn_cycles(&mut self, of: Origin) -> Cycle {
        if self.jitter_cycles == 0 || of == Origin::Controller { 0 } else { self.jitter.below(self.jitter_cycles + 1) }
    }

    /// Books a link for a message that reaches it at `at`; the cycle in which it has its turn.
    fn take_turn(link: &mut Link, stats: &mut PathStats, link_bytes: u64, bytes: u64, at: Cycle) -> Cycle {
        let (channel, cycles) = match bytes {
            0 => (&mut link.control, 1),
            _ => (&mut link.data, bytes.div_ceil(link_bytes)),
        };
        let turn = channel.first_gap(at, cycles);
        channel.book(turn, cycles);
        stats.messages += 1;
        stats.wait_cycles += turn - at;
        turn
    }

    /// A message with so many bytes of data leaves for a controller at `at`; the cycle in which it arrives.
    pub(super) fn down(&mut self, from: Origin, controller: usize, bytes: u64, at: Cycle) -> Cycle {
        if from == Origin::Controller {
            return at;
        }
        let reaches = at + self.latencies.down(from);
        Self::take_turn(&mut self.links[controller].into, &mut self.stats, self.link_bytes, bytes, reaches)
    }

    /// A message with so many bytes of data leaves a controller at `at`; the cycle in which it arrives.
    pub(super) fn up(&mut self, to: Origin, controller: usize, bytes: u64, at: Cycle) -> Cycle {
        if to == Origin::Controller {
            return at;
        }
        let link = &mut self.links[controller].out_of;
        let turn = Self::take_turn(link, &mut self.stats, self.link_bytes, bytes, at);
        turn + self.latencies.up(to)
    }

    /// A write is sent, at the cycle that it brings along as its arrival. Given back if it arrives at once: nothing is in
    /// front of it.
    pub(super) fn send(&mut self, mut sent: InFlight, behind: Behind) -> Option<Write> {
        self.stats.writes += 1;
        let at = sent.arrival;
        let arrival = self.down(sent.from, sent.controller, sent.write.mask.count_ones().into(), at);
        // What arrives last of those before it stands last.
        let before = self.in_flight.iter().rposition(|other| match behind {
            Behind::Line => other.write.line == sent.write.line,
            Behind::Controller => other.controller == sent.controller,
        });
        sent.arrival = arrival + if behind == Behind::Line { self.drawn_cycles(sent.from) } else { 0 };
        if let Some(place) = before {
            let before = self.in_flight[place].arrival;
            if behind == Behind::Line && self.fault.is(path_faults::WRITES_OVERTAKE) {
                self.in_flight.insert(place, InFlight { arrival: before, ..sent });
                self.find_next_arrival();
                return None;
            }
            sent.arrival = sent.arrival.max(before);
        } else if sent.arrival <= at && !self.links[sent.controller].is_held {
            return Some(sent.write);
        }
        self.put(sent);
        None
    }

    fn put(&mut self, sent: InFlight) {
        let place = self.in_flight.partition_point(|other| other.arrival <= sent.arrival);
        self.in_flight.insert(place, sent);
        self.stats.in_flight_max = self.stats.in_flight_max.max(self.in_flight.len());
        self.find_next_arrival();
    }

    fn next(&self) -> Option<usize> {
        self.in_flight.iter().position(|sent| !self.links[sent.controller].is_held)
    }

    /// When the next write arrives.
    #[inline]
    pub(super) fn next_arrival(&self) -> Cycle {
        self.next_arrival
    }

    fn find_next_arrival(&mut self) {
        self.next_arrival = self.next().map_or(Cycle::MAX, |n| self.in_flight[n].arrival);
    }

    /// Takes the next write that arrives.
    pub(super) fn take_next(&mut self) -> Option<InFlight> {
        let taken = self.in_flight.remove(self.next()?);
        self.find_next_arrival();
        taken
    }

    /// A controller makes a write wait that has arrived, and with it all that comes behind; or does so no more.
    pub(super) fn hold(&mut self, controller: usize, is_held: bool) {
        self.links[controller].is_held = is_held;
        self.find_next_arrival();
    }

    /// Writes in flight to these controllers, oldest first for each line.
    pub(super) fn in_flight(&self, controllers: std::ops::Range<usize>) -> impl Iterator<Item = &Write> {
        self.in_flight.iter().filter(move |sent| controllers.contains(&sent.controller)).map(|sent| &sent.write)
    }

    /// How many lines that the last level has evicted are in flight to these controllers.
    pub(super) fn evicted(&self, controllers: std::ops::Range<usize>) -> usize {
        if self.in_flight.is_empty() {
            return 0;
        }
        let evicted = |sent: &&InFlight| sent.from == Origin::Llc && controllers.contains(&sent.controller);
        self.in_flight.iter().filter(evicted).count()
    }

    /// Whether writes are acknowledged when they are sent, which is wrong.
    pub(super) fn acknowledges_on_sending(&self) -> bool {
        self.fault.is(path_faults::ACKNOWLEDGED_ON_SENDING)
    }

    /// Whether nothing is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Lays what is in flight of a line over what its controller has, for a read.
    pub(super) fn overlay_for_read(&self, line: LineAddr, data: &mut Line) {
        if !self.fault.is(path_faults::READS_PASS_WRITES) {
            self.overlay(line, data);
        }
    }

    /// Lays what is in flight of a line over what its controller has.
    pub(super) fn overlay(&self, line: LineAddr, data: &mut Line) {
        for sent in self.in_flight.iter().filter(|sent| sent.write.line == line) {
            sent.write.overlay(data);
        }
    }

    /// Changes what is in flight of a line.
    pub(super) fn write_newest(&mut self, line: LineAddr, offset: usize, bytes: &[u8]) {
        let range = offset..offset + bytes.len();
        let mask = range.clone().fold(0u64, |mask, byte| mask | 1 << byte);
        for sent in self.in_flight.iter_mut().filter(|sent| sent.write.line == line) {
            sent.write.data[range.clone()].copy_from_slice(bytes);
            sent.write.mask |= mask;
        }
    }

    pub(super) fn reset_stats(&mut self) {
        self.stats = PathStats::default();
    }

    pub(super) fn stats(&self, stats: &mut Stats) {
        let s = &self.stats;
        stats.count("path.writes", s.writes, "Writes sent to controllers");
        stats.count("path.messages", s.messages, "Messages on the links of controllers");
        stats.count("path.wait_cycles", s.wait_cycles, "Cycles that messages waited for a link");
        stats.count("path.in_flight_max", s.in_flight_max as u64, "The most writes in flight at a time");
    }

    pub(super) fn digest(&self, hasher: &mut dyn Hasher) {
        for sent in &self.in_flight {
            hasher.write_u64(sent.arrival);
            hasher.write_u64(sent.write.line.0);
            hasher.write_u64(sent.write.mask);
            hasher.write(&sent.write.data);
        }
    }
}
