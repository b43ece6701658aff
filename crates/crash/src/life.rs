//! Lives of a machine: a program starts on it, and power fails.

use crate::byte_oracle::ByteOracle;
use crate::case::Blow;
use crate::history::HistoryRecorder;
use crate::order::{Checking, OrderChecker};
use crate::scribe::Scribe;
use durasim_design::{CrashImage, Promise};
use durasim_machine::{
    Captured, Ending, Machine, Observer, Output, PmemPool, PoolContents, Prepared, Program, Stream, System,
};
use durasim_types::{
    Cause, ConfigError, CoreId, Cycle, DataRange, Error, EventKind, GuestFault, Journal, Pages, PersistEvent, Rng,
    Stats, TxId, Write,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A life as it is without a failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// The kind of each persist event.
    pub kinds: Vec<EventKind>,
    /// Whether each was part of background work.
    pub background: Vec<bool>,
    pub instructions: u64,
    /// What the program said of its operations.
    pub history: HistoryRecorder,
    /// The namespace of `/pmem/` at the end.
    pub files: Option<PmemPool>,
    pub stats: Stats,
}

impl Survey {
    /// The number of persist events.
    pub fn events(&self) -> u64 {
        self.kinds.len() as u64
    }
}

/// Keeps what the program writes, and stops it when the campaign is to end.
pub(crate) struct Interruptible<'a> {
    pub captured: Captured,
    pub stop: &'a AtomicBool,
}

impl<'a> Interruptible<'a> {
    pub fn new(stop: &'a AtomicBool) -> Self {
        Interruptible { captured: Captured::default(), stop }
    }
}

impl Output for Interruptible<'_> {
    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        self.captured.write(stream, bytes);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Notes what kinds of events there are, and whether their order is one that hardware could produce.
struct Noting {
    order: Checking,
    kinds: Arc<Mutex<Vec<(EventKind, bool)>>>,
}

impl Observer for Noting {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        let background = event.kind == EventKind::Background
            || event.cause.is_some_and(|cause| matches!(cause, Cause::Migration | Cause::Checkpoint));
        self.kinds.lock().expect("nobody panics with the kinds").push((event.kind, background));
        self.order.event(event, system)
    }
}

/// Runs the program to its end, without any failure.
///
/// # Errors
/// As from a run; a program that fails without any crash, and events in an impossible order.
pub(crate) fn survey(prepared: &Prepared, max_instructions: Option<u64>, stop: &AtomicBool) -> Result<Survey, Error> {
    let mut machine = Machine::new(&prepared.config, &prepared.plan, &prepared.program)?;
    let order = Arc::new(Mutex::new(OrderChecker::default()));
    let kinds = Arc::new(Mutex::new(Vec::new()));
    machine.system_mut().observe(Box::new(Noting { order: Checking(order.clone()), kinds: kinds.clone() }));
    let history = HistoryRecorder::default();
    machine.system_mut().keep_history(history.for_machine());
    let mut output = Interruptible::new(stop);
    let ending = machine.run(max_instructions, &mut output)?;
    if let Some(objection) = order.lock().expect("nobody panics with the checker").objection() {
        let what = format!("its persist events come in an order that no hardware could produce: {objection}");
        return Err(Error::Stuck { cycle: machine.cycle(), what });
    }
    if stop.load(Ordering::Relaxed) {
        return Err(ConfigError::new("campaign", "stopped before its first crash").into());
    }
    if ending != Ending::Exited(0) {
        let said = output.captured.text().lines().last().unwrap_or("it said nothing").to_owned();
        let what = format!("the workload fails without any crash ({ending:?}): {said}");
        return Err(GuestFault { pc: 0, what, last_syscall: None }.into());
    }
    let kinds = std::mem::take(&mut *kinds.lock().expect("nobody panics with the kinds"));
    let (kinds, background) = kinds.into_iter().unzip();
    Ok(Survey {
        kinds,
        background,
        instructions: machine.instructions(),
        history,
        files: Some(machine.pool().clone()),
        stats: machine.system().stats(),
    })
}

/// What the program asked for so far, and images that wait for the end of a commit.
struct Acknowledged {
    oracle: ByteOracle,
    /// As of the event whose images have been taken last, if that matters.
    then: Option<ByteOracle>,
    /// Shots with transactions inside commit that have not made all their stores yet, in the order of their events.
    waiting: VecDeque<Vec<Shot>>,
    /// The scribe has heard all that it is to hear.
    is_told: bool,
}

impl Acknowledged {
    /// The next shots whose transactions have all left their commits. Those of a later event never come first: what is
    /// inside commit at both of them keeps both waiting.
    fn next_ready(&mut self) -> Option<Vec<Shot>> {
        let first = self.waiting.front()?;
        let is_ready = !first.iter().any(|shot| shot.oracle.awaits(&self.oracle));
        if is_ready { self.waiting.pop_front() } else { None }
    }
}

