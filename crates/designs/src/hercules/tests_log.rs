//! Garbage collection of the log, hook by hook.

use super::tests::{bench, small, writer, writer_line, zone};
use super::{Hercules, HerculesSpec};
use crate::testing::{Bench, cached, geometry, word};
use durasim_design::{CrashImage, Design, Evict, Fill, Gate, LineTag, RecoveryReport, Wait};
use durasim_types::{PhysAddr, TxId};

/// A log that is collected in chunks of three when more than four entries lie between LogTail and LogHead.
fn eager() -> HerculesSpec {
    HerculesSpec {
        ewpq_entries: 4,
        ewpq_extension_factor: 4,
        log_gc_trigger_entries: 4,
        log_gc_chunk_entries: 3,
        ..small()
    }
}

/// Where a line goes that leaves the LLC; waits for what is in the way.
fn evict(bench: &mut Bench<Hercules>, number: u64, tag: LineTag, data: u64) -> PhysAddr {
    loop {
        match bench.evict(number, tag, data) {
            Evict::To { at, .. } => return at,
            Evict::After(Wait::Acked(token)) => {
                while bench.outstanding(token) {
                    bench.deliver();
                }
            }
            verdict => panic!("{verdict:?}"),
        }
    }
}

/// LogTail and LogHead as a power failure would save them.
fn window(bench: &Bench<Hercules>) -> [u64; 2] {
    let (image, part) = (bench.crashed(&[], true), &zone(bench).parts[0]);
    [part.log_tail(), part.log_head()].map(|at| image.read_u64(at))
}

/// Transaction 1 is open with lines 0 and 1 in log entries 0 and 1; transaction 2 has committed line 2 in entry 2;
/// transaction 3 is open with lines 3 and 4 in entries 3 and 4. The last one makes the window too wide.
fn wide(spec: HerculesSpec) -> Bench<Hercules> {
    let mut bench = bench(spec);
    let tag = writer(&mut bench, 0, 1, 0);
    writer_line(&mut bench, 0, 1, 1);
    evict(&mut bench, 0, tag, 10);
    evict(&mut bench, 1, tag, 11);
    let tag = writer(&mut bench, 1, 2, 2);
    evict(&mut bench, 2, tag, 12);
    bench.commit(1, 2);
    let tag = writer(&mut bench, 1, 3, 3);
    writer_line(&mut bench, 1, 3, 4);
    evict(&mut bench, 3, tag, 13);
    bench.deliver_all();
    assert_eq!((window(&bench), bench.counter("hercules.gc_chunks")), ([0, 4], 0.0));
    evict(&mut bench, 4, tag, 14);
    bench
}

fn homes(image: &durasim_types::Pages) -> [u64; 5] {
    [0, 1, 2, 3, 4].map(|number| image.read_u64(word(number, 0)))
}

#[test]
fn open_entries_go_to_log_head_and_log_tail_slides() {
    let mut bench = wide(eager());
    assert_eq!((window(&bench), bench.counter("hercules.gc_chunks")), ([0, 5], 1.0));
    writer_line(&mut bench, 0, 1, 5);
    let held = bench.evict(5, LineTag(1), 15);
    assert!(matches!(held, Evict::After(Wait::Acked(_))), "the entry at LogHead is taken: {held:?}");
    bench.deliver_all();
    assert_eq!(bench.counter("hercules.gc_moved_entries"), 2.0);
    assert_eq!(bench.counter("hercules.migrations"), 1.0, "a committed entry of the chunk goes home");
    assert_eq!(window(&bench), [3, 7]);
    let data = |log| zone(&bench).parts[0].entry_data(log);
    let (first, second) = (data(5), data(6));
    let found = [0, 1].map(|number| bench.fill(0, number, Some(1)));
    for (found, expected) in found.iter().zip([first, second]) {
        assert!(matches!(found, Fill::From { at, tag: LineTag(1), .. } if *at == expected), "{found:?}");
    }
    assert_eq!([first, second].map(|at| bench.pmem.read_u64(at)), [10, 11]);
    assert_eq!(evict(&mut bench, 5, LineTag(1), 15), zone(&bench).parts[0].entry_data(7));
    bench.save_and_load();
}

