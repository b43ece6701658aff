//! Faults that TC can be built with; see [`durasim_contract::PlantedFault`].

use durasim_contract::PlantedFault;

durasim_contract::planted! {
    // Stores and commits.
    ENTRY_SKIPPED = "entry-skipped", "The second store of a transaction to a line takes no entry";
    COALESCES_INTO_ANY = "coalesces-into-any", "A store joins the youngest entry of its line, whatever its state";
    COMMIT_FORGOTTEN = "commit-forgotten", "Commits leave the entries of their transaction active";
    COMMIT_MISSES_COPYING = "commit-misses-copying", "Commits leave out entries whose old line is on the way to the shadow area";
    COMMIT_ORDER_IGNORED = "commit-order-ignored", "A commit does not wait for committed entries of the same bytes in other cores' caches",
        equivalent: "It matters only to transactions that are open at once and write the same bytes, which programs for \
                     a design without isolation keep apart by locks, held until after the commit";
    IDENTIFIER_REUSED = "identifier-reused", "A transaction takes the next identifier though another one bears it";
    // Draining.
    ISSUES_NEWEST_FIRST = "issues-newest-first", "Committed entries are issued newest first";
    FREED_AT_ISSUE = "freed-at-issue", "An entry is free when its write is handed over, not when the media has it";
    ACK_FREES_YOUNGEST = "ack-frees-youngest", "An acknowledgement frees the matching entry nearest the head";
    // The fall-back path.
    COPY_SKIPPED = "copy-skipped", "The fall-back path brings new data home without copying the old line";
    COPY_NOT_AWAITED = "copy-not-awaited", "The fall-back path brings new data home when one of its two writes is acknowledged";
    SHADOW_SLOT_REUSED = "shadow-slot-reused", "The fall-back path copies every line to the first slot of the shadow area";
    SHADOW_SLOTS_SHARED = "shadow-slots-shared", "All cores use the shadow slots of core 0";
    OVERFLOW_REGISTER_KEPT = "overflow-register-kept", "Commits do not clear the overflow register";
    // Caches.
    FILL_IGNORES_ENTRIES = "fill-ignores-entries", "Misses do not ask the transaction caches";
    FILL_OLDEST_WINS = "fill-oldest-wins", "Of several entries with a byte the oldest gives it to a miss";
    EVICTS_HOME = "evicts-home", "Persistent lines that leave the LLC go home";
    // Aborts.
    ABORT_KEEPS_LINES = "abort-keeps-lines", "Aborts leave their lines in the caches";
    ABORT_KEEPS_ENTRIES = "abort-keeps-entries", "Aborts leave their entries in the transaction cache";
    ABORT_NOT_UNDONE = "abort-not-undone", "Aborts do not bring old lines back from the shadow area";
    // Power failure and recovery.
    CACHE_NOT_KEPT = "cache-not-kept", "The transaction cache of core 0 does not survive";
    COPYING_ENTRIES_LOST = "copying-entries-lost", "Entries whose old line is on the way to the shadow area do not survive",
        equivalent: "Their transaction is open, so recovery discards them";
    RECOVERY_DROPS_ENTRY = "recovery-drops-entry", "Recovery overlooks the youngest committed entry of each core";
    RECOVERY_NEWEST_FIRST = "recovery-newest-first", "Recovery writes entries home newest first";
    RECOVERY_FORGETS_SHADOWS = "recovery-forgets-shadows", "Recovery does not undo what the fall-back path brought home";
    RECOVERY_REPLAYS_ACTIVE = "recovery-replays-active", "Recovery writes active entries home too";
    RECOVERY_IGNORES_MASK = "recovery-ignores-mask", "Recovery writes the whole line of an entry that holds some bytes";
    RECOVERY_CLEARS_FIRST = "recovery-clears-first", "Recovery clears a transaction cache before its entries are home";
    RECOVERY_WRITES_TWICE = "recovery-writes-twice", "Recovery writes the entries of all cores home twice",
        equivalent: "The second round ends with the same youngest bytes of every line as the first";
}

// Faults that no campaign with programs has shown so far; the random tester catches them.

/// A thread on another core stores to, and commits in, the transaction cache there.
pub(super) const THREAD_FOLLOWS_CORE: PlantedFault = PlantedFault {
    name: "thread-follows-core",
    summary: "A thread on another core stores to, and commits in, the transaction cache there",
    equivalent: None,
};

/// A store does not wait for committed entries of its line in other cores' caches.
pub(super) const ORDER_BETWEEN_CORES_IGNORED: PlantedFault = PlantedFault {
    name: "order-between-cores-ignored",
    summary: "A store does not wait for committed entries of its line in other cores' caches",
    equivalent: None,
};

/// Misses ask the transaction cache of their own core alone.
pub(super) const FILL_ASKS_OWN_CACHE: PlantedFault = PlantedFault {
    name: "fill-asks-own-cache",
    summary: "Misses ask the transaction cache of their own core alone",
    equivalent: None,
};

/// Plain stores to persistent lines go to the caches alone.
pub(super) const PLAIN_STORE_NOT_ROUTED: PlantedFault = PlantedFault {
    name: "plain-store-not-routed",
    summary: "Plain stores to persistent lines go to the caches alone",
    equivalent: None,
};

/// A dirty line that becomes persistent is not written home first.
pub(super) const DIRTY_LINE_NOT_CLEANED: PlantedFault = PlantedFault {
    name: "dirty-line-not-cleaned",
    summary: "A dirty line that becomes persistent is not written home first",
    equivalent: None,
};

/// An acknowledgement frees the matching entry nearest the tail, which may not be the one that was issued first: a unit test
/// of `tests.rs` shows what is lost.
pub(super) const ACK_FREES_NEAREST_TAIL: PlantedFault = PlantedFault {
    name: "ack-frees-nearest-tail",
    summary: "An acknowledgement frees the matching entry nearest the tail, whichever was issued first",
    equivalent: None,
};

/// Acknowledgements that overtake each other change the order of the entries in flight.
pub(super) const ACK_SWAPS_ENTRIES: PlantedFault = PlantedFault {
    name: "ack-swaps-entries",
    summary: "An acknowledgement that overtakes others of its line changes the order of the entries in flight",
    equivalent: None,
};
