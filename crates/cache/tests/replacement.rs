//! The victim of a full set: any candidate with the same chance, and the same one again from the same state.

use durasim_cache::{CacheArray, Replacement, Version};
use durasim_contract::{LevelGeometry, LineTag};
use durasim_types::{Digest, LineAddr};
use proptest::prelude::*;

fn full(ways: u32, missing_way_period: u32, seed: u64) -> CacheArray {
    let geometry = LevelGeometry { sets: 2, ways, missing_way_period, latency_cycles: 1, tag_latency_cycles: 1 };
    let mut array = CacheArray::with_replacement(geometry, Replacement::Random, seed);
    for number in 0..u64::from(ways) {
        for set in 0..2 {
            let line = LineAddr(2 * number + set);
            if array.has_room(line) {
                array.insert(Version { line, data: [0; 64], dirty: false, tag: LineTag(number) }, 0);
            }
        }
    }
    array
}

fn digest(array: &CacheArray) -> String {
    let mut digest = Digest::default();
    array.digest(&mut digest, |tag| tag);
    digest.hex()
}

/// The next `count` choices of the array, without anything leaving.
fn choices(array: &mut CacheArray, pinned: &[LineAddr], count: usize) -> Vec<Option<u64>> {
    (0..count).map(|_| array.victim(LineAddr(100), pinned).map(|slot| array.version(slot).line.0)).collect()
}

proptest! {
    #[test]
    fn forks_clones_and_restored_arrays_choose_alike(
        ways in 2..17_u32, missing in 0..3_u32, seed: u64, before in 0..20_usize, pins in proptest::collection::vec(0..16_u64, 0..4)
    ) {
        let pinned: Vec<LineAddr> = pins.iter().map(|pin| LineAddr(2 * pin)).collect();
        let mut array = full(ways, missing, seed);
        choices(&mut array, &pinned, before);
        let mut clone = array.clone();
        let mut fork = array.fork();
        let mut restored: CacheArray =
            postcard::from_bytes(&postcard::to_stdvec(&array).expect("saved")).expect("restored");
        let at_first = digest(&array);
        let expected = choices(&mut array, &pinned, 30);
        let candidates = (0..u64::from(ways)).filter(|&way| array.find(LineAddr(2 * way)).is_some() && !pins.contains(&way));
        let candidates: Vec<u64> = candidates.map(|way| 2 * way).collect();
        match candidates.is_empty() {
            true => prop_assert!(expected.iter().all(Option::is_none)),
            false => prop_assert!(expected.iter().all(|line| candidates.contains(&line.expect("one can leave")))),
        }
        prop_assert!(candidates.is_empty() || digest(&array) != at_first, "the digest knows how far the sequence is");
        for other in [&mut clone, &mut fork, &mut restored] {
            prop_assert_eq!(&digest(other), &at_first);
            prop_assert_eq!(&choices(other, &pinned, 30), &expected);
            prop_assert_eq!(digest(other), digest(&array));
        }
        let mut anew = full(ways, missing, seed.wrapping_add(1));
        anew.reseed(seed);
        prop_assert_eq!(choices(&mut anew, &pinned, 30), choices(&mut full(ways, missing, seed), &pinned, 30));
    }

    #[test]
    fn ranks_are_dealt_among_the_lines_that_may_leave(ways in 2..17_u32, missing in 0..3_u32, seed: u64, pin in 0..16_u64) {
        let mut array = full(ways, missing, seed);
        let (mut tags, mut ranks) = (Vec::new(), Vec::new());
        for set in 0..2 {
            array.set_tags(LineAddr(set), &mut tags);
            array.set_ranks(LineAddr(set), &[], &mut ranks);
            let usual = ranks.clone();
            let lru = {
                let mut by_age = CacheArray::new(*array.geometry());
                array.slots().map(|slot| array.version(slot)).for_each(|version| { by_age.insert(version, 0); });
                by_age.set_tags(LineAddr(set), &mut tags);
                by_age.set_ranks(LineAddr(set), &[], &mut ranks);
                ranks.clone()
            };
            let sorted = |ranks: &[u32]| { let mut ranks = ranks.to_vec(); ranks.sort_unstable(); ranks };
            prop_assert_eq!(sorted(&usual), sorted(&lru));
            array.set_tags(LineAddr(set), &mut tags);
            array.set_ranks(LineAddr(set), &[LineAddr(2 * pin + set)], &mut ranks);
            for way in 0..ways as usize {
                prop_assert_eq!(ranks[way] == u32::MAX, lru[way] == u32::MAX || tags[way] == LineTag(pin) && way as u64 == pin);
            }
        }
    }
}

#[test]
fn every_candidate_has_the_same_chance() {
    let pinned = [LineAddr(2)];
    let rounds = 30_000;
    let mut array = full(4, 0, 11);
    let mut chosen = [0_u32; 4];
    for line in choices(&mut array, &pinned, rounds) {
        chosen[line.expect("three can leave") as usize / 2] += 1;
    }
    let mut first = [0_u32; 4];
    let (mut tags, mut ranks) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        array.set_tags(LineAddr(0), &mut tags);
        array.set_ranks(LineAddr(0), &pinned, &mut ranks);
        // A design that may choose among the ways 0 and 3 alone takes the lower rank.
        first[if ranks[0] < ranks[3] { 0 } else { 3 }] += 1;
    }
    // Three standard deviations of a fair choice among three, and of one among two.
    let near = |n: u32, fair: f64| (f64::from(n) - fair).abs() < 3.0 * (rounds as f64 * 0.25).sqrt();
    assert!([0, 2, 3].iter().all(|&way| near(chosen[way], rounds as f64 / 3.0)) && chosen[1] == 0, "{chosen:?}");
    assert!(near(first[0], rounds as f64 / 2.0), "{first:?}");
}

#[test]
fn the_least_recently_used_line_is_not_asked_for_chances() {
    let geometry = LevelGeometry { sets: 1, ways: 3, missing_way_period: 0, latency_cycles: 1, tag_latency_cycles: 1 };
    let (mut a, mut b) = (CacheArray::new(geometry), CacheArray::with_replacement(geometry, Replacement::Lru, 77));
    for array in [&mut a, &mut b] {
        for line in 0..3 {
            array.insert(Version { line: LineAddr(line), data: [0; 64], dirty: false, tag: LineTag::NONE }, 0);
        }
        let zero = array.find(LineAddr(0)).expect("resident");
        array.touch(zero);
        let victim = array.victim(LineAddr(9), &[]).expect("a full set");
        assert_eq!(array.version(victim).line, LineAddr(1));
    }
    assert_eq!(digest(&a), digest(&b));
}
