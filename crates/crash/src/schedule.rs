//! The crash points of a campaign, and the failures to try at each.

use crate::crashed_run::CrashFreeRun;
use crate::failure_kind::FailureKind;
use crate::trial::Trial;
use durasim_types::{ConfigError, EventKind, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The persist events at which a campaign crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Points {
    /// This many, drawn by the seed.
    Some(#[schemars(range(min = 1, max = 1_000_000_000_000_000_u64))] u64),
    /// Every one.
    All(All),
}

/// The words for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum All {
    /// `all`.
    All,
    /// `exhaustive`: with every image that reordered cleans and early evictions can leave.
    Exhaustive,
}

/// The draw at one crash point: failures of these kinds, with this seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DrawnFailures {
    pub faults: BTreeSet<FailureKind>,
    pub seed: u64,
    /// Whether the program's recovery runs on the machine, where power fails.
    pub recovers_again: bool,
}

/// One drawn point in this number runs the program once more, which costs as much as hundreds of other trials.
const ANOTHER_RUN_PERIOD: u64 = 8;

/// Refuses a trial that does not begin at an event of the run.
pub(crate) fn check_event(trial: &Trial, crash_free_run: &CrashFreeRun) -> Result<(), ConfigError> {
    let events = crash_free_run.events();
    if (1..=events).contains(&trial.event) {
        return Ok(());
    }
    let problem = format!("'{trial}' is not at one of e1 to e{events}, the persist events of this run");
    Err(ConfigError::new("replay", problem))
}

/// The draws by persist event. At `other_runs_min` of the points or more, and at each if there are no more, the program
/// runs once more for its recovery, and for its further work.
pub(crate) fn schedule(
    points: Points,
    faults: &BTreeSet<FailureKind>,
    seed: u64,
    crash_free_run: &CrashFreeRun,
    other_runs_min: usize,
) -> BTreeMap<u64, DrawnFailures> {
    let events = crash_free_run.events();
    let mut rng = Rng::new(seed ^ 0x6372_6173_6800);
    let mut chosen: BTreeSet<u64> = match points {
        Points::Some(n) if n < events => stratified(n, &crash_free_run.kinds, &mut rng),
        _ => (1..=events).collect(),
    };
    if faults.contains(&FailureKind::Background)
        && let Points::Some(n) = points
    {
        let inside: Vec<u64> = (1..=events).filter(|&event| crash_free_run.background[event as usize - 1]).collect();
        chosen.extend(draw(n, &inside, &mut rng));
    }
    let draw_at = |event: u64| {
        let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ event);
        let mut faults = faults.clone();
        if rng.below(ANOTHER_RUN_PERIOD) != 0 {
            faults.remove(&FailureKind::Recrash);
        }
        let seed = rng.next_u64();
        (event, DrawnFailures { faults, seed, recovers_again: seed.is_multiple_of(ANOTHER_RUN_PERIOD) })
    };
    let mut draws: BTreeMap<u64, DrawnFailures> = chosen.into_iter().map(draw_at).collect();
    if faults.contains(&FailureKind::Recrash) {
        complete(&mut draws, other_runs_min, &|draw| draw.faults.contains(&FailureKind::Recrash), &|draw| {
            draw.faults.insert(FailureKind::Recrash);
        });
    }
    complete(&mut draws, other_runs_min, &|draw| draw.recovers_again, &|draw| draw.recovers_again = true);
    draws
}

/// Lets `has` be true for `min` draws or more, and for all if there are no more: of those for which it is false, the ones
/// with the smallest seeds follow.
fn complete(
    draws: &mut BTreeMap<u64, DrawnFailures>,
    min: usize,
    has: &dyn Fn(&DrawnFailures) -> bool,
    add: &dyn Fn(&mut DrawnFailures),
) {
    let missing = min.saturating_sub(draws.values().filter(|draw| has(draw)).count());
    let mut without: Vec<&mut DrawnFailures> = draws.values_mut().filter(|draw| !has(draw)).collect();
    without.sort_by_key(|draw| draw.seed);
    without.into_iter().take(missing).for_each(add);
}

