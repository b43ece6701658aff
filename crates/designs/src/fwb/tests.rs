//! Unit tests of FWB: the log, its order, its room, and recovery.

use super::scan::{SCAN, TIMER};
use super::*;
use crate::testing::{Bench, geometry, line, word};
use durasim_contract::Evict;
use durasim_types::Pages;

fn small(log_bytes: u64) -> FwbSpec {
    FwbSpec { log_bytes, log_buffer_entries: 4, scan_from_percent: 100, ..FwbSpec::default() }
}

fn eadr(spec: FwbSpec) -> Bench<Fwb> {
    let geometry = Geometry { domain: Domain::Eadr, ..geometry::<Fwb>(&spec, 1) };
    Bench::on(spec, geometry)
}

fn store(bench: &mut Bench<Fwb>, addr: PhysAddr, data: u64, tx: Option<u64>) {
    bench.store(0, addr, data, tx, &mut LineTag::NONE.clone());
}

/// A store whose line holds something else than zeros.
fn store_over(bench: &mut Bench<Fwb>, addr: PhysAddr, len: u8, data: u64, before: u64, tx: Option<u64>) -> Gate {
    let mut line = [0; 64];
    line[addr.offset() & !7..][..8].copy_from_slice(&before.to_le_bytes());
    let store = Store { addr, len, data, tx: tx.map(TxId), before: &line, dirty: true };
    bench.call(0, |design, cx, out| design.store(cx, &store, &mut LineTag::NONE.clone(), out))
}

fn scan(bench: &mut Bench<Fwb>) {
    bench.call(0, |design, cx, out| design.woken(cx, TIMER, out));
    end_scan(bench);
}

fn end_scan(bench: &mut Bench<Fwb>) {
    bench.call(0, |design, cx, out| design.woken(cx, SCAN, out));
    bench.deliver_all();
}

fn word_of(pages: &Pages, addr: PhysAddr) -> u64 {
    pages.read_u64(addr)
}

#[test]
fn committed_transactions_are_redone_and_open_ones_undone() {
    let mut bench = Bench::<Fwb>::new(small(1024), 1);
    bench.begin(0, 1);
    store(&mut bench, word(0, 0), 7, Some(1));
    store(&mut bench, word(1, 0), 8, Some(1));
    bench.commit(0, 1);
    bench.begin(0, 2);
    store_over(&mut bench, word(0, 0), 8, 9, 7, Some(2));
    store_over(&mut bench, word(0, 0), 8, 10, 9, Some(2));
    bench.deliver_all();
    // Stolen: the uncommitted value is home.
    bench.pmem.write(word(0, 0), &10u64.to_le_bytes());
    let pages = bench.recovered(&[], true);
    assert_eq!([word_of(&pages, word(0, 0)), word_of(&pages, word(1, 0))], [7, 8]);
}

#[test]
fn a_commit_waits_until_its_records_are_durable() {
    let mut bench = Bench::<Fwb>::new(small(1024), 1);
    bench.begin(0, 1);
    store(&mut bench, word(0, 0), 7, Some(1));
    let commit = |bench: &mut Bench<Fwb>| bench.call(0, |d, cx, out| d.tx_commit(cx, TxId(1), out));
    assert!(matches!(commit(&mut bench), Gate::Retry(Wait::Acked(_))));
    // A record that was not accepted is lost, and with it the transaction.
    assert_eq!(word_of(&bench.recovered(&[], false), word(0, 0)), 0);
    bench.deliver_all();
    assert_eq!((commit(&mut bench), bench.commits), (Gate::Done, 1));
    assert_eq!(word_of(&bench.recovered(&[], false), word(0, 0)), 7);
}

