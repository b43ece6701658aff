//! The request of a campaign: a run, and the failures to try on it.

use crate::failure_kind::FailureKind;
use crate::persistency_model::PersistencyModel;
use crate::schedule::Points;
use durasim_machine::RunRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A judge of what a program of the user recovers, beside its check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProgramOracle {
    /// The output of its check.
    Output,
}

/// A campaign over one run. The sentence at a field is its help on the command line and in the Python package, which have
/// an option for every field that they do not set themselves (`SET_BY_CRASHES` in tools/generate_schemas.py).
///
/// `x-flag` is the name of the option if it differs from the field, `x-metavar` names its value, and `x-unit` is its unit.
/// `x-drawn` marks what decides which trials run: the id of a failure replaces it, all other options are part of the
/// command that replays a failure. `x-file` marks a key of campaign files. `x-elf` marks what only a program of the user
/// has; the package finds it for a workload. `x-internal` marks what the package sets, and no option.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CrashRequest {
    /// The run that is crashed.
    #[serde(flatten)]
    pub run: RunRequest,
    /// Persist events to crash at, spread over the run; exhaustive: all, with every image of reordered cleans and early evictions.
    #[serde(default = "points")]
    #[schemars(extend("x-metavar" = "all|exhaustive|N", "x-drawn" = true, "x-file" = true))]
    pub points: Points,
    /// Kinds of power failures (default: clean and nested for a workload, all with --elf); clean failures are always included.
    #[serde(default)]
    #[schemars(extend("x-flag" = "fault", "x-metavar" = "NAME", "x-drawn" = true, "x-file" = true))]
    #[schemars(extend("x-of-workloads" = FailureKind::OF_WORKLOADS.map(FailureKind::name)))]
    #[schemars(extend("x-under-models" = FailureKind::UNDER_MODELS.map(FailureKind::name)))]
    pub faults: Option<BTreeSet<FailureKind>>,
    /// Samples per crash point for faults with many possible outcomes; all outcomes if there are fewer.
    #[serde(default = "variants")]
    #[schemars(range(min = 1, max = 1024), extend("x-drawn" = true, "x-file" = true))]
    pub variants: u64,
    /// Replay only the failure with this id.
    #[serde(default)]
    #[schemars(extend("x-metavar" = "ID"))]
    pub replay: Option<String>,
    /// The lines that the timeline of a replay follows, each by the address of one of its bytes; those that matter, if none is given.
    #[serde(default)]
    pub follow: Vec<u64>,
    /// The planted fault that the variant's hardware has, if it shall have one.
    #[serde(default)]
    pub planted: Option<String>,
    /// Whether a recovery is cut at each of its writes, as it is with all crash points, so that a few points show the time
    /// of all.
    #[serde(default)]
    pub cut_every_write: bool,
    /// Whether the program reports its operations, and its check dumps what it finds.
    pub history: bool,
    /// Arguments of the program's recovery, which runs under variants whose software recovers. `None`: the check recovers first,
    /// under every variant, and so does the work after a crash.
    pub recover_args: Option<Vec<String>>,
    /// Arguments with which the --elf program recovers and checks its pool; durasim then compares the bytes.
    #[schemars(extend("x-flag" = "check", "x-metavar" = "ARGS", "x-elf" = true))]
    pub check_args: Vec<String>,
    /// Arguments of the --elf program for the run between two crashes (default: those after --).
    #[schemars(extend("x-flag" = "again", "x-metavar" = "ARGS", "x-elf" = true))]
    pub again_args: Vec<String>,
    /// A further judge of what an --elf program recovers: output compares what its check prints with what it prints after whole operations.
    #[serde(default)]
    #[schemars(extend("x-flag" = "oracle", "x-metavar" = "NAME", "x-elf" = true))]
    pub oracles: Option<BTreeSet<ProgramOracle>>,
    /// A persistency model: its images take the place of those that the machine leaves at a power failure.
    #[serde(default)]
    #[schemars(extend("x-metavar" = "strict|epoch|x86|x86-clflush", "x-file" = true))]
    pub persistency_model: Option<PersistencyModel>,
    /// Show what the check of an --elf program writes, in failing trials and in that of --replay: the first 4 KiB of each stream.
    #[serde(default)]
    #[schemars(extend("x-elf" = true))]
    pub check_output: bool,
    /// Instruction limit of recovery, check and rerun, each (default: 20 times the crash-free count, at least 10 million).
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000_000_000_000_u64))]
    #[schemars(extend("x-metavar" = "N", "x-unit" = "instructions", "x-file" = true))]
    pub recovery_limit: Option<u64>,
    /// Threads of this computer that run trials; all its cores if not given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1024), extend("x-internal" = true))]
    pub workers: Option<usize>,
}

const fn points() -> Points {
    Points::Some(300)
}

const fn variants() -> u64 {
    2
}

impl CrashRequest {
    /// Whether what the check prints is judged.
    pub fn judges_output(&self) -> bool {
        self.oracles.as_ref().is_some_and(|oracles| oracles.contains(&ProgramOracle::Output))
    }

    /// The failures that are tried: those asked for and clean ones. By default a workload has few of them, because it has
    /// many crash points, and a program of the user has all.
    pub fn faults(&self) -> BTreeSet<FailureKind> {
        let by_default = if self.history { &FailureKind::OF_WORKLOADS[..] } else { &FailureKind::ALL[..] };
        let mut faults = self.faults.clone().unwrap_or_else(|| by_default.iter().copied().collect());
        if self.persistency_model.is_some() {
            faults.retain(|fault| FailureKind::UNDER_MODELS.contains(fault));
        }
        faults.insert(FailureKind::Clean);
        faults
    }
}
