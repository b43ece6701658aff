//! The contract between the machine and a durability design. Three traits: [`Durability`] answers at the fixed points of
//! the machine, [`Stateful`] names the state for digests, copies and snapshots, [`Design`] describes, builds, recovers and
//! prices a design.
//!
//! A design never reaches into a cache or a queue. It gives a verdict and a list of [`Action`]s; the machine carries
//! them out, in order, each change of durable state as one step.

mod action;
mod backend;
pub mod check_faults;
mod checks;
mod cost;
mod crash;
mod geometry;
mod hooks;
pub mod path_faults;
mod planted;
mod ranges;
mod registry;
pub mod snapshot;
mod state;
mod verdict;

pub use action::{Action, Actions, CopyRequest, Message, Node, Origin, Payload};
pub use backend::Backend;
pub use checks::{Checks, ChecksResult};
pub use cost::{HardwareCost, Structure};
pub use crash::{
    BudgetSpent, CachedLine, CrashImage, CrashSink, CrashView, ImageWrite, RecoveryCut, RecoveryReport, StagedWrite,
};
pub use geometry::{
    Geometry, Inclusion, Interleave, LevelGeometry, LevelId, Levels, LlcPorts, PmRegion, RegionRequest, SpecError,
    bank_of,
};
pub use hooks::{
    AbortCause, AnyState, Arrival, Ctx, Departure, Durability, Hooks, LineTag, Load, LogBlock, Occupancy, Request,
    Store, Trap,
};
pub use planted::{ActiveFault, PlantedFault};
pub use ranges::check_ranges;
pub use registry::{BuildResult, Design, ErasedDesign, Interface, Locking, Promise, Variant};
pub use state::Stateful;
pub use verdict::{
    Accept, BeginRule, CommitRule, Evict, Fill, FlushVerdict, Gate, Gather, Merge, Overlay, Part, Probe, Scanned,
    Signal, Token, Wait,
};
