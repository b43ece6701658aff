//! The test plans of HOOP.

use crate::small_runs::{
    BTREE, CROWDED, FAR_CAMPAIGNS, FAR_CONTROLLERS, FOUR_CONTROLLERS, ONE_SET, SHARED, SLOW, SWAP, TURNS, TWO_PLACES,
    WORDS_OR_LINES,
};
use crate::{Alternatives, Choice, Draw, RandomTester, Settings, ShortCampaign, TestPlan};

/// Buffers of two slices, collections all the time, and a region that wraps around.
const EAGER_HOOP: Settings = &[
    "design.hoop.oop_buffer_bytes=256",
    "design.hoop.gc_period_ns=3000",
    "design.hoop.address_slices=1",
    "design.hoop.block_bytes=512",
    "design.hoop.region_bytes_max=32768",
];
/// Nothing is collected before sixteen commits wait for it.
const LAZY_HOOP: Settings = &["design.hoop.gc_period_ns=100000000", "design.hoop.address_slices=1"];
/// A line table that a few transactions fill.
const FEW_LINES: Settings = &["design.hoop.gc_period_ns=100000000", "design.hoop.line_table_bytes=160"];
/// No line table, and a mapping table that lines which are home fill too.
const NO_LINE_TABLE: Settings = &["design.hoop.line_table=false", "design.hoop.mapping_table_bytes=512"];
/// Commits that wait until their words are home.
const MIGRATED: Settings = &["design.hoop.commit=migrated"];
/// Stores that send their words to the buffer.
const SENT: Settings = &["design.hoop.words=sent", "design.hoop.oop_buffer_bytes=256"];
/// Commits that wait for the medium.
const BY_MEDIUM: Settings = &["design.hoop.acknowledged_by=medium"];
const NARROW: Settings = &["pmem.controller.write_queue_entries=1", "interconnect.write_back_buffers=1"];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[EAGER_HOOP, ONE_SET]).ops(30),
    ShortCampaign::of("array-swap", SWAP).with(&[LAZY_HOOP, ONE_SET]).ops(40),
    ShortCampaign::of("btree", BTREE).with(&[FEW_LINES, ONE_SET]).ops(40),
    ShortCampaign::of("btree", BTREE).with(&[LAZY_HOOP, ONE_SET]).with_abort_and_retry(),
    ShortCampaign::of("array-swap", TWO_PLACES).with(&[LAZY_HOOP, &["design.hoop.recovery_threads=3"]]).ops(40),
    ShortCampaign::of("array-swap", SWAP).with(&[EAGER_HOOP, NARROW]).threads(2).ops(40),
    ShortCampaign::of("false-sharing", SHARED).with(&[EAGER_HOOP, CROWDED]).threads(4).ops(60),
    ShortCampaign::of("btree", BTREE).with(&[LAZY_HOOP, CROWDED, FOUR_CONTROLLERS]).threads(4).ops(40).points(300),
    ShortCampaign::of("array-swap", SWAP).with(&[EAGER_HOOP, TURNS]).threads(3).ops(60).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[EAGER_HOOP, ONE_SET, SLOW]).ops(40).points(300).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[LAZY_HOOP, NO_LINE_TABLE, ONE_SET]).ops(40),
    ShortCampaign::of("array-swap", SWAP)
        .with(&[EAGER_HOOP, NO_LINE_TABLE, TURNS])
        .threads(3)
        .ops(60)
        .with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[LAZY_HOOP, MIGRATED, CROWDED]).threads(4).ops(40),
    ShortCampaign::of("btree", BTREE).with(&[LAZY_HOOP, SENT, CROWDED, FAR_CONTROLLERS]).threads(4).ops(40),
    ShortCampaign::of("array-swap", SWAP).with(&[EAGER_HOOP, SENT, ONE_SET]).ops(40).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SWAP).with(&[EAGER_HOOP, BY_MEDIUM, CROWDED, FOUR_CONTROLLERS]).threads(4).ops(40),
];

