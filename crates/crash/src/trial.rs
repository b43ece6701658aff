//! One trial: an image is recovered, by the hardware's recovery and then by the program's, and judged by oracles that know
//! nothing of each other. On the way recovery may fail too, and after it the program may work on and fail again.

use crate::byte_oracle::{ByteOracle, Verdict};
use crate::case::{Blow, Case, Then};
use crate::history::{Dump, HistoryOracle, HistoryRecorder, Position};
use crate::life::{Shot, Single, program_on, shoot};
use crate::schedule::{Fault, affords_another_life};
use crate::scribe::Scribe;
use crate::story::Program as Living;
use durasim_design::{CrashImage, Cut, Promise, RecoveryReport};
use durasim_machine::{Captured, LoadedProgram, PmemPool, PoolContents, Prepared, Program};
use durasim_types::{Error, GuestFault, LineAddr, PAGE_BYTES, Pages, PhysAddr, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

/// Who judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Oracle {
    /// The hardware's recovery itself: it reports losses that it may not have, or depends on where it was cut.
    Recovery,
    /// The bytes of persistent memory.
    Bytes,
    /// What the program said of its operations.
    History,
    /// The program's own recovery and check.
    Guest,
}

impl Oracle {
    pub const fn name(self) -> &'static str {
        match self {
            Oracle::Recovery => "recovery",
            Oracle::Bytes => "bytes",
            Oracle::History => "history",
            Oracle::Guest => "guest",
        }
    }
}

/// What became of a trial.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// What each oracle objects.
    pub objections: BTreeMap<Oracle, String>,
    /// The oracles that have looked at the recovered contents.
    pub judged: Vec<Oracle>,
    /// What recovery reported as lost, where a loss was to be expected.
    pub reported_loss: Option<String>,
}

impl Outcome {
    fn object(oracle: Oracle, what: String) -> Self {
        Outcome { objections: BTreeMap::from([(oracle, what)]), ..Outcome::default() }
    }

    /// Whether some oracles that have looked at the contents object and others do not.
    pub fn is_disagreement(&self) -> bool {
        !self.objections.is_empty() && self.objections.len() < self.judged.len()
    }
}

/// What the workers of a campaign share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub prepared: &'a Prepared,
    /// Arguments of the program's recovery, where a row has one.
    pub recover_args: Option<&'a [String]>,
    /// Arguments of the program's check.
    pub check_args: &'a [String],
    /// Arguments with which the program works on after a crash.
    pub again_args: &'a [String],
    /// The namespace of `/pmem/`.
    pub files: &'a PmemPool,
    /// What the run says of its operations, if it says anything.
    pub history: Option<&'a HistoryRecorder>,
    /// Whether a recovery is cut at each of its writes, not at some.
    pub all_cuts: bool,
    pub stop: &'a AtomicBool,
}

/// One worker's tools.
#[derive(Clone)]
pub(crate) struct Judge<'a> {
    shared: Shared<'a>,
    recoverer: Option<LoadedProgram>,
    checker: LoadedProgram,
    history: Option<HistoryOracle>,
    scribe: Option<Scribe>,
}

/// What an image is judged against.
#[derive(Clone)]
struct Allowed {
    bytes: ByteOracle,
    history: Option<(HistoryOracle, Position)>,
}

impl Allowed {
    fn after(shot: &Shot, history: Option<&HistoryOracle>) -> Self {
        let position = |history: &HistoryOracle| match shot.blow.takes_back() {
            true => history.position_at(shot.event),
            false => history.position_after(shot.event),
        };
        Allowed { bytes: shot.oracle.clone(), history: history.map(|history| (history.clone(), position(history))) }
    }
}

/// Instructions that a program's recovery or check may take.
const GUEST_INSTRUCTIONS_MAX: u64 = 2_000_000_000;
/// Recoveries that fail in a row.
const DEPTH_MAX: usize = 3;
/// At how many of its writes the recovery of one crash is cut where crash points are drawn; at each, if it makes no more.
const CUTS_DRAWN: u64 = 4;

