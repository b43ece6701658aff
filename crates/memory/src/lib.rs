//! Memories: contents, controllers and media. Data is held here in the media's pages and in the entries of the queues; a
//! read always returns the newest accepted copy. Time is in picoseconds.

mod busy_intervals;
pub mod checker;
mod config;
mod contents;
mod controller;
mod media;
mod memory;
mod queue;
mod range;
mod reservations;
mod trace;

pub use config::{CONTROLLERS_MAX, ControllerConfig, MemoryConfig, WritePolicy};
pub use controller::{ControllerStats, Read, Step};
pub use media::{
    AddressMapping, DdrTiming, DdrTimingConfig, EntryUntil, MediaConfig, MediaKind, ModuleStats, PagePolicy, RowStats,
};
pub use memory::Memory;
pub use queue::{Entry, Write, WriteToken};
pub use reservations::Reservations;
pub use trace::{Command, CommandKind};
