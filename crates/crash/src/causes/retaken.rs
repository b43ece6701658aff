//! The images of failing trials, taken once more in a run whose stores are logged.

use crate::crashed_run::{Crash, CrashPointSelector, CrashedRun, EndedRun, Selection, initial_pmem, run_with_crashes};
use crate::executor::Executor;
use crate::judge::{Allowed, Concluded, Context, Judge};
use crate::outcome::Oracle;
use crate::persistency::ModelChoice;
use crate::store_log::{StoreLog, StoreRecorder};
use crate::trial::{NextFailure, PowerFault, Trial};
use durasim_contract::{CrashImage, RecoveryReport};
use durasim_machine::System;
use durasim_types::{Error, PersistEvent};
use std::collections::{BTreeMap, BTreeSet};

/// Trials that are examined although only a later power failure is at fault: each takes a run of its own.
const LATER_MAX: usize = 8;

/// A failing image.
pub(super) struct Case {
    pub trial: Trial,
    /// After the hardware's recovery.
    pub image: CrashImage,
    pub report: RecoveryReport,
    pub allowed: Allowed,
    /// The oracles that object to it.
    pub objecting: BTreeSet<Oracle>,
    /// Steps of the run before the power failure.
    pub made: usize,
    /// Failing trials that begin with it, itself included.
    pub trials: u64,
}

/// Failing images with the logs of their runs.
pub(super) struct Retaken<'a> {
    pub logs: Vec<(StoreLog, Vec<Case>)>,
    pub judge: Judge<'a>,
    /// Whether the log of the run is incomplete: then there are no images.
    pub is_cut: bool,
}

/// Takes the images of the first `most` of these trials with one power failure, and of a few whose later power failure is at
/// fault.
///
/// # Errors
/// As from a run.
pub(super) fn retake<'a>(context: Context<'a>, failing: &[&Trial], most: usize) -> Result<Retaken<'a>, Error> {
    let firsts: BTreeSet<(u64, PowerFault)> =
        failing.iter().filter(|trial| trial.then.is_empty()).map(|trial| (trial.event, trial.fault)).collect();
    let alone = |trial: &&&Trial| !trial.then.is_empty() && !firsts.contains(&(trial.event, trial.fault));
    let later: Vec<&Trial> = failing.iter().filter(alone).take(LATER_MAX).copied().collect();
    let mut wanted: BTreeMap<u64, BTreeSet<PowerFault>> = BTreeMap::new();
    for &(event, fault) in firsts.iter().take(most) {
        wanted.entry(event).or_default().insert(fault);
    }
    for trial in &later {
        wanted.entry(trial.event).or_default().insert(trial.fault);
    }
    let recorder = StoreRecorder::default();
    let prepared = context.prepared;
    let run = CrashedRun {
        prepared,
        program: &prepared.program,
        expected: initial_pmem(prepared, &prepared.program),
        declares: context.crash_free.declares,
        recovers_first: false,
        limits: None,
        store_recorder: Some(recorder.clone()),
        persistency: context.persistency,
    };
    let selector = Again { wanted, crashes: BTreeMap::new() };
    let EndedRun { selector, ended, .. } = run_with_crashes(run, selector, None, None, context.stop)?;
    ended?;
    let (log, mut crashes) = (recorder.take(), selector.crashes);
    let mut judge = Judge::new(context)?;
    if log.is_cut {
        return Ok(Retaken { logs: Vec::new(), judge, is_cut: true });
    }
    let begins = crashes_of(&crashes, &later);
    crashes.retain(|key, _| firsts.contains(key));
    let later = later_cases(&judge, &later, &begins, recorder);
    let mut cases = Vec::new();
    for ((event, fault), crash) in crashes {
        let trials = failing.iter().filter(|trial| (trial.event, trial.fault) == (event, fault)).count() as u64;
        cases.extend(first_case(&mut judge, crash, &log, trials));
    }
    let logs = [(log, cases)].into_iter().chain(later).collect();
    Ok(Retaken { logs, judge, is_cut: false })
}

