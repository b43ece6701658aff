//! Contents of a snapshot: arrays, registers and directories that continue as if nothing had happened, and refusals of
//! damaged ones.

use durasim_cache::{CacheArray, CacheStats, Directory, Mshrs, Slot, Version};
use durasim_contract::{LevelGeometry, LineTag};
use durasim_types::{CoreId, LineAddr, Rng};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

fn restored<T: Serialize + DeserializeOwned>(value: &T) -> T {
    postcard::from_bytes(&postcard::to_stdvec(value).expect("it can be saved")).expect("it can be restored")
}

/// The error that a saved value ends in after a change of one of its fields.
fn refusal<T: Serialize + DeserializeOwned>(value: &T, path: &str, changed: Value) -> String {
    let mut saved = serde_json::to_value(value).expect("it can be saved");
    *saved.pointer_mut(path).expect(path) = changed;
    match serde_json::from_value::<T>(saved) {
        Ok(_) => panic!("{path} is not checked"),
        Err(error) => error.to_string(),
    }
}

fn version(line: u64) -> Version {
    Version { line: LineAddr(line), data: [line as u8; 64], dirty: true, tag: LineTag(3) }
}

#[test]
fn a_restored_array_is_the_same_array() {
    let geometry = LevelGeometry { sets: 2, ways: 2, missing_way_period: 2, latency_cycles: 4, tag_latency_cycles: 4 };
    let mut array = CacheArray::new(geometry);
    array.stats = CacheStats { accesses: 9, misses: 5, evictions: 2, write_backs: 1 };
    let first = array.insert(version(2), 77);
    array.insert(version(4), 78);
    array.touch(first);
    array.set_exclusive(first, true);
    let mut again = restored(&array);
    assert_eq!((again.geometry(), again.stats), (&geometry, array.stats));
    let slot: Slot = restored(&first);
    assert_eq!((slot, again.version(slot), again.ready(slot)), (first, version(2), 77));
    assert!(again.is_exclusive(slot));
    // Both clocks continue from the same place: what is touched next is the youngest in both.
    for array in [&mut array, &mut again] {
        let four = array.find(LineAddr(4)).expect("resident");
        assert_eq!(array.oldest(LineAddr(0), &[]), Some(four));
        array.touch(four);
        assert_eq!(array.oldest(LineAddr(0), &[]), Some(first));
        assert!(array.has_room(LineAddr(1)));
        array.insert(version(1), 0);
        assert!(!array.has_room(LineAddr(1)), "the second set lacks a way");
    }
    let saved = |array: &CacheArray| postcard::to_stdvec(array).expect("it can be saved");
    assert_eq!(saved(&array), saved(&again));
}

#[test]
fn an_array_takes_space_for_its_lines_alone() {
    let mut array = CacheArray::new(LevelGeometry {
        sets: 16384,
        ways: 16,
        missing_way_period: 0,
        latency_cycles: 4,
        tag_latency_cycles: 4,
    });
    let empty = postcard::to_stdvec(&array).expect("it can be saved").len();
    assert!(empty < 32, "{empty} bytes");
    for line in 0..1000 {
        array.insert(version(line), 1 << 30);
    }
    let bytes = postcard::to_stdvec(&array).expect("it can be saved").len();
    assert!(bytes < 1000 * 84, "{bytes} bytes for 1000 lines");
}

#[test]
fn a_damaged_array_is_refused() {
    let mut array = CacheArray::new(LevelGeometry {
        sets: 2,
        ways: 2,
        missing_way_period: 2,
        latency_cycles: 4,
        tag_latency_cycles: 4,
    });
    array.insert(version(2), 0);
    array.insert(version(4), 0);
    array.insert(version(1), 0);
    let refused = |path: &str, changed: Value| refusal(&array, path, changed);
    assert!(refused("/geometry/sets", json!(3)).contains("no cache has 3 sets of 2 ways"));
    assert!(refused("/geometry/ways", json!(0)).contains("no cache has 2 sets of 0 ways"));
    assert!(refused("/geometry/sets", json!(1_u32 << 31)).contains("no cache has"));
    assert!(refused("/occupied/0/slot", json!(2)).contains("line 0x80 cannot be in slot 2"));
    assert!(refused("/occupied/2/slot", json!(3)).contains("line 0x40 cannot be in slot 3"), "this way is missing");
    assert!(refused("/occupied/0/slot", json!(400)).contains("cannot be in slot 400"));
    assert!(refused("/occupied/1/slot", json!(0)).contains("is there twice"));
    assert!(refused("/occupied/1/line", json!(2)).contains("is there twice"));
    assert!(refused("/occupied/2/line", json!(u64::MAX)).contains("no address is in line 0xffffffffffffffff"));
    assert!(refused("/clock", json!(2)).contains("after the clock"));
    assert!(refused("/occupied/0/data", json!([0, 1, 2])).contains("64"));
    let mut saved = postcard::to_stdvec(&array).expect("it can be saved");
    saved.truncate(saved.len() - 1);
    assert!(postcard::from_bytes::<CacheArray>(&saved).is_err());
}

#[test]
fn a_version_keeps_its_data() {
    let all = Version { data: std::array::from_fn(|n| n as u8 | 0xc0), ..version(9) };
    assert_eq!(restored(&all), all);
    assert_eq!(serde_json::from_value::<Version>(serde_json::to_value(all).expect("json")).expect("json"), all);
}

#[test]
fn restored_registers_stall_as_the_first_ones() {
    let mut rng = Rng::new(3);
    let mut mshrs = Mshrs::new(4);
    let mut at = 0;
    for _ in 0..1000 {
        let mut again = restored(&mshrs);
        assert_eq!(postcard::to_stdvec(&again), postcard::to_stdvec(&mshrs));
        at += rng.below(40);
        let start = mshrs.acquire(at);
        assert_eq!(again.acquire(at), start);
        let end = start + 10 + rng.below(200);
        mshrs.release_at(end);
        again.release_at(end);
        assert_eq!(again.stall_cycles, mshrs.stall_cycles);
        if rng.below(2) == 0 {
            mshrs = again;
        }
    }
    assert!(mshrs.stall_cycles > 0);
    assert!(refusal(&mshrs, "/capacity", json!(0)).contains("cannot miss"));
}

#[test]
fn a_damaged_directory_is_refused() {
    let mut directory = Directory::new(2);
    directory.grant(LineAddr(1), CoreId(1));
    directory.add_sharer(LineAddr(2), CoreId(0));
    let refused = |path: &str, changed: Value| refusal(&directory, path, changed);
    assert!(refused("/cores", json!(33)).contains("1 to 32"));
    assert!(refused("/cores", json!(1)).contains("entry of 0x40"));
    assert!(refused("/entries/0/1/sharers", json!(3)).contains("entry of 0x40"), "the owner would share");
    assert!(refused("/entries/0/1/owner", json!(0)).contains("entry of 0x40"), "the owner would not hold the line");
    assert!(refused("/entries/0/1/owner", json!(20)).contains("entry of 0x40"));
    assert!(refused("/entries/1/1/sharers", json!(0)).contains("entry of 0x80"));
    assert!(refused("/entries/1/0", json!(1)).contains("twice"));
    assert!(refused("/entries/1/0", json!(1_u64 << 58)).contains("no address is in line 0x400000000000000"));
    let again = restored(&directory);
    assert!(again.iter().eq(directory.iter()));
}
