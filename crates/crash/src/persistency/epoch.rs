//! Epoch persistency (Pelley et al., section 5.2): fences divide the stores of a thread into epochs.
//!
//! E1. A fence with W in its predecessor set ends the epoch of its thread.
//! E2. A store is ordered before all stores of later epochs of its thread.
//! E3. A store is ordered before all later stores to its word, of any thread.
//! E4. The order is transitive, and orders nothing else: within an epoch words become durable in any order, those of one line too.

use super::persists::{PersistId, Persists};
use durasim_types::PhysAddr;
use std::collections::BTreeMap;

/// The order of epoch persistency.
#[derive(Clone, Debug, Default)]
pub(super) struct Epoch {
    /// The last store to each word.
    words: BTreeMap<PhysAddr, PersistId>,
    threads: BTreeMap<u32, OfThread>,
}

/// The epochs of a thread.
#[derive(Clone, Debug, Default)]
struct OfThread {
    /// Stands for all stores of its earlier epochs.
    barrier: Option<PersistId>,
    /// The stores of its current epoch.
    stores: Vec<PersistId>,
}

impl Epoch {
    /// The stores and the barrier directly before the store `id` of a thread to a word.
    pub fn store(&mut self, id: PersistId, thread: u32, word: PhysAddr) -> Vec<PersistId> {
        let of_thread = self.threads.entry(thread).or_default();
        of_thread.stores.push(id);
        self.words.insert(word, id).into_iter().chain(of_thread.barrier).collect()
    }

    /// A thread has made a fence.
    pub fn fence(&mut self, thread: u32, persists: &mut Persists) {
        let of_thread = self.threads.entry(thread).or_default();
        if of_thread.stores.is_empty() {
            return;
        }
        let before = of_thread.stores.drain(..).chain(of_thread.barrier).collect();
        of_thread.barrier = Some(persists.barrier(before));
    }
}
