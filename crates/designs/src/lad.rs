//! LAD: Gupta, Daglis and Falsafi, "Distributed Logless Atomic Durability with Persistent Memory", MICRO 2019. Section
//! numbers are the paper's; [D:key] marks what DEVIATIONS.md explains.
//!
//! A durable transaction (DTX) keeps its stores in the L1D, where a bit vector marks their lines. A marked line is flushed
//! to its memory controller when it leaves the L1D, when another core asks for it and when the DTX ends; the queue of the
//! controller, which survives power failures, holds it as a speculative entry. When all flushes are acknowledged, every
//! controller is told that the DTX commits, and clears the speculative bits of its entries. The DTX is complete at the
//! first acknowledgement (LAD) or at the last (LAD-Base): recovery commits everywhere what any controller has committed.
//! A queue that fills up with speculative entries writes them in place, behind undo entries.

mod laboratory;
mod planted;
mod regions;
pub(crate) mod row;
mod spec;
mod steps;
#[cfg(test)]
mod tests;

pub use spec::LadSpec;

use crate::dtx::{Dtx, Ids, THREADS};
use durasim_design::{
    AbortCause, Accept, Actions, ActiveFault, Arrival, BeginRule, BudgetSpent, CrashImage, CrashSink, CrashView, Ctx,
    Departure, Design, Durability, Evict, FlushVerdict, Gate, Geometry, HardwareCost, Hooks, LevelId, LineTag, Message,
    Node, PlantedFault, Probe, RecoveryCut, RecoveryReport, RegionRequest, Request, SpecError, Store, Token, Wait,
    snapshot,
};
use durasim_types::{CoreId, Cycle, Line, LineAddr, PhysAddr, StallCause, Stats, TxId};
use regions::UndoRegion;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;
use steps::controller::{LogContext, McExtension, UNDO_TOKEN, VOID_TOKEN};
use steps::l1::{FlushCause, LadControllers};
use steps::recovery;

/// Message kinds.
const DTX_COMMIT: u16 = 1;
const COMMIT_ACK: u16 = 2;
/// Bytes of DTX_Commit: its identifiers travel beside the address, as in all requests.
const MESSAGE_BYTES: u64 = 0;
/// Wakes the thread of the operating system that reclaims undo entries of a controller, whose number stands above.
const RECLAIM: u64 = 1;
/// A log has more room.
const GROWN: u64 = 2;
/// The token of stores that an abort undoes.
const RESTORE_TOKEN: u64 = 1 << 33;
/// A thread whose identifiers are all in use looks again after so many cycles.
const LOOK_AGAIN_CYCLES: Cycle = 100;

/// LAD, if a DTX is complete at the first acknowledgement of its commit; LAD-Base, if at the last (section 5).
pub struct LadUntil<const FIRST_ACK: bool>;

/// LAD.
pub type Lad = LadUntil<true>;
/// LAD-Base.
pub type LadBase = LadUntil<false>;

impl<const FIRST_ACK: bool> Design for LadUntil<FIRST_ACK> {
    const NAME: &'static str = "lad";
    const HOOKS: Hooks = Hooks::TX
        .with(Hooks::STORE)
        .with(Hooks::EVICT_PRIVATE)
        .with(Hooks::PROBE)
        .with(Hooks::FLUSH)
        .with(Hooks::ACCEPT)
        .with(Hooks::DRAINED)
        .with(Hooks::CONTEXT_SWITCH);
    const PLANTED: &'static [PlantedFault] = planted::ALL;
    const MARKS: &'static [&'static str] = &[
        "cut_between_receipts",
        "held_below_released",
        "undo_entry_of_open",
        "undo_entry_of_committed",
        "ids_wrapped",
        "line_flushed_twice",
    ];
    const SCALED: &'static [&'static str] = &["undo_log_entries", "undo_log_entries_max"];
    const THREADS_MAX: u32 = THREADS as u32;
    const STRUCTURES: &'static [&'static str] = &["transaction_ids"];
    type Spec = LadSpec;

    fn reserve(spec: &LadSpec, geometry: &Geometry) -> Vec<RegionRequest> {
        spec.regions(geometry)
    }

    fn build(spec: &LadSpec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        spec.check(geometry)?;
        Ok(Box::new(State::new(spec, geometry, FIRST_ACK)))
    }

    fn load(spec: &LadSpec, geometry: &Geometry, bytes: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        let fresh = State::new(spec, geometry, FIRST_ACK);
        let (protocol, counters): (Protocol, Counters) = snapshot::from_bytes(bytes)?;
        if !protocol.fits(&fresh.protocol) {
            return Err(snapshot::refuse("another number of cores or controllers"));
        }
        Ok(Box::new(State { protocol, counters, ..fresh }))
    }

    fn recover(spec: &LadSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        recovery::recover(spec, geometry, image)
    }

    fn cost(spec: &LadSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

/// All that changes while the design is at work, but for the counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Protocol {
    cores: LadControllers,
    controllers: Vec<McExtension>,
    /// Whether a thread has gone through all DTX_IDs.
    ids_wrapped: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    commits: u64,
    /// Flushes by cause, in the order of [`FlushCause::ALL`].
    flushes: [u64; FlushCause::ALL.len()],
    id_checks_failed: u64,
    undone_stores: u64,
}

