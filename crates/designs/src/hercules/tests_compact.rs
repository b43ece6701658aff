//! Compact eWPQ entries, distinguished by the full address in the log entry, and the validity bitmap (section 4.2).

use super::spec::LOG_ENTRIES_MAX;
use super::tests::{bench, small, writer, writer_line, zone};
use super::{Hercules, HerculesSpec, LogZone, planted};
use crate::testing::{Bench, geometry, line, word};
use durasim_contract::{AbortCause, ActiveFault, Design, Evict, Fill, LineTag};
use durasim_types::{PhysAddr, TxId};

/// Two bits of home address: every fourth line has the same.
fn partial() -> HerculesSpec {
    HerculesSpec { ewpq_home_bits: 2, ewpq_entries: 4, ewpq_extension_factor: 4, ..small() }
}

fn flushed(bench: &mut Bench<Hercules>, number: u64, tx: u64) -> PhysAddr {
    match bench.evict(number, LineTag(tx), 100 + number) {
        Evict::To { at, .. } => at,
        verdict => panic!("{verdict:?}"),
    }
}

/// Transaction 1 on core 0 has lines 0 and 4 in the log, transaction 2 on core 1 line 8.
fn aliases(spec: HerculesSpec) -> Bench<Hercules> {
    let mut bench = bench(spec);
    writer(&mut bench, 0, 1, 0);
    writer_line(&mut bench, 0, 1, 4);
    writer(&mut bench, 1, 2, 8);
    for (number, tx) in [(0, 1), (4, 1), (8, 2)] {
        flushed(&mut bench, number, tx);
    }
    bench
}

#[test]
fn equal_parts_of_addresses_are_distinguished() {
    let mut bench = aliases(partial());
    let data = [0, 1, 2].map(|log| zone(&bench).parts[0].entry_data(log));
    bench.save_and_load();
    // The last one is found after two others, then those after none and one.
    let queue = bench.spec.ewpq_search_cycles;
    let expected = [(8, 2, data[2], 2), (0, 1, data[0], 0), (4, 1, data[1], 0)];
    for (number, tx, at, false_matches) in expected {
        let search_cycles = queue + false_matches * 450;
        assert_eq!(bench.fill(0, number, Some(tx)), Fill::From { at, search_cycles, tag: LineTag(tx) });
    }
    assert_eq!(bench.counter("hercules.false_matches"), 2.0);
}

/// TxID and TxState are compared in addition to the full address: a request for a line that only looks the same continues, and
/// waits for the log entries to be read before it may use what is at home.
#[test]
fn an_alias_of_another_transaction_aborts_none() {
    let mut bench = aliases(partial());
    bench.begin(1, 3);
    let search_cycles = bench.spec.ewpq_search_cycles + 3 * bench.spec.false_match_cycles;
    for tx in [None, Some(1), Some(2), Some(3)] {
        assert_eq!(bench.fill(1, 12, tx), Fill::Home { search_cycles, serial: true });
        assert_eq!(bench.fill(1, 13, tx), Fill::Home { search_cycles: 10, serial: false }, "no part is equal");
    }
    assert_eq!(bench.fill(1, 4, Some(3)), Fill::Abort(TxId(3), AbortCause::Conflict), "the line itself");
    assert_eq!(["conflicts_in_the_log", "false_matches"].map(|n| bench.counter(&format!("hercules.{n}"))), [1.0, 13.0]);
    bench.abort(0, 1);
    bench.commit(1, 2);
    let pmem = bench.recovered(&[], true);
    assert_eq!([0, 4, 8].map(|number| pmem.read_u64(word(number, 0))), [0, 0, 108]);
}

/// In the extension area and in a block chained to it as well; where the log entry is indirect, its index is read, too.
#[test]
fn aliases_in_the_extension_are_distinguished() {
    let spec = HerculesSpec { ewpq_entries: 1, ewpq_extension_factor: 1, extension_block_entries: 1, ..partial() };
    let mut bench = aliases(spec);
    assert_eq!(["ewpq_spills", "ewpq_chained_blocks"].map(|n| bench.counter(&format!("hercules.{n}"))), [2.0, 1.0]);
    let spec = bench.spec.clone();
    let (queue, first, further) =
        (spec.ewpq_search_cycles, spec.extension_search_first_cycles, spec.extension_search_line_cycles);
    let cycles = |bench: &mut Bench<Hercules>, number, tx| match bench.fill(0, number, Some(tx)) {
        Fill::From { search_cycles, tag, .. } if tag == LineTag(tx) => search_cycles,
        fill => panic!("{fill:?}"),
    };
    let missed = Fill::Home { search_cycles: queue + first + further + 3 * 450, serial: true };
    assert_eq!(bench.fill(0, 12, None), missed);
    // 8 is in the eWPQ, 0 in the extension area, 4 in the block.
    assert_eq!(cycles(&mut bench, 4, 1), queue + first + further + 2 * 450);
    assert_eq!(cycles(&mut bench, 0, 1), queue + first + 450);
    assert_eq!(cycles(&mut bench, 8, 2), queue);
}

