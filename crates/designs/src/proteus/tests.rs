//! Proteus on several cores, hook by hook: flushes, stores, the queues and the log.

use super::{Proteus, ProteusSpec};
use crate::testing::{Bench, line, word};
use durasim_contract::{AbortCause, Evict, Gate, LineTag, Wait};
use durasim_types::{Domain, TxId};

pub(super) fn small() -> ProteusSpec {
    ProteusSpec {
        logq_entries: 2,
        llt_entries: 4,
        llt_ways: 2,
        lpq_entries: 2,
        log_entries: 8,
        ..ProteusSpec::default()
    }
}

pub(super) fn bench(spec: ProteusSpec) -> Bench<Proteus> {
    Bench::new(spec, 2)
}

/// A bench whose caches are durable.
pub(super) fn durable(spec: ProteusSpec) -> Bench<Proteus> {
    let mut bench = bench(spec);
    bench.geometry.domain = Domain::Eadr;
    bench.rebuild();
    bench
}

/// A store with its log operations, which finds `old` and leaves `new`, in the caches and, with `home`, in memory.
pub(super) fn change(bench: &mut Bench<Proteus>, core: u16, tx: u64, place: u64, old: u64, new: u64, home: bool) {
    bench.log_block(core, word(place, 0), old, tx);
    let mut tag = LineTag::NONE;
    bench.store(core, word(place, 0), new, Some(tx), &mut tag);
    assert_eq!(tag, LineTag::NONE);
    if home {
        assert_eq!(bench.evict(place, tag, new), Evict::Proceed);
        bench.deliver_all();
    }
}

fn waits_for_logq(gate: Gate) -> bool {
    matches!(gate, Gate::Retry(Wait::Signal(_)))
}

#[test]
fn a_store_waits_for_the_acknowledgement_of_its_block_only() {
    let mut bench = bench(small());
    bench.begin(0, 1);
    assert_eq!(bench.offer_block(0, word(0, 0), 5, Some(1)), Gate::Done);
    let mut tag = LineTag::NONE;
    assert!(waits_for_logq(bench.offer(0, word(0, 3), 6, Some(1), &mut tag)));
    // The other block of the line, another line, and what is stored outside of transactions.
    assert_eq!(bench.offer(0, word(0, 4), 6, Some(1), &mut tag), Gate::Done);
    assert_eq!(bench.offer(0, word(1, 0), 6, Some(1), &mut tag), Gate::Done);
    assert_eq!(bench.offer(0, word(0, 0), 6, None, &mut tag), Gate::Done);
    // The entry arrives, the acknowledgement is still in flight.
    assert!(bench.deliver_message());
    assert!(waits_for_logq(bench.offer(0, word(0, 0), 6, Some(1), &mut tag)));
    assert!(bench.deliver_message());
    assert_eq!(bench.raised.len(), 1);
    assert_eq!(bench.offer(0, word(0, 0), 6, Some(1), &mut tag), Gate::Done);
    assert_eq!(bench.counter("proteus.held_stores"), 2.0);
}

#[test]
fn a_store_that_lies_in_two_blocks_waits_for_both() {
    let mut bench = bench(small());
    bench.begin(0, 1);
    assert_eq!(bench.offer_block(0, word(0, 4), 5, Some(1)), Gate::Done);
    let mut tag = LineTag::NONE;
    assert!(waits_for_logq(bench.offer(0, word(0, 3).plus(4), 6, Some(1), &mut tag)));
}

#[test]
fn the_table_drops_repeats_until_it_forgets_the_block() {
    let mut bench = bench(small());
    bench.begin(0, 1);
    for _ in 0..3 {
        bench.log_block(0, word(0, 0), 5, 1);
    }
    assert_eq!(bench.counter("proteus.elided_flushes"), 2.0);
    // Two other blocks of its set.
    bench.log_block(0, word(1, 0), 5, 1);
    bench.log_block(0, word(2, 0), 5, 1);
    bench.log_block(0, word(0, 0), 6, 1);
    assert_eq!(bench.counter("proteus.elided_flushes"), 2.0);
    assert_eq!(bench.counter("proteus.table_replacements"), 2.0);
    // The next transaction starts with an empty table.
    bench.commit(0, 1);
    bench.begin(0, 2);
    bench.log_block(0, word(0, 0), 6, 2);
    assert_eq!(bench.counter("proteus.elided_flushes"), 2.0);
}

