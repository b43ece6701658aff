//! The answers a design can give.

use crate::{AbortCause, LineTag};
use durasim_types::{Cause, Cycle, Line, PhysAddr, TxId};
use serde::{Deserialize, Serialize};

/// Names writes whose acknowledgement a design waits for. A design chooses the numbers; several writes may share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(pub u64);

impl Token {
    /// The bit of [`Token::when_written`].
    const WHEN_WRITTEN: u64 = 1 << 60;

    /// This token for writes that are acknowledged twice: under the token itself when the persistence domain has them, and
    /// under this one when the medium has written them. Not for writes that the design may discard.
    #[must_use]
    pub const fn when_written(self) -> Token {
        Token(self.0 | Token::WHEN_WRITTEN)
    }

    /// Whether it is that of an acknowledgement by the medium.
    pub const fn is_when_written(self) -> bool {
        self.0 & Token::WHEN_WRITTEN != 0
    }

    /// The token that the persistence domain acknowledges.
    #[must_use]
    pub const fn when_accepted(self) -> Token {
        Token(self.0 & !Token::WHEN_WRITTEN)
    }
}

/// Names a condition that a design raises itself, for example when the last expected message has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Signal(pub u64);

/// The event that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// A number of core cycles.
    Cycles(Cycle),
    /// Until every write under this token that was handed over so far is acknowledged by the persistence domain, or by the
    /// medium ([`Token::when_written`]).
    Acked(Token),
    /// Until the design raises this signal.
    Signal(Signal),
}

/// The answer to a request of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Done at once.
    Done,
    /// The hook ran; the request completes later.
    After(Wait),
    /// Nothing of the request happened; ask again later. Actions given along are carried out.
    Retry(Wait),
    /// This transaction aborts. If it is the requester's, the request ends with it; else it is asked again.
    Abort(TxId, AbortCause),
}

/// Two versions of one line meet: one resident in a level, one coming from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The incoming version replaces the resident one.
    Overwrite,
    /// The resident version is a pre-image: it goes one level down first.
    PushDownFirst,
    /// The resident version is a pre-image and stays in the last level beside the incoming one, in another way of its
    /// set. The machine keeps it until [`crate::Action::DropOlder`], or until its way is needed for another line: then it
    /// is written to its home address. An abort that discards the newer version makes it the only one. Where no other way
    /// is available it is written to its home address first. Levels above the last one take this for
    /// [`Merge::PushDownFirst`].
    KeepBoth,
}

/// The action for a version that leaves a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evict {
    /// It is written to its home address, if dirty; from a private level it goes down.
    Proceed,
    /// It is written to `at` instead, under `token` if the design wants the acknowledgement.
    To {
        /// The address.
        at: PhysAddr,
        /// The reason.
        cause: Cause,
        /// Acknowledgement wanted.
        token: Option<Token>,
    },
    /// It is discarded: the design holds a copy elsewhere.
    Drop,
    /// It may not leave yet; ask again.
    After(Wait),
    /// It cannot leave: the transaction it belongs to must abort, which discards it. That may be the transaction of
    /// another core than the one that needs the room.
    Abort(TxId, AbortCause),
}

/// Bytes of a line that a design supplies itself. Bit `i` of `mask` stands for byte `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    /// The bytes.
    pub mask: u64,
    /// The bytes.
    pub data: Line,
}

/// A piece of a line that lies somewhere else in persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The address to read.
    pub from: PhysAddr,
    /// Its place in the line.
    pub offset: u8,
    /// Its length in bytes.
    pub len: u8,
}

/// A line assembled from several places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gather {
    /// Whether the home address is read as the ground.
    pub home: bool,
    /// Pieces read from persistent memory, in parallel, applied in order.
    pub parts: Vec<Part>,
    /// Bytes from the design's own structures, applied last.
    pub overlay: Option<Overlay>,
}

/// The source of a missing line of persistent memory. `search_cycles` is the time the design's own structures take to
/// answer; reading the home address proceeds in parallel unless `serial` is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Home, after the search.
    Home {
        /// Cycles of the search.
        search_cycles: Cycle,
        /// The home read starts only after the search.
        serial: bool,
    },
    /// Another place; the home read is stopped. The line arrives dirty and carries `tag`.
    From {
        /// The address.
        at: PhysAddr,
        /// Cycles of the search.
        search_cycles: Cycle,
        /// The tag the line carries from now on.
        tag: LineTag,
    },
    /// Several places.
    Gather {
        /// The pieces.
        gather: Box<Gather>,
        /// Cycles of the search.
        search_cycles: Cycle,
        /// The tag the line carries from now on.
        tag: LineTag,
        /// Whether the line arrives dirty.
        dirty: bool,
    },
    /// Not yet; ask again.
    Wait(Wait),
    /// This transaction must abort. If it is the one that asks, the request ends with it; else the design is asked
    /// again.
    Abort(TxId, AbortCause),
}

/// The answer to a core's request for a tagged line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It gets the line.
    Grant,
    /// Not yet; ask again.
    Wait(Wait),
    /// This transaction aborts. If it is the requester's, the request ends with it; else the request is made again.
    Abort(TxId, AbortCause),
}

/// A controller's answer to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Into the queue. A held entry is durable but neither drained nor joined by writes outside of its group until it is
    /// released.
    Queue {
        /// The group of held entries it belongs to, if it is held.
        held: Option<u64>,
    },
    /// Into the queue as a held entry of this group, as long as its place is not needed: while writes wait for room that
    /// no other entry makes, the oldest of these become ordinary ones.
    QueueWhileRoom {
        /// The group.
        group: u64,
    },
    /// Not yet: it stays in front of the queue, where writes to other lines may pass it, and is asked about again when the
    /// queue has changed.
    Refuse,
}

/// The answer for each line a scan visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// Nothing.
    Leave,
    /// Written home and left clean.
    Clean,
}

/// The answer to `cbo.clean`, `cbo.flush`, `cbo.inval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushVerdict {
    /// The line is written home, as on any machine.
    Proceed,
    /// Nothing is written: the design keeps the line durable elsewhere, or it must not reach home yet.
    Ignore,
    /// It may not be written yet; ask again.
    After(Wait),
}

/// When a begin instruction may retire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginRule {
    /// At once; the begin leaves the store buffer in order with the stores.
    InOrder,
    /// When the store buffer is empty.
    Drained,
}

/// When a commit instruction may retire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitRule {
    /// When the gate of `tx_commit` opens.
    AtGate,
    /// When the gate of `tx_commit` opens; no younger access of the core to memory begins before.
    Blocking,
    /// At once; the hardware acknowledges when the gate opens, and system calls wait for that.
    Early,
}
