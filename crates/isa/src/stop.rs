//! Reasons to refuse an access or an instruction.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The deepest nesting of hardware transactions: the MAX_RTM_NEST_COUNT of Intel's processors.
pub const HTM_DEPTH_MAX: u32 = 7;

/// The access that the guest tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// A load or a load-reserved.
    Read,
    /// A store, a store-conditional or an atomic memory operation.
    Write,
    /// An instruction fetch.
    Execute,
}

/// The reason to refuse an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AccessFaultKind {
    /// Nothing is mapped at the address.
    Unmapped,
    /// The mapping does not permit the access.
    Protected,
    /// A load-reserved, store-conditional or atomic memory operation on an address that is not a multiple of its size.
    Misaligned,
    /// The page is shared until it is written: the owner of the mapping makes the copy, and the instruction is
    /// repeated.
    CopyOnWrite,
}

/// A refused access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error, Serialize, Deserialize)]
#[error("{} of {} address {addr:#x}", match .access { Access::Read => "read", Access::Write => "write", Access::Execute => "execution" }, match .why { AccessFaultKind::Unmapped => "unmapped", AccessFaultKind::Protected => "protected", AccessFaultKind::Misaligned => "misaligned", AccessFaultKind::CopyOnWrite => "not yet copied" })]
pub struct AccessFault {
    /// The first guest virtual address that is at fault.
    pub addr: u64,
    /// The access.
    pub access: Access,
    /// The reason.
    pub why: AccessFaultKind,
}

/// The reason why an instruction could not be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum Stop {
    /// An access was refused.
    #[error(transparent)]
    AccessFault(#[from] AccessFault),
    /// The encoding is not an instruction of this machine, or is reserved in the present state.
    #[error("illegal instruction")]
    Illegal,
    /// A log operation on a machine whose design has none.
    #[error(
        "log.load and log.flush are instructions of designs that log by instructions; the design of this machine does not"
    )]
    NoLogOperations,
    /// A checked access or an operation on its filters on a machine whose design has none.
    #[error(
        "checked accesses are instructions of designs that check accesses in hardware; the design of this machine does not"
    )]
    NoCheckedAccesses,
    /// An operation of hardware transactions on a machine whose design has none.
    #[error(
        "htm.begin, htm.end, htm.abort and htm.test are instructions of designs with hardware transactions; the design of this machine has none"
    )]
    NoHardwareTransactions,
    /// A hardware transaction ends although none is open.
    #[error("htm.end outside of a hardware transaction")]
    NoOpenTransaction,
    /// Hardware transactions are nested deeper than the hardware counts.
    #[error("hardware transactions can be nested {HTM_DEPTH_MAX} deep, and htm.begin begins one more")]
    NestedTooDeep,
    /// A checked access or an operation on filters by a hart whose filter address is not one.
    #[error(
        "the check register of the filters does not hold the address of nine lines in one page, aligned to a line, which checked accesses need"
    )]
    NoFilters,
    /// A checked access that needs a handler, by a hart that has none.
    #[error("a checked access needs a handler, but the check register of the handlers is not set")]
    NoHandlers,
}

/// The refusal of an encoding by [`crate::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("illegal instruction")]
pub struct Illegal;

impl From<Illegal> for Stop {
    fn from(_: Illegal) -> Stop {
        Stop::Illegal
    }
}
