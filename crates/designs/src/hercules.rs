//! Hercules: Ye, Chen, Jiang and Wang, "Hercules: Enabling Atomic Durability for Persistent Memory with Transient
//! Persistence Domain", ACM TECS 2023. Section, listing and figure numbers below are the paper's.
//!
//! The caches of an eADR machine are the transaction log. A line that a transaction writes carries a TransTag while
//! the transaction is open; committing resets the states on-chip. A tagged line that has to leave the LLC goes to a
//! log entry instead of its home (premature flush) and is found again through the eWPQ of the controller; committing
//! resets those states too (off-chip), and a background engine migrates the entries home. A nonzero TxLen in the
//! transaction profile is the commit point.
//!
//! Where a mechanism is: registers and context switches in `registers.rs`, eWPQ and extension area in `ewpq.rs`,
//! migration of committed log entries in `migration.rs`, who aborts when cores ask for each other's lines in
//! `conflict.rs`, the log zone in `zone.rs`, section 4.3 in `recovery.rs`, parameters and cost in `spec.rs`.

mod conflict;
mod ewpq;
mod migration;
mod planted;
mod recovery;
mod registers;
mod spec;
#[cfg(test)]
mod tests;
mod zone;

pub use spec::HerculesSpec;

use conflict::Judgement;

