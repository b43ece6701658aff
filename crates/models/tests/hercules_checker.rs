//! The protocol of Hercules holds in all states within some bounds, and the checker finds every planted fault.
//!
//! `DURASIM_MODEL=deep cargo test --release -p durasim-models --test hercules_checker -- --nocapture` goes deeper.

use durasim_models::hercules::{Bounds, Fault, Hercules};
use stateright::{Checker, HasDiscoveries, Model};
use std::time::Instant;

/// Two threads with one transaction each that fight for a line less than needed.
const TINY: Bounds = Bounds {
    threads: 2,
    lines: 2,
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

fn holds(name: &str, bounds: Bounds) {
    let begin = Instant::now();
    let checker = Hercules::new(bounds).checker().spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    println!("{name}: {states} states, {depth} steps deep, {:.1} s", begin.elapsed().as_secs_f64());
    checker.assert_properties();
}

#[test]
fn tiny() {
    holds("tiny", TINY);
}
#[test]
fn one() {
    holds("one", Bounds { threads: 1, transactions_per_thread: 2, ..TINY });
}
#[test]
fn faults() {
    use Fault::*;
    for fault in [AcknowledgedBeforeTxLen, StatesResetBeforeTxLen, StoreBeforeTxLenCleared, AbortAfterTxLen, TaggedLineGoesHome, OpenEntryMigrates, PreImageOverwritten, CopyDownForgotten, EntryFreedBeforeHome, MigrationOvertaken, SpillLosesEntry, LogEntryReused, TxIdReusedEarly, LogNotSearched, ReloadKeepsEntry, AbortKeepsLines, AbortKeepsEntries, ConflictGranted, FlushNewestFirst, EwpqNotSaved, RecoveredTooEarly, TxLenClearedBeforeHome, ExtensionClearedBeforeHome] {
        for (n, b) in [("tiny", TINY), ("one2", Bounds{threads: 1, transactions_per_thread: 2, ..TINY}), ("one3ids1", Bounds{threads: 1, transactions_per_thread: 3, tx_ids: 1, ..TINY}), ("tiny3", Bounds{lines: 3, ..TINY})] {
        let begin = Instant::now();
        let checker = Hercules::with_fault(b, fault).checker().finish_when(HasDiscoveries::AnyFailures).timeout(std::time::Duration::from_secs(20)).spawn_bfs().join();
        let mut hit = false;
        for (name, path) in checker.discoveries() {
            if checker.model().property(name).expectation == stateright::Expectation::Always {
            println!("{fault:?} {n} {name} {} {:.1} {:?}", checker.unique_state_count(), begin.elapsed().as_secs_f64(), path.into_actions());
            hit = true;
            }
        }
        if hit { break }
        println!("{fault:?} NOT with {n} {} {:.1}", checker.unique_state_count(), begin.elapsed().as_secs_f64());
        }
    }
}
#[test]
fn sizes() {
    for (n, b) in [
       ("switch", Bounds{context_switches: true, ..TINY}),
       ("plain", Bounds{plain_stores: 1, ..TINY}),
       ("onetwo", Bounds{threads: 1, transactions_per_thread: 2, lives: 2, ..TINY}),
       ("onestores2", Bounds{threads: 1, transactions_per_thread: 2, stores_per_line: 2, plain_stores: 1, ..TINY}),
       ("oneline", Bounds{lines: 1, transactions_per_thread: 2, ..TINY}),
       ("one3lines", Bounds{threads: 1, lines: 3, log_entries: 3, ..TINY}),
       ("3lines", Bounds{lines: 3, ..TINY}),
    ] {
        let begin = Instant::now();
        let checker = Hercules::new(b).checker().timeout(std::time::Duration::from_secs(25)).spawn_bfs().join();
        println!("{n}: {} {} {:.1} done {}", checker.unique_state_count(), checker.max_depth(), begin.elapsed().as_secs_f64(), checker.is_done());
        for p in checker.model().properties() {
           let d = checker.discovery(p.name);
           if d.is_some() == (p.expectation == stateright::Expectation::Always) { println!("   {} {:?}", p.name, d.map(|d| d.into_actions())); }
        }
    }
}
