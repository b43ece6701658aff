//! The one executor of crash trials: an image is recovered, by the hardware's recovery and then by the program's, and
//! judged. On the way recovery may fail too, and after it the program may work on and fail again. Whether a trial is drawn
//! or replayed makes one difference: where the next failure comes from.

use crate::crash_points::{DrawnCrashPoints, SingleCrashPoint};
use crate::crashed_run::{Crash, CrashPointSelector, CrashedRun, EndedRun, program_on, run_with_crashes};
use crate::history::{HistoryOracle, HistoryRecorder};
use crate::judge::{Allowed, Concluded, Context, Judge, OperationOracles, ProgramRecovery, Stopped, same};
use crate::limits::Stage;
use crate::outcome::{Oracle, Outcome};
use crate::power_faults::PowerFaultDraw;
use crate::timeline_document::RunKind;
use crate::timeline_recorder::TimelineRecorder;
use crate::trial::{NextFailure, PowerFault, Trial};
use durasim_contract::{CrashImage, RecoveryCut, RecoveryReport};
use durasim_types::{Error, LineAddr, PAGE_BYTES, Pages, PhysAddr};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A source of the further failures of a trial, one at a time.
pub(crate) trait FailureSource {
    /// The failure after a recovery of the hardware that made this many writes; `None`: no further failure.
    fn next(&mut self, recovery_writes: u64) -> Option<NextFailure>;

    /// Whether the oracles look at what is recovered in the end. Else a trial of its own has the same contents judged.
    fn are_judged(&self) -> bool {
        true
    }
}

/// The failures that the text of a trial names.
impl FailureSource for std::slice::Iter<'_, NextFailure> {
    fn next(&mut self, _recovery_writes: u64) -> Option<NextFailure> {
        Iterator::next(self).copied()
    }
}

/// Failures that are recorded as they are drawn, so that the trial can run once more.
struct RecordedFailures<'a> {
    failures: &'a mut dyn FailureSource,
    given: Vec<NextFailure>,
}

impl FailureSource for RecordedFailures<'_> {
    fn next(&mut self, recovery_writes: u64) -> Option<NextFailure> {
        let next = self.failures.next(recovery_writes);
        self.given.extend(next);
        next
    }

    fn are_judged(&self) -> bool {
        self.failures.are_judged()
    }
}

/// A run of the program on the machine after a power failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaterRun {
    /// Its recovery.
    Recovery,
    /// Its work after a complete recovery.
    Work,
}

impl LaterRun {
    /// The failure after an event of this run.
    fn then(self, event: u64, fault: PowerFault) -> NextFailure {
        match self {
            LaterRun::Recovery => NextFailure::GuestRecovery(event, fault),
            LaterRun::Work => NextFailure::Work(event, fault),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            LaterRun::Recovery => "recovery",
            LaterRun::Work => "further work",
        }
    }
}

/// The draw from one such run: the number of its persist events, and the power failures after each of them.
#[derive(Clone, Debug)]
pub(crate) struct LaterDraw {
    pub power_faults: PowerFaultDraw,
    pub events_max: u64,
    pub seed: u64,
}

/// Work that runs once more.
#[derive(Clone)]
pub(crate) enum Retry {
    /// A trial: its failures up to a point, and the further ones as they came.
    Trial { point: Arc<CrashPoint>, failures: Vec<NextFailure> },
    /// A run of the program in which power was to fail: that many trials begin with it.
    Run { point: Arc<CrashPoint>, run: LaterRun, draw: LaterDraw },
}

impl std::fmt::Debug for Retry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Retry::Trial { failures, .. } => failures.fmt(f),
            Retry::Run { run, draw, .. } => write!(f, "{run:?}, {draw:?}"),
        }
    }
}

/// The further failures of a trial that runs once more.
struct Again(std::vec::IntoIter<NextFailure>);

impl FailureSource for Again {
    fn next(&mut self, _recovery_writes: u64) -> Option<NextFailure> {
        self.0.next()
    }
}

/// The image that a power failure left, and the result of an undisturbed recovery by the hardware.
#[derive(Clone)]
struct Recovered {
    crashed: CrashImage,
    image: CrashImage,
    report: RecoveryReport,
}

impl Recovered {
    fn has_reported_loss(&self) -> bool {
        has_reported_loss(&self.image, &self.report)
    }
}

