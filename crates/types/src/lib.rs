//! The vocabulary of durasim: addresses, lines, times, identifiers, the statistics tree, errors and the seeded
//! generator. This crate knows nothing of machines; every other crate may use it.

mod addr;
mod checked;
mod digest;
mod error;
mod event;
mod event_room;
mod history;
mod journal;
mod pages;
mod rng;
mod stall;
mod stats;
mod time;

pub use addr::{LINE_BYTES, Line, LineAddr, PAGE_BYTES, PhysAddr, VirtAddr};
pub use checked::{
    AccessKind, CheckRegisters, CheckVerdict, CheckedAccess, FILTER_LINES, FWD_LINES, FilterOperation, HANDLER_BYTES,
    SEED_LINE, StoreKind, TRANS_LINE,
};
pub use digest::Digest;
pub use error::{ConfigError, Error, ExitCode, GuestFault};
pub use event::{EventKind, PersistEvent};
pub use event_room::EventRoom;
pub use history::{Boundary, BoundaryKind, History, HistoryStep};
pub use journal::{BlockOperation, CallStackId, DataRange, Journal, Site, Write};
pub use pages::Pages;
pub use rng::Rng;
pub use stall::{StallCause, StallSegment};
pub use stats::{Stat, Stats};
pub use time::{Clock, Cycle, Picos};

use serde::{Deserialize, Serialize};

/// A transaction, numbered from 1 in the order in which transactions began on the whole machine. Never reused, so
/// it can name a transaction in a log; designs derive their own narrow hardware identifiers from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TxId(pub u64);

/// A core of the machine, numbered from 0. Where cores have two hardware threads each it is one of these: the second one of core
/// `c` has the number `c` + the number of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CoreId(pub u16);

/// The reason why bytes were written to persistent memory. Every byte the media accepts carries exactly one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The program's own data, at its home address.
    Data,
    /// Undo or redo copies of data.
    Log,
    /// Commit records, mapping tables, tags.
    Metadata,
    /// Copies moved between places of persistent memory in the background.
    Migration,
    /// Copies made for a checkpoint.
    Checkpoint,
}

impl Cause {
    /// All causes, in the order of the JSON of a run.
    pub const ALL: [Cause; 5] = [Cause::Data, Cause::Log, Cause::Metadata, Cause::Migration, Cause::Checkpoint];

    /// The name of the cause in results.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Data => "data",
            Cause::Log => "log",
            Cause::Metadata => "metadata",
            Cause::Migration => "migration",
            Cause::Checkpoint => "checkpoint",
        }
    }
}

/// The parts that a power failure leaves. A property of the machine, not of a design (design variants state which they
/// tolerate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Domain {
    /// Media and the write pending queues of the controllers.
    Adr,
    /// `adr` and all caches; never the store buffer.
    Eadr,
    /// `adr` and a battery-backed persist buffer beside each L1D, which every store to persistent memory enters.
    Bbb,
    /// `adr` and a nonvolatile last-level cache.
    NvLlc,
    /// Media and a nonvolatile last-level cache with its write-back buffers, which keep a line until the media has it; write
    /// pending queues are lost.
    NvLlcMedia,
    /// Media and nonvolatile transaction caches beside the cores.
    NvTc,
    /// Media alone: a write is durable when the media has written it.
    Media,
}

impl Domain {
    /// All of them.
    pub const ALL: [Domain; 7] =
        [Domain::Adr, Domain::Eadr, Domain::Bbb, Domain::NvLlc, Domain::NvLlcMedia, Domain::NvTc, Domain::Media];

    /// The name used by options and results.
    pub const fn name(self) -> &'static str {
        match self {
            Domain::Adr => "adr",
            Domain::Eadr => "eadr",
            Domain::Bbb => "bbb",
            Domain::NvLlc => "nv-llc",
            Domain::NvLlcMedia => "nv-llc-media",
            Domain::NvTc => "nv-tc",
            Domain::Media => "media",
        }
    }

    /// Whether a write is durable once a write pending queue has accepted it.
    pub const fn queue_is_durable(self) -> bool {
        matches!(self, Domain::Adr | Domain::Eadr | Domain::Bbb | Domain::NvLlc)
    }

    /// Whether dirty cache lines of all levels survive.
    pub const fn caches_are_durable(self) -> bool {
        matches!(self, Domain::Eadr)
    }

    /// Whether a store is durable once it has left the store buffer.
    pub const fn stores_are_durable(self) -> bool {
        matches!(self, Domain::Eadr | Domain::Bbb)
    }

    /// Whether dirty lines of the last level survive.
    pub const fn llc_is_durable(self) -> bool {
        matches!(self, Domain::Eadr) || self.llc_alone_is_durable()
    }

    /// Whether dirty lines of the last level survive, and those of the levels above do not.
    pub const fn llc_alone_is_durable(self) -> bool {
        matches!(self, Domain::NvLlc | Domain::NvLlcMedia)
    }

    /// Whether the write-back buffers of the last level keep a line until the media has written it, because the queue that
    /// has accepted it would be lost.
    pub const fn buffers_outlast_queue(self) -> bool {
        self.llc_is_durable() && !self.queue_is_durable()
    }
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
