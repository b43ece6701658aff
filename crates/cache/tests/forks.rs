//! A family of arrays that fork, are saved and restored, and change each on its own, against a model that shares
//! nothing: a map of lines per array.

use durasim_cache::{CacheArray, Version};
use durasim_contract::{LevelGeometry, LineTag};
use durasim_types::{Cycle, LineAddr};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The state of a resident line in the model.
#[derive(Clone, Debug, PartialEq)]
struct Resident {
    version: Version,
    ready: Cycle,
    exclusive: bool,
    used: u64,
}

/// The lines of one array, and how often lines were used so far.
#[derive(Clone, Debug, Default)]
struct Model {
    lines: BTreeMap<u64, Resident>,
    uses: u64,
    evictions: u64,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Fork,
    Clone,
    SaveAndRestore,
    Drop,
    Insert { ready: Cycle, tag: u64 },
    Touch,
    Write { byte: u8, value: u8 },
    Replace { dirty: bool, tag: u64 },
    Exclusive(bool),
    Remove,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Fork),
        1 => Just(Step::Clone),
        1 => Just(Step::SaveAndRestore),
        1 => Just(Step::Drop),
        20 => (any::<u64>(), 0..3_u64).prop_map(|(ready, tag)| Step::Insert { ready, tag }),
        10 => Just(Step::Touch),
        10 => (0..64_u8, any::<u8>()).prop_map(|(byte, value)| Step::Write { byte, value }),
        5 => (any::<bool>(), 0..3_u64).prop_map(|(dirty, tag)| Step::Replace { dirty, tag }),
        5 => any::<bool>().prop_map(Step::Exclusive),
        3 => Just(Step::Remove),
    ]
}

/// Lines that crowd a few sets, the first and the last among them.
fn line(sets: u32) -> impl Strategy<Value = u64> {
    let sets = u64::from(sets);
    (prop_oneof![Just(0), Just(1), Just(3), Just(sets / 2), Just(sets - 1)], 0..24_u64)
        .prop_map(move |(set, number)| set + number * sets)
}

fn run(geometry: LevelGeometry, steps: &[(usize, u64, Step)]) {
    let mut family = vec![(CacheArray::new(geometry), Model::default())];
    for &(member, line, step) in steps {
        let members = family.len();
        let member = member % members;
        let (array, model) = &mut family[member];
        assert_eq!(array.find(LineAddr(line)).is_some(), model.lines.contains_key(&line));
        match step {
            Step::Fork | Step::Clone if members < 5 => {
                let second = if matches!(step, Step::Fork) { array.fork() } else { array.clone() };
                let model = model.clone();
                family.push((second, model));
            }
            Step::Drop if members > 1 => {
                family.swap_remove(member);
            }
            Step::Fork | Step::Clone | Step::Drop => {}
            Step::SaveAndRestore => save_and_restore(array),
            _ => change(array, model, line, step),
        }
    }
    for (array, model) in &family {
        check(array, model);
    }
}

fn save_and_restore(array: &mut CacheArray) {
    let saved = postcard::to_stdvec(array).expect("an array can be saved");
    *array = postcard::from_bytes(&saved).expect("and restored");
    assert_eq!(postcard::to_stdvec(array).expect("again"), saved, "a restored array is saved as the same");
}

/// Changes a line of one array: a line that is absent can only be inserted, and one that is resident cannot.
fn change(array: &mut CacheArray, model: &mut Model, line: u64, step: Step) {
    let address = LineAddr(line);
    let (Some(slot), Some(resident)) = (array.find(address), model.lines.get_mut(&line)) else {
        if let Step::Insert { ready, tag } = step {
            let version = Version { line: address, data: [0; 64], dirty: false, tag: LineTag(tag) };
            insert(array, model, version, ready);
        }
        return;
    };
    match step {
        Step::Touch => {
            array.touch(slot);
            array.stats.accesses += 1;
            model.uses += 1;
            resident.used = model.uses;
        }
        Step::Write { byte, value } => {
            array.data_mut(slot)[usize::from(byte)] = value;
            array.set_dirty(slot, true);
            resident.version.data[usize::from(byte)] = value;
            resident.version.dirty = true;
        }
        Step::Replace { dirty, tag } => {
            let version = Version { line: address, data: [tag as u8; 64], dirty, tag: LineTag(tag) };
            array.replace(slot, version);
            resident.version = version;
        }
        Step::Exclusive(exclusive) => {
            array.set_exclusive(slot, exclusive);
            resident.exclusive = exclusive;
        }
        Step::Remove => {
            array.remove(slot);
            model.lines.remove(&line);
        }
        Step::Insert { .. } => {}
        Step::Fork | Step::Clone | Step::SaveAndRestore | Step::Drop => unreachable!("these change the family"),
    }
}

