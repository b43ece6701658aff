//! Log registers: the operands of the log operations of custom-1.

use serde::{Deserialize, Serialize};

/// Log registers of a hart.
pub const LOG_REGISTERS: usize = 8;
/// Bytes that a log register holds: an aligned block of memory.
pub const LOG_BLOCK_BYTES: u64 = 32;

/// The contents of a log register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRegister {
    /// The guest's address of the block.
    pub addr: u64,
    /// Its content when it was loaded.
    pub old: [u64; LOG_BLOCK_BYTES as usize / 8],
}
