//! The architectural state of a hart, and how an instruction ends.

use crate::log_register::{LOG_REGISTERS, LogRegister};
use durasim_types::CheckRegisters;
use serde::{Deserialize, Serialize};

/// The registers of a hart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hart {
    /// Integer registers; `x[0]` is always 0.
    pub x: [u64; 32],
    /// Floating-point registers; a single-precision value is NaN-boxed.
    pub f: [u64; 32],
    /// Address of the instruction to execute.
    pub pc: u64,
    /// Floating-point control and status: `frm << 5 | fflags`.
    pub fcsr: u32,
    /// The log registers, once one has been loaded. They hold 0 before.
    pub log: Option<Box<[LogRegister; LOG_REGISTERS]>>,
    /// The check registers, once one has been written. They hold 0 before.
    pub checks: Option<Box<CheckRegisters>>,
}

/// The successor of an executed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction in memory, `pc + inst.len`.
    Next,
    /// To this address: a taken branch or a jump, or a checked access that leads into a handler, which may be in the
    /// middle of a block.
    Jump(u64),
    /// Into the execution environment with a system call; the pc still names the ECALL.
    Ecall,
    /// Into a debugger; the pc still names the EBREAK.
    Ebreak,
}
