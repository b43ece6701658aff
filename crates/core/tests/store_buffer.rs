//! What happens to stores between their commit and their effect: forwarding, and aborts.

use durasim_core::{Control, Core, CoreConfig, Exit, Outcome, PendingStore, Port};
use durasim_isa::{Access, CacheBlockOp, Fault, FenceSet, Hart, Marker};
use durasim_types::{CoreId, Cycle, LineAddr, PhysAddr, TxId};

const CODE: u64 = 0x1000;
const DATA: u64 = 0x2000;

/// A memory whose lines are a thousand cycles away for stores and next to the core for loads.
#[derive(Default)]
struct Memory {
    code: Vec<u32>,
    stores: Vec<PendingStore>,
    loads: Vec<(PhysAddr, Cycle)>,
    /// The load that aborts the transaction, once.
    aborting: Option<PhysAddr>,
    abort: Option<(Cycle, u64)>,
    /// The store that is pending once, and when it may try again.
    refusing: Option<(PhysAddr, Cycle)>,
    resumes: Option<Cycle>,
    /// How many stores had left at each fence.
    stores_at_fence: Vec<usize>,
    begun: u64,
    committed: u64,
}

impl Port for Memory {
    fn translate(&mut self, addr: u64, _: Access) -> Result<PhysAddr, Fault> {
        Ok(PhysAddr(addr))
    }
    fn code(&mut self, _: CoreId, addr: PhysAddr) -> u16 {
        let at = (addr.0 - CODE) as usize;
        (self.code[at / 4] >> (8 * (at % 4))) as u16
    }
    fn fetch(&mut self, _: CoreId, _: LineAddr, at: Cycle) -> Cycle {
        at
    }
    fn load(&mut self, _: CoreId, addr: PhysAddr, _: u8, _: Option<TxId>, at: Cycle) -> (u64, Cycle) {
        self.loads.push((addr, at));
        if self.aborting == Some(addr) {
            self.aborting = None;
            self.abort = Some((at + 10, 0x200));
        }
        (0xabcd, at + 2)
    }
    fn take_abort(&mut self, _: CoreId) -> Option<(Cycle, u64)> {
        self.abort.take()
    }
    fn prefetch_own(&mut self, _: CoreId, _: LineAddr, _: Option<TxId>, at: Cycle) -> Cycle {
        at + 1000
    }
    fn store(&mut self, _: CoreId, store: &PendingStore, at: Cycle) -> Outcome {
        if let Some((_, resumes)) = self.refusing.take_if(|(addr, _)| *addr == store.addr) {
            self.resumes = Some(resumes);
            return Outcome::Pending;
        }
        self.stores.push(*store);
        Outcome::Done(at)
    }
    fn atomic(
        &mut self,
        _: CoreId,
        _: &PendingStore,
        _: bool,
        at: Cycle,
        _: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> (u64, Outcome) {
        (0, Outcome::Done(at))
    }
    fn cache_block(&mut self, _: CoreId, _: CacheBlockOp, _: LineAddr, at: Cycle) -> Cycle {
        at
    }
    fn reserve(&mut self, _: CoreId, _: LineAddr) {}
    fn take_reservation(&mut self, _: CoreId) -> Option<LineAddr> {
        None
    }
    fn fence(&mut self, _: CoreId, _: FenceSet, at: Cycle) -> Outcome {
        self.stores_at_fence.push(self.stores.len());
        Outcome::Done(at)
    }
    fn resumes_at(&mut self, _: CoreId) -> Option<Cycle> {
        self.resumes.take()
    }
    fn wait_alone(&mut self, _: CoreId) -> Cycle {
        self.resumes.take().expect("only a pending store waits")
    }
    fn cleans_outstanding(&self, _: CoreId) -> bool {
        false
    }
    fn new_tx(&mut self, _: CoreId) -> TxId {
        self.begun += 1;
        TxId(self.begun)
    }
    fn tx_begin(&mut self, _: CoreId, _: TxId, at: Cycle) -> Outcome {
        Outcome::Done(at)
    }
    fn tx_committing(&mut self, _: CoreId, _: TxId, at: Cycle) -> Cycle {
        at
    }
    fn tx_commit(&mut self, _: CoreId, _: TxId, at: Cycle) -> Outcome {
        self.committed += 1;
        Outcome::Done(at)
    }
    fn tx_abort(&mut self, _: CoreId, _: TxId, code: u8, at: Cycle) -> Outcome {
        Outcome::Aborted(at, code.into())
    }
    fn commits_retire_early(&self) -> bool {
        false
    }
    fn marker(&mut self, _: CoreId, _: Marker, _: u64, _: Cycle) -> Result<Control, Fault> {
        Ok(Control::Continue)
    }
    fn retired(&mut self, _: CoreId, _: u64, _: Cycle) {}
    fn time_ns(&self, at: Cycle) -> u64 {
        at
    }
    fn halted(&self) -> bool {
        false
    }
}

const ECALL: u32 = 0x73;
/// `li a0, 0`
const CLEAR_A0: u32 = 10 << 7 | 0x13;

const fn marker(marker: Marker) -> u32 {
    (marker as u32) << 20 | 2 << 12 | 0x13
}

/// `sd t0, offset(t1)`
const fn store(offset: u32) -> u32 {
    5 << 20 | 6 << 15 | 3 << 12 | offset << 7 | 0x23
}

/// `ld t2, offset(t1)`
const fn load(offset: u32) -> u32 {
    offset << 20 | 6 << 15 | 3 << 12 | 7 << 7 | 3
}

/// `bnez a0, 4 * instructions`, at most seven.
const fn branch_if_aborted(instructions: u32) -> u32 {
    (2 * instructions) << 8 | 10 << 15 | 1 << 12 | 0x63
}

fn run(memory: &mut Memory) -> Core {
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    hart.x[5] = 77;
    hart.x[6] = DATA;
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), hart);
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
    let mut core = Core::new(CoreId(0), &config, hart);
    assert_eq!(core.run(&mut memory, Cycle::MAX, 1000), Exit::SystemCall);
    assert_eq!((core.hart.x[7], core.stats().forwards), (77, 1));
}

/// A store that the port lets wait keeps its place; those behind it leave after it, and a fence waits for all.
#[test]
fn a_pending_store_is_made_again_in_its_order() {
    const FENCE: u32 = 0x0ff0_000f;
    let mut memory = Memory { code: vec![store(0), store(8), FENCE, ECALL], ..Memory::default() };
    memory.refusing = Some((PhysAddr(DATA), 5000));
    let core = run(&mut memory);
    assert_eq!(memory.stores.iter().map(|s| s.addr.0).collect::<Vec<_>>(), [DATA, DATA + 8]);
    assert!(core.cycle() > 5000, "the fence ended in {}", core.cycle());
    assert_eq!(memory.stores_at_fence, [2], "the fence has waited for the pending store and the one behind it");
}

/// A core does nothing that lies behind the cycle it may go to.
#[test]
fn a_core_stops_at_the_cycle_it_is_given() {
    let mut memory = Memory { code: vec![store(0), load(8), load(16), ECALL], ..Memory::default() };
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    (hart.x[5], hart.x[6]) = (77, DATA);
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), hart);
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
