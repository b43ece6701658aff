//! What the banks of the last level add where commits are distributed, as in LAD-LLC: LAD's two-phase commit at the banks of
//! Kiln's last level (Gupta, Daglis and Falsafi, MICRO 2019, section 5). Section numbers are that paper's.

use crate::dtx::{Dtx, Ids, THREADS};
use durasim_design::{LineTag, Signal, bank_of};
use durasim_types::{LineAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// In tags of lines the number of the bank stands above that of the transaction.
const BANK_SHIFT: u32 = 48;

/// A transaction that has begun and that not all banks have forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenDtx {
    pub dtx: Dtx,
    /// Banks that have committed it.
    pub flipped: BTreeSet<u16>,
    /// Banks whose acknowledgement has arrived.
    pub acknowledged: u16,
}

/// The banks, and the DTX_IDs of threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Banks {
    id_bits: u32,
    /// DTX_CID of each bank: the last committed DTX_ID of each thread (section 4.3), battery-backed.
    pub committed: Vec<Vec<u8>>,
    /// DTX_ID of each thread.
    last: BTreeMap<u8, u8>,
    pub open: BTreeMap<TxId, OpenDtx>,
    /// Whether a thread has gone through all DTX_IDs.
    pub ids_wrapped: bool,
}

impl Banks {
    pub fn new(banks: u16, id_bits: u32) -> Self {
        Banks {
            id_bits,
            committed: vec![vec![0; THREADS]; banks.into()],
            last: BTreeMap::new(),
            open: BTreeMap::new(),
            ids_wrapped: false,
        }
    }

    pub fn ids(&self) -> Ids {
        Ids::new(self.id_bits)
    }

    pub fn count(&self) -> u16 {
        self.committed.len() as u16
    }

    /// Whether a saved state is one of the same machine.
    pub fn fits(&self, fresh: &Banks) -> bool {
        let of_threads = |ids: &Vec<u8>| ids.len() == THREADS;
        (self.count(), self.id_bits) == (fresh.count(), fresh.id_bits) && self.committed.iter().all(of_threads)
    }

    /// The bank of a line.
    pub fn of(&self, line: LineAddr) -> u16 {
        bank_of(line, self.count())
    }

    /// The tag of a line of a transaction.
    pub fn tag(&self, tx: TxId, line: LineAddr) -> LineTag {
        LineTag(tx.0 | u64::from(self.of(line)) << BANK_SHIFT)
    }

    /// Whether half of the DTX_IDs of a thread would be in use: the oldest that is not forgotten decides [D:lad-ids], and the one
    /// before it, which banks still have that lack its commit.
    pub fn lacks_ids(&self, tid: u8) -> bool {
        let next = self.next_id(tid);
        let distance = |of: &OpenDtx| self.ids().distance(of.dtx.id, next);
        self.open
            .values()
            .filter(|of| of.dtx.tid == tid)
            .map(distance)
            .any(|distance| distance + 1 >= self.ids().half())
    }

    fn next_id(&self, tid: u8) -> u8 {
        self.ids().next(self.last.get(&tid).copied().unwrap_or(0))
    }

    /// DTX_Start.
    pub fn begin(&mut self, tx: TxId, tid: u8) {
        let id = self.next_id(tid);
        self.ids_wrapped |= id == 0;
        self.last.insert(tid, id);
        self.open.insert(tx, OpenDtx { dtx: Dtx { tid, id }, flipped: BTreeSet::new(), acknowledged: 0 });
    }

    /// A transaction was aborted, and nothing names it: the next one of its thread takes its DTX_ID. Else a thread that aborts
    /// again and again would leave DTX_CID behind by more than half of all numbers.
    pub fn abort(&mut self, tx: TxId) {
        let Some(OpenDtx { dtx: Dtx { tid, id }, .. }) = self.open.remove(&tx) else { return };
        self.last.insert(tid, self.ids().previous(id));
    }

    /// Whether the bank that a tag names has committed its transaction.
    pub fn has_flipped(&self, tag: LineTag) -> bool {
        self.open.get(&tx_of(tag)).is_some_and(|of| of.flipped.contains(&((tag.0 >> BANK_SHIFT) as u16)))
    }

    /// The bits by which what survives names a transaction.
    pub fn number(&self, tx: TxId) -> TxId {
        TxId(self.open.get(&tx).map_or(0, |of| of.dtx.number()))
    }
}

/// The transaction in a tag.
pub(super) fn tx_of(tag: LineTag) -> TxId {
    TxId(tag.0 & ((1 << BANK_SHIFT) - 1))
}

/// A transaction is complete.
pub(super) fn complete(tx: TxId) -> Signal {
    Signal(tx.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_names_transaction_and_bank() {
        let mut banks = Banks::new(3, 2);
        banks.begin(TxId(7), 1);
        let tag = banks.tag(TxId(7), LineAddr(5));
        assert_eq!((tx_of(tag), banks.of(LineAddr(5)), banks.has_flipped(tag)), (TxId(7), 2, false));
        banks.open.get_mut(&TxId(7)).unwrap().flipped.insert(2);
        assert!(banks.has_flipped(tag) && !banks.has_flipped(banks.tag(TxId(7), LineAddr(4))));
    }

    #[test]
    fn half_of_the_ids_may_be_in_use() {
        let mut banks = Banks::new(1, 3);
        banks.begin(TxId(1), 0);
        banks.begin(TxId(2), 0);
        assert!(!banks.lacks_ids(0));
        banks.begin(TxId(3), 0);
        assert!(banks.lacks_ids(0) && !banks.lacks_ids(1), "a bank may have 0 while the fourth commits: that is half");
        banks.open.remove(&TxId(1));
        assert!(!banks.lacks_ids(0));
    }
}
