//! The description of a machine: read from TOML, changed by `--set`, refused with one sentence if it cannot be built.

mod interconnect;

pub use interconnect::{CleanLineAnswer, Inclusion, InterconnectConfig, RouterPorts, Topology};

use super::pauses::{PauseConfig, PlacePauseConfig};
use durasim_cache::{CORES_MAX, Replacement};
use durasim_contract::LevelGeometry;
use durasim_core::CoreConfig;
use durasim_core::tlb::TlbConfig;
use durasim_memory::MemoryConfig;
use durasim_types::{ConfigError, Cycle, LINE_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZero;

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    /// Capacity in bytes: ways times a power of two of 64-byte lines.
    pub size_bytes: u64,
    /// Associativity.
    pub ways: u32,
    /// Latency of a hit in core cycles, the look-up of the tags included.
    pub latency_cycles: Cycle,
    /// Core cycles after which a miss continues to the next level: those of the look-up of the tags. If not given, the same
    /// as `latency_cycles`, as if tags and data were read together (DEVIATIONS.md, tag-latency).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag_latency_cycles: Option<Cycle>,
    /// Misses in flight at most.
    pub mshrs: u32,
    /// Replacement policy of a full set, where the durability design has no preference.
    #[serde(default)]
    pub replacement: Replacement,
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

/// Ways of an L2 and of the last level at least: lines in service keep theirs while another line has to find one. In a set
/// of the last level these can be the line that a core asks for, the victims of its L1D and L2, and a line that a
/// design pushes down meanwhile. The L1D has no least number. It gets lines only from requests of its core, one at a
/// time, and the line that such a request is about is the only one in service that could be there, but is not
/// there yet, so every way of its set may be taken (`Caches::victim` checks it in debug builds).
const WAYS_BELOW_L1D_MIN: u32 = 4;

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
    /// Hardware threads of each core: 1, or 2 that share caches, MSHRs, functional units and issue width, and halve the queues
    /// while both run (DEVIATIONS.md, hardware-threads).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub threads_per_core: u16,
    /// Cycles that a core may run ahead of the others. 0 gives every step to the core whose time is the smallest.
    #[serde(default)]
    pub skew_cycles: Cycle,
    /// Cycles between two interrupts of the timer of each core, which abort its hardware transaction and take no time; not given: none
    /// come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_interrupt_cycles: Option<NonZero<Cycle>>,
    /// Pauses of cores at random, one at a time, for campaigns; not given: none come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<PauseConfig>,
    /// Pauses of cores at places where threads race, for campaigns; not given: none come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place_pauses: Option<PlacePauseConfig>,
    /// The cores.
    pub core: CoreConfig,
    /// TLBs of each core. Without them translations cost no time (LIMITS.md); `--set tlb=none` takes them away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tlb: Option<TlbConfig>,
    /// First-level instruction cache of each core.
    pub l1i: CacheConfig,
    /// First-level data cache of each core.
    pub l1d: CacheConfig,
    /// Second-level cache of each core. Without one the first levels are directly above the last one; `--set l2=none`
    /// takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2: Option<CacheConfig>,
    /// Last-level cache.
    pub llc: CacheConfig,
    /// Connections.
    pub interconnect: InterconnectConfig,
    /// Volatile memory.
    pub dram: MemoryConfig,
    /// Persistent memory.
    pub pmem: MemoryConfig,
    /// Whether DRAM and persistent memory share controllers: queues, banks and channels serve both, each a range of
    /// addresses. Their sections have to agree about controllers and media.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_controllers: bool,
    /// Persist buffers, for the domain that has them.
    #[serde(default)]
    pub bbb: PersistBufferConfig,
    /// Parameters of durability designs by name; what is not said here has the design's default.
    #[serde(default)]
    pub design: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
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
        if let Some(cycles) = self.tag_latency_cycles
            && !(1..=self.latency_cycles).contains(&cycles)
        {
            let problem = format!("{cycles} is not between 1 and the {} cycles of a hit", self.latency_cycles);
            return refuse("tag_latency_cycles", problem);
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
            tag_latency_cycles: self.tag_latency_cycles.unwrap_or(self.latency_cycles),
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
        config.interconnect.complete(config.l2.is_some());
        config.dram.complete();
        config.pmem.complete();
        Ok(config)
    }

    /// Hardware threads of all cores. Those of core n have the numbers n and, if there are two, n + `cores`.
    pub fn hardware_threads(&self) -> u16 {
        self.cores * self.threads_per_core
    }

    /// Memory controllers, those of persistent memory first.
    pub(crate) fn controllers(&self) -> usize {
        usize::from(self.pmem.controllers) + if self.shared_controllers { 0 } else { self.dram.controllers.into() }
    }

    /// Refuses to let memories share controllers that are not the same.
    fn check_shared(&self) -> Result<(), ConfigError> {
        let (mut dram, mut pmem) = (self.dram.clone(), self.pmem.clone());
        dram.complete();
        pmem.complete();
        let parts = [
            ("controllers", dram.controllers == pmem.controllers),
            ("interleave_bytes", dram.interleave_bytes == pmem.interleave_bytes),
            ("controller", dram.controller == pmem.controller),
            ("media", dram.media == pmem.media),
        ];
        match parts.iter().find(|(_, is_same)| self.shared_controllers && !is_same) {
            Some((name, _)) => {
                let problem = format!("dram.{name} and pmem.{name} differ, and what is shared is one");
                Err(ConfigError::new("shared_controllers", problem))
            }
            None => Ok(()),
        }
    }

    /// The data caches, from the core down, with the names of their sections.
    pub(crate) fn data_caches(&self) -> impl Iterator<Item = (&'static str, &CacheConfig)> {
        let caches = [("l1d", Some(&self.l1d)), ("l2", self.l2.as_ref()), ("llc", Some(&self.llc))];
        caches.into_iter().filter_map(|(name, cache)| cache.map(|cache| (name, cache)))
    }

    fn check_threads(&self) -> Result<(), ConfigError> {
        let refuse = |problem: String| Err(ConfigError::new("threads_per_core", problem));
        if !(1..=2).contains(&self.threads_per_core) {
            return refuse(format!("{} is not 1 or 2", self.threads_per_core));
        }
        if self.threads_per_core == 1 {
            return Ok(());
        }
        if self.hardware_threads() > CORES_MAX {
            let problem =
                format!("{} cores have {} of them, more than {CORES_MAX}", self.cores, self.hardware_threads());
            return refuse(problem);
        }
        let core = &self.core;
        let queues = [
            ("rob_entries", core.rob_entries, 2),
            ("issue_queue_entries", core.issue_queue_entries, 2),
            ("load_queue_entries", core.load_queue_entries, 2),
            // A store may cross a line, and takes two entries then.
            ("store_queue_entries", core.store_queue_entries, 4),
        ];
        match queues.iter().find(|(_, entries, least)| entries < least) {
            Some((name, entries, least)) => {
                let problem = format!("{entries} is less than the {least} that two threads share");
                Err(ConfigError::new(format!("core.{name}"), problem))
            }
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if !(1..=100_000).contains(&self.frequency_mhz) {
            let problem = format!("{} is not between 1 and 100000", self.frequency_mhz);
            return Err(ConfigError::new("frequency_mhz", problem));
        }
        if !(1..=CORES_MAX).contains(&self.cores) {
            let problem = format!("{} is not between 1 and {CORES_MAX}", self.cores);
            return Err(ConfigError::new("cores", problem));
        }
        self.check_threads()?;
        if let Some(pauses) = &self.pauses {
            pauses.check("pauses")?;
        }
        if let Some(pauses) = &self.place_pauses {
            pauses.check("place_pauses")?;
        }
        self.core.check("core")?;
        if let Some(tlb) = &self.tlb {
            tlb.check("tlb")?;
        }
        self.l1i.check("l1i")?;
        for (name, cache) in self.data_caches() {
            cache.check(name)?;
        }
        for (name, cache) in self.data_caches().skip(1) {
            if cache.ways < WAYS_BELOW_L1D_MIN {
                let problem = format!(
                    "{} is less than the {WAYS_BELOW_L1D_MIN} ways that a cache below the L1D needs: lines that pass \
                     through it keep theirs while others find one",
                    cache.ways
                );
                return Err(ConfigError::new(format!("{name}.ways"), problem));
            }
        }
        if !(1..=4096).contains(&self.bbb.entries) {
            let problem = format!("{} is not between 1 and 4096", self.bbb.entries);
            return Err(ConfigError::new("bbb.entries", problem));
        }
        if self.bbb.drain_threshold_percent > 100 {
            let problem = format!("{} is not between 0 and 100", self.bbb.drain_threshold_percent);
            return Err(ConfigError::new("bbb.drain_threshold_percent", problem));
        }
        self.dram.check("dram")?;
        self.pmem.check("pmem")?;
        self.check_shared()?;
        self.interconnect.check(self)
    }
}

fn one() -> u16 {
    1
}

fn is_one(value: &u16) -> bool {
    *value == 1
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
    match (path, value.as_str()) {
        ("l2", Some("none")) => remove_l2(at),
        ("tlb", Some("none")) => drop(at.remove("tlb")),
        _ => drop(at.insert((*last).to_owned(), value)),
    }
    Ok(())
}

/// Removes the L2 from a machine, with its keys in other sections.
fn remove_l2(machine: &mut toml::Table) {
    machine.remove("l2");
    if let Some(links) = machine.get_mut("interconnect").and_then(toml::Value::as_table_mut) {
        links.remove("l2_write_back_buffers");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::presets;

    fn parse(overrides: &[&str]) -> Result<MachineConfig, ConfigError> {
        let overrides: Vec<String> = overrides.iter().map(|s| (*s).to_owned()).collect();
        MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &overrides)
    }

    #[test]
    fn overrides_change_values_and_unknown_keys_are_refused_by_path() {
        assert_eq!(parse(&["l2.ways=8", "l2.size_bytes=1024"]).unwrap().l2.unwrap().ways, 8);
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
    fn a_machine_may_have_no_l2() {
        let whole = parse(&[]).unwrap();
        assert_eq!(whole.interconnect.l2_write_back_buffers, Some(2));
        let without = parse(&["l2.ways=8", "interconnect.l2_write_back_buffers=3", "l2=none"]).unwrap();
        assert_eq!((without.l2.clone(), without.interconnect.l2_write_back_buffers), (None, None));
        assert_eq!(without, parse(&["l2=\"none\""]).unwrap());
        let document = serde_json::to_value(&without).unwrap();
        assert!(document.get("l2").is_none(), "{document}");
        let file = presets::text("tiny").unwrap();
        let (before, after) = (file.find("[l2]").unwrap(), file.find("[llc]").unwrap());
        let file = format!("{}{}", &file[..before], &file[after..]);
        let file: String = file.lines().filter(|line| !line.starts_with("l2_")).flat_map(|l| [l, "\n"]).collect();
        assert_eq!(without, MachineConfig::parse("tiny", &file, &[]).unwrap());
        let back = ["l2=none", "l2={size_bytes=2048,ways=8,latency_cycles=8,mshrs=4}"];
        assert_eq!(parse(&back).unwrap().l2.unwrap().ways, 8);
        let refusal = |sets: &[&str]| parse(sets).unwrap_err().to_string();
        let refused = refusal(&["l2=none", "interconnect.l2_write_back_buffers=2"]);
        assert_eq!(refused, "interconnect.l2_write_back_buffers: the machine has no L2 whose lines could wait there");
        assert!(refusal(&["l2=none", "l2.ways=8"]).contains("missing field"));
        assert!(refusal(&["llc=none"]).starts_with("llc: invalid type"), "{}", refusal(&["llc=none"]));
    }

    #[test]
    fn caches_below_the_l1d_have_four_ways_at_least() {
        for set in ["l2.ways=2", "llc.ways=2"] {
            let refused = parse(&[set]).unwrap_err().problem;
            assert!(refused.starts_with("2 is less than the 4 ways that a cache below the L1D needs"), "{refused}");
        }
        // LAD's first levels (MICRO 2019, Table 3), and direct-mapped ones.
        let first = ["l1i.size_bytes=49152", "l1i.ways=3", "l1d.size_bytes=32768", "l1d.ways=2"];
        let config = parse(&first).unwrap();
        assert_eq!((config.l1i.geometry().sets, config.l1d.geometry().sets), (256, 256));
        assert_eq!(parse(&["l1i.ways=1", "l1d.ways=1"]).unwrap().l1d.geometry().sets, 16);
    }

    #[test]
    fn a_core_has_one_or_two_threads_and_queues_that_two_can_share() {
        assert_eq!(parse(&[]).unwrap().hardware_threads(), 4);
        let two = parse(&["threads_per_core=2", "cores=16"]).unwrap();
        assert_eq!((two.hardware_threads(), two.cores), (32, 16));
        let document = |config: &MachineConfig| serde_json::to_value(config).unwrap();
        assert!(document(&two).get("threads_per_core").is_some());
        assert!(document(&parse(&["threads_per_core=1"]).unwrap()).get("threads_per_core").is_none());
        for (sets, problem) in [
            (&["threads_per_core=0"][..], "threads_per_core: 0 is not 1 or 2"),
            (&["threads_per_core=3"], "threads_per_core: 3 is not 1 or 2"),
            (&["threads_per_core=2", "cores=17"], "threads_per_core: 17 cores have 34 of them, more than 32"),
            (
                &["threads_per_core=2", "core.store_queue_entries=3"],
                "core.store_queue_entries: 3 is less than the 4 that two threads share",
            ),
            (
                &["threads_per_core=2", "core.rob_entries=1"],
                "core.rob_entries: 1 is less than the 2 that two threads share",
            ),
        ] {
            assert_eq!(parse(sets).unwrap_err().to_string(), problem, "{sets:?}");
        }
        assert!(parse(&["core.store_queue_entries=3"]).is_ok());
    }

    #[test]
    fn values_out_of_range_name_the_field_and_the_range() {
        for (set, field) in [
            ("l1d.size_bytes=1000", "l1d.size_bytes"),
            ("llc.ways=0", "llc.ways"),
            ("l1d.ways=0", "l1d.ways"),
            ("l2.ways=2", "l2.ways"),
            ("llc.ways=2", "llc.ways"),
            ("interconnect.l2_write_back_buffers=0", "interconnect.l2_write_back_buffers"),
            ("core.width=99", "core.width"),
            ("cores=33", "cores"),
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
