//! Hercules under observation: each hook is answered by the real design, and what call, verdict and actions mean for the
//! protocol is written to a log. A fault can be planted on the way, to see that the replay finds it.

use super::log::{Observed, Shared, number};
use durasim_contract::{
    AbortCause, Accept, Action, Actions, Arrival, BeginRule, BudgetSpent, CommitRule, CopyRequest, CrashImage,
    CrashSink, CrashView, Ctx, Departure, Design, Durability, ErasedDesign, Evict, Fill, FlushVerdict, Gate, Geometry,
    HardwareCost, Hooks, LevelId, LineTag, Load, Merge, Message, Node, Probe, RecoveryCut, RecoveryReport,
    RegionRequest, Request, Scanned, SpecError, Store, Token, Variant,
};
use durasim_designs::{Hercules, variant};
use durasim_types::{EventKind, Line, LineAddr, PhysAddr, Stats, TxId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::ops::Range;

/// What is wrong with the design under observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Commits do not store TxLen.
    TxLenNotStored,
    /// Tagged lines that leave the LLC go home.
    TaggedLinesGoHome,
    /// A pre-image is overwritten instead of pushed down.
    MergeAlwaysOverwrites,
    /// No pre-image goes down before a transactional store.
    CopyDownForgotten,
    /// Misses do not search the log.
    FillIgnoresEntries,
    /// Aborts leave the tagged lines in the caches.
    AbortKeepsLines,
    /// Every core gets every line.
    ProbeGrants,
    /// The crash flush loses the newest line.
    FlushDropsLine,
    /// A line does not wait for the migration of an older version.
    MigrationOvertaken,
    /// The migration engine takes an entry of an open transaction home, too.
    OpenEntryMigrates,
}

thread_local! {
    /// Where the next design that this thread builds writes to, and what is wrong with it: the registry builds designs
    /// from their parameters alone.
    static NEXT: RefCell<Option<(Shared, Option<Planted>)>> = const { RefCell::new(None) };
}

/// The variant of Hercules; the next machine that is built from it is observed.
pub fn observed_variant(shared: &Shared, planted: Option<Planted>) -> Variant {
    NEXT.with(|next| *next.borrow_mut() = Some((shared.clone(), planted)));
    Variant { hardware: ErasedDesign::of::<Observing>(), ..*variant("hercules").expect("it is registered") }
}

struct Observing;

impl Design for Observing {
    const NAME: &'static str = Hercules::NAME;
    const HOOKS: Hooks = Hercules::HOOKS;
    type Spec = <Hercules as Design>::Spec;

    fn adapt(spec: &Self::Spec, geometry: &mut Geometry) {
        Hercules::adapt(spec, geometry);
    }

    fn reserve(spec: &Self::Spec, geometry: &Geometry) -> Vec<RegionRequest> {
        Hercules::reserve(spec, geometry)
    }

    fn build(spec: &Self::Spec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        let inner = Hercules::build(spec, geometry)?;
        let (shared, planted) = NEXT.with(|next| next.borrow_mut().take()).expect("a log was prepared");
        Ok(Box::new(Recorder {
            inner,
            shared,
            planted,
            pmem: geometry.pmem_base.0..geometry.pmem_base.0 + geometry.pmem_bytes,
            forgets: BTreeMap::new(),
            migrations: BTreeMap::new(),
            last: None,
        }))
    }

    fn load(_: &Self::Spec, _: &Geometry, _: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        unreachable!("runs under observation are not loaded")
    }

    fn recover(spec: &Self::Spec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Hercules::recover(spec, geometry, image)
    }

    fn cost(spec: &Self::Spec, geometry: &Geometry) -> HardwareCost {
        Hercules::cost(spec, geometry)
    }
}

struct Recorder {
    inner: Box<dyn Durability>,
    shared: Shared,
    planted: Option<Planted>,
    /// Addresses of persistent memory.
    pmem: Range<u64>,
    /// Second steps of aborts, by the number under which the design is woken.
    forgets: BTreeMap<u64, TxId>,
    /// Lines that migrations carry home.
    migrations: BTreeMap<Token, u8>,
    /// The last premature flush: home, place in the log.
    last: Option<(LineAddr, PhysAddr)>,
}

