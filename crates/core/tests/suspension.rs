//! Transactions that are suspended: to which transaction stores belong, and markers that stand where they cannot.

use crate::common::{CLEAR_A0, CODE, DATA, ECALL, Memory, branch_if_aborted, load, marker, store};
use durasim_core::{Core, CoreConfig, Exit, SuspensionFault, ThreadContext};
use durasim_isa::{Hart, Marker};
use durasim_types::{CoreId, Cycle, PhysAddr, TxId};

const BEGIN: u32 = marker(Marker::TxBegin);
const SUSPEND: u32 = marker(Marker::TxSuspend);
const RESUME: u32 = marker(Marker::TxResume);
const COMMIT: u32 = marker(Marker::TxCommit);
const ABORT: u32 = marker(Marker::TxAbort);
/// `amoadd.d t2, t0, (t1)`
const AMOADD: u32 = 5 << 20 | 6 << 15 | 3 << 12 | 7 << 7 | 0x2f;
/// `fence w, w`
const FENCE_W_W: u32 = 0x0110_000f;

fn hart() -> Hart {
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    (hart.x[5], hart.x[6]) = (77, DATA);
    hart
}

fn run(memory: &mut Memory) -> (Core, Exit) {
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), 2, hart());
    let exit = core.run(memory, Cycle::MAX, 1000);
    (core, exit)
}

fn exit(code: &[u32]) -> Exit {
    run(&mut Memory { code: [code, &[ECALL]].concat(), ..Memory::default() }).1
}

fn transactions(memory: &Memory) -> Vec<Option<u64>> {
    memory.stores.iter().map(|store| store.tx.map(|tx| tx.0)).collect()
}

#[test]
fn stores_between_the_two_belong_to_no_transaction() {
    let code = vec![CLEAR_A0, BEGIN, store(0), SUSPEND, store(8), AMOADD, RESUME, store(16), COMMIT, ECALL];
    let mut memory = Memory { code, ..Memory::default() };
    let (core, exit) = run(&mut memory);
    assert_eq!((exit, core.open_tx(), core.store_tx()), (Exit::SystemCall, None, None));
    assert_eq!(transactions(&memory), [Some(1), None, Some(1)]);
    assert_eq!(memory.atomics, [None], "an atomic operation is a store too");
    assert_eq!(memory.suspensions, [(TxId(1), true), (TxId(1), false)]);
    assert_eq!((memory.begun, memory.committed), (1, 1));
}

#[test]
fn both_parts_of_a_store_that_crosses_a_line_are_left_out() {
    let code = vec![CLEAR_A0, BEGIN, store(0), SUSPEND, store(0), RESUME, COMMIT, ECALL];
    let mut memory = Memory { code, ..Memory::default() };
    let mut hart = hart();
    hart.x[6] = DATA + 60;
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), 2, hart);
    assert_eq!(core.run(&mut memory, Cycle::MAX, 1000), Exit::SystemCall);
    assert_eq!(transactions(&memory), [Some(1), Some(1), None, None]);
}

#[test]
fn a_transaction_that_is_suspended_is_open() {
    let mut memory = Memory { code: vec![CLEAR_A0, BEGIN, SUSPEND, store(0), ECALL], ..Memory::default() };
    let (core, _) = run(&mut memory);
    assert_eq!((core.open_tx(), core.store_tx()), (Some(TxId(1)), None));
    assert_eq!(exit(&[CLEAR_A0, BEGIN, SUSPEND, BEGIN]), Exit::NestedTransaction);
    assert_eq!(exit(&[CLEAR_A0, BEGIN, SUSPEND, marker(Marker::TxCommitting), RESUME, COMMIT]), Exit::SystemCall);
}

#[test]
fn markers_at_wrong_places_are_distinguished() {
    let cases: [(&[u32], SuspensionFault); 8] = [
        (&[SUSPEND], SuspensionFault::NoTransaction),
        (&[CLEAR_A0, BEGIN, COMMIT, SUSPEND], SuspensionFault::NoTransaction),
        (&[CLEAR_A0, BEGIN, SUSPEND, SUSPEND], SuspensionFault::Nested),
        (&[RESUME], SuspensionFault::NotSuspended),
        (&[CLEAR_A0, BEGIN, RESUME], SuspensionFault::NotSuspended),
        (&[CLEAR_A0, BEGIN, SUSPEND, RESUME, RESUME], SuspensionFault::NotSuspended),
        (&[CLEAR_A0, BEGIN, SUSPEND, COMMIT], SuspensionFault::Ended),
        (&[CLEAR_A0, BEGIN, SUSPEND, ABORT], SuspensionFault::Ended),
    ];
    for (code, fault) in cases {
        assert_eq!(exit(code), Exit::Suspension(fault), "{code:x?}");
    }
    let mut sentences: Vec<String> = cases.iter().map(|(_, fault)| fault.describe("hercules")).collect();
    sentences.dedup();
    assert_eq!(
        sentences,
        [
            "a transaction is suspended although none is open",
            "a transaction is suspended that is suspended already",
            "a transaction resumes although none is suspended",
            "a transaction ends while it is suspended",
        ]
    );
}

