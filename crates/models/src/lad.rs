//! The protocol of LAD (Gupta, Daglis and Falsafi, MICRO 2019, sections 3 and 4), with what its design here assumes where
//! the paper is silent: identifiers that wrap around, aborts, and stores outside of transactions.
//!
//! A durable transaction (DTX) flushes the lines that it has stored to. The queue of a memory controller holds them as
//! speculative entries. When all flushes are acknowledged every controller is notified that the DTX commits, and the
//! first acknowledgement completes it. A controller may write a speculative entry in place after an undo entry.
//! Recovery commits everywhere what any controller has committed. [`Machine`] is the state while the machine runs,
//! [`Recovery`] the state from a power failure until recovery ended, [`Action`] a step. Which line leaves the caches,
//! which message arrives and which entry is logged or written at what time is left to chance.
//!
//! `state.rs` has the states, `step.rs` the steps of a running machine, `controller.rs` those of a memory controller,
//! `recovery.rs` those from a power failure on, `properties.rs` what must hold and what must happen.

mod controller;
pub mod properties;
mod recovery;
mod state;
mod step;

pub use crate::protocol::Tx;
pub use recovery::{Doubt, Durable, Judge, Kept, RecoveryWrite, Saved};
pub use state::{
    Controller, Dtx, Entry, Flight, Ids, Logging, Machine, Pending, Phase, Record, Stage, Thread, Version,
};

use crate::protocol::{Recovery, protocol};

/// The size of the model. The checker needs small numbers; a run of the simulator is replayed with those of its
/// machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Threads, each with at most one open transaction.
    pub threads: u8,
    /// Memory controllers; lines are dealt out among them.
    pub controllers: u8,
    /// Lines of persistent memory.
    pub lines: u8,
    /// Transactions that each thread begins.
    pub transactions_per_thread: u32,
    /// Stores of a transaction to each line.
    pub stores_per_line: u32,
    /// Bits of a DTX_ID.
    pub id_bits: u32,
    /// The DTX_ID that each thread has committed before the first step.
    pub last_id: u8,
    /// Entries of the queue of a controller.
    pub queue_entries: usize,
    /// Entries of the undo log of a controller; 0: there is none.
    pub log_entries: usize,
    /// Whether a transaction is complete at the first acknowledgement of its commit (LAD) or at the last (LAD-Base).
    pub first_ack: bool,
    /// Stores outside of transactions.
    pub plain_stores: u32,
    /// Whether programs abort.
    pub aborts: bool,
    /// Lives of the machine: all but the first begin with what recovery left.
    pub lives: u8,
}

impl Bounds {
    /// The controller of a line.
    pub fn controller_of(&self, line: u8) -> usize {
        usize::from(line % self.controllers)
    }

    /// DTX_IDs of this model.
    pub fn ids(&self) -> Ids {
        Ids::new(self.id_bits)
    }
}

/// A single mistake in the protocol, to see that the checker finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProtocolFault {
    /// A marked line that leaves the L1D, or that another core asks for, loses its mark and is not flushed.
    MarkLost,
    /// A line that was flushed and is stored to again is not marked again.
    FlushedLineNotMarked,
    /// DTX_Commit is sent while flushes are not acknowledged.
    FlushesNotAwaited,
    /// A transaction is complete when DTX_Commit is sent.
    CommitNotAwaited,
    /// A flush enters the queue as an ordinary write.
    SpeculativeBitNotSet,
    /// A commit clears the speculative bits of all entries of its controller.
    CommitClearsAll,
    /// A commit leaves DTX_CID as it was.
    CidNotUpdated,
    /// A commit that comes late sets DTX_CID back.
    CidGoesBack,
    /// DTX_IDs are used again while undo entries, queue entries and commits of old ones are left.
    IdsReused,
    /// A begin counts identifiers from the oldest commit that is not acknowledged everywhere, and not from the DTX_CID that a
    /// controller has before it.
    OldestCidForgotten,
    /// A line written outside of transactions waits for the transaction that stores there next.
    PlainBytesNotHome,
    /// An ordinary entry passes a speculative one of its line.
    DrainPassesHeld,
    /// A speculative entry is written in place before its undo entry is durable.
    UndoNotAwaited,
    /// An undo entry has the value of the speculative entry.
    UndoHasNewValue,
    /// An undo entry names the transaction before its own.
    UndoOfAnotherDtx,
    /// A line that a transaction flushes twice is logged twice.
    SecondVersionLogged,
    /// The undo entry of a line releases its oldest version alone.
    YoungerVersionStaysHeld,
    /// The youngest speculative entry is logged first.
    LoggedNewestFirst,
    /// A full undo log continues in the places of its oldest entries.
    LogOverrun,
    /// Undo entries of open transactions are reclaimed.
    ReclaimedWhileOpen,
    /// Lines that an abort restores are not marked.
    RestoredNotMarked,
    /// At a power failure ordinary entries are written home, also those after a speculative one of their line.
    WriteBehindHeldGoesHome,
    /// The queues drain into the purgatory newest entry first.
    PurgatoryNewestFirst,
    /// Each controller goes by its own DTX_CID.
    RecoveryWithoutConsensus,
    /// V_commit has the largest numbers, as if they did not wrap around.
    RecoveryTakesNumericMax,
    /// Recovery does not read the undo logs.
    RecoveryUndoesNothing,
    /// Recovery undoes entries of committed transactions.
    RecoveryUndoesCommitted,
    /// Recovery does not read the purgatory.
    RecoveryDropsPurgatory,
    /// Recovery writes entries of uncommitted transactions home.
    RecoveryWritesUncommitted,
    /// Recovery overlooks the last entry of the purgatory.
    RecoveryOverlooksLast,
    /// Recovery clears the purgatory before its entries are home.
    RecoveryClearsFirst,
    /// Recovery clears DTX_CID before it clears the purgatory.
    RecoveryForgetsIdsFirst,
}

/// One step. Threads, lines and controllers are numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// DTX_Start of a thread: the next DTX_ID.
    Begin(u8),
    /// A store of a transaction: its line is marked.
    Store(u8, u8),
    /// A store outside of transactions.
    PlainStore(u8),
    /// The program cleans a line.
    Clean(u8),
    /// A marked line leaves the L1D, is wanted by another core, or loses its thread: DTX_Flush.
    Flush(u8),
    /// A line that is dirty and not marked leaves the caches.
    Evict(u8),
    /// DTX_End: all that is marked is flushed.
    End(u8),
    /// DTX_Commit is sent to every controller.
    Commit(u8),
    /// A transaction aborts: its stores are undone in the caches.
    Abort(u8),
    /// The oldest write to a line that is in flight enters the queue of its controller.
    Accept(u8),
    /// The acknowledgement of a flush arrives at its thread.
    FlushAck(u8),
    /// DTX_Commit of a thread's DTX_ID arrives at a controller.
    CommitArrives(u8, u8, u8),
    /// The acknowledgement of a controller for a thread's DTX_ID arrives.
    AckArrives(u8, u8, u8),
    /// The oldest entry of a line leaves its queue for the media.
    Drain(u8),
    /// The controller of a line begins an undo entry for it.
    Log(u8),
    /// The old value is in the undo log of a controller.
    OldValueWritten(u8),
    /// The undo entry of a controller is complete: the line goes in place.
    Recorded(u8),
    /// The oldest undo entry of a controller is reclaimed.
    Reclaim(u8),
    /// An undo entry of a controller, counted from the oldest, is voided.
    Void(u8, u8),
}

protocol! { LadProtocol, Lad }
