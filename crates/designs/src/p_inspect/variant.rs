//! The variants of P-INSPECT in the registry.

use super::{PInspect, PInspectSeparate};
use crate::reachability;
use durasim_contract::{Backend, ErasedDesign, Variant, check_faults};

/// Durability of stores, and the interface of programs, are as in `autopersist`.
pub(crate) const VARIANT: Variant = Variant {
    name: "p-inspect",
    aliases: &[],
    hardware: ErasedDesign::of::<PInspect>(),
    backend: Backend::P_INSPECT,
    summary: "Persistence by reachability with checks in hardware, by bloom filters, and persistent writes in one round trip",
    paper: "P-INSPECT (MICRO 2020)",
    assumptions: &[
        "pinspect-hash",
        "pinspect-null",
        "pinspect-handlers",
        "pinspect-fence",
        "pinspect-changes",
        "object-runtime",
        "allocation-profile",
        "put-threshold",
        "volatile-heap",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    path_faults: check_faults::ALL,
    ..reachability::VARIANT_AUTOPERSIST
};

/// P-INSPECT without persistent writes in one round trip.
pub(crate) const VARIANT_SEPARATE: Variant = Variant {
    name: "p-inspect--",
    hardware: ErasedDesign::of::<PInspectSeparate>(),
    summary: "Persistence by reachability with checks in hardware, by bloom filters; stores, cleans and fences are separate",
    paper: "P-INSPECT (MICRO 2020) P-INSPECT--, section VIII",
    ..VARIANT
};
