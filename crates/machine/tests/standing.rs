//! A design that waits again and again for something that has already occurred: the machine says so and stops.

use durasim_contract::{
    Action, Actions, Backend, CrashImage, Ctx, Design, Durability, ErasedDesign, Gate, Geometry, HardwareCost, Hooks,
    Interface, Locking, Promise, RecoveryCut, RecoveryReport, RegionRequest, Signal, SpecError, Stateful, Token,
    Variant, Wait, kept,
};
use durasim_core::Outcome;
use durasim_machine::{MachineConfig, Plan, System, presets};
use durasim_types::{CoreId, Domain, Error, Stats, TxId};

const CORE: CoreId = CoreId(0);

/// Lets no transaction commit before an acknowledgement, and does not see that it has come.
#[derive(Clone)]
struct Stubborn;

impl Stateful for Stubborn {
    kept!();
}

impl Durability for Stubborn {
    fn tx_commit(&mut self, _: &Ctx, _: TxId, _: &mut Actions) -> Gate {
        Gate::Retry(Wait::Acked(Token(9)))
    }
    fn stats(&self, _: &mut Stats) {}
}

impl Design for Stubborn {
    const NAME: &'static str = "stubborn";
    const HOOKS: Hooks = Hooks::TX;
    type Spec = ();

    fn reserve(_: &(), _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }
    fn build(_: &(), _: &Geometry) -> Result<impl Stateful, SpecError> {
        Ok(Stubborn)
    }
    fn recover(_: &(), _: &Geometry, _: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(RecoveryReport::default())
    }
    fn cost(_: &(), _: &Geometry) -> HardwareCost {
        HardwareCost::default()
    }
}

fn system_with(hardware: ErasedDesign) -> System {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &[]).unwrap();
    let variant = Variant {
        name: "stubborn",
        aliases: &[],
        hardware,
        backend: Backend::MARKERS,
        interfaces: &[Interface::Transactions],
        domains: &[Domain::Adr],
        promise: Promise::Immediate,
        control: true,
        summary: "",
        paper: "",
        assumptions: &[],
        locking: Locking::Nothing,
        path_faults: &[],
        equivalent_faults: &[],
    };
    let plan = Plan::new(&config, &variant, Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

#[test]
fn a_design_that_waits_for_what_has_come_is_stuck() {
    let mut system = system_with(ErasedDesign::of::<Stubborn>());
    let tx = system.new_tx();
    assert_eq!(system.tx_begin(CORE, tx, 10), Outcome::Done(10));
    let mut at = 11;
    while !system.halted() {
        match system.tx_commit(CORE, tx, at) {
            Outcome::Pending => at = system.wait_alone(CORE),
            outcome => assert!(system.halted(), "{outcome:?}"),
        }
    }
    let Some(Error::Stuck { cycle: 11, what }) = system.error() else { panic!("{:?}", system.error()) };
    assert!(what.contains("already occurred"), "{what}");
}

/// Lets no thread leave its core before a signal, which a timer raises when it has been due this many times, 300 cycles apart.
#[derive(Clone)]
struct Periodic<const DUE_BEFORE_SIGNAL: u64> {
    due: u64,
}

impl<const DUE_BEFORE_SIGNAL: u64> Stateful for Periodic<DUE_BEFORE_SIGNAL> {
    kept!(due: u64);
}

impl<const DUE_BEFORE_SIGNAL: u64> Durability for Periodic<DUE_BEFORE_SIGNAL> {
    fn context_switch(&mut self, _: &Ctx, _: Option<TxId>, _: Option<TxId>, out: &mut Actions) -> Gate {
        out.push(Action::Timer { id: 1, after_cycles: 300 });
        Gate::After(Wait::Signal(Signal(7)))
    }
    fn woken(&mut self, _: &Ctx, id: u64, out: &mut Actions) {
        self.due = (self.due + 1).min(DUE_BEFORE_SIGNAL);
        // 0 is never reached from 1 on.
        if DUE_BEFORE_SIGNAL > 0 && self.due == DUE_BEFORE_SIGNAL {
            out.push(Action::Raise(Signal(7)));
        } else {
            out.push(Action::Timer { id, after_cycles: 300 });
        }
    }
    fn stats(&self, _: &mut Stats) {}
}

impl<const DUE_BEFORE_SIGNAL: u64> Design for Periodic<DUE_BEFORE_SIGNAL> {
    const NAME: &'static str = "stubborn";
    const HOOKS: Hooks = Hooks::TX.with(Hooks::CONTEXT_SWITCH);
    type Spec = ();

    fn reserve(_: &(), _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }
    fn build(_: &(), _: &Geometry) -> Result<impl Stateful, SpecError> {
        Ok(Self { due: 0 })
    }
    fn recover(_: &(), _: &Geometry, _: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(RecoveryReport::default())
    }
    fn cost(_: &(), _: &Geometry) -> HardwareCost {
        HardwareCost::default()
    }
}

#[test]
fn a_wait_in_which_timers_alone_go_on_and_change_nothing_is_stuck() {
    let mut system = system_with(ErasedDesign::of::<Periodic<0>>());
    system.context_switch(CORE, None, None, 10);
    let Some(Error::Stuck { what, .. }) = system.error() else { panic!("{:?}", system.error()) };
    assert!(what.contains("signal 7") && what.contains("change nothing"), "{what}");
}

#[test]
fn a_wait_that_a_timer_ends_after_a_long_time_is_not_stuck() {
    let mut system = system_with(ErasedDesign::of::<Periodic<5000>>());
    assert_eq!(system.context_switch(CORE, None, None, 10), 10 + 5000 * 300);
    assert!(system.error().is_none(), "{:?}", system.error());
}
