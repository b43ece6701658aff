//! A design under observation: the real design answers each hook, and the subject records what call, verdict and
//! actions mean for the protocol.

use super::log::{Shared, number_below};
use super::{Planted, Subject};
use durasim_contract::{
    AbortCause, Accept, Actions, ActiveFault, AnyState, Arrival, BeginRule, BudgetSpent, BuildResult, CommitRule,
    CrashImage, CrashSink, CrashView, Ctx, Departure, Durability, ErasedDesign, Evict, Fill, FlushVerdict, Gate,
    Geometry, LevelId, LineTag, Load, LogBlock, Merge, Message, Node, Probe, RecoveryCut, RecoveryReport, Request,
    Scanned, Store, Token, Variant,
};
use durasim_designs::variant;
use durasim_types::{Cycle, Line, LineAddr, PhysAddr, Stats, TxId};
use serde_json::Value;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::hash::Hasher;

/// The next design that this thread builds: the registry builds designs from their parameters alone.
struct Next<S: Subject> {
    shared: Shared<S>,
    planted: Option<S::Planted>,
}

thread_local! {
    static NEXT: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
    /// The design under observation, and its fault.
    static DESIGN: Cell<Option<(&'static Variant, ActiveFault)>> = const { Cell::new(None) };
}

/// A variant of a design; the next machine that is built from it is observed.
pub fn observed_variant<S: Subject>(name: &str, shared: &Shared<S>, planted: Option<S::Planted>) -> Variant {
    let variant = variant(name).expect("it is registered");
    let fault = planted.map_or(ActiveFault::NONE, Planted::in_design);
    NEXT.with(|next| *next.borrow_mut() = Some(Box::new(Next { shared: shared.clone(), planted })));
    DESIGN.set(Some((variant, fault)));
    Variant { hardware: ErasedDesign { build: build::<S>, recover, ..variant.hardware }, ..*variant }
}

fn design(geometry: &Geometry) -> (&'static Variant, Geometry) {
    let (variant, planted) = DESIGN.get().expect("a design was prepared");
    (variant, Geometry { planted, ..geometry.clone() })
}

fn build<S: Subject>(spec: &Value, geometry: &Geometry) -> BuildResult {
    let (variant, geometry) = design(geometry);
    let inner = (variant.hardware.build)(spec, &geometry)?;
    let next = NEXT.with(|next| next.borrow_mut().take()).expect("a log was prepared");
    let Next { shared, planted } = *next.downcast::<Next<S>>().expect("it is of this subject");
    Ok(Box::new(Recorder { inner, shared, planted, geometry }))
}

fn recover(spec: &Value, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
    let (variant, geometry) = design(geometry);
    (variant.hardware.recover)(spec, &geometry, image)
}

/// The real design, and the log of what it does.
pub struct Recorder<S: Subject> {
    pub inner: Box<dyn Durability>,
    pub shared: Shared<S>,
    pub geometry: Geometry,
    planted: Option<S::Planted>,
}

impl<S: Subject> Recorder<S> {
    pub fn has(&self, planted: S::Planted) -> bool {
        self.planted == Some(planted)
    }

    pub fn push(&self, step: S::Step) {
        self.shared.push(step);
    }
}

/// Makes of a list of hooks the trait that observes them, and the design that passes all hooks on.
macro_rules! hooks {
    (observed { $($hook:ident($($arg:ident: $kind:ty),*) $(-> $verdict:ty)?;)* }
     passed { $($passed:ident(&$($mutable:ident)?; $($its:ident: $type:ty),*) $(-> $result:ty)?;)* }) => {
        /// The observation of a design. A hook that is not overridden is answered by the design, and its actions noted.
        pub trait Observe: Sized + Send + 'static {
            /// A step of the design that is one of its model.
            type Step: Clone + Debug + Send;
            /// Notes between one hook and another.
            type Notes: Default + Send;
            /// Faults that can be planted.
            type Planted: Planted;
            /// Lines of persistent memory that runs use, side by side.
            const LINES: u8;

            /// The number of a line, if runs use it.
            fn number(line: LineAddr) -> Option<u8> {
                number_below(Self::LINES, line)
            }

            /// Records actions that any hook may ask for.
            fn note(recorder: &Recorder<Self>, out: &Actions)
            where
                Self: Subject;

            $(fn $hook(recorder: &mut Recorder<Self>, $($arg: $kind,)* out: &mut Actions) $(-> $verdict)?
            where
                Self: Subject,
            {
                let verdict = recorder.inner.$hook($($arg,)* out);
                Self::note(recorder, out);
                verdict
            })*

            /// The place of a version among others of its line, after the design's verdict.
            fn merge(
                _recorder: &Recorder<Self>,
                _line: LineAddr,
                verdict: Merge,
                _resident: LineTag,
                _incoming: LineTag,
            ) -> Merge
            where
                Self: Subject,
            {
                verdict
            }

            /// The flush on a power failure.
            fn crash(
                recorder: &Recorder<Self>,
                view: &CrashView<'_>,
                sink: &mut CrashSink<'_>,
            ) -> Result<(), BudgetSpent>
            where
                Self: Subject,
            {
                recorder.inner.crash(view, sink)
            }
        }

        impl<S: Subject> Durability for Recorder<S> {
            $(fn $hook(&mut self, $($arg: $kind,)* out: &mut Actions) $(-> $verdict)? {
                S::$hook(self, $($arg,)* out)
            })*

            $(fn $passed(&$($mutable)? self, $($its: $type),*) $(-> $result)? {
                self.inner.$passed($($its),*)
            })*

            fn merge(&mut self, level: LevelId, line: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
                let verdict = self.inner.merge(level, line, resident, incoming);
                S::merge(self, line, verdict, resident, incoming)
            }

            fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
                S::crash(self, view, sink)
            }

            /// The machine calls the hooks for all lines, so that each access is observed.
            fn skips_hooks_on_own_lines(&self) -> bool {
                false
            }
        }
    };
}

