//! The hardware log registers of a core (Proteus, section 4.2; DEVIATIONS.md, proteus-instructions). Like other registers
//! they are renamed: one is in use from the dispatch of a log-load until the flush of its block has left the store buffer.

use durasim_types::Cycle;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A limited number of log registers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LogRegisters {
    number: usize,
    /// Those that log-loads have taken, in program order: the cycle in which the flush has left, once it has.
    taken: VecDeque<Option<Cycle>>,
}

impl LogRegisters {
    pub fn new(number: u32) -> Self {
        LogRegisters { number: number as usize, taken: VecDeque::new() }
    }

    /// Whether a log-load finds a register, now or in a cycle that is known. `flush_waits`: a flush is in the store buffer.
    pub fn has_free(&self, flush_waits: bool) -> bool {
        // Without flushes in flight the oldest one was loaded again before a flush.
        self.taken.len() < self.number || !flush_waits || self.taken[0].is_some()
    }

    /// A log-load takes a register; the cycle from which that is free.
    pub fn take(&mut self) -> Cycle {
        let oldest = if self.taken.len() < self.number { None } else { self.taken.pop_front().flatten() };
        self.taken.push_back(None);
        oldest.unwrap_or(0)
    }

    /// The oldest flush has left the store buffer.
    pub fn flush_left(&mut self, at: Cycle) {
        if let Some(oldest) = self.taken.iter_mut().find(|left| left.is_none()) {
            *oldest = Some(at);
        }
    }

    /// All instructions in flight are discarded.
    pub fn discard(&mut self) {
        self.taken.clear();
    }

    /// The cycles from which registers are free, 0 for those that are in use.
    pub fn digested(&self) -> impl Iterator<Item = Cycle> {
        self.taken.iter().map(|left| left.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_free_when_the_flush_of_its_block_has_left() {
        let mut two = LogRegisters::new(2);
        assert_eq!([two.take(), two.take()], [0, 0]);
        assert!(!two.has_free(true));
        two.flush_left(30);
        assert!(two.has_free(true));
        assert_eq!(two.take(), 30);
        assert!(!two.has_free(true), "the second one is in use, and so is the first one again");
        two.flush_left(31);
        two.flush_left(50);
        assert_eq!([two.take(), two.take()], [31, 50]);
        two.discard();
        assert_eq!(two.take(), 0);
    }

    #[test]
    fn a_register_that_is_loaded_twice_before_a_flush_is_free_again() {
        let mut one = LogRegisters::new(1);
        one.take();
        assert!(one.has_free(false));
        assert_eq!(one.take(), 0);
    }
}
