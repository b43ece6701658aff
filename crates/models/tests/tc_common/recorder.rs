//! The transaction cache under observation: each hook is answered by the real design, and what call, verdict and actions
//! mean for the protocol is written to a log. Its own planted faults show that the replay finds something.

use durasim_contract::{
    AbortCause, Action, Actions, ActiveFault, BudgetSpent, CommitRule, CopyRequest, CrashImage, CrashSink, CrashView,
    Ctx, Design, Durability, ErasedDesign, Evict, Fill, FlushVerdict, Gate, Geometry, HardwareCost, Hooks, LevelId,
    LineTag, Merge, RecoveryCut, RecoveryReport, RegionRequest, SpecError, Store, Token, Variant,
};
use durasim_designs::{Tc, variant};
use durasim_machine::{Observer, PMEM_BASE, Plan, System};
use durasim_types::{Cause, CoreId, Line, LineAddr, PersistEvent, PhysAddr, Rng, Stats, TxId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::{Arc, Mutex};

/// Lines of persistent memory that runs use, side by side.
pub const LINES: u8 = 12;

/// The number of a line, if it is one of those.
pub fn number(line: LineAddr) -> Option<u8> {
    let offset = line.base().0.checked_sub(PMEM_BASE.0)? / 64;
    (offset < u64::from(LINES)).then_some(offset as u8)
}

/// A line by its number.
pub fn line(number: u8) -> LineAddr {
    PMEM_BASE.plus(u64::from(number) * 64).line()
}

/// One observation. A stamp is what a store writes into the first word of its line; no two stores write the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    Begin {
        tx: TxId,
        core: u8,
    },
    Store {
        tx: TxId,
        line: u8,
        stamp: u64,
    },
    Commit {
        tx: TxId,
    },
    /// The design was asked to abort it, perhaps again.
    Abort {
        tx: TxId,
    },
    /// Its abort has ended.
    Forgotten {
        tx: TxId,
    },
    /// An entry was sent home.
    Issue {
        line: u8,
        stamp: u64,
    },
    /// The acknowledgement of an entry.
    Acknowledged {
        line: u8,
    },
    CopyStarted {
        line: u8,
    },
    Copied {
        line: u8,
    },
    /// The LLC dropped the line.
    Drop {
        line: u8,
    },
    /// A miss; the stamp that entries give it.
    Fetch {
        line: u8,
        stamp: Option<u64>,
    },
    /// The stamps that a recovery finds if power fails here.
    Crash {
        found: Vec<u64>,
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

    fn push(&self, observed: Observed) {
        self.with(|log| log.observed.push(observed));
    }

    /// Records what recovery would find now.
    pub fn crash(&self, system: &System) {
        let plan = self.plan.as_ref().expect("the observer has the plan");
        let (mut image, complete): (CrashImage, _) = system.crash_image(u64::MAX);
        complete.expect("the design asks for no energy");
        (plan.variant.hardware.recover)(&plan.spec, &plan.geometry, &mut image).expect("recovery is not cut");
        let found = (0..LINES).map(|n| image.read_u64(line(n).base())).collect();
        self.push(Observed::Crash { found });
    }
}

