//! Times of the memory system, each as probe, issue, not ready a cycle early, ready.
//!
//! The formula for a load that finds its line in a level: the latencies of all levels down to it, plus one response
//! cycle for each level on the way up. Memory adds its read latency and one response more. That is what gem5's classic
//! caches do with `tag_latency` on the way down and `response_latency` on the way up. Their crossbars are
//! `request_cycles` for each level that a request leaves and two numbers for the way to memory and back; `tiny` has none.

use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{DRAM_BASE, MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, EventKind, PhysAddr};

const CORE: CoreId = CoreId(0);
// Of tiny, in cycles of 3 GHz.
const L1: Cycle = 2;
const L2: Cycle = 8;
const LLC: Cycle = 30;
const UP: Cycle = 1;
const PMEM_READ: Cycle = 450;
const PMEM_WRITE: Cycle = 300;
const DRAM_READ: Cycle = 150;
/// From the core to a controller.
const DOWN: Cycle = L1 + L2 + LLC;

/// Links that carry a line in a cycle: their turns are the subject of path.rs.
const WIDE_LINKS: &str = "interconnect.controller_link_bytes=64";

fn machine(design: &str, domain: Domain, sets: &[&str]) -> System {
    let sets: Vec<String> = sets.iter().chain(&[WIDE_LINKS]).map(|s| (*s).to_owned()).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant(design).unwrap(), domain).unwrap();
    System::new(&config, &plan).unwrap()
}

fn opt(domain: Domain, sets: &[&str]) -> System {
    machine("opt", domain, sets)
}

/// A time at which both the issue and the arrival at a controller are whole numbers of nanoseconds: no rounding.
const T: Cycle = 30_002;

fn load(system: &mut System, addr: PhysAddr, at: Cycle) -> Cycle {
    system.load(CORE, addr, 8, None, at).1
}

fn store(system: &mut System, addr: PhysAddr, at: Cycle) -> Cycle {
    let store = PendingStore::plain(addr, 8, 1, None);
    let Outcome::Done(done) = system.store(CORE, &store, at) else { panic!("aborted") };
    done
}

/// `n` lines that share their set in every cache.
fn same_set(base: PhysAddr, n: u64) -> PhysAddr {
    base.plus(n * 8 * 64)
}

#[test]
fn a_miss_takes_the_sum_of_its_way_and_a_hit_the_latency_of_its_level() {
    for (base, memory) in [(PMEM_BASE, PMEM_READ), (DRAM_BASE, DRAM_READ)] {
        let mut system = opt(Domain::Adr, &[]);
        assert_eq!((T + DOWN) % 3, 0, "no rounding");
        let ready = T + DOWN + memory + 3 * UP;
        assert_eq!(load(&mut system, base, T), ready);
        // A second load while the line is in flight gets it with the first, not a cycle earlier.
        assert_eq!(load(&mut system, base.plus(8), T + 1), ready);
        assert_eq!(load(&mut system, base, ready - L1), ready);
        assert_eq!(load(&mut system, base, ready - L1 + 1), ready + 1);
        assert_eq!(load(&mut system, base, ready + 100), ready + 100 + L1);
        // Four more lines of the set push it out of the L1D (and L2, which has four ways too), not out of the LLC.
        let mut now = ready + 1000;
        for n in 1..=4 {
            now = load(&mut system, same_set(base, n), now) + 1000;
        }
        assert_eq!(load(&mut system, base, now), now + L1 + L2 + LLC + 2 * UP);
    }
}

#[test]
fn a_hit_in_l2_takes_both_latencies() {
    // An L1D of one set of four ways; the lines fall into different sets of L2.
    let mut system = opt(Domain::Adr, &["l1d.size_bytes=256"]);
    let mut now = T;
    for n in 0..5 {
        now = load(&mut system, PMEM_BASE.plus(64 * n), now) + 1000;
    }
    assert_eq!(load(&mut system, PMEM_BASE, now), now + L1 + L2 + UP);
}

