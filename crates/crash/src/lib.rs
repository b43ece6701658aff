//! The crash laboratory: a run is crashed at numbered persist events, each image is recovered, and oracles judge what
//! came back.
//!
//! The run is not disturbed: at a crash point the durable state is copied (pages are shared, not copied) and the
//! machine goes on; recovery and checks work on the copy, on other threads.

mod byte_oracle;
mod campaign;
mod history;
mod order;
mod result;
mod trial;

pub use byte_oracle::{ByteOracle, Verdict};
pub use campaign::{CrashRequest, Points, crash};
pub use history::{Dump, HistoryOracle, HistoryRecorder, HistoryReport, HistoryTrial, Position, judge_history};
pub use order::OrderChecker;
pub use result::{CrashResult, Failure};
