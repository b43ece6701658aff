//! Judges recovered contents of persistent memory with independent oracles.

use crate::byte_oracle::{ByteOracle, Verdict};
use crate::check_output::{CheckOutput, WrittenStreams};
use crate::crashed_run::{Crash, CrashFree, initial_pmem};
use crate::history::{Dump, HistoryOracle, HistoryRecorder, Position};
use crate::limits::{Limits, Stage};
use crate::outcome::{Oracle, Outcome};
use crate::output_oracle::{OutputOracle, Passed};
use crate::persistency::Persistency;
use crate::store_log::StoreRecorder;
use crate::timeline_recorder::TimelineRecorder;
use crate::trial::PowerFault;
use crate::unfinished::UnfinishedStage;
use durasim_contract::{CrashImage, Promise, RecoveryReport};
use durasim_machine::{
    Budget, LoadedProgram, Output, PmemPool, PoolContents, Prepared, Program, Stream, Symbols, Unfinished,
};
use durasim_types::{Error, Pages};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// The program's way to recover the image that the hardware's recovery leaves.
#[derive(Clone, Copy)]
pub(crate) enum ProgramRecovery<'a> {
    /// Not at all: its check only looks.
    Nothing,
    /// Started with these arguments.
    Command(&'a [String]),
    /// Its check recovers before it looks, and so does its further work.
    Check,
}

/// The state that all workers of a campaign share.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub prepared: &'a Prepared,
    pub recovery: ProgramRecovery<'a>,
    /// Arguments of the program's check.
    pub check_args: &'a [String],
    /// Arguments with which the program works on after a crash.
    pub again_args: &'a [String],
    /// The namespace of `/pmem/`.
    pub files: &'a PmemPool,
    /// The reports of the run about its operations, if there are any.
    pub history: Option<&'a HistoryRecorder>,
    /// The run as recorded, if what the check prints is judged.
    pub output: Option<&'a HistoryRecorder>,
    /// The contents and resources of the run without a crash.
    pub crash_free: &'a CrashFree,
    /// Instructions that recovery, check and further work may each take, if the user says so.
    pub recovery_limit: Option<u64>,
    /// Whether outcomes have what the check writes.
    pub keeps_check_output: bool,
    /// Whether a recovery is cut at each of its writes, not at some.
    pub all_cuts: bool,
    /// The model that says which images power failures leave; `None`: the machine does.
    pub persistency: Option<&'a Persistency>,
    pub stop: &'a AtomicBool,
}

impl<'a> Context<'a> {
    /// Arguments with which the program recovers, if it does.
    pub fn recovery_args(&self) -> Option<&'a [String]> {
        match self.recovery {
            ProgramRecovery::Nothing => None,
            ProgramRecovery::Command(args) => Some(args),
            ProgramRecovery::Check => Some(self.check_args),
        }
    }

    /// The power failure that undoes nothing.
    pub fn plainest_fault(&self) -> PowerFault {
        self.persistency.map_or(PowerFault::Clean, |persistency| PowerFault::Model(persistency.model, 0))
    }
}

/// One worker's oracles.
#[derive(Clone)]
pub(crate) struct Judge<'a> {
    pub context: Context<'a>,
    /// The limits of the program.
    pub limits: Limits,
    symbols: Arc<OnceLock<Symbols>>,
    recoverer: Option<LoadedProgram>,
    checker: LoadedProgram,
    /// Of the crashed run.
    pub operations: OperationOracles,
    /// Records the trials of this worker, in a replay.
    pub timeline_recorder: Option<TimelineRecorder>,
    /// Logs the stores of the runs on the machine, where causes are looked for; what is judged last is kept then.
    pub store_recorder: Option<StoreRecorder>,
    pub concluded: Option<Concluded>,
}

/// The oracles of a run that know its operations.
#[derive(Clone, Default)]
pub(crate) struct OperationOracles {
    /// If the program reports what it reads and changes.
    pub history: Option<HistoryOracle>,
    /// If what its check prints is judged.
    pub output: Option<OutputOracle>,
}

/// An image that was judged, and the basis on which.
#[derive(Clone)]
pub(crate) struct Concluded {
    pub image: CrashImage,
    pub report: RecoveryReport,
    pub allowed: Allowed,
}

/// The basis on which an image is judged.
#[derive(Clone)]
pub(crate) struct Allowed {
    pub bytes: ByteOracle,
    history: Option<(HistoryOracle, Position)>,
    output: Option<(OutputOracle, Passed)>,
}

