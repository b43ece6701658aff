//! Strict persistency (Pelley et al., section 4): the order in which stores become durable is the order in which they are visible.
//!
//! S1. A store is ordered before every later one in the visible order, of any thread. So the durable stores are a prefix of it.

use super::persists::PersistId;

/// The order of strict persistency.
#[derive(Clone, Debug, Default)]
pub(super) struct Strict {
    last: Option<PersistId>,
}

impl Strict {
    /// The stores directly before the store `id`.
    pub fn store(&mut self, id: PersistId) -> Vec<PersistId> {
        self.last.replace(id).into_iter().collect()
    }
}
