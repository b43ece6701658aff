//! Memory controllers and media. Data lives here in the media's pages and in the entries of the queues; a read always
//! returns the newest accepted copy. Time is in picoseconds.

mod config;
mod controller;
mod queue;
mod reservations;

pub use config::{ControllerConfig, MediaConfig, MemoryConfig};
pub use controller::{Controller, ControllerStats, Read, Step};
pub use queue::{Entry, Write, WriteToken};
