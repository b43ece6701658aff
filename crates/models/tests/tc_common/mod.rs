//! Recording and replaying runs of the transaction cache.

pub mod driver;
pub mod recorder;
pub mod replay;
