//! Hercules: Ye, Chen, Jiang and Wang, "Hercules: Enabling Atomic Durability for Persistent Memory with Transient
//! Persistence Domain", ACM TECS 2023. Section, listing and figure numbers below are the paper's.
//!
//! The caches of an eADR machine are the transaction log. A line that a transaction writes carries a TransTag while
//! the transaction is open; committing resets the states on-chip. A tagged line that has to leave the LLC goes to a
//! log entry instead of its home (premature flush) and is found again through the eWPQ of the controller; committing
//! resets those states too (off-chip), and a background engine migrates the entries home. A nonzero TxLen in the
//! transaction profile is the commit point.

mod recovery;
mod spec;
mod zone;

pub use spec::HerculesSpec;

use durasim_design::{
    AbortCause, Action, Actions, BudgetSpent, CrashImage, CrashSink, CrashView, Ctx, Cut, Design, Durability, Evict,
    Fill, FlushVerdict, Gate, Geometry, HardwareCost, Hooks, LevelId, LineTag, Merge, Payload, RecoveryReport,
    RegionRequest, SpecError, Store, Token, Wait,
};
use durasim_types::{Cause, CoreId, Cycle, EventKind, Line, LineAddr, PhysAddr, Stats, TxId};
use spec::TxLenStore;
use std::hash::Hasher;
use zone::LogZone;

/// The design.
pub struct Hercules;

impl Design for Hercules {
    const NAME: &'static str = "hercules";
    const HOOKS: Hooks = Hooks::TX
        .with(Hooks::STORE)
        .with(Hooks::ACCESS)
        .with(Hooks::MERGE)
        .with(Hooks::VICTIM)
        .with(Hooks::EVICT)
        .with(Hooks::FILL)
        .with(Hooks::FLUSH);
    type Spec = HerculesSpec;

    fn adapt(spec: &HerculesSpec, geometry: &mut Geometry) {
        // Section 5: the L1D gives up ways to pay for the TransTags.
        geometry.l1d.missing_way_period = spec.l1d_missing_way_period;
    }

    fn reserve(spec: &HerculesSpec, _: &Geometry) -> Vec<RegionRequest> {
        vec![RegionRequest { name: "log_zone", size_bytes: spec.log_zone_bytes }]
    }

    fn build(spec: &HerculesSpec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        spec.check()?;
        let zone = LogZone::new(spec, geometry)?;
        Ok(Box::new(State {
            open: vec![None; usize::from(geometry.cores)],
            ewpq: Vec::with_capacity(spec.ewpq_entries as usize),
            extension: vec![None; zone.extension_entries as usize],
            extended: 0,
            log_head: 0,
            used: 0,
            tokens: 0,
            migrating: 0,
            departed: Vec::new(),
            scanning: false,
            running: false,
            extra_cycles: LevelId::ALL.map(|level| spec.tag_cycles(geometry.level(level).latency_cycles)),
            limits: LevelId::ALL.map(|level| (geometry.level(level).ways * spec.trans_tag_percent(level) / 100).max(1)),
            counters: Counters::default(),
            spec: spec.clone(),
            zone,
        }))
    }

    fn recover(spec: &HerculesSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, Cut> {
        let zone = LogZone::new(spec, geometry).expect("the parameters built a machine before");
        recovery::recover(&zone, image)
    }

    fn cost(spec: &HerculesSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

/// The transaction that a core has open: PerCoreTxID and PerCoreTxLen (section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenTx {
    id: TxId,
    /// Lines covered so far.
    len: u32,
    /// Waiting for the controller to take its TxLen, where that is stored directly.
    storing_len: bool,
}

/// An entry of the eWPQ or of its extension: where the log keeps a line that was flushed prematurely. Its TxState is
/// '1' as long as its transaction is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    tx: TxId,
    home: LineAddr,
    /// Number of the log entry, counted without wrap-around.
    log: u64,
    /// For LRU spilling.
    used: u64,
    /// The migration that is carrying it home.
    migration: Option<Token>,
}

#[derive(Clone, Copy, Debug, Default)]
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
}

/// Steps of a sequence that the machine calls back for.
const RESET_STATES: u64 = 1 << 32;
const FORGET: u64 = 2 << 32;
const MIGRATE: u64 = 3 << 32;

#[derive(Clone)]
struct State {
    spec: HerculesSpec,
    zone: LogZone,
    open: Vec<Option<OpenTx>>,
    ewpq: Vec<Mapping>,
    /// The eWPQ extension area of the log zone by slot; its contents are in persistent memory, this is what a search
    /// of it finds.
    extension: Vec<Option<Mapping>>,
    /// Slots of the extension area in use.
    extended: usize,
    /// LogHead, counted without wrap-around.
    log_head: u64,
    used: u64,
    tokens: u64,
    migrating: usize,
    /// Lines that were loaded again while a migration carried their log entry home: the entry is invalid, but the
    /// write is on its way, and nothing newer may arrive home before it.
    departed: Vec<(LineAddr, Token)>,
    scanning: bool,
    /// Whether the log zone is marked as in use.
    running: bool,
    extra_cycles: [Cycle; 3],
    limits: [u32; 3],
    counters: Counters,
}

