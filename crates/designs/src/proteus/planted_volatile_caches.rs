//! Faults that matter only where caches are lost: a machine with durable caches cleans nothing, and what has been handed
//! over there survives like what is cached.

durasim_contract::planted! {
    NOT_CLEANED = "not-cleaned", "Commits clean nothing";
    LAST_LINE_NOT_CLEANED = "last-line-not-cleaned", "Commits forget the last line that the transaction has changed";
    CLEANS_NOT_AWAITED = "cleans-not-awaited", "The tx-end record does not wait for the cleans";
    LEFT_LINES_NOT_AWAITED = "left-lines-not-awaited", "Commits do not wait for lines that have left the caches before";
    END_NOT_AWAITED = "end-not-awaited", "A commit is acknowledged when its tx-end record is handed over";
    // If caches survive, so do lines in flight from them.
    INSIDE_ACKNOWLEDGED_EARLY = "inside-acknowledged-early", "A flush to the write pending queue is acknowledged when it is sent";
    // If caches survive, a write is lost in fewer places; the random tester catches this one too.
    SPILL_FREED_AT_ISSUE = "spill-freed-at-issue", "An entry leaves the log pending queue when its write is handed over";
    REMOVED_BEFORE_CLEANS = "removed-before-cleans", "Commits remove their entries before their lines are cleaned";
    ENDED_BEFORE_CLEANS = "ended-before-cleans", "The tx-end record is written before the lines are cleaned";
}
