//! A two-dimensional mesh of tiles, as LAD (MICRO 2019, Table 3) has it: core i and bank i of the last level are on tile i,
//! counted row by row from 0, memory controllers on the tiles that the machine names. Lines take turns among the banks.
//!
//! A message takes the X-Y route: along its row to the column of its destination, then along that column. Its head moves
//! from a tile to the next one in `hop_cycles` and waits where a link is busy. It occupies each link of its route for one
//! cycle for every `link_width_bytes` of its data, for one cycle if it has none: addresses and headers travel beside the
//! data, as in the crossbar. It has arrived when its last part has, one cycle behind the head for each further part.
//! Between ends on one tile there is no link, and a message takes no time.
//!
//! What is not modelled: ports between a router and its tile, and buffers of routers that fill up. A message that waits
//! keeps no link behind it busy.
//!
//! Cores run ahead, so links are booked by interval: a message with an earlier time takes the gap before a later one.

use crate::MachineConfig;
use durasim_design::bank_of;
use durasim_memory::Reservations;
use durasim_types::{Clock, CoreId, Cycle, LineAddr, Stats};
use serde::{Deserialize, Serialize};

/// An end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::system) enum End {
    /// A core with its private caches.
    Core(CoreId),
    /// The bank of the last level that a line belongs to.
    Bank(LineAddr),
    /// A memory controller, by its number among all of the machine.
    Controller(usize),
}

/// Where a link leads to from its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    East,
    West,
    South,
    North,
}

const DIRECTIONS: usize = 4;

/// Counters of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct MeshStats {
    messages: u64,
    data_messages: u64,
    hops: u64,
    busy_cycles: Cycle,
    wait_cycles: Cycle,
}

/// A mesh.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::system) struct Mesh {
    columns: usize,
    tiles: usize,
    cores: u16,
    hop_cycles: Cycle,
    link_bytes: u64,
    controller_tiles: Vec<usize>,
    /// Cycles that everything takes more that each controller sends.
    response_cycles: Vec<Cycle>,
    /// Four for each tile, one for each direction. Those that would lead off the mesh are never used.
    links: Vec<Reservations>,
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
        Mesh {
            columns,
            tiles: columns * rows,
            cores: config.cores,
            hop_cycles: of.hop_cycles.expect(given),
            link_bytes: of.link_width_bytes().into(),
            controller_tiles: controller_tiles.iter().map(|&tile| tile as usize).collect(),
            response_cycles: numbers.map(|n| if remote.contains(&n) { remote_cycles } else { 0 }).collect(),
            links: vec![Reservations::default(); DIRECTIONS * columns * rows],
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
    pub(in crate::system) fn tail_cycles(&self, from: End, to: End, bytes: u64) -> Cycle {
        if self.tile(from) == self.tile(to) { 0 } else { self.link_cycles(bytes) - 1 }
    }

    /// What a controller takes before it sends anything.
    fn response_cycles(&self, from: End) -> Cycle {
        if let End::Controller(number) = from { self.response_cycles[number] } else { 0 }
    }

    /// Cycles that a message with so many bytes of data takes if it waits for no link.
    pub(in crate::system) fn unloaded_cycles(&self, from: End, to: End, bytes: u64) -> Cycle {
        let hops = self.hops(self.tile(from), self.tile(to));
        self.response_cycles(from) + hops * self.hop_cycles + self.tail_cycles(from, to, bytes)
    }

    /// A message with so many bytes of data leaves `from` at `at`; the cycle in which all of it is at `to`.
    pub(in crate::system) fn send(&mut self, from: End, to: End, bytes: u64, at: Cycle) -> Cycle {
        let cycles = self.link_cycles(bytes);
        let mut head = at + self.response_cycles(from);
        let (mut tile, to) = (self.tile(from), self.tile(to));
        match bytes {
            0 => self.stats.messages += 1,
            _ => self.stats.data_messages += 1,
        }
        if tile == to {
            return head;
        }
        while let Some((link, next)) = self.next_hop(tile, to) {
            let start = self.links[link].first_gap(head, cycles);
            self.links[link].book(start, cycles);
            self.stats.hops += 1;
            self.stats.busy_cycles += cycles;
            self.stats.wait_cycles += start - head;
            (head, tile) = (start + self.hop_cycles, next);
        }
        head + cycles - 1
    }

    pub(super) fn reset_stats(&mut self) {
        self.stats = MeshStats::default();
    }

    pub(super) fn stats(&self, stats: &mut Stats) {
        let s = &self.stats;
        stats.count("interconnect.messages", s.messages, "Messages without data");
        stats.count("interconnect.data_messages", s.data_messages, "Messages with data, lines among them");
        stats.count("interconnect.hops", s.hops, "Links that messages have passed");
        stats.count("interconnect.busy_cycles", s.busy_cycles, "Cycles for which links were busy, over all links");
        stats.count("interconnect.wait_cycles", s.wait_cycles, "Cycles that messages waited for links");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: End = End::Controller(0);
    const FAR: End = End::Controller(1);

    /// Four columns and three rows; controllers on tiles 0 and 11, the second one remote.
    fn mesh(hop_cycles: Cycle) -> Mesh {
        Mesh {
            columns: 4,
            tiles: 12,
            cores: 12,
            hop_cycles,
            link_bytes: 16,
            controller_tiles: vec![0, 11],
            response_cycles: vec![0, 100],
            links: vec![Reservations::default(); 48],
            stats: MeshStats::default(),
        }
    }

    fn core(tile: u16) -> End {
        End::Core(CoreId(tile))
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
        assert_eq!(east(&mut mesh, 64, 10), 20, "behind the four cycles of the first one");
        assert_eq!(east(&mut mesh, 0, 9), 12, "a gap of one cycle");
        assert_eq!(east(&mut mesh, 17, 8), 22, "no gap of two cycles before cycle 18");
        assert_eq!(mesh.stats.wait_cycles, 4 + 10);
        // The other direction is another link, and so is the one from the next tile.
        assert_eq!(mesh.send(core(1), core(0), 64, 10), 16);
        assert_eq!(mesh.send(core(1), core(2), 64, 10), 16);
    }

    #[test]
    fn a_message_waits_in_the_middle_of_its_route() {
        let mut mesh = mesh(3);
        // It has the link from tile 1 to tile 2 from cycle 13 on.
        assert_eq!(mesh.send(core(1), core(2), 64, 13), 19);
        assert_eq!(mesh.send(core(0), core(2), 0, 10), 10 + 3 + 4 + 3);
        // The same pair of tiles in another order of X and Y meets nobody.
        assert_eq!(mesh.send(core(4), core(2), 0, 10), 10 + 9);
        assert_eq!((mesh.stats.hops, mesh.stats.wait_cycles, mesh.stats.busy_cycles), (6, 4, 4 + 2 + 3));
    }
}