impl Allowed {
    pub fn after(crash: &Crash, operations: &OperationOracles) -> Self {
        let reported = crash.moment.map(|moment| moment.reported);
        let position = |history: &HistoryOracle| match (reported, crash.fault.revokes_accepted_writes()) {
            (Some(reported), _) => reported.position,
            (None, true) => history.position_at(crash.event),
            (None, false) => history.position_after(crash.event),
        };
        let passed = |output: &OutputOracle| match (reported, crash.fault.revokes_accepted_writes()) {
            (Some(reported), _) => output.passed_until(reported),
            (None, true) => output.passed_at(crash.event),
            (None, false) => output.passed_after(crash.event),
        };
        Allowed {
            bytes: crash.oracle.clone(),
            history: operations.history.as_ref().map(|history| (history.clone(), position(history))),
            output: operations.output.as_ref().map(|output| (output.clone(), passed(output))),
        }
    }
}

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
        let recoverer = match context.recovery {
            ProgramRecovery::Command(args) => Some(load(args)?),
            ProgramRecovery::Nothing | ProgramRecovery::Check => None,
        };
        let checker = load(context.check_args)?;
        let limits = Limits::crash_free();
        let symbols = Arc::default();
        let mut judge = Judge {
            context,
            limits,
            symbols,
            recoverer,
            checker,
            operations: OperationOracles::default(),
            timeline_recorder: None,
            store_recorder: None,
            concluded: None,
        };
        judge.limits = judge.measured_limits()?;
        if let Some(recorder) = context.history {
            let initial = match &prepared.program.pool {
                Some(pool) => judge.dump(pool.pages.clone()),
                None => Ok(Dump::default()),
            };
            let fails = |stopped: Stopped| {
                Error::Failed(format!("the check fails without a power failure: {}", stopped.text()))
            };
            let initial = initial.map_err(fails)?;
            judge.operations.history = Some(HistoryOracle::new(recorder, &initial, judge.epochs()));
        }
        if let Some(recorder) = context.output {
            let pmem = initial_pmem(prepared, &prepared.program);
            judge.operations.output = Some(OutputOracle::of_run(prepared, pmem, recorder, context.crash_free.work)?);
        }
        Ok(judge)
    }

    /// The number of epochs after which an acknowledged transaction survives; `None`: at once.
    pub fn epochs(&self) -> Option<u32> {
        match self.context.prepared.plan.variant.promise {
            Promise::Immediate => None,
            Promise::Epoch(further) => Some(further),
        }
    }

    /// The limits that follow from what recovery and check take on what the run without a crash left.
    fn measured_limits(&mut self) -> Result<Limits, Error> {
        let Context { crash_free: CrashFree { pmem, work, .. }, recovery_limit, .. } = self.context;
        let allowed = Limits::crash_free();
        let recovers_with_check = matches!(self.context.recovery, ProgramRecovery::Check);
        let taken = |program: &mut LoadedProgram, stage: Stage| {
            let GuestRun { stopped, taken, .. } = run_guest(program, pmem.clone(), allowed.of(stage));
            match stopped {
                // Then no verdict on a crash would mean anything.
                Some(Stopped::Failed(what)) if recovers_with_check => {
                    Err(Error::Failed(format!("the check fails without a power failure: {what}")))
                }
                None | Some(Stopped::Failed(_)) => Ok(taken),
                Some(Stopped::Unfinished(unfinished)) => {
                    let symbols = self.symbols.get_or_init(|| Symbols::of(&self.context.prepared.program.elf));
                    let stage = UnfinishedStage::new(stage, &allowed, unfinished, symbols);
                    Err(Error::Failed(format!("without a power failure, {}", stage.text())))
                }
            }
        };
        // Each by itself: a check that takes what a recovery has taken too need not end.
        let recovery = self.recoverer.as_mut().map(|program| taken(program, Stage::Recovery)).transpose()?;
        let check = taken(&mut self.checker, Stage::Check)?;
        Ok(Limits::after(recovery.unwrap_or(check), check, *work, recovery_limit))
    }

    /// The contents of a pool, as the program reports them.
    pub fn dump(&mut self, pmem: Pages) -> Result<Dump, Stopped> {
        let GuestRun { stopped, output, .. } = run_guest(&mut self.checker, pmem, self.limits.of(Stage::Check));
        match stopped {
            None => Dump::find(&output).map_err(Stopped::Failed),
            Some(stopped) => Err(stopped),
        }
    }

    /// The objection to a program that was stopped in this stage.
    pub fn outcome(&self, stage: Stage, stopped: Stopped, what: &str) -> Outcome {
        match stopped {
            Stopped::Failed(text) => Outcome::object(Oracle::Guest, format!("{what}: {text}")),
            Stopped::Unfinished(unfinished) => Outcome::unfinished(self.unfinished(stage, unfinished)),
        }
    }

    fn unfinished(&self, stage: Stage, unfinished: Unfinished) -> UnfinishedStage {
        let symbols = self.symbols.get_or_init(|| Symbols::of(&self.context.prepared.program.elf));
        UnfinishedStage::new(stage, &self.limits, unfinished, symbols)
    }

    /// Persistent memory after the program's own recovery, if it has one.
    pub fn recover_guest(&mut self, pmem: Pages) -> Result<Pages, Outcome> {
        let (program, stage, name) = match (self.context.recovery, &mut self.recoverer) {
            (ProgramRecovery::Check, _) => (&mut self.checker, Stage::Check, "check"),
            (_, Some(program)) => (program, Stage::Recovery, "recovery"),
            (_, None) => return Ok(pmem),
        };
        let run = run_guest(program, pmem, self.limits.of(stage));
        let mut checks = Vec::new();
        if stage == Stage::Check {
            self.keep_output(&run, &mut checks);
        }
        match (run.pmem, run.stopped) {
            (Some(pmem), None) => {
                self.program_recovered(&pmem);
                Ok(pmem)
            }
            (_, stopped) => {
                let outcome = self.outcome(stage, stopped.expect("it has not come to its end"), name);
                Err(Outcome { checks, ..outcome })
            }
        }
    }

    /// Keeps what a check has written, if the request asks for it.
    fn keep_output(&self, run: &GuestRun, checks: &mut Vec<CheckOutput>) {
        if self.context.keeps_check_output {
            checks.push(run.written.document());
        }
    }

    fn program_recovered(&self, pmem: &Pages) {
        if let Some(timeline_recorder) = &self.timeline_recorder {
            timeline_recorder.program_recovered(pmem);
        }
    }

    /// All oracles on an image that the hardware has recovered.
    pub fn conclude(&mut self, image: CrashImage, report: &RecoveryReport, allowed: &Allowed) -> Outcome {
        if self.store_recorder.is_some() {
            self.concluded = Some(Concluded { image: image.clone(), report: report.clone(), allowed: allowed.clone() });
        }
        if let Some(loss) = report.losses.first() {
            return if image.dirty_shutdown {
                Outcome { reported_loss: Some(loss.clone()), ..Outcome::default() }
            } else {
                Outcome::object(Oracle::Recovery, loss.clone())
            };
        }
        if matches!(self.context.recovery, ProgramRecovery::Check) {
            return self.conclude_with_check(&image.pmem, allowed);
        }
        let pmem = match self.recover_guest(image.pmem) {
            Ok(pmem) => pmem,
            Err(outcome) => return outcome,
        };
        let mut outcome = Outcome { judged: vec![Oracle::Guest], ..Outcome::default() };
        self.compare_bytes(&pmem, allowed, &mut outcome);
        let run = run_guest(&mut self.checker, pmem, self.limits.of(Stage::Check));
        self.keep_output(&run, &mut outcome.checks);
        if let Some(stopped @ Stopped::Unfinished(_)) = run.stopped {
            self.object_to_check(stopped, "check", &mut outcome);
            return outcome;
        }
        if let Some((history, position)) = &allowed.history {
            outcome.judged.push(Oracle::History);
            let verdict = Dump::find(&run.output).map(|dump| history.judge(*position, &dump));
            if let Ok(Verdict::Wrong(what)) | Err(what) = verdict {
                outcome.objections.insert(Oracle::History, what);
            }
        }
        if let Some(stopped) = run.stopped {
            self.object_to_check(stopped, "check", &mut outcome);
        }
        outcome
    }

    /// The outcome for a program whose check recovers. The bytes are those that the check has left; if it has changed
    /// some, it has to accept them in a second check.
    fn conclude_with_check(&mut self, found: &Pages, allowed: &Allowed) -> Outcome {
        let mut outcome = Outcome { judged: vec![Oracle::Guest], ..Outcome::default() };
        let run = run_guest(&mut self.checker, found.clone(), self.limits.of(Stage::Check));
        self.keep_output(&run, &mut outcome.checks);
        if let Some(pmem) = &run.pmem {
            self.program_recovered(pmem);
            self.compare_bytes(pmem, allowed, &mut outcome);
        }
        match (run.stopped, run.pmem) {
            (Some(stopped), _) => self.object_to_check(stopped, "check", &mut outcome),
            (None, Some(pmem)) if !same(&pmem, found) => {
                self.compare_output(&run.output, allowed, &mut outcome);
                let again = run_guest(&mut self.checker, pmem, self.limits.of(Stage::Check));
                self.keep_output(&again, &mut outcome.checks);
                if let Some(stopped) = again.stopped {
                    let what = "check, started again on what it has recovered";
                    self.object_to_check(stopped, what, &mut outcome);
                }
            }
            (None, _) => self.compare_output(&run.output, allowed, &mut outcome),
        }
        outcome
    }

    fn compare_output(&mut self, printed: &[u8], allowed: &Allowed, outcome: &mut Outcome) {
        let Some((output, passed)) = &allowed.output else { return };
        outcome.judged.push(Oracle::Output);
        let budget = self.limits.of(Stage::Check);
        let mut print = |pmem: Pages| {
            let GuestRun { stopped, output, .. } = run_guest(&mut self.checker, pmem, budget);
            stopped.map_or(Ok(output), |stopped| Err(stopped.text()))
        };
        if let Verdict::Wrong(what) = output.judge(*passed, printed, &mut print) {
            outcome.objections.insert(Oracle::Output, what);
        }
    }

    /// The check was stopped. A check that does not end has judged nothing.
    fn object_to_check(&self, stopped: Stopped, what: &str, outcome: &mut Outcome) {
        let Outcome { objections, unfinished, .. } = self.outcome(Stage::Check, stopped, what);
        if unfinished.is_some() {
            outcome.judged.retain(|oracle| *oracle != Oracle::Guest);
            outcome.judged.push(Oracle::Termination);
            outcome.unfinished = unfinished;
        }
        outcome.objections.extend(objections);
    }

    fn compare_bytes(&self, pmem: &Pages, allowed: &Allowed, outcome: &mut Outcome) {
        if let Some(timeline_recorder) = &self.timeline_recorder {
            timeline_recorder.judged(&allowed.bytes, pmem);
        }
        if !allowed.bytes.compares() {
            return;
        }
        outcome.judged.push(Oracle::Bytes);
        if let Verdict::Wrong(what) = allowed.bytes.judge(pmem) {
            outcome.objections.insert(Oracle::Bytes, what);
        }
    }
}