#[test]
fn the_miss_beyond_the_mshrs_waits_for_the_first_to_end() {
    let mut system = opt(Domain::Adr, &["l1d.mshrs=2", "pmem.media.banks=16"]);
    let line = |n: u64| PMEM_BASE.plus(64 * n);
    let first = load(&mut system, line(0), T);
    let second = load(&mut system, line(1), T);
    // Bank by bank, but one after the other over the channel: 64 bytes at 12.8 GB/s take 5 ns.
    assert_eq!((first, second), (T + DOWN + PMEM_READ + 3 * UP, first + 15));
    let third = load(&mut system, line(2), T);
    let arrived = first + DOWN - L1;
    // Picoseconds and cycles are both rounded up: a cycle more unless it arrives with a nanosecond.
    let rounding = Cycle::from(!arrived.is_multiple_of(3));
    assert_eq!(third, arrived + PMEM_READ + 3 * UP + rounding, "its register is free when the first miss ends");
    // A hit needs none.
    assert_eq!(load(&mut system, line(0), first), first + L1);
}

/// The cycle in which a fence is through.
fn fence(system: &mut System, orders_writes: bool, at: Cycle) -> Cycle {
    let mut at = at;
    loop {
        match system.fence(CORE, orders_writes, at) {
            Outcome::Done(done) => return done,
            Outcome::Pending => at = system.wait_alone(CORE),
            Outcome::Aborted(..) => panic!("no transaction is open"),
        }
    }
}

/// Makes lines dirty, cleans them all in one cycle, and waits for them with a fence.
fn clean(system: &mut System, lines: u64) -> Cycle {
    let mut now = T;
    for n in 0..lines {
        now = store(system, PMEM_BASE.plus(64 * n), now) + 1000;
    }
    let at = now + 100_000;
    let at = at + (3 - (at + DOWN) % 3) % 3;
    for n in 0..lines {
        assert_eq!(system.cache_block(CORE, CacheBlockOp::Clean, PMEM_BASE.plus(64 * n).line(), at), at);
    }
    fence(system, true, at) - at
}

#[test]
fn a_fence_after_cleans_waits_for_the_domain() {
    let ack = DOWN + 3 * UP;
    // Accepted by the queue at once: the way down and up.
    assert_eq!(clean(&mut opt(Domain::Adr, &[]), 1), ack);
    // Each takes its turn on the link.
    assert_eq!(clean(&mut opt(Domain::Adr, &[]), 4), ack + 3);
    // Durable already.
    assert_eq!(clean(&mut opt(Domain::Eadr, &[]), 4), 0);
    // Written by the media, too.
    assert_eq!(clean(&mut opt(Domain::Media, &[]), 1), ack + PMEM_WRITE);
    assert_eq!(clean(&mut opt(Domain::Media, &["pmem.media.banks=1"]), 3), ack + 3 * PMEM_WRITE);
}

#[test]
fn a_full_write_queue_accepts_a_write_when_the_oldest_has_left() {
    let ack = DOWN + 3 * UP;
    for entries in 1..=4u64 {
        let sets = [format!("pmem.controller.write_queue_entries={entries}"), "pmem.media.banks=1".into()];
        let sets = [sets[0].as_str(), sets[1].as_str()];
        for lines in 1..=8u64 {
            // An entry stays in the queue until the media has written it.
            let waits = lines.saturating_sub(entries) * PMEM_WRITE;
            let turns = if waits == 0 { lines - 1 } else { 0 };
            let took = clean(&mut opt(Domain::Adr, &sets), lines);
            assert_eq!(took, ack + waits + turns, "{lines} lines, {entries} entries");
        }
    }
}

#[test]
fn a_fence_that_orders_no_writes_waits_for_nothing() {
    let mut system = opt(Domain::Media, &[]);
    let now = store(&mut system, PMEM_BASE, T) + 1000;
    system.cache_block(CORE, CacheBlockOp::Flush, PMEM_BASE.line(), now);
    assert!(system.cleans_outstanding(CORE));
    assert_eq!(fence(&mut system, false, now), now);
    assert!(fence(&mut system, true, now) > now + PMEM_WRITE);
    assert!(!system.cleans_outstanding(CORE));
    let late = now + 100_000;
    assert_eq!(fence(&mut system, true, late), late);
}

#[test]
fn a_clean_of_a_clean_line_waits_for_the_write_before_it() {
    let mut system = opt(Domain::Media, &["pmem.media.banks=1"]);
    let now = store(&mut system, PMEM_BASE, T) + 100_000;
    let now = now + (3 - (now + DOWN) % 3) % 3;
    system.cache_block(CORE, CacheBlockOp::Clean, PMEM_BASE.line(), now);
    let first = fence(&mut system, true, now);
    assert_eq!(first, now + DOWN + PMEM_WRITE + 3 * UP);
    // Nothing is in flight any more: the controller says so.
    system.cache_block(CORE, CacheBlockOp::Clean, PMEM_BASE.line(), first);
    assert_eq!(fence(&mut system, true, first), first + DOWN + 3 * UP);
}

