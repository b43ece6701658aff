//! A scan that takes the ports of L2 and LLC: look-ups in the array that it is in begin a cycle later.

use durasim_core::{Outcome, PendingStore};
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr};

const CORE: CoreId = CoreId(0);
const T: Cycle = 30_000;
/// Cycles from a store to the loads. The store starts the timer of the scans; one begins and ends within them.
const OFFSETS: std::ops::Range<Cycle> = 400..1500;
const L1D_LINES: usize = 16;
const L2_LINES: usize = 32;
const LLC_LINES: usize = 64;

fn line(n: u64) -> PhysAddr {
    PMEM_BASE.plus(64 * n)
}

/// The latencies of loads that the LLC answers, each on a machine of its own, at all offsets from the store.
fn latencies(takes_ports: bool) -> Vec<Cycle> {
    let sets = ["cores=1", "design.fwb.scan_period_cycles=800", &format!("design.fwb.scan_takes_ports={takes_ports}")];
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets.map(str::to_owned)).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant("fwb").unwrap(), Domain::Adr).unwrap();
    let latency = |offset| {
        let mut system = System::new(&config, &plan).unwrap();
        let mut now = T;
        // Line 0 leaves L1D and L2 for four others of its set; the LLC has room for all of them.
        for n in [0, 8, 16, 24, 32] {
            now = system.load(CORE, line(n), 8, None, now).1 + 1000;
        }
        let tx = system.new_tx();
        let Outcome::Done(begun) = system.tx_begin(CORE, tx, now) else { panic!("refused") };
        let store = PendingStore::plain(line(1), 8, 7, Some(tx));
        let Outcome::Done(done) = system.store(CORE, &store, begun) else { panic!("refused") };
        let at = done + offset;
        system.load(CORE, line(0), 8, None, at).1 - at
    };
    OFFSETS.map(latency).collect()
}

#[test]
fn a_load_is_delayed_in_the_cache_that_is_scanned() {
    let (free, taken) = (latencies(false), latencies(true));
    assert!(free.iter().all(|latency| *latency == free[0]), "{free:?}");
    let delays: Vec<Cycle> = taken.iter().map(|latency| latency - free[0]).collect();
    let first = delays.iter().position(|cycles| *cycles > 0).expect("a scan delays loads");
    let end = delays.iter().rposition(|cycles| *cycles > 0).expect("one was found") + 1;
    assert!(delays[first..end].iter().all(|cycles| (1..=2).contains(cycles)), "{delays:?}");
    // A look-up that the L2 delays comes to the LLC a cycle later, in which it may be delayed again.
    let sum: Cycle = delays.iter().sum();
    assert!((L2_LINES + LLC_LINES..=L2_LINES + LLC_LINES + 2).contains(&(sum as usize)), "{sum}: {delays:?}");
    let without_l1d = end - first;
    assert!(without_l1d < L1D_LINES + L2_LINES + LLC_LINES, "{without_l1d}: {delays:?}");
}
