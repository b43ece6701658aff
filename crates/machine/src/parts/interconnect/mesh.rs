//! A two-dimensional mesh of tiles, as LAD (MICRO 2019, Table 3) has it: core i and bank i of the last level are on tile i,
//! counted row by row from 0, memory controllers on the tiles that the machine names. Lines take turns among the banks.
//!
//! A message takes the X-Y route: along its row to the column of its destination, then along that column. Its head moves
//! from a tile to the next one in `hop_cycles` and waits where a link is busy. It occupies each link of its route for one
//! cycle for every `link_width_bytes` of its data, for one cycle if it has none: addresses and headers travel beside the
//! data, as in the crossbar. It has arrived when its last part has, one cycle after the head for each further part.
//!
//! Each end, or each tile, has a port into its router and one out of it, as wide as a link. A message occupies them as it
//! does a link: the first before its route, the other one after it. Its head takes `router_entry_cycles` from the end into
//! the router, and `router_exit_cycles` out of the other one. Ends on one tile send past the router: that takes no time and
//! no port.
//!
//! Not modelled: buffers of routers that fill up, and virtual channels. A message that waits keeps no earlier link of its route
//! busy, and has a link in one piece.

use super::link::{Forgotten, Link, Ports, busiest};
use crate::setup::config::MachineConfig;
use crate::setup::config::RouterPorts;
use durasim_contract::bank_of;
use durasim_types::{Clock, CoreId, Cycle, LineAddr, Stats};
use serde::{Deserialize, Serialize};

/// An end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A core with its private caches.
    Core(CoreId),
    /// The bank of the last level that a line belongs to.
    Bank(LineAddr),
    /// A memory controller, by its number among all of the machine.
    Controller(usize),
}

/// Direction of a link from its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    East,
    West,
    South,
    North,
}

const DIRECTIONS: usize = 4;

/// Number of pairs of ports.
fn ports(of: RouterPorts, cores: usize, tiles: usize, controllers: usize) -> usize {
    if of == RouterPorts::PerTile { tiles } else { cores + tiles + controllers }
}

/// Counters of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct MeshStats {
    messages: u64,
    data_messages: u64,
    hops: u64,
    busy_cycles: Cycle,
    wait_cycles: Cycle,
    port_wait_cycles: Cycle,
    forgotten: Forgotten,
}

/// A mesh.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mesh {
    columns: usize,
    tiles: usize,
    cores: u16,
    hop_cycles: Cycle,
    entry_cycles: Cycle,
    exit_cycles: Cycle,
    link_bytes: u64,
    controller_tiles: Vec<usize>,
    /// Cycles that everything takes more that each controller sends.
    response_cycles: Vec<Cycle>,
    /// Four for each tile, one for each direction. Those that would lead off the mesh are never used.
    links: Vec<Link>,
    /// Owners of the ports.
    ports_of: RouterPorts,
    /// Those of each core, then of each bank, then of each controller; or those of each tile.
    ports: Vec<Ports>,
    stats: MeshStats,
}

impl Mesh {
    /// An idle mesh. The configuration was checked.
    pub(super) fn new(config: &MachineConfig) -> Self {
        let given = "a mesh has all of its parameters";
        let of = &config.interconnect;
        let (columns, rows) = (of.mesh_columns.expect(given) as usize, of.mesh_rows.expect(given) as usize);
        let controller_tiles = of.controller_tiles.as_ref().expect(given);
        let remote = of.remote_controllers.as_deref().unwrap_or_default();
        let remote_cycles = of.remote_response_cycles(Clock { frequency_mhz: config.frequency_mhz });
        let numbers = 0..controller_tiles.len() as u32;
        let (tiles, ports_of) = (columns * rows, of.router_ports());
        Mesh {
            columns,
            tiles,
            cores: config.cores,
            hop_cycles: of.hop_cycles.expect(given),
            entry_cycles: of.router_entry_cycles.unwrap_or(0),
            exit_cycles: of.router_exit_cycles.unwrap_or(0),
            link_bytes: of.link_width_bytes().into(),
            controller_tiles: controller_tiles.iter().map(|&tile| tile as usize).collect(),
            response_cycles: numbers.map(|n| if remote.contains(&n) { remote_cycles } else { 0 }).collect(),
            links: vec![Link::default(); DIRECTIONS * tiles],
            ports_of,
            ports: vec![Ports::default(); ports(ports_of, config.cores.into(), tiles, controller_tiles.len())],
            stats: MeshStats::default(),
        }
    }