type Recovered = Result<(CrashImage, RecoveryReport), Outcome>;

impl<'a> Judge<'a> {
    /// # Errors
    /// A program that cannot be loaded.
    pub fn new(shared: Shared<'a>) -> Result<Self, Error> {
        let prepared = shared.prepared;
        let load = |args: &[String]| {
            let nothing = Pages::new(durasim_machine::PMEM_BASE, prepared.config.pmem.capacity_mib << 20);
            let pool = Some(PoolContents { files: shared.files.clone(), pages: nothing });
            let program = Program { args: args.to_vec(), pool, ..prepared.program.clone() };
            LoadedProgram::new(&prepared.config, &prepared.plan, &program)
        };
        let recoverer = shared.recover_args.map(load).transpose()?;
        let mut judge = Judge { shared, recoverer, checker: load(shared.check_args)?, history: None, scribe: None };
        if let Some(recorder) = shared.history {
            let initial = match &prepared.program.pool {
                Some(pool) => judge.dump(pool.pages.clone()),
                None => Ok(Dump::default()),
            };
            let initial = initial.map_err(|what| GuestFault { pc: 0, what, last_syscall: None })?;
            judge.history = Some(HistoryOracle::new(recorder, &initial, judge.epochs()));
        }
        Ok(judge)
    }

    /// Tells this scribe of its trials.
    pub fn tell(&mut self, scribe: Scribe) {
        self.scribe = Some(scribe);
    }

    /// How many epochs later an acknowledged transaction survives; `None`: at once.
    fn epochs(&self) -> Option<u32> {
        match self.shared.prepared.plan.row.promise {
            Promise::Immediate => None,
            Promise::Epoch(further) => Some(further),
        }
    }

    /// What a pool holds, as the program says.
    fn dump(&mut self, pmem: Pages) -> Result<Dump, String> {
        let (checked, output) = run_guest(&mut self.checker, pmem);
        checked.and_then(|_| Dump::find(output.bytes()))
    }

    /// Tries what is drawn with this seed of these kinds of failures.
    pub fn explore(&mut self, shot: Shot, faults: &BTreeSet<Fault>, seed: u64) -> Vec<(Case, Outcome)> {
        let mut rng = Rng::new(seed);
        let case = Case::new(shot.event, shot.blow);
        let mut tried = Vec::new();
        let allowed = Allowed::after(&shot, self.history.as_ref());
        let (image, report) = match self.recover(shot.image.clone()) {
            Ok(recovered) => recovered,
            Err(outcome) => return vec![(case, outcome)],
        };
        let nested = faults.contains(&Fault::Nested) && shot.blow == Blow::Clean;
        if nested {
            tried.extend(self.explore_cuts(&case, &shot.image, &image, &mut rng));
            if self.recoverer.is_some() && affords_another_life(seed) {
                tried.extend(self.explore_guest_recovery(&case, &image, &allowed, &mut rng));
            }
        }
        if faults.contains(&Fault::Twice) && shot.blow == Blow::Clean {
            tried.extend(self.explore_another_life(&case, &image, &mut rng));
        }
        tried.push((case, self.conclude(image, &report, &allowed)));
        tried
    }

    /// Tries exactly this case, whose first failure is the shot.
    pub fn replay(&mut self, shot: Shot, case: &Case) -> Vec<(Case, Outcome)> {
        let allowed = Allowed::after(&shot, self.history.as_ref());
        vec![(case.clone(), self.follow(shot.image, &case.then, &allowed))]
    }

