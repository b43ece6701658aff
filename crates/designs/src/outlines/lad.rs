//! LAD: Gupta, Daglis and Falsafi, "Distributed Logless Atomic Durability with Persistent Memory", MICRO 2019.
//!
//! An outline. It has the LAD controllers (section 4.2, Figure 5, Table 1), what the memory controllers add (section
//! 4.3), the distributed commit (sections 3.2, 4.4), fallback logging (section 4.6) and recovery (section 4.8). It needs
//! W1 (evictions from the L1D), W7 (below a held entry), W12 (the commit goes to places: with LAD-LLC to banks) and W16 (`accept` decides when
//! an entry is taken, and acts). It does not reclaim undo logs, which is the operating system's (section 4.6), and has no
//! aborts, which the paper leaves out (section 3.6).

use super::planned::{
    Arrival, BeginRule, Departure, Place, Planned, PlannedAction, PlannedActions, PlannedDesign, PlannedHooks,
    StagedWrite, ThreadId,
};
use durasim_design::{
    Accept, Action, Actions, BudgetSpent, CrashImage, CrashSink, Ctx, Design, Durability, Evict, FlushVerdict, Gate,
    Geometry, HardwareCost, Hooks, LevelId, LineTag, Message, Origin, Payload, Probe, RecoveryCut, RecoveryReport,
    RegionRequest, Request, Signal, SpecError, Store, Token, Wait, snapshot,
};
use durasim_types::{Cause, CoreId, EventKind, Line, LineAddr, PhysAddr, Stats, TxId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hasher;

/// LAD_TIDs (section 4.1).
const THREADS: usize = 256;
/// A record of the undo log or the purgatory: a line of header and a line of data.
const RECORD_BYTES: u64 = 128;
const UNDO_RECORDS: u64 = 64;
const PURGATORY_RECORDS: u64 = 512;

/// When a DTX is complete, and from when on a controller logs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LadSpec {
    /// Section 4.4: at the first acknowledgement; LAD-Base (section 5): at the last.
    pub first_ack: bool,
    /// Section 4.6: entries in use for speculative lines from which on a controller logs, in percent.
    pub logging_percent: u32,
    /// LAD-LLC (section 5): this many banks of a battery-backed last level take the place of the controllers.
    pub llc_banks: Option<u16>,
}

impl Default for LadSpec {
    fn default() -> Self {
        LadSpec { first_ack: true, logging_percent: 80, llc_banks: None }
    }
}

/// A durable transaction: its thread and its number among those of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Dtx {
    tid: u8,
    id: u8,
}

impl Dtx {
    /// The group of its entries, and the token of its flushes. No transaction has the number 0.
    pub const fn number(self) -> u64 {
        1 << 16 | (self.tid as u64) << 8 | self.id as u64
    }

    const fn of(number: u64) -> Self {
        Dtx { tid: (number >> 8) as u8, id: number as u8 }
    }

    /// Whether a thread that committed `last` has committed this one. Numbers of eight bits wrap around.
    const fn is_committed(self, last: u8) -> bool {
        last.wrapping_sub(self.id) < 128
    }
}

/// DTX_State (Figure 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Off,
    Run,
    Flush,
    Commit,
}

/// The tracking structures of a DTX (section 4.2), which go with the thread.
#[derive(Clone, Debug, Default)]
struct Tracking {
    state: State,
    dtx_id: u8,
    /// The DTX bit vector: lines in the L1D that the DTX has written and not flushed since.
    marked: BTreeSet<LineAddr>,
    /// The DTX Ack Counter, of flushes and then of commits.
    acks_missing: u32,
}

/// What a memory controller does about an undo log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undo {
    Idle,
    /// The old bytes are in flight to the log.
    Copying(LineAddr, u64),
    /// They are there; the header that makes them count follows.
    Recording(LineAddr, u64),
}

