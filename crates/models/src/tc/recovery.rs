//! Power failure and recovery (section 3, "multiversioning").

use super::{Bounds, EntryState, Machine, Phase, ProtocolFault, TcProtocol, TransactionCaches, Tx, Version};
use crate::protocol::{Carried, PowerFailure, Recovery};
use std::collections::BTreeSet;

/// An entry as it survives: line, data, and whether it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Saved {
    /// The line.
    pub line: u8,
    /// The data.
    pub version: Version,
    /// Whether it is to be written home.
    pub committed: bool,
}

/// The state that a power failure leaves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Durable {
    /// Each line in the NVRAM.
    pub home: Vec<Version>,
    /// The transaction cache of each core, oldest entry first.
    pub fifos: Vec<Vec<Saved>>,
    /// Old lines of transactions that overflowed, by core: line and version.
    pub shadows: Vec<Vec<(u8, Version)>>,
}

/// One durable write of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryWrite {
    /// A line is written home.
    Home(u8, Version),
    /// The transaction cache of a core is cleared, its overflow registers with it.
    Clear(u8),
}

/// The outcomes that are right after this power failure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Judge {
    /// The committed versions.
    pub truth: Vec<Version>,
    /// Transactions that are not.
    pub never: BTreeSet<Tx>,
}

impl Durable {
    pub(super) fn write(&mut self, write: RecoveryWrite) {
        match write {
            RecoveryWrite::Home(line, version) => self.home[usize::from(line)] = version,
            RecoveryWrite::Clear(core) => {
                self.fifos[usize::from(core)].clear();
                self.shadows[usize::from(core)].clear();
            }
        }
    }
}

impl TransactionCaches {
    /// Power fails: the NVRAM and the transaction caches are left. What is in flight is lost.
    pub(super) fn crash(&self, m: &Machine) -> PowerFailure<TcProtocol> {
        let overflowed = |version: &Version| m.overflows.iter().any(|o| Some(o.tx) == version.tx);
        let save = |core: usize| {
            let entries = m.occupied(core).map(|e| {
                let open = matches!(e.state, EntryState::Active | EntryState::Copying | EntryState::Copied);
                let committed = !open && !overflowed(&e.version) || self.has(ProtocolFault::RecoveryReplaysActive);
                Saved { line: e.line, version: e.version, committed }
            });
            entries.collect::<Vec<_>>()
        };
        let shadows = |core: u8| {
            let own = m.overflows.iter().filter(move |o| o.core == core).flat_map(|o| &o.shadows);
            own.filter(|s| s.safe).map(|s| (s.line, s.old)).collect::<Vec<_>>()
        };
        let durable = Durable {
            home: m.home.clone(),
            fifos: (0..m.fifos.len()).map(save).collect(),
            shadows: (0..self.bounds.cores).map(shadows).collect(),
        };
        let open = (0..self.bounds.threads).filter(|t| m.thread(*t).phase != Phase::Idle).map(|t| m.tx(t));
        let judge = Judge { truth: m.truth.clone(), never: m.aborted.iter().copied().chain(open).collect() };
        let numbers = m.threads.iter().map(|t| t.number).collect();
        let carried = Carried { numbers, plain_stores: 0, lives_left: m.lives_left };
        PowerFailure { judge, durable, carried }
    }

    /// The writes of a recovery from this state, in order.
    pub(super) fn plan(&self, durable: &Durable) -> Vec<RecoveryWrite> {
        let shadows = durable.shadows.iter().flatten().filter(|_| !self.has(ProtocolFault::RecoveryForgetsShadows));
        let undo = shadows.map(|(line, old)| RecoveryWrite::Home(*line, *old));
        let redo = durable.fifos.iter().flat_map(|fifo| {
            let committed = fifo.iter().filter(|saved| saved.committed);
            let mut writes: Vec<_> = committed.map(|s| RecoveryWrite::Home(s.line, s.version)).collect();
            if self.has(ProtocolFault::RecoveryNewestFirst) {
                writes.reverse();
            }
            writes
        });
        let full = |core: &u8| {
            !durable.fifos[usize::from(*core)].is_empty() || !durable.shadows[usize::from(*core)].is_empty()
        };
        let clear = (0..self.bounds.cores).filter(full).map(RecoveryWrite::Clear);
        let writes: Vec<RecoveryWrite> = match self.has(ProtocolFault::RecoveryClearsFirst) {
            true => clear.chain(undo).chain(redo).collect(),
            false => undo.chain(redo).chain(clear).collect(),
        };
        writes
    }
}

/// The next run: what recovery left is what is right from now on.
pub(super) fn restart(bounds: &Bounds, recovery: &Recovery<TcProtocol>) -> Machine {
    let mut m = Machine::new(bounds);
    m.home.clone_from(&recovery.durable.home);
    m.truth.clone_from(&m.home);
    m.lives_left = recovery.carried.lives_left - 1;
    for (thread, number) in m.threads.iter_mut().zip(&recovery.carried.numbers) {
        thread.number = *number;
    }
    m
}
