//! The connections between the parts of a machine.

mod mesh;

use super::MachineConfig;
use durasim_types::{ConfigError, Cycle};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl From<Inclusion> for durasim_contract::Inclusion {
    fn from(inclusion: Inclusion) -> Self {
        match inclusion {
            Inclusion::Inclusive => durasim_contract::Inclusion::Inclusive,
            Inclusion::NonInclusive => durasim_contract::Inclusion::NonInclusive,
            Inclusion::Exclusive => durasim_contract::Inclusion::Exclusive,
        }
    }
}

/// Connection of private caches and the last level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Links on which no message waits for another one.
    #[default]
    Uniform,
    /// A link into each bank of the last level and one into each core; a link carries one message at a time.
    Crossbar,
    /// A two-dimensional mesh of tiles, each with a core and a bank of the last level; memory controllers sit on some of them.
    /// Every message takes a route, and links carry one message at a time.
    Mesh,
}

/// The component that answers a clean of a line that is clean in the caches of a core
/// [D:clean-lines].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CleanLineAnswer {
    /// The memory controller of the line.
    #[default]
    Controller,
    /// The last level.
    Llc,
}

/// Owners of the ports between a router of a mesh and its tile: one into the router and one out of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouterPorts {
    /// Each core, bank of the last level and memory controller.
    #[default]
    PerEnd,
    /// Each tile, for all that is on it.
    PerTile,
}

/// As in gem5's classic caches.
const fn write_back_buffers() -> u32 {
    8
}

/// Cycles of a message at most.
const LATENCY_MAX: Cycle = 100_000;

/// Connections of the parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterconnectConfig {
    /// Inclusion of the levels below the L1D.
    pub inclusion: Inclusion,
    /// Connection of private caches and the last level.
    #[serde(default)]
    pub topology: Topology,
    /// `crossbar`: banks of the last level, among which lines take turns, a power of two. 8 if not given (DEVIATIONS.md,
    /// crossbar).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llc_banks: Option<u32>,
    /// `crossbar`: bytes of a line that a link carries in a cycle. 32 if not given (likewise). `mesh`: bytes of data that a
    /// link between two tiles carries in a cycle; to be given. A power of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_width_bytes: Option<u32>,
    /// `mesh`: tiles in a row, 1 to 16; to be given. Core i and bank i of the last level are on tile i, counted row by row
    /// from 0. There may be more tiles than cores: each has a bank, and lines take turns among all banks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_columns: Option<u32>,
    /// `mesh`: rows of tiles, 1 to 16; to be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_rows: Option<u32>,
    /// `mesh`: cycles that the head of a message takes from a tile to the next one; to be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop_cycles: Option<Cycle>,
    /// `mesh`: what has ports of its own into the router of its tile and out of it, each as wide as a link. `per-end` if not
    /// given (DEVIATIONS.md, lad-machine).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router_ports: Option<RouterPorts>,
    /// `mesh`: cycles that the head of a message takes from its sender into the router of the tile. 0 if not given. Between
    /// ends on one tile no message takes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router_entry_cycles: Option<Cycle>,
    /// `mesh`: cycles that it takes out of the router to its receiver. Likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router_exit_cycles: Option<Cycle>,
    /// `mesh`: the tile of each memory controller, those of persistent memory first, then those of the DRAM if it has
    /// controllers of its own; to be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_tiles: Option<Vec<u32>>,
    /// `mesh`: the controllers, by their numbers in `controller_tiles`, whose answers take `remote_response_ns` more, as if
    /// they belonged to another socket. None if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_controllers: Option<Vec<u32>>,
    /// `mesh`: nanoseconds that everything takes more that a remote controller sends: data, acknowledgements and messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_response_ns: Option<u64>,
    /// Cycles that a request takes per level on its way down, beside the latency of the level it leaves.
    #[serde(default)]
    pub request_cycles: Cycle,
    /// Cycles that an answer takes per level on its way up.
    pub response_cycles: Cycle,
    /// Not on a mesh: cycles of a request from the LLC to a memory controller. 0 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_request_cycles: Option<Cycle>,
    /// Not on a mesh: cycles of data from a memory controller to the LLC. 0 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_response_cycles: Option<Cycle>,
    /// Not on a mesh: cycles of a message from a core to a memory controller: a cleaned line, a record of a log, a message of a
    /// design. If not given, the look-ups of a clean: the latencies of L1D, L2, if there is one, and LLC with the requests
    /// between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_to_controller_cycles: Option<Cycle>,
    /// Not on a mesh: cycles of a message from a memory controller to a core, such as an acknowledgement. If not given, those
    /// of an answer through the levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_to_core_cycles: Option<Cycle>,
    /// Not on a mesh: bytes of data that the link into a memory controller carries in a cycle, and the link out of it.
    /// Requests and acknowledgements have channels of their own, one message per cycle. 16 if not given, as in gem5's system
    /// crossbar (DEVIATIONS.md, hops).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_link_bytes: Option<u32>,
    /// Each message to or from a controller, except reads, takes a drawn number of cycles more, from 0 to this: for crash
    /// campaigns.
    #[serde(default)]
    pub path_jitter_cycles: Cycle,
    /// Cycles from the directory to the private caches of another core, beside the latency of the slowest
    /// level there that has a copy.
    pub snoop_cycles: Cycle,
    /// The component that answers a cache-block operation on a line of persistent memory that no cache has dirty: `controller` or `llc`. A
    /// fence waits for the answer, which nothing is written for.
    #[serde(default)]
    pub clean_line_answer: CleanLineAnswer,
    /// Dirty lines that each L1D may have in flight to the level below it; a miss whose victim finds none free waits.
    #[serde(default = "write_back_buffers")]
    pub l1d_write_back_buffers: u32,
    /// Dirty lines that each L2 may have in flight to the LLC. 8 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_write_back_buffers: Option<u32>,
    /// Lines that may wait between the LLC and the write queues before a miss has to wait.
    pub write_back_buffers: u32,
}

