//! The protocol of Hercules holds in all states within some bounds, and the checker finds every planted fault.
//!
//! `make models` goes deeper: `DURASIM_MODEL=deep cargo test -p durasim-models -- --nocapture`.

use durasim_models::hercules::properties::{
    ACKNOWLEDGED_IS_KEPT, ALL_OR_NOTHING, LOADS_FIND_THE_NEWEST, NEVER_COMMITTED_IS_NOT_SEEN, RECOVERY_CONVERGES,
};
use durasim_models::hercules::{Bounds, Hercules, ProtocolFault};
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::collections::BTreeSet;
use std::time::Instant;

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

/// Three lines, of which the two threads share one.
const THREE_LINES: Bounds = Bounds { lines: 3, ..TWO_THREADS };

/// One thread that has a second transaction.
const ONE_THREAD: Bounds = Bounds { threads: 1, transactions_per_thread: 2, ..TWO_THREADS };

/// Three transactions that share one identifier.
const ONE_IDENTIFIER: Bounds = Bounds { transactions_per_thread: 3, tx_ids: 1, ..ONE_THREAD };

/// Explores all states.
fn holds(name: &str, bounds: Bounds) {
    let begin = Instant::now();
    let checker = Hercules::new(bounds.clone()).checker().spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    println!("{name}: {states} states, {depth} steps deep, {:.1} s; {bounds:?}", begin.elapsed().as_secs_f64());
    checker.assert_properties();
    for property in checker.model().properties() {
        assert!(property.expectation != Expectation::Sometimes || checker.discovery(property.name).is_some());
    }
}

/// Explores states until the property is broken, as it has to be, and prints how.
fn is_caught(fault: ProtocolFault, bounds: Bounds, property: &'static str) {
    let until = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = Hercules::with_fault(bounds, fault).checker().finish_when(until).spawn_bfs().join();
    assert_eq!(checker.model().property(property).expectation, Expectation::Always);
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{fault:?} does not break \"{property}\""));
    let states = checker.unique_state_count();
    println!("{fault:?} breaks \"{property}\" (within {states} states): {:?}", path.into_actions());
}

/// Explores all states, if `DURASIM_MODEL=deep` asks for it.
fn holds_deeper(name: &str, bounds: Bounds) {
    if std::env::var("DURASIM_MODEL").is_ok_and(|setting| setting == "deep") {
        holds(name, bounds);
    } else {
        println!("{name}: only with DURASIM_MODEL=deep");
    }
}

#[test]
fn two_threads() {
    holds("two threads", TWO_THREADS);
}

#[test]
fn three_lines() {
    holds("three lines", THREE_LINES);
}

#[test]
fn one_identifier() {
    holds("one identifier", ONE_IDENTIFIER);
}

#[test]
fn two_runs() {
    holds("two lives", Bounds { lives: 2, ..ONE_THREAD });
}

#[test]
fn context_switches() {
    holds("context switches", Bounds { context_switches: true, ..ONE_THREAD });
}

#[test]
fn stores_outside_of_transactions() {
    holds("stores outside of transactions", Bounds { plain_stores: 1, ..ONE_THREAD });
}

#[test]
fn deep_three_shared_lines() {
    holds_deeper("three shared lines", Bounds { lines_per_thread: 3, ..THREE_LINES });
}

#[test]
fn deep_two_threads_beside_other_stores() {
    holds_deeper("two threads beside other stores", Bounds { plain_stores: 1, ..TWO_THREADS });
}

#[test]
fn deep_two_threads_that_move() {
    holds_deeper("two threads that move", Bounds { context_switches: true, ..TWO_THREADS });
}

#[test]
fn deep_two_threads_two_runs() {
    holds_deeper("two threads, two lives", Bounds { lives: 2, ..TWO_THREADS });
}

#[test]
fn deep_one_line_again_and_again() {
    let one_line = Bounds { lines: 1, lines_per_thread: 1, extension_entries: 0, log_entries: 1, ..TWO_THREADS };
    let bounds = Bounds { transactions_per_thread: 2, stores_per_line: 2, tx_ids: 3, ..one_line };
    holds_deeper("one line again and again", bounds);
}

#[test]
fn deep_two_stores_to_a_line() {
    holds_deeper("two stores to a line", Bounds { stores_per_line: 2, plain_stores: 1, ..ONE_THREAD });
}

/// One test per fault.
macro_rules! faults {
    ($($name:ident: $fault:ident in $bounds:ident breaks $property:ident;)*) => {
        $(#[test]
        fn $name() {
            is_caught(ProtocolFault::$fault, $bounds, $property);
        })*
    };
}

faults! {
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
