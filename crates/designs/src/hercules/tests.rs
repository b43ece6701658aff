//! Hercules on several cores, hook by hook.

use super::Hercules;
use super::spec::{ConflictLoser, HerculesSpec, TxLenStore};
use super::zone::LogZone;
use crate::testing::{Bench, cached, geometry, word};
use durasim_contract::{AbortCause, CrashImage, Design, Evict, Fill, Gate, LineTag, Probe, RecoveryReport, Wait};
use durasim_types::{Pages, TxId};

const CONFLICT: AbortCause = AbortCause::Conflict;

pub(super) fn small() -> HerculesSpec {
    HerculesSpec {
        tx_id_bits: 4,
        ewpq_entries: 2,
        ewpq_extension_factor: 1,
        log_zone_bytes: 64 << 10,
        ..HerculesSpec::default()
    }
}

pub(super) fn bench(spec: HerculesSpec) -> Bench<Hercules> {
    Bench::new(spec, 2)
}

pub(super) fn zone(bench: &Bench<Hercules>) -> LogZone {
    LogZone::new(&bench.spec, &bench.geometry).unwrap()
}

/// Begins a transaction on a core and lets it write the line of that number; the line's tag.
pub(super) fn writer(bench: &mut Bench<Hercules>, core: u16, tx: u64, number: u64) -> LineTag {
    let mut tag = LineTag::NONE;
    bench.begin(core, tx);
    bench.store(core, word(number, 0), tx, Some(tx), &mut tag);
    assert_eq!(tag, LineTag(tx));
    tag
}

#[test]
fn a_line_wanted_by_another_core_aborts_its_transaction() {
    for holder in [Some(0), None] {
        for requester in [None, Some(2)] {
            let mut bench = bench(small());
            let tag = writer(&mut bench, 0, 1, 0);
            bench.begin(1, 2);
            assert_eq!(bench.probe(1, 0, tag, requester, holder), Probe::Abort(TxId(1), CONFLICT));
            bench.abort(0, 1);
            assert_eq!(bench.invalidated, [TxId(1)]);
            assert!(!bench.design.live(tag), "an aborted transaction has no lines");
            assert_eq!(bench.probe(1, 0, tag, requester, holder), Probe::Grant);
            assert_eq!(bench.counter("hercules.conflicts_in_caches"), 1.0);
            bench.commit(1, 2);
        }
    }
}

#[test]
fn the_knob_lets_the_requester_abort() {
    let mut bench = bench(HerculesSpec { conflict_loser: ConflictLoser::Requester, ..small() });
    let tag = writer(&mut bench, 0, 1, 0);
    bench.begin(1, 2);
    assert_eq!(bench.probe(1, 0, tag, Some(2), Some(0)), Probe::Abort(TxId(2), CONFLICT));
    assert_eq!(bench.probe(1, 0, tag, None, Some(0)), Probe::Abort(TxId(1), CONFLICT), "nothing else can abort");
}

#[test]
fn a_committed_line_is_everybodys() {
    let mut bench = bench(small());
    let tag = writer(&mut bench, 0, 1, 0);
    bench.commit(0, 1);
    assert!(!bench.design.live(tag));
    assert_eq!(bench.probe(1, 0, tag, None, Some(0)), Probe::Grant);
}

/// Section 4.2: in the log the asking transaction aborts; a plain request has nothing to abort.
#[test]
fn a_line_in_the_log_is_kept_from_others() {
    let mut bench = bench(small());
    let tag = writer(&mut bench, 0, 1, 0);
    assert!(matches!(bench.evict(0, tag, 1), Evict::To { .. }));
    bench.begin(1, 2);
    assert_eq!(bench.fill(1, 0, Some(2)), Fill::Abort(TxId(2), CONFLICT));
    assert_eq!(bench.fill(1, 0, None), Fill::Abort(TxId(1), CONFLICT));
    // Its own thread gets it back, on whatever core it runs.
    assert!(matches!(bench.fill(1, 0, Some(1)), Fill::From { tag: LineTag(1), .. }));
    bench.evict(0, tag, 1);
    bench.abort(0, 1);
    assert!(matches!(bench.fill(1, 0, None), Fill::Home { .. }), "the log entry went with its transaction");
    assert_eq!(bench.counter("hercules.conflicts_in_the_log"), 2.0);
}

