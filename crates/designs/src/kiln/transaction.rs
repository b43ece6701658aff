//! Kiln's state of an open transaction, and the FIFOs that name its lines.

use durasim_contract::Token;
use durasim_types::{CoreId, Cycle, LineAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The progress of the copy-on-write of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CopyStage {
    /// Its committed version is written to its home address first, if a cache has it.
    Reserved,
    /// The old line is in flight to the copy area.
    Copying(Token),
    /// It is there; the record that names its home is in flight.
    Recording(Token),
    /// Both are durable: new data may go home.
    Safe,
}

impl CopyStage {
    /// The acknowledgement to wait for before new data may be written to its home address.
    pub(super) fn token(self) -> Option<Token> {
        match self {
            CopyStage::Copying(token) | CopyStage::Recording(token) => Some(token),
            CopyStage::Reserved | CopyStage::Safe => None,
        }
    }
}

/// The copy of a line as it was before its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OldLine {
    /// Its place in the copy area.
    pub slot: u64,
    pub stage: CopyStage,
}

/// The state of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    Running,
    /// Its lines are being flushed into the last level, since this cycle; the FIFOs take this number of cycles.
    Flushing {
        since: Cycle,
        walk_cycles: Cycle,
        token: Token,
    },
    /// Its number is in a committing register: it has committed, and its lines change their states.
    Flipping,
    /// The first half of its lines, by address, has.
    HalfFlipped,
    /// It aborts: its old lines are being written home.
    Restoring(Token),
    /// They are home; the records of the copies are being cleared.
    Forgetting(Token),
    /// With distributed commits: DTX_Commit is in flight to the banks.
    Committing,
}

/// An open transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Transaction {
    /// The core on which it began, whose committing register it uses.
    pub home: CoreId,
    pub phase: Phase,
    /// Lines that it has written.
    pub lines: BTreeSet<LineAddr>,
    /// Those that a FIFO names.
    pub tracked: BTreeSet<LineAddr>,
    /// Those that the fall-back path has copied, or is copying.
    pub copies: BTreeMap<LineAddr, OldLine>,
    /// Lines that have left a FIFO go home under this token, where queues are lost and the commit waits for them.
    pub going_home: Option<Token>,
}

impl Transaction {
    pub(super) fn new(home: CoreId) -> Self {
        Transaction {
            home,
            phase: Phase::Running,
            lines: BTreeSet::new(),
            tracked: BTreeSet::new(),
            copies: BTreeMap::new(),
            going_home: None,
        }
    }

    /// Whether the state of a line is committed already.
    pub(super) fn has_flipped(&self, line: LineAddr) -> bool {
        let middle = || self.lines.iter().nth(self.lines.len() / 2);
        self.phase == Phase::HalfFlipped && middle().is_none_or(|middle| line < *middle)
    }

    /// The acknowledgement that its copies wait for, if one is in flight.
    pub(super) fn copy_under_way(&self) -> Option<Token> {
        self.copies.values().find_map(|old| old.stage.token())
    }
}

/// An entry of a FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub tx: TxId,
    pub line: LineAddr,
    /// The fall-back path works on it.
    pub leaving: bool,
}

/// The FIFOs of a core: lines in the order in which transactions first wrote them.
pub(super) type Fifo = VecDeque<Entry>;
