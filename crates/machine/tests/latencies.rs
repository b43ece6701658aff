//! Times of the memory system, each as probe, issue, not ready a cycle early, ready.
//!
//! The formula for a load that finds its line in a level: the latencies of all levels down to it, plus one response
//! cycle for each level on the way up. Memory adds its read latency and one response more. That is what gem5's classic
//! caches do with `tag_latency` on the way down and `response_latency` on the way up; their crossbars, which add a
//! cycle or two for each hop, have no counterpart here.

use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{DRAM_BASE, MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr};

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

fn machine(design: &str, domain: Domain, sets: &[&str]) -> System {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::row(design).unwrap(), domain).unwrap();
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
    let store = PendingStore { addr, len: 8, data: 1, tx: None };
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
        // A second load while the line is on its way gets it with the first, not a cycle earlier.
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
fn a_fence_behind_cleans_waits_for_the_domain() {
    let ack = DOWN + 3 * UP;
    // Accepted by the queue at once: the way down and up.
    assert_eq!(clean(&mut opt(Domain::Adr, &[]), 1), ack);
    assert_eq!(clean(&mut opt(Domain::Adr, &[]), 4), ack);
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
            assert_eq!(clean(&mut opt(Domain::Adr, &sets), lines), ack + waits, "{lines} lines, {entries} entries");
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
    // Nothing is on its way any more.
    system.cache_block(CORE, CacheBlockOp::Clean, PMEM_BASE.line(), first);
    assert_eq!(fence(&mut system, true, first), first);
}

#[test]
fn tagged_lines_of_hercules_answer_later() {
    let mut system = machine("hercules", Domain::Eadr, &[]);
    let tx = system.new_tx();
    let Outcome::Done(begun) = system.tx_begin(CORE, tx, T) else { panic!("refused") };
    let store = PendingStore { addr: PMEM_BASE, len: 8, data: 1, tx: Some(tx) };
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
    let mut system = machine("tc", Domain::NvTc, &[]);
    let tx = system.new_tx();
    system.tx_begin(CORE, tx, T);
    let store = PendingStore { addr: PMEM_BASE, len: 8, data: 1, tx: Some(tx) };
    let Outcome::Done(now) = system.store(CORE, &store, T) else { panic!("refused") };
    assert_eq!(system.tx_commit(CORE, tx, now), Outcome::Done(now + 50));
}
