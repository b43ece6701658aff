//! Faults that PiCL can be built with; see [`PlantedFault`].

use durasim_contract::PlantedFault;

durasim_contract::planted! {
    // Pre-images.
    LINE_NOT_LOGGED = "line-not-logged", "Every fourth line has no pre-images";
    PRE_IMAGE_TAKES_NEW = "pre-image-takes-new", "A pre-image has the bytes of the store already";
    VALID_FROM_ZERO = "valid-from-zero", "ValidFrom is always 0",
        equivalent: "Recovery goes backwards through the log: an older pre-image of the line, which is there while the \
                     epoch that it ends is not persisted, overwrites one that is used too early";
    VALID_TILL_EARLY = "valid-till-early", "ValidTill is one epoch too early";
    // The undo buffer.
    EVICTION_NOT_HELD = "eviction-not-held", "A line leaves the caches while its pre-image is in the undo buffer";
    FILTER_CLEARED_EARLY = "filter-cleared-early", "The Bloom filter is cleared before the buffer's contents are durable";
    HEADER_TOO_EARLY = "header-too-early", "A superblock is declared valid together with its contents";
    // Epochs.
    EPOCH_INSIDE_TRANSACTION = "epoch-inside-transaction", "An epoch ends inside of transactions";
    EPOCH_OVERTAKES_SCAN = "epoch-overtakes-scan", "Epochs do not wait for the scan";
    // The scan.
    SCAN_SKIPS_LINES = "scan-skips-lines", "The scan overlooks every fourth line";
    SCAN_FORGETS_BUFFER = "scan-forgets-buffer", "PersistedEID advances while pre-images are in the undo buffer";
    PERSISTED_TOO_FAR = "persisted-too-far", "PersistedEID advances past the epoch that was scanned";
    // The log.
    GARBAGE_TOO_EARLY = "garbage-too-early", "Superblocks are given up one epoch too early";
    // Aborts.
    ABORT_NOT_UNDONE = "abort-not-undone", "Aborts leave what the transaction stored";
    ABORT_OLDEST_FIRST = "abort-oldest-first", "Aborts undo the oldest store first";
    // Recovery.
    RECOVERY_RESTORES_NOTHING = "recovery-restores-nothing", "Recovery applies no pre-image";
    RECOVERY_GOES_FORWARDS = "recovery-goes-forwards", "Recovery applies the oldest pre-image first";
    RECOVERY_IGNORES_PERSISTED = "recovery-ignores-persisted", "Recovery takes PersistedEID for 0";
    RECOVERY_OVERLOOKS_LAST = "recovery-overlooks-last", "Recovery overlooks the last superblock";
    RECOVERY_ERASES_FIRST = "recovery-erases-first", "Recovery erases the log before the pre-images are home";
    RECOVERY_KEEPS_LOG = "recovery-keeps-log", "Recovery leaves the superblocks of the log valid";
    RECOVERY_WRITES_TWICE = "recovery-writes-twice", "Recovery writes each line home twice",
        equivalent: "The second write has the same bytes as the first";
}

/// Stores outside of transactions make no pre-images.
pub(super) const PLAIN_STORE_NOT_LOGGED: PlantedFault = PlantedFault {
    name: "plain-store-not-logged",
    summary: "Stores outside of transactions make no pre-images",
    equivalent: None,
};

/// A clean writes a line while its pre-image is in the undo buffer.
pub(super) const CLEAN_NOT_HELD: PlantedFault = PlantedFault {
    name: "clean-not-held",
    summary: "A clean writes a line while its pre-image is in the undo buffer",
    equivalent: None,
};

/// Clean lines keep their EID until it wraps around.
pub(super) const STALE_EID_KEPT: PlantedFault = PlantedFault {
    name: "stale-eid-kept",
    summary: "Clean lines keep their EID until it wraps around",
    equivalent: None,
};

/// PersistedEID advances before the lines of the scan are accepted.
pub(super) const SCAN_NOT_AWAITED: PlantedFault = PlantedFault {
    name: "scan-not-awaited",
    summary: "PersistedEID advances before the lines of the scan are accepted",
    equivalent: None,
};

/// Superblocks overwrite those that are still needed.
pub(super) const LOG_OVERRUN: PlantedFault = PlantedFault {
    name: "log-overrun",
    summary: "Superblocks overwrite those that are still needed",
    equivalent: None,
};

/// Recovery applies pre-images of persisted epochs too.
pub(super) const RECOVERY_IGNORES_VALID_TILL: PlantedFault = PlantedFault {
    name: "recovery-ignores-valid-till",
    summary: "Recovery applies pre-images of persisted epochs too",
    equivalent: None,
};
