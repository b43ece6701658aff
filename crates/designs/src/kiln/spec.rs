//! Parameters and cost of Kiln. [H] is Hercules (TECS 2023), Table 2; [T] is TC (DAC 2017); the paper itself leaves the
//! rest open, or we know it from those two alone: DEVIATIONS.md has the key in brackets.

use crate::ports::busy_cycles;
use durasim_contract::{Geometry, HardwareCost, LevelGeometry, LevelId, LlcPorts, SpecError, check_ranges};
use durasim_types::{Cycle, Domain};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The requests that wait at the last level while a commit is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blocking {
    /// All of them, as TC, section 5.2, says of Kiln: it "blocks subsequent cache and memory requests".
    All,
    /// Those for lines of the transaction that commits.
    Lines,
    /// All that the core that commits makes after its commit, hits of its private caches included, and no others: the
    /// "subsequent" requests of TC, section 5.2, taken for those of the program that waits.
    Core,
    /// Both those of `all` and those of `core`.
    AllAndCore,
    /// None.
    None,
}

/// When a line from memory is written into the last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LlcFills {
    /// Beside the way of its data.
    Beside,
    /// Before its data goes up.
    First,
}

/// The queue whose occupancy starts the fall-back path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverflowOf {
    /// The FIFOs of a core together.
    Fifos,
    /// The FIFO of its L1D alone, which takes each line first.
    L1dFifo,
    /// The write queue of the controllers, which the lines of all FIFOs may have to enter: Hercules, section 5.1, names "an
    /// almost full request queue".
    RequestQueue,
}

/// The accesses that a port of the last level accepts in each cycle; others keep it for their whole latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pipelined {
    /// None of them.
    None,
    /// Reads: a cell of STT-RAM is written for as long as the pulse lasts, and read like one of SRAM.
    Reads,
    /// Reads and writes.
    All,
}

/// The place of the committed version of a line while an uncommitted one is in the last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Versions {
    /// At home: it is written there before the uncommitted one takes its place.
    HomeFirst,
    /// In the last level too, in a way of its own, until the transaction commits. The version that aborts or a power failure
    /// leave is this one.
    TwoInLlc,
}

/// Parameters of Kiln.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KilnSpec {
    /// The capacity of the STT-RAM last level as a multiple of the machine's own, a power of two; it shrinks with the
    /// machine by itself (Hercules, Table 2: 64 MB where SRAM has 16 MB).
    #[schemars(range(min = 1, max = 64))]
    pub llc_size_factor: u32,
    /// Cycles of a hit in the last level (Hercules: 40; TC: 10 ns).
    #[schemars(range(min = 1, max = 10_000))]
    pub llc_read_latency_cycles: Cycle,
    /// Cycles of a write into the last level, and of the change of states that a commit makes (Hercules: 50; TC: 10 ns).
    #[schemars(range(min = 1, max = 10_000))]
    pub llc_write_latency_cycles: Cycle,
    /// Ports of the last level for each core of the machine, as for a slice beside each core; all accesses to its array
    /// share them (DEVIATIONS.md, kiln-llc-ports).
    #[schemars(range(min = 1, max = 64))]
    pub llc_ports_per_core: u32,
    /// Banks of the last level with a port each, which take lines in turns, a power of two up to 64; without it an access takes
    /// any port that is free (DEVIATIONS.md, kiln-llc-ports).
    pub llc_banks: Option<u32>,
    /// When a line from memory is written there (DEVIATIONS.md, kiln-llc-ports).
    pub llc_fills: LlcFills,
    /// The accesses that are pipelined there (DEVIATIONS.md, kiln-llc-ports).
    pub llc_pipelined: Pipelined,
    /// Entries of the FIFO of the L1D, and of that of the L2 if there is one, of each core (DEVIATIONS.md, kiln-fifo).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub fifo_entries: u32,
    /// Cycles for each entry that a commit takes from a FIFO (DEVIATIONS.md, kiln-fifo).
    #[schemars(range(min = 0, max = 1000))]
    pub fifo_walk_cycles: Cycle,
    /// Occupancy of the FIFOs of a core from which the fall-back path makes room, in percent (TC takes 90 for its own
    /// fall-back path; DEVIATIONS.md, kiln-overflow).
    #[schemars(range(min = 1, max = 100))]
    pub overflow_percent: u32,
    /// The queue with that occupancy (DEVIATIONS.md, kiln-overflow).
    pub overflow_of: OverflowOf,
    /// Lines that the fall-back path copies at a time (DEVIATIONS.md, background-concurrency).
    #[schemars(range(min = 1, max = 1024))]
    pub copies_in_flight: u32,
    /// Old lines that the area of the fall-back path holds (DEVIATIONS.md, kiln-overflow).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub copy_area_lines: u32,
    /// The requests that wait while a commit is flushed (DEVIATIONS.md, kiln-blocking).
    pub blocked_requests: Blocking,
    /// The place of the committed version of a line meanwhile (DEVIATIONS.md, kiln-home-first).
    pub versions: Versions,
    /// Whether uncommitted lines are no victims of the last level while it has others: the cost in misses is what they
    /// displace (TC, section 5.2).
    pub pinned_lines: bool,
    /// Bits of a TxID: one transaction less can be open at a time than there are numbers (DEVIATIONS.md, kiln-txid).
    #[schemars(range(min = 1, max = 48))]
    pub tx_id_bits: u32,
}

