//! The random tester and its oracles must catch the planted faults of every hardware design, and only those. The lists are
//! those of the designs and of their test plans, which `durasim mutation` sends through campaigns with programs.

mod common;

use common::{is_of_its_own, is_wanted, run};
use durasim_contract::{PlantedFault, Variant};
use durasim_designs::VARIANTS;
use durasim_random::{Effort, Setting};
use durasim_test_plans::test_plan;
use std::sync::Mutex;

const EFFORT: Effort = Effort { ops: 250, crash_percent: 10, cut_percent: 20, power_cycles: 2 };
/// Runs for each fault, up to the first that shows it. A fault that shows itself in one of a hundred is missed with a probability of
/// e to the power of -10.
const SEEDS: u64 = 1000;

fn is_to_be_caught(variant: &Variant, planted: &PlantedFault) -> bool {
    let random = &test_plan(variant.name).random;
    let is_visible = planted.equivalent.is_none() || random.seen_without_locks.contains(&planted.name);
    is_visible && !random.out_of_reach.contains(&planted.name)
}

/// The faults of a variant that this tester must catch.
fn to_be_caught(variant: &Variant) -> Vec<PlantedFault> {
    let listed = variant.planted().filter(|planted| is_to_be_caught(variant, planted));
    let further = test_plan(variant.name).random.further_faults.iter();
    listed.chain(further.map(|&name| PlantedFault { name, summary: "", equivalent: None })).collect()
}

/// The runs, on one core and on several, until a fault must have shown itself.
fn runs(variant: &Variant, planted: &PlantedFault) -> u64 {
    let rare = test_plan(variant.name).random.runs_of_rare_faults.iter().find(|(name, _)| *name == planted.name);
    rare.map_or(SEEDS, |(_, seeds)| *seeds)
}

/// The settings of a seed: one core and several.
fn settings(variant: Variant, planted: Option<PlantedFault>, seed: u64) -> [Setting; 2] {
    [Setting::drawn(variant, seed), Setting::drawn_for_many(variant, seed)]
        .map(|setting| Setting { planted, ..setting })
}

/// The first seed whose run shows the fault, and what it showed.
fn caught(variant: Variant, planted: PlantedFault) -> Option<(u64, String)> {
    (0..runs(&variant, &planted)).find_map(|seed| {
        let shown = settings(variant, Some(planted), seed).iter().find_map(|setting| run(setting, seed, EFFORT).err());
        shown.map(|what| (seed, what))
    })
}

#[test]
fn the_quick_faults_of_each_design_are_caught() {
    all_are_caught(|variant, planted| test_plan(variant.name).quick_faults.contains(&planted.name));
}

#[test]
#[ignore = "takes minutes: part of make test-all"]
fn every_planted_fault_is_caught() {
    all_are_caught(|_, _| true);
}

fn all_are_caught(wanted: impl Fn(&Variant, &PlantedFault) -> bool) {
    let variants = VARIANTS.iter().filter(|variant| is_of_its_own(variant) && is_wanted(variant));
    let mut faults: Vec<_> =
        variants.flat_map(|variant| to_be_caught(variant).into_iter().map(move |p| (variant, p))).collect();
    faults.retain(|(variant, planted)| wanted(variant, planted));
    assert!(!faults.is_empty());
    // Those that take many runs first, so that no core waits for one of them at the end.
    faults.sort_by_key(|(variant, planted)| runs(variant, planted));
    let (faults, missed) = (Mutex::new(faults), Mutex::new(Vec::new()));
    let next = || faults.lock().expect("no worker panics while it holds it").pop();
    let worker = || {
        while let Some((variant, planted)) = next() {
            match caught(*variant, planted) {
                Some((seed, what)) => {
                    let what = what.rsplit_once(", seed ").map_or(what.as_str(), |(_, what)| what);
                    println!("{}/{}: caught by seed {seed}: {what}", variant.name, planted.name);
                }
                None => missed.lock().expect("as above").push(format!("{}/{}", variant.name, planted.name)),
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(worker))));
    let missed = missed.into_inner().expect("all workers have ended");
    assert!(missed.is_empty(), "not caught: {}", missed.join(", "));
}

/// The canaries: if one comes through, nothing is checked at all.
#[test]
fn a_design_that_drops_one_log_entry_is_caught() {
    let mut canaries = 0;
    for variant in VARIANTS {
        let is_canary = |planted: &PlantedFault| Some(planted.name) == test_plan(variant.name).canary;
        if let Some(canary) = variant.planted().find(is_canary) {
            assert!(caught(*variant, canary).is_some(), "{}", variant.name);
            canaries += 1;
        }
    }
    assert!(canaries > 2);
}

/// Sound designs have many more seeds in the sweeps of `random.rs`.
#[test]
fn equivalents_are_not_caught() {
    none_is_caught(6, &[]);
}

#[test]
#[ignore = "takes minutes: part of make test-all"]
fn equivalents_and_sound_designs_are_not_caught() {
    none_is_caught(40, &[None]);
}

/// Tries this number of seeds with each fault that changes nothing, and with these.
fn none_is_caught(seeds: u64, further: &[Option<PlantedFault>]) {
    for variant in VARIANTS
        .iter()
        .filter(|variant| is_of_its_own(variant) && variant.planted().next().is_some() && is_wanted(variant))
    {
        let unseen = |planted: &PlantedFault| planted.equivalent.is_some() && !is_to_be_caught(variant, planted);
        let equivalents = variant.planted().filter(unseen);
        for planted in equivalents.map(Some).chain(further.iter().copied()) {
            for seed in 0..seeds {
                for setting in settings(*variant, planted, seed) {
                    if let Err(what) = run(&setting, seed, EFFORT) {
                        panic!("{planted:?}: {what}");
                    }
                }
            }
        }
    }
}
