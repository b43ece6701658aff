//! The variant of LAD-LLC in the registry.

use super::LadLlc;
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant, path_faults};
use durasim_types::Domain;

pub(crate) const VARIANT: Variant = Variant {
    name: "lad-llc",
    aliases: &[],
    hardware: ErasedDesign::of::<LadLlc>(),
    backend: Backend::MARKERS,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::NvLlc],
    promise: Promise::Immediate,
    control: false,
    summary: "Speculative lines in a battery-backed last level, whose banks commit like LAD's controllers",
    paper: "Gupta, Daglis, Falsafi: Distributed Logless Atomic Durability, MICRO 2019",
    assumptions: &[
        "lad-ids",
        "lad-llc-commit",
        "lad-llc-overflow",
        "kiln-isolation",
        "kiln-home-first",
        "nv-llc",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Lines,
    path_faults: path_faults::WHERE_BUFFERS_SURVIVE,
    equivalent_faults: &[],
};
