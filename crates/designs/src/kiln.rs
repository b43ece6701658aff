//! Kiln: Zhao, Li, Yoon, Xie and Jouppi, "Kiln: Closing the Performance Gap Between Systems With and Without Persistence
//! Support", MICRO 2013, as far as Hercules (TECS 2023) and TC (DAC 2017) describe it; [kiln-...] marks an assumption of
//! DEVIATIONS.md.
//!
//! The last level is nonvolatile (STT-RAM) and holds the newest versions, persistent memory the ones before. A line that a
//! transaction writes carries its TxID and is uncommitted ("pending"). A commit flushes these lines from the caches above
//! into the last level, where they stay clean above ("clean on commit"), and turns them committed there; nothing is written
//! to persistent memory. Uncommitted lines are no victims of the last level. Where they have no room, hardware
//! copy-on-write takes over (`kiln/overflow.rs`).
//!
//! This file has the hooks, then stores, commits, aborts and power failure; `banks.rs` has the commits of LAD-LLC.
//!
//! If the caches above survive too (the domain `eadr`, variant `kiln-eadr`), a commit needs no flush: the committing
//! register and the change of states are all. No paper shows that machine.
//!
//! Kiln isolates nothing: programs keep transactions on the same line apart by locks, which they hold until the commit is
//! acknowledged [kiln-isolation].

mod area;
pub(crate) mod banks;
mod overflow;
mod planted;
mod recovery;
mod spec;
mod state;
mod survivors;
#[cfg(test)]
mod tests;
mod transaction;
pub(crate) mod variant;

pub(crate) use area::reserve;
pub(crate) use planted::DISTRIBUTED;
pub(crate) use recovery::recover_distributed;
pub(crate) use spec::Versions;
pub use spec::{Blocking, KilnSpec};
pub(crate) use state::State;

use banks::{Banks, tx_of};
use durasim_contract::{
    AbortCause, Action, Actions, BeginRule, BudgetSpent, CachedLine, CommitRule, CrashImage, CrashSink, CrashView, Ctx,
    Design, Durability, Evict, Fill, FlushVerdict, Gate, Gather, Geometry, HardwareCost, Hooks, LevelId, LineTag,
    Merge, Message, Node, PlantedFault, RecoveryCut, RecoveryReport, RegionRequest, SpecError, Stateful, Store, Token,
    Wait,
};
use durasim_types::{CoreId, Cycle, EventKind, Line, LineAddr, PhysAddr, StallCause, Stats, TxId};
use overflow::AreaFull;
use state::{PendingAcks, Purpose};
use survivors::Survivor;
use transaction::{CopyStage, Entry, OldLine, Phase, Transaction};

// Steps of a sequence that the machine calls back for, so that each is a crash point of its own. The lower bits are the
// number of a transaction, or of a core.

