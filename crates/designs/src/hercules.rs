//! Hercules: Ye, Chen, Jiang and Wang, "Hercules: Enabling Atomic Durability for Persistent Memory with Transient
//! Persistence Domain", ACM TECS 2023. Section, listing and figure numbers below are the paper's.
//!
//! The caches of an eADR machine are the transaction log. A line that a transaction writes carries a TransTag while
//! the transaction is open; committing resets the states on-chip. A tagged line that has to leave the LLC goes to a
//! log entry instead of its home (premature flush) and is found again through the eWPQ of the controller; committing
//! resets those states too (off-chip), and a background engine migrates the entries home. A nonzero TxLen in the
//! transaction profile is the commit point.
//!
//! This file has the hooks (Listings 1 to 3, 4 for victims), premature flushes and conflicts (section 4.5). The registers of
//! section 4.1 are in `registers.rs`, the log zone of Figure 3b in `zone.rs`; eWPQ and extension area of section 4.2 in
//! `ewpq.rs`, the growth of the latter in `extension_chain.rs`, migration of committed log entries in `migration.rs`; the flush
//! at a power failure and section 4.3 in `recovery.rs`; garbage collection and log extension of section 4.4 in `log_space.rs`;
//! parameters in `spec.rs`, Table 6 and section 5.4 in `cost.rs`.

mod cost;
mod ewpq;
mod ewpq_index;
mod extension_chain;
mod log_space;
mod migration;
mod planted;
mod recovery;
mod registers;
mod spec;
mod state;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_caches;
#[cfg(test)]
mod tests_chain;
#[cfg(test)]
mod tests_compact;
#[cfg(test)]
mod tests_log;
pub(crate) mod variant;
mod zone;

pub use spec::HerculesSpec;

use durasim_contract::{
    AbortCause, Action, Actions, BudgetSpent, CommitRule, CrashImage, CrashSink, CrashView, Ctx, Design, Durability,
    Evict, Fill, FlushVerdict, Gate, Geometry, HardwareCost, Hooks, LevelId, LineTag, Merge, Origin, PlantedFault,
    Probe, RecoveryCut, RecoveryReport, RegionRequest, Request, SpecError, Stateful, Store, Token, Wait,
};
use durasim_types::{Cause, Cycle, EventKind, Line, LineAddr, PhysAddr, StallCause, Stats, TxId};
use ewpq::Mapping;
use log_space::LogPlacement;
use registers::Phase;
use spec::{CommitWait, ConflictLoser};
use state::State;
use zone::{LogZone, entry_header};

/// The design.
pub struct Hercules;

