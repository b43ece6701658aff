//! Hercules and TC with one planted fault each: behaviour is delegated, and bent at one place. The tester has to find
//! every one of them, or it proves nothing about the designs as they are.

use durasim_design::{
    AbortCause, Accept, Action, Actions, BudgetSpent, CommitRule, CrashImage, CrashSink, CrashView, Ctx, Cut, Design,
    Durability, ErasedDesign, Evict, Fill, FlushVerdict, Gate, Geometry, HardwareCost, Hooks, LevelId, LineTag, Merge,
    Message, Node, Probe, RecoveryReport, RegionRequest, Request, Row, Scanned, SpecError, Store, Token,
};
use durasim_designs::{Hercules, Tc, row};
use durasim_types::{Cycle, Line, LineAddr, PhysAddr, Stats, TxId};
use std::hash::Hasher;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// Nothing: the wrapper itself changes nothing.
    None,
    /// The canary of Hercules: recovery overlooks the last line of the emergency area.
    RecoveryDropsEmergencyEntry,
    /// Recovery overlooks the last saved entry of the eWPQ.
    RecoveryDropsMapping,
    /// The crash flush loses the newest dirty line.
    FlushDropsLine,
    /// Commits do not store TxLen.
    TxLenNotStored,
    /// A pre-image is overwritten instead of pushed down.
    MergeAlwaysOverwrites,
    /// Tagged lines that leave the LLC go home.
    TaggedLinesGoHome,
    /// Misses do not search the eWPQ or the transaction cache.
    FillIgnoresEntries,
    /// No pre-image goes down before a transactional store.
    CopyDownForgotten,
    /// Aborts leave the tagged lines in the caches.
    AbortKeepsLines,
    /// Recovery marks the zone as recovered before it is.
    RecoveredTooEarly,
    /// The canary of TC: recovery overlooks the last entry.
    RecoveryDropsEntry,
    /// Recovery replays entries newest first.
    RecoveryNewestFirst,
    /// Recovery does not undo what the fall-back path brought home.
    RecoveryForgetsShadows,
    /// Entries are freed when their write is handed over, not when the media has it.
    AckedBeforeMedia,
    /// Commits do not turn entries into committed ones.
    CommitForgotten,
    /// Every core gets every line, also those of open transactions of others.
    ProbeGrants,
    /// Cores may read lines of open transactions of others.
    ProbeGrantsReaders,
}

const FAULTS: [Fault; 18] = [
    Fault::None,
    Fault::RecoveryDropsEmergencyEntry,
    Fault::RecoveryDropsMapping,
    Fault::FlushDropsLine,
    Fault::TxLenNotStored,
    Fault::MergeAlwaysOverwrites,
    Fault::TaggedLinesGoHome,
    Fault::FillIgnoresEntries,
    Fault::CopyDownForgotten,
    Fault::AbortKeepsLines,
    Fault::RecoveredTooEarly,
    Fault::RecoveryDropsEntry,
    Fault::RecoveryNewestFirst,
    Fault::RecoveryForgetsShadows,
    Fault::AckedBeforeMedia,
    Fault::CommitForgotten,
    Fault::ProbeGrants,
    Fault::ProbeGrantsReaders,
];

/// The design `D` with the fault of that number.
struct Faulty<D, const FAULT: u8>(std::marker::PhantomData<D>);

impl<D: Design, const FAULT: u8> Design for Faulty<D, FAULT> {
    const NAME: &'static str = D::NAME;
    const HOOKS: Hooks = D::HOOKS;
    type Spec = D::Spec;

    fn adapt(spec: &Self::Spec, geometry: &mut Geometry) {
        D::adapt(spec, geometry);
    }

    fn reserve(spec: &Self::Spec, geometry: &Geometry) -> Vec<RegionRequest> {
        D::reserve(spec, geometry)
    }

    fn build(spec: &Self::Spec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(State { inner: D::build(spec, geometry)?, fault: FAULTS[FAULT as usize] }))
    }

    fn load(spec: &Self::Spec, geometry: &Geometry, bytes: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(State { inner: D::load(spec, geometry, bytes)?, fault: FAULTS[FAULT as usize] }))
    }

    fn recover(spec: &Self::Spec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, Cut> {
        let fault = FAULTS[FAULT as usize];
        let structures = image.structures.clone();
        let mut misread = None;
        // Recovery misreads: the image is bent before it looks, and back again afterwards.
        match fault {
            Fault::RecoveryDropsEmergencyEntry | Fault::RecoveryDropsMapping => {
                let offset = if fault == Fault::RecoveryDropsMapping { 24 } else { 32 };
                let count_at = geometry.region("log_zone").base.plus(offset);
                let count = image.read_u64(count_at);
                image.pmem.write(count_at, &count.saturating_sub(1).to_le_bytes());
                misread = Some((count_at, count));
            }
            Fault::RecoveryDropsEntry | Fault::RecoveryNewestFirst | Fault::RecoveryForgetsShadows => {
                for bytes in image.structures.values_mut() {
                    bend(fault, bytes);
                }
            }
            _ => {}
        }
        let outcome = D::recover(spec, geometry, image);
        if let Some((count_at, count)) = misread {
            image.pmem.write(count_at, &count.to_le_bytes());
        }
        if outcome.is_err() {
            image.structures = structures;
        }
        if fault == Fault::RecoveredTooEarly && outcome.is_err() {
            image.pmem.write(geometry.region("log_zone").base, &0x4845_5243_5245_4356u64.to_le_bytes());
        }
        outcome
    }

    fn cost(spec: &Self::Spec, geometry: &Geometry) -> HardwareCost {
        D::cost(spec, geometry)
    }
}

