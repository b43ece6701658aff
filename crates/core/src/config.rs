//! Parameters of a core.

use crate::branch::PredictorConfig;
use crate::store_sets::StoreSetsConfig;
use durasim_types::{ConfigError, Cycle};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Functional units of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnitConfig {
    /// Number of units.
    pub count: u32,
    /// Cycles from issue to result.
    pub latency_cycles: Cycle,
    /// Whether a unit takes a new operation every cycle.
    pub pipelined: bool,
}

const fn unit(count: u32, latency_cycles: Cycle, pipelined: bool) -> UnitConfig {
    UnitConfig { count, latency_cycles, pipelined }
}

/// Functional units by class. The defaults are those of gem5's O3 model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UnitsConfig {
    /// Integer arithmetic, branches, markers.
    pub int_alu: UnitConfig,
    /// Integer multiplication; the units also divide.
    pub int_mul: UnitConfig,
    /// Integer division, on the multipliers.
    pub int_div: UnitConfig,
    /// Floating-point add, compare, convert.
    pub fp_add: UnitConfig,
    /// Floating-point multiplication; the units also fuse, divide and take roots.
    pub fp_mul: UnitConfig,
    /// Fused multiplication and addition, on the multipliers.
    pub fp_fused: UnitConfig,
    /// Floating-point division, on the multipliers.
    pub fp_div: UnitConfig,
    /// Square root, on the multipliers.
    pub fp_sqrt: UnitConfig,
    /// Ports for loads and stores; `latency_cycles` is that of address generation.
    pub memory: UnitConfig,
}

impl Default for UnitsConfig {
    fn default() -> Self {
        UnitsConfig {
            int_alu: unit(6, 1, true),
            int_mul: unit(2, 3, true),
            int_div: unit(2, 20, false),
            fp_add: unit(4, 2, true),
            fp_mul: unit(2, 4, true),
            fp_fused: unit(2, 5, true),
            fp_div: unit(2, 12, false),
            fp_sqrt: unit(2, 24, false),
            memory: unit(4, 1, true),
        }
    }
}

/// Fences that make a core wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fences {
    /// Those that total store order needs: earlier stores before later loads, and after cache-block operations.
    Ordering,
    /// All, and `aq` and `rl` of atomic operations: each waits until it is the oldest and the store queue is empty, and
    /// no later access to memory issues before. gem5's O3 model does so.
    All,
}

/// An out-of-order core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoreConfig {
    /// Instructions fetched, dispatched, issued and committed per cycle at most.
    pub width: u32,
    /// Entries of the reorder buffer.
    pub rob_entries: u32,
    /// Entries of the issue queue.
    pub issue_queue_entries: u32,
    /// Entries of the load queue.
    pub load_queue_entries: u32,
    /// Entries of the store queue, from dispatch until the store has left for the L1D.
    pub store_queue_entries: u32,
    /// Hardware log registers; without it as many as are needed. Of meaning on designs with log registers.
    pub log_registers: Option<u32>,
    /// Instructions that wait between fetch and rename at most.
    pub fetch_queue_entries: u32,
    /// Cycles from the fetch of an instruction to its renaming, where room in the queues is needed.
    pub fetch_to_rename_cycles: Cycle,
    /// Cycles from the renaming of an instruction to its dispatch; it may issue in the cycle of its dispatch.
    pub rename_to_dispatch_cycles: Cycle,
    /// Cycles from the completion of an instruction to its commit at the earliest.
    pub complete_to_commit_cycles: Cycle,
    /// Cycles from the execution of a mispredicted branch to the next fetch; the L1I's latency follows if the line is
    /// another one.
    pub mispredict_redirect_cycles: Cycle,
    /// Cycles from the fetch of a taken branch unknown to the branch target buffer to the next fetch: decode finds its
    /// target.
    pub decode_redirect_cycles: Cycle,
    /// Instructions of a wrong path that the reorder buffer drops in a cycle; nothing is renamed meanwhile.
    pub squash_width: u32,
    /// Cycles from the commit of the instruction before to the issue of one that must not be speculative.
    pub serialize_cycles: Cycle,
    /// Fences that wait.
    pub fences: Fences,
    /// Cycles from a store's data to a load that takes it from the store queue.
    pub forward_latency_cycles: Cycle,
    /// Banks of the L1D, by words of eight bytes: loads of the same bank in a cycle need ports of it. A power of two;
    /// without it loads are bound by `units.memory` alone.
    pub l1d_banks: Option<u32>,
    /// Ports of each bank.
    pub l1d_bank_ports: u32,
    /// Whether the line of a store is asked for at its commit, ahead of its turn.
    pub ownership_prefetch: bool,
    /// Whether a store may leave the store queue in the cycle after the one before it; else it waits for the L1D's answer
    /// to that one.
    pub pipelined_stores: bool,
    /// Prediction of dependences between loads and stores.
    pub store_sets: StoreSetsConfig,
    /// Cycles of a system call, during which the core does nothing else.
    pub system_call_cycles: Cycle,
    /// Cycles of a context switch, during which the core does nothing else.
    pub context_switch_cycles: Cycle,
    /// Cycles after which a thread makes room for another one that is ready.
    pub time_slice_cycles: Cycle,
    /// Functional units.
    pub units: UnitsConfig,
    /// Branch prediction.
    pub predictor: PredictorConfig,
}

