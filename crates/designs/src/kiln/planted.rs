//! Faults that Kiln can be built with; see [`durasim_contract::PlantedFault`].

use durasim_contract::PlantedFault;

durasim_contract::planted! {
    // Caches.
    COMMITTED_OVERWRITTEN = "committed-overwritten", "An uncommitted version takes the place of a committed one that is not home";
    EVICTED_WITHOUT_COPY = "evicted-without-copy", "An uncommitted line that leaves the last level goes home without a copy of the old line";
    // Commits.
    COMMIT_NOT_FLUSHED = "commit-not-flushed", "Commits flush nothing into the last level";
    FLUSH_MISSES_NEWEST = "flush-misses-newest", "Commits do not flush the newest entry of the FIFOs";
    FLUSH_NOT_AWAITED = "flush-not-awaited", "Commits write the register while lines are still being written into the last level";
    REGISTER_NOT_WRITTEN = "register-not-written", "Commits change states without the committing register";
    REGISTER_CLEARED_EARLY = "register-cleared-early", "The committing register is cleared when half of the states have changed";
    REGISTER_OVERTAKES_RECORDS = "register-overtakes-records", "The committing register is cleared before the records of the copies are";
    RECORDS_KEPT = "records-kept", "Commits leave the records of their copies";
    // The fall-back path.
    COPY_SKIPPED = "copy-skipped", "The fall-back path of a FIFO brings new data home without a copy of the old line";
    COPY_NOT_AWAITED = "copy-not-awaited", "The fall-back path records a copy that is still in flight";
    COPIES_STALE_LINE = "copies-stale-line", "The fall-back path of a FIFO copies the home line while a committed version waits in a cache";
    SLOT_SHARED = "slot-shared", "All copies go to the first place of the area";
    // Aborts.
    ABORT_KEEPS_LINES = "abort-keeps-lines", "Aborts leave their lines in the caches";
    ABORT_NOT_UNDONE = "abort-not-undone", "Aborts do not bring old lines back";
    ABORT_KEEPS_RECORDS = "abort-keeps-records", "Aborts leave the records of their copies";
    // Power failure and recovery.
    PENDING_GOES_HOME = "pending-goes-home", "A power failure takes uncommitted lines for committed ones";
    REGISTERS_LOST = "registers-lost", "The committing registers do not survive";
    RECOVERY_IGNORES_REGISTER = "recovery-ignores-register", "Recovery does not finish what a committing register says";
    RECOVERY_FORGETS_COPIES = "recovery-forgets-copies", "Recovery does not bring old lines back";
    RECOVERY_UNDOES_COMMITTING = "recovery-undoes-committing", "Recovery brings old lines of a transaction back that a committing register names";
    RECOVERY_CLEARS_REGISTERS_FIRST = "recovery-clears-registers-first", "Recovery clears the committing registers before it has finished";
    RECOVERY_CLEARS_RECORDS_FIRST = "recovery-clears-records-first", "Recovery clears the records before old lines are home";
    RECOVERY_DROPS_LINE = "recovery-drops-line", "Recovery overlooks the last line of what a commit has left";
    RECOVERY_WRITES_TWICE = "recovery-writes-twice", "Recovery writes everything home twice",
        equivalent: "The second round writes the same bytes to the same places";
}

// Faults that no campaign with programs has shown so far; the random tester catches them.

/// A commit does not wait until the media has what the fall-back path has taken out of FIFOs.
pub(super) const WAY_HOME_NOT_AWAITED: PlantedFault = PlantedFault {
    name: "way-home-not-awaited",
    summary: "A commit does not wait until the media has what the fall-back path has taken out of FIFOs",
    equivalent: None,
};

/// A commit leaves the versions before it in the last level.
pub(super) const OLDER_VERSION_KEPT: PlantedFault = PlantedFault {
    name: "older-version-kept",
    summary: "A commit leaves the versions before it in the last level",
    equivalent: None,
};

/// The fall-back path copies the home line while the last level has a committed version beside the uncommitted one.
pub(super) const COPIES_HOME_WITHOUT_OLDER: PlantedFault = PlantedFault {
    name: "copies-home-without-older",
    summary: "The fall-back path copies the home line while the last level has a committed version beside the uncommitted one",
    equivalent: None,
};

/// Uncommitted data that comes back from home is taken for committed.
pub(super) const FILL_UNTAGGED: PlantedFault = PlantedFault {
    name: "fill-untagged",
    summary: "Uncommitted data that comes back from home is taken for committed",
    equivalent: None,
};

