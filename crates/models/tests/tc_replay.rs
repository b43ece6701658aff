//! Runs of the real transaction cache are runs of its model: each hook call, verdict and action that matters to the protocol
//! is a step that the model allows there, and at crash points recovery finds what the model says. The model is the one that
//! the checker explores, with the bounds of the machine.
//!
//! `DURASIM_SEEDS=100000 cargo test -p durasim-models --test tc_replay` tries more seeds than usual.

mod tc_common;

use durasim_contract::{ActiveFault, Design};
use durasim_designs::Tc;
use durasim_models::tc::{ProtocolFault, TransactionCaches};
use tc_common::driver::run;
use tc_common::replay::{Tally, replay};

/// Operations of a run.
const OPERATIONS: u64 = 300;
/// Runs until a fault must have shown itself.
const PATIENCE: u64 = 300;

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
        let tally = replay(&run, |bounds| TransactionCaches { bounds, fault }).map_err(named)?;
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
        for often in ["Commit", "Issue", "Acknowledged", "Abort", "CopyStarted", "Restored", "Crash", "Fetch"] {
            assert!(count(often) > seeds, "{often} is rare: {}", count(often));
        }
        for at_times in [
            "an identifier wraps around",
            "an overflowed transaction commits",
            "a copy comes late",
            "a miss finds an entry",
        ] {
            assert!(count(at_times) > seeds / 20, "{at_times} is rare: {}", count(at_times));
        }
    }
}

/// Without this the replay proves nothing: a design that breaks the protocol makes no run of the model.
#[test]
fn runs_of_a_broken_design_are_not() {
    // The driver stores outside of no transaction, and whole words of lines that one transaction has for itself; it joins
    // no stores.
    let out_of_reach = ["coalesces-into-any", "recovery-ignores-mask", "recovery-clears-first", "abort-keeps-lines"];
    let mut missed = Vec::new();
    for planted in Tc::PLANTED.iter().filter(|p| p.equivalent.is_none() && !out_of_reach.contains(&p.name)) {
        match replayed(PATIENCE, 2, planted.fault(), None) {
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
    let follows = |fault: &ProtocolFault| replayed(PATIENCE, 2, ActiveFault::NONE, Some(*fault)).is_ok();
    let missed: Vec<ProtocolFault> = faults.into_iter().filter(follows).collect();
    assert!(missed.is_empty(), "followed: {missed:?}");
}
