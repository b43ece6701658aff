//! The protocol of LAD holds in all states within some bounds, and the checker finds every planted fault.
//!
//! `make models` goes deeper: `DURASIM_MODEL=deep cargo test -p durasim-models -- --nocapture`.

mod checker;

use checker::{faults, holds, holds_deeper};
use durasim_models::lad::properties::{
    ACKNOWLEDGED_IS_KEPT, ALL_OR_NOTHING, LOADS_FIND_THE_NEWEST, NEVER_COMMITTED_IS_NOT_SEEN, RECEIVED_IS_COMMITTED,
};
use durasim_models::lad::{Bounds, LadProtocol, ProtocolFault};
use durasim_models::protocol::RECOVERY_CONVERGES;

/// Two threads with one transaction each on the same two lines, which have a controller each.
const TWO_THREADS: Bounds = Bounds {
    threads: 2,
    controllers: 2,
    lines: 2,
    transactions_per_thread: 1,
    stores_per_line: 1,
    id_bits: 2,
    last_id: 0,
    queue_entries: 2,
    log_entries: 1,
    first_ack: true,
    plain_stores: 0,
    aborts: false,
    lives: 1,
};

/// One thread that stores twice to each line.
const TWO_STORES: Bounds = Bounds { threads: 1, stores_per_line: 2, ..TWO_THREADS };

/// One controller, whose undo log has room for both lines.
const ONE_CONTROLLER: Bounds = Bounds { controllers: 1, log_entries: 2, ..TWO_STORES };

/// One controller, whose undo log has room for one line, and one store to each line.
const SHORT_LOG: Bounds = Bounds { stores_per_line: 1, log_entries: 1, ..ONE_CONTROLLER };

/// Three stores to one line.
const THREE_STORES: Bounds = Bounds { lines: 1, stores_per_line: 3, queue_entries: 3, ..TWO_STORES };

/// One thread that stores again and again to one line: its identifiers wrap around.
const WRAPS: Bounds =
    Bounds { threads: 1, lines: 1, transactions_per_thread: 4, id_bits: 3, last_id: 5, log_entries: 0, ..TWO_THREADS };

/// Four identifiers, and undo entries that may have to be voided.
const FOUR_IDS: Bounds = Bounds { transactions_per_thread: 3, id_bits: 2, last_id: 2, log_entries: 1, ..WRAPS };

/// Stores outside of transactions, too.
const PLAIN: Bounds = Bounds { lines: 1, plain_stores: 1, ..TWO_THREADS };

/// One thread that may abort.
const ABORTS: Bounds = Bounds { threads: 1, aborts: true, ..TWO_THREADS };

#[test]
fn two_threads() {
    holds::<LadProtocol>("two threads", TWO_THREADS);
}

#[test]
fn two_stores_to_a_line() {
    holds::<LadProtocol>("two stores to a line", TWO_STORES);
}

#[test]
fn one_controller() {
    holds::<LadProtocol>("one controller", ONE_CONTROLLER);
}

#[test]
fn an_undo_log_of_one_entry() {
    holds::<LadProtocol>("an undo log of one entry", SHORT_LOG);
}

#[test]
fn three_stores_to_a_line() {
    holds::<LadProtocol>("three stores to a line", THREE_STORES);
}

#[test]
fn identifiers_wrap_around() {
    holds::<LadProtocol>("identifiers wrap around", WRAPS);
}

#[test]
fn four_identifiers() {
    holds::<LadProtocol>("four identifiers", FOUR_IDS);
}

#[test]
fn stores_outside_of_transactions() {
    holds::<LadProtocol>("stores outside of transactions", PLAIN);
}

#[test]
fn aborts() {
    holds::<LadProtocol>("aborts", ABORTS);
}

#[test]
fn two_lives() {
    holds::<LadProtocol>("two lives", Bounds { lives: 2, ..TWO_STORES });
}

#[test]
fn complete_at_the_last_acknowledgement() {
    holds::<LadProtocol>("LAD-Base", Bounds { first_ack: false, log_entries: 0, ..TWO_THREADS });
}

#[test]
fn deep_two_threads_store_twice() {
    holds_deeper::<LadProtocol>(
        "two threads, two stores to a line",
        Bounds { stores_per_line: 2, log_entries: 0, ..TWO_THREADS },
    );
}

#[test]
fn deep_complete_at_the_last_acknowledgement() {
    holds_deeper::<LadProtocol>("LAD-Base with undo logs", Bounds { first_ack: false, ..TWO_THREADS });
}

#[test]
fn deep_two_threads_two_transactions() {
    holds_deeper::<LadProtocol>(
        "two threads, two transactions",
        Bounds { lines: 1, transactions_per_thread: 2, id_bits: 3, ..TWO_THREADS },
    );
}

#[test]
fn deep_three_lines() {
    holds_deeper::<LadProtocol>("three lines", Bounds { threads: 1, lines: 3, ..TWO_THREADS });
}

