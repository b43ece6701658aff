//! Faults that FWB can be built with; see [`PlantedFault`].

use durasim_contract::PlantedFault;

durasim_contract::planted! {
    // Records.
    STORE_NOT_LOGGED = "store-not-logged", "The second store of a transaction to a line is not logged";
    UNDO_TAKES_NEW = "undo-takes-new", "The undo word of a record is the new one";
    REDO_TAKES_OLD = "redo-takes-old", "The redo word of a record is the old one";
    IDENTIFIER_SHARED = "identifier-shared", "All transactions bear the same identifier";
    // The log.
    TORN_BIT_KEPT = "torn-bit-kept", "The torn bit is the same in all rounds of the log";
    DURABLE_OUT_OF_ORDER = "durable-out-of-order", "An accepted record stands for all older ones";
    LOG_OVERRUN = "log-overrun", "Records overwrite those that are still needed";
    FILLER_FORGOTTEN = "filler-forgotten", "Where lines of the log are filled up, what fills them up is not written";
    // Ordering.
    EVICTION_NOT_HELD = "eviction-not-held", "A line leaves the caches while its record is in the log buffer";
    SCAN_NOT_HELD = "scan-not-held", "The scan writes a line while its record is in the log buffer";
    COMMIT_NOT_AWAITED = "commit-not-awaited", "A commit does not wait until its records are durable";
    COMMIT_RECORD_FORGOTTEN = "commit-record-forgotten", "A commit appends no record";
    // Space of the log.
    HEAD_AFTER_ONE_SCAN = "head-after-one-scan", "One scan is enough for records before it to be given up";
    HEAD_PASSES_OPEN = "head-passes-open", "Records of open transactions are given up";
    HEAD_PASSES_ABORTED = "head-passes-aborted", "Records of a transaction are given up as soon as it has aborted";
    SCAN_WRITES_NOTHING = "scan-writes-nothing", "The scan clears the bits of lines without writing them";
    // Aborts.
    ABORT_NOT_UNDONE = "abort-not-undone", "Aborts leave what the transaction stored";
    ABORT_OLDEST_FIRST = "abort-oldest-first", "Aborts undo the oldest store first";
    ABORT_RECORD_FORGOTTEN = "abort-record-forgotten", "Aborts append no record";
    // Recovery.
    RECOVERY_REDOES_NOTHING = "recovery-redoes-nothing", "Recovery does not redo committed transactions";
    RECOVERY_REDOES_OPEN = "recovery-redoes-open", "Recovery redoes transactions that never committed";
    RECOVERY_UNDOES_NOTHING = "recovery-undoes-nothing", "Recovery does not undo transactions that never committed";
    RECOVERY_UNDOES_OLDEST_FIRST = "recovery-undoes-oldest-first", "Recovery undoes the oldest store first";
    RECOVERY_IGNORES_MASK = "recovery-ignores-mask", "Recovery writes whole words of stores that were shorter";
    RECOVERY_IGNORES_HEAD = "recovery-ignores-head", "Recovery reads the log from its first byte";
    RECOVERY_ERASES_FIRST = "recovery-erases-first", "Recovery erases the log before the data is home";
    RECOVERY_KEEPS_LOG = "recovery-keeps-log", "Recovery leaves the records of the log after its head";
    RECOVERY_FORGETS_ERASING = "recovery-forgets-erasing", "Recovery does not note that it has begun to erase the log";
    RECOVERY_WRITES_TWICE = "recovery-writes-twice", "Recovery writes each line home twice",
        equivalent: "The second write has the same bytes as the first";
}

/// Stores outside of transactions are not logged.
pub(super) const PLAIN_STORE_NOT_LOGGED: PlantedFault = PlantedFault {
    name: "plain-store-not-logged",
    summary: "Stores outside of transactions are not logged",
    equivalent: None,
};

/// A store that crosses a word is logged for its first word alone.
pub(super) const SECOND_WORD_FORGOTTEN: PlantedFault = PlantedFault {
    name: "second-word-forgotten",
    summary: "A store that crosses a word is logged for its first word alone",
    equivalent: None,
};

/// A clean writes a line while its record is in the log buffer.
pub(super) const CLEAN_NOT_HELD: PlantedFault = PlantedFault {
    name: "clean-not-held",
    summary: "A clean writes a line while its record is in the log buffer",
    equivalent: None,
};

/// On machines with durable caches, a store does not wait for its record.
pub(super) const STORE_NOT_HELD: PlantedFault = PlantedFault {
    name: "store-not-held",
    summary: "Where caches survive, a store does not wait for its record",
    equivalent: Some(
        "A record is handed over in the cycle of its store, and on eADR, the only domain of the variant, what waits for the \
         queue survives as what is in it",
    ),
};

/// Records are overwritten before persistent memory knows the new head.
pub(super) const HEAD_NOT_AWAITED: PlantedFault = PlantedFault {
    name: "head-not-awaited",
    summary: "Records are overwritten before persistent memory knows the new head",
    equivalent: None,
};

/// Recovery undoes those records of an aborted transaction that the head has not passed.
pub(super) const RECOVERY_UNDOES_PARTS: PlantedFault = PlantedFault {
    name: "recovery-undoes-parts",
    summary: "Recovery undoes those records of an aborted transaction that the head has not passed",
    equivalent: None,
};

/// Those that matter where caches survive: nothing is redone there, and no line is held back or scanned.
pub(super) const EADR: &[PlantedFault] = &[
    STORE_NOT_LOGGED,
    UNDO_TAKES_NEW,
    IDENTIFIER_SHARED,
    TORN_BIT_KEPT,
    LOG_OVERRUN,
    STORE_NOT_HELD,
    COMMIT_NOT_AWAITED,
    COMMIT_RECORD_FORGOTTEN,
    HEAD_PASSES_OPEN,
    ABORT_NOT_UNDONE,
    ABORT_OLDEST_FIRST,
    ABORT_RECORD_FORGOTTEN,
    RECOVERY_REDOES_OPEN,
    RECOVERY_UNDOES_NOTHING,
    RECOVERY_UNDOES_OLDEST_FIRST,
    RECOVERY_IGNORES_HEAD,
    RECOVERY_ERASES_FIRST,
    RECOVERY_KEEPS_LOG,
    RECOVERY_FORGETS_ERASING,
    RECOVERY_WRITES_TWICE,
];