impl State {
    fn is_open(&self, tx: TxId) -> bool {
        self.open.iter().flatten().any(|open| open.id == tx)
    }

    /// The hardware's transaction identifier (21 bits by default).
    fn hardware_id(&self, tx: TxId) -> u64 {
        tx.0 & ((1 << self.spec.tx_id_bits) - 1)
    }

    fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        // The extension area is nearly always empty.
        let extension = if self.extended == 0 { &[][..] } else { &self.extension[..] };
        self.ewpq.iter().chain(extension.iter().flatten())
    }

    /// LogTail: the oldest log entry still in use.
    fn log_tail(&self) -> u64 {
        self.mappings().map(|m| m.log).min().unwrap_or(self.log_head)
    }

    /// Stores a TxLen in the transaction profile (section 4.1): a cached store, or straight to the controller.
    fn store_tx_len(&mut self, tx: TxId, len: u32, out: &mut Actions) -> Option<Token> {
        let addr = self.zone.tx_len(self.hardware_id(tx));
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

    /// Evicts the least recently used eWPQ entry to the extension area (section 4.2). False if that is full.
    fn spill(&mut self, out: &mut Actions) -> bool {
        let Some(slot) = self.extension.iter().position(Option::is_none) else { return false };
        // An entry on its way home stays where its acknowledgement will look for it.
        let candidates = self.ewpq.iter().enumerate().filter(|(_, m)| m.migration.is_none());
        let Some((victim, _)) = candidates.min_by_key(|(_, m)| m.used) else { return false };
        let mapping = self.ewpq.swap_remove(victim);
        self.counters.spills += 1;
        let record = self.zone.extension_record(self.hardware_id(mapping.tx), mapping.log);
        out.append(self.zone.extension_slot(slot as u64), &record, Cause::Metadata, None);
        self.extension[slot] = Some(mapping);
        self.extended += 1;
        true
    }

    /// Carries committed entries home, a few at a time (section 4.2: "migrated via non-temporal stores").
    fn migrate(&mut self, out: &mut Actions) {
        let slots = if self.extended == 0 { 0 } else { self.extension.len() };
        for index in 0..self.ewpq.len() + slots {
            if self.migrating >= self.spec.migrations_in_flight as usize {
                return;
            }
            let mapping = match index.checked_sub(self.ewpq.len()) {
                None => self.ewpq[index],
                Some(slot) => match self.extension[slot] {
                    Some(mapping) => mapping,
                    None => continue,
                },
            };
            if mapping.migration.is_some() || self.is_open(mapping.tx) {
                continue;
            }
            self.tokens += 1;
            let token = Token(self.tokens);
            let marked = Mapping { migration: Some(token), ..mapping };
            match index.checked_sub(self.ewpq.len()) {
                None => self.ewpq[index] = marked,
                Some(slot) => self.extension[slot] = Some(marked),
            }
            self.migrating += 1;
            out.push(Action::Copy {
                from: self.zone.entry_data(mapping.log),
                to: mapping.home.base(),
                len: 64,
                cause: Cause::Migration,
                token: Some(token),
            });
        }
        if self.migrating == 0 {
            self.scanning = false;
        }
    }

    /// The token of a migration in flight, after starting some if there is anything to migrate.
    fn hurry_migration(&mut self, out: &mut Actions) -> Option<Token> {
        self.migrate(out);
        self.mappings().find_map(|m| m.migration).or(self.departed.first().map(|(_, token)| *token))
    }

    /// The migration that is carrying an older version of the line home.
    fn on_its_way_home(&self, line: LineAddr) -> Option<Token> {
        self.departed.iter().find(|(home, _)| *home == line).map(|(_, token)| *token)
    }

    /// Takes the mapping of a line out of the eWPQ or the extension. The slot tells where it was.
    fn take(&mut self, home: LineAddr, out: &mut Actions) -> Option<Mapping> {
        if let Some(index) = self.ewpq.iter().position(|m| m.home == home) {
            return Some(self.ewpq.swap_remove(index));
        }
        if self.extended == 0 {
            return None;
        }
        let slot = self.extension.iter().position(|m| m.is_some_and(|m| m.home == home))?;
        self.extended -= 1;
        out.append(self.zone.extension_slot(slot as u64), &[0; 8], Cause::Metadata, None);
        self.extension[slot].take()
    }

    /// Cycles of a search of eWPQ and, if it holds anything, of the extension area in persistent memory.
    fn search_cycles(&self) -> (Cycle, bool) {
        if self.extended == 0 {
            return (self.spec.ewpq_search_cycles, false);
        }
        let lines = (self.extended as u64).div_ceil(8);
        let extension = self.spec.extension_search_first_cycles + (lines - 1) * self.spec.extension_search_line_cycles;
        (self.spec.ewpq_search_cycles + extension, true)
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
        // An identifier comes round again: entries of its last bearer must be home before its TxLen becomes zero.
        let id = self.hardware_id(tx);
        if self.mappings().any(|m| self.hardware_id(m.tx) == id)
            && let Some(token) = self.hurry_migration(out)
        {
            return Gate::Retry(Wait::Acked(token));
        }
        self.store_tx_len(tx, 0, out);
        self.open[cx.core.0 as usize] = Some(OpenTx { id: tx, len: 0, storing_len: false });
        Gate::Done
    }

    /// Listing 2, "write-allocate at L1".
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let Some(tx) = store.tx else { return Gate::Done };
        if tag.0 == tx.0 {
            return Gate::Done;
        }
        if store.dirty {
            self.counters.copy_downs += 1;
            out.push(Action::CopyDown(store.line()));
        }
        *tag = LineTag(tx.0);
        self.counters.tagged_lines += 1;
        if let Some(open) = &mut self.open[cx.core.0 as usize] {
            open.len += 1;
        }
        Gate::Done
    }

    /// Listing 1, tx_commit: TxLen first, which is the commit point, then the states on-chip and in the eWPQ.
    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let core = cx.core.0 as usize;
        let open = self.open[core].expect("a commit belongs to an open transaction");
        if open.len > 0 && !open.storing_len {
            let token = self.store_tx_len(tx, open.len, out);
            if let Some(token) = token {
                self.open[core] = Some(OpenTx { storing_len: true, ..open });
                return Gate::Retry(Wait::Acked(token));
            }
        }
        out.push(Action::Resume { id: RESET_STATES | core as u64 });
        Gate::After(Wait::Cycles(self.spec.state_reset_cycles))
    }

    /// Listing 1, tx_abort.
    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, _why: AbortCause, out: &mut Actions) -> Gate {
        out.push(Action::InvalidateTagged(tx));
        out.push(Action::Resume { id: FORGET | u64::from(cx.core.0) });
        Gate::After(Wait::Cycles(self.spec.state_reset_cycles))
    }

    /// Section 5: an access that involves a TransTag has a longer tag latency.
    fn access(&mut self, _: &Ctx, level: LevelId, _: LineAddr, _: LineTag) -> Gate {
        match self.extra_cycles[level as usize] {
            0 => Gate::Done,
            extra => Gate::After(Wait::Cycles(extra)),
        }
    }

    /// Listing 2, "write victim at L2 or L3": the older version goes down before an uncommitted one takes its place.
    fn merge(&mut self, _: LevelId, _: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        if incoming.is_some() && !resident.is_some() { Merge::PushDownFirst } else { Merge::Overwrite }
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
        if let Some(token) = self.on_its_way_home(line) {
            return Evict::After(Wait::Acked(token));
        }
        if !tag.is_some() {
            return Evict::Proceed;
        }
        let tx = TxId(tag.0);
        if self.log_head - self.log_tail() >= self.zone.log_entries {
            return match self.hurry_migration(out) {
                Some(token) => Evict::After(Wait::Acked(token)),
                None => Evict::Abort(tx, AbortCause::OutOfMemory),
            };
        }
        if self.ewpq.len() >= self.spec.ewpq_entries as usize && !self.spill(out) {
            return match self.hurry_migration(out) {
                Some(token) => Evict::After(Wait::Acked(token)),
                None => Evict::Abort(tx, AbortCause::Capacity),
            };
        }
        self.counters.premature_flushes += 1;
        let log = self.log_head;
        self.log_head += 1;
        self.used += 1;
        self.ewpq.push(Mapping { tx, home: line, log, used: self.used, migration: None });
        let header = self.zone.entry_header(line, self.hardware_id(tx));
        out.append(self.zone.entry_header_at(log), &header, Cause::Metadata, None);
        out.event(EventKind::DesignStep, line.base());
        Evict::To { at: self.zone.entry_data(log), cause: Cause::Log, token: None }
    }

    /// Listing 3, "all cache miss, load data from pmem".
    fn fill(&mut self, _: &Ctx, line: LineAddr, tx: Option<TxId>, out: &mut Actions) -> Fill {
        let (search_cycles, extended) = self.search_cycles();
        let Some(found) = self.mappings().find(|m| m.home == line).copied() else {
            return Fill::Home { search_cycles, serial: extended };
        };
        let open = self.is_open(found.tx);
        if open && tx.is_some_and(|tx| tx != found.tx) {
            return Fill::Abort(tx.expect("just seen"), AbortCause::Conflict);
        }
        // The extension area is searched only if the eWPQ does not have the line (section 4.2).
        let in_ewpq = self.ewpq.iter().any(|m| m.home == line);
        let search_cycles = if in_ewpq { self.spec.ewpq_search_cycles } else { search_cycles };
        if in_ewpq {
            self.counters.ewpq_hits += 1;
        } else {
            self.counters.extension_hits += 1;
        }
        let at = self.zone.entry_data(found.log);
        self.take(line, out);
        if let Some(token) = found.migration {
            self.departed.push((line, token));
        }
        let tag = if open { LineTag(found.tx.0) } else { LineTag::NONE };
        Fill::From { at, search_cycles, tag }
    }

    /// A clean of an uncommitted line must not reach home, nor one that a migration would undo; eADR keeps both in the
    /// caches. Anything else is as on any machine.
    fn flush(&mut self, _: &Ctx, line: LineAddr, tag: LineTag, _: &mut Actions) -> FlushVerdict {
        if tag.is_some() || self.on_its_way_home(line).is_some() { FlushVerdict::Ignore } else { FlushVerdict::Proceed }
    }

    fn woken(&mut self, _: &Ctx, id: u64, out: &mut Actions) {
        let core = CoreId(id as u16);
        match id & !0xffff {
            RESET_STATES => {
                // Storing TxLen may have evicted a line of the transaction that found no place in the log.
                let Some(open) = self.open[core.0 as usize].take() else { return };
                if self.mappings().any(|m| m.tx == open.id) {
                    self.counters.off_chip_commits += 1;
                } else {
                    self.counters.on_chip_commits += 1;
                }
                out.event(EventKind::Commit, self.zone.tx_len(self.hardware_id(open.id)));
            }
            FORGET => {
                let open = self.open[core.0 as usize].take().expect("an abort ends an open transaction");
                let homes: Vec<LineAddr> = self.mappings().filter(|m| m.tx == open.id).map(|m| m.home).collect();
                for home in homes {
                    self.take(home, out);
                }
            }
            MIGRATE => {
                let period = self.spec.migration_period_instructions;
                out.push(Action::InstructionTimer { id: MIGRATE, after_instructions: period });
                self.scanning = true;
                self.migrate(out);
            }
            _ => unreachable!("no step has the number {id:#x}"),
        }
    }

    /// A migrated line is home: its validity bit is cleared and LogTail may move.
    fn acked(&mut self, _: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        let mapping = self.mappings().find(|m| m.migration == Some(token)).copied();
        if let Some(mapping) = mapping {
            self.take(mapping.home, out);
        } else if let Some(index) = self.departed.iter().position(|(_, migration)| *migration == token) {
            self.departed.swap_remove(index);
        } else {
            return;
        }
        self.migrating -= 1;
        self.counters.migrations += 1;
        out.event(EventKind::Background, addr);
        if self.scanning {
            self.migrate(out);
        }
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
        let valid = self.ewpq.iter().map(|m| (self.hardware_id(m.tx), m.log));
        self.zone.save_registers(sink, self.log_head, self.log_tail(), valid)?;
        let mut saved = 0;
        for line in view.lines {
            if line.tag.is_some() {
                let id = self.hardware_id(TxId(line.tag.0));
                self.zone.save_emergency(sink, saved, line.line, id, &line.data)?;
                saved += 1;
            } else if line.dirty {
                sink.write(line.line.base(), &line.data)?;
            }
        }
        self.zone.save_end(sink, saved)
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        if self.open.iter().any(Option::is_some) {
            mark("transaction_open");
        }
        if self.mappings().any(|m| self.is_open(m.tx)) {
            mark("premature_flush_open");
        }
        if self.ewpq.len() >= self.spec.ewpq_entries as usize {
            mark("ewpq_full");
        }
        if self.extended > 0 {
            mark("extension_populated");
        }
        if self.migrating > 0 {
            mark("migration_in_flight");
        }
        if self.mappings().any(|m| !self.is_open(m.tx)) {
            mark("committed_off_chip");
        }
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        for open in self.open.iter().flatten() {
            hasher.write_u64(open.id.0);
            hasher.write_u64(u64::from(open.len));
        }
        for mapping in self.mappings() {
            hasher.write_u64(mapping.tx.0);
            hasher.write_u64(mapping.home.0);
            hasher.write_u64(mapping.log);
        }
        self.departed.iter().for_each(|(home, _)| hasher.write_u64(home.0));
        hasher.write_u64(self.log_head);
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
    }

    fn reset_stats(&mut self) {
        self.counters = Counters::default();
    }

    fn fork(&self) -> Box<dyn Durability> {
        Box::new(self.clone())
    }
}
