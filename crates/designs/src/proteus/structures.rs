//! The structures that hold log entries in flight: the LogQ of each core, the log pending queue of each controller, the
//! pointers of the logs, and the state of each open transaction.

use super::entry::LogEntry;
use super::lookup_table::LookupTable;
use super::spec::ProteusSpec;
use durasim_contract::Token;
use durasim_types::{CoreId, LineAddr, PhysAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// An entry of the LogQ: a flush that its controller has not acknowledged (section 4: log-from and log-to).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FlushInFlight {
    /// Names it in messages.
    pub id: u64,
    pub entry: LogEntry,
    /// Its slot in the log.
    pub slot: PhysAddr,
}

/// The structures of a core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CoreUnit {
    pub logq: Vec<FlushInFlight>,
    pub table: LookupTable,
    /// A request of the core waits for the LogQ.
    pub waits: bool,
}

impl CoreUnit {
    pub fn new(spec: &ProteusSpec) -> Self {
        CoreUnit { logq: Vec::new(), table: LookupTable::new(spec), waits: false }
    }

    /// Whether a flush of one of the blocks is in flight.
    pub fn logs(&self, first: PhysAddr, last: PhysAddr) -> bool {
        self.logq.iter().any(|flight| flight.entry.block == first || flight.entry.block == last)
    }
}

/// An entry of a log pending queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    pub entry: LogEntry,
    pub slot: PhysAddr,
    /// Its write to the log is in flight. In a write pending queue the entry is that write, which its token names.
    pub spill: Option<Token>,
}

/// The log pending queue of a controller, oldest entry first, and the flushes that wait for room in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingQueue {
    pub entries: Vec<Pending>,
    pub waiting: VecDeque<(CoreId, u64)>,
}

/// The pointer of a log (section 4: the log-to address register), and the transaction that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogPointer {
    /// The slot of the next entry.
    pub next: u32,
    pub tx: Option<TxId>,
}

/// The progress of the end of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Its end has not begun, or waits for the LogQ.
    #[default]
    Open,
    /// The cleans of its lines leave the core.
    Leaving,
    /// They are in flight to the queues of the controllers.
    Cleaning,
    /// Its changes have been undone at their home addresses.
    Undoing,
    /// Its tx-end record is to be written.
    Ready,
    /// The record is in flight.
    Ending,
}

/// An open transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenTx {
    /// The core on which it began, which sends its cleans.
    pub core: CoreId,
    pub log: u32,
    /// Slot of its first entry.
    pub first: u32,
    /// Entries so far.
    pub entries: u32,
    /// Lines that it has changed; true: a version has left the caches, and its write may not have been accepted.
    pub lines: BTreeMap<LineAddr, bool>,
    /// Entries that are in the log only: number and block.
    pub spilled: Vec<(u32, PhysAddr)>,
    pub phase: Phase,
    /// The token of its writes.
    pub token: Token,
}