/// The lines of a transaction whose old versions have a place are copied.
const COPY: u64 = 1 << 61;
/// The first half of the lines of a commit becomes committed.
const FLIP_FIRST_HALF: u64 = 2 << 61;
/// The second half does.
const FLIP_SECOND_HALF: u64 = 3 << 61;
/// The committing register of a core is cleared.
const RELEASE: u64 = 4 << 61;
/// The bits that distinguish the steps.
const STEP: u64 = 7 << 61;

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

    fn build(spec: &KilnSpec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        State::new(spec, geometry)
    }

    fn recover(spec: &KilnSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        recovery::recover(spec, geometry, image)
    }

    fn cost(spec: &KilnSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
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
        self.contents.counters.shared_stores += u64::from(foreign);
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
        // The version before the first write of a transaction goes below: an abort finds it there, and what has been cleaned
        // is durable there.
        if !tag.is_some() && !self.fault.skips(planted::PRE_IMAGE_FORGOTTEN) {
            if !self.upper_levels_survive {
                out.push(Action::PushToLlc { line, token: None });
            } else if store.dirty {
                out.push(Action::CopyDown(line));
            }
        }
        *tag = self.tag(tx, line);
        Gate::Done
    }

    /// A commit walks the FIFOs and flushes the lines of its transaction into the last level, where they stay uncommitted; the
    /// copies above stay, clean. When all are there the committing register takes the TxID, which is the commit point; then
    /// the lines become committed, in any order, and the register is cleared [kiln-commit].
    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let Some(open) = self.contents.open.get(&tx) else { return Gate::Done };
        let home = usize::from(open.home.0);
        let mut walk_left: Cycle = 0;
        match open.phase {
            Phase::Running => {
                if let Some(token) = open.copy_under_way() {
                    return Gate::Retry(Wait::Acked(token));
                }
                // Lines that have left a FIFO are on the media before the commit flushes the others.
                let going_home = self.contents.open.get_mut(&tx).and_then(|open| open.going_home.take());
                if let Some(token) = going_home
                    && !self.fault.skips(planted::WAY_HOME_NOT_AWAITED)
                {
                    return Gate::Retry(Wait::Acked(token));
                }
                if let Some(token) = self.flush_entries(cx, tx, out) {
                    return Gate::Retry(Wait::Acked(token));
                }
            }
            Phase::Flushing { since, walk_cycles, token } => {
                if self.awaits(token) {
                    return Gate::Retry(Wait::Acked(token));
                }
                if let Some(token) = open.copy_under_way() {
                    return Gate::Retry(Wait::Acked(token));
                }
                walk_left = (since + walk_cycles).saturating_sub(cx.cycle);
                self.contents.counters.flush_cycles += cx.cycle.saturating_sub(since) + walk_left;
            }
            _ => return Gate::Done,
        }
        if let Some(banks) = self.contents.banks.as_ref().map(Banks::count) {
            return self.commit_in_banks(cx, tx, banks, out);
        }
        // The register still names a transaction whose records are being cleared.
        if let Some(token) = self.release_under_way(home) {
            self.contents.counters.register_waits += 1;
            return Gate::Retry(Wait::Acked(token));
        }
        let Some(open) = self.contents.open.get_mut(&tx) else { return Gate::Done };
        if open.lines.is_empty() {
            self.contents.open.remove(&tx);
            out.event(EventKind::Commit, self.area.record(0));
            return Gate::Done;
        }
        open.phase = Phase::Flipping;
        if !self.fault.skips(planted::REGISTER_NOT_WRITTEN) {
            self.contents.registers[home] = Some(tx);
        }
        out.event(EventKind::DesignStep, self.area.record(0));
        out.push(Action::Resume { id: FLIP_FIRST_HALF | tx.0 });
        Gate::After(Wait::Cycles(walk_left + self.spec.llc_write_latency_cycles))
    }

    /// Uncommitted lines are invalidated everywhere, and old lines come back that the fall-back path has copied.
    fn tx_abort(&mut self, _: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        let Some(open) = self.contents.open.get_mut(&tx) else { return Gate::Done };
        let phase = open.phase;
        match phase {
            Phase::Running | Phase::Flushing { .. } => {
                open.tracked.clear();
                let in_progress = open.copy_under_way();
                for fifo in &mut self.contents.fifos {
                    fifo.retain(|entry| entry.tx != tx);
                }
                if let Some(token) = in_progress {
                    return Gate::Retry(Wait::Acked(token));
                }
                if !self.fault.skips(planted::ABORT_KEEPS_LINES) {
                    out.push(Action::InvalidateTagged(tx));
                }
                if let Some(token) = self.restore_old_lines(tx, out) {
                    self.set_phase(tx, Phase::Restoring(token));
                    return Gate::Retry(Wait::Acked(token));
                }
                self.forget_copies(tx, out)
            }
            Phase::Restoring(token) | Phase::Forgetting(token) if self.awaits(token) => Gate::Retry(Wait::Acked(token)),
            Phase::Restoring(_) => self.forget_copies(tx, out),
            Phase::Forgetting(_) => {
                self.forget_aborted(tx);
                Gate::Done
            }
            // It has committed.
            Phase::Flipping | Phase::HalfFlipped | Phase::Committing => Gate::Done,
        }
    }

    /// While lines of a commit are being flushed, requests wait [kiln-blocking]; those that arrived before it do not.
    fn llc_request(&mut self, cx: &Ctx, line: LineAddr) -> Gate {
        let blocking = match self.spec.blocked_requests {
            Blocking::None => None,
            Blocking::Core => self.flushes().find(|(tx, since, _)| *since <= cx.cycle && tx.home == cx.core),
            Blocking::All | Blocking::AllAndCore => self.flushes().find(|(_, since, _)| *since <= cx.cycle),
            Blocking::Lines => self.flushes().find(|(tx, since, _)| *since <= cx.cycle && tx.lines.contains(&line)),
        };
        let Some((_, _, token)) = blocking else { return Gate::Done };
        self.contents.counters.blocked_requests += 1;
        Gate::Retry(Wait::Acked(token))
    }

    /// A committed version that is not home goes there before an uncommitted one takes its place, or stays beside it
    /// [kiln-home-first].
    fn merge(&mut self, level: LevelId, _: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        let goes_home_first = !resident.is_some() && incoming.is_some();
        if !self.fault.ignores(planted::COMMITTED_OVERWRITTEN, goes_home_first) {
            return Merge::Overwrite;
        }
        match (level, self.spec.versions) {
            (LevelId::Llc, Versions::TwoInLlc) => {
                self.contents.counters.committed_kept += 1;
                return Merge::KeepBoth;
            }
            (LevelId::Llc, Versions::HomeFirst) => self.contents.counters.committed_pushed_home += 1,
            _ => {}
        }
        Merge::PushDownFirst
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

    /// A line that the fall-back path has written to its home address is as uncommitted there as in a cache.
    fn fill(&mut self, _: &Ctx, line: LineAddr, _: Option<TxId>, _: &mut Actions) -> Fill {
        let brought = self.contents.open.iter().filter(|(_, open)| open.copies.contains_key(&line)).map(|(tx, _)| *tx);
        let owner = brought.into_iter().find(|&tx| !self.has_flipped_in_bank(self.tag(tx, line)));
        match owner.filter(|_| !self.fault.skips(planted::FILL_UNTAGGED)) {
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
        let (step, number) = (id & STEP, id & !STEP);
        match step {
            COPY => self.copy_reserved(TxId(number), out),
            FLIP_FIRST_HALF => self.flip_first_half(TxId(number), out),
            FLIP_SECOND_HALF => self.flip_second_half(TxId(number), out),
            RELEASE => {
                self.contents.registers[usize::from(CoreId(number as u16).0)] = None;
                out.event(EventKind::DesignStep, self.area.record(0));
            }
            _ => unreachable!("Kiln asks for no such step"),
        }
    }

    fn message(&mut self, _: &Ctx, at: Node, message: Message, out: &mut Actions) {
        self.bank_message(at, message, out);
    }

    /// Younger accesses of the core may wait until its commit is done [kiln-blocking].
    fn commit_rule(&self) -> CommitRule {
        match self.spec.blocked_requests {
            Blocking::Core | Blocking::AllAndCore => CommitRule::Blocking,
            Blocking::All | Blocking::Lines | Blocking::None => CommitRule::AtGate,
        }
    }

    /// The instructions of LAD wait until the store buffer is empty.
    fn begin_rule(&self) -> BeginRule {
        if self.contents.banks.is_some() { BeginRule::Drained } else { BeginRule::InOrder }
    }

    fn live(&self, tag: LineTag) -> bool {
        self.contents.open.contains_key(&tx_of(tag)) && !self.has_flipped_in_bank(tag)
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tx_of(tag) == tx
    }

    /// The last level keeps its lines with their states, or all caches go home using residual energy, except what is
    /// uncommitted. The registers are nonvolatile.
    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        let (committed, pending): (Vec<CachedLine>, Vec<CachedLine>) =
            view.lines.iter().partition(|cached| self.survives_as_committed(cached));
        match &self.contents.banks {
            None => sink.keep(survivors::REGISTERS, survivors::save_registers(self.surviving_registers())),
            Some(banks) => self.keep_dtx_cids(banks, sink),
        }
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
        if let Some(banks) = &self.contents.banks {
            self.mark_banks(banks, mark);
        }
    }

    fn occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let entries: usize = self.contents.fifos.iter().map(|fifo| fifo.len()).sum();
        report("fifo", entries as u64);
    }

    fn stats(&self, stats: &mut Stats) {
        let c = &self.contents.counters;
        let design = if self.contents.banks.is_some() { "lad-llc" } else { "kiln" };
        let mut count = |name: &str, value, text| stats.count(format!("{design}.{name}"), value, text);
        if self.contents.banks.is_some() {
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
}

/// Stores.
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
            self.contents.counters.fifo_full_stalls += 1;
            out.stalls_for(StallCause::Structure(0));
            // A line that has just begun to leave has no token before the actions of this step are done.
            return Gate::Retry(self.fifo_relief(core).map_or(Wait::Cycles(1), Wait::Acked));
        }
        fifo.push_back(Entry { tx, line, leaving: false });
        self.contents.counters.tracked_lines += 1;
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.tracked.insert(line);
        }
        Gate::Done
    }
}

