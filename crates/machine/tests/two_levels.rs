//! Machines without an L2: their times, each as the sum of its parts, what they count and keep, and what L1Ds of few ways
//! hold. `latencies.rs` and `coherence_latencies.rs` have the same formulas with an L2 between the two levels.

use durasim_contract::LevelId;
use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{CopyLocation, DRAM_BASE, MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr};

const CORE: CoreId = CoreId(0);
const OTHER: CoreId = CoreId(1);
/// A time at which nothing is rounded: whole nanoseconds of a clock of 2 GHz.
const T: Cycle = 30_000;
// In cycles of 2 GHz: what `tiny` says of its levels, and the media of both memories below.
const L1: Cycle = 2;
const LLC: Cycle = 30;
const READ: Cycle = 2 * 150;
const WRITE: Cycle = 2 * 100;

/// Cycles between levels on the way down, up, to memory and back, and to another core.
#[derive(Clone, Copy, Debug)]
struct Links {
    request: Cycle,
    response: Cycle,
    to_memory: Cycle,
    from_memory: Cycle,
    snoop: Cycle,
}

const LINKS: [Links; 3] = [
    Links { request: 0, response: 1, to_memory: 0, from_memory: 0, snoop: 10 },
    Links { request: 1, response: 2, to_memory: 3, from_memory: 1, snoop: 0 },
    Links { request: 7, response: 5, to_memory: 20, from_memory: 11, snoop: 140 },
];

fn build(design: &str, domain: Domain, sets: &[String]) -> System {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant(design).unwrap(), domain).unwrap();
    System::new(&config, &plan).unwrap()
}

fn strings(sets: &[&str]) -> Vec<String> {
    sets.iter().map(|set| (*set).to_owned()).collect()
}

impl Links {
    /// `tiny` without an L2, with these links, and queues that hold nothing up but what `sets` name.
    fn machine(self, domain: Domain, sets: &[&str]) -> System {
        let wide = [
            "frequency_mhz=2000",
            "l2=none",
            "l1d.mshrs=1024",
            "llc.mshrs=1024",
            "llc.size_bytes=65536",
            "interconnect.controller_link_bytes=64",
            "dram.media.read_latency_ns=150",
            "dram.media.banks=1024",
            "dram.media.bandwidth_mb_per_s=10000000",
            "pmem.controller.read_queue_entries=1024",
            "pmem.media.banks=1024",
            "pmem.media.bandwidth_mb_per_s=10000000",
        ];
        let mut all = strings(&wide);
        all.push(format!("interconnect.request_cycles={}", self.request));
        all.push(format!("interconnect.response_cycles={}", self.response));
        all.push(format!("interconnect.memory_request_cycles={}", self.to_memory));
        all.push(format!("interconnect.memory_response_cycles={}", self.from_memory));
        all.push(format!("interconnect.snoop_cycles={}", self.snoop));
        all.extend(strings(sets));
        build("opt", domain, &all)
    }

    /// A request from its look-up in the L1D through that in the last level.
    fn down(self) -> Cycle {
        L1 + self.request + LLC
    }

    /// From the last level to memory and all the way up.
    fn memory(self) -> Cycle {
        self.to_memory + READ + self.from_memory + 2 * self.response
    }
}

fn load(system: &mut System, core: CoreId, addr: PhysAddr, at: Cycle) -> Cycle {
    system.load(core, addr, 8, None, at).1
}

fn store(system: &mut System, core: CoreId, addr: PhysAddr, data: u64, at: Cycle) -> Cycle {
    let store = PendingStore::plain(addr, 8, data, None);
    let Outcome::Done(done) = system.store(core, &store, at) else { panic!("no transaction is open") };
    done
}

fn line(n: u64) -> PhysAddr {
    PMEM_BASE.plus(64 * n)
}

/// The channels take some picoseconds for a line, which may come to a cycle.
fn assert_near(cycles: Cycle, expected: Cycle, what: &str) {
    assert!((expected..=expected + 1).contains(&cycles), "{what}: {cycles}, not {expected}");
}

