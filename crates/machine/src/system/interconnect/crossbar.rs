//! The links between the private caches of the cores and the banks of the last level.
//!
//! In the topology `crossbar` each bank of the last level has a port that takes what cores send it, and each core has one
//! that takes what banks send it. A port carries one message at a time: a line for as many cycles as it is wider than the
//! link, a message without data for one. Messages to different ports do not meet.
//!
//! Cores run ahead, so ports are booked by interval: a message with an earlier time takes the gap before a later one.

use super::Load;
use crate::InterconnectConfig;
use durasim_design::bank_of;
use durasim_memory::Reservations;
use durasim_types::{CoreId, Cycle, LINE_BYTES, LineAddr, Stats};
use serde::{Deserialize, Serialize};

/// Counters of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LinkStats {
    messages: u64,
    lines: u64,
    wait_cycles: Cycle,
}

/// A crossbar.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Crossbar {
    /// Ports into the banks of the last level.
    banks: Vec<Reservations>,
    /// Ports into the private caches of the cores.
    cores: Vec<Reservations>,
    line_cycles: Cycle,
    stats: LinkStats,
}

impl Crossbar {
    pub(super) fn new(config: &InterconnectConfig, cores: usize) -> Self {
        Crossbar {
            banks: vec![Reservations::default(); config.llc_banks() as usize],
            cores: vec![Reservations::default(); cores],
            line_cycles: LINE_BYTES.div_ceil(config.link_width_bytes().into()),
            stats: LinkStats::default(),
        }
    }

    /// The bank of a line: lines take turns.
    fn bank(&self, line: LineAddr) -> usize {
        bank_of(line, self.banks.len() as u16).into()
    }

    /// A message of a core arrives at the bank of a line; when all of it is there.
    pub(super) fn send_to_bank(&mut self, line: LineAddr, load: Load, at: Cycle) -> Cycle {
        let (bank, cycles) = (self.bank(line), self.cycles(load));
        Self::send(&mut self.banks[bank], &mut self.stats, cycles, load, at)
    }

    /// A message of the last level arrives at a core; when all of it is there.
    pub(super) fn send_to_core(&mut self, core: CoreId, load: Load, at: Cycle) -> Cycle {
        let cycles = self.cycles(load);
        // Threads of a core have one port.
        let place = usize::from(core.0) % self.cores.len();
        Self::send(&mut self.cores[place], &mut self.stats, cycles, load, at)
    }

    /// Sends a message through a port; the cycle in which all of it has passed.
    fn send(port: &mut Reservations, stats: &mut LinkStats, cycles: Cycle, load: Load, at: Cycle) -> Cycle {
        let start = port.first_gap(at, cycles);
        port.book(start, cycles);
        match load {
            Load::Nothing => stats.messages += 1,
            Load::Line => stats.lines += 1,
        }
        stats.wait_cycles += start - at;
        start + cycles
    }

    fn cycles(&self, load: Load) -> Cycle {
        if load == Load::Line { self.line_cycles } else { 1 }
    }

    pub(super) fn reset_stats(&mut self) {
        self.stats = LinkStats::default();
    }

    pub(super) fn stats(&self, stats: &mut Stats) {
        let s = &self.stats;
        stats.count("interconnect.messages", s.messages, "Messages without data between cores and the last level");
        stats.count("interconnect.lines", s.lines, "Lines sent between cores and the last level");
        stats.count("interconnect.wait_cycles", s.wait_cycles, "Cycles that messages waited for their ports");
    }
}
