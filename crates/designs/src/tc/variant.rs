//! The variant of the transaction cache in the registry.

use super::Tc;
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant, path_faults};
use durasim_types::Domain;

pub(crate) const VARIANT: Variant = Variant {
    name: "tc",
    aliases: &[],
    hardware: ErasedDesign::of::<Tc>(),
    backend: Backend::MARKERS,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::NvTc],
    promise: Promise::Immediate,
    control: false,
    summary: "A nonvolatile transaction cache beside each core drains committed stores; the caches drop theirs",
    paper: "Lai, Zhao, Yang: Leave the Cache Hierarchy Operation as It Is, DAC 2017",
    assumptions: &[
        "tc-coalescing",
        "tc-merge",
        "tc-commit",
        "tc-abort",
        "tc-volatile-stores",
        "tc-overflow",
        "tc-plain-stores",
        "tc-order",
        "tc-home",
        "tc-identifiers",
        "tc-latency",
        "tc-ports",
        "tc-acknowledgement",
        "background-concurrency",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Words,
    path_faults: path_faults::ALL,
    equivalent_faults: &[],
};
