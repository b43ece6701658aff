//! Faults that the hardware can be built with; see [`durasim_contract::PlantedFault`].

durasim_contract::planted! {
    // Conflicts.
    LOADS_NOT_TRACKED = "loads-not-tracked", "Loads of a transaction are in no read set";
    STORES_NOT_TRACKED = "stores-not-tracked", "Stores of a transaction are in no write set, so that others read what is not committed";
    ONE_READER_ABORTED = "one-reader-aborted", "A store aborts one of the transactions that have read its line, not all of them";
    PLAIN_ACCESSES_IGNORED = "plain-accesses-ignored", "Accesses outside of transactions conflict with none";
    READS_FORGOTTEN = "reads-forgotten", "A transaction that stores to a line it has read forgets the lines that it read before";
    DRAM_NOT_TRACKED = "dram-not-tracked", "Loads from DRAM are in no read set";
    // Aborts.
    OLD_VERSION_LOST = "old-version-lost", "The dirty version before the first store of a transaction is not kept";
    ABORT_KEEPS_LINES = "abort-keeps-lines", "Aborts leave the stores of the transaction in the cache";
    ABORT_KEEPS_LAST_LINE = "abort-keeps-last-line", "Aborts leave the line that was stored to last in the cache";
    // Capacity.
    EVICTED_WITHOUT_ABORT = "evicted-without-abort", "A line with stores of an open transaction leaves the cache, and the transaction goes on";
    READ_SET_WRAPS = "read-set-wraps", "A read set that is full takes a new line in the place of the oldest one";
    // Power failure.
    OPEN_SETS_SURVIVE = "open-sets-survive", "The flush of a power failure writes the stores of open transactions home";
    L1D_NOT_FLUSHED = "l1d-not-flushed", "The flush of a power failure leaves the L1Ds out";
}