hooks! {
    observed {
    tx_begin(cx: &Ctx, tx: TxId) -> Gate;
    store(cx: &Ctx, store: &Store<'_>, tag: &mut LineTag) -> Gate;
    log_flush(cx: &Ctx, block: &LogBlock) -> Gate;
    log_flush_early(cx: &Ctx, block: &LogBlock) -> bool;
    tx_commit(cx: &Ctx, tx: TxId) -> Gate;
    tx_abort(cx: &Ctx, tx: TxId, why: AbortCause) -> Gate;
    load(cx: &Ctx, load: &Load, tag: &mut LineTag) -> Gate;
    atomic(cx: &Ctx, addr: PhysAddr) -> Gate;
    evict(cx: &Ctx, from: LevelId, line: LineAddr, tag: LineTag, data: &Line) -> Evict;
    fill(cx: &Ctx, line: LineAddr, tx: Option<TxId>) -> Fill;
    probe(cx: &Ctx, request: &Request) -> Probe;
    accept(cx: &Ctx, arrival: &Arrival) -> Accept;
    drained(cx: &Ctx, departure: &Departure) -> ();
    message(cx: &Ctx, at: Node, message: Message) -> ();
    acked(cx: &Ctx, token: Token, addr: PhysAddr) -> ();
    read_done(cx: &Ctx, token: Token, addr: PhysAddr, data: &Line) -> ();
    woken(cx: &Ctx, id: u64) -> ();
    fence(cx: &Ctx) -> Gate;
    flush(cx: &Ctx, line: LineAddr, tag: LineTag) -> FlushVerdict;
    context_switch(cx: &Ctx, leaving: Option<TxId>, coming: Option<TxId>) -> Gate;
    }
    passed {
    abort_status(&; why: AbortCause, nested: bool) -> u64;
    begin_rule(&;) -> BeginRule;
    commit_rule(&;) -> CommitRule;
    tagged_access_cycles(&; level: LevelId) -> Cycle;
    access(&mut; cx: &Ctx, level: LevelId, line: LineAddr, tag: LineTag) -> Gate;
    llc_request(&mut; cx: &Ctx, line: LineAddr) -> Gate;
    victim(&mut; level: LevelId, incoming: LineTag, full: bool, tags: &[LineTag], ranks: &[u32]) -> Option<usize>;
    filters_queue_writes(&;) -> bool;
    scanned(&mut; cx: &Ctx, id: u64, line: LineAddr, dirty: bool, tag: &mut LineTag) -> Scanned;
    tag_limit(&; level: LevelId) -> Option<u32>;
    tags_are_exclusive(&;) -> bool;
    tags_follow_newest_data(&;) -> bool;
    notes_expire(&;) -> bool;
    llc_keeps_tagged(&;) -> bool;
    live(&; tag: LineTag) -> bool;
    belongs_to(&; tag: LineTag, tx: TxId) -> bool;
    shut_down(&; image: &mut CrashImage);
    marks(&; mark: &mut dyn FnMut(&'static str));
    stats(&; stats: &mut Stats);
    }
}

impl<S: Subject> AnyState for Recorder<S> {
    fn digest(&self, hasher: &mut dyn Hasher) {
        self.inner.digest(hasher);
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