#[test]
fn a_full_logq_stalls_flushes() {
    let mut bench = bench(small());
    bench.begin(0, 1);
    assert_eq!(bench.offer_block(0, word(0, 0), 5, Some(1)), Gate::Done);
    assert_eq!(bench.offer_block(0, word(1, 0), 5, Some(1)), Gate::Done);
    assert!(waits_for_logq(bench.offer_block(0, word(2, 0), 5, Some(1))));
    // Another core has a LogQ of its own; a block in the table needs none.
    bench.begin(1, 2);
    assert_eq!(bench.offer_block(1, word(3, 0), 5, Some(2)), Gate::Done);
    assert_eq!(bench.offer_block(0, word(1, 0), 5, Some(1)), Gate::Done);
    bench.log_block(0, word(2, 0), 5, 1);
    assert_eq!(bench.counter("proteus.logq_full_stalls"), 2.0);
}

#[test]
fn flushes_outside_of_transactions_do_nothing() {
    let mut bench = bench(small());
    assert_eq!(bench.offer_block(0, word(0, 0), 5, None), Gate::Done);
    assert!(!bench.deliver_message());
    assert_eq!(bench.counter("proteus.plain_flushes"), 1.0);
}

#[test]
fn a_full_pending_queue_writes_its_oldest_entries_to_the_log() {
    let mut bench = bench(small());
    bench.begin(0, 1);
    for place in 0..4 {
        change(&mut bench, 0, 1, place, 10 + place, 20, true);
    }
    assert_eq!(bench.counter("proteus.spilled_entries"), 2.0);
    assert_eq!(bench.counter("proteus.lpq_full_waits"), 2.0);
    // Whether the log or the queue has the entry, the block comes back.
    let pmem = bench.recovered(&[], true);
    assert_eq!([0, 1, 2, 3].map(|place| pmem.read_u64(word(place, 0))), [10, 11, 12, 13]);
}

#[test]
fn an_entry_stays_in_the_queue_until_the_log_has_it() {
    let mut bench = bench(ProteusSpec { lpq_entries: 1, ..small() });
    bench.begin(0, 1);
    change(&mut bench, 0, 1, 0, 10, 20, true);
    assert_eq!(bench.offer_block(0, word(1, 0), 11, Some(1)), Gate::Done);
    assert!(bench.deliver_message());
    // Its write is in flight and does not survive; the queue does.
    assert_eq!(bench.recovered(&[], false).read_u64(word(0, 0)), 10);
    assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 10);
    bench.deliver_all();
    assert_eq!(bench.counter("proteus.spilled_entries"), 1.0);
    assert_eq!(bench.recovered(&[], false).read_u64(word(0, 0)), 10);
}

#[test]
fn a_commit_removes_what_the_queue_holds_and_outdates_what_the_log_has() {
    let mut bench = bench(small());
    bench.begin(0, 1);
    for place in 0..4 {
        change(&mut bench, 0, 1, place, 10 + place, 20 + place, true);
    }
    bench.commit(0, 1);
    assert_eq!(bench.counter("proteus.removed_entries"), 2.0);
    let pmem = bench.recovered(&[], true);
    assert_eq!([0, 1, 2, 3].map(|place| pmem.read_u64(word(place, 0))), [20, 21, 22, 23]);
}

#[test]
fn an_entry_that_was_removed_while_it_was_written_is_not_missed() {
    let mut bench = bench(ProteusSpec { lpq_entries: 1, ..small() });
    bench.begin(0, 1);
    bench.begin(1, 2);
    change(&mut bench, 0, 1, 0, 10, 20, true);
    assert_eq!(bench.offer_block(1, word(1, 0), 11, Some(2)), Gate::Done);
    assert!(bench.deliver_message());
    // The entry of the first is in flight to the log when it commits; the write of the tx-end record comes after it.
    bench.commit(0, 1);
    change(&mut bench, 1, 2, 1, 11, 21, true);
    bench.deliver_all();
    let pmem = bench.recovered(&[], true);
    assert_eq!([0, 1].map(|place| pmem.read_u64(word(place, 0))), [20, 11]);
}

