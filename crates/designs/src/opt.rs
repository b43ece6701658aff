//! No durability hardware at all: the optimal, volatile machine that every design is compared with, and the hardware
//! under software logging.

use durasim_contract::{
    Backend, CommitRule, CrashImage, Design, Durability, ErasedDesign, Geometry, HardwareCost, Hooks, Interface,
    Locking, Promise, RecoveryCut, RecoveryReport, RegionRequest, SpecError, Stateful, Variant, kept,
};
use durasim_types::{Domain, Stats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const VARIANT: Variant = Variant {
    name: "opt",
    aliases: &["optimal", "volatile"],
    hardware: ErasedDesign::of::<Opt>(),
    backend: Backend::MARKERS,
    interfaces: &[Interface::Transactions, Interface::Objects],
    domains: &[Domain::Adr, Domain::Eadr, Domain::Media, Domain::Bbb, Domain::NvLlc],
    promise: Promise::Immediate,
    control: true,
    summary: "Plain write-back caches, no logging, no flush, no fence: the optimum, which loses data",
    paper: "Hercules (TECS 2023) OPT; TC (DAC 2017) Optimal; LAD (MICRO 2019) Volatile; P-INSPECT (MICRO 2020) baseline.op",
    assumptions: &[],
    locking: Locking::Nothing,
    path_faults: &[],
    equivalent_faults: &[],
};

/// No parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptSpec {}

/// A machine without a durability design.
pub struct Opt;

impl Design for Opt {
    const NAME: &'static str = "opt";
    const HOOKS: Hooks = Hooks::NONE;
    type Spec = OptSpec;

    fn reserve(_: &OptSpec, _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }

    fn build(_: &OptSpec, _: &Geometry) -> Result<impl Stateful, SpecError> {
        Ok(NoDurability)
    }

    fn recover(_: &OptSpec, _: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(recover_nothing(image))
    }

    fn cost(_: &OptSpec, _: &Geometry) -> HardwareCost {
        HardwareCost::default()
    }
}

/// Nothing to recover. Where caches are flushed, the platform says whether that was complete.
pub(crate) fn recover_nothing(image: &CrashImage) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    if image.dirty_shutdown {
        report.losses.push("the crash flush did not finish: the platform counts a dirty shutdown".into());
    }
    report
}

/// Hardware without any notion of durability.
#[derive(Clone)]
pub(crate) struct NoDurability;

impl Stateful for NoDurability {
    kept!();
}

impl Durability for NoDurability {
    /// Nothing waits where there is nothing to commit: the marker is a hint, as on any other machine.
    fn commit_rule(&self) -> CommitRule {
        CommitRule::Early
    }

    fn stats(&self, _: &mut Stats) {}
}
