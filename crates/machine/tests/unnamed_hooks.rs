//! Hooks that a design does not name are not called. The design of these tests panics in each hook that it has not named.

use durasim_contract::{
    AbortCause, Accept, Action, Actions, Arrival, Backend, CrashImage, Ctx, Departure, Design, Durability,
    ErasedDesign, Evict, Fill, FlushVerdict, Gate, Geometry, HardwareCost, Hooks, Interface, LevelId, LineTag, Load,
    LogBlock, Merge, Probe, Promise, RecoveryCut, RecoveryReport, RegionRequest, Request, SpecError, Stateful, Store,
    Token, Variant, kept,
};
use durasim_core::{LogFlush, Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, Line, LineAddr, PhysAddr, Stats, TxId};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

const NAMED: [(&str, Hooks); 18] = [
    ("TX", Hooks::TX),
    ("STORE", Hooks::STORE),
    ("LOAD", Hooks::LOAD),
    ("ATOMIC", Hooks::ATOMIC),
    ("ACCESS", Hooks::ACCESS),
    ("MERGE", Hooks::MERGE),
    ("VICTIM", Hooks::VICTIM),
    ("EVICT", Hooks::EVICT),
    ("FILL", Hooks::FILL),
    ("PROBE", Hooks::PROBE),
    ("ACCEPT", Hooks::ACCEPT),
    ("FENCE", Hooks::FENCE),
    ("FLUSH", Hooks::FLUSH),
    ("CONTEXT_SWITCH", Hooks::CONTEXT_SWITCH),
    ("LLC_REQUEST", Hooks::LLC_REQUEST),
    ("LOG", Hooks::LOG),
    ("READ", Hooks::READ),
    ("EVICT_PRIVATE", Hooks::EVICT_PRIVATE),
];

/// The hooks that were called.
type Called = Arc<Mutex<BTreeSet<&'static str>>>;

/// Says of each hook that it was called, and panics if it is not named. A store of a transaction tags its line.
#[derive(Clone)]
struct Witness {
    named: Hooks,
    called: Called,
}

impl Witness {
    fn called(&self, name: &'static str) {
        let (_, hook) = NAMED.iter().find(|(known, _)| *known == name).expect("a hook has a name");
        assert!(self.named.has(*hook), "{name} was called, which the design has not named");
        self.called.lock().unwrap().insert(name);
    }
}

impl Stateful for Witness {
    kept!();
}

