//! The description of a machine: read from TOML, changed by `--set`, refused with one sentence if it cannot be built.

use durasim_cache::Replacement;
use durasim_core::CoreConfig;
use durasim_design::LevelGeometry;
use durasim_memory::MemoryConfig;
use durasim_types::{ConfigError, Cycle, LINE_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    /// Capacity in bytes: ways times a power of two of 64-byte lines.
    pub size_bytes: u64,
    /// Associativity.
    pub ways: u32,
    /// Latency of a hit in core cycles.
    pub latency_cycles: Cycle,
    /// Misses in flight at most.
    pub mshrs: u32,
    /// Which line of a full set leaves, where the durability design has no preference.
    #[serde(default)]
    pub replacement: Replacement,
}

/// Whether a lower level holds every line of the levels above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Inclusion {
    /// A line that leaves a level leaves the levels above too.
    Inclusive,
    /// Levels above keep their copies.
    NonInclusive,
    /// A line is in one level only: refused, as no such hierarchy is built (LIMITS.md), by designs that could not work in
    /// it with their reason.
    Exclusive,
}

impl From<Inclusion> for durasim_design::Inclusion {
    fn from(inclusion: Inclusion) -> Self {
        match inclusion {
            Inclusion::Inclusive => durasim_design::Inclusion::Inclusive,
            Inclusion::NonInclusive => durasim_design::Inclusion::NonInclusive,
            Inclusion::Exclusive => durasim_design::Inclusion::Exclusive,
        }
    }
}

/// What connects private caches and the last level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Links on which no message waits for another one.
    #[default]
    Uniform,
    /// A link into each bank of the last level and one into each core; a link carries one message at a time.
    Crossbar,
}

/// As in gem5's classic caches.
const fn write_back_buffers() -> u32 {
    8
}

/// As in gem5's system crossbar (DEVIATIONS.md, hops).
const fn controller_link_bytes() -> u32 {
    16
}

/// Cycles of a message at most.
const LATENCY_MAX: Cycle = 100_000;

/// How the parts are connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterconnectConfig {
    /// Inclusion of L2 and LLC.
    pub inclusion: Inclusion,
    /// What connects private caches and the last level.
    #[serde(default)]
    pub topology: Topology,
    /// `crossbar`: banks of the last level, among which lines take turns, a power of two. 8 if not given (DEVIATIONS.md,
    /// crossbar).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llc_banks: Option<u32>,
    /// `crossbar`: bytes of a line that a link carries in a cycle. 32 if not given (likewise).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_width_bytes: Option<u32>,
    /// Cycles that a request takes per level on its way down, beside the latency of the level it leaves.
    #[serde(default)]
    pub request_cycles: Cycle,
    /// Cycles that an answer takes per level on its way up.
    pub response_cycles: Cycle,
    /// Cycles of a request from the LLC to a memory controller.
    #[serde(default)]
    pub memory_request_cycles: Cycle,
    /// Cycles of data from a memory controller to the LLC.
    #[serde(default)]
    pub memory_response_cycles: Cycle,
    /// Cycles of a message from a core to a memory controller: a cleaned line, a record of a log, a message of a design. If
    /// not given, the look-ups of a clean: the latencies of L1D, L2 and LLC with the requests between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_to_controller_cycles: Option<Cycle>,
    /// Cycles of a message from a memory controller to a core, such as an acknowledgement. If not given, those of an answer
    /// through the levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_to_core_cycles: Option<Cycle>,
    /// Bytes of data that the link into a memory controller carries in a cycle, and the link out of it. Requests and
    /// acknowledgements have channels of their own, one message per cycle.
    #[serde(default = "controller_link_bytes")]
    pub controller_link_bytes: u32,
    /// Each message to or from a controller, but for reads, takes a drawn number of cycles more, from 0 to this: for crash
    /// campaigns.
    #[serde(default)]
    pub path_jitter_cycles: Cycle,
    /// Cycles from the directory to the private caches of another core, beside the latency of the slowest
    /// level there that has a copy.
    pub snoop_cycles: Cycle,
    /// Dirty lines that each L1D may have in flight to its L2; a miss whose victim finds none free waits.
    #[serde(default = "write_back_buffers")]
    pub l1d_write_back_buffers: u32,
    /// Dirty lines that each L2 may have in flight to the LLC.
    #[serde(default = "write_back_buffers")]
    pub l2_write_back_buffers: u32,
    /// Lines that may wait between the LLC and the write queues before a miss has to wait.
    pub write_back_buffers: u32,
}