use durasim_design::{
    AbortCause, Action, Actions, BudgetSpent, CrashImage, CrashSink, CrashView, Ctx, Cut, Design, Durability, Evict,
    Fault, Fill, FlushVerdict, Gate, Geometry, HardwareCost, Hooks, LevelId, LineTag, Merge, Payload, Planted, Probe,
    RecoveryReport, RegionRequest, Request, SpecError, Store, Token, Wait, snapshot,
};
use durasim_types::{Cause, Cycle, EventKind, Line, LineAddr, PhysAddr, Stats, TxId};
use ewpq::Ewpq;
use migration::Migration;
use registers::{Phase, Registers};
use serde::{Deserialize, Serialize};
use spec::{ConflictLoser, TxLenStore};
use std::hash::Hasher;
use zone::LogZone;

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
    const PLANTED: &'static [Planted] = planted::ALL;
    const MARKS: &'static [&'static str] = &[
        "transaction_open",
        "transaction_off_its_core",
        "premature_flush_open",
        "ewpq_full",
        "extension_populated",
        "migration_in_flight",
        "entry_reloaded_while_migrating",
        "committed_off_chip",
        "tx_len_in_flight",
    ];
    type Spec = HerculesSpec;

    fn adapt(spec: &HerculesSpec, geometry: &mut Geometry) {
        // Section 5: the L1D gives up ways to pay for the TransTags.
        geometry.l1d.missing_way_period = spec.l1d_missing_way_period;
    }

    fn reserve(spec: &HerculesSpec, _: &Geometry) -> Vec<RegionRequest> {
        vec![RegionRequest { name: "log_zone", size_bytes: spec.log_zone_bytes }]
    }

    fn build(spec: &HerculesSpec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        if geometry.controllers > 1 {
            // Section 4.1 gives each controller an eWPQ and a part of the log zone.
            let problem =
                "its eWPQ and log zone are built for one controller of persistent memory; set pmem.controllers=1";
            return Err(SpecError::new("", problem));
        }
        Ok(Box::new(State::new(spec, geometry)?))
    }

    fn load(spec: &HerculesSpec, geometry: &Geometry, bytes: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(State::load(spec, geometry, bytes)?))
    }

    fn recover(spec: &HerculesSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, Cut> {
        let zone = LogZone::new(spec, geometry).expect("the parameters built a machine before");
        recovery::recover(&zone, geometry, image)
    }

    fn cost(spec: &HerculesSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    premature_flushes: u64,
    spills: u64,
    ewpq_hits: u64,
    extension_hits: u64,
    migrations: u64,
    copy_downs: u64,
    on_chip_commits: u64,
    off_chip_commits: u64,
    tagged_lines: u64,
    conflicts_in_caches: u64,
    conflicts_in_the_log: u64,
}

/// Steps of a sequence that the machine calls back for; those of a transaction carry its number in the lower bits.
const RESET_STATES: u64 = 1 << 62;
const FORGET: u64 = 2 << 62;
const MIGRATE: u64 = 3 << 62;
const STEP: u64 = 3 << 62;

#[derive(Clone)]
struct State {
    spec: HerculesSpec,
    zone: LogZone,
    cores: u16,
    extra_cycles: [Cycle; 3],
    limits: [u32; 3],
    registers: Registers,
    ewpq: Ewpq,
    migration: Migration,
    tokens: u64,
    /// Whether the log zone is marked as in use.
    running: bool,
    counters: Counters,
    fault: Fault,
}

/// What of the state changes while it is at work, in the order of snapshots.
type Contents<R, E, M, C> = (R, E, M, u64, bool, C);

impl State {
    fn new(spec: &HerculesSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        spec.check()?;
        let zone = LogZone::new(spec, geometry)?;
        Ok(State {
            cores: geometry.cores,
            extra_cycles: LevelId::ALL.map(|level| spec.tag_cycles(geometry.level(level).latency_cycles)),
            limits: LevelId::ALL.map(|level| (geometry.level(level).ways * spec.trans_tag_percent(level) / 100).max(1)),
            registers: Registers::new(),
            ewpq: Ewpq::new(spec, &zone),
            migration: Migration::default(),
            tokens: 0,
            running: false,
            counters: Counters::default(),
            fault: geometry.planted,
            spec: spec.clone(),
            zone,
        })
    }

    fn load(spec: &HerculesSpec, geometry: &Geometry, bytes: &[u8]) -> Result<Self, SpecError> {
        let fresh = State::new(spec, geometry)?;
        let contents: Contents<Registers, Ewpq, Migration, Counters> = snapshot::from_bytes(bytes)?;
        let (registers, ewpq, migration, tokens, running, counters) = contents;
        if let Some(misfit) = ewpq.misfit(spec, &fresh.zone) {
            return Err(snapshot::refuse(misfit));
        }
        Ok(State { registers, ewpq, migration, tokens, running, counters, ..fresh })
    }

    fn is_open(&self, tx: TxId) -> bool {
        self.registers.is_open(tx)
    }

    /// Stores a TxLen in the transaction profile (section 4.1): a cached store, or straight to the controller. Sixteen
    /// TxLens share a line, which cores take from each other like any other line: it carries no tag.
    fn store_tx_len(&mut self, hardware_id: u64, len: u32, out: &mut Actions) -> Option<Token> {
        let addr = self.zone.tx_len(hardware_id);
        let payload = Payload::new(&len.to_le_bytes());
        match self.spec.tx_len_store {
            TxLenStore::Cached => {
                out.push(Action::PutCached { addr, payload });
                None
            }
            TxLenStore::Controller => {
                self.tokens += 1;
                let token = Token(self.tokens);
                out.push(Action::Append { at: addr, payload, cause: Cause::Metadata, token: Some(token) });
                Some(token)
            }
        }
    }

    /// Listing 1, the end of tx_commit: TxStates become '0'. From now on the lines are everybody's.
    fn count_commit(&mut self, tx: TxId, hardware_id: u64, out: &mut Actions) {
        if self.ewpq.mappings().any(|m| m.tx == tx) {
            self.counters.off_chip_commits += 1;
        } else {
            self.counters.on_chip_commits += 1;
        }
        out.event(EventKind::Commit, self.zone.tx_len(hardware_id));
    }

    /// A line finds no place in the log. Its transaction aborts, unless it is committing: that is decided elsewhere.
    fn no_place_in_the_log(&mut self, tx: TxId, why: AbortCause, out: &mut Actions) -> Evict {
        if let Some(token) = self.hurry_migration(out) {
            return Evict::After(Wait::Acked(token));
        }
        match self.registers.get(tx).map(|open| open.phase) {
            Some(Phase::StoringLen(token)) => Evict::After(Wait::Acked(token)),
            _ => Evict::Abort(tx, why),
        }
    }
}

impl Durability for State {
    /// Listing 1, tx_start.
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        if !self.running {
            self.running = true;
            out.append(self.zone.flag(), &zone::RUNNING.to_le_bytes(), Cause::Metadata, None);
            let period = self.spec.migration_period_instructions;
            out.push(Action::InstructionTimer { id: MIGRATE, after_instructions: period });
        }
        // As many transactions are open as there are identifiers: this one has to try again.
        let Some(hardware_id) = self.registers.next_identifier(self.spec.tx_id_bits, self.fault) else {
            return Gate::Abort(tx, AbortCause::Capacity);
        };
        // An identifier comes round again: entries of its last bearer must be home before its TxLen becomes zero.
        if self.ewpq.mappings().any(|m| m.hardware_id == hardware_id)
            && !self.fault.is(planted::IDENTIFIER_WITH_ENTRIES)
            && let Some(token) = self.hurry_migration(out)
        {
            return Gate::Retry(Wait::Acked(token));
        }
        if !self.fault.is(planted::TX_LEN_KEPT_AT_BEGIN) {
            self.store_tx_len(hardware_id, 0, out);
        }
        self.registers.begin(tx, cx.core, hardware_id);
        Gate::Done
    }

    /// Listing 2, "write-allocate at L1".
    fn store(&mut self, _: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        if tag.is_some() {
            match self.judge(TxId(tag.0), store.tx, self.spec.conflict_loser) {
                Judgement::Grant => {}
                Judgement::Wait(wait) => return Gate::Retry(wait),
                Judgement::Abort(tx) => {
                    self.counters.conflicts_in_caches += 1;
                    return Gate::Abort(tx, AbortCause::Conflict);
                }
            }
        }
        let Some(tx) = store.tx else { return Gate::Done };
        if tag.0 == tx.0 {
            return Gate::Done;
        }
        if store.dirty && !self.fault.is(planted::COPY_DOWN_FORGOTTEN) {
            self.counters.copy_downs += 1;
            out.push(Action::CopyDown(store.line()));
        }
        *tag = LineTag(tx.0);
        self.counters.tagged_lines += 1;
        if let Some(open) = self.registers.get_mut(tx) {
            open.len += 1;
        }
        Gate::Done
    }

    /// Listing 1, tx_commit: TxLen first, which is the commit point, then the states on-chip and in the eWPQ.
    fn tx_commit(&mut self, _: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let open = *self.registers.get(tx).expect("a commit belongs to an open transaction");
        match open.phase {
            Phase::Running => {
                let neighbour = u64::from(self.fault.is(planted::TX_LEN_OF_ANOTHER));
                if self.fault.is(planted::STATES_RESET_FIRST) {
                    out.push(Action::Resume { id: RESET_STATES | tx.0 });
                }
                if open.len > 0
                    && !self.fault.is(planted::TX_LEN_SKIPPED)
                    && let Some(token) = self.store_tx_len(open.hardware_id ^ neighbour, open.len, out)
                    && !self.fault.is(planted::TX_LEN_NOT_AWAITED)
                {
                    self.registers.get_mut(tx).expect("just seen").phase = Phase::StoringLen(token);
                    return Gate::Retry(Wait::Acked(token));
                }
                out.push(Action::Resume { id: RESET_STATES | tx.0 });
            }
            Phase::StoringLen(token) => return Gate::Retry(Wait::Acked(token)),
            Phase::Committed => {
                self.registers.end(tx);
            }
        }
        Gate::After(Wait::Cycles(self.spec.state_reset_cycles))
    }

    /// Listing 1, tx_abort.
    fn tx_abort(&mut self, _: &Ctx, tx: TxId, _why: AbortCause, out: &mut Actions) -> Gate {
        if !self.fault.is(planted::ABORT_KEEPS_LINES) {
            out.push(Action::InvalidateTagged(tx));
        }
        out.push(Action::Resume { id: FORGET | tx.0 });
        Gate::After(Wait::Cycles(self.spec.state_reset_cycles))
    }

    /// Section 5: an access that involves a TransTag has a longer tag latency.
    fn tagged_access_cycles(&self, level: LevelId) -> Cycle {
        self.extra_cycles[level as usize]
    }

    /// Listing 2: a TransTag that is there already is the same before and after.
    fn own_lines_are_silent(&self) -> bool {
        true
    }

    /// Listing 2, "write victim at L2 or L3": the older version goes down before an uncommitted one takes its place.
    fn merge(&mut self, _: LevelId, _: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        if incoming.is_some() && !resident.is_some() && !self.fault.is(planted::MERGE_OVERWRITES_OLDER) {
            Merge::PushDownFirst
        } else {
            Merge::Overwrite
        }
    }

    /// Listing 4: L1 plain LRU; L2 and LLC keep transactional lines until the TransTags of the set are used up.
    fn victim(
        &mut self,
        level: LevelId,
        incoming: LineTag,
        full: bool,
        tags: &[LineTag],
        ranks: &[u32],
    ) -> Option<usize> {
        if level == LevelId::L1d {
            return None;
        }
        let oldest = |tagged: bool| {
            let ways = (0..tags.len()).filter(|&w| tags[w].is_some() == tagged && ranks[w] != u32::MAX);
            ways.min_by_key(|&w| ranks[w])
        };
        let used = tags.iter().filter(|t| t.is_some()).count() as u32;
        if incoming.is_some() && used >= self.limits[level as usize] {
            return oldest(true);
        }
        if full { oldest(false).or_else(|| oldest(true)) } else { None }
    }

    /// Listing 2, "write victim to pmem".
    fn evict(&mut self, _: &Ctx, line: LineAddr, tag: LineTag, _: &Line, out: &mut Actions) -> Evict {
        if let Some(token) = self.older_version_under_way(line) {
            return Evict::After(Wait::Acked(token));
        }
        let tx = TxId(tag.0);
        // Its transaction may have committed while the line waited.
        let open = self.registers.get(tx).filter(|open| open.phase != Phase::Committed).copied();
        let Some(open) = open.filter(|_| !self.fault.is(planted::TAGGED_LINES_GO_HOME)) else {
            return Evict::Proceed;
        };
        if self.ewpq.log_is_full(&self.zone) && !self.fault.is(planted::LOG_OVERTAKES_TAIL) {
            return self.no_place_in_the_log(tx, AbortCause::OutOfMemory, out);
        }
        if self.ewpq.is_full(&self.spec) {
            if !self.ewpq.spill(&self.zone, self.fault, out) {
                return self.no_place_in_the_log(tx, AbortCause::Capacity, out);
            }
            self.counters.spills += 1;
        }
        self.drop_kept_entry(line, out);
        self.counters.premature_flushes += 1;
        let log = self.ewpq.insert(tx, open.hardware_id, line);
        let header = self.zone.entry_header(line, open.hardware_id);
        if !self.fault.is(planted::ENTRY_HEADER_SKIPPED) {
            out.append(self.zone.entry_header_at(log), &header, Cause::Metadata, None);
        }
        out.event(EventKind::DesignStep, line.base());
        Evict::To { at: self.zone.entry_data(log), cause: Cause::Log, token: None }
    }

    /// Listing 3, "all cache miss, load data from pmem". The versions of other transactions in the log are as forbidden
    /// as those in the caches.
    fn fill(&mut self, _: &Ctx, line: LineAddr, tx: Option<TxId>, out: &mut Actions) -> Fill {
        let (search_cycles, extended) = self.ewpq.search_cycles(&self.spec);
        let Some((found, in_ewpq)) = self.ewpq.find(line, self.fault) else {
            return Fill::Home { search_cycles, serial: extended };
        };
        // Section 4.2: "an access from an ongoing transaction may happen to an eWPQ entry with mismatched TxID and '1'
        // TxState. Hercules aborts that transaction".
        match self.judge(found.tx, tx, ConflictLoser::Requester) {
            Judgement::Grant => {}
            Judgement::Wait(wait) => return Fill::Wait(wait),
            Judgement::Abort(loser) => {
                self.counters.conflicts_in_the_log += 1;
                return Fill::Abort(loser, AbortCause::Conflict);
            }
        }
        // The extension area is searched only if the eWPQ does not have the line (section 4.2).
        let search_cycles = if in_ewpq { self.spec.ewpq_search_cycles } else { search_cycles };
        if in_ewpq {
            self.counters.ewpq_hits += 1;
        } else {
            self.counters.extension_hits += 1;
        }
        let at = self.zone.entry_data(found.log);
        if !self.fault.is(planted::RELOAD_KEEPS_ENTRY) {
            self.ewpq.take(line, &self.zone, out);
        }
        if let Some(token) = found.migration.filter(|_| !self.fault.is(planted::RELOAD_KEEPS_ENTRY)) {
            self.migration.departed.push((line, token));
        }
        let open = self.is_open(found.tx) && !self.fault.is(planted::RELOAD_LOSES_TAG);
        let tag = if open { LineTag(found.tx.0) } else { LineTag::NONE };
        Fill::From { at, search_cycles, tag }
    }

    /// Section 4.2, "transaction abortion": "Hercules also aborts a transaction if a transactional cache line is to be
    /// fetched from another core, through a comparison against TxID and TxState in the TransTag". The LLC compares too:
    /// Listing 3 lets any core take a line from there, which section 4.5.1 forbids.
    fn probe(&mut self, _: &Ctx, request: &Request, _: &mut Actions) -> Probe {
        if self.fault.is(planted::PROBES_GRANTED) {
            return Probe::Grant;
        }
        match self.judge(TxId(request.tag.0), request.tx, self.spec.conflict_loser) {
            Judgement::Grant => Probe::Grant,
            Judgement::Wait(wait) => Probe::Wait(wait),
            Judgement::Abort(tx) => {
                self.counters.conflicts_in_caches += 1;
                Probe::Abort(tx, AbortCause::Conflict)
            }
        }
    }

    /// Section 4.1: PerCoreTxID and PerCoreTxLen go with the thread. Its lines stay where they are.
    fn context_switch(&mut self, cx: &Ctx, leaving: Option<TxId>, coming: Option<TxId>, _: &mut Actions) -> Gate {
        self.registers.switch(cx.core, leaving, coming);
        self.mix_up_registers(coming);
        Gate::Done
    }

    /// A clean of an uncommitted line must not reach home, nor one that a migration would undo; eADR keeps both in the
    /// caches. Anything else is as on any machine.
    fn flush(&mut self, _: &Ctx, line: LineAddr, tag: LineTag, _: &mut Actions) -> FlushVerdict {
        if tag.is_some() || self.migration.on_its_way_home(line).is_some() {
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
                let Some(open) = self.registers.end(tx) else { return };
                self.count_commit(tx, open.hardware_id, out);
            }
            FORGET => {
                // It may have aborted before its tx_start left the store buffer.
                self.registers.end(tx);
                if self.fault.is(planted::ABORT_KEEPS_ENTRIES) {
                    return;
                }
                let homes: Vec<LineAddr> = self.ewpq.mappings().filter(|m| m.tx == tx).map(|m| m.home).collect();
                for home in homes {
                    self.ewpq.take(home, &self.zone, out);
                }
            }
            MIGRATE => {
                let period = self.spec.migration_period_instructions;
                out.push(Action::InstructionTimer { id: MIGRATE, after_instructions: period });
                self.migration.scanning = true;
                self.migrate(out);
            }
            _ => unreachable!("no step has the number {id:#x}"),
        }
    }

    /// A TxLen that was stored directly is in the controller, which is the commit point; or a migrated line is home.
    fn acked(&mut self, _: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        if let Some((tx, open)) = self.registers.storing_len_under(token) {
            open.phase = Phase::Committed;
            let hardware_id = open.hardware_id;
            self.count_commit(tx, hardware_id, out);
            return;
        }
        self.migrated(token, addr, out);
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

    /// Section 4.2, "flush on a power-off": LogHead, LogTail and eWPQ, then the caches, LLC first; lines of open
    /// transactions go to the emergency area.
    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        let valid = self.ewpq.saved(self.fault).map(|m| (m.hardware_id, m.log));
        self.zone.save_registers(sink, self.ewpq.log_head(), self.ewpq.log_tail(), valid)?;
        let mut saved = 0;
        for line in &*planted::saved_lines(self.fault, view.lines) {
            if let Some(open) = self.registers.get(TxId(line.tag.0)).filter(|_| line.tag.is_some()) {
                let id = open.hardware_id;
                self.zone.save_emergency(sink, saved, line.line, id, &line.data)?;
                saved += 1;
            } else if line.dirty {
                sink.write(line.line.base(), &line.data)?;
            }
        }
        self.zone.save_end(sink, saved.saturating_sub(u64::from(self.fault.is(planted::EMERGENCY_ONE_SHORT))))
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        if self.registers.all().next().is_some() {
            mark("transaction_open");
        }
        if self.registers.all().any(|(_, open)| open.core.is_none()) {
            mark("transaction_off_its_core");
        }
        if self.registers.all().any(|(_, open)| matches!(open.phase, Phase::StoringLen(_))) {
            mark("tx_len_in_flight");
        }
        if self.ewpq.mappings().any(|m| self.is_open(m.tx)) {
            mark("premature_flush_open");
        }
        if self.ewpq.is_full(&self.spec) {
            mark("ewpq_full");
        }
        if self.ewpq.extended() > 0 {
            mark("extension_populated");
        }
        if self.migration.in_flight > 0 {
            mark("migration_in_flight");
        }
        if !self.migration.departed.is_empty() {
            mark("entry_reloaded_while_migrating");
        }
        if self.ewpq.mappings().any(|m| !self.is_open(m.tx)) {
            mark("committed_off_chip");
        }
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        for (tx, open) in self.registers.all() {
            hasher.write_u64(tx.0);
            hasher.write_u64(u64::from(open.len));
        }
        for mapping in self.ewpq.mappings() {
            hasher.write_u64(mapping.tx.0);
            hasher.write_u64(mapping.home.0);
            hasher.write_u64(mapping.log);
        }
        self.migration.departed.iter().for_each(|(home, _)| hasher.write_u64(home.0));
        hasher.write_u64(self.ewpq.log_head());
    }

    fn stats(&self, stats: &mut Stats) {
        let c = &self.counters;
        let mut count = |name: &str, value, text| stats.count(format!("hercules.{name}"), value, text);
        count("premature_flushes", c.premature_flushes, "Lines of open transactions that left the LLC for the log");
        count("ewpq_spills", c.spills, "eWPQ entries evicted to the extension area");
        count("ewpq_hits", c.ewpq_hits, "Misses answered through the eWPQ");
        count("extension_hits", c.extension_hits, "Misses answered through the extension area");
        count("migrations", c.migrations, "Log entries carried home in the background");
        count("copy_downs", c.copy_downs, "Older dirty versions sent down before a transactional write");
        count("on_chip_commits", c.on_chip_commits, "Commits with all lines in the caches");
        count("off_chip_commits", c.off_chip_commits, "Commits with lines in the log");
        count("tagged_lines", c.tagged_lines, "Lines covered by transactions, each once per transaction");
        if self.cores > 1 {
            count("conflicts_in_caches", c.conflicts_in_caches, "Aborts for a line of a transaction in a cache");
            count("conflicts_in_the_log", c.conflicts_in_the_log, "Aborts for a line of a transaction in the log");
        }
    }

    fn reset_stats(&mut self) {
        self.counters = Counters::default();
    }

    fn fork(&self) -> Box<dyn Durability> {
        Box::new(self.clone())
    }

    fn save(&self) -> Vec<u8> {
        let contents: Contents<&Registers, &Ewpq, &Migration, &Counters> =
            (&self.registers, &self.ewpq, &self.migration, self.tokens, self.running, &self.counters);
        snapshot::to_bytes(&contents)
    }
}
