//! What checked accesses work on.

use serde::{Deserialize, Serialize};

/// What a store to persistent memory brings with it: the flavours of P-INSPECT's persistentWrite (section V-E).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StoreKind {
    /// Nothing.
    #[default]
    Plain,
    /// A clean of the line.
    Clean,
    /// A clean of the line, and a fence that waits for it.
    CleanAndFence,
}