/// The reason why a program did not complete.
pub(crate) enum Stopped {
    /// It failed, as this says.
    Failed(String),
    /// It reached its limit.
    Unfinished(Unfinished),
}

impl Stopped {
    fn text(&self) -> String {
        match self {
            Stopped::Failed(what) => what.clone(),
            Stopped::Unfinished(unfinished) => format!("no end, at pc {:#x}", unfinished.pc),
        }
    }
}

/// The run of a program on an image.
struct GuestRun {
    /// Persistent memory, if it ended.
    pmem: Option<Pages>,
    /// The failure; `None` if its exit code is 0.
    stopped: Option<Stopped>,
    /// Its output.
    output: Vec<u8>,
    /// The begin of each of its streams.
    written: WrittenStreams,
    /// Instructions and memory.
    taken: Budget,
}

/// Keeps the output of a program, up to a number of bytes and one more.
struct BoundedOutput {
    kept: Vec<u8>,
    bytes_max: u64,
    written: WrittenStreams,
}

impl Output for BoundedOutput {
    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        self.written.write(stream, bytes);
        let room = self.bytes_max.saturating_add(1) - self.kept.len() as u64;
        self.kept.extend_from_slice(&bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))]);
    }

    fn kept_bytes(&self) -> u64 {
        self.kept.len() as u64
    }
}