impl Design for Hercules {
    const NAME: &'static str = "hercules";
    const HOOKS: Hooks = Hooks::TX
        .with(Hooks::STORE)
        .with(Hooks::MERGE)
        .with(Hooks::VICTIM)
        .with(Hooks::EVICT)
        .with(Hooks::FILL)
        .with(Hooks::PROBE)
        .with(Hooks::FLUSH)
        .with(Hooks::CONTEXT_SWITCH);
    const PLANTED: &'static [PlantedFault] = planted::ALL;
    const MARKS: &'static [&'static str] = &[
        "transaction_open",
        "transaction_off_its_core",
        "premature_flush_open",
        "ewpq_full",
        "extension_populated",
        "extension_chained",
        "migration_in_flight",
        "entry_reloaded_while_migrating",
        "committed_off_chip",
        "tx_len_in_flight",
        "log_extended",
        "gc_copying",
        "gc_before_log_head",
        // Named by the machine, which has the caches.
        "committing",
        "tagged_line_in_l1d",
        "tagged_line_in_l2",
        "tagged_line_in_llc",
    ];
    const SCALED: &'static [&'static str] = &[
        "ewpq_entries",
        "extension_chain_bytes",
        "migration_period_instructions",
        "log_zone_bytes",
        "log_gc_trigger_entries",
        "log_extension_bytes",
    ];
    const ENGINES: &'static [&'static str] = &["migration_rounds"];
    const STRUCTURES: &'static [&'static str] = &["transaction_ids"];
    type Spec = HerculesSpec;

    fn adapt(spec: &HerculesSpec, geometry: &mut Geometry) {
        // Section 5: the L1D gives up ways to pay for the TransTags.
        geometry.l1d.missing_way_period = spec.l1d_missing_way_period;
    }

    fn reserve(spec: &HerculesSpec, _: &Geometry) -> Vec<RegionRequest> {
        let mut regions = vec![RegionRequest { name: "log_zone", size_bytes: spec.log_zone_bytes }];
        if spec.log_extension_bytes > 0 {
            // Before the log zone, which lies at the end with and without it.
            regions.insert(0, RegionRequest { name: "log_extension", size_bytes: spec.log_extension_bytes });
        }
        if spec.extension_chain_bytes > 0 {
            regions.insert(0, RegionRequest { name: "extension_chain", size_bytes: spec.extension_chain_bytes });
        }
        regions
    }

    fn build(spec: &HerculesSpec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        State::new(spec, geometry)
    }

    fn recover(
        spec: &HerculesSpec,
        geometry: &Geometry,
        image: &mut CrashImage,
    ) -> Result<RecoveryReport, RecoveryCut> {
        let zone = LogZone::new(spec, geometry).expect("the parameters built a machine before");
        recovery::recover(&zone, geometry, image)
    }

    fn cost(spec: &HerculesSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

/// Steps of a sequence that the machine calls back for; those of a transaction carry its number in the lower bits.
const RESET_STATES: u64 = 1 << 61;
const FORGET: u64 = 2 << 61;
const MIGRATE: u64 = 3 << 61;
/// The lower bits are the number of a controller.
const COLLECT: u64 = 4 << 61;
/// As in [`COLLECT`].
const CLEARED: u64 = 5 << 61;
const STEP: u64 = 7 << 61;

/// The wait of a line that leaves the LLC when log or extension area grow for it: only for the writes of the growth, then
/// the line is evicted again. A spilled entry leaves the eWPQ with the answer, so its record has to be the first write of
/// that answer: power may fail at any write before it.
const ONCE_WRITTEN: Wait = Wait::Cycles(0);

impl Durability for State {
    /// Listing 1, tx_start.
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        if !self.contents.running {
            self.contents.running = true;
            out.append(Origin::Controller, self.zone.flag(), &zone::RUNNING.to_le_bytes(), Cause::Metadata, None);
            let period = self.spec.migration_period_instructions;
            out.push(Action::InstructionTimer { id: MIGRATE, after_instructions: period });
        }
        // As many transactions are open as there are identifiers: this one has to try again, as after a conflict.
        let Some(hardware_id) = self.contents.registers.next_identifier(self.spec.tx_id_bits, self.fault) else {
            return Gate::Abort(tx, AbortCause::Conflict);
        };
        // An identifier wraps around to a used value: entries of its last user must be home before its TxLen becomes zero.
        if let Some(controller) = self.contents.parts.iter().position(|part| part.ewpq.names(hardware_id))
            && !self.fault.skips(planted::IDENTIFIER_WITH_ENTRIES)
            && let Some(token) = self.migrate_next_early(controller, out)
        {
            out.stalls_for(StallCause::Structure(0));
            return Gate::Retry(Wait::Acked(token));
        }
        if !self.fault.skips(planted::TX_LEN_KEPT_AT_BEGIN) {
            self.store_tx_len(hardware_id, 0, out);
        }
        self.contents.registers.begin(tx, cx.core, hardware_id);
        Gate::Done
    }

    /// Listing 2, "write-allocate at L1".
    fn store(&mut self, _: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        if tag.is_some() {
            out.stalls_for(StallCause::Order);
            match self.judge(TxId(tag.0), store.tx, self.spec.conflict_loser) {
                ConflictOutcome::Grant => {}
                ConflictOutcome::Wait(wait) => return Gate::Retry(wait),
                ConflictOutcome::Abort(tx) => {
                    self.counters.conflicts_in_caches += 1;
                    return Gate::Abort(tx, AbortCause::Conflict);
                }
            }
        }
        let Some(tx) = store.tx else { return Gate::Done };
        if tag.0 == tx.0 {
            return Gate::Done;
        }
        // The older dirty version goes down first.
        if self.fault.ignores(planted::COPY_DOWN_FORGOTTEN, store.dirty) {
            self.counters.copy_downs += 1;
            out.push(Action::CopyDown(store.line()));
        }
        *tag = LineTag(tx.0);
        self.counters.tagged_lines += 1;
        if let Some(open) = self.contents.registers.get_mut(tx) {
            open.len += 1;
        }
        Gate::Done
    }

    /// Listing 1, tx_commit: TxLen first, which is the commit point, then the states on-chip and in the eWPQ.
    fn tx_commit(&mut self, _: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let open = *self.contents.registers.get(tx).expect("a commit belongs to an open transaction");
        match open.phase {
            Phase::Running => {
                if self.fault.skips(planted::STATES_RESET_FIRST) {
                    out.push(Action::Resume { id: RESET_STATES | tx.0 });
                }
                if self.fault.ignores(planted::TX_LEN_SKIPPED, open.len > 0) {
                    let id = open.hardware_id;
                    let id = self.fault.swaps(planted::TX_LEN_OF_ANOTHER, id, id ^ 1);
                    if let Some(token) = self.store_tx_len(id, open.len, out)
                        && !self.fault.skips(planted::TX_LEN_NOT_AWAITED)
                    {
                        self.contents.registers.get_mut(tx).expect("just seen").phase = Phase::StoringLen(token);
                        return Gate::Retry(Wait::Acked(token));
                    }
                }
                out.push(Action::Resume { id: RESET_STATES | tx.0 });
            }
            Phase::StoringLen(token) => return Gate::Retry(Wait::Acked(token)),
            Phase::Committed => {
                self.contents.registers.end(tx);
            }
        }
        Gate::After(Wait::Cycles(self.spec.state_reset_cycles))
    }

    fn commit_rule(&self) -> CommitRule {
        match self.spec.commit_wait {
            CommitWait::Reset => CommitRule::AtGate,
            CommitWait::None => CommitRule::Early,
        }
    }

    /// Listing 1, tx_abort.
    fn tx_abort(&mut self, _: &Ctx, tx: TxId, _why: AbortCause, out: &mut Actions) -> Gate {
        if !self.fault.skips(planted::ABORT_KEEPS_LINES) {
            out.push(Action::InvalidateTagged(tx));
        }
        out.push(Action::Resume { id: FORGET | tx.0 });
        Gate::After(Wait::Cycles(self.spec.state_reset_cycles))
    }

    /// Section 5: an access that involves a TransTag has a longer tag latency.
    fn tagged_access_cycles(&self, level: LevelId) -> Cycle {
        self.extra_cycles[level.index()]
    }

    /// Listing 2: a TransTag that is there already is the same before and after.
    fn skips_hooks_on_own_lines(&self) -> bool {
        true
    }

    /// Listing 2, "write victim at L2 or L3": the older version goes down before an uncommitted one takes its place.
    fn merge(&mut self, _: LevelId, _: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        let is_newer = incoming.is_some() && !resident.is_some();
        if self.fault.ignores(planted::MERGE_OVERWRITES_OLDER, is_newer) {
            Merge::PushDownFirst
        } else {
            Merge::Overwrite
        }
    }

    /// Listing 4: L1 plain LRU; L2 and LLC keep transactional lines until the TransTags of the set are used up. Where the
    /// L1D has fewer TransTags than lines, the oldest transactional line gives up its own there too.
    fn victim(
        &mut self,
        level: LevelId,
        incoming: LineTag,
        full: bool,
        tags: &[LineTag],
        ranks: &[u32],
    ) -> Option<usize> {
        let limit = self.limits[level.index()];
        if level == LevelId::L1d && limit as usize >= tags.len() {
            return None;
        }
        let oldest = |tagged: bool| {
            let ways = (0..tags.len()).filter(|&w| tags[w].is_some() == tagged && ranks[w] != u32::MAX);
            ways.min_by_key(|&w| ranks[w])
        };
        let used = tags.iter().filter(|t| t.is_some()).count() as u32;
        if incoming.is_some() && used >= limit {
            return oldest(true);
        }
        if level == LevelId::L1d {
            return None;
        }
        if full { oldest(false).or_else(|| oldest(true)) } else { None }
    }

    /// Listing 2, "write victim to pmem".
    fn evict(&mut self, _: &Ctx, _: LevelId, line: LineAddr, tag: LineTag, _: &Line, out: &mut Actions) -> Evict {
        // Not before an older version that a migration carries home.
        if let Some(token) = self.part(line).migration.in_flight_home(line)
            && !self.fault.skips(planted::EVICTION_OVERTAKES_MIGRATION)
        {
            return Evict::After(Wait::Acked(token));
        }
        // Lines of an open transaction go to the log. It may have committed while the line waited.
        let tx = TxId(tag.0);
        let open = self.contents.registers.get(tx).filter(|open| open.phase != Phase::Committed).copied();
        let Some(open) = open.filter(|_| !self.fault.skips(planted::TAGGED_LINES_GO_HOME)) else {
            return Evict::Proceed;
        };
        let controller = self.controller_of(line);
        let mut indirect = None;
        if self.log_is_full(controller) {
            if let Some(token) = self.make_room_in_the_log(controller, out) {
                return Evict::After(Wait::Acked(token));
            }
            if self.log_is_full(controller) {
                indirect = match self.extend_log(controller, out) {
                    LogPlacement::Entry(entry) => Some(entry),
                    LogPlacement::After(wait) => return Evict::After(wait),
                    LogPlacement::None => {
                        return self.no_place_in_the_log(controller, tx, AbortCause::OutOfMemory, out);
                    }
                };
            }
        }
        // Garbage collection is copying into the log entry at LogHead.
        if let Some(token) = self.contents.parts[controller].gc.copying()
            && !self.fault.skips(planted::GC_HOLDS_NO_EVICTION)
        {
            return Evict::After(Wait::Acked(token));
        }
        let part = &mut self.contents.parts[controller];
        if part.ewpq.is_full(&self.spec) {
            // A TxLen in flight may be durable: the new entry would count before its header, which is written after the
            // record of the spilled one.
            if let Phase::StoringLen(token) = open.phase {
                return Evict::After(Wait::Acked(token));
            }
            if !part.ewpq.spill(&part.zone, self.fault, out) {
                if let Some(token) = self.migrate_next_early(controller, out) {
                    return Evict::After(Wait::Acked(token));
                }
                return match self.chain_block(controller, out) {
                    Ok(()) => Evict::After(ONCE_WRITTEN),
                    Err(why) => self.no_place_in_the_log(controller, tx, why, out),
                };
            }
            self.counters.spills += 1;
        }
        self.flush_prematurely(line, tx, open.hardware_id, indirect, out)
    }

    /// Listing 3, "all cache miss, load data from pmem". The versions of other transactions in the log are as forbidden
    /// as those in the caches.
    fn fill(&mut self, _: &Ctx, line: LineAddr, tx: Option<TxId>, out: &mut Actions) -> Fill {
        let part = self.part(line);
        let search = part.ewpq.search(line, &self.spec, &part.zone, self.fault);
        self.counters.false_matches += search.false_matches;
        self.counters.extension_lines_read += search.extension_lines;
        let Some((found, in_ewpq)) = search.found else {
            return Fill::Home { search_cycles: search.cycles, serial: search.serial };
        };
        // Section 4.2: "an access from an ongoing transaction may happen to an eWPQ entry with mismatched TxID and '1'
        // TxState. Hercules aborts that transaction".
        match self.judge(found.tx, tx, ConflictLoser::Requester) {
            ConflictOutcome::Grant => {}
            ConflictOutcome::Wait(wait) => {
                out.stalls_for(StallCause::Order);
                return Fill::Wait(wait);
            }
            ConflictOutcome::Abort(loser) => {
                self.counters.conflicts_in_the_log += 1;
                return Fill::Abort(loser, AbortCause::Conflict);
            }
        }
        let search_cycles = search.cycles + if found.indirect { self.spec.log_indirect_cycles } else { 0 };
        if in_ewpq {
            self.counters.ewpq_hits += 1;
        } else {
            self.counters.extension_hits += 1;
        }
        // The entry of a line that is loaded again is nullified.
        if !self.keeps_reloaded_entry() {
            self.nullify(found.home, out);
        }
        let named = Mapping { indirect: self.fault.ignores(planted::INDIRECT_READS_LOG, found.indirect), ..found };
        let (_, at) = named.entry(&self.part(found.home).zone);
        // The line has its TransTag again if the transaction is open.
        let is_tagged = self.fault.ignores(planted::RELOAD_LOSES_TAG, self.is_open(found.tx));
        let tag = if is_tagged { LineTag(found.tx.0) } else { LineTag::NONE };
        Fill::From { at, search_cycles, tag }
    }

    /// Section 4.2, "transaction abortion": another core wants a transactional line, and TxID and TxState of its TransTag
    /// say that the transaction is open: it aborts. The LLC compares too:
    /// Listing 3 lets any core take a line from there, which section 4.5.1 forbids.
    fn probe(&mut self, _: &Ctx, request: &Request, _: &mut Actions) -> Probe {
        if self.fault.skips(planted::PROBES_GRANTED) {
            return Probe::Grant;
        }
        match self.judge(TxId(request.tag.0), request.tx, self.spec.conflict_loser) {
            ConflictOutcome::Grant => Probe::Grant,
            ConflictOutcome::Wait(wait) => Probe::Wait(wait),
            ConflictOutcome::Abort(tx) => {
                self.counters.conflicts_in_caches += 1;
                Probe::Abort(tx, AbortCause::Conflict)
            }
        }
    }

    /// Section 4.1: PerCoreTxID and PerCoreTxLen go with the thread. Its lines stay where they are.
    fn context_switch(&mut self, cx: &Ctx, leaving: Option<TxId>, coming: Option<TxId>, _: &mut Actions) -> Gate {
        self.contents.registers.switch(cx.core, leaving, coming, self.fault);
        Gate::Done
    }

    /// A clean of an uncommitted line must not reach home, nor one that a migration would undo; eADR keeps both in the
    /// caches. Anything else is as on any machine.
    fn flush(&mut self, _: &Ctx, line: LineAddr, tag: LineTag, _: &mut Actions) -> FlushVerdict {
        if tag.is_some() || self.part(line).migration.in_flight_home(line).is_some() {
            FlushVerdict::Ignore
        } else {
            FlushVerdict::Proceed
        }
    }

    fn woken(&mut self, _: &Ctx, id: u64, out: &mut Actions) {
        let tx = TxId(id & !STEP);
        match id & STEP {
            RESET_STATES => {
                // Storing TxLen may have evicted a line of the transaction that found no place in the log.
                let Some(open) = self.contents.registers.end(tx) else { return };
                self.count_commit(tx, open.hardware_id, out);
            }
            FORGET => {
                // Listing 1, the end of tx_abort: the entries are recycled. It may have aborted before its tx_start left the
                // store buffer.
                self.contents.registers.end(tx);
                for part in &mut self.contents.parts {
                    if self.fault.skips(planted::ABORT_KEEPS_ENTRIES) {
                        part.ewpq.committed(tx);
                        continue;
                    }
                    for home in part.ewpq.homes_of(tx) {
                        part.take(home, out);
                    }
                }
            }
            MIGRATE => {
                let period = self.spec.migration_period_instructions;
                out.push(Action::InstructionTimer { id: MIGRATE, after_instructions: period });
                self.counters.migration_rounds += 1;
                for controller in 0..self.contents.parts.len() {
                    self.contents.parts[controller].migration.scanning = true;
                    self.migrate(controller, out);
                }
            }
            COLLECT => self.move_log_head((id & !STEP) as usize, out),
            CLEARED => self.contents.parts[(id & !STEP) as usize].cleared(),
            _ => unreachable!("no step has the number {id:#x}"),
        }
    }

    /// A TxLen that was stored directly is in the controller, which is the commit point; or a migrated line is home.
    fn acked(&mut self, _: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        if let Some((tx, open)) = self.contents.registers.storing_len_under(token) {
            open.phase = Phase::Committed;
            let hardware_id = open.hardware_id;
            self.count_commit(tx, hardware_id, out);
            return;
        }
        if !self.collected(self.controller_of(addr.line()), token, out) {
            self.migrated(token, addr, out);
        }
    }

    /// Section 4.1: a part of the lines of a set have TransTags.
    fn tag_limit(&self, level: LevelId) -> Option<u32> {
        Some(self.limits[level.index()])
    }

    /// Section 4.5.1: exclusive housing of a TransTag with its line.
    fn tags_are_exclusive(&self) -> bool {
        true
    }

    fn live(&self, tag: LineTag) -> bool {
        self.is_open(TxId(tag.0))
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tag.0 == tx.0
    }

    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        self.flush_on_power_off(view, sink)
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        self.mark_situations(mark);
    }

    fn occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("log", self.contents.parts.iter().map(|part| part.ewpq.window()).sum());
    }

    fn stats(&self, stats: &mut Stats) {
        self.counters.list(self.cores, stats);
    }
}