/// The second clean brings the acknowledgement of the first one, and writes nothing.
#[test]
fn a_second_clean_of_a_line_in_flight_is_no_event_and_no_write() {
    for (domain, written) in [(Domain::Adr, 0), (Domain::Media, PMEM_WRITE)] {
        let mut system = opt(domain, &["pmem.media.banks=1"]);
        let now = store(&mut system, PMEM_BASE, T) + 100_000;
        let now = now + (3 - (now + DOWN) % 3) % 3;
        for op in [CacheBlockOp::Clean, CacheBlockOp::Clean, CacheBlockOp::Flush] {
            system.cache_block(CORE, op, PMEM_BASE.line(), now);
        }
        let fenced = fence(&mut system, true, now);
        assert!((now + DOWN + written + 3 * UP..=now + DOWN + written + 3 * UP + 2).contains(&fenced), "{domain}");
        system.drain_queues(fenced);
        assert_eq!(system.event_kinds()[EventKind::QueueAccept as usize], 1, "{domain}");
        assert_eq!(system.event_kinds()[EventKind::MediaWrite as usize], 1, "{domain}");
        system.cache_block(CORE, CacheBlockOp::Clean, PMEM_BASE.line(), fenced + 10_000);
        let stats = system.stats();
        let count = |name: &str| stats.get(name).unwrap();
        assert_eq!((count("pmem.writes"), count("pmem.media_write_bytes"), count("path.writes")), (1.0, 64.0, 1.0));
        assert_eq!((count("cbo.cleans"), count("cbo.flushes"), count("cbo.invals")), (3.0, 1.0, 0.0));
        assert_eq!((count("cbo.lines_in_flight"), count("cbo.clean_lines")), (2.0, 1.0), "{domain}");
    }
}

#[test]
fn tagged_lines_of_hercules_answer_later() {
    let mut system = machine("hercules", Domain::Eadr, &[]);
    let tx = system.new_tx();
    let Outcome::Done(begun) = system.tx_begin(CORE, tx, T) else { panic!("refused") };
    let store = PendingStore::plain(PMEM_BASE, 8, 1, Some(tx));
    let Outcome::Done(now) = system.store(CORE, &store, begun) else { panic!("refused") };
    let now = now + 10_000;
    // 30 % of two cycles, rounded up.
    assert_eq!(system.load(CORE, PMEM_BASE, 8, Some(tx), now).1, now + L1 + 1);
    let Outcome::Done(committed) = system.tx_commit(CORE, tx, now + 100) else { panic!("refused") };
    assert_eq!(committed, now + 100 + 10, "ten cycles of the state reset");
    assert_eq!(load(&mut system, PMEM_BASE, committed), committed + L1);
}

#[test]
fn a_commit_of_tc_takes_the_write_of_its_cache() {
    // The array is busy with the store when the commit comes, unless it is pipelined.
    for (commit, pipelined, cycles) in [("early", false, 0), ("accepted", false, 100), ("accepted", true, 51)] {
        let sets = [format!("design.tc.commit={commit}"), format!("design.tc.pipelined={pipelined}")];
        let mut system = machine("tc", Domain::NvTc, &[&sets[0], &sets[1]]);
        let tx = system.new_tx();
        system.tx_begin(CORE, tx, T);
        let store = PendingStore::plain(PMEM_BASE, 8, 1, Some(tx));
        let Outcome::Done(now) = system.store(CORE, &store, T) else { panic!("refused") };
        assert_eq!(system.tx_commit(CORE, tx, now), Outcome::Done(now + cycles), "{commit}, {pipelined}");
    }
}

/// Latencies that `tiny` leaves at zero: cycles between levels on the way down, up, to memory and back.
#[derive(Clone, Copy)]
struct Links {
    request: Cycle,
    response: Cycle,
    to_memory: Cycle,
    from_memory: Cycle,
}

const LINKS: [Links; 3] = [
    Links { request: 0, response: 1, to_memory: 0, from_memory: 0 },
    Links { request: 1, response: 2, to_memory: 3, from_memory: 1 },
    Links { request: 7, response: 5, to_memory: 20, from_memory: 11 },
];

