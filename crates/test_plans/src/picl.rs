//! The test plan of PiCL.

use crate::small_runs::{
    BTREE, FAR_CAMPAIGNS, FOUR_CONTROLLERS, FULL_QUEUE, ONE_SET, ONE_SET_ON_ALL_CORES, ROOMY, SHARED, SWAP, TURNS,
    WORDS_OR_LINES,
};
use crate::{Alternatives, Draw, RandomTester, Settings, ShortCampaign, TestPlan};

/// Epochs of a few transactions, whose identifiers wrap around.
const SHORT_EPOCHS: Settings = &[
    "design.picl.log_bytes=1048576",
    "design.picl.epoch_instructions=3000",
    "design.picl.eid_bits=3",
    "design.picl.scan_lines_per_cycle=64",
    "design.picl.scan_gap_epochs=1",
];
const LONG_EPOCHS: Settings =
    &["design.picl.log_bytes=1048576", "design.picl.epoch_instructions=20000", "design.picl.scan_lines_per_cycle=16"];
const FEW_PRE_IMAGES: Settings = &["design.picl.undo_buffer_entries=2", "design.picl.log_bytes=16384"];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[SHORT_EPOCHS, ONE_SET]).ops(60).points(200),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORT_EPOCHS, ROOMY]).ops(100).points(200),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_EPOCHS, FEW_PRE_IMAGES, ONE_SET]).ops(60).points(200),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_EPOCHS, ONE_SET, FULL_QUEUE]).ops(60).points(200),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_EPOCHS, ONE_SET, FULL_QUEUE, FOUR_CONTROLLERS]).ops(60).points(200),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_EPOCHS, ONE_SET]).ops(40).points(200).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SWAP).with(&[LONG_EPOCHS, ONE_SET]).ops(100).points(200),
    ShortCampaign::of("false-sharing", SHARED)
        .with(&[SHORT_EPOCHS, ONE_SET_ON_ALL_CORES])
        .threads(4)
        .ops(100)
        .points(200),
    ShortCampaign::of("hash-table", &[("populate", "20")]).with(&[SHORT_EPOCHS, ROOMY]).threads(4).ops(100).points(200),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORT_EPOCHS, FULL_QUEUE, ROOMY]).threads(4).ops(200).points(300),
    ShortCampaign::of("queue", &[("populate", "8")]).with(&[SHORT_EPOCHS, FEW_PRE_IMAGES, TURNS]).threads(4).ops(100),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_EPOCHS, ROOMY]).ops(100).points(300).faults(&["clean", "recrash"]),
    // Bursts that are long in flight to one controller, and lines that leave for others meanwhile.
    ShortCampaign::of("btree", BTREE)
        .with(&[SHORT_EPOCHS, &["design.picl.undo_buffer_entries=8"], ONE_SET, FULL_QUEUE, FOUR_CONTROLLERS])
        .ops(60)
        .points(1500),
];

/// Epochs of some hundred instructions, whose identifiers wrap around, and a buffer of a handful of lines.
const DRAWS: &[Draw] = &[
    Draw::half("design.picl.scan_lines_per_cycle", &["4", "64"]),
    Draw::half("design.picl.scan_gap_epochs", &["0", "1", "2"]),
    Draw::half("design.picl.undo_cycles_per_store", &["0", "1"]),
    Draw::half("design.picl.eid_bits", &["3"]),
    Draw::half("design.picl.bloom_bits", &["8", "64"]),
    Draw::half("design.picl.bloom_hashes", &["1", "4"]),
    Draw::always("design.picl.hold_cycles", &["1", "100", "5000"]),
    Draw::always("design.picl.undo_buffer_entries", &["1", "2", "5", "32"]),
    Draw::always("design.picl.log_bytes", &["12000", "30000", "200000"]),
    Draw::always("design.picl.epoch_instructions", &["1", "5", "20", "100"]),
];

const ALTERNATIVES: &[Alternatives] = &[
    Alternatives::of(
        "picl-sizes",
        &[
            &["design.picl.epoch_instructions=300000"],
            &["design.picl.epoch_instructions=300000", "design.picl.scan_gap_epochs=0"],
            &["design.picl.epoch_instructions=300000", "design.picl.undo_buffer_entries=8"],
            &["design.picl.epoch_instructions=300000", "design.picl.bloom_bits=256"],
        ],
    ),
    Alternatives::of(
        "picl-scan",
        &[
            &["design.picl.epoch_instructions=300000"],
            &["design.picl.epoch_instructions=300000", "design.picl.scan_lines_per_cycle=16"],
        ],
    ),
    Alternatives::of("picl-log", &[&["design.picl.log_bytes=1048576"]]),
];

/// The plan of `picl`.
pub(crate) const PLAN: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS, FAR_CAMPAIGNS],
    quick_faults: &["line-not-logged", "garbage-too-early", "recovery-goes-forwards"],
    canary: Some("recovery-overlooks-last"),
    random: RandomTester {
        draws: DRAWS,
        locking_on_many_cores: WORDS_OR_LINES,
        common_marks: &["burst_in_flight", "two_epochs_persisted", "eid_wrapped", "undo_log_wrapped"],
        further_faults: &[
            "plain-store-not-logged",
            "clean-not-held",
            "stale-eid-kept",
            "scan-not-awaited",
            "log-overrun",
            "recovery-ignores-valid-till",
        ],
        runs_of_rare_faults: &[("stale-eid-kept", 3000)],
        ..RandomTester::DEFAULT
    },
    // Runs of some operations have several epochs then; commits write nothing.
    short_run_settings: &["design.picl.epoch_instructions=1000"],
    alternatives: ALTERNATIVES,
    ..TestPlan::EMPTY
};
