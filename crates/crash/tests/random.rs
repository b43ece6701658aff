//! Thousands of short random runs of every row on machines of many shapes: loads return the newest bytes, nothing
//! panics or gets stuck, and every crash recovers to what was acknowledged.
//!
//! `DURASIM_SEEDS=100000 cargo test -p durasim-crash --test random` tries more seeds than the usual ones.

mod common;

use common::settings::Setting;
use common::{Effort, Tally, run};
use durasim_design::Hooks;
use durasim_designs::ROWS;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs seeds on two threads; the tallies in the order of the seeds, or the first failure.
fn sweep(row: &durasim_design::Row, seeds: u64, effort: Effort) -> Vec<Tally> {
    let next = AtomicU64::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        return;
                    }
                    let result = run(&Setting::drawn(*row, seed), seed, effort);
                    results.lock().unwrap().push((seed, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(seed, _)| *seed);
    let failed: Vec<&String> = results.iter().filter_map(|(_, r)| r.as_ref().err()).collect();
    let shown: Vec<&str> = failed.iter().take(5).map(|s| s.as_str()).collect();
    assert!(failed.is_empty(), "{} of {seeds} runs failed:\n{}", failed.len(), shown.join("\n"));
    results.into_iter().map(|(_, r)| r.expect("failures were reported")).collect()
}

#[test]
fn hardware_designs_survive_everything() {
    for row in ROWS.iter().filter(|row| row.hardware.hooks != Hooks::NONE) {
        let seeds = std::env::var("DURASIM_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2500);
        let effort = Effort { ops: 250, crash_percent: 10, cut_percent: 4, lives: 2 };
        let tallies = sweep(row, seeds, effort);
        let mut sum = Tally::default();
        for tally in &tallies {
            sum.ops += tally.ops;
            sum.committed += tally.committed;
            sum.aborted += tally.aborted;
            sum.aborted_by_hardware += tally.aborted_by_hardware;
            sum.findings.add(&tally.findings);
        }
        let Tally { ops, committed, aborted, aborted_by_hardware, findings, .. } = sum;
        println!("{}: {ops} operations, {committed} commits, {aborted} aborts", row.name);
        println!("{}: {findings:?}", row.name);
        assert!(findings.images > 10 * seeds && findings.cuts > seeds && committed > seeds);
        // The rare situations are not rare here.
        assert!(aborted_by_hardware > 0, "no transaction ever found its structures full");
        let marks: &[&str] = match row.hardware.name {
            "hercules" => &["premature_flush_open", "extension_populated", "migration_in_flight", "committed_off_chip"],
            "tc" => &["tc_full", "overflow_in_progress", "acknowledgement_in_flight"],
            _ => &[],
        };
        for mark in marks {
            assert!(findings.marks.get(mark).is_some_and(|&n| n > seeds / 10), "{mark}: {:?}", findings.marks);
        }
    }
}

#[test]
fn machines_without_design_keep_the_newest_bytes() {
    for row in ROWS.iter().filter(|row| row.hardware.hooks == Hooks::NONE) {
        sweep(row, 200, Effort { ops: 300, crash_percent: 0, cut_percent: 0, lives: 1 });
    }
}