    fn follow(&mut self, crashed: CrashImage, then: &[Then], allowed: &Allowed) -> Outcome {
        let cuts = then.iter().map_while(|then| match then {
            Then::Recovery(write) => Some(*write),
            _ => None,
        });
        let cuts: Vec<u64> = cuts.collect();
        let then = &then[cuts.len()..];
        if let Some(scribe) = &self.scribe {
            scribe.recovery_begins();
        }
        let whole = match self.recover(crashed.clone()) {
            Ok(recovered) => recovered,
            Err(outcome) => return outcome,
        };
        let (image, report) = if cuts.is_empty() {
            whole
        } else {
            if let Some(scribe) = &self.scribe {
                scribe.forget_recovery();
            }
            let recovered = match self.recover_with_cuts(crashed, &cuts) {
                Ok(recovered) => recovered,
                Err(outcome) => return outcome,
            };
            if let Some(objection) = differs(&recovered.0, &whole.0, &cuts) {
                if let Some(scribe) = &self.scribe {
                    scribe.question(differing_lines(&recovered.0.pmem, &whole.0.pmem));
                }
                return Outcome::object(Oracle::Recovery, objection);
            }
            recovered
        };
        match then.first() {
            None => self.conclude(image, &report, allowed),
            Some(Then::GuestRecovery(event)) => match self.guest_recovery(image.pmem, Single::at(*event)) {
                Ok(Some(next)) => self.follow(next.image, &then[1..], allowed),
                Ok(None) => Outcome::object(Oracle::Guest, format!("its recovery has no persist event {event}")),
                Err(error) => Outcome::object(Oracle::Guest, format!("its recovery fails: {error}")),
            },
            Some(Then::Work(event)) => match self.another_life(image.pmem, Single::at(*event)) {
                Ok(Some((next, allowed))) => self.follow(next.image, &then[1..], &allowed),
                Ok(None) => Outcome::object(Oracle::Guest, format!("its further work has no persist event {event}")),
                Err(outcome) => outcome,
            },
            Some(Then::Recovery(_)) => unreachable!("cuts were taken off the front"),
        }
    }

    /// The hardware's recovery, uncut.
    fn recover(&self, image: CrashImage) -> Recovered {
        self.recover_with_cuts(image, &[])
    }

    /// The hardware's recovery, which fails at these writes and then succeeds.
    fn recover_with_cuts(&self, mut image: CrashImage, cuts: &[u64]) -> Recovered {
        for &cut in cuts {
            image.cut_at(Some(cut));
            if self.run_recovery(&mut image, Some(cut))?.is_ok() {
                let what = format!("it ended before its write {cut}, which was to be cut");
                return Err(Outcome::object(Oracle::Recovery, what));
            }
        }
        image.cut_at(None);
        let report = self.run_recovery(&mut image, None)?.expect("nothing cuts this recovery");
        Ok((image, report))
    }

    fn run_recovery(&self, image: &mut CrashImage, cut: Option<u64>) -> Result<Result<RecoveryReport, Cut>, Outcome> {
        let Some(scribe) = &self.scribe else { return self.run_recovery_untold(image) };
        image.keep_log();
        let ran = self.run_recovery_untold(image);
        scribe.recovered(image, cut, ran.as_ref().ok().and_then(|ran| ran.as_ref().ok()));
        ran
    }

    fn run_recovery_untold(&self, image: &mut CrashImage) -> Result<Result<RecoveryReport, Cut>, Outcome> {
        let plan = &self.shared.prepared.plan;
        let recover = std::panic::AssertUnwindSafe(|| (plan.row.hardware.recover)(&plan.spec, &plan.geometry, image));
        std::panic::catch_unwind(recover).map_err(|panic| Outcome::object(Oracle::Recovery, panic_text(&*panic)))
    }

