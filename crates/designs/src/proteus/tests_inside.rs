//! Log entries in the write pending queue, and flushes in order with stores.

use super::spec::{AcknowledgedBy, FlushOrder, LogQueue};
use super::tests::{bench, change, small};
use super::{Proteus, ProteusSpec};
use crate::testing::{Bench, line, word};
use durasim_contract::{Accept, Arrival, CrashView, Gate, LineTag, Occupancy, Wait};
use durasim_types::{Cause, Domain, PhysAddr, TxId};

fn inside() -> ProteusSpec {
    ProteusSpec { log_queue: LogQueue::Inside, lpq_entries: 64, ..small() }
}

fn slot(bench: &Bench<Proteus>, number: u64) -> PhysAddr {
    bench.geometry.region("logs").base.plus(64 * number)
}

#[test]
fn an_entry_is_held_at_its_place_in_the_log_and_vanishes_at_the_commit() {
    let mut bench = bench(inside());
    bench.begin(0, 1);
    assert_eq!(bench.offer_block(0, word(0, 0), 10, Some(1)), Gate::Done);
    assert!(!bench.deliver_message(), "it goes as a write, not as a message");
    let mut tag = LineTag::NONE;
    assert!(matches!(bench.offer(0, word(0, 0), 20, Some(1), &mut tag), Gate::Retry(Wait::Signal(_))));
    assert!(bench.deliver());
    assert_eq!(bench.held.iter().map(|held| held.line.base()).collect::<Vec<_>>(), [slot(&bench, 0)]);
    assert_eq!(bench.pmem.line(slot(&bench, 0).line()), [0; 64], "the media has nothing of it");
    assert_eq!(bench.offer(0, word(0, 0), 20, Some(1), &mut tag), Gate::Done);
    assert_eq!(bench.evict(0, tag, 20), durasim_contract::Evict::Proceed);
    bench.deliver_all();
    assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 10);
    bench.commit(0, 1);
    assert!(bench.held.is_empty());
    assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 20);
}

#[test]
fn writes_of_data_are_ordinary_ones() {
    let mut bench = bench(inside());
    bench.begin(0, 1);
    change(&mut bench, 0, 1, 3, 10, 20, true);
    let (data, log) = (line(3), slot(&bench, 0).line());
    assert_eq!(bench.accept(data, None), Accept::Queue { held: None });
    assert!(matches!(bench.accept(log, None), Accept::QueueWhileRoom { .. }));
    bench.commit(0, 1);
    assert_eq!(bench.accept(log, None), Accept::Queue { held: None }, "its transaction has ended");
    // In a full queue it could only join an older entry of its place, which is not held.
    bench.begin(0, 2);
    change(&mut bench, 0, 2, 3, 10, 20, true);
    let queue = Occupancy { entries: 2, held: 1, ordinary: 1 };
    let line = slot(&bench, 1).line();
    let arrival = Arrival { controller: 0, line, mask: u64::MAX, cause: Cause::Log, token: None, queue };
    assert_eq!(bench.call(0, |d, cx, out| d.accept(cx, &arrival, out)), Accept::Refuse);
    // Beside it, a log pending queue writes ordinary entries to the log.
    let mut beside = super::tests::bench(small());
    assert_eq!(beside.accept(log, None), Accept::Queue { held: None });
}

#[test]
fn an_entry_that_gave_up_its_place_is_undone_from_the_log() {
    for aborts in [false, true] {
        let mut bench = bench(inside());
        bench.begin(0, 1);
        for place in 0..4 {
            change(&mut bench, 0, 1, place, 10 + place, 20, true);
        }
        assert_eq!(bench.held.len(), 4);
        bench.yield_held(0);
        bench.yield_held(1);
        if aborts {
            bench.abort(0, 1);
            bench.deliver_all();
            assert!(bench.held.is_empty());
        }
        let pmem = bench.recovered(&[], true);
        assert_eq!([0, 1, 2, 3].map(|place| pmem.read_u64(word(place, 0))), [10, 11, 12, 13]);
    }
}

