//! The state of Hercules while the machine runs, as a whole and at each controller: its snapshots, rare situations, digest and
//! counters.

use super::CLEARED;
use super::ewpq::{Ewpq, Mapping};
use super::log_space::{Gc, LogExtension};
use super::migration::Migration;
use super::registers::{Phase, Registers};
use super::spec::{HerculesSpec, TxLenStore};
use super::zone::{LogZone, PartZone};
use durasim_contract::{
    AbortCause, Action, Actions, ActiveFault, Evict, Geometry, Inclusion, Interleave, Origin, Payload, SpecError,
    Stateful, Token, Wait, kept,
};
use durasim_types::{Cause, Cycle, EventKind, LineAddr, Stats, TxId};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// Hercules at one controller. Several controllers share the log zone in parts (section 4.1): each controller of persistent
/// memory has an eWPQ, a LogHead, a LogTail and a part of the log zone, all of it at its own lines, and keeps the log entries
/// of the lines that are its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    /// The number of the controller.
    #[serde(skip)]
    pub number: u64,
    /// Records in the extension area that are being cleared: LogTail stays until that is done.
    #[serde(skip)]
    pub clearing: u64,
    /// Its part of the log zone.
    #[serde(skip)]
    pub zone: PartZone,
    pub ewpq: Ewpq,
    pub migration: Migration,
    pub gc: Gc,
    pub extension: LogExtension,
}

/// Counters since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    pub premature_flushes: u64,
    pub spills: u64,
    pub chained_blocks: u64,
    pub ewpq_hits: u64,
    pub extension_hits: u64,
    pub false_matches: u64,
    pub extension_lines_read: u64,
    pub migrations: u64,
    pub migration_rounds: u64,
    pub copy_downs: u64,
    pub on_chip_commits: u64,
    pub off_chip_commits: u64,
    pub tagged_lines: u64,
    pub gc_chunks: u64,
    pub gc_moved_entries: u64,
    pub log_chunks: u64,
    pub indirect_flushes: u64,
    pub conflicts_in_caches: u64,
    pub conflicts_in_the_log: u64,
}

/// All state that changes in a run, except the counters.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Contents {
    pub registers: Registers,
    /// The parts of the controllers.
    pub parts: Vec<Part>,
    pub tokens: u64,
    /// Whether the log zone is marked as in use.
    pub running: bool,
}

#[derive(Clone)]
pub(super) struct State {
    pub spec: HerculesSpec,
    pub zone: LogZone,
    pub cores: u16,
    interleave: Interleave,
    pub pmem_bytes: u64,
    pub extra_cycles: [Cycle; 3],
    pub limits: [u32; 3],
    pub contents: Contents,
    pub counters: Counters,
    pub fault: ActiveFault,
}

impl Stateful for State {
    kept!(contents: Contents, counters: Counters);

    fn fits(&self, contents: &Contents) -> Result<(), &'static str> {
        if contents.parts.len() != self.contents.parts.len() {
            return Err("another number of controllers");
        }
        for (Part { ewpq, gc, extension, .. }, zone) in contents.parts.iter().zip(&self.zone.parts) {
            if let Some(inconsistency) = ewpq.inconsistency(&self.spec, zone) {
                return Err(inconsistency);
            }
            if gc.contradicts(ewpq.log_head()) {
                return Err("a collection beyond LogHead");
            }
            if extension.contradicts(zone, ewpq.mappings().filter(|m| m.indirect).map(|m| m.log)) {
                return Err("a log extension that contradicts the eWPQ");
            }
        }
        Ok(())
    }

    fn complete(&mut self) {
        let Contents { registers, parts, .. } = &mut self.contents;
        for (number, (part, zone)) in (0..).zip(parts.iter_mut().zip(&self.zone.parts)) {
            (part.number, part.zone) = (number, zone.clone());
            part.ewpq.reindex(zone, |tx| registers.may_migrate(tx, self.fault));
        }
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        for (tx, open) in self.contents.registers.all() {
            hasher.write_u64(tx.0);
            hasher.write_u64(u64::from(open.len));
        }
        for part in &self.contents.parts {
            for mapping in part.ewpq.mappings() {
                hasher.write_u64(mapping.tx.0);
                hasher.write_u64(mapping.home.0);
                hasher.write_u64(mapping.log);
                hasher.write_u8(u8::from(mapping.indirect));
            }
            part.migration.departed.iter().for_each(|(home, _)| hasher.write_u64(home.0));
            hasher.write_u64(part.ewpq.log_head());
            hasher.write_u64(part.ewpq.log_tail());
            hasher.write_u64(part.extension.chunks());
            hasher.write_u64(part.ewpq.chained_blocks(&part.zone));
        }
    }
}

