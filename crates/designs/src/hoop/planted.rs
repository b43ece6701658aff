//! Faults that HOOP can be built with; see [`durasim_contract::PlantedFault`]. Those of both variants are [`ALL`].

use durasim_contract::PlantedFault;

durasim_contract::planted! {
    // Stores.
    PARTIAL_WORDS_WHOLE = "partial-words-whole", "A slice holds every byte of a word with some stored bytes";
    PACK_OVERWRITES_FIRST = "pack-overwrites-first", "The ninth word of a slice takes the place of the first";
    // Commits.
    COMMIT_FORGOTTEN = "commit-forgotten", "Commits write no entry of an address slice";
    RECORD_FIRST = "record-first", "The entry of a commit is handed over before the last slice";
    RESIDUAL_LOST = "residual-lost", "Commits do not write the slice that is not full";
    CHAIN_CUT = "chain-cut", "No slice names the next one";
    ENTRIES_SHARE_A_PLACE = "entries-share-a-place", "The entries of all commits have the same place";
    RING_OVERRUN = "ring-overrun", "Address slices are written anew before their commits are collected";
    // Evictions and misses.
    EVICTS_HOME = "evicts-home", "Persistent lines that leave the LLC go home";
    EVICTED_NOT_MAPPED = "evicted-not-mapped", "Lines that leave the LLC are not entered in the mapping table";
    FILL_IGNORES_MAPPING = "fill-ignores-mapping", "Misses do not ask the mapping table";
    FILL_FORGETS_BIT = "fill-forgets-bit", "Lines come back from the OOP region without the persistent bit";
    LINE_TABLE_OVERRUN = "line-table-overrun", "A full line table forgets a line with words that are not home";
    // Collection.
    GC_OLDEST_WINS = "gc-oldest-wins", "Of several committed words of an address the collector takes the oldest";
    GC_SEALS_FIRST = "gc-seals-first", "The collector marks commits as collected before their words are home";
    GC_NEVER_SEALS = "gc-never-seals", "The collector frees slices without marking their commits as collected";
    GC_WHOLE_LINES = "gc-whole-lines", "The collector writes whole lines home";
    GC_TAKES_NEWER_MAPPINGS = "gc-takes-newer-mappings", "The collector drops mapping entries of lines with uncollected words too";
    GC_STOPS_AT_FIRST_SLICE = "gc-stops-at-first-slice", "The collector reads the first slice of each transaction only";
    // Aborts.
    ABORT_KEEPS_LINES = "abort-keeps-lines", "Aborts leave their lines in the caches";
    ABORT_KEEPS_MAPPINGS = "abort-keeps-mappings", "Aborts leave their lines in the mapping table";
    // Recovery.
    RECOVERY_OLDEST_FIRST_WINS = "recovery-oldest-wins", "Recovery takes the oldest version of a word";
    RECOVERY_MERGES_BY_THREAD = "recovery-merges-by-thread", "Recovery merges what its threads have found by thread, not by commit";
    RECOVERY_DROPS_LAST = "recovery-drops-last", "Recovery overlooks the youngest commit";
    RECOVERY_FIRST_SLICES_ONLY = "recovery-first-slices-only", "Recovery follows no chain of slices";
    RECOVERY_IGNORES_MASKS = "recovery-ignores-masks", "Recovery writes whole lines home";
    RECOVERY_IGNORES_MARK = "recovery-ignores-mark", "Recovery takes commits that are collected too";
    RECOVERY_CLEARS_FIRST = "recovery-clears-first", "Recovery clears the address slices before their words are home";
    RECOVERY_WRITES_TWICE = "recovery-writes-twice", "Recovery writes every line home twice",
        equivalent: "The second write of a line has the same bytes as the first";
}

/// Misses of lines that an abort has taken from the caches do not wait until their committed words are home. The random
/// tester catches it.
pub(super) const SCATTERED_NOT_COLLECTED: PlantedFault = PlantedFault {
    name: "scattered-not-collected",
    summary: "Misses of lines that an abort has taken from the caches do not wait until their committed words are home",
    equivalent: None,
};

/// Commits do not wait for the entry of their address slice. Where caches survive they never do.
pub(super) const COMMIT_NOT_AWAITED: PlantedFault = PlantedFault {
    name: "commit-not-awaited",
    summary: "Commits do not wait for the entry of their address slice",
    equivalent: None,
};

/// Those of the variant whose caches are lost.
pub(super) const LOST_CACHES: &[PlantedFault] = &{
    let mut all = [COMMIT_NOT_AWAITED; ALL.len() + 1];
    let mut i = 0;
    while i < ALL.len() {
        all[i] = ALL[i];
        i += 1;
    }
    all
};

// Faults that no campaign with programs has shown so far; the random tester catches them.

/// A dirty line is not written home when it becomes persistent.
pub(super) const VOLATILE_LINE_NOT_CLEANED: PlantedFault = PlantedFault {
    name: "volatile-line-not-cleaned",
    summary: "A dirty line is not written home when it becomes persistent",
    equivalent: None,
};

/// Without a line table, a full mapping table drops entries of lines with words that are not home.
pub(super) const UNHOMED_MAPPING_DROPPED: PlantedFault = PlantedFault {
    name: "unhomed-mapping-dropped",
    summary: "Without a line table, a full mapping table drops entries of lines with words that are not home",
    equivalent: None,
};

/// If stores send their words, a slice is written without those that have not come. The random tester catches it.
pub(super) const WORDS_NOT_AWAITED: PlantedFault = PlantedFault {
    name: "words-not-awaited",
    summary: "Where stores send their words, a slice is written without those that have not come",
    equivalent: None,
};

/// Plain stores to persistent lines make these lines ordinary ones.
pub(super) const PLAIN_STORES_UNROUTED: PlantedFault = PlantedFault {
    name: "plain-stores-unrouted",
    summary: "Plain stores to persistent lines make these lines ordinary ones",
    equivalent: None,
};
