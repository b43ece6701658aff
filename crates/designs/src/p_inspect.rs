//! P-INSPECT: Kokolis, Shull, Huang and Torrellas, "P-INSPECT: Architectural Support for Programmable Non-Volatile Memory
//! Frameworks", MICRO 2020. Section numbers are the paper's; [D:key] marks an assumption of DEVIATIONS.md.
//!
//! Programs whose objects become durable when durable ones refer to them check each access: where its object lies, whether
//! it forwards to a copy in persistent memory, whether what is to be stored is still being moved there. The hardware makes
//! these checks beside the access (sections IV and V), by the addresses of objects and by bloom filters, and calls a handler
//! of the program if it cannot decide that nothing is to be done. Handlers, moves of objects and the thread that removes
//! pointers to forwarding objects are software.
//!
//! The inputs of the hardware are the check registers of a hart and nine filter lines of its process. So the design needs
//! no hook, and its checks are functions without a state: [`tables`] decides, [`filters`] looks up and changes.
//!
//! A store to persistent memory may bring a clean and a fence with it. `p-inspect` makes them in one round trip (section
//! V-E), `p-inspect--` one after the other (section VIII).

mod crc;
mod filters;
mod spec;
mod tables;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_filters;
pub(crate) mod variant;

pub use spec::{FilterHash, PInspectSpec};

use crate::opt::{NoDurability, recover_nothing};
use durasim_contract::{
    Checks, ChecksResult, CrashImage, Design, Geometry, HardwareCost, Hooks, RecoveryCut, RecoveryReport,
    RegionRequest, SpecError, Stateful,
};
use durasim_types::{
    AccessKind, CheckRegisters, CheckVerdict, CheckedAccess, Cycle, FILTER_LINES, FilterOperation, Line,
};
use filters::Filters;
use tables::{Conditions, Holder, Value};

/// The design with persistent writes in one round trip.
pub struct PInspect;

/// The design whose stores, cleans and fences are separate: P-INSPECT-- (section VIII).
pub struct PInspectSeparate;

macro_rules! design {
    ($design:ident, $name:literal, $combines:literal) => {
        impl Design for $design {
            const NAME: &'static str = $name;
            const HOOKS: Hooks = Hooks::NONE;
            type Spec = PInspectSpec;

            /// The filters are in the memory of processes.
            fn reserve(_: &PInspectSpec, _: &Geometry) -> Vec<RegionRequest> {
                Vec::new()
            }

            fn build(spec: &PInspectSpec, _: &Geometry) -> Result<impl Stateful, SpecError> {
                spec.check()?;
                Ok(NoDurability)
            }

            fn checks(spec: &PInspectSpec, _: &Geometry) -> ChecksResult {
                Ok(Some(Box::new(HardwareChecks::new(spec, $combines)?)))
            }

            /// Section VII: what a failure leaves is for the software to recover.
            fn recover(_: &PInspectSpec, _: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
                Ok(recover_nothing(image))
            }

            fn cost(_: &PInspectSpec, geometry: &Geometry) -> HardwareCost {
                spec::cost(geometry)
            }
        }
    };
}
design!(PInspect, "p-inspect", true);
design!(PInspectSeparate, "p-inspect--", false);

/// The functional unit of section VI-B and the checks in front of it.
struct HardwareChecks {
    filters: Filters,
    combines_persistent_writes: bool,
    fence_holds_commit: bool,
    handler_entry_cycles: Cycle,
    look_up_cycles: Cycle,
}

impl HardwareChecks {
    fn new(spec: &PInspectSpec, combines_persistent_writes: bool) -> Result<Self, SpecError> {
        spec.check()?;
        Ok(HardwareChecks {
            filters: Filters::new(spec),
            combines_persistent_writes,
            fence_holds_commit: spec.fence_holds_commit,
            handler_entry_cycles: spec.handler_entry_cycles,
            look_up_cycles: spec.look_up_cycles,
        })
    }
}

impl Checks for HardwareChecks {
    fn decide(
        &self,
        registers: &CheckRegisters,
        access: &CheckedAccess,
        may_forward: &mut dyn FnMut(u64) -> bool,
        may_be_queued: &mut dyn FnMut(u64) -> bool,
    ) -> CheckVerdict {
        // An object in persistent memory never forwards (section III-C), so it is not looked up.
        let holder = match registers.is_in_heap(access.base) {
            true => Holder::InNvm,
            false => Holder::InDram { may_forward: may_forward(access.base) },
        };
        let value = match (access.kind, access.value) {
            (AccessKind::Load | AccessKind::StoreH, _) | (AccessKind::StoreBoth, 0) => Value::NotAnObject,
            (AccessKind::StoreBoth, object) if registers.is_in_heap(object) => {
                Value::InNvm { may_be_queued: may_be_queued(object) }
            }
            (AccessKind::StoreBoth, object) => Value::InDram { may_forward: may_forward(object) },
        };
        let conditions = Conditions { holder, value, in_transaction: registers.is_in_transaction() };
        match access.kind {
            AccessKind::Load => tables::load(conditions.holder),
            AccessKind::StoreH | AccessKind::StoreBoth => tables::store(&conditions),
        }
    }

    fn may_forward(&self, lines: &[&Line; FILTER_LINES], object: u64) -> bool {
        self.filters.may_forward(lines, object)
    }

    fn may_be_queued(&self, lines: &[&Line; FILTER_LINES], object: u64) -> bool {
        self.filters.may_be_queued(lines, object)
    }

    fn bits_of(&self, object: u64, filter_bits: u32) -> [u32; 2] {
        self.filters.bits_of(object, filter_bits)
    }

    fn wake_bits(&self, filter_bits: u32) -> u32 {
        self.filters.wake_bits(filter_bits)
    }

    fn occupancy(&self, lines: &[&Line; FILTER_LINES]) -> (u32, u32) {
        self.filters.occupancy(lines)
    }

    fn update(&self, operation: FilterOperation, object: u64, lines: &mut [Line; FILTER_LINES]) -> u64 {
        match operation {
            FilterOperation::InsertFwd => return u64::from(self.filters.insert_fwd(lines, object)),
            FilterOperation::InsertTrans => self.filters.insert_trans(lines, object),
            FilterOperation::ClearFwd => filters::clear_fwd(lines),
            FilterOperation::ClearTrans => filters::clear_trans(lines),
            FilterOperation::ChangeActive => filters::change_active(lines),
        }
        0
    }

    fn combines_persistent_writes(&self) -> bool {
        self.combines_persistent_writes
    }

    fn fence_holds_commit(&self) -> bool {
        self.fence_holds_commit
    }

    fn handler_entry_cycles(&self) -> Cycle {
        self.handler_entry_cycles
    }

    fn look_up_cycles(&self) -> Cycle {
        self.look_up_cycles
    }
}