/// Runs a program on an image.
fn run_guest(program: &mut LoadedProgram, pmem: Pages, budget: Budget) -> GuestRun {
    let mut output =
        BoundedOutput { kept: Vec::new(), bytes_max: budget.memory_bytes, written: WrittenStreams::default() };
    let ran = program.run(pmem, budget, &mut output);
    let taken = match &ran {
        Ok(ending) => Budget { instructions: ending.instructions, memory_bytes: ending.written_bytes },
        Err(_) => Budget { instructions: 0, memory_bytes: 0 },
    };
    let (pmem, stopped) = match ran {
        Ok(ending) => match (ending.exit_code, ending.unfinished) {
            (Some(0), _) => (Some(ending.pool.pages), None),
            (Some(code), _) => {
                let text = String::from_utf8_lossy(&output.kept);
                let said = text.lines().last().unwrap_or("it printed nothing");
                (Some(ending.pool.pages), Some(Stopped::Failed(format!("exit code {code}: {said}"))))
            }
            (None, Some(unfinished)) => (None, Some(Stopped::Unfinished(unfinished))),
            (None, None) => (None, Some(Stopped::Failed("it was stopped".to_owned()))),
        },
        Err(error) => (None, Some(Stopped::Failed(error.to_string()))),
    };
    GuestRun { pmem, stopped, output: output.kept, written: output.written, taken }
}

/// Whether two images of persistent memory are equal.
pub(crate) fn same(a: &Pages, b: &Pages) -> bool {
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
