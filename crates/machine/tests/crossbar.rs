//! Times of messages between private caches and the last level: each as probe, issue, not ready a cycle early, ready.
//!
//! The formula of `latencies.rs` holds, with one cycle more for a request on its link and 64 bytes by the width of a link
//! more for the line moving up, if no other core uses these links.

use durasim_core::{Outcome, PendingStore};
use durasim_machine::{DRAM_BASE, MachineConfig, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr};

// Of tiny, in cycles of 3 GHz.
const L1: Cycle = 2;
const L2: Cycle = 8;
const LLC: Cycle = 30;
const UP: Cycle = 1;
const REQUEST: Cycle = 1;
const T: Cycle = 300_000;

fn machine(sets: &[&str]) -> System {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant("opt").unwrap(), Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

/// A crossbar in front of a last level of 1024 lines, with no limit on misses.
fn crossbar(banks: u32, width: u32) -> System {
    let (banks, width) = (format!("interconnect.llc_banks={banks}"), format!("interconnect.link_width_bytes={width}"));
    machine(&[
        "interconnect.topology=crossbar",
        &banks,
        &width,
        "llc.size_bytes=65536",
        "l1d.mshrs=1024",
        "l2.mshrs=1024",
        "llc.mshrs=1024",
    ])
}

fn line(n: u64) -> PhysAddr {
    DRAM_BASE.plus(64 * n)
}

fn load(system: &mut System, core: u16, addr: PhysAddr, at: Cycle) -> Cycle {
    system.load(CoreId(core), addr, 8, None, at).1
}

fn store(system: &mut System, core: u16, addr: PhysAddr, at: Cycle) -> Cycle {
    let store = PendingStore::plain(addr, 8, 1, None);
    let Outcome::Done(done) = system.store(CoreId(core), &store, at) else { panic!("a plain store is done") };
    done
}

/// Leaves `count` lines in the last level, and only the last 32 of them in the caches of the core.
fn warm(system: &mut System, core: u16, first: u64, count: u64) {
    for n in first..first + count {
        load(system, core, line(n), 400 * (n - first));
    }
}

fn stat(system: &System, path: &str) -> f64 {
    system.stats().get(path).unwrap_or_else(|| panic!("no {path}"))
}

#[test]
fn a_lone_message_takes_its_own_time_on_a_link() {
    for width in [1, 8, 16, 32, 64] {
        let mut system = crossbar(4, width);
        warm(&mut system, 0, 0, 100);
        let ready = T + L1 + L2 + REQUEST + LLC + 64 / Cycle::from(width) + 2 * UP;
        assert_eq!(load(&mut system, 0, line(3), T), ready, "{width} bytes");
        assert_eq!(load(&mut system, 0, line(3), ready - L1), ready, "not a cycle earlier");
        assert_eq!(load(&mut system, 0, line(3), ready - L1 + 1), ready + 1);
        // A hit in the L1D uses no link.
        let before = stat(&system, "interconnect.messages");
        assert_eq!(load(&mut system, 0, line(3), ready + 100), ready + 100 + L1);
        assert_eq!(stat(&system, "interconnect.messages"), before);
    }
}

#[test]
fn cores_contend_for_a_bank_and_not_for_different_banks() {
    // A cycle at the port of the bank for the request, and one more for the line out of it.
    const LINE: Cycle = 2;
    let alone = L1 + L2 + REQUEST + LLC + LINE + 2 * UP;
    for (second, waits) in [(4, LINE), (5, 0), (8, LINE), (6, 0)] {
        let mut system = crossbar(4, 32);
        warm(&mut system, 0, 0, 100);
        // Lines that core 0 has let go: no core is asked for them.
        let snooped = stat(&system, "coherence.transfers");
        assert_eq!(load(&mut system, 0, line(0), T), T + alone);
        assert_eq!(load(&mut system, 1, line(second), T), T + alone + waits, "lines 0 and {second}");
        // A message with an earlier time takes the gap before these.
        assert_eq!(load(&mut system, 2, line(second + 8), T - 5), T - 5 + alone);
        assert_eq!(stat(&system, "coherence.transfers"), snooped);
    }
}

#[test]
fn lines_for_one_core_wait_for_its_link_and_those_for_another_do_not() {
    let alone = L1 + L2 + REQUEST + LLC + 8 + 2 * UP;
    let mut system = crossbar(4, 8);
    warm(&mut system, 0, 0, 100);
    for n in 0..4 {
        assert_eq!(load(&mut system, 0, line(n), T), T + alone + 8 * n);
    }
    // After the line that the same bank sends to core 0.
    assert_eq!(load(&mut system, 1, line(4), T), T + alone + 8);
}

#[test]
fn the_bandwidth_of_a_link_is_its_width_in_each_cycle() {
    for width in [8, 16, 32, 64] {
        let mut system = crossbar(64, width);
        warm(&mut system, 0, 0, 700);
        let done: Vec<Cycle> = (0..600).map(|n| load(&mut system, 0, line(n), T + n)).collect();
        let cycles = (done[599] - done[99]) as f64;
        let bytes_per_cycle = 500.0 * 64.0 / cycles;
        let limit = f64::from(width).min(64.0);
        assert!((bytes_per_cycle / limit - 1.0).abs() < 0.02, "{bytes_per_cycle} of {limit}");
    }
}

#[test]
fn write_backs_and_transfers_take_the_links() {
    let mut system = crossbar(1, 8);
    // 40 dirty lines: eight have to leave the L2 of 32.
    for n in 0..40 {
        store(&mut system, 0, line(n), 1000 * n);
    }
    assert_eq!(stat(&system, "l2.write_backs"), stat(&system, "interconnect.lines") - 40.0);
    // A line in the caches of another core: the request, the snoop, the line down and up again.
    let before = stat(&system, "interconnect.lines");
    let sent = 2 * (64 / 8);
    let snoop = 10;
    let ready = T + L1 + L2 + LLC + REQUEST + snoop + L2 + REQUEST + sent + 2 * UP;
    assert_eq!(load(&mut system, 1, line(39), T), ready);
    assert_eq!(stat(&system, "interconnect.lines"), before + 2.0);
    // The right to write goes down, out to the reader, back, and up.
    let mut messages = stat(&system, "interconnect.messages");
    store(&mut system, 1, line(39), T + 10_000);
    assert_eq!(stat(&system, "interconnect.messages"), messages + 4.0);
    assert_eq!(stat(&system, "interconnect.lines"), before + 2.0);
    // In a write-back the line that comes waits for the one that leaves, on the one link into the last level.
    messages = stat(&system, "interconnect.wait_cycles");
    for n in 100..140 {
        load(&mut system, 0, line(n), T + 20_000);
    }
    assert!(stat(&system, "interconnect.wait_cycles") > messages);
}

#[test]
fn uniform_links_have_no_counters_and_no_parameters() {
    let system = machine(&[]);
    assert_eq!(system.stats().get("interconnect.messages"), None);
    let set = vec!["interconnect.link_width_bytes=8".to_owned()];
    let refused = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &set).unwrap_err();
    assert!(refused.problem.contains("crossbar"), "{refused}");
}
