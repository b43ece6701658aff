//! Views of the whole system at one moment. They change nothing.

pub(crate) mod copy_locations;
pub(crate) mod crash;
mod invariants;
mod marks;
