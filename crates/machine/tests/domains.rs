//! Data that survives a power failure on machines with durable persist buffers or a durable last level.

use durasim_contract::Hooks;
use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{MachineConfig, Observer, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, EventKind, PersistEvent, PhysAddr};
use std::sync::{Arc, Mutex};

// Of tiny, in cycles of 3 GHz.
const DOWN: Cycle = 2 + 8 + 30;
const UP: Cycle = 1;
const PMEM_WRITE: Cycle = 300;
const T: Cycle = 30_000;

fn machine(domain: Domain, sets: &[&str]) -> System {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant("opt").unwrap(), domain).unwrap();
    System::new(&config, &plan).unwrap()
}

fn line(n: u64) -> PhysAddr {
    PMEM_BASE.plus(64 * n)
}

fn ask(system: &mut System, core: u16, addr: PhysAddr, data: u64, at: Cycle) -> Outcome {
    system.store(CoreId(core), &PendingStore::plain(addr, 8, data, None), at)
}

fn store(system: &mut System, core: u16, addr: PhysAddr, data: u64, at: Cycle) -> Cycle {
    let Outcome::Done(done) = ask(system, core, addr, data, at) else { panic!("the store is held up") };
    done
}

fn load(system: &mut System, core: u16, addr: PhysAddr, at: Cycle) -> u64 {
    system.load(CoreId(core), addr, 8, None, at).0
}

fn survives(system: &System, addr: PhysAddr) -> u64 {
    let (image, complete) = system.crash_image(u64::MAX);
    assert_eq!(complete, Ok(()));
    image.read_u64(addr)
}

fn stat(system: &System, path: &str) -> f64 {
    system.stats().get(path).unwrap_or_else(|| panic!("no {path}"))
}

/// Brings lines into the caches, so that stores to them wait for nothing.
fn warmed(system: &mut System, lines: u64) {
    for n in 0..lines {
        system.prefetch_own(CoreId(0), line(n).line(), None, 1000 * n);
    }
}

#[test]
fn a_store_is_durable_with_its_entry_in_the_persist_buffer() {
    for (domain, survivor) in [(Domain::Bbb, 7), (Domain::Eadr, 7), (Domain::Adr, 0), (Domain::NvLlc, 0)] {
        let mut system = machine(domain, &[]);
        store(&mut system, 0, line(0), 7, T);
        assert_eq!(survives(&system, line(0)), survivor, "{domain}");
        assert_eq!(system.event_kinds()[EventKind::CacheStore as usize], u64::from(survivor == 7), "{domain}");
    }
}

#[test]
fn stores_to_a_line_join_and_the_oldest_line_drains_above_the_threshold() {
    let mut system = machine(Domain::Bbb, &["bbb.entries=4", "bbb.drain_threshold_percent=50"]);
    warmed(&mut system, 4);
    for n in 0..20 {
        store(&mut system, 0, line(n % 2).plus(8 * (n % 5)), n, T + n);
    }
    assert_eq!(
        (stat(&system, "bbb.joined"), stat(&system, "bbb.drained"), stat(&system, "pmem.writes")),
        (18.0, 0.0, 0.0)
    );
    store(&mut system, 0, line(2), 5, T + 100);
    assert_eq!((stat(&system, "bbb.drained"), stat(&system, "pmem.writes")), (1.0, 0.0), "it is in flight");
    assert_eq!(system.in_progress(), ["persist buffer", "write in flight", "awaited acknowledgement"]);
    assert_eq!((survives(&system, line(0)), survives(&system, line(2))), (10, 5));
    assert_eq!(system.step_once(T + 100 + DOWN), Some(T + 100 + DOWN));
    assert_eq!(stat(&system, "pmem.writes"), 1.0);
    // The oldest is gone: a store to it takes a new entry, and the next oldest leaves for it.
    store(&mut system, 0, line(0), 6, T + 100 + DOWN + 3 * UP);
    assert_eq!((stat(&system, "bbb.joined"), stat(&system, "bbb.drained")), (18.0, 2.0));
    assert_eq!((survives(&system, line(0)), survives(&system, line(2))), (6, 5));
}