#[test]
fn hardware_that_tracks_stores_refuses_both() {
    for code in [vec![CLEAR_A0, BEGIN, SUSPEND, ECALL], vec![RESUME, ECALL]] {
        let mut memory = Memory { code, without_suspension: true, ..Memory::default() };
        assert_eq!(run(&mut memory).1, Exit::Suspension(SuspensionFault::Unsupported));
        assert!(memory.suspensions.is_empty());
    }
    assert_eq!(SuspensionFault::Unsupported.describe("hercules"), "hercules has no suspended transactions");
}

#[test]
fn an_abort_from_elsewhere_ends_the_suspension() {
    let code = vec![CLEAR_A0, BEGIN, branch_if_aborted(4), SUSPEND, load(64), ECALL, store(0), ECALL];
    let mut memory = Memory { code, aborting: Some(PhysAddr(DATA + 64)), ..Memory::default() };
    let (core, exit) = run(&mut memory);
    assert_eq!((exit, core.hart.x[10]), (Exit::SystemCall, 0x200));
    assert_eq!((core.open_tx(), core.store_tx()), (None, None));
    assert_eq!(transactions(&memory), [None], "the store after the abort is outside of any");
    // The next transaction is not suspended.
    memory.code = vec![CLEAR_A0, BEGIN, store(0), COMMIT, ECALL];
    assert_eq!(run(&mut memory).1, Exit::SystemCall);
    assert_eq!(transactions(&memory), [None, Some(2)]);
}

/// `ECALL` leaves the core with an empty store buffer; the thread then goes elsewhere, or the core into a file.
#[test]
fn a_suspension_goes_with_its_thread_and_with_a_saved_core() {
    const FIRST: [u32; 5] = [CLEAR_A0, BEGIN, SUSPEND, store(0), ECALL];
    let code = [&FIRST[..], &[store(8), RESUME, store(16), COMMIT, ECALL]].concat();
    let finish = |memory: &mut Memory, mut core: Core| {
        memory.stores.clear();
        core.hart.pc = CODE + 4 * FIRST.len() as u64;
        assert_eq!(core.run(memory, Cycle::MAX, 1000), Exit::SystemCall);
        assert_eq!(transactions(memory), [None, Some(1)]);
    };
    let mut memory = Memory { code: code.clone(), ..Memory::default() };
    let (mut core, _) = run(&mut memory);
    let context: ThreadContext = {
        let bytes = postcard::to_stdvec(&core.take_context(&mut memory)).unwrap();
        postcard::from_bytes(&bytes).unwrap()
    };
    assert_eq!((core.open_tx(), core.store_tx()), (None, None), "the core is free of it");
    let mut other = Core::new(CoreId(1), &CoreConfig::default(), 2, Hart::default());
    other.put_context(context, 10_000);
    finish(&mut memory, other);

    let mut memory = Memory { code, ..Memory::default() };
    let (mut core, _) = run(&mut memory);
    let saved = postcard::to_stdvec(&core).unwrap();
    finish(&mut memory, postcard::from_bytes(&saved).unwrap());
    finish(&mut memory, core.fork());
}

#[test]
fn the_port_knows_of_fences_that_need_not_wait() {
    for (code, passed, waited) in [
        (vec![FENCE_W_W, ECALL], 1, 0),
        // It orders reads alone.
        (vec![0x0220_000f, ECALL], 0, 0),
        // A store before a load: it waits for the store buffer.
        (vec![store(0), 0x0120_000f, ECALL], 0, 1),
        (vec![store(0), FENCE_W_W, ECALL], 1, 0),
    ] {
        let mut memory = Memory { code, ..Memory::default() };
        assert_eq!(run(&mut memory).1, Exit::SystemCall);
        assert_eq!((memory.fences_passed, memory.stores_at_fence.len()), (passed, waited), "{:x?}", memory.code);
    }
}