#[test]
fn a_log_wraps_around_and_a_transaction_that_fills_it_aborts() {
    let mut bench = bench(ProteusSpec { lpq_entries: 1, log_entries: 3, ..small() });
    for tx in 1..6 {
        bench.begin(0, tx);
        for place in 0..2 {
            change(&mut bench, 0, tx, place, 10 * tx + place, 10 * tx + 10 + place, true);
        }
        let pmem = bench.recovered(&[], true);
        assert_eq!([0, 1].map(|place| pmem.read_u64(word(place, 0))), [10 * tx, 10 * tx + 1]);
        bench.commit(0, tx);
    }
    bench.begin(0, 7);
    for place in 0..3 {
        change(&mut bench, 0, 7, place, 60 + place, 1, false);
    }
    let gate = bench.offer_block(0, word(3, 0), 0, Some(7));
    assert_eq!(gate, Gate::Abort(TxId(7), AbortCause::OutOfMemory));
}

#[test]
fn a_transaction_without_a_log_has_to_try_again() {
    let mut bench = bench(ProteusSpec { logs_per_core: 1, ..small() });
    bench.begin(0, 1);
    bench.begin(1, 2);
    let gate = bench.call(0, |design, cx, out| design.tx_begin(cx, TxId(3), out));
    assert_eq!(gate, Gate::Abort(TxId(3), AbortCause::Conflict));
    bench.abort(0, 3);
    bench.commit(1, 2);
    bench.begin(0, 3);
}

#[test]
fn flushes_arrive_before_another_thread_takes_the_core() {
    let mut bench = bench(small());
    bench.begin(0, 1);
    assert_eq!(bench.offer_block(0, word(0, 0), 5, Some(1)), Gate::Done);
    let (leaving, coming) = (Some(TxId(1)), None);
    assert!(waits_for_logq(bench.call(0, |design, cx, out| design.context_switch(cx, leaving, coming, out))));
    while bench.deliver_message() {}
    bench.raised.clear();
    bench.switch(0, Some(1), None);
    // On its next core the table is empty.
    bench.switch(1, None, Some(1));
    bench.log_block(1, word(0, 0), 6, 1);
    assert_eq!(bench.counter("proteus.elided_flushes"), 0.0);
    bench.commit(1, 1);
}

#[test]
fn every_controller_has_a_queue_of_its_own() {
    let mut bench = Bench::<Proteus>::with_controllers(small(), 2, 2);
    bench.begin(0, 1);
    for place in 0..6 {
        change(&mut bench, 0, 1, place, 10 + place, 20, true);
    }
    // Entries of a log lie two by two at the controllers: four fit in the queues.
    assert_eq!(bench.counter("proteus.spilled_entries"), 2.0);
    let pmem = bench.recovered(&[], true);
    assert_eq!([0, 1, 2, 3, 4, 5].map(|place| pmem.read_u64(word(place, 0))), [10, 11, 12, 13, 14, 15]);
    bench.commit(0, 1);
    assert_eq!(bench.counter("proteus.removed_entries"), 4.0);
    assert_eq!(bench.recovered(&[], true).read_u64(word(5, 0)), 20);
}

#[test]
fn what_is_saved_continues_unchanged() {
    let mut bench = bench(ProteusSpec { lpq_entries: 1, ..small() });
    bench.begin(0, 1);
    change(&mut bench, 0, 1, 0, 10, 20, true);
    assert_eq!(bench.offer_block(0, word(1, 0), 11, Some(1)), Gate::Done);
    assert_eq!(bench.offer_block(0, word(2, 0), 12, Some(1)), Gate::Done);
    assert!(bench.deliver_message());
    bench.save_and_load();
    bench.refuses_other_snapshots();
    change(&mut bench, 0, 1, 3, 13, 23, true);
    bench.save_and_load();
    assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 10);
    bench.commit(0, 1);
    let pmem = bench.recovered(&[], true);
    assert_eq!([0, 3].map(|place| pmem.read_u64(word(place, 0))), [20, 23]);
}