#[test]
fn log_entries_keep_to_their_share_of_the_queue() {
    let mut bench = bench(ProteusSpec { lpq_entries: 2, ..inside() });
    bench.begin(0, 1);
    for place in 0..3 {
        change(&mut bench, 0, 1, place, 10 + place, 20, true);
    }
    let held: Vec<PhysAddr> = bench.held.iter().map(|held| held.line.base()).collect();
    assert_eq!(held, [1, 2].map(|number| slot(&bench, number)), "the oldest has left");
    assert_ne!(bench.pmem.line(slot(&bench, 0).line()), [0; 64]);
    assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 10);
    bench.commit(0, 1);
    assert!(bench.held.is_empty());
    assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 20);
}

#[test]
fn a_commit_leaves_the_entries_of_others() {
    let mut bench = Bench::<Proteus>::with_controllers(inside(), 2, 2);
    bench.begin(0, 1);
    bench.begin(1, 2);
    change(&mut bench, 0, 1, 0, 10, 20, true);
    change(&mut bench, 1, 2, 1, 11, 21, true);
    bench.commit(0, 1);
    assert_eq!(bench.held.len(), 1);
    let pmem = bench.recovered(&[], true);
    assert_eq!([0, 1].map(|place| pmem.read_u64(word(place, 0))), [20, 11]);
}

#[test]
fn what_the_queues_hold_is_kept_as_it_is() {
    let mut bench = bench(inside());
    bench.begin(0, 1);
    change(&mut bench, 0, 1, 0, 10, 20, false);
    let image = bench.crashed(&[], true);
    let kept = image.structure(super::recovery::STRUCTURE).expect("the queue is durable");
    assert_eq!(kept, bench.held[0].data);
    let view = CrashView { domain: Domain::Adr, geometry: &bench.geometry, lines: &[], staged: &[] };
    let mut nothing = durasim_contract::CrashImage::new(bench.pmem.clone());
    bench.design.crash(&view, &mut durasim_contract::CrashSink::new(&mut nothing, u64::MAX)).unwrap();
    assert_eq!(
        nothing.structure(super::recovery::STRUCTURE),
        Some(&[][..]),
        "what is held comes from the machine alone"
    );
}

#[test]
fn what_is_saved_continues_with_entries_in_the_queue() {
    let mut bench = bench(inside());
    bench.begin(0, 1);
    change(&mut bench, 0, 1, 0, 10, 20, true);
    assert_eq!(bench.offer_block(0, word(1, 0), 11, Some(1)), Gate::Done);
    bench.save_and_load();
    bench.deliver_all();
    bench.commit(0, 1);
    assert!(bench.held.is_empty());
}

#[test]
fn flushes_in_order_with_stores_never_leave_early() {
    for (flush_order, early) in [(FlushOrder::Early, 1.0), (FlushOrder::InOrder, 0.0)] {
        let mut bench = bench(ProteusSpec { flush_order, ..small() });
        bench.begin(0, 1);
        assert_eq!(bench.offer_block_early(0, word(0, 0), 10, Some(1)), early > 0.0);
        // In its turn the same flush goes.
        assert_eq!(bench.offer_block(0, word(1, 0), 11, Some(1)), Gate::Done);
        assert_eq!(bench.counter("proteus.early_flushes"), early);
        assert_eq!(bench.counter("proteus.flushes"), 1.0 + early);
    }
}

#[test]
fn a_commit_may_wait_for_the_medium() {
    let mut bench = bench(ProteusSpec { acknowledged_by: AcknowledgedBy::Medium, ..small() });
    bench.begin(0, 1);
    change(&mut bench, 0, 1, 0, 10, 20, true);
    let commit = |bench: &mut Bench<Proteus>| bench.call(0, |d, cx, out| d.tx_commit(cx, TxId(1), out));
    assert!(matches!(commit(&mut bench), Gate::Retry(Wait::Cycles(_))), "the cleans leave");
    let cleaned = commit(&mut bench);
    let ended = commit(&mut bench);
    let Gate::Retry(Wait::Acked(token)) = ended else { panic!("{ended:?}") };
    assert_eq!((cleaned, token.is_when_written()), (ended, true), "cleans and tx-end record have one token");
    while bench.outstanding(token.when_accepted()) {
        bench.deliver();
    }
    assert!(bench.outstanding(token), "the queue has the record, the medium does not");
    while bench.outstanding(token) {
        assert!(bench.write_out(), "the medium takes one write after the other");
    }
    assert_eq!(commit(&mut bench), Gate::Done);
}