/// Whether energy did not suffice, and the hardware's recovery says so.
fn has_reported_loss(image: &CrashImage, report: &RecoveryReport) -> bool {
    image.dirty_shutdown && !report.losses.is_empty()
}

/// The begin of all trials with the same failures up to one of them.
pub(crate) struct CrashPoint {
    trial: Trial,
    recovered: Recovered,
    allowed: Allowed,
}

impl CrashPoint {
    /// Writes of the hardware's recovery.
    pub fn recovery_writes(&self) -> u64 {
        self.recovered.image.writes()
    }

    /// The image after the hardware's recovery, with its report and the basis on which it is judged.
    pub fn recovered_image(&self) -> (&CrashImage, &RecoveryReport, &Allowed) {
        (&self.recovered.image, &self.recovered.report, &self.allowed)
    }
}

/// The image that a failure leaves; the error: the outcome of the trial, where the hardware cannot recover.
pub(crate) type Begun = Result<Arc<CrashPoint>, Box<(Trial, Outcome)>>;

/// One worker that carries trials out.
#[derive(Clone)]
pub(crate) struct Executor<'a> {
    judge: Judge<'a>,
    /// Work that did not end within its limits and has not been taken yet.
    retries: BTreeMap<Trial, Retry>,
}

impl<'a> Executor<'a> {
    /// With these oracles.
    pub fn new(judge: Judge<'a>) -> Self {
        Executor { judge, retries: BTreeMap::new() }
    }