/// `n` different events: half of them alike for every kind that occurs, so that rare kinds are not missed, the rest by
/// how often a kind occurs.
fn stratified(n: u64, kinds: &[EventKind], rng: &mut Rng) -> BTreeSet<u64> {
    let mut by_kind: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (kind, event) in kinds.iter().zip(1..) {
        by_kind.entry(*kind as usize).or_default().push(event);
    }
    let alike = n / 2 / (by_kind.len() as u64).max(1);
    let mut chosen = BTreeSet::new();
    for events in by_kind.values() {
        chosen.extend(draw(alike, events, rng));
    }
    let rest: Vec<u64> = (1..=kinds.len() as u64).filter(|event| !chosen.contains(event)).collect();
    let missing = n - chosen.len() as u64;
    chosen.extend(draw(missing, &rest, rng));
    chosen
}

/// `n` different ones, or all if there are no more.
fn draw(n: u64, from: &[u64], rng: &mut Rng) -> Vec<u64> {
    let mut from = from.to_vec();
    let n = from.len().min(n as usize);
    for i in 0..n {
        let other = i + rng.below((from.len() - i) as u64) as usize;
        from.swap(i, other);
    }
    from.truncate(n);
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash_free_run(kinds: &[EventKind]) -> CrashFreeRun {
        CrashFreeRun { kinds: kinds.to_vec(), background: vec![false; kinds.len()], ..CrashFreeRun::default() }
    }

    fn events(points: Points, faults: &[FailureKind], crash_free_run: &CrashFreeRun) -> Vec<u64> {
        let faults = faults.iter().copied().collect();
        schedule(points, &faults, 1, crash_free_run, 1).into_keys().collect()
    }

    #[test]
    fn rare_kinds_are_not_missed_and_points_are_as_many_as_asked_for() {
        let mut kinds = vec![EventKind::CacheStore; 10_000];
        kinds[77] = EventKind::Commit;
        kinds[5_000] = EventKind::MediaWrite;
        kinds[5_001] = EventKind::MediaWrite;
        let chosen = events(Points::Some(60), &[FailureKind::Clean], &crash_free_run(&kinds));
        assert_eq!(chosen.len(), 60);
        assert!([78, 5_001, 5_002].iter().all(|event| chosen.contains(event)), "{chosen:?}");
        assert_eq!(chosen, events(Points::Some(60), &[FailureKind::Clean], &crash_free_run(&kinds)));
    }

    #[test]
    fn all_means_every_event() {
        let all = events(Points::All(All::All), &[FailureKind::Clean], &crash_free_run(&[EventKind::Commit; 9]));
        assert_eq!(all, (1..=9).collect::<Vec<_>>());
    }

    #[test]
    fn the_program_runs_again_at_few_points_but_not_at_none() {
        let faults = [FailureKind::Clean, FailureKind::Nested, FailureKind::Recrash].into_iter().collect();
        let again = |points: u64, min: usize| {
            let crash_free_run = crash_free_run(&vec![EventKind::CacheStore; points as usize]);
            let draws = schedule(Points::All(All::All), &faults, 1, &crash_free_run, min);
            let recovers = draws.values().filter(|draw| draw.recovers_again).count();
            (recovers, draws.values().filter(|draw| draw.faults.contains(&FailureKind::Recrash)).count())
        };
        assert_eq!(again(1, 1), (1, 1));
        assert_eq!(again(5, 32), (5, 5));
        assert_eq!(again(60, 32), (32, 32));
        let (recovers, works) = again(4000, 32);
        assert!((400..600).contains(&recovers) && (400..600).contains(&works), "{recovers} {works}");
    }

    #[test]
    fn background_adds_points_inside_background_work() {
        let mut crash_free_run = crash_free_run(&[EventKind::CacheStore; 1000]);
        crash_free_run.background[600..610].fill(true);
        let chosen = events(Points::Some(20), &[FailureKind::Clean, FailureKind::Background], &crash_free_run);
        assert!((601..=610).all(|event| chosen.contains(&event)));
        assert!((20..=30).contains(&chosen.len()));
    }

    #[test]
    fn an_event_that_the_run_does_not_have_is_refused() {
        let trial: Trial = "e10".parse().unwrap();
        let crash_free_run = crash_free_run(&[EventKind::Commit; 9]);
        let refused = check_event(&trial, &crash_free_run).unwrap_err();
        assert!(refused.to_string().contains("e1 to e9"), "{refused}");
        assert!(check_event(&"e9".parse().unwrap(), &crash_free_run).is_ok());
    }
}