#[test]
fn the_medium_may_free_the_buffer_and_end_commits() {
    let spec = FwbSpec { free_at: Reached::Medium, acknowledged_by: Reached::Medium, ..small(1024) };
    let mut bench = Bench::<Fwb>::new(spec, 1);
    bench.begin(0, 1);
    (0..4).for_each(|n| store(&mut bench, word(n, 0), 7, Some(1)));
    (0..2).for_each(|_| assert!(bench.deliver()));
    // The queue has all records: their lines may leave, and their places are not free.
    assert_eq!(bench.offer_line(3, LineTag::NONE, 7), Evict::Proceed);
    assert!(bench.deliver());
    let fifth = store_over(&mut bench, word(4, 0), 8, 7, 0, Some(1));
    let Gate::Retry(Wait::Acked(token)) = fifth else { panic!("{fifth:?}") };
    assert!(token.is_when_written() && bench.write_out());
    store(&mut bench, word(4, 0), 7, Some(1));
    let commit = |bench: &mut Bench<Fwb>| bench.call(0, |d, cx, out| d.tx_commit(cx, TxId(1), out));
    assert!(matches!(commit(&mut bench), Gate::Retry(_)));
    assert!(bench.deliver());
    assert!(matches!(commit(&mut bench), Gate::Retry(_)), "the record is durable, and the commit waits for the medium");
    assert_eq!(word_of(&bench.recovered(&[], false), word(4, 0)), 7);
    bench.deliver_all();
    assert_eq!(commit(&mut bench), Gate::Done);
    bench.save_and_load();
}

#[test]
fn lines_of_the_log_may_be_filled_up() {
    for (write_combining, records_used) in [(true, 4), (false, 6)] {
        let spec = FwbSpec { whole_lines: true, write_combining, log_buffer_entries: 15, ..small(512) };
        let mut bench = Bench::<Fwb>::new(spec, 1);
        bench.begin(0, 1);
        (0..2).for_each(|n| store(&mut bench, word(n, 0), 7, Some(1)));
        bench.commit(0, 1);
        let used = |bench: &Bench<Fwb>| {
            let mut used = 0;
            bench.design.occupancies(&mut |name, value| used = if name == "log" { value } else { used });
            used
        };
        assert_eq!((used(&bench), bench.counter("fwb.records")), (records_used, 3.0));
        bench.begin(0, 2);
        store_over(&mut bench, word(0, 0), 8, 9, 7, Some(2));
        bench.commit(0, 2);
        let pages = bench.recovered(&[], true);
        assert_eq!([0, 1].map(|n| word_of(&pages, word(n, 0))), [9, 7], "recovery reads past what fills lines up");
        bench.save_and_load();
    }
}

#[test]
fn a_line_leaves_when_its_records_are_durable() {
    let mut bench = Bench::<Fwb>::new(small(1024), 1);
    bench.begin(0, 1);
    store(&mut bench, word(3, 0), 7, Some(1));
    let wait = bench.evict(3, LineTag::NONE, 7);
    assert!(matches!(wait, Evict::After(Wait::Acked(_))), "{wait:?}");
    assert_eq!(bench.evict(4, LineTag::NONE, 1), Evict::Proceed);
    let flush = |bench: &mut Bench<Fwb>| bench.call(0, |d, cx, out| d.flush(cx, line(3), LineTag::NONE, out));
    assert!(matches!(flush(&mut bench), FlushVerdict::After(Wait::Acked(_))));
    bench.deliver_all();
    assert_eq!((flush(&mut bench), bench.evict(3, LineTag::NONE, 7)), (FlushVerdict::Proceed, Evict::Proceed));
    assert_eq!(bench.counter("fwb.held_write_backs"), 2.0);
}

#[test]
fn two_records_leave_in_one_write_and_a_full_buffer_holds_stores_up() {
    let mut bench = Bench::<Fwb>::new(small(1024), 1);
    bench.begin(0, 1);
    let offer = |bench: &mut Bench<Fwb>, n: u64| bench.offer(0, word(n, 0), n, Some(1), &mut LineTag::NONE.clone());
    bench.keep_steps = true;
    (0..4).for_each(|n| assert_eq!(offer(&mut bench, n), Gate::Done));
    assert_eq!(bench.steps.len(), 2, "four records are two writes");
    let full = offer(&mut bench, 4);
    assert!(matches!(full, Gate::Retry(Wait::Acked(_))), "{full:?}");
    bench.deliver();
    assert_eq!(offer(&mut bench, 4), Gate::Done);
    assert_eq!(bench.counter("fwb.buffer_full"), 1.0);

    let mut single = Bench::<Fwb>::new(FwbSpec { write_combining: false, ..small(1024) }, 1);
    single.begin(0, 1);
    single.keep_steps = true;
    (0..4).for_each(|n| assert_eq!(offer(&mut single, n), Gate::Done));
    assert_eq!(single.steps.len(), 4);
}

