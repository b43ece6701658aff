//! The memory system without cores: when the journal learns that a store is durable, and that it is then.

use durasim_contract::{CrashImage, path_faults};
use durasim_core::{Outcome, PendingStore};
use durasim_crash::{ByteOracle, Verdict};
use durasim_isa::CacheBlockOp;
use durasim_machine::{MachineConfig, Observer, PMEM_BASE, Plan, PowerFailureOptions, System, presets};
use durasim_types::{
    CoreId, Cycle, DataRange, Domain, Journal, LineAddr, Pages, PersistEvent, PhysAddr, StoreKind, TxId, Write,
};
use std::sync::{Arc, Mutex};

const ADDR: PhysAddr = PMEM_BASE.plus(0x48);
const T: Cycle = 30_000;
/// The domains in which a fence after a clean makes data durable.
const FENCED: [Domain; 3] = [Domain::Adr, Domain::Media, Domain::NvLlc];
const A: u16 = 0;
const B: u16 = 1;

struct Judged {
    oracle: ByteOracle,
    /// The image of the last event.
    left: Option<CrashImage>,
    images: u64,
    wrong: Vec<String>,
}

impl Judged {
    fn judge(&mut self, pmem: &Pages) {
        self.images += 1;
        if let Verdict::Wrong(what) = self.oracle.judge(pmem) {
            self.wrong.push(what);
        }
    }
}

/// Journal and observer: each image is judged just before the next event, as in a campaign.
#[derive(Clone)]
struct Watch(Arc<Mutex<Judged>>);

impl Watch {
    fn with<T>(&self, act: impl FnOnce(&mut Judged) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    fn settle(&self) {
        self.with(|judged| {
            if let Some(left) = judged.left.take() {
                judged.judge(&left.pmem);
            }
        });
    }
}

impl Observer for Watch {
    fn event(&mut self, _: &PersistEvent, system: &System) -> bool {
        self.settle();
        self.with(|judged| {
            judged.left = Some(system.power_failure(&PowerFailureOptions::default()).image);
            for choice in 0..system.power_failure_choices().reorder {
                let reorder = PowerFailureOptions { reorder: Some(choice), ..PowerFailureOptions::default() };
                judged.judge(&system.power_failure(&reorder).image.pmem);
            }
        });
        true
    }
}

impl Journal for Watch {
    fn data_range(&mut self, range: DataRange) {
        self.with(|judged| judged.oracle.data_range(range));
    }
    fn begin(&mut self, tx: TxId) {
        self.with(|judged| judged.oracle.begin(tx));
    }
    fn store(&mut self, tx: Option<TxId>, write: Write) {
        self.with(|judged| judged.oracle.store(tx, write));
    }
    fn store_is_durable(&mut self, tx: Option<TxId>, write: Write) {
        self.with(|judged| judged.oracle.store_is_durable(tx, write));
    }
    fn cleaned(&mut self, core: CoreId, line: LineAddr) {
        self.with(|judged| judged.oracle.cleaned(core, line));
    }
    fn fenced(&mut self, core: CoreId) {
        self.with(|judged| judged.oracle.fenced(core));
    }
    fn committing(&mut self, tx: TxId) {
        self.with(|judged| judged.oracle.committing(tx));
    }
    fn acknowledged(&mut self, tx: TxId) {
        self.with(|judged| judged.oracle.acknowledged(tx));
    }
    fn aborted(&mut self, tx: TxId) {
        self.with(|judged| judged.oracle.aborted(tx));
    }
}

struct Machine {
    system: System,
    watch: Watch,
    now: Cycle,
}

impl Machine {
    fn new(domain: Domain) -> Self {
        Self::with(domain, |_| ())
    }

