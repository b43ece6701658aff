//! Parameters and cost of HOOP.

use super::address_slices::ENTRIES;
use super::slice::{END, SLICE_BYTES};
use durasim_contract::{Geometry, HardwareCost, SpecError, check_ranges};
use durasim_types::Cycle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of an entry of the mapping table: the number of a home line and that of a slice.
const MAPPING_ENTRY_BYTES: u64 = 8;

/// Bytes of an entry of the line table: the number of a line, and the lower bits of that of its newest commit.
const LINE_ENTRY_BYTES: u64 = 8;

/// The event that ends a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommitEnd {
    /// Its entry of an address slice is durable.
    Recorded,
    /// A collection has brought its words home, too: Hercules, section 4.5.2, has the commit migrate "all data", and names the
    /// OOP region where it goes.
    Migrated,
}

/// The way of stored words to an OOP data buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Words {
    /// They are there with their store; the slice that they make takes the path from the core.
    AtOnce,
    /// Their store sends them: they take the path, and the link of the controller of their slice, which is written there when
    /// all of its words have come.
    Sent,
}

/// The part of the machine whose acknowledgement a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AcknowledgedBy {
    /// The persistence domain: the write pending queue.
    Domain,
    /// The medium, which has written what was sent: Hercules, section 4.5.2, has HOOP migrate its data "to its in-pmem OOP
    /// region" on a commit.
    Medium,
}

/// Bytes of the line table by default.
const LINE_TABLE_BYTES: u64 = 2 << 20;

/// Parameters of HOOP. Names of structures are the paper's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HoopSpec {
    /// Bytes of the OOP data buffer of each core (paper: 1 KB, eight slices).
    #[schemars(range(min = 2 * SLICE_BYTES, max = 1u64 << 30))]
    pub oop_buffer_bytes: u64,
    /// The way of stored words to it (DEVIATIONS.md, hoop-home).
    pub words: Words,
    /// Bytes of the mapping table (paper: 2 MB for all cores; 256 KB for each core is quoted too, DEVIATIONS.md,
    /// hoop-mapping-table).
    #[schemars(range(min = MAPPING_ENTRY_BYTES, max = 1u64 << 40))]
    pub mapping_table_bytes: u64,
    /// Whether a table knows the lines with words that are not home. Without it each line with the persistent bit that leaves
    /// the last level goes to the OOP region, and keeps that bit when it comes back (DEVIATIONS.md, hoop-line-table).
    pub line_table: bool,
    /// Bytes of the line table, which knows the lines with words that are not home (not in the paper; as large as its mapping
    /// table; DEVIATIONS.md, hoop-line-table).
    #[schemars(range(min = LINE_ENTRY_BYTES, max = 1u64 << 40))]
    pub line_table_bytes: u64,
    /// Cycles of a search of the mapping table, the line table, the eviction buffer and the OOP data buffers (not in the paper;
    /// DEVIATIONS.md, hoop-mapping-table).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub search_cycles: Cycle,
    /// Bytes of the eviction buffer (paper: 128 KB).
    #[schemars(range(min = 64, max = 1u64 << 40))]
    pub eviction_buffer_bytes: u64,
    /// The OOP region as a part of persistent memory, in percent (paper: 10).
    #[schemars(range(min = 1, max = 90))]
    pub region_percent: u32,
    /// The most bytes that the OOP region may have: its part of a large memory can be more than a run needs (as many slices as
    /// 24 bits can number).
    #[schemars(range(min = 4 * SLICE_BYTES, max = u64::from(END) * SLICE_BYTES))]
    pub region_bytes_max: u64,
    /// Bytes of a block of the OOP region (paper: 2 MB).
    #[schemars(range(min = 2 * SLICE_BYTES, max = 1u64 << 30))]
    pub block_bytes: u64,
    /// Address slices, of 16 commits each (not in the paper; DEVIATIONS.md, hoop-address-slices).
    #[schemars(range(min = 1, max = 1u64 << 24))]
    pub address_slices: u32,
    /// The part of the machine that acknowledges slices and entries, and with it the words of an OOP data buffer that are
    /// in a slice in flight (DEVIATIONS.md, hoop-commit).
    pub acknowledged_by: AcknowledgedBy,
    /// The event that ends a commit (DEVIATIONS.md, hoop-commit).
    pub commit: CommitEnd,
    /// Nanoseconds between two collections in the background (paper: 10 ms).
    #[schemars(range(min = 1, max = 1u64 << 50))]
    pub gc_period_ns: u64,
    /// Transactions whose slices the collector reads at a time, and lines that it writes home at a time (not in the paper;
    /// DEVIATIONS.md, hoop-collector).
    #[schemars(range(min = 1, max = 1024))]
    pub copies_in_flight: u32,
    /// Threads of recovery (paper: the 16 cores of its machine share recovery).
    #[schemars(range(min = 1, max = 1024))]
    pub recovery_threads: u32,
}

