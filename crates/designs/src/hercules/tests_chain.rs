//! The extension area of the eWPQ grows by chained blocks, hook by hook.

use super::spec::{ExtensionLookup, TxLenStore};
use super::tests::{bench, recovered_within_flush, small, writer, writer_line, zone};
use super::{Hercules, HerculesSpec, planted};
use crate::testing::{Bench, word};
use durasim_contract::{AbortCause, ActiveFault, Design, Evict, Fill, Gate, LineTag, RecoveryReport, Wait};
use durasim_types::{Pages, PhysAddr, TxId};

/// Two entries in the eWPQ, two in its extension area, three in each further block.
fn chained() -> HerculesSpec {
    HerculesSpec { extension_chain_bytes: 1000, extension_block_entries: 3, ..small() }
}

const LINES: u64 = 12;

/// Transaction 1 is open with this number of lines in the log, line by line.
fn filled(bench: &mut Bench<Hercules>, lines: u64) {
    writer(bench, 0, 1, 0);
    for number in 0..lines {
        writer_line(bench, 0, 1, number);
        let verdict = bench.evict(number, LineTag(1), 100 + number);
        assert!(matches!(verdict, Evict::To { .. }), "{number}: {verdict:?}");
    }
}

fn homes(pmem: &Pages, lines: u64) -> Vec<u64> {
    (0..lines).map(|number| pmem.read_u64(word(number, 0))).collect()
}

fn values(lines: u64) -> Vec<u64> {
    (100..100 + lines).collect()
}

fn is_marked(bench: &Bench<Hercules>) -> bool {
    let mut marked = false;
    bench.design.marks(&mut |mark| marked |= mark == "extension_chained");
    marked
}

#[test]
fn three_blocks_are_found_after_a_crash() {
    let mut bench = bench(chained());
    filled(&mut bench, 4);
    assert_eq!((bench.counter("hercules.ewpq_chained_blocks"), is_marked(&bench)), (0.0, false));
    bench.abort(0, 1);
    bench.begin(0, 2);
    bench.commit(0, 2);
    let mut bench = self::bench(chained());
    filled(&mut bench, LINES);
    assert_eq!((bench.counter("hercules.ewpq_chained_blocks"), is_marked(&bench)), (3.0, true));
    bench.refuses_other_snapshots();
    bench.save_and_load();
    assert_eq!(homes(&bench.recovered(&[], true), LINES), vec![0; LINES as usize]);
    bench.commit(0, 1);
    assert_eq!(homes(&bench.recovered(&[], true), LINES), values(LINES));
    bench.call(0, |design, cx, out| design.woken(cx, super::MIGRATE, out));
    bench.deliver_all();
    assert_eq!(homes(&bench.pmem, LINES), values(LINES));
    assert!(!is_marked(&bench), "everything is home");
}

/// Each controller chains its own blocks.
#[test]
fn every_controller_has_a_chain() {
    let spec = HerculesSpec { extension_chain_bytes: 8000, ..chained() };
    let mut bench = Bench::<Hercules>::with_controllers(spec, 2, 2);
    // Two lines in turn are one controller's.
    filled(&mut bench, 2 * LINES);
    assert_eq!(bench.counter("hercules.ewpq_chained_blocks"), 6.0);
    let zone = zone(&bench);
    for (controller, part) in (0..).zip(&zone.parts) {
        for block in 0..part.blocks {
            let lines = (0..part.block_entries).map(|slot| part.extension_entries + block * part.block_entries + slot);
            for at in lines.map(|slot| part.extension_slot(slot)).chain([part.block(block)]) {
                assert_eq!(bench.geometry.controller_of(at.line()), controller);
            }
        }
    }
    bench.save_and_load();
    bench.commit(0, 1);
    assert_eq!(homes(&bench.recovered(&[], true), 2 * LINES), values(2 * LINES));
}

