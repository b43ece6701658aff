//! Unit tests of PiCL: pre-images, bursts, epochs, the scan, and recovery.

use super::*;
use crate::testing::{Bench, geometry, line, word};
use durasim_types::Pages;

fn small() -> PiclSpec {
    PiclSpec { undo_buffer_entries: 2, scan_gap_epochs: 1, log_bytes: 16 * 256, ..PiclSpec::default() }
}

/// A store to a word of a line whose first word is `before`; the note goes along.
fn store(bench: &mut Bench<Picl>, number: u64, before: u64, data: u64, tx: Option<u64>, note: &mut LineTag) -> Gate {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&before.to_le_bytes());
    let store = Store { addr: word(number, 0), len: 8, data, tx: tx.map(TxId), before: &bytes, dirty: true };
    let mut changed = *note;
    let gate = bench.call(0, |design, cx, out| design.store(cx, &store, &mut changed, out));
    if gate == Gate::Done {
        *note = changed;
    }
    gate
}

/// A store outside of transactions, with all writes delivered.
fn put(bench: &mut Bench<Picl>, number: u64, before: u64, data: u64, note: &mut LineTag) {
    while store(bench, number, before, data, None, note) != Gate::Done {
        bench.deliver_all();
    }
    bench.deliver_all();
}

fn woken(bench: &mut Bench<Picl>, id: u64) {
    bench.call(0, |design, cx, out| design.woken(cx, id, out));
    bench.deliver_all();
}

/// The epoch ends, and its end is all that happens.
fn end_epoch(bench: &mut Bench<Picl>) {
    woken(bench, ARMED);
    woken(bench, END);
}

fn persisted(bench: &Bench<Picl>) -> u64 {
    bench.pmem.read_u64(bench.geometry.region("registers").base)
}

fn scan(bench: &mut Bench<Picl>) {
    assert!(bench.scans.pop().is_some(), "a scan is in progress");
    woken(bench, SCAN);
}

#[test]
fn the_first_store_of_an_epoch_to_a_line_makes_a_pre_image() {
    let mut bench = Bench::<Picl>::new(small(), 1);
    let mut note = LineTag::NONE;
    assert_eq!(store(&mut bench, 0, 5, 6, None, &mut note), Gate::Done);
    assert_eq!(store(&mut bench, 0, 6, 7, None, &mut note), Gate::Done);
    assert_eq!(bench.counter("picl.pre_images"), 1.0);
    end_epoch(&mut bench);
    assert_eq!(store(&mut bench, 0, 7, 8, None, &mut note), Gate::Done);
    assert_eq!(bench.counter("picl.pre_images"), 2.0);
}

#[test]
fn a_full_buffer_goes_to_the_log_in_one_burst_whose_header_comes_last() {
    let mut bench = Bench::<Picl>::new(small(), 1);
    let log = bench.geometry.region("log").base;
    let (mut a, mut b, mut c) = (LineTag::NONE, LineTag::NONE, LineTag::NONE);
    assert_eq!(store(&mut bench, 0, 5, 6, None, &mut a), Gate::Done);
    assert_eq!(store(&mut bench, 1, 5, 6, None, &mut b), Gate::Done);
    assert!(matches!(store(&mut bench, 2, 5, 6, None, &mut c), Gate::Retry(Wait::Acked(_))));
    for _ in 0..3 {
        assert_eq!(bench.pmem.read_u64(log), 0, "two lines and their addresses come first");
        bench.deliver();
    }
    bench.deliver();
    assert_eq!([bench.pmem.read_u64(log), bench.pmem.read_u64(log.plus(8))], [1, 2]);
    assert_eq!(store(&mut bench, 2, 5, 6, None, &mut c), Gate::Done);
    assert_eq!(bench.counter("picl.bursts"), 1.0);
}