impl Default for CoreConfig {
    fn default() -> Self {
        CoreConfig {
            width: 8,
            rob_entries: 192,
            issue_queue_entries: 97,
            load_queue_entries: 72,
            store_queue_entries: 56,
            log_registers: None,
            fetch_queue_entries: 32,
            fetch_to_rename_cycles: 2,
            rename_to_dispatch_cycles: 2,
            complete_to_commit_cycles: 2,
            mispredict_redirect_cycles: 3,
            decode_redirect_cycles: 3,
            squash_width: 8,
            serialize_cycles: 3,
            fences: Fences::Ordering,
            forward_latency_cycles: 1,
            l1d_banks: None,
            l1d_bank_ports: 1,
            ownership_prefetch: true,
            pipelined_stores: true,
            store_sets: StoreSetsConfig::default(),
            system_call_cycles: 1,
            context_switch_cycles: 3000,
            time_slice_cycles: 3_000_000,
            units: UnitsConfig::default(),
            predictor: PredictorConfig::default(),
        }
    }
}

impl CoreConfig {
    /// Refuses what cannot be built; `field` is the path of this section.
    pub fn check(&self, field: &str) -> Result<(), ConfigError> {
        self.check_counts(field)?;
        self.check_latencies(field)?;
        self.check_banks(field)?;
        within(field, "time_slice_cycles", self.time_slice_cycles, 1000..=u64::MAX)?;
        self.units.check(&format!("{field}.units"))?;
        self.store_sets.check(&format!("{field}.store_sets"))?;
        self.predictor.check(&format!("{field}.predictor"))
    }

    fn check_counts(&self, field: &str) -> Result<(), ConfigError> {
        let counts = [
            ("width", self.width, 1..=16),
            ("rob_entries", self.rob_entries, 1..=4096),
            ("issue_queue_entries", self.issue_queue_entries, 1..=4096),
            ("load_queue_entries", self.load_queue_entries, 1..=4096),
            ("store_queue_entries", self.store_queue_entries, 2..=255),
            ("fetch_queue_entries", self.fetch_queue_entries, 1..=4096),
            ("squash_width", self.squash_width, 1..=4096),
            ("l1d_bank_ports", self.l1d_bank_ports, 1..=16),
            ("log_registers", self.log_registers.unwrap_or(1), 1..=255),
        ];
        counts.into_iter().try_for_each(|(name, value, allowed)| within(field, name, value.into(), allowed))
    }

    fn check_latencies(&self, field: &str) -> Result<(), ConfigError> {
        let latencies = [
            ("fetch_to_rename_cycles", self.fetch_to_rename_cycles),
            ("rename_to_dispatch_cycles", self.rename_to_dispatch_cycles),
            ("mispredict_redirect_cycles", self.mispredict_redirect_cycles),
            ("complete_to_commit_cycles", self.complete_to_commit_cycles),
            ("serialize_cycles", self.serialize_cycles),
            ("decode_redirect_cycles", self.decode_redirect_cycles),
            ("forward_latency_cycles", self.forward_latency_cycles),
            ("system_call_cycles", self.system_call_cycles),
            ("context_switch_cycles", self.context_switch_cycles),
        ];
        latencies.into_iter().try_for_each(|(name, value)| within(field, name, value, 0..=100_000))
    }

    fn check_banks(&self, field: &str) -> Result<(), ConfigError> {
        if let Some(banks) = self.l1d_banks
            && (!banks.is_power_of_two() || banks > 64)
        {
            let problem = format!("{banks} is not a power of two up to 64");
            return Err(ConfigError::new(format!("{field}.l1d_banks"), problem));
        }
        if self.l1d_banks.is_none() && self.l1d_bank_ports != 1 {
            let problem = "only an L1D with l1d_banks has bank ports";
            return Err(ConfigError::new(format!("{field}.l1d_bank_ports"), problem));
        }
        Ok(())
    }
}

impl UnitsConfig {
    fn check(&self, field: &str) -> Result<(), ConfigError> {
        let units = [
            ("int_alu", self.int_alu),
            ("int_mul", self.int_mul),
            ("int_div", self.int_div),
            ("fp_add", self.fp_add),
            ("fp_mul", self.fp_mul),
            ("fp_fused", self.fp_fused),
            ("fp_div", self.fp_div),
            ("fp_sqrt", self.fp_sqrt),
            ("memory", self.memory),
        ];
        for (name, unit) in units {
            let field = format!("{field}.{name}");
            within(&field, "count", unit.count.into(), 1..=16)?;
            within(&field, "latency_cycles", unit.latency_cycles, 1..=1000)?;
        }
        Ok(())
    }
}

/// Refuses a value that is not allowed; `field` is the path of its section.
fn within(field: &str, name: &str, value: u64, allowed: RangeInclusive<u64>) -> Result<(), ConfigError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let problem = format!("{value} is not between {} and {}", allowed.start(), allowed.end());
    Err(ConfigError::new(format!("{field}.{name}"), problem))
}