/// Premature flushes (section 4.2).
impl State {
    fn keeps_reloaded_entry(&self) -> bool {
        self.fault.skips(planted::RELOAD_KEEPS_ENTRY)
    }

    /// Whether LogHead has wrapped around to LogTail: the entries between them are in use.
    fn log_is_full(&self, controller: usize) -> bool {
        let part = &self.contents.parts[controller];
        self.fault.ignores(planted::LOG_OVERTAKES_TAIL, part.ewpq.log_is_full(&part.zone))
    }

    /// Listing 2, "write victim to pmem": a line takes the log entry at LogHead, or one of the log extension. Home address and
    /// transaction go into the header of the log entry (section 4.1), then the data.
    fn flush_prematurely(
        &mut self,
        line: LineAddr,
        tx: TxId,
        hardware_id: u64,
        indirect: Option<u64>,
        out: &mut Actions,
    ) -> Evict {
        self.counters.premature_flushes += 1;
        let controller = self.controller_of(line);
        // A line has one entry: a load has nullified its last one. With the planted fault this one replaces it.
        if self.keeps_reloaded_entry() && self.part(line).ewpq.entry(line, &self.part(line).zone).is_some() {
            self.nullify(line, out);
        }
        let may_migrate = self.contents.registers.may_migrate(tx, self.fault);
        let part = &mut self.contents.parts[controller];
        let mapping = part.ewpq.insert(tx, hardware_id, line, indirect, &part.zone, may_migrate);
        if let Some(entry) = indirect {
            part.extension.take(entry);
            self.counters.indirect_flushes += 1;
        }
        let (header_at, at) = mapping.entry(&part.zone);
        if !self.fault.skips(planted::ENTRY_HEADER_SKIPPED) {
            let header = entry_header(mapping.home, mapping.hardware_id);
            out.append(Origin::Controller, header_at, &header, Cause::Metadata, None);
        }
        out.event(EventKind::DesignStep, line.base());
        if !mapping.indirect {
            self.collect_if_wide(controller, mapping.log, out);
        }
        Evict::To { at, cause: Cause::Log, token: None }
    }