/// What a memory controller adds (section 4.3), all of it battery-backed.
#[derive(Clone, Debug)]
struct Controller {
    /// DTX_CID: the last committed DTX of each thread.
    committed: Vec<u8>,
    /// Speculative entries in the order of their acceptance.
    speculative: VecDeque<(LineAddr, u64)>,
    /// Lines in the undo log, for each DTX once: a later entry of the same DTX lies over bytes of its own.
    logged: BTreeSet<(LineAddr, u64)>,
    undo: Undo,
    records: u64,
    /// Whether a flush was refused and waits for an entry to leave.
    refused: bool,
}

/// Message kinds.
const DTX_COMMIT: u16 = 1;
const COMMIT_ACK: u16 = 2;
/// Above the numbers of transactions, with the controller in the low bits.
const UNDO_TOKEN: u64 = 1 << 32;
const ROOM: u64 = 1 << 33;

/// The design.
pub(super) struct Lad;

impl Design for Lad {
    const NAME: &'static str = "lad";
    const HOOKS: Hooks = Hooks::TX
        .with(Hooks::STORE)
        .with(Hooks::EVICT_PRIVATE)
        .with(Hooks::PROBE)
        .with(Hooks::FLUSH)
        .with(Hooks::ACCEPT)
        .with(Hooks::CONTEXT_SWITCH);
    type Spec = LadSpec;

    fn reserve(_: &LadSpec, geometry: &Geometry) -> Vec<RegionRequest> {
        let undo_bytes = u64::from(geometry.controllers) * UNDO_RECORDS * geometry.interleave_bytes;
        vec![
            RegionRequest { name: "undo-log", size_bytes: undo_bytes },
            RegionRequest { name: "purgatory", size_bytes: PURGATORY_RECORDS * RECORD_BYTES },
        ]
    }

    fn build(spec: &LadSpec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(Protocol::new(spec, geometry)))
    }

    fn load(_: &LadSpec, _: &Geometry, _: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        Err(snapshot::refuse("an outline is in no snapshot"))
    }

    /// Section 4.8: what committed anywhere is committed; undo logs from old to new; then the purgatory in order.
    fn recover(_: &LadSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        let mut report = RecoveryReport::default();
        let committed = consensus(geometry, image);
        let is_committed = |group: u64| Dtx::of(group).is_committed(committed[usize::from(Dtx::of(group).tid)]);
        for controller in 0..geometry.controllers {
            for index in 0..UNDO_RECORDS {
                let at = undo_record(geometry, controller, index);
                let (home, group) = (image.read_u64(at), image.read_u64(at.plus(8)));
                if group == 0 {
                    break;
                }
                if !is_committed(group) && geometry.is_home(PhysAddr(home)) {
                    let old = image.line(at.plus(64));
                    image.write(PhysAddr(home), &old)?;
                    report.discarded += 1;
                }
            }
        }
        let purgatory = geometry.region("purgatory").base;
        for index in 0..PURGATORY_RECORDS {
            let at = purgatory.plus(index * RECORD_BYTES);
            let (kind, home) = (image.read_u64(at), PhysAddr(image.read_u64(at.plus(8))));
            if kind == 0 {
                break;
            }
            let (group, mask, data) =
                (image.read_u64(at.plus(16)), image.read_u64(at.plus(24)), image.line(at.plus(64)));
            // An entry without a group was released before the failure, after an older one of its line.
            if geometry.is_home(home) && (group == 0 || is_committed(group)) {
                let mut line = image.line(home);
                (0..64).filter(|byte| mask >> byte & 1 != 0).for_each(|byte| line[byte] = data[byte]);
                image.write(home, &line)?;
                report.lines_written += 1;
            }
        }
        Ok(report)
    }

    fn cost(_: &LadSpec, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        // Section 4.2: 70 bytes; section 5: eight sets. Section 4.3: 392 bytes.
        cost.add("DTX tracking structures", 8 * 70 * 8, u64::from(g.cores));
        cost.add("memory controller", 392 * 8, u64::from(g.controllers));
        cost
    }
}

