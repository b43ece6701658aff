//! The variants of LAD in the registry.

use super::{Lad, LadBase};
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant, path_faults};
use durasim_types::Domain;

pub(crate) const VARIANT: Variant = Variant {
    name: "lad",
    aliases: &[],
    hardware: ErasedDesign::of::<Lad>(),
    backend: Backend::MARKERS,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Adr],
    promise: Promise::Immediate,
    control: false,
    summary: "Speculative lines in the queues of the controllers, which commit at the first acknowledgement",
    paper: "Gupta, Daglis, Falsafi: Distributed Logless Atomic Durability, MICRO 2019",
    assumptions: &[
        "lad-ids",
        "lad-log",
        "lad-abort",
        "lad-plain-stores",
        "lad-purgatory",
        "lad-absent-line",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Lines,
    path_faults: path_faults::ALL,
    equivalent_faults: &[],
};

/// LAD without its optimized completion (section 5).
pub(crate) const VARIANT_BASE: Variant = Variant {
    name: "lad-base",
    hardware: ErasedDesign::of::<LadBase>(),
    summary: "LAD whose commits end at the acknowledgement of the last controller",
    ..VARIANT
};