/// Two threads take turns on core 0, the first comes back on core 1 (section 4.1).
#[test]
fn registers_go_with_the_thread() {
    let mut bench = bench(small());
    let tag = writer(&mut bench, 0, 1, 0);
    bench.switch(0, Some(1), None);
    assert!(bench.design.live(tag), "a waiting transaction is open");
    writer(&mut bench, 0, 2, 1);
    bench.switch(1, None, Some(1));
    assert_eq!(bench.probe(1, 0, tag, Some(1), Some(0)), Probe::Grant, "its own line follows the thread");
    bench.store(1, word(0, 1), 5, Some(1), &mut LineTag(1));
    bench.store(1, word(2, 0), 5, Some(1), &mut LineTag(0));
    bench.put.clear();
    bench.commit(1, 1);
    let zone = zone(&bench);
    assert_eq!(bench.put, [(zone.tx_len(1), 2)], "lines are counted once, whatever core they were written from");
    assert!(!bench.design.live(tag) && bench.design.live(LineTag(2)), "one commits, the other stays open");
    bench.put.clear();
    bench.commit(0, 2);
    assert_eq!(bench.put, [(zone.tx_len(2), 1)]);
}

#[test]
fn a_thread_that_finds_a_waiting_transaction_in_its_own_cache_aborts_it() {
    let mut bench = bench(small());
    let mut tag = writer(&mut bench, 0, 1, 0);
    bench.switch(0, Some(1), None);
    assert_eq!(bench.probe(0, 0, tag, None, Some(0)), Probe::Abort(TxId(1), CONFLICT));
    assert_eq!(bench.offer(0, word(0, 1), 7, None, &mut tag), Gate::Abort(TxId(1), CONFLICT));
    bench.begin(0, 2);
    assert_eq!(bench.offer(0, word(0, 1), 7, Some(2), &mut tag), Gate::Abort(TxId(1), CONFLICT));
    assert_eq!(tag, LineTag(1), "a line is not taken from a transaction that is open");
}

/// While others come and go, a transaction that stays open is the only user of its identifier.
#[test]
fn an_identifier_wraps_around_past_those_in_use() {
    let mut bench = bench(small());
    let zone = zone(&bench);
    writer(&mut bench, 0, 1, 0);
    let mut borne = Vec::new();
    for tx in 2..60 {
        bench.put.clear();
        writer(&mut bench, 1, tx, 1 + tx % 8);
        let (addr, zero) = bench.put[0];
        assert_eq!(zero, 0);
        borne.push((addr.0 - zone.tx_len(0).0) / 4);
        bench.commit(1, tx);
    }
    let expected: Vec<u64> = (2..).map(|n| n % 16).filter(|id| *id != 1).take(borne.len()).collect();
    assert_eq!(borne, expected);
    bench.put.clear();
    bench.commit(0, 1);
    assert_eq!(bench.put, [(zone.tx_len(1), 1)]);
}

#[test]
fn a_transaction_without_an_identifier_has_to_try_again() {
    let mut bench = bench(small());
    for tx in 1..=16 {
        bench.begin(0, tx);
        bench.switch(0, Some(tx), None);
    }
    let seventeenth = bench.through(1, |design, cx, out| design.tx_begin(cx, TxId(17), out));
    assert_eq!(seventeenth, Some((TxId(17), CONFLICT)));
    bench.abort(1, 17);
    bench.switch(0, None, Some(5));
    bench.commit(0, 5);
    bench.begin(1, 18);
    bench.put.clear();
    writer_line(&mut bench, 1, 18, 3);
    bench.commit(1, 18);
    assert_eq!(bench.put[0].0, zone(&bench).tx_len(5), "it bears the only identifier that was free");
}

pub(super) fn writer_line(bench: &mut Bench<Hercules>, core: u16, tx: u64, number: u64) {
    bench.store(core, word(number, 0), tx, Some(tx), &mut LineTag(0));
}