impl Links {
    /// `tiny` with these links, 2 GHz so that nothing is rounded, and queues that hold nothing up but what `sets` name.
    fn machine(self, design: &str, domain: Domain, sets: &[&str]) -> System {
        let own = [
            format!("interconnect.request_cycles={}", self.request),
            format!("interconnect.response_cycles={}", self.response),
            format!("interconnect.memory_request_cycles={}", self.to_memory),
            format!("interconnect.memory_response_cycles={}", self.from_memory),
        ];
        let wide = [
            "frequency_mhz=2000",
            "l1d.mshrs=1024",
            "l2.mshrs=1024",
            "llc.mshrs=1024",
            "llc.size_bytes=65536",
            "dram.media.banks=1024",
            "pmem.controller.read_queue_entries=1024",
            "pmem.media.banks=1024",
            "pmem.media.bandwidth_mb_per_s=10000000",
        ];
        let sets: Vec<&str> =
            wide.into_iter().chain(own.iter().map(String::as_str)).chain(sets.iter().copied()).collect();
        machine(design, domain, &sets)
    }

    fn down(self) -> Cycle {
        DOWN + 2 * self.request
    }

    /// To the last level and back.
    fn llc_trip(self) -> Cycle {
        self.down() + 3 * self.response
    }

    /// From the last level to memory and all the way up.
    fn memory(self) -> Cycle {
        self.to_memory + 2 * 150 + self.from_memory + 3 * self.response
    }
}

/// Of the persistent memory of [`Links::machine`], in cycles of 2 GHz.
const WRITE: Cycle = 200;

fn line(n: u64) -> PhysAddr {
    PMEM_BASE.plus(64 * n)
}

#[test]
fn every_level_takes_its_lookup_its_request_and_its_response() {
    for links in LINKS {
        let mut system = links.machine("opt", Domain::Adr, &["l1d.size_bytes=256", "l1i.size_bytes=256"]);
        let from_l2 = L1 + links.request + L2 + links.response;
        let from_llc = links.down() + 2 * links.response;
        assert_eq!(load(&mut system, line(0), T), T + links.down() + links.memory());
        let mut now = T;
        let mut after = |system: &mut System, lines: std::ops::Range<u64>| {
            for n in lines {
                now = load(system, line(n), now) + 1000;
            }
            now
        };
        // The L1D has four lines, the L2 has 32.
        let at = after(&mut system, 1..6);
        assert_eq!(load(&mut system, line(0), at), at + from_l2);
        let at = after(&mut system, 1..40);
        assert_eq!(load(&mut system, line(0), at), at + from_llc);
        // Code takes the same way, in an L1I of the same latency.
        let mut fetch = |n: u64, at: Cycle| system.fetch_code(CORE, line(n).line(), at) - at;
        let at = at + 10_000;
        assert_eq!(fetch(100, at), links.down() + links.memory());
        assert_eq!(fetch(100, at + 1000), L1);
        assert_eq!(fetch(0, at + 2000), from_l2);
        assert_eq!(fetch(3, at + 3000), from_llc);
    }
}

/// Loads of `count` lines that all issue at [`T`], and the cycles each takes.
fn loads_at_once(system: &mut System, lines: std::ops::Range<u64>, at: Cycle) -> Vec<Cycle> {
    lines.map(|n| load(system, line(n), at) - at).collect()
}

/// Cycles that the seven picoseconds of the fastest channel for a line may come to.
const ROUNDING: Cycle = 4;

/// As many as `at_once` are in service at a time, each for `hold` cycles. Requests to a controller that issue in one cycle
/// take turns on its link, `link` cycles each.
fn assert_in_turns(took: &[Cycle], at_once: u64, first: Cycle, hold: Cycle, link: Cycle, what: &str) {
    for (n, &cycles) in took.iter().enumerate() {
        let (round, place) = (n as u64 / at_once, n as u64 % at_once);
        let expected = first + round * hold + place * link;
        assert!((expected..=expected + ROUNDING).contains(&cycles), "{what}, load {n}: {cycles}, not {expected}");
    }
}

