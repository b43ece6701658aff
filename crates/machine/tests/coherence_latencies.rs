//! Times of requests that concern several cores. The formula: the request goes down to the directory beside the last level
//! (L1, L2 and LLC latency, `request_cycles` between them), from there to the other core and back (`snoop_cycles` and the
//! latency of the slowest level there that has a copy), and is then answered by the last level, with a response cycle for
//! each level on the way up.

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
    let plan = Plan::new(&config, durasim_designs::variant("opt").unwrap(), Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

fn load(system: &mut System, core: u16, addr: PhysAddr, at: Cycle) -> (u64, Cycle) {
    system.load(CoreId(core), addr, 8, None, at)
}

fn store(system: &mut System, core: u16, data: u64, at: Cycle) -> Cycle {
    let store = PendingStore::plain(DRAM_BASE, 8, data, None);
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
fn a_line_that_no_other_core_has_is_written_without_asking() {
    let mut system = machine(100, &[]);
    load(&mut system, 3, DRAM_BASE, 0);
    assert_eq!(store(&mut system, 3, 1, T), T);
}

#[test]
fn a_transfer_takes_the_configured_sum_whatever_it_consists_of() {
    let points = [(L1, L2, LLC), (5, 3, 17), (2, 20, 50)];
    let links = [(0, 1, 0), (1, 1, 25), (9, 4, 25), (3, 2, 140)];
    for ((l1, l2, llc), (request, response, snoop)) in points.into_iter().flat_map(|p| links.map(|l| (p, l))) {
        let sets = [
            format!("interconnect.request_cycles={request}"),
            format!("interconnect.response_cycles={response}"),
            format!("l1d.latency_cycles={l1}"),
            format!("l2.latency_cycles={l2}"),
            format!("llc.latency_cycles={llc}"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let mut system = machine(snoop, &sets);
        let down = l1 + request + l2 + request + llc;
        // The owner has the line in L1D and L2; the last level answers.
        let transfer = down + snoop + l1.max(l2) + 2 * response;
        // Readers are asked in their L1D; the answer is a permission that goes all the way up, and is used there.
        let upgrade = down + snoop + l1 + 3 * response + l1;
        store(&mut system, 0, 0, 0);
        let mut at = T;
        for n in 1..40 {
            let (writer, other) = ((n % 2) as u16, ((n + 1) % 2) as u16);
            let done = store(&mut system, writer, n, at);
            assert_eq!(done - at, transfer, "a store takes it from the other writer");
            at = done + 50;
            let (value, done) = load(&mut system, other, DRAM_BASE, at);
            assert_eq!((value, done - at), (n, transfer), "a load takes a copy");
            at = done + 50;
            let done = store(&mut system, writer, n, at);
            assert_eq!(done - at, upgrade, "the writer takes the copy away");
            at = done + 50;
        }
        assert_eq!(system.check_all_lines(), Ok(()));
    }
}
