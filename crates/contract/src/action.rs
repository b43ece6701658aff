//! The actions that a design requests from the machine.

use crate::{AbortCause, Signal, Token};
use durasim_types::{Cause, CoreId, Cycle, EventKind, LINE_BYTES, Line, LineAddr, PhysAddr, StallCause, TxId};
use serde::{Deserialize, Serialize};

/// Up to one line of bytes, without those that the mask leaves out, stored inline so that no action allocates.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    len: u8,
    mask: u64,
    #[serde(with = "serde_bytes")]
    bytes: Line,
}

impl Payload {
    /// A payload of these bytes.
    ///
    /// # Panics
    /// If there are more than 64.
    pub fn new(bytes: &[u8]) -> Self {
        let mask = if bytes.len() == 64 { u64::MAX } else { (1 << bytes.len()) - 1 };
        let mut payload = Payload { len: bytes.len() as u8, mask, bytes: [0; LINE_BYTES as usize] };
        payload.bytes[..bytes.len()].copy_from_slice(bytes);
        payload
    }

    /// A payload for a whole line that writes only the bytes with their bit in `mask`.
    pub fn masked(line: &Line, mask: u64) -> Self {
        Payload { len: LINE_BYTES as u8, mask, bytes: *line }
    }

    /// The bytes, those that are left out included.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    /// The bytes that the payload writes: bit `i` stands for byte `i`.
    pub fn mask(&self) -> u64 {
        self.mask
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes, {:#x})", self.len, self.mask)
    }
}

/// The place of the hardware that sends something to a controller and that is notified of its acknowledgement: the other
/// end of the path, whose latency it pays (docs/internals/path-to-controllers.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// A core, or hardware beside its L1D: the path of a `cbo.clean`.
    Core(CoreId),
    /// The last level, or hardware beside it: the path of a line that it evicts.
    Llc,
    /// The controller of the address itself: no path.
    Controller,
}

/// A place of the machine that messages travel between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Node {
    /// The L1 controller of a core.
    Core(CoreId),
    /// A memory controller.
    Controller(u16),
    /// A bank of the last level, as [`crate::Geometry::bank_of`] numbers them.
    LlcBank(u16),
}

/// A message of a design's own protocol; its meaning is the design's affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The kind of message.
    pub kind: u16,
    /// First operand.
    pub a: u64,
    /// Second operand.
    pub b: u64,
}

/// A copy from one place of persistent memory to another; neither side may cross a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRequest {
    /// The place that requests it.
    pub by: Origin,
    /// Source.
    pub from: PhysAddr,
    /// Destination.
    pub to: PhysAddr,
    /// Length in bytes.
    pub len: u8,
    /// The bytes that are read: the newest that the controller has, or those below the oldest held entry of the line.
    pub below_held: bool,
    /// The reason.
    pub cause: Cause,
    /// Acknowledgement wanted under this token.
    pub token: Option<Token>,
}