    fn tile(&self, end: End) -> usize {
        match end {
            // Threads of a core are on one tile.
            End::Core(core) => (core.0 % self.cores).into(),
            End::Bank(line) => bank_of(line, self.tiles as u16).into(),
            End::Controller(number) => self.controller_tiles[number],
        }
    }

    /// The place of the ports of an end.
    fn port(&self, end: End) -> usize {
        if self.ports_of == RouterPorts::PerTile {
            return self.tile(end);
        }
        let cores = usize::from(self.cores);
        match end {
            End::Core(_) => self.tile(end),
            End::Bank(_) => cores + self.tile(end),
            End::Controller(number) => cores + self.tiles + number,
        }
    }

    /// The link on which a message on tile `at` goes on towards `to`, and the tile that it leads to. `None`: it is there.
    fn next_hop(&self, at: usize, to: usize) -> Option<(usize, usize)> {
        let (x, to_x) = (at % self.columns, to % self.columns);
        let (direction, next) = if x < to_x {
            (Direction::East, at + 1)
        } else if x > to_x {
            (Direction::West, at - 1)
        } else if at < to {
            (Direction::South, at + self.columns)
        } else if at > to {
            (Direction::North, at - self.columns)
        } else {
            return None;
        };
        Some((DIRECTIONS * at + direction as usize, next))
    }

    fn hops(&self, from: usize, to: usize) -> u64 {
        let (columns, rows) =
            ((from % self.columns).abs_diff(to % self.columns), (from / self.columns).abs_diff(to / self.columns));
        (columns + rows) as u64
    }

    /// Cycles for which a message occupies a link.
    fn link_cycles(&self, bytes: u64) -> Cycle {
        bytes.div_ceil(self.link_bytes).max(1)
    }

    /// Cycles from the arrival of a message's head to that of its last part.
    pub(crate) fn tail_cycles(&self, from: End, to: End, bytes: u64) -> Cycle {
        if self.tile(from) == self.tile(to) { 0 } else { self.link_cycles(bytes) - 1 }
    }

    /// Additional cycles of a controller before it sends anything.
    fn response_cycles(&self, from: End) -> Cycle {
        if let End::Controller(number) = from { self.response_cycles[number] } else { 0 }
    }

    /// Cycles that a message with this many bytes of data takes if it waits for nothing.
    pub(crate) fn unloaded_cycles(&self, from: End, to: End, bytes: u64) -> Cycle {
        let hops = self.hops(self.tile(from), self.tile(to));
        let at_ends = if hops == 0 { 0 } else { self.entry_cycles + self.exit_cycles };
        self.response_cycles(from) + at_ends + hops * self.hop_cycles + self.tail_cycles(from, to, bytes)
    }

    /// A message with this many bytes of data leaves `from` at `at`; the cycle in which all of it is at `to`.
    pub(crate) fn send(&mut self, from: End, to: End, bytes: u64, at: Cycle) -> Cycle {
        let cycles = self.link_cycles(bytes);
        let mut head = at + self.response_cycles(from);
        let (out, into) = (self.port(from), self.port(to));
        let (mut tile, to) = (self.tile(from), self.tile(to));
        match bytes {
            0 => self.stats.messages += 1,
            _ => self.stats.data_messages += 1,
        }
        if tile == to {
            return head;
        }
        let forgotten = &mut self.stats.forgotten;
        let leaves = self.ports[out].out.take(head, cycles, forgotten);
        self.stats.port_wait_cycles += leaves - head;
        head = leaves + self.entry_cycles;
        while let Some((link, next)) = self.next_hop(tile, to) {
            let start = self.links[link].take(head, cycles, &mut self.stats.forgotten);
            self.stats.hops += 1;
            self.stats.busy_cycles += cycles;
            self.stats.wait_cycles += start - head;
            (head, tile) = (start + self.hop_cycles, next);
        }
        let enters = self.ports[into].into.take(head, cycles, &mut self.stats.forgotten);
        self.stats.port_wait_cycles += enters - head;
        enters + self.exit_cycles + cycles - 1
    }

    pub(super) fn reset_stats(&mut self) {
        self.stats = MeshStats::default();
        self.links.iter_mut().for_each(Link::reset_stats);
        self.ports.iter_mut().for_each(Ports::reset_stats);
    }