/// Power fails while blocks are chained and filled, whatever of the queue is delivered; every run after it starts with a
/// chain of no blocks, all of whose slots are zero.
#[test]
fn a_later_run_finds_the_blocks_empty() {
    let mut bench = bench(chained());
    filled(&mut bench, LINES);
    bench.commit(0, 1);
    let (part, region) = (zone(&bench).parts[0].clone(), bench.geometry.region("extension_chain"));
    let crashed = bench.crashed(&[], true);
    assert_eq!(part.saved_chain(&crashed), Some(3));
    let words =
        |pmem: &Pages| (0..region.size_bytes / 8).filter(|n| pmem.read_u64(region.base.plus(n * 8)) != 0).count();
    assert!(words(&crashed.pmem) > 8);
    let mut whole = crashed.clone();
    Hercules::recover(&bench.spec, &bench.geometry, &mut whole).unwrap();
    assert_eq!((words(&whole.pmem), part.saved_chain(&whole)), (0, Some(0)));
    // Interrupted after each write, it ends the same.
    for cut in 0..whole.writes() {
        let mut image = crashed.clone();
        image.cut_at(Some(cut));
        Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap_err();
        image.cut_at(None);
        Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
        assert_eq!((words(&image.pmem), homes(&image.pmem, LINES)), (0, values(LINES)), "cut {cut}");
    }
}

/// Slots that are free again are used before the chain grows; a block that was handed out stays.
#[test]
fn free_slots_are_used_again() {
    let mut bench = bench(chained());
    filled(&mut bench, LINES);
    bench.abort(0, 1);
    assert!(!is_marked(&bench));
    writer(&mut bench, 0, 2, 0);
    for number in 0..LINES {
        writer_line(&mut bench, 0, 2, number);
        assert!(matches!(bench.evict(number, LineTag(2), 100 + number), Evict::To { .. }));
    }
    assert_eq!(bench.counter("hercules.ewpq_chained_blocks"), 3.0);
    bench.commit(0, 2);
    assert_eq!(homes(&bench.recovered(&[], true), LINES), values(LINES));
}

/// Cycles of a miss that finds nothing, and whether the load from home has to wait for them.
fn search(bench: &mut Bench<Hercules>) -> (u64, bool) {
    match bench.fill(0, 60, None) {
        Fill::Home { search_cycles, serial } => (search_cycles, serial),
        fill => panic!("{fill:?}"),
    }
}

/// By address one line of each block is read, which ones is known beforehand; a hit halts what comes after it.
#[test]
fn a_search_by_address_reads_a_line_of_each_block() {
    let spec = HerculesSpec { extension_block_entries: 30, extension_chain_bytes: 8000, ..chained() };
    let cycles = |lines: u64| {
        let mut bench = bench(spec.clone());
        filled(&mut bench, 2 + lines);
        let blocks = bench.counter("hercules.ewpq_chained_blocks");
        (search(&mut bench), blocks, bench.counter("hercules.extension_lines_read"))
    };
    let (queue, first, further) =
        (spec.ewpq_search_cycles, spec.extension_search_first_cycles, spec.extension_search_line_cycles);
    assert_eq!(cycles(0), ((queue, false), 0.0, 0.0));
    assert_eq!([1, 2].map(cycles), [((queue + first, true), 0.0, 1.0); 2]);
    assert_eq!([3, 10].map(cycles), [((queue + first + further, true), 1.0, 2.0); 2]);
    let mut bench = bench(spec);
    filled(&mut bench, 2 + 10);
    for (number, expected) in [(0, queue + first), (5, queue + first + further), (11, queue)] {
        let Fill::From { search_cycles, tag: LineTag(1), .. } = bench.fill(0, number, Some(1)) else { panic!() };
        assert_eq!(search_cycles, expected, "line {number}");
    }
}