impl PlannedDesign for Lad {
    const PLANNED: PlannedHooks = PlannedHooks::DRAINED;
}

/// The newest DTX_CID of each thread.
fn consensus(geometry: &Geometry, image: &CrashImage) -> Vec<u8> {
    let kept = image.structure("dtx_cid").unwrap_or_default();
    let mut newest = vec![0u8; THREADS];
    for vector in kept.chunks_exact(THREADS).take(usize::from(geometry.controllers)) {
        for (newest, id) in newest.iter_mut().zip(vector) {
            if (Dtx { tid: 0, id: *newest }).is_committed(*id) {
                *newest = *id;
            }
        }
    }
    newest
}

/// Each controller has its log in memory of its own: a record to a block.
fn undo_record(geometry: &Geometry, controller: u16, index: u64) -> PhysAddr {
    let base = geometry.region("undo-log").base;
    let own = (controller + geometry.controllers - geometry.controller_of(base.line())) % geometry.controllers;
    base.plus((index * u64::from(geometry.controllers) + u64::from(own)) * geometry.interleave_bytes)
}

/// LAD at work.
#[derive(Clone, Debug)]
pub(super) struct Protocol {
    spec: LadSpec,
    geometry: Geometry,
    /// LAD_TID of each core.
    running: Vec<ThreadId>,
    threads: BTreeMap<ThreadId, Tracking>,
    controllers: Vec<Controller>,
}

impl Protocol {
    pub fn new(spec: &LadSpec, geometry: &Geometry) -> Self {
        let controller = Controller {
            committed: vec![0; THREADS],
            speculative: VecDeque::new(),
            logged: BTreeSet::new(),
            undo: Undo::Idle,
            records: 0,
            refused: false,
        };
        Protocol {
            spec: spec.clone(),
            geometry: geometry.clone(),
            running: (0..geometry.cores).map(|core| ThreadId(core.into())).collect(),
            threads: BTreeMap::new(),
            controllers: vec![controller; usize::from(spec.llc_banks.unwrap_or(geometry.controllers))],
        }
    }

    /// Where speculative lines are staged, and who takes part in a commit.
    fn participants(&self) -> Vec<Place> {
        match self.spec.llc_banks {
            Some(banks) => (0..banks).map(Place::LlcBank).collect(),
            None => (0..self.geometry.controllers).map(Place::Controller).collect(),
        }
    }

    fn thread(&self, core: CoreId) -> ThreadId {
        self.running[usize::from(core.0)]
    }

    fn tracking(&mut self, core: CoreId) -> &mut Tracking {
        self.threads.entry(self.running[usize::from(core.0)]).or_default()
    }

    /// The DTX that runs on a core, and its state.
    pub fn dtx(&mut self, core: CoreId) -> (Dtx, State) {
        let tid = self.thread(core).0 as u8;
        let tracking = self.tracking(core);
        (Dtx { tid, id: tracking.dtx_id }, tracking.state)
    }

    pub fn committed(&self, controller: u16, tid: usize) -> u8 {
        self.controllers[usize::from(controller)].committed[tid]
    }

    /// DTX_Flush of a marked line (section 4.4): through the last level, which then has the value, to its controller.
    fn flush_marked(&mut self, core: CoreId, line: LineAddr) -> Option<Action> {
        let token = Some(Token(self.dtx(core).0.number()));
        let ends_in_llc = self.spec.llc_banks.is_some();
        let tracking = self.tracking(core);
        tracking.marked.remove(&line).then(|| {
            tracking.acks_missing += 1;
            if ends_in_llc { Action::PushToLlc { line, token } } else { Action::CleanTo { line, to: None, token } }
        })
    }

    fn flush_all(&mut self, core: CoreId, flush: impl FnMut(Action)) {
        let marked: Vec<LineAddr> = self.tracking(core).marked.iter().copied().collect();
        marked.into_iter().filter_map(|line| self.flush_marked(core, line)).for_each(flush);
    }