/// Bends the saved contents of a transaction cache: a number of shadows, slot and mask of each, records of 88 bytes.
fn bend(fault: Fault, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let shadows = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let records = 8 + 16 * shadows;
    match fault {
        Fault::RecoveryDropsEntry => bytes.truncate(records.max(bytes.len().saturating_sub(88))),
        Fault::RecoveryNewestFirst => {
            let reversed: Vec<u8> = bytes[records..].chunks_exact(88).rev().flatten().copied().collect();
            bytes.truncate(records);
            bytes.extend(reversed);
        }
        _ => {
            bytes.drain(8..records);
            bytes[..8].fill(0);
        }
    }
}

struct State {
    inner: Box<dyn Durability>,
    fault: Fault,
}

/// Takes actions out of a list.
fn without(out: &mut Actions, drop: impl Fn(&Action) -> bool) {
    let kept: Vec<Action> = out.as_slice().iter().filter(|action| !drop(action)).copied().collect();
    out.clear();
    kept.into_iter().for_each(|action| out.push(action));
}

impl State {
    fn after(&mut self, cx: &Ctx, out: &mut Actions) {
        if self.fault != Fault::AckedBeforeMedia {
            return;
        }
        let writes: Vec<(Token, PhysAddr)> = out
            .as_slice()
            .iter()
            .filter_map(|action| match action {
                Action::Append { at, token: Some(token), .. } => Some((*token, *at)),
                _ => None,
            })
            .collect();
        for (token, at) in writes {
            self.inner.acked(cx, token, at, out);
        }
    }
}

