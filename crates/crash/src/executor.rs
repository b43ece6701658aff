//! The one executor of crash cases: an image is recovered, by the hardware's recovery and then by the program's, and
//! judged. On the way recovery may fail too, and after it the program may work on and fail again. Whether a case is drawn
//! or replayed makes one difference: who says what fails next.

use crate::case::{Case, Then};
use crate::history::{HistoryOracle, HistoryRecorder};
use crate::judge::{Allowed, Judge};
use crate::life::{Shot, Single, program_on, shoot};
use crate::outcome::{Oracle, Outcome};
use crate::scribe::Scribe;
use crate::story::Program as Living;
use durasim_design::{CrashImage, Cut, RecoveryReport};
use durasim_types::{Error, LineAddr, PAGE_BYTES, Pages, PhysAddr};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// When the power fails while the program's recovery or its further work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// After this persist event.
    Event(u64),
    /// After any one, drawn with this seed.
    Any(u64),
}

impl Moment {
    fn aim(self) -> Single {
        match self {
            Moment::Event(event) => Single::at(event),
            Moment::Any(seed) => Single::any(seed),
        }
    }
}

/// What fails next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The hardware's recovery, at this write.
    Recovery(u64),
    /// The program's recovery.
    GuestRecovery(Moment),
    /// The work after a complete recovery.
    Work(Moment),
}