/// Takes actions out of a list.
fn without(out: &mut Actions, drop: impl Fn(&Action) -> bool) {
    let kept: Vec<Action> = out.as_slice().iter().filter(|action| !drop(action)).copied().collect();
    out.clear();
    kept.into_iter().for_each(|action| out.push(action));
}

fn stamp_of(data: &Line) -> u64 {
    u64::from_le_bytes(data[..8].try_into().expect("a line has eight bytes"))
}

impl Recorder {
    fn has(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }

    /// Whether this is the eight-byte record of an entry that moves to the extension area: its log entry, which it counts
    /// from one.
    fn spilled(&self, action: &Action) -> Option<u32> {
        let Action::Append { payload, .. } = action else { return None };
        let record = u64::from_le_bytes(payload.bytes().try_into().ok()?);
        // What chains a block to the extension area, or indexes a chunk of the log, is an address.
        let log = (record & ((1 << 21) - 1)).checked_sub(1)?;
        (!self.pmem.contains(&record)).then_some(log as u32)
    }

    /// What any hook may ask for: migrations, and the end of a commit.
    fn note(&mut self, out: &Actions) {
        for action in out.as_slice() {
            match action {
                Action::Copy(CopyRequest { from, to, token: Some(token), .. }) => {
                    if let Some(line) = number(to.line()) {
                        self.migrations.insert(*token, line);
                        self.shared.push(Observed::MigrationStarted { line, from: *from });
                    }
                }
                Action::Event(EventKind::Commit, tx_len) => {
                    self.shared.push(Observed::StatesReset { tx_len: *tx_len });
                }
                _ => {}
            }
        }
    }

    /// A TxLen that is in flight: through the caches, or straight to the controller.
    fn tx_len(out: &Actions) -> Option<(PhysAddr, bool)> {
        out.as_slice().iter().find_map(|action| match action {
            Action::PutCached { addr, .. } => Some((*addr, true)),
            Action::Append { at, payload, .. } if payload.bytes().len() == 4 => Some((*at, false)),
            _ => None,
        })
    }
}

