//! The test plans of FWB.

use crate::small_runs::{
    BTREE, FAR_CAMPAIGNS, FOUR_CONTROLLERS, FULL_QUEUE, ONE_SET, ONE_SET_ON_ALL_CORES, ROOMY, SHARED, SWAP, TURNS,
    WORDS_OR_LINES,
};
use crate::{Alternatives, Choice, Draw, RandomTester, Settings, ShortCampaign, TestPlan};

/// A log that wraps around all the time, scanned in a few cycles.
const SHORT_RING: Settings =
    &["design.fwb.log_bytes=16384", "design.fwb.scan_period_cycles=3000", "design.fwb.scan_lines_per_cycle=64"];
const SHORTER_RING: Settings =
    &["design.fwb.log_bytes=6144", "design.fwb.scan_period_cycles=1000", "design.fwb.scan_lines_per_cycle=64"];
/// Records that stay in the buffer, and commits that wait, until the medium has written them.
const BY_MEDIUM: Settings = &["design.fwb.free_at=medium", "design.fwb.acknowledged_by=medium"];
/// Lines of the log that no two writes share.
const WHOLE_LINES: Settings = &["design.fwb.whole_lines=true"];
const TINY_BUFFER: Settings = &["design.fwb.log_buffer_entries=2"];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[ONE_SET]),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORT_RING, ONE_SET]).ops(40),
    ShortCampaign::of("btree", BTREE).with(&[ONE_SET, FULL_QUEUE]),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORTER_RING, ROOMY]).ops(60).points(200),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORTER_RING, ONE_SET]).ops(60).points(200).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_RING, TINY_BUFFER, ONE_SET]).ops(40).points(200),
    ShortCampaign::of("btree", BTREE).with(&[ONE_SET, FULL_QUEUE, FOUR_CONTROLLERS]).ops(30).points(200),
    ShortCampaign::of("btree", BTREE).with_abort_and_retry(),
    ShortCampaign::of("false-sharing", SHARED).with(&[SHORT_RING, ONE_SET_ON_ALL_CORES]).threads(4).ops(60).points(200),
    ShortCampaign::of("hash-table", &[("populate", "20")])
        .with(&[SHORT_RING, ONE_SET_ON_ALL_CORES])
        .threads(4)
        .ops(60)
        .points(200),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORT_RING, FULL_QUEUE, ROOMY]).threads(4).ops(80).points(300),
    ShortCampaign::of("queue", &[("populate", "8")]).with(&[SHORT_RING, TURNS]).threads(4).ops(60).points(200),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_RING, ROOMY]).ops(60).points(200).with_abort_and_retry(),
    // Aborts whose records are given up while their lines are dirty.
    ShortCampaign::of("false-sharing", &[("populate", "4"), ("shared-lines", "true")])
        .with(&[SHORTER_RING, ROOMY])
        .threads(4)
        .ops(60)
        .points(200)
        .with_abort_and_retry(),
    ShortCampaign::of("array-swap", &[("populate", "3"), ("element-bytes", "256")])
        .with(&[SHORT_RING])
        .threads(4)
        .ops(60)
        .points(200)
        .with_abort_and_retry(),
    // Records that a recovery leaves in the log are read by the next recovery; a head and records at controllers of their own.
    ShortCampaign::of("array-swap", SWAP)
        .with(&[SHORTER_RING, ROOMY])
        .ops(60)
        .points(300)
        .faults(&["clean", "recrash"]),
    ShortCampaign::of("array-swap", SWAP)
        .with(&[SHORTER_RING, FULL_QUEUE, FOUR_CONTROLLERS, ROOMY])
        .ops(100)
        .points(400),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORTER_RING, BY_MEDIUM, ONE_SET]).ops(60).points(200),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_RING, WHOLE_LINES, TINY_BUFFER, ONE_SET]).ops(40).points(200),
    ShortCampaign::of("array-swap", SWAP)
        .with(&[SHORT_RING, WHOLE_LINES, BY_MEDIUM, FULL_QUEUE, ROOMY])
        .threads(4)
        .ops(80)
        .points(300)
        .with_abort_and_retry(),
];

