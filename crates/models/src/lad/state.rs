//! The state of a running machine.

use super::{Bounds, Tx};
use std::collections::BTreeSet;

/// A version of a line, named after the store that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// The contents of the line at the start.
    #[default]
    Initial,
    /// A store outside of transactions, counted from 1.
    Plain(u32),
    /// A transaction, and which of its stores to the line.
    Of(Tx, u32),
}

impl Version {
    /// The transaction that made it.
    pub fn tx(self) -> Option<Tx> {
        match self {
            Version::Of(tx, _) => Some(tx),
            _ => None,
        }
    }
}

/// A transaction as the hardware knows it: LAD_TID and DTX_ID (section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dtx {
    /// The thread.
    pub thread: u8,
    /// The identifier, which wraps around.
    pub id: u8,
}

/// DTX_IDs: serial numbers of some bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    mask: u8,
}

impl Ids {
    /// Identifiers of this many bits.
    pub fn new(bits: u32) -> Self {
        Ids { mask: (0xffu32 >> (8 - bits)) as u8 }
    }

    /// The next one.
    pub fn next(self, id: u8) -> u8 {
        id.wrapping_add(1) & self.mask
    }

    /// The one before.
    pub fn previous(self, id: u8) -> u8 {
        id.wrapping_sub(1) & self.mask
    }

    /// The distance of an identifier from a later one.
    pub fn distance(self, from: u8, to: u8) -> u8 {
        to.wrapping_sub(from) & self.mask
    }

    /// Half of them. Two identifiers that are in use at a time are closer to each other.
    pub fn half(self) -> u8 {
        self.mask / 2 + 1
    }

    /// Whether a thread that has committed `last` has committed `id`.
    pub fn is_committed(self, id: u8, last: u8) -> bool {
        self.distance(id, last) < self.half()
    }
}

/// A write to a line that no queue has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flight {
    /// The version that it writes.
    pub version: Version,
    /// The transaction of a DTX_Flush; none: an ordinary write.
    pub dtx: Option<Dtx>,
    /// The newest store outside of transactions that is durable once this write is: no hardware.
    pub covers: Option<Version>,
}

/// An entry of the queue of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The line.
    pub line: u8,
    /// The data.
    pub version: Version,
    /// The transaction of a speculative entry; none: an ordinary one.
    pub held: Option<Dtx>,
}

/// An undo entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The line.
    pub line: u8,
    /// Its value before the transaction.
    pub old: Version,
    /// The transaction; none: the entry is void.
    pub dtx: Option<Dtx>,
}

/// The work of a controller on an undo entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Logging {
    /// The line and its transaction.
    pub of: (u8, Dtx),
    /// The old value.
    pub old: Version,
    /// Whether the old value is in the log; place and transaction follow.
    pub has_old: bool,
}

/// A memory controller. All of it survives a power failure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller {
    /// The queue, oldest entry first.
    pub queue: Vec<Entry>,
    /// DTX_CID: the last committed DTX_ID of each thread.
    pub committed: Vec<u8>,
    /// Lines that are in the undo log, for each transaction once.
    pub logged: BTreeSet<(u8, Dtx)>,
    /// The undo entry that is not complete.
    pub logging: Option<Logging>,
    /// The undo log, oldest entry first.
    pub log: Vec<Record>,
}

/// DTX_State (Figure 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// No transaction.
    #[default]
    Off,
    /// Its stores are marked.
    Run,
    /// The marked lines are flushed; acknowledgements are awaited.
    Flush,
    /// The controllers are notified.
    Commit,
}

/// A thread with its tracking structures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The progress of its transaction.
    pub phase: Phase,
    /// The number of its transaction, or of its last one.
    pub number: u32,
    /// DTX_ID.
    pub id: u8,
    /// Stores of its transaction to each line.
    pub stores: Vec<u32>,
    /// The version of each line before the first of these.
    pub before: Vec<Version>,
    /// Lines that it has flushed.
    pub flushed: Vec<bool>,
    /// Acknowledgements of flushes in flight to it.
    pub acks: u8,
    /// Its stores are undone.
    pub is_aborted: bool,
}

/// The progress of a commit at a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// DTX_Commit is in flight.
    Sent,
    /// It has arrived; the acknowledgement is in flight.
    Answered,
    /// The acknowledgement has arrived.
    Done,
}

/// A commit that some controller has not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    /// The transaction, as the messages name it.
    pub dtx: Dtx,
    /// The transaction.
    pub tx: Tx,
    /// Its progress at each controller.
    pub stages: Vec<Stage>,
}

