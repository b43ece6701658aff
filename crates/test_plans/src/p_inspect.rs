//! The test plans of P-INSPECT.

use crate::reachability;
use crate::small_runs::{FOUR_CONTROLLERS, ROOMY};
use crate::{Alternatives, RandomTester, Settings, ShortCampaign, TestPlan};

/// Filters so small that most look-ups are false positives.
const CROWDED_FILTERS: Settings =
    &["design.p-inspect.fwd_bits=31", "design.p-inspect.trans_bits=8", "design.p-inspect.wake_percent=60"];
const CROWDED_FILTERS_SEPARATE: Settings =
    &["design.p-inspect--.fwd_bits=31", "design.p-inspect--.trans_bits=8", "design.p-inspect--.wake_percent=60"];

/// Objects that all threads store to. Stores wait for persistent ones.
const WRITTEN: &[(&str, &str)] = &[
    ("populate", "9"),
    ("objects", "8"),
    ("slots", "8"),
    ("make-percent", "20"),
    ("publish-percent", "20"),
    ("link-percent", "20"),
    ("drop-percent", "0"),
    ("region-percent", "0"),
];
const SLOW_STORES: Settings =
    &["cores=16", "l1i.size_bytes=32768", "pmem.media.write_latency_ns=1000", "dram.media.read_latency_ns=300"];

/// Few objects, to which threads store after stores to ordinary memory that miss: the store buffer holds stores that were
/// checked for longer than a move takes.
const WRITTEN_AFTER_MISSES: &[(&str, &str)] = &[
    ("populate", "9"),
    ("objects", "2"),
    ("slots", "2"),
    ("make-percent", "20"),
    ("publish-percent", "20"),
    ("link-percent", "0"),
    ("drop-percent", "0"),
    ("region-percent", "0"),
    ("own-lines", "8"),
];
const SLOW_MISSES: Settings = &[
    "cores=8",
    "l1i.size_bytes=32768",
    "dram.media.read_latency_ns=1000",
    "pmem.media.read_latency_ns=10",
    "pmem.media.write_latency_ns=10",
];

/// A core for each thread.
const MANY_CORES: Settings = &["cores=16"];
/// Few objects, which move again and again while all threads store to them.
const FEW_RACED: &[(&str, &str)] = &[
    ("populate", "4"),
    ("objects", "2"),
    ("slots", "2"),
    ("make-percent", "30"),
    ("publish-percent", "20"),
    ("link-percent", "0"),
    ("drop-percent", "0"),
    ("region-percent", "0"),
];

/// Recoveries of regions of several entries that end in a second power failure, with writes in another order.
const RECOVERED_TWICE: &[ShortCampaign] = &[ShortCampaign::of("pinspect-arraylistx", reachability::LIST)
    .with(&[FOUR_CONTROLLERS])
    .threads(4)
    .ops(40)
    .points(600)
    .faults(&["torn", "reorder", "nested"])];

const fn crowded(filters: &'static [Settings; 1]) -> [ShortCampaign; 3] {
    [
        ShortCampaign::of("object-sharing", reachability::SHARING).with(filters).threads(4).ops(60),
        ShortCampaign::of("pinspect-hashmap", reachability::MAP).with(filters).threads(2).ops(40),
        ShortCampaign::of("object-sharing", WRITTEN).with(&[ROOMY, SLOW_STORES]).threads(8).ops(800).points(50),
    ]
}
const CROWDED: &[ShortCampaign] = &crowded(&[CROWDED_FILTERS]);
const CROWDED_SEPARATE: &[ShortCampaign] = &crowded(&[CROWDED_FILTERS_SEPARATE]);

/// Whether a thread meets what another one does is chance: many seeds, which take minutes.
const fn by_chance(racing: &'static [Settings; 3], in_slices: &'static [Settings; 3]) -> [ShortCampaign; 4] {
    [
        ShortCampaign::of("object-sharing", reachability::DROPPED_AND_SWEPT)
            .with(in_slices)
            .threads(4)
            .ops(3000)
            .points(50),
        ShortCampaign::of("object-sharing", WRITTEN_AFTER_MISSES)
            .with(&[ROOMY, SLOW_MISSES])
            .threads(8)
            .ops(1200)
            .points(20)
            .seeds(4),
        ShortCampaign::of("object-sharing", FEW_RACED).with(racing).threads(8).ops(3000).points(20).seeds(6),
        ShortCampaign::of("object-sharing", reachability::DROPPED_AND_SWEPT)
            .with(&[MANY_CORES])
            .threads(8)
            .ops(3000)
            .points(5)
            .seeds(16),
    ]
}
const BY_CHANCE: &[ShortCampaign] =
    &by_chance(&[ROOMY, reachability::RACING, CROWDED_FILTERS], &[ROOMY, reachability::SHORT_SLICES, CROWDED_FILTERS]);
const BY_CHANCE_SEPARATE: &[ShortCampaign] = &by_chance(
    &[ROOMY, reachability::RACING, CROWDED_FILTERS_SEPARATE],
    &[ROOMY, reachability::SHORT_SLICES, CROWDED_FILTERS_SEPARATE],
);

pub(crate) const PLAN: TestPlan = TestPlan {
    campaigns: &[reachability::CAMPAIGNS, CROWDED, reachability::MOVING_CAMPAIGNS, BY_CHANCE],
    quick_faults: &["copies-not-cleaned", "store-not-cleaned", "recovery-without-undo"],
    // The tester makes no checked accesses.
    random: RandomTester { out_of_reach: &["filters-given-up-early"], ..RandomTester::DEFAULT },
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

pub(crate) const PLAN_SEPARATE: TestPlan = TestPlan {
    campaigns: &[
        reachability::CAMPAIGNS,
        RECOVERED_TWICE,
        CROWDED_SEPARATE,
        reachability::MOVING_CAMPAIGNS,
        BY_CHANCE_SEPARATE,
    ],
    alternatives: &[
        Alternatives::of("pinspect-hash", &[&["design.p-inspect--.hash=constant"]]),
        Alternatives::of("pinspect-handlers", &[&["design.p-inspect--.handler_entry_cycles=20"]]),
        Alternatives::of(
            "put-threshold",
            &[&["design.p-inspect--.wake_percent=10"], &["design.p-inspect--.wake_percent=60"]],
        ),
        reachability::VOLATILE_HEAP,
    ],
    ..PLAN
};
