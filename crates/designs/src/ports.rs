//! The ports of an array: how many accesses it takes at a time, and how long each keeps its port.

use durasim_types::Cycle;
use serde::{Deserialize, Serialize};

/// The cycles for which an access of an array keeps its port: its whole latency, or a cycle if the array is pipelined.
pub(crate) fn busy_cycles(latency_cycles: Cycle, pipelined: bool) -> Cycle {
    if pipelined { latency_cycles.min(1) } else { latency_cycles }
}

/// Ports of one kind. Requests come in the order of their times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    /// When each port is free.
    free_at: Vec<Cycle>,
    /// The cycles for which an access keeps its port.
    occupied_cycles: Cycle,
}

impl Ports {
    /// This number of free ports. A pipelined array takes an access per port in each cycle, another one is busy for the
    /// whole `latency_cycles`.
    pub fn new(ports: u32, latency_cycles: Cycle, pipelined: bool) -> Self {
        Ports { free_at: vec![0; ports as usize], occupied_cycles: busy_cycles(latency_cycles, pipelined) }
    }

    /// Whether these are as many ports.
    pub fn are_as(&self, other: &Ports) -> bool {
        self.free_at.len() == other.free_at.len() && self.occupied_cycles == other.occupied_cycles
    }

    /// An access that is asked for at `now` takes the first port that is free; the cycle in which it begins.
    pub fn take(&mut self, now: Cycle) -> Cycle {
        let port = self.free_at.iter_mut().min().expect("an array has a port");
        let begin = now.max(*port);
        *port = begin + self.occupied_cycles;
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_take_turns_at_busy_ports() {
        let begins = |mut ports: Ports| (0..5).map(|_| ports.take(10)).collect::<Vec<_>>();
        assert_eq!(begins(Ports::new(1, 7, false)), [10, 17, 24, 31, 38]);
        assert_eq!(begins(Ports::new(2, 7, false)), [10, 10, 17, 17, 24]);
        assert_eq!(begins(Ports::new(2, 7, true)), [10, 10, 11, 11, 12]);
        assert_eq!(begins(Ports::new(1, 0, false)), [10; 5], "what takes no time is never busy");
    }
}