/// The images with which these trials begin.
fn crashes_of(crashes: &BTreeMap<(u64, PowerFault), Crash>, trials: &[&Trial]) -> BTreeMap<(u64, PowerFault), Crash> {
    let keys: BTreeSet<(u64, PowerFault)> = trials.iter().map(|trial| (trial.event, trial.fault)).collect();
    keys.into_iter().filter_map(|key| Some((key, crashes.get(&key)?.clone()))).collect()
}

/// Steps before a power failure: an image is judged by what is acknowledged before the next event, and one without cleans that
/// no fence has waited for by what is acknowledged at its own.
fn steps_before(log: &StoreLog, event: u64, fault: PowerFault) -> usize {
    log.steps_before(if fault.revokes_accepted_writes() { event } else { event + 1 })
}

fn first_case(judge: &mut Judge<'_>, crash: Crash, log: &StoreLog, trials: u64) -> Option<Case> {
    let made = crash.moment.and_then(|moment| moment.steps);
    let made = made.unwrap_or_else(|| steps_before(log, crash.event, crash.fault));
    let trial = Trial::new(crash.event, crash.fault);
    let point = Executor::new(judge.clone()).crash_point(crash).ok()?;
    let (image, report, allowed) = point.recovered_image();
    let objections = judge.conclude(image.clone(), report, allowed).objections;
    let objecting: BTreeSet<Oracle> = objections.into_keys().collect();
    let (image, report, allowed) = (image.clone(), report.clone(), allowed.clone());
    (!objecting.is_empty()).then_some(Case { trial, image, report, allowed, objecting, made, trials })
}

/// Trials whose later power failure is at fault, each with the log of the run in which that happens.
fn later_cases(
    judge: &Judge<'_>,
    trials: &[&Trial],
    crashes: &BTreeMap<(u64, PowerFault), Crash>,
    recorder: StoreRecorder,
) -> Vec<(StoreLog, Vec<Case>)> {
    let mut judge = judge.clone();
    judge.store_recorder = Some(recorder.clone());
    let mut cases = Vec::new();
    for trial in trials {
        let (Some(crash), Some(then)) = (crashes.get(&(trial.event, trial.fault)), trial.then.last()) else { continue };
        let (NextFailure::GuestRecovery(event, fault) | NextFailure::Work(event, fault)) = *then else { continue };
        let mut executor = Executor::new(judge.clone());
        let Ok(point) = executor.crash_point(crash.clone()) else { continue };
        let (_, outcome) = executor.execute(&point, &mut trial.then.iter());
        let (log, concluded) = (recorder.take(), executor.take_concluded());
        let Some(Concluded { image, report, allowed }) = concluded.filter(|_| !log.is_cut) else { continue };
        let (made, objecting) = (steps_before(&log, event, fault), outcome.objections.into_keys().collect());
        let trial = (*trial).clone();
        cases.push((log, vec![Case { trial, image, report, allowed, objecting, made, trials: 1 }]));
    }
    cases
}

/// Takes images of these failures, and lets the run go on to its end.
struct Again {
    wanted: BTreeMap<u64, BTreeSet<PowerFault>>,
    crashes: BTreeMap<(u64, PowerFault), Crash>,
}

impl CrashPointSelector for Again {
    fn select(&mut self, event: &PersistEvent, system: &System) -> Option<Selection> {
        let Some(faults) = self.wanted.get(&event.number) else { return Some(Selection::NOTHING) };
        let number = |fault: &PowerFault| if let PowerFault::Model(_, number) = fault { Some(*number) } else { None };
        let of_model: Vec<u64> = faults.iter().filter_map(number).collect();
        if !of_model.is_empty() {
            return Some(Selection::OfModel(ModelChoice::These(of_model)));
        }
        Some(Selection::Images(faults.iter().map(|fault| fault.image(system)).collect()))
    }

    fn record(&mut self, crashes: Vec<Crash>) -> bool {
        self.crashes.extend(crashes.into_iter().map(|crash| ((crash.event, crash.fault), crash)));
        true
    }
}
