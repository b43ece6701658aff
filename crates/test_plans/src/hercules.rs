//! The test plan of Hercules.

use crate::small_runs::{
    BIG_BTREE, BIG_SWAP, BTREE, CROWDED, FAR_CAMPAIGNS, ONE_SET, PARKED, SHARED, SLOW, SWAP, TURNS, WIDE,
};
use crate::{
    Alternatives, Choice, CommonOnTiny, Draw, RandomTester, Settings, ShortCampaign, SmallestRegion, TestPlan,
};
use durasim_contract::Locking;

const FEW: Settings = &[
    "design.hercules.ewpq_entries=2",
    "design.hercules.tx_id_bits=4",
    "design.hercules.migration_period_instructions=300",
];
const SLOW_MIGRATION: Settings = &[
    "design.hercules.ewpq_entries=4",
    "design.hercules.tx_id_bits=4",
    "design.hercules.migration_period_instructions=1000000",
];
/// A log that is collected all the time, in chunks of two entries.
const EAGER_GC: Settings = &[
    "design.hercules.ewpq_entries=2",
    "design.hercules.migration_period_instructions=3000",
    "design.hercules.log_gc_trigger_entries=2",
    "design.hercules.log_gc_chunk_entries=2",
];
const COLLECTED: Settings = &[
    "design.hercules.ewpq_entries=4",
    "design.hercules.tx_id_bits=4",
    "design.hercules.migration_period_instructions=3000",
    "design.hercules.log_gc_trigger_entries=8",
    "design.hercules.log_gc_chunk_entries=4",
];
/// A log of some entries, which is extended by four at a time.
const SHORT_LOG: Settings = &[
    "design.hercules.ewpq_entries=4",
    "design.hercules.tx_id_bits=4",
    "design.hercules.migration_period_instructions=1000000",
    "design.hercules.log_zone_bytes=6000",
    "design.hercules.log_extension_bytes=4000",
    "design.hercules.log_extension_chunk_entries=4",
];
/// An extension area that soon grows by chained blocks.
const CHAINED: Settings = &[
    "design.hercules.ewpq_entries=2",
    "design.hercules.ewpq_extension_factor=1",
    "design.hercules.extension_block_entries=8",
];
const CONTROLLER: Settings = &[
    "design.hercules.tx_len_store=controller",
    "design.hercules.ewpq_entries=4",
    "pmem.controller.write_queue_entries=1",
];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[FEW, ONE_SET]),
    ShortCampaign::of("array-swap", SWAP).with(&[FEW, ONE_SET]),
    ShortCampaign::of("btree", BTREE).with(&[FEW]),
    ShortCampaign::of("array-swap", SWAP).with(&[SLOW_MIGRATION, ONE_SET]).ops(40),
    ShortCampaign::of("btree", BTREE)
        .with(&[SLOW_MIGRATION, ONE_SET, &["design.hercules.log_zone_bytes=6000"]])
        .ops(40),
    ShortCampaign::of("false-sharing", WIDE).with(&[FEW, PARKED]).threads(8).ops(1500).points(800),
    ShortCampaign::of("btree", BTREE).with(&[CONTROLLER, CROWDED, SLOW]).threads(4).ops(40),
    ShortCampaign::of("array-swap", SWAP).with(&[CONTROLLER]),
    // Lines that are in the log and, newer, in the caches.
    ShortCampaign::of("array-swap", &[("populate", "4"), ("element-bytes", "64")])
        .with(&[CONTROLLER, CROWDED, SLOW])
        .threads(4)
        .ops(60)
        .points(600),
    ShortCampaign::of("array-swap", SWAP).with(&[FEW]).with_abort_and_retry(),
    ShortCampaign::of("false-sharing", SHARED).with(&[FEW]).threads(2).ops(30),
    ShortCampaign::of("btree", BTREE).with(&[FEW, TURNS]).threads(4).ops(30),
    ShortCampaign::of("array-swap", SWAP).with(&[FEW, TURNS]).threads(4).ops(30),
    ShortCampaign::of("array-swap", BIG_SWAP)
        .with(&[&["design.hercules.ewpq_entries=16", "design.hercules.migration_period_instructions=300"]]),
    // The log is collected again and again.
    ShortCampaign::of("array-swap", BIG_SWAP).with(&[COLLECTED, ONE_SET]).ops(20).points(150),
    ShortCampaign::of("btree", BIG_BTREE).with(&[COLLECTED, ONE_SET]).ops(40).points(200),
    ShortCampaign::of("array-swap", SWAP).with(&[FEW, ONE_SET]).with_abort_and_retry(),
    // TxLens that wait for the controller, and entries that stay in the log.
    ShortCampaign::of("btree", BIG_BTREE).with(&[CONTROLLER, SLOW_MIGRATION]).threads(2).ops(40).points(300),
    ShortCampaign::of("array-swap", SWAP).with(&[EAGER_GC, ONE_SET]).ops(30),
    ShortCampaign::of("btree", BTREE).with(&[EAGER_GC, ONE_SET]).ops(40),
    ShortCampaign::of("btree", BTREE).with(&[EAGER_GC, CROWDED, SLOW]).threads(4).ops(40),
    ShortCampaign::of("btree", BTREE).with(&[SHORT_LOG, ONE_SET]).ops(40),
    ShortCampaign::of("array-swap", BIG_SWAP).with(&[SHORT_LOG, ONE_SET]),
    ShortCampaign::of("huge", &[("populate", "60"), ("lines-per-tx", "60")]).with(&[CHAINED, ONE_SET]).ops(3),
    // Entries that hold two bits of an address: every fourth line looks the same.
    ShortCampaign::of("btree", BTREE).with(&[FEW, ONE_SET, &["design.hercules.ewpq_home_bits=2"]]),
];