/// Commits.
impl State {
    /// Takes the entries of a transaction out of the FIFOs, oldest first.
    fn take_entries(&mut self, core: CoreId, tx: TxId) -> Vec<LineAddr> {
        let mut lines = Vec::new();
        // Those of all cores, for the thread may have changed cores.
        let (own, all) = (usize::from(core.0), self.contents.fifos.len());
        for number in self.fault.swaps(planted::FLUSH_MISSES_OTHER_CORES, 0..all, own..own + 1) {
            let fifo = &mut self.contents.fifos[number];
            let (own, others): (Vec<Entry>, Vec<Entry>) = fifo.iter().partition(|entry| entry.tx == tx);
            lines.extend(own.iter().map(|entry| entry.line));
            *fifo = others.into();
        }
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.tracked.clear();
        }
        let found = lines.len();
        lines.truncate(self.fault.swaps(planted::FLUSH_MISSES_NEWEST, found, found.saturating_sub(1)));
        lines.truncate(self.fault.swaps(planted::COMMIT_NOT_FLUSHED, found, 0));
        lines
    }

    /// Flushes the lines that the FIFOs name ("clean on commit"); what the commit has to wait for.
    fn flush_entries(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Option<Token> {
        let lines = self.take_entries(cx.core, tx);
        if lines.is_empty() {
            return None;
        }
        let count = lines.len() as u64;
        self.contents.counters.flushed_lines += count;
        let token = self.expect(Purpose::Flush(tx), count, Vec::new());
        let walk_cycles = count * self.spec.fifo_walk_cycles;
        self.contents.open.get_mut(&tx)?.phase = Phase::Flushing { since: cx.cycle, walk_cycles, token };
        for &line in &lines {
            out.push(Action::PushToLlc { line, token: Some(token) });
        }
        self.awaits_flush().then_some(token)
    }

    /// Whether a commit writes the register, or sends its messages, when its lines are in the last level.
    fn awaits_flush(&self) -> bool {
        !self.fault.skips(planted::FLUSH_NOT_AWAITED)
    }

    fn release_under_way(&self, core: usize) -> Option<Token> {
        self.contents.registers[core]?;
        let release = Purpose::Release(CoreId(core as u16));
        self.contents.awaited.iter().find(|(_, awaited)| awaited.purpose == release).map(|(token, _)| *token)
    }

    /// The first half of the lines is committed by its own state.
    fn flip_first_half(&mut self, tx: TxId, out: &mut Actions) {
        let Some(open) = self.contents.open.get_mut(&tx) else { return };
        open.phase = Phase::HalfFlipped;
        if self.fault.skips(planted::REGISTER_CLEARED_EARLY) {
            self.contents.registers[usize::from(open.home.0)] = None;
        }
        out.event(EventKind::DesignStep, self.area.record(0));
        out.push(Action::Resume { id: FLIP_SECOND_HALF | tx.0 });
    }

    /// The second half is, too. The register keeps the TxID until no record of an old line is left: until then recovery has to
    /// finish what it names.
    fn flip_second_half(&mut self, tx: TxId, out: &mut Actions) {
        let Some(open) = self.contents.open.remove(&tx) else { return };
        self.drop_older_versions(open.lines.iter().copied(), out);
        out.event(EventKind::Commit, self.area.record(0));
        let slots = self.records_of_commit(&open);
        if slots.is_empty() {
            out.push(Action::Resume { id: RELEASE | u64::from(open.home.0) });
            return;
        }
        self.clear_records(Purpose::Release(open.home), slots, out);
        if self.fault.skips(planted::REGISTER_OVERTAKES_RECORDS) {
            self.contents.registers[usize::from(open.home.0)] = None;
        }
    }

    /// Lines of a transaction are committed: the last level drops the versions before them.
    fn drop_older_versions(&self, lines: impl Iterator<Item = LineAddr>, out: &mut Actions) {
        if self.spec.versions == Versions::TwoInLlc && !self.fault.skips(planted::OLDER_VERSION_KEPT) {
            lines.for_each(|line| out.push(Action::DropOlder(line)));
        }
    }

    /// The slots whose records a commit clears: those of all its old lines.
    fn records_of_commit(&self, committed: &Transaction) -> Vec<u64> {
        let cleared = committed.copies.values().filter(|_| !self.fault.skips(planted::RECORDS_KEPT));
        cleared.map(|old| old.slot).collect()
    }
}

