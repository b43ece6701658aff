//! Power failure and recovery (sections 3.4 and 4.8).

use super::{Bounds, Dtx, Lad, LadProtocol, Machine, Phase, ProtocolFault, Record, Tx, Version};
use crate::protocol::{Carried, PowerFailure, Recovery};
use std::collections::BTreeSet;

/// An entry of the purgatory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Saved {
    /// The line.
    pub line: u8,
    /// The data.
    pub version: Version,
    /// The transaction of a speculative entry; none: an ordinary one after such an entry of its line.
    pub held: Option<Dtx>,
}

/// The durable state of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kept {
    /// DTX_CID.
    pub committed: Vec<u8>,
    /// The undo log, oldest entry first.
    pub log: Vec<Record>,
}

/// The state that a power failure leaves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Durable {
    /// Each line in the media.
    pub home: Vec<Version>,
    /// The durable state of each controller.
    pub kept: Vec<Kept>,
    /// The purgatory, oldest entry first.
    pub purgatory: Vec<Saved>,
}

/// One durable write of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryWrite {
    /// A line is written home.
    Home(u8, Version),
    /// The undo logs are empty.
    ClearLogs,
    /// The purgatory is empty.
    ClearPurgatory,
    /// DTX_CID begins anew.
    ClearIds,
}

/// A transaction whose DTX_Commit was sent and that was not complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Doubt {
    /// The transaction.
    pub tx: Tx,
    /// Whether a controller has received its DTX_Commit.
    pub is_received: bool,
    /// Its lines, with its versions of them.
    pub lines: Vec<(u8, Version)>,
}

/// The outcomes that are right after this power failure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Judge {
    /// The version of each line that must survive, except for transactions in doubt.
    pub truth: Vec<Version>,
    /// Newer versions of each line that may have survived.
    pub loose: Vec<Vec<Version>>,
    /// Transactions in doubt.
    pub doubts: Vec<Doubt>,
    /// Transactions that have not committed.
    pub never: BTreeSet<Tx>,
}

impl Durable {
    pub(super) fn write(&mut self, write: RecoveryWrite) {
        match write {
            RecoveryWrite::Home(line, version) => self.home[usize::from(line)] = version,
            RecoveryWrite::ClearLogs => self.kept.iter_mut().for_each(|kept| kept.log.clear()),
            RecoveryWrite::ClearPurgatory => self.purgatory.clear(),
            RecoveryWrite::ClearIds => self.kept.iter_mut().for_each(|kept| kept.committed.fill(0)),
        }
    }
}

impl Lad {
    /// Power fails: speculative entries go to the purgatory, and with them the ordinary ones after one of their line.
    /// Others are written home. What no queue has accepted is lost, and so are the caches.
    pub(super) fn crash(&self, m: &Machine) -> PowerFailure<LadProtocol> {
        let mut home = m.home.clone();
        let mut purgatory = Vec::new();
        for mc in &m.controllers {
            let mut held = BTreeSet::new();
            for entry in &mc.queue {
                if entry.held.is_some() {
                    held.insert(entry.line);
                }
                let goes_home = entry.held.is_none() && self.has(ProtocolFault::WriteBehindHeldGoesHome);
                if held.contains(&entry.line) && !goes_home {
                    purgatory.push(Saved { line: entry.line, version: entry.version, held: entry.held });
                } else {
                    home[usize::from(entry.line)] = entry.version;
                }
            }
        }
        if self.has(ProtocolFault::PurgatoryNewestFirst) {
            purgatory.reverse();
        }
        let kept = m.controllers.iter().map(|mc| Kept { committed: mc.committed.clone(), log: mc.log.clone() });
        let durable = Durable { home, kept: kept.collect(), purgatory };
        let numbers = m.threads.iter().map(|t| t.number).collect();
        let carried = Carried { numbers, plain_stores: m.plain_stores, lives_left: m.lives_left };
        PowerFailure { judge: self.judge(m), durable, carried }
    }

    fn judge(&self, m: &Machine) -> Judge {
        let open = (0..self.bounds.threads).filter(|t| matches!(m.thread(*t).phase, Phase::Run | Phase::Flush));
        let in_doubt = (0..self.bounds.threads).filter(|t| m.thread(*t).phase == Phase::Commit);
        let doubt = |thread: u8| {
            let tx = m.tx(thread);
            let lines = (0..self.bounds.lines).filter(|_| !m.thread(thread).is_aborted);
            let lines = lines.filter_map(|line| Some((line, m.written(thread, line)?)));
            Doubt { tx, is_received: m.is_received(tx), lines: lines.collect() }
        };
        Judge {
            truth: m.truth.clone(),
            loose: m.loose.clone(),
            doubts: in_doubt.map(doubt).collect(),
            never: m.aborted.iter().copied().chain(open.map(|t| m.tx(t))).collect(),
        }
    }

