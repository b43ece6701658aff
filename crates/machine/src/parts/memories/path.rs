//! The path between the cores, the last level and the controllers. Each message takes a latency, by its two ends, and its
//! turn on the link of its controller. docs/internals/path-to-controllers.md has the table.
//!
//! A write is in flight until it arrives at its controller. Loads see it; writes to one line arrive in the order in which
//! they were sent. Each controller has a link into it and one out of it, with channels of their own for data and for requests
//! and acknowledgements, as on-chip buses have. A channel carries one message at a time: data for as many cycles as it is
//! wider than the link, another message for one cycle. Links of different controllers do not disturb each other.
//!
//! On a mesh the ends are tiles, and the links of the controllers are those of the mesh: [`Path::down`] and [`Path::up`] say
//! which tiles a message passes.
//!
//! Cores run ahead, so links are booked by interval: a message with an earlier time takes the gap before a later one.

use crate::parts::interconnect::{End, Interconnect, Mesh};
use crate::setup::config::InterconnectConfig;
use durasim_contract::{ActiveFault, Geometry, Origin, path_faults};
use durasim_memory::{Reservations, Write};
use durasim_types::{Cycle, Line, LineAddr, Rng, Stats};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::Hasher;

/// The older writes after which a write arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOrder {
    /// Older writes of its line.
    Line,
    /// All that was sent to its controller before.
    Controller,
}

/// A write that has not arrived at its controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InFlight {
    pub arrival: Cycle,
    /// The number of the controller, those of persistent memory before those of the DRAM.
    pub controller: usize,
    pub from: Origin,
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
}

/// A message between a controller and another end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trip {
    /// The other end.
    pub end: Origin,
    /// The line that it is about: the last level has it, or would have it, in its bank.
    pub line: LineAddr,
    /// The number of the controller, as in [`InFlight`].
    pub controller: usize,
    /// Bytes of data.
    pub bytes: u64,
}

/// Cycles between a controller and what is not beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Latencies {
    core_to_controller: Cycle,
    controller_to_core: Cycle,
    llc_to_controller: Cycle,
    controller_to_llc: Cycle,
    /// From a core through the look-ups of its private caches to the interconnect, on a mesh.
    core_to_mesh: Cycle,
    /// A look-up of the last level.
    llc_lookup: Cycle,
}