/// Aborts.
impl State {
    fn set_phase(&mut self, tx: TxId, phase: Phase) {
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.phase = phase;
        }
    }

    /// The old lines are home: their records go. Slots without a record are free at once.
    fn forget_copies(&mut self, tx: TxId, out: &mut Actions) -> Gate {
        let Some(open) = self.contents.open.get(&tx) else { return Gate::Done };
        let (safe, reserved): (Vec<&OldLine>, Vec<&OldLine>) =
            open.copies.values().partition(|old| old.stage == CopyStage::Safe);
        self.contents.slots.give_back(reserved.iter().map(|old| old.slot));
        let cleared = safe.into_iter().filter(|_| !self.fault.skips(planted::ABORT_KEEPS_RECORDS));
        let slots: Vec<u64> = cleared.map(|old| old.slot).collect();
        if slots.is_empty() {
            self.forget_aborted(tx);
            return Gate::Done;
        }
        let token = self.clear_records(Purpose::Undo, slots, out);
        self.set_phase(tx, Phase::Forgetting(token));
        Gate::Retry(Wait::Acked(token))
    }
}

/// Power failure.
impl State {
    /// Whether a line is committed when the power fails, by its state or by a register.
    fn survives_as_committed(&self, cached: &CachedLine) -> bool {
        let tx = tx_of(cached.tag);
        self.fault.assumes(planted::PENDING_GOES_HOME, !cached.tag.is_some())
            || self.has_flipped_in_bank(cached.tag)
            || self.contents.open.get(&tx).is_some_and(|open| open.has_flipped(cached.line))
            || self.upper_levels_survive && self.surviving_registers().contains(&Some(tx))
    }

    /// The committing registers, which are nonvolatile.
    fn surviving_registers(&self) -> &[Option<TxId>] {
        self.fault.swaps(planted::REGISTERS_LOST, &self.contents.registers, &[])
    }
}
