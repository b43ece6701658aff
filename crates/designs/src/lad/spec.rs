//! Parameters and cost of LAD. Section numbers are the paper's.

use super::regions::{PURGATORY_RECORD_BYTES, UNDO_RECORD_BYTES};
use crate::dtx::THREADS;
use durasim_contract::{Geometry, HardwareCost, RegionRequest, SpecError, check_ranges};
use durasim_types::Cycle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of LAD and LAD-Base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LadSpec {
    /// Bits of a DTX_ID (8, as 392 bytes in each controller imply, section 4.3; DEVIATIONS.md, lad-ids).
    #[schemars(range(min = 2, max = 8))]
    pub dtx_id_bits: u32,
    /// Sets of tracking structures beside each L1D; one of them is used, for one hardware thread (Table 3).
    #[schemars(range(min = 1, max = 64))]
    pub tracking_sets: u32,
    /// Speculative entries of a queue, in percent of its entries, from which on its controller writes undo entries (section
    /// 4.6).
    #[schemars(range(min = 1, max = 100))]
    pub logging_percent: u32,
    /// Undo entries that each controller has room for at first (not known; DEVIATIONS.md, lad-log).
    #[schemars(range(min = 8, max = 1u64 << 24))]
    pub undo_log_entries: u64,
    /// Undo entries that each controller can be given at most (section 4.6: any number; DEVIATIONS.md, lad-log).
    #[schemars(range(min = 8, max = 1u64 << 24))]
    pub undo_log_entries_max: u64,
    /// Cycles from the interrupt of a controller whose log is nearly full until it has more room (not known; DEVIATIONS.md,
    /// lad-log).
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub undo_log_growth_cycles: Cycle,
    /// Cycles between two visits of the thread of the operating system that reclaims undo entries (not known; DEVIATIONS.md,
    /// lad-log).
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub reclaim_period_cycles: Cycle,
    /// Entries that the purgatory has room for; 0: as many as all queues have (section 4.8: a few KB).
    #[schemars(range(min = 0, max = 1u64 << 20))]
    pub purgatory_entries: u64,
    /// Cycles that an abort takes for each store that it undoes (DEVIATIONS.md, lad-abort).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub undo_cycles_per_store: Cycle,
}

impl Default for LadSpec {
    fn default() -> Self {
        LadSpec {
            dtx_id_bits: 8,
            tracking_sets: 8,
            logging_percent: 80,
            undo_log_entries: 1024,
            undo_log_entries_max: 16384,
            undo_log_growth_cycles: 20_000,
            reclaim_period_cycles: 1_000_000,
            purgatory_entries: 0,
            undo_cycles_per_store: 100,
        }
    }
}

impl LadSpec {
    /// Entries of the queues of all controllers.
    fn queued(geometry: &Geometry) -> u64 {
        u64::from(geometry.controllers) * u64::from(geometry.write_queue_entries)
    }

    /// Entries of the purgatory.
    pub fn purgatory(&self, geometry: &Geometry) -> u64 {
        if self.purgatory_entries == 0 { Self::queued(geometry) } else { self.purgatory_entries }
    }

    /// Refuses what cannot be built.
    pub fn check(&self, geometry: &Geometry) -> Result<(), SpecError> {
        check_ranges(self)?;
        if self.undo_log_entries_max < self.undo_log_entries {
            let problem =
                format!("{} is less than undo_log_entries, {}", self.undo_log_entries_max, self.undo_log_entries);
            return Err(SpecError::new("undo_log_entries_max", problem));
        }
        let (entries, queued) = (self.purgatory(geometry), Self::queued(geometry));
        if entries < queued {
            let problem =
                format!("{entries} is less than the {queued} entries that the queues of all controllers have");
            return Err(SpecError::new("purgatory_entries", problem));
        }
        Ok(())
    }

    /// The undo log of each controller is in lines of its own, dealt out like all persistent memory.
    pub fn regions(&self, geometry: &Geometry) -> Vec<RegionRequest> {
        let lines_of_one = self.undo_log_entries_max * UNDO_RECORD_BYTES;
        let blocks_of_one = lines_of_one.div_ceil(geometry.interleave_bytes);
        // The region may begin in the middle of a round among the controllers.
        let undo_bytes = (blocks_of_one + 1) * u64::from(geometry.controllers) * geometry.interleave_bytes;
        let purgatory_bytes = (1 + self.purgatory(geometry)) * PURGATORY_RECORD_BYTES;
        vec![
            RegionRequest { name: "undo-log", size_bytes: undo_bytes },
            RegionRequest { name: "purgatory", size_bytes: purgatory_bytes },
        ]
    }

    /// The added hardware: 70 bytes for each set of tracking structures beside a L1D of 32 KB (section 4.2), 392 bytes in
    /// each controller with a queue of 64 entries (section 4.3).
    pub fn cost(&self, geometry: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let (id, sets) = (u64::from(self.dtx_id_bits), u64::from(self.tracking_sets) * u64::from(geometry.cores));
        cost.add("DTX bit vector", geometry.l1d.lines(), sets);
        // The paper gives 70 bytes for all, so 6 are left for these four.
        cost.add("LAD_TID, DTX_ID, DTX_State, DTX Ack Counter", 48, sets);
        let controllers = u64::from(geometry.controllers);
        let entries = u64::from(geometry.write_queue_entries);
        cost.add("DTX_ID, LAD_TID, speculative bit of queue entries", entries * (id + 8 + 1), controllers);
        cost.add("DTX_CID", THREADS as u64 * id, controllers);
        cost
    }
}
