//! Parameters of Hercules. Section numbers are the paper's.

use durasim_contract::{LevelGeometry, LevelId, SpecError, check_ranges};
use durasim_types::Cycle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rounding of the longer tag latency to whole cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// To the next higher cycle.
    Up,
    /// To the nearest cycle.
    Nearest,
    /// To the next lower cycle.
    Down,
}

/// The way in which the commit point reaches persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TxLenStore {
    /// A store into the L1D, which eADR keeps.
    Cached,
    /// A write handed to the controller.
    Controller,
}

/// The moment at which the core continues after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommitWait {
    /// When TxLen is stored and the states are reset.
    Reset,
    /// At once; the commit follows the stores before it, and only system calls wait for it.
    None,
}

/// The transaction that aborts when one asks for a line of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConflictLoser {
    /// The one that the line belongs to.
    Owner,
    /// The one that asks. A request outside of transactions aborts the owner all the same.
    Requester,
}

/// The search for an entry in the extension area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExtensionLookup {
    /// An entry is in the line that its home address chooses, in the area or in one of the blocks chained to it.
    #[default]
    ByAddress,
    /// An entry lies anywhere: whatever is in use is read from the first line to the last.
    Scan,
}

/// Bits of an eWPQ entry that name a log entry (section 4.2: a third of 63).
pub(super) const LOG_ENTRY_BITS: u32 = 21;
/// The number of entries of the log, and of its extension, that they can name: they count from one, so that an entry that
/// is not in use is zero.
pub(super) const LOG_ENTRIES_MAX: u64 = (1 << LOG_ENTRY_BITS) - 1;