#[test]
fn a_full_buffer_holds_a_store_until_the_queue_accepts_its_oldest_line() {
    let sets = [
        "bbb.entries=2",
        "bbb.drain_threshold_percent=0",
        "pmem.controller.write_queue_entries=1",
        "pmem.media.banks=1",
    ];
    let mut system = machine(Domain::Bbb, &sets);
    warmed(&mut system, 4);
    // The queue takes the first line and is full; the second one drains from the buffer, the third one stays in it.
    const LATER: Cycle = T + DOWN + 3 * UP;
    assert_eq!(store(&mut system, 0, line(0), 1, T), T);
    for n in 1..3 {
        assert_eq!(store(&mut system, 0, line(n), n + 1, LATER), LATER);
    }
    // The first line was written, and the acknowledgement of the second one is back.
    // A cycle more, as picoseconds are rounded up.
    let accepted = T + DOWN + PMEM_WRITE + 3 * UP + 1;
    assert_eq!(ask(&mut system, 0, line(3), 4, LATER + 1), Outcome::Pending);
    assert_eq!(survives(&system, line(3)), 0, "a store that waits has not been made");
    assert_eq!(
        store(&mut system, 0, line(2).plus(8), 9, LATER + 2),
        LATER + 2,
        "a store to a line in the buffer joins it"
    );
    assert_eq!(ask(&mut system, 0, line(3), 4, accepted - 1), Outcome::Pending);
    assert_eq!(system.wait_alone(CoreId(0)), accepted);
    assert_eq!(store(&mut system, 0, line(3), 4, accepted), accepted);
    assert_eq!(
        (stat(&system, "bbb.full"), survives(&system, line(2).plus(8)), survives(&system, line(3))),
        (2.0, 9, 4)
    );
}

#[test]
fn an_entry_goes_to_the_core_that_stores_and_stays_where_others_read() {
    let mut system = machine(Domain::Bbb, &[]);
    store(&mut system, 0, line(0), 1, T);
    assert_eq!(load(&mut system, 1, line(0), T + 1000), 1);
    assert_eq!((stat(&system, "bbb.moved"), survives(&system, line(0))), (0.0, 1));
    store(&mut system, 1, line(0).plus(8), 2, T + 2000);
    assert_eq!(
        (stat(&system, "bbb.moved"), stat(&system, "bbb.drained"), stat(&system, "bbb.joined")),
        (1.0, 0.0, 0.0)
    );
    store(&mut system, 1, line(0), 3, T + 3000);
    assert_eq!(stat(&system, "bbb.joined"), 1.0);
    assert_eq!((survives(&system, line(0)), survives(&system, line(0).plus(8))), (3, 2));
    assert_eq!(system.check_all_lines(), Ok(()));
}

#[test]
fn caches_drop_lines_of_persistent_memory_and_drain_them_first() {
    for inclusion in ["inclusive", "non-inclusive"] {
        let mut system = machine(Domain::Bbb, &[&format!("interconnect.inclusion={inclusion}")]);
        // 40 lines of one set of every cache.
        for n in 0..40 {
            store(&mut system, 0, line(8 * n), n + 1, T + 10_000 * n);
        }
        assert!(stat(&system, "bbb.dropped") > 20.0 && stat(&system, "bbb.forced") > 10.0);
        system.drain_queues(T + 10_000 * 40);
        assert_eq!(stat(&system, "pmem.writes"), stat(&system, "bbb.drained"), "nothing else writes");
        for n in 0..40 {
            assert_eq!(survives(&system, line(8 * n)), n + 1);
        }
        for n in 0..40 {
            assert_eq!(load(&mut system, 0, line(8 * n), T + 1_000_000 + 1000 * n), n + 1);
        }
        assert_eq!(system.check_all_lines(), Ok(()));
    }
}

#[test]
fn cleans_are_not_waited_for_where_stores_are_durable() {
    let mut system = machine(Domain::Bbb, &[]);
    store(&mut system, 0, line(0), 1, T);
    system.cache_block(CoreId(0), CacheBlockOp::Clean, line(0).line(), T + 1000);
    assert_eq!(stat(&system, "bbb.drained"), 1.0);
    assert_eq!(system.fence(CoreId(0), true, T + 1000), Outcome::Done(T + 1000));
    system.cache_block(CoreId(0), CacheBlockOp::Clean, line(0).line(), T + 2000);
    assert_eq!(stat(&system, "bbb.drained"), 1.0, "it is clean");
}

#[test]
fn the_battery_saves_an_entry_for_each_64_bytes_of_its_energy() {
    let mut system = machine(Domain::Bbb, &[]);
    let last_word = |n| line(n).plus(56);
    for n in 0..3 {
        store(&mut system, 0, line(n), n + 1, T + n);
        store(&mut system, 0, last_word(n), n + 1, T + 10 + n);
    }
    let saved = |budget: u64, word: &dyn Fn(u64) -> PhysAddr| {
        let (image, complete) = system.crash_image(budget);
        ((0..3).filter(|&n| image.read_u64(word(n)) == n + 1).count(), complete.is_ok())
    };
    let wholes = [0, 127, 191, 192].map(|budget| saved(budget, &last_word));
    assert_eq!(wholes, [(0, false), (1, false), (2, false), (3, true)]);
    // If it ends inside a line, the line is torn between two words.
    let begun = [0, 7, 8, 127, 192].map(|budget| saved(budget, &line));
    assert_eq!(begun, [(0, false), (0, false), (1, false), (2, false), (3, true)]);
}