/// A line leaves the LLC; what recovery makes of a power failure between the writes that this takes. The machine does
/// what is due before it asks, so nothing comes between an answer and its first write.
pub(super) fn recovered_within_flush(bench: &mut Bench<Hercules>, number: u64, tag: LineTag) -> Vec<Pages> {
    let mut recovered = Vec::new();
    loop {
        bench.keep_steps = true;
        let verdict = bench.offer_line(number, tag, 99);
        bench.keep_steps = false;
        for mut image in std::mem::take(&mut bench.steps).into_iter().skip(1) {
            let report = Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
            assert_eq!(report.losses, Vec::<String>::new());
            recovered.push(image.pmem);
        }
        match verdict {
            Evict::To { .. } | Evict::Proceed => return recovered,
            Evict::After(Wait::Cycles(_)) => {}
            Evict::After(Wait::Acked(token)) => {
                while bench.outstanding(token) {
                    bench.deliver();
                }
            }
            verdict => panic!("{verdict:?}"),
        }
    }
}

/// An identifier whose last user still has entries in the log waits for them to be home.
#[test]
fn an_identifier_waits_for_the_migration_of_its_last_transaction() {
    let mut bench = bench(small());
    let tag = writer(&mut bench, 0, 1, 0);
    bench.evict(0, tag, 77);
    bench.commit(0, 1);
    for tx in 2..=16 {
        bench.begin(1, tx);
        bench.commit(1, tx);
    }
    bench.deliver_all();
    assert_eq!(bench.pmem.read_u64(word(0, 0)), 0);
    bench.begin(1, 17);
    assert_eq!(bench.pmem.read_u64(word(0, 0)), 77, "the entry of the last user went home first");
}

/// The controller has the TxLen, and with it the decision, before the core of the transaction knows.
#[test]
fn no_request_aborts_a_transaction_that_may_have_committed() {
    let mut bench = bench(HerculesSpec { tx_len_store: TxLenStore::Controller, ..small() });
    let tag = writer(&mut bench, 0, 1, 0);
    writer_line(&mut bench, 0, 1, 1);
    bench.evict(1, tag, 9);
    bench.begin(1, 2);
    bench.deliver_all();
    let gate = bench.call(0, |design, cx, out| design.tx_commit(cx, TxId(1), out));
    let Gate::Retry(wait @ Wait::Acked(_)) = gate else { panic!("{gate:?}") };
    assert_eq!(bench.probe(1, 0, tag, Some(2), Some(0)), Probe::Wait(wait));
    assert_eq!(bench.fill(1, 1, Some(2)), Fill::Wait(wait));
    assert!(bench.design.live(tag));
    bench.deliver_all();
    assert_eq!(bench.commits, 1);
    assert!(!bench.design.live(tag), "the acknowledgement resets the states");
    assert_eq!(bench.probe(1, 0, tag, Some(2), Some(0)), Probe::Grant);
    assert!(matches!(bench.fill(1, 1, Some(2)), Fill::From { tag: LineTag::NONE, .. }));
    // Its last lines may leave before the core is notified of it.
    assert_eq!(bench.evict(0, tag, 9), Evict::Proceed);
    bench.commit(0, 1);
    assert_eq!(bench.commits, 1, "a transaction commits once");
}

#[test]
fn a_committing_transaction_is_not_aborted_for_want_of_room() {
    let mut bench = bench(HerculesSpec { tx_len_store: TxLenStore::Controller, extension_chain_bytes: 0, ..small() });
    let tag = writer(&mut bench, 0, 1, 0);
    for number in 1..5 {
        writer_line(&mut bench, 0, 1, number);
        assert!(matches!(bench.evict(number, tag, 9), Evict::To { .. }), "two fit the eWPQ, two its extension");
    }
    assert_eq!(bench.evict(0, tag, 9), Evict::Abort(TxId(1), AbortCause::Capacity));
    let Gate::Retry(wait) = bench.call(0, |design, cx, out| design.tx_commit(cx, TxId(1), out)) else { panic!() };
    assert_eq!(bench.evict(0, tag, 9), Evict::After(wait));
    bench.deliver_all();
    assert_eq!(bench.evict(0, tag, 9), Evict::Proceed);
}

