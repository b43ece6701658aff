//! Levels whose tags are known before their data: a hit takes the latency of the level, a miss goes on when the tags are known.
//! The sums are those of `latencies.rs` and `coherence_latencies.rs` with the tags of each level that is passed.

use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{DRAM_BASE, MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr};

// Of tiny, in cycles of 3 GHz.
const L1: Cycle = 2;
const L2: Cycle = 8;
const LLC: Cycle = 30;
const UP: Cycle = 1;
const PMEM_READ: Cycle = 450;
const DRAM_READ: Cycle = 150;
const SNOOP: Cycle = 10;
// Further settings of the machines here.
const L2_TAG: Cycle = 3;
const LLC_TAG: Cycle = 7;
const T: Cycle = 30_000;

/// `tiny` with two cores and these latencies of tags; that of the L1D, if it has one.
fn machine(l1_tag: Option<Cycle>, sets: &[&str]) -> System {
    let mut sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    sets.extend([
        "cores=2".to_owned(),
        "interconnect.controller_link_bytes=64".to_owned(),
        format!("l2.tag_latency_cycles={L2_TAG}"),
        format!("llc.tag_latency_cycles={LLC_TAG}"),
    ]);
    sets.extend(l1_tag.map(|cycles| format!("l1d.tag_latency_cycles={cycles}")));
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant("opt").unwrap(), Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

fn load(system: &mut System, core: u16, addr: PhysAddr, at: Cycle) -> Cycle {
    system.load(CoreId(core), addr, 8, None, at).1
}

fn store(system: &mut System, core: u16, addr: PhysAddr, at: Cycle) -> Cycle {
    let store = PendingStore::plain(addr, 8, 1, None);
    let Outcome::Done(done) = system.store(CoreId(core), &store, at) else { panic!("a plain store is done") };
    done
}

/// A line of persistent memory in the same set of all levels for each number.
fn line(number: u64) -> PhysAddr {
    PMEM_BASE.plus(number * 8 * 64)
}

#[test]
fn a_miss_passes_the_tags_and_a_hit_takes_its_level() {
    for l1_tag in [None, Some(1)] {
        let first = l1_tag.unwrap_or(L1);
        let mut system = machine(l1_tag, &[]);
        let down = first + L2_TAG + LLC_TAG;
        let at = T + (3 - (T + down) % 3) % 3;
        assert_eq!(load(&mut system, 0, line(0), at), at + down + PMEM_READ + 3 * UP);
        assert_eq!(load(&mut system, 0, line(0), at + 1000), at + 1000 + L1, "a hit takes what it took");
        // Out of the L1D and of the L2, which has as many ways.
        let mut now = at + 2000;
        for number in 1..=4 {
            now = load(&mut system, 0, line(number), now) + 1000;
        }
        assert_eq!(load(&mut system, 0, line(0), now), now + first + L2_TAG + LLC + 2 * UP);
        // Out of an L1D of one set, in other sets of the L2.
        let mut system = machine(l1_tag, &["l1d.size_bytes=256"]);
        let mut now = T;
        for number in 0..5 {
            now = load(&mut system, 0, PMEM_BASE.plus(64 * number), now) + 1000;
        }
        assert_eq!(load(&mut system, 0, PMEM_BASE, now), now + first + L2 + UP);
    }
}

#[test]
fn code_passes_the_tags_too() {
    let mut system = machine(None, &["l1i.tag_latency_cycles=1"]);
    let down = 1 + L2_TAG + LLC_TAG;
    let at = T + (3 - (T + down) % 3) % 3;
    let line = DRAM_BASE.line();
    assert_eq!(system.fetch_code(CoreId(0), line, at), at + down + DRAM_READ + 3 * UP);
    assert_eq!(system.fetch_code(CoreId(0), line, at + 1000), at + 1000 + L1);
    // The other core owns the line, in its L2, and has nothing newer than the last level.
    let asked = 1 + L2_TAG + LLC + 2 * UP + SNOOP + L2_TAG;
    assert_eq!(system.fetch_code(CoreId(1), line, at + 2000), at + 2000 + asked);
}

#[test]
fn what_needs_no_data_of_a_level_waits_for_its_tags_alone() {
    let mut system = machine(None, &[]);
    store(&mut system, 0, DRAM_BASE, 0);
    // The owner has it in L1D and L2, and sends that of the L1D, with which the last level answers.
    let (down, at) = (L1 + L2_TAG + LLC_TAG, T);
    let owner = L1.max(L2_TAG);
    assert_eq!(load(&mut system, 1, DRAM_BASE, at), at + L1 + L2_TAG + LLC + SNOOP + owner + 2 * UP);
    // Both have it: a permission is asked for, and the reader's L1D looked up.
    let at = T + 1000;
    assert_eq!(store(&mut system, 1, DRAM_BASE, at), at + down + SNOOP + L1 + 3 * UP + L1);
    assert_eq!(system.check_all_lines(), Ok(()));
}

/// Wait of a fence after the clean of a line.
fn clean(system: &mut System, addr: PhysAddr, down: Cycle) -> Cycle {
    let at = 3 * T + (3 - (3 * T + down) % 3) % 3;
    assert_eq!(system.cache_block(CoreId(0), CacheBlockOp::Clean, addr.line(), at), at);
    let mut now = at;
    loop {
        match system.fence(CoreId(0), true, now) {
            Outcome::Done(done) => return done - at,
            Outcome::Pending => now = system.wait_alone(CoreId(0)),
            Outcome::Aborted(..) => panic!("no transaction is open"),
        }
    }
}

#[test]
fn a_clean_passes_all_tags_and_reads_its_line_where_it_is() {
    for l1_tag in [None, Some(1)] {
        let tags = l1_tag.unwrap_or(L1) + L2_TAG + LLC_TAG;
        let in_l1d = tags + L1 - l1_tag.unwrap_or(L1);
        let mut system = machine(l1_tag, &[]);
        store(&mut system, 0, line(0), T);
        assert_eq!(clean(&mut system, line(0), in_l1d), in_l1d + 3 * UP);
        // Four more lines of its set push it out of the L1D: in other sets of an L2 that is larger.
        let mut system = machine(l1_tag, &["l2.size_bytes=8192", "llc.size_bytes=16384"]);
        let mut now = store(&mut system, 0, line(0), T) + 1000;
        for number in 1..=4 {
            now = load(&mut system, 0, line(number), now) + 1000;
        }
        let in_l2 = tags + L2 - L2_TAG;
        assert_eq!(clean(&mut system, line(0), in_l2), in_l2 + 3 * UP);
        // A path that the machine states is that of the message; reading the line comes before it.
        let stated = ["interconnect.core_to_controller_cycles=90", "interconnect.controller_to_core_cycles=5"];
        let mut system = machine(l1_tag, &stated);
        store(&mut system, 0, line(0), T);
        let down = 90 + in_l1d - tags;
        assert_eq!(clean(&mut system, line(0), down), down + 5);
    }
}

#[test]
fn a_tag_latency_beyond_the_hit_is_refused() {
    let refused = |set: &str| {
        let sets = [set.to_owned()];
        MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap_err().to_string()
    };
    let sentence = "llc.tag_latency_cycles: 31 is not between 1 and the 30 cycles of a hit";
    assert_eq!(refused("llc.tag_latency_cycles=31"), sentence);
    assert_eq!(
        refused("l2.tag_latency_cycles=0"),
        "l2.tag_latency_cycles: 0 is not between 1 and the 8 cycles of a hit"
    );
}
