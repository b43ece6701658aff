//! Ports of the banks of the L1D: how many loads may read the same bank in a cycle.

use crate::CoreConfig;
use durasim_types::{Cycle, PhysAddr};
use serde::{Deserialize, Serialize};

/// Cycles that are remembered; a load that is further ahead than that shares an entry, which only ever delays it.
const CALENDAR: usize = 1024;
/// Banks take turns word by word.
const BANK_BYTES: u64 = 8;

/// Bank accesses that the loads of one core have booked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Banks {
    count: u64,
    ports: u8,
    /// By bank and cycle: the cycle, and how many ports are taken in it.
    taken: Vec<(Cycle, u8)>,
}

impl Banks {
    /// Banks as configured; `None`: loads are not limited by them.
    pub fn new(config: &CoreConfig) -> Option<Self> {
        let count = config.l1d_banks?;
        let taken = vec![(0, 0); count as usize * CALENDAR];
        Some(Banks { count: count.into(), ports: config.l1d_bank_ports as u8, taken })
    }

    /// The first cycle from `at` on in which the bank of `addr` has a port; it is taken.
    pub fn take(&mut self, addr: PhysAddr, at: Cycle) -> Cycle {
        let bank = (addr.0 / BANK_BYTES % self.count) as usize;
        let mut cycle = at;
        loop {
            let entry = &mut self.taken[bank * CALENDAR + cycle as usize % CALENDAR];
            if entry.0 < cycle {
                *entry = (cycle, 0);
            }
            if entry.0 == cycle && entry.1 < self.ports {
                entry.1 += 1;
                return cycle;
            }
            cycle += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_serves_as_many_loads_in_a_cycle_as_it_has_ports() {
        for ports in 1..=3 {
            let config = CoreConfig { l1d_banks: Some(4), l1d_bank_ports: ports, ..CoreConfig::default() };
            let mut banks = Banks::new(&config).unwrap();
            let addr = |word: u64| PhysAddr(word * BANK_BYTES);
            for _ in 0..ports {
                assert_eq!(banks.take(addr(1), 100), 100);
            }
            assert_eq!(banks.take(addr(5), 100), 101, "the same bank again");
            assert_eq!(banks.take(addr(2), 100), 100, "another bank");
            assert_eq!(banks.take(addr(1), 90), 90, "a load that issues late in program order looks back");
        }
    }
}
