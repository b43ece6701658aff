//! A random tester that drives the memory system without cores, through 1 to 16 cache ports: it knows what every load
//! has to return, and at persist events it crashes the machine, recovers and judges the image.
//!
//! A request of a port is one atomic step of the machine, so the bytes that a load has to return are those of the
//! newest store in the order of the requests. Threads come and go at the ports as on cores; each has at most one open
//! transaction and one request that is pending. Aborts are rolled back in the model when the journal
//! tells of them; their thread takes notice later, as a core does.

#![allow(dead_code, reason = "each test program uses a part of this")]

pub mod hardware;
pub mod judge;
pub mod life;
pub mod model;
pub mod requests;
pub mod settings;

use durasim_design::{Hooks, Row};
use durasim_designs::ROWS;
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, presets};
use durasim_types::{PAGE_BYTES, Pages, Rng};
use judge::Findings;
use life::Life;
use settings::Setting;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// Bytes of persistent memory, and of DRAM, that a run touches.
pub const REGION_BYTES: u64 = 2 * PAGE_BYTES;

/// How much a run does.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Operations of each run of the machine.
    pub ops: u64,
    /// Persist events that are crash points, in percent.
    pub crash_percent: u64,
    /// Crash points at which recovery is cut at each of its writes, in percent.
    pub cut_percent: u64,
    /// Times the machine is started; all but the first time from the recovered image of the last.
    pub lives: u64,
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub ops: u64,
    pub loads: u64,
    pub committed: u64,
    pub aborted: u64,
    pub aborted_by_hardware: u64,
    /// Transactions aborted by a request of another port.
    pub aborted_by_others: u64,
    /// Requests that were pending at least once.
    pub pending: u64,
    /// Stores whose log operations had left ahead of a store in front of them.
    pub logged_ahead: u64,
    /// Store-conditionals that were done, and those that had lost their reservation.
    pub conditionals: [u64; 2],
    /// Times a thread left its port, and times it left inside a transaction.
    pub switches: [u64; 2],
    pub findings: Findings,
    pub stats: durasim_types::Stats,
    /// Commands to media that the checker has seen.
    pub commands: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.ops += other.ops;
        self.loads += other.loads;
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.aborted_by_hardware += other.aborted_by_hardware;
        self.aborted_by_others += other.aborted_by_others;
        self.pending += other.pending;
        self.logged_ahead += other.logged_ahead;
        self.commands += other.commands;
        for i in 0..2 {
            self.conditionals[i] += other.conditionals[i];
            self.switches[i] += other.switches[i];
        }
        self.findings.add(&other.findings);
        for (path, stat) in &other.stats.0 {
            let sum = self.stats.get(path).unwrap_or(0.0) + stat.value;
            self.stats.set(path.clone(), sum, &stat.unit, &stat.description);
        }
    }
}

/// Runs with this seed. The error tells what went wrong; a panic inside is an error too.
pub fn run(setting: &Setting, seed: u64, effort: Effort) -> Result<Tally, String> {
    let place = format!("{} on {} with {:?}, seed {seed}", setting.row.name, setting.domain, setting.sets);
    trace(|| place.clone());
    let outcome = catch_unwind(AssertUnwindSafe(|| lives(setting, seed, effort)));
    match outcome {
        Ok(Ok(tally)) => Ok(tally),
        Ok(Err(what)) => Err(format!("{place}: {what}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(format!("{place}: panic: {}", text.unwrap_or_default()))
        }
    }
}

fn lives(setting: &Setting, seed: u64, effort: Effort) -> Result<Tally, String> {
    let overrides: Vec<String> = setting.sets.clone();
    let text = presets::text("tiny").expect("tiny is a preset");
    let config = MachineConfig::parse("tiny", text, &overrides).map_err(|e| e.to_string())?;
    let mut plan = Plan::new(&config, &setting.row, setting.domain).map_err(|e| e.to_string())?;
    if let Some(planted) = setting.planted {
        plan.geometry.planted = planted.fault();
    }
    let mut rng = Rng::new(seed);
    let mut pages = Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20);
    let mut first = vec![0; REGION_BYTES as usize];
    rng.fill(&mut first);
    pages.write(PMEM_BASE, &first);
    let mut tally = Tally::default();
    for _ in 0..effort.lives {
        let mut life = Life::new(&config, &plan, setting, pages.clone(), rng.next_u64(), effort)?;
        life.run(effort.ops).map_err(|what| format!("after {} operations: {what}", life.tally.ops))?;
        life.finish(&mut tally);
        if setting.crashes {
            let (mut image, _) = life.system.crash_image(u64::MAX);
            let recover = setting.row.hardware.recover;
            recover(&plan.spec, &plan.geometry, &mut image).map_err(|_| "an uncut recovery was cut".to_owned())?;
            life.shared.lock().expect("nobody panics with it").judge(&image.pmem)?;
            pages = image.pmem;
        }
    }
    Ok(tally)
}

/// Tells what a run does, if `DURASIM_TRACE` is set: for the one seed that fails.
pub fn trace(what: impl FnOnce() -> String) {
    static WANTED: OnceLock<bool> = OnceLock::new();
    if *WANTED.get_or_init(|| std::env::var_os("DURASIM_TRACE").is_some()) {
        eprintln!("{}", what());
    }
}

/// Whether a row with hardware of its own is to be tried: all are, unless `DURASIM_ROW` names one.
pub fn is_wanted(row: &Row) -> bool {
    std::env::var("DURASIM_ROW").map_or(true, |name| name == row.name)
}

/// Whether a row differs in what is tried here from those before it: rows on hardware transactions on the same domains differ in
/// software alone.
pub fn is_of_its_own(row: &Row) -> bool {
    let is_alike = |other: &&Row| other.hardware.name == row.hardware.name && other.domains == row.domains;
    !has_hardware_transactions(row) || ROWS.iter().find(is_alike).is_some_and(|first| first.name == row.name)
}

/// Whether instructions begin and commit transactions, and programs recover: what markers do for other rows.
pub fn has_hardware_transactions(row: &Row) -> bool {
    row.hardware.hooks.has(Hooks::HARDWARE_TX)
}

/// Seeds to try: the usual ones, or as many as `DURASIM_SEEDS` says, from `DURASIM_FIRST_SEED` on.
pub fn seeds(usual: u64) -> u64 {
    std::env::var("DURASIM_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(usual)
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
