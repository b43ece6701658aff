//! The commit and recovery protocol of Hercules (Ye, Chen, Jiang and Wang, ACM TECS 2023, sections 4.1 to 4.3 and
//! Listings 1 to 3).
//!
//! A line has one version at home, a stack of dirty versions in the caches, newest first, and at most one entry in the
//! log. What of that carries the tag of an open transaction, who may see it, and what a power failure makes of it is the
//! protocol; the cache of a version and the time of its eviction are left to chance, so every replacement policy is
//! covered. [`Machine`] is the state while the machine runs, [`Recovery`] the state from a power failure until recovery
//! ended, [`Action`] a step.
//!
//! `state.rs` has the states, `step.rs` the steps of a running machine, `recovery.rs` those from a power failure on,
//! `properties.rs` what must hold and what must happen.

pub mod properties;
mod recovery;
mod state;
mod step;

pub use crate::protocol::Tx;
pub use recovery::{Durable, Flag, Judge, RecoveryWrite};
pub use state::{Entry, Flight, LogSlot, Machine, OnChip, Phase, Thread, Version};

use crate::protocol::{Recovery, protocol};

/// The size of the model. The checker needs small numbers; a run of the simulator is replayed with those of its
/// machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Threads, each with at most one open transaction.
    pub threads: u8,
    /// Lines of persistent memory.
    pub lines: u8,
    /// Lines that transactions of a thread store to: those from its own number on.
    pub lines_per_thread: u8,
    /// Transactions that each thread begins.
    pub transactions_per_thread: u32,
    /// Stores of a transaction to each line.
    pub stores_per_line: u32,
    /// Stores outside of transactions, together.
    pub plain_stores: u32,
    /// Dirty versions of a line that caches hold at a time.
    pub versions_on_chip: usize,
    /// Hardware identifiers of transactions.
    pub tx_ids: u32,
    /// Entries of the eWPQ.
    pub ewpq_entries: usize,
    /// Entries of its extension area.
    pub extension_entries: usize,
    /// Entries of the log.
    pub log_entries: u32,
    /// Whether threads leave their cores and come back.
    pub context_switches: bool,
    /// Lives of the machine: all but the first begin with what recovery left.
    pub lives: u8,
}

/// A single mistake in the protocol, to see that the checker finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProtocolFault {
    /// The commit is acknowledged before TxLen is stored.
    AcknowledgedBeforeTxLen,
    /// TxStates are reset before TxLen is stored.
    StatesResetBeforeTxLen,
    /// A transaction stores before the TxLen that the last user of its identifier left is zero.
    StoreBeforeTxLenCleared,
    /// A transaction aborts though its TxLen is stored.
    AbortAfterTxLen,
    /// A tagged line that leaves the last level is written home.
    TaggedLineGoesHome,
    /// The entry of an open transaction migrates.
    OpenEntryMigrates,
    /// A tagged version takes the place of a pre-image that has not gone down.
    PreImageOverwritten,
    /// The first store of a transaction taints the newest committed version.
    CopyDownForgotten,
    /// A log entry is freed when its migration starts.
    EntryFreedBeforeHome,
    /// A newer version is written home before the migration of an older one has arrived.
    MigrationOvertaken,
    /// The eWPQ names a log entry before the line is in it.
    EntryBeforeLog,
    /// An entry that moves to the extension area is lost.
    SpillLosesEntry,
    /// The log wraps around to an entry that is in use.
    LogEntryReused,
    /// An identifier wraps around while entries of its last user are in the log.
    TxIdReusedEarly,
    /// Misses do not look into the log.
    LogNotSearched,
    /// A reload leaves the entry valid.
    ReloadKeepsEntry,
    /// An abort leaves the lines in the caches.
    AbortKeepsLines,
    /// An abort leaves the entries in the log.
    AbortKeepsEntries,
    /// A transaction gets a line that another open one has written.
    ConflictGranted,
    /// The crash flush writes newer versions before older ones.
    FlushNewestFirst,
    /// The crash flush leaves out the eWPQ.
    EwpqNotSaved,
    /// Recovery marks the zone as recovered before it is.
    RecoveredTooEarly,
    /// Recovery clears TxLens before all lines are home.
    TxLenClearedBeforeHome,
    /// Recovery clears the extension area before all lines are home.
    ExtensionClearedBeforeHome,
}

/// One step. Threads and lines are numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// tx_start takes an identifier (Listing 1).
    Begin(u8),
    /// Its TxLen is zero in persistent memory.
    TxLenCleared(u8),
    /// A transaction stores to a line (Listing 2, "write-allocate at L1").
    TaggedStore(u8, u8),
    /// A store outside of transactions.
    PlainStore(u8),
    /// tx_commit starts.
    CommitRequested(u8),
    /// TxLen is in persistent memory: the commit point.
    TxLenStored(u8),
    /// TxStates in caches and eWPQ are '0': others may see the lines.
    StatesReset(u8),
    /// tx_commit ends.
    Acknowledged(u8),
    /// A transaction aborts, in a conflict or for another reason: its lines in the caches are gone (Listing 1).
    Abort(u8, Cause),
    /// Its entries in the log are gone too, which ends it.
    Forgotten(u8),
    /// The oldest version of a line in the caches is replaced by the one above it.
    Overwrite(u8),
    /// The oldest version of a line leaves the caches for its home (Listing 2, "write victim to pmem").
    WriteHome(u8),
    /// The newest version of a line is written home and stays, clean.
    Clean(u8),
    /// A tagged line leaves the caches for the log: premature flush.
    PrematureFlush(u8),
    /// The second half of a premature flush, where a fault makes two steps of it.
    LogWritten(u8),
    /// The eWPQ entry of a line moves to the extension area.
    Spill(u8),
    /// A miss finds its line in the log (Listing 3). The second number is the thread that asks inside a transaction.
    Reload(u8, Option<u8>),
    /// A miss finds nothing in the log.
    Fetch(u8, Option<u8>),
    /// A core gets a line that is in the caches.
    Access(u8, Option<u8>),
    /// The migration of a committed entry starts: its data is read.
    MigrationStarted(u8),
    /// The data is home.
    MigrationWritten(u8),
    /// The controller knows, the entry is free.
    EntryFreed(u8),
    /// A thread leaves its core.
    Leave(u8),
    /// It comes back on any core.
    Come(u8),
}

/// The reason why a transaction aborts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Another requester asked for a line of an open transaction.
    Conflict,
    /// The program wanted it, or a structure is full.
    Other,
}

protocol! { HerculesProtocol, Hercules }
