//! The commit of LAD-LLC: lines are in the last level (prepare), then every bank is told (commit), and the first
//! acknowledgement completes the transaction. Recovery commits everywhere what any bank has committed.

use crate::dtx::{Dtx, Ids, THREADS};
use crate::kiln::banks::{Banks, complete, tx_of};
use crate::kiln::planted;
use crate::kiln::state::{Purpose, State};
use crate::kiln::transaction::{Phase, Transaction};
use durasim_design::{
    Action, Actions, ActiveFault, CrashImage, CrashSink, Ctx, Gate, LineTag, Message, Node, RecoveryCut, Wait, snapshot,
};
use durasim_types::{CoreId, Cycle, EventKind, LineAddr, StallCause, TxId};

/// Message kinds.
const DTX_COMMIT: u16 = 1;
const COMMIT_ACK: u16 = 2;
/// A thread whose identifiers are all in use looks again after so many cycles.
const LOOK_AGAIN_CYCLES: Cycle = 100;
/// DTX_CID of all banks.
pub(in crate::kiln) const DTX_CIDS: &str = "lad-llc.dtx_cids";

impl State {
    /// DTX_Start takes the next DTX_ID of the thread; a gate if it has to wait for one.
    pub(in crate::kiln) fn begin_dtx(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Option<Gate> {
        let banks = self.banks.as_mut()?;
        let tid = u8::try_from(cx.thread).expect("there are 256 LAD_TIDs");
        if banks.lacks_ids(tid) {
            out.stalls_for(StallCause::Structure(1));
            return Some(Gate::Retry(Wait::Cycles(LOOK_AGAIN_CYCLES)));
        }
        banks.begin(tx, tid);
        None
    }

    /// Stores to a line and its eviction wait cycle by cycle while the commit of its transaction is in flight to its bank
    /// [D:lad-llc-commit]; not for its message itself, which several may wait for.
    pub(in crate::kiln) fn commit_in_flight(&self, tag: LineTag) -> Option<Wait> {
        self.banks.as_ref()?;
        let is_in_flight = self.contents.open.get(&tx_of(tag)).is_some_and(|open| open.phase == Phase::Committing);
        // A fault that pushes lines behind the commit evicts them before the message is sent.
        let is_faulty = self.fault.is(planted::COMMIT_OVERTAKEN) || self.fault.is(planted::FLUSH_NOT_AWAITED);
        let waits = tag.is_some() && is_in_flight && !self.has_flipped_in_bank(tag) && !is_faulty;
        waits.then_some(Wait::Cycles(1))
    }

    /// The commit phase: every bank is told.
    pub(in crate::kiln) fn tell_banks(&mut self, cx: &Ctx, tx: TxId, banks: u16, out: &mut Actions) -> Gate {
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.phase = Phase::Committing;
        }
        out.prepared();
        for bank in 0..banks {
            let message = Message { kind: DTX_COMMIT, a: tx.0, b: u64::from(cx.core.0) };
            let (from, to) = (Node::Core(cx.core), Node::LlcBank(bank));
            out.push(Action::Send { from, to, message, size_bytes: 0 });
        }
        if self.fault.is(planted::COMMIT_NOT_AWAITED) {
            return Gate::Done;
        }
        Gate::After(Wait::Signal(complete(tx)))
    }

    /// DTX_Commit has arrived at a bank, or an acknowledgement at a core.
    pub(in crate::kiln) fn bank_message(&mut self, at: Node, message: Message, out: &mut Actions) {
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
        let Some(banks) = &mut self.banks else { return };
        let ids = banks.ids();
        let Some(open) = banks.open.get_mut(&tx) else { return };
        open.flipped.insert(bank);
        if self.fault.is(planted::BANK_CLEARS_ALL) {
            for open in banks.open.values_mut() {
                open.flipped.insert(bank);
            }
        }
        let Dtx { tid, id } = banks.open[&tx].dtx;
        let last = &mut banks.committed[usize::from(bank)][usize::from(tid)];
        let is_late = ids.is_committed(id, *last);
        if !is_late && !self.fault.is(planted::CID_NOT_UPDATED) {
            *last = id;
        }
        out.event(EventKind::DesignStep, self.area.record(0));
        let Some(open) = self.contents.open.get(&tx) else { return };
        let of_bank: Vec<LineAddr> = open.lines.iter().copied().filter(|line| banks.of(*line) == bank).collect();
        self.drop_older_of(of_bank.into_iter(), out);
    }

    /// The first acknowledgement completes the transaction. After the last, the records of its copies go, and then its number
    /// is free.
    fn bank_acknowledged(&mut self, tx: TxId, out: &mut Actions) {
        let Some(banks) = &mut self.banks else { return };
        let count = banks.count();
        let Some(open) = banks.open.get_mut(&tx) else { return };
        open.acknowledged += 1;
        let acknowledged = open.acknowledged;
        if acknowledged == 1 {
            self.counters.commits += 1;
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
    pub(in crate::kiln) fn forget_dtx(&mut self, tx: TxId) {
        self.contents.open.remove(&tx);
        if let Some(banks) = &mut self.banks {
            banks.open.remove(&tx);
        }
    }

    /// An abort is complete.
    pub(in crate::kiln) fn forget_aborted(&mut self, tx: TxId) {
        self.contents.open.remove(&tx);
        if let Some(banks) = &mut self.banks {
            banks.abort(tx);
        }
    }

    /// A power failure: DTX_CIDs are battery-backed.
    pub(in crate::kiln) fn keep_dtx_cids(&self, sink: &mut CrashSink<'_>) {
        if let Some(banks) = &self.banks
            && !self.fault.is(planted::CIDS_LOST)
        {
            sink.keep(DTX_CIDS, snapshot::to_bytes(&banks.committed));
        }
    }

    pub(in crate::kiln) fn mark_banks(&self, banks: &Banks, mark: &mut dyn FnMut(&'static str)) {
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
pub(in crate::kiln) struct Consensus {
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
        for (bank, of_threads) in committed.iter().enumerate() {
            for (newest, &id) in newest.iter_mut().zip(of_threads) {
                let is_newer = match fault.is(planted::RECOVERY_TAKES_NUMERIC_MAX) {
                    true => id > *newest,
                    false => ids.is_committed(*newest, id),
                };
                let is_asked = bank == 0 || !fault.is(planted::RECOVERY_ASKS_ONE_BANK);
                if bank == 0 || is_newer && is_asked {
                    *newest = id;
                }
            }
        }
        Some(Consensus { ids, newest: Some(newest), fault })
    }

    /// What no bank has committed.
    pub fn of_nothing(id_bits: u32, fault: ActiveFault) -> Self {
        Consensus { ids: Ids::new(id_bits), newest: None, fault }
    }

    /// Whether some bank has committed the transaction of that number.
    pub fn has_committed(&self, number: TxId) -> bool {
        let dtx = Dtx::of(number.0);
        let last = self.newest.as_ref().map(|newest| newest[usize::from(dtx.tid)]);
        let is_committed = last.is_some_and(|last| self.ids.is_committed(dtx.id, last));
        is_committed && number.0 == dtx.number() && !self.fault.is(planted::RECOVERY_IGNORES_CIDS)
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
    fn without_dtx_cids_no_transaction_has_committed() {
        let nothing = Consensus::of_nothing(8, ActiveFault::default());
        // By serial numbers half of all ids lie before 0.
        assert!((0..=255).all(|id| !nothing.has_committed(TxId(Dtx { tid: 0, id }.number()))));
    }
}
