//! The variants of Proteus in the registry.

use super::{Proteus, planted};
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant, path_faults};
use durasim_types::Domain;

pub(crate) const VARIANT: Variant = Variant {
    name: "proteus",
    aliases: &[],
    hardware: ErasedDesign::of::<Proteus>(),
    backend: Backend::LOG_OPERATIONS,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Adr],
    promise: Promise::Immediate,
    control: false,
    summary: "Programs send pre-images of 32 bytes to a log pending queue under ADR; commits remove what is left of them",
    paper: "Shin, Tirukkovalluri, Tuck, Solihin: Proteus, MICRO 2017",
    assumptions: &[
        "proteus-sizes",
        "proteus-lpq",
        "proteus-instructions",
        "proteus-flush-order",
        "proteus-acknowledgement",
        "proteus-logs",
        "proteus-clean",
        "proteus-abort",
        "background-concurrency",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Blocks,
    path_faults: path_faults::ALL,
    equivalent_faults: &[],
};

/// The variant for durable caches: no commit cleans, so nothing can be wrong with that.
pub(crate) const VARIANT_EADR: Variant = Variant {
    name: "proteus-eadr",
    aliases: &[],
    hardware: ErasedDesign {
        planted: planted::ALL,
        marks: &["transaction_open", "flush_in_flight", "lpq_full", "log_populated"],
        ..VARIANT.hardware
    },
    domains: &[Domain::Eadr],
    summary: "Proteus where caches are durable: commits clean nothing",
    paper: "Shin, Tirukkovalluri, Tuck, Solihin: Proteus, MICRO 2017, on a machine with eADR",
    assumptions: &[
        "proteus-sizes",
        "proteus-lpq",
        "proteus-instructions",
        "proteus-flush-order",
        "proteus-acknowledgement",
        "proteus-logs",
        "proteus-eadr",
        "proteus-abort",
        "background-concurrency",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    path_faults: path_faults::WHERE_BUFFERS_SURVIVE,
    ..VARIANT
};
