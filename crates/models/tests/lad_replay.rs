//! Runs of the real LAD are runs of its model: each hook call, verdict and action that matters to the protocol is a step that
//! the model allows there, and at crash points recovery finds what the model says. The model is the one that the checker
//! explores, with the bounds of the machine.
//!
//! `DURASIM_SEEDS=100000 cargo test -p durasim-models --test lad_replay` tries more seeds than usual.

mod harness;
mod lad;

use durasim_contract::{Design, PlantedFault};
use durasim_designs::Lad as LadDesign;
use durasim_models::lad::ProtocolFault;
use harness::trials::{assert_broken_model_follows, assert_design_is_refused, assert_model_is_refused, sound_runs};
use lad::Lad;

/// Runs within which a fault must show.
const RUNS_PER_FAULT: u64 = 100;

#[test]
fn runs_of_the_simulator_are_runs_of_the_model() {
    for counts in sound_runs::<Lad>() {
        counts.assert_seen(
            &["Commit", "CommitArrives", "Accept", "Flush", "Recorded", "Reclaim", "Drain", "Crash", "Load"],
            &[
                "an identifier wraps around",
                "a transaction starts before the last acknowledgement",
                "a flush goes in place",
                "a line is flushed twice",
                "power fails between two receipts",
                "Void",
            ],
            &["a commit comes late"],
        );
    }
}

/// Faults that the design has besides those that campaigns find.
const RARE: &[PlantedFault] = &[rare("plain-bytes-not-home"), rare("cid-goes-back"), rare("purgatory-newest-first")];

const fn rare(name: &'static str) -> PlantedFault {
    PlantedFault { name, summary: "", equivalent: None }
}

/// Without this the replay proves nothing: a design that breaks the protocol makes no run of the model.
#[test]
fn runs_of_a_broken_design_are_not() {
    let faults = LadDesign::PLANTED.iter().filter(|p| p.equivalent.is_none()).chain(RARE);
    assert_design_is_refused::<Lad>(faults.map(|planted| {
        let runs = if planted.name == "cid-goes-back" { 10 * RUNS_PER_FAULT } else { RUNS_PER_FAULT };
        (planted.name.to_owned(), planted.fault(), 2, runs)
    }));
}

/// The other way round: a model that does something else than the design does not follow it.
#[test]
fn runs_of_the_simulator_are_not_runs_of_a_broken_model() {
    use ProtocolFault::*;
    // Faults that merely allow more than they should follow a sound design everywhere, and these recoveries are not cut.
    let faults = [
        MarkLost,
        FlushedLineNotMarked,
        SpeculativeBitNotSet,
        CommitClearsAll,
        CidNotUpdated,
        CidGoesBack,
        UndoNotAwaited,
        UndoHasNewValue,
        UndoOfAnotherDtx,
        SecondVersionLogged,
        YoungerVersionStaysHeld,
        LoggedNewestFirst,
        PurgatoryNewestFirst,
        RecoveryWithoutConsensus,
        RecoveryTakesNumericMax,
        RecoveryUndoesNothing,
        RecoveryUndoesCommitted,
        RecoveryDropsPurgatory,
        RecoveryWritesUncommitted,
        RecoveryOverlooksLast,
    ];
    assert_model_is_refused::<Lad>(faults, RUNS_PER_FAULT);
}

/// A fault of the design is the fault of the model with the same meaning: where the sound model gives up, the broken one
/// follows. Other faults show steps that are one in the model and several in the machine, where only a sound recovery finds
/// the same after each of them.
#[test]
fn a_broken_model_follows_a_broken_design() {
    use ProtocolFault::*;
    let pairs = [
        ("speculative-bit-not-set", SpeculativeBitNotSet),
        ("second-version-logged", SecondVersionLogged),
        ("reclaimed-while-open", ReclaimedWhileOpen),
        ("recovery-without-consensus", RecoveryWithoutConsensus),
        ("plain-bytes-not-home", PlainBytesNotHome),
        ("cid-goes-back", CidGoesBack),
    ];
    assert_broken_model_follows::<Lad>(pairs.map(|(name, fault)| (rare(name).fault(), fault, 2)), RUNS_PER_FAULT);
}
