//! The path between cores, the last level and the controllers: what each kind of message takes, to the cycle (the table of
//! docs/internals/path-to-controllers.md), what loads and power failures see of what is in flight, and what configurations
//! are refused.

mod sender;

use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Origin, Promise, Variant};
use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{MachineConfig, Observer, PMEM_BASE, Plan, System, presets};
use durasim_types::{Cycle, Domain, EventKind, PersistEvent, PhysAddr, TxId};
use sender::{CLEAN_THEN_BARRIER, CORE, KINDS, Kind, Sender, line_of};
use std::sync::{Arc, Mutex};

const T: Cycle = 30_000;
// At 3 GHz.
const READ: Cycle = 450;

/// Latencies to and from a controller, each another number.
#[derive(Clone, Copy)]
struct Paths {
    from_core: Cycle,
    to_core: Cycle,
    from_llc: Cycle,
    to_llc: Cycle,
    link_bytes: u64,
}

const PATHS: Paths = Paths { from_core: 70, to_core: 11, from_llc: 23, to_llc: 5, link_bytes: 16 };

impl Paths {
    fn down(self, from: Origin) -> Cycle {
        match from {
            Origin::Core(_) => self.from_core,
            Origin::Llc => self.from_llc,
            Origin::Controller => 0,
        }
    }

    fn up(self, to: Origin) -> Cycle {
        match to {
            Origin::Core(_) => self.to_core,
            Origin::Llc => self.to_llc,
            Origin::Controller => 0,
        }
    }

    /// Cycles of a message on a link.
    fn turn(self, bytes: u64) -> Cycle {
        bytes.div_ceil(self.link_bytes).max(1)
    }

    /// Cycles in which the answers to `count` actions of a kind that are asked for at once arrive, on a memory that serves all of
    /// them side by side.
    fn answers(self, kind: Kind, count: u64) -> Vec<Cycle> {
        let in_turn = |from, to, there, back, between| {
            let turn = if from == Origin::Controller { 0 } else { self.turn(there).max(self.turn(back)) };
            let first = self.down(from) + between + self.up(to);
            (0..count).map(|n| first + n * turn).collect()
        };
        match kind {
            Kind::Append(from, bytes) => in_turn(from, from, bytes, 0, 0),
            // Read by the controller, written by it.
            Kind::Copy(by) => in_turn(by, by, 0, 0, READ),
            Kind::Read(by) => in_turn(by, by, 0, 64, READ),
            Kind::Message(bytes) => in_turn(Origin::Core(CORE), Origin::Core(CORE), bytes, 0, 0),
            Kind::Clean => in_turn(Origin::Core(CORE), Origin::Core(CORE), 64, 0, 0),
            Kind::Restore => in_turn(Origin::Core(CORE), Origin::Core(CORE), 8, 0, 0),
            Kind::Scan => Vec::new(),
            Kind::Barrier => in_turn(Origin::Llc, Origin::Llc, 0, 0, 0),
        }
    }

    fn sets(self) -> Vec<String> {
        vec![
            format!("interconnect.core_to_controller_cycles={}", self.from_core),
            format!("interconnect.controller_to_core_cycles={}", self.to_core),
            format!("interconnect.memory_request_cycles={}", self.from_llc),
            format!("interconnect.memory_response_cycles={}", self.to_llc),
            format!("interconnect.controller_link_bytes={}", self.link_bytes),
            "pmem.controller.write_queue_entries=64".into(),
            "pmem.controller.read_queue_entries=64".into(),
            "pmem.media.banks=64".into(),
            // A channel on which lines do not meet.
            "pmem.media.bandwidth_mb_per_s=10000000".into(),
        ]
    }
}

fn variant() -> Variant {
    Variant {
        name: "sender",
        aliases: &[],
        hardware: ErasedDesign::of::<Sender>(),
        backend: Backend::MARKERS,
        interfaces: &[Interface::Transactions],
        domains: &[Domain::Adr, Domain::Eadr],
        promise: Promise::Immediate,
        control: false,
        summary: "",
        paper: "",
        assumptions: &[],
        locking: Locking::Nothing,
        path_faults: &[],
        equivalent_faults: &[],
    }
}

fn machine(domain: Domain, sets: &[String]) -> System {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), sets).unwrap();
    let plan = Plan::new(&config, &variant(), domain).unwrap();
    System::new(&config, &plan).unwrap()
}

/// Begins the transaction that sends `count` actions of a kind.
fn send(system: &mut System, kind: Kind, count: u64, at: Cycle) {
    let number = KINDS.iter().position(|other| *other == kind).expect("it is one of them") as u64;
    assert_eq!(system.tx_begin(CORE, TxId(100 * number + count), at), Outcome::Done(at));
}

fn answers(system: &System) -> Vec<Cycle> {
    let stats = system.stats();
    (0..).map_while(|n| stats.get(&format!("sender.answer_{n}"))).map(|cycle| cycle as Cycle).collect()
}

