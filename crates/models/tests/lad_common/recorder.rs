//! LAD under observation: each hook is answered by the real design, and what call, verdict and actions mean for the protocol
//! is written to a log. Its own planted faults show that the replay finds something.

use durasim_contract::{
    AbortCause, Accept, Action, Actions, ActiveFault, Arrival, BeginRule, BudgetSpent, CommitRule, CrashImage,
    CrashSink, CrashView, Ctx, Departure, Design, Durability, ErasedDesign, Evict, FlushVerdict, Gate, Geometry,
    HardwareCost, Hooks, LevelId, LineTag, Message, Node, Probe, RecoveryCut, RecoveryReport, RegionRequest, Request,
    SpecError, Store, Token, Variant, snapshot,
};
use durasim_designs::{Lad, LadBase, variant};
use durasim_machine::{Observer, PMEM_BASE, Plan, System};
use durasim_types::{Domain, EventKind, Line, LineAddr, Pages, PersistEvent, PhysAddr, Rng, Stats, TxId};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::sync::{Arc, Mutex};

/// Lines of persistent memory that runs use, side by side.
pub const LINES: u8 = 12;

/// Threads that runs have at most.
const THREADS_MAX: usize = 8;
/// What the tokens of the design mean.
const UNDO_TOKEN: u64 = 1 << 32;
const VOID_TOKEN: u64 = 1 << 34;
/// DTX_Commit among the messages of the design.
const DTX_COMMIT: u16 = 1;

/// The number of a line, if it is one of those.
pub fn number(line: LineAddr) -> Option<u8> {
    let offset = line.base().0.checked_sub(PMEM_BASE.0)? / 64;
    (offset < u64::from(LINES)).then_some(offset as u8)
}

/// A line by its number.
pub fn line(number: u8) -> LineAddr {
    PMEM_BASE.plus(u64::from(number) * 64).line()
}

/// LAD_TID and DTX_ID in a token, a group or a message of the design.
pub type Name = (u8, u8);

fn name(number: u64) -> Name {
    ((number >> 8) as u8, number as u8)
}

/// What a controller keeps through a power failure: DTX_CID, the place of the oldest undo entry, and their number.
pub type Kept = (Vec<u8>, u64, u64);

/// One observation. A stamp is what a store writes into the first word of its line; no two stores write the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// A transaction begins; what the controllers keep.
    Begin {
        thread: u8,
        kept: Vec<Kept>,
    },
    Store {
        thread: u8,
        line: u8,
        stamp: u64,
    },
    PlainStore {
        line: u8,
        stamp: u64,
    },
    /// What a load has found.
    Load {
        line: u8,
        stamp: u64,
    },
    /// A line is flushed before its transaction ends.
    Flush {
        of: Name,
        line: u8,
    },
    /// The program cleans a line; the transaction that marks it.
    Clean {
        of: Option<Name>,
        line: u8,
    },
    /// A transaction ends: these lines are flushed.
    End {
        thread: u8,
        lines: Vec<u8>,
    },
    /// Its DTX_Commit is sent.
    Commit {
        thread: u8,
    },
    /// A queue takes a write: a flush or an ordinary one, of which the observer says what it writes.
    Accept {
        controller: u16,
        line: u8,
        of: Option<Name>,
        held: bool,
        stamp: Option<u64>,
    },
    /// A queue takes a write of no bytes, by which a clean asks for the acknowledgement of what came before it.
    Empty {
        line: u8,
    },
    FlushAck {
        thread: u8,
    },
    CommitArrives {
        of: Name,
        controller: u16,
    },
    AckArrives {
        of: Name,
    },
    Drain {
        line: u8,
    },
    Log {
        line: u8,
    },
    OldValueWritten {
        controller: u16,
    },
    Recorded {
        controller: u16,
    },
    Void {
        controller: u16,
        line: u8,
        of: Name,
    },
    /// The stamps that a recovery finds if power fails here, and what the controllers keep.
    Crash {
        found: Vec<u64>,
        kept: Vec<Kept>,
    },
}

/// The record of a run.
pub struct Log {
    pub observed: Vec<Observed>,
    crash_percent: u64,
    rng: Rng,
}

/// A log that the recorder and the observer of a run share.
#[derive(Clone)]
pub struct Shared {
    log: Arc<Mutex<Log>>,
    plan: Option<Plan>,
}

