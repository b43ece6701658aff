//! The crash laboratory: a run is crashed at numbered persist events, each image is recovered, and oracles judge what
//! came back.

mod byte_oracle;
mod campaign;
mod case;
mod executor;
mod explore;
mod history;
mod judge;
mod life;
mod order;
mod outcome;
mod result;
mod schedule;
mod scribe;
mod story;
mod timeline;

pub use byte_oracle::{ByteOracle, Verdict};
pub use campaign::{CrashRequest, crash};
pub use case::{Blow, Case, Then};
pub use history::{Dump, HistoryOracle, HistoryRecorder, Position};
pub use order::OrderChecker;
pub use result::{CrashResult, Failure};
pub use schedule::{All, Fault, Points};
pub use story::{
    Chapter, CopySeen, Happening, LineEnd, Loss, Objection, PowerFailure, Program, RecoveryWrite, Seen, Timeline,
    Trace, Transaction, Words,
};
