//! The ports of the last level, on machines whose design limits them (Kiln's STT-RAM; DEVIATIONS.md, kiln-llc-ports).
//! Look-ups, lines that come down or are pushed, lines from memory, and victims that are read out take one each. On other
//! machines there are none, and nothing here is called for.

use durasim_contract::LlcPorts;
use durasim_memory::Reservations;
use durasim_types::{Cycle, Stats};
use serde::{Deserialize, Serialize};

/// The bookings of the ports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PortBookings {
    ports: Vec<Reservations>,
    read_busy_cycles: Cycle,
    write_latency_cycles: Cycle,
    write_busy_cycles: Cycle,
    /// Cycle in which the write that was booked last is done.
    written_at: Cycle,
    read_wait_cycles: Cycle,
    write_wait_cycles: Cycle,
}

impl PortBookings {
    pub fn new(of: LlcPorts) -> Self {
        PortBookings {
            ports: vec![Reservations::default(); of.ports as usize],
            read_busy_cycles: of.read_busy_cycles,
            write_latency_cycles: of.write_latency_cycles,
            write_busy_cycles: of.write_busy_cycles,
            written_at: 0,
            read_wait_cycles: 0,
            write_wait_cycles: 0,
        }
    }

    /// The first port that is free takes an access that is asked for at `at`; the cycle in which it begins.
    fn take(&mut self, at: Cycle, busy_cycles: Cycle) -> Cycle {
        let first = self.ports.iter_mut().map(|port| (port.first_gap(at, busy_cycles), port)).min_by_key(|port| port.0);
        let (begin, port) = first.expect("an array has a port");
        port.book(begin, busy_cycles);
        begin
    }

    /// A look-up; the cycle in which it begins.
    pub fn read(&mut self, at: Cycle) -> Cycle {
        let begin = self.take(at, self.read_busy_cycles);
        self.read_wait_cycles += begin - at;
        begin
    }

    /// A write; the cycle in which it is done.
    pub fn write(&mut self, at: Cycle) -> Cycle {
        let begin = self.take(at, self.write_busy_cycles);
        self.write_wait_cycles += begin - at;
        self.written_at = begin + self.write_latency_cycles;
        self.written_at
    }

    /// Cycle in which the write that was booked last is done.
    pub fn written_at(&self) -> Cycle {
        self.written_at
    }

    pub fn reset_stats(&mut self) {
        (self.read_wait_cycles, self.write_wait_cycles) = (0, 0);
    }

    pub fn stats(&self, stats: &mut Stats) {
        stats.count("llc.read_wait_cycles", self.read_wait_cycles, "Cycles that look-ups waited for a port");
        stats.count("llc.write_wait_cycles", self.write_wait_cycles, "Cycles that writes waited for a port");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bookings(ports: u32, read_busy_cycles: Cycle, write_busy_cycles: Cycle) -> PortBookings {
        PortBookings::new(LlcPorts { ports, read_busy_cycles, write_latency_cycles: 50, write_busy_cycles })
    }

    #[test]
    fn reads_and_writes_share_the_ports() {
        let mut one = bookings(1, 1, 50);
        assert_eq!([one.write(10), one.written_at()], [60, 60]);
        assert_eq!([one.read(20), one.read(20)], [60, 61], "reads wait for a write, and are pipelined");
        assert_eq!(one.read(5), 5, "an earlier request takes the time before it");
        assert_eq!(one.write(6), 112, "a write does not fit in front of the other one");
        assert_eq!((one.read_wait_cycles, one.write_wait_cycles), (40 + 41, 56));
        let mut two = bookings(2, 1, 50);
        assert_eq!([two.write(10), two.read(20), two.write(21), two.write(21)], [60, 20, 71, 110]);
    }

    #[test]
    fn pipelining_is_a_matter_of_how_long_an_access_keeps_its_port() {
        let mut none = bookings(1, 40, 50);
        assert_eq!([none.read(0), none.read(0), none.write(0), none.read(0)], [0, 40, 130, 130]);
        let mut all = bookings(1, 1, 1);
        assert_eq!([all.read(0), all.write(0), all.write(0), all.read(0)], [0, 51, 52, 3]);
    }
}
