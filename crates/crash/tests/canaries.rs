//! The tester and the oracles must catch every planted fault, and only those.

mod common;

use common::faulty::{faulty_rows, sound_rows};
use common::settings::Setting;
use common::{Effort, run};

const EFFORT: Effort = Effort { ops: 250, crash_percent: 10, cut_percent: 20, lives: 2 };
/// Runs until a fault must have shown itself.
const SEEDS: u64 = 150;

#[test]
fn every_planted_fault_is_caught() {
    let mut missed = Vec::new();
    for (fault, row) in faulty_rows() {
        let caught = (0..SEEDS).find_map(|seed| run(&Setting::drawn(row, seed), seed, EFFORT).err().map(|e| (seed, e)));
        match caught {
            Some((seed, what)) => {
                let what = what.rsplit_once(", seed ").map_or(what.as_str(), |(_, what)| what);
                println!("{} with {fault:?}: caught by run {}: {what}", row.name, seed + 1);
            }
            None => missed.push(format!("{} with {fault:?}", row.name)),
        }
    }
    assert!(missed.is_empty(), "not caught: {}", missed.join(", "));
}

#[test]
fn the_wrapper_alone_is_not_caught() {
    for (_, row) in sound_rows() {
        for seed in 0..40 {
            if let Err(what) = run(&Setting::drawn(row, seed), seed, EFFORT) {
                panic!("{what}");
            }
        }
    }
}
