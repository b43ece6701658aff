//! What is drawn at a crash point: cases that begin with the same power failure.

use crate::case::{Case, PowerFault};
use crate::crashed_run::Crash;
use crate::executor::{CrashPoint, Executor, FailurePoint, Failures, Next};
use crate::outcome::Outcome;
use crate::schedule::{FailureKind, affords_another_run};
use durasim_types::Rng;
use std::collections::BTreeSet;

/// Recoveries that fail in a row.
const DEPTH_MAX: u64 = 3;
/// At how many of its writes the recovery of one crash is cut where crash points are drawn; at each, if it makes no more.
const CUTS_DRAWN: u64 = 4;

/// Carries out what is drawn with this seed of these kinds of failures.
pub(crate) fn explore(
    executor: &mut Executor<'_>,
    crash: Crash,
    faults: &BTreeSet<FailureKind>,
    seed: u64,
) -> Vec<(Case, Outcome)> {
    let mut rng = Rng::new(seed);
    let is_clean = crash.fault == PowerFault::Clean;
    let point = match executor.crash_point(crash) {
        Ok(point) => point,
        Err(tried) => return vec![tried],
    };
    let context = executor.judge().context;
    let mut tried = Vec::new();
    if is_clean && faults.contains(&FailureKind::Nested) {
        for first in first_cuts(&point, context.all_cuts, &mut rng) {
            tried.extend(executor.execute(&point, &mut RecoveryCuts { first: Some(first), made: 0, rng: &mut rng }));
        }
        if context.recover_args.is_some() && affords_another_run(seed) {
            let left = 1 + rng.below(DEPTH_MAX);
            tried.extend(executor.execute(&point, &mut GuestRecoveries { left, rng: &mut rng }));
        }
    }
    if is_clean && faults.contains(&FailureKind::Recrash) {
        tried.extend(executor.execute(&point, &mut SingleFailure(Some(Next::Work(FailurePoint::Any(rng.next_u64()))))));
    }
    tried.extend(executor.execute(&point, &mut SingleFailure(None)));
    tried
}

/// The writes at which the first recovery fails, each in a case of its own.
fn first_cuts(point: &CrashPoint, all: bool, rng: &mut Rng) -> BTreeSet<u64> {
    match point.recovery_writes() {
        0 => BTreeSet::new(),
        writes if all || writes <= CUTS_DRAWN => (1..=writes).collect(),
        writes => (0..CUTS_DRAWN).map(|_| 1 + rng.below(writes)).collect(),
    }
}

/// One failure, or none.
struct SingleFailure(Option<Next>);

impl Failures for SingleFailure {
    fn next(&mut self, _recovery_writes: u64) -> Option<Next> {
        self.0.take()
    }
}

/// The hardware's recovery fails at some of its writes, then at one of the writes of the next one, and so on. The contents
/// that it comes to are those that it comes to undisturbed, which are judged in a case of their own.
struct RecoveryCuts<'a> {
    first: Option<u64>,
    made: u64,
    rng: &'a mut Rng,
}

impl Failures for RecoveryCuts<'_> {
    fn next(&mut self, recovery_writes: u64) -> Option<Next> {
        if self.made == DEPTH_MAX || recovery_writes == 0 {
            return None;
        }
        self.made += 1;
        Some(Next::Recovery(self.first.take().unwrap_or_else(|| 1 + self.rng.below(recovery_writes))))
    }

    fn are_judged(&self) -> bool {
        false
    }
}

/// The program's recovery fails so many times in a row.
struct GuestRecoveries<'a> {
    left: u64,
    rng: &'a mut Rng,
}

impl Failures for GuestRecoveries<'_> {
    fn next(&mut self, _recovery_writes: u64) -> Option<Next> {
        self.left = self.left.checked_sub(1)?;
        Some(Next::GuestRecovery(FailurePoint::Any(self.rng.next_u64())))
    }
}
