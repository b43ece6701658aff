//! The statistics tree: every counter has a dotted path, a unit and a description.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One statistic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stat {
    /// The value.
    pub value: f64,
    /// The unit: `count`, `bytes`, `cycles`, `ns`, `ratio`.
    pub unit: String,
    /// One sentence.
    pub description: String,
}

/// Statistics by dotted path, for example `l1d.misses`. Ordered, so that output is the same on every run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stats(pub BTreeMap<String, Stat>);

impl Stats {
    /// Sets the statistic at `path`.
    pub fn set(&mut self, path: impl Into<String>, value: f64, unit: &str, description: &str) {
        self.0.insert(path.into(), Stat { value, unit: unit.into(), description: description.into() });
    }

    /// Sets an event counter at `path`.
    pub fn count(&mut self, path: impl Into<String>, value: u64, description: &str) {
        self.set(path, value as f64, "count", description);
    }

    /// The value at `path`, if there is one.
    pub fn get(&self, path: &str) -> Option<f64> {
        self.0.get(path).map(|stat| stat.value)
    }

    /// Takes over all statistics of `other` under the prefix `prefix.`.
    pub fn nest(&mut self, prefix: &str, other: Stats) {
        for (path, stat) in other.0 {
            self.0.insert(format!("{prefix}.{path}"), stat);
        }
    }
}
