//! The test plan of LAD.

use crate::small_runs::{
    APART, BIG_SWAP, BTREE, CROWDED, FAR_CAMPAIGNS, FAR_CONTROLLERS, FOUR_CONTROLLERS, ONE_SET, ROOMY, SWAP, TURNS,
    TWO_PLACES,
};
use crate::{Alternatives, CommonOnTiny, Draw, RandomTester, Settings, ShortCampaign, TestPlan};
use durasim_contract::Locking;

/// Queues so small that single transactions fill them, at four controllers.
const SMALL_QUEUES: Settings =
    &["pmem.controllers=4", "pmem.interleave_bytes=64", "pmem.controller.write_queue_entries=5"];
/// Four identifiers for each thread.
const FEW_IDS: Settings = &["design.lad.dtx_id_bits=2"];

/// Undo logs that a transaction fills before the system gives them more room.
const SMALL_LOGS: Settings = &[
    "design.lad.undo_log_entries=8",
    "design.lad.undo_log_entries_max=256",
    "design.lad.undo_log_growth_cycles=20000",
];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[ONE_SET, SMALL_QUEUES]),
    ShortCampaign::of("array-swap", BIG_SWAP).with(&[ROOMY, SMALL_QUEUES]),
    ShortCampaign::of("btree", BTREE).with(&[ONE_SET, FAR_CONTROLLERS, SMALL_QUEUES]).points(400),
    ShortCampaign::of("array-swap", SWAP)
        .with(&[SMALL_QUEUES, CROWDED, FAR_CONTROLLERS])
        .threads(4)
        .ops(60)
        .points(400),
    ShortCampaign::of("btree", BTREE).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SWAP).with(&[SMALL_QUEUES, FEW_IDS]).threads(2).ops(60),
    // Power fails while DTX_CIDs of controllers lie on both sides of a wrap.
    ShortCampaign::of("array-swap", SWAP)
        .with(&[ROOMY, SMALL_QUEUES, FEW_IDS, FAR_CONTROLLERS])
        .threads(2)
        .ops(60)
        .points(1500),
    ShortCampaign::of("array-swap", SWAP).with(&[TURNS]).threads(4).ops(30),
    ShortCampaign::of("array-swap", TWO_PLACES)
        .with(&[ROOMY, SMALL_QUEUES, FAR_CONTROLLERS])
        .threads(4)
        .ops(60)
        .points(300),
    ShortCampaign::of("btree", BTREE).with(&[ONE_SET, FOUR_CONTROLLERS]),
    ShortCampaign::of("false-sharing", APART).threads(4).ops(40),
    ShortCampaign::of("array-swap", BIG_SWAP).with(&[SMALL_QUEUES, FEW_IDS]).with_abort_and_retry(),
    // Commits that are long in flight to one controller while others have acknowledged later ones.
    ShortCampaign::of("array-swap", TWO_PLACES).with(&[ROOMY, SMALL_QUEUES, FAR_CONTROLLERS]).ops(60).points(1500),
    ShortCampaign::of("array-swap", BIG_SWAP).with(&[ROOMY, SMALL_QUEUES, SMALL_LOGS]).ops(30),
];

const DRAWS: &[Draw] = &[
    Draw::half("design.lad.dtx_id_bits", &["2", "3", "8"]),
    Draw::half("design.lad.logging_percent", &["1", "50", "100"]),
    Draw::half("design.lad.undo_log_entries", &["8", "16"]),
    Draw::half("design.lad.undo_log_growth_cycles", &["1", "1000"]),
    Draw::half("design.lad.reclaim_period_cycles", &["1", "300", "10000"]),
    Draw::half("design.lad.undo_cycles_per_store", &["0", "1"]),
];

const ALTERNATIVES: &[Alternatives] = &[Alternatives::of(
    "lad-log",
    &[
        &["pmem.controller.write_queue_entries=8", "design.lad.reclaim_period_cycles=10000"],
        &["pmem.controller.write_queue_entries=8", "design.lad.logging_percent=50"],
    ],
)];

/// The plan of `lad` and `lad-base`.
pub(crate) const PLAN: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS, FAR_CAMPAIGNS],
    quick_faults: &["eviction-not-flushed", "undo-has-new-value", "recovery-drops-purgatory"],
    canary: Some("recovery-overlooks-last"),
    random: RandomTester {
        draws: DRAWS,
        sizes_kept: &["undo_log_entries_max"],
        locking_on_many_cores: &[Locking::Lines],
        probes_isolate_nothing: true,
        never_aborts: true,
        // A DTX_CID that goes back (`cid-goes-back`) shows in the replay of the model; 10,000 runs here did not meet it.
        further_faults: &["plain-bytes-not-home", "purgatory-newest-first"],
        common_marks: &["cut_between_receipts", "undo_entry_of_open"],
        ..RandomTester::DEFAULT
    },
    common_on_tiny: CommonOnTiny {
        counters: &["undo_entries", "flushes.end"],
        marks: &["undo_entry_of_open", "undo_entry_of_committed"],
    },
    alternatives: ALTERNATIVES,
    ..TestPlan::EMPTY
};
