//! The draw at a crash point: trials that begin with the same power failure.

use crate::crashed_run::Crash;
use crate::executor::{CrashPoint, Executor, FailureSource, LaterDraw, LaterRun};
use crate::failure_kind::FailureKind;
use crate::outcome::Outcome;
use crate::power_faults::PowerFaultDraw;
use crate::schedule::DrawnFailures;
use crate::trial::{NextFailure, Trial};
use durasim_types::Rng;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Recoveries that fail in a row.
const DEPTH_MAX: u64 = 3;
/// The number of writes of one recovery of the hardware at which it is cut, where crash points are drawn; all, if it
/// makes no more. Also the number of persist events of one run of the program's recovery, or of its further work, after
/// which power fails.
const CUTS_DRAWN: u64 = 4;
/// The number of persist events for a run of the program where all crash points are taken.
const LATER_EVENTS_MAX: u64 = 16;

/// Carries out what is drawn for a crash point.
pub(crate) fn explore(
    executor: &mut Executor<'_>,
    crash: Crash,
    draw: &DrawnFailures,
    variants: u64,
) -> Vec<(Trial, Outcome)> {
    let mut rng = Rng::new(draw.seed);
    let is_plainest = crash.fault.is_plainest();
    let point = match executor.crash_point(crash) {
        Ok(point) => point,
        Err(tried) => return vec![*tried],
    };
    let context = executor.judge().context;
    let is_nested = is_plainest && draw.faults.contains(&FailureKind::Nested);
    let of_model = context.persistency.is_some();
    let power_faults = PowerFaultDraw { faults: draw.faults.clone(), variants, of_model };
    let mut later = Later { executor, power_faults, rng: &mut rng, tried: Vec::new(), is_nested };
    let events_max = if context.all_cuts { LATER_EVENTS_MAX } else { CUTS_DRAWN };
    if is_nested {
        for first in first_cuts(&point, context.all_cuts, later.rng) {
            later.cut_recoveries(&point, Some(first));
        }
        if context.recovery_args().is_some() && draw.recovers_again {
            let depth = 1 + later.rng.below(DEPTH_MAX);
            later.fail_again(&point, LaterRun::Recovery, events_max, depth);
        }
    }
    if is_plainest && draw.faults.contains(&FailureKind::Recrash) {
        later.fail_again(&point, LaterRun::Work, events_max, 1);
    }
    later.conclude(&point);
    later.tried
}

/// The writes at which the first recovery fails, each in a trial of its own.
fn first_cuts(point: &CrashPoint, all: bool, rng: &mut Rng) -> BTreeSet<u64> {
    match point.recovery_writes() {
        0 => BTreeSet::new(),
        writes if all || writes <= CUTS_DRAWN => (1..=writes).collect(),
        writes => (0..CUTS_DRAWN).map(|_| 1 + rng.below(writes)).collect(),
    }
}

/// Cases with further failures.
struct Later<'e, 'a, 'r> {
    executor: &'e mut Executor<'a>,
    power_faults: PowerFaultDraw,
    rng: &'r mut Rng,
    tried: Vec<(Trial, Outcome)>,
    is_nested: bool,
}

impl Later<'_, '_, '_> {
    /// The trial that ends with this failure.
    fn conclude(&mut self, point: &Arc<CrashPoint>) {
        self.tried.push(self.executor.execute(point, &mut NoFurtherFailure));
    }

    /// The hardware's recovery fails, up to three times in a row.
    fn cut_recoveries(&mut self, point: &Arc<CrashPoint>, first: Option<u64>) {
        let mut cuts = RecoveryCuts { first, made: 0, rng: self.rng };
        self.tried.push(self.executor.execute(point, &mut cuts));
    }

    /// The program's recovery or its further work runs once, and power fails after some of its events, in each of the ways
    /// drawn there. After one of these failures the program's recovery fails again, until `depth` have failed in a row.
    fn fail_again(&mut self, point: &Arc<CrashPoint>, run: LaterRun, events_max: u64, depth: u64) {
        let draw = LaterDraw { power_faults: self.power_faults.clone(), events_max, seed: self.rng.next_u64() };
        let mut points = Vec::new();
        for later in self.executor.fail_again(point, run, draw) {
            match later {
                Ok(later) => points.push(later),
                Err(tried) => self.tried.push(*tried),
            }
        }
        for later in &points {
            self.conclude(later);
        }
        if points.is_empty() || !self.is_nested {
            return;
        }
        let one = &points[self.rng.below(points.len() as u64) as usize];
        if one.recovery_writes() > 0 {
            self.cut_recoveries(one, None);
        }
        if depth > 1 {
            self.fail_again(one, LaterRun::Recovery, 1, depth - 1);
        }
    }
}

/// Nothing fails any more.
struct NoFurtherFailure;

impl FailureSource for NoFurtherFailure {
    fn next(&mut self, _recovery_writes: u64) -> Option<NextFailure> {
        None
    }
}

/// The hardware's recovery fails at some of its writes, then at one of the writes of the next one, and so on. The contents
/// of the result are those of the undisturbed recovery, which are judged in a trial of their own.
struct RecoveryCuts<'a> {
    first: Option<u64>,
    made: u64,
    rng: &'a mut Rng,
}

impl FailureSource for RecoveryCuts<'_> {
    fn next(&mut self, recovery_writes: u64) -> Option<NextFailure> {
        if self.made == DEPTH_MAX || recovery_writes == 0 {
            return None;
        }
        self.made += 1;
        Some(NextFailure::Recovery(self.first.take().unwrap_or_else(|| 1 + self.rng.below(recovery_writes))))
    }

    fn are_judged(&self) -> bool {
        false
    }
}