/// A journal that the observer can look into, and that a scribe hears too.
struct JournalTap(Arc<Mutex<Acknowledged>>, Option<Scribe>);

impl JournalTap {
    fn with(&mut self, act: impl Fn(&mut dyn Journal)) {
        let mut told = self.0.lock().expect("nobody panics with the oracle");
        act(&mut told.oracle);
        if let Some(scribe) = self.1.as_mut().filter(|_| !told.is_told) {
            act(scribe);
        }
    }
}

impl Journal for JournalTap {
    fn moment(&mut self, core: CoreId, cycle: Cycle) {
        self.with(|o| o.moment(core, cycle));
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
        let told = &mut *self.0.lock().expect("nobody panics with the oracle");
        let number = told.oracle.last_store();
        let waiting = told.waiting.iter_mut().flatten().map(|shot| &mut shot.oracle);
        waiting.chain(&mut told.then).for_each(|oracle| oracle.foresee(tx, number, &write));
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

/// What a power failure left, and what is allowed to be left.
pub(crate) struct Shot {
    pub event: u64,
    pub blow: Blow,
    pub image: CrashImage,
    pub oracle: ByteOracle,
}

/// Decides at each persist event which images are taken.
pub(crate) trait Marksman: Send + 'static {
    /// The failures to take at this event, or `None` if no later event is of interest.
    fn aim(&mut self, event: &PersistEvent, system: &System) -> Option<Vec<(Blow, CrashImage)>>;

    /// Images of one event, with what had been acknowledged just before the next one. False ends the run.
    fn hit(&mut self, shots: Vec<Shot>) -> bool;
}

/// Images that have been taken, of one event.
struct Pending {
    event: u64,
    images: Vec<(Blow, CrashImage)>,
}

/// An image is judged against what is acknowledged just before the next event, so it waits until that event comes. Where
/// cleans are taken back that no fence has waited for, one may before the next event: these are judged as of their own.
/// A commit in software may write its data when it is already decided: what it is going to write is allowed to be left, so
/// such an image waits further, until the commit is over.
struct Gallery<M> {
    marksman: M,
    told: Arc<Mutex<Acknowledged>>,
    pending: Option<Pending>,
    awaits_commits: bool,
    over: bool,
    scribe: Option<Scribe>,
}

impl<M: Marksman> Gallery<M> {
    /// Hands out the images of the last event, and those before it, as far as they need not wait.
    fn release(&mut self) -> bool {
        if let Some(Pending { event, images }) = self.pending.take() {
            let then = self.told().then.take();
            let now = self.now();
            let shot = |(blow, image): (Blow, CrashImage)| {
                let oracle = then.as_ref().filter(|_| blow.takes_back()).unwrap_or(&now).clone();
                Shot { event, blow, image, oracle }
            };
            let shots = images.into_iter().map(shot).collect();
            if !self.awaits_commits {
                return self.marksman.hit(shots);
            }
            self.told().waiting.push_back(shots);
        }
        loop {
            let next = self.told().next_ready();
            let Some(shots) = next else { return true };
            if !self.marksman.hit(shots) {
                return false;
            }
        }
    }

