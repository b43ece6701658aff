//! Parameters and cost of FWB. Sizes marked [D:fwb-sizes] are from memory of the paper, which is not at hand.

use super::record::RECORD_BYTES;
use durasim_contract::{Geometry, HardwareCost, SpecError, check_ranges};
use durasim_types::{Cycle, Domain};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The event at which something that was sent to the log counts as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// The persistence domain: the write pending queue has accepted it.
    Domain,
    /// The medium has written it.
    Medium,
}

/// Parameters of FWB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FwbSpec {
    /// Records of the volatile log buffer (DEVIATIONS.md, fwb-sizes: 15).
    // A store may touch two words.
    #[schemars(range(min = 2, max = 1u64 << 16))]
    pub log_buffer_entries: u32,
    /// The event that frees the place of a record in the log buffer: Hercules, section 4.5.2, has FWB "wait for the drain of
    /// current log updates" (DEVIATIONS.md, fwb-acknowledgement).
    pub free_at: Reached,
    /// The event that a commit waits for with its last record (DEVIATIONS.md, fwb-acknowledgement).
    pub acknowledged_by: Reached,
    /// Bytes of the circular log; a record takes 32 (DEVIATIONS.md, fwb-sizes: 4 MB).
    #[schemars(range(min = 512, max = 1u64 << 32))]
    pub log_bytes: u64,
    /// Whether two records that share a line of the log leave the buffer in one write (DEVIATIONS.md, fwb-combining).
    pub write_combining: bool,
    /// Whether no two writes to the log share a line: what records leave of a line is filled up (DEVIATIONS.md,
    /// fwb-combining).
    pub whole_lines: bool,
    /// Cycles between the beginnings of two scans (DEVIATIONS.md, fwb-sizes: 3 million for a log of 4 MB).
    #[schemars(range(min = 1, max = 1u64 << 40))]
    pub scan_period_cycles: Cycle,
    /// Share of the log, in percent, from which on scans follow each other whatever the period is: the period is right for
    /// one rate of stores alone (not in the paper; DEVIATIONS.md, fwb-scan).
    #[schemars(range(min = 1, max = 100))]
    pub scan_from_percent: u32,
    /// Lines that a scan looks at in a cycle (not in the paper; DEVIATIONS.md, fwb-scan).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub scan_lines_per_cycle: u32,
    /// Whether a scan takes the port of the L2 or LLC that it is in, so that look-ups there begin a cycle later (not in the
    /// paper; DEVIATIONS.md, fwb-scan).
    pub scan_takes_ports: bool,
    /// Cycles that an abort takes for each record that it undoes (not in the paper; DEVIATIONS.md, fwb-abort).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub undo_cycles_per_record: Cycle,
}

impl Default for FwbSpec {
    fn default() -> Self {
        FwbSpec {
            log_buffer_entries: 15,
            free_at: Reached::Domain,
            acknowledged_by: Reached::Domain,
            log_bytes: 4 << 20,
            write_combining: true,
            whole_lines: false,
            scan_period_cycles: 3_000_000,
            scan_from_percent: 50,
            scan_lines_per_cycle: 1,
            scan_takes_ports: false,
            undo_cycles_per_record: 100,
        }
    }
}

impl FwbSpec {
    /// Refuses what cannot be built.
    pub fn check(&self) -> Result<(), SpecError> {
        check_ranges(self)
    }

    /// Whether records are followed until the medium has written them.
    pub(super) fn follows_to_medium(&self) -> bool {
        self.free_at == Reached::Medium || self.acknowledged_by == Reached::Medium
    }

    /// Places of the log that a number of records may take.
    pub(super) fn places(&self, records: u64) -> u64 {
        if self.whole_lines { 2 * records } else { records }
    }

    /// Records that the log holds: whole lines.
    pub fn capacity(&self) -> u64 {
        self.log_bytes / (2 * RECORD_BYTES) * 2
    }

    /// The added hardware. If caches survive nothing is scanned, so lines need no bit.
    pub fn cost(&self, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let cores = u64::from(g.cores);
        // Torn bit, TxID, thread, address, undo and redo word, byte mask.
        let redo_bits = if g.domain == Domain::Eadr { 0 } else { 64 };
        cost.add("log buffer", (1 + 16 + 8 + 48 + 64 + redo_bits + 8) * u64::from(self.log_buffer_entries), 1);
        cost.add("log head register", 64, 1);
        cost.add("log tail register", 64, 1);
        cost.add("TxID register", 16, cores);
        if g.domain != Domain::Eadr {
            for &level in g.levels().all() {
                cost.add(&format!("fwb bits {}", level.name()), g.level(level).lines(), g.instances(level));
            }
        }
        cost
    }
}
