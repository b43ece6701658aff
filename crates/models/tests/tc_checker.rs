//! The protocol of the transaction cache holds in all states within some bounds, and the checker finds every planted fault.
//!
//! `make models` goes deeper: `DURASIM_MODEL=deep cargo test -p durasim-models -- --nocapture`.

mod checker;

use checker::{faults, holds, holds_deeper};
use durasim_models::protocol::RECOVERY_CONVERGES;
use durasim_models::tc::properties::{COMMITTED_IS_KEPT, LOADS_FIND_THE_NEWEST, NEVER_COMMITTED_IS_NOT_SEEN};
use durasim_models::tc::{Bounds, ProtocolFault, TcProtocol};

/// Two threads on two cores, with one transaction each on the same two lines.
const TWO_CORES: Bounds = Bounds {
    threads: 2,
    cores: 2,
    lines: 2,
    transactions_per_thread: 1,
    stores_per_line: 1,
    largest_id: 1,
    entries: 2,
    copies_in_flight: 1,
    lives: 1,
};

/// Two threads that share a transaction cache.
const ONE_CORE: Bounds = Bounds { cores: 1, largest_id: 2, entries: 3, ..TWO_CORES };

/// One thread that has a second transaction, and stores twice to a line.
const ONE_THREAD: Bounds =
    Bounds { threads: 1, transactions_per_thread: 2, stores_per_line: 2, largest_id: 1, entries: 3, ..ONE_CORE };

#[test]
fn two_cores() {
    holds::<TcProtocol>("two cores", TWO_CORES);
}

#[test]
fn two_threads_on_one_core() {
    holds::<TcProtocol>("two threads on one core", ONE_CORE);
}

#[test]
fn one_thread() {
    holds::<TcProtocol>("one thread", ONE_THREAD);
}

#[test]
fn two_runs() {
    holds::<TcProtocol>("two lives", Bounds { lives: 2, stores_per_line: 1, entries: 2, ..ONE_THREAD });
}

#[test]
fn without_the_fall_back_path() {
    holds::<TcProtocol>("without the fall-back path", Bounds { copies_in_flight: 0, stores_per_line: 2, ..TWO_CORES });
}

#[test]
fn deep_one_identifier_on_each_core() {
    holds_deeper::<TcProtocol>(
        "one identifier on each core",
        Bounds { lines: 1, entries: 1, transactions_per_thread: 2, ..TWO_CORES },
    );
}

#[test]
fn deep_two_stores_to_a_line() {
    holds_deeper::<TcProtocol>(
        "two stores to a line",
        Bounds { lines: 1, stores_per_line: 2, transactions_per_thread: 2, ..ONE_CORE },
    );
}

#[test]
fn deep_two_copies_in_flight() {
    holds_deeper::<TcProtocol>("two copies in flight", Bounds { copies_in_flight: 2, entries: 4, ..ONE_THREAD });
}

faults! {
    TcProtocol:
    commit_misses_copying: CommitMissesCopying in ONE_THREAD breaks COMMITTED_IS_KEPT;
    commit_forgotten: CommitForgotten in ONE_THREAD breaks COMMITTED_IS_KEPT;
    identifier_reused: IdentifierReused in ONE_IDENTIFIER breaks NEVER_COMMITTED_IS_NOT_SEEN;
    issued_newest_first: IssuedNewestFirst in ONE_THREAD breaks LOADS_FIND_THE_NEWEST;
    active_entry_issued: ActiveEntryIssued in ONE_THREAD breaks NEVER_COMMITTED_IS_NOT_SEEN;
    freed_at_issue: FreedAtIssue in ONE_THREAD breaks COMMITTED_IS_KEPT;
    ack_frees_youngest: AckFreesYoungest in ONE_THREAD breaks COMMITTED_IS_KEPT;
    copy_skipped: CopySkipped in ONE_THREAD breaks NEVER_COMMITTED_IS_NOT_SEEN;
    copy_not_awaited: CopyNotAwaited in ONE_THREAD breaks NEVER_COMMITTED_IS_NOT_SEEN;
    copy_overtakes_commit: CopyOvertakesCommit in ONE_CORE breaks COMMITTED_IS_KEPT;
    register_kept: RegisterKept in ONE_THREAD breaks COMMITTED_IS_KEPT;
    miss_ignores_entries: MissIgnoresEntries in ONE_THREAD breaks LOADS_FIND_THE_NEWEST;
    miss_takes_oldest: MissTakesOldest in ONE_THREAD breaks LOADS_FIND_THE_NEWEST;
    evicts_home: EvictsHome in ONE_THREAD breaks NEVER_COMMITTED_IS_NOT_SEEN;
    abort_keeps_lines: AbortKeepsLines in ONE_THREAD breaks LOADS_FIND_THE_NEWEST;
    abort_keeps_entries: AbortKeepsEntries in ONE_THREAD breaks NEVER_COMMITTED_IS_NOT_SEEN;
    abort_not_undone: AbortNotUndone in ONE_THREAD breaks NEVER_COMMITTED_IS_NOT_SEEN;
    order_ignored: OrderIgnored in TWO_CORES breaks COMMITTED_IS_KEPT;
    recovery_newest_first: RecoveryNewestFirst in ONE_THREAD breaks COMMITTED_IS_KEPT;
    recovery_forgets_shadows: RecoveryForgetsShadows in ONE_THREAD breaks NEVER_COMMITTED_IS_NOT_SEEN;
    recovery_replays_active: RecoveryReplaysActive in ONE_THREAD breaks NEVER_COMMITTED_IS_NOT_SEEN;
    recovery_clears_first: RecoveryClearsFirst in ONE_THREAD breaks RECOVERY_CONVERGES;
}

/// Two threads on one core that has one identifier.
const ONE_IDENTIFIER: Bounds = Bounds { largest_id: 1, ..ONE_CORE };
