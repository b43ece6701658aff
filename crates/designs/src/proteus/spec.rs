//! Parameters and cost of Proteus. Section numbers are the paper's; sizes that it gives for its evaluation are assumptions
//! where they are not certain [D:proteus-sizes].

use super::entry::{BLOCK_BYTES, ENTRY_BYTES};
use durasim_contract::{Geometry, HardwareCost, SpecError, check_ranges};
use durasim_types::Cycle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Log registers of a core: they are part of the instruction set, so no parameter (DEVIATIONS.md, proteus-sizes).
const LOG_REGISTERS: u64 = 8;
/// Spills in flight by default.
const SPILLS_IN_FLIGHT: u32 = 4;
/// Bits of a physical address in the structures of a core.
const ADDRESS_BITS: u64 = 48;

/// The place where log entries wait at a controller until their transaction ends or their place is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogQueue {
    /// In a log pending queue of their own.
    Beside,
    /// In the write pending queue, where they take places that writes of data want too.
    Inside,
}

/// In which order flushes leave the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlushOrder {
    /// Ahead of older stores, in order with other flushes.
    Early,
    /// In order with stores.
    InOrder,
}

/// The part of the machine whose acknowledgement a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AcknowledgedBy {
    /// The persistence domain: the write pending queue.
    Domain,
    /// The medium, which has written the lines that were cleaned and the tx-end record. Log entries are in the log pending
    /// queue until then, so they are acknowledged by their controller.
    Medium,
}

/// Parameters of Proteus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProteusSpec {
    /// Entries of the LogQ of each core: flushes that no controller has acknowledged (DEVIATIONS.md, proteus-sizes).
    #[schemars(range(min = 1, max = 1u64 << 10))]
    pub logq_entries: u32,
    /// Entries of the log lookup table of each core (DEVIATIONS.md, proteus-sizes).
    #[schemars(range(min = 1, max = 1u64 << 16))]
    pub llt_entries: u32,
    /// Ways of the log lookup table (DEVIATIONS.md, proteus-sizes).
    #[schemars(range(min = 1, max = 1u64 << 16))]
    pub llt_ways: u32,
    /// In which order flushes leave the core (DEVIATIONS.md, proteus-flush-order).
    pub flush_order: FlushOrder,
    /// The place where log entries wait at a controller (DEVIATIONS.md, proteus-lpq).
    pub log_queue: LogQueue,
    /// Entries of the log pending queue of each controller; with `log_queue` inside, places of the write pending queue that
    /// log entries may hold (DEVIATIONS.md, proteus-lpq).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub lpq_entries: u32,
    /// Entries that a full log pending queue writes to the log at a time, where `log_queue` is beside: in the write pending
    /// queue one leaves for each write that waits (not in the paper; DEVIATIONS.md, background-concurrency).
    #[schemars(range(min = 1, max = 1024))]
    pub spills_in_flight: u32,
    /// Entries of each log: what one transaction may fill (not in the paper; DEVIATIONS.md, proteus-logs).
    #[schemars(range(min = 1, max = 1u64 << 24))]
    pub log_entries: u32,
    /// Logs for each core: how many transactions can be open (not in the paper; DEVIATIONS.md, proteus-logs).
    #[schemars(range(min = 1, max = 1024))]
    pub logs_per_core: u32,
    /// The part of the machine that acknowledges what a commit writes (DEVIATIONS.md, proteus-acknowledgement).
    pub acknowledged_by: AcknowledgedBy,
    /// Cycles from one clean of a commit to the next (DEVIATIONS.md, proteus-clean).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub clean_issue_cycles: Cycle,
}

impl Default for ProteusSpec {
    fn default() -> Self {
        ProteusSpec {
            logq_entries: 16,
            llt_entries: 64,
            llt_ways: 8,
            flush_order: FlushOrder::Early,
            log_queue: LogQueue::Beside,
            lpq_entries: 256,
            spills_in_flight: SPILLS_IN_FLIGHT,
            log_entries: 131_072,
            logs_per_core: 2,
            acknowledged_by: AcknowledgedBy::Domain,
            clean_issue_cycles: 1,
        }
    }
}

fn bits_for(values: u64) -> u64 {
    u64::from(u64::BITS - values.max(2).saturating_sub(1).leading_zeros())
}

