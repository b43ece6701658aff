//! The LAD controller beside each L1D (sections 4.2 and 4.4, Figure 5, Table 1): what a DTX has stored to and not flushed, its
//! state, and what it waits for.

use super::planted;
use crate::dtx::{Dtx, Ids};
use crate::undo::Undo;
use durasim_contract::ActiveFault;
use durasim_types::LineAddr;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// DTX_State (Figure 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum DtxState {
    /// No DTX.
    #[default]
    Off,
    /// Prepare: its stores are marked.
    Run,
    /// Prepare: what is marked is flushed, and acknowledgements are awaited.
    Flush,
    /// DTX_Commit is sent to the controllers.
    Commit,
}

/// The reason for the flush of a marked line (Table 1; section 4.2 for threads that change).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum FlushCause {
    /// The DTX ends.
    End,
    /// The line leaves the L1D.
    Eviction,
    /// Another core asks for it.
    Request,
    /// The thread leaves the core.
    Switch,
    /// The program cleans it.
    Clean,
}

impl FlushCause {
    pub const ALL: [FlushCause; 5] =
        [FlushCause::End, FlushCause::Eviction, FlushCause::Request, FlushCause::Switch, FlushCause::Clean];

    pub const fn name(self) -> &'static str {
        match self {
            FlushCause::End => "end",
            FlushCause::Eviction => "eviction",
            FlushCause::Request => "request",
            FlushCause::Switch => "switch",
            FlushCause::Clean => "clean",
        }
    }
}

/// The steps of an abort, which the paper does not have [D:lad-abort].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AbortStep {
    /// None has begun.
    #[default]
    None,
    /// The old bytes are sent.
    Restoring,
    /// They are durable where no cache has their line.
    Restored,
}

/// A DTX that ended at the first acknowledgement while others were missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unacknowledged {
    pub id: u8,
    pub missing: u32,
}

/// The tracking structures of a thread (section 4.2), which go with it from core to core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tracking {
    pub state: DtxState,
    /// DTX_ID.
    pub id: u8,
    /// The DTX bit vector: lines in the L1D that the DTX has stored to and not flushed since.
    pub marked: BTreeSet<LineAddr>,
    /// Lines that it has flushed, and whether one of them twice.
    pub flushed: BTreeSet<LineAddr>,
    pub flushed_twice: bool,
    /// The DTX Ack Counter: flushes that no controller has acknowledged.
    pub acks_missing: u32,
    /// Commits of the thread that some controller has not acknowledged, oldest first.
    pub unacknowledged: VecDeque<Unacknowledged>,
    /// The bytes that its stores overwrote, in case the program aborts [D:lad-abort].
    pub undo: Vec<Undo>,
    /// The progress of an abort.
    pub abort: AbortStep,
}

impl Tracking {
    /// Whether a DTX is open.
    pub fn is_open(&self) -> bool {
        self.state != DtxState::Off
    }
}

/// The LAD controllers of all cores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LadControllers {
    /// The thread whose structures each core uses: LAD_TID.
    running: Vec<u8>,
    threads: BTreeMap<u8, Tracking>,
}

impl LadControllers {
    pub fn new(cores: u16) -> Self {
        LadControllers { running: vec![0; usize::from(cores)], threads: BTreeMap::new() }
    }

    /// A thread uses the structures of a core.
    pub fn runs(&mut self, core: usize, tid: u8) -> &mut Tracking {
        self.running[core] = tid;
        self.threads.entry(tid).or_default()
    }

    pub fn of(&mut self, tid: u8) -> &mut Tracking {
        self.threads.entry(tid).or_default()
    }

    pub fn get(&self, tid: u8) -> Option<&Tracking> {
        self.threads.get(&tid)
    }

    pub fn all(&self) -> impl Iterator<Item = (u8, &Tracking)> {
        self.threads.iter().map(|(&tid, tracking)| (tid, tracking))
    }

    /// The core on which a line is marked.
    pub fn core_that_marks(&self, line: LineAddr) -> Option<usize> {
        (0..self.running.len())
            .find(|&core| self.threads.get(&self.running[core]).is_some_and(|tracking| tracking.marked.contains(&line)))
    }

    /// A DTX of a thread begins: its number is one more.
    pub fn begin(&mut self, core: usize, tid: u8, ids: Ids) -> Dtx {
        let tracking = self.runs(core, tid);
        tracking.id = ids.next(tracking.id);
        tracking.state = DtxState::Run;
        tracking.flushed.clear();
        tracking.undo.clear();
        tracking.flushed_twice = false;
        tracking.abort = AbortStep::None;
        tracking.acks_missing = 0;
        Dtx { tid, id: tracking.id }
    }

    /// A store of the DTX on a core marks its line (Table 1, Write).
    pub fn mark(&mut self, core: usize, line: LineAddr, fault: ActiveFault) {
        let tracking = self.of(self.running[core]);
        if !(fault.skips(planted::FLUSHED_LINE_NOT_MARKED) && tracking.flushed.contains(&line)) {
            tracking.marked.insert(line);
        }
    }

    /// The bit of a line is cleared, because it is flushed: the DTX; `None` if the line is not marked.
    pub fn clear(&mut self, core: usize, line: LineAddr) -> Option<Dtx> {
        let tid = self.running[core];
        let tracking = self.of(tid);
        if !tracking.marked.remove(&line) {
            return None;
        }
        tracking.flushed_twice |= !tracking.flushed.insert(line);
        Some(Dtx { tid, id: tracking.id })
    }

    /// Whether these are the structures of as many cores.
    pub fn has_cores_of(&self, other: &LadControllers) -> bool {
        self.running.len() == other.running.len()
    }

    /// A controller has acknowledged a commit; whether it is the first, and whether it is the last.
    pub fn commit_acknowledged(&mut self, dtx: Dtx, participants: u32) -> (bool, bool) {
        let tracking = self.of(dtx.tid);
        let Some(at) = tracking.unacknowledged.iter().position(|of| of.id == dtx.id) else { return (false, false) };
        let of = &mut tracking.unacknowledged[at];
        let is_first = of.missing == participants;
        of.missing -= 1;
        let is_last = of.missing == 0;
        if is_last {
            tracking.unacknowledged.remove(at);
        }
        (is_first, is_last)
    }
}
