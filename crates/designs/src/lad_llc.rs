//! LAD-LLC: the "idealized" comparison of Gupta, Daglis and Falsafi, "Distributed Logless Atomic Durability with Persistent
//! Memory", MICRO 2019, section 5: Kiln, whose last level is battery-backed SRAM in banks, with LAD's two-phase commit at the
//! banks instead of at memory controllers. Section numbers are that paper's; [D:key] marks what DEVIATIONS.md explains.
//!
//! Caches, uncommitted versions beside committed ones, the fall-back path and the order of recovery are those of
//! `kiln.rs`; the commit and what decides in recovery are in `kiln/banks.rs`. Nothing waits at the last level for a commit,
//! and it is as fast as that of the machine. In place of Kiln's FIFOs stands LAD's bit vector, which has a bit for every line
//! of the L1D and so never fills up.

mod spec;
#[cfg(test)]
mod tests;
pub(crate) mod variant;

pub use spec::LadLlcSpec;

use crate::Kiln;
use crate::dtx::THREADS;
use crate::kiln::banks::Banks;
use crate::kiln::{DISTRIBUTED, State, recover_distributed, reserve};
use durasim_contract::{
    CrashImage, Design, Geometry, HardwareCost, Hooks, PlantedFault, RecoveryCut, RecoveryReport, RegionRequest,
    SpecError, Stateful,
};

/// The design.
pub struct LadLlc;

impl Design for LadLlc {
    const NAME: &'static str = "lad-llc";
    const HOOKS: Hooks = Kiln::HOOKS;
    const PLANTED: &'static [PlantedFault] = DISTRIBUTED;
    const MARKS: &'static [&'static str] = &[
        "flushing",
        "copy_in_flight",
        "old_line_kept",
        "records_being_cleared",
        "cut_between_banks",
        "ids_wrapped",
        "old_line_of_committing",
    ];
    const THREADS_MAX: u32 = THREADS as u32;
    const STRUCTURES: &'static [&'static str] = &["fifo", "transaction_ids"];
    type Spec = LadLlcSpec;

    fn reserve(spec: &LadLlcSpec, _: &Geometry) -> Vec<RegionRequest> {
        reserve(&spec.of_kiln())
    }

    fn build(spec: &LadLlcSpec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        spec.check()?;
        let banks = Banks::new(geometry.llc_banks, spec.dtx_id_bits);
        Ok(State::new(&spec.of_kiln(), geometry)?.distributed(banks))
    }

    fn recover(spec: &LadLlcSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        recover_distributed(&spec.of_kiln(), spec.dtx_id_bits, geometry, image)
    }

    fn cost(spec: &LadLlcSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}