/// Queues of an entry or two, identifiers that wrap around, and a log of a dozen entries or some dozens.
const DRAWS: &[Draw] = &[
    Draw::half("design.hercules.tx_len_store", &["\"controller\""]),
    Draw::half("design.hercules.commit_wait", &["\"none\""]),
    Draw::half("design.hercules.ewpq_entries", &["1", "2", "3"]),
    Draw::half("design.hercules.ewpq_extension_factor", &["1", "1", "1", "2", "5"]),
    Draw::half("design.hercules.extension_block_entries", &["1", "3", "20"]),
    Draw::half("design.hercules.ewpq_home_bits", &["1", "2", "3"]),
    Draw::half("design.hercules.extension_lookup", &["\"scan\""]),
    Draw::half("design.hercules.migration_period_instructions", &["1", "20", "200"]),
    Draw::half("design.hercules.l1d_missing_way_period", &["0", "1", "2"]),
    Draw::half("design.hercules.trans_tag_percent_l1d", &["1", "25", "50", "75"]),
    Draw::half("design.hercules.trans_tag_percent_l2", &["50", "100"]),
    Draw::half("design.hercules.trans_tag_percent_llc", &["25", "50", "100"]),
    Draw::half("design.hercules.log_gc_trigger_entries", &["1", "2", "5", "12"]),
    Draw::half("design.hercules.log_gc_chunk_entries", &["1", "2", "4"]),
    Draw {
        one_in: 2,
        choice: Choice::OneOf(&[
            &["design.hercules.tx_id_bits=4", "design.hercules.log_extension_bytes=0"],
            &[
                "design.hercules.tx_id_bits=4",
                "design.hercules.log_extension_bytes=40000",
                "design.hercules.log_extension_chunk_entries=4",
                "design.hercules.log_extension_cycles=0",
            ],
            &[
                "design.hercules.tx_id_bits=4",
                "design.hercules.log_extension_bytes=150000",
                "design.hercules.log_extension_chunk_entries=40",
            ],
        ]),
    },
];

