//! A campaign over the crash points of one run: one run counts the persist events, a second one is crashed at them. The
//! machine is not disturbed and nothing is run again: the image of a crash shares its pages with the machine, which goes
//! on; recoveries and checks work on the images, on other threads.

use crate::causes::{self, CauseLook, Causes, Rerun, Rerunner};
use crate::coverage::not_tried;
use crate::crashed_run::{
    Crash, CrashFreeRun, CrashPointSelector, CrashedRun, EndedRun, Selection, crash_free_run, initial_pmem,
    run_with_crashes,
};
use crate::executor::{Executor, Retry};
use crate::explore::explore;
use crate::failure_kind::FailureKind;
use crate::judge::{Context, Judge, ProgramRecovery};
use crate::limits::RecoveryLimits;
use crate::outcome::Outcome;
use crate::persistency::{ModelChoice, Persistency, Refusal};
use crate::persistency_model::PersistencyModel;
use crate::postponed::Postponed;
use crate::power_faults::PowerFaultDraw;
use crate::request::CrashRequest;
use crate::result::{CrashResult, Failure};
use crate::schedule::{All, DrawnFailures, Points, check_event, schedule};
use crate::timeline::{Replayed, check_followed, replay};
use crate::timeline_document::Timeline;
use crate::trial::{PowerFault, Trial};
use crate::trial_checks::{self, FirstChecks};
use durasim_contract::Variant;
use durasim_machine::{
    DistinctImages, Host, Inserted, PowerFailureOptions, Prepared, Provenance, RunRequest, System, configuration,
    prepare,
};
use durasim_types::{ConfigError, Error, EventKind, PersistEvent, Rng};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The number of crash points at which, or more, a program of the user's own runs once more for its recovery: it is
/// short, and has few crash points.
const OTHER_RUNS_OF_A_PROGRAM: usize = 32;

/// Images of an event that an exhaustive campaign takes.
const IMAGES_MAX: u64 = 4096;

/// Failures that a result lists.
const FAILURES_MAX: usize = 20;

/// A crash point with what was left there.
struct Batch {
    draw: DrawnFailures,
    crashes: Vec<Crash>,
}

type Trials = Vec<(Trial, Outcome)>;

/// The trials of one batch, and those that may run once more.
type Tried = (Trials, BTreeMap<Trial, Retry>);

/// The outcome of a campaign or a replay.
#[derive(Default)]
pub(crate) struct CampaignOutcome {
    /// Simulated instructions of the crashed run.
    instructions: u64,
    marks: BTreeMap<String, u64>,
    points_at_risk: u64,
    not_tried: BTreeMap<String, String>,
    tried: Trials,
    timeline: Option<Timeline>,
    limits: RecoveryLimits,
}

/// Runs a campaign. `progress` is notified of crash points done and to do; answering false ends the campaign early, as does
/// `stop` from another thread, which is looked at during the runs too.
///
/// # Errors
/// As from a run; a workload that fails without any crash; and a campaign that was stopped before its first crash.
pub fn crash(
    request: &CrashRequest,
    registry: &[Variant],
    stop: &AtomicBool,
    progress: &mut (dyn FnMut(u64, u64) -> bool + Send),
) -> Result<CrashResult, Error> {
    let started = Instant::now();
    check_followed(&request.follow)?;
    if request.run.functional {
        return Err(ConfigError::new("functional", "a functional run has no persist events to crash at").into());
    }
    let trial = request.replay.as_deref().map(parse_trial).transpose()?;
    let prepared = prepare_for_crashes(request, registry)?;
    let persistency = persistency(request, &prepared, trial.as_ref())?;
    let crash_free_run = crash_free_run(&prepared, request.run.budget(), stop)?;
    let crashing = Instant::now();
    let persistency = persistency.as_ref();
    let campaign = Campaign { request, prepared: &prepared, crash_free_run: &crash_free_run, persistency, stop };
    let workers = request.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    let ended = match &trial {
        None => campaign.run(workers.max(1), progress)?,
        Some(trial) => campaign.replay(trial, progress)?,
    };
    let crashed = crashing.elapsed();
    let causes = campaign.causes(workers.max(1), &ended.tried, progress)?;
    let check_outputs = request.check_output.then(|| trial_checks::listed(&ended.tried, trial.is_some(), FAILURES_MAX));
    let mut result = CrashResult::of(&prepared, &request.run, &crash_free_run, ended.tried, FAILURES_MAX);
    (result.causes, result.check_outputs) = (causes, check_outputs);
    result.persistency_model = request.persistency_model;
    (result.marks, result.timeline, result.limits) = (ended.marks, ended.timeline, ended.limits);
    (result.not_tried, result.points_at_risk) = (ended.not_tried, ended.points_at_risk);
    result.set_speed(crashed, workers);
    result.host = Host::new(crash_free_run.instructions + ended.instructions, started.elapsed());
    Ok(result)
}

