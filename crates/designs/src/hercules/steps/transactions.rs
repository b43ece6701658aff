//! Steps of transactions, and of their lines in the caches.

use crate::hercules::conflict::ConflictOutcome;
use crate::hercules::registers::{OpenTx, Phase, Registers};
use crate::hercules::state::State;
use crate::hercules::{RESET_STATES, planted};
use durasim_design::{Action, Actions, ActiveFault, LineTag, Store, Token};
use durasim_types::{CoreId, TxId};

impl Registers {
    /// Whether tx_start may take an identifier: no open transaction uses it.
    pub fn may_be_taken(&self, identifier: u64, fault: ActiveFault) -> bool {
        if fault.is(planted::IDENTIFIER_SHARED) {
            return true;
        }
        self.all().all(|(_, open)| open.hardware_id != identifier)
    }
}

/// Begins, commits and aborts.
impl State {
    /// The controller where entries of the last user of an identifier are left. They must be home before its TxLen
    /// becomes zero.
    pub fn controller_with_entries_of(&self, identifier: u64) -> Option<usize> {
        if self.fault.is(planted::IDENTIFIER_WITH_ENTRIES) {
            return None;
        }
        self.parts.iter().position(|part| part.ewpq.names(identifier))
    }

    /// Listing 1, tx_start: TxLen becomes zero.
    pub fn clear_tx_len(&mut self, identifier: u64, out: &mut Actions) {
        if self.fault.is(planted::TX_LEN_KEPT_AT_BEGIN) {
            return;
        }
        self.store_tx_len(identifier, 0, out);
    }

    /// Listing 1, tx_commit: TxLen goes into the profile of the transaction, which is the commit point. Gives what the
    /// reset of the states waits for, if the controller has yet to take it.
    pub fn store_commit_point(&mut self, tx: TxId, open: OpenTx, out: &mut Actions) -> Option<Token> {
        if self.fault.is(planted::STATES_RESET_FIRST) {
            out.push(Action::Resume { id: RESET_STATES | tx.0 });
        }
        if open.len == 0 || self.fault.is(planted::TX_LEN_SKIPPED) {
            return None;
        }
        let neighbour = u64::from(self.fault.is(planted::TX_LEN_OF_ANOTHER));
        let token = self.store_tx_len(open.hardware_id ^ neighbour, open.len, out);
        token.filter(|_| !self.fault.is(planted::TX_LEN_NOT_AWAITED))
    }

    /// Listing 1, tx_abort: the lines of the transaction leave the caches.
    pub fn invalidate_lines(&self, tx: TxId, out: &mut Actions) {
        if self.fault.is(planted::ABORT_KEEPS_LINES) {
            return;
        }
        out.push(Action::InvalidateTagged(tx));
    }

    /// Listing 1, the end of tx_abort: the entries are recycled.
    pub fn forget(&mut self, tx: TxId, out: &mut Actions) {
        for part in &mut self.parts {
            if self.fault.is(planted::ABORT_KEEPS_ENTRIES) {
                part.ewpq.committed(tx);
                continue;
            }
            for home in part.ewpq.homes_of(tx) {
                part.take(home, out);
            }
        }
    }

    /// Section 4.1, context switch: the registers of the leaving thread go into its context, those of the coming thread
    /// into the core.
    pub fn switch_registers(&mut self, core: CoreId, leaving: Option<TxId>, coming: Option<TxId>) {
        self.registers.switch(core, leaving, coming);
        if self.fault.is(planted::SWITCH_MIXES_REGISTERS)
            && let Some(coming) = coming
        {
            let other = self.registers.all().find(|(tx, _)| *tx != coming).map(|(_, open)| open.hardware_id);
            if let (Some(other), Some(open)) = (other, self.registers.get_mut(coming)) {
                open.hardware_id = other;
            }
        }
    }
}

/// Caches.
impl State {
    /// Listing 2: the older dirty version goes down before a transactional store.
    #[inline]
    pub fn copy_older_version_down(&mut self, store: &Store<'_>, out: &mut Actions) {
        if !store.dirty || self.fault.is(planted::COPY_DOWN_FORGOTTEN) {
            return;
        }
        self.counters.copy_downs += 1;
        out.push(Action::CopyDown(store.line()));
    }

    /// Whether the older version goes down before an uncommitted one takes its place: it is the one to come back to.
    #[inline]
    pub fn older_version_goes_down(&self, resident: LineTag, incoming: LineTag) -> bool {
        if self.fault.is(planted::MERGE_OVERWRITES_OLDER) {
            return false;
        }
        incoming.is_some() && !resident.is_some()
    }

    /// The transaction of a line that leaves the LLC, if it is open: its lines go to the log and not home. It may have
    /// committed while the line waited.
    #[inline]
    pub fn uncommitted_owner(&self, tx: TxId) -> Option<OpenTx> {
        if self.fault.is(planted::TAGGED_LINES_GO_HOME) {
            return None;
        }
        self.registers.get(tx).filter(|open| open.phase != Phase::Committed).copied()
    }
}

/// Conflicts.
impl State {
    /// Whether a request for a line of an open transaction is a conflict: any but its own is.
    #[inline]
    pub fn is_foreign(&self, owner: TxId, requester: Option<TxId>) -> bool {
        if self.fault.is(planted::CONFLICTS_IGNORED) {
            return false;
        }
        requester != Some(owner)
    }

    /// What becomes of a line of a transaction that another core wants: TxID and TxState are compared.
    #[inline]
    pub fn judge_probe(&self, owner: TxId, requester: Option<TxId>) -> ConflictOutcome {
        if self.fault.is(planted::PROBES_GRANTED) {
            return ConflictOutcome::Grant;
        }
        self.judge(owner, requester, self.spec.conflict_loser)
    }
}