/// The machine at work. The last three fields are no hardware: they say what is right.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Each line in the media.
    pub home: Vec<Version>,
    /// The memory controllers.
    pub controllers: Vec<Controller>,
    /// Writes to each line that no queue has accepted, oldest first.
    pub flights: Vec<Vec<Flight>>,
    /// The version of each line that caches have and memory lacks.
    pub dirty: Vec<Option<Version>>,
    /// The thread whose bit vector marks each line.
    pub marked: Vec<Option<u8>>,
    /// The threads.
    pub threads: Vec<Thread>,
    /// Commits that are not acknowledged everywhere, oldest first.
    pub pending: Vec<Pending>,
    /// Stores outside of transactions so far.
    pub plain_stores: u32,
    /// Lives that are left after this one.
    pub lives_left: u8,
    /// The newest version of each line that must survive.
    pub truth: Vec<Version>,
    /// Newer versions of each line from outside of transactions, oldest first: they may be lost.
    pub loose: Vec<Vec<Version>>,
    /// Transactions that aborted in this life.
    pub aborted: BTreeSet<Tx>,
}

impl Machine {
    /// A machine that was never switched on.
    pub fn new(bounds: &Bounds) -> Self {
        let lines = usize::from(bounds.lines);
        let thread = Thread {
            phase: Phase::Off,
            number: 0,
            id: bounds.last_id,
            stores: vec![0; lines],
            before: vec![Version::Initial; lines],
            flushed: vec![false; lines],
            acks: 0,
            is_aborted: false,
        };
        let controller = Controller {
            queue: Vec::new(),
            committed: vec![bounds.last_id; usize::from(bounds.threads)],
            logged: BTreeSet::new(),
            logging: None,
            log: Vec::new(),
        };
        Machine {
            home: vec![Version::Initial; lines],
            controllers: vec![controller; usize::from(bounds.controllers)],
            flights: vec![Vec::new(); lines],
            dirty: vec![None; lines],
            marked: vec![None; lines],
            threads: vec![thread; usize::from(bounds.threads)],
            pending: Vec::new(),
            plain_stores: 0,
            lives_left: bounds.lives - 1,
            truth: vec![Version::Initial; lines],
            loose: vec![Vec::new(); lines],
            aborted: BTreeSet::new(),
        }
    }

    /// A thread.
    pub fn thread(&self, thread: u8) -> &Thread {
        &self.threads[usize::from(thread)]
    }

    /// The transaction of a thread, or its last one.
    pub fn tx(&self, thread: u8) -> Tx {
        Tx { thread, number: self.thread(thread).number }
    }

    /// The transaction as the hardware names it.
    pub fn dtx(&self, thread: u8) -> Dtx {
        Dtx { thread, id: self.thread(thread).id }
    }

    /// The version that the open transaction of a thread has made of a line, if it has stored to it.
    pub fn written(&self, thread: u8, line: u8) -> Option<Version> {
        let (t, at) = (self.thread(thread), usize::from(line));
        let store = t.stores[at];
        let version = if t.is_aborted { t.before[at] } else { Version::Of(self.tx(thread), store) };
        (store > 0 && t.phase != Phase::Off).then_some(version)
    }

    /// The thread whose open transaction has stored to a line.
    pub fn writer(&self, line: u8) -> Option<u8> {
        (0..self.threads.len() as u8).find(|thread| self.written(*thread, line).is_some())
    }

    /// The version that a program must find in a line.
    pub fn newest(&self, line: u8) -> Version {
        let at = usize::from(line);
        match self.writer(line) {
            Some(thread) => self.written(thread, line).unwrap_or_default(),
            None => self.loose[at].last().copied().unwrap_or(self.truth[at]),
        }
    }

    /// Whether a commit has arrived at some controller.
    pub fn is_received(&self, tx: Tx) -> bool {
        let has_arrived = |stage: &Stage| *stage != Stage::Sent;
        self.pending.iter().any(|pending| pending.tx == tx && pending.stages.iter().any(has_arrived))
    }
}

impl Controller {
    /// Whether a transaction has committed here.
    pub fn has_committed(&self, dtx: Dtx, ids: Ids) -> bool {
        ids.is_committed(dtx.id, self.committed[usize::from(dtx.thread)])
    }

    /// Entries of a line, oldest first.
    pub fn of_line(&self, line: u8) -> impl DoubleEndedIterator<Item = &Entry> {
        self.queue.iter().filter(move |entry| entry.line == line)
    }
}
