//! The rows of the registry, and how they are tested.

use super::{PInspect, PInspectSeparate};
use crate::reachability;
use durasim_design::{Alternatives, Backend, ErasedDesign, Laboratory, Row, ShortCampaign, check_faults};

/// Where a store is durable, and how programs are written, is as in `autopersist`.
pub(crate) const ROW: Row = Row {
    name: "p-inspect",
    aliases: &[],
    hardware: ErasedDesign::of::<PInspect>(),
    backend: Backend::PInspect,
    summary: "Persistence by reachability with checks in hardware, by bloom filters, and persistent writes in one round trip",
    paper: "P-INSPECT (MICRO 2020)",
    assumptions: &[
        "pinspect-hash",
        "pinspect-null",
        "pinspect-handlers",
        "pinspect-fence",
        "pinspect-changes",
        "object-runtime",
        "allocation-profile",
        "put-threshold",
        "volatile-heap",
        "coalescing",
        "hops",
        "write-drain",
        "write-granularity",
    ],
    laboratory: &LABORATORY,
    ..reachability::ROW_AUTOPERSIST
};

/// The same without persistent writes in one round trip.
pub(crate) const ROW_SEPARATE: Row = Row {
    name: "p-inspect--",
    hardware: ErasedDesign::of::<PInspectSeparate>(),
    summary: "Persistence by reachability with checks in hardware, by bloom filters; stores, cleans and fences are separate",
    paper: "P-INSPECT (MICRO 2020) P-INSPECT--, section VIII",
    laboratory: &LABORATORY_SEPARATE,
    ..ROW
};

/// Filters so small that most look-ups are false positives.
const CROWDED_FILTERS: durasim_design::Settings =
    &["design.p-inspect.fwd_bits=31", "design.p-inspect.trans_bits=8", "design.p-inspect.wake_percent=60"];
const CROWDED_FILTERS_SEPARATE: durasim_design::Settings =
    &["design.p-inspect--.fwd_bits=31", "design.p-inspect--.trans_bits=8", "design.p-inspect--.wake_percent=60"];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("object-sharing", reachability::SHARING).with(&[CROWDED_FILTERS]).threads(4).ops(60),
    ShortCampaign::of("pinspect-hashmap", reachability::MAP).with(&[CROWDED_FILTERS]).threads(2).ops(40),
];
const CAMPAIGNS_SEPARATE: &[ShortCampaign] = &[
    ShortCampaign::of("object-sharing", reachability::SHARING).with(&[CROWDED_FILTERS_SEPARATE]).threads(4).ops(60),
    ShortCampaign::of("pinspect-hashmap", reachability::MAP).with(&[CROWDED_FILTERS_SEPARATE]).threads(2).ops(40),
];

const LABORATORY: Laboratory = Laboratory {
    campaigns: &[reachability::CAMPAIGNS, CAMPAIGNS, reachability::MOVING_CAMPAIGNS],
    quick_faults: &["copies-not-cleaned", "store-not-cleaned", "recovery-without-undo"],
    path_faults: check_faults::ALL,
    alternatives: &[
        Alternatives::of("pinspect-hash", &[&["design.p-inspect.hash=constant"]]),
        Alternatives::of("pinspect-handlers", &[&["design.p-inspect.handler_entry_cycles=20"]]),
        Alternatives::of("pinspect-fence", &[&["design.p-inspect.fence_holds_commit=true"]]),
        Alternatives::of(
            "put-threshold",
            &[&["design.p-inspect.wake_percent=10"], &["design.p-inspect.wake_percent=60"]],
        ),
        reachability::VOLATILE_HEAP,
    ],
    ..reachability::AUTOPERSIST
};

const LABORATORY_SEPARATE: Laboratory = Laboratory {
    campaigns: &[reachability::CAMPAIGNS, CAMPAIGNS_SEPARATE, reachability::MOVING_CAMPAIGNS],
    alternatives: &[
        Alternatives::of("pinspect-hash", &[&["design.p-inspect--.hash=constant"]]),
        Alternatives::of("pinspect-handlers", &[&["design.p-inspect--.handler_entry_cycles=20"]]),
        Alternatives::of(
            "put-threshold",
            &[&["design.p-inspect--.wake_percent=10"], &["design.p-inspect--.wake_percent=60"]],
        ),
        reachability::VOLATILE_HEAP,
    ],
    ..LABORATORY
};
