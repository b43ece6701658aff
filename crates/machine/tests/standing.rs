//! A design that waits again and again for something that has already occurred: the machine says so and stops.

use durasim_core::Outcome;
use durasim_design::{
    Actions, Backend, CrashImage, Ctx, Design, Durability, ErasedDesign, Gate, Geometry, HardwareCost, Hooks,
    Interface, Laboratory, Promise, RecoveryCut, RecoveryReport, RegionRequest, Row, SpecError, Token, Wait,
};
use durasim_machine::{MachineConfig, Plan, System, presets};
use durasim_types::{CoreId, Domain, Error, Stats, TxId};

const CORE: CoreId = CoreId(0);

/// Lets no transaction commit before an acknowledgement, and does not see that it has come.
struct Stubborn;

impl Durability for Stubborn {
    fn tx_commit(&mut self, _: &Ctx, _: TxId, _: &mut Actions) -> Gate {
        Gate::Retry(Wait::Acked(Token(9)))
    }
    fn digest(&self, _: &mut dyn std::hash::Hasher) {}
    fn stats(&self, _: &mut Stats) {}
    fn reset_stats(&mut self) {}
    fn fork(&self) -> Box<dyn Durability> {
        Box::new(Stubborn)
    }
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
}

impl Design for Stubborn {
    const NAME: &'static str = "stubborn";
    const HOOKS: Hooks = Hooks::TX;
    type Spec = ();

    fn reserve(_: &(), _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }
    fn build(_: &(), _: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(Stubborn))
    }
    fn load(_: &(), _: &Geometry, _: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(Stubborn))
    }
    fn recover(_: &(), _: &Geometry, _: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(RecoveryReport::default())
    }
    fn cost(_: &(), _: &Geometry) -> HardwareCost {
        HardwareCost::default()
    }
}

#[test]
fn a_design_that_waits_for_what_has_come_is_stuck() {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &[]).unwrap();
    let row = Row {
        name: "stubborn",
        aliases: &[],
        hardware: ErasedDesign::of::<Stubborn>(),
        backend: Backend::Markers,
        interfaces: &[Interface::Transactions],
        domains: &[Domain::Adr],
        promise: Promise::Immediate,
        control: true,
        summary: "",
        paper: "",
        assumptions: &[],
        laboratory: &Laboratory::NONE,
    };
    let plan = Plan::new(&config, &row, Domain::Adr).unwrap();
    let mut system = System::new(&config, &plan).unwrap();
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