    /// Listing 3: the entry of a line is nullified. A migration of it is still in flight.
    fn nullify(&mut self, home: LineAddr, out: &mut Actions) {
        let part = self.part_mut(home);
        let taken = part.take(home, out);
        part.migration.departed.extend(taken.and_then(|taken| Some((home, taken.migration?))));
    }
}

/// The answer to a request for a line of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConflictOutcome {
    /// There is no conflict.
    Grant,
    /// Ask again when the fate of the owner is known.
    Wait(Wait),
    /// This transaction aborts.
    Abort(TxId),
}

/// Conflicts: a request for a line of another transaction whose TxState is '1' (sections 4.2, "transaction
/// abortion", 4.5.1 and 4.5.2, "isolation"). No other core may read or change an uncommitted version; false sharing counts
/// like any other access, because a line is the unit.
///
/// In a cache the transaction that owns the line aborts, as in Intel's RTM, which the paper compares itself with
/// [D:hercules-conflict]. In the log, found through the eWPQ, the asking transaction aborts "with an exception"; a
/// request outside of transactions has nothing to abort, so there too the owner does.
///
/// Hardware guarantees no progress: two transactions may livelock by aborting each other. Repeated aborts are
/// the program's business (section 4.5.2): it retries, and backs off if it has to.
impl State {
    /// Compares the TxID and TxState of a line with the requester's.
    fn judge(&self, owner: TxId, requester: Option<TxId>, loser: ConflictLoser) -> ConflictOutcome {
        if !self.fault.ignores(planted::CONFLICTS_IGNORED, requester != Some(owner)) {
            return ConflictOutcome::Grant;
        }
        match self.contents.registers.get(owner).map(|open| open.phase) {
            None | Some(Phase::Committed) => ConflictOutcome::Grant,
            Some(Phase::StoringLen(token)) => ConflictOutcome::Wait(Wait::Acked(token)),
            Some(Phase::Running) => ConflictOutcome::Abort(match loser {
                ConflictLoser::Owner => owner,
                ConflictLoser::Requester => requester.unwrap_or(owner),
            }),
        }
    }
}
