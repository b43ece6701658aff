//! Runs of the real Hercules are runs of its model: each hook call, verdict and action that matters to the protocol is a
//! step that the model allows there, and at crash points recovery finds what the model says. The model is the one that
//! the checker explores, with the bounds of the machine.
//!
//! `DURASIM_SEEDS=100000 cargo test -p durasim-models --test hercules_replay` tries more seeds than usual.

mod harness;
mod hercules;

use durasim_models::hercules::ProtocolFault;
use harness::trials::{
    assert_broken_model_follows, assert_design_is_refused, assert_model_is_refused, replayed, sound_runs,
};
use hercules::{Fault, Hercules};

/// Runs within which a fault must show.
const RUNS_PER_FAULT: u64 = 1500;

#[test]
fn runs_of_the_simulator_are_runs_of_the_model() {
    for counts in sound_runs::<Hercules>() {
        counts.assert_seen(
            &["PrematureFlush", "TxLenStored", "Acknowledged", "Leave", "Abort Other", "Clean", "WriteHome", "Crash"],
            &[
                "Reload",
                "Spill",
                "EntryFreed",
                "reloaded while migrating",
                "committed off-chip",
                "the log wraps around",
            ],
            &["an identifier wraps around", "decided at the controller"],
        );
        if counts.cores > 1 {
            counts.assert_seen(&["Abort Conflict"], &[], &[]);
        }
    }
}

/// Without this the replay proves nothing: a design that breaks the protocol makes no run of the model.
#[test]
fn runs_of_a_broken_design_are_not() {
    use Fault::*;
    let faults = [
        (TxLenNotStored, 1),
        (TaggedLinesGoHome, 1),
        (MergeAlwaysOverwrites, 1),
        (CopyDownForgotten, 1),
        (FillIgnoresEntries, 1),
        (AbortKeepsLines, 1),
        (ProbeGrants, 2),
        (FlushDropsLine, 1),
        (MigrationOvertaken, 1),
        (OpenEntryMigrates, 1),
    ];
    let named = |(fault, cores)| (format!("{fault:?}"), fault, cores, RUNS_PER_FAULT);
    assert_design_is_refused::<Hercules>(faults.map(named));
}

/// The other way round: the model is bound to the design by its effects, too, not only by what it allows.
#[test]
fn runs_of_the_simulator_are_not_runs_of_a_broken_model() {
    use ProtocolFault::*;
    let faults = [
        CopyDownForgotten,
        EntryFreedBeforeHome,
        SpillLosesEntry,
        LogNotSearched,
        ReloadKeepsEntry,
        AbortKeepsLines,
        AbortKeepsEntries,
        FlushNewestFirst,
        EwpqNotSaved,
    ];
    assert_model_is_refused::<Hercules>(faults, RUNS_PER_FAULT);
    // A model that merely allows more than it should follows a sound design everywhere.
    for fault in [OpenEntryMigrates, StatesResetBeforeTxLen] {
        let followed = replayed::<Hercules>(RUNS_PER_FAULT, 2, None, Some(fault));
        assert!(followed.is_ok(), "{fault:?}: {followed:?}");
    }
}

/// A fault of the design is the fault of the model with the same meaning: where the sound model gives up, the broken one
/// follows, up to what recovery then makes of it.
#[test]
fn a_broken_model_follows_a_broken_design() {
    let pairs = [
        (Fault::TaggedLinesGoHome, ProtocolFault::TaggedLineGoesHome, 1),
        (Fault::MigrationOvertaken, ProtocolFault::MigrationOvertaken, 1),
        (Fault::ProbeGrants, ProtocolFault::ConflictGranted, 2),
    ];
    let named = |(planted, _, cores)| (format!("{planted:?}"), planted, cores, RUNS_PER_FAULT);
    assert_design_is_refused::<Hercules>(pairs.map(named));
    assert_broken_model_follows::<Hercules>(pairs, 200);
}
