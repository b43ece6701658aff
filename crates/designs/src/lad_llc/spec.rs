//! Parameters and cost of LAD-LLC. Section numbers are the paper's.

use crate::dtx::THREADS;
use crate::kiln::{Blocking, KilnSpec, Versions};
use durasim_contract::{Geometry, HardwareCost, SpecError, check_ranges};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of LAD-LLC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LadLlcSpec {
    /// Bits of a DTX_ID (8, as in LAD's controllers; DEVIATIONS.md, lad-ids).
    #[schemars(range(min = 2, max = 8))]
    pub dtx_id_bits: u32,
    /// Sets of tracking structures beside each L1D; one of them is used, for one hardware thread (Table 3).
    #[schemars(range(min = 1, max = 64))]
    pub tracking_sets: u32,
    /// Old lines that the area of the fall-back path holds (DEVIATIONS.md, lad-llc-overflow).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub copy_area_lines: u32,
}

impl Default for LadLlcSpec {
    fn default() -> Self {
        LadLlcSpec { dtx_id_bits: 8, tracking_sets: 8, copy_area_lines: 16384 }
    }
}

impl LadLlcSpec {
    /// Refuses what cannot be built.
    pub fn check(&self) -> Result<(), SpecError> {
        check_ranges(self)
    }

    /// The parameters of Kiln: no STT-RAM, FIFOs that hold all lines of an L1D and are walked in no time, no requests
    /// that wait, two versions of a line in the last level, and as many open transactions as there are threads.
    pub(super) fn of_kiln(&self) -> KilnSpec {
        KilnSpec {
            fifo_entries: 1 << 20,
            fifo_walk_cycles: 0,
            overflow_percent: 100,
            copy_area_lines: self.copy_area_lines,
            blocked_requests: Blocking::None,
            versions: Versions::TwoInLlc,
            tx_id_bits: 48,
            ..KilnSpec::default()
        }
    }

    /// The added hardware: LAD's tracking structures, a speculative bit and the identifiers for each line of the last
    /// level, a bit that marks committed versions beside uncommitted ones, and DTX_CID in each bank. The battery is not
    /// counted.
    pub fn cost(&self, geometry: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let (id, sets) = (u64::from(self.dtx_id_bits), u64::from(self.tracking_sets) * u64::from(geometry.cores));
        cost.add("DTX bit vector", geometry.l1d.lines(), sets);
        cost.add("LAD_TID, DTX_ID, DTX_State, DTX Ack Counter", 48, sets);
        let lines = geometry.llc.lines();
        cost.add("DTX_ID, LAD_TID, speculative bit of lines", lines * (id + 8 + 1), 1);
        cost.add("older versions llc", lines, 1);
        cost.add("DTX_CID", THREADS as u64 * id, geometry.llc_banks.into());
        cost
    }
}
