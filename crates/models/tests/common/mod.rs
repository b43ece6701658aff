//! Runs of the real Hercules, recorded and replayed against its model.

pub mod driver;
pub mod log;
pub mod recorder;
pub mod replay;
