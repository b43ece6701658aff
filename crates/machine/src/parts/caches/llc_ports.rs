//! The ports of the last level, on machines whose design limits them (Kiln's STT-RAM; DEVIATIONS.md, kiln-llc-ports).
//! Look-ups, lines that come down or are pushed, lines from memory, and victims that are read out take one each. On other
//! machines there are none, and nothing here is called for.

use durasim_contract::LlcPorts;
use durasim_memory::Reservations;
use durasim_types::{Cycle, LineAddr, Stats};
use serde::{Deserialize, Serialize};

/// The bookings of the ports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PortBookings {
    ports: Vec<Reservations>,
    by_address: bool,
    fills_first: bool,
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
            by_address: of.by_address,
            fills_first: of.fills_first,
            read_busy_cycles: of.read_busy_cycles,
            write_latency_cycles: of.write_latency_cycles,
            write_busy_cycles: of.write_busy_cycles,
            written_at: 0,
            read_wait_cycles: 0,
            write_wait_cycles: 0,
        }
    }

    /// Whether a line from memory is written before its data goes up.
    pub fn fills_first(&self) -> bool {
        self.fills_first
    }

    /// The port of the bank of a line, or the first one that is free, takes an access that is asked for at `at`; the cycle in
    /// which it begins.
    fn take(&mut self, line: LineAddr, at: Cycle, busy_cycles: Cycle) -> Cycle {
        let bank = (line.0 % self.ports.len() as u64) as usize;
        let ports = if self.by_address { &mut self.ports[bank..=bank] } else { &mut self.ports[..] };
        let first = ports.iter_mut().map(|port| (port.first_gap(at, busy_cycles), port)).min_by_key(|port| port.0);
        let (begin, port) = first.expect("an array has a port");
        port.book(begin, busy_cycles);
        begin
    }

    /// A look-up; the cycle in which it begins.
    pub fn read(&mut self, line: LineAddr, at: Cycle) -> Cycle {
        let begin = self.take(line, at, self.read_busy_cycles);
        self.read_wait_cycles += begin - at;
        begin
    }

    /// A write; the cycle in which it is done.
    pub fn write(&mut self, line: LineAddr, at: Cycle) -> Cycle {
        let begin = self.take(line, at, self.write_busy_cycles);
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
        PortBookings::new(LlcPorts {
            ports,
            by_address: false,
            fills_first: false,
            read_busy_cycles,
            write_latency_cycles: 50,
            write_busy_cycles,
        })
    }

    impl PortBookings {
        fn read_any(&mut self, at: Cycle) -> Cycle {
            self.read(LineAddr(0), at)
        }

        fn write_any(&mut self, at: Cycle) -> Cycle {
            self.write(LineAddr(0), at)
        }
    }

    #[test]
    fn a_bank_takes_its_own_lines_alone() {
        let mut any = bookings(2, 1, 50);
        let mut banks = PortBookings { by_address: true, ..any.clone() };
        let [even, other_even, odd] = [LineAddr(4), LineAddr(6), LineAddr(5)];
        assert_eq!([any.write(even, 0), any.write(other_even, 0), any.read(odd, 0)], [50, 50, 50]);
        assert_eq!([banks.write(even, 0), banks.write(other_even, 0), banks.read(odd, 0)], [50, 100, 0]);
    }

    #[test]
    fn reads_and_writes_share_the_ports() {
        let mut one = bookings(1, 1, 50);
        assert_eq!([one.write_any(10), one.written_at()], [60, 60]);
        assert_eq!([one.read_any(20), one.read_any(20)], [60, 61], "reads wait for a write, and are pipelined");
        assert_eq!(one.read_any(5), 5, "an earlier request takes the time before it");
        assert_eq!(one.write_any(6), 112, "a write does not fit in front of the other one");
        assert_eq!((one.read_wait_cycles, one.write_wait_cycles), (40 + 41, 56));
        let mut two = bookings(2, 1, 50);
        assert_eq!([two.write_any(10), two.read_any(20), two.write_any(21), two.write_any(21)], [60, 20, 71, 110]);
    }

    #[test]
    fn pipelining_is_a_matter_of_how_long_an_access_keeps_its_port() {
        let mut none = bookings(1, 40, 50);
        assert_eq!([none.read_any(0), none.read_any(0), none.write_any(0), none.read_any(0)], [0, 40, 130, 130]);
        let mut all = bookings(1, 1, 1);
        assert_eq!([all.read_any(0), all.write_any(0), all.write_any(0), all.read_any(0)], [0, 51, 52, 3]);
    }
}
