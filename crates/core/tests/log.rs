//! Log operations: log-load reads a block as a load does, log-flush leaves in order with stores.

use crate::common::{CODE, DATA, ECALL, Memory, branch_if_aborted, load, marker, store};
use durasim_core::{Core, CoreConfig, Exit, LogFlush};
use durasim_isa::{Hart, Marker, Stop};
use durasim_types::{CoreId, PhysAddr, TxId};

/// `log.load lr, (t1)`
const fn log_load(register: u32) -> u32 {
    6 << 15 | register << 7 | 0x2b
}

/// `log.flush lr`
const fn log_flush(register: u32) -> u32 {
    1 << 12 | register << 7 | 0x2b
}

fn run(code: Vec<u32>, without_log: bool) -> (Memory, Exit, Core) {
    let mut memory = Memory { code, without_log, ..Memory::default() };
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    hart.x[5] = 0x77;
    // In the middle of a block.
    hart.x[6] = DATA + 8;
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), 2, hart);
    let exit = core.run(&mut memory, u64::MAX, 1000);
    (memory, exit, core)
}

fn block(words: [u64; 4]) -> LogFlush {
    LogFlush { addr: PhysAddr(DATA), old: words, tx: None }
}

#[test]
fn a_block_is_loaded_and_flushed_in_order_with_stores() {
    let code = vec![store(24), log_load(3), log_flush(3), store(0), store(8), ECALL];
    let (memory, exit, core) = run(code, false);
    assert_eq!(exit, Exit::SystemCall);
    assert_eq!(memory.flushes.len(), 1);
    let (flush, stores_before, left) = memory.flushes[0];
    assert_eq!((flush, stores_before), (block([1, 2, 3, 4]), 1));
    assert!(left >= memory.store_cycles[0] && left <= memory.store_cycles[1]);
    let loaded: Vec<PhysAddr> = memory.loads.iter().map(|load| load.0).collect();
    assert_eq!(loaded, [PhysAddr(DATA)], "a block is one access");
    let registers = core.hart.log.as_ref().expect("one was loaded");
    assert_eq!((registers[3].addr, registers[3].old), (DATA, [1, 2, 3, 4]));
    assert_eq!(registers[0].addr, 0);
}

#[test]
fn a_block_has_the_bytes_of_stores_that_have_not_left() {
    // The line of a store is a thousand cycles away: it is in the store buffer when the block is loaded.
    let (memory, _, _) = run(vec![store(0), log_load(0), log_flush(0), ECALL], false);
    assert_eq!(memory.flushes[0].0, block([1, 0x77, 3, 4]));
    let (memory, _, _) = run(vec![log_load(0), store(0), log_flush(0), ECALL], false);
    assert_eq!(memory.flushes[0].0, block([1, 2, 3, 4]), "what is loaded before the store is the old content");
}

#[test]
fn without_a_log_the_operations_are_illegal() {
    for code in [log_load(0), log_flush(0)] {
        let (memory, exit, _) = run(vec![code, ECALL], true);
        assert_eq!(exit, Exit::AccessFault(Stop::NoLogOperations));
        assert!(memory.flushes.is_empty());
    }
}

const fn begin() -> u32 {
    marker(Marker::TxBegin)
}

fn run_with(memory: Memory) -> Memory {
    run_on(&CoreConfig::default(), memory)
}

fn run_on(config: &CoreConfig, memory: Memory) -> Memory {
    let mut memory = memory;
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    hart.x[5] = 0x77;
    hart.x[6] = DATA;
    let mut core = Core::new(CoreId(0), config, 2, hart);
    assert_eq!(core.run(&mut memory, u64::MAX, 1000), Exit::SystemCall);
    memory
}

#[test]
fn a_flush_leaves_ahead_of_stores_with_the_bytes_they_will_write() {
    let code = vec![store(24), log_load(0), log_flush(0), store(0), log_load(1), log_flush(1), ECALL];
    let memory = run_with(Memory { code, takes_early_from: Some(0), ..Memory::default() });
    // The line of the first store is a thousand cycles away.
    let before: Vec<usize> = memory.flushes.iter().map(|(_, stores, _)| *stores).collect();
    assert_eq!(before, [0, 0]);
    assert_eq!(
        [memory.flushes[0].0, memory.flushes[1].0],
        [block([1, 2, 3, 0x77]), block([0x77, 2, 3, 0x77])],
        "in order"
    );
    assert!(memory.flushes[0].2 < memory.flushes[1].2 && memory.flushes[1].2 < 200);
    assert_eq!(memory.stores.iter().map(|store| store.addr.0).collect::<Vec<_>>(), [DATA + 24, DATA]);
    assert!(memory.store_cycles[0] >= 1000);
}

#[test]
fn a_flush_that_is_refused_is_offered_again_and_leaves_in_order_at_the_latest() {
    let code = vec![store(24), log_load(0), log_flush(0), log_load(1), log_flush(1), store(0), ECALL];
    let memory = run_with(Memory { code: code.clone(), takes_early_from: Some(500), ..Memory::default() });
    let left: Vec<(usize, u64)> = memory.flushes.iter().map(|(_, stores, at)| (*stores, *at)).collect();
    assert_eq!(left, [(0, 500), (0, 501)]);
    let memory = run_with(Memory { code, ..Memory::default() });
    let before: Vec<usize> = memory.flushes.iter().map(|(_, stores, _)| *stores).collect();
    assert_eq!(before, [1, 1]);
}

#[test]
fn a_log_load_waits_for_a_register_from_which_a_flush_has_left() {
    let code = vec![store(24), log_load(0), log_flush(0), log_load(1), log_flush(1), store(0), ECALL];
    let with = |log_registers| {
        let config = CoreConfig { log_registers, ..CoreConfig::default() };
        run_on(&config, Memory { code: code.clone(), takes_early_from: Some(500), ..Memory::default() })
    };
    let loaded = |memory: &Memory| memory.loads.iter().map(|load| load.1).collect::<Vec<_>>();
    let (one, two) = (with(Some(1)), with(Some(2)));
    assert_eq!(one.flushes[0].2, 500);
    assert!(loaded(&one)[0] < 100 && loaded(&one)[1] >= 500, "{:?}", loaded(&one));
    assert!(loaded(&two)[1] < 100, "{:?}", loaded(&two));
    assert_eq!(two.flushes, with(None).flushes);
}

#[test]
fn a_flush_never_passes_the_begin_of_its_transaction() {
    let code = vec![store(24), begin(), log_load(0), log_flush(0), store(0), store(8), ECALL];
    let memory = run_with(Memory { code, takes_early_from: Some(0), ..Memory::default() });
    assert_eq!(memory.flushes_at_begin, [0]);
    let (flush, stores, left) = memory.flushes[0];
    assert_eq!((flush.tx, stores), (Some(TxId(1)), 1));
    assert!(left > memory.store_cycles[0]);
}

#[test]
fn flushes_of_a_transaction_that_is_aborted_do_not_leave() {
    let code = vec![begin(), branch_if_aborted(5), store(24), log_load(0), log_flush(0), load(128), ECALL, ECALL];
    let aborting = Some(PhysAddr(DATA + 128));
    let memory = run_with(Memory { code, aborting, takes_early_from: Some(500), ..Memory::default() });
    assert!(memory.flushes.is_empty() && memory.stores.is_empty());
}
