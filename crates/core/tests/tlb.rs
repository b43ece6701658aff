//! TLBs of a core, against a memory that answers in two cycles and walks the page table in a hundred.

use crate::common::{CODE, DATA, ECALL, LATENCY, Memory, WALK, load, store};
use durasim_core::tlb::{TlbConfig, TlbLevelConfig, TlbStats};
use durasim_core::{Core, CoreConfig, Exit, StallPlace};
use durasim_isa::Hart;
use durasim_types::{CoreId, Cycle, PAGE_BYTES, StallCause};

const L2: Cycle = 10;
const PAGE: u64 = DATA / PAGE_BYTES;
const NOP: u32 = 0x13;
/// `ld t2, 0(a2)`, from the page after that of `load`.
const LOAD_NEXT_PAGE: u32 = 12 << 15 | 3 << 12 | 7 << 7 | 3;
/// `cbo.clean (t1)`
const CLEAN: u32 = 1 << 20 | 6 << 15 | 2 << 12 | 0xf;
/// `amoadd.d t2, t0, (t1)`
const AMO: u32 = 5 << 20 | 6 << 15 | 3 << 12 | 7 << 7 | 0x2f;

fn config(walkers: u32) -> TlbConfig {
    let level = |entries, ways, latency_cycles| TlbLevelConfig { entries, ways, latency_cycles };
    TlbConfig { l1: level(64, 4, LATENCY), l2: level(1024, 12, L2), walkers }
}

fn hart() -> Hart {
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    (hart.x[6], hart.x[12]) = (DATA, DATA + PAGE_BYTES);
    hart
}

fn run(tlbs: Option<&TlbConfig>, code: &[u32]) -> (Core, Memory) {
    let mut memory = Memory { code: code.to_vec(), ..Memory::default() };
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), LATENCY, hart());
    if let Some(tlbs) = tlbs {
        core = core.with_tlbs(tlbs, LATENCY, LATENCY);
    }
    assert_eq!(core.run(&mut memory, Cycle::MAX, 100_000), Exit::SystemCall);
    (core, memory)
}

fn stats(core: &Core) -> TlbStats {
    core.tlbs().unwrap().stats()
}

#[test]
fn an_access_that_misses_begins_after_the_second_tlb_and_the_walk() {
    let code = [load(0), load(8), load(64), ECALL];
    let (without, memory) = run(None, &code);
    let plain = memory.loads.clone();
    let (core, memory) = run(Some(&config(1)), &code);
    let fetched = L2 + WALK;
    let expected: Vec<_> = plain.iter().map(|(addr, at)| (*addr, at + fetched + L2 + WALK)).collect();
    assert_eq!(memory.loads, expected, "later loads of the page wait for the same walk");
    let walks: Vec<u64> = memory.walks.iter().map(|walk| walk.0 / PAGE_BYTES).collect();
    assert_eq!(walks, [CODE / PAGE_BYTES, PAGE]);
    assert_eq!(core.cycle(), without.cycle() + 2 * (L2 + WALK));
    let expected = TlbStats {
        data_accesses: 3,
        data_misses: 1,
        code_accesses: 1,
        code_misses: 1,
        walks: 2,
        walk_cycles: 2 * WALK,
        shoot_downs: 0,
    };
    assert_eq!(stats(&core), expected);
}

#[test]
fn walks_beyond_the_walkers_wait() {
    let begins = |walkers| {
        let (_, memory) = run(Some(&config(walkers)), &[load(0), LOAD_NEXT_PAGE, ECALL]);
        memory.walks[1..].iter().map(|walk| walk.1).collect::<Vec<_>>()
    };
    assert_eq!(begins(2)[1], begins(2)[0]);
    assert_eq!(begins(1)[1], begins(1)[0] + WALK);
}

#[test]
fn an_access_to_two_pages_needs_both_translations() {
    // Four bytes of the first page and four of the next one; t1 points to the first page.
    let across =
        |access: u32| [0x7fc << 20 | 6 << 15 | 6 << 7 | 0x13, 0x7fc << 20 | 6 << 15 | 6 << 7 | 0x13, access, ECALL];
    for access in [load(4), store(4)] {
        let (core, _) = run(Some(&config(1)), &across(access));
        assert_eq!((stats(&core).data_accesses, stats(&core).data_misses), (2, 2));
    }
}

#[test]
fn cycles_of_a_translation_are_counted_by_what_waits_for_it() {
    let places = [(load(0), StallPlace::Load), (store(0), StallPlace::Store), (CLEAN, StallPlace::Store)];
    for (access, place) in places.into_iter().chain([(AMO, StallPlace::Atomic)]) {
        let (core, _) = run(Some(&config(1)), &[NOP, access, NOP, ECALL]);
        let stalls = core.stats().stalls;
        let waited = stalls.of(place, StallCause::Translation);
        assert!((L2 + WALK - 1..=L2 + WALK).contains(&waited), "{place:?}: {stalls:?}");
        let total: u64 = StallPlace::ALL.iter().map(|&place| stalls.of(place, StallCause::Translation)).sum();
        assert_eq!(total, waited, "once");
        let (without, _) = run(None, &[NOP, access, NOP, ECALL]);
        assert_eq!(core.cycle(), without.cycle() + 2 * (L2 + WALK), "{place:?}");
    }
}

#[test]
fn a_load_after_a_store_that_waits_for_its_translation_takes_its_data() {
    let (core, memory) = run(Some(&config(1)), &[store(0), load(0), ECALL]);
    assert_eq!((core.stats().forwards, core.stats().order_violations), (1, 0));
    assert_eq!(memory.loads, []);
}

#[test]
fn translations_stay_when_threads_change_and_go_when_their_mappings_do() {
    let (mut core, mut memory) = run(Some(&config(1)), &[load(0), LOAD_NEXT_PAGE, ECALL]);
    let before = stats(&core).walks;
    let again = |core: &mut Core, memory: &mut Memory| {
        core.hart.pc = CODE;
        assert_eq!(core.run(memory, Cycle::MAX, 100_000), Exit::SystemCall);
        core.resume_after_system_call(0);
        stats(core).walks
    };
    core.resume_after_system_call(0);
    let context = core.take_context(&mut memory);
    let cycle = core.cycle();
    core.put_context(context, cycle);
    assert_eq!(again(&mut core, &mut memory), before, "threads share their address space");
    // Its own page, and others that are not cached.
    let changed = [PAGE..PAGE + 1, 2 * PAGE + 5..2 * PAGE + 9];
    core.mappings_changed(&changed, false);
    assert_eq!(again(&mut core, &mut memory), before + 1, "that of the other page stays");
    assert_eq!(stats(&core).shoot_downs, 2, "in both TLBs");
    let mut fork = core.fork();
    core.mappings_changed(&changed, false);
    assert_eq!(again(&mut fork, &mut memory), before + 1, "a fork keeps its own");
    core.reset_stats();
    assert_eq!(stats(&core), TlbStats::default());
}
