//! Batches of operations of one region of interest: what the counters had counted at the end of each, for intervals of
//! numbers from one run.

use super::metrics::Bytes;
use super::transactions::TxStats;
use durasim_types::Stats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of readings at which batches become twice as long, so that any number of operations gives between half of it and
/// all of it.
const READINGS_MAX: usize = 64;

/// Counters at a moment of the region of interest, counted from its begin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reading {
    ops: u64,
    counters: BTreeMap<String, u64>,
}

impl Reading {
    /// Takes over all that adds up over operations: no means, shares, percentiles and maxima.
    pub fn new(ops: u64, bytes: &Bytes, tx: &TxStats, stats: &Stats) -> Self {
        let mut counters = BTreeMap::from([("ops".to_owned(), ops)]);
        let mut add = |path: &str, value: u64| {
            counters.insert(path.to_owned(), value);
        };
        for (path, value) in [
            ("pmem_write_bytes.total", bytes.total),
            ("pmem_write_bytes.data", bytes.data),
            ("pmem_write_bytes.log", bytes.log),
            ("pmem_write_bytes.metadata", bytes.metadata),
            ("pmem_write_bytes.migration", bytes.migration),
            ("pmem_write_bytes.checkpoint", bytes.checkpoint),
            ("tx.begun", tx.begun),
            ("tx.committed", tx.committed),
            ("tx.aborted", tx.aborted),
        ] {
            add(path, value);
        }
        for (path, value) in [("tx.htm_committed", tx.htm_committed), ("tx.sgl_committed", tx.sgl_committed)] {
            add(path, value.unwrap_or(0));
        }
        if let Some(by) = &tx.aborted_by {
            add("tx.aborted_by.conflict", by.conflict);
            add("tx.aborted_by.capacity", by.capacity);
            add("tx.aborted_by.explicit", by.explicit);
            add("tx.aborted_by.nested", by.nested);
            add("tx.aborted_by.trap", by.trap);
            add("tx.aborted_by.other", by.other);
        }
        let added = stats.0.iter().filter(|(path, stat)| adds_up(path, &stat.unit));
        counters.extend(added.map(|(path, stat)| (format!("stats.{path}"), stat.value as u64)));
        Reading { ops, counters }
    }

    /// Adds a further counter.
    pub fn with(mut self, path: &str, value: u64) -> Self {
        self.counters.insert(path.to_owned(), value);
        self
    }
}

/// Whether a statistic adds up over operations.
fn adds_up(path: &str, unit: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    matches!(unit, "count" | "bytes" | "cycles") && !last.ends_with("_max") && !last.starts_with("latency_")
}

/// Readings at the ends of batches while a region is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BatchReadings {
    /// Least number of operations of a batch.
    ops: u64,
    readings: Vec<Reading>,
}

impl Default for BatchReadings {
    fn default() -> Self {
        BatchReadings { ops: 1, readings: Vec::new() }
    }
}

impl BatchReadings {
    /// Whether a batch has ended when this number of operations is done.
    pub fn is_due(&self, ops: u64) -> bool {
        ops / self.ops > self.readings.last().map_or(0, |last| last.ops / self.ops)
    }

    /// Adds the reading at the end of a batch.
    pub fn add(&mut self, reading: Reading) {
        self.readings.push(reading);
        while self.readings.len() >= READINGS_MAX {
            self.ops *= 2;
            let (ops, mut before) = (self.ops, 0);
            self.readings.retain(|reading| {
                let is_end = reading.ops / ops > before;
                before = reading.ops / ops;
                is_end
            });
        }
    }

    /// The counters by their path, each with its values at the ends of all batches.
    pub fn result(&self) -> Batches {
        let mut counters: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (at, reading) in self.readings.iter().enumerate() {
            for (path, &value) in &reading.counters {
                if value > 0 {
                    counters.entry(path.clone()).or_insert_with(|| vec![0; self.readings.len()])[at] = value;
                }
            }
        }
        Batches { ops: self.ops, count: self.readings.len() as u64, counters }
    }
}

/// Counters at the ends of batches of operations of the region of interest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Batches {
    /// Least number of operations of a batch: a batch ends in the first step of the machine after them.
    pub ops: u64,
    /// Number of batches. The operations after the last one are in none.
    pub count: u64,
    /// Each counter, counted from the begin of the region, at the end of each batch, by its path in this document, or
    /// `media_reads` and `media_writes` in lines. Counters that remain 0 are left out.
    pub counters: BTreeMap<String, Vec<u64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(steps: impl Iterator<Item = u64>) -> Batches {
        let mut batches = BatchReadings::default();
        for ops in steps {
            if batches.is_due(ops) {
                let reading = Reading::new(ops, &Bytes::default(), &TxStats::default(), &Stats::default());
                batches.add(reading.with("roi.cycles", 3 * ops));
            }
        }
        batches.result()
    }

    #[test]
    fn any_number_of_operations_gives_between_half_of_the_readings_and_all() {
        for ops in [64, 100, 1000, 4096, 100_000] {
            let found = readings(1..=ops);
            assert!((32..64).contains(&found.count), "{ops}: {}", found.count);
            let ends: Vec<u64> = (1..=found.count).map(|at| at * found.ops).collect();
            assert_eq!(found.counters["ops"], ends);
            assert_eq!(found.counters["roi.cycles"], ends.iter().map(|ops| 3 * ops).collect::<Vec<_>>());
            assert!(found.ops * (found.count + 1) > ops);
        }
    }

    #[test]
    fn a_batch_ends_after_its_operations_if_several_end_in_one_step() {
        let found = readings((0..=1000).step_by(7));
        assert_eq!(found.ops, 16);
        assert!(found.counters["ops"].iter().zip(1..).all(|(&ops, at)| (16 * at..16 * at + 7).contains(&ops)));
    }

    #[test]
    fn counters_that_remain_zero_and_what_does_not_add_up_are_left_out() {
        let mut stats = Stats::default();
        stats.count("llc.misses", 5, "");
        stats.count("llc.hits", 0, "");
        stats.count("lad.held_max", 5, "");
        stats.set("core.pmem_loads.latency_mean", 5.0, "cycles", "");
        stats.set("p_inspect.nvm_access_percent", 5.0, "percent", "");
        let mut batches = BatchReadings::default();
        batches.add(Reading::new(1, &Bytes::default(), &TxStats::default(), &stats));
        let paths: Vec<String> = batches.result().counters.into_keys().collect();
        assert_eq!(paths, ["ops", "stats.llc.misses"]);
    }
}
