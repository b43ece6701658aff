//! Parameters and cost of PiCL. What is marked [D:picl-sizes] is from memory of the paper, which is not at hand.

use super::bloom::HASHES_MAX;
use durasim_contract::{Geometry, HardwareCost, SpecError, check_ranges};
use durasim_types::{Cycle, LINE_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of PiCL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PiclSpec {
    /// Instructions of all cores in an epoch (DEVIATIONS.md, picl-sizes: 30 million).
    #[schemars(range(min = 1, max = 1u64 << 50))]
    pub epoch_instructions: u64,
    /// Cycles for which begins of transactions are held back at the end of an epoch, before open transactions get more time
    /// (DEVIATIONS.md, picl-epoch-boundary).
    #[schemars(range(min = 1, max = 1u64 << 40))]
    pub hold_cycles: Cycle,
    /// Epochs between the end of an epoch and its asynchronous cache scan; the design promises 4 epochs (DEVIATIONS.md,
    /// picl-sizes: 3).
    #[schemars(range(min = 0, max = u64::from(PROMISED_EPOCHS) - 1))]
    pub scan_gap_epochs: u32,
    /// Lines that a scan looks at in a cycle (not known; DEVIATIONS.md, picl-scan).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub scan_lines_per_cycle: u32,
    /// Bits of the epoch identifier of a line (DEVIATIONS.md, picl-sizes: 4).
    #[schemars(range(min = 3, max = 16))]
    pub eid_bits: u32,
    /// Pre-images in the undo buffer (DEVIATIONS.md, picl-sizes: 2 KB).
    #[schemars(range(min = 1, max = 4096))]
    pub undo_buffer_entries: u32,
    /// Bits of the Bloom filter, a power of two (DEVIATIONS.md, picl-sizes: 4096).
    #[schemars(range(min = 8, max = 1u64 << 24))]
    pub bloom_bits: u32,
    /// Hash functions of the Bloom filter (not known; DEVIATIONS.md, picl-sizes).
    #[schemars(range(min = 1, max = HASHES_MAX))]
    pub bloom_hashes: u32,
    /// Bytes of the undo log (not known; DEVIATIONS.md, picl-log).
    #[schemars(range(min = (2 + SPARE_SUPERBLOCKS) * 3 * LINE_BYTES, max = 1u64 << 40))]
    pub log_bytes: u64,
    /// Cycles that an abort takes for each store that it undoes (DEVIATIONS.md, picl-abort).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub undo_cycles_per_store: Cycle,
}

impl Default for PiclSpec {
    fn default() -> Self {
        PiclSpec {
            epoch_instructions: 30_000_000,
            hold_cycles: 100_000,
            scan_gap_epochs: 3,
            scan_lines_per_cycle: 1,
            eid_bits: 4,
            undo_buffer_entries: 32,
            bloom_bits: 4096,
            bloom_hashes: 2,
            log_bytes: 16 << 20,
            undo_cycles_per_store: 100,
        }
    }
}

/// The epochs that the variant promises: the scan's gap, and the epoch in which it is at work.
pub(crate) const PROMISED_EPOCHS: u32 = 4;
/// Superblocks that stores leave free, so that what is in the buffer can always be written.
pub(super) const SPARE_SUPERBLOCKS: u64 = 2;

impl PiclSpec {
    /// Refuses what cannot be built.
    pub fn check(&self) -> Result<(), SpecError> {
        check_ranges(self)?;
        if !self.bloom_bits.is_power_of_two() {
            return Err(SpecError::new("bloom_bits", format!("{} is not a power of two", self.bloom_bits)));
        }
        let least = (2 + SPARE_SUPERBLOCKS) * self.superblock_bytes();
        if self.log_bytes < least {
            let problem = format!("{} is less than the {least} that superblocks of this size need", self.log_bytes);
            return Err(SpecError::new("log_bytes", problem));
        }
        Ok(())
    }

    /// Bytes of a superblock: a line of its own, four addresses with their epochs to a line, and the pre-images.
    pub fn superblock_bytes(&self) -> u64 {
        let entries = u64::from(self.undo_buffer_entries);
        (1 + entries.div_ceil(4) + entries) * LINE_BYTES
    }

    /// Superblocks that the log holds.
    pub fn superblocks(&self) -> u64 {
        self.log_bytes / self.superblock_bytes()
    }

    /// The added hardware.
    pub fn cost(&self, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let bits = u64::from(self.eid_bits);
        for &level in g.levels().all() {
            cost.add(&format!("EID {}", level.name()), bits * g.level(level).lines(), g.instances(level));
        }
        // Address of a line, ValidFrom, ValidTill, the line.
        cost.add("undo buffer", (42 + 2 * bits + 512) * u64::from(self.undo_buffer_entries), 1);
        cost.add("Bloom filter", self.bloom_bits.into(), 1);
        cost.add("SystemEID register", 64, 1);
        cost.add("PersistedEID register", 64, 1);
        cost.add("log head and tail registers", 128, 1);
        cost
    }
}