/// The trial with this id.
///
/// # Errors
/// A text that is no id.
pub(crate) fn parse_trial(id: &str) -> Result<Trial, ConfigError> {
    id.parse().map_err(|problem: String| ConfigError::new("replay", problem))
}

/// The run of a request, with the planted fault that it asks for.
///
/// # Errors
/// As from a run, and an unknown planted fault.
pub(crate) fn prepare_for_crashes(request: &CrashRequest, registry: &[Variant]) -> Result<Prepared, Error> {
    let mut prepared = prepare(&request.run, registry)?;
    if let Some(planted) = &request.planted {
        prepared.plan = prepared.plan.with_planted_fault(planted)?;
    }
    Ok(prepared)
}

/// The persistency model of a campaign, or of the replay of a trial.
///
/// # Errors
/// It has no meaning for the run, for faults that are asked for, or for the trial.
pub(crate) fn persistency(
    request: &CrashRequest,
    prepared: &Prepared,
    trial: Option<&Trial>,
) -> Result<Option<Persistency>, ConfigError> {
    let model_of = |fault: PowerFault| if let PowerFault::Model(model, _) = fault { Some(model) } else { None };
    let other = trial.and_then(|trial| trial.power_faults().map(model_of).find(|of| *of != request.persistency_model));
    if let (Some(trial), Some(other)) = (trial, other) {
        let problem = match (other, request.persistency_model) {
            (Some(model), _) => {
                format!("'{trial}' has an image of the persistency model {0}: ask for {0}", model.name())
            }
            (None, asked) => format!(
                "'{trial}' has an image of the machine, and none of the persistency model {}",
                asked.map_or("", PersistencyModel::name)
            ),
        };
        return Err(ConfigError::new("replay", problem));
    }
    let Some(model) = request.persistency_model else { return Ok(None) };
    let persistency = Persistency::of(model, prepared)?;
    let asked = request.faults.iter().flatten();
    if let Some(fault) = asked.copied().find(|fault| !FailureKind::UNDER_MODELS.contains(fault)) {
        let names = FailureKind::UNDER_MODELS.map(FailureKind::name).join(", ");
        let problem = format!(
            "'{}' has no meaning under a persistency model, whose images take its place (allowed: {names})",
            fault.name()
        );
        return Err(ConfigError::new("fault", problem));
    }
    Ok(Some(persistency))
}

pub(crate) struct Campaign<'a> {
    pub request: &'a CrashRequest,
    pub prepared: &'a Prepared,
    pub crash_free_run: &'a CrashFreeRun,
    pub persistency: Option<&'a Persistency>,
    pub stop: &'a AtomicBool,
}