    fn with(domain: Domain, change: impl Fn(&mut Plan)) -> Self {
        let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &["cores=2".to_owned()]).unwrap();
        let mut plan = Plan::new(&config, durasim_designs::variant("opt").unwrap(), domain).unwrap();
        change(&mut plan);
        let mut system = System::new(&config, &plan).unwrap();
        let oracle = ByteOracle::new(Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20));
        let watch = Watch(Arc::new(Mutex::new(Judged { oracle, left: None, images: 0, wrong: Vec::new() })));
        system.keep_journal(Box::new(watch.clone()));
        system.observe(Box::new(watch.clone()));
        system.track_unfenced_cleans();
        system.declare_data(DataRange { base: PMEM_BASE, size_bytes: 4096 });
        Machine { system, watch, now: T }
    }

    fn store_in(&mut self, core: u16, tx: Option<TxId>, addr: PhysAddr, data: u64) {
        let store = PendingStore::plain(addr, 8, data, tx);
        let Outcome::Done(done) = self.system.store(CoreId(core), &store, self.now) else { panic!("it is held up") };
        self.now = done + 1;
    }

    fn store(&mut self, core: u16, addr: PhysAddr, data: u64) {
        self.store_in(core, None, addr, data);
    }

    fn block(&mut self, core: u16, op: CacheBlockOp, addr: PhysAddr) {
        self.now = self.system.cache_block(CoreId(core), op, addr.line(), self.now) + 1;
    }

    fn clean(&mut self, core: u16, addr: PhysAddr) {
        self.block(core, CacheBlockOp::Clean, addr);
    }

    /// A fence as a core makes it.
    fn fence(&mut self, core: u16) {
        let core = CoreId(core);
        if !self.system.cleans_outstanding(core) {
            self.system.fence_passes(core, self.now);
            return;
        }
        loop {
            match self.system.fence(core, true, self.now) {
                Outcome::Done(done) => break self.now = done + 1,
                Outcome::Pending => self.now = self.system.wait_alone(core),
                Outcome::Aborted(..) => panic!("nothing aborts"),
            }
        }
    }

    /// Whether memory with this word, and nothing else, is allowed.
    fn allows(&self, word: u64) -> bool {
        let mut pages = Pages::new(PMEM_BASE, 1 << 20);
        pages.write(ADDR, &word.to_le_bytes());
        self.watch.with(|judged| judged.oracle.judge(&pages) == Verdict::Right)
    }

    /// Checks the images at all events, and the one that a failure would leave now, against the promise; the number of
    /// images.
    fn keeps_its_promises(&mut self) -> u64 {
        self.system.drain_queues(self.now);
        self.watch.settle();
        let left = self.system.power_failure(&PowerFailureOptions::default()).image;
        self.watch.with(|judged| {
            judged.judge(&left.pmem);
            assert_eq!(judged.wrong, Vec::<String>::new());
            judged.images
        })
    }
}

#[test]
fn a_store_with_its_clean_is_promised_by_the_next_fence_and_one_with_a_fence_when_it_is_acknowledged() {
    for domain in FENCED {
        let mut machine = Machine::new(domain);
        let store = |machine: &mut Machine, data, kind| {
            let store = PendingStore { kind, ..PendingStore::plain(ADDR, 8, data, None) };
            let outcome = machine.system.store(CoreId(A), &store, machine.now);
            if let Outcome::Done(done) = outcome {
                machine.now = done + 1;
            }
            outcome
        };
        assert!(matches!(store(&mut machine, 7, StoreKind::Clean), Outcome::Done(_)));
        machine.fence(B);
        assert!(machine.allows(0) && machine.allows(7), "{domain}: its core has made no fence");
        machine.fence(A);
        assert!(!machine.allows(0) && machine.allows(7), "{domain}");
        while store(&mut machine, 8, StoreKind::CleanAndFence) == Outcome::Pending {
            assert!(machine.allows(7) && machine.allows(8), "{domain}: it is not acknowledged");
            machine.now = machine.system.wait_alone(CoreId(A));
        }
        assert!(!machine.allows(7) && machine.allows(8), "{domain}");
        assert!(machine.keeps_its_promises() > 2);
    }
}

#[test]
fn the_fence_after_a_clean_is_the_promise() {
    for domain in FENCED {
        for op in [CacheBlockOp::Clean, CacheBlockOp::Flush] {
            let mut machine = Machine::new(domain);
            machine.store(A, ADDR, 7);
            machine.fence(A);
            assert!(machine.allows(0), "{domain}: it is not cleaned");
            machine.block(A, op, ADDR);
            machine.fence(B);
            assert!(machine.allows(0) && machine.allows(7), "{domain}: its core has made no fence");
            machine.fence(A);
            assert!(!machine.allows(0) && machine.allows(7), "{domain} {op:?}");
            machine.store(A, ADDR, 8);
            assert!(machine.allows(7) && machine.allows(8), "{domain}: the next store is not covered");
            assert!(machine.keeps_its_promises() > 1);
        }
    }
}

#[test]
fn a_clean_without_a_fence_promises_nothing() {
    for domain in FENCED {
        let mut machine = Machine::new(domain);
        machine.store(A, ADDR, 7);
        machine.clean(A, ADDR);
        machine.system.drain_queues(T + 1_000_000);
        assert!(machine.allows(0), "{domain}: it is durable, but no fence has promised it");
        // Nor does the end of the program, where the machine waits for it.
        assert!(matches!(machine.system.await_cleans(CoreId(A), T + 1_000_000), Outcome::Done(_)));
        assert!(machine.allows(0), "{domain}");
        machine.fence(A);
        assert!(!machine.allows(0), "{domain}");
        machine.keeps_its_promises();
    }
}

#[test]
fn an_invalidation_is_no_clean() {
    let mut machine = Machine::new(Domain::Adr);
    machine.store(A, ADDR, 7);
    machine.block(A, CacheBlockOp::Inval, ADDR);
    machine.fence(A);
    assert!(machine.allows(0) && machine.allows(7));
    machine.keeps_its_promises();
}

