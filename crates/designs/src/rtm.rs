//! Hardware transactions in the manner of Intel's RTM: what HTM+SGL and SPHT-eADR run on ("Durable Hardware Transactional
//! Memory for Extended Asynchronous DRAM Refresh Architectures", thesis, Técnico Lisboa 2022, sections 2.2.2 and 3.1.1; the
//! instructions and their status are those of Intel's Software Developer's Manual, volume 1, chapter 16).
//!
//! | mechanism | where |
//! | --- | --- |
//! | write set: lines in the L1D that carry the tag of their transaction; the version before it one level down | [`Protocol::store`] |
//! | read set: lines by address, which may leave the L1D | [`Protocol::load`] |
//! | conflicts by line, found at once; the requester wins | [`Protocol::probe`] |
//! | a written line that leaves the L1D aborts | [`Protocol::evict`] |
//! | abort: written lines are invalidated | [`Protocol::tx_abort`] |
//! | status of an abort | [`status`] |
//! | durable caches: a commit is one step, open write sets do not survive | [`Protocol::crash`] |
//!
//! Logs, timestamps, replay and the fall-back lock are software (`guest/runtimes`).

mod planted;
mod sets;
#[cfg(test)]
mod tests;
pub(crate) mod variant;

use durasim_contract::{
    AbortCause, Action, Actions, ActiveFault, BudgetSpent, CommitRule, CrashImage, CrashSink, CrashView, Ctx, Design,
    Durability, Evict, Gate, Geometry, HardwareCost, Hooks, LevelId, LineTag, Load, PlantedFault, Probe, RecoveryCut,
    RecoveryReport, RegionRequest, Request, SpecError, Stateful, Store, Trap, kept,
};
use durasim_types::{Line, LineAddr, PhysAddr, Stats, TxId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sets::{CORES_MAX, Sets};
use std::hash::Hasher;

/// Bits of the status that the program finds of an abort (Intel SDM, volume 1, table 16-1).
pub mod status {
    use super::{AbortCause, Trap};

    /// By an instruction of the program, whose code is in bits 31 to 24.
    pub const EXPLICIT: u64 = 1;
    /// A new attempt may succeed.
    pub const RETRY: u64 = 1 << 1;
    /// Another thread wanted a line.
    pub const CONFLICT: u64 = 1 << 2;
    /// A set of lines did not fit.
    pub const CAPACITY: u64 = 1 << 3;
    /// A breakpoint.
    pub const DEBUG: u64 = 1 << 4;
    /// Inside a nested transaction.
    pub const NESTED: u64 = 1 << 5;
    /// The position of the program's code.
    pub const CODE_SHIFT: u32 = 24;

    /// The status of an abort.
    pub(super) fn of(why: AbortCause, nested: bool) -> u64 {
        let bits = match why {
            AbortCause::Requested(code) => EXPLICIT | u64::from(code) << CODE_SHIFT,
            AbortCause::Conflict => CONFLICT | RETRY,
            AbortCause::Capacity | AbortCause::OutOfMemory => CAPACITY,
            AbortCause::Trapped(Trap::Breakpoint) => DEBUG,
            AbortCause::Trapped(_) => 0,
        };
        if nested { bits | NESTED } else { bits }
    }
}

/// Parameters of the hardware transactions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RtmSpec {
    /// Lines that a transaction can load; 0: as many as the last level has (not in the thesis; DEVIATIONS.md, rtm-read-set).
    pub read_set_lines: u32,
}

impl RtmSpec {
    fn read_set_lines(&self, geometry: &Geometry) -> u64 {
        match self.read_set_lines {
            0 => u64::from(geometry.llc.sets) * u64::from(geometry.llc.ways),
            lines => lines.into(),
        }
    }
}

/// The design.
pub struct Rtm;

