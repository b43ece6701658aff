//! Checks of accesses in hardware: what a design with checked accesses decides about them.

use crate::SpecError;
use durasim_types::{CheckRegisters, CheckVerdict, CheckedAccess, Cycle, FILTER_LINES, FilterOperation, Line};

/// The checks of a design. They have no state: their inputs are the check registers of a hart and the filter lines of its
/// process. So the detailed machine, the functional machine and recovery programs share them.
pub trait Checks: Send + Sync {
    /// The decision for an access; `may_forward` and `may_be_queued` give the answers of the filters for objects. Any
    /// registers have an answer.
    fn decide(
        &self,
        registers: &CheckRegisters,
        access: &CheckedAccess,
        may_forward: &mut dyn FnMut(u64) -> bool,
        may_be_queued: &mut dyn FnMut(u64) -> bool,
    ) -> CheckVerdict;

    /// Whether an object is in a forwarding filter, or seems to be. Any content of the lines has an answer.
    fn may_forward(&self, lines: &[&Line; FILTER_LINES], object: u64) -> bool;

    /// Whether an object is in the TRANS filter, or seems to be.
    fn may_be_queued(&self, lines: &[&Line; FILTER_LINES], object: u64) -> bool;

    /// The bits of an object in a forwarding filter of this size, which need not be that of the design: for counters.
    fn bits_of(&self, object: u64, filter_bits: u32) -> [u32; 2];

    /// Bits set in the active forwarding filter, if it had this size, from which on the pointer update thread has to work.
    fn wake_bits(&self, filter_bits: u32) -> u32;

    /// The number of bits of the active forwarding filter that are set, and the number of its bits.
    fn occupancy(&self, lines: &[&Line; FILTER_LINES]) -> (u32, u32);

    /// The decision for an access with these filters.
    fn verdict(
        &self,
        registers: &CheckRegisters,
        access: &CheckedAccess,
        lines: &[&Line; FILTER_LINES],
    ) -> CheckVerdict {
        let mut may_forward = |object| self.may_forward(lines, object);
        let mut may_be_queued = |object| self.may_be_queued(lines, object);
        self.decide(registers, access, &mut may_forward, &mut may_be_queued)
    }

    /// Changes the lines. `object` is that of an insert. The answer is for the destination register of the instruction, if
    /// it has one.
    fn update(&self, operation: FilterOperation, object: u64, lines: &mut [Line; FILTER_LINES]) -> u64;

    /// Whether a store to persistent memory that is not [`durasim_types::StoreKind::Plain`] is one operation of the memory system. If not, it
    /// is a store, a clean and a fence, one after the other.
    fn combines_persistent_writes(&self) -> bool;

    /// Whether a store that is [`durasim_types::StoreKind::CleanAndFence`] commits when it is durable. If not, it only holds later stores.
    fn fence_holds_commit(&self) -> bool;

    /// Cycles from a check that asks for a handler to its first instruction, beyond those of a misprediction.
    fn handler_entry_cycles(&self) -> Cycle;

    /// Cycles that a look into the filters takes once their lines are there, beside the access itself.
    fn look_up_cycles(&self) -> Cycle;
}

impl std::fmt::Debug for dyn Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Checks")
    }
}

/// The checks of a design, `None` if it has none, or the parameter that they cannot be built with.
pub type ChecksResult = Result<Option<Box<dyn Checks>>, SpecError>;