#[test]
fn a_line_leaves_when_its_pre_image_is_in_the_log() {
    let mut bench = Bench::<Picl>::new(small(), 1);
    let mut note = LineTag::NONE;
    store(&mut bench, 3, 5, 6, None, &mut note);
    let held = bench.evict(3, note, 6);
    assert!(matches!(held, Evict::After(Wait::Acked(_))), "{held:?}");
    bench.deliver_all();
    assert_eq!(bench.evict(3, note, 6), Evict::Proceed);
    let flush = bench.call(0, |design, cx, out| design.flush(cx, line(3), note, out));
    assert_eq!((flush, bench.counter("picl.filter_hits")), (FlushVerdict::Proceed, 1.0));
    bench.deliver_all();
    assert_eq!(bench.recovered(&[], false).read_u64(word(3, 0)), 5);
}

#[test]
fn a_filter_of_few_bits_holds_others_up_and_counts_them() {
    let spec = PiclSpec { bloom_bits: 8, bloom_hashes: 1, undo_buffer_entries: 32, log_bytes: 1 << 16, ..small() };
    let mut bench = Bench::<Picl>::new(spec, 1);
    for number in 0..8 {
        store(&mut bench, number, 5, 6, None, &mut LineTag::NONE.clone());
    }
    let held = (100..120).any(|number| matches!(bench.evict(number, LineTag::NONE, 0), Evict::After(_)));
    assert!(held && bench.counter("picl.false_positives") >= 1.0);
}

#[test]
fn recovery_comes_to_the_end_of_the_persisted_epoch() {
    let mut bench = Bench::<Picl>::new(small(), 1);
    let mut note = LineTag::NONE;
    // Epoch n leaves n in the line, which is home at once, whatever the scan does.
    for epoch in 1..=12 {
        put(&mut bench, 0, epoch - 1, epoch, &mut note);
        while matches!(bench.evict(0, note, epoch), Evict::After(_)) {
            bench.deliver_all();
        }
        bench.deliver_all();
        assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), persisted(&bench), "in epoch {epoch}");
        end_epoch(&mut bench);
        if epoch > 1 {
            scan(&mut bench);
            assert_eq!(persisted(&bench), epoch - 1);
        }
        assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), persisted(&bench), "after epoch {epoch}");
        if epoch == 7 {
            bench.save_and_load();
            bench.refuses_other_snapshots();
        }
    }
    assert_eq!(bench.counter("picl.epochs"), 12.0);
}

#[test]
fn no_epoch_ends_inside_a_transaction_and_none_begins_before_it_has() {
    let mut bench = Bench::<Picl>::new(small(), 1);
    bench.begin(0, 1);
    end_epoch(&mut bench);
    assert_eq!(bench.counter("picl.epochs"), 0.0);
    let begin = |bench: &mut Bench<Picl>, tx| bench.call(0, |design, cx, out| design.tx_begin(cx, TxId(tx), out));
    assert_eq!(begin(&mut bench, 2), Gate::Retry(Wait::Signal(EPOCH_ENDS)));
    // A transaction that does not end lets others begin after a while, until one of them ends.
    woken(&mut bench, HOLD);
    assert_eq!(begin(&mut bench, 3), Gate::Done);
    bench.commit(0, 3);
    assert_eq!(begin(&mut bench, 2), Gate::Retry(Wait::Signal(EPOCH_ENDS)));
    bench.commit(0, 1);
    woken(&mut bench, END);
    assert_eq!((begin(&mut bench, 2), bench.counter("picl.epochs")), (Gate::Done, 1.0));
}

#[test]
fn an_epoch_waits_for_the_scan_that_its_end_would_start() {
    let mut bench = Bench::<Picl>::new(small(), 1);
    (0..5).for_each(|_| end_epoch(&mut bench));
    // With a gap of one the scan of epoch 1 begins when epoch 2 has ended.
    assert_eq!((bench.counter("picl.epochs"), bench.scans.len()), (2.0, 1));
    scan(&mut bench);
    woken(&mut bench, END);
    assert_eq!((bench.counter("picl.epochs"), persisted(&bench)), (3.0, 1));
}

