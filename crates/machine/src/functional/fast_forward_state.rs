//! State of a program that runs functionally up to a snapshot point: transactions, and each thread on the core that it would
//! have had.

use crate::machine::detached_program::SnapshotPoint;
use durasim_core::SuspensionFault;
use durasim_isa::Marker;
use durasim_kernel::ThreadId;
use std::collections::{BTreeMap, BTreeSet};

/// Reason for which a program cannot continue functionally after an abort.
pub(super) const ABORT_NOT_UNDONE: &str = "the program aborts a transaction, which functional execution cannot undo";

/// State of a fast-forward.
pub(super) struct FastForwardState {
    pub(super) to: SnapshotPoint,
    pub(super) arrived: bool,
    /// Reason for which the fast-forward cannot continue.
    pub(super) obstacle: Option<String>,
    /// The core of each thread that lives.
    pub(super) cores: BTreeMap<ThreadId, usize>,
    /// The thread that had each core last.
    pub(super) last: Vec<Option<ThreadId>>,
    pub(super) thread: ThreadId,
    pub(super) core: usize,
    /// Time at which the running thread got its core.
    pub(super) since_instructions: u64,
    pub(super) instructions: Vec<u64>,
    pub(super) open: BTreeMap<ThreadId, u64>,
    /// The threads whose transaction is suspended.
    suspended: BTreeSet<ThreadId>,
    /// The hardware design, if it has no suspended transactions.
    refusing_design: Option<&'static str>,
    pub(super) tx_count: u64,
}

impl FastForwardState {
    pub(super) fn new(cores: usize, to: SnapshotPoint, refusing_design: Option<&'static str>) -> Self {
        FastForwardState {
            to,
            arrived: false,
            obstacle: None,
            cores: BTreeMap::new(),
            last: vec![None; cores],
            thread: ThreadId::FIRST,
            core: 0,
            since_instructions: 0,
            instructions: vec![0; cores],
            open: BTreeMap::new(),
            suspended: BTreeSet::new(),
            refusing_design,
            tx_count: 0,
        }
    }

    pub(super) fn marker(&mut self, marker: Marker, argument: u64) {
        let obstacle = match marker {
            Marker::SnapshotPoint => {
                self.arrived = self.to == SnapshotPoint::Number(argument);
                None
            }
            Marker::RoiBegin if self.to == SnapshotPoint::Roi => {
                self.arrived = true;
                None
            }
            Marker::RoiBegin => Some("the region of interest begins before that snapshot point".to_owned()),
            Marker::TxBegin => {
                self.tx_count += 1;
                self.open.insert(self.thread, self.tx_count).map(|_| "a transaction begins inside another one".into())
            }
            Marker::TxSuspend | Marker::TxResume => {
                let fault = self.suspend(marker == Marker::TxSuspend).err();
                fault.map(|fault| fault.describe(self.refusing_design.unwrap_or_default()))
            }
            Marker::TxCommit if self.suspended.contains(&self.thread) => Some(SuspensionFault::Ended.describe("")),
            Marker::TxCommit => {
                let none = self.open.remove(&self.thread).is_none();
                none.then(|| "a transaction ends although none is open".into())
            }
            Marker::TxAbort => Some(ABORT_NOT_UNDONE.into()),
            _ => None,
        };
        if let Some(obstacle) = obstacle {
            self.obstacle.get_or_insert(obstacle);
        }
    }

    /// The thread suspends its transaction, or resumes it.
    fn suspend(&mut self, is_suspended: bool) -> Result<(), SuspensionFault> {
        if self.refusing_design.is_some() {
            return Err(SuspensionFault::Unsupported);
        }
        let is_open = self.open.contains_key(&self.thread);
        match is_suspended {
            true if !is_open => Err(SuspensionFault::NoTransaction),
            true if !self.suspended.insert(self.thread) => Err(SuspensionFault::Nested),
            false if !self.suspended.remove(&self.thread) => Err(SuspensionFault::NotSuspended),
            _ => Ok(()),
        }
    }

    /// Finds the core for a thread: the one it had, else the allowed one with the fewest threads.
    pub(super) fn assign_core(&mut self, thread: ThreadId, affinity: u64) {
        let threads_on = |core: usize| self.cores.values().filter(|&&c| c == core).count();
        let cores = (0..self.last.len()).filter(|core| affinity >> core & 1 == 1);
        let had = self.cores.get(&thread).copied().filter(|core| affinity >> core & 1 == 1);
        self.core = had.or_else(|| cores.min_by_key(|&core| threads_on(core))).unwrap_or(0);
        self.cores.insert(thread, self.core);
        self.last[self.core] = Some(thread);
        self.thread = thread;
    }
}