    pub(super) fn stats(&self, stats: &mut Stats) {
        let s = &self.stats;
        stats.count("interconnect.messages", s.messages, "Messages without data");
        stats.count("interconnect.data_messages", s.data_messages, "Messages with data, lines among them");
        stats.count("interconnect.hops", s.hops, "Links that messages have passed");
        stats.count("interconnect.busy_cycles", s.busy_cycles, "Cycles for which links were busy, over all links");
        stats.count("interconnect.wait_cycles", s.wait_cycles, "Cycles that messages waited for links");
        stats.count("interconnect.port_wait_cycles", s.port_wait_cycles, "Cycles that messages waited for ports");
        let (link, port) = (busiest(self.links.iter()), busiest(self.ports.iter().flat_map(Ports::links)));
        stats.count("interconnect.busiest_link_cycles", link, "Cycles for which the busiest link was busy");
        stats.count("interconnect.busiest_port_cycles", port, "Cycles for which the busiest port was busy");
        s.forgotten.stats(stats);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    const NEAR: End = End::Controller(0);
    const FAR: End = End::Controller(1);

    /// Four columns and three rows; controllers on tiles 0 and 11, the second one remote.
    fn mesh(hop_cycles: Cycle) -> Mesh {
        Mesh {
            columns: 4,
            tiles: 12,
            cores: 12,
            hop_cycles,
            entry_cycles: 0,
            exit_cycles: 0,
            link_bytes: 16,
            controller_tiles: vec![0, 11],
            response_cycles: vec![0, 100],
            links: vec![Link::default(); 48],
            ports_of: RouterPorts::PerEnd,
            ports: vec![Ports::default(); ports(RouterPorts::PerEnd, 12, 12, 2)],
            stats: MeshStats::default(),
        }
    }

    fn core(tile: u16) -> End {
        End::Core(CoreId(tile))
    }

    fn bank(tile: u64) -> End {
        End::Bank(LineAddr(tile))
    }

    impl Mesh {
        /// The links from tile to tile.
        pub(in crate::parts::interconnect) fn route(&self, from: usize, to: usize) -> Vec<usize> {
            let (mut at, mut links) = (from, Vec::new());
            while let Some((link, next)) = self.next_hop(at, to) {
                at = next;
                links.push(link);
            }
            links
        }
    }

    fn route(mesh: &Mesh, from: usize, to: usize) -> Vec<usize> {
        let mut tiles = vec![from];
        while let Some((_, next)) = mesh.next_hop(*tiles.last().unwrap(), to) {
            tiles.push(next);
        }
        tiles
    }

    #[test]
    fn routes_go_along_the_row_first_then_along_the_column() {
        let mesh = mesh(3);
        assert_eq!(route(&mesh, 0, 11), [0, 1, 2, 3, 7, 11]);
        assert_eq!(route(&mesh, 11, 0), [11, 10, 9, 8, 4, 0]);
        assert_eq!(route(&mesh, 9, 2), [9, 10, 6, 2]);
        assert_eq!(route(&mesh, 3, 4), [3, 2, 1, 0, 4]);
        assert_eq!(route(&mesh, 5, 5), [5]);
        for (from, to) in (0..12).flat_map(|from| (0..12).map(move |to| (from, to))) {
            assert_eq!(route(&mesh, from, to).len() as u64, mesh.hops(from, to) + 1);
        }
    }

    #[test]
    fn each_direction_between_two_tiles_is_a_link_of_its_own() {
        let mesh = mesh(3);
        let mut used = std::collections::BTreeMap::new();
        for (from, to) in (0..12).flat_map(|from| (0..12).map(move |to| (from, to))) {
            let mut at = from;
            while let Some((link, next)) = mesh.next_hop(at, to) {
                assert_eq!(*used.entry(link).or_insert((at, next)), (at, next), "one link, one pair of tiles");
                at = next;
            }
        }
        // Three between the columns of each of three rows, four between the rows of each pair of them, both directions.
        assert_eq!(used.len(), 2 * (3 * 3 + 4 * 2));
    }

    #[test]
    fn ends_have_their_tiles_and_lines_take_turns_among_banks() {
        let mesh = mesh(3);
        assert_eq!(mesh.tile(core(7)), 7);
        assert_eq!([0, 1, 11, 12, 25].map(|line| mesh.tile(End::Bank(LineAddr(line)))), [0, 1, 11, 0, 1]);
        assert_eq!([NEAR, FAR].map(|end| mesh.tile(end)), [0, 11]);
    }

    #[test]
    fn a_lone_message_takes_its_hops_and_its_tail() {
        for hop_cycles in [1, 3, 7] {
            for (bytes, tail) in [(0, 0), (1, 0), (16, 0), (17, 1), (64, 3)] {
                let mut mesh = mesh(hop_cycles);
                assert_eq!(mesh.send(core(0), core(11), bytes, 50), 50 + 5 * hop_cycles + tail);
                assert_eq!(mesh.unloaded_cycles(core(0), core(11), bytes), 5 * hop_cycles + tail);
            }
        }
    }

    #[test]
    fn between_ends_on_one_tile_nothing_takes_time() {
        let mut mesh = mesh(3);
        for bytes in [0, 64] {
            assert_eq!(mesh.send(core(0), End::Bank(LineAddr(12)), bytes, 9), 9);
            assert_eq!(mesh.send(End::Bank(LineAddr(0)), NEAR, bytes, 9), 9);
            assert_eq!(mesh.unloaded_cycles(core(0), NEAR, bytes), 0);
        }
        assert_eq!((mesh.stats.hops, mesh.stats.messages, mesh.stats.data_messages), (0, 2, 2));
    }

    #[test]
    fn a_remote_controller_answers_later_and_is_asked_as_any_other() {
        let mut mesh = mesh(3);
        assert_eq!(mesh.send(core(10), FAR, 0, 20), 23);
        assert_eq!(mesh.send(FAR, core(10), 0, 20), 123);
        assert_eq!(mesh.send(FAR, core(11), 64, 20), 120, "on its tile too");
        assert_eq!(mesh.unloaded_cycles(FAR, core(10), 64), 106);
        assert_eq!(mesh.unloaded_cycles(core(10), FAR, 64), 6);
    }

    #[test]
    fn messages_wait_for_a_link_and_take_the_gaps_between_others() {
        let mut mesh = mesh(3);
        let east = |mesh: &mut Mesh, bytes, at| mesh.send(core(0), core(1), bytes, at);
        assert_eq!(east(&mut mesh, 64, 10), 16);
        assert_eq!(east(&mut mesh, 64, 10), 20, "after the four cycles of the first one");
        assert_eq!(east(&mut mesh, 0, 9), 12, "a gap of one cycle");
        assert_eq!(east(&mut mesh, 17, 8), 22, "no gap of two cycles before cycle 18");
        assert_eq!((mesh.stats.port_wait_cycles, mesh.stats.wait_cycles), (4 + 10, 0), "for the port of the core");
        // The other direction is another link, and so is the one from the next tile.
        assert_eq!(mesh.send(core(1), core(0), 64, 10), 16);
        assert_eq!(mesh.send(bank(1), core(2), 64, 10), 16);
    }

    #[test]
    fn a_message_waits_in_the_middle_of_its_route() {
        let mut mesh = mesh(3);
        // It has the link from tile 1 to tile 2 from cycle 13 on.
        assert_eq!(mesh.send(core(1), core(2), 64, 13), 19);
        assert_eq!(mesh.send(core(0), core(2), 0, 10), 10 + 3 + 4 + 3);
        // The same pair of tiles in another order of X and Y meets no other message.
        assert_eq!(mesh.send(core(4), bank(2), 0, 10), 10 + 9);
        assert_eq!((mesh.stats.hops, mesh.stats.wait_cycles, mesh.stats.busy_cycles), (6, 4, 4 + 2 + 3));
    }

    #[test]
    fn an_end_gets_and_sends_one_part_a_cycle() {
        let mut mesh = mesh(3);
        // Over different links into one end.
        assert_eq!([1, 4, 6, 9].map(|from| mesh.send(core(from), core(5), 0, 10)), [13, 14, 15, 16]);
        // Out of one end over different links.
        assert_eq!([1, 4, 6, 9].map(|to| mesh.send(core(5), core(to), 64, 10)), [16, 20, 24, 28]);
        assert_eq!((mesh.stats.wait_cycles, mesh.stats.port_wait_cycles), (0, 6 + 24));
    }

    #[test]
    fn ends_of_a_tile_have_ports_of_their_own_or_share_those_of_the_tile() {
        for (ports_of, arrive) in [(RouterPorts::PerEnd, [16, 16, 16]), (RouterPorts::PerTile, [16, 20, 24])] {
            let mut mesh = Mesh { ports_of, ..mesh(3) };
            let sent = [(core(0), core(1)), (bank(0), bank(4))].map(|(from, to)| mesh.send(from, to, 64, 10));
            assert_eq!(sent, arrive[..2], "out of tile 0, {ports_of:?}");
            let sent = [(core(7), FAR), (core(10), core(11))].map(|(from, to)| mesh.send(from, to, 64, 10));
            assert_eq!(sent, arrive[..2], "into tile 11, {ports_of:?}");
        }
    }

    #[test]
    fn the_ways_into_a_router_and_out_of_it_delay_messages_that_leave_their_tile() {
        let mut mesh = Mesh { entry_cycles: 2, exit_cycles: 5, ..mesh(3) };
        assert_eq!(mesh.send(core(0), core(11), 64, 50), 50 + 2 + 15 + 3 + 5);
        assert_eq!(mesh.unloaded_cycles(core(0), core(11), 64), 2 + 15 + 3 + 5);
        assert_eq!(mesh.send(core(0), bank(0), 64, 50), 50);
        assert_eq!(mesh.unloaded_cycles(core(0), bank(0), 64), 0);
        assert_eq!(mesh.stats.wait_cycles + mesh.stats.port_wait_cycles, 0);
    }

    /// Cycles in which these are busy.
    fn busy<'a>(links: impl Iterator<Item = &'a Link>) -> u64 {
        links.map(|link| (0..2000).filter(|&at| !link.is_free(at)).count() as u64).sum()
    }