impl Durability for Witness {
    fn tx_begin(&mut self, _: &Ctx, _: TxId, out: &mut Actions) -> Gate {
        self.called("TX");
        if self.named.has(Hooks::READ) {
            out.push(Action::Read { by: durasim_contract::Origin::Controller, at: PMEM_BASE, token: Token(1) });
        }
        Gate::Done
    }
    fn tx_commit(&mut self, _: &Ctx, _: TxId, _: &mut Actions) -> Gate {
        self.called("TX");
        Gate::Done
    }
    fn tx_abort(&mut self, _: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        self.called("TX");
        out.push(Action::InvalidateTagged(tx));
        Gate::Done
    }
    fn store(&mut self, _: &Ctx, store: &Store<'_>, tag: &mut LineTag, _: &mut Actions) -> Gate {
        self.called("STORE");
        if let Some(tx) = store.tx {
            *tag = LineTag(tx.0);
        }
        Gate::Done
    }
    fn log_flush(&mut self, _: &Ctx, _: &LogBlock, _: &mut Actions) -> Gate {
        self.called("LOG");
        Gate::Done
    }
    fn log_flush_early(&mut self, _: &Ctx, _: &LogBlock, _: &mut Actions) -> bool {
        self.called("LOG");
        false
    }
    fn load(&mut self, _: &Ctx, _: &Load, _: &mut LineTag, _: &mut Actions) -> Gate {
        self.called("LOAD");
        Gate::Done
    }
    fn atomic(&mut self, _: &Ctx, _: PhysAddr, _: &mut Actions) -> Gate {
        self.called("ATOMIC");
        Gate::Done
    }
    fn access(&mut self, _: &Ctx, _: LevelId, _: LineAddr, _: LineTag) -> Gate {
        self.called("ACCESS");
        Gate::Done
    }
    fn llc_request(&mut self, _: &Ctx, _: LineAddr) -> Gate {
        self.called("LLC_REQUEST");
        Gate::Done
    }
    fn merge(&mut self, _: LevelId, _: LineAddr, _: LineTag, _: LineTag) -> Merge {
        self.called("MERGE");
        Merge::Overwrite
    }
    fn victim(&mut self, _: LevelId, _: LineTag, _: bool, _: &[LineTag], _: &[u32]) -> Option<usize> {
        self.called("VICTIM");
        None
    }
    fn evict(&mut self, _: &Ctx, from: LevelId, _: LineAddr, _: LineTag, _: &Line, _: &mut Actions) -> Evict {
        self.called(if from == LevelId::Llc { "EVICT" } else { "EVICT_PRIVATE" });
        Evict::Proceed
    }
    fn fill(&mut self, _: &Ctx, _: LineAddr, _: Option<TxId>, _: &mut Actions) -> Fill {
        self.called("FILL");
        Fill::Home { search_cycles: 0, serial: false }
    }
    fn probe(&mut self, _: &Ctx, _: &Request, _: &mut Actions) -> Probe {
        self.called("PROBE");
        Probe::Grant
    }
    fn accept(&mut self, _: &Ctx, _: &Arrival, _: &mut Actions) -> Accept {
        self.called("ACCEPT");
        Accept::Queue { held: None }
    }
    fn drained(&mut self, _: &Ctx, _: &Departure, _: &mut Actions) {
        self.called("DRAINED");
    }
    fn read_done(&mut self, _: &Ctx, _: Token, _: PhysAddr, _: &Line, _: &mut Actions) {
        self.called("READ");
    }
    fn fence(&mut self, _: &Ctx, _: &mut Actions) -> Gate {
        self.called("FENCE");
        Gate::Done
    }
    fn flush(&mut self, _: &Ctx, _: LineAddr, _: LineTag, _: &mut Actions) -> FlushVerdict {
        self.called("FLUSH");
        FlushVerdict::Proceed
    }
    fn context_switch(&mut self, _: &Ctx, _: Option<TxId>, _: Option<TxId>, _: &mut Actions) -> Gate {
        self.called("CONTEXT_SWITCH");
        Gate::Done
    }
    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tag.0 == tx.0
    }
    fn stats(&self, _: &mut Stats) {}
}

/// The design that is built next on this thread of the test.
static NEXT: Mutex<Option<Witness>> = Mutex::new(None);

impl Design for Witness {
    const NAME: &'static str = "witness";
    const HOOKS: Hooks = Hooks::NONE;
    type Spec = ();

    fn reserve((): &(), _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }
    fn build((): &(), _: &Geometry) -> Result<impl Stateful, SpecError> {
        Ok(NEXT.lock().unwrap().clone().expect("a witness was chosen"))
    }
    fn recover((): &(), _: &Geometry, _: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(RecoveryReport::default())
    }
    fn cost((): &(), _: &Geometry) -> HardwareCost {
        HardwareCost::default()
    }
}

/// A machine with two cores under a design that names these hooks, and what it has called.
fn machine(named: Hooks) -> (System, Called) {
    let called = Called::default();
    *NEXT.lock().unwrap() = Some(Witness { named, called: called.clone() });
    let variant = Variant {
        name: "witness",
        aliases: &[],
        hardware: ErasedDesign { hooks: named, ..ErasedDesign::of::<Witness>() },
        backend: Backend::MARKERS,
        interfaces: &[Interface::Transactions],
        domains: &[Domain::Adr],
        promise: Promise::Immediate,
        control: true,
        summary: "",
        paper: "",
        assumptions: &[],
        locking: durasim_contract::Locking::Nothing,
        path_faults: &[],
        equivalent_faults: &[],
    };
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &["cores=2".to_owned()]).unwrap();
    let plan = Plan::new(&config, &variant, Domain::Adr).unwrap();
    (System::new(&config, &plan).unwrap(), called)
}

