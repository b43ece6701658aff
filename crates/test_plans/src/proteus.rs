//! The test plans of Proteus.

use crate::small_runs::{APART, BTREE, CROWDED, FAR_CAMPAIGNS, ONE_SET, SLOW, SWAP, TURNS};
use crate::{Alternatives, Choice, Draw, RandomTester, Settings, ShortCampaign, TestPlan};
use durasim_contract::Locking;

/// A log pending queue of two entries, so that most go to the log; a table that soon forgets blocks, which are logged
/// again.
const SPILLING: Settings =
    &["design.proteus.lpq_entries=2", "design.proteus.llt_entries=4", "design.proteus.llt_ways=2"];
/// A log that wraps around.
const SHORT: Settings = &["design.proteus.lpq_entries=1", "design.proteus.log_entries=64"];
const OVERTAKING: Settings =
    &["design.proteus.lpq_entries=1", "design.proteus.llt_entries=1", "design.proteus.llt_ways=1"];
/// Acknowledgements that take long, and a queue that takes one write at a time.
const FAR: Settings = &[
    "interconnect.core_to_controller_cycles=3000",
    "interconnect.controller_to_core_cycles=3000",
    "pmem.controller.write_queue_entries=1",
    "pmem.media.write_latency_ns=3000",
];
/// Entries that soon are at controllers whose acknowledgements take long.
const NEAR: Settings = &["interconnect.core_to_controller_cycles=10"];
/// Log entries in a write pending queue of few places, whose writes take long.
const INSIDE: Settings = &[
    "design.proteus.log_queue=inside",
    "design.proteus.llt_entries=4",
    "design.proteus.llt_ways=2",
    "pmem.controller.write_queue_entries=4",
    "pmem.media.write_latency_ns=3000",
];
/// A write pending queue with room for all of them, so that some are still there when a transaction ends.
const INSIDE_ROOMY: Settings = &["design.proteus.log_queue=inside", "pmem.controller.write_queue_entries=512"];
/// A queue that has room for more log entries than they may have.
const INSIDE_SHARE: Settings = &["design.proteus.log_queue=inside", "design.proteus.lpq_entries=2"];
/// Commits that wait for the medium.
const BY_MEDIUM: Settings = &["design.proteus.acknowledged_by=medium"];
const IN_ORDER: Settings = &["design.proteus.flush_order=in_order"];
const CONTROLLERS: Settings = &["pmem.controllers=4", "pmem.interleave_bytes=64"];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[SPILLING, ONE_SET]),
    ShortCampaign::of("array-swap", SWAP).with(&[SPILLING, ONE_SET]),
    ShortCampaign::of("btree", BTREE),
    ShortCampaign::of("array-swap", SWAP).with(&[SPILLING, ONE_SET]).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[SPILLING, CROWDED]).threads(3).ops(40).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SWAP).with(&[SPILLING, ONE_SET, FAR]),
    ShortCampaign::of("btree", BTREE).with(&[SPILLING, CROWDED, SLOW]).threads(4).ops(40),
    ShortCampaign::of("array-swap", SWAP).with(&[SPILLING, TURNS]).threads(4).ops(30),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORT, CROWDED, CONTROLLERS, SLOW]).threads(4).ops(60).points(300),
    ShortCampaign::of("false-sharing", APART).with(&[SPILLING]).threads(4).ops(40),
    // A table of one block, so that blocks are logged again soon, and entries that overtake each other at full queues.
    ShortCampaign::of("btree", BTREE).with(&[OVERTAKING, CROWDED, CONTROLLERS, FAR]).threads(4).ops(40).points(400),
    ShortCampaign::of("btree", BTREE)
        .with(&[OVERTAKING, CROWDED, CONTROLLERS, FAR, NEAR])
        .threads(4)
        .ops(40)
        .points(400),
    ShortCampaign::of("array-swap", SWAP).with(&[INSIDE, ONE_SET]).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[INSIDE_ROOMY]).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[INSIDE_SHARE, ONE_SET, IN_ORDER]),
    ShortCampaign::of("btree", BTREE).with(&[INSIDE, CROWDED, CONTROLLERS]).threads(4).ops(40),
    ShortCampaign::of("array-swap", SWAP).with(&[INSIDE, TURNS, IN_ORDER]).threads(4).ops(30),
    ShortCampaign::of("array-swap", SWAP).with(&[SPILLING, BY_MEDIUM, ONE_SET]).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[INSIDE, BY_MEDIUM, CROWDED, CONTROLLERS]).threads(4).ops(40),
    // Log entries that are in flight for long: an early acknowledgement lets the store pass its entry.
    ShortCampaign::of("btree", BTREE)
        .with(&[OVERTAKING, INSIDE, CROWDED, CONTROLLERS, FAR])
        .threads(4)
        .ops(40)
        .points(400),
];