/// Inserts a line as the machine does: the least recently used of a full set leaves.
fn insert(array: &mut CacheArray, model: &mut Model, version: Version, ready: Cycle) {
    let line = version.line;
    let geometry = *array.geometry();
    let set = line.0 % u64::from(geometry.sets);
    let in_set = || model.lines.values().filter(|r| r.version.line.0 % u64::from(geometry.sets) == set);
    let full = in_set().count() == geometry.ways_of(set as u32) as usize;
    assert_eq!(array.has_room(line), !full);
    if full {
        let oldest = in_set().min_by_key(|r| r.used).expect("a full set").version;
        let victim = array.oldest(line, &[]).expect("a full set");
        assert_eq!(array.version(victim), oldest);
        array.remove(victim);
        array.stats.evictions += 1;
        model.lines.remove(&oldest.line.0);
        model.evictions += 1;
    }
    array.insert(version, ready);
    model.uses += 1;
    model.lines.insert(line.0, Resident { version, ready, exclusive: false, used: model.uses });
}

/// The array holds what the model holds, and its sets are in the same order of age.
fn check(array: &CacheArray, model: &Model) {
    let mut lines = BTreeMap::new();
    for slot in array.slots() {
        let version = array.version(slot);
        assert_eq!((array.data(slot), array.tag(slot)), (&version.data, version.tag));
        lines.insert(version.line.0, (version, array.ready(slot), array.is_exclusive(slot)));
    }
    let expected = model.lines.iter().map(|(&line, r)| (line, (r.version, r.ready, r.exclusive)));
    assert!(lines.iter().map(|(&line, &held)| (line, held)).eq(expected));
    assert_eq!(array.stats.evictions, model.evictions);
    let mut drained = array.clone();
    let mut by_age: Vec<&Resident> = model.lines.values().collect();
    by_age.sort_by_key(|r| r.used);
    let (mut tags, mut ranks) = (Vec::new(), Vec::new());
    for resident in by_age {
        let line = resident.version.line;
        drained.set_tags(line, &mut tags);
        drained.set_ranks(line, &[], &mut ranks);
        let occupied_ranks = ranks.iter().copied().filter(|&rank| rank != u32::MAX);
        let way = ranks.iter().position(|&rank| Some(rank) == occupied_ranks.clone().min()).expect("the set holds it");
        let slot = drained.slot_of_way(line, way);
        assert_eq!((drained.find(line), tags[way]), (Some(slot), resident.version.tag));
        drained.remove(slot);
    }
    assert_eq!(drained.slots().count(), 0);
    assert_eq!(array.slots().count(), model.lines.len(), "emptying a copy leaves the array alone");
}

fn geometry(sets: u32, ways: u32, missing_way_period: u32) -> LevelGeometry {
    LevelGeometry { sets, ways, missing_way_period, latency_cycles: 10, tag_latency_cycles: 10 }
}

/// Flat ones and paged ones, with ways that are a power of two and ways that are not.
fn geometries() -> impl Strategy<Value = LevelGeometry> {
    prop_oneof![
        Just(geometry(8, 4, 4)),
        Just(geometry(64, 12, 0)),
        Just(geometry(128, 16, 0)),
        Just(geometry(256, 20, 4)),
        Just(geometry(2048, 1, 0)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn forks_share_nothing_that_can_be_seen(
        (geometry, steps) in geometries().prop_flat_map(|g| {
            (Just(g), prop::collection::vec((0..5_usize, line(g.sets), step()), 0..800))
        })
    ) {
        run(geometry, &steps);
    }
}
