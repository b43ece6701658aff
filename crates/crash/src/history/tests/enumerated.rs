//! Random small histories. What the oracle says is compared with an enumeration of all sets of transactions that a crash
//! may leave, and of all orders that might explain a history.

use super::Script;
use crate::byte_oracle::Verdict;
use crate::history::{Dump, Position};
use durasim_types::HistoryStep;
use proptest::prelude::*;
use std::collections::BTreeMap;

const THREADS: u32 = 3;
const OBJECTS: u64 = 3;
const TRANSACTIONS_MAX: usize = 6;

/// A transaction as the definition sees it; times are counted in steps of the plan.
#[derive(Clone, Debug)]
struct Made {
    thread: u32,
    begun: usize,
    committing: Option<usize>,
    acknowledged: Option<usize>,
    aborted: Option<usize>,
    doomed: bool,
    /// Object, old and new version, whose version it found.
    touched: Vec<(u64, u64, u64, Option<usize>)>,
}

impl Made {
    fn is_over(&self) -> bool {
        self.acknowledged.is_some() || self.aborted.is_some()
    }

    fn holds(&self, object: u64) -> bool {
        let released = if self.doomed { self.aborted.is_some() } else { self.committing.is_some() };
        !released && self.touched.iter().any(|touch| touch.0 == object)
    }
}

#[derive(Default)]
struct World {
    script: Script,
    made: Vec<Made>,
    now: usize,
    epoch_ends: Vec<usize>,
    versions: u64,
    /// Whether transactions find any version that was ever committed, not only the newest.
    careless: bool,
    /// Whether objects go away and come again.
    deletes: bool,
}

impl World {
    /// Committed versions of an object with their writers, oldest first.
    fn committed(&self, object: u64) -> Vec<(u64, Option<usize>)> {
        let mut writers: Vec<usize> = (0..self.made.len()).collect();
        writers.retain(|&index| self.made[index].committing.is_some() && !self.made[index].doomed);
        writers.sort_by_key(|&index| self.made[index].committing);
        let mut versions = vec![(0, None)];
        for index in writers {
            let wrote = self.made[index].touched.iter().filter(|touch| touch.0 == object && touch.1 != touch.2);
            versions.extend(wrote.map(|touch| (touch.2, Some(index))));
        }
        versions
    }

    fn begin(&mut self, thread: u32, choice: u8) {
        let running = |made: &Made| {
            made.thread == thread && if made.doomed { made.aborted.is_none() } else { made.committing.is_none() }
        };
        if self.made.len() == TRANSACTIONS_MAX || self.made.iter().any(running) {
            return;
        }
        let first = u64::from(choice) / u64::from(THREADS) % OBJECTS;
        let mut touched = Vec::new();
        for (bit, object) in [(8u8, first), (16, (first + 1) % OBJECTS)] {
            let skipped = bit == 16 && choice & 32 == 0;
            if skipped || !self.careless && self.made.iter().any(|made| made.holds(object)) {
                continue;
            }
            let found = self.committed(object);
            let at =
                if self.careless && choice & 64 != 0 { choice as usize / 3 % found.len() } else { found.len() - 1 };
            let (old, writer) = found[at];
            let new = if choice & bit == 0 {
                old
            } else if self.deletes && old != 0 && choice & 128 != 0 {
                0
            } else {
                self.versions += 1;
                self.versions
            };
            touched.push((object, old, new, writer));
        }
        if touched.is_empty() {
            return;
        }
        let tx = self.made.len() as u64 + 1;
        let reports: Vec<(u64, u64, u64)> = touched.iter().map(|&(object, old, new, _)| (object, old, new)).collect();
        self.script.begin(thread, tx, &reports);
        let doomed = !self.careless && choice.is_multiple_of(7);
        let (begun, committing, acknowledged, aborted) = (self.now, None, None, None);
        self.made.push(Made { thread, begun, committing, acknowledged, aborted, doomed, touched });
    }

    fn step(&mut self, (what, choice): (u8, u8)) {
        self.now += 1;
        let open: Vec<usize> = (0..self.made.len()).filter(|&index| !self.made[index].is_over()).collect();
        let chosen = (!open.is_empty()).then(|| open[choice as usize % open.len()]);
        match (what % 8, chosen) {
            (0..=2, _) => self.begin(u32::from(choice) % THREADS, choice),
            (3, _) => {
                self.epoch_ends.push(self.now);
                self.script.step(HistoryStep::EpochEnds);
            }
            (_, Some(index))
                if self.made[index].committing.is_none() && (what % 8 != 4 || !self.made[index].doomed) =>
            {
                self.made[index].committing = Some(self.now);
                self.script.commit(index as u64 + 1);
            }
            (_, Some(index)) if self.made[index].doomed => {
                self.made[index].aborted = Some(self.now);
                self.script.abort(index as u64 + 1);
            }
            (_, Some(index)) => {
                self.made[index].acknowledged = Some(self.now);
                self.script.acknowledge(index as u64 + 1);
            }
            _ => {}
        }
    }

    fn has_to_be_kept(&self, made: &Made) -> bool {
        let Some(at) = made.acknowledged else { return false };
        match self.script.epochs {
            None => true,
            Some(further) => self.epoch_ends.iter().filter(|end| **end > at).count() > further as usize,
        }
    }

    /// Whether a crash may leave exactly these.
    fn may_be_left(&self, set: &[usize]) -> bool {
        let has = |index: usize| set.contains(&index);
        let allowed = |index: usize| self.made[index].committing.is_some() && self.made[index].aborted.is_none();
        let comes_along = |earlier: usize, later: usize| {
            let (a, b) = (&self.made[earlier], &self.made[later]);
            b.touched.iter().any(|touch| touch.3 == Some(earlier))
                || a.thread == b.thread && !a.doomed && a.committing.is_some_and(|at| Some(at) < b.committing)
                || a.acknowledged.is_some_and(|at| at < b.begun)
        };
        set.iter().all(|&index| allowed(index))
            && (0..self.made.len()).all(|index| has(index) || !self.has_to_be_kept(&self.made[index]))
            && set.iter().all(|&b| (0..self.made.len()).all(|a| has(a) || !comes_along(a, b)))
    }