/// The end of another transaction leaves the lines of one core's transaction alone.
#[test]
fn the_steps_of_one_transaction_leave_others_alone() {
    let mut bench = bench(small());
    let one = writer(&mut bench, 0, 1, 0);
    let two = writer(&mut bench, 1, 2, 1);
    bench.evict(0, one, 1);
    bench.evict(1, two, 2);
    bench.abort(1, 2);
    assert!(matches!(bench.fill(0, 0, Some(1)), Fill::From { tag: LineTag(1), .. }));
    bench.evict(0, one, 1);
    writer(&mut bench, 1, 3, 2);
    bench.commit(0, 1);
    assert!(bench.design.live(LineTag(3)) && !bench.design.live(one));
    // Steps of a transaction that never began change nothing.
    let before = bench.state_digest();
    bench.abort(1, 9);
    assert_eq!(bench.state_digest(), before);
}

/// One transaction has committed off-chip, one is open with a line in the log and one in a cache, identifiers have come
/// round.
#[test]
fn recovery_distinguishes_the_transactions_of_several_cores() {
    let mut bench = bench(small());
    for tx in 1..20 {
        bench.begin(0, tx);
        bench.commit(0, tx);
    }
    let committed = writer(&mut bench, 0, 20, 0);
    bench.evict(0, committed, 20);
    let open = writer(&mut bench, 1, 21, 1);
    writer_line(&mut bench, 1, 21, 2);
    bench.evict(1, open, 21);
    bench.commit(0, 20);
    let lines = [cached(0, 3, LineTag::NONE, 33), cached(1, 2, open, 21)];
    let pmem = bench.recovered(&lines, true);
    assert_eq!([0, 1, 2, 3].map(|n| pmem.read_u64(word(n, 0))), [20, 0, 0, 33]);
    bench.put.clear();
    bench.commit(1, 21);
    let lines = [cached(0, 3, LineTag::NONE, 33), cached(1, 2, LineTag::NONE, 21)];
    let pmem = bench.recovered(&lines, true);
    assert_eq!([0, 1, 2, 3].map(|n| pmem.read_u64(word(n, 0))), [20, 21, 21, 33]);
}

/// Two transactions have committed with a line in the log each; the entry of the first is damaged.
#[test]
fn damaged_entries_are_losses_and_not_written() {
    let mut bench = bench(small());
    for (tx, number) in [(1, 0), (2, 1)] {
        let tag = writer(&mut bench, 0, tx, number);
        bench.evict(number, tag, 10 * tx);
        bench.commit(0, tx);
    }
    let (crashed, zone) = (bench.crashed(&[], true), zone(&bench));
    let recover = |image: &mut CrashImage| Hercules::recover(&bench.spec, &bench.geometry, image).unwrap();
    let homes = |image: &CrashImage| [0, 1].map(|n| image.read_u64(word(n, 0)));
    let mut whole = crashed.clone();
    assert_eq!((recover(&mut whole).losses.len(), homes(&whole)), (0, [10, 20]));

    let header =
        (0..2).map(|log| zone.parts[0].entry_header_at(log)).find(|at| crashed.read_u64(*at) == word(0, 0).0).unwrap();
    let base = bench.geometry.pmem_base;
    let outside = base.plus(bench.geometry.pmem_data_bytes);
    let damages = [0, base.0 - 64, word(0, 0).0 + 8, outside.0, zone.flag().0, u64::MAX].map(|home| (header, home));
    for (at, value) in damages.into_iter().chain([(header.plus(8), 0), (header.plus(8), 1 << 63 | 5)]) {
        let mut image = crashed.clone();
        image.write_u64(at, value).unwrap();
        let report = recover(&mut image);
        assert!(report.losses.len() == 1 && report.losses[0].contains("damaged"), "{value:#x}: {report:?}");
        assert_eq!((homes(&image), report.replayed), ([0, 20], 1), "{value:#x}");
        assert_eq!(recover(&mut image), RecoveryReport::default());
    }

    for (at, count) in [(zone.parts[0].validity(0), 0b111), (zone.emergency_saved(), u64::MAX)] {
        let mut image = crashed.clone();
        image.write_u64(at, count).unwrap();
        let report = recover(&mut image);
        assert!(report.losses[0].contains("more entries than fit"), "{report:?}");
        assert_eq!((homes(&image), report.lines_written), ([0, 0], 0));
    }
}

