//! Stores that persist: what enters the store buffer for them, what a fence waits for, and what waits for them.

use crate::common::{CODE, DATA, ECALL, Memory, load, store};
use durasim_core::{Core, CoreConfig, Exit, PersistentStores};
use durasim_isa::{CacheBlockOp, Hart, Stop};
use durasim_types::{CoreId, Cycle, LineAddr, PhysAddr, StoreKind};

const FENCE_W_W: u32 = 0x0110_000f;
const COMBINED: PersistentStores = PersistentStores::Combined { holds_commit: false };
const KINDS: [StoreKind; 3] = [StoreKind::Plain, StoreKind::Clean, StoreKind::CleanAndFence];

/// `persist.store t0, offset(t1)` of a doubleword.
const fn persist(offset: u32, kind: StoreKind) -> u32 {
    let funct7 = 1 << 6 | (kind as u32) << 3 | 3;
    funct7 << 25 | 5 << 20 | 6 << 15 | 3 << 12 | (offset / 8) << 7 | 0x0b
}

fn memory(code: Vec<u32>, stores: PersistentStores) -> Memory {
    Memory { code, persistent_stores: Some(stores), ..Memory::default() }
}

fn run_from(memory: &mut Memory, base: u64) -> Core {
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    (hart.x[5], hart.x[6]) = (0x1122_3344_5566_7788, base);
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), 2, hart);
    assert_eq!(core.run(memory, Cycle::MAX, 1000), Exit::SystemCall);
    core
}

fn run(memory: &mut Memory) -> Core {
    run_from(memory, DATA)
}

fn kinds(memory: &Memory) -> Vec<StoreKind> {
    memory.stores.iter().map(|store| store.kind).collect()
}

#[test]
fn where_stores_persist_in_one_they_leave_with_their_kind() {
    for kind in KINDS {
        let mut memory = memory(vec![persist(8, kind), ECALL], COMBINED);
        let core = run(&mut memory);
        let store = memory.stores[0];
        assert_eq!((store.addr, store.len, store.data), (PhysAddr(DATA + 8), 8, 0x1122_3344_5566_7788));
        assert_eq!((store.kind, store.checked, store.tx), (kind, false, None));
        assert_eq!((memory.stores.len(), memory.blocks.len(), core.stats().stores), (1, 0, 1));
        assert!(memory.stores_at_fence.is_empty());
        // Its line is not asked for ahead: request and write leave together.
        assert_eq!(memory.store_cycles[0] < 1000, kind != StoreKind::Plain);
    }
}

#[test]
fn elsewhere_a_clean_and_a_fence_of_their_own_follow() {
    for kind in KINDS {
        let mut together = memory(vec![persist(8, kind), ECALL], PersistentStores::Separate);
        run(&mut together);
        let cleans =
            if kind == StoreKind::Plain { vec![] } else { vec![(CacheBlockOp::Clean, LineAddr(DATA / 64), 1)] };
        assert_eq!((kinds(&together), &together.blocks), (vec![StoreKind::Plain], &cleans));
        assert_eq!(together.stores_at_fence.len(), usize::from(kind == StoreKind::CleanAndFence));
        assert!(together.store_cycles[0] > 1000, "its line is asked for ahead");
        let mut plain = memory(vec![persist(8, kind), ECALL], PersistentStores::Plain);
        run(&mut plain);
        assert_eq!((kinds(&plain), plain.blocks.len(), plain.stores_at_fence.len()), (vec![StoreKind::Plain], 0, 0));
    }
}

#[test]
fn a_store_that_crosses_a_line_persists_in_both_and_waits_once() {
    let code = |kind| vec![persist(56, kind), ECALL];
    let mut combined = memory(code(StoreKind::CleanAndFence), COMBINED);
    run_from(&mut combined, DATA + 5);
    let parts: Vec<_> = combined.stores.iter().map(|s| (s.addr.0, s.len, s.data, s.kind)).collect();
    let expected =
        [(DATA + 61, 3, 0x0066_7788, StoreKind::Clean), (DATA + 64, 5, 0x0011_2233_4455, StoreKind::CleanAndFence)];
    assert_eq!(parts, expected);
    let mut separate = memory(code(StoreKind::CleanAndFence), PersistentStores::Separate);
    run_from(&mut separate, DATA + 5);
    let lines: Vec<_> = separate.blocks.iter().map(|(_, line, stores)| (line.0 - DATA / 64, *stores)).collect();
    assert_eq!((lines, separate.stores_at_fence), (vec![(0, 2), (1, 2)], vec![2]));
}