#[test]
fn misses_share_the_mshrs_of_each_level() {
    for links in LINKS {
        let alone = links.down() + links.memory();
        let below_l2 = LLC + links.memory();
        // A register is taken when the request has left the level, and free when the data is at the core.
        let below_l1d = L2 + links.request + below_l2;
        for (level, hold) in [("l1d", below_l1d), ("l2", below_l2), ("llc", links.memory())] {
            for registers in [1, 2, 5, 16] {
                let mut system = links.machine("opt", Domain::Adr, &[&format!("{level}.mshrs={registers}")]);
                let took = loads_at_once(&mut system, 0..30, T);
                assert_in_turns(&took, registers, alone, hold, 1, &format!("{registers} of {level}"));
            }
        }
        // Lines that the last level has: only the L2 and the L1D are asked for registers.
        let back = 2 * links.response;
        for (level, hold) in [("l1d", L2 + links.request + LLC + back), ("l2", LLC + back), ("llc", 0)] {
            let mut system = links.machine("opt", Domain::Adr, &[&format!("{level}.mshrs=3")]);
            loads_at_once(&mut system, 0..100, T);
            let took = loads_at_once(&mut system, 0..30, T + 100_000);
            let alone = links.down() + back;
            assert_in_turns(&took, if level == "llc" { 30 } else { 3 }, alone, hold, 0, level);
        }
    }
}

#[test]
fn lines_from_memory_follow_each_other_at_the_pace_of_the_channel() {
    for links in LINKS {
        // Cycles of 2 GHz for 64 bytes.
        for (bandwidth_mb_per_s, cycles) in [(1000, 128), (6400, 20), (12_800, 10), (32_000, 4), (64_000, 2)] {
            let set = format!("pmem.media.bandwidth_mb_per_s={bandwidth_mb_per_s}");
            let mut system = links.machine("opt", Domain::Adr, &[&set]);
            let took = loads_at_once(&mut system, 0..50, T);
            assert_eq!(took, (0..50).map(|n| links.down() + links.memory() + n * cycles).collect::<Vec<_>>());
        }
        // Without shared links the last level answers as many as ask.
        let mut system = links.machine("opt", Domain::Adr, &[]);
        loads_at_once(&mut system, 0..100, T);
        let took = loads_at_once(&mut system, 0..50, T + 100_000);
        assert_eq!(took, vec![links.down() + 2 * links.response; 50]);
    }
}

#[test]
fn reads_in_service_are_bound_by_banks_and_the_read_queue() {
    let links = LINKS[1];
    let alone = links.down() + links.memory();
    // Adjacent lines are in different banks.
    for at_once in [1, 2, 4, 8] {
        for set in ["pmem.media.banks", "pmem.controller.read_queue_entries"] {
            let mut system = links.machine("opt", Domain::Adr, &[&format!("{set}={at_once}")]);
            let took = loads_at_once(&mut system, 0..32, T);
            assert_in_turns(&took, at_once, alone, 300, 1, &format!("{set}={at_once}"));
        }
    }
}

