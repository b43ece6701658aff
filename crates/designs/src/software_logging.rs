//! Software logging: the hardware is [`Opt`], the runtime of the guest keeps transactions. The papers' variants differ in their
//! log and in what they clean.

use crate::Opt;
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant};
use durasim_types::Domain;

pub(crate) const VARIANT_UNDO_FLUSH: Variant = Variant {
    name: "swl-flush",
    aliases: &[],
    hardware: ErasedDesign::of::<Opt>(),
    backend: Backend::UNDO_FLUSH,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Adr, Domain::Eadr, Domain::Media, Domain::Bbb, Domain::NvLlc],
    promise: Promise::Immediate,
    control: false,
    summary: "Software undo logging with cache-line cleans and fences",
    paper: "Hercules (TECS 2023) SWL_flush, section 3",
    assumptions: &["swl-granularity", "coalescing", "hops", "write-drain", "write-granularity"],
    locking: Locking::Nothing,
    path_faults: &[],
    equivalent_faults: &[],
};

pub(crate) const VARIANT_UNDO_FENCE: Variant = Variant {
    name: "swl-eadr",
    aliases: &[],
    hardware: ErasedDesign::of::<Opt>(),
    backend: Backend::UNDO_FENCE,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Eadr, Domain::Bbb],
    promise: Promise::Immediate,
    control: false,
    summary: "Software undo logging with fences alone, where stores survive: in caches or persist buffers",
    paper: "Hercules (TECS 2023) SWL_eADR, section 3",
    assumptions: &["swl-granularity", "hops", "write-drain", "write-granularity"],
    locking: Locking::Nothing,
    path_faults: &[],
    equivalent_faults: &[],
};

/// Its log is durable where cleans are: at the media where no queue survives, as on the paper's machine, and at the
/// controller under ADR.
pub(crate) const VARIANT_WRITE_AHEAD: Variant = Variant {
    name: "sp",
    aliases: &[],
    hardware: ErasedDesign::of::<Opt>(),
    backend: Backend::WRITE_AHEAD,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Media, Domain::Adr, Domain::Eadr, Domain::Bbb, Domain::NvLlc],
    promise: Promise::Immediate,
    control: false,
    summary: "Software write-ahead logging: addresses and new values to a log, fence, stores in place, fence",
    paper: "TC (DAC 2017) SP, sections 2.1 and 5.1",
    assumptions: &["sp-log", "coalescing", "hops", "write-drain", "write-granularity"],
    locking: Locking::Nothing,
    path_faults: &[],
    equivalent_faults: &[],
};

/// Software redo logging: the promise of `sp`, with a write set in front of the log.
pub(crate) const VARIANT_REDO: Variant = Variant {
    name: "sp-indirect",
    backend: Backend::REDO_FLUSH,
    summary: "Software redo logging with a write set that loads look up, with cache-line cleans and fences",
    paper: "TC (DAC 2017) SP, section 5.1, read as a library of transactions",
    assumptions: &["sp-indirect", "hops", "write-drain", "write-granularity"],
    ..VARIANT_WRITE_AHEAD
};