const ALTERNATIVES: &[Alternatives] = &[
    Alternatives::of(
        "hercules-victim",
        &[
            &["design.hercules.trans_tag_percent_l2=100", "design.hercules.trans_tag_percent_llc=100"],
            &["design.hercules.trans_tag_percent_l2=50", "design.hercules.trans_tag_percent_llc=50"],
        ],
    ),
    Alternatives::of(
        "hercules-gc",
        &[
            &["design.hercules.log_gc_trigger_entries=8", "design.hercules.log_gc_chunk_entries=4"],
            &["design.hercules.log_gc_trigger_entries=8", "design.hercules.log_gc_chunk_entries=1"],
        ],
    ),
    Alternatives::of(
        "hercules-controllers",
        &[&["pmem.controllers=2"], &["pmem.controllers=4", "pmem.interleave_bytes=64"]],
    ),
    Alternatives::of("hercules-txlen-store", &[&["design.hercules.tx_len_store=controller"]]),
    Alternatives {
        beside: &["opt"],
        ..Alternatives::of("hercules-commit-wait", &[&["design.hercules.commit_wait=none"]])
    },
    Alternatives::of("hercules-conflict", &[&["design.hercules.conflict_loser=requester"]])
        .shared_by("false-sharing", 4),
    Alternatives::of(
        "hercules-tag-rounding",
        &[
            &["design.hercules.tag_latency_rounding=nearest"],
            &["design.hercules.tag_latency_rounding=down"],
            &["design.hercules.tag_latency_increase_percent=0"],
        ],
    ),
    Alternatives::of(
        "hercules-extension-search",
        &[
            &["design.hercules.extension_search_first_cycles=0", "design.hercules.extension_search_line_cycles=0"],
            &["design.hercules.extension_search_first_cycles=900", "design.hercules.extension_search_line_cycles=30"],
            &["design.hercules.extension_lookup=scan"],
        ],
    ),
    Alternatives::of(
        "hercules-partial-match",
        &[
            &["design.hercules.ewpq_home_bits=8"],
            &["design.hercules.ewpq_home_bits=4"],
            &["design.hercules.ewpq_home_bits=4", "design.hercules.false_match_cycles=0"],
            &["design.hercules.ewpq_home_bits=4", "design.hercules.false_match_cycles=900"],
        ],
    ),
    Alternatives {
        machines: &["tiny"],
        ..Alternatives::of(
            "hercules-log-extension",
            &[
                &["design.hercules.log_zone_bytes=30400"],
                &["design.hercules.log_zone_bytes=30400", "design.hercules.log_extension_bytes=0"],
                &["design.hercules.log_zone_bytes=30400", "design.hercules.log_extension_chunk_entries=64"],
                &["design.hercules.log_zone_bytes=30400", "design.hercules.log_extension_cycles=300000"],
                &["design.hercules.log_zone_bytes=30400", "design.hercules.log_indirect_cycles=0"],
                &["design.hercules.log_zone_bytes=30400", "design.hercules.log_indirect_cycles=900"],
            ],
        )
    },
    Alternatives::of(
        "hercules-log-entry",
        &[&["pmem.media.write_granularity_bytes=16"], &["pmem.controller.coalesce_writes=false"]],
    ),
    Alternatives::of(
        "background-concurrency",
        &[&["design.hercules.migrations_in_flight=1"], &["design.hercules.migrations_in_flight=64"]],
    ),
];

/// The plan of `hercules`.
pub(crate) const PLAN: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS, FAR_CAMPAIGNS],
    quick_faults: &["spill-not-written", "reload-loses-tag", "recovery-marks-first"],
    canary: Some("recovery-drops-log-entry"),
    random: RandomTester {
        draws: DRAWS,
        draws_on_many_cores: &[
            Draw::always("design.hercules.conflict_loser", &["\"owner\"", "\"requester\""]),
            // Others continue while a commit waits for the controller.
            Draw {
                one_in: 3,
                choice: Choice::All(&[
                    "design.hercules.tx_len_store=\"controller\"",
                    "pmem.controller.write_queue_entries=1",
                    "interconnect.write_back_buffers=1",
                ]),
            },
        ],
        // Entries have 80 bytes.
        smallest_region: Some(SmallestRegion {
            parameter: "design.hercules.log_zone_bytes",
            if_set: "design.hercules.log_extension_bytes",
            spare_bytes: &[0, 0, 800, 4800],
        }),
        locking_on_many_cores: &[Locking::Nothing, Locking::Words, Locking::Lines],
        common_marks: &["premature_flush_open", "extension_populated", "migration_in_flight", "committed_off_chip"],
        rare_marks: &["extension_chained"],
        further_faults: &["eviction-overtakes-migration"],
        seen_without_locks: &["probes-granted"],
        out_of_reach: &["identifier-shared", "identifier-with-entries", "log-overtakes-tail"],
        runs_of_rare_faults: &[
            ("recovery-newest-first", 3000),
            ("eviction-overtakes-migration", 40_000),
            ("gc-slides-over-committed", 3000),
            ("gc-forgets-extension", 3000),
        ],
        ..RandomTester::DEFAULT
    },
    common_on_tiny: CommonOnTiny {
        counters: &["premature_flushes", "ewpq_spills", "migrations", "extension_hits", "off_chip_commits"],
        marks: &["premature_flush_open", "ewpq_full", "extension_populated", "migration_in_flight"],
    },
    overflow_settings: &[
        "design.hercules.ewpq_entries=4",
        "design.hercules.tx_id_bits=4",
        "design.hercules.migration_period_instructions=1000",
        "design.hercules.log_gc_trigger_entries=8",
        "design.hercules.log_gc_chunk_entries=4",
    ],
    alternatives: ALTERNATIVES,
    ..TestPlan::EMPTY
};
