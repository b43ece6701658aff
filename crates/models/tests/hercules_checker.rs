//! The protocol of Hercules holds in all states within some bounds, and the checker finds every planted fault.
//!
//! `make models` goes deeper: `DURASIM_MODEL=deep cargo test -p durasim-models -- --nocapture`.

mod checker;

use checker::{faults, holds, holds_deeper};
use durasim_models::hercules::properties::{
    ACKNOWLEDGED_IS_KEPT, ALL_OR_NOTHING, LOADS_FIND_THE_NEWEST, NEVER_COMMITTED_IS_NOT_SEEN,
};
use durasim_models::hercules::{Bounds, HerculesProtocol, ProtocolFault};
use durasim_models::protocol::RECOVERY_CONVERGES;

/// Two threads with one transaction each on the same two lines, an eWPQ of one entry.
const TWO_THREADS: Bounds = Bounds {
    threads: 2,
    lines: 2,
    lines_per_thread: 2,
    transactions_per_thread: 1,
    stores_per_line: 1,
    plain_stores: 0,
    versions_on_chip: 2,
    tx_ids: 2,
    ewpq_entries: 1,
    extension_entries: 1,
    log_entries: 2,
    context_switches: false,
    lives: 1,
};

/// Three lines; the two threads share one.
const THREE_LINES: Bounds = Bounds { lines: 3, ..TWO_THREADS };

/// One thread that has a second transaction.
const ONE_THREAD: Bounds = Bounds { threads: 1, transactions_per_thread: 2, ..TWO_THREADS };

/// Three transactions that share one identifier.
const ONE_IDENTIFIER: Bounds = Bounds { transactions_per_thread: 3, tx_ids: 1, ..ONE_THREAD };

#[test]
fn two_threads() {
    holds::<HerculesProtocol>("two threads", TWO_THREADS);
}

#[test]
fn three_lines() {
    holds::<HerculesProtocol>("three lines", THREE_LINES);
}

#[test]
fn one_identifier() {
    holds::<HerculesProtocol>("one identifier", ONE_IDENTIFIER);
}

#[test]
fn two_runs() {
    holds::<HerculesProtocol>("two lives", Bounds { lives: 2, ..ONE_THREAD });
}

#[test]
fn context_switches() {
    holds::<HerculesProtocol>("context switches", Bounds { context_switches: true, ..ONE_THREAD });
}

#[test]
fn stores_outside_of_transactions() {
    holds::<HerculesProtocol>("stores outside of transactions", Bounds { plain_stores: 1, ..ONE_THREAD });
}

#[test]
fn deep_three_shared_lines() {
    holds_deeper::<HerculesProtocol>("three shared lines", Bounds { lines_per_thread: 3, ..THREE_LINES });
}

#[test]
fn deep_two_threads_beside_other_stores() {
    holds_deeper::<HerculesProtocol>("two threads beside other stores", Bounds { plain_stores: 1, ..TWO_THREADS });
}

#[test]
fn deep_two_threads_that_move() {
    holds_deeper::<HerculesProtocol>("two threads that move", Bounds { context_switches: true, ..TWO_THREADS });
}

#[test]
fn deep_two_threads_two_runs() {
    holds_deeper::<HerculesProtocol>("two threads, two lives", Bounds { lives: 2, ..TWO_THREADS });
}

#[test]
fn deep_one_line_again_and_again() {
    let one_line = Bounds { lines: 1, lines_per_thread: 1, extension_entries: 0, log_entries: 1, ..TWO_THREADS };
    let bounds = Bounds { transactions_per_thread: 2, stores_per_line: 2, tx_ids: 3, ..one_line };
    holds_deeper::<HerculesProtocol>("one line again and again", bounds);
}

#[test]
fn deep_two_stores_to_a_line() {
    holds_deeper::<HerculesProtocol>(
        "two stores to a line",
        Bounds { stores_per_line: 2, plain_stores: 1, ..ONE_THREAD },
    );
}

faults! {
    HerculesProtocol:
    acknowledged_before_tx_len: AcknowledgedBeforeTxLen in TWO_THREADS breaks ACKNOWLEDGED_IS_KEPT;
    states_reset_before_tx_len: StatesResetBeforeTxLen in TWO_THREADS breaks ACKNOWLEDGED_IS_KEPT;
    store_before_tx_len_cleared: StoreBeforeTxLenCleared in ONE_IDENTIFIER breaks NEVER_COMMITTED_IS_NOT_SEEN;
    abort_after_tx_len: AbortAfterTxLen in TWO_THREADS breaks NEVER_COMMITTED_IS_NOT_SEEN;
    tagged_line_goes_home: TaggedLineGoesHome in TWO_THREADS breaks NEVER_COMMITTED_IS_NOT_SEEN;
    open_entry_migrates: OpenEntryMigrates in TWO_THREADS breaks NEVER_COMMITTED_IS_NOT_SEEN;
    pre_image_overwritten: PreImageOverwritten in TWO_THREADS breaks ACKNOWLEDGED_IS_KEPT;
    copy_down_forgotten: CopyDownForgotten in TWO_THREADS breaks ACKNOWLEDGED_IS_KEPT;
    entry_freed_before_home: EntryFreedBeforeHome in TWO_THREADS breaks ACKNOWLEDGED_IS_KEPT;
    migration_overtaken: MigrationOvertaken in TWO_THREADS breaks LOADS_FIND_THE_NEWEST;
    entry_before_log: EntryBeforeLog in TWO_THREADS breaks NEVER_COMMITTED_IS_NOT_SEEN;
    spill_loses_entry: SpillLosesEntry in TWO_THREADS breaks ALL_OR_NOTHING;
    log_entry_reused: LogEntryReused in TWO_THREADS breaks LOADS_FIND_THE_NEWEST;
    tx_id_reused_early: TxIdReusedEarly in ONE_IDENTIFIER breaks ACKNOWLEDGED_IS_KEPT;
    log_not_searched: LogNotSearched in TWO_THREADS breaks LOADS_FIND_THE_NEWEST;
    reload_keeps_entry: ReloadKeepsEntry in TWO_THREADS breaks ACKNOWLEDGED_IS_KEPT;
    abort_keeps_lines: AbortKeepsLines in TWO_THREADS breaks NEVER_COMMITTED_IS_NOT_SEEN;
    abort_keeps_entries: AbortKeepsEntries in TWO_THREADS breaks NEVER_COMMITTED_IS_NOT_SEEN;
    conflict_granted: ConflictGranted in TWO_THREADS breaks ALL_OR_NOTHING;
    flush_newest_first: FlushNewestFirst in TWO_THREADS breaks ACKNOWLEDGED_IS_KEPT;
    ewpq_not_saved: EwpqNotSaved in TWO_THREADS breaks ALL_OR_NOTHING;
    recovered_too_early: RecoveredTooEarly in TWO_THREADS breaks RECOVERY_CONVERGES;
    tx_len_cleared_before_home: TxLenClearedBeforeHome in TWO_THREADS breaks RECOVERY_CONVERGES;
    extension_cleared_before_home: ExtensionClearedBeforeHome in TWO_THREADS breaks RECOVERY_CONVERGES;
}