impl State {
    pub fn new(spec: &HerculesSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        spec.check()?;
        if geometry.inclusion == Inclusion::Exclusive {
            let problem = "interconnect.inclusion is exclusive, but the older version of a line that a transaction writes has \
                           to stay below the new one (section 4.5.1), in an inclusive or non-inclusive hierarchy";
            return Err(SpecError::new("", problem));
        }
        let l1d = &geometry.l1d;
        if (0..l1d.sets).any(|set| l1d.ways_of(set) == 0) {
            let problem = "a set of an L1D of one way has none to give up for TransTags; 0 leaves all of them there";
            return Err(SpecError::new("l1d_missing_way_period", problem));
        }
        let zone = LogZone::new(spec, geometry)?;
        Ok(State {
            cores: geometry.cores,
            interleave: geometry.interleave(),
            pmem_bytes: geometry.pmem_bytes,
            extra_cycles: geometry.by_level(|_, shape| spec.tag_cycles(shape.latency_cycles)),
            limits: geometry.by_level(|level, shape| spec.trans_tags_of_set(level, shape)),
            contents: Contents {
                registers: Registers::new(),
                parts: zone.parts.iter().zip(0..).map(|(part, number)| Part::new(part, number)).collect(),
                tokens: 0,
                running: false,
            },
            counters: Counters::default(),
            fault: geometry.planted,
            spec: spec.clone(),
            zone,
        })
    }

    /// The number of the controller that a line belongs to.
    pub fn controller_of(&self, line: LineAddr) -> usize {
        usize::from(self.interleave.controller_of(line))
    }

    /// The part of the controller of a line.
    pub fn part(&self, line: LineAddr) -> &Part {
        &self.contents.parts[self.controller_of(line)]
    }

    pub fn part_mut(&mut self, line: LineAddr) -> &mut Part {
        let controller = self.controller_of(line);
        &mut self.contents.parts[controller]
    }

    pub fn is_open(&self, tx: TxId) -> bool {
        self.contents.registers.is_open(tx)
    }

    /// Stores a TxLen in the transaction profile (section 4.1): a cached store, or straight to the controller. Sixteen
    /// TxLens share a line, which cores take from each other like any other line: it carries no tag.
    pub fn store_tx_len(&mut self, hardware_id: u64, len: u32, out: &mut Actions) -> Option<Token> {
        let addr = self.zone.tx_len(hardware_id);
        let payload = Payload::new(&len.to_le_bytes());
        match self.spec.tx_len_store {
            TxLenStore::Cached => {
                out.push(Action::PutCached { addr, payload });
                None
            }
            TxLenStore::Controller => {
                self.contents.tokens += 1;
                let token = Token(self.contents.tokens);
                out.push(Action::Append {
                    from: Origin::Controller,
                    at: addr,
                    payload,
                    cause: Cause::Metadata,
                    token: Some(token),
                });
                Some(token)
            }
        }
    }

    /// Listing 1, the end of tx_commit: TxStates become '0'. From now on the lines are visible to all.
    pub fn count_commit(&mut self, tx: TxId, hardware_id: u64, out: &mut Actions) {
        if self.contents.parts.iter().any(|part| part.ewpq.holds(tx)) {
            self.counters.off_chip_commits += 1;
        } else {
            self.counters.on_chip_commits += 1;
        }
        self.contents.parts.iter_mut().for_each(|part| part.ewpq.committed(tx));
        out.event(EventKind::Commit, self.zone.tx_len(hardware_id));
    }

    /// A line finds no place in the log. Its transaction aborts, unless it is committing: that is decided elsewhere.
    pub fn no_place_in_the_log(&mut self, controller: usize, tx: TxId, why: AbortCause, out: &mut Actions) -> Evict {
        if let Some(token) = self.migrate_next_early(controller, out) {
            return Evict::After(Wait::Acked(token));
        }
        match self.contents.registers.get(tx).map(|open| open.phase) {
            Some(Phase::StoringLen(token)) => Evict::After(Wait::Acked(token)),
            _ => Evict::Abort(tx, why),
        }
    }
}

