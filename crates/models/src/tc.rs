//! The protocol of the transaction cache (Lai, Zhao and Yang, DAC 2017, sections 3 and 4), with what its design here
//! assumes where the paper is silent: overflow, aborts and several cores.
//!
//! Each core has a FIFO of entries between tail and head. A commit turns those of its transaction from active to
//! committed in one step; committed ones are issued in order, and the acknowledgement of the NVRAM makes them available.
//! The caches drop what they evict. [`Machine`] is the state while the machine runs, [`Recovery`] the state from a power
//! failure until recovery ended, [`Action`] a step. Which line leaves the caches when, when writes arrive and which entry
//! the fall-back path writes home is left to chance.
//!
//! `state.rs` has the states, `step.rs` the steps of a running machine, `recovery.rs` those from a power failure on,
//! `properties.rs` what must hold and what must happen.

pub mod properties;
mod recovery;
mod state;
mod step;

pub use crate::protocol::Tx;
pub use recovery::{Durable, Judge, RecoveryWrite, Saved};
pub use state::{Entry, EntryState, Flight, Machine, Overflow, Phase, Shadow, Thread, Version};

use crate::protocol::{Recovery, protocol};

/// The size of the model. The checker needs small numbers; a run of the simulator is replayed with those of its
/// machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Threads, each with at most one open transaction.
    pub threads: u8,
    /// Cores, each with a transaction cache. In the checker, threads are dealt out among them and stay.
    pub cores: u8,
    /// Lines of persistent memory.
    pub lines: u8,
    /// Transactions that each thread begins.
    pub transactions_per_thread: u32,
    /// Stores of a transaction to each line.
    pub stores_per_line: u32,
    /// The largest identifier of a transaction; the smallest is 1.
    pub largest_id: u16,
    /// Entries of a transaction cache.
    pub entries: usize,
    /// Entries that the fall-back path copies at a time; 0: there is none.
    pub copies_in_flight: usize,
    /// Lives of the machine: all but the first begin with what recovery left.
    pub lives: u8,
}

/// A single mistake in the protocol, to see that the checker finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProtocolFault {
    /// A commit leaves out entries whose old line is in flight to the shadow area.
    CommitMissesCopying,
    /// A commit leaves its entries active.
    CommitForgotten,
    /// A transaction takes the next identifier though another one uses it.
    IdentifierReused,
    /// The youngest committed entry is issued first.
    IssuedNewestFirst,
    /// Active entries are issued.
    ActiveEntryIssued,
    /// An entry is available when it is issued.
    FreedAtIssue,
    /// An acknowledgement frees the youngest entry of its line.
    AckFreesYoungest,
    /// The fall-back path takes entries home without a copy of the old line.
    CopySkipped,
    /// The fall-back path takes entries home before the copy has arrived.
    CopyNotAwaited,
    /// The fall-back path copies a line before an older committed entry of it is issued.
    CopyOvertakesCommit,
    /// A commit does not clear the overflow register.
    RegisterKept,
    /// Misses do not ask the transaction caches.
    MissIgnoresEntries,
    /// A miss gets the entry nearest the tail.
    MissTakesOldest,
    /// Persistent lines that leave the caches are written home.
    EvictsHome,
    /// An abort leaves its lines in the caches.
    AbortKeepsLines,
    /// An abort leaves its entries active.
    AbortKeepsEntries,
    /// An abort does not bring old lines back.
    AbortNotUndone,
    /// A store does not wait for committed entries of its line in other transaction caches.
    OrderIgnored,
    /// Recovery writes the entries of a core newest first.
    RecoveryNewestFirst,
    /// Recovery does not undo what the fall-back path took home.
    RecoveryForgetsShadows,
    /// Recovery writes active entries home.
    RecoveryReplaysActive,
    /// Recovery clears the transaction caches before their entries are home.
    RecoveryClearsFirst,
}

/// One step. Threads, cores and lines are numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// TX_BEGIN of a thread on a core: the mode register takes the next identifier.
    Begin(u8, u8),
    /// A store of a transaction: to the caches, and to the transaction cache.
    Store(u8, u8),
    /// TX_END: active entries become committed.
    Commit(u8),
    /// A transaction aborts; its active entries are available.
    Abort(u8),
    /// Its abort has brought back an old line.
    Restored(u8, u8),
    /// Its abort has ended: its lines have left the caches.
    Forgotten(u8),
    /// An entry of a core's FIFO, counted from the tail, is issued to the NVRAM.
    Issue(u8, u8),
    /// The NVRAM has the oldest write to a line that is in flight.
    Written(u8),
    /// The oldest write to a line is acknowledged: its entry is available.
    Acknowledged(u8),
    /// The fall-back path copies the old line of a core's oldest active entry.
    CopyStarted(u8),
    /// The copy of a line for a core's entry is in the shadow area.
    Copied(u8, u8),
    /// A line leaves the caches.
    Evict(u8),
    /// A miss fetches a line.
    Fetch(u8),
}

protocol! { TcProtocol, TransactionCaches }
