//! The history oracle: what a program says of its operations while it runs, against what a recovered pool holds.
//!
//! A transaction reports which objects it read or changed, each with the version that it found and the version that it
//! left. The objects and versions are the program's own (a key and its value, a place and a hash of its content). The
//! recovered pool is dumped as objects with their versions. A dump is right if it is the state after a set of transactions
//! that
//! - has all of a transaction or nothing of it,
//! - has every transaction whose version one of the set read or overwrote,
//! - has every transaction that the design has promised to keep: those acknowledged (durable linearizability: J.
//!   Izraelevitz, H. Mendes, M. L. Scott: Linearizability of Persistent Memory Objects under a Full-System-Crash Failure
//!   Model, DISC 2016), or those acknowledged a number of epochs ago (buffered durable linearizability, in the same paper),
//! - has none that aborted or had not started to commit,
//! - has no transaction without those that its thread committed before it, and those that were acknowledged before its
//!   operation began.
//!
//! Before any crash, the history by itself has to be explained by one order of its transactions.
//!
//! Use: a [`HistoryRecorder`] records the run without a crash (`system_mut().keep_history`). With the dump of the pool
//! before the run, which is empty if the pool is fresh, it makes a [`HistoryOracle`]. That judges the dump
//! ([`Dump::find`]) of each image at [`HistoryOracle::position_after`] the image's persist event.
//!
//! The oracle sees steps and pairs of numbers, and nothing of the machine, the design, the bytes or the program's own
//! check.

mod chains;
mod dump;
mod judge;
mod log;
#[cfg(test)]
mod tests;

pub use dump::Dump;
pub use judge::HistoryOracle;
pub(crate) use log::RecordedMoment;
pub use log::{HistoryRecorder, Position};