    /// The state that the workers of a campaign share, and this one's oracles.
    pub fn judge(&self) -> &Judge<'a> {
        &self.judge
    }

    /// A worker with the limits of trials that run once more.
    pub fn once_more(&self) -> Self {
        let mut executor = self.clone();
        executor.judge.limits = executor.judge.limits.once_more();
        executor
    }

    /// A worker whose trials are not recorded.
    pub fn without_timeline(mut self) -> Self {
        self.judge.timeline_recorder = None;
        self
    }

    /// The image that was judged last, where stores are logged.
    pub fn take_concluded(&mut self) -> Option<Concluded> {
        self.judge.concluded.take()
    }

    /// Work that did not end within its limits since the last call.
    pub fn take_retries(&mut self) -> BTreeMap<Trial, Retry> {
        std::mem::take(&mut self.retries)
    }

    /// Runs something once more, with larger limits; a run of the program without persist events yields no trial.
    pub fn retry(&self, retry: &Retry) -> Vec<(Trial, Outcome)> {
        let mut executor = self.once_more().without_timeline();
        match retry {
            Retry::Trial { point, failures } => {
                vec![executor.execute(point, &mut Again(failures.clone().into_iter()))]
            }
            Retry::Run { point, run, draw } => {
                let points = executor.fail_again(point, *run, draw.clone());
                let conclude = |later: Begun| match later {
                    Ok(later) => executor.execute(&later, &mut Again(Vec::new().into_iter())),
                    Err(tried) => *tried,
                };
                points.into_iter().map(conclude).collect()
            }
        }
    }

    /// Recovers what the first failure of a trial left.
    ///
    /// # Errors
    /// The outcome of the trial, where the hardware cannot recover.
    pub fn crash_point(&self, crash: Crash) -> Begun {
        let trial = Trial::new(crash.event, crash.fault);
        let allowed = Allowed::after(&crash, &self.judge.operations);
        match self.recovered(crash.image) {
            Ok(recovered) => Ok(Arc::new(CrashPoint { trial, recovered, allowed })),
            Err(outcome) => Err(Box::new((trial, outcome))),
        }
    }

    /// Carries a trial out, and says which it was.
    pub fn execute(&mut self, point: &Arc<CrashPoint>, failures: &mut dyn FailureSource) -> (Trial, Outcome) {
        let mut trial = point.trial.clone();
        let mut recorded = RecordedFailures { failures, given: Vec::new() };
        let (Ok(outcome) | Err(outcome)) = self.carry_out(point, &mut recorded, &mut trial);
        if outcome.unfinished.is_some() {
            self.retries.insert(trial.clone(), Retry::Trial { point: point.clone(), failures: recorded.given });
        }
        (trial, outcome)
    }

    /// Lets the program run once more after a complete recovery of the hardware, and the power fail during it. Gives what
    /// each of these failures leaves, or the outcome of the trial, if it has one already; nothing if the run has no persist event.
    pub fn fail_again(&mut self, point: &Arc<CrashPoint>, run: LaterRun, draw: LaterDraw) -> Vec<Begun> {
        // After a reported loss, no promise is left that a further failure could break.
        if point.recovered.has_reported_loss() {
            return Vec::new();
        }
        let pmem = point.recovered.image.pmem.clone();
        let selector = DrawnCrashPoints::new(draw.power_faults.clone(), draw.events_max, draw.seed);
        let events = selector.events_seen();
        let ran = match run {
            LaterRun::Recovery => {
                self.guest_recovery(pmem, selector).map(|selector| (selector, OperationOracles::default()))
            }
            LaterRun::Work => self.further_work(pmem, selector),
        };
        let (selector, operations) = match ran {
            Ok(ran) => ran,
            // The run ends without a power failure then, and raises the same objection.
            Err(outcome) => {
                let fault = self.judge.context.plainest_fault();
                let trial = point.trial.and(run.then(events.load(Ordering::Relaxed) + 1, fault));
                if outcome.unfinished.is_some() {
                    self.retries.insert(trial.clone(), Retry::Run { point: point.clone(), run, draw });
                }
                return vec![Err(Box::new((trial, outcome)))];
            }
        };
        let begin = |crash: Crash| {
            let trial = point.trial.and(run.then(crash.event, crash.fault));
            let allowed = match run {
                LaterRun::Recovery => point.allowed.clone(),
                LaterRun::Work => Allowed::after(&crash, &operations),
            };
            match self.recovered(crash.image) {
                Ok(recovered) => Ok(Arc::new(CrashPoint { trial, recovered, allowed })),
                Err(outcome) => Err(Box::new((trial, outcome))),
            }
        };
        selector.taken().map(begin).collect()
    }

    /// As `execute`; adds each failure that has occurred to the trial. An objection on the way is the error.
    fn carry_out(
        &mut self,
        point: &CrashPoint,
        failures: &mut dyn FailureSource,
        trial: &mut Trial,
    ) -> Result<Outcome, Outcome> {
        let mut recovered = Cow::Borrowed(&point.recovered);
        let mut allowed = Cow::Borrowed(&point.allowed);
        let (image, report) = loop {
            let (image, report, next) = self.fail_recovery(&recovered, failures, trial)?;
            let Some(next) = next else { break (image, report) };
            if has_reported_loss(&image, &report) {
                return Ok(self.judge.conclude(image, &report, &allowed));
            }
            trial.then.push(next);
            let pmem = image.pmem.clone();
            let (crash, run, event) = match next {
                NextFailure::Recovery(_) => {
                    unreachable!("the hardware's recovery has failed as often as it is to fail")
                }
                NextFailure::GuestRecovery(event, fault) => {
                    let single = self.guest_recovery(pmem, SingleCrashPoint::with(event, fault))?;
                    (single.taken(), LaterRun::Recovery, event)
                }
                NextFailure::Work(event, fault) => {
                    let (single, operations) = self.further_work(pmem, SingleCrashPoint::with(event, fault))?;
                    let crash = single.taken();
                    if let Some(crash) = &crash {
                        allowed = Cow::Owned(Allowed::after(crash, &operations));
                    }
                    (crash, LaterRun::Work, event)
                }
            };
            let crash = crash.ok_or_else(|| no_such_event(run, event))?;
            recovered = Cow::Owned(self.recovered(crash.image)?);
        };
        if !failures.are_judged() {
            return Ok(Outcome::default());
        }
        Ok(self.judge.conclude(image, &report, &allowed))
    }

    /// Lets the hardware's recovery fail as often as it is to fail. It has to lead to the image of the undisturbed one each
    /// time. Gives that image, and what fails next.
    fn fail_recovery(
        &self,
        undisturbed: &Recovered,
        failures: &mut dyn FailureSource,
        trial: &mut Trial,
    ) -> Result<(CrashImage, RecoveryReport, Option<NextFailure>), Outcome> {
        let mut cuts = Vec::new();
        let mut cut_image: Option<CrashImage> = None;
        let mut again: Option<(CrashImage, RecoveryReport)> = None;
        loop {
            let writes = again.as_ref().map_or(&undisturbed.image, |(image, _)| image).writes();
            let cut = match failures.next(writes) {
                Some(NextFailure::Recovery(cut)) => cut,
                next => {
                    let whole = || (undisturbed.image.clone(), undisturbed.report.clone());
                    let (image, report) = again.unwrap_or_else(whole);
                    return Ok((image, report, next));
                }
            };
            trial.then.push(NextFailure::Recovery(cut));
            cuts.push(cut);
            let crashed = cut_image.get_or_insert_with(|| undisturbed.crashed.clone());
            self.cut_recovery(crashed, cut)?;
            let (image, report) = self.recover(crashed.clone())?;
            if let Some(objection) = differs(&image, &undisturbed.image, &cuts) {
                self.record(|timeline_recorder| {
                    timeline_recorder.question(differing_lines(&image.pmem, &undisturbed.image.pmem))
                });
                return Err(Outcome::object(Oracle::Recovery, objection));
            }
            again = Some((image, report));
        }
    }

    fn recovered(&self, crashed: CrashImage) -> Result<Recovered, Outcome> {
        let (image, report) = self.recover(crashed.clone())?;
        Ok(Recovered { crashed, image, report })
    }

    /// The hardware's recovery, to its end.
    fn recover(&self, mut image: CrashImage) -> Result<(CrashImage, RecoveryReport), Outcome> {
        self.record(TimelineRecorder::recovery_begins);
        image.cut_at(None);
        let report = self.run_recovery(&mut image, None)?.expect("nothing cuts this recovery");
        Ok((image, report))
    }

    /// The hardware's recovery, which fails at this write. What ran to its end before was only to compare with.
    fn cut_recovery(&self, image: &mut CrashImage, cut: u64) -> Result<(), Outcome> {
        self.record(TimelineRecorder::forget_recovery);
        image.cut_at(Some(cut));
        match self.run_recovery(image, Some(cut))? {
            Err(RecoveryCut) => Ok(()),
            Ok(_) => {
                let what = format!("it ended before its write {cut}, at which it was to be interrupted");
                Err(Outcome::object(Oracle::Recovery, what))
            }
        }
    }

    fn run_recovery(
        &self,
        image: &mut CrashImage,
        cut: Option<u64>,
    ) -> Result<Result<RecoveryReport, RecoveryCut>, Outcome> {
        if self.judge.timeline_recorder.is_some() {
            image.keep_log();
        }
        let plan = &self.judge.context.prepared.plan;
        let recover = || (plan.variant.hardware.recover)(&plan.spec, &plan.geometry, image);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(recover));
        self.record(|timeline_recorder| {
            timeline_recorder.recovered(image, cut, ran.as_ref().ok().and_then(|ran| ran.as_ref().ok()))
        });
        ran.map_err(|panic| Outcome::object(Oracle::Recovery, panic_text(&*panic)))
    }

    fn record(&self, what: impl FnOnce(&TimelineRecorder)) {
        if let Some(timeline_recorder) = &self.judge.timeline_recorder {
            what(timeline_recorder);
        }
    }

    /// The program's recovery runs on the machine, and power fails again where the selector wants it.
    fn guest_recovery<M: CrashPointSelector>(&self, pmem: Pages, selector: M) -> Result<M, Outcome> {
        let args = self.judge.context.recovery_args().unwrap_or_default();
        self.run_program(RunKind::Recovery, args, Contents::of(pmem), selector, None)
            .map_err(|stopped| self.judge.outcome(Stage::Recovery, stopped, "its recovery fails"))
    }

    /// The program recovers and works on, and power fails again; with what it says of its operations.
    fn further_work<M: CrashPointSelector>(
        &mut self,
        pmem: Pages,
        selector: M,
    ) -> Result<(M, OperationOracles), Outcome> {
        let judge = &mut self.judge;
        let recovered = judge.recover_guest(pmem.clone())?;
        let initial = match judge.operations.history {
            None => None,
            Some(_) => Some(
                judge
                    .dump(recovered.clone())
                    .map_err(|stopped| judge.outcome(Stage::Check, stopped, "check before more work"))?,
            ),
        };
        let first_output = judge.operations.output.clone();
        let recorder = (initial.is_some() || first_output.is_some()).then(HistoryRecorder::default);
        let contents = match judge.context.recovery {
            // Started again, it recovers by itself.
            ProgramRecovery::Check => Contents { found: pmem, expected: recovered },
            ProgramRecovery::Nothing | ProgramRecovery::Command(_) => Contents::of(recovered),
        };
        let again_args = judge.context.again_args;
        let found = contents.found.clone();
        let fails = "the program fails when it runs on after recovery";
        let selector = self
            .run_program(RunKind::Work, again_args, contents, selector, recorder.as_ref())
            .map_err(|stopped| self.judge.outcome(Stage::Work, stopped, fails))?;
        let mut operations = OperationOracles::default();
        if let Some((recorder, initial)) = recorder.as_ref().zip(initial.as_ref()) {
            operations.history = Some(HistoryOracle::new(recorder, initial, self.judge.epochs()));
        }
        if let Some((recorder, first)) = recorder.as_ref().zip(first_output.as_ref()) {
            let Context { prepared, files, .. } = self.judge.context;
            let program = program_on(prepared, again_args, files, found.clone());
            let budget = self.judge.limits.of(Stage::Work);
            let output = first
                .of_later_run(prepared, &program, found, recorder, budget)
                .map_err(|error| self.judge.outcome(Stage::Work, Stopped::Failed(error.to_string()), fails))?;
            operations.output = Some(output);
        }
        Ok((selector, operations))
    }

    /// Runs the program until the selector wants nothing more, or to its end.
    fn run_program<M: CrashPointSelector>(
        &self,
        kind: RunKind,
        args: &[String],
        contents: Contents,
        selector: M,
        history: Option<&HistoryRecorder>,
    ) -> Result<M, Stopped> {
        let context = &self.judge.context;
        let prepared = context.prepared;
        let Contents { found, expected } = contents;
        self.record(|timeline_recorder| {
            timeline_recorder.run_begins(kind, found.clone(), &prepared.plan.geometry, history)
        });
        let program = program_on(prepared, args, context.files, found);
        let timeline_recorder = self.judge.timeline_recorder.as_ref();
        let stage = if kind == RunKind::Recovery { Stage::Recovery } else { Stage::Work };
        let limits = Some((self.judge.limits.first(stage), self.judge.limits.of(stage)));
        let declares = context.crash_free.declares;
        let recovers_first = matches!(context.recovery, ProgramRecovery::Check);
        let store_recorder = self.judge.store_recorder.clone();
        let persistency = context.persistency;
        let run = CrashedRun {
            prepared,
            program: &program,
            expected,
            declares,
            recovers_first,
            limits,
            store_recorder,
            persistency,
        };
        let failed = |error: Error| Stopped::Failed(error.to_string());
        let EndedRun { selector, ended, .. } =
            run_with_crashes(run, selector, history, timeline_recorder, context.stop).map_err(failed)?;
        match ended.map_err(failed)? {
            None => Ok(selector),
            Some(unfinished) => Err(Stopped::Unfinished(unfinished)),
        }
    }
}

