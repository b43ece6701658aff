//! The state of a running machine.

use super::{Bounds, Tx};
use std::collections::BTreeSet;

/// A version of a line, named after the store that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The transaction; none is the version at the start.
    pub tx: Option<Tx>,
    /// The number of the transaction's store to the line.
    pub store: u32,
}

/// The state of an entry. The paper has three: available, active (here with three shades, for what the fall-back path
/// does with it) and committed (with two).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryState {
    /// Free, but between tail and head.
    Available,
    /// Of an open transaction.
    Active,
    /// Active, the old line in flight to the shadow area.
    Copying,
    /// Active, the old line is there.
    Copied,
    /// To be issued.
    Committed,
    /// Issued; of an open transaction only after a copy.
    Issued,
}

/// An entry of a transaction cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The line.
    pub line: u8,
    /// The data.
    pub version: Version,
    /// The identifier of its transaction.
    pub id: u16,
    /// Its state.
    pub state: EntryState,
}

impl Entry {
    /// Whether it is of a transaction that has committed, and not home.
    pub fn drains(&self) -> bool {
        matches!(self.state, EntryState::Committed | EntryState::Issued)
    }
}

/// A write to a line in flight to the NVRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flight {
    /// The core that wrote it.
    pub core: u8,
    /// The version that it writes.
    pub version: Version,
    /// Whether it has arrived, which the transaction cache does not know yet.
    pub written: bool,
}

/// An old line of a transaction that overflowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shadow {
    /// Its home.
    pub line: u8,
    /// The version before the transaction.
    pub old: Version,
    /// Whether it has arrived in the shadow area.
    pub safe: bool,
    /// Whether the abort has brought it back.
    pub restored: bool,
}

/// The overflow register of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Overflow {
    /// The core whose cache it belongs to.
    pub core: u8,
    /// The transaction.
    pub tx: Tx,
    /// The lines.
    pub shadows: Vec<Shadow>,
}

/// The progress of a thread with its transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// There is none: the mode register is zero.
    #[default]
    Idle,
    /// It is open.
    Running,
    /// It has aborted; lines that it wrote home are restored.
    Aborting,
}

/// A thread with its mode register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The progress of its transaction.
    pub phase: Phase,
    /// The number of its transaction, or of its last one.
    pub number: u32,
    /// The identifier of its transaction, 0 if there is none.
    pub id: u16,
    /// The core on which that began.
    pub home: u8,
    /// Stores of its transaction to each line.
    pub stores: Vec<u32>,
}

/// The machine at work. The last two fields are no hardware: they say what is right.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Each line in the NVRAM.
    pub home: Vec<Version>,
    /// The transaction cache of each core, from tail to head.
    pub fifos: Vec<Vec<Entry>>,
    /// The next transaction register of each core.
    pub next_ids: Vec<u16>,
    /// The overflow registers.
    pub overflows: Vec<Overflow>,
    /// Writes to each line in flight, oldest first.
    pub flights: Vec<Vec<Flight>>,
    /// Each line in the caches.
    pub cached: Vec<Option<Version>>,
    /// The threads.
    pub threads: Vec<Thread>,
    /// Lives that are left after this one.
    pub lives_left: u8,
    /// The newest committed version of each line.
    pub truth: Vec<Version>,
    /// Transactions that aborted in this run.
    pub aborted: BTreeSet<Tx>,
}

impl Machine {
    /// A machine that was never switched on.
    pub fn new(bounds: &Bounds) -> Self {
        let (lines, cores) = (usize::from(bounds.lines), usize::from(bounds.cores));
        let thread = Thread { phase: Phase::Idle, number: 0, id: 0, home: 0, stores: vec![0; lines] };
        Machine {
            home: vec![Version::default(); lines],
            fifos: vec![Vec::new(); cores],
            next_ids: vec![1; cores],
            overflows: Vec::new(),
            flights: vec![Vec::new(); lines],
            cached: vec![None; lines],
            threads: vec![thread; usize::from(bounds.threads)],
            lives_left: bounds.lives - 1,
            truth: vec![Version::default(); lines],
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

    /// Whether this transaction has neither committed nor been forgotten.
    pub fn is_open(&self, tx: Tx) -> bool {
        let thread = self.thread(tx.thread);
        thread.number == tx.number && thread.phase != Phase::Idle
    }

    /// The newest version that the open transaction of a thread has made of a line, if it has.
    pub fn written(&self, thread: u8, line: u8) -> Option<Version> {
        let store = self.thread(thread).stores[usize::from(line)];
        (store > 0).then(|| Version { tx: Some(self.tx(thread)), store })
    }

    /// Entries of a core that are not available, oldest first.
    pub fn occupied(&self, core: usize) -> impl DoubleEndedIterator<Item = &Entry> {
        self.fifos[core].iter().filter(|e| e.state != EntryState::Available)
    }

    /// The shadow of a line for a transaction.
    pub fn shadow(&self, tx: Tx, line: u8) -> Option<&Shadow> {
        self.overflows.iter().filter(|o| o.tx == tx).flat_map(|o| &o.shadows).find(|s| s.line == line)
    }
}
