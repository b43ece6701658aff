//! A campaign over the crash points of one run: one run counts the persist events, a second one is crashed.

use crate::byte_oracle::ByteOracle;
use crate::order::{Checking, OrderChecker};
use crate::result::{CrashResult, Failure};
use crate::trial::{Judge, Objection, Trial};
use durasim_design::{Backend, CrashImage, Row};
use durasim_machine::{
    Captured, Ending, Host, Machine, Observer, Output, Prepared, RunRequest, Stream, System, prepare,
};
use durasim_types::{
    ConfigError, DataRange, Error, EventKind, GuestFault, Journal, Pages, PersistEvent, Rng, TxId, Write,
};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Which persist events a campaign crashes at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Points {
    /// So many, drawn by the seed.
    Some(u64),
    /// Every one.
    All(All),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum All {
    /// `all`.
    All,
}

/// A campaign over one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CrashRequest {
    /// The run that is crashed.
    #[serde(flatten)]
    pub run: RunRequest,
    /// The crash points.
    pub points: Points,
    /// One crash point instead, as a failure names it.
    #[serde(default)]
    pub replay: Option<String>,
    /// The planted fault that the row's hardware has, if it shall have one.
    #[serde(default)]
    pub planted: Option<String>,
    /// The program that recovers and checks.
    pub elf_recover: PathBuf,
    /// Its arguments for recovery.
    pub recover_args: Vec<String>,
    /// Its arguments for recovery and check.
    pub check_args: Vec<String>,
}

/// Failures that a result lists.
const FAILURES_MAX: usize = 20;

/// Runs a campaign. `progress` hears of trials done and to do; answering false ends the campaign early, as does `stop`
/// from another thread, which is looked at during the runs too.
///
/// # Errors
/// As from a run; a workload that fails without any crash; and a campaign stopped before its first crash.
pub fn crash(
    request: &CrashRequest,
    registry: &[Row],
    stop: &AtomicBool,
    progress: &mut (dyn FnMut(u64, u64) -> bool + Send),
) -> Result<CrashResult, Error> {
    let started = Instant::now();
    if request.run.functional {
        return Err(ConfigError::new("functional", "a functional run has no persist events to crash at").into());
    }
    let mut prepared = prepare(&request.run, registry)?;
    if let Some(planted) = &request.planted {
        prepared.plan = prepared.plan.plant(planted)?;
    }
    let counted = count(&prepared, &request.run, stop)?;
    let points = choose(request, counted.events)?;
    let trials_total = points.len() as u64;

    let has_guest_recovery = prepared.plan.row.backend != Backend::Markers;
    let judge = Judge {
        prepared: &prepared,
        recover_args: has_guest_recovery.then_some(request.recover_args.as_slice()),
        check_args: &request.check_args,
        files: &counted.files,
    };
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    let (trial_sender, trial_receiver) = sync_channel::<Trial>(2 * workers);
    let trial_receiver = Mutex::new(trial_receiver);
    let (verdict_sender, verdict_receiver) = sync_channel::<(u64, Option<Objection>)>(64);
    let marks = Arc::new(Mutex::new(BTreeMap::new()));

    let (ran, verdicts) = std::thread::scope(|scope| {
        for _ in 0..workers {
            let verdicts = verdict_sender.clone();
            let (judge, trials) = (&judge, &trial_receiver);
            scope.spawn(move || work(judge, trials, &verdicts, stop));
        }
        drop(verdict_sender);
        let (prepared, marks) = (&prepared, marks.clone());
        let runner = scope.spawn(move || run_crashed(prepared, points, trial_sender, marks, stop));
        let verdicts = collect(&verdict_receiver, trials_total, progress, stop);
        (runner.join().expect("the run does not panic"), verdicts)
    });
    let instructions = ran?;

    let failures: Vec<Failure> = verdicts
        .iter()
        .filter_map(|(event, objection)| {
            let (oracle, message) = objection.clone()?;
            Some(Failure { id: format!("e{event}"), oracle: oracle.into(), message, command: String::new() })
        })
        .collect();
    let marks = marks.lock().expect("no thread panicked with the marks").clone();
    Ok(CrashResult {
        schema: "durasim-crash/1".into(),
        durasim_version: env!("CARGO_PKG_VERSION").into(),
        design: prepared.plan.row.name.into(),
        workload: request.run.workload.clone(),
        machine: prepared.config.name.clone(),
        domain: prepared.plan.domain.name().into(),
        seed: request.run.seed,
        threads: request.run.threads,
        ops: request.run.ops,
        points: counted.events,
        trials: verdicts.len() as u64,
        violations: failures.len() as u64,
        failures: failures.into_iter().take(FAILURES_MAX).collect(),
        events_by_kind: EventKind::ALL.iter().zip(counted.kinds).map(|(k, n)| (k.name().to_owned(), n)).collect(),
        marks,
        host: Host::new(counted.instructions + instructions, started.elapsed()),
        stats: counted.stats,
    })
}

