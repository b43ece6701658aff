//! The result of a campaign, as JSON users see it.

use durasim_machine::Host;
use durasim_types::Stats;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A crash after which the promise was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What `--replay` takes: the number of the persist event, as `eN`.
    pub id: String,
    /// Who objected: `bytes`, `guest`, `recovery`.
    pub oracle: String,
    /// What was wrong.
    pub message: String,
    /// The command that replays it; the front end fills it in.
    pub command: String,
}

/// The result of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrashResult {
    /// Name and version of this document.
    pub schema: String,
    /// Version of durasim.
    pub durasim_version: String,
    /// Row of the registry.
    pub design: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of the machine.
    pub machine: String,
    /// Persistence domain.
    pub domain: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads of the guest.
    pub threads: u32,
    /// Operations of the workload.
    pub ops: Option<u64>,
    /// Persist events of the run.
    pub points: u64,
    /// Crashes tried.
    pub trials: u64,
    /// Crashes after which the promise was broken.
    pub violations: u64,
    /// The first failing crashes, by event.
    pub failures: Vec<Failure>,
    /// Persist events by kind.
    pub events_by_kind: BTreeMap<String, u64>,
    /// Rare situations of the design, and how many crashes fell into each.
    pub marks: BTreeMap<String, u64>,
    /// Cost on the host.
    pub host: Host,
    /// Every counter of the run that was crashed.
    pub stats: Stats,
}
