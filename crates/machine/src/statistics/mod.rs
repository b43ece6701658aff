//! Counters, latencies and metrics. They observe a run, and no timing depends on them.

pub(crate) mod batches;
pub(crate) mod filter_statistics;
pub(crate) mod latency;
pub(crate) mod measurements;
pub(crate) mod metrics;
pub(crate) mod persistence;
pub(crate) mod transactions;
