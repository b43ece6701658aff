//! Hardware transactions in the manner of Intel's RTM, where caches survive power failures: what HTM+SGL, SPHT and
//! SPHT-eADR run on. "Durable HTM for eADR", thesis, IST Lisboa 2022; NV-HTM and SPHT as it describes them (2.4).
//!
//! An outline of the hardware: write sets in the L1D, read sets by line, requester wins, aborts by capacity, flushes and
//! traps, status bits. It needs W1 (a written line that leaves the L1D aborts), W2 (read sets; lines of DRAM, where SPHT
//! has its snapshot, section 2.4.2; both versions of a line) and W14 (aborts from elsewhere), and of W13 an instruction
//! with a result (xtest). Logs, timestamps, markers, replay and the fall-back lock are software.

use super::planned::{Effect, Ending, Load, Planned, PlannedDesign, PlannedFlush, PlannedHooks, Trap, TrapVerdict};
use durasim_design::{
    AbortCause, Action, Actions, BeginRule, BudgetSpent, CrashImage, CrashSink, CrashView, Ctx, Design, Durability,
    Evict, FlushVerdict, Gate, Geometry, HardwareCost, Hooks, LevelId, LineTag, Probe, RecoveryCut, RecoveryReport,
    RegionRequest, Request, SpecError, Store, snapshot,
};
use durasim_types::{CheckRegisters, EventKind, Line, LineAddr, PhysAddr, Stats, TxId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

/// Bits of the status that the program finds, as Intel's manual numbers them.
pub(super) mod status {
    /// By an instruction of the program, whose code stands in bits 31 to 24.
    pub const EXPLICIT: u64 = 1;
    /// A new attempt may succeed.
    pub const RETRY: u64 = 1 << 1;
    /// Another thread wanted a line.
    pub const CONFLICT: u64 = 1 << 2;
    /// A set of lines did not fit.
    pub const CAPACITY: u64 = 1 << 3;
    /// Inside a nested transaction.
    pub const NESTED: u64 = 1 << 5;
    pub const CODE_SHIFT: u32 = 24;
}

/// The instruction that tells whether a transaction is open.
pub(super) const XTEST: u8 = 0;

/// No parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HtmSpec {}

/// The design.
pub(super) struct Htm;

impl Design for Htm {
    const NAME: &'static str = "htm";
    const HOOKS: Hooks = Hooks::TX
        .with(Hooks::STORE)
        .with(Hooks::LOAD)
        .with(Hooks::PROBE)
        .with(Hooks::EVICT)
        .with(Hooks::EVICT_PRIVATE)
        .with(Hooks::FLUSH);
    type Spec = HtmSpec;

    fn reserve(_: &HtmSpec, _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }

    fn build(_: &HtmSpec, _: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(Protocol::default()))
    }

    fn load(_: &HtmSpec, _: &Geometry, _: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        Err(snapshot::refuse("an outline is in no snapshot"))
    }

    /// What the caches flushed is committed; logs are recovered by the program that wrote them.
    fn recover(_: &HtmSpec, _: &Geometry, _: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(RecoveryReport::default())
    }

    fn cost(_: &HtmSpec, _: &Geometry) -> HardwareCost {
        HardwareCost::default()
    }
}

impl PlannedDesign for Htm {
    const PLANNED: PlannedHooks = PlannedHooks::EVERY_LINE.with(PlannedHooks::TRAP).with(PlannedHooks::INSTRUCTION);

    fn instruction(number: u8, registers: &CheckRegisters) -> Effect {
        match number {
            XTEST => Effect::Value(registers.is_in_transaction().into()),
            _ => Effect::Illegal,
        }
    }
}

/// An open transaction.
#[derive(Clone, Debug, Default)]
struct Open {
    /// Lines it has loaded. They may leave the L1D: whoever writes one asks for it.
    reads: BTreeSet<LineAddr>,
    /// Lines it has stored to, which carry its tag.
    writes: BTreeSet<LineAddr>,
}

/// Hardware transactions at work.
#[derive(Clone, Debug, Default)]
pub(super) struct Protocol {
    open: BTreeMap<TxId, Open>,
}

impl Protocol {
    /// Another open transaction that a request for a line gets in the way of.
    fn rival(&self, line: LineAddr, of: Option<TxId>, write: bool) -> Option<TxId> {
        let conflicts = |open: &Open| open.writes.contains(&line) || write && open.reads.contains(&line);
        self.open.iter().find(|(tx, open)| Some(**tx) != of && conflicts(open)).map(|(tx, _)| *tx)
    }

