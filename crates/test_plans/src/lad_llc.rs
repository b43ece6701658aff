//! The test plan of LAD-LLC.

use crate::small_runs::{BIG_SWAP, BTREE, CROWDED, FAR_CAMPAIGNS, FULL_QUEUE, SLOW, SWAP, TURNS, TWO_PLACES};
use crate::{Draw, RandomTester, Settings, ShortCampaign, TestPlan};
use durasim_contract::Locking;

/// Four banks, on links that messages can wait for.
const BANKS: Settings = &["interconnect.topology=crossbar", "interconnect.llc_banks=4"];
/// Messages to banks that overtake each other.
const JITTER: Settings = &["interconnect.path_jitter_cycles=400"];
/// A last level that every transaction overflows.
const SMALL_LLC: Settings = &["cores=1", "l1d.size_bytes=256", "l2.size_bytes=256", "llc.size_bytes=512"];
/// Four identifiers for each thread.
const FEW_IDS: Settings = &["design.lad-llc.dtx_id_bits=2"];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[BANKS]),
    ShortCampaign::of("array-swap", SWAP).with(&[BANKS, JITTER]),
    ShortCampaign::of("btree", BTREE).with(&[SMALL_LLC, BANKS]),
    ShortCampaign::of("array-swap", SWAP).with(&[SMALL_LLC, BANKS]).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SWAP).with(&[SMALL_LLC, BANKS, JITTER]),
    ShortCampaign::of("btree", BTREE).with(&[SMALL_LLC, BANKS]).ops(20).with_abort_and_retry(),
    ShortCampaign::of("array-swap", BIG_SWAP).with(&[SMALL_LLC, BANKS, FULL_QUEUE]).points(200),
    ShortCampaign::of("array-swap", BIG_SWAP).with(&[SMALL_LLC, BANKS, FULL_QUEUE]).points(200).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[BANKS, JITTER, CROWDED, SLOW]).threads(4).ops(40),
    ShortCampaign::of("array-swap", SWAP).with(&[BANKS, FEW_IDS, JITTER]).threads(2).ops(60),
    ShortCampaign::of("array-swap", SWAP).with(&[BANKS, TURNS]).threads(4).ops(30),
    ShortCampaign::of("array-swap", TWO_PLACES).with(&[BANKS, JITTER]).threads(4).ops(60).points(300),
    ShortCampaign::of("array-swap", TWO_PLACES).with(&[SMALL_LLC, BANKS, FEW_IDS, JITTER]).ops(60).points(600),
];

const DRAWS: &[Draw] = &[
    Draw::half("design.lad-llc.dtx_id_bits", &["2", "3"]),
    Draw::half("design.lad-llc.copy_area_lines", &["2", "5", "40"]),
    Draw::always("interconnect.topology", &["\"crossbar\""]),
];

/// The plan of `lad-llc`.
pub(crate) const PLAN: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS, FAR_CAMPAIGNS],
    quick_faults: &["commit-not-flushed", "cid-not-updated", "recovery-asks-one-bank"],
    canary: Some("recovery-drops-line"),
    random: RandomTester {
        draws: DRAWS,
        locking_on_many_cores: &[Locking::Lines],
        further_faults: &["flush-not-awaited", "records-kept", "abort-keeps-records", "commit-overtaken"],
        runs_of_rare_faults: &[("flush-not-awaited", 3000)],
        common_marks: &["cut_between_banks", "old_line_kept", "copy_in_flight", "ids_wrapped"],
        ..RandomTester::DEFAULT
    },
    ..TestPlan::EMPTY
};
