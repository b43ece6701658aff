//! The one executor of crash cases: an image is recovered, by the hardware's recovery and then by the program's, and
//! judged. On the way recovery may fail too, and after it the program may work on and fail again. Whether a case is drawn
//! or replayed makes one difference: where the next failure comes from.

use crate::case::{Case, Then};
use crate::crashed_run::{Crash, CrashedRun, SingleCrashPoint, program_on, run_with_crashes};
use crate::history::{Dump, HistoryOracle, HistoryRecorder};
use crate::judge::{Allowed, Judge, Stopped};
use crate::limits::Stage;
use crate::outcome::{Oracle, Outcome};
use crate::timeline_document::RunKind;
use crate::timeline_recorder::TimelineRecorder;
use crate::unfinished::Retry;
use durasim_design::{CrashImage, RecoveryCut, RecoveryReport};
use durasim_types::{LineAddr, PAGE_BYTES, Pages, PhysAddr};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// When the power fails while the program's recovery or its further work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailurePoint {
    /// After this persist event.
    Event(u64),
    /// After any one, drawn with this seed.
    Any(u64),
}

impl FailurePoint {
    fn selector(self) -> SingleCrashPoint {
        match self {
            FailurePoint::Event(event) => SingleCrashPoint::at(event),
            FailurePoint::Any(seed) => SingleCrashPoint::any(seed),
        }
    }
}

/// What fails next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The hardware's recovery, at this write.
    Recovery(u64),
    /// The program's recovery.
    GuestRecovery(FailurePoint),
    /// The work after a complete recovery.
    Work(FailurePoint),
}

/// Says, step by step, what fails in a case in progress.
pub(crate) trait Failures {
    /// What fails after a recovery of the hardware that made so many writes; `None`: nothing more.
    fn next(&mut self, recovery_writes: u64) -> Option<Next>;

    /// Whether the oracles look at what is recovered in the end. Else a case of its own has the same contents judged.
    fn are_judged(&self) -> bool {
        true
    }
}

/// The failures that the text of a case names.
impl Failures for std::slice::Iter<'_, Then> {
    fn next(&mut self, _recovery_writes: u64) -> Option<Next> {
        Iterator::next(self).map(|then| match *then {
            Then::Recovery(write) => Next::Recovery(write),
            Then::GuestRecovery(event) => Next::GuestRecovery(FailurePoint::Event(event)),
            Then::Work(event) => Next::Work(FailurePoint::Event(event)),
        })
    }
}

/// Failures that are noted as they come, so that the trial can run once more.
struct Noted<'a> {
    failures: &'a mut dyn Failures,
    given: Vec<Next>,
}

impl Failures for Noted<'_> {
    fn next(&mut self, recovery_writes: u64) -> Option<Next> {
        let next = self.failures.next(recovery_writes);
        self.given.extend(next);
        next
    }

    fn are_judged(&self) -> bool {
        self.failures.are_judged()
    }
}

/// What a power failure left, and what the hardware's recovery makes of it when nothing disturbs it.
#[derive(Clone)]
struct Recovered {
    crashed: CrashImage,
    image: CrashImage,
    report: RecoveryReport,
}

/// The begin of all cases with the same first failure.
pub(crate) struct CrashPoint {
    case: Case,
    recovered: Recovered,
    allowed: Allowed,
}

impl CrashPoint {
    /// Writes of the hardware's recovery.
    pub fn recovery_writes(&self) -> u64 {
        self.recovered.image.writes()
    }
}

/// One worker that carries cases out.
#[derive(Clone)]
pub(crate) struct Executor<'a> {
    judge: Judge<'a>,
}

impl<'a> Executor<'a> {
    /// With these oracles.
    pub fn new(judge: Judge<'a>) -> Self {
        Executor { judge }
    }