impl Observer for Shared {
    fn event(&mut self, _: &PersistEvent, system: &System) -> bool {
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

/// The variant of the transaction cache; the next machine that is built from it is observed.
pub fn observed_variant(shared: &Shared, fault: ActiveFault) -> Variant {
    NEXT.with(|next| *next.borrow_mut() = Some(shared.clone()));
    FAULT.with(|place| *place.borrow_mut() = fault);
    Variant { hardware: ErasedDesign::of::<Observing>(), ..*variant("tc").expect("it is registered") }
}

fn with_fault(geometry: &Geometry) -> Geometry {
    Geometry { planted: FAULT.with(|place| *place.borrow()), ..geometry.clone() }
}

struct Observing;

impl Design for Observing {
    const NAME: &'static str = Tc::NAME;
    const HOOKS: Hooks = Tc::HOOKS;
    type Spec = <Tc as Design>::Spec;

    fn reserve(spec: &Self::Spec, geometry: &Geometry) -> Vec<RegionRequest> {
        Tc::reserve(spec, geometry)
    }

    fn build(spec: &Self::Spec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        let inner = Tc::build(spec, &with_fault(geometry))?;
        let shared = NEXT.with(|next| next.borrow_mut().take()).expect("a log was prepared");
        Ok(Box::new(Recorder { inner, shared, issued: BTreeMap::new(), copies: BTreeMap::new() }))
    }

    fn load(_: &Self::Spec, _: &Geometry, _: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        unreachable!("runs under observation are not loaded")
    }

    fn recover(spec: &Self::Spec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Tc::recover(spec, &with_fault(geometry), image)
    }

    fn cost(spec: &Self::Spec, geometry: &Geometry) -> HardwareCost {
        Tc::cost(spec, geometry)
    }
}

struct Recorder {
    inner: Box<dyn Durability>,
    shared: Shared,
    /// Entries in flight to the home address.
    issued: BTreeMap<Token, u8>,
    /// Old lines in flight to the shadow area, and how many acknowledgements are missing.
    copies: BTreeMap<Token, (u8, u8)>,
}

fn stamp_of(data: &[u8]) -> u64 {
    u64::from_le_bytes(data[..8].try_into().expect("a line has eight bytes"))
}

impl Recorder {
    /// What any hook may ask for: entries that go home, and copies to the shadow area.
    fn note(&mut self, out: &Actions) {
        for action in out.as_slice() {
            match action {
                Action::Append { at, payload, cause: Cause::Data, token: Some(token), .. } => {
                    let Some(line) = number(at.line()) else { continue };
                    self.issued.insert(*token, line);
                    self.shared.push(Observed::Issue { line, stamp: stamp_of(payload.bytes()) });
                }
                Action::Copy(CopyRequest { from, cause: Cause::Log, token: Some(token), .. }) => {
                    let Some(line) = number(from.line()) else { continue };
                    self.copies.insert(*token, (line, 2));
                    self.shared.push(Observed::CopyStarted { line });
                }
                _ => {}
            }
        }
    }
}

impl Durability for Recorder {
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = self.inner.tx_begin(cx, tx, out);
        if gate == Gate::Done {
            self.shared.push(Observed::Begin { tx, core: cx.core.0 as u8 });
        }
        gate
    }

    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let gate = self.inner.store(cx, store, tag, out);
        self.note(out);
        if let (Gate::Done, Some(line), Some(tx)) = (gate, number(store.line()), store.tx) {
            self.shared.push(Observed::Store { tx, line, stamp: store.data });
        }
        gate
    }

    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = self.inner.tx_commit(cx, tx, out);
        if matches!(gate, Gate::Done | Gate::After(_)) {
            self.shared.push(Observed::Commit { tx });
        }
        self.note(out);
        gate
    }

    fn commit_rule(&self) -> CommitRule {
        self.inner.commit_rule()
    }

    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, why: AbortCause, out: &mut Actions) -> Gate {
        let gate = self.inner.tx_abort(cx, tx, why, out);
        self.shared.push(Observed::Abort { tx });
        if gate == Gate::Done {
            self.shared.push(Observed::Forgotten { tx });
        }
        gate
    }

    fn merge(&mut self, level: LevelId, line: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        self.inner.merge(level, line, resident, incoming)
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
        if let (Evict::Drop, Some(line)) = (&verdict, number(line)) {
            self.shared.push(Observed::Drop { line });
        }
        verdict
    }

    fn fill(&mut self, cx: &Ctx, line: LineAddr, tx: Option<TxId>, out: &mut Actions) -> Fill {
        let verdict = self.inner.fill(cx, line, tx, out);
        if let Some(line) = number(line) {
            let overlay = match &verdict {
                Fill::Gather { gather, .. } => gather.overlay.as_ref().filter(|overlay| overlay.mask & 1 == 1),
                _ => None,
            };
            self.shared.push(Observed::Fetch { line, stamp: overlay.map(|overlay| stamp_of(&overlay.data)) });
        }
        verdict
    }

    fn flush(&mut self, cx: &Ctx, line: LineAddr, tag: LineTag, out: &mut Actions) -> FlushVerdict {
        self.inner.flush(cx, line, tag, out)
    }

    fn acked(&mut self, cx: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        self.inner.acked(cx, token, addr, out);
        if let Some(line) = self.issued.remove(&token) {
            self.shared.push(Observed::Acknowledged { line });
        }
        if let Some((line, left)) = self.copies.remove(&token) {
            match left {
                1 => self.shared.push(Observed::Copied { line }),
                _ => drop(self.copies.insert(token, (line, left - 1))),
            }
        }
        self.note(out);
    }

    fn woken(&mut self, cx: &Ctx, id: u64, out: &mut Actions) {
        self.inner.woken(cx, id, out);
        self.note(out);
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

/// The core with a number.
pub fn core(number: usize) -> CoreId {
    CoreId(number as u16)
}
