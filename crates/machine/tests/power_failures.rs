//! Power cuts that are not clean: torn lines, cleans in another order, energy that ends early.

use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{
    DistinctImages, MachineConfig, PMEM_BASE, Plan, PowerFailureChoices, PowerFailureOptions, System, presets,
};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr};
use std::collections::BTreeSet;

const T: Cycle = 30_000;
/// Later than any clean of these tests is acknowledged.
const LATER: Cycle = 100_000;

fn machine(domain: Domain) -> System {
    machine_of("opt", domain)
}

fn machine_of(design: &str, domain: Domain) -> System {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &["cores=2".to_owned()]).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant(design).unwrap(), domain).unwrap();
    let mut system = System::new(&config, &plan).unwrap();
    system.track_unfenced_cleans();
    system
}

fn word(line: u64, word: u64) -> PhysAddr {
    PMEM_BASE.plus(64 * line + 8 * word)
}

fn store(system: &mut System, core: u16, addr: PhysAddr, data: u64, at: Cycle) {
    let outcome = system.store(CoreId(core), &PendingStore::plain(addr, 8, data, None), at);
    assert!(matches!(outcome, Outcome::Done(_)));
}

fn clean(system: &mut System, core: u16, line: u64, at: Cycle) {
    system.cache_block(CoreId(core), CacheBlockOp::Clean, word(line, 0).line(), at);
}

fn fence(system: &mut System, core: u16, at: Cycle) {
    let mut at = at;
    while let Outcome::Pending = system.fence(CoreId(core), true, at) {
        at = system.wait_alone(CoreId(core));
    }
}

/// Possible values of these words, over all choices of a power failure.
fn found(
    system: &System,
    ways: u64,
    cut: impl Fn(u64) -> PowerFailureOptions,
    words: &[PhysAddr],
) -> BTreeSet<Vec<u64>> {
    let image = |choice| system.power_failure(&cut(choice)).image;
    (0..ways).map(|choice| words.iter().map(|addr| image(choice).read_u64(*addr)).collect()).collect()
}

fn reordered(system: &System, words: &[PhysAddr]) -> BTreeSet<Vec<u64>> {
    let ways = system.power_failure_choices().reorder;
    found(system, ways, |choice| PowerFailureOptions { reorder: Some(choice), ..PowerFailureOptions::default() }, words)
}

fn sets<const N: usize>(of: &[[u64; N]]) -> BTreeSet<Vec<u64>> {
    of.iter().map(|words| words.to_vec()).collect()
}

#[test]
fn any_part_of_unfenced_cleans_may_be_durable() {
    let mut system = machine(Domain::Adr);
    let words = [word(0, 0), word(1, 0)];
    for line in 0..2 {
        store(&mut system, 0, word(line, 0), line + 1, T);
        clean(&mut system, 0, line, T + 1000);
    }
    assert_eq!(system.power_failure_choices(), PowerFailureChoices { torn: 1, reorder: 4, evict: 1 });
    assert_eq!(reordered(&system, &words), sets(&[[0, 0], [1, 0], [0, 2], [1, 2]]));
    fence(&mut system, 0, LATER);
    assert_eq!(system.power_failure_choices().reorder, 1);
    assert_eq!(reordered(&system, &words), sets(&[[1, 2]]));
}

#[test]
fn versions_of_a_line_stay_in_their_order() {
    let mut system = machine(Domain::Adr);
    for value in 1..=3 {
        store(&mut system, 0, word(0, 0), value, T + 10_000 * value);
        store(&mut system, 0, word(0, 7), value, T + 10_000 * value + 1);
        clean(&mut system, 0, 0, T + 10_000 * value + 5000);
    }
    assert_eq!(reordered(&system, &[word(0, 0), word(0, 7)]), sets(&[[0, 0], [1, 1], [2, 2], [3, 3]]));
}

#[test]
fn a_fence_is_of_its_core_and_covers_what_it_has_cleaned_again() {
    let mut system = machine(Domain::Adr);
    for line in 0..2 {
        store(&mut system, 0, word(line, 0), 7, T);
        clean(&mut system, 0, line, T + 1000);
    }
    // Core 1 makes sure of line 1, which core 0 has cleaned.
    clean(&mut system, 1, 1, T + 20_000);
    fence(&mut system, 1, LATER);
    assert_eq!(reordered(&system, &[word(0, 0), word(1, 0)]), sets(&[[0, 7], [7, 7]]));
}

#[test]
fn nothing_is_reordered_where_stores_are_durable() {
    let mut system = machine(Domain::Eadr);
    store(&mut system, 0, word(0, 0), 7, T);
    clean(&mut system, 0, 0, T + 1000);
    assert_eq!(system.power_failure_choices(), PowerFailureChoices { torn: 1, reorder: 1, evict: 1 });
}