/// Lines with one part of the address are in the same line of each block: when it is full, a block is chained.
#[test]
fn a_line_of_the_extension_that_is_full_chains_a_block() {
    let wide = HerculesSpec {
        extension_block_entries: 30,
        extension_chain_bytes: 8000,
        ewpq_extension_factor: 16,
        ..chained()
    };
    for (home_bits, blocks) in [(1, 3), (21, 0)] {
        let mut bench = bench(HerculesSpec { ewpq_home_bits: home_bits, ..wide.clone() });
        writer(&mut bench, 0, 1, 0);
        // All of them even: one of four lines of eight slots in the extension area, and of the blocks.
        for number in (0..).step_by(2).take(2 + 26) {
            writer_line(&mut bench, 0, 1, number);
            assert!(matches!(bench.evict(number, LineTag(1), 100 + number), Evict::To { .. }));
        }
        assert_eq!(bench.counter("hercules.ewpq_chained_blocks"), f64::from(blocks));
        bench.save_and_load();
        bench.commit(0, 1);
        let pmem = bench.recovered(&[], true);
        assert!((0..).step_by(2).take(28).all(|number| pmem.read_u64(word(number, 0)) == 100 + number));
        for number in (0..).step_by(2).take(28) {
            assert!(matches!(bench.fill(0, number, None), Fill::From { .. }), "line {number}");
        }
    }
}

/// A scan looks into every line; more blocks take longer, as each is where the one before points to.
#[test]
fn a_scan_of_each_block_takes_its_time() {
    let spec = HerculesSpec { extension_lookup: ExtensionLookup::Scan, ..chained() };
    let cycles = |lines: u64| {
        let mut bench = bench(spec.clone());
        filled(&mut bench, lines);
        search(&mut bench)
    };
    let (queue, first) = (spec.ewpq_search_cycles, spec.extension_search_first_cycles);
    assert_eq!(cycles(2), (queue, false));
    assert_eq!([3, 4].map(cycles), [(queue + first, true); 2]);
    assert_eq!([5, 7].map(cycles), [(queue + 2 * first, true); 2]);
    assert_eq!([8, 11].map(cycles), [(queue + [3, 4][0] * first, true), (queue + 4 * first, true)]);
    // Within a block further lines are read.
    let wide = HerculesSpec { extension_block_entries: 30, extension_chain_bytes: 4000, ..spec.clone() };
    let mut bench = bench(wide);
    filled(&mut bench, 2 + 2 + 17);
    assert_eq!(search(&mut bench).0, queue + 2 * first + 2 * spec.extension_search_line_cycles);
    // The oldest entries are in the extension area, then come the blocks; a hit frees its slot.
    let Fill::From { search_cycles, tag: LineTag(1), .. } = bench.fill(0, 10, Some(1)) else { panic!() };
    assert!(search_cycles > queue + 2 * first);
    assert_eq!(search(&mut bench).0, queue + 2 * first + spec.extension_search_line_cycles);
}

/// A line that is being written to its home address makes room without a block.
#[test]
fn migration_goes_before_growth() {
    let mut bench = bench(chained());
    filled(&mut bench, 4);
    bench.commit(0, 1);
    writer(&mut bench, 0, 2, 9);
    let Evict::After(Wait::Acked(token)) = bench.evict(9, LineTag(2), 7) else { panic!("it waits for room") };
    assert!(bench.outstanding(token));
    bench.deliver_all();
    assert!(matches!(bench.evict(9, LineTag(2), 7), Evict::To { .. }));
    assert_eq!(bench.counter("hercules.ewpq_chained_blocks"), 0.0);
}

/// The line for which a block is chained spills an entry of a transaction whose TxLen is in flight to the controller, but
/// durable: wherever power fails, that entry is in the eWPQ or in the extension area.
#[test]
fn an_entry_is_spilled_after_the_growth_of_the_chain() {
    let mut bench = bench(HerculesSpec { tx_len_store: TxLenStore::Controller, ..chained() });
    filled(&mut bench, 4);
    bench.begin(1, 2);
    bench.deliver_all();
    let Gate::Retry(_) = bench.call(0, |design, cx, out| design.tx_commit(cx, TxId(1), out)) else { panic!() };
    writer_line(&mut bench, 1, 2, 4);
    let recovered = recovered_within_flush(&mut bench, 4, LineTag(2));
    assert_eq!(bench.counter("hercules.ewpq_chained_blocks"), 1.0);
    assert!(recovered.len() > 2);
    for pmem in recovered {
        assert_eq!(homes(&pmem, 5), [100, 101, 102, 103, 0]);
    }
}

