//! The variants of HOOP in the registry.

use super::{Hoop, planted};
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant, path_faults};
use durasim_types::Domain;

pub(crate) const VARIANT: Variant = Variant {
    name: "hoop",
    aliases: &[],
    hardware: ErasedDesign::of::<Hoop>(),
    backend: Backend::MARKERS,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Adr],
    promise: Promise::Immediate,
    control: false,
    summary: "Out-of-place updates in the controller: word slices, mapping table, collection",
    paper: "Cai, Coats, Huang: HOOP, ISCA 2020",
    assumptions: &[
        "hoop-word-masks",
        "hoop-address-slices",
        "hoop-mapping-table",
        "hoop-line-table",
        "hoop-plain-stores",
        "hoop-aborts",
        "hoop-home",
        "hoop-commit",
        "hoop-collector",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Words,
    path_faults: path_faults::ALL,
    equivalent_faults: &[],
};

/// The variant for durable caches and queues.
pub(crate) const VARIANT_EADR: Variant = Variant {
    name: "hoop-eadr",
    aliases: &[],
    hardware: ErasedDesign { planted: planted::ALL, ..VARIANT.hardware },
    domains: &[Domain::Eadr],
    summary: "HOOP where caches and queues survive: commits wait for no acknowledgement",
    paper: "Cai, Coats, Huang: HOOP, ISCA 2020",
    assumptions: &[
        "hoop-word-masks",
        "hoop-address-slices",
        "hoop-mapping-table",
        "hoop-line-table",
        "hoop-plain-stores",
        "hoop-aborts",
        "hoop-home",
        "hoop-commit",
        "hoop-eadr",
        "hoop-collector",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    path_faults: path_faults::WHERE_BUFFERS_SURVIVE,
    ..VARIANT
};