impl Shared {
    pub fn new(seed: u64, crash_percent: u64) -> Self {
        let log = Log { observed: Vec::new(), crash_percent, rng: Rng::new(seed) };
        Shared { log: Arc::new(Mutex::new(log)), plan: None }
    }

    pub fn with_plan(&self, plan: &Plan) -> Self {
        Shared { plan: Some(plan.clone()), ..self.clone() }
    }

    pub fn with<T>(&self, work: impl FnOnce(&mut Log) -> T) -> T {
        work(&mut self.log.lock().expect("nobody panics with it"))
    }

    pub fn push(&self, observed: Observed) {
        self.with(|log| log.observed.push(observed));
    }

    /// What recovery would find now, if it is cut before so many durable steps and begins anew; what the controllers keep.
    fn recovered(&self, system: &System, cut: Option<u64>) -> (Vec<u64>, Vec<Kept>) {
        let plan = self.plan.as_ref().expect("the observer has the plan");
        let (mut image, complete): (CrashImage, _) = system.crash_image(u64::MAX);
        complete.expect("the design asks for no energy");
        let kept = kept_in(&image);
        let recover = |image: &mut CrashImage| (plan.variant.hardware.recover)(&plan.spec, &plan.geometry, image);
        image.cut_at(cut);
        if recover(&mut image).is_err() {
            image.cut_at(None);
            recover(&mut image).expect("recovery is not cut");
        }
        ((0..LINES).map(|n| image.read_u64(line(n).base())).collect(), kept)
    }

    /// Records it, sometimes with a recovery that is cut.
    pub fn crash(&self, system: &System) {
        let cut = self.with(|log| (log.rng.below(3) == 0).then(|| 1 + log.rng.below(8)));
        let (found, kept) = self.recovered(system, cut);
        self.push(Observed::Crash { found, kept });
    }
}

fn kept_in(image: &CrashImage) -> Vec<Kept> {
    let bytes = image.structure("lad-controllers").expect("controllers keep their registers");
    let mut kept: Vec<Kept> = snapshot::from_bytes(bytes).expect("they are DTX_CID, head and number of undo entries");
    kept.iter_mut().for_each(|(committed, ..)| committed.truncate(THREADS_MAX));
    kept
}

impl Observer for Shared {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        let of_line = number(event.addr.line()).filter(|_| event.kind == EventKind::QueueAccept);
        let is_unknown = |observed: Option<&Observed>| matches!(observed, Some(Observed::Accept { line, of: None, stamp: None, .. }) if Some(*line) == of_line);
        // An ordinary write is the youngest of its line, so recovery leaves what it writes.
        if self.with(|log| is_unknown(log.observed.last())) {
            let (found, _) = self.recovered(system, None);
            self.with(|log| {
                if let Some(Observed::Accept { line, stamp, .. }) = log.observed.last_mut() {
                    *stamp = Some(found[usize::from(*line)]);
                }
            });
        }
        if self.with(|log| log.rng.below(100) < log.crash_percent) {
            self.crash(system);
        }
        true
    }
}

thread_local! {
    /// Where the next design that this thread builds writes to: the registry builds designs from their parameters alone.
    static NEXT: RefCell<Option<Shared>> = const { RefCell::new(None) };
    /// What is wrong with the designs that this thread builds, and with their recovery.
    static FAULT: RefCell<ActiveFault> = const { RefCell::new(ActiveFault::NONE) };
}

/// The variant of LAD, or of LAD-Base; the next machine that is built from it is observed.
pub fn observed_variant(shared: &Shared, first_ack: bool, fault: ActiveFault) -> Variant {
    NEXT.with(|next| *next.borrow_mut() = Some(shared.clone()));
    FAULT.with(|place| *place.borrow_mut() = fault);
    let (name, hardware) = match first_ack {
        true => ("lad", ErasedDesign::of::<Observing<true>>()),
        false => ("lad-base", ErasedDesign::of::<Observing<false>>()),
    };
    Variant { hardware, ..*variant(name).expect("it is registered") }
}

fn with_fault(geometry: &Geometry) -> Geometry {
    Geometry { planted: FAULT.with(|place| *place.borrow()), ..geometry.clone() }
}

struct Observing<const FIRST_ACK: bool>;

impl<const FIRST_ACK: bool> Design for Observing<FIRST_ACK> {
    const NAME: &'static str = Lad::NAME;
    const HOOKS: Hooks = Lad::HOOKS;
    const THREADS_MAX: u32 = Lad::THREADS_MAX;
    type Spec = <Lad as Design>::Spec;

