//! The test plan of the transaction cache.

use crate::small_runs::{BTREE, CROWDED, FAR_CAMPAIGNS, ONE_SET, SHARED, SLOW, SWAP, TURNS, WORDS_OR_LINES};
use crate::{Alternatives, CommonOnTiny, Draw, RandomTester, Settings, ShortCampaign, TestPlan};

const TINY_TC: Settings = &["design.tc.entries=4", "design.tc.overflow_percent=50"];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[&["design.tc.entries=8"]]),
    ShortCampaign::of("array-swap", SWAP).with(&[TINY_TC]),
    ShortCampaign::of("btree", BTREE).with(&[&["design.tc.entries=8", "design.tc.coalesce=line"]]),
    ShortCampaign::of("array-swap", SWAP).with(&[TINY_TC]).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[&["design.tc.entries=64"]]).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SWAP).with(&[TINY_TC]).threads(2).ops(30),
    ShortCampaign::of("false-sharing", SHARED).with(&[&["design.tc.entries=8"]]).threads(4).ops(40),
    ShortCampaign::of("array-swap", SWAP).with(&[TINY_TC, TURNS]).threads(3).ops(60),
    ShortCampaign::of("btree", BTREE).with(&[&["design.tc.entries=16", "design.tc.overflow_percent=25"]]),
    ShortCampaign::of("btree", &[("populate", "30"), ("node-bytes", "128")])
        .with(&[&["design.tc.entries=256"], ONE_SET, SLOW])
        .ops(60),
    // Entries of the last transaction that wait long for the media, while the next one writes the same lines.
    ShortCampaign::of("array-swap", &[("populate", "2"), ("element-bytes", "64")])
        .with(&[&["design.tc.entries=64", "design.tc.coalesce=line"], SLOW])
        .ops(40),
    // One identifier for the threads of a core.
    ShortCampaign::of("array-swap", SWAP)
        .with(&[&["design.tc.entries=64", "design.tc.tx_id_bits=1"], TURNS])
        .threads(4)
        .ops(60),
    ShortCampaign::of("btree", &[("populate", "20"), ("node-bytes", "128"), ("trees", "1")])
        .with(&[&["design.tc.entries=64"], CROWDED, SLOW])
        .threads(4)
        .ops(60),
];

/// Transaction caches of a handful of entries.
const DRAWS: &[Draw] = &[
    Draw::half("design.tc.coalesce", &["\"line\""]),
    Draw::half("design.tc.overflow_percent", &["1", "50", "100"]),
    Draw::half("design.tc.shadow_lines", &["1", "2", "5"]),
    Draw::half("design.tc.tx_id_bits", &["1", "2", "3"]),
    Draw::half("design.tc.latency_read_cycles", &["0", "1", "400"]),
    Draw::half("design.tc.latency_write_cycles", &["0", "1", "400"]),
    Draw::half("design.tc.commit", &["\"accepted\"", "\"acknowledged\""]),
    Draw::half("design.tc.order", &["\"bytes\""]),
    Draw::half("design.tc.write_ports", &["2", "16"]),
    Draw::half("design.tc.read_ports", &["2", "16"]),
    Draw::half("design.tc.pipelined", &["true"]),
    Draw::always("design.tc.entries", &["2", "3", "4", "5", "6", "7", "8"]),
];

const ALTERNATIVES: &[Alternatives] = &[
    Alternatives::of("tc-coalescing", &[&["design.tc.coalesce=none"], &["design.tc.coalesce=line"]]),
    Alternatives::of(
        "tc-overflow",
        &[&["design.tc.overflow_percent=50"], &["design.tc.overflow_percent=100"], &["design.tc.shadow_lines=65536"]],
    ),
    Alternatives::of("tc-identifiers", &[&["design.tc.tx_id_bits=1"], &["design.tc.tx_id_bits=2"]]),
    Alternatives::of(
        "tc-latency",
        &[
            &["design.tc.latency_read_cycles=0", "design.tc.latency_write_cycles=0"],
            &["design.tc.latency_read_cycles=400", "design.tc.latency_write_cycles=500"],
        ],
    ),
    Alternatives::of(
        "tc-commit",
        &[&["design.tc.commit=early"], &["design.tc.commit=accepted"], &["design.tc.commit=acknowledged"]],
    ),
    Alternatives::of("tc-order", &[&["design.tc.order=bytes"]]),
    Alternatives::of(
        "tc-ports",
        &[
            &["design.tc.write_ports=4", "design.tc.read_ports=4"],
            &["design.tc.pipelined=true"],
            &["design.tc.write_ports=4", "design.tc.read_ports=4", "design.tc.pipelined=true"],
        ],
    ),
    Alternatives::of(
        "background-concurrency",
        &[&["design.tc.copies_in_flight=1"], &["design.tc.copies_in_flight=64"]],
    ),
];

/// The plan of `tc`.
pub(crate) const PLAN: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS, FAR_CAMPAIGNS],
    quick_faults: &["freed-at-issue", "copy-not-awaited", "recovery-newest-first"],
    canary: Some("recovery-drops-entry"),
    random: RandomTester {
        draws: DRAWS,
        locking_on_many_cores: WORDS_OR_LINES,
        common_marks: &["tc_full", "overflow_in_progress", "acknowledgement_in_flight", "identifier_wrapped_around"],
        further_faults: &[
            "thread-follows-core",
            "order-between-cores-ignored",
            "fill-asks-own-cache",
            "plain-store-not-routed",
            "dirty-line-not-cleaned",
            "ack-swaps-entries",
        ],
        runs_of_rare_faults: &[("recovery-newest-first", 1500), ("ack-swaps-entries", 4000)],
        ..RandomTester::DEFAULT
    },
    common_on_tiny: CommonOnTiny {
        counters: &["full_stalls", "overflows", "shadowed_lines", "dropped_evictions"],
        marks: &["tc_full", "overflow_in_progress", "acknowledgement_in_flight"],
    },
    overflow_settings: &["design.tc.entries=8", "design.tc.tx_id_bits=3"],
    alternatives: ALTERNATIVES,
    ..TestPlan::EMPTY
};
