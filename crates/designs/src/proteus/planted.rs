//! Faults that Proteus can be built with; see [`durasim_contract::PlantedFault`].

use super::planted_volatile_caches;
use durasim_contract::PlantedFault;

durasim_contract::planted! {
    // Flushes and stores.
    STORE_NOT_HELD = "store-not-held", "A store does not wait for the acknowledgement of its block";
    BLOCK_TWICE_IN_LOGQ = "block-twice-in-logq", "A flush does not wait for the acknowledgement of an earlier entry of its block";
    ACK_WITHOUT_ROOM = "ack-without-room", "A full log pending queue acknowledges entries and forgets them";
    TABLE_NOT_CLEARED = "table-not-cleared", "The log lookup table keeps its blocks when a transaction begins";
    TABLE_BY_LINE = "table-by-line", "The log lookup table takes both blocks of a line for one";
    LOGS_SHARED = "logs-shared", "All transactions write to the first log";
    // Commits.
    END_SKIPPED = "end-skipped", "Commits write no tx-end record";
    REMOVED_AT_STORE = "removed-at-store", "Each store removes the entries of its transaction from the log pending queues";
    // Spilling.
    SPILL_NOT_WRITTEN = "spill-not-written", "A full log pending queue drops its oldest entry";
    SPILLS_TO_ONE_SLOT = "spills-to-one-slot", "Entries of a log are all written to its first slot";
    // Entries in the write pending queue.
    INSIDE_ONE_GROUP = "inside-one-group", "A commit discards the entries that the write pending queue holds of any transaction";
    INSIDE_HELD_LOST = "inside-held-lost", "Recovery does not get the entries that the write pending queue holds";
    INSIDE_DISCARDED_FIRST = "inside-discarded-first", "An abort discards the entries in the write pending queue before it restores from them";
    INSIDE_FULL_DISCARDS = "inside-full-discards", "Log entries beyond their share of the write pending queue are discarded";
    // Aborts.
    ABORT_NOT_UNDONE = "abort-not-undone", "Aborts leave what the transaction has stored";
    ABORT_KEEPS_LINES = "abort-keeps-lines", "Aborts restore memory below caches that keep the lines";
    ABORT_FORGETS_LOG = "abort-forgets-log", "Aborts undo what the log pending queues hold, not what is in the log";
    ABORT_NEWEST_WINS = "abort-newest-wins", "Of several entries for a block an abort takes the newest";
    // Power failure and recovery.
    QUEUE_NOT_KEPT = "queue-not-kept", "The log pending queues do not survive";
    RECOVERY_FORGETS_LOG = "recovery-forgets-log", "Recovery looks at the log pending queues alone";
    RECOVERY_IGNORES_END = "recovery-ignores-end", "Recovery undoes transactions that have a tx-end record";
    RECOVERY_OLDEST_FIRST = "recovery-oldest-first", "Recovery applies entries oldest first";
    RECOVERY_DROPS_OLDEST = "recovery-drops-oldest", "Recovery overlooks the oldest entry of a transaction";
    RECOVERY_RESTORES_HALF = "recovery-restores-half", "Recovery restores the first half of a block";
    RECOVERY_ENDS_FIRST = "recovery-ends-first", "Recovery writes the tx-end record before it has restored all";
    RECOVERY_CLEARS_FIRST = "recovery-clears-first", "Recovery clears the log pending queues before it has restored all";
    RECOVERY_RESTORES_TWICE = "recovery-restores-twice", "Recovery applies all entries twice",
        equivalent: "The second round ends with the same oldest content of each block as the first";
}

/// Aborts write no tx-end record. No campaign with programs has shown it so far; the random tester catches it.
pub(super) const ABORT_NOT_ENDED: PlantedFault =
    PlantedFault { name: "abort-not-ended", summary: "Aborts write no tx-end record", equivalent: None };

const COUNT: usize = ALL.len() + planted_volatile_caches::ALL.len();

const fn all() -> [PlantedFault; COUNT] {
    let mut all = [ALL[0]; COUNT];
    let mut at = 0;
    while at < COUNT {
        all[at] = if at < ALL.len() { ALL[at] } else { planted_volatile_caches::ALL[at - ALL.len()] };
        at += 1;
    }
    all
}

/// With those that only a machine whose caches are lost can show.
pub(super) const WITH_VOLATILE_CACHES: &[PlantedFault] = &all();
