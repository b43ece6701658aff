//! Runs of the real Hercules are runs of its model: each hook call, verdict and action that matters to the protocol is a
//! step that the model allows there, and at crash points recovery finds what the model says. The model is the one that
//! the checker explores, with the bounds of the machine.
//!
//! `DURASIM_SEEDS=100000 cargo test -p durasim-models --test hercules_replay` tries more seeds than usual.

mod common;

use common::driver::run;
use common::recorder::Planted;
use common::replay::{Tally, replay};
use durasim_models::hercules::{Hercules, ProtocolFault};

/// Operations of a run.
const OPERATIONS: u64 = 300;
/// Runs until a fault must have shown itself.
const PATIENCE: u64 = 1500;

fn seeds(usual: u64) -> u64 {
    std::env::var("DURASIM_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(usual)
}

/// Replays runs; what they did, or the first one that the model does not allow.
fn replayed(seeds: u64, cores: u16, planted: Option<Planted>, fault: Option<ProtocolFault>) -> Result<Tally, String> {
    let mut sum = Tally::new();
    for seed in 0..seeds {
        let named = |what: String| format!("{cores} cores, seed {seed}: {what}");
        let run = run(seed, cores, OPERATIONS, planted).map_err(named)?;
        if planted.is_none() {
            run.ending.clone().map_err(named)?;
        }
        // What breaks the machine must break the model before: that alone counts here.
        let tally = replay(&run, |bounds| Hercules { bounds, fault }).map_err(named)?;
        tally.into_iter().for_each(|(name, n)| *sum.entry(name).or_default() += n);
    }
    Ok(sum)
}

#[test]
fn runs_of_the_simulator_are_runs_of_the_model() {
    for cores in [1, 2, 4] {
        let seeds = seeds(500);
        let tally = replayed(seeds, cores, None, None).unwrap_or_else(|what| panic!("{what}"));
        println!("{cores} cores, {seeds} runs: {tally:?}");
        let count = |name: &str| tally.get(name).copied().unwrap_or(0);
        // Nothing that the model names is rare here.
        for often in
            ["PrematureFlush", "TxLenStored", "Acknowledged", "Leave", "Abort Other", "Clean", "WriteHome", "Crash"]
        {
            assert!(count(often) > seeds, "{often} is rare: {}", count(often));
        }
        for at_times in
            ["Reload", "Spill", "EntryFreed", "reloaded while migrating", "committed off-chip", "the log wraps around"]
        {
            assert!(count(at_times) > seeds / 20, "{at_times} is rare: {}", count(at_times));
        }
        for seldom in ["an identifier wraps around", "decided at the controller"] {
            assert!(count(seldom) > 0, "{seldom} never happens");
        }
        assert!(cores == 1 || count("Abort Conflict") > seeds, "conflicts are rare");
    }
}

/// Without this the replay proves nothing: a design that breaks the protocol makes no run of the model.
#[test]
fn runs_of_a_broken_design_are_not() {
    use Planted::*;
    let missed: Vec<String> = [
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
    ]
    .into_iter()
    .filter_map(|(planted, cores)| match replayed(PATIENCE, cores, Some(planted), None) {
        Ok(_) => Some(format!("{planted:?}")),
        Err(what) => {
            println!("{planted:?}: {}", what.lines().next().unwrap_or_default());
            None
        }
    })
    .collect();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

/// The other way round: the model is bound to the design by its effects, too, not only by what it allows. A model that
/// does something else than the design does not follow it.
#[test]
fn runs_of_the_simulator_are_not_runs_of_a_broken_model() {
    use ProtocolFault::*;
    let missed: Vec<String> = [
        (OpenEntryMigrates, false),
        (StatesResetBeforeTxLen, false),
        (CopyDownForgotten, true),
        (EntryFreedBeforeHome, true),
        (SpillLosesEntry, true),
        (LogNotSearched, true),
        (ReloadKeepsEntry, true),
        (AbortKeepsLines, true),
        (AbortKeepsEntries, true),
        (FlushNewestFirst, true),
        (EwpqNotSaved, true),
    ]
    .into_iter()
    // A model that merely allows more than it should follows a sound design everywhere.
    .filter(|(fault, shows)| replayed(PATIENCE, 2, None, Some(*fault)).is_err() != *shows)
    .map(|(fault, _)| format!("{fault:?}"))
    .collect();
    assert!(missed.is_empty(), "not as expected: {missed:?}");
}

/// A fault of the design is the fault of the model with the same meaning: where the sound model gives up, the broken one
/// follows, up to what recovery then makes of it.
#[test]
fn a_broken_model_follows_a_broken_design() {
    for (planted, fault, cores) in [
        (Planted::TaggedLinesGoHome, ProtocolFault::TaggedLineGoesHome, 1),
        (Planted::MigrationOvertaken, ProtocolFault::MigrationOvertaken, 1),
        (Planted::ProbeGrants, ProtocolFault::ConflictGranted, 2),
    ] {
        assert!(replayed(PATIENCE, cores, Some(planted), None).is_err(), "{planted:?} is not caught");
        let followed = replayed(200, cores, Some(planted), Some(fault));
        assert!(followed.is_ok(), "{planted:?} is not {fault:?}: {followed:?}");
    }
}