    /// Recovery that fails at some of its writes, and then at some of the writes of the next one, and so on.
    fn explore_cuts(
        &self,
        case: &Case,
        crashed: &CrashImage,
        whole: &CrashImage,
        rng: &mut Rng,
    ) -> Vec<(Case, Outcome)> {
        let writes = whole.writes();
        let firsts: BTreeSet<u64> = match writes {
            0 => BTreeSet::new(),
            _ if self.shared.all_cuts || writes <= CUTS_DRAWN => (1..=writes).collect(),
            _ => (0..CUTS_DRAWN).map(|_| 1 + rng.below(writes)).collect(),
        };
        let mut tried = Vec::new();
        for first in firsts {
            let (mut case, mut cuts, mut image) = (case.clone(), Vec::new(), crashed.clone());
            let mut cut = first;
            let outcome = loop {
                case = case.and(Then::Recovery(cut));
                cuts.push(cut);
                image.cut_at(Some(cut));
                match self.run_recovery_untold(&mut image) {
                    Err(outcome) => break outcome,
                    Ok(Ok(_)) => {
                        let what = format!("it ended before its write {cut}, which was to be cut");
                        break Outcome::object(Oracle::Recovery, what);
                    }
                    Ok(Err(Cut)) => {}
                }
                let (again, _) = match self.recover(image.clone()) {
                    Ok(recovered) => recovered,
                    Err(outcome) => break outcome,
                };
                if let Some(objection) = differs(&again, whole, &cuts) {
                    break Outcome::object(Oracle::Recovery, objection);
                }
                if cuts.len() == DEPTH_MAX || again.writes() == 0 {
                    break Outcome::default();
                }
                cut = 1 + rng.below(again.writes());
            };
            tried.push((case, outcome));
        }
        tried
    }

    /// The program's recovery runs on the machine and fails there, up to three times.
    fn explore_guest_recovery(
        &mut self,
        case: &Case,
        image: &CrashImage,
        allowed: &Allowed,
        rng: &mut Rng,
    ) -> Option<(Case, Outcome)> {
        let (mut case, mut pmem) = (case.clone(), image.pmem.clone());
        let mut report = RecoveryReport::default();
        for _ in 0..1 + rng.below(DEPTH_MAX as u64) {
            let shot = match self.guest_recovery(pmem.clone(), Single::any(rng.next_u64())) {
                Ok(Some(shot)) => shot,
                Ok(None) => break,
                Err(error) => {
                    return Some((case, Outcome::object(Oracle::Guest, format!("its recovery fails: {error}"))));
                }
            };
            case = case.and(Then::GuestRecovery(shot.event));
            match self.recover(shot.image) {
                Ok((image, of_this)) => (pmem, report) = (image.pmem, of_this),
                Err(outcome) => return Some((case, outcome)),
            }
        }
        if case.then.is_empty() {
            return None;
        }
        let outcome = self.conclude(CrashImage::new(pmem), &report, allowed);
        Some((case, outcome))
    }

    fn guest_recovery(&self, pmem: Pages, single: Single) -> Result<Option<Shot>, Error> {
        let args = self.shared.recover_args.unwrap_or_default();
        self.live(Living::Recovery, args, pmem, single, None)
    }

    fn live(
        &self,
        living: Living,
        args: &[String],
        pmem: Pages,
        single: Single,
        history: Option<&HistoryRecorder>,
    ) -> Result<Option<Shot>, Error> {
        let (prepared, scribe) = (self.shared.prepared, self.scribe.as_ref());
        if let Some(scribe) = scribe {
            scribe.life_begins(living, pmem.clone(), &prepared.plan.geometry, history);
        }
        let program = program_on(prepared, args, self.shared.files, pmem);
        Ok(shoot(prepared, &program, single, history, scribe, self.shared.stop)?.1.taken())
    }

    /// The program works on, and power fails again.
    fn explore_another_life(&mut self, case: &Case, image: &CrashImage, rng: &mut Rng) -> Option<(Case, Outcome)> {
        match self.another_life(image.pmem.clone(), Single::any(rng.next_u64())) {
            Ok(Some((shot, allowed))) => {
                let case = case.and(Then::Work(shot.event));
                Some((case, self.follow(shot.image, &[], &allowed)))
            }
            Ok(None) => None,
            Err(outcome) => Some((case.and(Then::Work(1)), outcome)),
        }
    }