impl Latencies {
    /// The path of a core is that of a `cbo.clean`, unless the machine says otherwise: through the tags of all levels, and
    /// back as an answer comes back. The level that has the line reads its data beside that (`Caches::data_cycles`).
    fn new(config: &InterconnectConfig, geometry: &Geometry) -> Self {
        let levels = geometry.levels().count();
        let lookups: Cycle = geometry.by_level(|_, shape| shape.tag_latency_cycles).iter().sum();
        let (llc_to_controller, controller_to_llc) = (config.memory_request_cycles(), config.memory_response_cycles());
        let llc_lookup = geometry.llc.tag_latency_cycles;
        let down = lookups + (levels - 1) * config.request_cycles + llc_to_controller;
        let up = controller_to_llc + levels * config.response_cycles;
        Latencies {
            core_to_controller: config.core_to_controller_cycles.unwrap_or(down),
            controller_to_core: config.controller_to_core_cycles.unwrap_or(up),
            llc_to_controller,
            controller_to_llc,
            core_to_mesh: lookups - llc_lookup + (levels - 1) * config.request_cycles,
            llc_lookup,
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
pub(crate) struct Path {
    latencies: Latencies,
    link_bytes: u64,
    jitter_cycles: Cycle,
    jitter: Rng,
    /// The planted fault.
    #[serde(skip)]
    fault: ActiveFault,
    links: Vec<Links>,
    /// By arrival, and those of one cycle in the order in which they were sent.
    in_flight: VecDeque<InFlight>,
    /// Cycle in which the first of them arrives.
    next_arrival: Cycle,
    stats: PathStats,
}

impl Path {
    pub(super) fn new(config: &InterconnectConfig, geometry: &Geometry, controllers: usize) -> Self {
        Path {
            latencies: Latencies::new(config, geometry),
            link_bytes: config.controller_link_bytes().into(),
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

    /// Additional cycles of a message that others may overtake: all except reads, which the caches wait for.
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

    /// A message leaves for its controller at `at`; the cycle in which it arrives. On a mesh that of a core passes its
    /// private caches and the bank of its line, which looks it up.
    pub(super) fn down(&mut self, on: &mut Interconnect, trip: Trip, at: Cycle) -> Cycle {
        let Trip { end, line, controller, bytes } = trip;
        if end == Origin::Controller {
            return at;
        }
        let Some(mesh) = on.mesh() else {
            let reaches = at + self.latencies.down(end);
            return Self::take_turn(&mut self.links[controller].into, &mut self.stats, self.link_bytes, bytes, reaches);
        };
        let bank = End::Bank(line);
        let mut leaves = at;
        if let Origin::Core(core) = end {
            let core = End::Core(core);
            let arrives = self.travel(mesh, core, bank, bytes, at + self.latencies.core_to_mesh);
            // The look-up begins with the head of the message.
            leaves = arrives.max(arrives - mesh.tail_cycles(core, bank, bytes) + self.latencies.llc_lookup);
        }
        self.stats.messages += 1;
        self.travel(mesh, bank, End::Controller(controller), bytes, leaves)
    }

    /// A message leaves its controller at `at`; the cycle in which it arrives. On a mesh it takes the straight route.
    pub(super) fn up(&mut self, on: &mut Interconnect, trip: Trip, at: Cycle) -> Cycle {
        let Trip { end, line, controller, bytes } = trip;
        let to = match end {
            Origin::Controller => return at,
            Origin::Core(core) => End::Core(core),
            Origin::Llc => End::Bank(line),
        };
        if let Some(mesh) = on.mesh() {
            self.stats.messages += 1;
            return self.travel(mesh, End::Controller(controller), to, bytes, at);
        }
        let link = &mut self.links[controller].out_of;
        let turn = Self::take_turn(link, &mut self.stats, self.link_bytes, bytes, at);
        turn + self.latencies.up(end)
    }

    /// A line that was read leaves its controller at `at`; the cycle in which it arrives. On a mesh the bank of the line
    /// gets it before a core does, as after a miss.
    pub(super) fn line_up(&mut self, on: &mut Interconnect, trip: Trip, at: Cycle) -> Cycle {
        match (trip.end, on.mesh()) {
            (Origin::Core(core), Some(mesh)) => {
                let bank = End::Bank(trip.line);
                self.stats.messages += 1;
                let at_bank = self.travel(mesh, End::Controller(trip.controller), bank, trip.bytes, at);
                self.travel(mesh, bank, End::Core(core), trip.bytes, at_bank)
            }
            _ => self.up(on, trip, at),
        }
    }

    /// A message of a design between a core or controller and a controller leaves at `at`; the cycle in which it arrives. It
    /// asks no cache, and takes the straight route.
    pub(super) fn message(&mut self, mesh: &mut Mesh, from: End, to: End, bytes: u64, at: Cycle) -> Cycle {
        self.stats.messages += 1;
        self.travel(mesh, from, to, bytes, at)
    }

    /// A message crosses the mesh; the cycle in which it arrives.
    fn travel(&mut self, mesh: &mut Mesh, from: End, to: End, bytes: u64, at: Cycle) -> Cycle {
        let arrives = mesh.send(from, to, bytes, at);
        self.stats.wait_cycles += arrives - at - mesh.unloaded_cycles(from, to, bytes);
        arrives
    }

    /// A write is sent, at the cycle that it brings along as its arrival. Given back if it arrives at once: nothing is in
    /// front of it.
    pub(super) fn send(&mut self, on: &mut Interconnect, mut sent: InFlight, order: WriteOrder) -> Option<Write> {
        self.stats.writes += u64::from(sent.write.mask != 0);
        let at = sent.arrival;
        let bytes = sent.write.mask.count_ones().into();
        let trip = Trip { end: sent.from, line: sent.write.line, controller: sent.controller, bytes };
        let arrival = self.down(on, trip, at);
        // The one that arrives last of those before it is last in the list.
        let before = self.in_flight.iter().rposition(|other| match order {
            WriteOrder::Line => other.write.line == sent.write.line,
            WriteOrder::Controller => other.controller == sent.controller,
        });
        sent.arrival = arrival + if order == WriteOrder::Line { self.drawn_cycles(sent.from) } else { 0 };
        if let Some(place) = before {
            let before = self.in_flight[place].arrival;
            if order == WriteOrder::Line && self.fault.is(path_faults::WRITES_OVERTAKE) {
                self.in_flight.insert(place, InFlight { arrival: before, ..sent });
                self.find_next_arrival();
                return None;
            }
            sent.arrival = sent.arrival.max(before);
        } else if sent.arrival <= at {
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

    /// Cycle in which the next write arrives.
    #[inline]
    pub(super) fn next_arrival(&self) -> Cycle {
        self.next_arrival
    }

    fn find_next_arrival(&mut self) {
        self.next_arrival = self.in_flight.front().map_or(Cycle::MAX, |sent| sent.arrival);
    }

    /// Takes the next write that arrives.
    pub(super) fn take_next(&mut self) -> Option<InFlight> {
        let taken = self.in_flight.pop_front();
        self.find_next_arrival();
        taken
    }

    /// Writes in flight, oldest first for each line.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = &Write> {
        self.in_flight.iter().map(|sent| &sent.write)
    }

    /// Number of writes in flight.
    pub(super) fn writes_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Number of these lines that the last level has evicted and that are in flight.
    pub(super) fn evicted(&self, is_counted: impl Fn(LineAddr) -> bool) -> usize {
        if self.in_flight.is_empty() {
            return 0;
        }
        // A persistent write leaves from there too, and is acknowledged to its core.
        let goes_to_core = |sent: &InFlight| sent.write.token.is_some_and(|token| token.to != Origin::Llc);
        let evicted = |sent: &&InFlight| {
            let has_bytes = sent.write.mask != 0;
            has_bytes && sent.from == Origin::Llc && is_counted(sent.write.line) && !goes_to_core(sent)
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::config::MachineConfig;
    use crate::setup::plan::Plan;
    use crate::setup::presets;
    use durasim_types::{Cause, CoreId, Domain};
    use std::collections::BTreeMap;

    /// Messages between two tiles overtake each other where a short one fits before a long one that left earlier.
    #[test]
    fn writes_to_a_line_arrive_in_order_although_links_do_not_keep_it() {
        let config = MachineConfig::parse("lad-micro19", presets::text("lad-micro19").unwrap(), &[]).unwrap();
        let plan = Plan::new(&config, &durasim_designs::VARIANTS[0], Domain::Adr).unwrap();
        let (mut overtaken, mut rng) = (0, Rng::new(3));
        for _ in 0..50 {
            let mut on = Interconnect::new(&config);
            let mut path = Path::new(&config.interconnect, &plan.geometry, 4);
            let mut arrivals = BTreeMap::new();
            for number in 0..40u64 {
                let (line, core) = (LineAddr(rng.below(3)), CoreId(rng.below(4) as u16));
                let from = if rng.below(2) == 0 { Origin::Llc } else { Origin::Core(core) };
                let mut write = Write::line(line, [number as u8; 64], Cause::Data);
                write.mask = if rng.below(2) == 0 { u64::MAX } else { 1 };
                let end = |from| match from {
                    Origin::Core(core) => End::Core(core),
                    Origin::Llc | Origin::Controller => End::Bank(line),
                };
                let sent = InFlight { arrival: number + rng.below(30), controller: 0, from, write };
                let mut lone = on.fork();
                let bytes = sent.write.mask.count_ones().into();
                let arrives = lone.mesh().unwrap().send(end(from), End::Controller(0), bytes, sent.arrival);
                overtaken += u64::from(*arrivals.entry(line).or_insert(0) > arrives);
                arrivals.entry(line).and_modify(|last| *last = arrives.max(*last));
                // A write that nothing is in front of arrives at once where its tile is that of the controller.
                let at_once = path.send(&mut on, sent, WriteOrder::Line);
                assert!(at_once.is_none_or(|write| path.in_flight().all(|other| other.line != write.line)));
            }
            let mut newest = BTreeMap::new();
            while let Some(sent) = path.take_next() {
                let before = newest.insert(sent.write.line, sent.write.data[0]);
                assert!(before < Some(sent.write.data[0]), "an older write arrives later");
            }
        }
        assert!(overtaken > 100, "{overtaken}");
    }
}
