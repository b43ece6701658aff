//! Times of requests that concern several cores. The formula: the request goes down to the directory beside the last level
//! (L1, L2 and LLC latency), from there to the other core and back (`snoop_cycles` and the latency of the slowest level
//! there that has a copy), and is then answered by the last level, with a response cycle for each level on the way up.

use durasim_core::{Outcome, PendingStore};
use durasim_machine::{DRAM_BASE, MachineConfig, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr};

// Of tiny, in cycles of 3 GHz.
const L1: Cycle = 2;
const L2: Cycle = 8;
const LLC: Cycle = 30;
const UP: Cycle = 1;
const DOWN: Cycle = L1 + L2 + LLC;
const T: Cycle = 30_000;

fn machine(snoop_cycles: Cycle, sets: &[&str]) -> System {
    let mut sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    sets.push(format!("interconnect.snoop_cycles={snoop_cycles}"));
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::row("opt").unwrap(), Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

fn load(system: &mut System, core: u16, addr: PhysAddr, at: Cycle) -> (u64, Cycle) {
    system.load(CoreId(core), addr, 8, None, at)
}

fn store(system: &mut System, core: u16, data: u64, at: Cycle) -> Cycle {
    let store = PendingStore { addr: DRAM_BASE, len: 8, data, tx: None };
    let Outcome::Done(done) = system.store(CoreId(core), &store, at) else { panic!("a plain store is done") };
    done
}

#[test]
fn a_line_that_another_core_has_written_takes_the_way_to_it() {
    for snoop in [0, 10, 100] {
        for inclusion in ["inclusive", "non-inclusive"] {
            let mut system = machine(snoop, &[&format!("interconnect.inclusion={inclusion}")]);
            store(&mut system, 0, 7, 0);
            assert_eq!(load(&mut system, 1, DRAM_BASE, T), (7, T + DOWN + snoop + L2 + 2 * UP));
            // Both may read it now, and the first one still has it.
            assert_eq!(load(&mut system, 0, DRAM_BASE, T + 1000), (7, T + 1000 + L1));
            assert_eq!(system.check_all_lines(), Ok(()));
        }
    }
}

#[test]
fn a_line_in_flight_to_its_owner_is_waited_for() {
    let mut system = machine(10, &[]);
    let (_, arrives) = load(&mut system, 0, DRAM_BASE, T);
    let (_, done) = load(&mut system, 1, DRAM_BASE, T);
    assert_eq!(done, arrives + 2 * UP, "the last level has it when the owner has");
}

#[test]
fn the_right_to_write_a_shared_line_takes_the_way_to_its_readers() {
    for snoop in [0, 10, 100] {
        let mut system = machine(snoop, &[]);
        store(&mut system, 0, 7, 0);
        for reader in 1..4 {
            load(&mut system, reader, DRAM_BASE, 10_000);
        }
        let done = store(&mut system, 2, 8, T);
        assert_eq!(done, T + DOWN + snoop + L1 + 3 * UP + L1, "invalidations go out in parallel");
        // Then it writes without asking.
        assert_eq!(store(&mut system, 2, 9, done + 1), done + 1);
        for reader in [0, 1, 3] {
            assert_eq!(load(&mut system, reader, DRAM_BASE, T + 10_000).0, 9);
        }
        assert_eq!(system.check_all_lines(), Ok(()));
    }
}

#[test]
fn a_line_goes_back_and_forth_between_two_writers_at_a_constant_price() {
    let mut system = machine(10, &[]);
    store(&mut system, 0, 0, 0);
    let mut at = T;
    for n in 1..100 {
        let done = store(&mut system, (n % 2) as u16, n, at);
        assert_eq!(done, at + DOWN + 10 + L2 + 2 * UP);
        at = done + 50;
    }
}

#[test]
fn a_line_nobody_else_has_is_written_without_asking() {
    let mut system = machine(100, &[]);
    load(&mut system, 3, DRAM_BASE, 0);
    assert_eq!(store(&mut system, 3, 1, T), T);
}