#[test]
fn the_head_follows_the_scan_before_the_last_and_stops_at_what_may_be_undone() {
    let mut bench = Bench::<Fwb>::new(small(1024), 1);
    let head = |bench: &Bench<Fwb>| word_of(&bench.pmem, bench.geometry.region("log_head").base);
    bench.begin(0, 1);
    store(&mut bench, word(0, 0), 7, Some(1));
    bench.commit(0, 1);
    bench.begin(0, 2);
    store(&mut bench, word(1, 0), 7, Some(2));
    scan(&mut bench);
    assert_eq!((head(&bench), bench.scans.len()), (0, 1), "lines were marked, nothing is home");
    scan(&mut bench);
    assert_eq!(head(&bench), 2, "the open transaction has the third record");
    bench.abort(0, 2);
    bench.deliver_all();
    scan(&mut bench);
    assert_eq!(head(&bench), 2, "what was restored may be in the caches alone");
    scan(&mut bench);
    assert_eq!(head(&bench), 4);
}

#[test]
fn a_scan_marks_first_and_writes_the_next_time() {
    let mut bench = Bench::<Fwb>::new(small(1024), 1);
    let mut tag = LineTag::NONE;
    let visit = |bench: &mut Bench<Fwb>, tag: &mut LineTag| {
        let mut seen = *tag;
        let verdict = bench.call(0, |d, cx, _| d.scanned(cx, SCAN, line(0), true, &mut seen));
        *tag = seen;
        verdict
    };
    assert_eq!((visit(&mut bench, &mut tag), tag.is_some()), (Scanned::Leave, true));
    bench.begin(0, 1);
    store(&mut bench, word(0, 0), 7, Some(1));
    assert_eq!((visit(&mut bench, &mut tag), tag.is_some()), (Scanned::Leave, true), "its record is in the buffer");
    let again = bench.offer(0, word(0, 1), 8, Some(1), &mut LineTag::NONE.clone());
    assert!(
        matches!(again, Gate::Retry(Wait::Acked(_))),
        "its line waits for the record, and stores with it: {again:?}"
    );
    assert_eq!((bench.counter("fwb.lines_left"), bench.counter("fwb.forced_write_backs")), (1.0, 0.0));
    bench.deliver_all();
    assert_eq!(bench.counter("fwb.forced_write_backs"), 1.0, "it goes home as soon as the record is durable");
    store(&mut bench, word(0, 1), 8, Some(1));
    bench.commit(0, 1);
    assert_eq!((visit(&mut bench, &mut tag), tag.is_some()), (Scanned::Clean, false));
}

#[test]
fn a_full_log_scans_at_once_and_aborts_the_transaction_that_fills_it() {
    let mut bench = Bench::<Fwb>::new(small(512), 1);
    for tx in 1..=7 {
        bench.begin(0, tx);
        store(&mut bench, word(tx, 0), tx, Some(tx));
        bench.commit(0, tx);
    }
    bench.begin(0, 8);
    assert_eq!(bench.offer(0, word(8, 0), 8, Some(8), &mut LineTag::NONE.clone()), Gate::Done);
    let full = bench.offer(0, word(9, 0), 9, Some(8), &mut LineTag::NONE.clone());
    assert_eq!((full, bench.scans.len()), (Gate::Retry(Wait::Cycles(ROOM_RETRY_CYCLES)), 1));
    end_scan(&mut bench);
    assert_eq!(bench.scans.len(), 2, "one scan after the other while a request waits");
    end_scan(&mut bench);
    (0..14).for_each(|n| store(&mut bench, word(9 + n, 0), 9, Some(8)));
    let full = bench.offer(0, word(30, 0), 9, Some(8), &mut LineTag::NONE.clone());
    assert_eq!(full, Gate::Abort(TxId(8), AbortCause::Capacity));
    bench.abort(0, 8);
    bench.deliver_all();
    assert_eq!(word_of(&bench.recovered(&[], true), word(9, 0)), 0);
}

