//! The directory against a map that is kept in order.

use durasim_cache::{Directory, Entry};
use durasim_types::{CoreId, Digest, LineAddr};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The line is shared as a protocol does it: an owner becomes an ordinary sharer first.
    Share(u16),
    Remove(u16),
    Grant(u16),
    Downgrade,
    /// All cores lose the line, as when the last level evicts it.
    Evict,
    SaveAndRestore,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..32_u16).prop_map(Step::Share),
        8 => (0..32_u16).prop_map(Step::Remove),
        4 => (0..32_u16).prop_map(Step::Grant),
        2 => Just(Step::Downgrade),
        4 => Just(Step::Evict),
        1 => Just(Step::SaveAndRestore),
    ]
}

/// Few lines that come back again and again, in rows, at large strides, and at the end of the address space.
fn line() -> impl Strategy<Value = u64> {
    prop_oneof![0..48_u64, (0..48_u64).prop_map(|n| n << 40), (1..4_u64).prop_map(|n| (1 << 58) - n)]
}

fn apply(directory: &mut Directory, model: &mut BTreeMap<u64, Entry>, cores: u16, line: u64, step: Step) {
    let address = LineAddr(line);
    let held = model.get(&line).copied().unwrap_or(Entry::NONE);
    let after = match step {
        Step::Share(core) => {
            let core = CoreId(core % cores);
            let entry = directory.entry(address);
            if entry.owner.is_some_and(|owner| owner != core) {
                directory.downgrade(address);
            }
            directory.add_sharer(address, core);
            Entry { sharers: held.sharers | 1 << core.0, owner: held.owner.filter(|&owner| owner == core) }
        }
        Step::Remove(core) => {
            let core = CoreId(core % cores);
            directory.remove_sharer(address, core);
            Entry { sharers: held.sharers & !(1 << core.0), owner: held.owner.filter(|&owner| owner != core) }
        }
        Step::Grant(core) => {
            let core = CoreId(core % cores);
            directory.grant(address, core);
            Entry { sharers: 1 << core.0, owner: Some(core) }
        }
        Step::Downgrade => {
            directory.downgrade(address);
            Entry { owner: None, ..held }
        }
        Step::Evict => {
            for core in directory.entry(address).cores() {
                directory.remove_sharer(address, core);
            }
            Entry::NONE
        }
        Step::SaveAndRestore => {
            let saved = postcard::to_stdvec(directory).expect("a directory can be saved");
            *directory = postcard::from_bytes(&saved).expect("and restored");
            held
        }
    };
    if after == Entry::NONE {
        model.remove(&line);
    } else {
        model.insert(line, after);
    }
    assert_eq!(directory.entry(address), after);
}

fn same(directory: &Directory, model: &BTreeMap<u64, Entry>) {
    assert!(
        directory.iter().map(|(line, entry)| (line.0, entry)).eq(model.iter().map(|(&line, &entry)| (line, entry)))
    );
    assert_eq!((directory.len(), directory.is_empty()), (model.len(), model.is_empty()));
    for (&line, &entry) in model {
        assert_eq!(directory.entry(LineAddr(line)), entry);
    }
}

fn digest(directory: &Directory) -> String {
    let mut digest = Digest::default();
    directory.digest(&mut digest);
    digest.hex()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn the_directory_equals_a_map(
        cores in 1..=32_u16,
        steps in prop::collection::vec((line(), step()), 0..1000),
    ) {
        let (mut directory, mut model) = (Directory::new(cores), BTreeMap::new());
        for (line, step) in steps {
            apply(&mut directory, &mut model, cores, line, step);
        }
        same(&directory, &model);
    }

    #[test]
    fn the_past_of_a_directory_does_not_show(
        entries in prop::collection::btree_map(line(), 1..=u32::MAX, 0..200),
        detours in prop::collection::vec(line(), 0..2000),
        shuffled in any::<u64>(),
    ) {
        let build = |lines: &[(u64, u32)]| {
            let mut directory = Directory::new(32);
            for &(line, sharers) in lines {
                for core in (Entry { sharers, owner: None }).cores() {
                    directory.add_sharer(LineAddr(line), core);
                }
            }
            directory
        };
        let mut lines: Vec<(u64, u32)> = entries.into_iter().collect();
        let straight = build(&lines);
        lines.sort_by_key(|&(line, _)| (line ^ shuffled).wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut other = build(&lines);
        // More lines come and go, so that the table has grown and lines lie elsewhere.
        for &line in &detours {
            other.add_sharer(LineAddr(line ^ 1 << 50), CoreId(3));
        }
        for &line in &detours {
            other.remove_sharer(LineAddr(line ^ 1 << 50), CoreId(3));
        }
        prop_assert!(straight.iter().eq(other.iter()));
        prop_assert_eq!(digest(&straight), digest(&other));
        prop_assert_eq!(postcard::to_stdvec(&straight), postcard::to_stdvec(&other));
    }
}

#[test]
fn tens_of_thousands_of_lines_come_and_go() {
    let (mut directory, mut model) = (Directory::new(8), BTreeMap::new());
    let mut rng = durasim_types::Rng::new(1);
    for turn in 0..400_000 {
        let line = rng.below(60_000) * [1, 64, 4096][rng.below(3) as usize];
        let core = rng.below(8) as u16;
        // Three quarters arrive in the first half, three quarters leave in the second.
        let arrives = (rng.below(4) == 0) == (turn >= 200_000);
        let step = match (arrives, rng.below(2)) {
            (true, 0) => Step::Share(core),
            (true, _) => Step::Grant(core),
            (false, 0) => Step::Remove(core),
            (false, _) => Step::Evict,
        };
        apply(&mut directory, &mut model, 8, line, step);
    }
    assert!(model.len() > 10_000);
    same(&directory, &model);
}

#[test]
fn a_digest_sees_sharers_and_owner() {
    let mut directory = Directory::new(2);
    let mut seen = vec![digest(&directory)];
    directory.grant(LineAddr(5), CoreId(1));
    seen.push(digest(&directory));
    directory.downgrade(LineAddr(5));
    seen.push(digest(&directory));
    directory.add_sharer(LineAddr(5), CoreId(0));
    seen.push(digest(&directory));
    assert!((1..seen.len()).all(|n| !seen[..n].contains(&seen[n])), "{seen:?}");
}
