//! LAD: Gupta, Daglis and Falsafi, "Distributed Logless Atomic Durability with Persistent Memory", MICRO 2019. Section
//! numbers are the paper's; [D:key] marks what DEVIATIONS.md explains.
//!
//! A durable transaction (DTX) keeps its stores in the L1D, where a bit vector marks their lines. A marked line is flushed
//! to its memory controller when it leaves the L1D, when another core asks for it and when the DTX ends; the queue of the
//! controller, which survives power failures, holds it as a speculative entry. When all flushes are acknowledged, DTX_Commit
//! goes to every controller, which clears the speculative bits of the entries. The DTX is complete at the
//! first acknowledgement (LAD) or at the last (LAD-Base): recovery commits everywhere what any controller has committed.
//! A queue that fills up with speculative entries writes them in place, after undo entries.
//!
//! This file has the hooks, in the order in which a DTX meets them, and the steps of Figure 5. `l1_controller.rs` has what
//! sections 4.2 and 4.4 add to each L1D, `memory_controller.rs` what sections 4.3, 4.4 and 4.6 add to each memory controller,
//! `recovery.rs` power failure and recovery (section 4.8).

mod l1_controller;
mod memory_controller;
mod planted;
mod recovery;
mod regions;
mod spec;
#[cfg(test)]
mod tests;
pub(crate) mod variant;

pub use spec::LadSpec;

use crate::dtx::{Dtx, Ids, THREADS};
use crate::undo::Undo;
use durasim_contract::{
    AbortCause, Accept, Action, Actions, ActiveFault, Arrival, BeginRule, BudgetSpent, CrashImage, CrashSink,
    CrashView, Ctx, Departure, Design, Durability, Evict, FlushVerdict, Gate, Geometry, HardwareCost, Hooks, LevelId,
    LineTag, Message, Node, PlantedFault, Probe, RecoveryCut, RecoveryReport, RegionRequest, Request, Signal,
    SpecError, Stateful, Store, Token, Wait, kept,
};
use durasim_types::{CoreId, Cycle, Line, LineAddr, PhysAddr, StallCause, Stats, TxId};
use l1_controller::{AbortStep, DtxState, FlushCause, LadControllers, Unacknowledged};
use memory_controller::{LogContext, McExtension, UNDO_TOKEN, VOID_TOKEN};
use recovery::Kept;
use regions::UndoRegion;
use serde::{Deserialize, Serialize};

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
/// Retry interval, in cycles, of a thread whose identifiers are all in use.
const ID_RETRY_CYCLES: Cycle = 100;

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

    fn build(spec: &LadSpec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        spec.check(geometry)?;
        Ok(State::new(spec, geometry, FIRST_ACK))
    }

    fn recover(spec: &LadSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        recovery::recover(spec, geometry, image)
    }

    fn cost(spec: &LadSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

/// All state that changes in a run, except the counters.
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

impl Stateful for State {
    kept!(protocol: Protocol, counters: Counters);

    fn fits(&self, protocol: &Protocol) -> Result<(), &'static str> {
        let Protocol { cores, controllers, .. } = &self.protocol;
        if controllers.len() != protocol.controllers.len() || !protocol.cores.has_cores_of(cores) {
            return Err("another number of cores or controllers");
        }
        Ok(())
    }

    fn reset_counters_in(protocol: &mut Protocol) {
        protocol.controllers.iter_mut().for_each(McExtension::reset_counters);
    }
}

impl Durability for State {
    /// Section 4.1: both instructions wait until the store buffer is empty.
    fn begin_rule(&self) -> BeginRule {
        BeginRule::Drained
    }

    /// DTX_Start (sections 4.1 and 4.4): DTX_ID is incremented.
    fn tx_begin(&mut self, cx: &Ctx, _: TxId, out: &mut Actions) -> Gate {
        let tid = tid(cx);
        if !self.fault.skips(planted::IDS_REUSED) && self.waits_for_id(tid, out) {
            out.stalls_for(StallCause::Structure(0));
            self.counters.id_checks_failed += 1;
            return Gate::Retry(Wait::Cycles(ID_RETRY_CYCLES));
        }
        let dtx = self.protocol.cores.begin(core_of(cx), tid, self.ids);
        self.protocol.ids_wrapped |= dtx.id == 0;
        Gate::Done
    }