    /// Section 4.6: the oldest speculative line is logged and written in place.
    fn log_oldest(&mut self, controller: u16, out: &mut PlannedActions) {
        let token = Some(Token(UNDO_TOKEN | u64::from(controller)));
        let mc = &mut self.controllers[usize::from(controller)];
        if mc.undo != Undo::Idle {
            return;
        }
        while let Some(&(line, group)) = mc.speculative.front() {
            if !mc.logged.contains(&(line, group)) {
                assert!(mc.records < UNDO_RECORDS, "the operating system has not reclaimed the undo log");
                mc.undo = Undo::Copying(line, group);
                let to = undo_record(&self.geometry, controller, mc.records).plus(64);
                let (from, cause) = (line.base(), Cause::Log);
                out.push(PlannedAction::CopyBelowHeld { from, to, len: 64, cause, token });
                return;
            }
            mc.speculative.pop_front();
            out.push(PlannedAction::ReleaseHeldLine { controller, group, line });
        }
    }

    fn is_pressed(&self, held: u32, entries: u32) -> bool {
        held * 100 >= entries * self.spec.logging_percent
    }

    /// DTX_Commit at a participant (section 4.4): the vector, the speculative bits and the answer, in one step.
    fn commit_at(&mut self, at: Place, group: u64, core: CoreId, out: &mut PlannedActions) {
        let dtx = Dtx::of(group);
        let (Place::Controller(controller) | Place::LlcBank(controller)) = at else {
            unreachable!("cores do not take part")
        };
        let mc = &mut self.controllers[usize::from(controller)];
        mc.committed[usize::from(dtx.tid)] = dtx.id;
        mc.speculative.retain(|(_, of)| *of != group);
        mc.logged.retain(|(_, of)| *of != group);
        out.push(Action::Event(EventKind::DesignStep, PhysAddr(0)));
        if let Place::Controller(controller) = at {
            out.push(Action::ReleaseHeld { controller, group });
        }
        let message = Message { kind: COMMIT_ACK, a: group, b: 0 };
        out.push(PlannedAction::SendTo { to: Place::Core(core), message });
    }

    fn commit_acked(&mut self, core: CoreId, group: u64, out: &mut PlannedActions) {
        let (dtx, state) = self.dtx(core);
        // The acknowledgements after the first come when the thread is further.
        if dtx.number() != group || state != State::Commit {
            return;
        }
        let first_ack = self.spec.first_ack;
        let tracking = self.tracking(core);
        tracking.acks_missing -= 1;
        if first_ack || tracking.acks_missing == 0 {
            tracking.state = State::Off;
            tracking.acks_missing = 0;
            out.push(Action::Raise(Signal(group)));
        }
    }
}

impl Durability for Protocol {
    fn tx_begin(&mut self, cx: &Ctx, _: TxId, _: &mut Actions) -> Gate {
        let tracking = self.tracking(cx.core);
        tracking.dtx_id = tracking.dtx_id.wrapping_add(1);
        tracking.state = State::Run;
        Gate::Done
    }

