//! Waits of a request of a core, as the memory system reports them: each part to the cycle.

use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{DRAM_BASE, MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr, StallCause, StallSegment, TxId};

const CORE: CoreId = CoreId(0);
// Of tiny, in cycles of 3 GHz.
const L1: Cycle = 2;
const L2: Cycle = 8;
const LLC: Cycle = 30;
const DOWN: Cycle = L1 + L2 + LLC;
const PMEM_READ: Cycle = 450;
const DRAM_READ: Cycle = 150;
/// From the last level to a controller, and back.
const REQUEST: Cycle = 20;
const RESPONSE: Cycle = 17;
/// A time at which the arrival at a controller is a whole number of nanoseconds.
const T: Cycle = 30_000;

fn machine(design: &str, domain: Domain, more: &[&str]) -> System {
    let sets = [
        "interconnect.memory_request_cycles=20",
        "interconnect.memory_response_cycles=17",
        "interconnect.controller_link_bytes=64",
        "cores=2",
    ];
    let sets: Vec<String> = sets.iter().chain(more).map(|set| (*set).to_owned()).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant(design).unwrap(), domain).unwrap();
    System::new(&config, &plan).unwrap()
}

fn explained(system: &mut System, addr: Option<PhysAddr>, from: Cycle, until: Cycle) -> Vec<(StallCause, Cycle)> {
    let mut segments: Vec<StallSegment> = Vec::new();
    system.explain_wait(CORE, addr.map(PhysAddr::line), from, until, |segment| segments.push(segment));
    segments.iter().map(|s| (s.cause, s.until.min(until) - s.from.max(from))).collect()
}

#[test]
fn the_parts_of_a_load_that_misses_are_the_latencies_on_its_path() {
    for (base, media, read) in [(PMEM_BASE, StallCause::Pmem, PMEM_READ), (DRAM_BASE, StallCause::Dram, DRAM_READ)] {
        let mut system = machine("opt", Domain::Adr, &[]);
        let at = T - (DOWN + REQUEST) % 3;
        let (_, done) = system.load(CORE, base, 8, None, at);
        let parts = [
            // The look-up of the L1D before it is of no request.
            (StallCause::PrivateCaches, L2),
            (StallCause::Llc, LLC),
            (StallCause::Path, REQUEST + 1),
            (media, read),
            (StallCause::Path, RESPONSE + 1),
            // One cycle for each level on the way up, except the first one, which is that of the response.
            (StallCause::Llc, 2),
        ];
        let found = explained(&mut system, Some(base), at, done);
        assert_eq!(found.iter().map(|part| part.1).sum::<Cycle>(), done - at - L1, "{found:?}");
        let causes = |parts: &[(StallCause, Cycle)]| parts.iter().map(|part| part.0).collect::<Vec<_>>();
        assert_eq!(causes(&found), causes(&parts), "{found:?}");
        for (found, expected) in found.iter().zip(parts) {
            assert!(found.1.abs_diff(expected.1) <= 2, "{found:?}, not {expected:?}");
        }
    }
}

#[test]
fn a_load_after_another_one_waits_for_its_turn_at_the_controller() {
    let mut system = machine("opt", Domain::Adr, &["pmem.media.banks=1"]);
    system.load(CoreId(1), PMEM_BASE, 8, None, T);
    let addr = PMEM_BASE.plus(64);
    let (_, done) = system.load(CORE, addr, 8, None, T);
    let queued: Cycle = explained(&mut system, Some(addr), T, done)
        .into_iter()
        .filter_map(|(cause, cycles)| (cause == StallCause::Queue).then_some(cycles))
        .sum();
    assert!((PMEM_READ - 3..=PMEM_READ).contains(&queued), "{queued}");
}

#[test]
fn a_line_that_another_core_has_is_waited_for_there() {
    let mut system = machine("opt", Domain::Adr, &[]);
    let store = PendingStore::plain(PMEM_BASE, 8, 1, None);
    let Outcome::Done(stored) = system.store(CoreId(1), &store, T) else { panic!("aborted") };
    let at = stored + 1000;
    let (_, done) = system.load(CORE, PMEM_BASE, 8, None, at);
    let found = explained(&mut system, Some(PMEM_BASE), at, done);
    let of = |cause| found.iter().filter(|part| part.0 == cause).map(|part| part.1).sum::<Cycle>();
    // The snoop, and the latency of the slowest level there.
    assert_eq!(of(StallCause::OtherCore), system.geometry().l2.unwrap().latency_cycles + 10, "{found:?}");
    assert_eq!(of(StallCause::Pmem), 0);
}

