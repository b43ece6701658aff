//! Runs of the real LAD are runs of its model: each hook call, verdict and action that matters to the protocol is a step that
//! the model allows there, and at crash points recovery finds what the model says. The model is the one that the checker
//! explores, with the bounds of the machine.
//!
//! `DURASIM_SEEDS=100000 cargo test -p durasim-models --test lad_replay` tries more seeds than usual.

mod lad_common;

use durasim_contract::{ActiveFault, Design, PlantedFault};
use durasim_designs::Lad as LadDesign;
use durasim_models::lad::{Lad, ProtocolFault};
use lad_common::driver::run;
use lad_common::replay::{Tally, replay};

/// Operations of a run.
const OPERATIONS: u64 = 300;
/// Runs until a fault must have shown itself.
const PATIENCE: u64 = 100;

fn seeds(usual: u64) -> u64 {
    std::env::var("DURASIM_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(usual)
}

/// Replays runs; what they did, or the first one that the model does not allow.
fn replayed(seeds: u64, cores: u16, planted: ActiveFault, fault: Option<ProtocolFault>) -> Result<Tally, String> {
    let mut sum = Tally::new();
    for seed in 0..seeds {
        let named = |what: String| format!("{cores} cores, seed {seed}: {what}");
        let run = run(seed, cores, OPERATIONS, planted).map_err(named)?;
        if planted == ActiveFault::NONE {
            run.ending.clone().map_err(named)?;
        }
        let tally = replay(&run, |bounds| Lad { bounds, fault }).map_err(named)?;
        tally.into_iter().for_each(|(name, n)| *sum.entry(name).or_default() += n);
    }
    Ok(sum)
}

#[test]
fn runs_of_the_simulator_are_runs_of_the_model() {
    for cores in [1, 2, 4] {
        let seeds = seeds(500);
        let tally = replayed(seeds, cores, ActiveFault::NONE, None).unwrap_or_else(|what| panic!("{what}"));
        println!("{cores} cores, {seeds} runs: {tally:?}");
        let count = |name: &str| tally.get(name).copied().unwrap_or(0);
        for often in ["Commit", "CommitArrives", "Accept", "Flush", "Recorded", "Reclaim", "Drain", "Crash", "Load"] {
            assert!(count(often) > seeds, "{often} is rare: {}", count(often));
        }
        for at_times in [
            "an identifier wraps around",
            "a begin before the last acknowledgement",
            "a flush goes in place",
            "a line is flushed twice",
            "power fails between two receipts",
            "Void",
        ] {
            assert!(count(at_times) > seeds / 20, "{at_times} is rare: {}", count(at_times));
        }
        assert!(count("a commit comes late") > 0, "a commit never comes late");
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
    let mut missed = Vec::new();
    for planted in LadDesign::PLANTED.iter().filter(|p| p.equivalent.is_none()).chain(RARE) {
        let patience = if planted.name == "cid-goes-back" { 10 * PATIENCE } else { PATIENCE };
        match replayed(patience, 2, planted.fault(), None) {
            Ok(_) => missed.push(planted.name),
            Err(what) => println!("{}: {}", planted.name, what.lines().next().unwrap_or_default()),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
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
    let follows = |fault: &ProtocolFault| replayed(PATIENCE, 2, ActiveFault::NONE, Some(*fault)).is_ok();
    let missed: Vec<ProtocolFault> = faults.into_iter().filter(follows).collect();
    assert!(missed.is_empty(), "followed: {missed:?}");
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
    let mut differ = Vec::new();
    for (name, fault) in pairs {
        if let Err(what) = replayed(PATIENCE, 2, rare(name).fault(), Some(fault)) {
            differ.push(format!("{name} is not {fault:?}: {}", what.lines().next().unwrap_or_default()));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}
