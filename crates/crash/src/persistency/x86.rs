//! Px86 (Raad et al. 2020), with a fence that waits for cleans (Khyzha and Lahav): caches write lines back at any time and in any
//! order.
//!
//! X1. A store is ordered before all later stores to its line, of any thread.
//! X2. Stores to different lines are not ordered: only what is durable for certain is known to come first. `cbo.clean` is `clwb`,
//!     `cbo.flush` is `clflushopt`, a fence with W in its predecessor set is `sfence` (M4).
//! X3. In `x86-clflush`, `cbo.flush` is `clflush`: the earlier stores to its line are durable for certain when it is performed,
//!     before any later store of its core is visible.
//! X4. A store after a hint of Zihintntl is non-temporal. X1 does not order two non-temporal stores to different words, if no other
//!     store to the line is between them.

use super::persists::{PersistId, StoredWord};
use durasim_types::{LineAddr, PhysAddr};
use std::collections::BTreeMap;

/// The order of Px86.
#[derive(Clone, Debug, Default)]
pub(super) struct X86 {
    lines: BTreeMap<LineAddr, OfLine>,
}

/// The last stores to a line.
#[derive(Clone, Debug, Default)]
struct OfLine {
    /// The last one that was not non-temporal.
    ordinary: Option<PersistId>,
    /// The last non-temporal one to each word since then.
    non_temporal: BTreeMap<PhysAddr, PersistId>,
}

impl X86 {
    /// The stores directly before the store `id`.
    pub fn store(&mut self, id: PersistId, stored: &StoredWord, is_non_temporal: bool) -> Vec<PersistId> {
        let line = self.lines.entry(stored.word.line()).or_default();
        if is_non_temporal {
            return line.non_temporal.insert(stored.word, id).into_iter().chain(line.ordinary).collect();
        }
        let non_temporal = std::mem::take(&mut line.non_temporal).into_values();
        non_temporal.chain(line.ordinary.replace(id)).collect()
    }
}