#[test]
fn what_is_saved_continues_unchanged() {
    let mut bench = bench(HerculesSpec { tx_len_store: TxLenStore::Controller, ..small() });
    // An entry that migrates, two in the extension area, a transaction that waits, one that commits.
    let first = writer(&mut bench, 0, 1, 0);
    bench.evict(0, first, 11);
    bench.commit(0, 1);
    bench.deliver_all();
    bench.call(0, |design, cx, out| design.woken(cx, super::MIGRATE, out));
    let second = writer(&mut bench, 0, 2, 1);
    bench.evict(1, second, 12);
    writer_line(&mut bench, 0, 2, 2);
    bench.evict(2, second, 12);
    bench.switch(0, Some(2), None);
    writer(&mut bench, 1, 3, 3);
    let Gate::Retry(_) = bench.call(1, |design, cx, out| design.tx_commit(cx, TxId(3), out)) else { panic!() };
    assert_eq!(bench.counter("hercules.ewpq_spills"), 1.0);
    bench.refuses_other_snapshots();
    bench.save_and_load();
    assert_eq!(bench.counter("hercules.premature_flushes"), 3.0, "counters are part of the state");
    bench.deliver_all();
    bench.commit(1, 3);
    bench.switch(1, None, Some(2));
    bench.commit(1, 2);
    assert_eq!(bench.pmem.read_u64(word(0, 0)), 11, "the migration went on");
    let pmem = bench.recovered(&[], true);
    assert_eq!([1, 2].map(|n| pmem.read_u64(word(n, 0))), [12, 12]);

    let wider = HerculesSpec { ewpq_extension_factor: 2, ..bench.spec.clone() };
    let other = geometry::<Hercules>(&wider, 2);
    let refusal = Hercules::load(&wider, &other, &bench.design.save()).map(drop).unwrap_err();
    assert!(refusal.problem.ends_with("an extension area of another size"), "{}", refusal.problem);
}

/// Lines 0 and 1 belong to the first controller, lines 2 and 3 to the second: each has an eWPQ and a log of its own.
#[test]
fn every_controller_keeps_its_own_lines() {
    let mut bench = Bench::<Hercules>::with_controllers(small(), 2, 2);
    let zone = zone(&bench);
    let tag = writer(&mut bench, 0, 1, 0);
    let open = writer(&mut bench, 1, 2, 3);
    for (number, controller, log) in [(0, 0, 0), (2, 1, 0), (1, 0, 1)] {
        let expected = zone.parts[controller].entry_data(log);
        let verdict = bench.evict(number, tag, 10 + number);
        assert!(matches!(verdict, Evict::To { at, .. } if at == expected), "{verdict:?}");
    }
    assert!(matches!(bench.evict(3, open, 99), Evict::To { .. }));
    assert!(matches!(bench.fill(0, 2, Some(1)), Fill::From { tag: LineTag(1), .. }));
    bench.evict(2, tag, 12);
    bench.save_and_load();
    let homes = |bench: &Bench<Hercules>| {
        let pmem = bench.recovered(&[], true);
        [0, 1, 2, 3].map(|number| pmem.read_u64(word(number, 0)))
    };
    assert_eq!(homes(&bench), [0; 4]);
    bench.commit(0, 1);
    assert_eq!(homes(&bench), [10, 11, 12, 0], "all of it or nothing, whatever controllers it is spread over");
    bench.abort(1, 2);
    assert!(matches!(bench.fill(0, 3, None), Fill::Home { .. }));
    bench.call(0, |design, cx, out| design.woken(cx, super::MIGRATE, out));
    bench.deliver_all();
    assert_eq!(bench.counter("hercules.migrations"), 3.0);
    assert_eq!([0, 1, 2, 3].map(|number| bench.pmem.read_u64(word(number, 0))), [10, 11, 12, 0]);
}

/// An identifier that wraps around waits for the entries of all controllers.
#[test]
fn an_identifier_waits_for_all_controllers() {
    let mut bench = Bench::<Hercules>::with_controllers(small(), 2, 2);
    let tag = writer(&mut bench, 0, 1, 0);
    bench.evict(0, tag, 77);
    bench.evict(2, tag, 78);
    bench.commit(0, 1);
    for tx in 2..=16 {
        bench.begin(1, tx);
        bench.commit(1, tx);
    }
    bench.begin(1, 17);
    assert_eq!([0, 2].map(|number| bench.pmem.read_u64(word(number, 0))), [77, 78]);
}