impl Default for HoopSpec {
    fn default() -> Self {
        HoopSpec {
            oop_buffer_bytes: 1024,
            words: Words::AtOnce,
            mapping_table_bytes: 2 << 20,
            line_table: true,
            line_table_bytes: LINE_TABLE_BYTES,
            search_cycles: 10,
            eviction_buffer_bytes: 128 << 10,
            region_percent: 10,
            region_bytes_max: u64::from(END) * SLICE_BYTES,
            block_bytes: 2 << 20,
            address_slices: 8192,
            acknowledged_by: AcknowledgedBy::Domain,
            commit: CommitEnd::Recorded,
            gc_period_ns: 10_000_000,
            copies_in_flight: 4,
            recovery_threads: 16,
        }
    }
}

impl HoopSpec {
    /// Refuses what cannot be built on any machine.
    pub fn check(&self) -> Result<(), SpecError> {
        check_ranges(self)?;
        if !self.line_table && self.line_table_bytes != LINE_TABLE_BYTES {
            let problem = format!("{} has no effect where line_table is false", self.line_table_bytes);
            return Err(SpecError::new("line_table_bytes", problem));
        }
        Ok(())
    }

    /// Slices of a block.
    pub(super) fn slices_per_block(&self) -> u32 {
        (self.block_bytes / SLICE_BYTES) as u32
    }

    /// Blocks of the OOP region.
    pub(super) fn blocks(&self, geometry: &Geometry) -> u32 {
        let share = geometry.pmem_bytes / 100 * u64::from(self.region_percent);
        let bytes = share.min(self.region_bytes_max).min(u64::from(END) * SLICE_BYTES);
        (bytes / SLICE_BYTES / u64::from(self.slices_per_block())) as u32
    }

    /// Refuses an OOP region that cannot hold what every core may need at once.
    pub(super) fn check_region(&self, geometry: &Geometry) -> Result<(), SpecError> {
        let (blocks, least) = (self.blocks(geometry), u32::from(geometry.cores) + 2);
        if blocks < least {
            let problem = format!(
                "the OOP region has {blocks} blocks of {} bytes, {least} are needed for {} cores",
                self.block_bytes, geometry.cores
            );
            return Err(SpecError::new("block_bytes", problem));
        }
        Ok(())
    }

    /// Lines that the mapping table can hold.
    pub(super) fn mapping_entries(&self) -> usize {
        (self.mapping_table_bytes / MAPPING_ENTRY_BYTES) as usize
    }

    /// Lines that the line table can hold; without one, lines with words that are not home are not limited.
    pub(super) fn line_table_entries(&self) -> usize {
        if self.line_table { (self.line_table_bytes / LINE_ENTRY_BYTES) as usize } else { usize::MAX }
    }

    /// Lines that the eviction buffer can hold.
    pub(super) fn eviction_lines(&self) -> usize {
        (self.eviction_buffer_bytes / 64) as usize
    }

    /// The structures that the paper adds to the memory controller and to the caches. An entry of the eviction buffer has
    /// its line's number and a bit for each of its bytes beside the data; a block of the index table its state and the
    /// number of slices in use.
    pub fn cost(&self, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let cores = u64::from(g.cores);
        let bits_of = |values: u64| u64::from(u64::BITS - values.saturating_sub(1).leading_zeros());
        cost.add("OOP data buffer", 8 * self.oop_buffer_bytes, cores);
        cost.add("mapping table", 8 * self.mapping_table_bytes, 1);
        if self.line_table {
            cost.add("line table", 8 * self.line_table_bytes, 1);
        }
        let line_bits = bits_of(g.pmem_bytes / 64);
        cost.add("eviction buffer", (512 + 64 + line_bits) * self.eviction_lines() as u64, 1);
        let block_bits = 2 + bits_of(u64::from(self.slices_per_block()) + 1);
        cost.add("block index table", block_bits * u64::from(self.blocks(g)), 1);
        // The counter of commits, that of collected ones, and the place in the current block.
        cost.add("address slice registers", 2 * 40 + bits_of(u64::from(self.address_slices) * ENTRIES) + 24, 1);
        for &level in g.levels().all() {
            cost.add(&format!("persistent bits {}", level.name()), g.level(level).lines(), g.instances(level));
        }
        cost
    }
}
