//! The test plans of designs on hardware transactions.

use crate::small_runs::{
    BTREE, CROWDED, FOUR_CONTROLLERS, FULL_QUEUE, HELD_UP, RING_OF_16, ROOMY, SWAP, TURNS, TWO_PLACES,
};
use crate::{Draw, RandomTester, Settings, ShortCampaign, TestPlan};

/// Elements of four lines.
const THREE_WIDE: &[(&str, &str)] = &[("populate", "3"), ("element-bytes", "256")];
/// More lines than the table of the undo log remembers, in no order.
const MANY_WORDS: &[(&str, &str)] = &[("populate", "64"), ("writes", "40"), ("reads", "0")];
/// Fewer lines than a transaction loads.
const SMALL_READ_SETS: Settings = &["design.rtm.read_set_lines=6"];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE),
    // One point of ten lies inside of a hardware transaction that has stored.
    ShortCampaign::of("array-swap", SWAP).threads(2).ops(30).points(400),
    // Written lines leave the L1D: transactions take the lock.
    ShortCampaign::of("btree", BTREE).with(&[CROWDED]).threads(2).ops(30),
    ShortCampaign::of("array-swap", TWO_PLACES).with(&[ROOMY]).threads(4).ops(60),
    ShortCampaign::of("array-swap", SWAP).with(&[CROWDED, FOUR_CONTROLLERS]).threads(4).ops(30),
    ShortCampaign::of("array-swap", SWAP).with(&[TURNS]).threads(4).ops(30),
    ShortCampaign::of("btree", BTREE).with_abort_and_retry(),
    ShortCampaign::of("btree", BTREE).with(&[CROWDED]).with_abort_and_retry(),
    // Attempts are used up by conflicts, so that some transactions run under the lock and others do not.
    ShortCampaign::of("array-swap", RING_OF_16).with(&[CROWDED]).ops(40),
    // Lines that the lock's log has twice.
    ShortCampaign::of("private-words", MANY_WORDS).with(&[CROWDED]).ops(20),
    ShortCampaign::of("array-swap", TWO_PLACES).with(&[ROOMY, HELD_UP]).threads(4).ops(400).seeds(3),
    ShortCampaign::of("array-swap", THREE_WIDE).with(&[ROOMY, SMALL_READ_SETS]).threads(4).ops(400).points(20).seeds(2),
];

/// Threads write shared words that they have not read, after words of their own.
const BLIND: &[(&str, &str)] = &[("populate", "2"), ("own-writes", "24")];
/// Stores of a whole transaction wait in the store buffer.
const DEEP: Settings = &["core.store_queue_entries=64", "core.rob_entries=128"];
const BLIND_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("blind-writes", BLIND).with(&[ROOMY, DEEP]).threads(4).ops(400).points(200).seeds(2),
    ShortCampaign::of("blind-writes", BLIND).with(&[ROOMY]).threads(4).ops(100),
];

/// Hardware transactions by themselves; where several variants have the same domains, the first stands for all.
const RANDOM: RandomTester = RandomTester {
    draws: &[Draw::half("design.rtm.read_set_lines", &["1", "2", "4", "12"])],
    common_marks: &["hardware-transaction-open", "hardware-transaction-stored"],
    never_waits: true,
    ..RandomTester::DEFAULT
};

pub(crate) const SGL: TestPlan = TestPlan {
    campaigns: &[CAMPAIGNS, BLIND_CAMPAIGNS],
    random: RANDOM,
    quick_faults: &["open-sets-survive", "abort-keeps-lines", "lock-path-not-logged"],
    canary: Some("recovery-skips-newest"),
    ..TestPlan::EMPTY
};

/// Logs of 48 words, which every few transactions fill.
const SHORT_LOG: &[(&str, &str)] = &[("populate", "12"), ("element-bytes", "64"), ("log-bytes", "512")];
const SHORT_LOG_OF_TWO: &[(&str, &str)] = &[("populate", "2"), ("element-bytes", "64"), ("log-bytes", "512")];
const SHORT_LOG_OF_TREE: &[(&str, &str)] = &[("populate", "12"), ("node-bytes", "128"), ("log-bytes", "2048")];