/// An entry keeps its slot as long as it is valid; the first free one is taken.
#[test]
fn a_bitmap_with_holes_recovers() {
    let mut bench = bench(partial());
    let part = zone(&bench).parts[0].clone();
    writer(&mut bench, 0, 1, 0);
    for number in 0..4 {
        writer_line(&mut bench, 0, 1, number);
        flushed(&mut bench, number, 1);
    }
    let saved = |bench: &Bench<Hercules>| {
        let image = bench.crashed(&[], true);
        let logs =
            [0, 1, 2, 3].map(|slot| part.mapping_of(image.read_u64(part.ewpq_slot(slot))).map(|entry| entry.log));
        (image.read_u64(part.validity(0)), logs)
    };
    assert_eq!(saved(&bench), (0b1111, [0, 1, 2, 3].map(Some)));
    for number in [1, 2] {
        assert!(matches!(bench.fill(0, number, Some(1)), Fill::From { .. }));
    }
    assert_eq!(saved(&bench), (0b1001, [Some(0), None, None, Some(3)]));
    bench.save_and_load();
    bench.commit(0, 1);
    let homes = |bench: &Bench<Hercules>| {
        let pmem = bench.recovered(&[], true);
        [0, 1, 2, 3, 5].map(|number| pmem.read_u64(word(number, 0)))
    };
    assert_eq!(homes(&bench), [100, 0, 0, 103, 0]);
    writer(&mut bench, 0, 2, 5);
    flushed(&mut bench, 5, 2);
    bench.commit(0, 2);
    assert_eq!(saved(&bench), (0b1011, [Some(0), Some(4), None, Some(3)]));
    assert_eq!(homes(&bench), [100, 0, 0, 103, 105]);
}

/// A bit for an entry that there is not, or for one that names no log entry; an entry whose part of the address is not
/// that of its log entry.
#[test]
fn a_damaged_bitmap_is_a_loss() {
    let mut bench = bench(partial());
    for (tx, number) in [(1, 0), (2, 1)] {
        writer(&mut bench, 0, tx, number);
        flushed(&mut bench, number, tx);
        bench.commit(0, tx);
    }
    let (crashed, part) = (bench.crashed(&[], true), zone(&bench).parts[0].clone());
    let recovered = |at: PhysAddr, value: u64| {
        let mut image = crashed.clone();
        image.write_u64(at, value).unwrap();
        let report = Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
        (report.losses.join(", "), [0, 1].map(|number| image.read_u64(word(number, 0))))
    };
    assert_eq!(recovered(part.validity(0), 0b11), (String::new(), [100, 101]));
    let damages = [
        (0b1_0011, "its counters name more entries than fit"),
        (u64::MAX, "its counters name more entries than fit"),
        (0b1011, "a valid entry of its eWPQ names no log entry"),
    ];
    for (bits, why) in damages {
        assert_eq!(recovered(part.validity(0), bits), (format!("the log zone is damaged: {why}"), [0, 0]), "{bits:b}");
    }
    let record = |home: u64| u64::from_le_bytes(part.mapping_record(1, line(home), 0, false));
    assert_eq!(crashed.read_u64(part.ewpq_slot(0)), record(0));
    assert_eq!(recovered(part.ewpq_slot(0), record(4)), (String::new(), [100, 101]), "the same part");
    let (losses, homes) = recovered(part.ewpq_slot(0), record(1));
    assert!(losses.contains("committed transaction 1 is damaged in the log"), "{losses}");
    assert_eq!(homes, [0, 101]);
}

/// Each field of an entry at its largest leaves the others alone; a slot that is not in use is zero.
#[test]
fn the_fields_of_an_entry_do_not_overlap() {
    let spec = HerculesSpec { log_zone_bytes: 300 << 20, ..HerculesSpec::default() };
    let zone = LogZone::new(&spec, &geometry::<Hercules>(&spec, 1)).unwrap();
    let part = &zone.parts[0];
    assert_eq!(part.log_entries, LOG_ENTRIES_MAX, "the log has as many entries as 21 bits can name");
    assert!(part.chunks * part.chunk_entries <= LOG_ENTRIES_MAX);
    assert_eq!(part.mapping_of(0), None);
    let ids = (1 << spec.tx_id_bits) - 1;
    let homes = (1 << spec.ewpq_home_bits) - 1;
    for hardware_id in [0, 1, ids] {
        for home in [0, 1, homes] {
            for log in [0, 1, LOG_ENTRIES_MAX - 1] {
                for indirect in [false, true] {
                    let record =
                        part.mapping_record(hardware_id, durasim_types::LineAddr(home + (1 << 34)), log, indirect);
                    let entry = part.mapping_of(u64::from_le_bytes(record)).unwrap();
                    let fields = (entry.hardware_id, entry.partial_home, entry.log, entry.indirect);
                    assert_eq!(fields, (hardware_id, home, log, indirect));
                }
            }
        }
    }
}

/// The planted faults of compact entries are seen here as well as in campaigns.
#[test]
fn a_match_that_is_trusted_and_a_bitmap_that_is_missing_lose_lines() {
    let build = |fault: Option<durasim_contract::PlantedFault>| {
        let mut bench = bench(partial());
        bench.geometry.planted = fault.map_or(ActiveFault::NONE, |fault| fault.fault());
        bench.rebuild();
        writer(&mut bench, 0, 1, 0);
        flushed(&mut bench, 0, 1);
        bench.commit(0, 1);
        bench
    };
    assert!(matches!(build(None).fill(0, 4, None), Fill::Home { .. }));
    let at = zone(&build(None)).parts[0].entry_data(0);
    let trusting = build(Some(planted::PARTIAL_MATCH_TRUSTED)).fill(0, 4, None);
    assert!(matches!(trusting, Fill::From { at: from, .. } if from == at), "{trusting:?}");
    let home = |bench: Bench<Hercules>| {
        let mut image = bench.crashed(&[], true);
        Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
        image.read_u64(word(0, 0))
    };
    assert_eq!((home(build(None)), home(build(Some(planted::VALIDITY_NOT_SAVED)))), (100, 0));
}
