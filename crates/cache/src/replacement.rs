//! The victim of a full set.

use durasim_types::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// Ways that a cache may have.
pub(crate) const WAYS_MAX: usize = 64;

/// The choice of the victim in a full set, where the durability design has no preference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The least recently used one.
    #[default]
    Lru,
    /// Any, each with the same chance.
    Random,
}

/// The data that an array needs for this beside the ages of its lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    Lru,
    Random(Rng),
}

impl Order {
    pub(crate) fn new(replacement: Replacement, seed: u64) -> Self {
        match replacement {
            Replacement::Lru => Order::Lru,
            Replacement::Random => Order::Random(Rng::new(seed)),
        }
    }

    /// Starts the sequence of random choices anew.
    pub(crate) fn reseed(&mut self, seed: u64) {
        if let Order::Random(rng) = self {
            *rng = Rng::new(seed);
        }
    }

    /// The candidate that leaves.
    pub(crate) fn choose(
        &mut self,
        candidates: impl Iterator<Item = usize> + Clone,
        age: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        let mut candidates = candidates;
        match self {
            Order::Lru => candidates.min_by_key(|&way| age(way)),
            Order::Random(rng) => {
                let count = candidates.clone().count() as u64;
                if count == 0 { None } else { candidates.nth(rng.below(count) as usize) }
            }
        }
    }

    /// Whatever part of a set may leave: the lowest rank in it is that of the line that should. For random choices the
    /// ranks of the set are therefore dealt at random.
    pub(crate) fn rank(&mut self, ranks: &mut [u32]) {
        let Order::Random(rng) = self else { return };
        let mut ranked = [0; WAYS_MAX];
        let mut count = 0;
        for (way, _) in ranks.iter().enumerate().filter(|(_, rank)| **rank != u32::MAX) {
            ranked[count] = way;
            count += 1;
        }
        // Fisher and Yates.
        for last in (1..count).rev() {
            ranks.swap(ranked[last], ranked[rng.below(last as u64 + 1) as usize]);
        }
    }

    pub(crate) fn digest(&self, hasher: &mut dyn Hasher) {
        if let Order::Random(rng) = self {
            hasher.write_u64(rng.state());
        }
    }
}