    /// The bit vector says what is marked. The tag is a note, so that other cores' requests for the line are shown.
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, _: &mut Actions) -> Gate {
        let (dtx, state) = self.dtx(cx.core);
        if state == State::Run && store.tx.is_some() {
            self.tracking(cx.core).marked.insert(store.line());
            *tag = LineTag(dtx.number());
        }
        Gate::Done
    }

    fn tags_are_notes(&self) -> bool {
        true
    }

    fn live(&self, tag: LineTag) -> bool {
        let dtx = Dtx::of(tag.0);
        let tracking = self.threads.get(&ThreadId(dtx.tid.into()));
        tracking.is_some_and(|tracking| tracking.state != State::Off && tracking.dtx_id == dtx.id)
    }

    /// Section 4.2: a thread leaves its core when its marked lines are flushed and acknowledged.
    fn context_switch(&mut self, cx: &Ctx, leaving: Option<TxId>, _: Option<TxId>, out: &mut Actions) -> Gate {
        if leaving.is_none() {
            // LAD_TID is that of the thread that comes.
            self.running[usize::from(cx.core.0)] = ThreadId(cx.thread);
            return Gate::Done;
        }
        self.flush_all(cx.core, |flush| out.push(flush));
        match self.tracking(cx.core).acks_missing {
            0 => Gate::Done,
            _ => Gate::Retry(Wait::Acked(Token(self.dtx(cx.core).0.number()))),
        }
    }

    /// Table 1, coherence request: a marked line is flushed, then served.
    fn probe(&mut self, _: &Ctx, request: &Request, out: &mut Actions) -> Probe {
        let flush = request.holder.and_then(|holder| self.flush_marked(holder, request.line));
        flush.into_iter().for_each(|flush| out.push(flush));
        Probe::Grant
    }

    /// A clean by the program must not make speculative bytes ordinary ones.
    fn flush(&mut self, cx: &Ctx, line: LineAddr, _: LineTag, out: &mut Actions) -> FlushVerdict {
        match self.flush_marked(cx.core, line) {
            Some(flush) => out.push(flush),
            None => return FlushVerdict::Proceed,
        }
        FlushVerdict::Ignore
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        for (thread, tracking) in &self.threads {
            hasher.write_u64(u64::from(thread.0) << 8 | u64::from(tracking.dtx_id));
            tracking.marked.iter().for_each(|line| hasher.write_u64(line.0));
        }
    }

    fn stats(&self, _: &mut Stats) {}

    fn reset_stats(&mut self) {}

    fn fork(&self) -> Box<dyn Durability> {
        Box::new(self.clone())
    }

    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
}

impl Planned for Protocol {
    /// Section 4.1: both instructions wait until the store buffer is empty.
    fn begin_rule(&self) -> BeginRule {
        BeginRule::Drained
    }

    /// Prepare: all marked lines are flushed, and all acknowledgements awaited. Commit: every participant is told.
    fn tx_commit_at(&mut self, cx: &Ctx, _: TxId, out: &mut PlannedActions) -> Gate {
        let (number, participants) = (self.dtx(cx.core).0.number(), self.participants());
        let tracking = self.tracking(cx.core);
        if tracking.state == State::Run {
            tracking.state = State::Flush;
            self.flush_all(cx.core, |flush| out.push(flush));
        }
        let tracking = self.tracking(cx.core);
        if tracking.acks_missing > 0 {
            return Gate::Retry(Wait::Acked(Token(number)));
        }
        tracking.state = State::Commit;
        tracking.acks_missing = participants.len() as u32;
        let message = Message { kind: DTX_COMMIT, a: number, b: u64::from(cx.core.0) };
        participants.into_iter().for_each(|to| out.push(PlannedAction::SendTo { to, message }));
        Gate::After(Wait::Signal(Signal(number)))
    }

    /// Table 1, eviction: a marked line is flushed and goes.
    fn evict_from(
        &mut self,
        cx: &Ctx,
        from: LevelId,
        line: LineAddr,
        _: LineTag,
        _: &Line,
        out: &mut PlannedActions,
    ) -> Evict {
        if from == LevelId::L1d
            && let Some(flush) = self.flush_marked(cx.core, line)
        {
            out.push(flush);
        }
        Evict::Proceed
    }

    /// A DTX_Flush becomes a speculative entry. The last two entries are left to the log, without which no other would
    /// become free.
    fn accept_arrival(&mut self, _: &Ctx, arrival: &Arrival, out: &mut PlannedActions) -> Accept {
        let Some(Token(group)) = arrival.token.filter(|token| token.0 < UNDO_TOKEN) else {
            return Accept::Queue { held: None };
        };
        assert!(arrival.cause == Cause::Data && arrival.mask == u64::MAX, "a DTX_Flush carries a block");
        let controller = arrival.controller;
        if self.is_pressed(arrival.queue.held + 1, arrival.queue.entries) {
            self.log_oldest(controller, out);
        }
        let mc = &mut self.controllers[usize::from(controller)];
        if arrival.queue.free() <= 2 {
            mc.refused = true;
            return Accept::Refuse(Wait::Signal(Signal(ROOM | u64::from(controller))));
        }
        mc.speculative.push_back((arrival.line, group));
        Accept::Queue { held: Some(group) }
    }