/// Keeps what the program writes, and stops it when the campaign is to end.
struct Interruptible<'a> {
    captured: Captured,
    stop: &'a AtomicBool,
}

impl Output for Interruptible<'_> {
    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        self.captured.write(stream, bytes);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The run as it is without a crash.
struct Counted {
    events: u64,
    kinds: [u64; EventKind::COUNT],
    instructions: u64,
    files: durasim_machine::PmemPool,
    stats: durasim_types::Stats,
}

fn count(prepared: &Prepared, request: &RunRequest, stop: &AtomicBool) -> Result<Counted, Error> {
    let mut machine = Machine::new(&prepared.config, &prepared.plan, &prepared.program)?;
    let order = Arc::new(Mutex::new(OrderChecker::default()));
    machine.system_mut().observe(Box::new(Checking(order.clone())));
    let mut output = Interruptible { captured: Captured::default(), stop };
    let ending = machine.run(request.max_instructions, &mut output)?;
    if let Some(objection) = order.lock().expect("nobody panics with the checker").objection() {
        let what = format!("its persist events come in an order that no hardware could produce: {objection}");
        return Err(Error::Stuck { cycle: machine.cycle(), what });
    }
    if stop.load(Ordering::Relaxed) {
        return Err(ConfigError::new("campaign", "stopped before its first crash").into());
    }
    if ending != Ending::Exited(0) {
        let said = output.captured.text().lines().last().unwrap_or("it said nothing").to_owned();
        let what = format!("the workload fails without any crash ({ending:?}): {said}");
        return Err(GuestFault { pc: 0, what, last_syscall: None }.into());
    }
    Ok(Counted {
        events: machine.system().event_count(),
        kinds: machine.system().event_kinds(),
        instructions: machine.instructions(),
        files: machine.pool().clone(),
        stats: machine.system().stats(),
    })
}

/// The crash points: distinct numbers of persist events.
fn choose(request: &CrashRequest, events: u64) -> Result<BTreeSet<u64>, ConfigError> {
    if let Some(replay) = &request.replay {
        let number = replay.strip_prefix('e').and_then(|n| n.parse::<u64>().ok());
        let number = number.filter(|n| (1..=events).contains(n)).ok_or_else(|| {
            ConfigError::new(
                "replay",
                format!("'{replay}' is not one of e1 to e{events}, the persist events of this run"),
            )
        })?;
        return Ok(BTreeSet::from([number]));
    }
    match request.points {
        Points::Some(n) if n < events => {
            let mut rng = Rng::new(request.run.seed ^ 0x6372_6173_6800);
            let mut points = BTreeSet::new();
            while (points.len() as u64) < n {
                points.insert(1 + rng.below(events));
            }
            Ok(points)
        }
        _ => Ok((1..=events).collect()),
    }
}

fn work(
    judge: &Judge<'_>,
    trials: &Mutex<Receiver<Trial>>,
    verdicts: &SyncSender<(u64, Option<Objection>)>,
    stop: &AtomicBool,
) {
    loop {
        let next = trials.lock().expect("no thread panics while it waits").recv();
        let Ok(trial) = next else { return };
        if stop.load(Ordering::Relaxed) {
            continue;
        }
        let event = trial.event;
        // A recovery that panics has failed like one that comes to a wrong end; the campaign goes on.
        let judged = catch_unwind(AssertUnwindSafe(|| judge.objection(trial)));
        let objection = judged.unwrap_or_else(|panic| Some(("panic", text_of(&*panic))));
        if verdicts.send((event, objection)).is_err() {
            return;
        }
    }
}

