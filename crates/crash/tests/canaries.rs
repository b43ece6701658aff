//! The tester and the oracles must catch every planted fault, and only those.

mod common;

use common::faulty::{Fault, faulty_rows, faulty_rows_of_many, sound_rows};
use common::settings::Setting;
use common::{Effort, run};
use durasim_design::Row;

const EFFORT: Effort = Effort { ops: 250, crash_percent: 10, cut_percent: 20, lives: 2 };
/// Runs until a fault must have shown itself.
const SEEDS: u64 = 150;

/// Runs faulty rows until their fault shows itself; those where it does not.
fn missed(rows: Vec<(Fault, Row)>, draw: impl Fn(Row, u64) -> Setting) -> Vec<String> {
    let mut missed = Vec::new();
    for (fault, row) in rows {
        let caught = (0..SEEDS).find_map(|seed| run(&draw(row, seed), seed, EFFORT).err().map(|e| (seed, e)));
        match caught {
            Some((seed, what)) => {
                let what = what.rsplit_once(", seed ").map_or(what.as_str(), |(_, what)| what);
                println!("{} with {fault:?}: caught by run {}: {what}", row.name, seed + 1);
            }
            None => missed.push(format!("{} with {fault:?}", row.name)),
        }
    }
    missed
}

#[test]
fn every_planted_fault_is_caught() {
    let missed = missed(faulty_rows(), Setting::drawn);
    assert!(missed.is_empty(), "not caught: {}", missed.join(", "));
}

#[test]
fn every_fault_planted_on_several_cores_is_caught() {
    let missed = missed(faulty_rows_of_many(), Setting::drawn_for_many);
    assert!(missed.is_empty(), "not caught: {}", missed.join(", "));
}

#[test]
fn the_wrapper_alone_is_not_caught() {
    for (_, row) in sound_rows() {
        for seed in 0..40 {
            for setting in [Setting::drawn(row, seed), Setting::drawn_for_many(row, seed)] {
                if let Err(what) = run(&setting, seed, EFFORT) {
                    panic!("{what}");
                }
            }
        }
    }
}