#[test]
fn the_oldest_transaction_is_tried_again_if_others_have_filled_the_log() {
    let mut bench = Bench::<Fwb>::new(small(512), 1);
    bench.begin(0, 1);
    store(&mut bench, word(1, 0), 1, Some(1));
    let full = (2..).find_map(|n| {
        let gate = bench.offer(0, word(n, 0), n, None, &mut LineTag::NONE.clone());
        bench.deliver_all();
        (gate != Gate::Done).then_some(gate)
    });
    assert_eq!(full, Some(Gate::Abort(TxId(1), AbortCause::Conflict)));
}

#[test]
fn scans_follow_each_other_where_the_log_fills_faster_than_the_period() {
    let mut bench = Bench::<Fwb>::new(FwbSpec { scan_from_percent: 50, ..small(512) }, 1);
    let transaction = |bench: &mut Bench<Fwb>, tx: u64| {
        bench.begin(0, tx);
        store(bench, word(tx, 0), tx, Some(tx));
        bench.commit(0, tx);
        bench.scans.len()
    };
    let scans: Vec<usize> = (1..=5).map(|tx| transaction(&mut bench, tx)).collect();
    assert_eq!(scans, [0, 0, 0, 0, 1], "the ninth of 16 records is the first beyond half of them");
    end_scan(&mut bench);
    assert_eq!(bench.scans.len(), 2, "another one after it, for the first has only marked lines");
    end_scan(&mut bench);
    assert_eq!((bench.scans.len(), bench.counter("fwb.head_moves")), (2, 1.0));
    assert_eq!((bench.counter("fwb.log_full"), bench.counter("fwb.lines_left")), (0.0, 0.0));
}

#[test]
fn the_torn_bit_ends_each_round() {
    let mut bench = Bench::<Fwb>::new(small(512), 1);
    for tx in 1..=40 {
        bench.begin(0, tx);
        store_over(&mut bench, word(0, 0), 8, tx, tx - 1, Some(tx));
        let pages = bench.recovered(&[], true);
        assert_eq!(word_of(&pages, word(0, 0)), tx - 1, "before commit {tx}");
        bench.commit(0, tx);
        let pages = bench.recovered(&[], true);
        assert_eq!(word_of(&pages, word(0, 0)), tx, "after commit {tx}");
        if tx % 4 == 0 {
            bench.pmem.write(word(0, 0), &tx.to_le_bytes());
            scan(&mut bench);
            scan(&mut bench);
        }
        if tx == 21 {
            bench.save_and_load();
            bench.refuses_other_snapshots();
        }
    }
    assert!(bench.counter("fwb.head_moves") > 5.0);
}

#[test]
fn what_was_rolled_back_stays_so_when_others_have_written_since() {
    let mut bench = Bench::<Fwb>::new(small(1024), 1);
    bench.begin(0, 1);
    store_over(&mut bench, word(0, 0), 8, 1, 5, Some(1));
    store_over(&mut bench, word(0, 0), 8, 2, 1, Some(1));
    bench.deliver_all();
    bench.abort(0, 1);
    bench.deliver_all();
    assert_eq!(word_of(&bench.pmem, word(0, 0)), 5, "the oldest value is restored last");
    bench.begin(0, 2);
    store_over(&mut bench, word(0, 0), 8, 3, 5, Some(2));
    bench.commit(0, 2);
    assert_eq!(word_of(&bench.recovered(&[], true), word(0, 0)), 3);
}

#[test]
fn the_head_may_lie_between_the_records_of_what_was_rolled_back() {
    let mut bench = Bench::<Fwb>::new(small(1024), 1);
    bench.begin(0, 1);
    store_over(&mut bench, word(0, 0), 8, 1, 5, Some(1));
    bench.begin(0, 2);
    store_over(&mut bench, word(1, 0), 8, 9, 0, Some(2));
    store_over(&mut bench, word(0, 0), 8, 2, 1, Some(1));
    bench.deliver_all();
    bench.abort(0, 1);
    bench.deliver_all();
    (0..3).for_each(|_| scan(&mut bench));
    let head = word_of(&bench.pmem, bench.geometry.region("log_head").base);
    assert_eq!(head, 1, "the other transaction is open");
    assert_eq!(word_of(&bench.recovered(&[], true), word(0, 0)), 5, "the younger record alone would bring back 1");
}