#[test]
fn a_load_takes_the_look_ups_of_two_levels_and_memory() {
    for links in LINKS {
        for base in [PMEM_BASE, DRAM_BASE] {
            let mut system = links.machine(Domain::Adr, &["l1d.size_bytes=256", "l1i.size_bytes=256"]);
            let line = |n: u64| base.plus(64 * n);
            let ready = load(&mut system, CORE, line(0), T);
            assert_near(ready, T + links.down() + links.memory(), "memory");
            // A second load while the line is in flight gets it with the first, not a cycle earlier.
            assert_eq!(load(&mut system, CORE, line(0).plus(8), T + 1), ready);
            assert_eq!(load(&mut system, CORE, line(0), ready - L1), ready);
            assert_eq!(load(&mut system, CORE, line(0), ready - L1 + 1), ready + 1);
            let mut now = ready + 1000;
            // The L1D has four lines.
            for n in 1..6 {
                now = load(&mut system, CORE, line(n), now) + 1000;
            }
            let from_llc = links.down() + links.response;
            assert_eq!(load(&mut system, CORE, line(0), now), now + from_llc, "{links:?}");
            // Code takes the same way, in an L1I of the same latency.
            let mut fetch = |n: u64, at: Cycle| system.fetch_code(CORE, line(n).line(), at) - at;
            assert_near(fetch(100, now + 10_000), links.down() + links.memory(), "code from memory");
            assert_eq!(fetch(100, now + 20_000), L1);
            assert_eq!(fetch(3, now + 30_000), from_llc);
            assert_eq!(system.check_all_lines(), Ok(()));
        }
    }
}

#[test]
fn a_clean_passes_two_levels() {
    for links in LINKS {
        for (domain, beyond) in [(Domain::Adr, 0), (Domain::Media, WRITE)] {
            let mut system = links.machine(domain, &[]);
            let at = store(&mut system, CORE, line(0), 1, T).next_multiple_of(2) + 10_000;
            assert_eq!(system.cache_block(CORE, CacheBlockOp::Clean, line(0).line(), at), at);
            let mut done = at;
            while let Outcome::Pending = system.fence(CORE, true, done) {
                done = system.wait_alone(CORE);
            }
            let way = links.down() + links.to_memory + links.from_memory + 2 * links.response;
            assert_near(done - at, way + beyond, "clean");
        }
    }
}

#[test]
fn misses_share_the_registers_of_two_levels() {
    for links in LINKS {
        let alone = links.down() + links.memory();
        for (level, hold) in [("l1d", LLC + links.memory()), ("llc", links.memory())] {
            let mut system = links.machine(Domain::Adr, &[&format!("{level}.mshrs=1")]);
            let took: Vec<Cycle> = (0..4).map(|n| load(&mut system, CORE, line(n), T) - T).collect();
            for (n, &cycles) in took.iter().enumerate() {
                let expected = alone + n as Cycle * hold;
                assert!((expected..=expected + 8).contains(&cycles), "{level}, load {n}: {took:?}, {links:?}");
            }
        }
    }
}

#[test]
fn a_line_of_another_core_comes_by_way_of_the_last_level() {
    for links in LINKS {
        let mut system = links.machine(Domain::Adr, &[]);
        let transfer = links.down() + links.snoop + L1 + links.response;
        // The answer is a permission that goes all the way up, and is used there.
        let upgrade = links.down() + links.snoop + L1 + 2 * links.response + L1;
        store(&mut system, CORE, line(0), 0, 0);
        let mut at = T;
        for n in 1..20 {
            let (writer, reader) = if n % 2 == 0 { (CORE, OTHER) } else { (OTHER, CORE) };
            let done = store(&mut system, writer, line(0), n, at);
            assert_eq!(done - at, transfer, "a store takes it from the other writer");
            at = done + 50;
            let (value, done) = system.load(reader, line(0), 8, None, at);
            assert_eq!((value, done - at), (n, transfer), "a load takes a copy");
            at = done + 50;
            let done = store(&mut system, writer, line(0), n, at);
            assert_eq!(done - at, upgrade, "the writer takes the copy away");
            at = done + 50;
        }
        assert_eq!(system.check_all_lines(), Ok(()));
    }
}

#[test]
fn a_crossbar_stands_between_the_first_levels_and_the_last() {
    let links = LINKS[1];
    let mut system = links.machine(Domain::Adr, &["interconnect.topology=crossbar", "interconnect.link_width_bytes=8"]);
    let mut now = T;
    for n in 0..40 {
        now = load(&mut system, CORE, line(n), now) + 1000;
    }
    // The request takes a cycle of the bank's link, the line eight of the core's.
    let alone = links.down() + 1 + 8 + links.response;
    assert_eq!(load(&mut system, CORE, line(0), now), now + alone);
    assert_eq!(load(&mut system, CORE, line(1), now), now + alone + 8, "after the first line on the core's link");
}