impl Campaign<'_> {
    pub fn context(&self) -> Context<'_> {
        let recovery = match &self.request.recover_args {
            None => ProgramRecovery::Check,
            Some(_) if self.prepared.plan.variant.backend.hardware_recovers => ProgramRecovery::Nothing,
            Some(args) => ProgramRecovery::Command(args),
        };
        Context {
            prepared: self.prepared,
            recovery,
            check_args: &self.request.check_args,
            again_args: &self.request.again_args,
            files: self.crash_free_run.files.as_ref().expect("a run without crash has ended"),
            history: self.request.history.then_some(&self.crash_free_run.history),
            output: self.request.judges_output().then_some(&self.crash_free_run.history),
            crash_free: &self.crash_free_run.left,
            recovery_limit: self.request.recovery_limit,
            keeps_check_output: self.request.check_output,
            all_cuts: self.request.cut_every_write || matches!(self.request.points, Points::All(_)),
            persistency: self.persistency,
            stop: self.stop,
        }
    }

    /// Draws trials at the crash points, and carries them out.
    fn run(
        &self,
        workers: usize,
        progress: &mut (dyn FnMut(u64, u64) -> bool + Send),
    ) -> Result<CampaignOutcome, Error> {
        let request = self.request;
        let other_runs_min = if request.recover_args.is_none() { OTHER_RUNS_OF_A_PROGRAM } else { 1 };
        let draws = schedule(request.points, &request.faults(), request.run.seed, self.crash_free_run, other_runs_min);
        let points_total = draws.len() as u64;
        let (batch_sender, batch_receiver) = sync_channel::<Batch>(2 * workers);
        let batch_receiver = Mutex::new(batch_receiver);
        let (tried_sender, tried_receiver) = sync_channel::<Tried>(64);
        let selector = CampaignCrashPoints {
            draws,
            variants: request.variants,
            batches: batch_sender,
            marks: BTreeMap::new(),
            points_at_risk: 0,
            is_exhaustive: request.points == Points::All(All::Exhaustive),
            model: self.persistency.map(|persistency| persistency.model),
            too_many: None,
            refusal: None,
        };
        let first = Executor::new(Judge::new(self.context())?);
        let mut executors = vec![first; workers];

        let (ran, (mut tried, postponed)) = std::thread::scope(|scope| {
            for executor in &mut executors {
                let (sender, receiver) = (tried_sender.clone(), &batch_receiver);
                scope.spawn(move || work(executor, receiver, &sender, request.variants, self.stop));
            }
            drop(tried_sender);
            let runner = scope.spawn(move || -> Result<_, Error> {
                // The selector ends with this thread: workers end when their channel has no sender any more.
                let run = CrashedRun {
                    prepared: self.prepared,
                    program: &self.prepared.program,
                    expected: initial_pmem(self.prepared, &self.prepared.program),
                    declares: self.crash_free_run.left.declares,
                    recovers_first: false,
                    limits: None,
                    store_recorder: None,
                    persistency: self.persistency,
                };
                let EndedRun { instructions, selector, ended } =
                    run_with_crashes(run, selector, None, None, self.stop)?;
                ended?;
                selector.check_images()?;
                Ok((instructions, selector.marks, selector.points_at_risk))
            });
            let tried = collect(&tried_receiver, points_total, progress, self.stop);
            (runner.join().expect("the run does not panic"), tried)
        });
        let (instructions, marks, points_at_risk) = ran?;
        let executor = &executors[0];
        if !self.stop.load(Ordering::Relaxed) {
            postponed.settle(executor, &mut tried)?;
            tried.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        let limits = executor.judge().limits.document();
        let not_tried = not_tried(&tried, &request.faults(), &self.context(), self.crash_free_run);
        Ok(CampaignOutcome { instructions, marks, points_at_risk, not_tried, tried, timeline: None, limits })
    }

    /// The causes of the violations among these trials of a program of the user's own. A replay does not test them.
    pub fn causes(
        &self,
        workers: usize,
        tried: &Trials,
        progress: &mut (dyn FnMut(u64, u64) -> bool + Send),
    ) -> Result<Option<Causes>, Error> {
        let is_wrong = tried.iter().any(|(_, outcome)| !outcome.objections.is_empty());
        if self.request.recover_args.is_some() || !is_wrong || self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut rerun = |inserted: &Inserted, look: &mut CauseLook<'_>| {
            let mut prepared = self.prepared.clone();
            prepared.program.inserted = inserted.clone();
            let crash_free_run = crash_free_run(&prepared, self.request.run.budget(), self.stop)?;
            let campaign = Campaign { prepared: &prepared, crash_free_run: &crash_free_run, ..*self };
            // The points of the campaign are done.
            let ended = campaign.run(workers, &mut |_, total| progress(total, total))?;
            let is_failing = |(trial, outcome): (Trial, Outcome)| (!outcome.objections.is_empty()).then_some(trial);
            let trials = ended.tried.len() as u64;
            let rerun = Rerun { trials, failing: ended.tried.into_iter().filter_map(is_failing).collect() };
            let is_left = look(campaign.context(), &rerun)?;
            Ok((rerun, is_left))
        };
        let rerun: Option<&mut Rerunner<'_>> = if self.request.replay.is_none() { Some(&mut rerun) } else { None };
        causes::find(self.context(), &self.request.run.elf, tried, rerun).map(Some)
    }

    /// Executes this trial and records its timeline.
    pub fn replay(
        &self,
        trial: &Trial,
        progress: &mut (dyn FnMut(u64, u64) -> bool + Send),
    ) -> Result<CampaignOutcome, Error> {
        check_event(trial, self.crash_free_run)?;
        let Replayed { instructions, marks, outcome, timeline, limits } =
            replay(self.context(), trial, &self.request.follow)?;
        progress(1, 1);
        Ok(CampaignOutcome {
            instructions,
            marks,
            tried: vec![(trial.clone(), outcome)],
            timeline: Some(timeline),
            limits,
            ..CampaignOutcome::default()
        })
    }
}