/// One thing the machine does for a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// The version of the line in the requesting core's L1D goes down to the next level as an untagged dirty version,
    /// before the store being executed changes it.
    CopyDown(LineAddr),
    /// If any version of the line in any cache is dirty, the newest one is written, by default to its home address; the
    /// line stays, clean in all levels. Nothing is acknowledged if there was nothing to write. The requesting core sends
    /// it, as it sends a `cbo.clean`.
    CleanTo {
        /// The line.
        line: LineAddr,
        /// Another place than home, with the cause of the write.
        to: Option<(PhysAddr, Cause)>,
        /// Acknowledgement wanted under this token.
        token: Option<Token>,
    },
    /// The newest version of the line in private caches, if it is dirty, is written into the last level with its tag, and
    /// pre-images below it before it; the copies above stay, clean. With a token [`crate::Durability::acked`] is called when
    /// the last level has it, or at once if there was nothing to write.
    PushToLlc {
        /// The line.
        line: LineAddr,
        /// Acknowledgement wanted under this token.
        token: Option<Token>,
    },
    /// The last level drops the older version of a line that [`crate::Merge::KeepBoth`] has kept, unless the newer one
    /// belongs to an open transaction.
    DropOlder(LineAddr),
    /// The older version of a line that [`crate::Merge::KeepBoth`] has kept is written to its home address and leaves the
    /// last level.
    WriteOlderHome(LineAddr),
    /// A store made by the hardware itself, through the caches of the requesting core: at most eight bytes. In answers to
    /// [`crate::Durability::tx_begin`] and [`crate::Durability::tx_commit`] alone: it may miss, and then lines move as for
    /// any request of the core.
    PutCached {
        /// The address.
        addr: PhysAddr,
        /// The bytes, at most eight, inside one line.
        payload: Payload,
    },
    /// Bytes that an aborted transaction has changed change back where the newest copy of their line is: in all caches that
    /// have it, which then owe it, or in persistent memory, under the token, sent by the requesting core.
    Restore {
        /// The address.
        addr: PhysAddr,
        /// The bytes, at most eight, inside one line.
        payload: Payload,
        /// Acknowledgement wanted, if it is written to persistent memory.
        token: Option<Token>,
    },
    /// A write sent to the controller of `at`, bypassing the caches: at most a line, inside one line. Until it arrives it is
    /// lost with the power, unless the domain keeps what is in flight. Writes to one line arrive in order.
    Append {
        /// The sender.
        from: Origin,
        /// The address.
        at: PhysAddr,
        /// The bytes.
        payload: Payload,
        /// The reason.
        cause: Cause,
        /// Acknowledgement wanted under this token.
        token: Option<Token>,
    },
    /// A copy from one place of persistent memory to another, made by the controller of the source: a read, then a write.
    Copy(CopyRequest),
    /// A read of a line of persistent memory by the design itself, with the latency of its controller and banks. The
    /// bytes are those that the controller has newest when it is asked; `Durability::read_done` receives them. Only for
    /// designs with the hook [`crate::Hooks::READ`].
    Read {
        /// The place that requests it.
        by: Origin,
        /// An address of the line that is read.
        at: PhysAddr,
        /// Names the read, as it would name a write: until it is done, its token is not acknowledged.
        token: Token,
    },
    /// Acknowledged once for each controller of persistent memory, when it has accepted everything that was sent to it
    /// before, by whomever.
    Barrier {
        /// Acknowledgement wanted under this token, as often as there are controllers.
        token: Token,
        /// The reason.
        cause: Cause,
    },
    /// A message between a core and a controller, with the latency of the path; `Durability::message` receives it.
    Send {
        /// Sender.
        from: Node,
        /// Receiver.
        to: Node,
        /// The message.
        message: Message,
        /// Bytes of data that it carries; 0 for a request or an acknowledgement.
        size_bytes: u64,
    },
    /// `Durability::woken` is called with `id` after this number of cycles.
    Timer {
        /// The design's own number.
        id: u64,
        /// Delay in core cycles.
        after_cycles: Cycle,
    },
    /// `Durability::woken` is called with `id` once the machine has retired this number of further instructions.
    InstructionTimer {
        /// The design's own number.
        id: u64,
        /// Delay in retired instructions of all cores.
        after_instructions: u64,
    },
    /// `Durability::woken` is called with `id` as soon as the actions before this one are done: the next step of a
    /// sequence whose steps must be durable one after the other.
    Resume {
        /// The design's own number.
        id: u64,
    },
    /// The lines of all caches are visited in the background, a number per cycle, L1D and L2 of each core first. Those of
    /// persistent memory that are dirty are passed to [`crate::Durability::scanned`]; at the end `woken` is called.
    Scan {
        /// The design's own number.
        id: u64,
        /// Lines per core cycle.
        lines_per_cycle: u32,
        /// Whether the scan takes the port of the L2 or LLC that it is in: look-ups there begin a cycle later.
        takes_ports: bool,
    },
    /// Held queue entries of this group become ordinary ones at a controller.
    ReleaseHeld {
        /// The controller.
        controller: u16,
        /// The group.
        group: u64,
        /// Those of this line alone.
        line: Option<LineAddr>,
    },
    /// Held queue entries of this group vanish at a controller.
    DiscardHeld {
        /// The controller.
        controller: u16,
        /// The group.
        group: u64,
    },
    /// Every cached copy of the line is invalidated. What of it is dirty is lost: the design has had it cleaned.
    Invalidate(LineAddr),
    /// Every cached line whose tag the design calls a line of this transaction is invalidated.
    InvalidateTagged(TxId),
    /// The registers saved at the transaction's begin come back, with the cause in a0.
    RestoreRegisters(TxId, AbortCause),
    /// Requests waiting for this signal continue.
    Raise(Signal),
    /// An epoch of the design ends here: what is acknowledged by now belongs to it, and the program's stores so far. No
    /// transaction is open. Oracles of variants that promise durability by epochs count these.
    EpochEnds,
    /// A nonvolatile structure of the design changed: a persist event.
    Event(EventKind, PhysAddr),
}

/// The list of actions of one hook call, reused so that a store allocates nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Actions {
    list: Vec<Action>,
    stall_cause: Option<StallCause>,
    is_prepared: bool,
}

impl Actions {
    /// Adds an action after the others.
    #[inline]
    pub fn push(&mut self, action: Action) {
        self.list.push(action);
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The actions in order.
    pub fn as_slice(&self) -> &[Action] {
        &self.list
    }

    /// Forgets all, keeping the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        self.stall_cause = None;
        self.is_prepared = false;
    }

    /// Of a design that commits in two phases, asked to commit: the transaction is prepared, and its commit phase begins now.
    /// Runs report the latencies of both.
    pub fn prepared(&mut self) {
        self.is_prepared = true;
    }

    /// Whether the commit phase begins.
    pub fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    /// Names what the request waits for, if the answer of the hook lets it wait. Without a name a wait for an acknowledgement
    /// counts as one for the path and the queue of its controller, another one as one for the design, or for further
    /// steps where a transaction commits. A structure has its place among [`crate::Design::STRUCTURES`].
    #[inline]
    pub fn stalls_for(&mut self, cause: StallCause) {
        self.stall_cause = Some(cause);
    }

    /// The cause of a wait for which the design names none.
    #[inline]
    pub fn stalls_by_default(&mut self, cause: StallCause) {
        self.stall_cause.get_or_insert(cause);
    }

    /// Takes over what another list names.
    pub fn keep_stall_cause(&mut self, other: &Actions) {
        self.stall_cause = other.stall_cause;
    }

    /// The event that the request waits for, if it waits.
    #[inline]
    pub fn stall_cause(&self) -> Option<StallCause> {
        self.stall_cause
    }

    /// Adds a write that bypasses the caches; see [`Action::Append`].
    pub fn append(&mut self, from: Origin, at: PhysAddr, bytes: &[u8], cause: Cause, token: Option<Token>) {
        self.push(Action::Append { from, at, payload: Payload::new(bytes), cause, token });
    }

    /// Adds a persist event; see [`Action::Event`].
    pub fn event(&mut self, kind: EventKind, addr: PhysAddr) {
        self.push(Action::Event(kind, addr));
    }
}
