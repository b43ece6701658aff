//! The tests that tie a design to its model, in both directions.

use super::Subject;
use super::driver::run;
use super::replay::{Tally, replay};
use durasim_models::protocol::Protocol;

/// Operations of a run.
const OPERATIONS: u64 = 300;
/// Runs on each number of cores, without `DURASIM_SEEDS`.
const SEEDS: u64 = 500;

type FaultOf<S> = <<S as Subject>::Protocol as Protocol>::Fault;

/// Replays runs; the steps that they made, or the first one that the model does not allow.
pub fn replayed<S: Subject>(
    seeds: u64,
    cores: u16,
    planted: Option<S::Planted>,
    fault: Option<FaultOf<S>>,
) -> Result<Tally, String> {
    let mut sum = Tally::new();
    for seed in 0..seeds {
        let named = |what: String| format!("{cores} cores, seed {seed}: {what}");
        let run = run::<S>(seed, cores, OPERATIONS, planted).map_err(named)?;
        if planted.is_none() {
            run.ending.clone().map_err(named)?;
        }
        // A fault that breaks the machine must break the model before: that alone counts here.
        let tally = replay(&run, fault).map_err(named)?;
        tally.into_iter().for_each(|(name, n)| *sum.entry(name).or_default() += n);
    }
    Ok(sum)
}

/// The steps that runs on one number of cores made.
pub struct Counts {
    pub cores: u16,
    seeds: u64,
    tally: Tally,
}

impl Counts {
    pub fn of(&self, name: &str) -> u64 {
        self.tally.get(name).copied().unwrap_or(0)
    }

    /// Steps and situations that are in most runs, in one of twenty, and in any.
    pub fn assert_seen(&self, often: &[&str], at_times: &[&str], seldom: &[&str]) {
        for (names, least) in [(often, self.seeds), (at_times, self.seeds / 20), (seldom, 0)] {
            for name in names {
                assert!(self.of(name) > least, "{name} is rare: {}", self.of(name));
            }
        }
    }
}

/// Runs of the sound design are runs of the sound model, on one, two and four cores.
pub fn sound_runs<S: Subject>() -> impl Iterator<Item = Counts> {
    [1, 2, 4].into_iter().map(|cores| {
        let seeds = std::env::var("DURASIM_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(SEEDS);
        let tally = replayed::<S>(seeds, cores, None, None).unwrap_or_else(|what| panic!("{what}"));
        println!("{cores} cores, {seeds} runs: {tally:?}");
        Counts { cores, seeds, tally }
    })
}

fn first_line(what: &str) -> String {
    what.lines().next().unwrap_or_default().chars().take(400).collect()
}

/// A design that breaks the protocol makes no run of the model: each fault shows within this many runs.
pub fn assert_design_is_refused<S: Subject>(faults: impl IntoIterator<Item = (String, S::Planted, u16, u64)>) {
    let mut missed = Vec::new();
    for (name, planted, cores, seeds) in faults {
        match replayed::<S>(seeds, cores, Some(planted), None) {
            Ok(_) => missed.push(name),
            Err(what) => println!("{name}: {}", first_line(&what)),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

/// A model that does something else than the design does not follow it: each fault shows within this many runs.
pub fn assert_model_is_refused<S: Subject>(faults: impl IntoIterator<Item = FaultOf<S>>, seeds: u64) {
    let follows = |fault: &FaultOf<S>| replayed::<S>(seeds, 2, None, Some(*fault)).is_ok();
    let missed: Vec<FaultOf<S>> = faults.into_iter().filter(follows).collect();
    assert!(missed.is_empty(), "followed: {missed:?}");
}

/// A fault of the design is the fault of the model with the same meaning: the broken model follows the broken design.
pub fn assert_broken_model_follows<S: Subject>(
    pairs: impl IntoIterator<Item = (S::Planted, FaultOf<S>, u16)>,
    seeds: u64,
) {
    let mut differ = Vec::new();
    for (planted, fault, cores) in pairs {
        if let Err(what) = replayed::<S>(seeds, cores, Some(planted), Some(fault)) {
            differ.push(format!("{planted:?} is not {fault:?}: {}", first_line(&what)));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}
