//! Judges recovered contents of persistent memory with independent oracles.

use crate::byte_oracle::{ByteOracle, Verdict};
use crate::crashed_run::Crash;
use crate::history::{Dump, HistoryOracle, HistoryRecorder, Position};
use crate::outcome::{Oracle, Outcome};
use crate::timeline_recorder::TimelineRecorder;
use durasim_design::{CrashImage, Promise, RecoveryReport};
use durasim_machine::{Captured, LoadedProgram, PmemPool, PoolContents, Prepared, Program};
use durasim_types::{Error, GuestFault, Pages};
use std::sync::atomic::AtomicBool;

/// What all workers of a campaign share.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
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

/// One worker's oracles.
#[derive(Clone)]
pub(crate) struct Judge<'a> {
    pub context: Context<'a>,
    recoverer: Option<LoadedProgram>,
    checker: LoadedProgram,
    /// Of the crashed run, if that says anything of its operations.
    pub history: Option<HistoryOracle>,
    /// Records the cases of this worker, in a replay.
    pub timeline_recorder: Option<TimelineRecorder>,
}

/// What an image is judged against.
#[derive(Clone)]
pub(crate) struct Allowed {
    pub bytes: ByteOracle,
    history: Option<(HistoryOracle, Position)>,
}

impl Allowed {
    pub fn after(crash: &Crash, history: Option<&HistoryOracle>) -> Self {
        let position = |history: &HistoryOracle| match crash.fault.revokes_accepted_writes() {
            true => history.position_at(crash.event),
            false => history.position_after(crash.event),
        };
        Allowed { bytes: crash.oracle.clone(), history: history.map(|history| (history.clone(), position(history))) }
    }
}

/// Instructions that a program's recovery or check may take.
const GUEST_INSTRUCTIONS_MAX: u64 = 2_000_000_000;

impl<'a> Judge<'a> {
    /// # Errors
    /// A program that cannot be loaded.
    pub fn new(context: Context<'a>) -> Result<Self, Error> {
        let prepared = context.prepared;
        let load = |args: &[String]| {
            let nothing = Pages::new(durasim_machine::PMEM_BASE, prepared.config.pmem.capacity_mib << 20);
            let pool = Some(PoolContents { files: context.files.clone(), pages: nothing });
            let program = Program { args: args.to_vec(), pool, ..prepared.program.clone() };
            LoadedProgram::new(&prepared.config, &prepared.plan, &program)
        };
        let recoverer = context.recover_args.map(load).transpose()?;
        let checker = load(context.check_args)?;
        let mut judge = Judge { context, recoverer, checker, history: None, timeline_recorder: None };
        if let Some(recorder) = context.history {
            let initial = match &prepared.program.pool {
                Some(pool) => judge.dump(pool.pages.clone()),
                None => Ok(Dump::default()),
            };
            let initial = initial.map_err(|what| GuestFault { pc: 0, what, last_syscall: None })?;
            judge.history = Some(HistoryOracle::new(recorder, &initial, judge.epochs()));
        }
        Ok(judge)
    }

    /// How many epochs later an acknowledged transaction survives; `None`: at once.
    pub fn epochs(&self) -> Option<u32> {
        match self.context.prepared.plan.row.promise {
            Promise::Immediate => None,
            Promise::Epoch(further) => Some(further),
        }
    }

    /// What a pool holds, as the program says.
    pub fn dump(&mut self, pmem: Pages) -> Result<Dump, String> {
        let (checked, output) = run_guest(&mut self.checker, pmem);
        checked.and_then(|_| Dump::find(output.bytes()))
    }

    /// The program's own recovery, if it has one.
    pub fn recover_guest(&mut self, pmem: Pages) -> Result<Pages, Outcome> {
        match &mut self.recoverer {
            None => Ok(pmem),
            Some(program) => {
                let recovered = run_guest(program, pmem).0;
                if let (Some(timeline_recorder), Ok(pmem)) = (&self.timeline_recorder, &recovered) {
                    timeline_recorder.program_recovered(pmem);
                }
                recovered.map_err(|what| Outcome::object(Oracle::Guest, format!("recovery: {what}")))
            }
        }
    }

    /// All oracles on an image that the hardware has recovered.
    pub fn conclude(&mut self, image: CrashImage, report: &RecoveryReport, allowed: &Allowed) -> Outcome {
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
        if let Some(timeline_recorder) = &self.timeline_recorder {
            timeline_recorder.judged(&allowed.bytes, &pmem);
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
            let said = text.lines().last().unwrap_or("it printed nothing").to_owned();
            Err(match ending.exit_code {
                Some(code) => format!("exit code {code}: {said}"),
                None => format!("no end within {GUEST_INSTRUCTIONS_MAX} instructions"),
            })
        }
        Err(error) => Err(error.to_string()),
    };
    (pages, output)
}
