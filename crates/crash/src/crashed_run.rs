//! Crashing runs, and the crash-free reference run.

use crate::byte_oracle::ByteOracle;
use crate::history::HistoryRecorder;
use crate::order::{Checking, OrderChecker};
use crate::persistency::{CrashMoment, ModelChoice, ModelState, PermittedImage, Persistency, Recorders, Refusal};
use crate::store_log::StoreRecorder;
use crate::timeline_recorder::TimelineRecorder;
use crate::trial::PowerFault;
use durasim_contract::{CrashImage, Promise};
use durasim_machine::{
    Budget, CallStacks, Ending, Machine, Observer, Output, PmemPool, PoolContents, Prepared, Program, Stream, System,
    Unfinished,
};
use durasim_types::{
    Cause, ConfigError, CoreId, Cycle, DataRange, Error, EventKind, Journal, LineAddr, Pages, PersistEvent, Site,
    Stats, TxId, Write,
};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The start of recovery and check without a failure, and the resources that the run took.
#[derive(Clone, Debug, Default)]
pub(crate) struct CrashFree {
    /// Persistent memory after an orderly end of the run.
    pub pmem: Pages,
    /// Instructions and memory of the run.
    pub work: Budget,
    /// Whether it declared a data range.
    pub declares: bool,
}

/// A run without a failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct CrashFreeRun {
    /// The kind of each persist event.
    pub kinds: Vec<EventKind>,
    /// Whether each was part of background work.
    pub background: Vec<bool>,
    pub instructions: u64,
    /// The program's reports of its operations.
    pub history: HistoryRecorder,
    /// The namespace of `/pmem/` at the end.
    pub files: Option<PmemPool>,
    /// The contents that it left, and the resources that it took.
    pub left: CrashFree,
    pub stats: Stats,
}

impl CrashFreeRun {
    /// The number of persist events.
    pub fn events(&self) -> u64 {
        self.kinds.len() as u64
    }
}

/// Bytes of the end of what a program writes that are kept.
const OUTPUT_KEPT_BYTES: usize = 4096;

/// Keeps the end of what the program writes, and stops it when the campaign is to end.
pub(crate) struct Interruptible<'a> {
    written: Vec<u8>,
    pub stop: &'a AtomicBool,
}

impl<'a> Interruptible<'a> {
    pub fn new(stop: &'a AtomicBool) -> Self {
        Interruptible { written: Vec::new(), stop }
    }

    fn last_line(&self) -> String {
        String::from_utf8_lossy(&self.written).lines().last().unwrap_or("it printed nothing").to_owned()
    }

    /// Checks the ending of a run without a power failure.
    ///
    /// # Errors
    /// The program has not ended with exit code 0.
    pub fn check_ending(&self, ending: Ending) -> Result<(), Error> {
        let how = match ending {
            Ending::Exited(0) => return Ok(()),
            Ending::Exited(code) => format!("it exits with {code}"),
            Ending::InstructionLimit => "it needs more instructions than it may have".to_owned(),
            _ => "it does not come to its end".to_owned(),
        };
        let said = self.last_line();
        Err(Error::Failed(format!("the program fails without a power failure: {how}: {said}")))
    }
}

