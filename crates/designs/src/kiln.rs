//! Kiln: Zhao, Li, Yoon, Xie and Jouppi, "Kiln: Closing the Performance Gap Between Systems With and Without Persistence
//! Support", MICRO 2013, as far as Hercules (TECS 2023) and TC (DAC 2017) describe it; [kiln-...] marks an assumption of
//! DEVIATIONS.md.
//!
//! The last level is nonvolatile (STT-RAM) and holds the newest versions, persistent memory the ones before. A line that a
//! transaction writes carries its TxID and is uncommitted ("pending"). A commit flushes these lines from the caches above
//! into the last level, where they stay clean above ("clean on commit"), and turns them committed there; nothing is written
//! to persistent memory. Uncommitted lines are no victims of the last level. Where they have no room, hardware
//! copy-on-write takes over (`kiln/overflow.rs`). Single steps that a planted fault can break are in `kiln/steps.rs`.
//!
//! Where the caches above survive too (the domain `eadr`, row `kiln-eadr`), a commit needs no flush: the committing register
//! and the change of states are all. No paper shows that machine.
//!
//! Kiln isolates nothing: programs keep transactions on the same line apart by locks, which they hold until the commit is
//! acknowledged [kiln-isolation].

mod area;
pub(crate) mod banks;
mod commit;
mod laboratory;
mod overflow;
mod planted;
mod recovery;
pub(crate) mod row;
mod sequence;
mod spec;
mod state;
mod steps;
mod survivors;
#[cfg(test)]
mod tests;
mod transaction;

pub(crate) use area::reserve;
pub(crate) use planted::DISTRIBUTED;
pub(crate) use recovery::recover_distributed;
pub(crate) use spec::Versions;
pub use spec::{Blocking, KilnSpec};
pub(crate) use state::State;

use banks::tx_of;
use durasim_design::{
    AbortCause, Actions, BeginRule, BudgetSpent, CachedLine, CrashImage, CrashSink, CrashView, Ctx, Design, Durability,
    Evict, Fill, FlushVerdict, Gate, Gather, Geometry, HardwareCost, Hooks, LevelId, LineTag, Merge, Message, Node,
    PlantedFault, RecoveryCut, RecoveryReport, RegionRequest, SpecError, Store, Token, Wait,
};
use durasim_types::{CoreId, EventKind, Line, LineAddr, PhysAddr, StallCause, Stats, TxId};
use overflow::AreaFull;
use state::{PendingAcks, Purpose};
use std::hash::Hasher;
use survivors::Survivor;
use transaction::{CopyStage, Entry, Transaction};

/// The design.
pub struct Kiln;

impl Design for Kiln {
    const NAME: &'static str = "kiln";
    const HOOKS: Hooks = Hooks::TX
        .with(Hooks::STORE)
        .with(Hooks::MERGE)
        .with(Hooks::VICTIM)
        .with(Hooks::EVICT)
        .with(Hooks::FILL)
        .with(Hooks::FLUSH)
        .with(Hooks::LLC_REQUEST);
    const PLANTED: &'static [PlantedFault] = planted::ALL;
    const MARKS: &'static [&'static str] =
        &["flushing", "fifo_full", "register_written", "copy_in_flight", "old_line_kept", "records_being_cleared"];
    const STRUCTURES: &'static [&'static str] = &["fifo", "transaction_ids"];
    type Spec = KilnSpec;

    fn adapt(spec: &KilnSpec, geometry: &mut Geometry) {
        spec.adapt(geometry);
    }

    fn reserve(spec: &KilnSpec, _: &Geometry) -> Vec<RegionRequest> {
        area::reserve(spec)
    }

    fn build(spec: &KilnSpec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(State::new(spec, geometry)?))
    }

    fn load(spec: &KilnSpec, geometry: &Geometry, bytes: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(State::load(spec, geometry, None, bytes)?))
    }

    fn recover(spec: &KilnSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        recovery::recover(spec, geometry, image)
    }

    fn cost(spec: &KilnSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

impl State {
    /// A transaction writes a line that no FIFO names: its core's L1D FIFO takes it.
    fn track(&mut self, cx: &Ctx, tx: TxId, line: LineAddr, out: &mut Actions) -> Gate {
        let core = usize::from(cx.core.0);
        let relieved = self.relieve_fifo(core, out);
        let fifo = &mut self.contents.fifos[core];
        if fifo.len() >= self.fifo_capacity {
            if fifo.iter().all(|entry| !entry.leaving)
                && let Err(AreaFull(oldest)) = relieved
            {
                return Gate::Abort(oldest, AbortCause::Capacity);
            }
            self.counters.fifo_full_stalls += 1;
            out.stalls_for(StallCause::Structure(0));
            // What has just begun to leave has no token before the actions of this step are done.
            return Gate::Retry(self.fifo_relief(core).map_or(Wait::Cycles(1), Wait::Acked));
        }
        fifo.push_back(Entry { tx, line, leaving: false });
        self.counters.tracked_lines += 1;
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.tracked.insert(line);
        }
        Gate::Done
    }
}