/// The battery-backed persist buffer that each core has in the domain `bbb`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PersistBufferConfig {
    /// Lines that it holds.
    pub entries: u32,
    /// It drains its oldest line while more than this part of it is taken.
    pub drain_threshold_percent: u32,
}

impl Default for PersistBufferConfig {
    /// The paper on BBB (HPCA 2021) evaluates 32 entries; the threshold is assumed (DEVIATIONS.md, bbb-drain).
    fn default() -> Self {
        PersistBufferConfig { entries: 32, drain_threshold_percent: 75 }
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MachineConfig {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Clock of cores and caches in MHz.
    pub frequency_mhz: u64,
    /// Number of cores.
    pub cores: u16,
    /// Cycles that a core may run ahead of the others. 0 gives every step to the core whose time is the smallest.
    #[serde(default)]
    pub skew_cycles: Cycle,
    /// The cores.
    pub core: CoreConfig,
    /// First-level instruction cache of each core.
    pub l1i: CacheConfig,
    /// First-level data cache of each core.
    pub l1d: CacheConfig,
    /// Second-level cache of each core.
    pub l2: CacheConfig,
    /// Last-level cache.
    pub llc: CacheConfig,
    /// Connections.
    pub interconnect: InterconnectConfig,
    /// Volatile memory.
    pub dram: MemoryConfig,
    /// Persistent memory.
    pub pmem: MemoryConfig,
    /// Persist buffers, for the domain that has them.
    #[serde(default)]
    pub bbb: PersistBufferConfig,
    /// Parameters of durability designs by name; what is not said here has the design's default.
    #[serde(default)]
    pub design: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
}

impl InterconnectConfig {
    /// Gives values to what was not set and has a meaning here.
    fn complete(&mut self) {
        if self.topology == Topology::Crossbar {
            self.llc_banks = Some(self.llc_banks());
            self.link_width_bytes = Some(self.link_width_bytes());
        }
    }

    /// Banks of the last level.
    pub(crate) fn llc_banks(&self) -> u32 {
        self.llc_banks.unwrap_or(8)
    }

    /// Bytes of a line that a link carries in a cycle.
    pub(crate) fn link_width_bytes(&self) -> u32 {
        self.link_width_bytes.unwrap_or(32)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |name: &str, problem: String| Err(ConfigError::new(format!("interconnect.{name}"), problem));
        if self.memory_request_cycles > 1000 || self.memory_response_cycles > 1000 {
            let problem = "memory_request_cycles and memory_response_cycles are at most 1000";
            return Err(ConfigError::new("interconnect", problem));
        }
        let levels = self.request_cycles.max(self.response_cycles);
        if levels > 1000 || self.snoop_cycles > LATENCY_MAX {
            let problem = "request_cycles and response_cycles are at most 1000, snoop_cycles at most 100000";
            return Err(ConfigError::new("interconnect", problem));
        }
        for (name, cycles) in [
            ("core_to_controller_cycles", self.core_to_controller_cycles.unwrap_or(0)),
            ("controller_to_core_cycles", self.controller_to_core_cycles.unwrap_or(0)),
            ("path_jitter_cycles", self.path_jitter_cycles),
        ] {
            if cycles > LATENCY_MAX {
                return refuse(name, format!("{cycles} is more than {LATENCY_MAX} cycles"));
            }
        }
        if !(1..=4096).contains(&self.controller_link_bytes) {
            return refuse(
                "controller_link_bytes",
                format!("{} is not between 1 and 4096", self.controller_link_bytes),
            );
        }
        for (name, buffers) in [
            ("l1d_write_back_buffers", self.l1d_write_back_buffers),
            ("l2_write_back_buffers", self.l2_write_back_buffers),
            ("write_back_buffers", self.write_back_buffers),
        ] {
            if !(1..=4096).contains(&buffers) {
                return refuse(name, format!("{buffers} is not between 1 and 4096"));
            }
        }
        for (name, value) in [("llc_banks", self.llc_banks), ("link_width_bytes", self.link_width_bytes)] {
            let Some(value) = value else { continue };
            if self.topology != Topology::Crossbar {
                return refuse(name, "only the topology 'crossbar' has links that are shared".into());
            }
            if !value.is_power_of_two() || value > 64 {
                return refuse(name, format!("{value} is not a power of two up to 64"));
            }
        }
        Ok(())
    }
}

impl CacheConfig {
    fn check(&self, field: &str) -> Result<(), ConfigError> {
        let refuse = |name: &str, problem: String| Err(ConfigError::new(format!("{field}.{name}"), problem));
        if !(1..=64).contains(&self.ways) {
            return refuse("ways", format!("{} is not between 1 and 64", self.ways));
        }
        let sets = self.size_bytes / (LINE_BYTES * u64::from(self.ways));
        if sets * LINE_BYTES * u64::from(self.ways) != self.size_bytes || !sets.is_power_of_two() || sets > 1 << 20 {
            let problem = format!(
                "{} bytes are not {} ways times a power of two (at most 2^20) of 64-byte lines",
                self.size_bytes, self.ways
            );
            return refuse("size_bytes", problem);
        }
        if !(1..=10_000).contains(&self.latency_cycles) {
            return refuse("latency_cycles", format!("{} is not between 1 and 10000", self.latency_cycles));
        }
        if !(1..=1024).contains(&self.mshrs) {
            return refuse("mshrs", format!("{} is not between 1 and 1024", self.mshrs));
        }
        Ok(())
    }

    /// The shape of the cache.
    pub fn geometry(&self) -> LevelGeometry {
        LevelGeometry {
            sets: (self.size_bytes / (LINE_BYTES * u64::from(self.ways))) as u32,
            ways: self.ways,
            missing_way_period: 0,
            latency_cycles: self.latency_cycles,
        }
    }
}

impl MachineConfig {
    /// Reads a machine from TOML text, with `overrides` of the form `path.to.key=value` applied.
    ///
    /// # Errors
    /// Syntax, unknown keys, wrong types and values out of range, each with the path of the field.
    pub fn parse(source: &str, text: &str, overrides: &[String]) -> Result<Self, ConfigError> {
        let mut tree: toml::Table =
            text.parse().map_err(|e: toml::de::Error| ConfigError::new(source, one_line(e.message())))?;
        for item in overrides {
            apply(&mut tree, item)?;
        }
        let mut config: MachineConfig = serde_path_to_error::deserialize(toml::Value::Table(tree)).map_err(|e| {
            let path = e.path().to_string();
            let field = if path == "." { source.to_owned() } else { path };
            ConfigError::new(field, one_line(e.inner().message()))
        })?;
        config.check()?;
        config.interconnect.complete();
        config.dram.complete();
        config.pmem.complete();
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        if !(1..=100_000).contains(&self.frequency_mhz) {
            let problem = format!("{} is not between 1 and 100000", self.frequency_mhz);
            return Err(ConfigError::new("frequency_mhz", problem));
        }
        if !(1..=16).contains(&self.cores) {
            let problem = format!("{} is not between 1 and 16", self.cores);
            return Err(ConfigError::new("cores", problem));
        }
        self.core.check("core")?;
        self.l1i.check("l1i")?;
        self.l1d.check("l1d")?;
        self.l2.check("l2")?;
        self.llc.check("llc")?;
        for (name, cache) in [("l1d", &self.l1d), ("l2", &self.l2), ("llc", &self.llc)] {
            if cache.ways < 4 {
                // Lines in service are pinned in their set while another one has to find a way.
                let problem = format!("{} is less than the 4 ways a data cache needs", cache.ways);
                return Err(ConfigError::new(format!("{name}.ways"), problem));
            }
        }
        self.interconnect.check()?;
        if !(1..=4096).contains(&self.bbb.entries) {
            let problem = format!("{} is not between 1 and 4096", self.bbb.entries);
            return Err(ConfigError::new("bbb.entries", problem));
        }
        if self.bbb.drain_threshold_percent > 100 {
            let problem = format!("{} is not between 0 and 100", self.bbb.drain_threshold_percent);
            return Err(ConfigError::new("bbb.drain_threshold_percent", problem));
        }
        self.dram.check("dram")?;
        self.pmem.check("pmem")
    }
}

/// Messages of parsers span lines; users get one sentence.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Applies one `path.to.key=value`. The value is read as TOML; what is not TOML is taken as a string.
fn apply(tree: &mut toml::Table, item: &str) -> Result<(), ConfigError> {
    let Some((path, value)) = item.split_once('=') else {
        return Err(ConfigError::new("--set", format!("'{item}' is not of the form path.to.key=value")));
    };
    let (path, value) = (path.trim(), value.trim());
    let value = format!("v = {value}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let keys: Vec<&str> = path.split('.').collect();
    if keys.iter().any(|k| k.is_empty()) {
        return Err(ConfigError::new("--set", format!("'{path}' is not a path of keys")));
    }
    let (last, parents) = keys.split_last().expect("split gives at least one piece");
    let mut at = tree;
    for key in parents {
        let next = at.entry(*key).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        let Some(table) = next.as_table_mut() else {
            return Err(ConfigError::new(path, format!("'{key}' is a value and has no keys")));
        };
        at = table;
    }
    at.insert((*last).to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    fn parse(overrides: &[&str]) -> Result<MachineConfig, ConfigError> {
        let overrides: Vec<String> = overrides.iter().map(|s| (*s).to_owned()).collect();
        MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &overrides)
    }

    #[test]
    fn overrides_change_values_and_unknown_keys_are_refused_by_path() {
        assert_eq!(parse(&["l2.ways=8", "l2.size_bytes=1024"]).unwrap().l2.ways, 8);
        assert_eq!(parse(&["pmem.media.banks = 7"]).unwrap().pmem.media.banks, Some(7));
        let refused = parse(&["l2.wayz=2"]).unwrap_err();
        assert!(refused.field.starts_with("l2") && refused.problem.contains("wayz"), "{refused}");
        assert_eq!(parse(&[]).unwrap().llc.replacement, Replacement::Lru);
        assert_eq!(parse(&["llc.replacement=random"]).unwrap().llc.replacement, Replacement::Random);
        assert_eq!(parse(&["llc.replacement=fifo"]).unwrap_err().field, "llc.replacement");
        assert_eq!(parse(&["l2.ways=lots"]).unwrap_err().field, "l2.ways");
        assert_eq!(parse(&["l2.ways"]).unwrap_err().field, "--set");
        assert_eq!(parse(&["l2.ways.more=1"]).unwrap_err().field, "l2.ways.more");
    }

    #[test]
    fn values_out_of_range_name_the_field_and_the_range() {
        for (set, field) in [
            ("l1d.size_bytes=1000", "l1d.size_bytes"),
            ("llc.ways=0", "llc.ways"),
            ("core.width=99", "core.width"),
            ("cores=17", "cores"),
            ("bbb.entries=0", "bbb.entries"),
            ("interconnect.llc_banks=4", "interconnect.llc_banks"),
            (
                "interconnect={inclusion='inclusive',response_cycles=1,snoop_cycles=1,write_back_buffers=1,topology='crossbar',llc_banks=6}",
                "interconnect.llc_banks",
            ),
            ("bbb.drain_threshold_percent=101", "bbb.drain_threshold_percent"),
            ("frequency_mhz=0", "frequency_mhz"),
            ("pmem.controller.write_queue_entries=0", "pmem.controller.write_queue_entries"),
            ("core.units.int_alu={count=0,latency_cycles=1,pipelined=true}", "core.units.int_alu.count"),
        ] {
            assert_eq!(parse(&[set]).unwrap_err().field, field, "{set}");
        }
    }
}
