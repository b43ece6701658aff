//! Writes and the entries of a write pending queue.

use durasim_contract::Origin;
use durasim_types::{Cause, Cycle, Line, LineAddr, Picos};
use serde::{Deserialize, Serialize};

/// Names the party that wants to know when a write is done, and where it sits; chosen by the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WriteToken {
    /// The number.
    pub number: u64,
    /// The receiver of the acknowledgement.
    pub to: Origin,
    /// The time at which its write arrived at the controller; 0 before.
    pub arrived: Cycle,
}

impl WriteToken {
    /// The token of a write that has not been sent.
    pub const fn new(number: u64, to: Origin) -> Self {
        WriteToken { number, to, arrived: 0 }
    }
}

/// A write to (part of) a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The line.
    pub line: LineAddr,
    /// The bytes: bit `i` stands for byte `i`.
    pub mask: u64,
    /// The data; bytes outside the mask are ignored.
    #[serde(with = "serde_bytes")]
    pub data: Line,
    /// The cause of the write.
    pub cause: Cause,
    /// The receiver of the acknowledgement.
    pub token: Option<WriteToken>,
    /// The group of held entries it belongs to: durable, but neither drained nor merged until released.
    pub held: Option<u64>,
    /// Whether it becomes an ordinary one, if it is held, when writes wait for room that no other entry makes.
    pub yields: bool,
    /// A write-back buffer of the last level has it. Where that outlasts the queue it keeps it until the media has it.
    pub from_llc_buffer: bool,
}

impl Write {
    /// A write of a whole line.
    pub fn line(line: LineAddr, data: Line, cause: Cause) -> Self {
        Write { line, mask: u64::MAX, data, cause, token: None, held: None, yields: false, from_llc_buffer: false }
    }

    /// Puts the written bytes over `under`.
    pub fn overlay(&self, under: &mut Line) {
        if self.mask == u64::MAX {
            *under = self.data;
            return;
        }
        // Most writes are of a few bytes.
        let mut left = self.mask;
        while left != 0 {
            let byte = left.trailing_zeros() as usize;
            under[byte] = self.data[byte];
            left &= left - 1;
        }
    }
}

/// A write in the queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The write; joined writes have one entry.
    pub write: Write,
    /// The line's number among the lines of its controller.
    pub(crate) local: u64,
    /// Its bank.
    pub(crate) bank: u16,
    /// Tokens of writes that joined this entry later.
    pub(crate) joined: Vec<WriteToken>,
    /// Its number among the entries of the queue, in the order in which they came. Given anew where what finds entries is built.
    #[serde(skip)]
    pub(crate) number: u64,
    /// It does not start before this time: its acceptance, or later if the bookings seen so far forbid it.
    pub(crate) start_bound_ps: Picos,
    /// Media with rows: its number among their requests, once it may leave.
    pub(crate) request: Option<u64>,
    /// The time at which the media will have written it; `None` while it waits.
    pub(crate) finish_ps: Option<Picos>,
    /// The time at which the media starts it, until that is reported, in a memory that reports starts.
    pub(crate) unreported_start_ps: Option<Picos>,
}

impl Entry {
    /// Whether it is held.
    pub fn is_held(&self) -> bool {
        self.write.held.is_some()
    }

    /// Whether the media is writing it now.
    pub fn in_service(&self) -> bool {
        self.finish_ps.is_some() && self.unreported_start_ps.is_none()
    }
}
