//! Time: cores and caches count cycles, memory counts picoseconds, conversions round up.

use serde::{Deserialize, Serialize};

/// Core clock cycles since the start of the simulation.
pub type Cycle = u64;

/// Picoseconds since the start of the simulation.
pub type Picos = u64;

const PICOS_PER_MICRO: u64 = 1_000_000;

/// The clock of the cores, which turns cycles into picoseconds and back without losing a whole cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Frequency of the cores in MHz.
    pub frequency_mhz: u64,
}

impl Clock {
    /// Picoseconds at the given cycle, rounded up.
    #[inline]
    pub const fn picos(self, cycle: Cycle) -> Picos {
        scaled(cycle, PICOS_PER_MICRO, self.frequency_mhz)
    }

    /// The first cycle that starts at or after the given picosecond.
    #[inline]
    pub const fn cycles(self, picos: Picos) -> Cycle {
        scaled(picos, self.frequency_mhz, PICOS_PER_MICRO)
    }

    /// Nanoseconds at the given cycle, as a real number.
    pub fn nanos(self, cycle: Cycle) -> f64 {
        cycle as f64 * 1_000.0 / self.frequency_mhz as f64
    }
}

/// `value * factor / divisor`, rounded up.
#[inline]
const fn scaled(value: u64, factor: u64, divisor: u64) -> u64 {
    match value.checked_mul(factor) {
        Some(product) => product.div_ceil(divisor),
        // A division of 128 bits takes many times as long.
        None => (value as u128 * factor as u128).div_ceil(divisor as u128) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_round_up_and_return() {
        let clock = Clock { frequency_mhz: 3000 };
        assert_eq!(clock.picos(1), 334);
        assert_eq!(clock.picos(3), 1000);
        assert_eq!(clock.cycles(150_000), 450);
        assert_eq!(clock.cycles(1), 1);
        for cycle in [0, 3, 30, 999, 3_000_000_000] {
            let back = clock.cycles(clock.picos(cycle));
            assert!(back == cycle || back == cycle + 1, "{cycle} came back as {back}");
        }
        let late = u64::MAX / 2_000_000;
        assert_eq!(clock.picos(3 * late), 1000 * late, "products of more than 64 bits");
    }
}
