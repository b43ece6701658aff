//! A last level whose array has ports, and one whose write-back buffers outlast the write queues.

use durasim_core::{Outcome, PendingStore};
use durasim_machine::{MachineConfig, Observer, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PersistEvent, PhysAddr};

const T: Cycle = 30_000;

fn machine(domain: Domain, sets: &[&str]) -> System {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant("kiln").unwrap(), domain).unwrap();
    System::new(&config, &plan).unwrap()
}

fn line(n: u64) -> PhysAddr {
    PMEM_BASE.plus(64 * n)
}

fn store(system: &mut System, addr: PhysAddr, data: u64, at: Cycle) -> Cycle {
    let asked = system.store(CoreId(0), &PendingStore::plain(addr, 8, data, None), at);
    let Outcome::Done(done) = asked else { panic!("the store is held up") };
    done
}

fn survives(system: &System, addr: PhysAddr) -> u64 {
    let (image, complete) = system.crash_image(u64::MAX);
    assert_eq!(complete, Ok(()));
    image.read_u64(addr)
}

/// Two loads that find their lines in the last level, asked for in one cycle by two cores: when they are done, and when
/// a third one is, in whose way a line from memory is being written.
fn loads(pipelined: &str) -> [Cycle; 3] {
    let mut system = machine(
        Domain::NvLlc,
        &[
            "cores=2",
            "interconnect.inclusion=non-inclusive",
            "design.kiln.llc_size_factor=1",
            "design.kiln.llc_ports_per_core=1",
            &format!("design.kiln.llc_pipelined={pipelined}"),
            "l1d.size_bytes=256",
            "l2.size_bytes=256",
        ],
    );
    // Lines 0 to 3 come into the last level, and leave the small private caches for four others of their sets.
    let mut now = T;
    for n in [0, 1, 2, 3, 16, 17, 18, 19, 32, 33, 34, 35, 48, 49, 50, 51, 64, 65, 66, 67] {
        now = system.load(CoreId(0), line(n), 8, None, now).1 + 1000;
    }
    let at = now + 10_000;
    let begun = |system: &mut System, core, n| system.load(CoreId(core), line(n), 8, None, at).1 - at;
    [begun(&mut system, 0, 0), begun(&mut system, 1, 1), begun(&mut system, 1, 2)]
}

#[test]
fn look_ups_wait_for_a_port_that_others_keep() {
    let [first, second, third] = loads("reads");
    assert_eq!([second, third], [first, first + 1], "two ports, each with one look-up in a cycle");
    let [same, second, third] = loads("none");
    assert_eq!([same, second, third], [first, first, first + 40], "each look-up keeps its port for 40 cycles");
}

#[test]
fn write_back_buffers_keep_a_line_until_the_media_has_it() {
    struct Always;
    impl Observer for Always {
        fn event(&mut self, _: &PersistEvent, system: &System) -> bool {
            for n in 0..3 {
                let survivor = survives(system, line(64 * n));
                assert!([0, n + 1].contains(&survivor), "line {n} has {survivor}");
            }
            true
        }
    }
    let mut ended = Vec::new();
    for domain in [Domain::NvLlc, Domain::NvLlcMedia] {
        let mut system = machine(
            domain,
            &["cores=1", "design.kiln.llc_size_factor=1", "interconnect.write_back_buffers=1", "pmem.media.banks=1"],
        );
        system.observe(Box::new(Always));
        let mut now = T;
        // Dirty lines of one set of the last level, more than it has ways: the first ones go home.
        for n in 0..12 {
            now = store(&mut system, line(64 * n), n + 1, now) + 1;
        }
        let (queued, written) = (system.in_progress().contains(&"queued write"), system.stats().get("pmem.writes"));
        assert!(queued && written > Some(0.0), "{domain}: {written:?}");
        for n in 0..12 {
            // Those above the last level have not come down to it.
            assert!([0, n + 1].contains(&survives(&system, line(64 * n))), "{domain}, line {n}");
        }
        assert_eq!(survives(&system, line(0)), 1, "{domain}: what has left the last level survives");
        ended.push(now);
    }
    assert!(
        ended[1] > ended[0],
        "with one buffer a line waits until the media has written the one before it: {ended:?}"
    );
}