    #[test]
    fn links_and_ports_carry_at_most_one_part_a_cycle() {
        for seed in 0..20 {
            let mut rng = durasim_types::Rng::new(seed);
            let ports_of = if seed % 2 == 0 { RouterPorts::PerEnd } else { RouterPorts::PerTile };
            let mut mesh = Mesh { ports_of, ..mesh(3) };
            let mut arrived: BTreeMap<usize, BTreeSet<Cycle>> = BTreeMap::new();
            let (mut on_links, mut at_ports) = (0, 0);
            for _ in 0..100 {
                let mut end = || match rng.below(3) {
                    0 => core(rng.below(12) as u16),
                    1 => bank(rng.below(12)),
                    _ => NEAR,
                };
                let (from, to) = (end(), end());
                let hops = mesh.hops(mesh.tile(from), mesh.tile(to));
                let (bytes, at) = (16 * rng.below(5), rng.below(200));
                let arrives = mesh.send(from, to, bytes, at);
                if hops > 0 {
                    let cycles = mesh.link_cycles(bytes);
                    on_links += hops * cycles;
                    at_ports += 2 * cycles;
                    let seen = arrived.entry(mesh.port(to)).or_default();
                    assert!((0..cycles).all(|part| seen.insert(arrives - part)), "two parts arrive in one cycle");
                }
            }
            // If two messages shared a cycle, fewer cycles would be busy.
            assert_eq!((busy(mesh.links.iter()), busy(mesh.ports.iter().flat_map(Ports::links))), (on_links, at_ports));
            assert_eq!((mesh.stats.busy_cycles, mesh.stats.forgotten), (on_links, Forgotten::default()));
        }
    }

    #[test]
    fn what_links_forget_and_the_busiest_of_them_are_counted() {
        let mut mesh = mesh(3);
        for n in 0..66 {
            mesh.send(core(0), core(2), 64, 100 * (1 + n));
        }
        let mut stats = Stats::default();
        mesh.stats(&mut stats);
        let get = |stats: &Stats, name: &str| stats.get(&format!("interconnect.{name}")).unwrap();
        assert_eq!(get(&stats, "busiest_link_cycles"), 66.0 * 4.0);
        assert_eq!(get(&stats, "busiest_port_cycles"), 66.0 * 4.0);
        // Two of each of two links and two ports.
        assert_eq!((get(&stats, "forgotten_bookings"), get(&stats, "messages_before_forgotten")), (8.0, 0.0));
        assert_eq!(mesh.send(core(0), core(2), 0, 7), 204 + 6, "nothing goes before what was forgotten");
        let mut stats = Stats::default();
        mesh.stats(&mut stats);
        assert_eq!(get(&stats, "messages_before_forgotten"), 1.0);
        mesh.reset_stats();
        assert_eq!(busiest(mesh.links.iter()), 0);
    }
}
