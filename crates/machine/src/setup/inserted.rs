//! Operations that the machine adds to a program, to find out whether it lacks them.

use std::collections::BTreeMap;

/// An operation that follows an instruction as if the program had it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Insertion {
    /// A store is followed by a clean of its line.
    Clean,
    /// A store is followed by a clean of its line and a fence that waits for it.
    CleanAndFence,
    /// A cache-block operation is followed by a fence that waits for it.
    Fence,
}

/// The operations that are added, each after every execution of the instruction at an address. Operations that concern memory
/// other than persistent memory get none, nor do those of a hardware transaction, which a cache-block operation would abort.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inserted(BTreeMap<u64, Insertion>);

impl Inserted {
    /// These operations, by the address of the instruction before them.
    pub fn new(operations: BTreeMap<u64, Insertion>) -> Self {
        Inserted(operations)
    }

    /// The operation after the instruction at `pc`.
    #[inline]
    pub(crate) fn after(&self, pc: u64) -> Option<Insertion> {
        if self.0.is_empty() { None } else { self.0.get(&pc).copied() }
    }
}