#[test]
fn deep_wrap_around_with_undo_logs() {
    holds_deeper::<LadProtocol>("identifiers wrap around, with undo logs", Bounds { log_entries: 2, ..WRAPS });
}

#[test]
fn deep_two_lines_wrap_around() {
    holds_deeper::<LadProtocol>(
        "identifiers wrap around, two lines",
        Bounds { lines: 2, transactions_per_thread: 2, last_id: 6, log_entries: 1, ..WRAPS },
    );
}

#[test]
fn deep_two_threads_and_stores_outside() {
    holds_deeper::<LadProtocol>("two threads, two lines, stores outside", Bounds { lines: 2, log_entries: 0, ..PLAIN });
}

faults! {
    LadProtocol:
    mark_lost: MarkLost in ONE_CONTROLLER breaks ALL_OR_NOTHING;
    flushed_line_not_marked: FlushedLineNotMarked in ONE_CONTROLLER breaks ALL_OR_NOTHING;
    flushes_not_awaited: FlushesNotAwaited in ONE_CONTROLLER breaks ACKNOWLEDGED_IS_KEPT;
    commit_not_awaited: CommitNotAwaited in ONE_CONTROLLER breaks ACKNOWLEDGED_IS_KEPT;
    speculative_bit_not_set: SpeculativeBitNotSet in ONE_CONTROLLER breaks NEVER_COMMITTED_IS_NOT_SEEN;
    commit_clears_all: CommitClearsAll in PLAIN breaks NEVER_COMMITTED_IS_NOT_SEEN;
    cid_not_updated: CidNotUpdated in ONE_CONTROLLER breaks ACKNOWLEDGED_IS_KEPT;
    cid_goes_back: CidGoesBack in WRAPS breaks ACKNOWLEDGED_IS_KEPT;
    ids_reused: IdsReused in FOUR_IDS breaks ACKNOWLEDGED_IS_KEPT;
    oldest_cid_forgotten: OldestCidForgotten in FOUR_IDS breaks ACKNOWLEDGED_IS_KEPT;
    plain_bytes_not_home: PlainBytesNotHome in PLAIN breaks ACKNOWLEDGED_IS_KEPT;
    drain_passes_held: DrainPassesHeld in PLAIN breaks LOADS_FIND_THE_NEWEST;
    undo_not_awaited: UndoNotAwaited in ONE_CONTROLLER breaks NEVER_COMMITTED_IS_NOT_SEEN;
    undo_has_new_value: UndoHasNewValue in ONE_CONTROLLER breaks NEVER_COMMITTED_IS_NOT_SEEN;
    undo_of_another_dtx: UndoOfAnotherDtx in ONE_CONTROLLER breaks NEVER_COMMITTED_IS_NOT_SEEN;
    second_version_logged: SecondVersionLogged in ONE_CONTROLLER breaks NEVER_COMMITTED_IS_NOT_SEEN;
    younger_version_stays_held: YoungerVersionStaysHeld in THREE_STORES breaks NEVER_COMMITTED_IS_NOT_SEEN;
    logged_newest_first: LoggedNewestFirst in PLAIN breaks ACKNOWLEDGED_IS_KEPT;
    log_overrun: LogOverrun in SHORT_LOG breaks NEVER_COMMITTED_IS_NOT_SEEN;
    reclaimed_while_open: ReclaimedWhileOpen in ONE_CONTROLLER breaks NEVER_COMMITTED_IS_NOT_SEEN;
    restored_not_marked: RestoredNotMarked in ABORTS breaks NEVER_COMMITTED_IS_NOT_SEEN;
    write_behind_held_goes_home: WriteBehindHeldGoesHome in PLAIN breaks ACKNOWLEDGED_IS_KEPT;
    purgatory_newest_first: PurgatoryNewestFirst in TWO_STORES breaks ALL_OR_NOTHING;
    recovery_without_consensus: RecoveryWithoutConsensus in TWO_STORES breaks RECEIVED_IS_COMMITTED;
    recovery_takes_numeric_max: RecoveryTakesNumericMax in FOUR_IDS breaks ACKNOWLEDGED_IS_KEPT;
    recovery_undoes_nothing: RecoveryUndoesNothing in ONE_CONTROLLER breaks NEVER_COMMITTED_IS_NOT_SEEN;
    recovery_undoes_committed: RecoveryUndoesCommitted in ONE_CONTROLLER breaks RECEIVED_IS_COMMITTED;
    recovery_drops_purgatory: RecoveryDropsPurgatory in TWO_STORES breaks RECEIVED_IS_COMMITTED;
    recovery_writes_uncommitted: RecoveryWritesUncommitted in ONE_CONTROLLER breaks NEVER_COMMITTED_IS_NOT_SEEN;
    recovery_overlooks_last: RecoveryOverlooksLast in TWO_STORES breaks RECEIVED_IS_COMMITTED;
    recovery_clears_first: RecoveryClearsFirst in TWO_STORES breaks RECOVERY_CONVERGES;
    recovery_forgets_ids_first: RecoveryForgetsIdsFirst in ONE_CONTROLLER breaks RECOVERY_CONVERGES;
}
