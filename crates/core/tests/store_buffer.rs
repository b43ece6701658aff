//! Stores between their commit and their effect: forwarding, and aborts.

use crate::common::{CLEAR_A0, CODE, DATA, ECALL, Memory, branch_if_aborted, load, marker, store};
use durasim_core::{Core, CoreConfig, Exit};
use durasim_isa::{Hart, Marker};
use durasim_types::{CoreId, Cycle, PhysAddr};

fn run(memory: &mut Memory) -> Core {
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    hart.x[5] = 77;
    hart.x[6] = DATA;
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), 2, hart);
    assert_eq!(core.run(memory, Cycle::MAX, 1000), Exit::SystemCall);
    core
}

#[test]
fn a_load_takes_the_bytes_of_a_store_that_waits_for_its_line() {
    let mut memory = Memory { code: vec![store(0), load(0), load(8), ECALL], ..Memory::default() };
    let core = run(&mut memory);
    assert_eq!(core.stats().forwards, 1);
    assert_eq!(memory.loads.iter().map(|(addr, _)| addr.0).collect::<Vec<_>>(), [DATA + 8]);
    assert!(memory.loads[0].1 < 1000, "it does not wait for the store");
    assert_eq!((core.hart.x[7], memory.stores.len()), (0xabcd, 1));
    let mut memory = Memory { code: vec![store(0), load(0), ECALL], ..Memory::default() };
    assert_eq!(run(&mut memory).hart.x[7], 77);
}

/// The stores of the transaction wait in the buffer when a load, by what it evicts, aborts it.
#[test]
fn an_abort_by_a_load_takes_the_waiting_stores_with_it() {
    let code = vec![
        CLEAR_A0,
        marker(Marker::TxBegin),
        branch_if_aborted(5),
        store(0),
        store(8),
        load(64),
        marker(Marker::TxCommit),
        ECALL,
    ];
    let mut memory = Memory { code: code.clone(), aborting: Some(PhysAddr(DATA + 64)), ..Memory::default() };
    let core = run(&mut memory);
    assert_eq!(core.hart.x[10], 0x200, "the cause is in a0 at the begin");
    assert!(core.open_tx().is_none());
    assert_eq!((memory.stores.len(), memory.committed), (0, 0), "nothing of the transaction may follow");

    let mut memory = Memory { code, ..Memory::default() };
    assert_eq!(run(&mut memory).hart.x[10], 0);
    assert_eq!((memory.stores.len(), memory.committed), (2, 1));
}

/// More stores wait than a byte can count, all to one line.
#[test]
fn forwarding_works_from_a_large_buffer() {
    let mut code = vec![store(0); 300];
    code.extend([load(0), ECALL]);
    let mut memory = Memory { code, ..Memory::default() };
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    (hart.x[5], hart.x[6]) = (77, DATA);
    let config = CoreConfig { store_queue_entries: 1000, ..CoreConfig::default() };
    let mut core = Core::new(CoreId(0), &config, 2, hart);
    assert_eq!(core.run(&mut memory, Cycle::MAX, 1000), Exit::SystemCall);
    assert_eq!((core.hart.x[7], core.stats().forwards), (77, 1));
}

/// A store that the port lets wait keeps its place; those after it leave after it, and a fence waits for all.
#[test]
fn a_pending_store_is_made_again_in_its_order() {
    const FENCE: u32 = 0x0ff0_000f;
    let mut memory = Memory { code: vec![store(0), store(8), FENCE, ECALL], ..Memory::default() };
    memory.refusing = Some((PhysAddr(DATA), 5000));
    let core = run(&mut memory);
    assert_eq!(memory.stores.iter().map(|s| s.addr.0).collect::<Vec<_>>(), [DATA, DATA + 8]);
    assert!(core.cycle() > 5000, "the fence ended in {}", core.cycle());
    assert_eq!(memory.stores_at_fence, [2], "the fence has waited for the pending store and the one after it");
}

/// A core does nothing that lies after the cycle it may go to.
#[test]
fn a_core_stops_at_the_cycle_it_is_given() {
    let mut memory = Memory { code: vec![store(0), load(8), load(16), ECALL], ..Memory::default() };
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    (hart.x[5], hart.x[6]) = (77, DATA);
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), 2, hart);
    let mut stops = 0;
    loop {
        let until = core.next_cycle().expect("nothing is pending");
        match core.run(&mut memory, until, 1000) {
            Exit::Budget => stops += 1,
            exit => break assert_eq!(exit, Exit::SystemCall),
        }
        assert!(core.next_cycle().expect("nothing is pending") > until, "all that was due is done");
    }
    assert!(stops > 1);
    assert_eq!((memory.loads.len(), memory.stores.len()), (2, 1));
}