fn place(line: u64) -> PhysAddr {
    PMEM_BASE.plus(64 * line)
}

fn store(system: &mut System, core: CoreId, line: u64, tx: Option<TxId>, at: Cycle) -> Cycle {
    let store = PendingStore::plain(place(line), 8, line, tx);
    match system.store(core, &store, at) {
        Outcome::Done(cycle) | Outcome::Aborted(cycle, _) => cycle,
        Outcome::Pending => system.wait_alone(core),
    }
}

/// Requests of a program to the machine, on lines with and without tags, that fit the caches and that do not.
fn exercise(system: &mut System) {
    let (first, second) = (CoreId(0), CoreId(1));
    let mut now = 10;
    for tx in [None, Some(()), Some(())] {
        let tx = tx.map(|()| system.new_tx());
        if let Some(tx) = tx {
            assert_eq!(system.tx_begin(first, tx, now), Outcome::Done(now));
        }
        // Twice as many lines as all caches hold, some of them twice, so that versions meet one level down.
        for line in (0..160).flat_map(|line| [line, line / 2]) {
            now = store(system, first, line, tx, now + 1);
            now = system.load(first, place(line), 8, tx, now + 1).1;
        }
        if let Some(tx) = tx {
            let flush = LogFlush { addr: place(0), old: [0; 4], tx: Some(tx) };
            assert!(matches!(system.log_flush(first, &flush, now), Outcome::Done(_)));
            // The other core asks for lines of the open transaction.
            now = system.load(second, place(159), 8, None, now + 1).1;
            now = store(system, second, 158, None, now + 1);
            now = system.context_switch(first, Some(tx), Some(tx), now);
            match system.tx_commit(first, tx, now) {
                Outcome::Done(cycle) => now = cycle,
                other => panic!("{other:?}"),
            }
        }
        let word = PendingStore::plain(place(3), 8, 0, None);
        let (_, outcome) = system.atomic(first, &word, true, now, &mut |old| Some(old + 1));
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
        now = system.cache_block(first, CacheBlockOp::Clean, place(3).line(), now + 1);
        while system.fence(first, true, now) == Outcome::Pending {
            now = system.wait_alone(first);
        }
    }
    let tx = system.new_tx();
    assert_eq!(system.tx_begin(first, tx, now), Outcome::Done(now));
    now = store(system, first, 0, Some(tx), now + 1);
    assert!(matches!(system.tx_abort(first, tx, 1, now), Outcome::Aborted(_, 1)));
    system.drain_queues(now);
    system.crash_image(u64::MAX).1.unwrap();
    assert!(system.error().is_none(), "{:?}", system.error());
}

/// With no hook, with one at a time, with one beside the store that tags lines, and with all of them.
#[test]
fn hooks_that_a_design_does_not_name_are_not_called() {
    let (mut system, called) = machine(Hooks::NONE);
    exercise(&mut system);
    assert!(called.lock().unwrap().is_empty());
    for (name, hook) in NAMED {
        for others in [Hooks::NONE, Hooks::STORE, Hooks::TX.with(Hooks::STORE)] {
            let (mut system, _) = machine(hook.with(others));
            exercise(&mut system);
        }
        let (mut system, called) = machine(hook.with(Hooks::TX).with(Hooks::STORE));
        exercise(&mut system);
        assert!(called.lock().unwrap().contains(name), "the exercise never comes to {name}");
    }
    let all = NAMED.iter().fold(Hooks::NONE, |all, (_, hook)| all.with(*hook));
    let (mut system, called) = machine(all);
    exercise(&mut system);
    assert_eq!(called.lock().unwrap().len(), NAMED.len());
}
