//! The registers of section 4.1: GlobalTxID, shared by all cores, and PerCoreTxID and PerCoreTxLen of each core.
//!
//! The last two belong to the thread: "if a context switch occurs, the values are saved as part of the thread's context
//! for an afterward execution". They are kept here by transaction, with the core that has them in its registers.

use super::planted;
use durasim_contract::{ActiveFault, Token};
use durasim_types::{CoreId, TxId};
use serde::{Deserialize, Serialize};

/// The state of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Its lines carry TransTags with a TxState of '1'.
    Running,
    /// The controller is about to take its TxLen. Whether it has committed is decided there and nowhere else: until the
    /// acknowledgement, it may not be aborted, and no other core may see its lines.
    StoringLen(Token),
    /// The controller has its TxLen: the states are reset, the commit instruction does not know yet.
    Committed,
}

/// A transaction between tx_start and the end of its commit or abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenTx {
    /// PerCoreTxID: what the hardware calls it, unique among those that are open.
    pub hardware_id: u64,
    /// PerCoreTxLen: lines covered so far.
    pub len: u32,
    pub phase: Phase,
    /// The core whose registers these are; `None` while they are saved in the context of a thread that waits.
    pub core: Option<CoreId>,
}

/// The registers of all cores and of all threads that wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Registers {
    global_tx_id: u64,
    /// Ordered by number. There are few, and every access to a tagged line asks whether one is open.
    transactions: Vec<(TxId, OpenTx)>,
}

impl Registers {
    pub fn new() -> Self {
        Registers { global_tx_id: 1, transactions: Vec::new() }
    }

    /// Whether a TxState of this transaction is '1'.
    pub fn is_open(&self, tx: TxId) -> bool {
        self.get(tx).is_some_and(|open| open.phase != Phase::Committed)
    }

    /// Whether the engine may carry entries of a transaction home (section 4.2): it has committed.
    pub fn may_migrate(&self, tx: TxId, fault: ActiveFault) -> bool {
        fault.assumes(planted::MIGRATES_UNCOMMITTED, !self.is_open(tx))
    }

    #[inline]
    pub fn get(&self, tx: TxId) -> Option<&OpenTx> {
        self.transactions.iter().find(|(number, _)| *number == tx).map(|(_, open)| open)
    }

    pub fn get_mut(&mut self, tx: TxId) -> Option<&mut OpenTx> {
        self.transactions.iter_mut().find(|(number, _)| *number == tx).map(|(_, open)| open)
    }

    /// All open transactions by their number.
    pub fn all(&self) -> impl Iterator<Item = (TxId, &OpenTx)> {
        self.transactions.iter().map(|(tx, open)| (*tx, open))
    }

    /// The identifier that the next tx_start takes from GlobalTxID, which has this many bits: one that an open transaction
    /// still uses is passed over when the register has wrapped around. `None` if all are in use.
    pub fn next_identifier(&self, bits: u32, fault: ActiveFault) -> Option<u64> {
        let used = self.transactions.len() as u64;
        let candidates = (0..=used).map(|n| (self.global_tx_id + n) & ((1 << bits) - 1));
        let is_free = |id: u64| self.all().all(|(_, open)| open.hardware_id != id);
        let mut free = candidates.filter(|id| fault.assumes(planted::IDENTIFIER_SHARED, is_free(*id)));
        if used >> bits == 0 { free.next() } else { None }
    }

    /// Listing 1, tx_start: PerCoreTxID takes the identifier, PerCoreTxLen becomes zero, GlobalTxID continues.
    pub fn begin(&mut self, tx: TxId, core: CoreId, hardware_id: u64) {
        self.global_tx_id = hardware_id + 1;
        let open = OpenTx { hardware_id, len: 0, phase: Phase::Running, core: Some(core) };
        let place = self.transactions.partition_point(|(number, _)| *number < tx);
        self.transactions.insert(place, (tx, open));
    }

    /// The transaction is over.
    pub fn end(&mut self, tx: TxId) -> Option<OpenTx> {
        let place = self.transactions.iter().position(|(number, _)| *number == tx)?;
        Some(self.transactions.remove(place).1)
    }

    /// Section 4.1, context switch: the registers of the leaving thread go into its context, those of the coming thread
    /// into the core.
    pub fn switch(&mut self, core: CoreId, leaving: Option<TxId>, coming: Option<TxId>, fault: ActiveFault) {
        for (tx, place) in [(leaving, None), (coming, Some(core))] {
            if let Some(open) = tx.and_then(|tx| self.get_mut(tx)) {
                open.core = place;
            }
        }
        let other = self.all().find(|(tx, _)| Some(*tx) != coming).map(|(_, open)| open.hardware_id);
        if let Some(open) = coming.and_then(|tx| self.get_mut(tx)) {
            let own = open.hardware_id;
            open.hardware_id = fault.swaps(planted::SWITCH_MIXES_REGISTERS, own, other.unwrap_or(own));
        }
    }

    /// The transaction whose TxLen is in flight under this token.
    pub fn storing_len_under(&mut self, token: Token) -> Option<(TxId, &mut OpenTx)> {
        let mut all = self.transactions.iter_mut();
        all.find(|(_, open)| open.phase == Phase::StoringLen(token)).map(|(tx, open)| (*tx, open))
    }
}
