//! The variants of Kiln in the registry.

use super::{Kiln, planted};
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant, path_faults};
use durasim_types::Domain;

pub(crate) const VARIANT: Variant = Variant {
    name: "kiln",
    aliases: &[],
    hardware: ErasedDesign::of::<Kiln>(),
    backend: Backend::MARKERS,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::NvLlc, Domain::NvLlcMedia],
    promise: Promise::Immediate,
    control: false,
    summary: "A nonvolatile last level: commits flush the lines of their transaction into it and turn them committed",
    paper: "Zhao, Li, Yoon, Xie, Jouppi: Kiln, MICRO 2013",
    assumptions: &[
        "kiln-commit",
        "kiln-fifo",
        "kiln-overflow",
        "kiln-blocking",
        "kiln-txid",
        "kiln-isolation",
        "kiln-home-first",
        "kiln-llc",
        "kiln-llc-ports",
        "nv-llc",
        "background-concurrency",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Lines,
    path_faults: path_faults::WHERE_BUFFERS_SURVIVE,
    equivalent_faults: &[],
};

/// The variant for machines whose upper caches survive too; no paper shows it.
pub(crate) const VARIANT_EADR: Variant = Variant {
    name: "kiln-eadr",
    aliases: &[],
    hardware: ErasedDesign {
        planted: planted::EADR,
        marks: &["register_written", "copy_in_flight", "old_line_kept", "records_being_cleared"],
        ..VARIANT.hardware
    },
    domains: &[Domain::Eadr],
    summary: "Kiln where all caches survive: commits flush nothing, the states of their lines change",
    paper: "Zhao, Li, Yoon, Xie, Jouppi: Kiln, MICRO 2013, on an eADR machine",
    ..VARIANT
};
