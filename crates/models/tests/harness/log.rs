//! The record of a run, in the order in which things happened.

use super::Subject;
use durasim_contract::CrashImage;
use durasim_machine::{Observer, PMEM_BASE, Plan, System};
use durasim_types::{DataRange, Journal, LineAddr, PersistEvent, Rng, TxId, Write};
use std::sync::{Arc, Mutex};

/// Persist events that are crash points, in percent.
const CRASH_PERCENT: u64 = 10;

/// The number of a line of persistent memory, if it is one of the first that runs use.
pub fn number_below(lines: u8, line: LineAddr) -> Option<u8> {
    let offset = line.base().0.checked_sub(PMEM_BASE.0)? / 64;
    (offset < u64::from(lines)).then_some(offset as u8)
}

/// A line by its number.
pub fn line(number: u8) -> LineAddr {
    PMEM_BASE.plus(u64::from(number) * 64).line()
}

/// The stamp of a line: the first word. A store writes it, and no two stores write the same.
pub fn stamp_of(data: &[u8]) -> u64 {
    u64::from_le_bytes(data[..8].try_into().expect("a line has eight bytes"))
}

/// One observation.
#[derive(Clone, Debug)]
pub enum Observed<T> {
    /// A step of the design.
    Step(T),
    /// The stamps that a recovery finds if power fails here.
    Crash { found: Vec<u64> },
}

/// The record, and the notes that are needed to make it.
pub struct Log<S: Subject> {
    pub observed: Vec<Observed<S::Step>>,
    pub notes: S::Notes,
    pub rng: Rng,
}

impl<S: Subject> Log<S> {
    pub fn push(&mut self, step: S::Step) {
        self.observed.push(Observed::Step(step));
    }
}

/// A log that the recorder, the observer and the journal of a run share.
pub struct Shared<S: Subject> {
    log: Arc<Mutex<Log<S>>>,
    plan: Option<Plan>,
}

impl<S: Subject> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Shared { log: Arc::clone(&self.log), plan: self.plan.clone() }
    }
}

impl<S: Subject> Shared<S> {
    pub fn new(seed: u64) -> Self {
        let log = Log { observed: Vec::new(), notes: S::Notes::default(), rng: Rng::new(seed) };
        Shared { log: Arc::new(Mutex::new(log)), plan: None }
    }

    pub fn with_plan(&self, plan: &Plan) -> Self {
        Shared { plan: Some(plan.clone()), ..self.clone() }
    }

    pub fn with<T>(&self, work: impl FnOnce(&mut Log<S>) -> T) -> T {
        work(&mut self.log.lock().expect("no holder of the log panics"))
    }

    pub fn push(&self, step: S::Step) {
        self.with(|log| log.push(step));
    }

    /// The image that a power failure leaves, and the stamps that recovery finds in it if it is interrupted before this
    /// durable step and started again.
    pub fn recovered(&self, system: &System, cut: Option<u64>) -> (CrashImage, Vec<u64>) {
        let plan = self.plan.as_ref().expect("the observer has the plan");
        let (left, complete): (CrashImage, _) = system.crash_image(u64::MAX);
        complete.expect("unlimited energy suffices");
        let mut image = left.clone();
        let recover = |image: &mut CrashImage| (plan.variant.hardware.recover)(&plan.spec, &plan.geometry, image);
        image.cut_at(cut);
        if recover(&mut image).is_err() {
            image.cut_at(None);
            recover(&mut image).expect("recovery is not interrupted");
        }
        let found = (0..S::LINES).map(|n| image.read_u64(line(n).base())).collect();
        (left, found)
    }

    /// Records what recovery would find now.
    pub fn crash(&self, system: &System) {
        let cut = self.with(|log| (S::INTERRUPTS_RECOVERY && log.rng.below(3) == 0).then(|| 1 + log.rng.below(8)));
        let (left, found) = self.recovered(system, cut);
        self.with(|log| {
            if let Some(step) = S::fails(&left) {
                log.push(step);
            }
            log.observed.push(Observed::Crash { found });
        });
    }
}

impl<S: Subject> Observer for Shared<S> {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        S::persisted(self, event, system);
        if self.with(|log| log.rng.below(100) < CRASH_PERCENT) {
            self.crash(system);
        }
        true
    }
}

impl<S: Subject> Journal for Shared<S> {
    fn data_range(&mut self, _: DataRange) {}
    fn begin(&mut self, _: TxId) {}
    fn store(&mut self, _: Option<TxId>, _: Write) {}
    fn committing(&mut self, _: TxId) {}
    fn acknowledged(&mut self, tx: TxId) {
        S::acknowledged(self, tx);
    }
    fn aborted(&mut self, _: TxId) {}
}
