//! The test plans of persistence by reachability in software.

use crate::small_runs::{FOUR_CONTROLLERS, ROOMY};
use crate::{Alternatives, Settings, ShortCampaign, TestPlan};
use durasim_types::Domain;

pub(crate) const MAP: &[(&str, &str)] = &[
    ("populate", "6"),
    ("buckets", "8"),
    ("value-bytes", "40"),
    ("search-percent", "10"),
    ("update-percent", "25"),
    ("erase-percent", "25"),
];
const TREE: &[(&str, &str)] =
    &[("populate", "12"), ("value-bytes", "72"), ("search-percent", "10"), ("update-percent", "25")];
/// Regions over the elements of one array; their log is a ring of 30 entries, which wraps around often.
pub(crate) const LIST: &[(&str, &str)] = &[
    ("populate", "6"),
    ("search-percent", "10"),
    ("update-percent", "10"),
    ("erase-percent", "40"),
    ("log-bytes", "1024"),
];
/// Few objects that all threads link, move, and store to.
pub(crate) const SHARING: &[(&str, &str)] =
    &[("populate", "4"), ("objects", "3"), ("slots", "2"), ("make-percent", "20"), ("region-percent", "15")];
/// Few shared objects, with a sweep for every second object that forwards.
const SWEPT: &[(&str, &str)] = &[
    ("populate", "4"),
    ("objects", "3"),
    ("slots", "2"),
    ("make-percent", "20"),
    ("region-percent", "15"),
    ("sweep-forwarders", "2"),
];

/// Heaps that fill, so that the collector works.
const COLLECTED_MAP: &[(&str, &str)] = &[
    ("populate", "6"),
    ("buckets", "8"),
    ("value-bytes", "40"),
    ("update-percent", "25"),
    ("erase-percent", "25"),
    ("pool-bytes", "400000"),
    ("volatile-heap-bytes", "300000"),
];
const COLLECTED_SHARING: &[(&str, &str)] = &[
    ("populate", "4"),
    ("objects", "3"),
    ("slots", "2"),
    ("make-percent", "20"),
    ("region-percent", "15"),
    ("log-bytes", "1024"),
    ("pool-bytes", "300000"),
    ("volatile-heap-bytes", "300000"),
];

/// Durable objects that for a while only ordinary memory refers to.
const COLLECTED_LINKS: &[(&str, &str)] = &[
    ("populate", "4"),
    ("objects", "6"),
    ("slots", "1"),
    ("make-percent", "30"),
    ("publish-percent", "30"),
    ("link-percent", "10"),
    ("drop-percent", "20"),
    ("region-percent", "5"),
    ("log-bytes", "1024"),
    ("pool-bytes", "300000"),
    ("volatile-heap-bytes", "300000"),
];

/// Campaigns for all variants of objects.
pub(crate) const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("pinspect-hashmap", MAP).ops(20),
    ShortCampaign::of("object-sharing", SHARING).threads(4).ops(60),
    ShortCampaign::of("pinspect-arraylistx", LIST).ops(20),
    ShortCampaign::of("pinspect-btree", TREE).ops(20),
    ShortCampaign::of("object-sharing", SHARING).threads(2).ops(60).on(Domain::Adr),
    ShortCampaign::of("pinspect-hashmap", MAP).threads(2).ops(40).points(300).faults(&["torn", "reorder", "nested"]),
    // Recovered pools in which the program continues.
    ShortCampaign::of("object-sharing", SHARING).threads(4).ops(60).faults(&["recrash"]),
    ShortCampaign::of("object-sharing", COLLECTED_SHARING)
        .threads(2)
        .ops(1500)
        .points(60)
        .faults(&["clean", "recrash"]),
    ShortCampaign::of("pinspect-hashmap", COLLECTED_MAP).ops(3000).points(60).faults(&["clean", "recrash"]),
    // Regions of several entries, whose writes reach the media torn and in another order.
    ShortCampaign::of("pinspect-arraylistx", LIST)
        .with(&[FOUR_CONTROLLERS])
        .threads(4)
        .ops(40)
        .points(600)
        .faults(&["torn", "reorder", "clean"]),
];
/// Fast caches and media and many threads, so that objects move while other threads are between their checks and their
/// stores.
pub(crate) const RACING: Settings = &[
    "cores=2",
    "core.time_slice_cycles=3000",
    "core.context_switch_cycles=0",
    "l1i.size_bytes=32768",
    "pmem.media.read_latency_ns=10",
    "pmem.media.write_latency_ns=10",
];
const RACED: &[(&str, &str)] = &[
    ("populate", "4"),
    ("objects", "2"),
    ("slots", "2"),
    ("make-percent", "30"),
    ("publish-percent", "30"),
    ("link-percent", "0"),
    ("drop-percent", "0"),
    ("region-percent", "0"),
];
/// Threads that store references to objects which others move.
const LINKED: &[(&str, &str)] = &[
    ("populate", "4"),
    ("objects", "3"),
    ("slots", "2"),
    ("make-percent", "30"),
    ("publish-percent", "20"),
    ("link-percent", "50"),
    ("drop-percent", "0"),
    ("region-percent", "0"),
];
/// Objects whose moves include more objects.
const LINKED_WIDELY: &[(&str, &str)] = &[
    ("populate", "4"),
    ("objects", "8"),
    ("slots", "8"),
    ("make-percent", "30"),
    ("publish-percent", "20"),
    ("link-percent", "50"),
    ("drop-percent", "0"),
    ("region-percent", "0"),
];
/// Media on which cleans of one thread take longer than all that another one does meanwhile.
const FOUR_SLOW_CONTROLLERS: Settings = &["cores=4", "pmem.media.write_latency_ns=500"];
/// Threads that store references while forwarding objects are swept.
const LINKED_AND_SWEPT: &[(&str, &str)] = &[
    ("populate", "4"),
    ("objects", "3"),
    ("slots", "2"),
    ("make-percent", "30"),
    ("publish-percent", "20"),
    ("link-percent", "50"),
    ("drop-percent", "0"),
    ("region-percent", "0"),
    ("sweep-forwarders", "4"),
];

