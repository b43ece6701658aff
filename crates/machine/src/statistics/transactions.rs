//! Counters of transactions, of their aborts and of the replay of their logs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Numbers of transactions in the region of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TxStats {
    /// Transactions begun.
    pub begun: u64,
    /// Transactions committed and acknowledged.
    pub committed: u64,
    /// Transactions aborted.
    pub aborted: u64,
    /// Transactions of the program that committed as hardware transactions; null where the design has none.
    pub htm_committed: Option<u64>,
    /// Those that committed by software instead; null where the design has no hardware transactions.
    pub sgl_committed: Option<u64>,
    /// Attempts of hardware transactions that aborted, each counted once; null where the design has none.
    pub aborted_by: Option<AbortedBy>,
}

/// Numbers of hardware transactions in the region of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HtmStats {
    /// Transactions of the program that committed and had a hardware transaction commit inside.
    pub holding_commits: u64,
    /// Attempts aborted, by cause.
    pub aborted_by: AbortedBy,
}

/// Attempts of hardware transactions that aborted, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbortedBy {
    /// Another thread wanted a line.
    pub conflict: u64,
    /// A set of lines did not fit.
    pub capacity: u64,
    /// An instruction of the program.
    pub explicit: u64,
    /// Any cause, while others were nested in it.
    pub nested: u64,
    /// A system call, a fault, a breakpoint, a cache-block operation or an interrupt.
    pub trap: u64,
    /// Any other cause.
    pub other: u64,
}

/// Replay of redo logs in the region of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayStats {
    /// Logged transactions applied to the persistent heap.
    pub transactions: u64,
    /// The largest number of transactions that a pass over the logs found waiting and applied.
    pub lag_max: u64,
    /// Cycles that threads waited for room in their logs, added up.
    pub stall_cycles: u64,
    /// Number of times that pages of a shadow left the DRAM, several at once.
    pub page_outs: u64,
    /// Cycles that took, the replay of what they waited for included.
    pub page_out_cycles: u64,
}