fn store(system: &mut System, addr: PhysAddr, data: u64, at: Cycle) -> Cycle {
    match system.store(CORE, &PendingStore::plain(addr, 8, data, None), at) {
        Outcome::Done(done) => done,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_kind_of_message_takes_the_latency_and_the_turns_of_the_table() {
    for link_bytes in [4, 16, 64] {
        let paths = Paths { link_bytes, ..PATHS };
        for kind in KINDS {
            for count in [1, 2, 7] {
                let mut system = machine(Domain::Adr, &paths.sets());
                if kind == Kind::Clean {
                    for n in 0..count {
                        store(&mut system, line_of(n), 1, 1000 * n);
                    }
                }
                send(&mut system, kind, count, T);
                system.drain_queues(T);
                while system.step_once(T + 100_000).is_some() {}
                let expected: Vec<Cycle> = paths.answers(kind, count).iter().map(|cycles| T + cycles).collect();
                // Media count picoseconds, which are rounded up.
                let found = answers(&system);
                let is_close = found.iter().zip(&expected).all(|(found, expected)| found - expected <= 1);
                assert!(
                    found.len() == expected.len() && is_close,
                    "{kind:?}, {link_bytes}: {found:?}, not {expected:?}"
                );
            }
        }
    }
}

/// The cycles in which queues of persistent memory have accepted writes.
#[derive(Clone, Default)]
struct Accepted(Arc<Mutex<Vec<Cycle>>>);

impl Observer for Accepted {
    fn event(&mut self, event: &PersistEvent, _: &System) -> bool {
        if event.kind == EventKind::QueueAccept {
            self.0.lock().unwrap().push(event.cycle);
        }
        true
    }
}

#[test]
fn a_scan_sends_a_line_from_where_its_newest_copy_is() {
    // A line in private caches has the path of a clean before it; one that the LLC alone has, that of an eviction.
    for (is_private, cycles) in [(true, PATHS.from_core), (false, PATHS.from_llc)] {
        let sets = [PATHS.sets(), vec!["llc.ways=16".into(), "llc.size_bytes=32768".into()]].concat();
        let mut system = machine(Domain::Adr, &sets);
        let mut now = store(&mut system, line_of(0), 1, 0);
        if !is_private {
            // Lines of its set push it out of the L1D and then of the L2.
            for n in 1..=10 {
                now = system.load(CORE, line_of(8 * n), 8, None, now + 1000).1;
            }
        }
        let accepted = Accepted::default();
        system.observe(Box::new(accepted.clone()));
        send(&mut system, Kind::Scan, 1, T);
        system.drain_queues(T);
        while system.step_once(T + 10_000).is_some() {}
        // The scan begins in the cycle after.
        assert_eq!(*accepted.0.lock().unwrap(), [T + 1 + cycles], "{is_private}");
    }
}

#[test]
fn a_line_that_the_last_level_evicts_takes_the_path_from_there() {
    let evicted_at = |from_llc: Cycle| {
        let mut system = machine(Domain::Adr, &Paths { from_llc, ..PATHS }.sets());
        let accepted = Accepted::default();
        system.observe(Box::new(accepted.clone()));
        let mut at = 0;
        // Lines of one set: the first one leaves when the LLC has room for no more.
        for n in 0..64 {
            at += 10_000;
            store(&mut system, line_of(8 * n), 1, at);
        }
        system.drain_queues(at);
        accepted.0.lock().unwrap()[0]
    };
    let at_once = evicted_at(0);
    for cycles in [1, 23, 400] {
        assert_eq!(evicted_at(cycles), at_once + cycles);
    }
}

#[test]
fn the_default_path_of_a_core_is_that_of_a_clean() {
    let mut system = machine(Domain::Adr, &[]);
    let done = store(&mut system, PMEM_BASE, 1, 0);
    let at = done + 10_000;
    system.cache_block(CORE, CacheBlockOp::Clean, PMEM_BASE.line(), at);
    let mut through = at;
    while let Outcome::Pending = system.fence(CORE, true, through) {
        through = system.wait_alone(CORE);
    }
    let Outcome::Done(fenced) = system.fence(CORE, true, through) else { panic!("nothing aborts") };
    let clean = fenced - at;
    // Look-ups of L1D, L2 and LLC, and one cycle for each level back.
    assert_eq!(clean, 2 + 8 + 30 + 3);
    send(&mut system, Kind::Append(Origin::Core(CORE), 64), 1, T);
    system.drain_queues(T);
    while system.step_once(T + 10_000).is_some() {}
    assert_eq!(answers(&system), [T + clean]);
}

#[test]
fn what_is_in_flight_is_seen_by_loads_and_lost_with_the_power_unless_caches_are_durable() {
    for (domain, survives) in [(Domain::Adr, false), (Domain::Eadr, true)] {
        let mut system = machine(domain, &PATHS.sets());
        send(&mut system, Kind::Append(Origin::Core(CORE), 8), 1, T);
        let found = |system: &System| system.crash_image(u64::MAX).0.read_u64(line_of(0)) != 0;
        assert_eq!(system.event_kinds()[EventKind::QueueAccept as usize], 0);
        assert_eq!(found(&system), survives, "{domain}");
        let (value, _) = system.load(CORE, line_of(0), 8, None, T + 1);
        assert_eq!(value, 0x0101_0101_0101_0101);
        system.step_once(T + PATHS.from_core);
        assert_eq!(system.event_kinds()[EventKind::QueueAccept as usize], 1, "its arrival is an event");
        assert!(found(&system));
    }
}

/// A line that the last level evicts, a short way from its controller, does not overtake what a core has sent before.
#[test]
fn writes_to_a_line_arrive_in_the_order_in_which_they_were_sent() {
    for jitter in [0, 1, 50, 400] {
        let mut sets = PATHS.sets();
        sets.extend([
            "interconnect.core_to_controller_cycles=400".into(),
            format!("interconnect.path_jitter_cycles={jitter}"),
            "pmem.controller.coalesce_writes=false".into(),
        ]);
        let mut system = machine(Domain::Adr, &sets);
        system.seed(7 + jitter);
        send(&mut system, Kind::Append(Origin::Core(CORE), 64), 5, T);
        send(&mut system, Kind::Append(Origin::Llc, 8), 5, T + 1);
        send(&mut system, Kind::Append(Origin::Controller, 64), 1, T + 2);
        let order = |system: &System| system.crash_image(u64::MAX).0.read_u64(line_of(0));
        assert_eq!(order(&system), 0, "the one without a path waits for those before it");
        system.drain_queues(T + 2);
        assert_eq!(system.stats().get("pmem.writes"), Some(11.0));
        assert_eq!(system.check_all_lines(), Ok(()));
    }
}

#[test]
fn a_barrier_is_acknowledged_after_all_that_was_sent_before() {
    let mut sets = PATHS.sets();
    sets.extend(["pmem.controllers=4".into(), "interconnect.path_jitter_cycles=300".into()]);
    let mut system = machine(Domain::Adr, &sets);
    system.seed(3);
    send(&mut system, Kind::Append(Origin::Core(CORE), 64), 40, T);
    send(&mut system, Kind::Barrier, 1, T + 1);
    let mut seen = 0;
    while answers(&system).len() < 44 {
        system.step_once(Cycle::MAX).expect("acknowledgements are in flight");
        seen = system.event_kinds()[EventKind::QueueAccept as usize];
    }
    assert_eq!(seen, 40, "one for each write, and none for what has no bytes");
    system.drain_queues(T + 100_000);
    assert_eq!(system.stats().get("pmem.writes"), Some(40.0));
    assert_eq!(system.stats().get("path.writes"), Some(40.0));
    assert_eq!(system.event_kinds()[EventKind::MediaWrite as usize], 40);
}

/// The clean waits until the other timer of its cycle has been processed.
#[test]
fn a_barrier_is_acknowledged_after_writes_of_earlier_events_of_its_cycle() {
    let mut system = machine(Domain::Adr, &PATHS.sets());
    store(&mut system, line_of(0), 1, 0);
    let accepted = Accepted::default();
    system.observe(Box::new(accepted.clone()));
    assert_eq!(system.tx_begin(CORE, CLEAN_THEN_BARRIER, T), Outcome::Done(T));
    while answers(&system).is_empty() {
        system.step_once(Cycle::MAX).expect("timers are due");
    }
    let cleaned = T + 10 + PATHS.from_core;
    assert_eq!(*accepted.0.lock().unwrap(), [cleaned]);
    assert!(answers(&system)[0] >= cleaned);
}

/// The controller of the source sends what it has read past the last level to the other one.
#[test]
fn a_copy_between_controllers_takes_the_path_of_both() {
    let mut sets = PATHS.sets();
    // The copy goes 64 lines further: to the other of two controllers.
    sets.extend(["pmem.controllers=2".into(), "pmem.interleave_bytes=4096".into()]);
    let mut system = machine(Domain::Adr, &sets);
    send(&mut system, Kind::Copy(Origin::Controller), 1, T);
    system.drain_queues(T);
    while system.step_once(T + 10_000).is_some() {}
    assert_eq!(answers(&system), [T + READ + PATHS.to_llc + PATHS.from_llc]);
}

#[test]
fn paths_that_cannot_be_are_refused_with_a_sentence() {
    for (set, field, words) in [
        ("controller_link_bytes=0", "interconnect.controller_link_bytes", "0 is not between 1 and 4096"),
        ("core_to_controller_cycles=100001", "interconnect.core_to_controller_cycles", "more than 100000 cycles"),
        ("controller_to_core_cycles=100001", "interconnect.controller_to_core_cycles", "more than 100000 cycles"),
        ("path_jitter_cycles=1000000", "interconnect.path_jitter_cycles", "more than 100000 cycles"),
    ] {
        let sets = [format!("interconnect.{set}")];
        let refused = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap_err();
        assert_eq!(refused.field, field);
        assert!(refused.problem.contains(words), "{refused}");
    }
}