    /// What the workers of a campaign share, and this one's oracles.
    pub fn judge(&self) -> &Judge<'a> {
        &self.judge
    }

    /// A worker with the limits of trials that run once more.
    pub fn once_more(&self) -> Self {
        let mut executor = self.clone();
        executor.judge.limits = executor.judge.limits.once_more();
        executor
    }

    /// A worker whose cases are not recorded.
    pub fn without_timeline(mut self) -> Self {
        self.judge.timeline_recorder = None;
        self
    }

    /// Recovers what the first failure of a case left.
    ///
    /// # Errors
    /// What came of the case already, where the hardware cannot recover.
    pub fn crash_point(&self, crash: Crash) -> Result<Arc<CrashPoint>, (Case, Outcome)> {
        let case = Case::new(crash.event, crash.fault);
        let allowed = Allowed::after(&crash, self.judge.history.as_ref());
        match self.recovered(crash.image) {
            Ok(recovered) => Ok(Arc::new(CrashPoint { case, recovered, allowed })),
            Err(outcome) => Err((case, outcome)),
        }
    }

    /// Carries a case out, and says which it was. Of failures that are drawn there may be none: then there is no case.
    pub fn execute(&mut self, point: &Arc<CrashPoint>, failures: &mut dyn Failures) -> Option<(Case, Outcome)> {
        let mut case = point.case.clone();
        let mut noted = Noted { failures, given: Vec::new() };
        let mut outcome = self.carry_out(point, &mut noted, &mut case).unwrap_or_else(Some)?;
        if let Some(unfinished) = &mut outcome.unfinished {
            unfinished.retry_with(Retry { point: point.clone(), failures: noted.given });
        }
        Some((case, outcome))
    }

    /// As `execute`; adds each failure that has come about to the case. An objection on the way is the error.
    fn carry_out(
        &mut self,
        point: &CrashPoint,
        failures: &mut dyn Failures,
        case: &mut Case,
    ) -> Result<Option<Outcome>, Outcome> {
        let mut recovered = Cow::Borrowed(&point.recovered);
        let mut allowed = Cow::Borrowed(&point.allowed);
        let (image, report) = loop {
            let (image, report, next) = self.fail_recovery(&recovered, failures, case)?;
            let Some(next) = next else { break (image, report) };
            let (crash, failure_point) = match next {
                Next::Recovery(_) => unreachable!("the hardware's recovery has failed as often as it is to fail"),
                Next::GuestRecovery(failure_point) => {
                    (self.guest_recovery(image.pmem.clone(), failure_point, case)?, failure_point)
                }
                Next::Work(failure_point) => {
                    let worked = self.further_work(image.pmem.clone(), failure_point, case)?;
                    let (crash, further) = worked.unzip();
                    further.into_iter().for_each(|further| allowed = Cow::Owned(further));
                    (crash, failure_point)
                }
            };
            match (crash, failure_point) {
                (Some(crash), _) => recovered = Cow::Owned(self.recovered(crash.image)?),
                (None, FailurePoint::Event(event)) => return Err(no_such_event(next, event)),
                (None, FailurePoint::Any(_)) if case.then.is_empty() => return Ok(None),
                (None, FailurePoint::Any(_)) => break (image, report),
            }
        };
        if !failures.are_judged() {
            return Ok(Some(Outcome::default()));
        }
        Ok(Some(self.judge.conclude(image, &report, &allowed)))
    }

    /// Lets the hardware's recovery fail as often as it is to fail. It has to come to the image of the undisturbed one each
    /// time. Gives that image, and what fails next.
    fn fail_recovery(
        &self,
        undisturbed: &Recovered,
        failures: &mut dyn Failures,
        case: &mut Case,
    ) -> Result<(CrashImage, RecoveryReport, Option<Next>), Outcome> {
        let mut cuts = Vec::new();
        let mut cut_image: Option<CrashImage> = None;
        let mut again: Option<(CrashImage, RecoveryReport)> = None;
        loop {
            let writes = again.as_ref().map_or(&undisturbed.image, |(image, _)| image).writes();
            let cut = match failures.next(writes) {
                Some(Next::Recovery(cut)) => cut,
                next => {
                    let whole = || (undisturbed.image.clone(), undisturbed.report.clone());
                    let (image, report) = again.unwrap_or_else(whole);
                    return Ok((image, report, next));
                }
            };
            case.then.push(Then::Recovery(cut));
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
        let recover = || (plan.row.hardware.recover)(&plan.spec, &plan.geometry, image);
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

    /// The program's recovery runs on the machine, and power fails again.
    fn guest_recovery(
        &self,
        pmem: Pages,
        failure_point: FailurePoint,
        case: &mut Case,
    ) -> Result<Option<Crash>, Outcome> {
        let args = self.judge.context.recover_args.unwrap_or_default();
        let (event, crash) = self.run_program(RunKind::Recovery, args, pmem, failure_point, None);
        case.then.extend(event.map(Then::GuestRecovery));
        crash.map_err(|stopped| self.judge.outcome(Stage::Recovery, stopped, "its recovery fails"))
    }

    /// The program recovers and works on, and power fails again; what is allowed to be left then.
    fn further_work(
        &mut self,
        pmem: Pages,
        failure_point: FailurePoint,
        case: &mut Case,
    ) -> Result<Option<(Crash, Allowed)>, Outcome> {
        let (event, worked) = match self.recovered_for_work(pmem) {
            Ok((pmem, initial)) => self.continue_work(pmem, initial.as_ref(), failure_point),
            // What fails before the work fails before any of its events, too.
            Err(outcome) => (Some(1), Err(outcome)),
        };
        case.then.extend(event.map(Then::Work));
        worked
    }

    /// What the program's recovery makes of an image, and what its check finds there.
    fn recovered_for_work(&mut self, pmem: Pages) -> Result<(Pages, Option<Dump>), Outcome> {
        let judge = &mut self.judge;
        let pmem = judge.recover_guest(pmem)?;
        let initial = match judge.history {
            None => None,
            Some(_) => Some(
                judge
                    .dump(pmem.clone())
                    .map_err(|stopped| judge.outcome(Stage::Check, stopped, "check before more work"))?,
            ),
        };
        Ok((pmem, initial))
    }

    /// The event at which the work failed, and what was left then.
    fn continue_work(
        &self,
        pmem: Pages,
        initial: Option<&Dump>,
        failure_point: FailurePoint,
    ) -> (Option<u64>, Result<Option<(Crash, Allowed)>, Outcome>) {
        let recorder = initial.map(|_| HistoryRecorder::default());
        let (event, crash) =
            self.run_program(RunKind::Work, self.judge.context.again_args, pmem, failure_point, recorder.as_ref());
        let fails = "the program fails when it runs on after recovery";
        let crash = crash.map_err(|stopped| self.judge.outcome(Stage::Work, stopped, fails));
        let worked = crash.map(|crash| {
            crash.map(|crash| {
                let dumped = recorder.as_ref().zip(initial);
                let history =
                    dumped.map(|(recorder, initial)| HistoryOracle::new(recorder, initial, self.judge.epochs()));
                let allowed = Allowed::after(&crash, history.as_ref());
                (crash, allowed)
            })
        });
        (event, worked)
    }

    /// Runs the program until the power fails; the number of the event at which it did. Of a program that ends before, there
    /// is none; of one that fails or is stopped at its limit, the one after its last.
    fn run_program(
        &self,
        kind: RunKind,
        args: &[String],
        pmem: Pages,
        failure_point: FailurePoint,
        history: Option<&HistoryRecorder>,
    ) -> (Option<u64>, Result<Option<Crash>, Stopped>) {
        let context = &self.judge.context;
        let prepared = context.prepared;
        self.record(|timeline_recorder| {
            timeline_recorder.run_begins(kind, pmem.clone(), &prepared.plan.geometry, history)
        });
        let program = program_on(prepared, args, context.files, pmem);
        let timeline_recorder = self.judge.timeline_recorder.as_ref();
        let stage = if kind == RunKind::Recovery { Stage::Recovery } else { Stage::Work };
        let limits = (self.judge.limits.first(stage), self.judge.limits.of(stage));
        let selector = failure_point.selector();
        let run = run_with_crashes(
            prepared,
            context.crash_free.declares,
            &program,
            selector,
            history,
            timeline_recorder,
            Some(limits),
            context.stop,
        );
        let CrashedRun { selector, ended, .. } = match run {
            Ok(run) => run,
            Err(error) => return (Some(1), Err(Stopped::Failed(error.to_string()))),
        };
        let stopped = match ended {
            Ok(None) => {
                let crash = selector.taken();
                return (crash.as_ref().map(|crash| crash.event), Ok(crash));
            }
            Ok(Some(unfinished)) => Stopped::Unfinished(unfinished),
            Err(error) => Stopped::Failed(error.to_string()),
        };
        (Some(selector.events_before_stop() + 1), Err(stopped))
    }
}

fn no_such_event(next: Next, event: u64) -> Outcome {
    let what = if matches!(next, Next::Work(_)) { "further work" } else { "recovery" };
    Outcome::object(Oracle::Guest, format!("its {what} has no persist event {event}"))
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
    format!("it panicked: {}", text.unwrap_or_default())
}

/// Recovery has to come to the same image, wherever it was cut.
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

fn same(a: &Pages, b: &Pages) -> bool {
    let covered = |x: &Pages, y: &Pages| {
        x.touched().all(|(addr, page)| {
            x.shares_page(y, addr) || {
                let mut other = vec![0; page.len()];
                y.read(addr, &mut other);
                other == page
            }
        })
    };
    covered(a, b) && covered(b, a)
}
