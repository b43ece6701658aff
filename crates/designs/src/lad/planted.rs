//! Faults that LAD can be built with; see [`PlantedFault`].

use durasim_contract::PlantedFault;
durasim_contract::planted! {
    // The LAD controllers.
    EVICTION_NOT_FLUSHED = "eviction-not-flushed", "A marked line that leaves the L1D loses its mark and is not flushed";
    REQUEST_NOT_FLUSHED = "request-not-flushed", "A marked line that another core asks for loses its mark and is not flushed";
    SWITCH_NOT_FLUSHED = "switch-not-flushed", "A thread that leaves its core loses its marks, and nothing is flushed";
    FLUSHED_LINE_NOT_MARKED = "flushed-line-not-marked", "A line that was flushed and is stored to again is not marked again";
    FLUSHES_NOT_AWAITED = "flushes-not-awaited", "The commit phase begins while flushes are not acknowledged";
    COMMIT_NOT_AWAITED = "commit-not-awaited", "DTX_End retires when DTX_Commit is sent";
    // The controllers.
    SPECULATIVE_BIT_NOT_SET = "speculative-bit-not-set", "A DTX_Flush enters the queue as an ordinary write";
    COMMIT_CLEARS_ALL = "commit-clears-all", "A commit clears the speculative bits of all entries of its controller";
    CID_NOT_UPDATED = "cid-not-updated", "A commit clears speculative bits and leaves DTX_CID as it was";
    IDS_REUSED = "ids-reused", "DTX_IDs are used again while undo entries and commits of old ones are left";
    // Fallback logging.
    UNDO_NOT_AWAITED = "undo-not-awaited", "A speculative entry is written in place before its undo entry is durable";
    UNDO_HAS_NEW_VALUE = "undo-has-new-value", "An undo entry has the value of the speculative entry";
    UNDO_OF_ANOTHER_DTX = "undo-of-another-dtx", "An undo entry names the DTX before its own";
    SECOND_VERSION_LOGGED = "second-version-logged", "A line that a DTX flushes twice is logged twice";
    LOG_OVERRUN = "log-overrun", "A full undo log goes on in the slots of its oldest entries";
    RECLAIMED_WHILE_OPEN = "reclaimed-while-open", "Undo entries of open DTXs are reclaimed";
    // Recovery.
    RECOVERY_WITHOUT_CONSENSUS = "recovery-without-consensus", "Each controller goes by its own DTX_CID";
    RECOVERY_TAKES_NUMERIC_MAX = "recovery-takes-numeric-max", "V_commit has the largest numbers, as if they did not wrap around";
    RECOVERY_UNDOES_NOTHING = "recovery-undoes-nothing", "Recovery does not read the undo logs";
    RECOVERY_UNDOES_COMMITTED = "recovery-undoes-committed", "Recovery undoes entries of committed DTXs";
    RECOVERY_DROPS_PURGATORY = "recovery-drops-purgatory", "Recovery does not read the purgatory";
    RECOVERY_WRITES_UNCOMMITTED = "recovery-writes-uncommitted", "Recovery writes entries of uncommitted DTXs home";
    RECOVERY_OVERLOOKS_LAST = "recovery-overlooks-last", "Recovery overlooks the last entry of the purgatory";
    RECOVERY_CLEARS_FIRST = "recovery-clears-first", "Recovery clears the purgatory before its entries are home";
    RECOVERY_KEEPS_PURGATORY = "recovery-keeps-purgatory", "Recovery leaves the entries of the purgatory",
        equivalent: "A power failure writes the number of its entries anew";
}

/// Bytes that stores outside of DTXs left in a line wait for the DTX that stores there next.
pub(super) const PLAIN_BYTES_NOT_HOME: PlantedFault = PlantedFault {
    name: "plain-bytes-not-home",
    summary: "What stores outside of DTXs left in a line waits for the DTX that stores there next",
    equivalent: None,
};

/// A DTX_Commit that comes late sets DTX_CID back.
pub(super) const CID_GOES_BACK: PlantedFault =
    PlantedFault { name: "cid-goes-back", summary: "A DTX_Commit that comes late sets DTX_CID back", equivalent: None };

/// The queues drain into the purgatory newest entry first.
pub(super) const PURGATORY_NEWEST_FIRST: PlantedFault = PlantedFault {
    name: "purgatory-newest-first",
    summary: "The queues drain into the purgatory newest entry first",
    equivalent: None,
};
