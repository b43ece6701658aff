//! Provenance of a run, as its result reports it: no path that it writes to and no time of day, so that equal requests
//! give equal bytes.

use crate::setup::request::{Prepared, RunRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Provenance of a run, beside machine, design, threads and seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Hash of the sources that durasim was built from.
    pub durasim_build: String,
    /// Scale of machine, design and data, relative to the sizes of the paper.
    pub scale: String,
    /// Arguments of the workload by name, with defaults filled in; empty for a program.
    pub workload_args: Map<String, Value>,
    /// Parameters of machine and design that were set for this run, as path.to.key=value.
    pub set: Vec<String>,
    /// The compiler of the guest program; null for a program of the user.
    pub guest_compiler: Option<String>,
    /// BLAKE3 of the guest program.
    pub elf_hash: String,
    /// Its arguments.
    pub elf_args: Vec<String>,
    /// Its environment, as NAME=value.
    pub env: Vec<String>,
    /// The snapshot point up to which the run was functional, or roi; null if it was not.
    pub fast_forward: Option<String>,
    /// Whether the whole run was functional, without caches and time.
    pub functional: bool,
    /// Whether caches and predictors were trained for what starts after a snapshot point.
    pub warm: bool,
    /// BLAKE3 of the snapshot that the run resumed from; null if it did not.
    pub snapshot_hash: Option<String>,
    /// Hash of the pool that the run started with; null if that was fresh.
    pub pool_hash: Option<String>,
    /// The limit of instructions; null without one.
    pub max_instructions: Option<u64>,
    /// Whether the run was to stop at the end of the region of interest.
    pub stop_after_roi: bool,
}

impl Provenance {
    /// Provenance of the run of this request.
    pub fn of(request: &RunRequest, prepared: &Prepared) -> Self {
        let origin = request.origin.clone();
        Provenance {
            durasim_build: origin.durasim_build,
            scale: origin.scale,
            workload_args: origin.workload_args,
            set: request.set.clone(),
            guest_compiler: origin.guest_compiler,
            elf_hash: blake3::hash(&prepared.program.elf).to_hex().to_string(),
            elf_args: request.args.clone(),
            env: request.env.clone(),
            fast_forward: request.fast_forward.clone(),
            functional: request.functional,
            warm: request.warm,
            snapshot_hash: prepared.snapshot_hash.clone(),
            pool_hash: prepared.pool_hash.clone(),
            max_instructions: request.max_instructions,
            stop_after_roi: request.stop_after_roi,
        }
    }
}
