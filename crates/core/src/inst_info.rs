//! Properties of an instruction that the window needs.

use durasim_isa::Class;

/// Sentinel: no destination register.
pub(crate) const NO_REGISTER: u8 = 64;
/// The first of the log registers, after all others.
pub(crate) const LOG_REGISTER_FIRST: u8 = 65;

/// Path of an instruction through the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It computes and does nothing else: no memory, no control transfer, nothing at its commit.
    Plain,
    /// A plain instruction that is, as a whole, in the line in which the instruction before it in the block ends.
    PlainBehind,
    Load,
    Store,
    /// It transfers control and does nothing else.
    Branch,
    Other,
}

/// The class of an instruction, its registers and where it is executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstInfo {
    pub class: Class,
    pub kind: Kind,
    /// Pool of functional units.
    pub pool: u8,
    pub pipelined: bool,
    /// Registers read, as unified ids.
    pub sources: [u8; 3],
    /// The register written, or the number of none.
    pub dest: u8,
    /// Bytes that a load or store moves.
    pub bytes: u8,
    /// One in each counter that the issue of the instruction raises.
    pub units: u32,
    /// Cycles from issue to result, without memory.
    pub latency_cycles: u32,
}