impl Durability for Recorder {
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = self.inner.tx_begin(cx, tx, out);
        if gate == Gate::Done {
            let (addr, cached) = Self::tx_len(out).expect("tx_start clears TxLen");
            self.shared.push(Observed::Begin { tx, tx_len: addr });
            if cached {
                self.shared.with(|log| log.tx_lens.insert(addr, (tx, true)));
            } else {
                // With eADR what is handed over to the controller survives, in whatever buffer it waits.
                self.shared.push(Observed::TxLenCleared { tx });
            }
        }
        self.note(out);
        gate
    }

    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let before = *tag;
        let gate = self.inner.store(cx, store, tag, out);
        if self.has(Planted::CopyDownForgotten) {
            without(out, |action| matches!(action, Action::CopyDown(_)));
        }
        if let (Gate::Done, Some(line)) = (gate, number(store.line())) {
            let stamp = store.data;
            match store.tx {
                Some(tx) => {
                    self.shared.push(Observed::TaggedStore { tx, line, stamp });
                    let copied = out.as_slice().contains(&Action::CopyDown(store.line()));
                    if store.dirty && before != *tag && !copied {
                        self.shared.push(Observed::Overwrite { line });
                    }
                }
                None => {
                    self.shared.with(|log| log.plain.insert(cx.core, (line, stamp)));
                }
            }
        }
        self.note(out);
        gate
    }

    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = self.inner.tx_commit(cx, tx, out);
        if self.has(Planted::TxLenNotStored) {
            without(out, |action| matches!(action, Action::PutCached { .. }));
        }
        let first = out.as_slice().iter().any(|action| matches!(action, Action::Resume { .. }));
        let tx_len = Self::tx_len(out);
        if first || tx_len.is_some() {
            self.shared.push(Observed::CommitRequested { tx });
        }
        if let Some((addr, true)) = tx_len {
            self.shared.with(|log| log.tx_lens.insert(addr, (tx, false)));
        }
        self.note(out);
        gate
    }

    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, why: AbortCause, out: &mut Actions) -> Gate {
        let gate = self.inner.tx_abort(cx, tx, why, out);
        if self.has(Planted::AbortKeepsLines) {
            without(out, |action| matches!(action, Action::InvalidateTagged(_)));
        }
        self.shared.push(Observed::Abort { tx, conflict: why == AbortCause::Conflict });
        // Its TxLen, if it was about to be stored, is not.
        self.shared.with(|log| log.tx_lens.retain(|_, (other, _)| *other != tx));
        for action in out.as_slice() {
            if let Action::Resume { id } = action {
                self.forgets.insert(*id, tx);
            }
        }
        self.note(out);
        gate
    }

    fn commit_rule(&self) -> CommitRule {
        self.inner.commit_rule()
    }

    fn load(&mut self, cx: &Ctx, load: &Load, tag: &mut LineTag, out: &mut Actions) -> Gate {
        self.inner.load(cx, load, tag, out)
    }

    fn atomic(&mut self, cx: &Ctx, addr: PhysAddr, out: &mut Actions) -> Gate {
        self.inner.atomic(cx, addr, out)
    }

    fn access(&mut self, cx: &Ctx, level: LevelId, line: LineAddr, tag: LineTag) -> Gate {
        self.inner.access(cx, level, line, tag)
    }

    fn merge(&mut self, level: LevelId, line: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        let verdict = match self.has(Planted::MergeAlwaysOverwrites) {
            true => Merge::Overwrite,
            false => self.inner.merge(level, line, resident, incoming),
        };
        if let (Merge::Overwrite, Some(line)) = (verdict, number(line))
            && incoming.is_some()
            && !resident.is_some()
        {
            self.shared.push(Observed::Overwrite { line });
        }
        verdict
    }

    fn victim(
        &mut self,
        level: LevelId,
        incoming: LineTag,
        full: bool,
        tags: &[LineTag],
        ranks: &[u32],
    ) -> Option<usize> {
        self.inner.victim(level, incoming, full, tags, ranks)
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
        let mut verdict = match self.has(Planted::TaggedLinesGoHome) {
            true => Evict::Proceed,
            false => self.inner.evict(cx, from, line, tag, data, out),
        };
        if self.has(Planted::MigrationOvertaken) && matches!(verdict, Evict::After(_)) && !tag.is_some() {
            verdict = Evict::Proceed;
        }
        for slot in out.as_slice().iter().filter_map(|action| self.spilled(action)) {
            self.shared.push(Observed::Spill { slot });
        }
        if let Some(line) = number(line) {
            let stamp = stamp_of(data);
            match verdict {
                Evict::Proceed => self.shared.push(Observed::WriteHome { line, stamp }),
                Evict::To { at, .. } => self.shared.push(Observed::PrematureFlush { line, stamp, at }),
                _ => {}
            }
        }
        if let Evict::To { at, .. } = verdict {
            self.last = Some((line, at));
        }
        self.note(out);
        verdict
    }

    fn fill(&mut self, cx: &Ctx, line: LineAddr, tx: Option<TxId>, out: &mut Actions) -> Fill {
        let verdict = match self.has(Planted::FillIgnoresEntries) {
            true => Fill::Home { search_cycles: 0, serial: false },
            false => self.inner.fill(cx, line, tx, out),
        };
        if let Some(line) = number(line) {
            match &verdict {
                Fill::Home { .. } => self.shared.push(Observed::Fetch { line, by: tx }),
                Fill::From { at, .. } => self.shared.push(Observed::Reload { line, by: tx, from: *at }),
                _ => {}
            }
        }
        self.note(out);
        verdict
    }

    fn probe(&mut self, cx: &Ctx, request: &Request, out: &mut Actions) -> Probe {
        let verdict = match self.has(Planted::ProbeGrants) {
            true => Probe::Grant,
            false => self.inner.probe(cx, request, out),
        };
        if let (Probe::Grant, Some(line)) = (verdict, number(request.line)) {
            self.shared.push(Observed::Access { line, by: request.tx });
        }
        self.note(out);
        verdict
    }

    fn filters_queue_writes(&self) -> bool {
        self.inner.filters_queue_writes()
    }

    fn begin_rule(&self) -> BeginRule {
        self.inner.begin_rule()
    }

    fn drained(&mut self, cx: &Ctx, departure: &Departure, out: &mut Actions) {
        self.inner.drained(cx, departure, out);
        self.note(out);
    }

    fn accept(&mut self, cx: &Ctx, arrival: &Arrival, out: &mut Actions) -> Accept {
        self.inner.accept(cx, arrival, out)
    }

    fn message(&mut self, cx: &Ctx, at: Node, message: Message, out: &mut Actions) {
        self.inner.message(cx, at, message, out);
        self.note(out);
    }

    fn acked(&mut self, cx: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        self.inner.acked(cx, token, addr, out);
        if let Some(line) = self.migrations.remove(&token) {
            self.shared.push(Observed::EntryFreed { line });
        }
        self.note(out);
    }

    fn woken(&mut self, cx: &Ctx, id: u64, out: &mut Actions) {
        self.inner.woken(cx, id, out);
        if let Some(tx) = self.forgets.remove(&id) {
            self.shared.push(Observed::Forgotten { tx });
        }
        if self.has(Planted::OpenEntryMigrates)
            && let Some((line, from)) = self.last.take()
        {
            // As if the engine did not compare TxStates; the token is one that the design never uses.
            let token = Some(Token(1 << 60));
            let cause = durasim_types::Cause::Migration;
            out.push(Action::Copy(CopyRequest {
                by: durasim_contract::Origin::Controller,
                from,
                to: line.base(),
                len: 64,
                below_held: false,
                cause,
                token,
            }));
        }
        self.note(out);
    }

    fn scanned(&mut self, cx: &Ctx, id: u64, line: LineAddr, dirty: bool, tag: &mut LineTag) -> Scanned {
        self.inner.scanned(cx, id, line, dirty, tag)
    }

    fn fence(&mut self, cx: &Ctx, out: &mut Actions) -> Gate {
        self.inner.fence(cx, out)
    }

    fn flush(&mut self, cx: &Ctx, line: LineAddr, tag: LineTag, out: &mut Actions) -> FlushVerdict {
        let verdict = self.inner.flush(cx, line, tag, out);
        if let (FlushVerdict::Proceed, Some(line)) = (verdict, number(line)) {
            self.shared.push(Observed::Clean { line });
        }
        verdict
    }

    fn context_switch(&mut self, cx: &Ctx, leaving: Option<TxId>, coming: Option<TxId>, out: &mut Actions) -> Gate {
        let gate = self.inner.context_switch(cx, leaving, coming, out);
        if let Some(tx) = leaving {
            self.shared.push(Observed::Leave { tx });
        }
        if let Some(tx) = coming {
            self.shared.push(Observed::Come { tx });
        }
        gate
    }

    fn tag_limit(&self, level: LevelId) -> Option<u32> {
        self.inner.tag_limit(level)
    }

    fn tags_are_exclusive(&self) -> bool {
        self.inner.tags_are_exclusive()
    }

    fn live(&self, tag: LineTag) -> bool {
        self.inner.live(tag)
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        self.inner.belongs_to(tag, tx)
    }

    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        let lines = match (self.has(Planted::FlushDropsLine), view.lines) {
            (true, [lines @ .., _]) => lines,
            (_, lines) => lines,
        };
        self.inner.crash(&CrashView { domain: view.domain, geometry: view.geometry, lines, staged: view.staged }, sink)
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
