//! Requests for lines whose entry in the directory a persistent write has locked.

use crate::parts::work_list::Condition;
use crate::system::System;
use durasim_types::{Cycle, LineAddr};

impl System {
    /// Waits until no persistent write has the entry of a line locked; the cycle in which a request that is at the directory
    /// at `at` continues.
    #[inline]
    pub(super) fn await_unlocked(&mut self, line: LineAddr, at: Cycle) -> Cycle {
        if self.line_locks.is_empty() { at } else { self.await_lock(line, at) }
    }

    #[inline(never)]
    fn await_lock(&mut self, line: LineAddr, at: Cycle) -> Cycle {
        if self.line_locks.is_locked(line) {
            self.wait_until(Condition::Unlocked(line), at);
        }
        let free = self.line_locks.unlocked_at(line).map_or(at, |unlocked| unlocked.max(at));
        if free > at {
            self.line_locks.count_wait(free - at);
        }
        free
    }
}