#[derive(Clone)]
struct State {
    spec: LadSpec,
    ids: Ids,
    first_ack: bool,
    region: UndoRegion,
    geometry: Geometry,
    fault: ActiveFault,
    protocol: Protocol,
    counters: Counters,
}

impl Durability for State {
    /// Section 4.1: both instructions wait until the store buffer is empty.
    fn begin_rule(&self) -> BeginRule {
        BeginRule::Drained
    }

    /// DTX_Start: DTX_ID is incremented (section 4.4).
    fn tx_begin(&mut self, cx: &Ctx, _: TxId, out: &mut Actions) -> Gate {
        let (core, tid) = (usize::from(cx.core.0), self.tid(cx));
        if self.waits_for_id(tid, out) {
            out.stalls_for(StallCause::Structure(0));
            self.counters.id_checks_failed += 1;
            return Gate::Retry(Wait::Cycles(LOOK_AGAIN_CYCLES));
        }
        let dtx = self.protocol.cores.begin(core, tid, self.ids);
        self.protocol.ids_wrapped |= dtx.id == 0;
        Gate::Done
    }

    /// Table 1, Write. The tag is a note by which other cores' requests for the line are shown; the bit vector says what is
    /// marked.
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        if store.tx.is_some() {
            self.run_store(cx, store, tag, out);
        }
        Gate::Done
    }

    /// DTX_End: prepare, then commit.
    fn tx_commit(&mut self, cx: &Ctx, _: TxId, out: &mut Actions) -> Gate {
        self.end_dtx(cx, out)
    }

    /// The paper has no aborts. What the program aborts is restored, and the DTX ends like any other [D:lad-abort].
    fn tx_abort(&mut self, cx: &Ctx, _: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        match self.undo_stores(cx, out) {
            Some(wait) => Gate::Retry(wait),
            None => self.end_dtx(cx, out),
        }
    }

    /// Table 1, Eviction: DTX_Flush, and the line leaves.
    fn evict(&mut self, cx: &Ctx, from: LevelId, line: LineAddr, _: LineTag, _: &Line, out: &mut Actions) -> Evict {
        if from == LevelId::L1d {
            self.line_leaves(cx.core, line, out);
        }
        Evict::Proceed
    }

    /// Table 1, Coherence Request: DTX_Flush, then the request is served.
    fn probe(&mut self, _: &Ctx, request: &Request, out: &mut Actions) -> Probe {
        if let Some(holder) = request.holder {
            self.line_is_wanted(holder, request.line, out);
        }
        Probe::Grant
    }

    /// A clean by the program makes no speculative bytes ordinary ones: it is a DTX_Flush.
    fn flush(&mut self, _: &Ctx, line: LineAddr, _: LineTag, out: &mut Actions) -> FlushVerdict {
        match self.protocol.cores.core_that_marks(line) {
            Some(core) => {
                self.flush_line(core, line, FlushCause::Clean, out);
                FlushVerdict::Ignore
            }
            None => FlushVerdict::Proceed,
        }
    }

    /// Section 4.2: a thread leaves its core when its marked lines are flushed and acknowledged.
    fn context_switch(&mut self, cx: &Ctx, leaving: Option<TxId>, _: Option<TxId>, out: &mut Actions) -> Gate {
        match leaving.and_then(|_| self.thread_leaves(cx, out)) {
            Some(token) => Gate::Retry(Wait::Acked(token)),
            None => Gate::Done,
        }
    }

    fn accept(&mut self, _: &Ctx, arrival: &Arrival, out: &mut Actions) -> Accept {
        self.arrive(arrival, out)
    }

    fn drained(&mut self, _: &Ctx, departure: &Departure, out: &mut Actions) {
        let (mc, mut cx) = self.controller(departure.controller, out);
        mc.drained(departure.line, departure.queue, &mut cx);
    }

    fn acked(&mut self, _: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        let number = (token.0 & 0xffff) as u16;
        if token.0 & UNDO_TOKEN != 0 {
            let (mc, mut cx) = self.controller(number, out);
            mc.undo_written(&mut cx);
            self.arm_reclaim(number, out);
        } else if token.0 & VOID_TOKEN != 0 {
            let (mc, mut cx) = self.controller(number, out);
            mc.voided(addr, &mut cx);
        } else if token.0 & RESTORE_TOKEN == 0 {
            let tracking = self.protocol.cores.of(Dtx::of(token.0).tid);
            tracking.acks_missing = tracking.acks_missing.saturating_sub(1);
        }
    }

    fn message(&mut self, _: &Ctx, at: Node, message: Message, out: &mut Actions) {
        match (at, message.kind) {
            (Node::Controller(controller), DTX_COMMIT) => {
                self.commit_arrives(controller, Dtx::of(message.a), CoreId(message.b as u16), out);
            }
            (Node::Core(core), COMMIT_ACK) => self.ack_arrives(core, Dtx::of(message.a), out),
            _ => unreachable!("LAD sends no such message"),
        }
    }

    fn woken(&mut self, _: &Ctx, id: u64, out: &mut Actions) {
        let number = (id >> 8) as u16;
        let (mc, mut cx) = self.controller(number, out);
        if id & 0xff == GROWN {
            mc.grown(&mut cx);
        } else {
            mc.reclaim_armed = false;
            mc.reclaim(&mut cx);
            self.arm_reclaim(number, out);
        }
    }

    fn tags_are_notes(&self) -> bool {
        true
    }

    fn live(&self, tag: LineTag) -> bool {
        let dtx = Dtx::of(tag.0);
        self.protocol.cores.get(dtx.tid).is_some_and(|tracking| tracking.is_open() && tracking.id == dtx.id)
    }

    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        recovery::drain_queues(view, &self.kept(), &self.geometry, sink)
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        self.mark_situations(mark);
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        hasher.write(&snapshot::to_bytes(&self.protocol));
    }

    fn stats(&self, stats: &mut Stats) {
        self.count(stats);
    }

    fn reset_stats(&mut self) {
        self.counters = Counters::default();
        self.protocol.controllers.iter_mut().for_each(McExtension::reset_counters);
    }

    fn fork(&self) -> Box<dyn Durability> {
        Box::new(self.clone())
    }

    fn save(&self) -> Vec<u8> {
        snapshot::to_bytes(&(&self.protocol, &self.counters))
    }
}

impl Protocol {
    fn fits(&self, fresh: &Protocol) -> bool {
        self.controllers.len() == fresh.controllers.len() && self.cores.has_cores_of(&fresh.cores)
    }
}

impl State {
    fn new(spec: &LadSpec, geometry: &Geometry, first_ack: bool) -> Self {
        let controllers = (0..geometry.controllers).map(|number| McExtension::new(number, spec)).collect();
        State {
            spec: spec.clone(),
            ids: Ids::new(spec.dtx_id_bits),
            first_ack,
            region: UndoRegion::new(geometry),
            geometry: geometry.clone(),
            fault: geometry.planted,
            protocol: Protocol { cores: LadControllers::new(geometry.cores), controllers, ids_wrapped: false },
            counters: Counters::default(),
        }
    }

    /// A controller, with what its steps need.
    fn controller<'a>(&'a mut self, number: u16, out: &'a mut Actions) -> (&'a mut McExtension, LogContext<'a>) {
        let mc = &mut self.protocol.controllers[usize::from(number)];
        (mc, LogContext { spec: &self.spec, ids: self.ids, region: self.region, fault: self.fault, out })
    }
}