impl Output for Interruptible<'_> {
    fn write(&mut self, _: Stream, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
        if self.written.len() > 2 * OUTPUT_KEPT_BYTES {
            self.written.drain(..self.written.len() - OUTPUT_KEPT_BYTES);
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Notes what kinds of events there are, and whether their order is one that hardware could produce.
struct EventKindRecorder {
    order: Checking,
    kinds: Arc<Mutex<Vec<(EventKind, bool)>>>,
}

impl Observer for EventKindRecorder {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        let background = event.kind == EventKind::Background
            || event.cause.is_some_and(|cause| matches!(cause, Cause::Migration | Cause::Checkpoint));
        self.kinds.lock().expect("no thread panics while it holds the kinds").push((event.kind, background));
        self.order.event(event, system)
    }
}

/// Runs a program on a machine to its end or to the limits of its request.
///
/// # Errors
/// As from a run; a program that writes more memory than it may.
pub(crate) fn run_to_end(
    machine: &mut Machine,
    budget: Budget,
    output: &mut Interruptible<'_>,
) -> Result<Ending, Error> {
    machine.run_within_memory(budget, output)?.map_err(|Unfinished { pc, .. }| {
        let limit_mib = budget.memory_bytes >> 20;
        let what = format!("it has written more than {limit_mib} MiB of memory, at pc {pc:#x}");
        Error::Failed(format!("the program fails without a power failure: {what}"))
    })
}

/// Runs the program to its end, without any failure.
///
/// # Errors
/// As from a run; a program that fails without any crash, and events in an impossible order.
pub(crate) fn crash_free_run(prepared: &Prepared, budget: Budget, stop: &AtomicBool) -> Result<CrashFreeRun, Error> {
    let mut machine = Machine::new(&prepared.config, &prepared.plan, &prepared.program)?;
    let order = Arc::new(Mutex::new(OrderChecker::default()));
    let kinds = Arc::new(Mutex::new(Vec::new()));
    machine.system_mut().observe(Box::new(EventKindRecorder { order: Checking(order.clone()), kinds: kinds.clone() }));
    let history = HistoryRecorder::default();
    machine.system_mut().keep_history(history.for_machine());
    let mut output = Interruptible::new(stop);
    let ending = run_to_end(&mut machine, budget, &mut output)?;
    if let Some(objection) = order.lock().expect("no thread panics while it holds the checker").objection() {
        let what = format!("its persist events come in an order that no hardware could produce: {objection}");
        return Err(Error::Stuck { cycle: machine.cycle(), what });
    }
    if stop.load(Ordering::Relaxed) {
        return Err(ConfigError::new("campaign", "the campaign was stopped before its first crash").into());
    }
    output.check_ending(ending)?;
    let kinds = std::mem::take(&mut *kinds.lock().expect("no thread panics while it holds the kinds"));
    let (kinds, background) = kinds.into_iter().unzip();
    let (instructions, files, stats) = (machine.instructions(), machine.pool().clone(), machine.system().stats());
    let work = Budget { instructions, memory_bytes: machine.system().written_bytes() };
    let declares = machine.system().data_range().is_some();
    let left = CrashFree { pmem: machine.into_pool_contents(&prepared.plan)?.pages, work, declares };
    Ok(CrashFreeRun { kinds, background, instructions, history, files: Some(files), left, stats })
}

/// The requests of the program so far, and images that wait for the end of a commit.
struct JournalState {
    oracle: ByteOracle,
    /// As of the event whose images have been taken last, if that matters.
    then: Option<ByteOracle>,
    /// Crashes with transactions inside commit that have not made all their stores yet, in the order of their events.
    waiting: VecDeque<Vec<Crash>>,
    /// Recording is complete.
    is_recording_complete: bool,
    /// The stores under a persistency model, if one is asked for.
    model: Option<ModelState>,
}

impl JournalState {
    /// The next crashes whose transactions have all left their commits. Those of a later event never come first: what is
    /// inside commit at both of them keeps both waiting.
    fn next_ready(&mut self) -> Option<Vec<Crash>> {
        let first = self.waiting.front()?;
        let is_ready = !first.iter().any(|crash| crash.oracle.awaits(&self.oracle));
        if is_ready { self.waiting.pop_front() } else { None }
    }

    /// A step follows that may make stores certain under the model.
    fn before_step(&mut self, note: impl FnOnce(&mut ModelState, &ByteOracle)) {
        if let Some(model) = &mut self.model {
            note(model, &self.oracle);
        }
    }
}

/// A journal that the observer can read, and that also feeds the recorders.
struct JournalTap(Arc<Mutex<JournalState>>, Option<TimelineRecorder>, Option<StoreRecorder>);

impl JournalTap {
    fn journal_state(&self) -> MutexGuard<'_, JournalState> {
        self.0.lock().expect("no thread panics while it holds the oracle")
    }

    fn with(&mut self, act: impl Fn(&mut dyn Journal)) {
        let mut journal_state = self.0.lock().expect("no thread panics while it holds the oracle");
        act(&mut journal_state.oracle);
        if let Some(model) = &mut journal_state.model {
            act(model);
        }
        if let Some(timeline_recorder) = self.1.as_mut().filter(|_| !journal_state.is_recording_complete) {
            act(timeline_recorder);
        }
        if let Some(store_recorder) = &mut self.2 {
            act(store_recorder);
        }
    }
}