#[test]
fn the_scan_takes_lines_of_its_epoch_and_stale_notes() {
    let mut bench = Bench::<Picl>::new(PiclSpec { scan_gap_epochs: 0, ..small() }, 1);
    let (mut old, mut new) = (LineTag::NONE, LineTag::NONE);
    put(&mut bench, 0, 0, 1, &mut old);
    end_epoch(&mut bench);
    put(&mut bench, 1, 0, 1, &mut new);
    let visit = |bench: &mut Bench<Picl>, dirty: bool, note: LineTag| {
        let mut note = note;
        let verdict = bench.call(0, |design, cx, _| design.scanned(cx, SCAN, line(0), dirty, &mut note));
        (verdict, note)
    };
    assert_eq!(visit(&mut bench, true, new), (Scanned::Leave, new));
    assert_eq!(visit(&mut bench, true, old), (Scanned::Clean, LineTag::NONE));
    assert_eq!(visit(&mut bench, false, old), (Scanned::Leave, LineTag::NONE));
    assert_eq!(visit(&mut bench, true, LineTag::NONE), (Scanned::Clean, LineTag::NONE));
}

#[test]
fn a_full_log_ends_the_epoch_and_scans_or_aborts_the_transaction_that_fills_it() {
    let mut bench = Bench::<Picl>::new(PiclSpec { scan_gap_epochs: 3, undo_buffer_entries: 1, ..small() }, 1);
    let (mut number, mut full) = (0, Gate::Done);
    while full == Gate::Done {
        full = store(&mut bench, number, 0, 1, None, &mut LineTag::NONE.clone());
        bench.deliver_all();
        number += 1;
    }
    assert_eq!(full, Gate::Retry(Wait::Cycles(ROOM_RETRY_CYCLES)));
    woken(&mut bench, END);
    scan(&mut bench);
    assert_eq!(persisted(&bench), 1);
    assert_eq!(store(&mut bench, number, 0, 1, None, &mut LineTag::NONE.clone()), Gate::Done);
    bench.deliver_all();
    bench.begin(0, 9);
    full = Gate::Done;
    while full == Gate::Done {
        number += 1;
        full = store(&mut bench, number, 0, 1, Some(9), &mut LineTag::NONE.clone());
        bench.deliver_all();
    }
    assert_eq!(full, Gate::Abort(TxId(9), AbortCause::Capacity));
}

#[test]
fn a_transaction_that_finds_the_log_full_is_tried_again_when_there_is_room() {
    let mut bench = Bench::<Picl>::new(PiclSpec { scan_gap_epochs: 3, undo_buffer_entries: 1, ..small() }, 1);
    let begin = |bench: &mut Bench<Picl>, tx| bench.call(0, |design, cx, out| design.tx_begin(cx, TxId(tx), out));
    let (mut number, mut full) = (0, Gate::Done);
    while full == Gate::Done {
        // Another transaction for each store: the log is full of what came before the last.
        bench.begin(0, number + 1);
        full = store(&mut bench, number, 0, 1, Some(number + 1), &mut LineTag::NONE.clone());
        bench.deliver_all();
        if full == Gate::Done {
            bench.commit(0, number + 1);
            number += 1;
        }
    }
    assert_eq!(full, Gate::Abort(TxId(number + 1), AbortCause::Conflict));
    bench.abort(0, number + 1);
    bench.deliver_all();
    // A begin waits for the scan of the epoch that has ended.
    woken(&mut bench, END);
    assert_eq!(begin(&mut bench, number + 2), Gate::Retry(Wait::Cycles(ROOM_RETRY_CYCLES)));
    scan(&mut bench);
    assert_eq!(persisted(&bench), 1);
    assert_eq!(begin(&mut bench, number + 2), Gate::Done);
    assert_eq!(store(&mut bench, number, 0, 1, Some(number + 2), &mut LineTag::NONE.clone()), Gate::Done);
}

#[test]
fn an_abort_restores_the_oldest_bytes_last() {
    let mut bench = Bench::<Picl>::new(small(), 1);
    let mut note = LineTag::NONE;
    bench.begin(0, 1);
    store(&mut bench, 0, 5, 6, Some(1), &mut note);
    store(&mut bench, 0, 6, 7, Some(1), &mut note);
    bench.abort(0, 1);
    bench.deliver_all();
    assert_eq!((bench.pmem.read_u64(word(0, 0)), bench.counter("picl.undone_stores")), (5, 2.0));
}

