//! The parts of the memory system, each with private fields and one idea. A part knows neither the system nor its requests.
//!
//! [`caches`], [`memories`] and [`persist_buffers`] hold lines, [`interconnect`] moves messages, [`design_port`] asks the
//! design, [`agenda`] has what is scheduled and which requests wait, [`open_transactions`] the transactions of each core,
//! [`line_locks`] the lines that persistent writes have locked, [`filters`] the filters of checked accesses,
//! [`observers`] the observers of a run, [`stall_attribution`] the cause of each wait, [`block_counts`] counters of
//! cache-block operations, and [`work_list`] the tasks that are left of a request.

pub(crate) mod agenda;
pub(crate) mod background;
pub(crate) mod block_counts;
pub(crate) mod caches;
mod counters;
pub(crate) mod design_port;
pub(crate) mod filters;
pub(crate) mod interconnect;
mod level_counts;
pub(crate) mod line_locks;
pub(crate) mod memories;
pub(crate) mod observers;
pub(crate) mod open_transactions;
mod part;
pub(crate) mod persist_buffers;
pub(crate) mod situations;
pub(crate) mod stall_attribution;
pub(crate) mod work_list;