    /// Table 1, Write (section 4.2): the bit vector marks the line. The tag makes the machine show requests of other cores for
    /// the line to [`Self::probe`].
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        if store.tx.is_none() {
            return Gate::Done;
        }
        let (core, tid) = (core_of(cx), tid(cx));
        let tracking = self.protocol.cores.runs(core, tid);
        *tag = LineTag(Dtx { tid, id: tracking.id }.number());
        // Bytes that stores outside of DTXs have left in the line are written to their home addresses first: they do not
        // depend on this DTX [D:lad-plain-stores]. Nothing is written if no cache has newer bytes than memory.
        if !tracking.marked.contains(&store.line()) && !self.fault.skips(planted::PLAIN_BYTES_NOT_HOME) {
            out.push(Action::CleanTo { line: store.line(), to: None, token: None });
        }
        tracking.undo.push(Undo::of(store));
        self.protocol.cores.mark(core, store.line(), self.fault);
        Gate::Done
    }

    /// Table 1, Eviction: DTX_Flush, and the line leaves.
    fn evict(&mut self, cx: &Ctx, from: LevelId, line: LineAddr, _: LineTag, _: &Line, out: &mut Actions) -> Evict {
        if from == LevelId::L1d
            && let Some(dtx) = self.protocol.cores.clear(core_of(cx), line)
            && !self.fault.skips(planted::EVICTION_NOT_FLUSHED)
        {
            self.flush_line(dtx, line, FlushCause::Eviction, out);
        }
        Evict::Proceed
    }

    /// Table 1, Coherence Request: DTX_Flush, then the request is served.
    fn probe(&mut self, _: &Ctx, request: &Request, out: &mut Actions) -> Probe {
        if let Some(holder) = request.holder
            && let Some(dtx) = self.protocol.cores.clear(usize::from(holder.0), request.line)
            && !self.fault.skips(planted::REQUEST_NOT_FLUSHED)
        {
            self.flush_line(dtx, request.line, FlushCause::Request, out);
        }
        Probe::Grant
    }

    /// A clean by the program makes no speculative bytes ordinary ones: it is a DTX_Flush.
    fn flush(&mut self, _: &Ctx, line: LineAddr, _: LineTag, out: &mut Actions) -> FlushVerdict {
        let Some(core) = self.protocol.cores.core_that_marks(line) else { return FlushVerdict::Proceed };
        if let Some(dtx) = self.protocol.cores.clear(core, line) {
            self.flush_line(dtx, line, FlushCause::Clean, out);
        }
        FlushVerdict::Ignore
    }

    /// Section 4.2: a thread leaves its core when its marked lines are flushed and acknowledged. Its structures stay with it.
    fn context_switch(&mut self, cx: &Ctx, leaving: Option<TxId>, _: Option<TxId>, out: &mut Actions) -> Gate {
        if leaving.is_none() {
            return Gate::Done;
        }
        let (core, tid) = (core_of(cx), tid(cx));
        self.protocol.cores.runs(core, tid);
        self.flush_marked(core, tid, FlushCause::Switch, out);
        let tracking = self.protocol.cores.of(tid);
        match tracking.state == DtxState::Run && tracking.acks_missing > 0 {
            true => Gate::Retry(Wait::Acked(Token(Dtx { tid, id: tracking.id }.number()))),
            false => Gate::Done,
        }
    }

    /// DTX_End: prepare, then commit.
    fn tx_commit(&mut self, cx: &Ctx, _: TxId, out: &mut Actions) -> Gate {
        self.end_dtx(cx, out)
    }

    /// The paper has no aborts (section 3.6). The stores of the DTX are undone, youngest first; the lines that are changed by
    /// this are marked, so the DTX ends like any other, with the old values [D:lad-abort].
    fn tx_abort(&mut self, cx: &Ctx, _: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        let (core, tid) = (core_of(cx), tid(cx));
        let tracking = self.protocol.cores.runs(core, tid);
        let token = Token(RESTORE_TOKEN | Dtx { tid, id: tracking.id }.number());
        match tracking.abort {
            AbortStep::None => tracking.abort = AbortStep::Restoring,
            AbortStep::Restoring => {
                tracking.abort = AbortStep::Restored;
                return Gate::Retry(Wait::Acked(token));
            }
            AbortStep::Restored => return self.end_dtx(cx, out),
        }
        let undo = std::mem::take(&mut tracking.undo);
        self.counters.undone_stores += undo.len() as u64;
        let cycles = self.spec.undo_cycles_per_store * undo.len() as u64;
        for undo in undo.into_iter().rev() {
            self.protocol.cores.of(tid).marked.insert(undo.line());
            undo.restore(token, out);
        }
        Gate::Retry(Wait::Cycles(cycles))
    }

    /// A write has arrived at a controller whose queue has room for it: a DTX_Flush (section 4.3), or an ordinary write. What
    /// an abort restores is as speculative as what it undoes.
    fn accept(&mut self, _: &Ctx, arrival: &Arrival, out: &mut Actions) -> Accept {
        let is_of_dtx = |token: &Token| token.0 & (UNDO_TOKEN | VOID_TOKEN) == 0;
        let flushed = arrival.token.filter(is_of_dtx).map(|token| Dtx::of(token.0));
        let (mc, mut cx) = self.controller(arrival.controller, out);
        match flushed {
            Some(dtx) => mc.accept_flush(arrival, dtx, &mut cx),
            None => mc.accept_ordinary(arrival, &mut cx),
        }
    }

    fn message(&mut self, _: &Ctx, at: Node, message: Message, out: &mut Actions) {
        let dtx = Dtx::of(message.a);
        match (at, message.kind) {
            // Section 4.4: DTX_Commit has arrived at a controller, which answers.
            (Node::Controller(number), DTX_COMMIT) => {
                let (mc, mut cx) = self.controller(number, out);
                mc.commit(dtx, &mut cx);
                self.arm_reclaim(number, out);
                let to = Node::Core(CoreId(message.b as u16));
                let message = Message { kind: COMMIT_ACK, a: dtx.number(), b: 0 };
                out.push(Action::Send { from: at, to, message, size_bytes: MESSAGE_BYTES });
            }
            // The DTX is complete at the first acknowledgement (LAD) or at the last (LAD-Base, section 5).
            (Node::Core(_), COMMIT_ACK) => {
                let participants = self.protocol.controllers.len() as u32;
                let (is_first, is_last) = self.protocol.cores.commit_acknowledged(dtx, participants);
                if if self.first_ack { is_first } else { is_last } {
                    self.complete(dtx);
                    out.push(Action::Raise(Signal(dtx.number())));
                }
            }
            _ => unreachable!("LAD sends no such message"),
        }
    }

    /// A write is durable: one to an undo log (section 4.6), or a DTX_Flush, for which the DTX Ack Counter goes down.
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

    fn drained(&mut self, _: &Ctx, departure: &Departure, out: &mut Actions) {
        let (mc, mut cx) = self.controller(departure.controller, out);
        mc.drained(departure.line, departure.queue, &mut cx);
    }

    /// Section 4.6: the operating system has given a log more room, or visits it to reclaim entries.
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

    fn tags_follow_newest_data(&self) -> bool {
        true
    }

    fn notes_expire(&self) -> bool {
        true
    }

    fn live(&self, tag: LineTag) -> bool {
        let dtx = Dtx::of(tag.0);
        self.protocol.cores.get(dtx.tid).is_some_and(|tracking| tracking.is_open() && tracking.id == dtx.id)
    }

    /// Section 4.8: the queues drain into the purgatory, and with them the registers of the controllers.
    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        let kept: Vec<Kept> = self.protocol.controllers.iter().map(Kept::of).collect();
        recovery::drain_queues(view, &kept, &self.geometry, sink)
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        let controllers = &self.protocol.controllers;
        let has_committed = |group: u64| controllers.iter().any(|mc| mc.has_committed(group, self.ids));
        let records = || controllers.iter().flat_map(|mc| &mc.records);
        let differ = |tid: usize| controllers.iter().any(|mc| mc.committed[tid] != controllers[0].committed[tid]);
        let situations = [
            ("cut_between_receipts", self.protocol.cores.all().any(|(tid, _)| differ(tid.into()))),
            ("held_below_released", controllers.iter().any(|mc| !mc.waiting_for_held.is_empty())),
            ("undo_entry_of_open", records().any(|group| *group != 0 && !has_committed(*group))),
            ("undo_entry_of_committed", records().any(|group| *group != 0 && has_committed(*group))),
            ("ids_wrapped", self.protocol.ids_wrapped),
            ("line_flushed_twice", self.protocol.cores.all().any(|(_, tracking)| tracking.flushed_twice)),
        ];
        situations.into_iter().filter(|(_, is_there)| *is_there).for_each(|(name, _)| mark(name));
    }

    fn occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let records: usize = self.protocol.controllers.iter().map(|mc| mc.records.len()).sum();
        report("undo_log", records as u64);
    }

    fn stats(&self, stats: &mut Stats) {
        let (c, controllers) = (&self.counters, &self.protocol.controllers);
        let sum = |of: fn(&McExtension) -> u64| controllers.iter().map(of).sum::<u64>();
        let mut count = |name: &str, value, text: &str| stats.count(format!("lad.{name}"), value, text);
        count("commits", c.commits, "DTXs that were completed, those that ended by an abort included");
        for (cause, flushes) in FlushCause::ALL.iter().zip(c.flushes) {
            count(&format!("flushes.{}", cause.name()), flushes, "DTX_Flush messages by cause");
        }
        count("undo_entries", sum(|mc| mc.undo_entries), "Entries written to undo logs");
        count("reclaimed", sum(|mc| mc.reclaimed), "Undo entries that were reclaimed");
        count("log_full", sum(|mc| mc.log_full), "Times at which an undo entry found the log full");
        count("refused", sum(|mc| mc.refused), "Times at which a write found no place that it might take");
        let held_max = controllers.iter().map(|mc| u64::from(mc.held_max)).max().unwrap_or(0);
        count("held_max", held_max, "The most speculative entries in a queue");
        count("id_checks_failed", c.id_checks_failed, "Times at which a begin found half of the DTX_IDs in use");
        count("undone_stores", c.undone_stores, "Stores that aborts undid");
    }
}