#[test]
fn a_miss_waits_for_a_write_back_buffer_at_the_pace_of_the_media() {
    // The set of the LLC holds eight dirty lines; each of seven misses pushes one out, the next one when the one before
    // has its line. The queue holds one of them until the media has written it, as many as there are buffers wait after
    // it; the next one leaves the LLC when the first of them has moved on.
    for buffers in 1..=4u64 {
        let sets = [
            format!("interconnect.write_back_buffers={buffers}"),
            "pmem.controller.write_queue_entries=1".into(),
            "pmem.media.write_latency_ns=1000".into(),
            "llc.size_bytes=4096".into(),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let links = LINKS[0];
        let mut system = links.machine("opt", Domain::Adr, &sets);
        let mut now = T;
        for n in 0..8 {
            now = store(&mut system, same_set(PMEM_BASE, n), now) + 1000;
        }
        let at = now + 100_000;
        let miss = links.down() + 2 * 50 + 3 * links.response;
        // The media begin with the first one as soon as it is there.
        let (mut issued, first) = (at, at + links.down());
        for n in 0..7u64 {
            let moved_on = n.checked_sub(buffers).map_or(0, |writes| first + writes * 2000);
            let leaves = (issued + links.down()).max(moved_on);
            let done = load(&mut system, same_set(DRAM_BASE, n), issued);
            assert_eq!(done, leaves - links.down() + miss, "{buffers} buffers, load {n}");
            issued = done;
        }
    }
}

/// Cycles of cache-block operations on this many dirty lines, all in one cycle, and the fence after them.
fn blocks_and_fence(system: &mut System, op: CacheBlockOp, lines: u64) -> Cycle {
    let mut now = T;
    for n in 0..lines {
        now = store(system, line(n), now) + 1000;
    }
    let at = now + 100_000;
    for n in 0..lines {
        assert_eq!(system.cache_block(CORE, op, line(n).line(), at), at);
    }
    fence(system, true, at) - at
}

#[test]
fn a_cache_block_operation_costs_what_its_domain_waits_for() {
    for links in LINKS {
        let up = 3 * links.response;
        let queue = links.down() + links.to_memory + links.from_memory + up;
        for (design, domain, expected) in [
            ("opt", Domain::Adr, queue),
            ("opt", Domain::Media, queue + WRITE),
            ("tc", Domain::NvTc, queue + WRITE),
            ("opt", Domain::NvLlc, links.down() + up),
            ("opt", Domain::Eadr, 0),
            ("opt", Domain::Bbb, 0),
        ] {
            for op in [CacheBlockOp::Clean, CacheBlockOp::Flush] {
                for lines in [1, 4] {
                    let mut system = links.machine(design, domain, &[]);
                    let took = blocks_and_fence(&mut system, op, lines);
                    let turns = if expected >= queue && domain != Domain::NvLlc { lines - 1 } else { 0 };
                    let rounding = if lines > 1 && expected > queue { ROUNDING } else { 0 };
                    let bounds = expected + turns..=expected + turns + rounding;
                    assert!(bounds.contains(&took), "{domain} {op:?} {lines}: {took}");
                    // Afterwards the line is where the operation leaves it.
                    let at = T + 1_000_000;
                    let again = if op == CacheBlockOp::Clean { L1 } else { links.down() + links.memory() };
                    assert_eq!(load(&mut system, line(0), at) - at, again, "{domain} {op:?}");
                }
            }
        }
    }
}

#[test]
fn a_full_write_queue_accepts_writes_at_the_rate_of_the_media() {
    let links = LINKS[2];
    for (entries, banks) in [(1, 16), (2, 16), (4, 16), (16, 1), (16, 2), (16, 4), (64, 8)] {
        let sets = [
            format!("pmem.controller.write_queue_entries={entries}"),
            format!("pmem.media.banks={banks}"),
            "l1d.size_bytes=65536".to_owned(),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        for domain in [Domain::Adr, Domain::Media] {
            let took = |lines| blocks_and_fence(&mut links.machine("opt", domain, &sets), CacheBlockOp::Clean, lines);
            // As many are written at a time as the queue holds and the banks can serve.
            let at_once = entries.min(banks);
            let (rate, expected) = (took(256) - took(128), 128 / at_once * WRITE);
            assert!(rate.abs_diff(expected) <= ROUNDING, "{entries} entries, {banks} banks, {domain}: {rate}");
        }
    }
}

#[test]
fn a_clean_of_a_clean_line_makes_the_trip_to_what_knows_that() {
    for links in LINKS {
        let controller_trip = links.llc_trip() + links.to_memory + links.from_memory;
        for (answer, trip) in [("controller", controller_trip), ("llc", links.llc_trip())] {
            let answer = format!("interconnect.clean_line_answer={answer}");
            for op in [CacheBlockOp::Clean, CacheBlockOp::Flush] {
                let mut system = links.machine("opt", Domain::Adr, &[&answer]);
                // A line that has been written back, one that was only read, and one that no cache has.
                let mut now = store(&mut system, PMEM_BASE, T) + 10_000;
                system.cache_block(CORE, CacheBlockOp::Clean, PMEM_BASE.line(), now);
                now = fence(&mut system, true, now) + 10_000;
                now = load(&mut system, PMEM_BASE.plus(64), now) + 10_000;
                for n in 0..3 {
                    let line = PMEM_BASE.plus(64 * n).line();
                    assert_eq!(system.cache_block(CORE, op, line, now), now, "the next entry follows at once");
                    assert_eq!(fence(&mut system, true, now), now + trip, "{answer}, {op:?}, line {n}");
                    now += 10_000;
                }
                let stats = system.stats();
                assert_eq!(stats.get("path.writes"), Some(1.0), "{op:?}: nothing is written for them");
            }
        }
    }
    let mut system = LINKS[1].machine("opt", Domain::Eadr, &[]);
    let now = load(&mut system, PMEM_BASE, T) + 10_000;
    system.cache_block(CORE, CacheBlockOp::Clean, PMEM_BASE.line(), now);
    assert_eq!(fence(&mut system, true, now), now, "what is stored is durable");
}
