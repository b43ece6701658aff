//! The machine: it wires cores, caches, controllers, a durability design and a guest program together and runs them.
//!
//! Flow, one way: the core executes, its [`durasim_core::Port`] is the [`System`], which walks the caches and the
//! controllers, asks the design at fixed points and carries out what it asks for.

mod budget;
mod config;
mod detached_program;
mod filter_statistics;
mod fork;
mod functional;
mod hardware_threads;
mod kernel;
mod latency;
mod machine;
mod measure;
mod metrics;
mod pauses;
mod port;
pub mod presets;
mod provenance;
mod request;
mod result;
mod run;
mod scheduler;
mod session;
mod shrink;
mod snapshot;
mod system;
mod turns;

pub use budget::{Budget, Exceeded, Unfinished};
pub use config::{
    CacheConfig, CleanLineAnswer, Inclusion, InterconnectConfig, MachineConfig, PersistBufferConfig, RouterPorts,
    Topology,
};
pub use durasim_kernel::{Output, PmemPool, Stream, Symbols};
pub use functional::{FunctionalEnding, FunctionalRegion, LoadedProgram, TxLines, TxProfile, run_functionally};
pub use machine::{Captured, Ending, Machine, PoolContents, Program, memory_map, read_elf};
pub use metrics::{AccessesPerTx, Bytes, Latencies, Metrics, Phase, Phases};
pub use pauses::{PauseConfig, PlacePauseConfig};
pub use provenance::Provenance;
pub use request::{Origin, Prepared, RunRequest, configuration, prepare};
pub use result::{Host, Region, RunResult};
pub use run::{profile, run};
pub use session::Session;
pub use snapshot::{Snapshot, SnapshotDescription};
pub use system::{
    AbortedBy, CoherenceStats, CopyLocation, DRAM_BASE, LineCopy, Observer, PMEM_BASE, Plan, PowerFailureChoices,
    PowerFailureOptions, PowerFailureResult, ReplayStats, System, TxStats,
};