/// The steps of a DTX (section 4.4, Figure 5), from DTX_Start to the acknowledgement that completes it.
impl State {
    /// Whether half of the ids would be in use: a begin waits until the oldest undo entry is reclaimed and the oldest commit is
    /// acknowledged everywhere [D:lad-ids].
    fn waits_for_id(&mut self, tid: u8, out: &mut Actions) -> bool {
        let tracking = self.protocol.cores.of(tid);
        let (next, half) = (self.ids.next(tracking.id), self.ids.half());
        let oldest_commit = tracking.unacknowledged.front().map_or(0, |of| self.ids.distance(of.id, next));
        // A controller that lacks the oldest commit still has the id before it, which recovery compares with the next one's.
        let mut is_late = oldest_commit > 0 && oldest_commit + 1 >= half;
        for number in 0..self.protocol.controllers.len() as u16 {
            let ids = self.ids;
            let (mc, mut cx) = self.controller(number, out);
            if mc.age(tid, next, ids) >= half {
                mc.reclaim(&mut cx);
            }
            if mc.age(tid, next, ids) >= half {
                mc.void_committed(tid, &mut cx);
                is_late = true;
            }
        }
        is_late
    }

    /// DTX_Flush of a line whose mark is cleared: through the last level, which has the value then if it has the line
    /// [D:lad-absent-line], to its controller.
    fn flush_line(&mut self, dtx: Dtx, line: LineAddr, cause: FlushCause, out: &mut Actions) {
        self.protocol.cores.of(dtx.tid).acks_missing += 1;
        self.counters.flushes[cause as usize] += 1;
        out.push(Action::CleanTo { line, to: None, token: Some(Token(dtx.number())) });
    }