impl Default for KilnSpec {
    fn default() -> Self {
        KilnSpec {
            llc_size_factor: 4,
            llc_read_latency_cycles: 40,
            llc_write_latency_cycles: 50,
            llc_ports_per_core: 1,
            llc_banks: None,
            llc_fills: LlcFills::Beside,
            llc_pipelined: Pipelined::Reads,
            fifo_entries: 64,
            fifo_walk_cycles: 1,
            overflow_percent: 90,
            overflow_of: OverflowOf::Fifos,
            copies_in_flight: 4,
            copy_area_lines: 16384,
            blocked_requests: Blocking::All,
            versions: Versions::HomeFirst,
            pinned_lines: true,
            tx_id_bits: 16,
        }
    }
}

impl KilnSpec {
    /// Refuses what cannot be built.
    pub fn check(&self) -> Result<(), SpecError> {
        check_ranges(self)?;
        if !self.llc_size_factor.is_power_of_two() {
            let problem = format!("{} is not a power of two", self.llc_size_factor);
            return Err(SpecError::new("llc_size_factor", problem));
        }
        if let Some(banks) = self.llc_banks.filter(|banks| !banks.is_power_of_two() || *banks > 64) {
            let problem = format!("{banks} is not a power of two up to 64");
            return Err(SpecError::new("llc_banks", problem));
        }
        if self.llc_banks.is_some() && self.llc_ports_per_core != 1 {
            let problem = format!("{} has no effect where there are llc_banks", self.llc_ports_per_core);
            return Err(SpecError::new("llc_ports_per_core", problem));
        }
        Ok(())
    }

    /// The last level becomes one of STT-RAM. Parameters that [`KilnSpec::check`] refuses change nothing.
    pub(super) fn adapt(&self, geometry: &mut Geometry) {
        if self.check().is_err() {
            return;
        }
        geometry.llc.sets = geometry.llc.sets.saturating_mul(self.llc_size_factor).min(1 << 24);
        // Its paper gives one latency, which includes that of the tags without naming it.
        geometry.llc.latency_cycles = self.llc_read_latency_cycles;
        geometry.llc.tag_latency_cycles = self.llc_read_latency_cycles;
        let (read, write) = (self.llc_read_latency_cycles, self.llc_write_latency_cycles);
        geometry.llc_ports = Some(LlcPorts {
            ports: self.llc_banks.unwrap_or(self.llc_ports_per_core * u32::from(geometry.cores)),
            by_address: self.llc_banks.is_some(),
            fills_first: self.llc_fills == LlcFills::First,
            read_busy_cycles: busy_cycles(read, self.llc_pipelined != Pipelined::None),
            write_latency_cycles: write,
            write_busy_cycles: busy_cycles(write, self.llc_pipelined == Pipelined::All),
        });
    }

    /// Entries of the FIFOs of a core: each private level has one FIFO.
    pub(super) fn fifo_capacity(&self, geometry: &Geometry) -> usize {
        geometry.levels().private().len() * self.fifo_entries as usize
    }

    /// The number of lines in FIFOs that is too many for the queue that starts the fall-back path.
    pub(super) fn overflow_capacity(&self, geometry: &Geometry) -> usize {
        match self.overflow_of {
            OverflowOf::Fifos => self.fifo_capacity(geometry),
            OverflowOf::L1dFifo => self.fifo_entries as usize,
            OverflowOf::RequestQueue => geometry.write_queue_entries as usize * usize::from(geometry.controllers),
        }
    }

    /// Bits that Kiln adds to the hierarchy: a persistent bit, a TxID and two bits of state for each line, the FIFOs, and the
    /// registers. Where upper levels survive, nothing is flushed and there are no FIFOs.
    pub fn cost(&self, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let (cores, id_bits) = (u64::from(g.cores), u64::from(self.tx_id_bits));
        for &level in g.levels().all() {
            let instances = g.instances(level);
            let lines = g.level(level).lines();
            cost.add(&format!("persistent bits {}", level.name()), lines, instances);
            cost.add(&format!("TxIDs {}", level.name()), lines * id_bits, instances);
            cost.add(&format!("states {}", level.name()), 2 * lines, instances);
            if level == LevelId::Llc && self.versions == Versions::TwoInLlc {
                cost.add("older versions llc", lines, 1);
            }
            if level != LevelId::Llc && g.domain != Domain::Eadr {
                let entry = id_bits + location_bits(g.level(level));
                cost.add(&format!("FIFO {}", level.name()), entry * u64::from(self.fifo_entries), instances);
            }
        }
        cost.add("TxID register", id_bits, cores);
        cost.add("committing TxID register, nonvolatile", id_bits, cores);
        cost.add("next TxID register", id_bits, 1);
        cost.add("next place of the copy area", u64::from(u32::BITS - self.copy_area_lines.leading_zeros()), 1);
        cost
    }
}

