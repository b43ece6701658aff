//! The runs of a trial, executed forwards and backwards. A position in a run is the number of instructions that all cores have
//! executed. Going back restores the checkpoint before a position and executes up to it: the run takes the same course each time.

use crate::checkpoints::Checkpoints;
use crate::stops::{Stop, Watchpoints};
use durasim_crash::{BlamedStore, ProgramRun, TrialRun, TrialRuns};
use durasim_machine::{
    DataAccess, Ending, Machine, Observer, Output, PoolContents, Program, SingleStep, Stream, System, ThreadId,
};
use durasim_types::{CoreId, Error, PersistEvent};
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Steps of the machine between two looks at whether the session is to end.
pub(crate) const STEPS_AT_ONCE: u64 = 20_000;

/// Counts the persist events of a run, and stops the machine at the one after which power fails.
struct EventCounter {
    last: Arc<AtomicU64>,
    fails_after: Option<u64>,
}

impl Observer for EventCounter {
    fn event(&mut self, event: &PersistEvent, _: &System) -> bool {
        self.last.store(event.number, Ordering::Relaxed);
        Some(event.number) != self.fails_after
    }
}

/// Passes on what the program writes, except what it has written before it went back.
struct NewOutput {
    is_new: bool,
}

impl Output for NewOutput {
    fn write(&mut self, _: Stream, bytes: &[u8]) {
        if self.is_new {
            // Standard output has the result of the replay. The debugger goes on if the output cannot be written.
            let _ = std::io::stderr().write_all(bytes);
        }
    }
}

/// A machine within a run.
struct Live {
    machine: Machine,
    last_event: Arc<AtomicU64>,
}

impl Live {
    fn new(mut machine: Machine, last_event: u64, fails_after: Option<u64>) -> Self {
        let last_event = Arc::new(AtomicU64::new(last_event));
        machine.execute_singly();
        machine.system_mut().observe(Box::new(EventCounter { last: last_event.clone(), fails_after }));
        Live { machine, last_event }
    }

    fn position(&self) -> u64 {
        self.machine.instructions()
    }

    fn last_event(&self) -> u64 {
        self.last_event.load(Ordering::Relaxed)
    }
}

/// A run that was begun.
struct Begun {
    checkpoints: Checkpoints,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// Power failed after the event that the trial names.
    PowerFailure,
    /// The program exited with this code.
    Exited(i32),
    /// The program or the machine was stopped, as this says.
    Failed(String),
}

/// The place of a replay, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub run: usize,
    pub position: u64,
    pub cycle: u64,
    pub last_event: u64,
}

/// A breakpoint that a thread has passed while gdb took stops of another one alone.
struct Passed {
    position: u64,
    thread: ThreadId,
    pc: u64,
}

/// A trial that is replayed.
pub(crate) struct Replay<'a> {
    trial: TrialRuns,
    /// Set when the session is to end.
    stop: &'a AtomicBool,
    begun: Vec<Begun>,
    /// Output of each run up to this position was passed on.
    furthest: Vec<u64>,
    /// Breakpoints that gdb has removed since all threads went on: it may have done so to let one of them pass.
    lifted: BTreeSet<u64>,
    passed: Option<Passed>,
    live: Live,
    end: Option<RunEnd>,
    /// The thread that the debugger was shown last.
    pub thread: ThreadId,
    breakpoints: BTreeSet<u64>,
    pub watchpoints: Watchpoints,
}

impl<'a> Replay<'a> {
    /// At the begin of the first run. Long work on the way ends early once `stop` is set.
    ///
    /// # Errors
    /// A machine that cannot be built.
    pub fn new(trial: TrialRuns, stop: &'a AtomicBool) -> Result<Self, Error> {
        let live = Self::load(&trial, &trial.runs[0], None)?;
        let mut replay = Replay {
            furthest: vec![0; trial.runs.len()],
            trial,
            stop,
            begun: Vec::new(),
            lifted: BTreeSet::new(),
            passed: None,
            live,
            end: None,
            thread: ThreadId::FIRST,
            breakpoints: BTreeSet::new(),
            watchpoints: Watchpoints::default(),
        };
        replay.begin_here();
        Ok(replay)
    }

