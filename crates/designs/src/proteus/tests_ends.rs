//! Transactions of Proteus that do not commit: aborts, power failures, damaged images.

use super::entry::LogEntry;
use super::recovery::STRUCTURE;
use super::tests::{bench, change, durable, small};
use super::{Proteus, ProteusSpec};
use crate::testing::{Bench, cached, line, word};
use durasim_contract::{CrashImage, Design, LineTag, RecoveryReport};
use durasim_types::{Pages, PhysAddr, TxId};

fn entry(tx: u64, number: u32, block: PhysAddr) -> LogEntry {
    LogEntry { block, old: [tx as u8; 32], tx: TxId(tx), number, log: 0 }
}

fn slot(bench: &Bench<Proteus>, number: u64) -> PhysAddr {
    bench.geometry.region("logs").base.plus(64 * number)
}

fn recover(bench: &Bench<Proteus>, image: &mut CrashImage) -> RecoveryReport {
    Proteus::recover(&bench.spec, &bench.geometry, image).expect("nothing cuts it")
}

#[test]
fn an_abort_restores_each_block_from_its_oldest_entry_wherever_that_is() {
    let mut bench = bench(ProteusSpec { lpq_entries: 3, llt_entries: 1, llt_ways: 1, ..small() });
    bench.begin(0, 1);
    // A table of one block: the first block is logged twice, and its older entry goes to the log.
    for (place, old, new) in [(0, 10, 20), (1, 11, 21), (0, 20, 22), (2, 12, 23), (3, 13, 24)] {
        change(&mut bench, 0, 1, place, old, new, true);
    }
    assert_eq!(bench.counter("proteus.spilled_entries"), 2.0);
    bench.abort(0, 1);
    bench.deliver_all();
    assert_eq!([0, 1, 2, 3].map(|place| bench.pmem.read_u64(word(place, 0))), [10, 11, 12, 13]);
    assert_eq!(bench.dropped, [0, 1, 2, 3].map(line));
    assert_eq!(bench.counter("proteus.undone_blocks"), 4.0);
    // Its entries are stale: what others change afterwards stays.
    bench.begin(1, 2);
    change(&mut bench, 1, 2, 0, 10, 30, true);
    bench.commit(1, 2);
    assert_eq!(bench.recovered(&[], true).read_u64(word(0, 0)), 30);
}

#[test]
fn power_fails_at_every_step_of_an_abort_and_of_a_commit() {
    for commits in [false, true] {
        let mut bench = bench(ProteusSpec { lpq_entries: 1, ..small() });
        bench.begin(0, 1);
        for place in 0..3 {
            change(&mut bench, 0, 1, place, 10 + place, 20 + place, true);
        }
        bench.keep_steps = true;
        if commits {
            bench.commit(0, 1)
        } else {
            bench.abort(0, 1)
        }
        bench.deliver_all();
        bench.keep_steps = false;
        let mut steps = std::mem::take(&mut bench.steps);
        assert!(steps.len() >= if commits { 1 } else { 4 }, "{} steps", steps.len());
        for image in &mut steps {
            recover(&bench, image);
            assert_eq!([0, 1, 2].map(|place| image.read_u64(word(place, 0))), [10, 11, 12]);
        }
        let expected = if commits { [20, 21, 22] } else { [10, 11, 12] };
        let pmem = bench.recovered(&[], true);
        assert_eq!([0, 1, 2].map(|place| pmem.read_u64(word(place, 0))), expected);
    }
}

#[test]
fn durable_caches_go_home_before_open_transactions_are_undone() {
    let mut bench = durable(small());
    bench.begin(0, 1);
    bench.begin(1, 2);
    change(&mut bench, 0, 1, 0, 10, 20, false);
    change(&mut bench, 1, 2, 1, 11, 21, false);
    bench.commit(1, 2);
    let lines = [cached(0, 0, LineTag::NONE, 20), cached(1, 1, LineTag::NONE, 21)];
    let pmem = bench.recovered(&lines, true);
    assert_eq!([0, 1].map(|place| pmem.read_u64(word(place, 0))), [10, 21]);
}