/// Bits that name a way of a set.
fn location_bits(level: &LevelGeometry) -> u64 {
    u64::from(u64::BITS - (u64::from(level.sets) * u64::from(level.ways) - 1).leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kiln;
    use crate::testing::geometry;

    #[test]
    fn the_last_level_gets_four_times_the_lines_and_latencies_of_its_own() {
        let spec = KilnSpec::default();
        let mut machine = geometry::<Kiln>(&spec, 2);
        let lines = machine.llc.lines();
        spec.adapt(&mut machine);
        assert_eq!((machine.llc.lines(), machine.llc.latency_cycles), (4 * lines, 40));
        assert_eq!(machine.llc.tag_latency_cycles, 40);
        let ports = LlcPorts {
            ports: 2,
            by_address: false,
            fills_first: false,
            read_busy_cycles: 1,
            write_latency_cycles: 50,
            write_busy_cycles: 50,
        };
        assert_eq!(machine.llc_ports, Some(ports), "one beside each core");
        let same = KilnSpec { llc_size_factor: 3, ..spec };
        let mut other = machine.clone();
        same.adapt(&mut other);
        assert_eq!(other, machine, "what is refused changes nothing");
        assert_eq!(same.check().unwrap_err().field, "llc_size_factor");
    }

    #[test]
    fn an_access_keeps_its_port_for_its_latency_unless_it_is_pipelined() {
        for (llc_pipelined, read, write) in
            [(Pipelined::None, 40, 50), (Pipelined::Reads, 1, 50), (Pipelined::All, 1, 1)]
        {
            let spec = KilnSpec { llc_pipelined, llc_ports_per_core: 4, ..KilnSpec::default() };
            let mut machine = geometry::<Kiln>(&spec, 2);
            spec.adapt(&mut machine);
            let ports = machine.llc_ports.unwrap();
            assert_eq!((ports.ports, ports.read_busy_cycles, ports.write_busy_cycles), (8, read, write));
        }
    }

    #[test]
    fn banks_replace_the_ports_beside_the_cores() {
        for banks in [1, 2, 8] {
            let spec = KilnSpec { llc_banks: Some(banks), llc_fills: LlcFills::First, ..KilnSpec::default() };
            let mut machine = geometry::<Kiln>(&spec, 4);
            spec.adapt(&mut machine);
            let ports = machine.llc_ports.unwrap();
            assert_eq!((ports.ports, ports.by_address, ports.fills_first), (banks, true, true));
        }
    }

    #[test]
    fn every_range_is_held() {
        let refused = |change: fn(&mut KilnSpec)| {
            let mut spec = KilnSpec::default();
            change(&mut spec);
            spec.check().unwrap_err().field
        };
        assert_eq!(refused(|s| s.llc_read_latency_cycles = 0), "llc_read_latency_cycles");
        assert_eq!(refused(|s| s.llc_write_latency_cycles = 20_000), "llc_write_latency_cycles");
        assert_eq!(refused(|s| s.llc_ports_per_core = 0), "llc_ports_per_core");
        assert_eq!(refused(|s| s.llc_banks = Some(3)), "llc_banks");
        assert_eq!(refused(|s| (s.llc_banks, s.llc_ports_per_core) = (Some(2), 2)), "llc_ports_per_core");
        assert_eq!(refused(|s| s.fifo_entries = 0), "fifo_entries");
        assert_eq!(refused(|s| s.fifo_walk_cycles = 2000), "fifo_walk_cycles");
        assert_eq!(refused(|s| s.overflow_percent = 101), "overflow_percent");
        assert_eq!(refused(|s| s.copies_in_flight = 0), "copies_in_flight");
        assert_eq!(refused(|s| s.copy_area_lines = 0), "copy_area_lines");
        assert_eq!(refused(|s| s.tx_id_bits = 0), "tx_id_bits");
    }

    #[test]
    fn the_cost_counts_every_line_and_fifo() {
        let spec = KilnSpec::default();
        let machine = geometry::<Kiln>(&spec, 2);
        let bits = |cost: &HardwareCost, name: &str| {
            cost.structures.iter().find(|s| s.name == name).map(|s| (s.bits, s.instances))
        };
        let cost = spec.cost(&machine);
        assert_eq!(bits(&cost, "TxIDs llc"), Some((64 * 16, 1)));
        assert_eq!(bits(&cost, "states l2"), Some((2 * 32, 2)));
        // Sixteen lines in the L1D: four bits say which.
        assert_eq!(bits(&cost, "FIFO l1d"), Some((64 * (16 + 4), 2)));
        assert_eq!(bits(&cost, "committing TxID register, nonvolatile"), Some((16, 2)));
        let eadr = spec.cost(&Geometry { domain: Domain::Eadr, ..machine });
        assert_eq!(bits(&eadr, "FIFO l1d"), None);
    }
}
