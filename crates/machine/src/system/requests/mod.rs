//! Requests of cores.
//!
//! Loads, stores, cache-block operations, log operations, transactions and accesses of the kernel bring lines up, ask the
//! design whether they may continue, and leave to the work list everything that may move further lines. Their files call
//! each other one way.

mod await_unlocked;
mod bring_up;
mod cache_blocks;
mod checks;
mod fill;
mod filter_lines;
mod gates;
mod hardware_transactions;
mod kernel_access;
mod loads;
mod log;
mod lost;
mod persistent_write;
mod sharing;
mod situations;
mod store_requests;
mod stores;
mod transactions;