/// Parameters of Hercules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HerculesSpec {
    /// Lines of an L1D set that may carry TransTags, in percent of its ways (section 5: 100).
    #[schemars(range(min = 1, max = 100))]
    pub trans_tag_percent_l1d: u32,
    /// Lines of an L2 set that may carry TransTags, in percent of its ways (section 5: 50).
    #[schemars(range(min = 1, max = 100))]
    pub trans_tag_percent_l2: u32,
    /// Lines of an LLC set that may carry TransTags, in percent of its ways (section 5: 25).
    #[schemars(range(min = 1, max = 100))]
    pub trans_tag_percent_llc: u32,
    /// One L1D set in this number lacks one way, so that 32 KB become 30 KB; 0 for none (section 5, Table 2).
    pub l1d_missing_way_period: u32,
    /// Bits of a TxID (section 4.1: 21).
    #[schemars(range(min = 4, max = 32))]
    pub tx_id_bits: u32,
    /// Longer tag latency of an access that involves a TransTag, in percent (section 5: 30).
    #[schemars(range(min = 0, max = 1000))]
    pub tag_latency_increase_percent: u32,
    /// Rounding of the longer tag latency to whole cycles (not in the paper; DEVIATIONS.md, hercules-tag-rounding).
    pub tag_latency_rounding: Rounding,
    /// Cycles of the state reset at commit and abort (section 5: 10).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub state_reset_cycles: Cycle,
    /// The place where TxLen is stored (not in the paper; DEVIATIONS.md, hercules-txlen-store).
    pub tx_len_store: TxLenStore,
    /// The event that the core waits for at a commit (not in the paper, whose Figure 11 shows that throughput falls with
    /// the latency of the state reset; DEVIATIONS.md, hercules-commit-wait).
    pub commit_wait: CommitWait,
    /// The transaction that aborts when one asks for a line of another in a cache (not clear in the paper; DEVIATIONS.md,
    /// hercules-conflict).
    pub conflict_loser: ConflictLoser,
    /// Entries of the eWPQ (section 4.2: 512).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub ewpq_entries: u32,
    /// Bits of a home address that an eWPQ entry holds, the lowest of its line number (section 4.2: 21).
    #[schemars(range(min = 1, max = 38))]
    pub ewpq_home_bits: u32,
    /// Cycles to read the full home address of a log entry that turns out to be another line's (not in the paper;
    /// DEVIATIONS.md, hercules-partial-match).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub false_match_cycles: Cycle,
    /// Size of the eWPQ extension area in multiples of the eWPQ (section 4.2: 10).
    #[schemars(range(min = 1, max = 1000))]
    pub ewpq_extension_factor: u32,
    /// Persistent memory for further blocks of the extension area, in bytes; 0 for none (not in the paper; DEVIATIONS.md,
    /// hercules-extension-chain).
    #[schemars(range(min = 0, max = 1u64 << 40))]
    pub extension_chain_bytes: u64,
    /// Entries of a further block of the extension area (not in the paper; DEVIATIONS.md, hercules-extension-chain).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub extension_block_entries: u32,
    /// Cycles of an eWPQ search (section 5: 10).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub ewpq_search_cycles: Cycle,
    /// The search of the extension area "with a target home address" (section 4.2; not in the paper; DEVIATIONS.md,
    /// hercules-extension-search).
    pub extension_lookup: ExtensionLookup,
    /// Cycles to the first line that a search of the extension area reads; a scan pays them for each block, too (not in
    /// the paper; DEVIATIONS.md, hercules-extension-search).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub extension_search_first_cycles: Cycle,
    /// Cycles for each further line that a search of the extension area reads (not in the paper; DEVIATIONS.md,
    /// hercules-extension-search).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub extension_search_line_cycles: Cycle,
    /// Instructions between two scans for entries to migrate (section 4.2: three million).
    #[schemars(range(min = 1, max = 1u64 << 40))]
    pub migration_period_instructions: u64,
    /// Migrations in flight at a time (not in the paper; DEVIATIONS.md, background-concurrency).
    #[schemars(range(min = 1, max = 1024))]
    pub migrations_in_flight: u32,
    /// Size of the log zone in bytes (section 5: 256 MB).
    pub log_zone_bytes: u64,
    /// Log entries from LogTail to LogHead, beyond which the log is garbage-collected (section 4.4: 2^20).
    #[schemars(range(min = 1, max = 1u64 << 40))]
    pub log_gc_trigger_entries: u64,
    /// Successive log entries that are garbage-collected together (section 4.4: 32).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub log_gc_chunk_entries: u32,
    /// Persistent memory beside the log zone that the log may extend into, in bytes; 0 for none (section 4.4, "log
    /// extension"; the size is not in the paper; DEVIATIONS.md, hercules-log-extension).
    #[schemars(range(min = 0, max = 1u64 << 40))]
    pub log_extension_bytes: u64,
    /// Log entries that are added to the log at a time (not in the paper; DEVIATIONS.md, hercules-log-extension).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub log_extension_chunk_entries: u32,
    /// Cycles until added log entries have been allocated (not in the paper; DEVIATIONS.md, hercules-log-extension).
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub log_extension_cycles: Cycle,
    /// Cycles to look up where an added log entry lies, before it is loaded (not in the paper; DEVIATIONS.md,
    /// hercules-log-extension).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub log_indirect_cycles: Cycle,
    /// Share of persistent memory in percent that log zone and extension may take: a transaction that needs more aborts
    /// (section 4.2: 80).
    #[schemars(range(min = 1, max = 100))]
    pub abort_threshold_percent: u32,
}