/// Persistent memory when a program starts.
struct Contents {
    found: Pages,
    /// The contents after recovery: the bytes are compared with these and the program's stores.
    expected: Pages,
}

impl Contents {
    /// Nothing has to be recovered.
    fn of(pmem: Pages) -> Self {
        Contents { found: pmem.clone(), expected: pmem }
    }
}

fn no_such_event(run: LaterRun, event: u64) -> Outcome {
    Outcome::object(Oracle::Guest, format!("its {} has no persist event {event}", run.name()))
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
    format!("it panicked: {}", text.unwrap_or_default())
}

/// Recovery has to lead to the same image, wherever it was cut.
fn differs(recovered: &CrashImage, whole: &CrashImage, cuts: &[u64]) -> Option<String> {
    let same = same(&recovered.pmem, &whole.pmem) && recovered.structures == whole.structures;
    let cuts: Vec<String> = cuts.iter().map(u64::to_string).collect();
    (!same).then(|| {
        format!(
            "interrupted at its writes {} and run again, it leaves another image than without interruption",
            cuts.join(", then ")
        )
    })
}

fn differing_lines(a: &Pages, b: &Pages) -> Vec<LineAddr> {
    let pages: BTreeSet<PhysAddr> = a.touched().chain(b.touched()).map(|(addr, _)| addr).collect();
    let lines = |page: &PhysAddr| (page.line().0..page.plus(PAGE_BYTES).line().0).map(LineAddr).collect::<Vec<_>>();
    pages.iter().flat_map(lines).filter(|line| a.line(*line) != b.line(*line)).collect()
}
