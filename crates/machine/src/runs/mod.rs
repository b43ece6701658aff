//! Runs from a request to a result.

mod ending;
pub(crate) mod provenance;
pub(crate) mod result;
pub(crate) mod run;
pub(crate) mod session;