impl Design for Rtm {
    const NAME: &'static str = "rtm";
    const HOOKS: Hooks =
        Hooks::HARDWARE_TX.with(Hooks::STORE).with(Hooks::LOAD).with(Hooks::PROBE).with(Hooks::EVICT_PRIVATE);
    const PLANTED: &'static [PlantedFault] = planted::ALL;
    const MARKS: &'static [&'static str] = &["hardware-transaction-open", "hardware-transaction-stored"];
    type Spec = RtmSpec;

    fn reserve(_: &RtmSpec, _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }

    fn build(spec: &RtmSpec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        if geometry.cores > CORES_MAX {
            return Err(SpecError::new("cores", format!("hardware transactions serve at most {CORES_MAX} cores")));
        }
        Ok(Protocol {
            sets: Sets::default(),
            counters: Counters::default(),
            read_set_lines: spec.read_set_lines(geometry) as usize,
            pmem_base: geometry.pmem_base,
            planted: geometry.planted,
        })
    }

    /// The lines of committed transactions in caches have been flushed. Logs are recovered by the program that wrote
    /// them.
    fn recover(_: &RtmSpec, _: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(crate::opt::recover_nothing(image))
    }

    /// A bit of the write set and one of the read set for each line of an L1D, and what names the lines of a read set that
    /// have left it.
    fn cost(spec: &RtmSpec, geometry: &Geometry) -> HardwareCost {
        const ADDRESS_BITS: u64 = 42;
        let cores = u64::from(geometry.cores);
        let l1d_lines = u64::from(geometry.l1d.sets) * u64::from(geometry.l1d.ways);
        let mut cost = HardwareCost::default();
        cost.add("read and write bits of L1D lines", 2 * l1d_lines, cores);
        cost.add("read set", spec.read_set_lines(geometry) * ADDRESS_BITS, cores);
        cost
    }
}

/// Counters of the region of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    committed: u64,
    /// Lines of transactions that committed.
    lines_read: u64,
    lines_written: u64,
    /// Dirty versions that went one level down before the first store of a transaction.
    versions_kept: u64,
}

/// Hardware transactions at work.
#[derive(Clone, Debug)]
struct Protocol {
    sets: Sets,
    counters: Counters,
    read_set_lines: usize,
    pmem_base: PhysAddr,
    planted: ActiveFault,
}

impl Stateful for Protocol {
    kept!(sets: Sets, counters: Counters);

    fn digest(&self, hasher: &mut dyn Hasher) {
        for (tx, reads, writes) in self.sets.all() {
            hasher.write_u64(tx.0);
            for lines in [reads, writes] {
                hasher.write_u64(lines.len() as u64);
                lines.iter().for_each(|line| hasher.write_u64(line.0));
            }
        }
    }
}

