//! Garbage collection and extension of the log, hook by hook.

use super::tests::{bench, recovered_within_flush, small, writer, writer_line, zone};
use super::{Hercules, HerculesSpec};
use crate::testing::{Bench, cached, geometry, word};
use durasim_contract::{AbortCause, CrashImage, Design, Evict, Fill, Gate, LineTag, RecoveryReport, Wait};
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

/// The destination of a line that leaves the LLC; waits for whatever blocks it.
fn evict(bench: &mut Bench<Hercules>, number: u64, tag: LineTag, data: u64) -> PhysAddr {
    loop {
        match bench.evict(number, tag, data) {
            Evict::To { at, .. } => return at,
            Evict::After(Wait::Acked(token)) => {
                while bench.outstanding(token) {
                    bench.deliver();
                }
            }
            Evict::After(Wait::Cycles(_)) => {}
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
                let report = Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
                assert_eq!(report.losses, Vec::<String>::new());
                assert_eq!(homes(&image.pmem), expected, "between the steps of a collection or of a write");
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
    let mut heads: Vec<u64> = bench.steps.iter().map(|image| image.read_u64(part.log_head())).collect();
    heads.dedup();
    assert_eq!(heads, [5, 6], "the eWPQ names the place, LogHead is still before it");
    // Its eWPQ entry was spilled by then.
    let at_five = bench.steps.iter().rfind(|image| image.read_u64(part.log_head()) == 5).unwrap();
    let named = part.mapping_of(at_five.read_u64(part.extension_slot(0)));
    assert_eq!(named.map(|entry| entry.log), Some(5));
}

/// An event that concerns an entry while it is copied decides; the copy is dropped and LogHead stays.
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
    // Committed: it is written to its home address from its place.
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

/// A transaction stays open with a line at LogTail while others come and go: the log wraps around many times, and none
/// of them has to abort.
#[test]
fn a_long_transaction_does_not_fill_the_log() {
    let spec = HerculesSpec { log_gc_trigger_entries: 1 << 20, log_gc_chunk_entries: 4, tx_id_bits: 10, ..small() };
    let least = smallest(spec);
    let mut bench = bench(HerculesSpec { log_zone_bytes: least.log_zone_bytes + 10 * 80, ..least });
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

/// LogTail waits for an entry whose TxLen is in flight to the controller, and so does a line that finds the log full.
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

/// A TxLen in flight to the controller may be durable. If a line of its transaction found the eWPQ full, its entry would be
/// there before its header is written, as the record of the spilled entry is written first.
#[test]
fn nothing_is_spilled_for_a_commit_that_is_decided() {
    let mut bench = bench(HerculesSpec { tx_len_store: super::spec::TxLenStore::Controller, ..small() });
    let tag = writer(&mut bench, 0, 1, 0);
    writer_line(&mut bench, 0, 1, 1);
    evict(&mut bench, 0, tag, 10);
    evict(&mut bench, 1, tag, 11);
    writer_line(&mut bench, 0, 1, 2);
    bench.deliver_all();
    let Gate::Retry(_) = bench.call(0, |design, cx, out| design.tx_commit(cx, TxId(1), out)) else { panic!() };
    for pmem in recovered_within_flush(&mut bench, 2, tag) {
        assert_eq!([0, 1].map(|number| pmem.read_u64(word(number, 0))), [10, 11]);
    }
    assert_eq!(bench.counter("hercules.ewpq_spills"), 0.0);
    assert_eq!([0, 1, 2].map(|number| bench.recovered(&[], true).read_u64(word(number, 0))), [10, 11, 99]);
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

/// The smallest log, with an extension in chunks of four entries and an eWPQ for all of it.
fn extended() -> HerculesSpec {
    smallest(HerculesSpec {
        ewpq_entries: 6,
        ewpq_extension_factor: 10,
        log_extension_bytes: 3000,
        log_extension_chunk_entries: 4,
        ..small()
    })
}

/// Lines that the log itself has room for.
fn log_entries(bench: &Bench<Hercules>) -> u64 {
    zone(bench).parts[0].log_entries - 1
}

/// A transaction that has filled the log and this number of entries of the extension, line by line.
fn overfull(bench: &mut Bench<Hercules>, more: u64) -> u64 {
    let lines = log_entries(bench) + more;
    writer(bench, 0, 1, 0);
    for number in 0..lines {
        writer_line(bench, 0, 1, number);
        evict(bench, number, LineTag(1), 100 + number);
    }
    lines
}

fn is_in_extension(bench: &Bench<Hercules>, at: PhysAddr) -> bool {
    let region = bench.geometry.region("log_extension");
    at >= region.base && at.0 < region.base.0 + region.size_bytes
}

#[test]
fn a_full_log_is_extended_by_chunks() {
    let mut bench = bench(extended());
    let lines = overfull(&mut bench, 0);
    assert_eq!(bench.counter("hercules.log_chunks"), 0.0);
    writer_line(&mut bench, 0, 1, lines);
    assert_eq!(bench.evict(lines, LineTag(1), 1), Evict::After(Wait::Cycles(3000)), "a chunk has to be allocated");
    for number in lines..lines + 5 {
        writer_line(&mut bench, 0, 1, number);
        let at = evict(&mut bench, number, LineTag(1), 100 + number);
        assert!(is_in_extension(&bench, at), "{at}");
    }
    assert_eq!(["hercules.log_chunks", "hercules.indirect_flushes"].map(|name| bench.counter(name)), [2.0, 5.0]);
    bench.save_and_load();
    // A line is found there, after a look at the index; its entry is used again.
    let Fill::From { at, search_cycles, tag } = bench.fill(0, lines + 1, Some(1)) else { panic!() };
    assert!(is_in_extension(&bench, at) && tag == LineTag(1) && search_cycles >= 460, "{search_cycles}");
    assert_eq!(bench.newest(at.line())[..8], (101 + lines).to_le_bytes());
    assert_eq!(evict(&mut bench, lines + 1, LineTag(1), 101 + lines), at);
    assert_eq!(bench.counter("hercules.log_chunks"), 2.0);
    let found = |bench: &Bench<Hercules>| {
        let pmem = bench.recovered(&[], true);
        (0..lines + 5).map(|number| pmem.read_u64(word(number, 0))).collect::<Vec<_>>()
    };
    assert_eq!(found(&bench), vec![0; lines as usize + 5]);
    bench.commit(0, 1);
    let expected: Vec<u64> = (0..lines + 5).map(|number| 100 + number).collect();
    assert_eq!(found(&bench), expected);
    bench.call(0, |design, cx, out| design.woken(cx, super::MIGRATE, out));
    bench.deliver_all();
    assert_eq!((0..lines + 5).map(|number| bench.pmem.read_u64(word(number, 0))).collect::<Vec<_>>(), expected);
    let mut in_use = false;
    bench.design.marks(&mut |mark| in_use |= mark == "log_extended");
    assert!(!in_use, "all entries of the extension are free again");
}

/// Entries that are all valid would be moved around without end.
#[test]
fn a_log_without_invalid_entries_is_not_collected() {
    let mut bench = bench(HerculesSpec { log_gc_chunk_entries: 1, ..extended() });
    let lines = overfull(&mut bench, 0);
    writer_line(&mut bench, 0, 1, lines);
    assert_eq!(bench.evict(lines, LineTag(1), 1), Evict::After(Wait::Cycles(3000)));
    assert_eq!(bench.counter("hercules.gc_chunks"), 0.0);
    bench.fill(0, 1, Some(1));
    assert!(matches!(bench.evict(lines, LineTag(1), 1), Evict::After(Wait::Acked(_))), "one entry is invalid now");
    assert_eq!(bench.counter("hercules.gc_chunks"), 1.0);
    let at = evict(&mut bench, lines, LineTag(1), 1);
    assert!(!is_in_extension(&bench, at));
}

#[test]
fn an_aborted_transaction_gives_the_extension_back() {
    let mut bench = bench(extended());
    let lines = overfull(&mut bench, 6);
    bench.abort(0, 1);
    let pmem = bench.recovered(&[], true);
    assert!((0..lines).all(|number| pmem.read_u64(word(number, 0)) == 0));
    bench.begin(0, 2);
    for number in 0..lines {
        writer_line(&mut bench, 0, 2, number);
        evict(&mut bench, number, LineTag(2), number);
    }
    assert_eq!(["hercules.log_chunks", "hercules.indirect_flushes"].map(|name| bench.counter(name)), [2.0, 12.0]);
}

#[test]
fn without_room_to_extend_the_transaction_aborts() {
    let out_of_memory = Evict::Abort(TxId(1), AbortCause::OutOfMemory);
    let refused = |bench: &mut Bench<Hercules>, number: u64| {
        writer_line(bench, 0, 1, number);
        bench.evict(number, LineTag(1), 1)
    };
    // There is no extension.
    let mut bench_without = bench(smallest(HerculesSpec { log_extension_bytes: 0, ..extended() }));
    let lines = overfull(&mut bench_without, 0);
    assert_eq!(refused(&mut bench_without, lines), out_of_memory);
    // It is used up.
    let mut full = bench(extended());
    let chunks = zone(&full).parts[0].chunks;
    let lines = overfull(&mut full, 4 * chunks);
    assert_eq!(refused(&mut full, lines), out_of_memory);
    // The threshold lies at the first, at the second chunk and at none.
    for allowed in [0, 1, 2] {
        let mut bench = bench(HerculesSpec { abort_threshold_percent: 80, ..extended() });
        let used = bench.spec.log_zone_bytes + allowed * zone(&bench).parts[0].chunk_bytes;
        bench.geometry.pmem_bytes = (used * 100).div_ceil(80);
        bench.rebuild();
        let lines = overfull(&mut bench, 4 * allowed);
        assert_eq!(refused(&mut bench, lines), out_of_memory, "{allowed} chunks are below the threshold");
        bench.abort(0, 1);
        let tag = writer(&mut bench, 0, 2, 0);
        evict(&mut bench, 0, tag, 7);
        bench.commit(0, 2);
        assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 7, "others go on");
    }
}

/// The line for which the log is extended spills an entry of a committed transaction: wherever power fails, that entry is
/// in the eWPQ or in the extension area.
#[test]
fn an_entry_is_spilled_after_the_growth_of_the_log() {
    let mut bench = bench(smallest(HerculesSpec { ewpq_entries: 2, ..extended() }));
    let lines = log_entries(&bench);
    let tag = writer(&mut bench, 0, 1, 0);
    evict(&mut bench, 0, tag, 10);
    bench.commit(0, 1);
    let tag = writer(&mut bench, 0, 2, lines);
    for number in 1..lines {
        writer_line(&mut bench, 0, 2, number);
        evict(&mut bench, number, tag, 20);
    }
    let counters = ["hercules.log_chunks", "hercules.ewpq_spills"];
    let before = counters.map(|name| bench.counter(name));
    let recovered = recovered_within_flush(&mut bench, lines, tag);
    assert_eq!(counters.map(|name| bench.counter(name)), before.map(|count| count + 1.0));
    assert!(recovered.len() > 1);
    for pmem in recovered {
        assert_eq!([0, 1].map(|number| pmem.read_u64(word(number, 0))), [10, 0]);
    }
}

/// The index is part of what recovery needs: what it says is checked.
#[test]
fn a_damaged_index_is_a_loss() {
    let mut bench = bench(extended());
    overfull(&mut bench, 2);
    bench.commit(0, 1);
    let tag = writer(&mut bench, 1, 2, 60);
    evict(&mut bench, 60, tag, 5);
    bench.commit(1, 2);
    let (crashed, zone) = (bench.crashed(&[], true), zone(&bench));
    let part = &zone.parts[0];
    let recovered = |address: Option<u64>| {
        let mut image = crashed.clone();
        if let Some(address) = address {
            image.write_u64(part.index_slot(0), address).unwrap();
        }
        let report = Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
        (report.losses.len(), [0, log_entries(&bench)].map(|number| image.read_u64(word(number, 0))))
    };
    let sound = recovered(None);
    assert_eq!(sound, (0, [100, 100 + log_entries(&bench)]));
    let chunk = part.chunk(0).0;
    for address in [0, chunk + 64, chunk - part.chunk_bytes, part.chunk(part.chunks).0, word(0, 0).0, u64::MAX] {
        let (losses, homes) = recovered(Some(address));
        assert!(losses > 0 && homes == [0, 0], "{address:#x}: {losses} {homes:?}");
    }
}
