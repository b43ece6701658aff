//! The result of a campaign, as JSON users see it.

use crate::causes::Causes;
use crate::limits::RecoveryLimits;
use crate::persistency_model::PersistencyModel;
use crate::timeline_document::Timeline;
use crate::trial_checks::TrialChecks;
use durasim_machine::{Host, Provenance};
use durasim_types::Stats;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A crash after which the promise was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The argument for `--replay`.
    pub id: String,
    /// The oracle that objected: `bytes`, `history`, `guest`, `recovery`, `termination` (it does not end), several joined
    /// by `+`.
    pub oracle: String,
    /// Whether other oracles looked at the same contents and had nothing to object.
    pub disagreement: bool,
    /// The objection.
    pub message: String,
    /// Failing trials with this oracle and this message, this one included; listed or not.
    pub alike: u64,
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
    /// Durability design.
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
    /// Trials: each an image, its recovery, and what all oracles say.
    pub trials: u64,
    /// Trials by what failed: `clean`, `torn`, `reorder`, `energy`; `nested` and `recrash` where power fails more than once,
    /// with the kinds of all power failures that are not clean, as in `nested+reorder`.
    pub trials_by_fault: BTreeMap<String, u64>,
    /// Of the faults asked for, those for which there was nothing to try, each with the reason.
    pub not_tried: BTreeMap<String, String>,
    /// The persistency model whose images were taken; null if those of the machine were.
    pub persistency_model: Option<PersistencyModel>,
    /// Whether it is a negative control: a control variant, or `--control`.
    pub control: bool,
    /// Crash points at which a clean power failure loses a dirty line of persistent memory. If there is none, a negative
    /// control shows little.
    pub points_at_risk: u64,
    /// Trials after which the promise was broken.
    pub violations: u64,
    /// Those of them in which recovery, check or further work did not end within its limit.
    pub hangs: u64,
    /// Those of them in which oracles that looked at the same contents did not agree.
    pub disagreements: u64,
    /// Trials in which energy ended early and recovery said so.
    pub losses_reported: u64,
    /// The most recoveries that failed in a row in one trial.
    pub nested_depth_max: u64,
    /// Trials by the wall time of the crashed run and its judging, and by threads of the host that judged.
    pub trials_per_s_per_core: f64,
    /// The number of trials that each oracle has judged. The result of a recovery that was cut is not judged again if
    /// it equals the result without the cut. `bytes` judges where data are declared and stored.
    pub judged_by: BTreeMap<String, u64>,
    /// The first failing trials, by event.
    pub failures: Vec<Failure>,
    /// Persist events by kind.
    pub events_by_kind: BTreeMap<String, u64>,
    /// Rare situations of the design and the machine, and how many crash points fell into each.
    pub marks: BTreeMap<String, u64>,
    /// Of a replay, what became of the lines involved; null for a campaign.
    pub timeline: Option<Timeline>,
    /// The causes of the violations of a program of the user's own, as far as they are found; null for a workload and
    /// without violations. A replay tests none of them.
    pub causes: Option<Causes>,
    /// With `check_output`, what the check wrote in each listed failure, and in a replay; null without.
    pub check_outputs: Option<Vec<TrialChecks>>,
    /// The limits of recovery, check and further work in a trial.
    pub limits: RecoveryLimits,
    /// Cost on the host.
    pub host: Host,
    /// The origin of the run that was crashed.
    pub provenance: Provenance,
    /// The machine and the design's parameters, as they were after all overrides.
    pub configuration: Value,
    /// Every counter of the run that was crashed.
    pub stats: Stats,
}
