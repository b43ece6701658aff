//! The random tester and its oracles must catch the planted faults of every hardware design, and only those. The lists are
//! the designs' own (`durasim_design::{PlantedFault, Laboratory}`), which `durasim mutation` sends through campaigns with programs.

mod common;

use common::{is_of_its_own, is_wanted, run};
use durasim_design::{PlantedFault, Row};
use durasim_designs::ROWS;
use durasim_random::{Effort, Setting};
use std::sync::Mutex;

const EFFORT: Effort = Effort { ops: 250, crash_percent: 10, cut_percent: 20, lives: 2 };
/// Runs for each fault, up to the first that shows it. A fault that shows itself in one of a hundred is missed with a probability of
/// e to the power of -10.
const SEEDS: u64 = 1000;

fn is_to_be_caught(row: &Row, planted: &PlantedFault) -> bool {
    let random = &row.laboratory.random;
    let is_visible = planted.equivalent.is_none() || random.seen_without_locks.contains(&planted.name);
    is_visible && !random.out_of_reach.contains(&planted.name)
}

/// The faults of a row that this tester must catch.
fn to_be_caught(row: &Row) -> Vec<PlantedFault> {
    let listed = row.planted().filter(|planted| is_to_be_caught(row, planted));
    let further = row.laboratory.random.further_faults.iter();
    listed.chain(further.map(|&name| PlantedFault { name, summary: "", equivalent: None })).collect()
}

/// The runs, on one core and on several, until a fault must have shown itself.
fn runs(row: &Row, planted: &PlantedFault) -> u64 {
    let rare = row.laboratory.random.runs_of_rare_faults.iter().find(|(name, _)| *name == planted.name);
    rare.map_or(SEEDS, |(_, seeds)| *seeds)
}

/// The settings of a seed: one core and several.
fn settings(row: Row, planted: Option<PlantedFault>, seed: u64) -> [Setting; 2] {
    [Setting::drawn(row, seed), Setting::drawn_for_many(row, seed)].map(|setting| Setting { planted, ..setting })
}

/// The first seed whose run shows the fault, and what it showed.
fn caught(row: Row, planted: PlantedFault) -> Option<(u64, String)> {
    (0..runs(&row, &planted)).find_map(|seed| {
        let shown = settings(row, Some(planted), seed).iter().find_map(|setting| run(setting, seed, EFFORT).err());
        shown.map(|what| (seed, what))
    })
}

#[test]
fn the_quick_faults_of_each_design_are_caught() {
    all_are_caught(|row, planted| row.laboratory.quick_faults.contains(&planted.name));
}

#[test]
#[ignore = "takes minutes: part of make test-all"]
fn every_planted_fault_is_caught() {
    all_are_caught(|_, _| true);
}

fn all_are_caught(wanted: impl Fn(&Row, &PlantedFault) -> bool) {
    let rows = ROWS.iter().filter(|row| is_of_its_own(row) && is_wanted(row));
    let mut faults: Vec<_> = rows.flat_map(|row| to_be_caught(row).into_iter().map(move |p| (row, p))).collect();
    faults.retain(|(row, planted)| wanted(row, planted));
    assert!(!faults.is_empty());
    // Those that take many runs first, so that no core waits for one of them at the end.
    faults.sort_by_key(|(row, planted)| runs(row, planted));
    let (faults, missed) = (Mutex::new(faults), Mutex::new(Vec::new()));
    let next = || faults.lock().expect("no worker panics while it holds it").pop();
    let worker = || {
        while let Some((row, planted)) = next() {
            match caught(*row, planted) {
                Some((seed, what)) => {
                    let what = what.rsplit_once(", seed ").map_or(what.as_str(), |(_, what)| what);
                    println!("{}/{}: caught by seed {seed}: {what}", row.name, planted.name);
                }
                None => missed.lock().expect("as above").push(format!("{}/{}", row.name, planted.name)),
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
    for row in ROWS {
        let is_canary = |planted: &PlantedFault| Some(planted.name) == row.laboratory.canary;
        if let Some(canary) = row.planted().find(is_canary) {
            assert!(caught(*row, canary).is_some(), "{}", row.name);
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

/// Tries so many seeds with each fault that changes nothing, and with these.
fn none_is_caught(seeds: u64, further: &[Option<PlantedFault>]) {
    for row in ROWS.iter().filter(|row| is_of_its_own(row) && row.planted().next().is_some() && is_wanted(row)) {
        let unseen = |planted: &PlantedFault| planted.equivalent.is_some() && !is_to_be_caught(row, planted);
        let equivalents = row.planted().filter(unseen);
        for planted in equivalents.map(Some).chain(further.iter().copied()) {
            for seed in 0..seeds {
                for setting in settings(*row, planted, seed) {
                    if let Err(what) = run(&setting, seed, EFFORT) {
                        panic!("{planted:?}: {what}");
                    }
                }
            }
        }
    }
}