impl Journal for JournalTap {
    fn moment(&mut self, core: CoreId, cycle: Cycle) {
        self.with(|o| o.moment(core, cycle));
    }
    fn site(&mut self, site: Site) {
        // The others do not ask for it.
        if let Some(store_recorder) = &mut self.2 {
            store_recorder.site(site);
        }
        if let Some(model) = &mut self.journal_state().model {
            model.site(site);
        }
    }
    fn data_range(&mut self, range: DataRange) {
        self.with(|o| o.data_range(range));
    }
    fn begin(&mut self, tx: TxId) {
        self.with(|o| o.begin(tx));
    }
    fn store(&mut self, tx: Option<TxId>, write: Write) {
        self.with(|o| o.store(tx, write));
        let Some(tx) = tx else { return };
        let journal_state = &mut *self.0.lock().expect("no thread panics while it holds the oracle");
        let number = journal_state.oracle.last_store();
        let waiting = journal_state.waiting.iter_mut().flatten().map(|crash| &mut crash.oracle);
        let moments = journal_state.model.iter_mut().flat_map(ModelState::oracles);
        let earlier = waiting.chain(&mut journal_state.then).chain(moments);
        earlier.for_each(|oracle| oracle.allow_store_inside_commit(tx, number, &write));
    }
    fn store_is_durable(&mut self, tx: Option<TxId>, write: Write) {
        self.with(|o| o.store_is_durable(tx, write));
    }
    fn cleaned(&mut self, core: CoreId, line: LineAddr) {
        self.journal_state().before_step(|model, now| model.before_clean(line, now));
        self.with(|o| o.cleaned(core, line));
    }
    fn fenced(&mut self, core: CoreId) {
        self.journal_state().before_step(|model, now| model.before_fence(core, now));
        self.with(|o| o.fenced(core));
    }
    fn fenced_without_writes(&mut self, core: CoreId) {
        self.with(|o| o.fenced_without_writes(core));
    }
    fn suspended(&mut self, tx: TxId) {
        self.with(|o| o.suspended(tx));
    }
    fn resumed(&mut self, tx: TxId) {
        self.with(|o| o.resumed(tx));
    }
    fn committing(&mut self, tx: TxId) {
        self.with(|o| o.committing(tx));
    }
    fn acknowledged(&mut self, tx: TxId) {
        self.with(|o| o.acknowledged(tx));
    }
    fn epoch_ends(&mut self) {
        self.with(|o| o.epoch_ends());
    }
    fn aborted(&mut self, tx: TxId) {
        self.with(|o| o.aborted(tx));
    }
}

/// The image that a power failure left, and the oracle that judges it.
#[derive(Clone)]
pub(crate) struct Crash {
    pub event: u64,
    pub fault: PowerFault,
    pub image: CrashImage,
    pub oracle: ByteOracle,
    /// The moment, under a persistency model; else it follows from event and fault.
    pub moment: Option<CrashMoment>,
}

/// The images that are taken at a persist event.
pub(crate) enum Selection {
    /// These images.
    Images(Vec<(PowerFault, CrashImage)>),
    /// Images that the persistency model of the run permits between this event and the next one.
    OfModel(ModelChoice),
}

impl Selection {
    pub const NOTHING: Selection = Selection::Images(Vec::new());
}