/// Power fails after each step of a collection: what was committed is there, what was not is not. Both with the entries
/// in the eWPQ and with some in the extension area.
#[test]
fn a_collection_may_be_cut_anywhere() {
    for ewpq_entries in [1, 2, 4] {
        for commits in [false, true] {
            let mut bench = wide(HerculesSpec { ewpq_entries, ewpq_extension_factor: 8, ..eager() });
            bench.keep_steps = true;
            if commits {
                bench.commit(0, 1);
            }
            let expected = if commits { [10, 11, 12, 0, 0] } else { [0, 0, 12, 0, 0] };
            let mut cuts = 0;
            loop {
                assert_eq!(homes(&bench.recovered(&[], true)), expected, "cut {cuts}");
                cuts += 1;
                if !bench.deliver() {
                    break;
                }
                bench.save_and_load();
            }
            for mut image in std::mem::take(&mut bench.steps) {
                Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
                assert_eq!(homes(&image.pmem), expected, "between an eWPQ entry and LogHead");
                cuts += 1;
            }
            assert!(cuts > 6, "{cuts}");
            if !commits {
                bench.commit(0, 1);
            }
            assert_eq!(homes(&bench.recovered(&[], true)), [10, 11, 12, 0, 0]);
            bench.commit(1, 3);
            assert_eq!(homes(&bench.recovered(&[], true)), [10, 11, 12, 13, 14]);
        }
    }
}

#[test]
fn the_step_before_log_head_moves_is_seen() {
    let mut bench = wide(eager());
    bench.keep_steps = true;
    let marks = |bench: &Bench<Hercules>| {
        let mut marks = Vec::new();
        bench.design.marks(&mut |mark| marks.push(mark));
        marks
    };
    assert!(marks(&bench).contains(&"gc_copying"));
    bench.deliver_all();
    assert!(!marks(&bench).contains(&"gc_copying"));
    let part = &zone(&bench).parts[0];
    let heads: Vec<u64> = bench.steps.iter().map(|image| image.read_u64(part.log_head())).collect();
    assert_eq!(heads, [5, 6], "the eWPQ names the place, LogHead is still before it");
    let named = |slot| part.mapping_of(bench.steps[0].read_u64(part.ewpq_slot(slot)));
    assert!((0..4).any(|slot| named(slot).is_some_and(|(_, log)| log == 5)));
}

/// What happens to an entry while it is copied decides; the copy is dropped and LogHead stays.
#[test]
fn a_copy_that_is_overtaken_is_dropped() {
    // Loaded again.
    let mut bench = wide(eager());
    assert!(matches!(bench.fill(0, 0, Some(1)), Fill::From { .. }));
    bench.deliver_all();
    assert_eq!((bench.counter("hercules.gc_moved_entries"), window(&bench)), (1.0, [3, 6]));
    let lines = [cached(0, 0, LineTag(1), 20)];
    assert_eq!(homes(&bench.recovered(&lines, true)), [0, 0, 12, 0, 0]);
    bench.commit(0, 1);
    assert_eq!(homes(&bench.recovered(&lines, true)), [20, 11, 12, 0, 0]);
    // Discarded.
    let mut bench = wide(eager());
    bench.abort(0, 1);
    bench.deliver_all();
    assert_eq!((bench.counter("hercules.gc_moved_entries"), window(&bench)), (0.0, [3, 5]));
    assert!(matches!(bench.fill(0, 0, None), Fill::Home { .. }));
    assert_eq!(homes(&bench.recovered(&[], true)), [0, 0, 12, 0, 0]);
    // Committed: it goes home from where it is.
    let mut bench = wide(eager());
    bench.commit(0, 1);
    bench.deliver_all();
    assert_eq!((bench.counter("hercules.gc_moved_entries"), window(&bench)), (0.0, [3, 5]));
    assert_eq!(homes(&bench.pmem), [10, 11, 12, 0, 0]);
}