#[test]
fn the_newest_bytes_of_all_cores_are_cleaned() {
    for domain in FENCED {
        let mut machine = Machine::new(domain);
        machine.store(A, ADDR, 7);
        machine.store(B, ADDR, 8);
        machine.clean(A, ADDR);
        machine.store(B, ADDR, 9);
        machine.fence(A);
        let allowed: Vec<u64> = (0..10).filter(|&word| machine.allows(word)).collect();
        assert_eq!(allowed, [8, 9], "{domain}");
        machine.keeps_its_promises();
    }
}

/// Core B finds the line clean, and its fence waits for the answer to that alone; what core A has sent may not be dropped any more.
#[test]
fn a_fence_covers_a_line_that_another_core_has_cleaned_before() {
    for domain in FENCED {
        let mut machine = Machine::new(domain);
        machine.store(A, ADDR, 7);
        machine.clean(A, ADDR);
        machine.now = machine.system.drain_queues(machine.now) + 1000;
        machine.clean(B, ADDR);
        assert!(
            machine.system.cleans_outstanding(CoreId(B)),
            "{domain}: a core cannot know that nothing newer is below"
        );
        machine.fence(B);
        assert!(!machine.allows(0), "{domain}");
        assert_eq!(machine.system.power_failure_choices().reorder, 1, "{domain}: nothing of it can be dropped");
        machine.store(A, ADDR.plus(64), 1);
        machine.clean(A, ADDR.plus(64));
        machine.keeps_its_promises();
    }
}

#[test]
fn a_thread_that_leaves_its_core_makes_a_fence() {
    let mut machine = Machine::new(Domain::Adr);
    machine.store(A, ADDR, 7);
    machine.clean(A, ADDR);
    assert!(machine.allows(0));
    machine.system.context_switch(CoreId(A), None, None, machine.now);
    assert!(!machine.allows(0));
    machine.keeps_its_promises();
}

#[test]
fn atomic_operations_and_the_kernel_store_too() {
    for domain in FENCED {
        let mut machine = Machine::new(domain);
        let place = PendingStore::plain(ADDR, 8, 0, None);
        let (_, outcome) = machine.system.atomic(CoreId(A), &place, true, machine.now, &mut |old| Some(old + 7));
        assert!(matches!(outcome, Outcome::Done(_)));
        machine.clean(A, ADDR);
        machine.fence(A);
        assert!(!machine.allows(0) && machine.allows(7), "{domain}");
        machine.system.write_newest(CoreId(A), ADDR, &8u64.to_le_bytes(), None, machine.now);
        assert!(machine.allows(7) && machine.allows(8), "{domain}");
        machine.clean(A, ADDR);
        machine.fence(A);
        assert!(!machine.allows(7) && machine.allows(8), "{domain}");
        machine.keeps_its_promises();
    }
}

#[test]
fn what_an_open_transaction_has_stored_is_not_promised_and_the_bytes_below_are() {
    let mut machine = Machine::new(Domain::Adr);
    let tx = machine.system.new_tx();
    machine.store(A, ADDR, 7);
    assert!(matches!(machine.system.tx_begin(CoreId(A), tx, machine.now), Outcome::Done(_)));
    machine.store_in(A, Some(tx), ADDR, 8);
    machine.clean(A, ADDR);
    machine.fence(A);
    assert!(machine.allows(7) && !machine.allows(8) && !machine.allows(0));
}

#[test]
fn a_store_is_durable_from_its_own_event_on_where_caches_survive() {
    for domain in [Domain::Eadr, Domain::Bbb] {
        let mut machine = Machine::new(domain);
        machine.store(A, ADDR, 1);
        assert!(!machine.allows(0) && machine.allows(1), "{domain}");
        for value in 2..6 {
            machine.store((value % 2) as u16, ADDR, value);
            assert!(!machine.allows(value - 1) && machine.allows(value), "{domain}");
        }
        machine.system.write_newest(CoreId(A), ADDR, &6u64.to_le_bytes(), None, machine.now);
        assert!(!machine.allows(5) && machine.allows(6), "{domain}");
        // The image of each event was judged before the event of the next store.
        assert!(machine.keeps_its_promises() > 6, "{domain}");
    }
}

#[test]
fn a_controller_that_acknowledges_too_early_is_caught_by_the_fence_alone() {
    for domain in [Domain::Adr, Domain::Media] {
        for fences in [true, false] {
            let mut machine = Machine::with(domain, |plan| {
                plan.geometry.planted = path_faults::ACKNOWLEDGED_ON_SENDING.fault();
            });
            for line in 0..4 {
                let addr = PMEM_BASE.plus(64 * line);
                machine.store(A, addr, 7);
                machine.clean(A, addr);
                if fences {
                    machine.fence(A);
                }
            }
            machine.system.drain_queues(machine.now);
            machine.watch.settle();
            let wrong = machine.watch.with(|judged| judged.wrong.len());
            assert_eq!(wrong > 0, fences, "{domain}: {wrong} images are wrong");
        }
    }
}