fn work(
    executor: &mut Executor<'_>,
    batches: &Mutex<Receiver<Batch>>,
    tried: &SyncSender<Tried>,
    variants: u64,
    stop: &AtomicBool,
) {
    loop {
        let next = batches.lock().expect("no thread panics while it waits").recv();
        let Ok(Batch { draw, crashes }) = next else { return };
        if stop.load(Ordering::Relaxed) {
            continue;
        }
        let explore = |crash: Crash| explore(executor, crash, &draw, variants);
        let trials = crashes.into_iter().flat_map(explore).collect();
        if tried.send((trials, executor.take_retries())).is_err() {
            return;
        }
    }
}

fn collect(
    receiver: &Receiver<Tried>,
    total: u64,
    progress: &mut (dyn FnMut(u64, u64) -> bool + Send),
    stop: &AtomicBool,
) -> (Trials, Postponed) {
    let mut all = Vec::new();
    let mut postponed = Postponed::default();
    let mut checks = FirstChecks::new(FAILURES_MAX);
    let mut done = 0;
    while let Ok((mut tried, mut retries)) = receiver.recv() {
        checks.take(&mut tried);
        tried.iter().for_each(|(trial, outcome)| postponed.keep(trial, outcome, retries.remove(trial)));
        all.extend(tried);
        done += 1;
        if !progress(done, total) {
            stop.store(true, Ordering::Relaxed);
        }
    }
    checks.give_back(&mut all);
    // Workers finish in any order.
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    (all, postponed)
}

/// Takes the images of the crash points.
struct CampaignCrashPoints {
    draws: BTreeMap<u64, DrawnFailures>,
    variants: u64,
    batches: SyncSender<Batch>,
    marks: BTreeMap<String, u64>,
    /// Those at which a clean power failure loses dirty lines.
    points_at_risk: u64,
    /// Whether every image is taken that reordered cleans and early evictions can leave.
    is_exhaustive: bool,
    /// The persistency model whose images are taken in place of those of the machine.
    model: Option<PersistencyModel>,
    /// An event at which these are too many, and their number.
    too_many: Option<(u64, u64)>,
    /// An event at which images of the model are not taken, with the reason.
    refusal: Option<(u64, Refusal)>,
}

impl CampaignCrashPoints {
    /// Refuses a run with too many images at an event.
    fn check_images(&self) -> Result<(), ConfigError> {
        if let Some(((event, refusal), model)) = self.refusal.zip(self.model) {
            return Err(ConfigError::new("points", refusal.sentence(event, model)));
        }
        let Some((event, images)) = self.too_many else { return Ok(()) };
        let problem = format!(
            "persist event {event} has {images} images, more than {IMAGES_MAX}: clean lines earlier, or make the run smaller"
        );
        Err(ConfigError::new("points", problem))
    }
}

impl CrashPointSelector for CampaignCrashPoints {
    fn select(&mut self, event: &PersistEvent, system: &System) -> Option<Selection> {
        let (last, _) = self.draws.last_key_value()?;
        if event.number > *last {
            return None;
        }
        let Some(draw) = self.draws.get(&event.number) else { return Some(Selection::NOTHING) };
        system.marks(&mut |mark| *self.marks.entry(mark.to_owned()).or_default() += 1);
        let mut rng = Rng::new(draw.seed ^ 0x626c_6f77);
        if self.model.is_some() {
            self.points_at_risk +=
                u64::from(system.power_failure(&PowerFailureOptions::default()).lost_dirty_lines > 0);
            return Some(Selection::OfModel(match self.is_exhaustive {
                true => ModelChoice::All,
                false => ModelChoice::Drawn { others: self.variants, seed: rng.next_u64() },
            }));
        }
        let mut faults = draw.faults.clone();
        if self.is_exhaustive {
            faults.remove(&FailureKind::Reorder);
            faults.remove(&FailureKind::Evict);
        }
        let power_faults = PowerFaultDraw { faults, variants: self.variants, of_model: false };
        let mut drawn = power_faults.draw(system, &mut rng);
        self.points_at_risk += u64::from(drawn.loses_dirty_lines);
        if self.is_exhaustive {
            match system.distinct_images(IMAGES_MAX) {
                Ok(DistinctImages { evictions, others }) => {
                    let evictions = evictions.into_iter().map(PowerFault::Evict);
                    let faults = evictions.chain(others.into_iter().map(PowerFault::Image));
                    drawn.images.extend(faults.map(|fault| fault.image(system)));
                }
                Err(images) => {
                    self.too_many = Some((event.number, images));
                    return None;
                }
            }
        }
        Some(Selection::Images(drawn.images))
    }