/// A dirty line leaves the L1D for the last level: its buffer is taken for the way and the write there.
#[test]
fn a_miss_waits_for_the_buffer_of_the_dirty_line_before() {
    for links in LINKS {
        let sets = ["l1d.size_bytes=64", "l1d.ways=1", "interconnect.l1d_write_back_buffers=1"];
        let mut system = links.machine(Domain::Adr, &sets);
        let mut now = T;
        for n in [0, 1, 2, 0] {
            now = load(&mut system, CORE, line(n), now) + 1000;
        }
        store(&mut system, CORE, line(0), 1, now);
        let at = now + 1000;
        let hit = links.down() + links.response;
        assert_eq!(load(&mut system, CORE, line(1), at), at + hit);
        // Dirty before it is there: the next miss takes its place.
        store(&mut system, CORE, line(1), 1, at);
        assert_eq!(load(&mut system, CORE, line(2), at), at + links.request + LLC + hit, "{links:?}");
    }
}

#[test]
fn nothing_is_counted_or_kept_of_a_level_that_is_not_there() {
    for variant in durasim_designs::VARIANTS {
        for inclusion in ["inclusive", "non-inclusive"] {
            let inclusion = format!("interconnect.inclusion={inclusion}");
            let mut system = build(variant.name, variant.default_domain(), &strings(&["l2=none", &inclusion]));
            let tx = system.new_tx();
            let Outcome::Done(mut now) = system.tx_begin(CORE, tx, T) else { panic!("{}", variant.name) };
            for n in 0..6 {
                let store = PendingStore::plain(line(8 * n), 8, n, Some(tx));
                now += 1000;
                while let Outcome::Pending = system.store(CORE, &store, now) {
                    now = system.wait_alone(CORE);
                }
            }
            assert_eq!(system.check_all_lines(), Ok(()), "{}", variant.name);
            let stats = system.stats();
            let of_l2 = stats.0.iter().find(|(path, _)| path.split(['.', '_']).any(|part| part == "l2"));
            assert!(of_l2.is_none(), "{}: {of_l2:?}", variant.name);
            let copies = (0..6).flat_map(|n| system.copies(line(8 * n).line()));
            assert!(!copies.into_iter().any(|c| matches!(c.place, CopyLocation::Cache(LevelId::L2, _))));
            system.marks(&mut |mark| assert!(!mark.contains("l2"), "{}: {mark}", variant.name));
            let plan = plan(variant.name, variant.default_domain(), &strings(&["l2=none"]));
            let cost = (variant.hardware.cost)(&plan.spec, &plan.geometry).unwrap();
            let of_l2 = cost.structures.iter().find(|s| s.name.contains("l2") || s.name.contains("L2"));
            assert!(of_l2.is_none(), "{}: {of_l2:?}", variant.name);
        }
    }
}

fn plan(design: &str, domain: Domain, sets: &[String]) -> Plan {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), sets).unwrap();
    Plan::new(&config, durasim_designs::variant(design).unwrap(), domain).unwrap()
}

/// An inclusive last level takes data and code away from above; another one does not.
#[test]
fn an_inclusive_last_level_takes_its_lines_from_the_first_levels() {
    for (inclusion, hits) in [("inclusive", false), ("non-inclusive", true)] {
        let inclusion = format!("interconnect.inclusion={inclusion}");
        let sets = ["l2=none", "llc.ways=4", "llc.size_bytes=256", &inclusion];
        let mut system = build("opt", Domain::Adr, &strings(&sets));
        let mut now = load(&mut system, CORE, line(0), T) + 1000;
        now = system.fetch_code(CORE, line(1).line(), now) + 1000;
        // Of the other core: the last level has one set of four ways.
        for n in 2..6 {
            now = load(&mut system, OTHER, line(n), now) + 1000;
        }
        assert_eq!(load(&mut system, CORE, line(0), now) == now + L1, hits);
        let now = now + 10_000;
        assert_eq!(system.fetch_code(CORE, line(1).line(), now) == now + L1, hits);
        assert_eq!(system.check_all_lines(), Ok(()));
    }
}

/// The ways of an L1D that Hercules uses have to exist.
#[test]
fn hercules_takes_no_way_of_an_l1d_that_has_one() {
    let refusal = |sets: &[&str]| {
        let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &strings(sets)).unwrap();
        let plan = Plan::new(&config, durasim_designs::variant("hercules").unwrap(), Domain::Eadr).unwrap();
        System::new(&config, &plan).err().map(|e| e.to_string())
    };
    let refused = refusal(&["l1d.ways=1", "l1d.size_bytes=1024"]).unwrap();
    assert!(refused.starts_with("design.hercules.l1d_missing_way_period: a set of an L1D of one way"), "{refused}");
    assert_eq!(refusal(&["l1d.ways=1", "design.hercules.l1d_missing_way_period=0"]), None);
    assert_eq!(refusal(&["l1d.ways=2"]), None);
}