/// Longer logs, of 1,024 bytes.
const LOG_OF_TWO: &[(&str, &str)] = &[("populate", "2"), ("element-bytes", "64"), ("log-bytes", "1024")];
const SHORT_LOG_OF_WIDE: &[(&str, &str)] = &[("populate", "3"), ("element-bytes", "256"), ("log-bytes", "2048")];

const SPHT_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[ROOMY]),
    ShortCampaign::of("array-swap", SHORT_LOG).with(&[ROOMY]).threads(2).ops(60),
    ShortCampaign::of("array-swap", SHORT_LOG_OF_TWO).with(&[ROOMY]).threads(4).ops(120).points(300),
    // Written lines leave the L1D: transactions take the lock.
    ShortCampaign::of("array-swap", SHORT_LOG).with(&[CROWDED]).threads(4).ops(60),
    ShortCampaign::of("btree", SHORT_LOG_OF_TREE).threads(2).ops(40),
    ShortCampaign::of("array-swap", SHORT_LOG).with(&[ROOMY, TURNS]).threads(4).ops(60),
    ShortCampaign::of("btree", BTREE).with(&[ROOMY]).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SHORT_LOG).with(&[CROWDED]).threads(2).with_abort_and_retry(),
    ShortCampaign::of("array-swap", LOG_OF_TWO).with(&[ROOMY, HELD_UP]).threads(4).ops(200).points(1000).seeds(4),
    // Several threads have read a line that another one stores to.
    ShortCampaign::of("array-swap", LOG_OF_TWO)
        .with(&[ROOMY, HELD_UP, EIGHT_CORES])
        .threads(8)
        .ops(400)
        .points(20)
        .seeds(2),
];

/// Transactions load more lines than read sets hold.
const fn read_sets(ops: u64, seeds: u64) -> ShortCampaign {
    ShortCampaign::of("array-swap", SHORT_LOG_OF_WIDE)
        .with(&[ROOMY, SMALL_READ_SETS])
        .threads(4)
        .ops(ops)
        .points(20)
        .seeds(seeds)
}
const SPHT_READ_SETS: &[ShortCampaign] = &[read_sets(400, 2)];
/// Threads wait longer: fewer operations take as many instructions.
const TIMED_READ_SETS: &[ShortCampaign] = &[read_sets(250, 3)];

pub(crate) const SPHT: TestPlan = TestPlan {
    campaigns: &[SPHT_CAMPAIGNS, SPHT_READ_SETS, TEAM_CAMPAIGNS, PAGE_CAMPAIGNS, READ_ONLY_CAMPAIGNS, BLIND_CAMPAIGNS],
    quick_faults: &["store-not-logged", "replay-newest-first", "recovery-without-replay"],
    canary: Some("replay-forgets-last"),
    ..TestPlan::EMPTY
};

/// Cores for the threads of the program and for two replayers.
const EIGHT_CORES: Settings = &["cores=8"];
const TWO_REPLAYERS: &[(&str, &str)] =
    &[("populate", "200"), ("element-bytes", "64"), ("log-bytes", "1024"), ("replayers", "2")];

/// Transactions of all threads want the same words.
const TWO_REPLAYERS_OF_TWO: &[(&str, &str)] =
    &[("populate", "2"), ("element-bytes", "64"), ("log-bytes", "1024"), ("replayers", "2")];

/// Some transactions only read, what others have just stored.
const READERS: &[(&str, &str)] = &[("populate", "4"), ("shared-lines", "false"), ("look-percent", "50")];
const READ_ONLY_CAMPAIGNS: &[ShortCampaign] =
    &[ShortCampaign::of("false-sharing", READERS).with(&[ROOMY]).threads(4).ops(600).points(1000)];

/// Elements on several pages, so that each replayer has some.
const TEAM_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("array-swap", TWO_REPLAYERS).with(&[ROOMY, EIGHT_CORES]).threads(2).ops(100),
    ShortCampaign::of("array-swap", TWO_REPLAYERS).with(&[ROOMY, EIGHT_CORES]).threads(4).ops(200).points(600).seeds(2),
    ShortCampaign::of("array-swap", TWO_REPLAYERS_OF_TWO)
        .with(&[ROOMY, EIGHT_CORES])
        .threads(4)
        .ops(120)
        .points(600)
        .seeds(3),
];

