//! The report of a program on its operations while it runs: which objects each one read or changed. The history oracle
//! judges recovered states against this and knows nothing else of the machine.

use crate::TxId;
use serde::{Deserialize, Serialize};

/// A step of the history. Threads are those of the guest: an operation may begin on one core and end on another.
///
/// Begins, ends and reports come in the program order of their thread. The end of a transaction comes when the machine
/// performs it: where commit instructions retire early, the thread may be far ahead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HistoryStep {
    /// An operation of a thread begins.
    OperationBegins {
        /// The thread.
        thread: u32,
        /// The number that the program gave it.
        number: u64,
    },
    /// The operation of a thread ends.
    OperationEnds {
        /// The thread.
        thread: u32,
    },
    /// A thread begins a transaction: an attempt at what it is about to do, as it may abort.
    TransactionBegins {
        /// The thread.
        thread: u32,
        /// The transaction.
        tx: TxId,
    },
    /// The open transaction of a thread read or changed this object; old and new version follow.
    Object {
        /// The thread.
        thread: u32,
        /// The object.
        object: u64,
    },
    /// The version of the object that the transaction found; 0: it was not there.
    Old {
        /// The thread.
        thread: u32,
        /// The version.
        version: u64,
    },
    /// The version of the object that the transaction left, which is the old one if it only read.
    New {
        /// The thread.
        thread: u32,
        /// The version.
        version: u64,
    },
    /// A crash may show the transaction from here on: a commit in software follows, or a store that takes effect by itself. It
    /// may still report.
    MayCommit(TxId),
    /// The commit of a transaction started. It reports nothing after this.
    Committing(TxId),
    /// A transaction is acknowledged.
    Acknowledged(TxId),
    /// A transaction aborted.
    Aborted(TxId),
    /// An epoch ends: what was acknowledged since the last end belongs to it. Designs that promise durability by epochs.
    EpochEnds,
    /// A thread has printed the end of a line on its standard output.
    LinePrinted {
        /// The thread.
        thread: u32,
    },
}

/// A moment that divides what a program does into operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Boundary {
    /// The operation with this number of the program begins.
    Begins(u64),
    /// It ends.
    Ends(u64),
    /// The program has printed as many times as this.
    Printed(u64),
}

/// The moments that divide what a program does into operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BoundaryKind {
    /// The markers of operations.
    Markers,
    /// The lines that it prints.
    Lines,
}

/// A keeper of the history of a run. All calls come in the order of the run's events.
pub trait History: Send {
    /// A step after the persist event with the number `after` and before the next one.
    fn note(&mut self, after: u64, step: HistoryStep);
}