impl Durability for State {
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        // As many transactions are open as there are numbers: this one has to try again [kiln-txid].
        if self.contents.open.len() as u64 >= (1 << self.spec.tx_id_bits) - 1 {
            return Gate::Abort(tx, AbortCause::Conflict);
        }
        if let Some(gate) = self.begin_dtx(cx, tx, out) {
            return gate;
        }
        self.contents.open.insert(tx, Transaction::new(cx.core));
        Gate::Done
    }

    /// The line becomes uncommitted in the L1D; with the first write a FIFO takes it.
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let line = store.line();
        if let Some(wait) = self.commit_in_flight(*tag) {
            out.stalls_for(StallCause::Order);
            return Gate::Retry(wait);
        }
        let foreign = tag.is_some() && store.tx.is_none_or(|tx| tx_of(*tag) != tx);
        self.counters.shared_stores += u64::from(foreign);
        let Some(tx) = store.tx else { return Gate::Done };
        let Some(open) = self.contents.open.get_mut(&tx) else { return Gate::Done };
        if !self.upper_levels_survive && !open.tracked.contains(&line) {
            let gate = self.track(cx, tx, line, out);
            if gate != Gate::Done {
                return gate;
            }
        }
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.lines.insert(line);
        }
        if !tag.is_some() {
            self.keep_older_version_below(store, out);
        }
        *tag = self.tag(tx, line);
        Gate::Done
    }

    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        self.commit(cx, tx, out)
    }

    fn tx_abort(&mut self, _: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        self.abort(tx, out)
    }

    /// While lines of a commit are being flushed, requests wait [kiln-blocking]; those that arrived before it do not.
    fn llc_request(&mut self, cx: &Ctx, line: LineAddr) -> Gate {
        let blocking = match self.spec.blocked_requests {
            Blocking::None => None,
            Blocking::All => self.flushes().find(|(_, since, _)| *since <= cx.cycle),
            Blocking::Lines => self.flushes().find(|(tx, since, _)| *since <= cx.cycle && tx.lines.contains(&line)),
        };
        let Some((_, _, token)) = blocking else { return Gate::Done };
        self.counters.blocked_requests += 1;
        Gate::Retry(Wait::Acked(token))
    }

    /// A committed version that is not home goes there before an uncommitted one takes its place, or stays beside it
    /// [kiln-home-first].
    fn merge(&mut self, level: LevelId, _: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        if !self.goes_home_first(resident, incoming) {
            return Merge::Overwrite;
        }
        if level == LevelId::Llc { self.merge_in_llc() } else { Merge::PushDownFirst }
    }

    /// Uncommitted lines are no victims of the last level while there are others.
    fn victim(&mut self, level: LevelId, _: LineTag, full: bool, tags: &[LineTag], ranks: &[u32]) -> Option<usize> {
        if level != LevelId::Llc || !full || !self.spec.pinned_lines {
            return None;
        }
        let others = (0..tags.len()).filter(|&way| !tags[way].is_some() && ranks[way] != u32::MAX);
        others.min_by_key(|&way| ranks[way])
    }

    fn llc_keeps_tagged(&self) -> bool {
        true
    }

    fn evict(&mut self, _: &Ctx, _: LevelId, line: LineAddr, tag: LineTag, _: &Line, out: &mut Actions) -> Evict {
        match self.commit_in_flight(tag) {
            Some(wait) => Evict::After(wait),
            None if tag.is_some() && !self.has_flipped_in_bank(tag) => self.evict_pending(tx_of(tag), line, out),
            None => Evict::Proceed,
        }
    }

    /// What the fall-back path has brought home is as uncommitted there as in a cache.
    fn fill(&mut self, _: &Ctx, line: LineAddr, _: Option<TxId>, _: &mut Actions) -> Fill {
        match self.owner_at_home(line) {
            Some(tx) => {
                let gather = Box::new(Gather { home: true, parts: Vec::new(), overlay: None });
                Fill::Gather { gather, search_cycles: 0, tag: self.tag(tx, line), dirty: false }
            }
            None => Fill::Home { search_cycles: 0, serial: false },
        }
    }

    /// Uncommitted lines stay where they are; what was there before their transaction is durable already.
    fn flush(&mut self, _: &Ctx, _: LineAddr, tag: LineTag, _: &mut Actions) -> FlushVerdict {
        if tag.is_some() { FlushVerdict::Ignore } else { FlushVerdict::Proceed }
    }

    fn acked(&mut self, _: &Ctx, token: Token, _: PhysAddr, out: &mut Actions) {
        let Some(awaited) = self.contents.awaited.get_mut(&token) else { return };
        awaited.left -= 1;
        if awaited.left > 0 {
            return;
        }
        let Some(PendingAcks { purpose, slots, .. }) = self.contents.awaited.remove(&token) else { return };
        self.contents.slots.give_back(slots.into_iter());
        match purpose {
            Purpose::Flush(_) | Purpose::Undo => {}
            Purpose::Copy(tx, line) => {
                self.record_old_line(tx, line, out);
            }
            Purpose::Record(tx, line) => self.old_line_recorded(tx, line, out),
            Purpose::Release(core) => self.release(core, out),
            Purpose::Forget(tx) => self.forget_dtx(tx),
        }
    }

    fn woken(&mut self, _: &Ctx, id: u64, out: &mut Actions) {
        let (step, number) = (id & sequence::STEP, id & !sequence::STEP);
        match step {
            sequence::COPY => self.copy_reserved(TxId(number), out),
            sequence::FLIP_FIRST_HALF => self.flip_first_half(TxId(number), out),
            sequence::FLIP_SECOND_HALF => self.flip_second_half(TxId(number), out),
            sequence::RELEASE => {
                self.contents.registers[usize::from(CoreId(number as u16).0)] = None;
                out.event(EventKind::DesignStep, self.area.record(0));
            }
            _ => unreachable!("Kiln asks for no such step"),
        }
    }

    fn message(&mut self, _: &Ctx, at: Node, message: Message, out: &mut Actions) {
        self.bank_message(at, message, out);
    }

    /// The instructions of LAD wait until the store buffer is empty.
    fn begin_rule(&self) -> BeginRule {
        if self.banks.is_some() { BeginRule::Drained } else { BeginRule::InOrder }
    }

    fn live(&self, tag: LineTag) -> bool {
        self.contents.open.contains_key(&tx_of(tag)) && !self.has_flipped_in_bank(tag)
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tx_of(tag) == tx
    }

    /// The last level keeps its lines with their states, or all caches go home using residual energy but for what is
    /// uncommitted. The registers are nonvolatile.
    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        let (committed, pending): (Vec<CachedLine>, Vec<CachedLine>) =
            view.lines.iter().partition(|cached| self.survives_as_committed(cached));
        self.keep_registers(sink);
        self.keep_dtx_cids(sink);
        if !self.upper_levels_survive {
            let in_llc = pending.iter().filter(|cached| cached.dirty && cached.level == LevelId::Llc);
            let number = |tag| self.number(tx_of(tag));
            let kept = in_llc.map(|&CachedLine { line, tag, data, .. }| Survivor { line, tx: number(tag), data });
            sink.keep(survivors::LINES, survivors::save_lines(&kept.collect::<Vec<_>>()));
        }
        CrashView { lines: &committed, ..*view }.flush_caches_home(sink)
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        let Self { contents, .. } = self;
        if self.flushes().next().is_some() {
            mark("flushing");
        }
        if contents.fifos.iter().any(|fifo| fifo.len() >= self.fifo_capacity) {
            mark("fifo_full");
        }
        if contents.registers.iter().any(Option::is_some) {
            mark("register_written");
        }
        let old_lines = || contents.open.values().flat_map(|open| open.copies.values());
        if old_lines().any(|old| old.stage != CopyStage::Safe) {
            mark("copy_in_flight");
        }
        if old_lines().any(|old| old.stage == CopyStage::Safe) {
            mark("old_line_kept");
        }
        let clearing = |awaited: &PendingAcks| !awaited.slots.is_empty();
        if contents.awaited.values().any(clearing) {
            mark("records_being_cleared");
        }
        if let Some(banks) = &self.banks {
            self.mark_banks(banks, mark);
        }
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        hasher.write(&durasim_design::snapshot::to_bytes(&self.contents));
        if let Some(banks) = &self.banks {
            hasher.write(&durasim_design::snapshot::to_bytes(banks));
        }
    }

    fn stats(&self, stats: &mut Stats) {
        let c = &self.counters;
        let design = if self.banks.is_some() { "lad-llc" } else { "kiln" };
        let mut count = |name: &str, value, text| stats.count(format!("{design}.{name}"), value, text);
        if self.banks.is_some() {
            count("commits", c.commits, "Transactions that a bank has acknowledged");
            count("flushed_lines", c.flushed_lines, "Lines that commits flushed");
            count("flush_cycles", c.flush_cycles, "Cycles that commits waited for the last level");
            count("llc_overflows", c.llc_overflows, "Uncommitted lines that left the last level by copy-on-write");
            count("committed_kept", c.committed_kept, "Committed lines kept in the last level beside uncommitted ones");
            count("shared_stores", c.shared_stores, "Stores to a line that another open transaction has written");
            count("undone_lines", c.undone_lines, "Old lines that aborts brought back");
            return;
        }
        if !self.upper_levels_survive {
            count("tracked_lines", c.tracked_lines, "Lines that transactions put into FIFOs");
            count("flushed_lines", c.flushed_lines, "Lines that commits took from FIFOs and flushed");
            count("flush_cycles", c.flush_cycles, "Cycles that commits waited for the last level");
            count("blocked_requests", c.blocked_requests, "Requests that waited at the last level for a commit");
            count("fifo_full_stalls", c.fifo_full_stalls, "Stores that found the FIFOs of their core full");
            count("fifo_overflows", c.fifo_overflows, "Lines that left FIFOs by copy-on-write");
        }
        count("llc_overflows", c.llc_overflows, "Uncommitted lines that left the last level by copy-on-write");
        count("committed_pushed_home", c.committed_pushed_home, "Committed lines written home for uncommitted ones");
        count("committed_kept", c.committed_kept, "Committed lines kept in the last level beside uncommitted ones");
        count("register_waits", c.register_waits, "Commits that waited for the committing register");
        count("shared_stores", c.shared_stores, "Stores to a line that another open transaction has written");
        count("undone_lines", c.undone_lines, "Old lines that aborts brought back");
    }

    fn reset_stats(&mut self) {
        self.counters = state::Counters::default();
    }

    fn fork(&self) -> Box<dyn Durability> {
        Box::new(self.clone())
    }

    fn save(&self) -> Vec<u8> {
        State::save(self)
    }
}