impl Default for HerculesSpec {
    fn default() -> Self {
        HerculesSpec {
            trans_tag_percent_l1d: 100,
            trans_tag_percent_l2: 50,
            trans_tag_percent_llc: 25,
            l1d_missing_way_period: 4,
            tx_id_bits: 21,
            tag_latency_increase_percent: 30,
            tag_latency_rounding: Rounding::Up,
            state_reset_cycles: 10,
            tx_len_store: TxLenStore::Cached,
            commit_wait: CommitWait::Reset,
            conflict_loser: ConflictLoser::Owner,
            ewpq_entries: 512,
            ewpq_home_bits: 21,
            false_match_cycles: 450,
            ewpq_extension_factor: 10,
            extension_chain_bytes: 64 << 20,
            extension_block_entries: 4096,
            ewpq_search_cycles: 10,
            extension_lookup: ExtensionLookup::ByAddress,
            extension_search_first_cycles: 450,
            extension_search_line_cycles: 15,
            migration_period_instructions: 3_000_000,
            migrations_in_flight: 8,
            log_zone_bytes: 256 << 20,
            log_gc_trigger_entries: 1 << 20,
            log_gc_chunk_entries: 32,
            log_extension_bytes: 256 << 20,
            log_extension_chunk_entries: 1024,
            log_extension_cycles: 3000,
            log_indirect_cycles: 450,
            abort_threshold_percent: 80,
        }
    }
}

impl HerculesSpec {
    /// The share of a level's lines that may carry TransTags, in percent.
    pub fn trans_tag_percent(&self, level: LevelId) -> u32 {
        match level {
            LevelId::FilterBuffer | LevelId::L1d => self.trans_tag_percent_l1d,
            LevelId::L2 => self.trans_tag_percent_l2,
            LevelId::Llc => self.trans_tag_percent_llc,
        }
    }

    /// Lines of a set of a level that may carry TransTags.
    pub fn trans_tags_of_set(&self, level: LevelId, shape: &LevelGeometry) -> u32 {
        (shape.ways * self.trans_tag_percent(level) / 100).max(1)
    }

    /// Refuses what cannot be built.
    pub fn check(&self) -> Result<(), SpecError> {
        check_ranges(self)?;
        let left = 63 - LOG_ENTRY_BITS;
        if self.tx_id_bits + self.ewpq_home_bits > left {
            let problem = format!(
                "{} bits of a home address and {} of a TxID are more than the {left} that an eWPQ entry of 64 bits has \
                 beside one of TxState and {LOG_ENTRY_BITS} of a log entry",
                self.ewpq_home_bits, self.tx_id_bits
            );
            return Err(SpecError::new("ewpq_home_bits", problem));
        }
        Ok(())
    }

    /// The additional cycles of an access to a tagged line in a level with this latency.
    pub fn tag_cycles(&self, latency_cycles: Cycle) -> Cycle {
        let hundredths = latency_cycles * u64::from(self.tag_latency_increase_percent);
        match self.tag_latency_rounding {
            Rounding::Up => hundredths.div_ceil(100),
            Rounding::Nearest => (hundredths + 50) / 100,
            Rounding::Down => hundredths / 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 4.2: "one bit of TxState and three fields of 63 bits evenly partitioned".
    #[test]
    fn the_fields_of_an_entry_have_to_fit_it() {
        let check = |tx_id_bits, ewpq_home_bits| {
            HerculesSpec { tx_id_bits, ewpq_home_bits, ..HerculesSpec::default() }.check().map_err(|e| e.problem)
        };
        assert_eq!(HerculesSpec::default().check(), Ok(()));
        assert_eq!([(21, 21), (4, 38), (32, 10)].map(|(tx, home)| check(tx, home)), [Ok(()), Ok(()), Ok(())]);
        let problem = check(22, 21).unwrap_err();
        assert!(problem.starts_with("21 bits of a home address and 22 of a TxID are more than the 42"), "{problem}");
        assert!(check(4, 0).is_err() && check(4, 39).is_err());
    }

    #[test]
    fn thirty_percent_of_each_latency_is_rounded_as_configured() {
        let cycles = |rounding| {
            let spec = HerculesSpec { tag_latency_rounding: rounding, ..HerculesSpec::default() };
            [2, 8, 30].map(|latency| spec.tag_cycles(latency))
        };
        assert_eq!(cycles(Rounding::Up), [1, 3, 9]);
        assert_eq!(cycles(Rounding::Nearest), [1, 2, 9]);
        assert_eq!(cycles(Rounding::Down), [0, 2, 9]);
    }
}