impl Durability for Protocol {
    /// Markers are the program's own affair.
    fn commit_rule(&self) -> CommitRule {
        CommitRule::Early
    }

    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, _: &mut Actions) -> Gate {
        self.sets.begin(cx.core, tx);
        Gate::Done
    }

    fn load(&mut self, cx: &Ctx, load: &Load, _: &mut LineTag, _: &mut Actions) -> Gate {
        let Some(tx) = load.tx else { return Gate::Done };
        // Persistent memory begins above all DRAM.
        let is_missed = self.planted.skips(planted::DRAM_NOT_TRACKED) && load.addr < self.pmem_base;
        if is_missed || self.planted.skips(planted::LOADS_NOT_TRACKED) {
            return Gate::Done;
        }
        let lines = self.sets.read(cx.core, load.addr.line());
        if lines <= self.read_set_lines {
            return Gate::Done;
        }
        if self.planted.skips(planted::READ_SET_WRAPS) {
            self.sets.forget_reads(cx.core, 1);
            return Gate::Done;
        }
        Gate::Abort(tx, AbortCause::Capacity)
    }

    /// The first store of a transaction to a line leaves the version before it one level down, whatever memory it is of.
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let Some(tx) = store.tx else { return Gate::Done };
        if tag.0 == tx.0 {
            return Gate::Done;
        }
        if self.planted.ignores(planted::OLD_VERSION_LOST, store.dirty) {
            self.counters.versions_kept += 1;
            out.push(Action::CopyDown(store.line()));
        }
        *tag = LineTag(tx.0);
        if self.planted.skips(planted::READS_FORGOTTEN) {
            self.sets.forget_reads(cx.core, usize::MAX);
        }
        if !self.planted.skips(planted::STORES_NOT_TRACKED) {
            self.sets.write(cx.core, store.line());
        }
        Gate::Done
    }

    /// The requester wins, inside of a transaction or not: so does the thread that takes the fall-back lock.
    fn probe(&mut self, cx: &Ctx, request: &Request, _: &mut Actions) -> Probe {
        if request.tx.is_none() && self.planted.skips(planted::PLAIN_ACCESSES_IGNORED) {
            return Probe::Grant;
        }
        match self.sets.rival(cx.core, request.line, request.write) {
            Some(rival) => {
                if self.planted.skips(planted::ONE_READER_ABORTED) {
                    self.sets.forget_readers(request.line);
                }
                Probe::Abort(rival, AbortCause::Conflict)
            }
            None => Probe::Grant,
        }
    }

    /// Nothing but the L1D keeps a written line apart (thesis, section 2.2.2: write sets are limited by the cache).
    fn evict(&mut self, _: &Ctx, from: LevelId, _: LineAddr, tag: LineTag, _: &Line, _: &mut Actions) -> Evict {
        if self.planted.ignores(planted::EVICTED_WITHOUT_ABORT, from == LevelId::L1d && self.live(tag)) {
            return Evict::Abort(TxId(tag.0), AbortCause::Capacity);
        }
        Evict::Proceed
    }

    /// All its stores become visible in one step: their tags mean nothing any more.
    fn tx_commit(&mut self, cx: &Ctx, _: TxId, _: &mut Actions) -> Gate {
        let (reads, writes) = self.sets.sizes(cx.core);
        self.counters.committed += 1;
        self.counters.lines_read += reads as u64;
        self.counters.lines_written += writes as u64;
        self.sets.end(cx.core);
        Gate::Done
    }

    fn tx_abort(&mut self, _: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        let Some(core) = self.sets.core_of(tx) else { return Gate::Done };
        let written = self.sets.end(core);
        if self.planted.skips(planted::ABORT_KEEPS_LAST_LINE) {
            let others = written.len().saturating_sub(1);
            written[..others].iter().for_each(|&line| out.push(Action::Invalidate(line)));
        } else if !self.planted.skips(planted::ABORT_KEEPS_LINES) {
            out.push(Action::InvalidateTagged(tx));
        }
        Gate::Done
    }

    fn abort_status(&self, why: AbortCause, nested: bool) -> u64 {
        status::of(why, nested)
    }

    fn tags_are_exclusive(&self) -> bool {
        true
    }

    fn live(&self, tag: LineTag) -> bool {
        tag.is_some() && self.sets.is_open(TxId(tag.0))
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tag.0 == tx.0
    }

    /// On a machine with durable caches, committed lines are flushed. An open write set ends with its transaction, and
    /// the version before it is written to its home address from the level below.
    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        if !view.domain.caches_are_durable() {
            return Ok(());
        }
        for line in view.lines.iter().filter(|line| line.dirty) {
            let is_left_out = self.planted.skips(planted::L1D_NOT_FLUSHED) && line.level == LevelId::L1d;
            if !is_left_out && self.planted.assumes(planted::OPEN_SETS_SURVIVE, !self.live(line.tag)) {
                sink.write(line.line.base(), &line.data)?;
            }
        }
        Ok(())
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        if self.sets.any_open() {
            mark("hardware-transaction-open");
        }
        if self.sets.all().any(|(_, _, writes)| !writes.is_empty()) {
            mark("hardware-transaction-stored");
        }
    }

    fn stats(&self, stats: &mut Stats) {
        let Counters { committed, lines_read, lines_written, versions_kept } = self.counters;
        stats.count("rtm.committed", committed, "Hardware transactions that committed");
        stats.count("rtm.lines_read", lines_read, "Lines that committed hardware transactions had loaded");
        stats.count("rtm.lines_written", lines_written, "Lines that committed hardware transactions had stored to");
        stats.count(
            "rtm.versions_kept",
            versions_kept,
            "Dirty lines copied one level down before the first store of a transaction",
        );
    }
}
