//! The variants of FWB in the registry.

use super::{Fwb, planted};
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant, path_faults};
use durasim_types::Domain;

pub(crate) const VARIANT: Variant = Variant {
    name: "fwb",
    aliases: &["steal-but-no-force"],
    hardware: ErasedDesign::of::<Fwb>(),
    backend: Backend::MARKERS,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Adr],
    promise: Promise::Immediate,
    control: false,
    summary: "Undo and redo words through a volatile log buffer to a circular log; scans force old lines home",
    paper: "Ogleari, Miller, Zhao: Steal but No Force, HPCA 2018",
    assumptions: &[
        "fwb-sizes",
        "fwb-acknowledgement",
        "fwb-combining",
        "fwb-ordering",
        "fwb-plain-stores",
        "fwb-scan",
        "fwb-full-log",
        "fwb-abort",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Words,
    path_faults: path_faults::ALL,
    equivalent_faults: &[],
};

/// The variant for durable caches: nothing is redone and nothing is scanned, so nothing can be wrong with that.
pub(crate) const VARIANT_EADR: Variant = Variant {
    name: "fwb-eadr",
    aliases: &[],
    hardware: ErasedDesign {
        planted: planted::EADR,
        marks: &["transaction_open", "records_out_of_order", "log_wrapped", "abort_in_progress"],
        engines: &[],
        ..VARIANT.hardware
    },
    domains: &[Domain::Eadr],
    summary: "The log of FWB where caches survive: undo words that are durable before their stores, no redo, no scan",
    paper: "Ogleari, Miller, Zhao: Steal but No Force, HPCA 2018, on a machine with eADR",
    assumptions: &[
        "fwb-sizes",
        "fwb-acknowledgement",
        "fwb-eadr",
        "fwb-full-log",
        "fwb-abort",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    path_faults: path_faults::WHERE_BUFFERS_SURVIVE,
    ..VARIANT
};