    fn reserve(spec: &Self::Spec, geometry: &Geometry) -> Vec<RegionRequest> {
        Lad::reserve(spec, geometry)
    }

    fn build(spec: &Self::Spec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        let geometry = with_fault(geometry);
        let inner = if FIRST_ACK { Lad::build(spec, &geometry)? } else { LadBase::build(spec, &geometry)? };
        let shared = NEXT.with(|next| next.borrow_mut().take()).expect("a log was prepared");
        let controllers = usize::from(geometry.controllers);
        let ending = BTreeSet::new();
        let headers = BTreeMap::new();
        Ok(Box::new(Recorder { inner, shared, geometry, ending, logging: vec![None; controllers], headers }))
    }

    fn load(_: &Self::Spec, _: &Geometry, _: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        unreachable!("runs under observation are not loaded")
    }

    fn recover(spec: &Self::Spec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Lad::recover(spec, &with_fault(geometry), image)
    }

    fn cost(spec: &Self::Spec, geometry: &Geometry) -> HardwareCost {
        Lad::cost(spec, geometry)
    }
}

struct Recorder {
    inner: Box<dyn Durability>,
    shared: Shared,
    geometry: Geometry,
    /// Transactions that have come to their end.
    ending: BTreeSet<u32>,
    /// The line whose undo entry each controller makes.
    logging: Vec<Option<u8>>,
    /// What each line of the undo logs with a place and a transaction names.
    headers: BTreeMap<u64, (u8, Name)>,
}

/// The lines that a list of actions flushes, with their transaction.
fn flushed(out: &Actions) -> Vec<(Name, u8)> {
    let flush = |action: &Action| match action {
        Action::CleanTo { line, token: Some(token), .. } => Some((name(token.0), number(*line)?)),
        _ => None,
    };
    out.as_slice().iter().filter_map(flush).collect()
}

impl Recorder {
    fn push(&self, observed: Observed) {
        self.shared.push(observed);
    }

    /// Flushes among the actions of a hook.
    fn note_flushes(&self, out: &Actions) {
        flushed(out).into_iter().for_each(|(of, line)| self.push(Observed::Flush { of, line }));
    }

    /// Undo entries that begin.
    fn note_logs(&mut self, out: &Actions) {
        for action in out.as_slice() {
            if let Action::Copy(copy) = action
                && let Some(line) = number(copy.from.line())
            {
                let controller = self.geometry.controller_of(copy.from.line());
                self.logging[usize::from(controller)] = Some(line);
                self.push(Observed::Log { line });
            }
        }
    }

    fn kept(&self) -> Vec<Kept> {
        let mut image = CrashImage::new(Pages::new(self.geometry.pmem_base, self.geometry.pmem_bytes));
        let view = CrashView { domain: Domain::Adr, geometry: &self.geometry, lines: &[], staged: &[] };
        self.inner.crash(&view, &mut CrashSink::new(&mut image, u64::MAX)).expect("there is energy");
        kept_in(&image)
    }
}

