//! The keys of the topology `mesh`: to be given where it is chosen, refused elsewhere.

use super::{InterconnectConfig, LATENCY_MAX, Topology, refuse};
use crate::setup::config::MachineConfig;
use durasim_types::{Clock, ConfigError, Cycle};

/// Cycles into a router or out of it at most.
const ROUTER_CYCLES_MAX: Cycle = 1000;

/// Tiles in a row, and rows, at most.
const TILES_MAX: u32 = 16;

impl InterconnectConfig {
    /// The shape of the mesh, in columns and rows, if there is one.
    pub(super) fn mesh_shape(&self) -> Option<(u32, u32)> {
        self.mesh_columns.zip(self.mesh_rows)
    }

    /// Cycles that everything takes more that a remote controller sends.
    pub(crate) fn remote_response_cycles(&self, clock: Clock) -> Cycle {
        clock.cycles(self.remote_response_ns.unwrap_or(0) * 1000)
    }

    /// Refuses a mesh that cannot be built, keys of a mesh where there is none, and keys that a mesh makes meaningless.
    pub(super) fn check_mesh(&self, machine: &MachineConfig) -> Result<(), ConfigError> {
        if self.topology != Topology::Mesh {
            return self.check_no_mesh();
        }
        self.check_no_fixed_paths()?;
        self.check_tiles(machine)?;
        self.check_controllers(machine)?;
        self.check_remote(machine)
    }

    fn check_no_mesh(&self) -> Result<(), ConfigError> {
        let keys = [
            ("mesh_columns", self.mesh_columns.is_some()),
            ("mesh_rows", self.mesh_rows.is_some()),
            ("hop_cycles", self.hop_cycles.is_some()),
            ("router_ports", self.router_ports.is_some()),
            ("router_entry_cycles", self.router_entry_cycles.is_some()),
            ("router_exit_cycles", self.router_exit_cycles.is_some()),
            ("controller_tiles", self.controller_tiles.is_some()),
            ("remote_controllers", self.remote_controllers.is_some()),
            ("remote_response_ns", self.remote_response_ns.is_some()),
        ];
        match keys.iter().find(|(_, given)| *given) {
            Some((name, _)) => refuse(name, "only the topology 'mesh' has tiles".into()),
            None => Ok(()),
        }
    }

    /// On a mesh the ends of a message say how long it travels. A fixed latency beside the hops would be charged to messages
    /// whose ends are on one tile too, and a link of a controller would be a second one after the last link of the route.
    fn check_no_fixed_paths(&self) -> Result<(), ConfigError> {
        let keys = [
            ("core_to_controller_cycles", self.core_to_controller_cycles.is_some()),
            ("controller_to_core_cycles", self.controller_to_core_cycles.is_some()),
            ("memory_request_cycles", self.memory_request_cycles.is_some()),
            ("memory_response_cycles", self.memory_response_cycles.is_some()),
            ("controller_link_bytes", self.controller_link_bytes.is_some()),
        ];
        match keys.iter().find(|(_, given)| *given) {
            Some((name, _)) => refuse(name, "on a mesh hops and links say what a message takes: leave it out".into()),
            None => Ok(()),
        }
    }

    fn check_tiles(&self, machine: &MachineConfig) -> Result<(), ConfigError> {
        for (name, value) in [("mesh_columns", self.mesh_columns), ("mesh_rows", self.mesh_rows)] {
            let Some(value) = value else { return refuse(name, "a mesh has to be given it".into()) };
            if !(1..=TILES_MAX).contains(&value) {
                return refuse(name, format!("{value} is not between 1 and {TILES_MAX}"));
            }
        }
        let (columns, rows) = self.mesh_shape().expect("both were just looked at");
        if columns * rows < machine.cores.into() {
            let (tiles, cores) = (columns * rows, machine.cores);
            return refuse(
                "mesh_columns",
                format!("{columns} times {rows} are {tiles} tiles, too few for {cores} cores"),
            );
        }
        let Some(hop_cycles) = self.hop_cycles else { return refuse("hop_cycles", "a mesh has to be given it".into()) };
        let hops_max = Cycle::from(columns + rows - 2).max(1);
        if !(1..=LATENCY_MAX / hops_max).contains(&hop_cycles) {
            let problem = format!(
                "{hop_cycles} is not between 1 and {}: the longest route has to take at most {LATENCY_MAX} cycles",
                LATENCY_MAX / hops_max
            );
            return refuse("hop_cycles", problem);
        }
        for (name, cycles) in
            [("router_entry_cycles", self.router_entry_cycles), ("router_exit_cycles", self.router_exit_cycles)]
        {
            if let Some(cycles) = cycles.filter(|&cycles| cycles > ROUTER_CYCLES_MAX) {
                return refuse(name, format!("{cycles} is more than {ROUTER_CYCLES_MAX} cycles"));
            }
        }
        match self.link_width_bytes {
            None => refuse("link_width_bytes", "a mesh has to be given it".into()),
            Some(_) => Ok(()),
        }
    }

    fn check_controllers(&self, machine: &MachineConfig) -> Result<(), ConfigError> {
        const NAME: &str = "controller_tiles";
        let Some(tiles) = &self.controller_tiles else { return refuse(NAME, "a mesh has to be given it".into()) };
        let (given, there_are) = (tiles.len(), machine.controllers());
        if given != there_are {
            return refuse(NAME, format!("{given} tiles for {there_are} controllers"));
        }
        let (columns, rows) = self.mesh_shape().expect("the tiles were looked at before");
        match tiles.iter().find(|&&tile| tile >= columns * rows) {
            Some(tile) => refuse(NAME, format!("{tile} is not one of the {} tiles, counted from 0", columns * rows)),
            None => Ok(()),
        }
    }

    fn check_remote(&self, machine: &MachineConfig) -> Result<(), ConfigError> {
        const NAME: &str = "remote_controllers";
        let remote = self.remote_controllers.as_deref().unwrap_or_default();
        let controllers = machine.controllers();
        for (index, number) in remote.iter().enumerate() {
            if *number as usize >= controllers {
                return refuse(NAME, format!("{number} is not one of the {controllers} controllers, counted from 0"));
            }
            if remote[..index].contains(number) {
                return refuse(NAME, format!("{number} stands twice"));
            }
        }
        let ns_max = LATENCY_MAX * 1000 / machine.frequency_mhz;
        match self.remote_response_ns {
            Some(_) if remote.is_empty() => refuse("remote_response_ns", format!("{NAME} names no controller")),
            Some(ns) if !(1..=ns_max).contains(&ns) => {
                let problem = format!("{ns} is not between 1 and {ns_max}: at most {LATENCY_MAX} cycles");
                refuse("remote_response_ns", problem)
            }
            None if !remote.is_empty() => refuse("remote_response_ns", format!("{NAME} have to be given it")),
            _ => Ok(()),
        }
    }
}