/// What a panic said.
fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it gave no reason").to_owned()
}

fn collect(
    verdicts: &Receiver<(u64, Option<Objection>)>,
    total: u64,
    progress: &mut (dyn FnMut(u64, u64) -> bool + Send),
    stop: &AtomicBool,
) -> BTreeMap<u64, Option<Objection>> {
    let mut all = BTreeMap::new();
    while let Ok((event, objection)) = verdicts.recv() {
        all.insert(event, objection);
        if !progress(all.len() as u64, total) {
            stop.store(true, Ordering::Relaxed);
        }
    }
    all
}

/// A journal that the observer can look into.
struct Shared(Arc<Mutex<ByteOracle>>);

impl Shared {
    fn with(&self, act: impl FnOnce(&mut ByteOracle)) {
        act(&mut self.0.lock().expect("nobody panics with the oracle"));
    }
}

impl Journal for Shared {
    fn data_range(&mut self, range: DataRange) {
        self.with(|o| o.data_range(range));
    }
    fn begin(&mut self, tx: TxId) {
        self.with(|o| o.begin(tx));
    }
    fn store(&mut self, tx: Option<TxId>, write: Write) {
        self.with(|o| o.store(tx, write));
    }
    fn committing(&mut self, tx: TxId) {
        self.with(|o| o.committing(tx));
    }
    fn acknowledged(&mut self, tx: TxId) {
        self.with(|o| o.acknowledged(tx));
    }
    fn aborted(&mut self, tx: TxId) {
        self.with(|o| o.aborted(tx));
    }
}

/// Takes an image at each crash point. It is judged against what is acknowledged just before the next event, so it
/// waits until that event comes.
struct Crasher {
    points: BTreeSet<u64>,
    oracle: Arc<Mutex<ByteOracle>>,
    pending: Option<(u64, CrashImage)>,
    trials: SyncSender<Trial>,
    marks: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Crasher {
    /// Sends the pending image off; false if nobody takes it.
    fn release(&mut self) -> bool {
        let Some((event, image)) = self.pending.take() else { return true };
        let oracle = self.oracle.lock().expect("nobody panics with the oracle").clone();
        self.trials.send(Trial { event, image, oracle }).is_ok()
    }
}

impl Observer for Crasher {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        if !self.release() {
            return false;
        }
        if self.points.remove(&event.number) {
            let (image, complete) = system.crash_image(u64::MAX);
            complete.expect("unlimited energy suffices");
            let mut marks = self.marks.lock().expect("nobody panics with the marks");
            *marks.entry(event.kind.name().to_owned()).or_default() += 1;
            system.marks(&mut |mark| *marks.entry(mark.to_owned()).or_default() += 1);
            self.pending = Some((event.number, image));
        }
        // Behind the last point only the acknowledgements up to the next event are of interest.
        !self.points.is_empty() || self.pending.is_some()
    }
}

/// Runs the program once more and hands out images; the number of instructions.
fn run_crashed(
    prepared: &Prepared,
    points: BTreeSet<u64>,
    trials: SyncSender<Trial>,
    marks: Arc<Mutex<BTreeMap<String, u64>>>,
    stop: &AtomicBool,
) -> Result<u64, Error> {
    let mut machine = Machine::new(&prepared.config, &prepared.plan, &prepared.program)?;
    let initial = match &prepared.program.pool {
        Some(pool) => pool.pages.clone(),
        None => Pages::new(durasim_machine::PMEM_BASE, prepared.config.pmem.capacity_mib << 20),
    };
    let oracle = Arc::new(Mutex::new(ByteOracle::new(initial)));
    machine.system_mut().keep_journal(Box::new(Shared(oracle.clone())));
    let crasher = Arc::new(Mutex::new(Crasher { points, oracle, pending: None, trials, marks }));
    machine.system_mut().observe(Box::new(Watching(crasher.clone())));
    machine.run(None, &mut Interruptible { captured: Captured::default(), stop })?;
    crasher.lock().expect("nobody panics with the crasher").release();
    Ok(machine.instructions())
}

/// The observer that the machine owns, while the campaign keeps the crasher for the end of the run.
struct Watching(Arc<Mutex<Crasher>>);

impl Observer for Watching {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        self.0.lock().expect("nobody panics with the crasher").event(event, system)
    }
}