    /// V_commit: the newest DTX_CID of a thread, so what one controller has committed all have (step 1 of section 4.8).
    fn newest(&self, durable: &Durable, thread: usize) -> u8 {
        let ids = self.bounds.ids();
        let mut of_controllers = durable.kept.iter().map(|kept| kept.committed[thread]);
        let first = of_controllers.next().unwrap_or(0);
        of_controllers.fold(first, |newest, id| match self.has(ProtocolFault::RecoveryTakesNumericMax) {
            true => newest.max(id),
            false if ids.is_committed(newest, id) => id,
            false => newest,
        })
    }

    fn has_committed(&self, durable: &Durable, dtx: Dtx, controller: usize) -> bool {
        let thread = usize::from(dtx.thread);
        let last = match self.has(ProtocolFault::RecoveryWithoutConsensus) {
            true => durable.kept[controller].committed[thread],
            false => self.newest(durable, thread),
        };
        self.bounds.ids().is_committed(dtx.id, last)
    }

    /// The writes of a recovery from this state, in order: the undo logs, then the purgatory, then both are cleared
    /// (steps 2 and 3 of section 4.8). DTX_CID is cleared last, as a recovery that begins anew judges the purgatory by it.
    pub(super) fn plan(&self, durable: &Durable) -> Vec<RecoveryWrite> {
        let mut writes = Vec::new();
        if self.has(ProtocolFault::RecoveryClearsFirst) && !durable.purgatory.is_empty() {
            writes.push(RecoveryWrite::ClearPurgatory);
        }
        for (number, kept) in durable.kept.iter().enumerate() {
            let is_undone = |record: &&Record| {
                let of_open = record.dtx.is_some_and(|dtx| !self.has_committed(durable, dtx, number));
                let of_any = record.dtx.is_some() && self.has(ProtocolFault::RecoveryUndoesCommitted);
                (of_open || of_any) && !self.has(ProtocolFault::RecoveryUndoesNothing)
            };
            writes.extend(kept.log.iter().filter(is_undone).map(|record| RecoveryWrite::Home(record.line, record.old)));
        }
        let entries = match self.fault {
            Some(ProtocolFault::RecoveryDropsPurgatory) => 0,
            Some(ProtocolFault::RecoveryOverlooksLast) => durable.purgatory.len().saturating_sub(1),
            _ => durable.purgatory.len(),
        };
        for saved in &durable.purgatory[..entries] {
            let controller = self.bounds.controller_of(saved.line);
            let is_committed = saved.held.is_none_or(|dtx| self.has_committed(durable, dtx, controller));
            if is_committed || self.has(ProtocolFault::RecoveryWritesUncommitted) {
                writes.push(RecoveryWrite::Home(saved.line, saved.version));
            }
        }
        let mut clears = Vec::new();
        if durable.kept.iter().any(|kept| !kept.log.is_empty()) {
            clears.push(RecoveryWrite::ClearLogs);
        }
        if !durable.purgatory.is_empty() && !self.has(ProtocolFault::RecoveryClearsFirst) {
            clears.push(RecoveryWrite::ClearPurgatory);
        }
        if durable.kept.iter().flat_map(|kept| &kept.committed).any(|id| *id != 0) {
            clears.push(RecoveryWrite::ClearIds);
        }
        if self.has(ProtocolFault::RecoveryForgetsIdsFirst) {
            clears.reverse();
        }
        writes.extend(clears);
        writes
    }
}

/// The next life: what recovery left is what is right from now on, and threads number their transactions anew.
pub(super) fn restart(bounds: &Bounds, recovery: &Recovery<LadProtocol>) -> Machine {
    let mut m = Machine::new(bounds);
    m.home.clone_from(&recovery.durable.home);
    m.truth.clone_from(&m.home);
    m.plain_stores = recovery.carried.plain_stores;
    m.lives_left = recovery.carried.lives_left - 1;
    for mc in &mut m.controllers {
        mc.committed.fill(0);
    }
    for (thread, number) in m.threads.iter_mut().zip(&recovery.carried.numbers) {
        (thread.number, thread.id) = (*number, 0);
    }
    m
}
