//! The test plans of Kiln.

use crate::small_runs::{BIG_SWAP, BTREE, CROWDED, FAR_CAMPAIGNS, FULL_QUEUE, SLOW, SWAP, TURNS};
use crate::{Alternatives, Choice, Draw, RandomTester, Settings, ShortCampaign, TestPlan};
use durasim_contract::Locking;

const PLAIN_LLC: Settings = &["design.kiln.llc_size_factor=1"];
/// A last level that every transaction overflows, with FIFOs that are large enough.
const SMALL_LLC: Settings = &[
    "design.kiln.llc_size_factor=1",
    "design.kiln.fifo_entries=64",
    "cores=1",
    "l1d.size_bytes=256",
    "l2.size_bytes=256",
    "llc.size_bytes=512",
];

/// Committed and uncommitted versions of a line beside each other.
const TWO_VERSIONS: Settings = &["design.kiln.versions=two-in-llc"];

/// Banks that take lines in turns, and lines from memory that are written before they go up.
const BANKS: Settings = &["design.kiln.llc_banks=2", "design.kiln.llc_fills=first"];
/// Commits that hold up what comes after them.
const BLOCKING: Settings = &["design.kiln.blocked_requests=all_and_core"];
/// FIFOs that give up lines as soon as all cores together have as many as the write queue takes.
const REQUEST_QUEUE: Settings = &["design.kiln.overflow_of=request_queue", "pmem.controller.write_queue_entries=4"];

const ON_BOTH_DOMAINS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[SMALL_LLC]),
    ShortCampaign::of("array-swap", SWAP).with(&[SMALL_LLC]),
    ShortCampaign::of("array-swap", SWAP).with(&[SMALL_LLC]).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[SMALL_LLC]).ops(20).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SWAP).with(&[PLAIN_LLC]),
    ShortCampaign::of("btree", BTREE).with(&[PLAIN_LLC]).with_abort_and_retry(),
    ShortCampaign::of("array-swap", BIG_SWAP).with(&[SMALL_LLC, FULL_QUEUE]).points(200),
    ShortCampaign::of("array-swap", BIG_SWAP).with(&[SMALL_LLC, FULL_QUEUE]).points(200).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SWAP).with(&[SMALL_LLC]).points(200).faults(&["nested"]),
    ShortCampaign::of("btree", BTREE).with(&[PLAIN_LLC, CROWDED, SLOW]).threads(4).ops(40),
    ShortCampaign::of("array-swap", SWAP).with(&[PLAIN_LLC, TURNS]).threads(4).ops(30),
    ShortCampaign::of("array-swap", SWAP).with(&[PLAIN_LLC, TWO_VERSIONS]),
    ShortCampaign::of("btree", BTREE).with(&[SMALL_LLC, TWO_VERSIONS]),
    ShortCampaign::of("array-swap", SWAP).with(&[SMALL_LLC, TWO_VERSIONS]).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[PLAIN_LLC, TWO_VERSIONS, CROWDED]).threads(4).ops(40),
    ShortCampaign::of("btree", BTREE).with(&[PLAIN_LLC, BANKS, BLOCKING, CROWDED]).threads(4).ops(40),
];

/// FIFOs of two entries.
const SHORT_FIFO: Settings = &["design.kiln.llc_size_factor=1", "design.kiln.fifo_entries=1"];

/// Commits that flush into the last level.
const FLUSHING: &[ShortCampaign] = &[
    ShortCampaign::of("array-swap", SWAP).with(&[SHORT_FIFO]),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_FIFO]),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORT_FIFO]).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_FIFO, FULL_QUEUE]).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_FIFO, FULL_QUEUE]).points(200),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORT_FIFO]).points(200).faults(&["nested"]),
    ShortCampaign::of("array-swap", SWAP).with(&[SHORT_FIFO, TURNS]).threads(3).ops(60),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_FIFO, CROWDED, SLOW]).threads(4).ops(40),
    ShortCampaign::of("array-swap", SWAP).with(&[PLAIN_LLC, REQUEST_QUEUE, TURNS]).threads(3).ops(60),
    ShortCampaign::of("btree", BTREE).with(&[SMALL_LLC, REQUEST_QUEUE]).with_abort_and_retry(),
];

/// FIFOs of a handful of entries, and areas for copies of as many.
const DRAWS: &[Draw] = &[
    Draw::half("design.kiln.overflow_percent", &["1", "50", "100"]),
    Draw::half("design.kiln.copies_in_flight", &["1", "2"]),
    Draw::half("design.kiln.llc_ports_per_core", &["2", "16"]),
    Draw::half("design.kiln.llc_pipelined", &["\"none\"", "\"all\""]),
    Draw::half("design.kiln.versions", &["\"two-in-llc\""]),
    Draw::half("design.kiln.llc_write_latency_cycles", &["1", "500"]),
    Draw::half("design.kiln.fifo_walk_cycles", &["0", "100"]),
    Draw::half("design.kiln.blocked_requests", &["\"lines\"", "\"none\""]),
    Draw::half("design.kiln.pinned_lines", &["false"]),
    Draw::half("design.kiln.copy_area_lines", &["1", "2", "5", "40"]),
    Draw::half("design.kiln.tx_id_bits", &["1", "2"]),
    Draw::always("design.kiln.llc_size_factor", &["1", "1", "1", "2", "4"]),
    Draw::always("design.kiln.fifo_entries", &["1", "2", "3", "4", "5"]),
    Draw {
        one_in: 2,
        choice: Choice::OneOf(&[
            &["design.kiln.llc_banks=1", "design.kiln.llc_ports_per_core=1"],
            &["design.kiln.llc_banks=4", "design.kiln.llc_ports_per_core=1"],
            &["design.kiln.llc_fills=\"first\""],
            &["design.kiln.overflow_of=\"l1d_fifo\""],
            &["design.kiln.overflow_of=\"request_queue\""],
            &["design.kiln.blocked_requests=\"core\""],
        ]),
    },
];

