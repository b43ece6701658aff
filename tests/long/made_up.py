"""The addition of the long tests: a design with hardware without function and a log in software."""

DESIGN = """//! A made-up design: nothing in hardware, an undo log in software.

use durasim_contract::{
    Backend, CommitRule, CrashImage, Design, Durability, ErasedDesign, Geometry, HardwareCost, Hooks, Interface,
    Locking, Promise, RecoveryCut, RecoveryReport, RegionRequest, SpecError, Stateful, Variant, kept,
};
use durasim_types::{Domain, Stats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const VARIANT: Variant = Variant {
    name: "made-up",
    aliases: &[],
    hardware: ErasedDesign::of::<MadeUp>(),
    backend: Backend::UNDO_FLUSH,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Adr],
    promise: Promise::Immediate,
    control: false,
    summary: "Nothing in hardware, an undo log in software",
    paper: "None: it is made up",
    assumptions: &[],
    locking: Locking::Nothing,
    path_faults: &[],
    equivalent_faults: &[],
};

/// Its parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MadeUpSpec {
    /// Entries of an unused buffer.
    pub entries: u32,
}

/// The design.
pub struct MadeUp;

impl Design for MadeUp {
    const NAME: &'static str = "made-up";
    const HOOKS: Hooks = Hooks::NONE;
    type Spec = MadeUpSpec;

    fn reserve(_: &MadeUpSpec, _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }

    fn build(_: &MadeUpSpec, _: &Geometry) -> Result<impl Stateful, SpecError> {
        Ok(State)
    }

    fn recover(_: &MadeUpSpec, _: &Geometry, _: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(RecoveryReport::default())
    }

    fn cost(_: &MadeUpSpec, _: &Geometry) -> HardwareCost {
        HardwareCost::default()
    }
}

#[derive(Clone)]
struct State;

impl Stateful for State {
    kept!();
}

impl Durability for State {
    fn commit_rule(&self) -> CommitRule {
        CommitRule::Early
    }

    fn stats(&self, _: &mut Stats) {}
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_costs_nothing() {
        assert!(super::VARIANT.assumptions.is_empty());
    }
}
"""

PAGE = """# A made-up design

The variant `made-up`.

| paper | mechanism | function | test |
| --- | --- | --- | --- |
|  | nothing | `crates/designs/src/made_up.rs::MadeUp::build` | `crates/designs/src/made_up.rs::it_costs_nothing` |
"""