#[test]
fn an_orderly_shutdown_undoes_nothing() {
    let mut bench = Bench::<Picl>::new(small(), 1);
    let mut note = LineTag::NONE;
    put(&mut bench, 0, 0, 1, &mut note);
    assert!(matches!(bench.evict(0, note, 1), Evict::After(_)));
    bench.deliver_all();
    let mut image = bench.crashed(&[], true);
    image.pmem.write(word(0, 0), &1u64.to_le_bytes());
    bench.design.shut_down(&mut image);
    recovery::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
    assert_eq!(image.read_u64(word(0, 0)), 1);
}

#[test]
fn damaged_superblocks_are_losses_and_nothing_is_written_outside_of_the_data() {
    let spec = small();
    let geometry = geometry::<Picl>(&spec, 1);
    let regions: u64 = geometry.regions.iter().map(|region| region.size_bytes.next_multiple_of(4096)).sum();
    let (log, registers) = (geometry.region("log").base, geometry.region("registers").base);
    let outside = geometry.pmem_base.0 + geometry.pmem_data_bytes;
    let damaged = [
        // Count, address, ValidFrom and ValidTill, head.
        (1, outside, (0, 1), 0),
        (1, word(0, 0).0 + 8, (0, 1), 0),
        (1, u64::MAX, (0, 1), 0),
        (1, word(0, 0).0, (2, 1), 0),
        (3, word(0, 0).0, (0, 1), 0),
        (u64::MAX, word(0, 0).0, (0, 1), 0),
        (1, word(0, 0).0, (0, 1), u64::MAX),
    ];
    for (count, home, (from, till), head) in damaged {
        let mut image = CrashImage::new(Pages::new(geometry.pmem_base, geometry.pmem_data_bytes + regions));
        let epochs: u64 = from | till << 32;
        for (offset, value) in [(0, 1), (8, count), (64, home), (72, epochs), (128, 7)] {
            image.pmem.write(log.plus(offset), &value.to_le_bytes());
        }
        image.pmem.write(registers.plus(8), &head.to_le_bytes());
        let report = recovery::recover(&spec, &geometry, &mut image).unwrap();
        assert_eq!((report.losses.len(), report.lines_written), (1, 0), "{count} {home:#x} {from} {till} {head}");
        assert_eq!(recovery::recover(&spec, &geometry, &mut image), Ok(RecoveryReport::default()));
    }
}

#[test]
fn what_cannot_be_built_is_refused() {
    let refused = |spec: PiclSpec| spec.check().unwrap_err().field;
    assert_eq!(refused(PiclSpec { scan_gap_epochs: 4, ..PiclSpec::default() }), "scan_gap_epochs");
    assert_eq!(refused(PiclSpec { bloom_bits: 100, ..PiclSpec::default() }), "bloom_bits");
    assert_eq!(refused(PiclSpec { log_bytes: 1000, ..PiclSpec::default() }), "log_bytes");
    assert_eq!(refused(PiclSpec { eid_bits: 2, ..PiclSpec::default() }), "eid_bits");
}

#[test]
fn the_cost_counts_identifiers_buffer_and_filter() {
    let spec = PiclSpec::default();
    let geometry = geometry::<Picl>(&spec, 2);
    let cost = Picl::cost(&spec, &geometry);
    let bits = |name: &str| cost.structures.iter().find(|s| s.name == name).map(|s| (s.bits, s.instances)).unwrap();
    assert_eq!(bits("EID l1d"), (4 * geometry.l1d.lines(), 2));
    assert_eq!(bits("EID llc"), (4 * geometry.llc.lines(), 1));
    assert_eq!(bits("undo buffer"), (32 * (42 + 4 + 4 + 512), 1));
    assert_eq!(bits("Bloom filter"), (4096, 1));
}
