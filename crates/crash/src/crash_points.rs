//! The images taken from a run: for one trial, or for the failures that are drawn after a first one.

use crate::crashed_run::{Crash, CrashPointSelector, Selection};
use crate::persistency::{ModelChoice, Refusal};
use crate::power_faults::PowerFaultDraw;
use crate::trial::PowerFault;
use durasim_machine::System;
use durasim_types::{PersistEvent, Rng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Takes one image of a run, after a given event.
pub(crate) struct SingleCrashPoint {
    event: u64,
    fault: PowerFault,
    is_closed: bool,
    crash: Option<Crash>,
    /// The number of choices at the event, if the one of the failure is not among them.
    pub too_few_choices: Option<u64>,
    /// The reason for taking no image of a persistency model.
    pub refusal: Option<Refusal>,
    /// Rare situations that the machine was in when the image was taken.
    marks: BTreeMap<String, u64>,
}

impl SingleCrashPoint {
    /// A failure of this kind after this event.
    pub fn with(event: u64, fault: PowerFault) -> Self {
        SingleCrashPoint {
            event,
            fault,
            is_closed: false,
            crash: None,
            too_few_choices: None,
            refusal: None,
            marks: BTreeMap::new(),
        }
    }

    /// The crash; `None` if there was no such event.
    pub fn taken(self) -> Option<Crash> {
        self.crash
    }

    /// The crash, with the rare situations of its crash point.
    pub fn crash_and_marks(self) -> (Option<Crash>, BTreeMap<String, u64>) {
        (self.crash, self.marks)
    }
}

impl CrashPointSelector for SingleCrashPoint {
    fn select(&mut self, event: &PersistEvent, system: &System) -> Option<Selection> {
        if event.number > self.event && !self.is_closed {
            return None;
        }
        if event.number < self.event || self.is_closed {
            return Some(Selection::NOTHING);
        }
        let ways = self.fault.ways(system);
        if self.fault.choice() >= ways {
            self.too_few_choices = Some(ways);
            return None;
        }
        system.marks(&mut |mark| *self.marks.entry(mark.to_owned()).or_default() += 1);
        Some(match self.fault {
            PowerFault::Model(_, number) => Selection::OfModel(ModelChoice::These(vec![number])),
            fault => Selection::Images(vec![fault.image(system)]),
        })
    }

    fn refused(&mut self, _event: u64, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    fn take_no_more(&mut self) {
        self.is_closed = true;
    }

    fn record(&mut self, crashes: Vec<Crash>) -> bool {
        self.crash = crashes.into_iter().last();
        true
    }
}

/// Takes images after some events of a run, which are drawn alike from all (Vitter's algorithm R), or after each if there
/// are no more.
pub(crate) struct DrawnCrashPoints {
    power_faults: PowerFaultDraw,
    events_max: u64,
    seed: u64,
    rng: Rng,
    seen: Arc<AtomicU64>,
    is_closed: bool,
    drawn: Vec<u64>,
    crashes: BTreeMap<u64, Vec<Crash>>,
}

impl DrawnCrashPoints {
    /// Draws `events_max` events, and these power failures after each.
    pub fn new(power_faults: PowerFaultDraw, events_max: u64, seed: u64) -> Self {
        DrawnCrashPoints {
            power_faults,
            events_max,
            seed,
            rng: Rng::new(seed),
            seen: Arc::default(),
            is_closed: false,
            drawn: Vec::new(),
            crashes: BTreeMap::new(),
        }
    }

    /// Counts the events of the run, also if it fails.
    pub fn events_seen(&self) -> Arc<AtomicU64> {
        self.seen.clone()
    }

    /// The crashes, in the order of the run.
    pub fn taken(self) -> impl Iterator<Item = Crash> {
        self.crashes.into_values().flatten()
    }

    /// Whether this event is drawn, as far as is known; it may take the place of an earlier one.
    fn draws(&mut self, event: u64, seen: u64) -> bool {
        if seen <= self.events_max {
            self.drawn.push(event);
            return true;
        }
        let place = self.rng.below(seen);
        let Some(replaced) = self.drawn.get_mut(place as usize) else { return false };
        self.crashes.remove(replaced);
        *replaced = event;
        true
    }
}

impl CrashPointSelector for DrawnCrashPoints {
    fn select(&mut self, event: &PersistEvent, system: &System) -> Option<Selection> {
        if self.is_closed {
            return Some(Selection::NOTHING);
        }
        let seen = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.draws(event.number, seen) {
            return Some(Selection::NOTHING);
        }
        let mut rng = Rng::new(self.seed ^ event.number);
        Some(self.power_faults.select(system, &mut rng))
    }

    fn take_no_more(&mut self) {
        self.is_closed = true;
    }

    fn record(&mut self, crashes: Vec<Crash>) -> bool {
        // An event whose images had to wait for the end of a commit may have lost its place.
        if let Some(event) = crashes.first().map(|crash| crash.event).filter(|event| self.drawn.contains(event)) {
            self.crashes.insert(event, crashes);
        }
        true
    }
}