    /// Hands out all images: the life is over.
    fn close(&mut self) {
        self.release();
        let rest = std::mem::take(&mut self.told().waiting);
        for shots in rest {
            if !self.marksman.hit(shots) {
                return;
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, Acknowledged> {
        self.told.lock().expect("nobody panics with the oracle")
    }

    fn now(&self) -> ByteOracle {
        self.told().oracle.clone()
    }

    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        if !self.release() {
            return false;
        }
        if let Some(scribe) = self.scribe.as_ref().filter(|_| !self.over) {
            scribe.event(event, system);
        }
        if !self.over {
            match self.marksman.aim(event, system) {
                Some(images) if images.is_empty() => {}
                Some(images) => {
                    if let (Some(scribe), [(blow, image), ..]) = (&self.scribe, images.as_slice()) {
                        scribe.power_fails(event, *blow, image, system);
                    }
                    let then = images.iter().any(|(blow, _)| blow.takes_back()).then(|| self.now());
                    self.told().then = then;
                    self.pending = Some(Pending { event: event.number, images });
                }
                None => {
                    self.over = true;
                    self.told().is_told = true;
                }
            }
        }
        // Behind the last point only the acknowledgements up to the next event are of interest, and commits under way.
        !self.over || self.pending.is_some() || !self.told().waiting.is_empty()
    }
}

/// The observer that the machine owns.
struct Watching<M>(Arc<Mutex<Gallery<M>>>);

impl<M: Marksman> Observer for Watching<M> {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        self.0.lock().expect("nobody panics with the gallery").event(event, system)
    }
}

/// Runs the program and takes images as the marksman wants; the number of instructions, and the marksman. What the program
/// says of its operations goes to the recorder, if there is one, and what becomes of its lines to the scribe.
///
/// # Errors
/// As from a run.
pub(crate) fn shoot<M: Marksman>(
    prepared: &Prepared,
    program: &Program,
    marksman: M,
    history: Option<&HistoryRecorder>,
    scribe: Option<&Scribe>,
    stop: &AtomicBool,
) -> Result<(u64, M), Error> {
    let mut machine = Machine::new(&prepared.config, &prepared.plan, program)?;
    let initial = initial_pmem(prepared, program);
    let oracle = match prepared.plan.row.promise {
        Promise::Immediate => ByteOracle::new(initial),
        Promise::Epoch(further) => ByteOracle::of_epochs(initial, further),
    };
    let told = Acknowledged { oracle, then: None, waiting: VecDeque::new(), is_told: false };
    let told = Arc::new(Mutex::new(told));
    let scribe = scribe.cloned();
    let awaits_commits = prepared.plan.row.backend.stores_inside_commit();
    let gallery =
        Gallery { marksman, told: told.clone(), pending: None, awaits_commits, over: false, scribe: scribe.clone() };
    let gallery = Arc::new(Mutex::new(gallery));
    let system = machine.system_mut();
    system.keep_journal(Box::new(JournalTap(told, scribe.clone())));
    system.track_unfenced_cleans();
    if let Some(history) = history {
        system.keep_history(history.for_machine());
    }
    system.observe(Box::new(Watching(gallery.clone())));
    machine.run(None, &mut Interruptible::new(stop))?;
    let instructions = machine.instructions();
    drop(machine);
    let gallery = Arc::into_inner(gallery).expect("the machine is gone");
    let mut gallery = gallery.into_inner().expect("nobody panics with the gallery");
    gallery.close();
    if let Some(scribe) = scribe {
        scribe.life_ends();
    }
    Ok((instructions, gallery.marksman))
}

/// What persistent memory holds when the program starts.
pub(crate) fn initial_pmem(prepared: &Prepared, program: &Program) -> Pages {
    match &program.pool {
        Some(pool) => pool.pages.clone(),
        None => Pages::new(durasim_machine::PMEM_BASE, prepared.config.pmem.capacity_mib << 20),
    }
}

/// Takes one image of a life: at a given event, or at one drawn alike from all.
pub(crate) struct Single {
    target: Target,
    blow: Blow,
    shot: Option<Shot>,
    /// Rare situations that the machine was in when the image was taken.
    marks: BTreeMap<String, u64>,
}

enum Target {
    Event(u64),
    /// After `seen` events each of them was taken with the same chance (Vitter's algorithm R for a sample of one).
    Any {
        rng: Rng,
        seen: u64,
    },
}

impl Single {
    /// A clean cut after this event.
    pub fn at(event: u64) -> Self {
        Single::with(event, Blow::Clean)
    }

    /// A failure of this kind after this event.
    pub fn with(event: u64, blow: Blow) -> Self {
        Single { target: Target::Event(event), blow, shot: None, marks: BTreeMap::new() }
    }

    /// A clean cut after any event.
    pub fn any(seed: u64) -> Self {
        Single {
            target: Target::Any { rng: Rng::new(seed), seen: 0 },
            blow: Blow::Clean,
            shot: None,
            marks: BTreeMap::new(),
        }
    }

    /// What was taken; nothing if there was no such event.
    pub fn taken(self) -> Option<Shot> {
        self.shot
    }

    /// The same, with the rare situations of its crash point.
    pub fn taken_with_marks(self) -> (Option<Shot>, BTreeMap<String, u64>) {
        (self.shot, self.marks)
    }
}

impl Marksman for Single {
    fn aim(&mut self, event: &PersistEvent, system: &System) -> Option<Vec<(Blow, CrashImage)>> {
        let wanted = match &mut self.target {
            Target::Event(wanted) if event.number > *wanted => return None,
            Target::Event(wanted) => event.number == *wanted,
            Target::Any { rng, seen } => {
                *seen += 1;
                rng.below(*seen) == 0
            }
        };
        if !wanted {
            return Some(Vec::new());
        }
        self.marks.clear();
        system.marks(&mut |mark| *self.marks.entry(mark.to_owned()).or_default() += 1);
        Some(vec![(self.blow, system.power_cut(&self.blow.power_cut()).image)])
    }

    fn hit(&mut self, shots: Vec<Shot>) -> bool {
        self.shot = shots.into_iter().last();
        true
    }
}

/// A program with other arguments on other contents of `/pmem/`.
pub(crate) fn program_on(prepared: &Prepared, args: &[String], files: &PmemPool, pages: Pages) -> Program {
    let pool = Some(PoolContents { files: files.clone(), pages });
    Program { args: args.to_vec(), pool, ..prepared.program.clone() }
}