    /// The bit vector is cleared, and all that was marked is flushed.
    fn flush_marked(&mut self, core: usize, tid: u8, cause: FlushCause, out: &mut Actions) {
        let marked: Vec<LineAddr> = self.protocol.cores.of(tid).marked.iter().copied().collect();
        for line in marked {
            if let Some(dtx) = self.protocol.cores.clear(core, line)
                && !(cause == FlushCause::Switch && self.fault.skips(planted::SWITCH_NOT_FLUSHED))
            {
                self.flush_line(dtx, line, cause, out);
            }
        }
    }

    /// DTX_End (Figure 2b, Figure 5). Prepare: what is marked is flushed, and the acknowledgements are awaited. Commit:
    /// DTX_Commit goes to every controller, and the DTX is complete when they acknowledge it.
    fn end_dtx(&mut self, cx: &Ctx, out: &mut Actions) -> Gate {
        let (core, tid) = (core_of(cx), tid(cx));
        let tracking = self.protocol.cores.runs(core, tid);
        let dtx = Dtx { tid, id: tracking.id };
        if tracking.state == DtxState::Run {
            tracking.state = DtxState::Flush;
            self.flush_marked(core, tid, FlushCause::End, out);
            let acks_missing = self.protocol.cores.of(tid).acks_missing;
            if self.fault.ignores(planted::FLUSHES_NOT_AWAITED, acks_missing > 0) {
                return Gate::Retry(Wait::Acked(Token(dtx.number())));
            }
        }
        let participants = self.protocol.controllers.len() as u16;
        let tracking = self.protocol.cores.of(tid);
        tracking.state = DtxState::Commit;
        tracking.acks_missing = 0;
        out.prepared();
        tracking.unacknowledged.push_back(Unacknowledged { id: dtx.id, missing: participants.into() });
        for controller in 0..participants {
            let message = Message { kind: DTX_COMMIT, a: dtx.number(), b: u64::from(cx.core.0) };
            let (from, to) = (Node::Core(cx.core), Node::Controller(controller));
            out.push(Action::Send { from, to, message, size_bytes: MESSAGE_BYTES });
        }
        if self.fault.skips(planted::COMMIT_NOT_AWAITED) {
            self.complete(dtx);
            return Gate::Done;
        }
        Gate::After(Wait::Signal(Signal(dtx.number())))
    }

