//! Runs of the real transaction cache are runs of its model: each hook call, verdict and action that matters to the protocol
//! is a step that the model allows there, and at crash points recovery finds what the model says. The model is the one that
//! the checker explores, with the bounds of the machine.
//!
//! `DURASIM_SEEDS=100000 cargo test -p durasim-models --test tc_replay` tries more seeds than usual.

mod harness;
mod tc;

use durasim_contract::Design;
use durasim_designs::Tc as TcDesign;
use durasim_models::tc::ProtocolFault;
use harness::trials::{assert_design_is_refused, assert_model_is_refused, sound_runs};
use tc::Tc;

/// Runs within which a fault must show.
const RUNS_PER_FAULT: u64 = 300;

#[test]
fn runs_of_the_simulator_are_runs_of_the_model() {
    for counts in sound_runs::<Tc>() {
        counts.assert_seen(
            &["Commit", "Issue", "Acknowledged", "Abort", "CopyStarted", "Restored", "Crash", "Fetch"],
            &[
                "an identifier wraps around",
                "an overflowed transaction commits",
                "a copy comes late",
                "a miss finds an entry",
            ],
            &[],
        );
    }
}

/// Without this the replay proves nothing: a design that breaks the protocol makes no run of the model.
#[test]
fn runs_of_a_broken_design_are_not() {
    // The driver stores outside of no transaction, and whole words of lines that one transaction has for itself; it joins
    // no stores.
    let out_of_reach = ["coalesces-into-any", "recovery-ignores-mask", "recovery-clears-first", "abort-keeps-lines"];
    let in_reach = |p: &&durasim_contract::PlantedFault| p.equivalent.is_none() && !out_of_reach.contains(&p.name);
    let faults = TcDesign::PLANTED.iter().filter(in_reach);
    assert_design_is_refused::<Tc>(faults.map(|p| (p.name.to_owned(), p.fault(), 2, RUNS_PER_FAULT)));
}

/// The other way round: a model that does something else than the design does not follow it.
#[test]
fn runs_of_the_simulator_are_not_runs_of_a_broken_model() {
    use ProtocolFault::*;
    let faults = [
        CommitMissesCopying,
        CommitForgotten,
        IdentifierReused,
        FreedAtIssue,
        AckFreesYoungest,
        CopySkipped,
        RegisterKept,
        MissIgnoresEntries,
        MissTakesOldest,
        AbortKeepsEntries,
        RecoveryNewestFirst,
        RecoveryForgetsShadows,
        RecoveryReplaysActive,
    ];
    assert_model_is_refused::<Tc>(faults, RUNS_PER_FAULT);
}
