//! Messages, and queue entries that are held until their transaction commits.

mod staging;

use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant, snapshot};
use durasim_core::{Outcome, PendingStore};
use durasim_machine::{MachineConfig, Observer, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, EventKind, PersistEvent, PhysAddr, TxId};
use staging::{Arrived, Held, Staging};
use std::sync::{Arc, Mutex};

const CORE: CoreId = CoreId(0);

fn variant() -> Variant {
    Variant {
        name: "staging",
        aliases: &[],
        hardware: ErasedDesign::of::<Staging>(),
        backend: Backend::MARKERS,
        interfaces: &[Interface::Transactions],
        domains: &[Domain::Adr],
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

fn machine(sets: &[&str]) -> System {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, &variant(), Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

fn place(line: u64) -> PhysAddr {
    PMEM_BASE.plus(64 * line)
}

fn store(system: &mut System, line: u64, data: u64, tx: Option<TxId>, at: u64) -> u64 {
    let store = PendingStore::plain(place(line), 8, data, tx);
    match system.store(CORE, &store, at) {
        Outcome::Done(cycle) => cycle,
        aborted => panic!("{aborted:?}"),
    }
}

/// Number of lines of the first eight that an image holds the new value of.
fn at_home(system: &System) -> usize {
    let (image, complete) = system.crash_image(u64::MAX);
    complete.unwrap();
    (0..8).filter(|&line| image.read_u64(place(line)) == line + 1).count()
}

/// For each event, its kind and how many lines of the transaction are at home.
struct Homes(Arc<Mutex<Vec<(EventKind, usize)>>>);

impl Observer for Homes {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        self.0.lock().unwrap().push((event.kind, at_home(system)));
        true
    }
}

/// Commits, waiting for whatever the design waits for.
fn commit(system: &mut System, tx: TxId, at: Cycle) -> Outcome {
    let mut at = at;
    loop {
        match system.tx_commit(CORE, tx, at) {
            Outcome::Pending => at = system.wait_alone(CORE),
            outcome => return outcome,
        }
    }
}

#[test]
fn held_entries_wait_for_the_commit_and_reach_home_after_it() {
    let mut system = machine(&["pmem.controller.write_queue_entries=8"]);
    let homes = Arc::new(Mutex::new(Vec::new()));
    system.observe(Box::new(Homes(homes.clone())));
    let tx = system.new_tx();
    assert_eq!(system.tx_begin(CORE, tx, 10), Outcome::Done(10));
    let mut now = 10;
    for line in 0..4 {
        now = store(&mut system, line, line + 1, Some(tx), now + 1);
    }
    assert_eq!(homes.lock().unwrap().len(), 0, "nothing becomes durable before the commit");

    let Outcome::Done(committed) = commit(&mut system, tx, now) else { panic!("the commit was refused") };
    // The way of the flushes to the controller and of their acknowledgements back, then that of a message and its answer;
    // the flushes take turns on the link, a line of 64 bytes for four cycles.
    let (down, up, turns) = (2 + 8 + 30, 3, 3 * 4);
    assert_eq!(committed, now + turns + 2 * (down + up));
    let seen = homes.lock().unwrap().clone();
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(seen.iter().all(|&(kind, home)| kind == EventKind::QueueAccept && home == 0), "{seen:?}");
    assert_eq!(at_home(&system), 4, "released entries are ordinary ones, which the domain keeps");

    system.drain_queues(committed);
    let seen = homes.lock().unwrap().clone();
    assert_eq!(seen[4..].iter().filter(|(kind, _)| *kind == EventKind::MediaWrite).count(), 4);
    assert!(seen[4..].iter().all(|&(_, home)| home == 4), "{seen:?}");
    for line in 0..4 {
        assert_eq!(system.load(CORE, place(line), 8, None, committed + 10_000).0, line + 1);
    }
}

#[test]
fn a_power_failure_shows_what_the_queues_hold() {
    for controllers in [1, 3] {
        let sets: Vec<String> = vec![
            // Room for all of them: a queue full of held entries never drains, and the loads below would be stuck.
            "pmem.controller.write_queue_entries=16".into(),
            format!("pmem.controllers={controllers}"),
            "pmem.interleave_bytes=64".into(),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let mut system = machine(&sets);
        let tx = system.new_tx();
        system.tx_begin(CORE, tx, 0);
        // 12 lines of one set of the LLC, which has eight ways: some leave the caches before the commit.
        let mut now = 0;
        for n in 0..12 {
            now = store(&mut system, 8 * n, n + 1, Some(tx), now + 1);
        }
        system.drain_queues(now);
        let (image, _) = system.crash_image(u64::MAX);
        let held: Held = snapshot::from_bytes(image.structure("held").unwrap()).unwrap();
        let arrived: Arrived = snapshot::from_bytes(image.structure("arrived").unwrap()).unwrap();
        assert!(held.len() >= 4 && held.iter().all(|&(_, group, _)| group == tx.0), "{held:?}");
        for (controller, line) in held.iter().map(|&(controller, _, line)| (controller, line)).chain(arrived) {
            assert_eq!(u64::from(controller), (line - PMEM_BASE.line().0) % controllers);
        }
        assert!((0..12).all(|n| image.read_u64(place(8 * n)) == 0), "held entries are not in persistent memory");
        for n in 0..12 {
            assert_eq!(system.load(CORE, place(8 * n), 8, Some(tx), now + 50_000).0, n + 1, "held data serves loads");
        }
        assert!(system.error().is_none(), "{:?}", system.error());
    }
}

/// Groups belong to a controller: a release or an order to discard reaches the entries of that one alone.
#[test]
fn each_controller_releases_what_it_holds_when_its_message_comes() {
    let mut system = machine(&["pmem.controllers=4", "pmem.interleave_bytes=64"]);
    let tx = system.new_tx();
    system.tx_begin(CORE, tx, 10);
    let mut now = 10;
    for line in 0..8 {
        now = store(&mut system, line, line + 1, Some(tx), now + 1);
    }
    let homes = Arc::new(Mutex::new(Vec::new()));
    system.observe(Box::new(Homes(homes.clone())));
    let Outcome::Done(committed) = commit(&mut system, tx, now) else { panic!("the commit was refused") };
    system.drain_queues(committed);
    assert_eq!(at_home(&system), 8);
    let stats = system.stats();
    for controller in 0..4 {
        assert_eq!(stats.get(&format!("pmem.controller_{controller}.writes")), Some(2.0));
    }
    assert_eq!(stats.get("pmem.writes"), Some(8.0));
    assert!(homes.lock().unwrap().iter().any(|&(_, home)| home == 8));
}

#[test]
fn an_abort_gives_up_what_is_held() {
    for controllers in ["pmem.controllers=1", "pmem.controllers=8"] {
        an_abort_gives_up(machine(&[
            "pmem.controller.write_queue_entries=16",
            controllers,
            "pmem.interleave_bytes=64",
        ]));
    }
}

fn an_abort_gives_up(mut system: System) {
    let mut now = store(&mut system, 0, 77, None, 0);
    let tx = system.new_tx();
    system.tx_begin(CORE, tx, now);
    for n in 0..12 {
        now = store(&mut system, 8 * n, n + 1, Some(tx), now + 1);
    }
    let Outcome::Aborted(cycle, 9) = system.tx_abort(CORE, tx, 9, now) else { panic!("no abort") };
    now = cycle;
    for n in 0..12 {
        let expected = if n == 0 { 77 } else { 0 };
        assert_eq!(system.load(CORE, place(8 * n), 8, None, now).0, expected, "line {n}");
    }
}

/// Lines keep their tags when their transaction commits; nothing of it may be held once more.
#[test]
fn many_transactions_follow_each_other() {
    for controllers in ["pmem.controllers=1", "pmem.controllers=3"] {
        many_transactions(machine(&["pmem.controller.write_queue_entries=8", controllers, "pmem.interleave_bytes=64"]));
    }
}

fn many_transactions(mut system: System) {
    let mut now = 0;
    for round in 0..200u64 {
        let tx = system.new_tx();
        system.tx_begin(CORE, tx, now);
        for n in 0..4 {
            now = store(&mut system, (round * 7 + n * 8) % 96, round * 10 + n, Some(tx), now + 1);
        }
        let Outcome::Done(done) = commit(&mut system, tx, now) else { panic!("refused") };
        now = done;
        assert!(system.error().is_none(), "{:?}", system.error());
        for n in 0..4 {
            assert_eq!(system.load(CORE, place((round * 7 + n * 8) % 96), 8, None, now).0, round * 10 + n);
        }
    }
    system.drain_queues(now);
    assert!(system.error().is_none(), "{:?}", system.error());
}
