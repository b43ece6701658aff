//! The programs that a trial runs one after the other, for a debugger: the run whose power fails, recoveries and further work that
//! fail too, and the check.

use crate::campaign::{Campaign, parse_trial, persistency, prepare_for_crashes};
use crate::causes::StorePlace;
use crate::crashed_run::crash_free_run;
use crate::judge::{Context, ProgramRecovery};
use crate::outcome::Outcome;
use crate::request::CrashRequest;
use crate::schedule::check_event;
use crate::timeline::execute;
use crate::timeline_document::RunKind;
use crate::timeline_recorder::TimelineRecorder;
use crate::trial::{NextFailure, Trial};
use durasim_contract::Variant;
use durasim_machine::{PoolContents, Prepared, Program};
use durasim_types::{ConfigError, Error, Pages};
use std::sync::atomic::AtomicBool;

/// The purpose of a run of the program in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramRun {
    /// The run that is crashed.
    Run,
    /// The program's recovery.
    Recovery,
    /// Further work after a recovery.
    Work,
    /// The check.
    Check,
}

impl ProgramRun {
    /// Its name in sentences.
    pub const fn name(self) -> &'static str {
        match self {
            ProgramRun::Run => "the run",
            ProgramRun::Recovery => "the recovery",
            ProgramRun::Work => "the further work",
            ProgramRun::Check => "the check",
        }
    }
}

/// A store that the cause of a violation names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlamedStore {
    /// The address of its instruction.
    pub pc: u64,
    /// The guest's thread.
    pub thread: u32,
    /// Its physical address.
    pub address: u64,
}

/// One run of the program in a trial.
#[derive(Clone, Debug)]
pub struct TrialRun {
    /// Its purpose.
    pub purpose: ProgramRun,
    /// The program with its arguments and, unless it starts on what the run before it has left, its pool.
    pub program: Program,
    /// Whether it starts on what the run before it has left.
    pub continues: bool,
    /// The persist event after which power fails; `None`: it runs to its end.
    pub fails_after: Option<u64>,
}

/// The runs of a trial.
#[derive(Debug)]
pub struct TrialRuns {
    /// The machine, the design and the program.
    pub prepared: Prepared,
    /// The runs, in their order.
    pub runs: Vec<TrialRun>,
    /// The store that the cause of the violation names, with the number of its run; `None` if no cause is known.
    pub blamed: Option<(usize, BlamedStore)>,
}

/// Carries a trial out, which the request names, and gives the runs of its program.
///
/// # Errors
/// As from a replay; a request that names no trial.
pub fn trial_runs(request: &CrashRequest, registry: &[Variant], stop: &AtomicBool) -> Result<TrialRuns, Error> {
    let Some(id) = &request.replay else {
        return Err(ConfigError::new("replay", "a debugger follows one trial: name it").into());
    };
    let trial = parse_trial(id)?;
    let prepared = prepare_for_crashes(request, registry)?;
    let persistency = persistency(request, &prepared, Some(&trial))?;
    let crash_free_run = crash_free_run(&prepared, request.run.budget(), stop)?;
    check_event(&trial, &crash_free_run)?;
    let persistency = persistency.as_ref();
    let campaign = Campaign { request, prepared: &prepared, crash_free_run: &crash_free_run, persistency, stop };
    let context = campaign.context();
    let recorder = TimelineRecorder::searching();
    let tried = execute(context, &trial, &recorder, false)?.tried;
    let recorded = recorder.recorded();
    let runs = runs(context, &trial, &recorded.starts, recorded.recovered);
    let blamed = blamed(&campaign, &tried, recorded.starts.len())?;
    Ok(TrialRuns { runs, blamed, prepared })
}

/// The store that the first cause of the trial's violation names, in the last of its runs on the machine.
fn blamed(
    campaign: &Campaign<'_>,
    tried: &Vec<(Trial, Outcome)>,
    machine_runs: usize,
) -> Result<Option<(usize, BlamedStore)>, Error> {
    let causes = campaign.causes(1, tried, &mut |_, _| true)?;
    let store = causes.as_ref().and_then(|causes| causes.found.first()?.stores.first());
    let of = |StorePlace { place, address, .. }: &StorePlace| {
        (machine_runs - 1, BlamedStore { pc: place.pc, thread: place.thread, address: *address })
    };
    Ok(store.map(of))
}

fn runs(context: Context<'_>, trial: &Trial, starts: &[(RunKind, Pages)], recovered: Option<Pages>) -> Vec<TrialRun> {
    let later = trial.then.iter().filter_map(|failure| match failure {
        NextFailure::GuestRecovery(event, _) | NextFailure::Work(event, _) => Some(*event),
        NextFailure::Recovery(_) => None,
    });
    let mut failures = std::iter::once(trial.event).chain(later);
    let mut runs = Vec::new();
    for (kind, pmem) in starts {
        let (purpose, args) = match kind {
            RunKind::Run => (ProgramRun::Run, context.prepared.program.args.as_slice()),
            RunKind::Recovery => (ProgramRun::Recovery, context.recovery_args().unwrap_or_default()),
            RunKind::Work => (ProgramRun::Work, context.again_args),
        };
        let mut run = run_on(context, purpose, args, Some(pmem.clone()));
        if purpose == ProgramRun::Run {
            run.program = context.prepared.program.clone();
        }
        run.fails_after = failures.next();
        runs.push(run);
    }
    let Some(recovered) = recovered else { return runs };
    let mut contents = Some(recovered);
    if let ProgramRecovery::Command(args) = context.recovery {
        runs.push(run_on(context, ProgramRun::Recovery, args, contents.take()));
    }
    runs.push(run_on(context, ProgramRun::Check, context.check_args, contents));
    runs
}

/// A run that comes to its end, on these contents of persistent memory or on what the run before it has left.
fn run_on(context: Context<'_>, purpose: ProgramRun, args: &[String], contents: Option<Pages>) -> TrialRun {
    let continues = contents.is_none();
    let pool = contents.map(|pages| PoolContents { files: context.files.clone(), pages });
    let program = Program { args: args.to_vec(), pool, ..context.prepared.program.clone() };
    TrialRun { purpose, program, continues, fails_after: None }
}
