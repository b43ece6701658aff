//! The faults of a campaign for which there was nothing to try, with the reasons.

use crate::crashed_run::CrashFreeRun;
use crate::failure_kind::FailureKind;
use crate::judge::{Context, ProgramRecovery};
use crate::outcome::Outcome;
use crate::trial::{PowerFault, Trial};
use durasim_contract::Hooks;
use std::collections::{BTreeMap, BTreeSet};

/// The faults without a trial, each with the reason.
pub(crate) fn not_tried(
    tried: &[(Trial, Outcome)],
    faults: &BTreeSet<FailureKind>,
    context: &Context<'_>,
    crash_free_run: &CrashFreeRun,
) -> BTreeMap<String, String> {
    let names: BTreeSet<String> = tried.iter().map(|(trial, _)| trial.fault_name()).collect();
    let names: BTreeSet<&str> = names.iter().flat_map(|name| name.split('+')).collect();
    let is_tried = |fault: FailureKind| match fault {
        FailureKind::Background => crash_free_run.background.contains(&true),
        FailureKind::Clean => names.contains(context.plainest_fault().name()),
        FailureKind::Reorder | FailureKind::Evict if names.contains(PowerFault::IMAGE) => true,
        fault => names.contains(fault.name()),
    };
    let missing = faults.iter().filter(|fault| !is_tried(**fault));
    missing.map(|fault| (fault.name().to_owned(), reason(*fault, context, crash_free_run))).collect()
}

fn reason(fault: FailureKind, context: &Context<'_>, crash_free_run: &CrashFreeRun) -> String {
    if crash_free_run.events() == 0 {
        return "the run has no persist event".into();
    }
    let domain = context.prepared.plan.domain;
    match fault {
        FailureKind::Clean => "no crash point was reached".into(),
        FailureKind::Torn => {
            format!(
                "no write that a surviving queue does not hold was in flight to the medium ({domain}) at a crash point"
            )
        }
        FailureKind::Reorder => "no cache-block operation was unfenced at a crash point".into(),
        FailureKind::Evict if context.prepared.plan.variant.hardware.hooks != Hooks::NONE => {
            "the design decides when lines leave the caches".into()
        }
        FailureKind::Evict => {
            format!("no dirty line that a power failure loses ({domain}) was in a cache at a crash point")
        }
        FailureKind::Energy => format!("the crash flush ({domain}) had nothing to save at a crash point"),
        FailureKind::Nested => match context.recovery {
            ProgramRecovery::Nothing => "recovery by the hardware wrote nothing, and the program has none".into(),
            ProgramRecovery::Command(_) | ProgramRecovery::Check => {
                "recovery wrote nothing, neither that of the hardware nor that of the program".into()
            }
        },
        FailureKind::Background => "the run has no background work".into(),
        FailureKind::Recrash => "the program had no persist event when it ran on after recovery".into(),
    }
}
