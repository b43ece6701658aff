//! The test plans of software logging.

use crate::small_runs::{APART, BTREE, FOUR_CONTROLLERS, RING_OF_16, ROOMY, SWAP, TWO_PLACES};
use crate::{Alternatives, ShortCampaign, TestPlan};
use durasim_types::Domain;

/// A ring of 328 words, no multiple of an entry, so that some entries wrap around its end.
const UNEVEN_RING: &[(&str, &str)] = &[("populate", "20"), ("node-bytes", "128"), ("log-bytes", "2688")];
const LOG_OF_WORDS: &[(&str, &str)] = &[("populate", "8"), ("shared-lines", "true"), ("log-granularity", "word")];

const UNDO_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE),
    ShortCampaign::of("btree", UNEVEN_RING).ops(30),
    ShortCampaign::of("array-swap", SWAP),
    ShortCampaign::of("btree", BTREE).with(&[FOUR_CONTROLLERS]).ops(20).faults(&["reorder", "nested"]),
    ShortCampaign::of("array-swap", RING_OF_16).ops(40),
    ShortCampaign::of("false-sharing", LOG_OF_WORDS).threads(4).ops(40),
    ShortCampaign::of("btree", BTREE).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SWAP).threads(2).ops(30),
    ShortCampaign::of("false-sharing", APART).threads(4).ops(40),
];

pub(crate) const UNDO_FLUSH: TestPlan = TestPlan {
    campaigns: &[UNDO_CAMPAIGNS],
    quick_faults: &["entry-not-cleaned", "record-skipped", "recovery-skips-oldest"],
    canary: Some("recovery-skips-newest"),
    alternatives: &[Alternatives::of("swl-granularity", &[&["--arg log-granularity=word"]])],
    ..TestPlan::EMPTY
};

pub(crate) const UNDO_FENCE: TestPlan =
    TestPlan { quick_faults: &["checksum-after-store", "acknowledged-first", "recovery-skips-newest"], ..UNDO_FLUSH };

/// Of logs that hold new values: the words go home after the commit record.
const NEW_VALUE_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE),
    // A ring of 20 lines, so that some transactions wrap around its end.
    ShortCampaign::of("array-swap", RING_OF_16).ops(30),
    ShortCampaign::of("array-swap", SWAP).threads(2).ops(30),
    ShortCampaign::of("btree", BTREE).with(&[FOUR_CONTROLLERS]).ops(20).faults(&["reorder", "nested"]),
    ShortCampaign::of("btree", BTREE).with_abort_and_retry(),
    // Threads write to the same words in turn: what a log still holds is no longer the newest.
    ShortCampaign::of("array-swap", TWO_PLACES).with(&[ROOMY]).threads(4).ops(60),
    ShortCampaign::of("array-swap", TWO_PLACES)
        .with(&[ROOMY, FOUR_CONTROLLERS])
        .threads(4)
        .ops(60)
        .points(300)
        .faults(&["reorder"]),
    // If no queue survives, a commit record is torn; another core has to do something meanwhile.
    ShortCampaign::of("false-sharing", APART).on(Domain::Media).threads(4).ops(40).points(300).faults(&["torn"]),
];

pub(crate) const REDO: TestPlan = TestPlan {
    campaigns: &[NEW_VALUE_CAMPAIGNS],
    quick_faults: &["record-before-entries", "truncated-before-home", "recovery-stops-after-first"],
    canary: Some("recovery-skips-last"),
    ..TestPlan::EMPTY
};

pub(crate) const WRITE_AHEAD: TestPlan = TestPlan {
    quick_faults: &["no-fence-after-log", "emptied-before-stores", "recovery-applies-first-only"],
    canary: Some("recovery-forgets-last"),
    ..REDO
};
