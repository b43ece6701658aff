//! Conflicts: somebody asks for a line of another transaction whose TxState is '1' (sections 4.2, "transaction
//! abortion", 4.5.1 and 4.5.2, "isolation"). No other core may read or change an uncommitted version; false sharing counts like any other access, because a line is the unit.
//!
//! In a cache the transaction that owns the line aborts, as in Intel's RTM, which the paper compares itself with
//! [D:hercules-conflict]. In the log, found through the eWPQ, the asking transaction aborts "with an exception"; a
//! request outside of transactions has nothing to abort, so there too the owner does.
//!
//! Hardware guarantees no progress: two transactions may livelock by aborting each other. Repeated aborts are
//! the program's business (section 4.5.2): it retries, and backs off if it has to.

use super::State;
use super::registers::Phase;
use super::spec::ConflictLoser;
use durasim_design::Wait;
use durasim_types::TxId;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConflictOutcome {
    /// There is no conflict.
    Grant,
    /// Ask again when the fate of the owner is known.
    Wait(Wait),
    /// This transaction aborts.
    Abort(TxId),
}

impl State {
    /// Compares the TxID and TxState of a line with the requester's.
    pub(super) fn judge(&self, owner: TxId, requester: Option<TxId>, loser: ConflictLoser) -> ConflictOutcome {
        if !self.is_foreign(owner, requester) {
            return ConflictOutcome::Grant;
        }
        match self.registers.get(owner).map(|open| open.phase) {
            None | Some(Phase::Committed) => ConflictOutcome::Grant,
            Some(Phase::StoringLen(token)) => ConflictOutcome::Wait(Wait::Acked(token)),
            Some(Phase::Running) => ConflictOutcome::Abort(match loser {
                ConflictLoser::Owner => owner,
                ConflictLoser::Requester => requester.unwrap_or(owner),
            }),
        }
    }
}
