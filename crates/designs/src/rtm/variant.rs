//! The variants that use hardware transactions.

use super::{Rtm, planted};
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant};
use durasim_types::Domain;

/// HTM+SGL.
pub(crate) const VARIANT_SGL: Variant = Variant {
    name: "htm-sgl",
    aliases: &[],
    hardware: ErasedDesign::of::<Rtm>(),
    backend: Backend::HTM_SGL,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Eadr],
    promise: Promise::Immediate,
    control: false,
    summary: "Hardware transactions on persistent data; a single global lock with an undo log is the fall-back",
    paper: "SPHT-eADR (thesis, Lisboa 2022) HTM+SGL, section 3.1.1 and Algorithm 2",
    assumptions: &[
        "rtm-conflicts",
        "timer-interrupts",
        "rtm-read-set",
        "htm-attempts",
        "htm-sgl-log",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Nothing,
    path_faults: &[],
    equivalent_faults: &[],
};

/// SPHT-eADR (Algorithm 4).
pub(crate) const VARIANT_SPHT: Variant = Variant {
    name: "spht-eadr",
    backend: Backend::SPHT_EADR,
    summary: "Hardware transactions on a shadow of the pool in DRAM; a redo log commits inside, and is replayed",
    paper: "SPHT-eADR (thesis, Lisboa 2022), sections 3.3 and 3.4, Algorithm 4",
    assumptions: &[
        "rtm-conflicts",
        "timer-interrupts",
        "rtm-read-set",
        "htm-attempts",
        "spht-log",
        "spht-replay",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    equivalent_faults: &[(planted::OPEN_SETS_SURVIVE.name, OPEN_LOGS_IGNORED)],
    ..VARIANT_SGL
};

/// SPHT-eADR-Flush (Algorithm 5).
pub(crate) const VARIANT_SPHT_FLUSH: Variant = Variant {
    name: "spht-eadr-flush",
    backend: Backend::SPHT_EADR_FLUSH,
    summary: "SPHT-eADR that cleans or flushes the lines of its log after the commit, without a fence",
    paper: "SPHT-eADR (thesis, Lisboa 2022), section 3.3.1, Algorithm 5",
    assumptions: &[
        "rtm-conflicts",
        "timer-interrupts",
        "rtm-read-set",
        "htm-attempts",
        "spht-log",
        "spht-replay",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    ..VARIANT_SPHT
};

/// SPHT as it was made for volatile caches (Algorithm 3).
pub(crate) const VARIANT_SPHT_ADR: Variant = Variant {
    name: "spht",
    backend: Backend::SPHT,
    domains: &[Domain::Adr, Domain::Eadr],
    summary: "Hardware transactions on a shadow of the pool in DRAM; logs are flushed, and one marker makes groups of transactions durable",
    paper: "SPHT (FAST 2021), as the thesis (Lisboa 2022) describes it in sections 2.4.2 and 3.2, Algorithm 3",
    assumptions: &[
        "rtm-conflicts",
        "timer-interrupts",
        "rtm-read-set",
        "htm-attempts",
        "timed-log",
        "timed-replay",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    equivalent_faults: &[
        (planted::OPEN_SETS_SURVIVE.name, FLUSHED_BY_PROGRAM),
        (planted::L1D_NOT_FLUSHED.name, FLUSHED_BY_PROGRAM),
    ],
    ..VARIANT_SGL
};

/// NV-HTM (Algorithm 1).
pub(crate) const VARIANT_NV_HTM: Variant = Variant {
    name: "nv-htm",
    backend: Backend::NV_HTM,
    summary: "Hardware transactions on a shadow of the pool in DRAM; logs are flushed, and transactions become durable one after the other",
    paper: "NV-HTM (IPDPS 2018), as the thesis (Lisboa 2022) describes it in section 2.4.1, Algorithm 1",
    ..VARIANT_SPHT_ADR
};

const OPEN_LOGS_IGNORED: &str = "A transaction stores to persistent memory in its log alone, and at last the word that says where the log ends: \
     without that replay takes no notice of the rest, with it the transaction is whole";

const FLUSHED_BY_PROGRAM: &str =
    "What counts of a transaction has been flushed by the program, and recovery looks at nothing else";