impl Durability for State {
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        self.inner.tx_begin(cx, tx, out)
    }

    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let gate = self.inner.store(cx, store, tag, out);
        if self.fault == Fault::CopyDownForgotten {
            without(out, |action| matches!(action, Action::CopyDown(_)));
        }
        self.after(cx, out);
        gate
    }

    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        if self.fault == Fault::CommitForgotten {
            return Gate::Done;
        }
        let gate = self.inner.tx_commit(cx, tx, out);
        if self.fault == Fault::TxLenNotStored {
            without(out, |action| matches!(action, Action::PutCached { .. }));
            if let Gate::Retry(_) = gate {
                without(out, |action| matches!(action, Action::Append { .. }));
            }
        }
        self.after(cx, out);
        gate
    }

    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, why: AbortCause, out: &mut Actions) -> Gate {
        let gate = self.inner.tx_abort(cx, tx, why, out);
        if self.fault == Fault::AbortKeepsLines {
            without(out, |action| matches!(action, Action::InvalidateTagged(_)));
        }
        self.after(cx, out);
        gate
    }

    fn commit_rule(&self) -> CommitRule {
        self.inner.commit_rule()
    }

    fn load(&mut self, cx: &Ctx, addr: PhysAddr, tag: &mut LineTag, out: &mut Actions) -> Gate {
        self.inner.load(cx, addr, tag, out)
    }

    fn atomic(&mut self, cx: &Ctx, addr: PhysAddr, out: &mut Actions) -> Gate {
        self.inner.atomic(cx, addr, out)
    }

    fn tagged_access_cycles(&self, level: LevelId) -> Cycle {
        self.inner.tagged_access_cycles(level)
    }

    fn own_lines_are_silent(&self) -> bool {
        self.inner.own_lines_are_silent()
    }

    fn access(&mut self, cx: &Ctx, level: LevelId, line: LineAddr, tag: LineTag) -> Gate {
        self.inner.access(cx, level, line, tag)
    }

    fn merge(&mut self, level: LevelId, line: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        match self.fault {
            Fault::MergeAlwaysOverwrites => Merge::Overwrite,
            _ => self.inner.merge(level, line, resident, incoming),
        }
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

    fn evict(&mut self, cx: &Ctx, line: LineAddr, tag: LineTag, data: &Line, out: &mut Actions) -> Evict {
        match self.fault {
            Fault::TaggedLinesGoHome => Evict::Proceed,
            _ => self.inner.evict(cx, line, tag, data, out),
        }
    }

    fn fill(&mut self, cx: &Ctx, line: LineAddr, tx: Option<TxId>, out: &mut Actions) -> Fill {
        match self.fault {
            Fault::FillIgnoresEntries => Fill::Home { search_cycles: 0, serial: false },
            _ => self.inner.fill(cx, line, tx, out),
        }
    }

    fn probe(&mut self, cx: &Ctx, request: &Request, out: &mut Actions) -> Probe {
        match self.fault {
            Fault::ProbeGrants => Probe::Grant,
            Fault::ProbeGrantsReaders if !request.write => Probe::Grant,
            _ => self.inner.probe(cx, request, out),
        }
    }

    fn accept(&mut self, cx: &Ctx, controller: u16, at: PhysAddr, token: Option<Token>) -> Accept {
        self.inner.accept(cx, controller, at, token)
    }

    fn message(&mut self, cx: &Ctx, at: Node, message: Message, out: &mut Actions) {
        self.inner.message(cx, at, message, out);
    }

    fn acked(&mut self, cx: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        self.inner.acked(cx, token, addr, out);
        self.after(cx, out);
    }

    fn woken(&mut self, cx: &Ctx, id: u64, out: &mut Actions) {
        self.inner.woken(cx, id, out);
    }

    fn scanned(&mut self, cx: &Ctx, id: u64, line: LineAddr, tag: &mut LineTag) -> Scanned {
        self.inner.scanned(cx, id, line, tag)
    }

    fn fence(&mut self, cx: &Ctx, out: &mut Actions) -> Gate {
        self.inner.fence(cx, out)
    }

    fn flush(&mut self, cx: &Ctx, line: LineAddr, tag: LineTag, out: &mut Actions) -> FlushVerdict {
        self.inner.flush(cx, line, tag, out)
    }

    fn context_switch(&mut self, cx: &Ctx, leaving: Option<TxId>, coming: Option<TxId>, out: &mut Actions) -> Gate {
        self.inner.context_switch(cx, leaving, coming, out)
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
        let lines = match (self.fault, view.lines) {
            (Fault::FlushDropsLine, [lines @ .., _]) => lines,
            (_, lines) => lines,
        };
        self.inner.crash(&CrashView { domain: view.domain, geometry: view.geometry, lines, held: view.held }, sink)
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
        Box::new(State { inner: self.inner.fork(), fault: self.fault })
    }

    fn save(&self) -> Vec<u8> {
        self.inner.save()
    }
}

const fn hercules<const FAULT: u8>() -> ErasedDesign {
    ErasedDesign::of::<Faulty<Hercules, FAULT>>()
}

const fn tc<const FAULT: u8>() -> ErasedDesign {
    ErasedDesign::of::<Faulty<Tc, FAULT>>()
}

macro_rules! rows {
    ($design:ident, $name:literal, $($fault:ident),*) => {
        vec![$((
            Fault::$fault,
            Row { hardware: $design::<{ Fault::$fault as u8 }>(), ..*row($name).expect("it is registered") },
        )),*]
    };
}

/// Rows that must come through: the wrapper without a fault.
pub fn sound_rows() -> Vec<(Fault, Row)> {
    let mut rows = rows!(hercules, "hercules", None);
    rows.extend(rows!(tc, "tc", None));
    rows
}

/// Rows that must be caught.
pub fn faulty_rows() -> Vec<(Fault, Row)> {
    let mut rows = rows!(
        hercules,
        "hercules",
        RecoveryDropsEmergencyEntry,
        RecoveryDropsMapping,
        FlushDropsLine,
        TxLenNotStored,
        MergeAlwaysOverwrites,
        TaggedLinesGoHome,
        FillIgnoresEntries,
        CopyDownForgotten,
        AbortKeepsLines,
        RecoveredTooEarly
    );
    rows.extend(rows!(
        tc,
        "tc",
        RecoveryDropsEntry,
        RecoveryNewestFirst,
        RecoveryForgetsShadows,
        AckedBeforeMedia,
        CommitForgotten,
        FillIgnoresEntries,
        TaggedLinesGoHome,
        AbortKeepsLines
    ));
    rows
}

/// Rows that must be caught on several cores.
pub fn faulty_rows_of_many() -> Vec<(Fault, Row)> {
    let mut rows = rows!(hercules, "hercules", ProbeGrants, ProbeGrantsReaders, AbortKeepsLines, CopyDownForgotten);
    rows.extend(rows!(tc, "tc", FillIgnoresEntries, AbortKeepsLines, CommitForgotten));
    rows
}