const ALTERNATIVES: &[Alternatives] = &[
    Alternatives::of(
        "kiln-llc",
        &[
            &["design.kiln.llc_size_factor=1"],
            &["design.kiln.llc_read_latency_cycles=30", "design.kiln.llc_write_latency_cycles=30"],
            &[
                "design.kiln.llc_size_factor=1",
                "design.kiln.llc_read_latency_cycles=30",
                "design.kiln.llc_write_latency_cycles=30",
            ],
            &["design.kiln.pinned_lines=false"],
        ],
    ),
    Alternatives::of(
        "kiln-llc-ports",
        &[
            &["design.kiln.llc_ports_per_core=4"],
            &["design.kiln.llc_pipelined=none"],
            &["design.kiln.llc_pipelined=all"],
            &["design.kiln.llc_banks=1"],
            &["design.kiln.llc_banks=2"],
            &["design.kiln.llc_banks=4"],
            &["design.kiln.llc_banks=8"],
            &["design.kiln.llc_fills=first"],
        ],
    )
    .shared_by("btree", 4),
    Alternatives::of("kiln-home-first", &[&["design.kiln.versions=two-in-llc"]]),
    Alternatives::of(
        "kiln-fifo",
        &[
            &["design.kiln.fifo_entries=8"],
            &["design.kiln.fifo_entries=16"],
            &["design.kiln.fifo_entries=1024"],
            &["design.kiln.fifo_walk_cycles=0"],
        ],
    ),
    Alternatives::of(
        "kiln-overflow",
        &[
            &["design.kiln.fifo_entries=8", "design.kiln.overflow_percent=50"],
            &["design.kiln.fifo_entries=8", "design.kiln.overflow_percent=100"],
            &["design.kiln.copy_area_lines=65536"],
            &["design.kiln.overflow_of=l1d_fifo"],
            &["design.kiln.overflow_of=request_queue"],
        ],
    ),
    Alternatives::of(
        "kiln-blocking",
        &[
            &["design.kiln.blocked_requests=lines"],
            &["design.kiln.blocked_requests=none"],
            &["design.kiln.blocked_requests=core"],
            &["design.kiln.blocked_requests=all_and_core"],
        ],
    )
    .shared_by("btree", 4),
    Alternatives::of("kiln-txid", &[&["design.kiln.tx_id_bits=3"]]).shared_by("btree", 4),
    Alternatives::of(
        "background-concurrency",
        &[&["design.kiln.copies_in_flight=1"], &["design.kiln.copies_in_flight=64"]],
    ),
];

/// The plan of `kiln`.
pub(crate) const PLAN: TestPlan = TestPlan {
    campaigns: &[ON_BOTH_DOMAINS, FLUSHING, FAR_CAMPAIGNS],
    quick_faults: &["commit-not-flushed", "evicted-without-copy", "recovery-ignores-register"],
    canary: Some("recovery-drops-line"),
    random: RandomTester {
        draws: DRAWS,
        locking_on_many_cores: &[Locking::Lines],
        common_marks: &[
            "flushing",
            "fifo_full",
            "register_written",
            "copy_in_flight",
            "old_line_kept",
            "records_being_cleared",
        ],
        further_faults: &[
            "fill-untagged",
            "pre-image-forgotten",
            "flush-misses-other-cores",
            "copy-overtakes-push",
            "way-home-not-awaited",
            "older-version-kept",
            "copies-home-without-older",
        ],
        runs_of_rare_faults: &[("copy-overtakes-push", 3000), ("way-home-not-awaited", 3000)],
        ..RandomTester::DEFAULT
    },
    alternatives: ALTERNATIVES,
    ..TestPlan::EMPTY
};

/// The plan of `kiln-eadr`: FIFOs never fill, so the campaigns that fill them are left out.
pub(crate) const PLAN_EADR: TestPlan = TestPlan {
    campaigns: &[ON_BOTH_DOMAINS, FAR_CAMPAIGNS],
    quick_faults: &["register-not-written", "copy-not-awaited", "recovery-undoes-committing"],
    // Its recovery has no list of lines, so it cannot miss one.
    canary: None,
    random: RandomTester {
        common_marks: &["copy_in_flight", "old_line_kept", "register_written"],
        // Nothing of Kiln waits there without the whole memory system.
        never_waits: true,
        further_faults: &["fill-untagged", "pre-image-forgotten"],
        ..PLAN.random
    },
    ..PLAN
};
