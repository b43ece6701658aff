//! The variant of Hercules in the registry.

use super::Hercules;
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant, path_faults};
use durasim_types::Domain;

pub(crate) const VARIANT: Variant = Variant {
    name: "hercules",
    aliases: &[],
    hardware: ErasedDesign::of::<Hercules>(),
    backend: Backend::MARKERS,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Eadr],
    promise: Promise::Immediate,
    control: false,
    summary: "eADR-backed caches as transaction log: TransTags, eWPQ, in-pmem log zone",
    paper: "Ye, Chen, Jiang, Wang: Hercules, ACM TECS 2023",
    assumptions: &[
        "hercules-log-entry",
        "hercules-partial-match",
        "hercules-victim",
        "hercules-recovery",
        "hercules-controllers",
        "hercules-gc",
        "hercules-log-extension",
        "hercules-extension-chain",
        "hercules-txlen-store",
        "hercules-commit-wait",
        "hercules-tag-rounding",
        "hercules-extension-search",
        "hercules-conflict",
        "background-concurrency",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Nothing,
    path_faults: path_faults::WHERE_BUFFERS_SURVIVE,
    equivalent_faults: &[],
};