/// Elements on eleven pages; six pages fit into the DRAM.
const SIX_PAGES: &[(&str, &str)] =
    &[("populate", "40"), ("element-bytes", "1024"), ("log-bytes", "8192"), ("shadow-bytes", "24576")];
/// As few as a transaction stores to, so that its own pages are the oldest.
const FIVE_PAGES: &[(&str, &str)] =
    &[("populate", "40"), ("element-bytes", "1024"), ("log-bytes", "8192"), ("shadow-bytes", "20480")];

const PAGE_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("array-swap", SIX_PAGES).with(&[ROOMY]).threads(2).ops(40).points(200),
    ShortCampaign::of("array-swap", SIX_PAGES).with(&[ROOMY]).threads(4).ops(80).points(200),
    ShortCampaign::of("array-swap", FIVE_PAGES).with(&[ROOMY]).threads(2).ops(160).points(200).seeds(3),
];

const LINKED_LOGS: &[(&str, &str)] =
    &[("populate", "12"), ("element-bytes", "64"), ("log-bytes", "512"), ("links", "true")];
const LINKED_BACK: &[(&str, &str)] =
    &[("populate", "12"), ("element-bytes", "64"), ("log-bytes", "1024"), ("links", "true"), ("replay", "backward")];

const LINK_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("array-swap", LINKED_LOGS).with(&[ROOMY]).threads(2).ops(60),
    ShortCampaign::of("array-swap", LINKED_BACK).with(&[ROOMY]).threads(2).ops(60),
    ShortCampaign::of("array-swap", LINKED_LOGS).with(&[CROWDED, FOUR_CONTROLLERS]).threads(4).ops(100).points(300),
    ShortCampaign::of("array-swap", LINKED_LOGS).with(&[ROOMY, HELD_UP]).threads(4).ops(200).points(600).seeds(2),
    ShortCampaign::of("array-swap", LINKED_BACK).with(&[ROOMY, HELD_UP]).threads(4).ops(200).points(600).seeds(2),
];

const LONGER_LOG: &[(&str, &str)] = &[("populate", "40"), ("element-bytes", "64"), ("log-bytes", "1536")];

const TIMED_CAMPAIGNS: &[ShortCampaign] = &[
    // Lines of one batch of replay, and the word with its progress, go to several controllers.
    ShortCampaign::of("array-swap", SHORT_LOG).with(&[ROOMY, FOUR_CONTROLLERS]).threads(4).ops(200).points(600),
    ShortCampaign::of("array-swap", LOG_OF_TWO)
        .with(&[ROOMY, FOUR_CONTROLLERS, FULL_QUEUE])
        .threads(4)
        .ops(200)
        .points(1000),
    // A line waits for its controller while one that was cleaned later is accepted by another.
    ShortCampaign::of("array-swap", LONGER_LOG)
        .with(&[ROOMY, FOUR_CONTROLLERS, FULL_QUEUE])
        .threads(4)
        .ops(200)
        .points(1000),
];

pub(crate) const TIMED: TestPlan = TestPlan {
    campaigns: &[
        SPHT_CAMPAIGNS,
        TIMED_READ_SETS,
        TIMED_CAMPAIGNS,
        TEAM_CAMPAIGNS,
        READ_ONLY_CAMPAIGNS,
        LINK_CAMPAIGNS,
        BLIND_CAMPAIGNS,
    ],
    quick_faults: &["store-not-logged", "marker-not-cleaned", "recovery-without-replay"],
    canary: Some("replay-skips-last-store"),
    random: RandomTester { seen_without_locks: &["open-sets-survive", "l1d-not-flushed"], ..RANDOM },
    ..SPHT
};

pub(crate) const NV_HTM: TestPlan = TestPlan {
    campaigns: &[
        SPHT_CAMPAIGNS,
        TIMED_READ_SETS,
        TIMED_CAMPAIGNS,
        TEAM_CAMPAIGNS,
        READ_ONLY_CAMPAIGNS,
        BLIND_CAMPAIGNS,
    ],
    quick_faults: &["store-not-logged", "end-not-cleaned", "recovery-without-replay"],
    ..TIMED
};
