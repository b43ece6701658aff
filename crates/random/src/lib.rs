//! A random tester that drives the memory system without cores, through 1 to 16 cache ports: it knows what every load
//! has to return, and at persist events it crashes the machine, recovers and judges the image.
//!
//! A request of a port is one atomic step of the machine, so the bytes that a load has to return are those of the
//! newest store in the order of the requests. Threads come and go at the ports as on cores; each has at most one open
//! transaction and one request that is pending. Aborts are rolled back in the model when the journal
//! reports them; their thread notices later, as a core does.
//!
//! [`Setting`] draws a machine and a design's parameters, [`run`] makes one run, [`campaign`] many. Equal seeds make equal
//! runs.

mod campaign;
mod hardware;
mod judge;
mod model;
mod power_cycle;
mod requests;
mod run;
mod settings;
mod sizes;
mod tally;
mod trace;

pub use campaign::{RandomDesign, RandomFailure, RandomReplay, RandomRequest, RandomResult, campaign, replay};
pub use run::{distinct_variants, has_hardware_transactions, is_of_its_own, run};
pub use settings::Setting;
pub use tally::{Effort, Findings, Tally};
pub use trace::Trace;

/// Bytes of persistent memory, and of DRAM, that a run touches.
const REGION_BYTES: u64 = 2 * durasim_types::PAGE_BYTES;