#[test]
fn of_a_store_that_leaves_persistent_memory_the_part_within_persists_and_is_waited_for() {
    for (ordinary, expected) in
        [(1, [StoreKind::CleanAndFence, StoreKind::Plain]), (0, [StoreKind::Plain, StoreKind::CleanAndFence])]
    {
        let code = || vec![persist(56, StoreKind::CleanAndFence), ECALL];
        let ordinary_line = Some(LineAddr(DATA / 64 + ordinary));
        let mut combined = Memory { ordinary_line, ..memory(code(), COMBINED) };
        run_from(&mut combined, DATA + 5);
        assert_eq!(kinds(&combined), expected);
        let mut separate = Memory { ordinary_line, ..memory(code(), PersistentStores::Separate) };
        run_from(&mut separate, DATA + 5);
        assert_eq!((separate.blocks.len(), separate.stores_at_fence.len()), (2, 1));
    }
}

#[test]
fn a_fence_waits_for_such_a_store_and_for_no_plain_one() {
    for (kind, waited) in [(StoreKind::Plain, 0), (StoreKind::Clean, 1), (StoreKind::CleanAndFence, 1)] {
        let mut memory = memory(vec![persist(0, kind), FENCE_W_W, ECALL], COMBINED);
        run(&mut memory);
        assert_eq!((memory.stores_at_fence.len(), memory.fences_passed), (waited, 1 - waited as u64), "{kind:?}");
    }
}

#[test]
fn one_with_a_fence_holds_back_stores_and_nothing_else_unless_it_holds_its_commit() {
    for holds_commit in [false, true] {
        let code = vec![persist(0, StoreKind::CleanAndFence), store(8), load(128), ECALL];
        let mut memory = memory(code, PersistentStores::Combined { holds_commit });
        memory.refusing = Some((PhysAddr(DATA), 5000));
        run(&mut memory);
        assert_eq!(memory.stores.iter().map(|s| s.addr.0).collect::<Vec<_>>(), [DATA, DATA + 8]);
        assert!(memory.store_cycles[1] > 5000, "the next store leaves in {}", memory.store_cycles[1]);
        let (_, loaded) = memory.loads[0];
        // A held load issues so that it completes no earlier.
        assert_eq!(loaded > 4000, holds_commit, "the load begins in {loaded}");
    }
}

#[test]
fn the_time_of_one_with_a_fence_is_that_from_the_head_of_the_buffer_to_its_acknowledgement() {
    for stores in [COMBINED, PersistentStores::Combined { holds_commit: true }, PersistentStores::Separate] {
        for kind in KINDS {
            let mut memory = memory(vec![store(8), persist(0, kind), ECALL], stores);
            // The store in front waits long, which is no time of the other one.
            memory.refusing = Some((PhysAddr(DATA + 8), 5000));
            let core = run(&mut memory);
            let (count, cycles) = (core.stats().fenced_stores, core.stats().fenced_store_cycles);
            let is_fenced = kind == StoreKind::CleanAndFence;
            assert_eq!((count, cycles < 2000), (u64::from(is_fenced), true), "{stores:?} {kind:?}: {cycles}");
            memory = self::memory(vec![store(8), persist(0, kind), ECALL], stores);
            memory.refusing = Some((PhysAddr(DATA), 5000));
            let waited = run(&mut memory).stats().fenced_store_cycles;
            assert_eq!(waited > 3000, is_fenced, "{stores:?} {kind:?}: {waited}");
        }
    }
}

#[test]
fn loads_take_its_bytes_while_it_waits() {
    let mut memory = memory(vec![persist(0, StoreKind::CleanAndFence), load(0), ECALL], COMBINED);
    memory.refusing = Some((PhysAddr(DATA), 5000));
    let core = run(&mut memory);
    assert_eq!((core.hart.x[7], core.stats().forwards), (0x1122_3344_5566_7788, 1));
}

#[test]
fn without_checks_it_is_an_illegal_instruction() {
    let mut memory = Memory { code: vec![persist(0, StoreKind::Clean), ECALL], ..Memory::default() };
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), 2, Hart { pc: CODE, ..Hart::default() });
    assert_eq!(core.run(&mut memory, Cycle::MAX, 1000), Exit::AccessFault(Stop::NoCheckedAccesses));
    assert!(memory.stores.is_empty());
}