#[test]
fn hardware_that_keeps_versions_has_no_persist_buffers() {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &[]).unwrap();
    for variant in durasim_designs::VARIANTS {
        let refused = Plan::new(&config, variant, Domain::Bbb).err();
        assert_eq!(refused.is_some(), variant.hardware.hooks != Hooks::NONE);
        assert!(refused.is_none_or(|e| e.field == "domain" && e.problem.contains("several versions")));
    }
}

/// Remembers what survives at each arrival in the last level.
struct Arrivals(Arc<Mutex<Vec<(u64, u64)>>>);

impl Observer for Arrivals {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        if event.kind == EventKind::CacheArrival {
            self.0.lock().unwrap().push((event.cycle, survives(system, line(0))));
        }
        true
    }
}

#[test]
fn a_nonvolatile_last_level_acknowledges_what_has_arrived() {
    for op in [CacheBlockOp::Clean, CacheBlockOp::Flush, CacheBlockOp::Inval] {
        let mut system = machine(Domain::NvLlc, &[]);
        let seen = Arc::new(Mutex::new(Vec::new()));
        system.observe(Box::new(Arrivals(seen.clone())));
        store(&mut system, 0, line(0), 7, T);
        let at = T + 10_000;
        assert!(seen.lock().unwrap().is_empty());
        system.cache_block(CoreId(0), op, line(0).line(), at);
        assert_eq!(*seen.lock().unwrap(), [(at + DOWN, 7)], "{op:?}");
        assert_eq!(system.fence(CoreId(0), true, at), Outcome::Done(at + DOWN + 3 * UP));
        assert_eq!(stat(&system, "pmem.writes"), if op == CacheBlockOp::Clean { 0.0 } else { 1.0 }, "{op:?}");
        assert_eq!(survives(&system, line(0)), 7);
        // There is nothing newer above it any more.
        let late = at + 10_000;
        system.cache_block(CoreId(0), CacheBlockOp::Clean, line(0).line(), late);
        assert_eq!(system.fence(CoreId(0), true, late), Outcome::Done(late + DOWN + 3 * UP), "a core cannot know that");
        assert_eq!(load(&mut system, 1, line(0), late), 7);
        assert_eq!(system.check_all_lines(), Ok(()));
    }
}

#[test]
fn a_line_is_durable_when_it_has_come_down_to_the_last_level() {
    for inclusion in ["inclusive", "non-inclusive"] {
        let mut system = machine(Domain::NvLlc, &[&format!("interconnect.inclusion={inclusion}")]);
        store(&mut system, 0, line(0), 7, T);
        // Four more lines push it out of the L1D, and three more out of the L2, where it has just arrived; the last level
        // has eight ways.
        for n in 1..=7 {
            assert_eq!(survives(&system, line(0)), 0, "{n}");
            load(&mut system, 0, line(8 * n), T + 1000 * n);
        }
        assert_eq!((survives(&system, line(0)), stat(&system, "pmem.writes")), (7, 0.0), "{inclusion}");
        // Another core takes it from the one that has written it.
        store(&mut system, 0, line(1), 8, T + 10_000);
        assert_eq!(survives(&system, line(1)), 0);
        load(&mut system, 1, line(1), T + 11_000);
        assert_eq!(survives(&system, line(1)), 8);
    }
}

#[test]
fn what_was_acknowledged_survives_while_a_newer_version_passes_the_last_level() {
    struct Always;
    impl Observer for Always {
        fn event(&mut self, _: &PersistEvent, system: &System) -> bool {
            assert!([7, 8].contains(&survives(system, line(0))));
            true
        }
    }
    let mut system =
        machine(Domain::NvLlc, &["pmem.controller.write_queue_entries=1", "interconnect.write_back_buffers=1"]);
    store(&mut system, 0, line(0), 7, T);
    system.cache_block(CoreId(0), CacheBlockOp::Clean, line(0).line(), T + 1000);
    system.observe(Box::new(Always));
    let mut now = T + 2000;
    // Eight dirty lines of its set in the last level, all queues full, and a newer version of it in the L1D.
    for n in 1..=12 {
        let Outcome::Done(done) = ask(&mut system, 1, line(8 * n), n, now) else { panic!("held up") };
        now = store(&mut system, 0, line(0), 8, done + 1);
    }
    assert_eq!(load(&mut system, 0, line(0), now), 8);
    assert!(stat(&system, "pmem.writes") > 0.0);
}