#[test]
fn a_commit_cleans_every_line_once_and_waits_for_those_that_left() {
    let mut bench = bench(small());
    bench.begin(0, 1);
    change(&mut bench, 0, 1, 0, 10, 20, false);
    change(&mut bench, 0, 1, 0, 10, 21, false);
    change(&mut bench, 0, 1, 1, 11, 22, false);
    // This one is written to its home address by itself, and its write has not been accepted when the commit begins.
    assert_eq!(bench.evict(1, LineTag::NONE, 22), Evict::Proceed);
    bench.commit(0, 1);
    assert_eq!(bench.cleaned, [line(0), line(1)]);
    assert_eq!(bench.recovered(&[], false).read_u64(word(1, 0)), 22, "the commit has waited for the write");
    assert_eq!(bench.commits, 1);
}

#[test]
fn durable_caches_need_no_cleans() {
    let mut bench = durable(small());
    bench.begin(0, 1);
    change(&mut bench, 0, 1, 0, 10, 20, false);
    bench.commit(0, 1);
    assert!(bench.cleaned.is_empty());
    assert_eq!(bench.commits, 1);
}

#[test]
fn a_transaction_that_logged_nothing_leaves_no_record() {
    let mut bench = bench(small());
    bench.begin(0, 1);
    bench.commit(0, 1);
    let ends = bench.geometry.region("tx_ends").base;
    assert_eq!(bench.pmem.read_u64(ends), 0);
    assert_eq!(bench.commits, 1);
}

#[test]
fn flushes_go_early_unless_the_logq_is_full() {
    let mut bench = bench(small());
    bench.begin(0, 1);
    assert!(bench.offer_block_early(0, word(0, 0), 5, Some(1)));
    assert!(bench.offer_block_early(0, word(1, 0), 5, Some(1)));
    assert!(!bench.offer_block_early(0, word(2, 0), 5, Some(1)));
    // A block in the table needs no room, and neither does what is flushed outside of transactions.
    assert!(bench.offer_block_early(0, word(1, 0), 6, Some(1)));
    assert!(bench.offer_block_early(0, word(3, 0), 6, None));
    bench.deliver_all();
    while bench.deliver_message() {}
    assert!(bench.offer_block_early(0, word(2, 0), 5, Some(1)));
    assert_eq!(bench.counter("proteus.early_flushes"), 5.0);
    assert_eq!([bench.counter("proteus.flushes"), bench.counter("proteus.elided_flushes")], [4.0, 1.0]);
    assert_eq!(bench.counter("proteus.logq_full_stalls"), 0.0, "no request waits");
}

#[test]
fn a_block_whose_earlier_entry_is_in_flight_is_not_logged_again() {
    let spec = ProteusSpec { logq_entries: 8, llt_entries: 1, llt_ways: 1, ..small() };
    let mut bench = bench(spec);
    bench.begin(0, 1);
    assert!(bench.offer_block_early(0, word(0, 0), 5, Some(1)));
    assert!(bench.offer_block_early(0, word(1, 0), 5, Some(1)));
    // The table has forgotten it; what a store in front will write is in this content.
    assert!(!bench.offer_block_early(0, word(0, 0), 6, Some(1)));
    assert!(waits_for_logq(bench.offer_block(0, word(0, 0), 6, Some(1))));
    assert!(bench.offer_block_early(0, word(0, 4), 5, Some(1)), "another block");
    while bench.deliver_message() {}
    assert!(bench.offer_block_early(0, word(0, 0), 6, Some(1)));
    while bench.deliver_message() {}
    assert_eq!(bench.counter("proteus.held_flushes"), 1.0);
    // The power fails before any store has left: nothing of them is seen, the oldest entry counts.
    assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 5);
}

#[test]
fn an_early_flush_leaves_a_full_log_to_the_one_in_order() {
    let mut bench = bench(ProteusSpec { log_entries: 1, ..small() });
    bench.begin(0, 1);
    assert!(bench.offer_block_early(0, word(0, 0), 5, Some(1)));
    while bench.deliver_message() {}
    assert!(!bench.offer_block_early(0, word(1, 0), 5, Some(1)));
    assert_eq!(bench.offer_block(0, word(1, 0), 5, Some(1)), Gate::Abort(TxId(1), AbortCause::OutOfMemory));
    // Entries that left before stores that never happen are undone with the rest.
    bench.abort(0, 1);
    bench.deliver_all();
    assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 5);
}