/// The smallest log that is accepted.
fn smallest(spec: HerculesSpec) -> HerculesSpec {
    let sized = (1000..1 << 20).step_by(80).map(|log_zone_bytes| HerculesSpec { log_zone_bytes, ..spec.clone() });
    let mut accepted = sized.into_iter().filter(|spec| Hercules::build(spec, &geometry::<Hercules>(spec, 2)).is_ok());
    accepted.next().expect("some size is large enough")
}

/// A transaction stays open with a line at LogTail while others come and go: the log comes round many times, and none
/// of them has to abort.
#[test]
fn a_long_transaction_does_not_fill_the_log() {
    let spec = HerculesSpec { log_gc_trigger_entries: 1 << 20, log_gc_chunk_entries: 4, tx_id_bits: 10, ..small() };
    let mut bench = bench(smallest(spec));
    let tag = writer(&mut bench, 0, 1, 0);
    evict(&mut bench, 0, tag, 10);
    for tx in 2..200 {
        let tag = writer(&mut bench, 1, tx, 1 + tx % 7);
        evict(&mut bench, 1 + tx % 7, tag, tx);
        bench.commit(1, tx);
    }
    assert!(bench.counter("hercules.gc_moved_entries") >= 10.0);
    let [tail, head] = window(&bench);
    assert!(head > 200 && head - tail <= zone(&bench).parts[0].log_entries);
    bench.commit(0, 1);
    let pmem = bench.recovered(&[], true);
    assert_eq!([0, 1 + 199 % 7].map(|number| pmem.read_u64(word(number, 0))), [10, 199]);
}

/// LogTail waits for an entry whose TxLen is on its way to the controller, and so does a line that finds the log full.
#[test]
fn nothing_moves_while_a_commit_is_decided() {
    let tx_len_store = super::spec::TxLenStore::Controller;
    let mut bench = wide(HerculesSpec { tx_len_store, ..eager() });
    let Gate::Retry(_) = bench.call(0, |design, cx, out| design.tx_commit(cx, TxId(1), out)) else { panic!() };
    bench.deliver_all();
    assert_eq!(bench.counter("hercules.gc_moved_entries"), 0.0);
    bench.commit(0, 1);
    assert_eq!(homes(&bench.recovered(&[], true)), [10, 11, 12, 0, 0]);
}

/// Recovery believes no mapping outside of the window that LogTail and LogHead frame.
#[test]
fn registers_that_contradict_the_entries_are_losses() {
    let mut bench = wide(eager());
    bench.deliver_all();
    bench.commit(0, 1);
    let (crashed, zone) = (bench.crashed(&[], true), zone(&bench));
    let part = &zone.parts[0];
    let report = |at: PhysAddr, value: u64| {
        let mut image: CrashImage = crashed.clone();
        image.write_u64(at, value).unwrap();
        let report: RecoveryReport = Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
        (report.losses.join(", "), homes(&image.pmem))
    };
    assert_eq!(report(part.log_tail(), 3), (String::new(), [10, 11, 12, 0, 0]));
    for (at, value) in [(part.log_tail(), 6), (part.log_head(), 6)] {
        let (losses, homes) = report(at, value);
        assert!(losses.contains("committed transaction 1 is damaged in the log"), "{losses}");
        assert_eq!(homes, [0, 0, 12, 0, 0]);
    }
    for (at, value) in [(part.log_tail(), 8), (part.log_head(), 1 << 40), (part.log_head(), 0)] {
        let (losses, homes) = report(at, value);
        assert!(losses.contains("the log zone is damaged"), "{losses}");
        assert_eq!(homes, [0, 0, 12, 0, 0]);
    }
}
