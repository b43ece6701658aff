//! Small programs and machines that the campaigns of several designs share.

use crate::{Settings, ShortCampaign, TestPlan};
use durasim_contract::Locking;

/// Arguments of `btree`.
pub(crate) const BTREE: &[(&str, &str)] = &[("populate", "20"), ("node-bytes", "128")];
/// A ring of 16 entries of lines, where those of later rounds begin where earlier ones did.
pub(crate) const RING_OF_16: &[(&str, &str)] = &[("populate", "12"), ("element-bytes", "256"), ("log-bytes", "1344")];
pub(crate) const BIG_BTREE: &[(&str, &str)] = &[("populate", "40"), ("node-bytes", "1024")];
/// Arguments of `array-swap`.
pub(crate) const SWAP: &[(&str, &str)] = &[("populate", "12"), ("element-bytes", "256")];
pub(crate) const BIG_SWAP: &[(&str, &str)] = &[("populate", "12"), ("element-bytes", "1024")];
/// Arguments of `false-sharing`: words of different locks on one line.
pub(crate) const SHARED: &[(&str, &str)] = &[("populate", "8"), ("shared-lines", "true")];
/// Words of different locks on lines of their own, many or few.
pub(crate) const WIDE: &[(&str, &str)] = &[("populate", "200"), ("shared-lines", "false")];
pub(crate) const APART: &[(&str, &str)] = &[("populate", "8"), ("shared-lines", "false")];
/// An array of two elements, which every transaction swaps.
pub(crate) const TWO_PLACES: &[(&str, &str)] = &[("populate", "2"), ("element-bytes", "64")];
/// Neighbouring lines at different controllers, which take a write at a time.
pub(crate) const FOUR_CONTROLLERS: Settings =
    &["pmem.controllers=4", "pmem.interleave_bytes=64", "pmem.controller.write_queue_entries=1"];
/// Threads that wait inside transactions while others go through all identifiers.
pub(crate) const PARKED: Settings = &["cores=1", "core.time_slice_cycles=20000", "core.context_switch_cycles=0"];
/// Caches so small that threads take each other's lines.
pub(crate) const CROWDED: Settings = &["l1d.size_bytes=256", "l2.size_bytes=512", "llc.size_bytes=2048"];
/// More threads than cores, in slices that end inside transactions.
pub(crate) const TURNS: Settings = &["cores=2", "core.time_slice_cycles=2000", "core.context_switch_cycles=0"];
/// Caches of one set of each level, which every transaction overflows.
pub(crate) const ONE_SET: Settings = &["cores=1", "l1d.size_bytes=256", "l2.size_bytes=256", "llc.size_bytes=512"];
/// Caches of one set of each level, on as many cores as the machine has.
pub(crate) const ONE_SET_ON_ALL_CORES: Settings = &["l1d.size_bytes=256", "l2.size_bytes=256", "llc.size_bytes=512"];
/// Threads that are held up between two instructions, for longer than others need for a transaction.
pub(crate) const HELD_UP: Settings = &["pauses.interval_cycles=3000", "pauses.cycles_max=20000"];
/// Writes that stay in flight for long.
pub(crate) const SLOW: Settings = &["pmem.media.write_latency_ns=3000"];
/// Caches that write nothing back by themselves.
pub(crate) const ROOMY: Settings = &["l1d.size_bytes=32768", "l2.size_bytes=65536", "llc.size_bytes=1048576"];
/// A write queue that is full most of the time.
pub(crate) const FULL_QUEUE: Settings = &["pmem.controller.write_queue_entries=1", "pmem.media.write_latency_ns=3000"];

/// Controllers at a distance that is drawn for each message.
pub(crate) const FAR_CONTROLLERS: Settings = &[
    "interconnect.core_to_controller_cycles=400",
    "interconnect.controller_to_core_cycles=100",
    "interconnect.memory_request_cycles=10",
    "interconnect.path_jitter_cycles=20000",
    "interconnect.write_back_buffers=64",
];
/// Campaigns in which much is in flight.
pub(crate) const FAR_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[ONE_SET, FAR_CONTROLLERS]),
    ShortCampaign::of("array-swap", TWO_PLACES).with(&[ONE_SET, FAR_CONTROLLERS, FOUR_CONTROLLERS]),
    ShortCampaign::of("array-swap", SWAP).with(&[CROWDED, FAR_CONTROLLERS]).threads(4).ops(30),
];

/// The data that threads of several cores lock if hardware isolates nothing and keeps the bytes of lines apart.
pub(crate) const WORDS_OR_LINES: &[Locking] = &[Locking::Words, Locking::Words, Locking::Lines];

const CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE).with(&[ONE_SET]),
    ShortCampaign::of("array-swap", SWAP).with(&[ONE_SET]),
    ShortCampaign::of("btree", BTREE).with_abort_and_retry(),
    ShortCampaign::of("array-swap", SWAP).with(&[TURNS]).threads(4).ops(30),
    ShortCampaign::of("false-sharing", APART).threads(4).ops(40),
];

/// For a variant that needs no settings of its own.
pub(crate) const DEFAULT: TestPlan = TestPlan { campaigns: &[CAMPAIGNS], ..TestPlan::EMPTY };
