//! Errors: each is one sentence for the user and one exit code.

use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;

/// The exit codes of the command line, the same for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Done, all well.
    Done = 0,
    /// A negative verdict: violations, a failed claim, a guest that exited with a code other than 0.
    Negative = 1,
    /// Usage or configuration.
    Usage = 2,
    /// The guest did something it may not: unknown instruction or system call, wild access.
    GuestFault = 3,
    /// The host's files: full disk, unwritable folder.
    HostIo = 4,
}

/// A configuration that is refused before cycle 0.
#[derive(Clone, Debug, PartialEq, Eq, ThisError, Serialize, Deserialize)]
#[error("{field}: {problem}")]
pub struct ConfigError {
    /// The path of the field, as `--set` takes it, or the option or file.
    pub field: String,
    /// The problem, and what is allowed.
    pub problem: String,
}

impl ConfigError {
    /// A refusal of `field` because of `problem`.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        ConfigError { field: field.into(), problem: problem.into() }
    }
}

/// A guest program that had to be stopped.
#[derive(Clone, Debug, PartialEq, Eq, ThisError, Serialize, Deserialize)]
#[error("guest fault at pc {pc:#x}: {what}{}", last_syscall.as_ref().map(|s| format!(" (last system call: {s})")).unwrap_or_default())]
pub struct GuestFault {
    /// Program counter of the offending instruction.
    pub pc: u64,
    /// The action of the guest, with encoding and name where it has them.
    pub what: String,
    /// The last system call before the fault, by name.
    pub last_syscall: Option<String>,
}

/// Every way in which a run can end without a result.
#[derive(Clone, Debug, PartialEq, Eq, ThisError, Serialize, Deserialize)]
pub enum Error {
    /// Refused before cycle 0.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The guest was stopped.
    #[error(transparent)]
    Guest(#[from] GuestFault),
    /// The guest ended by itself where it had to succeed.
    #[error("{0}")]
    Failed(String),
    /// A host file could not be read or written.
    #[error("{path}: {problem}")]
    HostIo {
        /// The file.
        path: String,
        /// The host's complaint.
        problem: String,
    },
    /// The modelled machine cannot continue: a design waits for something that nothing will deliver.
    #[error("the machine is stuck at cycle {cycle}: {what}")]
    Stuck {
        /// The cycle.
        cycle: u64,
        /// The waiting parts, and what each of them waits for.
        what: String,
    },
}

impl Error {
    /// The exit code that belongs to this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Error::Config(_) => ExitCode::Usage,
            Error::Guest(_) | Error::Failed(_) | Error::Stuck { .. } => ExitCode::GuestFault,
            Error::HostIo { .. } => ExitCode::HostIo,
        }
    }
}
