//! The variant of PiCL in the registry.

use super::{PROMISED_EPOCHS, Picl};
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant, path_faults};
use durasim_types::Domain;

pub(crate) const VARIANT: Variant = Variant {
    name: "picl",
    aliases: &[],
    hardware: ErasedDesign::of::<Picl>(),
    backend: Backend::MARKERS,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Adr],
    promise: Promise::Epoch(PROMISED_EPOCHS),
    control: false,
    summary: "Checkpoints in epochs: pre-images of lines in an undo log, lines home by a scan some epochs later",
    paper: "Nguyen, Wentzlaff: PiCL, MICRO 2018",
    assumptions: &[
        "picl-sizes",
        "picl-epoch-boundary",
        "picl-scan",
        "picl-log",
        "picl-abort",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Words,
    path_faults: path_faults::ALL,
    equivalent_faults: &[],
};
