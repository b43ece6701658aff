//! The random tester and its oracles must catch the planted faults of every hardware design, and only those. The lists are
//! the designs' own (`durasim_design::Planted`), which `durasim crash --planted` sends through campaigns with programs.

mod common;

use common::settings::Setting;
use common::{Effort, is_wanted, run};
use durasim_design::{Planted, Row};
use durasim_designs::{ROWS, row};
use std::sync::Mutex;

const EFFORT: Effort = Effort { ops: 250, crash_percent: 10, cut_percent: 20, lives: 2 };
/// Runs, on one core and on several, until a fault must have shown itself.
const SEEDS: u64 = 150;

/// Faults that nobody can see in a program whose threads guard their words by locks. This tester takes no locks.
const SEEN_WITHOUT_LOCKS: &[(&str, &str)] = &[("hercules", "probes-granted")];
/// Faults that need more transactions, or larger ones, than the tester makes.
const OUT_OF_REACH: &[(&str, &str)] =
    &[("hercules", "identifier-shared"), ("hercules", "identifier-with-entries"), ("hercules", "log-overtakes-tail")];
/// Faults that no campaign with programs has shown so far; they are in no list of a design.
const SEEN_HERE_ALONE: &[(&str, &str)] = &[
    ("hercules", "eviction-overtakes-migration"),
    ("tc", "thread-follows-core"),
    ("tc", "order-between-cores-ignored"),
    ("tc", "fill-asks-own-cache"),
    ("tc", "plain-store-not-routed"),
    ("tc", "dirty-line-not-cleaned"),
    ("kiln", "fill-untagged"),
    ("kiln", "pre-image-forgotten"),
    ("kiln", "flush-misses-other-cores"),
    ("kiln", "copy-overtakes-push"),
    ("kiln-eadr", "fill-untagged"),
    ("kiln-eadr", "pre-image-forgotten"),
    ("proteus", "abort-not-ended"),
    ("proteus-eadr", "abort-not-ended"),
    ("proteus-eadr", "spill-freed-at-issue"),
    ("fwb", "plain-store-not-logged"),
    ("fwb", "second-word-forgotten"),
    ("fwb", "clean-not-held"),
    ("fwb", "head-not-awaited"),
    ("fwb", "recovery-undoes-parts"),
    ("fwb-eadr", "second-word-forgotten"),
    ("picl", "plain-store-not-logged"),
    ("picl", "clean-not-held"),
    ("picl", "stale-eid-kept"),
    ("picl", "scan-not-awaited"),
    ("picl", "log-overrun"),
    ("picl", "recovery-ignores-valid-till"),
    ("hoop", "volatile-line-not-cleaned"),
    ("hoop", "plain-stores-unrouted"),
    ("hoop-eadr", "plain-stores-unrouted"),
    ("hoop-eadr", "volatile-line-not-cleaned"),
];
/// Faults that show themselves in few runs, and the runs they get.
const RARE: &[(&str, u64)] = &[
    ("eviction-overtakes-migration", 8000),
    ("gc-slides-over-committed", 3000),
    ("gc-forgets-extension", 3000),
    ("recovery-newest-first", 1500),
    ("block-twice-in-logq", 8000),
    ("spill-freed-at-issue", 1500),
    ("stale-eid-kept", 3000),
    ("left-lines-not-awaited", 3000),
    ("copy-overtakes-push", 3000),
];

fn is_to_be_caught(row: &Row, planted: &Planted) -> bool {
    let is_among = |list: &[(&str, &str)]| list.contains(&(row.name, planted.name));
    (planted.equivalent.is_none() || is_among(SEEN_WITHOUT_LOCKS)) && !is_among(OUT_OF_REACH)
}

/// The faults of a row that this tester must catch.
fn to_be_caught(row: &Row) -> Vec<Planted> {
    let listed = row.hardware.planted.iter().filter(|planted| is_to_be_caught(row, planted)).copied();
    let further = SEEN_HERE_ALONE.iter().filter(|(design, _)| *design == row.name);
    listed.chain(further.map(|&(_, name)| Planted { name, summary: "", equivalent: None })).collect()
}

/// The settings of a seed: one core and several.
fn settings(row: Row, planted: Option<Planted>, seed: u64) -> [Setting; 2] {
    [Setting::drawn(row, seed), Setting::drawn_for_many(row, seed)].map(|setting| Setting { planted, ..setting })
}

/// The first seed whose run shows the fault, and what it showed.
fn caught(row: Row, planted: Planted) -> Option<(u64, String)> {
    let seeds = RARE.iter().find(|(name, _)| *name == planted.name).map_or(SEEDS, |(_, seeds)| *seeds);
    (0..seeds).find_map(|seed| {
        let shown = settings(row, Some(planted), seed).iter().find_map(|setting| run(setting, seed, EFFORT).err());
        shown.map(|what| (seed, what))
    })
}

#[test]
fn every_planted_fault_is_caught() {
    let rows = ROWS.iter().filter(|row| is_wanted(row));
    let mut faults: Vec<_> = rows.flat_map(|row| to_be_caught(row).into_iter().map(move |p| (row, p))).collect();
    // Those that take many runs first, so that no core waits for one of them at the end.
    faults.sort_by_key(|(_, planted)| RARE.iter().find(|(name, _)| *name == planted.name).map_or(0, |(_, n)| *n));
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

/// The canary: if this one comes through, nothing is checked at all.
#[test]
fn a_design_that_drops_one_log_entry_is_caught() {
    for (name, fault) in
        [("hercules", "recovery-drops-log-entry"), ("tc", "recovery-drops-entry"), ("kiln", "recovery-drops-line")]
    {
        let row = row(name).expect("it is registered");
        let planted = row.hardware.planted.iter().find(|planted| planted.name == fault);
        assert!(caught(*row, *planted.expect("the design has a canary")).is_some(), "{name}");
    }
}

#[test]
fn equivalents_and_sound_designs_are_not_caught() {
    for row in ROWS.iter().filter(|row| !row.hardware.planted.is_empty() && is_wanted(row)) {
        let unseen = |planted: &&Planted| planted.equivalent.is_some() && !is_to_be_caught(row, planted);
        let equivalents = row.hardware.planted.iter().filter(unseen);
        for planted in equivalents.map(|planted| Some(*planted)).chain([None]) {
            for seed in 0..40 {
                for setting in settings(*row, planted, seed) {
                    if let Err(what) = run(&setting, seed, EFFORT) {
                        panic!("{planted:?}: {what}");
                    }
                }
            }
        }
    }
}
