//! Recording and replaying runs of LAD.

pub mod driver;
pub mod recorder;
pub mod replay;
