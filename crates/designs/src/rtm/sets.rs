//! Read and write sets: which lines each open transaction has loaded and stored to, and who is in whose way.

use durasim_types::{CoreId, LineAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Cores whose transactions the sets have room for.
pub(super) const CORES_MAX: u16 = 64;

/// Cores, a bit for each.
type Cores = u64;

fn bit(core: CoreId) -> Cores {
    1 << core.0
}

/// The cores whose transactions have accessed a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Interest {
    readers: Cores,
    writers: Cores,
}

/// The open transaction of a core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    tx: TxId,
    /// Lines that it has loaded, in the order of the first loads.
    reads: Vec<LineAddr>,
    /// Lines that it has stored to, in the order of the first stores.
    writes: Vec<LineAddr>,
}

/// The sets of all cores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sets {
    open: BTreeMap<CoreId, Open>,
    lines: BTreeMap<LineAddr, Interest>,
}

impl Sets {
    /// A transaction begins.
    pub fn begin(&mut self, core: CoreId, tx: TxId) {
        self.open.insert(core, Open { tx, reads: Vec::new(), writes: Vec::new() });
    }

    /// The transaction of a core ends: the lines that it has stored to.
    pub fn end(&mut self, core: CoreId) -> Vec<LineAddr> {
        let Some(Open { reads, writes, .. }) = self.open.remove(&core) else { return Vec::new() };
        for &line in reads.iter().chain(&writes) {
            self.leave(core, line, !0, !0);
        }
        writes
    }

    fn leave(&mut self, core: CoreId, line: LineAddr, of_readers: Cores, of_writers: Cores) {
        if let Some(interest) = self.lines.get_mut(&line) {
            interest.readers &= !(bit(core) & of_readers);
            interest.writers &= !(bit(core) & of_writers);
            if *interest == Interest::default() {
                self.lines.remove(&line);
            }
        }
    }

    /// The transaction that a core works on.
    pub fn tx_of(&self, core: CoreId) -> Option<TxId> {
        self.open.get(&core).map(|open| open.tx)
    }

    /// The core that works on a transaction.
    pub fn core_of(&self, tx: TxId) -> Option<CoreId> {
        self.open.iter().find(|(_, open)| open.tx == tx).map(|(core, _)| *core)
    }

    /// Whether a transaction is open.
    pub fn is_open(&self, tx: TxId) -> bool {
        self.core_of(tx).is_some()
    }

    /// Whether any transaction is open.
    pub fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The transaction of `core` has loaded a line; how many lines it has loaded by now.
    pub fn read(&mut self, core: CoreId, line: LineAddr) -> usize {
        let open = self.open.get_mut(&core).expect("the transaction that loads is open");
        let interest = self.lines.entry(line).or_default();
        if interest.readers & bit(core) == 0 {
            interest.readers |= bit(core);
            open.reads.push(line);
        }
        open.reads.len()
    }

    /// The transaction of `core` has stored to a line.
    pub fn write(&mut self, core: CoreId, line: LineAddr) {
        let open = self.open.get_mut(&core).expect("the transaction that stores is open");
        let interest = self.lines.entry(line).or_default();
        if interest.writers & bit(core) == 0 {
            interest.writers |= bit(core);
            open.writes.push(line);
        }
    }

    /// Removes this number of the oldest lines from the read set of a core.
    pub fn forget_reads(&mut self, core: CoreId, count: usize) {
        let Some(open) = self.open.get_mut(&core) else { return };
        let forgotten: Vec<LineAddr> = open.reads.drain(..count.min(open.reads.len())).collect();
        for line in forgotten {
            self.leave(core, line, !0, 0);
        }
    }

    /// Forgets who has loaded a line.
    pub fn forget_readers(&mut self, line: LineAddr) {
        if let Some(interest) = self.lines.get_mut(&line) {
            interest.readers = 0;
        }
    }

    /// The number of lines that the transaction of a core has loaded, and of those that it has stored to.
    pub fn sizes(&self, core: CoreId) -> (usize, usize) {
        self.open.get(&core).map_or((0, 0), |open| (open.reads.len(), open.writes.len()))
    }

    /// A transaction of another core that an access of `core` conflicts with: it has stored to the line, or it has loaded it
    /// and the access may write.
    pub fn rival(&self, core: CoreId, line: LineAddr, write: bool) -> Option<TxId> {
        let interest = self.lines.get(&line)?;
        let rivals = (interest.writers | if write { interest.readers } else { 0 }) & !bit(core);
        if rivals == 0 {
            return None;
        }
        self.tx_of(CoreId(rivals.trailing_zeros() as u16))
    }

    /// Open transactions with the lines of both sets, in a fixed order.
    pub fn all(&self) -> impl Iterator<Item = (TxId, &[LineAddr], &[LineAddr])> {
        self.open.values().map(|open| (open.tx, &open.reads[..], &open.writes[..]))
    }
}
