//! Distributed commits by the banks of the last level, as in LAD-LLC: LAD's two-phase commit at the banks of Kiln's last
//! level (Gupta, Daglis and Falsafi, MICRO 2019, section 5). Section numbers are that paper's.

use super::planted;
use super::state::{Purpose, State};
use super::transaction::{Phase, Transaction};
use crate::dtx::{Dtx, Ids, THREADS};
use durasim_contract::{
    Action, Actions, ActiveFault, CrashImage, CrashSink, Ctx, Gate, LineTag, Message, Node, RecoveryCut, Signal, Wait,
    bank_of, snapshot,
};
use durasim_types::{CoreId, Cycle, EventKind, LineAddr, StallCause, TxId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Message kinds.
const DTX_COMMIT: u16 = 1;
const COMMIT_ACK: u16 = 2;
/// Retry interval, in cycles, of a thread whose identifiers are all in use.
const ID_RETRY_CYCLES: Cycle = 100;
/// DTX_CID of all banks.
pub(super) const DTX_CIDS: &str = "lad-llc.dtx_cids";

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

    /// A transaction was aborted, and nothing names it: the next one of its thread takes its DTX_ID. Otherwise the distance
    /// from DTX_CID to the DTX_ID of a thread that aborts again and again would exceed half of all numbers.
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

/// The commit of LAD-LLC: lines are in the last level (prepare), then DTX_Commit goes to every bank (commit), and the first
/// acknowledgement completes the transaction. Recovery commits everywhere what any bank has committed.
impl State {
    /// DTX_Start takes the next DTX_ID of the thread; a gate if it has to wait for one.
    pub(super) fn begin_dtx(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Option<Gate> {
        let banks = self.contents.banks.as_mut()?;
        let tid = u8::try_from(cx.thread).expect("there are 256 LAD_TIDs");
        if banks.lacks_ids(tid) {
            out.stalls_for(StallCause::Structure(1));
            return Some(Gate::Retry(Wait::Cycles(ID_RETRY_CYCLES)));
        }
        banks.begin(tx, tid);
        None
    }

    /// Stores to a line and its eviction wait cycle by cycle while the commit of its transaction is in flight to its bank
    /// [D:lad-llc-commit]; not for its message itself, which several may wait for.
    pub(super) fn commit_in_flight(&self, tag: LineTag) -> Option<Wait> {
        self.contents.banks.as_ref()?;
        let is_in_flight = self.contents.open.get(&tx_of(tag)).is_some_and(|open| open.phase == Phase::Committing);
        // A commit that has not waited for its flush would wait here for itself.
        let waits = tag.is_some() && is_in_flight && !self.has_flipped_in_bank(tag) && self.awaits_flush();
        self.fault.ignores(planted::COMMIT_OVERTAKEN, waits).then_some(Wait::Cycles(1))
    }

    /// The commit phase: DTX_Commit goes to every bank.
    pub(super) fn commit_in_banks(&mut self, cx: &Ctx, tx: TxId, banks: u16, out: &mut Actions) -> Gate {
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.phase = Phase::Committing;
        }
        out.prepared();
        for bank in 0..banks {
            let message = Message { kind: DTX_COMMIT, a: tx.0, b: u64::from(cx.core.0) };
            let (from, to) = (Node::Core(cx.core), Node::LlcBank(bank));
            out.push(Action::Send { from, to, message, size_bytes: 0 });
        }
        if self.fault.skips(planted::COMMIT_NOT_AWAITED) {
            return Gate::Done;
        }
        Gate::After(Wait::Signal(complete(tx)))
    }

    /// DTX_Commit has arrived at a bank, or an acknowledgement at a core.
    pub(super) fn bank_message(&mut self, at: Node, message: Message, out: &mut Actions) {
        let tx = TxId(message.a);
        match (at, message.kind) {
            (Node::LlcBank(bank), DTX_COMMIT) => {
                self.commit_in_bank(bank, tx, out);
                let (from, to) = (Node::LlcBank(bank), Node::Core(CoreId(message.b as u16)));
                let message = Message { kind: COMMIT_ACK, a: tx.0, b: 0 };
                out.push(Action::Send { from, to, message, size_bytes: 0 });
            }
            (Node::Core(_), COMMIT_ACK) => self.bank_acknowledged(tx, out),
            _ => unreachable!("LAD-LLC sends no such message"),
        }
    }

    /// A bank commits: DTX_CID, the states of its lines, and the versions before them, in one step. An older message that comes
    /// late does not set DTX_CID back.
    fn commit_in_bank(&mut self, bank: u16, tx: TxId, out: &mut Actions) {
        let Some(banks) = &mut self.contents.banks else { return };
        let ids = banks.ids();
        let Some(&OpenDtx { dtx: Dtx { tid, id }, .. }) = banks.open.get(&tx) else { return };
        for (of, open) in &mut banks.open {
            if self.fault.assumes(planted::BANK_CLEARS_ALL, *of == tx) {
                open.flipped.insert(bank);
            }
        }
        let last = &mut banks.committed[usize::from(bank)][usize::from(tid)];
        let is_late = ids.is_committed(id, *last);
        if !is_late && !self.fault.skips(planted::CID_NOT_UPDATED) {
            *last = id;
        }
        out.event(EventKind::DesignStep, self.area.record(0));
        let Some(open) = self.contents.open.get(&tx) else { return };
        let of_bank: Vec<LineAddr> = open.lines.iter().copied().filter(|line| banks.of(*line) == bank).collect();
        self.drop_older_versions(of_bank.into_iter(), out);
    }

    /// The first acknowledgement completes the transaction. After the last, the records of its copies go, and then its number
    /// is free.
    fn bank_acknowledged(&mut self, tx: TxId, out: &mut Actions) {
        let Some(banks) = &mut self.contents.banks else { return };
        let count = banks.count();
        let Some(open) = banks.open.get_mut(&tx) else { return };
        open.acknowledged += 1;
        let acknowledged = open.acknowledged;
        if acknowledged == 1 {
            self.contents.counters.commits += 1;
            out.event(EventKind::Commit, self.area.record(0));
            out.push(Action::Raise(complete(tx)));
        }
        if acknowledged < count {
            return;
        }
        let slots = self.contents.open.get(&tx).map(|open| self.records_of_commit(open)).unwrap_or_default();
        if slots.is_empty() {
            self.forget_dtx(tx);
        } else {
            self.clear_records(Purpose::Forget(tx), slots, out);
        }
    }

    /// Nothing names the transaction any more.
    pub(super) fn forget_dtx(&mut self, tx: TxId) {
        self.contents.open.remove(&tx);
        if let Some(banks) = &mut self.contents.banks {
            banks.open.remove(&tx);
        }
    }

    /// An abort is complete.
    pub(super) fn forget_aborted(&mut self, tx: TxId) {
        self.contents.open.remove(&tx);
        if let Some(banks) = &mut self.contents.banks {
            banks.abort(tx);
        }
    }

    /// A power failure: DTX_CIDs are battery-backed.
    pub(super) fn keep_dtx_cids(&self, banks: &Banks, sink: &mut CrashSink<'_>) {
        if !self.fault.skips(planted::CIDS_LOST) {
            sink.keep(DTX_CIDS, snapshot::to_bytes(&banks.committed));
        }
    }

    pub(super) fn mark_banks(&self, banks: &Banks, mark: &mut dyn FnMut(&'static str)) {
        let count = usize::from(banks.count());
        let is_between = banks.open.values().any(|of| (1..count).contains(&of.flipped.len()));
        let overflown = |open: &Transaction| open.phase == Phase::Committing && !open.copies.is_empty();
        let situations = [
            ("cut_between_banks", is_between),
            ("ids_wrapped", banks.ids_wrapped),
            ("old_line_of_committing", self.contents.open.values().any(overflown)),
        ];
        situations.into_iter().filter(|(_, is_there)| *is_there).for_each(|(name, _)| mark(name));
    }
}

/// V_commit (section 4.8): the newest DTX_CID of each thread in any bank.
pub(super) struct Consensus {
    ids: Ids,
    /// `None` if no DTX_CID is known: nothing has committed.
    newest: Option<Vec<u8>>,
    fault: ActiveFault,
}

impl Consensus {
    /// `None` if DTX_CIDs survived and are damaged.
    pub fn read(image: &CrashImage, banks: u16, id_bits: u32, fault: ActiveFault) -> Option<Self> {
        let ids = Ids::new(id_bits);
        let mut newest = vec![0; THREADS];
        let Some(bytes) = image.structure(DTX_CIDS) else { return Some(Consensus { ids, newest: None, fault }) };
        let committed: Vec<Vec<u8>> = snapshot::from_bytes(bytes).ok()?;
        if committed.len() != usize::from(banks) || committed.iter().any(|of| of.len() != THREADS) {
            return None;
        }
        let asked = fault.swaps(planted::RECOVERY_ASKS_ONE_BANK, committed.len(), 1);
        for (bank, of_threads) in committed.iter().take(asked).enumerate() {
            for (newest, &id) in newest.iter_mut().zip(of_threads) {
                let (is_newer, is_larger) = (ids.is_committed(*newest, id), id > *newest);
                if bank == 0 || fault.swaps(planted::RECOVERY_TAKES_NUMERIC_MAX, is_newer, is_larger) {
                    *newest = id;
                }
            }
        }
        Some(Consensus { ids, newest: Some(newest), fault })
    }

    /// A consensus in which no bank has committed anything.
    pub fn of_nothing(id_bits: u32, fault: ActiveFault) -> Self {
        Consensus { ids: Ids::new(id_bits), newest: None, fault }
    }

    /// Whether some bank has committed the transaction of that number.
    pub fn has_committed(&self, number: TxId) -> bool {
        let dtx = Dtx::of(number.0);
        let last = self.newest.as_ref().map(|newest| newest[usize::from(dtx.tid)]);
        let is_committed = last.is_some_and(|last| self.ids.is_committed(dtx.id, last));
        is_committed && number.0 == dtx.number() && !self.fault.skips(planted::RECOVERY_IGNORES_CIDS)
    }

    /// Threads number their transactions anew.
    pub fn clear(image: &mut CrashImage, banks: u16) -> Result<(), RecoveryCut> {
        image.keep(DTX_CIDS, snapshot::to_bytes(&vec![vec![0u8; THREADS]; banks.into()]))
    }
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

    #[test]
    fn without_dtx_cids_no_transaction_has_committed() {
        let nothing = Consensus::of_nothing(8, ActiveFault::default());
        // By serial numbers half of all ids lie before 0.
        assert!((0..=255).all(|id| !nothing.has_committed(TxId(Dtx { tid: 0, id }.number()))));
    }
}