/// No block is left, or the threshold of section 4.2 is reached: the transaction aborts, others continue.
#[test]
fn without_a_block_the_transaction_aborts() {
    let refused = |bench: &mut Bench<Hercules>, lines: u64| {
        filled(bench, lines);
        writer_line(bench, 0, 1, lines);
        let verdict = bench.evict(lines, LineTag(1), 1);
        bench.abort(0, 1);
        let tag = writer(bench, 0, 2, 0);
        assert!(matches!(bench.evict(0, tag, 7), Evict::To { .. }));
        bench.commit(0, 2);
        assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 7, "others go on");
        verdict
    };
    for (chain_bytes, blocks) in [(0, 0), (192, 1), (320, 2)] {
        let mut bench = bench(HerculesSpec { extension_chain_bytes: chain_bytes, ..chained() });
        assert_eq!(zone(&bench).parts[0].blocks, blocks);
        assert_eq!(refused(&mut bench, 4 + 3 * blocks), Evict::Abort(TxId(1), AbortCause::Capacity));
    }
    for allowed in [0, 1, 2] {
        let mut bench = bench(chained());
        let used = bench.spec.log_zone_bytes + allowed * zone(&bench).parts[0].block_bytes;
        bench.geometry.pmem_bytes = (used * 100).div_ceil(80);
        bench.rebuild();
        assert_eq!(refused(&mut bench, 4 + 3 * allowed), Evict::Abort(TxId(1), AbortCause::OutOfMemory));
    }
}

/// Pointers are part of what recovery needs: it follows them no further than there are blocks, and to no other place.
#[test]
fn a_damaged_pointer_is_a_loss() {
    let mut bench = bench(chained());
    filled(&mut bench, LINES);
    bench.commit(0, 1);
    let (crashed, part) = (bench.crashed(&[], true), zone(&bench).parts[0].clone());
    let recovered = |at: PhysAddr, value: u64| {
        let mut image = crashed.clone();
        image.write_u64(at, value).unwrap();
        let report: RecoveryReport = Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
        (report.losses.join(", "), report.lines_written)
    };
    assert_eq!(recovered(part.chain_start(), part.block(0).0), (String::new(), LINES));
    for pointer in 0..4 {
        let at = part.block_pointer(pointer);
        let elsewhere = [part.block(pointer).0 + 64, part.block(pointer + 1).0, part.chain_start().0, 1, u64::MAX];
        for value in elsewhere.into_iter().chain((pointer > 0).then(|| part.block(0).0)) {
            let (losses, written) = recovered(at, value);
            assert!(
                losses.contains("the chain of its eWPQ extension points outside of the extension area"),
                "{value:#x}: {losses}"
            );
            assert_eq!(written, 0);
        }
    }
}

/// A region that holds no block is refused.
#[test]
fn a_region_without_room_for_a_block_is_refused() {
    let spec = HerculesSpec { extension_chain_bytes: 100, ..chained() };
    let refusal = super::LogZone::new(&spec, &crate::testing::geometry::<Hercules>(&spec, 1)).unwrap_err();
    assert_eq!(refusal.field, "extension_chain_bytes");
    assert_eq!(refusal.problem, "100 bytes hold no block of 3 eWPQ entries");
}

/// The planted faults of the chain are seen here as well as in campaigns.
#[test]
fn a_broken_chain_loses_lines() {
    let build = |fault: Option<durasim_contract::PlantedFault>| {
        let mut bench = bench(chained());
        bench.geometry.planted = fault.map_or(ActiveFault::NONE, |fault| fault.fault());
        bench.rebuild();
        filled(&mut bench, LINES);
        bench
    };
    assert!(matches!(build(None).fill(0, 8, Some(1)), Fill::From { .. }));
    assert!(matches!(build(Some(planted::CHAIN_NOT_SEARCHED)).fill(0, 8, Some(1)), Fill::Home { .. }));
    for fault in [planted::CHAIN_POINTER_NOT_WRITTEN, planted::RECOVERY_SKIPS_CHAIN] {
        let mut bench = build(Some(fault));
        bench.commit(0, 1);
        let mut image = bench.crashed(&[], true);
        Hercules::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
        assert_ne!(homes(&image.pmem, LINES), values(LINES), "{}", fault.name);
    }
}