#[test]
fn stores_outside_of_transactions_are_not_overwritten_by_older_ones() {
    let mut bench = Bench::<Fwb>::new(small(1024), 1);
    bench.begin(0, 1);
    store(&mut bench, word(0, 0), 1, Some(1));
    bench.commit(0, 1);
    store_over(&mut bench, word(0, 0), 8, 2, 1, None);
    bench.deliver_all();
    bench.pmem.write(word(0, 0), &2u64.to_le_bytes());
    assert_eq!(word_of(&bench.recovered(&[], true), word(0, 0)), 2);
}

#[test]
fn bytes_of_one_word_do_not_disturb_each_other() {
    let mut bench = Bench::<Fwb>::new(small(1024), 1);
    bench.begin(0, 1);
    bench.begin(0, 2);
    store_over(&mut bench, word(0, 0), 2, 0x1111, 0, Some(1));
    store_over(&mut bench, word(0, 0).plus(2), 2, 0x2222, 0x1111, Some(2));
    store_over(&mut bench, word(0, 0).plus(6), 4, 0x3333_4444, 0x2222_1111, Some(2));
    bench.commit(0, 2);
    bench.pmem.write(word(0, 0), &0x4444_0000_2222_1111u64.to_le_bytes());
    let pages = bench.recovered(&[], true);
    assert_eq!(word_of(&pages, word(0, 0)), 0x4444_0000_2222_0000);
    assert_eq!(word_of(&pages, word(0, 1)), 0x3333);
}

#[test]
fn a_younger_record_does_not_stand_for_an_older_one() {
    let base = PhysAddr(1 << 40);
    let mut log = Log::new(base, 16);
    let record = |n: u64| Record { kind: Kind::Update, mask: 1, id: 1, thread: 0, addr: word(n, 0), undo: 0, redo: 0 };
    let (mut tokens, mut out) = (0, Actions::default());
    (0..4).for_each(|n| assert_eq!(log.push(record(n)), n));
    let how = Drain { combine: true, all: true, to_medium: false };
    log.drain(how, &mut tokens, ActiveFault::NONE, &mut out);
    log.acked(Token(2), ActiveFault::NONE);
    assert_eq!((log.durable, log.is_out_of_order(), log.is_pending(line(3))), (0, true, true));
    log.acked(Token(1), ActiveFault::NONE);
    assert_eq!((log.durable, log.buffered(Reached::Domain), log.is_pending(line(3))), (4, 0, false));
}

#[test]
fn where_caches_survive_a_store_waits_for_its_undo_record_and_nothing_is_redone() {
    let mut bench = eadr(small(512));
    bench.begin(0, 1);
    let wait = store_over(&mut bench, word(0, 0), 8, 1, 5, Some(1));
    assert!(matches!(wait, Gate::Retry(Wait::Acked(_))), "{wait:?}");
    bench.deliver_all();
    assert_eq!(store_over(&mut bench, word(0, 0), 8, 1, 5, Some(1)), Gate::Done);
    bench.pmem.write(word(0, 0), &1u64.to_le_bytes());
    assert_eq!(word_of(&bench.recovered(&[], true), word(0, 0)), 5);
    bench.save_and_load();
    bench.commit(0, 1);
    // A store outside of transactions makes no record, and none of the committed one comes back over it.
    assert_eq!(store_over(&mut bench, word(0, 0), 8, 9, 1, None), Gate::Done);
    bench.pmem.write(word(0, 0), &9u64.to_le_bytes());
    assert_eq!(word_of(&bench.recovered(&[], true), word(0, 0)), 9);
    // The log wraps around without a scan.
    for tx in 2..=30 {
        bench.begin(0, tx);
        for _ in 0..2 {
            let full = store_over(&mut bench, word(1, 0), 8, tx, 0, Some(tx));
            bench.deliver_all();
            if full == Gate::Retry(Wait::Cycles(ROOM_RETRY_CYCLES)) {
                store_over(&mut bench, word(1, 0), 8, tx, 0, Some(tx));
                bench.deliver_all();
            }
        }
        bench.commit(0, tx);
    }
    assert!(bench.scans.is_empty() && bench.counter("fwb.head_moves") > 2.0);
}