/// Decides at each persist event which images are taken.
pub(crate) trait CrashPointSelector: Send + 'static {
    /// The failures to take at this event, or `None` if no later event is of interest.
    fn select(&mut self, event: &PersistEvent, system: &System) -> Option<Selection>;

    /// The images that were asked for after this event are not taken; the run ends.
    fn refused(&mut self, _event: u64, _refusal: Refusal) {}

    /// Nothing more is to be taken.
    fn take_no_more(&mut self) {}

    /// Images of one event, with what had been acknowledged just before the next one. False ends the run.
    fn record(&mut self, crashes: Vec<Crash>) -> bool;
}

/// Images that have been taken, of one event.
struct Pending {
    event: u64,
    images: Vec<(PowerFault, CrashImage)>,
    /// Images of a model to be taken when the next event comes, with what the machine would leave otherwise.
    of_model: Option<(ModelChoice, CrashImage)>,
}

/// An image is judged against what is acknowledged just before the next event, so it waits until that event comes: nothing
/// that survives changes in between, so a commit or fence that completes there has made nothing durable that the image
/// need not have. Where cleans are undone that no fence has waited for, one may before the next event: these are judged as of their own.
/// A commit in software may write its data when it is already decided: what it is going to write is allowed to be left, so
/// such an image waits further, until the commit is over.
struct CrashPointObserver<M> {
    selector: M,
    journal_state: Arc<Mutex<JournalState>>,
    pending: Option<Pending>,
    awaits_commits: bool,
    over: bool,
    timeline_recorder: Option<TimelineRecorder>,
    store_recorder: Option<StoreRecorder>,
}

impl<M: CrashPointSelector> CrashPointObserver<M> {
    /// Hands out the images of the last event, and those before it, as far as they need not wait.
    fn release(&mut self) -> bool {
        if let Some(Pending { event, images, of_model }) = self.pending.take() {
            let then = self.journal_state().then.take();
            let now = self.now();
            let crash = |(fault, image): (PowerFault, CrashImage)| {
                let oracle = then.as_ref().filter(|_| fault.revokes_accepted_writes()).unwrap_or(&now).clone();
                Crash { event, fault, image, oracle, moment: None }
            };
            let mut crashes: Vec<Crash> = images.into_iter().map(crash).collect();
            if let Some((choice, otherwise)) = &of_model {
                match self.of_model(event, choice, otherwise, &now) {
                    Ok(of_model) => crashes.extend(of_model),
                    Err(refusal) => {
                        self.selector.refused(event, refusal);
                        return false;
                    }
                }
            }
            if !self.awaits_commits {
                return self.selector.record(crashes);
            }
            self.journal_state().waiting.push_back(crashes);
        }
        loop {
            let next = self.journal_state().next_ready();
            let Some(crashes) = next else { return true };
            if !self.selector.record(crashes) {
                return false;
            }
        }
    }

    /// The images of a choice that the model permits since this event: each is as the machine would leave it otherwise, but with other
    /// contents of persistent memory.
    fn of_model(
        &self,
        event: u64,
        choice: &ModelChoice,
        otherwise: &CrashImage,
        now: &ByteOracle,
    ) -> Result<Vec<Crash>, Refusal> {
        let mut journal_state = self.journal_state();
        let model = journal_state.model.as_mut().expect("images of a model are asked for in runs with one");
        let of = model.model();
        let crash = |PermittedImage { number, pmem, oracle, moment }: PermittedImage| {
            let mut image = otherwise.clone();
            image.pmem = pmem;
            Crash { event, fault: PowerFault::Model(of, number), image, oracle, moment: Some(moment) }
        };
        Ok(model.interval_ends(choice, now)?.into_iter().map(crash).collect())
    }

    /// Hands out all images: the run is over.
    fn close(&mut self) {
        self.release();
        let rest = std::mem::take(&mut self.journal_state().waiting);
        for crashes in rest {
            if !self.selector.record(crashes) {
                return;
            }
        }
    }