impl ProteusSpec {
    /// Refuses what cannot be built.
    pub fn check(&self) -> Result<(), SpecError> {
        check_ranges(self)?;
        if self.llt_ways > self.llt_entries {
            let problem = format!("{} is not between 1 and {}", self.llt_ways, self.llt_entries);
            return Err(SpecError::new("llt_ways", problem));
        }
        if !(self.llt_entries / self.llt_ways).is_power_of_two() || !self.llt_entries.is_multiple_of(self.llt_ways) {
            let problem = format!("{} ways do not make sets in a power of two of {}", self.llt_ways, self.llt_entries);
            return Err(SpecError::new("llt_ways", problem));
        }
        if self.log_queue == LogQueue::Inside && self.spills_in_flight != SPILLS_IN_FLIGHT {
            let problem = format!("{} has no effect where log_queue is inside", self.spills_in_flight);
            return Err(SpecError::new("spills_in_flight", problem));
        }
        Ok(())
    }

    /// Logs of the machine.
    pub fn logs(&self, geometry: &Geometry) -> u32 {
        self.logs_per_core * u32::from(geometry.cores)
    }

    /// The structures of section 4 and Figure 4, by their fields.
    pub fn cost(&self, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let (cores, controllers) = (u64::from(g.cores), u64::from(g.controllers));
        let block_bits = ADDRESS_BITS - bits_for(BLOCK_BYTES);
        let sets = u64::from(self.llt_entries / self.llt_ways);
        let tag_bits = block_bits - if sets > 1 { bits_for(sets) } else { 0 };
        cost.add("log registers", LOG_REGISTERS * (8 * BLOCK_BYTES + block_bits), cores);
        // Log-from and log-to addresses of a flush, and whether it is sent; its data is in the log register.
        let log_to_bits = ADDRESS_BITS - bits_for(ENTRY_BYTES);
        cost.add("LogQ", u64::from(self.logq_entries) * (block_bits + log_to_bits + 1), cores);
        // A tag, a valid bit and the age in its set.
        let age_bits = if self.llt_ways > 1 { bits_for(self.llt_ways.into()) } else { 0 };
        cost.add("log lookup table", u64::from(self.llt_entries) * (tag_bits + 1 + age_bits), cores);
        cost.add("txid and log-to registers", 64 + log_to_bits, cores);
        // An entry of the log with its log-to address and a valid bit; the write pending queue has both already.
        if self.log_queue == LogQueue::Beside {
            cost.add(
                "log pending queue",
                u64::from(self.lpq_entries) * (8 * ENTRY_BYTES + log_to_bits + 1),
                controllers,
            );
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Proteus;
    use crate::testing::geometry;

    #[test]
    fn what_cannot_be_built_is_refused() {
        let refused = |change: fn(&mut ProteusSpec)| {
            let mut spec = ProteusSpec::default();
            change(&mut spec);
            spec.check().unwrap_err().field
        };
        assert_eq!(ProteusSpec::default().check(), Ok(()));
        assert_eq!(refused(|s| s.logq_entries = 0), "logq_entries");
        assert_eq!(refused(|s| s.llt_entries = 0), "llt_entries");
        assert_eq!(refused(|s| s.llt_ways = 65), "llt_ways");
        assert_eq!(refused(|s| s.llt_ways = 48), "llt_ways");
        assert_eq!(refused(|s| s.llt_entries = 56), "llt_entries".replace("entries", "ways"));
        assert_eq!(refused(|s| s.lpq_entries = 0), "lpq_entries");
        assert_eq!(refused(|s| s.spills_in_flight = 0), "spills_in_flight");
        assert_eq!(refused(|s| s.log_entries = 0), "log_entries");
        assert_eq!(refused(|s| s.logs_per_core = 0), "logs_per_core");
        let spills = |s: &mut ProteusSpec| (s.log_queue, s.spills_in_flight) = (LogQueue::Inside, 2);
        assert_eq!(refused(spills), "spills_in_flight");
    }

    #[test]
    fn the_cost_is_that_of_the_structures() {
        let spec = ProteusSpec { log_entries: 64, ..ProteusSpec::default() };
        let cost = spec.cost(&geometry::<Proteus>(&spec, 2));
        let bits = |name: &str| cost.structures.iter().find(|s| s.name == name).map(|s| (s.bits, s.instances));
        assert_eq!(bits("log registers"), Some((8 * (256 + 43), 2)));
        assert_eq!(bits("LogQ"), Some((16 * (43 + 42 + 1), 2)));
        assert_eq!(bits("log lookup table"), Some((64 * (40 + 1 + 3), 2)));
        assert_eq!(bits("log pending queue"), Some((256 * (512 + 42 + 1), 1)));
        let inside = ProteusSpec { log_queue: LogQueue::Inside, ..spec };
        let cost = inside.cost(&geometry::<Proteus>(&inside, 2));
        assert!(cost.structures.iter().all(|structure| structure.name != "log pending queue"));
    }
}
