//! Steps of Hercules that a planted fault can break: each is what the design does, with the faults of that step beside it.

mod collection;
pub(super) mod log;
pub(super) mod migration;
pub(super) mod recovery;
mod transactions;