    fn refused(&mut self, event: u64, refusal: Refusal) {
        self.refusal = Some((event, refusal));
    }

    fn record(&mut self, crashes: Vec<Crash>) -> bool {
        let Some(first) = crashes.first() else { return true };
        let draw = self.draws.remove(&first.event).expect("crashes are taken at crash points");
        self.batches.send(Batch { draw, crashes }).is_ok()
    }
}

/// Persist events by the names of their kinds.
pub(crate) fn by_kind(kinds: &[EventKind]) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = EventKind::ALL.iter().map(|kind| (kind.name().to_owned(), 0)).collect();
    for kind in kinds {
        *counts.entry(kind.name().to_owned()).or_default() += 1;
    }
    counts
}

impl CrashResult {
    /// The result of the trials.
    fn of(
        prepared: &Prepared,
        run: &RunRequest,
        crash_free_run: &CrashFreeRun,
        tried: Trials,
        failures_max: usize,
    ) -> CrashResult {
        let mut trials_by_fault: BTreeMap<String, u64> = BTreeMap::new();
        let mut judged_by: BTreeMap<String, u64> = BTreeMap::new();
        let mut alike: BTreeMap<(String, String), u64> = BTreeMap::new();
        let (mut failures, mut violations, mut hangs, mut disagreements, mut losses_reported, mut depth) =
            (Vec::new(), 0, 0, 0, 0, 0);
        let trials = tried.len() as u64;
        for (trial, outcome) in tried {
            *trials_by_fault.entry(trial.fault_name()).or_default() += 1;
            depth = depth.max(trial.depth());
            losses_reported += u64::from(outcome.reported_loss.is_some());
            outcome.judged.iter().for_each(|oracle| *judged_by.entry(oracle.name().to_owned()).or_default() += 1);
            if outcome.objections.is_empty() {
                continue;
            }
            violations += 1;
            hangs += u64::from(outcome.unfinished.is_some());
            disagreements += u64::from(outcome.is_disagreement());
            let failure = Failure::of(&trial, &outcome);
            *alike.entry((failure.oracle.clone(), failure.message.clone())).or_default() += 1;
            if failures.len() < failures_max {
                failures.push(failure);
            }
        }
        for failure in &mut failures {
            failure.alike = alike[&(failure.oracle.clone(), failure.message.clone())];
        }
        CrashResult {
            schema: "durasim-crash/6".into(),
            durasim_version: env!("CARGO_PKG_VERSION").into(),
            design: prepared.plan.variant.name.into(),
            workload: run.workload.clone(),
            machine: prepared.config.name.clone(),
            domain: prepared.plan.domain.name().into(),
            seed: run.seed,
            threads: run.threads,
            ops: run.ops,
            points: crash_free_run.events(),
            trials,
            trials_by_fault,
            not_tried: BTreeMap::new(),
            persistency_model: None,
            control: run.control || prepared.plan.variant.control,
            points_at_risk: 0,
            violations,
            hangs,
            disagreements,
            losses_reported,
            nested_depth_max: depth,
            trials_per_s_per_core: 0.0,
            judged_by,
            failures,
            events_by_kind: by_kind(&crash_free_run.kinds),
            marks: BTreeMap::new(),
            timeline: None,
            causes: None,
            check_outputs: None,
            limits: RecoveryLimits::default(),
            host: Host::new(0, Duration::ZERO),
            provenance: Provenance::of(run, prepared),
            configuration: configuration(prepared),
            stats: crash_free_run.stats.clone(),
        }
    }

    fn set_speed(&mut self, elapsed: Duration, workers: usize) {
        self.trials_per_s_per_core = self.trials as f64 / elapsed.as_secs_f64() / workers as f64;
    }
}

impl Failure {
    fn of(trial: &Trial, outcome: &Outcome) -> Failure {
        let names: Vec<&str> = outcome.objections.keys().map(|oracle| oracle.name()).collect();
        let texts: Vec<String> =
            outcome.objections.iter().map(|(oracle, what)| format!("{}: {what}", oracle.name())).collect();
        Failure {
            id: trial.to_string(),
            oracle: names.join("+"),
            disagreement: outcome.is_disagreement(),
            message: texts.join("; "),
            alike: 1,
            command: String::new(),
        }
    }
}