/// Threads that publish what objects in a move refer to.
const FOLLOWED: &[(&str, &str)] = &[
    ("populate", "4"),
    ("objects", "4"),
    ("slots", "4"),
    ("make-percent", "60"),
    ("publish-percent", "40"),
    ("publish-new-later", "true"),
    ("link-percent", "0"),
    ("drop-percent", "0"),
    ("region-percent", "0"),
    ("follow-percent", "100"),
];
/// As many threads as find a move in progress that is waiting for its cleans.
const MANY_WAITING: Settings = &["cores=16", "l1i.size_bytes=32768", "pmem.media.write_latency_ns=500"];
/// Objects that all threads store to while they move and are swept.
const WRITTEN_AND_SWEPT: &[(&str, &str)] = &[
    ("populate", "9"),
    ("objects", "4"),
    ("slots", "2"),
    ("make-percent", "20"),
    ("publish-percent", "20"),
    ("publish-new-later", "true"),
    ("link-percent", "0"),
    ("drop-percent", "0"),
    ("region-percent", "0"),
    ("sweep-forwarders", "1"),
];
/// Objects whose links change while the pointer update thread sweeps them.
pub(crate) const DROPPED_AND_SWEPT: &[(&str, &str)] = &[
    ("populate", "5"),
    ("objects", "8"),
    ("slots", "2"),
    ("make-percent", "20"),
    ("publish-percent", "10"),
    ("link-percent", "40"),
    ("drop-percent", "20"),
    ("region-percent", "0"),
    ("sweep-forwarders", "1"),
];
/// Threads lose their core between two accesses to an object.
pub(crate) const SHORT_SLICES: Settings = &[
    "cores=2",
    "core.time_slice_cycles=1000",
    "core.context_switch_cycles=0",
    "l1i.size_bytes=32768",
    "pmem.media.read_latency_ns=10",
    "pmem.media.write_latency_ns=10",
];
/// Copies take long, since their lines are read first.
const SLOW_COPIES: Settings =
    &["cores=8", "l1i.size_bytes=32768", "pmem.media.read_latency_ns=5000", "pmem.media.write_latency_ns=10"];

pub(crate) const MOVING_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("object-sharing", SWEPT).threads(4).ops(400),
    ShortCampaign::of("object-sharing", WRITTEN_AND_SWEPT).with(&[ROOMY, SLOW_COPIES]).threads(4).ops(600).points(100),
    ShortCampaign::of("object-sharing", SHARING).threads(4).ops(900).points(300),
    ShortCampaign::of("object-sharing", LINKED_AND_SWEPT).with(&[ROOMY, RACING]).threads(4).ops(2000).points(300),
    ShortCampaign::of("object-sharing", RACED).with(&[ROOMY, RACING]).threads(4).ops(3000).points(300),
    ShortCampaign::of("object-sharing", LINKED).with(&[ROOMY, RACING]).threads(4).ops(3000).points(300),
    ShortCampaign::of("object-sharing", LINKED_WIDELY)
        .with(&[ROOMY, FOUR_CONTROLLERS, FOUR_SLOW_CONTROLLERS])
        .threads(4)
        .ops(800)
        .points(600)
        .faults(&["reorder", "clean"]),
    ShortCampaign::of("object-sharing", COLLECTED_LINKS).threads(2).ops(1000).points(60).faults(&["clean", "recrash"]),
    // Whether a store meets the sweep is chance: several seeds.
    ShortCampaign::of("object-sharing", DROPPED_AND_SWEPT)
        .with(&[ROOMY, SHORT_SLICES])
        .threads(4)
        .ops(3000)
        .points(50)
        .seeds(4),
    ShortCampaign::of("object-sharing", SWEPT).with(&[ROOMY, RACING]).threads(4).ops(2000).points(300).seeds(4),
    // Whether a move ends while others are in progress is chance: several seeds.
    ShortCampaign::of("object-sharing", FOLLOWED)
        .with(&[ROOMY, FOUR_CONTROLLERS, MANY_WAITING])
        .threads(8)
        .ops(600)
        .points(1500)
        .seeds(3)
        .faults(&["reorder", "clean"]),
];

pub(crate) const VOLATILE_HEAP: Alternatives = Alternatives::of(
    "volatile-heap",
    &[&["--arg volatile-heap-bytes=33554432"], &["--arg volatile-heap-bytes=536870912"]],
);

pub(crate) const AUTOPERSIST: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS, MOVING_CAMPAIGNS],
    quick_faults: &["copies-not-cleaned", "store-not-cleaned", "recovery-without-undo"],
    canary: Some("recovery-skips-newest"),
    alternatives: &[
        Alternatives::of("allocation-profile", &[&["--arg no-profile=true"]]),
        Alternatives::of("put-threshold", &[&["--arg sweep-forwarders=0"], &["--arg sweep-forwarders=32"]]),
        VOLATILE_HEAP,
    ],
    ..TestPlan::EMPTY
};

pub(crate) const IDEAL: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS],
    quick_faults: &["new-object-not-cleaned", "region-not-logged", "recovery-forgets-half"],
    alternatives: &[VOLATILE_HEAP],
    ..AUTOPERSIST
};
