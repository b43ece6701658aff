//! Sweeps of the random tester (`durasim-random`), as environment variables say.

#![allow(dead_code, reason = "each test program uses a part of this")]

use durasim_contract::Variant;
use durasim_designs::VARIANTS;
use durasim_random::{Effort, Setting, Tally, Trace};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether a variant with hardware of its own is to be tried: all are, unless `DURASIM_VARIANT` names one.
pub fn is_wanted(variant: &Variant) -> bool {
    std::env::var("DURASIM_VARIANT").map_or(true, |name| name == variant.name)
}

/// Whether a variant differs in what is tried here from those before it.
pub fn is_of_its_own(variant: &Variant) -> bool {
    durasim_random::is_of_its_own(variant, VARIANTS)
}

/// Seeds to try: the usual ones, or as many as `DURASIM_SEEDS` says, from `DURASIM_FIRST_SEED` on.
pub fn seeds(usual: u64) -> u64 {
    std::env::var("DURASIM_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(usual)
}

/// Runs with this seed. The error names the machine and the failure; with `DURASIM_TRACE` the steps are printed.
pub fn run(setting: &Setting, seed: u64, effort: Effort) -> Result<Tally, String> {
    let trace = if std::env::var_os("DURASIM_TRACE").is_some() { Trace::wanted() } else { Trace::default() };
    let outcome = durasim_random::run(setting, seed, effort, &trace);
    trace.lines().iter().for_each(|line| eprintln!("{line}"));
    let (variant, domain, sets) = (setting.variant.name, setting.domain, &setting.sets);
    outcome.map_err(|what| format!("{variant} on {domain} with {sets:?}, seed {seed}: {what}"))
}

/// Runs seeds on two threads; the sum of what they did, or the first failures.
pub fn sweep(seeds: u64, draw: impl Fn(u64) -> Setting + Sync, effort: Effort) -> Tally {
    let first: u64 = std::env::var("DURASIM_FIRST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    let next = AtomicU64::new(first);
    let results = Mutex::new((Tally::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        return;
                    }
                    let result = run(&draw(seed), seed, effort);
                    let mut sum = results.lock().unwrap();
                    match result {
                        Ok(tally) => sum.0.add(&tally),
                        Err(what) => sum.1.push((seed, what)),
                    }
                }
            });
        }
    });
    let (tally, mut failed) = results.into_inner().unwrap();
    failed.sort();
    let shown: Vec<&str> = failed.iter().take(5).map(|(_, s)| s.as_str()).collect();
    assert!(failed.is_empty(), "{} of {seeds} runs failed:\n{}", failed.len(), shown.join("\n"));
    tally
}
