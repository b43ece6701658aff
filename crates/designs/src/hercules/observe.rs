//! What can be seen of Hercules from outside: rare situations, digest and counters.

use super::State;
use super::registers::Phase;
use durasim_types::Stats;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

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

impl State {
    /// Names the rare situations that the design is in.
    pub(super) fn mark_situations(&self, mark: &mut dyn FnMut(&'static str)) {
        if self.registers.all().next().is_some() {
            mark("transaction_open");
        }
        if self.registers.all().any(|(_, open)| open.core.is_none()) {
            mark("transaction_off_its_core");
        }
        if self.registers.all().any(|(_, open)| matches!(open.phase, Phase::StoringLen(_))) {
            mark("tx_len_in_flight");
        }
        if self.parts.iter().any(|part| part.ewpq.mappings().any(|m| self.is_open(m.tx))) {
            mark("premature_flush_open");
        }
        if self.parts.iter().any(|part| part.ewpq.is_full(&self.spec)) {
            mark("ewpq_full");
        }
        if self.parts.iter().any(|part| part.ewpq.extended() > 0) {
            mark("extension_populated");
        }
        if self.parts.iter().any(|part| part.ewpq.is_chain_in_use(&part.zone)) {
            mark("extension_chained");
        }
        if self.parts.iter().any(|part| part.migration.in_flight > 0) {
            mark("migration_in_flight");
        }
        if self.parts.iter().any(|part| !part.migration.departed.is_empty()) {
            mark("entry_reloaded_while_migrating");
        }
        if self.parts.iter().any(|part| part.ewpq.mappings().any(|m| !self.is_open(m.tx))) {
            mark("committed_off_chip");
        }
        if self.parts.iter().any(|part| part.extension.is_in_use()) {
            mark("log_extended");
        }
        if self.parts.iter().any(|part| part.gc.copying().is_some()) {
            mark("gc_copying");
        }
        if self.parts.iter().any(|part| part.gc.has_named()) {
            mark("gc_before_log_head");
        }
    }

    /// Feeds the state into a digest.
    pub(super) fn feed(&self, hasher: &mut dyn Hasher) {
        for (tx, open) in self.registers.all() {
            hasher.write_u64(tx.0);
            hasher.write_u64(u64::from(open.len));
        }
        for part in &self.parts {
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
