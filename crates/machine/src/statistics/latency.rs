//! A histogram of latencies that forks share until one of them records, and that has a form for snapshots.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Latencies in core cycles, three digits exact. A clone shares the counts with its original until one of the two changes.
#[derive(Clone, Debug)]
pub(crate) struct Latency(Arc<Histogram<u64>>);

impl Latency {
    pub fn new() -> Self {
        Latency(Arc::new(Histogram::new(3).expect("three digits are a valid precision")))
    }

    pub fn record(&mut self, cycles: u64) {
        Arc::make_mut(&mut self.0).record(cycles).expect("the histogram grows");
    }

    pub fn reset(&mut self) {
        match Arc::get_mut(&mut self.0) {
            Some(histogram) => histogram.reset(),
            None => *self = Latency::new(),
        }
    }

    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// Latencies that are recorded often and are mostly of a few cycles.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LoadLatency {
    /// Number of occurrences of each short latency.
    short: Vec<u64>,
    long: Latency,
    sum_cycles: u64,
}

/// Latencies below this are counted one by one.
const SHORT_CYCLES: usize = 256;

impl LoadLatency {
    pub fn new() -> Self {
        LoadLatency { short: vec![0; SHORT_CYCLES], long: Latency::new(), sum_cycles: 0 }
    }

    #[inline]
    pub fn record(&mut self, cycles: u64) {
        self.sum_cycles += cycles;
        match self.short.get_mut(cycles as usize) {
            Some(count) => *count += 1,
            None => self.long.record(cycles),
        }
    }

    /// Number of latencies, their exact mean, and their distribution.
    pub fn distribution(&self) -> (u64, f64, Histogram<u64>) {
        let mut all = self.long.histogram().clone();
        for (cycles, count) in self.short.iter().enumerate().filter(|(_, count)| **count > 0) {
            all.record_n(cycles as u64, *count).expect("the histogram grows");
        }
        let count = all.len();
        (count, if count == 0 { 0.0 } else { self.sum_cycles as f64 / count as f64 }, all)
    }
}

/// Latencies of one phase of a transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PhaseLatency {
    latency: Latency,
    sum_cycles: u64,
}

impl PhaseLatency {
    fn new() -> Self {
        PhaseLatency { latency: Latency::new(), sum_cycles: 0 }
    }

    /// Number of transactions that have gone through it.
    pub fn count(&self) -> u64 {
        self.latency.histogram().len()
    }

    /// The exact mean in cycles; 0 of none.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum_cycles as f64 / self.count() as f64 }
    }

    /// The 99th percentile in cycles.
    pub fn p99(&self) -> u64 {
        self.latency.histogram().value_at_quantile(0.99)
    }
}

/// Latencies of execution, prepare phase and commit phase of transactions whose design commits in two phases.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PhaseLatencies([PhaseLatency; 3]);

impl Default for PhaseLatencies {
    fn default() -> Self {
        PhaseLatencies([PhaseLatency::new(), PhaseLatency::new(), PhaseLatency::new()])
    }
}

impl PhaseLatencies {
    pub fn record(&mut self, cycles: [u64; 3]) {
        for (phase, cycles) in self.0.iter_mut().zip(cycles) {
            phase.latency.record(cycles);
            phase.sum_cycles += cycles;
        }
    }

    /// Execution, prepare, commit.
    pub fn all(&self) -> [&PhaseLatency; 3] {
        self.0.each_ref()
    }
}

/// The values that occur, as the histogram knows them, and how often.
impl Serialize for Latency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = self.0.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value()));
        values.collect::<Vec<(u64, u64)>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut histogram = Histogram::new(3).expect("three digits are a valid precision");
        for (value, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            histogram.record_n(value, count).map_err(serde::de::Error::custom)?;
        }
        Ok(Latency(Arc::new(histogram)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_latencies_have_one_distribution() {
        let mut latency = LoadLatency::new();
        for cycles in [4, 4, 4, 255, 256, 400, 90_000] {
            latency.record(cycles);
        }
        let (count, mean, all) = latency.distribution();
        assert_eq!((count, mean), (7, (3.0 * 4.0 + 255.0 + 256.0 + 400.0 + 90_000.0) / 7.0));
        let at = |quantile| all.value_at_quantile(quantile);
        // Three digits are exact.
        assert_eq!((at(0.4), at(0.5), at(0.7), at(0.8)), (4, 255, 256, 400));
        assert!(all.equivalent(all.max(), 90_000));
        let saved: LoadLatency = postcard::from_bytes(&postcard::to_stdvec(&latency).unwrap()).unwrap();
        assert_eq!(saved.distribution().1, mean);
    }

    #[test]
    fn a_saved_histogram_answers_as_before_and_a_clone_is_independent() {
        let mut a = Latency::new();
        for cycles in [0, 1, 999, 1000, 2049, 2050, 4097, 1_234_567, 1_234_567, u64::MAX / 2] {
            a.record(cycles);
        }
        let b: Latency = postcard::from_bytes(&postcard::to_stdvec(&a).unwrap()).unwrap();
        assert_eq!(a.histogram(), b.histogram());
        for quantile in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
            assert_eq!(a.histogram().value_at_quantile(quantile), b.histogram().value_at_quantile(quantile));
        }
        assert_eq!((a.histogram().max(), a.histogram().min()), (b.histogram().max(), b.histogram().min()));
        let mut c = a.clone();
        c.record(7);
        a.reset();
        assert_eq!((a.histogram().len(), b.histogram().len(), c.histogram().len()), (0, 10, 11));
    }
}