#[test]
fn a_fence_waits_for_the_path_and_the_queue_of_the_last_clean() {
    let sets = [
        "interconnect.core_to_controller_cycles=100",
        "interconnect.controller_to_core_cycles=40",
        "pmem.controller.write_queue_entries=1",
        "pmem.media.banks=1",
    ];
    let mut system = machine("swl-flush", Domain::Adr, &sets);
    let mut at = T;
    for line in 0..3 {
        let store = PendingStore::plain(PMEM_BASE.plus(64 * line), 8, 1, None);
        let Outcome::Done(done) = system.store(CORE, &store, at) else { panic!("aborted") };
        at = done + 1000;
    }
    for line in 0..3 {
        system.cache_block(CORE, CacheBlockOp::Clean, PMEM_BASE.plus(64 * line).line(), at);
    }
    assert_eq!(system.fence(CORE, true, at), Outcome::Pending);
    let resumed = system.wait_alone(CORE);
    let Outcome::Done(done) = system.fence(CORE, true, resumed) else { panic!("still pending") };
    let found = explained(&mut system, None, at, done);
    assert_eq!(
        found.iter().map(|part| part.0).collect::<Vec<_>>(),
        [StallCause::Path, StallCause::Queue, StallCause::Path]
    );
    // The last one is the third on the link.
    assert_eq!((found[0].1, found[2].1), (102, 40));
    // The first line is accepted at once, and its entry is free when it is written; so is that of the second.
    assert!((600 - 6..=600 + 6).contains(&found[1].1), "{found:?}");
}

#[test]
fn a_request_that_takes_more_steps_than_allowed_is_an_error() {
    let cleaned = |tasks: u64| {
        let mut system = machine("swl-flush", Domain::Adr, &["pmem.controller.write_queue_entries=1"]);
        system.limit_tasks(tasks);
        for line in 0..8 {
            let line = PMEM_BASE.plus(64 * line);
            system.store(CORE, &PendingStore::plain(line, 8, 1, None), T);
            system.cache_block(CORE, CacheBlockOp::Clean, line.line(), T);
        }
        system.fence(CORE, true, T);
        system.wait_alone(CORE);
        system.error().map(ToString::to_string)
    };
    assert_eq!(cleaned(1000), None);
    let error = cleaned(10).expect("eight lines take more");
    assert!(error.contains("has done 10 steps of one request and does not end"), "{error}");
}

#[test]
fn a_commit_waits_for_the_path_of_what_it_awaits() {
    let sets = ["interconnect.core_to_controller_cycles=100", "interconnect.controller_to_core_cycles=40"];
    let mut system = machine("fwb", Domain::Adr, &sets);
    let tx = TxId(1);
    assert!(matches!(system.tx_begin(CORE, tx, T), Outcome::Done(_)));
    let store = PendingStore::plain(PMEM_BASE, 8, 1, Some(tx));
    let Outcome::Done(stored) = system.store(CORE, &store, T) else { panic!("aborted") };
    let at = stored + 1000;
    assert_eq!(system.tx_commit(CORE, tx, at), Outcome::Pending);
    let mut now = system.wait_alone(CORE);
    let done = loop {
        match system.tx_commit(CORE, tx, now) {
            Outcome::Done(done) => break done,
            Outcome::Pending => now = system.wait_alone(CORE),
            other => panic!("{other:?}"),
        }
    };
    let found = explained(&mut system, None, at, done);
    assert!(found.iter().all(|part| part.0 == StallCause::Path), "{found:?}");
    assert_eq!(found.iter().map(|part| part.1).sum::<Cycle>(), done - at);
}

#[test]
fn a_store_that_a_design_lets_wait_names_its_reason() {
    // The transaction cache has room for four entries and sends none before the commit.
    let sets = ["design.tc.entries=4", "design.tc.overflow_percent=100", "design.tc.coalesce=\"none\""];
    let mut system = machine("tc", Domain::NvTc, &sets);
    let commit = |system: &mut System, tx: TxId, at: Cycle| -> Cycle {
        let mut now = at;
        loop {
            match system.tx_commit(CORE, tx, now) {
                Outcome::Done(done) => return done,
                Outcome::Pending => now = system.wait_alone(CORE),
                other => panic!("{other:?}"),
            }
        }
    };
    let mut at = T;
    // The entries of the first transaction are in flight when the second one wants their places.
    for tx in [TxId(1), TxId(2)] {
        let Outcome::Done(begun) = system.tx_begin(CORE, tx, at) else { panic!("aborted") };
        at = begun;
        for word in 0..4 {
            let store = PendingStore::plain(PMEM_BASE.plus(64 * word), 8, tx.0, Some(tx));
            let began = at;
            let mut waited = false;
            at = loop {
                match system.store(CORE, &store, at) {
                    Outcome::Done(done) => break done,
                    Outcome::Pending => {
                        waited = true;
                        at = system.wait_alone(CORE);
                    }
                    other => panic!("{other:?}"),
                }
            };
            if waited {
                let found = explained(&mut system, Some(store.addr), began, at);
                assert!(found.iter().all(|part| part.0 == StallCause::Structure(0)), "{found:?}");
                assert_eq!(found.iter().map(|part| part.1).sum::<Cycle>(), at - began);
                return;
            }
        }
        at = commit(&mut system, tx, at);
    }
    panic!("no store has found the transaction cache full");
}