#[test]
fn recovery_undoes_the_newest_transaction_of_each_log_and_leaves_nothing() {
    let mut bench = bench(ProteusSpec { lpq_entries: 1, ..small() });
    for (core, tx) in [(0, 1), (1, 2)] {
        bench.begin(core, tx);
        for place in [2 * tx, 2 * tx + 1] {
            change(&mut bench, core, tx, place, 10 + place, 20, true);
        }
    }
    let mut image = bench.crashed(&[], true);
    let report = recover(&bench, &mut image);
    assert_eq!((report.discarded, report.lines_written), (2, 4));
    assert!(report.losses.is_empty());
    assert_eq!([2, 3, 4, 5].map(|place| image.read_u64(word(place, 0))), [12, 13, 14, 15]);
    // A later run counts its transactions from one: nothing old may count for it.
    let (ends, logs) = (bench.geometry.region("tx_ends").base, bench.geometry.region("logs").base);
    assert!((0..4).all(|log| image.read_u64(ends.plus(64 * log)) == 0));
    assert!((0..32).all(|slot| image.line(logs.plus(64 * slot)) == [0; 64]));
    assert_eq!(image.structure(STRUCTURE), Some(&[][..]));
    assert_eq!(recover(&bench, &mut image), RecoveryReport::default());
}

#[test]
fn a_recovery_that_is_cut_anywhere_comes_to_the_same_end() {
    let mut bench = bench(ProteusSpec { lpq_entries: 2, llt_entries: 1, llt_ways: 1, ..small() });
    bench.begin(0, 1);
    for (place, old, new) in [(0, 10, 20), (1, 11, 21), (0, 20, 22), (1, 21, 23)] {
        change(&mut bench, 0, 1, place, old, new, true);
    }
    let image = bench.crashed(&[], true);
    let mut whole = image.clone();
    recover(&bench, &mut whole);
    for first in 1..=whole.writes() {
        for second in [1, 2, 5] {
            let mut cut = image.clone();
            cut.cut_at(Some(first));
            assert!(Proteus::recover(&bench.spec, &bench.geometry, &mut cut).is_err(), "cut before write {first}");
            cut.cut_at(Some(second));
            let _ = Proteus::recover(&bench.spec, &bench.geometry, &mut cut);
            cut.cut_at(None);
            recover(&bench, &mut cut);
            assert_eq!([0, 1].map(|place| cut.read_u64(word(place, 0))), [10, 11], "cut before {first}, {second}");
        }
    }
}

#[test]
fn damaged_images_are_losses_and_not_written() {
    let bench = bench(small());
    let regions: u64 = bench.geometry.regions.iter().map(|region| region.size_bytes.next_multiple_of(4096)).sum();
    let pmem = Pages::new(bench.geometry.pmem_base, bench.geometry.pmem_data_bytes + regions);
    let good = entry(3, 0, word(0, 0));
    let damaged = [
        entry(3, 1, bench.geometry.region("logs").base),
        entry(3, 1, PhysAddr(u64::MAX - 31)),
        entry(3, 1, PhysAddr(0)),
        entry(3, 1, word(1, 1)),
        LogEntry { log: 4, ..good },
        LogEntry { log: u32::MAX, ..good },
    ];
    for bad in damaged {
        let mut image = CrashImage::new(pmem.clone());
        image.write(slot(&bench, 0), &bad.to_line()).unwrap();
        image.keep(STRUCTURE, [good.to_line(), bad.to_line()].concat()).unwrap();
        let report = recover(&bench, &mut image);
        assert_eq!(report.losses, ["1 entries of the log pending queues are damaged"], "{bad:?}");
        assert_eq!((report.discarded, report.lines_written), (1, 1));
        assert_eq!(image.read_u64(word(0, 0)), 0x0303_0303_0303_0303);
        assert_eq!(recover(&bench, &mut image), RecoveryReport::default());
    }
    for bytes in [vec![7; 1], vec![0xff; 63], vec![0xff; 4096], vec![0; 65]] {
        let mut image = CrashImage::new(pmem.clone());
        (0..64).for_each(|n| image.write(slot(&bench, n), &[0xff; 64]).unwrap());
        image.keep(STRUCTURE, bytes.clone()).unwrap();
        let report = recover(&bench, &mut image);
        assert_eq!((report.losses.len(), report.lines_written), (1, 0), "{} bytes", bytes.len());
    }
}

/// An older transaction in a log whose record is lost is not believed: a log has one that is open.
#[test]
fn of_several_open_transactions_in_a_log_the_newest_counts() {
    let bench = bench(small());
    let regions: u64 = bench.geometry.regions.iter().map(|region| region.size_bytes.next_multiple_of(4096)).sum();
    let pmem = Pages::new(bench.geometry.pmem_base, bench.geometry.pmem_data_bytes + regions);
    let mut image = CrashImage::new(pmem);
    image.write(slot(&bench, 0), &entry(3, 0, word(0, 0)).to_line()).unwrap();
    image.write(slot(&bench, 1), &entry(4, 0, word(1, 0)).to_line()).unwrap();
    let report = recover(&bench, &mut image);
    assert_eq!((report.discarded, report.lines_written), (1, 1));
    assert_eq!([0, 1].map(|place| image.read_u64(word(place, 0)) & 0xff), [0, 4]);
}
