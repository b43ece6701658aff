//! Parameters and cost of TC. Section and table numbers are the paper's.

use durasim_design::{Geometry, HardwareCost, LevelId, SpecError};
use durasim_types::Cycle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether stores share an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Coalesce {
    /// Every store request takes an entry, as TC, section 4.1, describes it.
    None,
    /// Stores of a transaction to one line share its entry, as Hercules, section 2.2.2, describes TC: "modified cache
    /// lines" are put in it.
    Line,
}

/// Parameters of TC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcSpec {
    /// Entries of each core's transaction cache (section 4.4: 4 KB of 64-byte lines).
    pub entries: u32,
    /// Whether stores share an entry (DEVIATIONS.md, tc-coalescing).
    pub coalesce: Coalesce,
    /// Cycles of a read, that is of a probe (Hercules, Table 2: 40; TC, Table 2: 10.5 ns).
    pub latency_read_cycles: Cycle,
    /// Cycles of a write, after which an entry or a commit is durable (Hercules, Table 2: 50).
    pub latency_write_cycles: Cycle,
    /// Occupancy from which the fall-back path makes room, in percent (section 4.1: 90).
    pub overflow_percent: u32,
    /// Entries that the fall-back path works on at a time (not in the paper; DEVIATIONS.md, background-concurrency).
    pub copies_in_flight: u32,
    /// Lines of the shadow area of each core (not in the paper; DEVIATIONS.md, tc-overflow).
    pub shadow_lines: u32,
}

impl Default for TcSpec {
    fn default() -> Self {
        TcSpec {
            entries: 64,
            coalesce: Coalesce::None,
            latency_read_cycles: 40,
            latency_write_cycles: 50,
            overflow_percent: 90,
            copies_in_flight: 4,
            shadow_lines: 4096,
        }
    }
}

impl TcSpec {
    /// Refuses what cannot be built.
    pub fn check(&self) -> Result<(), SpecError> {
        let range = |field: &str, value: u64, low: u64, high: u64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(SpecError::new(field, format!("{value} is not between {low} and {high}")))
            }
        };
        range("entries", self.entries.into(), 2, 1 << 20)?;
        range("latency_read_cycles", self.latency_read_cycles, 0, 1_000_000)?;
        range("latency_write_cycles", self.latency_write_cycles, 0, 1_000_000)?;
        range("overflow_percent", self.overflow_percent.into(), 1, 100)?;
        range("copies_in_flight", self.copies_in_flight.into(), 1, 1024)?;
        range("shadow_lines", self.shadow_lines.into(), 1, 1 << 20)
    }

    /// Table 1. The paper counts one state bit; its three states need two, which is what is counted here.
    pub fn cost(&self, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let cores = u64::from(g.cores);
        let id_bits = u64::from(u32::BITS - (self.entries.max(2) - 1).leading_zeros());
        cost.add("TxID/mode register", id_bits, cores);
        cost.add("next TxID register", id_bits, cores);
        if g.cores > 1 {
            // The core on which the running transaction began [D:tc-home].
            cost.add("home core register", u64::from(u16::BITS - (g.cores - 1).leading_zeros()), cores);
        }
        for level in LevelId::ALL {
            let instances = if level == LevelId::Llc { 1 } else { cores };
            cost.add(&format!("P/V flags {}", level.name()), g.level(level).lines(), instances);
        }
        cost.add("TxID in the TC data array", id_bits * u64::from(self.entries), cores);
        cost.add("state in the TC data array", 2 * u64::from(self.entries), cores);
        cost.add("TC data array", 512 * u64::from(self.entries), cores);
        cost
    }
}
