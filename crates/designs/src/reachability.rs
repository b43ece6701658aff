//! Persistence by reachability in software: the hardware is [`Opt`], and the runtime of objects (`guest/objects`) checks
//! references, moves objects to persistent memory, logs regions, and cleans and fences what it stores there. The variants are
//! the two software baselines of P-INSPECT.

use crate::Opt;
use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant};
use durasim_types::Domain;

/// Stores are durable where cleans are: at the media where no queue survives, as on the paper's machine, and at the
/// controller under ADR.
pub(crate) const VARIANT_AUTOPERSIST: Variant = Variant {
    name: "autopersist",
    aliases: &["pinspect-baseline"],
    hardware: ErasedDesign::of::<Opt>(),
    backend: Backend::AUTOPERSIST,
    interfaces: &[Interface::Objects],
    domains: &[Domain::Media, Domain::Adr],
    promise: Promise::Immediate,
    control: false,
    summary: "Persistence by reachability with all checks in software: objects move to persistent memory when a durable one refers to them",
    paper: "P-INSPECT (MICRO 2020) baseline, sections II to VI; AutoPersist (PLDI 2019)",
    assumptions: &[
        "object-runtime",
        "allocation-profile",
        "put-threshold",
        "volatile-heap",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    locking: Locking::Nothing,
    path_faults: &[],
    equivalent_faults: &[],
};

/// The same durable objects as a user would mark them: nothing is checked, and nothing moves.
pub(crate) const VARIANT_IDEAL: Variant = Variant {
    name: "ideal-r",
    aliases: &[],
    backend: Backend::IDEAL_R,
    summary: "Durable objects that the user has marked: no checks and no moves, with cache-line cleans and fences",
    paper: "P-INSPECT (MICRO 2020) Ideal-R, section VIII",
    assumptions: &["object-runtime", "volatile-heap", "coalescing", "hops", "write-drain", "write-granularity"],
    ..VARIANT_AUTOPERSIST
};
