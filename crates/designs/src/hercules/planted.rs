//! Faults that Hercules can be built with; see [`durasim_contract::PlantedFault`].

use durasim_contract::PlantedFault;

durasim_contract::planted! {
    // Transactions.
    TX_LEN_KEPT_AT_BEGIN = "tx-len-kept-at-begin", "A transaction begins with the TxLen of the last user of its identifier";
    TX_LEN_SKIPPED = "tx-len-skipped", "Commits store no TxLen";
    TX_LEN_OF_ANOTHER = "tx-len-of-another", "Commits store their TxLen in the profile of the neighbouring identifier";
    TX_LEN_NOT_AWAITED = "tx-len-not-awaited", "A commit does not wait until the controller has its TxLen",
        equivalent: "On eADR, the only domain of the variant, a write that waits for the queue survives as one in the queue \
                     does, and it is handed over before the commit goes on";
    STATES_RESET_FIRST = "states-reset-first", "Commits reset the states of their lines before they store TxLen";
    IDENTIFIER_SHARED = "identifier-shared", "GlobalTxID wraps around to identifiers that open transactions still use";
    IDENTIFIER_WITH_ENTRIES = "identifier-with-entries", "An identifier is taken again while entries of its last user are in the log";
    SWITCH_MIXES_REGISTERS = "switch-mixes-registers", "A thread that comes to a core finds the PerCoreTxID of another one";
    ABORT_KEEPS_LINES = "abort-keeps-lines", "Aborts leave their lines in the caches";
    ABORT_KEEPS_ENTRIES = "abort-keeps-entries", "Aborts leave their entries in the eWPQ";
    // Caches.
    COPY_DOWN_FORGOTTEN = "copy-down-forgotten", "The older version does not go down before a transactional store";
    MERGE_OVERWRITES_OLDER = "merge-overwrites-older", "An uncommitted version overwrites the older one below it";
    TAGGED_LINES_GO_HOME = "tagged-lines-go-home", "Uncommitted lines that leave the LLC go home";
    CONFLICTS_IGNORED = "conflicts-ignored", "Cores get and change the uncommitted lines of other cores";
    PROBES_GRANTED = "probes-granted", "Cores get the uncommitted lines of other cores, but may not change them",
        equivalent: "A program that guards words by locks looks at no word of such a line but its own, which is the same \
                     in all versions; programs without locks see the difference, and the random tester does";
    // The log and its eWPQ.
    ENTRY_HEADER_SKIPPED = "entry-header-skipped", "A log entry is written without its header";
    LOG_OVERTAKES_TAIL = "log-overtakes-tail", "LogHead passes LogTail: entries in use are overwritten";
    FILL_IGNORES_LOG = "fill-ignores-log", "Misses do not search the log";
    PARTIAL_MATCH_TRUSTED = "partial-match-trusted", "A miss takes the first log entry whose part of the home address is its own, whatever line that is";
    RELOAD_KEEPS_ENTRY = "reload-keeps-entry", "The entry of a line that is loaded again stays in the eWPQ";
    RELOAD_LOSES_TAG = "reload-loses-tag", "An uncommitted line that is loaded again counts as committed";
    SPILL_NOT_WRITTEN = "spill-not-written", "An entry that the eWPQ evicts is not written to the extension area";
    SPILL_LOSES_ENTRY = "spill-loses-entry", "An entry that the eWPQ evicts is forgotten";
    EXTENSION_NOT_SEARCHED = "extension-not-searched", "Misses search the eWPQ but not its extension area";
    CHAIN_POINTER_NOT_WRITTEN = "chain-pointer-not-written", "No pointer leads to a further block of the extension area";
    CHAIN_NOT_SEARCHED = "chain-not-searched", "Misses search the extension area but not the blocks that are chained to it";
    MIGRATES_UNCOMMITTED = "migrates-uncommitted", "Entries of open transactions are migrated too";
    MIGRATION_FREES_EARLY = "migration-frees-early", "An entry is free as soon as its migration starts, not when it is home";
    // Garbage collection of the log.
    GC_NAMES_FIRST = "gc-names-first", "The eWPQ names the new place of a moved log entry before the data is there";
    GC_HOLDS_NO_EVICTION = "gc-holds-no-eviction", "A line that leaves the LLC takes the log entry into which garbage collection is copying";
    GC_KEEPS_LOG_HEAD = "gc-keeps-log-head", "LogHead does not move when garbage collection has appended an entry there";
    GC_SLIDES_OVER_COMMITTED = "gc-slides-over-committed", "LogTail slides over committed entries of a chunk that are not home";
    GC_FORGETS_EXTENSION = "gc-forgets-extension", "A moved log entry stays under its old number in the extension area";
    GC_COPIES_NO_HEADER = "gc-copies-no-header", "Garbage collection moves the data of a log entry without its header";
    // Log extension.
    LOG_INDEX_NOT_WRITTEN = "log-index-not-written", "The address of a chunk of the log extension is not written to the index";
    INDIRECT_BIT_LOST = "indirect-bit-lost", "The written eWPQ entry does not record that its log entry is in the log extension";
    INDIRECT_READS_LOG = "indirect-reads-log", "A line in the log extension is loaded from the log entry of that number";
    // Power failure.
    FLUSH_DROPS_LINE = "flush-drops-line", "The crash flush leaves out the last line";
    FLUSH_ORDER_REVERSED = "flush-order-reversed", "The crash flush starts with the L1D: older versions come last";
    FLUSH_DROPS_EWPQ_ENTRY = "flush-drops-ewpq-entry", "The crash flush leaves out an eWPQ entry";
    VALIDITY_NOT_SAVED = "validity-not-saved", "The crash flush saves the entries of the eWPQ without the validity bitmap";
    EMERGENCY_ONE_SHORT = "emergency-one-short", "The crash flush counts one emergency entry less than it saves";
    // Recovery.
    RECOVERY_DROPS_LOG_ENTRY = "recovery-drops-log-entry", "Recovery overlooks the last log entry";
    RECOVERY_SKIPS_EXTENSION = "recovery-skips-extension", "Recovery does not read the extension area";
    RECOVERY_SKIPS_CHAIN = "recovery-skips-chain", "Recovery reads the extension area but not the blocks that are chained to it";
    RECOVERY_SKIPS_EMERGENCY = "recovery-skips-emergency", "Recovery does not read the emergency area";
    RECOVERY_REPLAYS_UNCOMMITTED = "recovery-replays-uncommitted", "Recovery carries transactions through whose TxLen is zero";
    RECOVERY_MARKS_FIRST = "recovery-marks-first", "Recovery marks the zone as recovered before it is";
    RECOVERY_CLEARS_TX_LEN_FIRST = "recovery-clears-tx-len-first", "Recovery clears the TxLens before all homes are written";
    RECOVERY_NEWEST_FIRST = "recovery-newest-first", "Recovery takes emergency and log entries in the opposite order";
    RECOVERY_WRITES_TWICE = "recovery-writes-twice", "Recovery writes every home twice",
        equivalent: "What it writes comes from the log and the emergency area, which it does not change before the end";
    RECOVERY_KEEPS_TX_LEN = "recovery-keeps-tx-len", "Recovery does not clear the TxLens",
        equivalent: "A TxLen counts only with an entry that bears its identifier; recovery leaves none, and the next \
                     transaction with that identifier starts by clearing it";
}

/// A line is written to its home address while a migration carries an older version there. No campaign with programs has
/// caught it so far; the random tester catches it.
pub(super) const EVICTION_OVERTAKES_MIGRATION: PlantedFault = PlantedFault {
    name: "eviction-overtakes-migration",
    summary: "A line goes home while a migration carries an older version there",
    equivalent: None,
};