    /// The machine at the begin of a run; `left`: the contents of persistent memory that the run before it has left.
    fn load(trial: &TrialRuns, run: &TrialRun, left: Option<PoolContents>) -> Result<Live, Error> {
        let with_pool;
        let program = match left {
            Some(pool) => {
                with_pool = Program { pool: Some(pool), ..run.program.clone() };
                &with_pool
            }
            None => &run.program,
        };
        let machine = Machine::new(&trial.prepared.config, &trial.prepared.plan, program)?;
        Ok(Live::new(machine, 0, run.fails_after))
    }

    fn begin_here(&mut self) {
        let checkpoints = Checkpoints::begin(self.live.machine.fork());
        self.begun.push(Begun { checkpoints });
        self.passed = None;
        self.thread = ThreadId::FIRST;
        self.end = None;
    }

    /// The number of the current run, from 0.
    pub fn run(&self) -> usize {
        self.begun.len() - 1
    }

    /// All runs of the trial.
    pub fn runs(&self) -> &[TrialRun] {
        &self.trial.runs
    }

    /// The purpose of the current run.
    pub fn purpose(&self) -> ProgramRun {
        self.trial.runs[self.run()].purpose
    }

    /// The end of the current run, if it is reached.
    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }

    /// The machine.
    pub fn machine(&mut self) -> &mut Machine {
        &mut self.live.machine
    }

    /// The core of a thread, if it has one; `None` if it has ended.
    pub fn view(&self, thread: ThreadId) -> Option<Option<CoreId>> {
        self.live.machine.program_thread(thread).map(|view| view.core)
    }

    /// The place of the machine.
    pub fn place(&self) -> Place {
        let Live { machine, .. } = &self.live;
        Place {
            run: self.run(),
            position: self.live.position(),
            cycle: machine.cycle(),
            last_event: self.live.last_event(),
        }
    }

    /// Goes to the begin of the run after the current one. False: there is none.
    ///
    /// # Errors
    /// A machine that cannot be built.
    pub fn next_run(&mut self) -> Result<bool, Error> {
        let has_failed = matches!(self.end, Some(RunEnd::Failed(_)));
        let Some(run) = self.trial.runs.get(self.begun.len()).filter(|_| !has_failed) else { return Ok(false) };
        let left = run.continues.then(|| self.live.machine.fork().into_pool_contents(&self.trial.prepared.plan));
        self.live = Self::load(&self.trial, run, left.transpose()?)?;
        self.begin_here();
        Ok(true)
    }

    /// Takes up to `steps_max` steps of the machine; the reason to stop, if there is one. `only`: no other thread stops it.
    pub fn forward(
        &mut self,
        steps_max: u64,
        only: Option<ThreadId>,
        mut wants: impl FnMut(ThreadId) -> Option<Stop>,
    ) -> Option<Stop> {
        for _ in 0..steps_max {
            if self.end.is_some() {
                return Some(Stop::End);
            }
            self.keep_checkpoint();
            let run = self.run();
            let mut output = NewOutput { is_new: self.live.position() >= self.furthest[run] };
            let step = self.live.machine.single_step(&mut output);
            self.furthest[run] = self.furthest[run].max(self.live.position());
            match step {
                // A signal or an abort may have changed the next instruction of a thread.
                Ok(SingleStep::NoInstruction) => self.look_ahead(),
                Ok(SingleStep::Executed(thread)) => {
                    let stop = self.stop_after(thread).or_else(|| wants(thread));
                    let is_taken = only.is_none_or(|only| only == thread);
                    if stop.is_some() && is_taken {
                        self.thread = thread;
                        return stop;
                    }
                    self.note_passed(thread, is_taken);
                }
                Ok(SingleStep::Ended(ending, executed)) => {
                    self.thread = executed.unwrap_or(self.thread);
                    self.end = Some(self.end_of(ending));
                }
                Err(error) => {
                    self.thread = self.faulting_thread(&error).unwrap_or(self.thread);
                    self.end = Some(RunEnd::Failed(error.to_string()));
                }
            }
        }
        self.end.is_some().then_some(Stop::End)
    }

    /// The thread whose next instruction a fault of the guest names.
    fn faulting_thread(&self, error: &Error) -> Option<ThreadId> {
        let Error::Guest(fault) = error else { return None };
        let threads = self.live.machine.program_threads();
        threads.iter().find(|view| view.hart.pc == fault.pc).map(|view| view.thread)
    }

    /// Adds a breakpoint.
    pub fn add_breakpoint(&mut self, pc: u64) {
        self.breakpoints.insert(pc);
    }

    /// Removes a breakpoint. False: there is none.
    pub fn remove_breakpoint(&mut self, pc: u64) -> bool {
        self.lifted.insert(pc);
        self.breakpoints.remove(&pc)
    }

    /// Notes the first breakpoint that a thread passes: one that gdb has lifted, or any if stops of this thread are not taken.
    fn note_passed(&mut self, thread: ThreadId, is_taken: bool) {
        if self.passed.is_some() || is_taken && self.lifted.is_empty() {
            return;
        }
        let Some(pc) = self.live.machine.thread_pc(thread) else { return };
        if self.lifted.contains(&pc) || !is_taken && self.breakpoints.contains(&pc) {
            self.passed = Some(Passed { position: self.live.position(), thread, pc });
        }
    }

    /// All threads go on. If one of them has passed a breakpoint meanwhile, the replay goes back to it and stops there.
    pub fn stop_at_passed_breakpoint(&mut self) -> Option<Stop> {
        self.lifted.clear();
        let Passed { position, thread, .. } =
            self.passed.take().filter(|passed| self.breakpoints.contains(&passed.pc))?;
        self.go_to(position);
        self.thread = thread;
        Some(Stop::Breakpoint)
    }

    fn end_of(&self, ending: Ending) -> RunEnd {
        let fails_after = self.trial.runs[self.run()].fails_after;
        match ending {
            Ending::Exited(code) => RunEnd::Exited(code),
            Ending::Stopped if Some(self.live.last_event()) == fails_after => RunEnd::PowerFailure,
            ending => RunEnd::Failed(format!("the run ended early: {ending:?}")),
        }
    }

    fn keep_checkpoint(&mut self) {
        let event = self.live.last_event();
        let begun = self.begun.last_mut().expect("the current run was begun");
        begun.checkpoints.offer(&mut self.live.machine, event);
    }

    /// Whether the thread that was shown last is at a breakpoint.
    pub fn is_at_breakpoint(&self) -> bool {
        self.live.machine.thread_pc(self.thread).is_some_and(|pc| self.breakpoints.contains(&pc))
    }

    /// The reason to stop after an instruction of a thread.
    fn stop_after(&mut self, thread: ThreadId) -> Option<Stop> {
        let watched = self.watchpoints.hit(thread);
        self.watchpoints.look_ahead(&mut self.live.machine, thread);
        if let Some(watchpoint) = watched {
            return Some(Stop::Watchpoint(watchpoint));
        }
        let pc = self.live.machine.thread_pc(thread)?;
        self.breakpoints.contains(&pc).then_some(Stop::Breakpoint)
    }

    /// Watchpoints know the next access of every thread from here on.
    pub fn look_ahead(&mut self) {
        if self.watchpoints.is_empty() {
            return;
        }
        let threads: Vec<ThreadId> = self.live.machine.program_threads().iter().map(|view| view.thread).collect();
        for thread in threads {
            self.watchpoints.look_ahead(&mut self.live.machine, thread);
        }
    }

    /// Goes back to a position of the current run.
    fn go_to(&mut self, position: u64) {
        let fails_after = self.trial.runs[self.run()].fails_after;
        let begun = self.begun.last_mut().expect("the current run was begun");
        let (machine, event) = begun.checkpoints.before(position);
        self.live = Live::new(machine, event, fails_after);
        self.end = None;
        let mut output = NewOutput { is_new: false };
        while self.live.position() < position {
            let step = self.live.machine.single_step(&mut output);
            debug_assert!(matches!(step, Ok(SingleStep::Executed(_) | SingleStep::NoInstruction)), "{step:?}");
            if !matches!(step, Ok(SingleStep::Executed(_) | SingleStep::NoInstruction)) {
                break;
            }
        }
    }

    /// Undoes the last instruction of a thread. At the begin of a run it goes to the end of the one before it.
    pub fn step_back(&mut self, thread: ThreadId) -> Stop {
        self.passed = None;
        let by_thread = |_: &mut Machine, by: ThreadId, position: u64, _: Option<DataAccess>| {
            (by == thread).then(|| (position - 1, Stop::Step))
        };
        match self.find_back(by_thread) {
            Some((position, stop)) => {
                self.go_to(position);
                self.thread = thread;
                stop
            }
            None => self.leave_backwards(),
        }
    }

    /// Goes back to the last place in the current run at which a breakpoint or a watchpoint stops. At the begin of a run it goes to
    /// the end of the one before it.
    pub fn continue_back(&mut self) -> Stop {
        self.passed = None;
        if self.breakpoints.is_empty() && self.watchpoints.is_empty() {
            return self.leave_backwards();
        }
        let (breakpoints, watchpoints) = (self.breakpoints.clone(), self.watchpoints.clone());
        let here = self.live.position();
        let is_at_end = self.end.is_some();
        let mut stopped_by = ThreadId::FIRST;
        let mut wanted = |machine: &mut Machine, by: ThreadId, position: u64, access: Option<DataAccess>| {
            let watched = access.and_then(|access| watchpoints.concerned(access));
            let stop = match watched {
                Some(watchpoint) => Some((position - 1, Stop::Watchpoint(watchpoint))),
                None => (position < here || is_at_end)
                    .then(|| machine.thread_pc(by).filter(|pc| breakpoints.contains(pc)))
                    .flatten()
                    .map(|_| (position, Stop::Breakpoint)),
            };
            if stop.is_some() {
                stopped_by = by;
            }
            stop
        };
        match self.find_back(&mut wanted) {
            Some((position, stop)) => {
                self.go_to(position);
                self.thread = stopped_by;
                stop
            }
            None => self.leave_backwards(),
        }
    }

    /// The begin of the current run; if the machine is there, the end of the run before it.
    fn leave_backwards(&mut self) -> Stop {
        self.thread = ThreadId::FIRST;
        if self.live.position() > 0 || self.run() == 0 {
            self.go_to(0);
            return Stop::Begin;
        }
        self.begun.pop();
        let run = self.run();
        let fails_after = self.trial.runs[run].fails_after;
        let begun = self.begun.last_mut().expect("a run before this one was begun");
        let (machine, event) = begun.checkpoints.before(u64::MAX);
        self.live = Live::new(machine, event, fails_after);
        self.end = None;
        self.forward_to_end();
        Stop::End
    }

    /// Runs to the end of the current run, whatever would stop on the way.
    pub fn forward_to_end(&mut self) {
        let stops = (std::mem::take(&mut self.breakpoints), std::mem::take(&mut self.watchpoints));
        while self.forward(STEPS_AT_ONCE, None, |_| None).is_none() && !self.stop.load(Ordering::Relaxed) {}
        (self.breakpoints, self.watchpoints) = stops;
    }

    /// The last place before here for which `wanted` gives a position of its own. It is asked after each instruction, with the
    /// thread that has executed it, the position after it, and its access if there are watchpoints.
    fn find_back(
        &mut self,
        mut wanted: impl FnMut(&mut Machine, ThreadId, u64, Option<DataAccess>) -> Option<(u64, Stop)>,
    ) -> Option<(u64, Stop)> {
        let mut end = self.live.position();
        let has_watchpoints = !self.watchpoints.is_empty();
        let fails_after = self.trial.runs[self.run()].fails_after;
        let begun = self.begun.last_mut().expect("the current run was begun");
        while end > 0 && !self.stop.load(Ordering::Relaxed) {
            let (machine, event) = begun.checkpoints.before(end - 1);
            let mut live = Live::new(machine, event, fails_after);
            let start = live.position();
            let mut accesses = Watchpoints::default();
            if has_watchpoints {
                let threads: Vec<ThreadId> = live.machine.program_threads().iter().map(|view| view.thread).collect();
                threads.into_iter().for_each(|thread| accesses.note_next(&mut live.machine, thread));
            }
            let mut found = None;
            let mut output = NewOutput { is_new: false };
            while live.position() < end {
                let step = live.machine.single_step(&mut output);
                match step {
                    Ok(SingleStep::Executed(thread) | SingleStep::Ended(_, Some(thread))) => {
                        let access = accesses.next_of(thread);
                        let position = live.position();
                        // The end itself is no place to go back to.
                        let has_ended = matches!(step, Ok(SingleStep::Ended(..)));
                        let here = wanted(&mut live.machine, thread, position, access);
                        found = here.filter(|(at, _)| !has_ended || *at < position).or(found);
                        if has_watchpoints {
                            accesses.note_next(&mut live.machine, thread);
                        }
                    }
                    Ok(SingleStep::NoInstruction) if has_watchpoints => {
                        let threads: Vec<ThreadId> =
                            live.machine.program_threads().iter().map(|view| view.thread).collect();
                        threads.into_iter().for_each(|thread| accesses.note_next(&mut live.machine, thread));
                    }
                    Ok(SingleStep::NoInstruction) => {}
                    Ok(SingleStep::Ended(..)) | Err(_) => break,
                }
            }
            if found.is_some() {
                return found;
            }
            end = start;
        }
        None
    }

    /// Goes to the store that the cause of the violation names, before it is executed for the last time. False: no cause
    /// names one, or no execution of it was found.
    ///
    /// # Errors
    /// A machine that cannot be built.
    pub fn go_to_blamed_store(&mut self) -> Result<bool, Error> {
        let Some((run, BlamedStore { pc, thread, address })) = self.trial.blamed else { return Ok(false) };
        while self.run() < run {
            if self.trial.runs[self.begun.len()].continues {
                self.forward_to_end();
            }
            if !self.next_run()? {
                return Ok(false);
            }
        }
        let thread = ThreadId(thread);
        let mut last = None;
        let mut note = |replay: &mut Replay<'_>| {
            let machine = &mut replay.live.machine;
            if machine.thread_pc(thread) != Some(pc) {
                return;
            }
            // A system call stores too; its address is not known.
            let is_there = match machine.next_access(thread) {
                Some(access) => machine.physical_address(access.addr).is_some_and(|phys| phys.0 == address),
                None => true,
            };
            if is_there {
                last = Some(replay.live.position());
            }
        };
        note(self);
        while !self.stop.load(Ordering::Relaxed) {
            match self.forward(STEPS_AT_ONCE, None, |by| (by == thread).then_some(Stop::Step)) {
                Some(Stop::Step) => note(self),
                Some(_) => break,
                None => {}
            }
        }
        match last {
            Some(position) => {
                self.go_to(position);
                self.thread = thread;
                Ok(true)
            }
            None => {
                self.go_to(0);
                self.thread = ThreadId::FIRST;
                Ok(false)
            }
        }
    }
}