/// Queues and tables of a handful of entries.
const DRAWS: &[Draw] = &[
    Draw::half("design.proteus.logq_entries", &["1", "2", "4"]),
    Draw {
        one_in: 1,
        choice: Choice::OneOf(&[
            &["design.proteus.log_queue=\"inside\""],
            &["design.proteus.log_queue=\"inside\"", "pmem.controller.write_queue_entries=2"],
            &["design.proteus.log_queue=\"inside\"", "pmem.controller.write_queue_entries=64"],
            &["design.proteus.spills_in_flight=1"],
            &["design.proteus.spills_in_flight=2"],
            &["design.proteus.spills_in_flight=16"],
            &[],
        ]),
    },
    Draw::half("design.proteus.flush_order", &["\"in_order\""]),
    Draw::half("design.proteus.log_entries", &["6", "12", "40"]),
    Draw::half("design.proteus.logs_per_core", &["1", "4"]),
    Draw::half("design.proteus.clean_issue_cycles", &["0", "50"]),
    Draw::always("design.proteus.lpq_entries", &["1", "2", "5", "12", "64"]),
    Draw {
        one_in: 1,
        choice: Choice::OneOf(&[
            &["design.proteus.llt_entries=1", "design.proteus.llt_ways=1"],
            &["design.proteus.llt_entries=2", "design.proteus.llt_ways=1"],
            &["design.proteus.llt_entries=4", "design.proteus.llt_ways=4"],
            &["design.proteus.llt_entries=64", "design.proteus.llt_ways=8"],
        ]),
    },
    Draw { one_in: 4, choice: Choice::All(&["design.proteus.acknowledged_by=\"medium\""]) },
    Draw {
        one_in: 4,
        choice: Choice::OneOf(&[&["core.log_registers=1"], &["core.log_registers=2"], &["core.log_registers=8"]]),
    },
];

const ALTERNATIVES: &[Alternatives] = &[
    Alternatives::of(
        "proteus-sizes",
        &[
            &["design.proteus.logq_entries=1"],
            &["design.proteus.logq_entries=4"],
            &["design.proteus.logq_entries=64"],
            &["design.proteus.llt_entries=8"],
            &["design.proteus.llt_entries=1024"],
        ],
    ),
    Alternatives::of(
        "proteus-lpq",
        &[
            &["design.proteus.lpq_entries=32", "pmem.controller.write_queue_entries=32"],
            &["design.proteus.lpq_entries=16", "pmem.controller.write_queue_entries=48"],
            &["design.proteus.lpq_entries=8"],
            &["design.proteus.log_queue=inside"],
            &["design.proteus.log_queue=inside", "pmem.controller.write_queue_entries=16"],
        ],
    ),
    Alternatives::of("proteus-acknowledgement", &[&["design.proteus.acknowledged_by=medium"]]),
    Alternatives::of("proteus-instructions", &[&["core.log_registers=8"], &["core.log_registers=2"]]),
    Alternatives::of("proteus-flush-order", &[&["design.proteus.flush_order=in_order"]]),
    Alternatives::of("proteus-logs", &[&["design.proteus.log_entries=1024"], &["design.proteus.logs_per_core=4"]]),
    Alternatives::of(
        "proteus-clean",
        &[&["design.proteus.clean_issue_cycles=0"], &["design.proteus.clean_issue_cycles=10"]],
    ),
    Alternatives::of(
        "background-concurrency",
        &[&["design.proteus.spills_in_flight=1"], &["design.proteus.spills_in_flight=64"]],
    ),
];

/// The plan of `proteus`.
pub(crate) const PLAN: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS, FAR_CAMPAIGNS],
    quick_faults: &["ack-without-room", "end-not-awaited", "recovery-forgets-log"],
    canary: Some("recovery-drops-oldest"),
    random: RandomTester {
        draws: DRAWS,
        locking_on_many_cores: &[Locking::Blocks, Locking::Blocks, Locking::Lines],
        common_marks: &["flush_in_flight", "lpq_full", "log_populated"],
        further_faults: &["abort-not-ended"],
        runs_of_rare_faults: &[
            ("block-twice-in-logq", 8000),
            ("spill-freed-at-issue", 1500),
            ("left-lines-not-awaited", 3000),
        ],
        ..RandomTester::DEFAULT
    },
    alternatives: ALTERNATIVES,
    ..TestPlan::EMPTY
};

/// The plan of `proteus-eadr`.
pub(crate) const PLAN_EADR: TestPlan = TestPlan {
    quick_faults: &["store-not-held", "removed-at-store", "recovery-ends-first"],
    random: RandomTester {
        further_faults: &["abort-not-ended", "spill-freed-at-issue"],
        runs_of_rare_faults: &[("block-twice-in-logq", 8000), ("spill-freed-at-issue", 1500)],
        ..PLAN.random
    },
    ..PLAN
};
