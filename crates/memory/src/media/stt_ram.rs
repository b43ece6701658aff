//! STT-RAM on a memory bus, as in TC (DAC 2017, table 2): an access takes its bank for the latency of the cells. A
//! read sends its line over the data bus at its end, a write takes it at its beginning. The bus is idle for a while
//! between lines of different ranks. There are no rows to open
//! (DEVIATIONS.md, stt-ram).

use super::{Access, Direction, MediaConfig, folded};
use crate::reservations::Reservations;
use crate::trace::{Command, CommandKind, Trace};
use durasim_types::Picos;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::Hasher;

/// Bursts that the bus remembers; nothing is placed before older ones.
const REMEMBERED: usize = 64;

/// The data bus: bursts with their ranks, by start.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct DataBus {
    burst_ps: Picos,
    rank_switch_ps: Picos,
    bursts: VecDeque<(Picos, u32)>,
    floor_ps: Picos,
}

impl DataBus {
    /// The first time, not before `at_ps`, at which a burst of `rank` can begin.
    fn first_gap(&self, at_ps: Picos, rank: u32) -> Picos {
        let reach_ps = self.burst_ps + self.rank_switch_ps;
        let mut start_ps = at_ps.max(self.floor_ps);
        let first = self.bursts.partition_point(|&(at, _)| at + reach_ps <= start_ps);
        for &(at, of) in self.bursts.range(first..) {
            let apart_ps = self.burst_ps + if of == rank { 0 } else { self.rank_switch_ps };
            if at >= start_ps + apart_ps {
                break;
            }
            start_ps = start_ps.max(at + apart_ps);
        }
        start_ps
    }

    fn book(&mut self, start_ps: Picos, rank: u32) {
        let index = self.bursts.partition_point(|&(at, _)| at < start_ps);
        self.bursts.insert(index, (start_ps, rank));
        if self.bursts.len() > REMEMBERED
            && let Some((at, _)) = self.bursts.pop_front()
        {
            self.floor_ps = at + self.burst_ps + self.rank_switch_ps;
        }
    }
}

/// The place of a line.
#[derive(Clone, Copy, Debug)]
struct LineLocation {
    rank: u32,
    bank: u32,
    row: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SttRam {
    read_ps: Picos,
    write_ps: Picos,
    banks_per_rank: u32,
    ranks: u32,
    permute: bool,
    banks: Vec<Reservations>,
    bus: DataBus,
}

impl SttRam {
    pub fn new(config: &MediaConfig) -> Self {
        let complete = "the defaults of the kind are in";
        let (banks_per_rank, ranks) = (config.banks.expect(complete), config.ranks.expect(complete));
        SttRam {
            read_ps: config.read_latency_ns.expect(complete) * 1000,
            write_ps: config.write_latency_ns.expect(complete) * 1000,
            banks_per_rank,
            ranks,
            permute: config.permute_banks.expect(complete),
            banks: vec![Reservations::default(); (banks_per_rank * ranks) as usize],
            bus: DataBus {
                burst_ps: config.transfer_ps(),
                rank_switch_ps: config.rank_switch_ps.expect(complete),
                bursts: VecDeque::new(),
                floor_ps: 0,
            },
        }
    }

    /// Adjacent lines are in different banks, then in different ranks.
    fn place(&self, line: u64) -> LineLocation {
        let (banks, ranks) = (u64::from(self.banks_per_rank), u64::from(self.ranks));
        let row = line / (banks * ranks);
        let swap = if self.permute { folded(row, self.banks_per_rank) } else { 0 };
        LineLocation { rank: (line / banks % ranks) as u32, bank: (line % banks) as u32 ^ swap, row }
    }

    fn index(&self, place: LineLocation) -> usize {
        (place.rank * self.banks_per_rank + place.bank) as usize
    }

    pub fn bank(&self, line: u64) -> usize {
        self.index(self.place(line))
    }

    /// The time for which the bank is taken, and when from the start on the burst starts.
    fn lengths_ps(&self, direction: Direction) -> (Picos, Picos) {
        match direction {
            Direction::Read => (self.read_ps, self.read_ps - self.bus.burst_ps),
            Direction::Write => (self.write_ps, 0),
        }
    }

    pub fn first_start(&self, line: u64, direction: Direction, at_ps: Picos) -> Picos {
        let place = self.place(line);
        let bank = &self.banks[self.index(place)];
        let (latency_ps, burst_after_ps) = self.lengths_ps(direction);
        let mut start = at_ps;
        loop {
            let free = bank.first_gap(start, latency_ps);
            let free = self.bus.first_gap(free + burst_after_ps, place.rank) - burst_after_ps;
            if free == start {
                return start;
            }
            start = free;
        }
    }

    pub fn access(&mut self, line: u64, direction: Direction, at_ps: Picos, trace: &mut Trace) -> Access {
        let start_ps = self.first_start(line, direction, at_ps);
        let place = self.place(line);
        let (latency_ps, burst_after_ps) = self.lengths_ps(direction);
        let index = self.index(place);
        self.banks[index].book(start_ps, latency_ps);
        self.bus.book(start_ps + burst_after_ps, place.rank);
        trace.note(|| Command {
            at_ps: start_ps,
            controller: 0,
            kind: if direction == Direction::Read { CommandKind::Rd } else { CommandKind::Wr },
            rank: place.rank as u16,
            bank: place.bank as u16,
            row: place.row,
            column: 0,
            auto_precharge: false,
        });
        Access { start_ps, done_ps: start_ps + latency_ps }
    }

    pub fn digest(&self, hasher: &mut dyn Hasher) {
        self.banks.iter().for_each(|r| hasher.write_u64(r.end()));
        self.bus.bursts.iter().for_each(|&(at, rank)| hasher.write_u64(at ^ u64::from(rank)));
    }
}
