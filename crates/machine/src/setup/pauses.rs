//! Pauses of cores at random, one core at a time: campaigns hold a thread up between two instructions, so that others come in
//! between. No machine has them; a schedule that differs each time shows races that are a few cycles wide (Edelstein and others,
//! "Framework for testing multi-threaded Java programs", Concurrency and Computation 15, 2003, call it noise).

use durasim_core::PlacePauses;
use durasim_types::{ConfigError, CoreId, Cycle, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Interval and length of random pauses of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseConfig {
    /// Mean cycles from the end of a pause to the next one, on any core: drawn from 1 to twice this value.
    pub interval_cycles: Cycle,
    /// Maximum length of a pause in cycles: drawn from 1 to this value.
    pub cycles_max: Cycle,
}

/// Frequency and length of pauses of a core at a place where threads race: after a read of the clock, a fence, a marker,
/// the begin or end of a hardware transaction, and the entry and the end of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacePauseConfig {
    /// Percentage of these places at which a core pauses.
    pub percent: u64,
    /// Maximum length of a pause in cycles: drawn from 1 to this value.
    pub cycles_max: Cycle,
}

const CYCLES_MAX: Cycle = 1_000_000_000;

fn check_range(field: &str, name: &str, value: u64, max: u64) -> Result<(), ConfigError> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(format!("{field}.{name}"), format!("{value} is not between 1 and {max}")))
}

impl PauseConfig {
    pub(crate) fn check(&self, field: &str) -> Result<(), ConfigError> {
        check_range(field, "interval_cycles", self.interval_cycles, CYCLES_MAX)?;
        check_range(field, "cycles_max", self.cycles_max, CYCLES_MAX)
    }
}

impl PlacePauseConfig {
    pub(crate) fn check(&self, field: &str) -> Result<(), ConfigError> {
        check_range(field, "percent", self.percent, 100)?;
        check_range(field, "cycles_max", self.cycles_max, CYCLES_MAX)
    }

    /// The pauses of a core; cores draw other numbers.
    pub(crate) fn of_core(&self, seed: u64, core: CoreId) -> PlacePauses {
        let mut numbers = Rng::new(seed ^ u64::from(core.0) << 48);
        PlacePauses::new(self.percent, self.cycles_max, numbers.next_u64())
    }
}

/// Schedule of the random pauses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pauses {
    config: Option<PauseConfig>,
    numbers: Rng,
    next: Cycle,
}

impl Pauses {
    /// `from`: the cycle in which the cores begin.
    pub fn new(config: Option<PauseConfig>, seed: u64, from: Cycle) -> Self {
        let mut pauses = Pauses { config, numbers: Rng::new(seed), next: Cycle::MAX };
        pauses.draw(from);
        pauses
    }

    /// The core that comes to this cycle first pauses next; `Cycle::MAX`: none does.
    #[inline]
    pub fn next(&self) -> Cycle {
        self.next
    }

    /// The cycle in which the core that has come to its pause, and is at `now`, continues.
    pub fn end(&mut self, now: Cycle) -> Cycle {
        let config = self.config.expect("without pauses no core comes to one");
        let end = now + 1 + self.numbers.below(config.cycles_max);
        self.draw(end);
        end
    }

    fn draw(&mut self, from: Cycle) {
        if let Some(config) = self.config {
            self.next = from + 1 + self.numbers.below(2 * config.interval_cycles);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_come_at_the_interval_and_are_no_longer_than_allowed() {
        let mut pauses = Pauses::new(Some(PauseConfig { interval_cycles: 100, cycles_max: 30 }), 7, 1000);
        let (mut at, mut between, mut lasted) = (1000, 0, 0);
        for _ in 0..10_000 {
            let begin = pauses.next();
            let end = pauses.end(begin);
            assert!((1..=200).contains(&(begin - at)) && (1..=30).contains(&(end - begin)));
            between += begin - at;
            lasted += end - begin;
            at = end;
        }
        assert!((98..=103).contains(&(between / 10_000)) && (15..=16).contains(&(lasted / 10_000)));
    }

    #[test]
    fn without_them_none_comes() {
        assert_eq!(Pauses::new(None, 7, 0).next(), Cycle::MAX);
    }
}