/// Buffers of a slice or two, a region of a few blocks, and collections all the time.
const DRAWS: &[Draw] = &[
    Draw::half("design.hoop.oop_buffer_bytes", &["256", "384"]),
    Draw::half("design.hoop.mapping_table_bytes", &["8", "16", "40"]),
    Draw::half("design.hoop.line_table_bytes", &["160", "320", "800"]),
    Draw::half("design.hoop.search_cycles", &["0", "200"]),
    Draw::half("design.hoop.eviction_buffer_bytes", &["64", "128"]),
    Draw::half("design.hoop.copies_in_flight", &["1", "2", "20"]),
    Draw::half("design.hoop.recovery_threads", &["1", "2", "3"]),
    Draw::always("design.hoop.gc_period_ns", &["100", "2000", "100000", "10000000"]),
    Draw::always("design.hoop.address_slices", &["1", "1", "2", "20"]),
    Draw::always("design.hoop.block_bytes", &["256", "512", "1024"]),
    // Sixteen cores need eighteen blocks.
    Draw::always("design.hoop.region_bytes_max", &["20480", "25600", "256000"]),
    Draw { one_in: 3, choice: Choice::All(&["design.hoop.line_table=false", "design.hoop.line_table_bytes=2097152"]) },
    Draw { one_in: 3, choice: Choice::All(&["design.hoop.words=\"sent\""]) },
    Draw { one_in: 4, choice: Choice::All(&["design.hoop.commit=\"migrated\""]) },
    Draw { one_in: 4, choice: Choice::All(&["design.hoop.acknowledged_by=\"medium\""]) },
];

const ALTERNATIVES: &[Alternatives] = &[
    Alternatives::of(
        "hoop-address-slices",
        &[&["design.hoop.address_slices=1"], &["design.hoop.address_slices=65536"]],
    ),
    Alternatives::of(
        "hoop-mapping-table",
        &[
            &["design.hoop.mapping_table_bytes=512"],
            &["design.hoop.search_cycles=0"],
            &["design.hoop.search_cycles=40"],
            &["design.hoop.eviction_buffer_bytes=64"],
        ],
    ),
    Alternatives::of(
        "hoop-line-table",
        &[
            &["design.hoop.line_table_bytes=2048"],
            &["design.hoop.line_table_bytes=16384"],
            &["design.hoop.line_table=false"],
        ],
    ),
    Alternatives::of("hoop-commit", &[&["design.hoop.acknowledged_by=medium"], &["design.hoop.commit=migrated"]]),
    Alternatives::of(
        "hoop-collector",
        &[
            &["design.hoop.gc_period_ns=2000"],
            &["design.hoop.gc_period_ns=10000000"],
            &["design.hoop.copies_in_flight=1"],
            &["design.hoop.copies_in_flight=64"],
        ],
    ),
    Alternatives::of(
        "hoop-home",
        &[&["design.hoop.oop_buffer_bytes=256"], &["design.hoop.oop_buffer_bytes=8192"], &["design.hoop.words=sent"]],
    ),
];

/// The plan of `hoop`.
pub(crate) const PLAN: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS, FAR_CAMPAIGNS],
    quick_faults: &["chain-cut", "gc-seals-first", "recovery-drops-last"],
    canary: Some("recovery-drops-last"),
    random: RandomTester {
        draws: DRAWS,
        locking_on_many_cores: WORDS_OR_LINES,
        common_marks: &[
            "slices_in_flight",
            "entry_in_flight",
            "uncommitted_line_evicted",
            "collector_reads",
            "collector_writes",
        ],
        further_faults: &[
            "volatile-line-not-cleaned",
            "plain-stores-unrouted",
            "scattered-not-collected",
            "unhomed-mapping-dropped",
            "words-not-awaited",
        ],
        // Its transactions touch fewer lines than the smallest table has entries.
        out_of_reach: &["line-table-overrun"],
        ..RandomTester::DEFAULT
    },
    alternatives: ALTERNATIVES,
    ..TestPlan::EMPTY
};

/// The plan of `hoop-eadr`.
pub(crate) const PLAN_EADR: TestPlan =
    TestPlan { quick_faults: &["fill-ignores-mapping", "record-first", "recovery-oldest-wins"], ..PLAN };
