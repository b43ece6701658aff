//! No durability hardware at all: the optimal, volatile machine that every design is compared with, and the hardware
//! under software logging.

use durasim_contract::{
    Backend, CommitRule, CrashImage, Design, Durability, ErasedDesign, Geometry, HardwareCost, Hooks, Interface,
    Locking, Promise, RecoveryCut, RecoveryReport, RegionRequest, SpecError, Variant, snapshot,
};
use durasim_types::{Domain, Stats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

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

    fn build(_: &OptSpec, _: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(NoDurability))
    }

    fn load(spec: &OptSpec, geometry: &Geometry, bytes: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        let () = snapshot::from_bytes(bytes)?;
        Opt::build(spec, geometry)
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
pub(crate) struct NoDurability;

impl Durability for NoDurability {
    /// Nothing waits where there is nothing to commit: the marker is a hint, as on any other machine.
    fn commit_rule(&self) -> CommitRule {
        CommitRule::Early
    }

    fn digest(&self, _: &mut dyn Hasher) {}

    fn stats(&self, _: &mut Stats) {}

    fn reset_stats(&mut self) {}

    fn fork(&self) -> Box<dyn Durability> {
        Box::new(NoDurability)
    }

    fn save(&self) -> Vec<u8> {
        snapshot::to_bytes(&())
    }
}