    fn complete(&mut self, dtx: Dtx) {
        self.counters.commits += 1;
        let tracking = self.protocol.cores.of(dtx.tid);
        tracking.state = DtxState::Off;
        tracking.undo.clear();
    }

    /// The thread of the operating system visits an undo log after a while, if there is anything in it (section 4.6). While the
    /// log of any controller is stuck, logs whose oldest entry is of an open DTX are not visited: a machine on which only such
    /// visits are pending would otherwise wait without end and not be seen as stuck.
    fn arm_reclaim(&mut self, number: u16, out: &mut Actions) {
        let period = self.spec.reclaim_period_cycles;
        let (ids, spec) = (self.ids, &self.spec);
        let controllers = &mut self.protocol.controllers;
        let is_any_stuck = controllers.iter().any(|mc| mc.is_stuck(ids, spec));
        let mc = &mut controllers[usize::from(number)];
        if !(mc.reclaim_armed || mc.records.is_empty() || is_any_stuck && mc.is_head_open(ids)) {
            mc.reclaim_armed = true;
            out.push(Action::Timer { id: RECLAIM | u64::from(number) << 8, after_cycles: period });
        }
    }
}

fn core_of(cx: &Ctx) -> usize {
    usize::from(cx.core.0)
}

/// LAD_TID of the thread that runs: its number. The machine lets no thread begin that has none (section 4.1).
fn tid(cx: &Ctx) -> u8 {
    u8::try_from(cx.thread).expect("there are 256 LAD_TIDs")
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