    fn journal_state(&self) -> MutexGuard<'_, JournalState> {
        self.journal_state.lock().expect("no thread panics while it holds the oracle")
    }

    fn now(&self) -> ByteOracle {
        self.journal_state().oracle.clone()
    }

    /// Takes what is selected at an event.
    fn take(&mut self, event: &PersistEvent, system: &System, selected: Option<Selection>) {
        if let Some(model) = &mut self.journal_state().model {
            model.interval_begins(event.number, matches!(selected, Some(Selection::OfModel(_))));
        }
        match selected {
            Some(Selection::Images(images)) if images.is_empty() => {}
            Some(Selection::Images(images)) => {
                if let Some((fault, image)) = images.first() {
                    self.power_fails(event, *fault, image, system);
                }
                let then = images.iter().any(|(fault, _)| fault.revokes_accepted_writes()).then(|| self.now());
                self.journal_state().then = then;
                self.pending = Some(Pending { event: event.number, images, of_model: None });
            }
            Some(Selection::OfModel(choice)) => {
                let otherwise = PowerFault::Clean.image(system).1;
                let model = self.journal_state().model.as_ref().map(ModelState::model);
                if let (ModelChoice::These(numbers), Some(model)) = (&choice, model) {
                    let number = numbers.first().copied().unwrap_or_default();
                    self.power_fails(event, PowerFault::Model(model, number), &otherwise, system);
                }
                self.pending =
                    Some(Pending { event: event.number, images: Vec::new(), of_model: Some((choice, otherwise)) });
            }
            None => {
                self.over = true;
                self.journal_state().is_recording_complete = true;
            }
        }
    }

    fn power_fails(&self, event: &PersistEvent, fault: PowerFault, image: &CrashImage, system: &System) {
        if let Some(timeline_recorder) = &self.timeline_recorder {
            timeline_recorder.power_fails(event, fault, image, system);
        }
    }

    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        if let Some(store_recorder) = &self.store_recorder {
            store_recorder.event();
        }
        if !self.release() {
            return false;
        }
        if let Some(timeline_recorder) = self.timeline_recorder.as_ref().filter(|_| !self.over) {
            timeline_recorder.event(event, system);
        }
        if !self.over {
            let selected = self.selector.select(event, system);
            self.take(event, system, selected);
        }
        // After the last point only the acknowledgements up to the next event are of interest, and commits in progress.
        !self.over || self.pending.is_some() || !self.journal_state().waiting.is_empty()
    }
}

/// The observer that the machine owns.
struct SharedObserver<M>(Arc<Mutex<CrashPointObserver<M>>>);

impl<M: CrashPointSelector> Observer for SharedObserver<M> {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        self.0.lock().expect("no thread panics while it holds the observer").event(event, system)
    }
}

/// A run that is crashed.
pub(crate) struct CrashedRun<'a> {
    pub prepared: &'a Prepared,
    pub program: &'a Program,
    /// Persistent memory as the byte oracle knows it when the program starts.
    pub expected: Pages,
    /// Whether the program declares a data range: only then its bytes are compared.
    pub declares: bool,
    /// Whether the program makes this of what it finds, before its first transaction.
    pub recovers_first: bool,
    /// It runs up to the second of them; nothing is taken after the first.
    pub limits: Option<(Budget, Budget)>,
    /// Logs its stores.
    pub store_recorder: Option<StoreRecorder>,
    /// The model that says which images power failures leave.
    pub persistency: Option<&'a Persistency>,
}

/// A run at which a selector has looked.
pub(crate) struct EndedRun<M> {
    pub instructions: u64,
    pub selector: M,
    /// The limit that it reached; `None` if it has ended or no further crash point was left.
    pub ended: Result<Option<Unfinished>, Error>,
}