    fn acked_of(&mut self, _: &Ctx, token: Token, _: PhysAddr, out: &mut PlannedActions) {
        if token.0 < UNDO_TOKEN {
            let thread = ThreadId(Dtx::of(token.0).tid.into());
            self.threads.get_mut(&thread).expect("a thread flushes").acks_missing -= 1;
            return;
        }
        let controller = (token.0 & 0xffff) as u16;
        let mc = &mut self.controllers[usize::from(controller)];
        match mc.undo {
            Undo::Copying(line, group) => {
                let at = undo_record(&self.geometry, controller, mc.records);
                let header = [line.base().0.to_le_bytes(), group.to_le_bytes()].concat();
                mc.undo = Undo::Recording(line, group);
                let payload = Payload::new(&header);
                out.push(Action::Append {
                    from: Origin::Controller,
                    at,
                    payload,
                    cause: Cause::Log,
                    token: Some(token),
                });
            }
            Undo::Recording(line, group) => {
                mc.undo = Undo::Idle;
                mc.records += 1;
                mc.logged.insert((line, group));
                // The transaction may have committed meanwhile: then the entry is an ordinary one already.
                if mc.speculative.front() == Some(&(line, group)) {
                    mc.speculative.pop_front();
                    out.push(PlannedAction::ReleaseHeldLine { controller, group, line });
                }
            }
            Undo::Idle => unreachable!("nothing of the log was in flight"),
        }
    }

    fn message_at(&mut self, _: &Ctx, at: Place, message: Message, out: &mut PlannedActions) {
        match (at, message.kind) {
            (Place::Controller(_) | Place::LlcBank(_), DTX_COMMIT) => {
                self.commit_at(at, message.a, CoreId(message.b as u16), out);
            }
            (Place::Core(core), COMMIT_ACK) => self.commit_acked(core, message.a, out),
            _ => unreachable!("LAD sends no such message"),
        }
    }

    fn drained(&mut self, _: &Ctx, departure: &Departure, out: &mut PlannedActions) {
        let controller = departure.controller;
        let mc = &mut self.controllers[usize::from(controller)];
        if let Some(group) = departure.group {
            let (line, dtx) = (departure.line, Dtx::of(group));
            let is_committed = dtx.is_committed(mc.committed[usize::from(dtx.tid)]);
            assert!(
                is_committed || mc.logged.contains(&(line, group)),
                "a speculative {line:?} was written without a log"
            );
        }
        if std::mem::take(&mut mc.refused) {
            out.push(Action::Raise(Signal(ROOM | u64::from(controller))));
        }
        if self.is_pressed(departure.queue.held, departure.queue.entries) {
            self.log_oldest(controller, out);
        }
    }

    /// Section 4.8: DTX_CIDs stay, staged writes go to the purgatory in order.
    fn crash_staged(&self, staged: &[StagedWrite], sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        sink.keep("dtx_cid", self.controllers.iter().flat_map(|mc| mc.committed.clone()).collect());
        let purgatory = self.geometry.region("purgatory").base;
        for (index, write) in staged.iter().enumerate() {
            let at = purgatory.plus(index as u64 * RECORD_BYTES);
            sink.write(at.plus(64), &write.data)?;
            let header = [1 + u64::from(write.controller), write.line.base().0, write.group.unwrap_or(0), write.mask];
            sink.write(at, &header.map(u64::to_le_bytes).concat())?;
        }
        Ok(())
    }
}