    /// The state after these.
    fn state(&self, set: &[usize]) -> Vec<(u64, u64)> {
        let mut set = set.to_vec();
        set.sort_by_key(|&index| self.made[index].committing);
        let mut state = BTreeMap::new();
        for index in set {
            for touch in self.made[index].touched.iter().filter(|touch| touch.1 != touch.2) {
                state.insert(touch.0, touch.2);
            }
        }
        state.into_iter().filter(|(_, version)| *version != 0).collect()
    }

    fn subsets(&self) -> impl Iterator<Item = Vec<usize>> {
        let count = self.made.len();
        (0..1u32 << count).map(move |bits| (0..count).filter(|index| bits >> index & 1 == 1).collect())
    }

    fn is_allowed(&self, dump: &[(u64, u64)]) -> bool {
        self.subsets().any(|set| self.may_be_left(&set) && self.state(&set) == dump)
    }

    fn verdict(&self, dump: &[(u64, u64)]) -> Verdict {
        self.script.verdict(dump)
    }

    /// Whether some order explains what the transactions that committed saw.
    fn has_order(&self) -> bool {
        let committed: Vec<usize> = (0..self.made.len()).filter(|&i| self.made[i].committing.is_some()).collect();
        self.can_go_on(&committed, &mut Vec::new())
    }

    fn can_go_on(&self, all: &[usize], order: &mut Vec<usize>) -> bool {
        if order.len() == all.len() {
            return true;
        }
        let state: BTreeMap<u64, u64> =
            order.iter().flat_map(|&index| &self.made[index].touched).map(|touch| (touch.0, touch.2)).collect();
        let wrote = |made: &Made, object| made.touched.iter().any(|touch| touch.0 == object && touch.1 != touch.2);
        for &next in all {
            let made = &self.made[next];
            let waits_for = |other: usize| {
                let earlier = &self.made[other];
                let commits_earlier = earlier.committing < made.committing;
                let both_wrote = (0..OBJECTS).any(|object| wrote(earlier, object) && wrote(made, object));
                commits_earlier && (both_wrote || earlier.thread == made.thread)
                    || earlier.acknowledged.is_some_and(|at| at < made.begun)
            };
            let fits = made.touched.iter().all(|touch| state.get(&touch.0).copied().unwrap_or(0) == touch.1);
            let rest = |other: &usize| *other != next && !order.contains(other);
            if order.contains(&next) || !fits || all.iter().copied().filter(rest).any(waits_for) {
                continue;
            }
            order.push(next);
            if self.can_go_on(all, order) {
                return true;
            }
            order.pop();
        }
        false
    }
}

fn plan() -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec(any::<(u8, u8)>(), 4..28)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_dump_is_right_if_some_allowed_set_gives_it(
        plan in plan(),
        epochs in prop::option::of(0u32..3),
        deletes: bool,
        kept: u32,
        changed in prop::option::of((0..OBJECTS, 0..12u64)),
    ) {
        let script = Script { epochs, ..Script::default() };
        let mut world = World { script, deletes, ..World::default() };
        plan.into_iter().for_each(|step| world.step(step));
        for kept in [u32::MAX, kept, kept | kept >> 7] {
            let set: Vec<usize> = (0..world.made.len()).filter(|index| kept >> index & 1 == 1).collect();
            let mut dump: BTreeMap<u64, u64> = world.state(&set).into_iter().collect();
            if let Some((object, version)) = changed && kept != u32::MAX {
                dump.insert(object, version);
            }
            let dump: Vec<(u64, u64)> = dump.into_iter().filter(|(_, version)| *version != 0).collect();
            let verdict = world.verdict(&dump);
            prop_assert_eq!(verdict == Verdict::Right, world.is_allowed(&dump), "{:?} {:?}", verdict, world.made);
        }
    }

    #[test]
    fn a_history_is_right_if_some_order_explains_it(plan in plan()) {
        let mut world = World { careless: true, ..World::default() };
        plan.into_iter().for_each(|step| world.step(step));
        let said = world.verdict(&[]);
        let flawed = matches!(&said, Verdict::Wrong(what) if what.starts_with("without any crash"));
        prop_assert_eq!(!flawed, world.has_order(), "{:?} {:?}", said, world.made);
    }
}

#[test]
fn the_random_histories_are_of_all_kinds() {
    // The properties above prove something only if both answers are common.
    let mut random = durasim_types::Rng::new(7);
    let (mut right, mut ordered, mut in_progress) = (0, 0, 0);
    for round in 0..400 {
        let careless = round % 2 == 0;
        let mut world = World { careless, ..World::default() };
        for _ in 0..20 {
            world.step((random.below(256) as u8, random.below(256) as u8));
        }
        let set: Vec<usize> = (0..world.made.len()).filter(|_| random.below(4) != 0).collect();
        right += u32::from(!careless && world.is_allowed(&world.state(&set)));
        ordered += u32::from(careless && world.has_order());
        in_progress += u32::from(world.made.iter().any(|made| made.committing.is_some() && !made.is_over()));
    }
    assert!(
        (20..180).contains(&right) && (20..180).contains(&ordered) && in_progress > 100,
        "{right} {ordered} {in_progress}"
    );
    let (position, dump) = (Position(0), Dump::default());
    assert_eq!(Script::default().oracle().judge(position, &dump), Verdict::Right);
}