impl State {
    /// Names the rare situations that the design is in.
    pub(super) fn mark_situations(&self, mark: &mut dyn FnMut(&'static str)) {
        if self.contents.registers.all().next().is_some() {
            mark("transaction_open");
        }
        if self.contents.registers.all().any(|(_, open)| open.core.is_none()) {
            mark("transaction_off_its_core");
        }
        if self.contents.registers.all().any(|(_, open)| matches!(open.phase, Phase::StoringLen(_))) {
            mark("tx_len_in_flight");
        }
        if self.contents.parts.iter().any(|part| part.ewpq.mappings().any(|m| self.is_open(m.tx))) {
            mark("premature_flush_open");
        }
        if self.contents.parts.iter().any(|part| part.ewpq.is_full(&self.spec)) {
            mark("ewpq_full");
        }
        if self.contents.parts.iter().any(|part| part.ewpq.extended() > 0) {
            mark("extension_populated");
        }
        if self.contents.parts.iter().any(|part| part.ewpq.is_chain_in_use(&part.zone)) {
            mark("extension_chained");
        }
        if self.contents.parts.iter().any(|part| part.migration.in_flight > 0) {
            mark("migration_in_flight");
        }
        if self.contents.parts.iter().any(|part| !part.migration.departed.is_empty()) {
            mark("entry_reloaded_while_migrating");
        }
        if self.contents.parts.iter().any(|part| part.ewpq.mappings().any(|m| !self.is_open(m.tx))) {
            mark("committed_off_chip");
        }
        if self.contents.parts.iter().any(|part| part.extension.is_in_use()) {
            mark("log_extended");
        }
        if self.contents.parts.iter().any(|part| part.gc.copying().is_some()) {
            mark("gc_copying");
        }
        if self.contents.parts.iter().any(|part| part.gc.has_named()) {
            mark("gc_before_log_head");
        }
    }
}

impl Counters {
    /// Lists them; those of conflicts if there is more than one core.
    pub fn list(&self, cores: u16, stats: &mut Stats) {
        let c = self;
        let mut count = |name: &str, value, text| stats.count(format!("hercules.{name}"), value, text);
        count("premature_flushes", c.premature_flushes, "Lines of open transactions that left the LLC for the log");
        count("ewpq_spills", c.spills, "eWPQ entries evicted to the extension area");
        count("ewpq_chained_blocks", c.chained_blocks, "Blocks that were chained to the extension area");
        count("ewpq_hits", c.ewpq_hits, "Misses answered through the eWPQ");
        count("extension_hits", c.extension_hits, "Misses answered through the extension area");
        count(
            "false_matches",
            c.false_matches,
            "Log entries that were looked up for a part of the address and are another line's",
        );
        count("extension_lines_read", c.extension_lines_read, "Lines of the extension area that misses have read");
        count("migrations", c.migrations, "Log entries carried home in the background");
        count("migration_rounds", c.migration_rounds, "Periods after which committed log entries were looked for");
        count("copy_downs", c.copy_downs, "Older dirty versions sent down before a transactional write");
        count("on_chip_commits", c.on_chip_commits, "Commits with all lines in the caches");
        count("off_chip_commits", c.off_chip_commits, "Commits with lines in the log");
        count("gc_chunks", c.gc_chunks, "Chunks of the log that were garbage-collected");
        count("gc_moved_entries", c.gc_moved_entries, "Log entries of open transactions that were moved to LogHead");
        count("log_chunks", c.log_chunks, "Chunks that were added to the log");
        count("indirect_flushes", c.indirect_flushes, "Premature flushes into the log extension");
        count("tagged_lines", c.tagged_lines, "Lines covered by transactions, each once per transaction");
        if cores > 1 {
            count("conflicts_in_caches", c.conflicts_in_caches, "Aborts for a line of a transaction in a cache");
            count("conflicts_in_the_log", c.conflicts_in_the_log, "Aborts for a line of a transaction in the log");
        }
    }
}

impl Part {
    pub fn new(zone: &PartZone, number: u64) -> Self {
        Part {
            number,
            clearing: 0,
            zone: zone.clone(),
            ewpq: Ewpq::new(zone),
            migration: Migration::default(),
            gc: Gc::default(),
            extension: LogExtension::default(),
        }
    }

    /// Takes the entry of a line out. LogTail may move, unless garbage collection moves it at the end of its chunk. If a
    /// record in the extension area named the entry, that is cleared first: no record may name an entry older than LogTail.
    pub fn take(&mut self, home: LineAddr, out: &mut Actions) -> Option<Mapping> {
        let cleared = self.ewpq.is_in_extension(home, &self.zone);
        let taken = self.ewpq.take(home, &self.zone, out);
        if cleared {
            self.clearing += 1;
            out.push(Action::Resume { id: CLEARED | self.number });
        }
        if let Some(mapping) = taken.filter(|mapping| mapping.indirect) {
            self.extension.release(mapping.log);
        }
        self.slide();
        taken
    }

    /// A record in the extension area is cleared.
    pub fn cleared(&mut self) {
        self.clearing -= 1;
        self.slide();
    }

    /// LogTail slides to the oldest entry in use, if nothing keeps it.
    pub fn slide(&mut self) {
        if self.clearing == 0 && !self.gc.is_at_work() {
            self.ewpq.slide();
        }
    }
}