impl Durability for Recorder {
    fn begin_rule(&self) -> BeginRule {
        self.inner.begin_rule()
    }

    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = self.inner.tx_begin(cx, tx, out);
        if gate == Gate::Done {
            let thread = cx.thread as u8;
            self.push(Observed::Begin { thread, kept: self.kept() });
        }
        self.note_logs(out);
        gate
    }

    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let gate = self.inner.store(cx, store, tag, out);
        if let Some(line) = number(store.line()) {
            let (thread, stamp) = (cx.thread as u8, store.data);
            self.push(match store.tx {
                Some(_) => Observed::Store { thread, line, stamp },
                None => Observed::PlainStore { line, stamp },
            });
        }
        gate
    }

    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = self.inner.tx_commit(cx, tx, out);
        let thread = cx.thread as u8;
        if self.ending.insert(cx.thread) {
            let lines = flushed(out).into_iter().map(|(_, line)| line).collect();
            self.push(Observed::End { thread, lines });
        }
        if out.as_slice().iter().any(|action| matches!(action, Action::Send { .. })) {
            self.push(Observed::Commit { thread });
            self.ending.remove(&cx.thread);
        }
        gate
    }

    fn commit_rule(&self) -> CommitRule {
        self.inner.commit_rule()
    }

    fn tx_abort(&mut self, _: &Ctx, _: TxId, _: AbortCause, _: &mut Actions) -> Gate {
        unreachable!("the driver aborts nothing")
    }

    fn evict(
        &mut self,
        cx: &Ctx,
        from: LevelId,
        line: LineAddr,
        tag: LineTag,
        data: &Line,
        out: &mut Actions,
    ) -> Evict {
        let verdict = self.inner.evict(cx, from, line, tag, data, out);
        self.note_flushes(out);
        verdict
    }

    fn probe(&mut self, cx: &Ctx, request: &Request, out: &mut Actions) -> Probe {
        let verdict = self.inner.probe(cx, request, out);
        self.note_flushes(out);
        verdict
    }

    fn flush(&mut self, cx: &Ctx, line: LineAddr, tag: LineTag, out: &mut Actions) -> FlushVerdict {
        let verdict = self.inner.flush(cx, line, tag, out);
        if let Some(line) = number(line) {
            let of = flushed(out).first().map(|(of, _)| *of);
            self.push(Observed::Clean { of, line });
        }
        verdict
    }

    fn context_switch(&mut self, cx: &Ctx, leaving: Option<TxId>, coming: Option<TxId>, out: &mut Actions) -> Gate {
        let gate = self.inner.context_switch(cx, leaving, coming, out);
        self.note_flushes(out);
        gate
    }

    fn accept(&mut self, cx: &Ctx, arrival: &Arrival, out: &mut Actions) -> Accept {
        let verdict = self.inner.accept(cx, arrival, out);
        self.note_logs(out);
        if let (Accept::Queue { held }, Some(line)) = (&verdict, number(arrival.line)) {
            let of = arrival.token.map(|token| name(token.0));
            let held = held.is_some();
            self.push(match arrival.mask {
                0 => Observed::Empty { line },
                _ => Observed::Accept { controller: arrival.controller, line, of, held, stamp: None },
            });
        }
        verdict
    }

    fn drained(&mut self, cx: &Ctx, departure: &Departure, out: &mut Actions) {
        self.inner.drained(cx, departure, out);
        if let Some(line) = number(departure.line) {
            self.push(Observed::Drain { line });
        }
        self.note_logs(out);
    }

    fn acked(&mut self, cx: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        self.inner.acked(cx, token, addr, out);
        let controller = (token.0 & 0xffff) as u16;
        if token.0 & UNDO_TOKEN != 0 {
            let header = out.as_slice().iter().find_map(|action| match action {
                Action::Append { at, payload, .. } => Some((*at, payload.bytes().to_vec())),
                _ => None,
            });
            match header {
                Some((at, bytes)) => {
                    let dtx = u64::from_le_bytes(bytes[8..16].try_into().expect("it names a DTX"));
                    let line = self.logging[usize::from(controller)].expect("its old value was copied");
                    self.headers.insert(at.line().0, (line, name(dtx)));
                    self.push(Observed::OldValueWritten { controller });
                }
                None => self.push(Observed::Recorded { controller }),
            }
        } else if token.0 & VOID_TOKEN != 0 {
            let (line, of) = self.headers[&addr.line().0];
            self.push(Observed::Void { controller, line, of });
        } else {
            self.push(Observed::FlushAck { thread: name(token.0).0 });
        }
        self.note_logs(out);
    }

    fn message(&mut self, cx: &Ctx, at: Node, message: Message, out: &mut Actions) {
        self.inner.message(cx, at, message, out);
        let of = name(message.a);
        self.push(match at {
            Node::Controller(controller) if message.kind == DTX_COMMIT => Observed::CommitArrives { of, controller },
            _ => Observed::AckArrives { of },
        });
        self.note_logs(out);
    }

    fn woken(&mut self, cx: &Ctx, id: u64, out: &mut Actions) {
        self.inner.woken(cx, id, out);
        self.note_logs(out);
    }

    fn tags_follow_newest_data(&self) -> bool {
        self.inner.tags_follow_newest_data()
    }

    fn notes_expire(&self) -> bool {
        self.inner.notes_expire()
    }

    fn live(&self, tag: LineTag) -> bool {
        self.inner.live(tag)
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        self.inner.belongs_to(tag, tx)
    }

    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        self.inner.crash(view, sink)
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        self.inner.marks(mark);
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        self.inner.digest(hasher);
    }

    fn stats(&self, stats: &mut Stats) {
        self.inner.stats(stats);
    }

    fn reset_stats(&mut self) {
        self.inner.reset_stats();
    }

    fn fork(&self) -> Box<dyn Durability> {
        unreachable!("runs under observation are not forked")
    }

    fn save(&self) -> Vec<u8> {
        self.inner.save()
    }
}