/// Says, step by step, what fails in a case under way.
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
            Then::GuestRecovery(event) => Next::GuestRecovery(Moment::Event(event)),
            Then::Work(event) => Next::Work(Moment::Event(event)),
        })
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

    /// Recovers what the first failure of a case left.
    ///
    /// # Errors
    /// What came of the case already, where the hardware cannot recover.
    pub fn crash_point(&self, shot: Shot) -> Result<CrashPoint, (Case, Outcome)> {
        let case = Case::new(shot.event, shot.blow);
        let allowed = Allowed::after(&shot, self.judge.history.as_ref());
        match self.recovered(shot.image) {
            Ok(recovered) => Ok(CrashPoint { case, recovered, allowed }),
            Err(outcome) => Err((case, outcome)),
        }
    }

    /// Carries a case out, and says which it was. Of failures that are drawn there may be none: then there is no case.
    pub fn execute(&mut self, point: &CrashPoint, failures: &mut dyn Failures) -> Option<(Case, Outcome)> {
        let mut case = point.case.clone();
        match self.carry_out(point, failures, &mut case) {
            Ok(outcome) => outcome.map(|outcome| (case, outcome)),
            Err(outcome) => Some((case, outcome)),
        }
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
            let (shot, moment) = match next {
                Next::Recovery(_) => unreachable!("the hardware's recovery has failed as often as it is to fail"),
                Next::GuestRecovery(moment) => (self.guest_recovery(image.pmem.clone(), moment, case)?, moment),
                Next::Work(moment) => {
                    let worked = self.further_work(image.pmem.clone(), moment, case)?;
                    let (shot, further) = worked.unzip();
                    further.into_iter().for_each(|further| allowed = Cow::Owned(further));
                    (shot, moment)
                }
            };
            match (shot, moment) {
                (Some(shot), _) => recovered = Cow::Owned(self.recovered(shot.image)?),
                (None, Moment::Event(event)) => return Err(no_such_event(next, event)),
                (None, Moment::Any(_)) if case.then.is_empty() => return Ok(None),
                (None, Moment::Any(_)) => break (image, report),
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
                self.tell(|scribe| scribe.question(differing_lines(&image.pmem, &undisturbed.image.pmem)));
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
        self.tell(Scribe::recovery_begins);
        image.cut_at(None);
        let report = self.run_recovery(&mut image, None)?.expect("nothing cuts this recovery");
        Ok((image, report))
    }

    /// The hardware's recovery, which fails at this write. What ran to its end before was only to compare with.
    fn cut_recovery(&self, image: &mut CrashImage, cut: u64) -> Result<(), Outcome> {
        self.tell(Scribe::forget_recovery);
        image.cut_at(Some(cut));
        match self.run_recovery(image, Some(cut))? {
            Err(Cut) => Ok(()),
            Ok(_) => {
                let what = format!("it ended before its write {cut}, which was to be cut");
                Err(Outcome::object(Oracle::Recovery, what))
            }
        }
    }

    fn run_recovery(&self, image: &mut CrashImage, cut: Option<u64>) -> Result<Result<RecoveryReport, Cut>, Outcome> {
        if self.judge.scribe.is_some() {
            image.keep_log();
        }
        let plan = &self.judge.context.prepared.plan;
        let recover = || (plan.row.hardware.recover)(&plan.spec, &plan.geometry, image);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(recover));
        self.tell(|scribe| scribe.recovered(image, cut, ran.as_ref().ok().and_then(|ran| ran.as_ref().ok())));
        ran.map_err(|panic| Outcome::object(Oracle::Recovery, panic_text(&*panic)))
    }

    fn tell(&self, what: impl FnOnce(&Scribe)) {
        if let Some(scribe) = &self.judge.scribe {
            what(scribe);
        }
    }

    /// The program's recovery runs on the machine, and power fails again.
    fn guest_recovery(&self, pmem: Pages, moment: Moment, case: &mut Case) -> Result<Option<Shot>, Outcome> {
        let args = self.judge.context.recover_args.unwrap_or_default();
        let shot = self
            .live(Living::Recovery, args, pmem, moment, None)
            .map_err(|error| Outcome::object(Oracle::Guest, format!("its recovery fails: {error}")))?;
        case.then.extend(shot.as_ref().map(|shot| Then::GuestRecovery(shot.event)));
        Ok(shot)
    }

    /// The program recovers and works on, and power fails again; what is allowed to be left then.
    fn further_work(
        &mut self,
        pmem: Pages,
        moment: Moment,
        case: &mut Case,
    ) -> Result<Option<(Shot, Allowed)>, Outcome> {
        let worked = self.work_on(pmem, moment);
        match &worked {
            Ok(shot) => case.then.extend(shot.as_ref().map(|(shot, _)| Then::Work(shot.event))),
            // Work that fails by itself fails before any of its events, too.
            Err(_) => case.then.push(Then::Work(1)),
        }
        worked
    }

    fn work_on(&mut self, pmem: Pages, moment: Moment) -> Result<Option<(Shot, Allowed)>, Outcome> {
        let judge = &mut self.judge;
        let pmem = judge.recover_guest(pmem)?;
        let object = |what: String| Outcome::object(Oracle::Guest, what);
        let initial = match judge.history {
            None => None,
            Some(_) => {
                Some(judge.dump(pmem.clone()).map_err(|what| object(format!("check before more work: {what}")))?)
            }
        };
        let recorder = initial.as_ref().map(|_| HistoryRecorder::default());
        let lived = self.live(Living::Work, self.judge.context.again_args, pmem, moment, recorder.as_ref());
        let shot = lived.map_err(|error| object(format!("it does not work on after recovery: {error}")))?;
        Ok(shot.map(|shot| {
            let dumped = recorder.as_ref().zip(initial.as_ref());
            let history = dumped.map(|(recorder, initial)| HistoryOracle::new(recorder, initial, self.judge.epochs()));
            let allowed = Allowed::after(&shot, history.as_ref());
            (shot, allowed)
        }))
    }

    fn live(
        &self,
        living: Living,
        args: &[String],
        pmem: Pages,
        moment: Moment,
        history: Option<&HistoryRecorder>,
    ) -> Result<Option<Shot>, Error> {
        let context = &self.judge.context;
        let prepared = context.prepared;
        self.tell(|scribe| scribe.life_begins(living, pmem.clone(), &prepared.plan.geometry, history));
        let program = program_on(prepared, args, context.files, pmem);
        let scribe = self.judge.scribe.as_ref();
        Ok(shoot(prepared, &program, moment.aim(), history, scribe, context.stop)?.1.taken())
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
    (!same).then(|| format!("cut at its writes {} and run again, it ends in another image", cuts.join(", then ")))
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
