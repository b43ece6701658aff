//! The links between the private caches of the cores and the banks of the last level.
//!
//! In the topology `crossbar` each bank of the last level and each core has a port through which it sends, and one through
//! which it gets what others send. A port carries one message at a time: a line for as many cycles as it is wider than the
//! link, a message without data for one. It leaves the port of its sender as it enters that of its receiver, but where that
//! is busy, it waits between them and holds up nothing. Messages with no port in common do not meet.

use super::MessageKind;
use super::link::{Forgotten, Ports, busiest};
use crate::setup::config::InterconnectConfig;
use durasim_contract::bank_of;
use durasim_types::{CoreId, Cycle, LINE_BYTES, LineAddr, Stats};
use serde::{Deserialize, Serialize};

/// Counters of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LinkStats {
    messages: u64,
    lines: u64,
    wait_cycles: Cycle,
    forgotten: Forgotten,
}

/// A crossbar.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Crossbar {
    /// Ports of the banks of the last level.
    banks: Vec<Ports>,
    /// Ports of the private caches of the cores.
    cores: Vec<Ports>,
    line_cycles: Cycle,
    stats: LinkStats,
}

impl Crossbar {
    pub(super) fn new(config: &InterconnectConfig, cores: usize) -> Self {
        Crossbar {
            banks: vec![Ports::default(); config.llc_banks() as usize],
            cores: vec![Ports::default(); cores],
            line_cycles: LINE_BYTES.div_ceil(config.link_width_bytes().into()),
            stats: LinkStats::default(),
        }
    }

    /// The bank of a line: lines take turns.
    fn bank(&self, line: LineAddr) -> usize {
        bank_of(line, self.banks.len() as u16).into()
    }

    /// Threads of a core have its ports together.
    fn core(&self, core: CoreId) -> usize {
        usize::from(core.0) % self.cores.len()
    }

    /// A message of a core travels to the bank of a line; when all of it is there.
    pub(super) fn send_to_bank(&mut self, core: CoreId, line: LineAddr, kind: MessageKind, at: Cycle) -> Cycle {
        let (bank, core, cycles) = (self.bank(line), self.core(core), self.cycles(kind));
        Self::send(&mut self.cores[core], &mut self.banks[bank], &mut self.stats, cycles, kind, at)
    }

    /// A message of the bank of a line travels to a core; when all of it is there.
    pub(super) fn send_to_core(&mut self, core: CoreId, line: LineAddr, kind: MessageKind, at: Cycle) -> Cycle {
        let (bank, core, cycles) = (self.bank(line), self.core(core), self.cycles(kind));
        Self::send(&mut self.banks[bank], &mut self.cores[core], &mut self.stats, cycles, kind, at)
    }

    /// Sends a message from port to port; the cycle in which all of it has passed.
    fn send(
        from: &mut Ports,
        to: &mut Ports,
        stats: &mut LinkStats,
        cycles: Cycle,
        kind: MessageKind,
        at: Cycle,
    ) -> Cycle {
        let leaves = from.out.take(at, cycles, &mut stats.forgotten);
        let start = to.into.take(leaves, cycles, &mut stats.forgotten);
        match kind {
            MessageKind::Control => stats.messages += 1,
            MessageKind::Data => stats.lines += 1,
        }
        stats.wait_cycles += start - at;
        start + cycles
    }

    fn cycles(&self, kind: MessageKind) -> Cycle {
        if kind == MessageKind::Data { self.line_cycles } else { 1 }
    }

    pub(super) fn reset_stats(&mut self) {
        self.stats = LinkStats::default();
        self.banks.iter_mut().chain(&mut self.cores).for_each(Ports::reset_stats);
    }

    pub(super) fn stats(&self, stats: &mut Stats) {
        let s = &self.stats;
        stats.count("interconnect.messages", s.messages, "Messages without data between cores and the last level");
        stats.count("interconnect.lines", s.lines, "Lines sent between cores and the last level");
        stats.count("interconnect.wait_cycles", s.wait_cycles, "Cycles that messages waited for ports");
        let busiest = busiest(self.banks.iter().chain(&self.cores).flat_map(Ports::links));
        stats.count("interconnect.busiest_port_cycles", busiest, "Cycles for which the busiest port was busy");
        s.forgotten.stats(stats);
    }
}