    pub fn reads(&self, tx: TxId) -> usize {
        self.open[&tx].reads.len()
    }
}

impl Durability for Protocol {
    /// A written line cannot be kept anywhere but in the L1D (section 2.2.2: limited by cache capacity).
    fn evict(&mut self, _: &Ctx, from: LevelId, _: LineAddr, tag: LineTag, _: &Line, _: &mut Actions) -> Evict {
        if from == LevelId::L1d && tag.is_some() && self.live(tag) {
            return Evict::Abort(TxId(tag.0), AbortCause::Capacity);
        }
        Evict::Proceed
    }

    /// No load after the begin escapes the read set.
    fn begin_rule(&self) -> BeginRule {
        BeginRule::Drained
    }

    fn tx_begin(&mut self, _: &Ctx, tx: TxId, _: &mut Actions) -> Gate {
        self.open.insert(tx, Open::default());
        Gate::Done
    }

    /// The first store of a transaction to a line leaves the version before it one level down, whatever memory it is of.
    fn store(&mut self, _: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        if let Some(tx) = store.tx
            && tag.0 != tx.0
        {
            if store.dirty {
                out.push(Action::CopyDown(store.line()));
            }
            *tag = LineTag(tx.0);
            self.open.get_mut(&tx).expect("its transaction is open").writes.insert(store.line());
        }
        Gate::Done
    }

    /// All its stores become visible and durable in one step: their tags mean nothing any more.
    fn tx_commit(&mut self, _: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        self.open.remove(&tx);
        out.push(Action::Event(EventKind::Commit, PhysAddr(0)));
        Gate::Done
    }

    fn tx_abort(&mut self, _: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        out.push(Action::InvalidateTagged(tx));
        self.open.remove(&tx);
        Gate::Done
    }

    /// The requester wins, inside of a transaction or not: so does who takes the single global lock (Algorithm 2).
    fn probe(&mut self, _: &Ctx, request: &Request, _: &mut Actions) -> Probe {
        match self.rival(request.line, request.tx, request.write) {
            Some(rival) => Probe::Abort(rival, AbortCause::Conflict),
            None => Probe::Grant,
        }
    }

    fn tags_are_exclusive(&self) -> bool {
        true
    }

    fn live(&self, tag: LineTag) -> bool {
        self.open.contains_key(&TxId(tag.0))
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tag.0 == tx.0
    }

    /// The domain flushes what is committed. An open write set ends with the transaction.
    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        for line in view.lines.iter().filter(|line| line.dirty && !(line.tag.is_some() && self.live(line.tag))) {
            sink.write(line.line.base(), &line.data)?;
        }
        Ok(())
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        for (tx, open) in &self.open {
            hasher.write_u64(tx.0);
            open.reads.iter().chain(&open.writes).for_each(|line| hasher.write_u64(line.0));
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
    fn load_of(&mut self, _: &Ctx, load: &Load, _: &mut LineTag, _: &mut Actions) -> Gate {
        if let Some(open) = load.tx.and_then(|tx| self.open.get_mut(&tx)) {
            open.reads.insert(load.line());
        }
        Gate::Done
    }

    /// A flush inside a transaction aborts it; one by another thread asks for the line like a store.
    fn flush_in(&mut self, _: &Ctx, line: LineAddr, _: LineTag, tx: Option<TxId>, _: &mut Actions) -> PlannedFlush {
        let own = tx.filter(|tx| self.open.contains_key(tx));
        match own.or_else(|| self.rival(line, tx, false)) {
            Some(tx) => PlannedFlush::Abort(tx),
            None => PlannedFlush::Today(FlushVerdict::Proceed),
        }
    }

    fn trap(&mut self, _: &Ctx, _: TxId, trap: Trap, _: &mut Actions) -> TrapVerdict {
        match trap {
            Trap::Nested { .. } => TrapVerdict::GoOn,
            Trap::SystemCall | Trap::AccessFault | Trap::Interrupt => TrapVerdict::Abort,
        }
    }

    fn abort_status(&self, ending: Ending, nested: bool) -> u64 {
        let bits = match ending {
            Ending::Because(AbortCause::Requested(code)) => status::EXPLICIT | u64::from(code) << status::CODE_SHIFT,
            Ending::Because(AbortCause::Conflict) => status::CONFLICT | status::RETRY,
            Ending::Because(AbortCause::Capacity | AbortCause::OutOfMemory) => status::CAPACITY,
            Ending::Trapped(_) | Ending::Flushed => 0,
        };
        if nested { bits | status::NESTED } else { bits }
    }
}