/// Refuses what a key of this section says.
fn refuse(name: &str, problem: String) -> Result<(), ConfigError> {
    Err(ConfigError::new(format!("interconnect.{name}"), problem))
}

impl InterconnectConfig {
    /// Gives values to what was not set and has a meaning here.
    pub(super) fn complete(&mut self, has_l2: bool) {
        if has_l2 {
            self.l2_write_back_buffers = Some(self.l2_write_back_buffers());
        }
        if self.topology == Topology::Crossbar {
            self.llc_banks = Some(self.llc_banks());
            self.link_width_bytes = Some(self.link_width_bytes());
        }
        if self.topology == Topology::Mesh {
            self.router_ports = Some(self.router_ports());
            self.router_entry_cycles.get_or_insert(0);
            self.router_exit_cycles.get_or_insert(0);
        } else {
            self.memory_request_cycles = Some(self.memory_request_cycles());
            self.memory_response_cycles = Some(self.memory_response_cycles());
            self.controller_link_bytes = Some(self.controller_link_bytes());
        }
    }

    /// Owners of router ports.
    pub(crate) fn router_ports(&self) -> RouterPorts {
        self.router_ports.unwrap_or_default()
    }

    /// Banks of the last level.
    pub(crate) fn llc_banks(&self) -> u32 {
        self.llc_banks.unwrap_or(8)
    }

    /// Banks that messages of designs can name: one on each tile, or those of the crossbar; without either the LLC is one.
    pub(crate) fn addressed_llc_banks(&self) -> u16 {
        match self.topology {
            Topology::Uniform => 1,
            Topology::Crossbar => self.llc_banks() as u16,
            Topology::Mesh => self.mesh_shape().map_or(1, |(columns, rows)| columns * rows) as u16,
        }
    }

    /// Dirty lines that each L2 may have in flight.
    pub(crate) fn l2_write_back_buffers(&self) -> u32 {
        self.l2_write_back_buffers.unwrap_or(write_back_buffers())
    }

    /// Bytes of a line that a link carries in a cycle.
    pub(crate) fn link_width_bytes(&self) -> u32 {
        self.link_width_bytes.unwrap_or(32)
    }

    /// Cycles of a request from the LLC to a memory controller.
    pub(crate) fn memory_request_cycles(&self) -> Cycle {
        self.memory_request_cycles.unwrap_or(0)
    }

    /// Cycles of data from a memory controller to the LLC.
    pub(crate) fn memory_response_cycles(&self) -> Cycle {
        self.memory_response_cycles.unwrap_or(0)
    }

    /// Bytes of data that a link of a memory controller carries in a cycle.
    pub(crate) fn controller_link_bytes(&self) -> u32 {
        self.controller_link_bytes.unwrap_or(16)
    }

    /// Refuses what cannot be built on `machine`, whose part this is.
    pub(super) fn check(&self, machine: &MachineConfig) -> Result<(), ConfigError> {
        if self.l2_write_back_buffers.is_some() && machine.l2.is_none() {
            return refuse("l2_write_back_buffers", "the machine has no L2 whose lines could wait there".into());
        }
        self.check_latencies()?;
        self.check_links()?;
        self.check_mesh(machine)
    }

    fn check_latencies(&self) -> Result<(), ConfigError> {
        if self.memory_request_cycles() > 1000 || self.memory_response_cycles() > 1000 {
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
        Ok(())
    }

    fn check_links(&self) -> Result<(), ConfigError> {
        let link_bytes = self.controller_link_bytes();
        if !(1..=4096).contains(&link_bytes) {
            return refuse("controller_link_bytes", format!("{link_bytes} is not between 1 and 4096"));
        }
        for (name, buffers) in [
            ("l1d_write_back_buffers", self.l1d_write_back_buffers),
            ("l2_write_back_buffers", self.l2_write_back_buffers()),
            ("write_back_buffers", self.write_back_buffers),
        ] {
            if !(1..=4096).contains(&buffers) {
                return refuse(name, format!("{buffers} is not between 1 and 4096"));
            }
        }
        for (name, value) in [("llc_banks", self.llc_banks), ("link_width_bytes", self.link_width_bytes)] {
            let Some(value) = value else { continue };
            match self.topology {
                Topology::Uniform => {
                    return refuse(name, "only the topologies 'crossbar' and 'mesh' have links that are shared".into());
                }
                Topology::Mesh if name == "llc_banks" => {
                    return refuse(name, "a mesh has a bank of the last level on each tile".into());
                }
                Topology::Crossbar | Topology::Mesh => {}
            }
            if !value.is_power_of_two() || value > 64 {
                return refuse(name, format!("{value} is not a power of two up to 64"));
            }
        }
        Ok(())
    }
}
