//! TxIDs: what a mode register holds, and how the next transaction register wraps around (section 4.2).
//!
//! Identifiers are short: 6 bits for 64 entries (section 4.4), of which 0 is the normal mode. One that an open transaction
//! uses, or that an entry carries, must not be in use again, or a commit would match entries of another transaction. The
//! next transaction register passes over those [D:tc-identifiers].

use super::State;
use durasim_design::Wait;
use durasim_types::{CoreId, Cycle};
use serde::{Deserialize, Serialize};

/// The mode register of a thread in a transaction. Outside of transactions it is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mode {
    /// The identifier of the transaction.
    pub id: u16,
    /// The core on which it began.
    pub home: CoreId,
    /// Whether another transaction of the core bore the identifier before.
    pub again: bool,
}

impl State {
    pub(super) fn is_assigned(&self, core: usize, id: u16) -> bool {
        self.modes.values().any(|mode| usize::from(mode.home.0) == core && mode.id == id)
    }

    /// What the next transaction register of a core gives to TX_BEGIN, and continues.
    pub(super) fn next_identifier(&mut self, core: usize) -> Option<Mode> {
        let largest = self.spec.largest_id();
        let after = |id: u16| if id == largest { 1 } else { id + 1 };
        let first = self.caches[core].next_id;
        let mut id = first;
        let mut again = self.caches[core].has_wrapped;
        while self.is_passed_over(core, id) {
            again |= id == largest;
            id = after(id);
            if id == first {
                return None;
            }
        }
        let cache = &mut self.caches[core];
        cache.has_wrapped = again || id == largest;
        cache.next_id = after(id);
        Some(Mode { id, home: CoreId(core as u16), again })
    }

    /// What has to happen until one of the identifiers of a core is free, if that is scheduled: the next step of an
    /// entry whose transaction has committed.
    pub(super) fn identifier_wait(&self, core: usize, now: Cycle) -> Option<Wait> {
        let mut committed = self.caches[core].occupied().filter(|e| e.id > 0 && !self.is_assigned(core, e.id));
        committed.find_map(|e| e.state.wait(now))
    }
}