    fn another_life(&mut self, pmem: Pages, single: Single) -> Result<Option<(Shot, Allowed)>, Outcome> {
        let pmem = self.recover_guest(pmem)?;
        let object = |what: String| Outcome::object(Oracle::Guest, what);
        let history = match &self.history {
            None => None,
            Some(_) => {
                let initial =
                    self.dump(pmem.clone()).map_err(|what| object(format!("check before more work: {what}")))?;
                Some((HistoryRecorder::default(), initial))
            }
        };
        let recorder = history.as_ref().map(|(recorder, _)| recorder);
        let lived = self.live(Living::Work, self.shared.again_args, pmem, single, recorder);
        let shot = lived.map_err(|error| object(format!("it does not work on after recovery: {error}")))?;
        Ok(shot.map(|shot| {
            let history = history.map(|(recorder, initial)| HistoryOracle::new(&recorder, &initial, self.epochs()));
            let allowed = Allowed::after(&shot, history.as_ref());
            (shot, allowed)
        }))
    }

    /// The program's own recovery, if it has one.
    fn recover_guest(&mut self, pmem: Pages) -> Result<Pages, Outcome> {
        match &mut self.recoverer {
            None => Ok(pmem),
            Some(program) => {
                let recovered = run_guest(program, pmem).0;
                if let (Some(scribe), Ok(pmem)) = (&self.scribe, &recovered) {
                    scribe.program_recovered(pmem);
                }
                recovered.map_err(|what| Outcome::object(Oracle::Guest, format!("recovery: {what}")))
            }
        }
    }

    /// All oracles on an image that the hardware has recovered.
    fn conclude(&mut self, image: CrashImage, report: &RecoveryReport, allowed: &Allowed) -> Outcome {
        if let Some(loss) = report.losses.first() {
            return if image.dirty_shutdown {
                Outcome { reported_loss: Some(loss.clone()), ..Outcome::default() }
            } else {
                Outcome::object(Oracle::Recovery, loss.clone())
            };
        }
        let pmem = match self.recover_guest(image.pmem) {
            Ok(pmem) => pmem,
            Err(outcome) => return outcome,
        };
        let mut outcome = Outcome { judged: vec![Oracle::Bytes, Oracle::Guest], ..Outcome::default() };
        if let Some(scribe) = &self.scribe {
            scribe.judged(&allowed.bytes, &pmem);
        }
        if let Verdict::Wrong(what) = allowed.bytes.judge(&pmem) {
            outcome.objections.insert(Oracle::Bytes, what);
        }
        let (checked, output) = run_guest(&mut self.checker, pmem);
        if let Some((history, position)) = &allowed.history {
            outcome.judged.push(Oracle::History);
            let verdict = Dump::find(output.bytes()).map(|dump| history.judge(*position, &dump));
            if let Ok(Verdict::Wrong(what)) | Err(what) = verdict {
                outcome.objections.insert(Oracle::History, what);
            }
        }
        if let Err(what) = checked {
            outcome.objections.insert(Oracle::Guest, format!("check: {what}"));
        }
        outcome
    }
}

/// Runs a program on an image; persistent memory afterwards, or what went wrong, and what it said.
fn run_guest(program: &mut LoadedProgram, pmem: Pages) -> (Result<Pages, String>, Captured) {
    let mut output = Captured::default();
    let pages = match program.run(pmem, GUEST_INSTRUCTIONS_MAX, &mut output) {
        Ok(ending) if ending.exit_code == Some(0) => Ok(ending.pool.pages),
        Ok(ending) => {
            let text = output.text();
            let said = text.lines().last().unwrap_or("it said nothing").to_owned();
            Err(match ending.exit_code {
                Some(code) => format!("exit code {code}: {said}"),
                None => format!("no end within {GUEST_INSTRUCTIONS_MAX} instructions"),
            })
        }
        Err(error) => Err(error.to_string()),
    };
    (pages, output)
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