#[test]
fn an_energy_that_ends_early_is_a_loss_where_stores_are_not_redone() {
    let bench = eadr(small(512));
    let mut image = bench.crashed(&[], true);
    image.dirty_shutdown = true;
    let report = recovery::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
    assert_eq!(report.losses.len(), 1);
}

#[test]
fn damaged_logs_are_losses_and_nothing_is_written_outside_of_the_data() {
    let spec = small(512);
    let geometry = geometry::<Fwb>(&spec, 1);
    let regions: u64 = geometry.regions.iter().map(|region| region.size_bytes.next_multiple_of(4096)).sum();
    let (log, head) = (geometry.region("log").base, geometry.region("log_head").base);
    let update = |addr: PhysAddr| {
        Record { kind: Kind::Update, mask: 0xff, id: NO_TX, thread: 0, addr, undo: 0, redo: 7 }.encode(true)
    };
    let outside = geometry.pmem_base.plus(geometry.pmem_data_bytes);
    let mut unknown = update(word(1, 0));
    unknown[0] |= 0x70;
    let mut unaligned = update(word(1, 0));
    unaligned[8] |= 1;
    let damaged: [(&[u8], u64); 6] = [
        (&update(outside), 0),
        (&update(PhysAddr(0)), 0),
        (&unknown, 0),
        (&unaligned, 0),
        (&[0xff; 32], 0),
        (&update(word(1, 0)), u64::MAX),
    ];
    for (bytes, number) in damaged {
        let mut image = CrashImage::new(Pages::new(geometry.pmem_base, geometry.pmem_data_bytes + regions));
        image.pmem.write(log, &update(word(0, 0)));
        image.pmem.write(log.plus(32), bytes);
        image.pmem.write(head, &number.to_le_bytes());
        let report = recovery::recover(&spec, &geometry, &mut image).unwrap();
        assert_eq!(report.losses.len(), 1, "{bytes:x?}");
        assert_eq!(word_of(&image.pmem, word(0, 0)), if number == 0 { 7 } else { 0 });
        assert_eq!(word_of(&image.pmem, word(1, 0)), 0);
        assert_eq!(recovery::recover(&spec, &geometry, &mut image), Ok(RecoveryReport::default()));
    }
}

#[test]
fn what_cannot_be_built_is_refused() {
    let refused = |spec: FwbSpec| spec.check().unwrap_err().field;
    assert_eq!(refused(FwbSpec { log_bytes: 256, ..FwbSpec::default() }), "log_bytes");
    assert_eq!(refused(FwbSpec { log_buffer_entries: 1, ..FwbSpec::default() }), "log_buffer_entries");
    assert_eq!(refused(FwbSpec { scan_from_percent: 0, ..FwbSpec::default() }), "scan_from_percent");
    assert_eq!(refused(FwbSpec { scan_period_cycles: 0, ..FwbSpec::default() }), "scan_period_cycles");
}

#[test]
fn the_cost_counts_buffer_registers_and_bits() {
    let spec = FwbSpec::default();
    let adr = geometry::<Fwb>(&spec, 2);
    let eadr = Geometry { domain: Domain::Eadr, ..adr.clone() };
    let bits = |g: &Geometry, name: &str| {
        Fwb::cost(&spec, g).structures.iter().find(|s| s.name == name).map(|s| (s.bits, s.instances))
    };
    assert_eq!(bits(&adr, "log buffer"), Some((15 * (1 + 16 + 8 + 48 + 64 + 64 + 8), 1)));
    assert_eq!(bits(&adr, "fwb bits l1d"), Some((adr.l1d.lines(), 2)));
    assert_eq!(bits(&adr, "fwb bits llc"), Some((adr.llc.lines(), 1)));
    assert_eq!(bits(&adr, "TxID register"), Some((16, 2)));
    assert_eq!(bits(&eadr, "log buffer"), Some((15 * (1 + 16 + 8 + 48 + 64 + 8), 1)), "no redo words");
    assert_eq!(bits(&eadr, "fwb bits l1d"), None);
}