/// A log that wraps around all the time, and a buffer of a handful of records.
const DRAWS: &[Draw] = &[
    Draw::half("design.fwb.write_combining", &["false"]),
    Draw::half("design.fwb.scan_lines_per_cycle", &["2", "64"]),
    Draw::half("design.fwb.scan_from_percent", &["10", "80", "100"]),
    Draw::half("design.fwb.undo_cycles_per_record", &["0", "1"]),
    Draw::always("design.fwb.log_buffer_entries", &["2", "3", "4", "15"]),
    Draw::always("design.fwb.log_bytes", &["512", "1024", "1600", "4096", "16384"]),
    Draw::always("design.fwb.scan_period_cycles", &["200", "2000", "20000", "1000000"]),
    Draw { one_in: 4, choice: Choice::All(&["design.fwb.free_at=\"medium\""]) },
    Draw { one_in: 4, choice: Choice::All(&["design.fwb.acknowledged_by=\"medium\""]) },
    Draw { one_in: 4, choice: Choice::All(&["design.fwb.whole_lines=true", "design.fwb.log_bytes=4096"]) },
    Draw { one_in: 4, choice: Choice::All(&["design.fwb.scan_takes_ports=true"]) },
];

const ALTERNATIVES: &[Alternatives] = &[
    Alternatives::of(
        "fwb-sizes",
        &[
            &["design.fwb.log_buffer_entries=4"],
            &["design.fwb.log_buffer_entries=64"],
            &["design.fwb.log_bytes=65536"],
            &["design.fwb.scan_period_cycles=300000"],
        ],
    ),
    Alternatives::of("fwb-combining", &[&["design.fwb.write_combining=false"], &["design.fwb.whole_lines=true"]]),
    Alternatives::of(
        "fwb-acknowledgement",
        &[
            &["design.fwb.free_at=medium"],
            &["design.fwb.acknowledged_by=medium"],
            &["design.fwb.free_at=medium", "design.fwb.acknowledged_by=medium"],
        ],
    ),
    Alternatives::of(
        "fwb-scan",
        &[
            &["design.fwb.scan_lines_per_cycle=16"],
            &["design.fwb.scan_takes_ports=true"],
            &["design.fwb.scan_from_percent=25"],
            &["design.fwb.scan_from_percent=100"],
        ],
    ),
];

/// The plan of `fwb`.
pub(crate) const PLAN: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS, FAR_CAMPAIGNS],
    quick_faults: &["eviction-not-held", "commit-not-awaited", "recovery-redoes-open"],
    canary: Some("redo-takes-old"),
    random: RandomTester {
        draws: DRAWS,
        locking_on_many_cores: WORDS_OR_LINES,
        common_marks: &["record_buffered", "log_wrapped", "log_full", "scan_in_progress", "head_in_flight"],
        further_faults: &[
            "plain-store-not-logged",
            "second-word-forgotten",
            "clean-not-held",
            "head-not-awaited",
            "recovery-undoes-parts",
        ],
        runs_of_rare_faults: &[("head-not-awaited", 4000)],
        ..RandomTester::DEFAULT
    },
    alternatives: ALTERNATIVES,
    ..TestPlan::EMPTY
};

/// The plan of `fwb-eadr`: nothing is redone and nothing is scanned.
pub(crate) const PLAN_EADR: TestPlan = TestPlan {
    quick_faults: &["store-not-logged", "head-passes-open", "recovery-erases-first"],
    canary: Some("recovery-undoes-nothing"),
    random: RandomTester { common_marks: &["log_wrapped"], further_faults: &["second-word-forgotten"], ..PLAN.random },
    ..PLAN
};