#[test]
fn dirty_lines_may_have_left_the_caches_with_their_newest_data() {
    let mut system = machine(Domain::Adr);
    store(&mut system, 0, word(0, 0), 1, T);
    store(&mut system, 0, word(1, 0), 2, T + 1);
    store(&mut system, 1, word(0, 1), 3, T + 1000);
    let ways = system.power_failure_choices().evict;
    let evicted = |choice| PowerFailureOptions { evict: Some(choice), ..PowerFailureOptions::default() };
    let words = [word(0, 0), word(0, 1), word(1, 0)];
    assert_eq!(ways, 4);
    assert_eq!(found(&system, ways, evicted, &words), sets(&[[0, 0, 0], [1, 3, 0], [0, 0, 2], [1, 3, 2]]));
    clean(&mut system, 0, 0, T + 20_000);
    store(&mut system, 0, word(0, 0), 4, T + 20_500);
    // Line 0 is as it was, as the clean has it, or as it is after the store; line 1 is evicted or not. One of the six is clean.
    let DistinctImages { evictions, others } = system.distinct_images(16).unwrap();
    let image =
        |choice: u64| PowerFailureOptions { image: Some(others[choice as usize]), ..PowerFailureOptions::default() };
    let mut contents = found(&system, others.len() as u64, image, &words);
    let eviction = |choice: u64| evicted(evictions[choice as usize]);
    contents.extend(found(&system, evictions.len() as u64, eviction, &words));
    assert_eq!((evictions.len(), others.len(), contents.len()), (3, 2, 5));
    contents.extend(found(&system, 1, |_| PowerFailureOptions::default(), &words));
    let all: Vec<[u64; 3]> = [[0, 0], [1, 3], [4, 3]].iter().flat_map(|&[a, b]| [[a, b, 0], [a, b, 2]]).collect();
    assert_eq!(contents, sets(&all));
    assert_eq!(system.distinct_images(7), Err(8));
    let mut system = machine(Domain::Adr);
    store(&mut system, 0, word(0, 0), 1, T);
    store(&mut system, 0, word(1, 0), 2, T + 1);
    clean(&mut system, 0, 0, T + 20_000);
    assert_eq!(system.power_failure_choices().evict, 2, "line 0 is in flight, line 1 is dirty");
    for (design, domain) in [("opt", Domain::Eadr), ("lad", Domain::Adr)] {
        let mut system = machine_of(design, domain);
        store(&mut system, 0, word(0, 0), 1, T);
        assert_eq!(system.power_failure_choices().evict, 1, "{design} on {domain}");
    }
}

#[test]
fn a_line_that_the_media_writes_is_torn_between_words() {
    let mut system = machine(Domain::Media);
    for n in 0..8 {
        store(&mut system, 0, word(0, n), n + 1, T + n);
    }
    clean(&mut system, 0, 0, T + 1000);
    // Until the media begins.
    let mut at = T + 1000;
    while system.power_failure_choices().torn == 1 {
        at = system.step_once(at + 1).unwrap_or(at + 1);
        assert!(at < LATER);
    }
    let ways = system.power_failure_choices().torn;
    assert_eq!(ways, 256);
    let words: Vec<PhysAddr> = (0..8).map(|n| word(0, n)).collect();
    let torn = found(
        &system,
        ways,
        |choice| PowerFailureOptions { torn: Some(choice), ..PowerFailureOptions::default() },
        &words,
    );
    assert_eq!(torn.len(), 256);
    assert!(torn.iter().flat_map(|words| words.iter().zip(1..)).all(|(&found, new)| found == 0 || found == new));
    // If the queue survives, so does the line as a whole.
    let mut system = machine(Domain::Adr);
    store(&mut system, 0, word(0, 0), 1, T);
    clean(&mut system, 0, 0, T + 1000);
    assert_eq!(system.power_failure_choices().torn, 1);
}

#[test]
fn energy_is_spent_in_the_documented_order_and_its_end_is_reported() {
    let mut system = machine(Domain::Eadr);
    for line in 0..4 {
        store(&mut system, 0, word(line, 0), line + 1, T + line);
    }
    let all = system.power_failure(&PowerFailureOptions::default());
    assert_eq!(all.flushed_bytes, 4 * 64);
    assert!(!all.image.dirty_shutdown);
    for saved in 0..4 {
        let cut = system
            .power_failure(&PowerFailureOptions { energy_bytes: Some(64 * saved), ..PowerFailureOptions::default() });
        assert!(cut.image.dirty_shutdown);
        assert_eq!(cut.flushed_bytes, 64 * saved);
        let survivors = (0..4).filter(|&line| cut.image.read_u64(word(line, 0)) == line + 1).count();
        assert_eq!(survivors as u64, saved);
    }
}