/// Runs the program and takes images where the selector asks for them. What the program
/// says of its operations goes to the recorder, if there is one, and what happens to its lines to the timeline recorder.
///
/// # Errors
/// A machine that cannot be built.
pub(crate) fn run_with_crashes<M: CrashPointSelector>(
    run: CrashedRun<'_>,
    selector: M,
    history: Option<&HistoryRecorder>,
    timeline_recorder: Option<&TimelineRecorder>,
    stop: &AtomicBool,
) -> Result<EndedRun<M>, Error> {
    let CrashedRun { prepared, program, expected, declares, recovers_first, limits, store_recorder, persistency } = run;
    let mut machine = Machine::new(&prepared.config, &prepared.plan, program)?;
    if let Some(store_recorder) = &store_recorder {
        let call_stacks = Arc::new(Mutex::new(CallStacks::of(program.elf.clone())));
        machine.keep_call_stacks(call_stacks.clone());
        store_recorder.run_begins(call_stacks, initial_pmem(prepared, program));
    }
    let oracle = match prepared.plan.variant.promise {
        Promise::Immediate => ByteOracle::new(expected),
        Promise::Epoch(further) => ByteOracle::of_epochs(expected, further),
    };
    // A timeline shows what is expected, whether it is compared or not.
    let oracle = if declares || timeline_recorder.is_some() { oracle } else { oracle.of_nothing_declared() };
    let oracle = if recovers_first { oracle.recovering() } else { oracle };
    let timeline_recorder = timeline_recorder.cloned();
    // The moments of a model are places in the history.
    let own_history = persistency.map(|_| HistoryRecorder::default());
    let history = history.or(own_history.as_ref());
    let model = persistency.zip(history).map(|(persistency, history)| {
        let (stores, timeline) = (store_recorder.clone(), timeline_recorder.clone());
        let recorders = Recorders { history: history.clone(), stores, timeline };
        ModelState::new(persistency, initial_pmem(prepared, program), recorders)
    });
    let journal_state =
        JournalState { oracle, then: None, waiting: VecDeque::new(), is_recording_complete: false, model };
    let journal_state = Arc::new(Mutex::new(journal_state));
    let awaits_commits = prepared.plan.variant.backend.stores_inside_commit;
    let observer = CrashPointObserver {
        selector,
        journal_state: journal_state.clone(),
        pending: None,
        awaits_commits,
        over: false,
        timeline_recorder: timeline_recorder.clone(),
        store_recorder: store_recorder.clone(),
    };
    let observer = Arc::new(Mutex::new(observer));
    let system = machine.system_mut();
    system.keep_journal(Box::new(JournalTap(journal_state, timeline_recorder.clone(), store_recorder)));
    system.track_unfenced_cleans();
    if let Some(history) = history {
        system.keep_history(history.for_machine());
    }
    system.observe(Box::new(SharedObserver(observer.clone())));
    let ended = run_to_limit(&mut machine, limits, &observer, &mut Interruptible::new(stop));
    let instructions = machine.instructions();
    drop(machine);
    let observer = Arc::into_inner(observer).expect("the machine is gone");
    let mut observer = observer.into_inner().expect("no thread panics while it holds the observer");
    observer.close();
    if let Some(timeline_recorder) = timeline_recorder {
        timeline_recorder.run_ends();
    }
    Ok(EndedRun { instructions, selector: observer.selector, ended })
}

fn run_to_limit<M: CrashPointSelector>(
    machine: &mut Machine,
    limits: Option<(Budget, Budget)>,
    observer: &Mutex<CrashPointObserver<M>>,
    output: &mut Interruptible<'_>,
) -> Result<Option<Unfinished>, Error> {
    let Some((first, whole)) = limits else {
        machine.run(None, output)?;
        return Ok(None);
    };
    let ended = machine.run_within(first, output)?;
    if ended.is_ok() || first == whole {
        return Ok(ended.err());
    }
    observer.lock().expect("no thread panics while it holds the observer").selector.take_no_more();
    Ok(machine.run_within(whole, output)?.err())
}

/// The contents of persistent memory when the program starts.
pub(crate) fn initial_pmem(prepared: &Prepared, program: &Program) -> Pages {
    match &program.pool {
        Some(pool) => pool.pages.clone(),
        None => Pages::new(durasim_machine::PMEM_BASE, prepared.config.pmem.capacity_mib << 20),
    }
}

/// A program with other arguments on other contents of `/pmem/`.
pub(crate) fn program_on(prepared: &Prepared, args: &[String], files: &PmemPool, pages: Pages) -> Program {
    let pool = Some(PoolContents { files: files.clone(), pages });
    Program { args: args.to_vec(), pool, ..prepared.program.clone() }
}
