//! The state of a running machine.

use super::{Bounds, Tx};
use std::collections::{BTreeMap, BTreeSet};

/// A version of a line, named after the store that made it. No two stores to a line make the same version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The transaction, if it was one.
    pub tx: Option<Tx>,
    /// The number of the transaction's store to the line, or of the store outside of transactions; 0 is the version at
    /// the start.
    pub store: u32,
}

/// A dirty version in the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OnChip {
    /// Its contents.
    pub version: Version,
    /// The open transaction in its TransTag.
    pub tag: Option<Tx>,
}

/// The progress of a thread with its transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// There is none.
    #[default]
    Idle,
    /// It has its identifier.
    Begun,
    /// Its TxLen is zero: it may store.
    Running,
    /// tx_commit has started.
    Committing,
    /// TxLen is stored.
    Stored,
    /// TxStates are reset.
    Reset,
    /// It has aborted: its entries in the log are still there.
    Aborting(super::Cause),
}

/// A thread with its registers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The progress of its transaction.
    pub phase: Phase,
    /// The number of its transaction, or of its last one.
    pub number: u32,
    /// PerCoreTxID: the identifier of its transaction, 0 if there is none.
    pub tx_id: u32,
    /// Stores of its transaction to each line. PerCoreTxLen counts those that are not zero.
    pub stores: Vec<u32>,
    /// Whether tx_commit has ended, or will have when states are reset: for faults only.
    pub acknowledged: bool,
    /// Whether it runs on a core.
    pub on_core: bool,
}

impl Thread {
    /// Whether it has a transaction whose TxStates are '1'.
    pub fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Idle | Phase::Reset)
    }

    /// Whether its fate is open at a power failure.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self.phase, Phase::Committing | Phase::Stored) && !self.acknowledged
    }

    /// Lines that its transaction has written.
    pub fn lines(&self) -> impl Iterator<Item = u8> {
        (0u8..).zip(&self.stores).filter(|(_, stores)| **stores > 0).map(|(line, _)| line)
    }
}

/// A valid entry of the eWPQ or of its extension area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The home address.
    pub line: u8,
    /// Its transaction; TxState is '1' while that is open.
    pub tx: Tx,
    /// The name of the transaction in hardware.
    pub tx_id: u32,
    /// The entry of the log.
    pub slot: u32,
    /// Whether it is in the extension area.
    pub extended: bool,
    /// Whether a migration is carrying it home.
    pub migrating: bool,
}

/// The contents of an entry of the log: home address and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogSlot {
    /// Its home.
    pub line: u8,
    /// Its data.
    pub version: Version,
}

/// A migration in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flight {
    /// The version that it writes.
    pub version: Version,
    /// Whether it has arrived, which the controller does not know yet.
    pub written: bool,
}

/// The machine at work. The last three fields are no hardware: they say what is right.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Each line at its home address.
    pub home: Vec<Version>,
    /// Identifiers whose TxLen is not zero.
    pub tx_lens: BTreeSet<u32>,
    /// Entries of the log that were ever written.
    pub log: BTreeMap<u32, LogSlot>,
    /// LogHead, modulo the size of the log.
    pub log_head: u32,
    /// GlobalTxID, modulo the number of identifiers.
    pub global_tx_id: u32,
    /// Dirty versions of each line in the caches, newest first.
    pub on_chip: Vec<Vec<OnChip>>,
    /// eWPQ and extension area, in an order of no meaning.
    pub entries: Vec<Entry>,
    /// Migrations in flight, by line.
    pub flights: BTreeMap<u8, Flight>,
    /// The threads.
    pub threads: Vec<Thread>,
    /// Stores outside of transactions so far.
    pub plain_stores: u32,
    /// Lives that are left after this one.
    pub lives_left: u8,
    /// The newest version of each line that is acknowledged or that others may have seen.
    pub truth: Vec<Version>,
    /// Transactions that aborted in this run.
    pub aborted: BTreeSet<Tx>,
}

impl Machine {
    /// A machine that was never switched on.
    pub fn new(bounds: &Bounds) -> Self {
        let lines = usize::from(bounds.lines);
        let thread = Thread {
            phase: Phase::Idle,
            number: 0,
            tx_id: 0,
            stores: vec![0; lines],
            acknowledged: false,
            on_core: true,
        };
        Machine {
            home: vec![Version::default(); lines],
            tx_lens: BTreeSet::new(),
            log: BTreeMap::new(),
            log_head: 0,
            global_tx_id: 1 % bounds.tx_ids,
            on_chip: vec![Vec::new(); lines],
            entries: Vec::new(),
            flights: BTreeMap::new(),
            threads: vec![thread; usize::from(bounds.threads)],
            plain_stores: 0,
            lives_left: bounds.lives - 1,
            truth: vec![Version::default(); lines],
            aborted: BTreeSet::new(),
        }
    }

    /// The transaction of a thread, or its last one.
    pub fn tx(&self, thread: u8) -> Tx {
        Tx { thread, number: self.threads[usize::from(thread)].number }
    }

    /// Whether TxStates of this transaction are '1'.
    pub fn is_open(&self, tx: Tx) -> bool {
        let thread = &self.threads[usize::from(tx.thread)];
        thread.number == tx.number && thread.is_open()
    }

    /// The entry of a line.
    pub fn entry(&self, line: u8) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.line == line)
    }

    /// The open transaction that a line belongs to.
    pub fn owner(&self, line: u8) -> Option<Tx> {
        let top = self.on_chip[usize::from(line)].first().and_then(|top| top.tag);
        top.or_else(|| self.entry(line).map(|entry| entry.tx).filter(|tx| self.is_open(*tx)))
    }

    /// The newest version that a transaction has made of a line, if it has.
    pub fn written(&self, thread: u8, line: u8) -> Option<Version> {
        let store = self.threads[usize::from(thread)].stores[usize::from(line)];
        (store > 0).then(|| Version { tx: Some(self.tx(thread)), store })
    }

    /// Entries of the eWPQ itself.
    pub fn in_ewpq(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.extended).count()
    }
}