/// The fall-back path copies home lines before all committed versions have been pushed there.
pub(super) const COPY_OVERTAKES_PUSH: PlantedFault = PlantedFault {
    name: "copy-overtakes-push",
    summary: "The fall-back path copies home lines before all committed versions have been pushed there",
    equivalent: None,
};

/// The old version of a line that a transaction writes is overwritten with it.
pub(super) const PRE_IMAGE_FORGOTTEN: PlantedFault = PlantedFault {
    name: "pre-image-forgotten",
    summary: "The old version of a line that a transaction writes is overwritten with it",
    equivalent: None,
};

/// A commit flushes the FIFOs of the core it runs on alone.
pub(super) const FLUSH_MISSES_OTHER_CORES: PlantedFault = PlantedFault {
    name: "flush-misses-other-cores",
    summary: "A commit flushes the FIFOs of the core it runs on alone",
    equivalent: None,
};

// Faults of commits that are distributed over the banks of the last level (LAD-LLC).

pub(super) const COMMIT_OVERTAKEN: PlantedFault = PlantedFault {
    name: "commit-overtaken",
    summary: "Stores and evictions do not wait for a commit that is in flight to the bank of their line",
    equivalent: None,
};
pub(super) const COMMIT_NOT_AWAITED: PlantedFault =
    PlantedFault { name: "commit-not-awaited", summary: "DTX_End retires when DTX_Commit is sent", equivalent: None };
pub(super) const BANK_CLEARS_ALL: PlantedFault = PlantedFault {
    name: "bank-clears-all",
    summary: "A commit changes the states of all lines in its bank",
    equivalent: None,
};
pub(super) const CID_NOT_UPDATED: PlantedFault = PlantedFault {
    name: "cid-not-updated",
    summary: "A commit changes the states of lines and leaves DTX_CID as it was",
    equivalent: None,
};
pub(super) const CIDS_LOST: PlantedFault =
    PlantedFault { name: "cids-lost", summary: "The DTX_CIDs do not survive", equivalent: None };
pub(super) const RECOVERY_TAKES_NUMERIC_MAX: PlantedFault = PlantedFault {
    name: "recovery-takes-numeric-max",
    summary: "V_commit has the largest numbers, as if they did not wrap around",
    equivalent: None,
};
pub(super) const RECOVERY_ASKS_ONE_BANK: PlantedFault = PlantedFault {
    name: "recovery-asks-one-bank",
    summary: "V_commit has what the first bank has committed",
    equivalent: None,
};
pub(super) const RECOVERY_IGNORES_CIDS: PlantedFault = PlantedFault {
    name: "recovery-ignores-cids",
    summary: "Recovery finishes nothing that a bank has committed",
    equivalent: None,
};

/// Those of LAD-LLC.
pub(crate) const DISTRIBUTED: &[PlantedFault] = &[
    COMMITTED_OVERWRITTEN,
    EVICTED_WITHOUT_COPY,
    COMMIT_NOT_FLUSHED,
    FLUSH_MISSES_NEWEST,
    COPY_NOT_AWAITED,
    SLOT_SHARED,
    ABORT_KEEPS_LINES,
    ABORT_NOT_UNDONE,
    PENDING_GOES_HOME,
    RECOVERY_FORGETS_COPIES,
    RECOVERY_UNDOES_COMMITTING,
    RECOVERY_CLEARS_RECORDS_FIRST,
    RECOVERY_DROPS_LINE,
    COMMIT_NOT_AWAITED,
    BANK_CLEARS_ALL,
    CID_NOT_UPDATED,
    CIDS_LOST,
    RECOVERY_TAKES_NUMERIC_MAX,
    RECOVERY_ASKS_ONE_BANK,
    RECOVERY_IGNORES_CIDS,
];

/// Those that matter where all caches survive: nothing is flushed there, and the FIFOs do not exist.
pub(crate) const EADR: &[PlantedFault] = &[
    COMMITTED_OVERWRITTEN,
    EVICTED_WITHOUT_COPY,
    REGISTER_NOT_WRITTEN,
    REGISTER_CLEARED_EARLY,
    REGISTER_OVERTAKES_RECORDS,
    RECORDS_KEPT,
    COPY_NOT_AWAITED,
    SLOT_SHARED,
    ABORT_KEEPS_LINES,
    ABORT_NOT_UNDONE,
    ABORT_KEEPS_RECORDS,
    PENDING_GOES_HOME,
    REGISTERS_LOST,
    RECOVERY_FORGETS_COPIES,
    RECOVERY_UNDOES_COMMITTING,
    RECOVERY_CLEARS_REGISTERS_FIRST,
    RECOVERY_CLEARS_RECORDS_FIRST,
];
