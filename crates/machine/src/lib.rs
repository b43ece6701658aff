//! The machine: it wires cores, caches, controllers, a durability design and a guest program together and runs them.
//!
//! Flow, one way: the core executes, its [`durasim_core::Port`] is the [`System`], which walks the caches and the
//! controllers, asks the design at fixed points and carries out what it asks for.
//!
//! The modules are layers, lowest first: `setup` (what a run is built from), `statistics`, `parts` of the memory system,
//! `system` with its `inspection`, `work` and `requests`, `machine`, `functional` execution, `runs`. No module imports from a
//! higher one.

mod functional;
mod machine;
mod parts;
mod runs;
mod setup;
mod statistics;
mod system;

pub use durasim_core::{StallKind, StallSlice};
pub use durasim_isa::DataAccess;
pub use durasim_kernel::{
    CallStacks, Instructions, Output, PmemPool, SourceFrame, SourceLines, Stream, Symbols, ThreadId,
};
pub use functional::FunctionalRegion;
pub use functional::LoadedProgram;
pub use functional::{FunctionalEnding, run_functionally};
pub use functional::{TxLines, TxProfile};
pub use machine::debugging::{SingleStep, ThreadView};
pub use machine::snapshot::{Snapshot, SnapshotDescription};
pub use machine::stall_traces::CoreStalls;
pub use machine::{Ending, Machine};
pub use parts::caches::CoherenceStats;
pub use runs::provenance::Provenance;
pub use runs::result::{Host, Region, RunResult};
pub use runs::run::{profile, run};
pub use runs::session::Session;
pub use setup::budget::{Budget, Exceeded, MEMORY_MIB, Unfinished};
pub use setup::config::{CacheConfig, MachineConfig, PersistBufferConfig};
pub use setup::config::{CleanLineAnswer, Inclusion, InterconnectConfig, RouterPorts, Topology};
pub use setup::inserted::{Inserted, Insertion};
pub use setup::memory_map::{DRAM_BASE, PMEM_BASE};
pub use setup::pauses::{PauseConfig, PlacePauseConfig};
pub use setup::plan::Plan;
pub use setup::presets;
pub use setup::program::{Captured, PoolContents, Program, memory_map, read_elf};
pub use setup::request::{Origin, Prepared, RunRequest, configuration, prepare};
pub use statistics::metrics::{AccessesPerTx, Bytes, Latencies, Metrics, Phase, Phases};
pub use statistics::persistence::{PersistenceLine, PersistenceReport, PersistenceUse};
pub use statistics::transactions::{AbortedBy, ReplayStats, TxStats};
pub use system::inspection::copy_locations::{CopyLocation, LineCopy};
pub use system::inspection::crash::{DistinctImages, PowerFailureChoices, PowerFailureOptions, PowerFailureResult};
pub use system::{Observer, System};
