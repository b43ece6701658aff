//! HOOP on a bench, hook by hook.

use super::slice::SLICE_BYTES;
use super::spec::{AcknowledgedBy, CommitEnd, Words};
use super::tags::COMMITTED;
use super::{GC, HOMES, Hoop, HoopSpec};
use crate::testing::{Bench, cached, geometry, line, word};
use durasim_contract::{
    AbortCause, CrashImage, Design, Evict, Fill, FlushVerdict, Gate, LineTag, RecoveryReport, Wait,
};
use durasim_types::{Pages, PhysAddr, TxId};

fn small() -> HoopSpec {
    HoopSpec {
        oop_buffer_bytes: 256,
        mapping_table_bytes: 16,
        eviction_buffer_bytes: 128,
        region_bytes_max: 16 * SLICE_BYTES,
        block_bytes: 2 * SLICE_BYTES,
        address_slices: 1,
        search_cycles: 0,
        ..HoopSpec::default()
    }
}

fn roomy() -> HoopSpec {
    HoopSpec { region_bytes_max: 1 << 20, block_bytes: 4096, search_cycles: 0, ..HoopSpec::default() }
}

fn words(pmem: &Pages, places: &[(u64, u64)]) -> Vec<u64> {
    places.iter().map(|&(line, index)| pmem.read_u64(word(line, index))).collect()
}

impl Bench<Hoop> {
    /// A transaction of one store, committed.
    fn stored(&mut self, core: u16, tx: u64, place: (u64, u64), data: u64) {
        self.begin(core, tx);
        self.put_word(core, tx, place, data);
        self.commit(core, tx);
    }

    /// A store of a transaction to a line that no cache has dirty.
    fn put_word(&mut self, core: u16, tx: u64, place: (u64, u64), data: u64) -> LineTag {
        let mut tag = LineTag::NONE;
        while let Gate::Retry(Wait::Acked(token)) = self.offer(core, word(place.0, place.1), data, Some(tx), &mut tag) {
            while self.outstanding(token) {
                self.deliver();
            }
        }
        tag
    }

    /// The words of a line as a miss would bring it, and its tag.
    fn miss(&mut self, number: u64) -> ([u64; 8], LineTag) {
        let mut answer = self.fill(0, number, None);
        while let Fill::Wait(_) = answer {
            self.settle();
            answer = self.fill(0, number, None);
        }
        let mut data = self.newest(line(number));
        let mut tag = LineTag::NONE;
        match answer {
            Fill::Home { .. } => {}
            Fill::Gather { gather, tag: filled, .. } => {
                tag = filled;
                for part in &gather.parts {
                    let from = self.newest(part.from.line());
                    let (offset, len, source) = (part.offset as usize, part.len as usize, part.from.offset());
                    data[offset..offset + len].copy_from_slice(&from[source..source + len]);
                }
                if let Some(overlay) = gather.overlay {
                    (0..64).filter(|i| overlay.mask >> i & 1 == 1).for_each(|i| data[i] = overlay.data[i]);
                }
            }
            other => panic!("{other:?}"),
        }
        let word = |i: usize| u64::from_le_bytes(data[8 * i..8 * i + 8].try_into().unwrap());
        (std::array::from_fn(word), tag)
    }

    /// Lets the background collector run to its end.
    fn collected(&mut self) {
        self.call(0, |design, cx, out| design.woken(cx, GC, out));
        self.settle();
    }

    /// Completes everything that has begun.
    fn settle(&mut self) {
        for _ in 0..100 {
            self.deliver_all();
            self.call(0, |design, cx, out| design.woken(cx, HOMES, out));
        }
        self.deliver_all();
    }

    /// Commits of a crash now, and the bytes that recovery brings.
    fn after_crash(&self, places: &[(u64, u64)]) -> Vec<u64> {
        words(&self.recovered(&[], false), places)
    }
}

#[test]
fn words_are_packed_by_eight_and_a_commit_writes_the_rest_and_an_entry() {
    let mut bench = Bench::<Hoop>::new(roomy(), 1);
    bench.begin(0, 1);
    for i in 0..8 {
        bench.put_word(0, 1, (0, i), 10 + i);
        bench.put_word(0, 1, (0, i), 20 + i);
    }
    assert_eq!(bench.counter("hoop.slices"), 0.0, "words of one address share a place, and eight are not too many");
    bench.put_word(0, 1, (1, 0), 1);
    assert_eq!(bench.counter("hoop.slices"), 1.0);
    assert_eq!(bench.after_crash(&[(0, 0), (1, 0)]), [0, 0]);
    bench.commit(0, 1);
    assert_eq!(["slices", "partial_slices", "entries"].map(|n| bench.counter(&format!("hoop.{n}"))), [2.0, 1.0, 1.0]);
    assert_eq!(bench.after_crash(&[(0, 0), (0, 7), (1, 0)]), [20, 27, 1]);
    assert_eq!(words(&bench.pmem, &[(0, 0)]), [0], "nothing is home");
}

#[test]
fn a_commit_waits_for_its_slices_and_then_for_its_entry() {
    let mut bench = Bench::<Hoop>::new(roomy(), 1);
    bench.begin(0, 1);
    bench.put_word(0, 1, (0, 0), 7);
    let mut waits = 0;
    while let Gate::Retry(Wait::Acked(token)) = bench.call(0, |d, cx, out| d.tx_commit(cx, TxId(1), out)) {
        assert_eq!(bench.after_crash(&[(0, 0)]), [0]);
        while bench.outstanding(token) {
            bench.deliver();
        }
        waits += 1;
    }
    assert_eq!((waits, bench.commits), (2, 1));
    assert_eq!(bench.after_crash(&[(0, 0)]), [7]);
    bench.begin(0, 2);
    bench.commit(0, 2);
    assert_eq!(bench.counter("hoop.entries"), 1.0, "a transaction without stores has no entry");
}

#[test]
fn stores_of_some_bytes_bring_these_and_no_others() {
    let mut bench = Bench::<Hoop>::new(roomy(), 1);
    bench.pmem.write(word(0, 0), &0x1111_1111_1111_1111u64.to_le_bytes());
    bench.begin(0, 1);
    let store = |addr: PhysAddr, len, data| durasim_contract::Store {
        addr,
        len,
        data,
        tx: Some(TxId(1)),
        before: &[0; 64],
        dirty: false,
    };
    for (offset, len, data) in [(1, 1, 0x22), (6, 4, 0x3333_3333u64)] {
        let store = store(word(0, 0).plus(offset), len, data);
        let gate = bench.call(0, |design, cx, out| design.store(cx, &store, &mut LineTag(1), out));
        assert_eq!(gate, Gate::Done);
    }
    bench.commit(0, 1);
    assert_eq!(bench.after_crash(&[(0, 0), (0, 1)]), [0x3333_1111_1111_2211, 0x3333]);
}

#[test]
fn a_full_buffer_delays_stores_and_drains_for_other_transactions() {
    let mut bench = Bench::<Hoop>::new(small(), 1);
    bench.begin(0, 1);
    for i in 0..8 {
        bench.put_word(0, 1, (0, i), i);
    }
    assert_eq!(bench.offer(0, word(1, 0), 1, Some(1), &mut LineTag(1)), Gate::Done);
    for i in 1..8 {
        assert_eq!(bench.offer(0, word(1, i), i, Some(1), &mut LineTag(1)), Gate::Done);
    }
    let gate = bench.offer(0, word(2, 0), 1, Some(1), &mut LineTag(1));
    assert!(matches!(gate, Gate::Retry(Wait::Acked(_))), "{gate:?}");
    bench.deliver_all();
    bench.begin(0, 2);
    bench.put_word(0, 2, (3, 0), 5);
    bench.begin(0, 3);
    bench.put_word(0, 3, (4, 0), 6);
    assert!(bench.counter("hoop.buffer_stalls") >= 2.0);
    [1, 2, 3].into_iter().for_each(|tx| bench.commit(0, tx));
    assert_eq!(bench.after_crash(&[(0, 7), (1, 7), (3, 0), (4, 0)]), [7, 7, 5, 6]);
}

#[test]
fn an_evicted_line_comes_back_from_its_slice() {
    let mut bench = Bench::<Hoop>::new(roomy(), 1);
    bench.begin(0, 1);
    let tag = bench.put_word(0, 1, (0, 0), 7);
    assert_eq!(bench.evict(0, tag, 7), Evict::Drop);
    assert_eq!(bench.after_crash(&[(0, 0)]), [0], "it is not committed");
    let ([first, ..], tag) = bench.miss(0);
    assert_eq!((first, tag, bench.counter("hoop.mapping_hits")), (7, LineTag(1), 1.0));
    bench.commit(0, 1);
    assert_eq!(bench.evict(0, tag, 7), Evict::Drop);
    assert_eq!(bench.miss(0).1, COMMITTED);
    assert_eq!(bench.evict(1, LineTag::NONE, 9), Evict::Proceed, "a line without the bit goes home");
    bench.collected();
    assert_eq!(bench.evict(0, COMMITTED, 7), Evict::Drop);
    assert_eq!(bench.counter("hoop.evicted_lines"), 2.0, "all of it is home already");
    assert_eq!(words(&bench.pmem, &[(0, 0), (1, 0)]), [7, 9]);
}

#[test]
fn an_abort_uncovers_the_older_committed_version() {
    let mut bench = Bench::<Hoop>::new(roomy(), 1);
    bench.stored(0, 1, (0, 0), 1);
    bench.begin(0, 2);
    let tag = bench.put_word(0, 2, (0, 0), 2);
    bench.evict(0, tag, 2);
    bench.abort(0, 2);
    assert_eq!((bench.invalidated.clone(), bench.design.live(tag)), (vec![TxId(2)], false));
    let ([first, ..], tag) = bench.miss(0);
    assert_eq!((first, tag), (1, LineTag::NONE), "its committed words have gone home first");
    assert_eq!((bench.counter("hoop.scattered_collections"), words(&bench.pmem, &[(0, 0)])), (1.0, vec![1]));
    assert_eq!(bench.after_crash(&[(0, 0)]), [1]);
}

#[test]
fn an_abort_leaves_the_words_of_others_that_share_its_lines() {
    let mut bench = Bench::<Hoop>::new(roomy(), 2);
    bench.begin(0, 1);
    bench.begin(1, 2);
    bench.put_word(0, 1, (0, 0), 1);
    let shared = bench.put_word(1, 2, (0, 1), 2);
    assert!(bench.design.belongs_to(shared, TxId(1)) && bench.design.belongs_to(shared, TxId(2)));
    bench.evict(0, shared, 1);
    bench.abort(0, 1);
    let (words, tag) = bench.miss(0);
    assert_eq!((words[0], words[1], tag, bench.counter("hoop.scattered_hits")), (0, 2, LineTag(2), 1.0));
    bench.commit(1, 2);
    assert_eq!(bench.after_crash(&[(0, 0), (0, 1)]), [0, 2]);
}

#[test]
fn a_collection_brings_the_newest_words_home_and_frees_their_slices() {
    let mut bench = Bench::<Hoop>::new(roomy(), 1);
    (1..=10).for_each(|tx| bench.stored(0, tx, (tx % 2, 0), tx));
    bench.collected();
    assert_eq!(words(&bench.pmem, &[(0, 0), (1, 0)]), [10, 9]);
    let counters = ["background_collections", "collected_transactions", "collected_bytes", "home_lines", "home_bytes"];
    assert_eq!(counters.map(|name| bench.counter(&format!("hoop.{name}"))), [1.0, 10.0, 80.0, 2.0, 16.0]);
    let mut image = bench.crashed(&[], false);
    let report = Hoop::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
    assert_eq!(report, RecoveryReport::default(), "nothing is left to be recovered");
    assert_eq!(bench.miss(0).1, LineTag::NONE);
    assert_eq!(bench.counter("hoop.eviction_buffer_hits"), 1.0);
}

#[test]
fn at_every_step_of_a_collection_a_crash_leaves_the_newest_words() {
    let mut bench = Bench::<Hoop>::new(HoopSpec { copies_in_flight: 2, ..roomy() }, 2);
    (1..=6).for_each(|tx| bench.stored((tx % 2) as u16, tx, (tx % 3, tx % 2), tx));
    bench.begin(0, 7);
    bench.put_word(0, 7, (0, 0), 77);
    let places = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)];
    let newest = bench.after_crash(&places);
    bench.keep_steps = true;
    bench.call(0, |design, cx, out| design.woken(cx, GC, out));
    for _ in 0..20 {
        while bench.deliver() {
            assert_eq!(bench.after_crash(&places), newest);
            bench.save_and_load();
        }
        bench.call(0, |design, cx, out| design.woken(cx, HOMES, out));
        assert_eq!(bench.after_crash(&places), newest);
    }
    assert_eq!(words(&bench.pmem, &places), newest);
    assert!(bench.steps.len() > 5, "{}", bench.steps.len());
    for mut image in std::mem::take(&mut bench.steps) {
        Hoop::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
        assert_eq!(words(&image.pmem, &places), newest);
    }
}

/// Sixteen slices and sixteen entries serve for any number of transactions.
#[test]
fn the_log_and_the_address_slices_wrap_around() {
    let mut bench = Bench::<Hoop>::new(small(), 1);
    for tx in 1..=200 {
        bench.stored(0, tx, (tx % 5, tx % 8), tx);
        if tx % 3 == 0 {
            bench.collected();
        }
        assert_eq!(bench.after_crash(&[(tx % 5, tx % 8)]), [tx]);
        bench.save_and_load();
    }
    assert!(bench.counter("hoop.region_rounds") > 5.0);
    bench.refuses_other_snapshots();
}

#[test]
fn a_full_region_is_collected_on_demand_and_then_aborts() {
    let mut bench = Bench::<Hoop>::new(small(), 1);
    (1..=14).for_each(|tx| bench.stored(0, tx, (tx, 0), tx));
    bench.begin(0, 15);
    let mut tag = LineTag(15);
    let mut last = Gate::Done;
    for i in 0..200 {
        last = bench.offer(0, word(20 + i / 8, i % 8), i, Some(15), &mut tag);
        if last != Gate::Done {
            bench.settle();
            last = bench.offer(0, word(20 + i / 8, i % 8), i, Some(15), &mut tag);
        }
        if matches!(last, Gate::Abort(..)) {
            break;
        }
    }
    assert_eq!(last, Gate::Abort(TxId(15), AbortCause::Capacity));
    assert!(bench.counter("hoop.collections_on_demand") >= 1.0);
    bench.abort(0, 15);
    bench.stored(0, 16, (20, 0), 99);
    assert_eq!(bench.after_crash(&[(14, 0), (20, 0), (20, 1)]), [14, 99, 0]);
}

#[test]
fn a_full_mapping_table_is_collected_on_demand_and_then_aborts() {
    let mut bench = Bench::<Hoop>::new(small(), 1);
    (1..=3).for_each(|tx| bench.stored(0, tx, (tx, 0), tx));
    assert_eq!([1, 2].map(|n| bench.evict(n, COMMITTED, n)), [Evict::Drop; 2]);
    let verdict = bench.evict(3, COMMITTED, 3);
    assert!(matches!(verdict, Evict::After(Wait::Cycles(_) | Wait::Acked(_))), "{verdict:?}");
    bench.collected();
    assert_eq!(bench.evict(3, COMMITTED, 3), Evict::Drop);
    bench.begin(0, 4);
    let tags: Vec<LineTag> = (4..7).map(|n| bench.put_word(0, 4, (n, 0), n)).collect();
    assert_eq!([4, 5].map(|n| bench.evict(n, tags[0], n)), [Evict::Drop; 2]);
    assert_eq!(bench.evict(6, tags[0], 6), Evict::Abort(TxId(4), AbortCause::Capacity));
}

#[test]
fn a_miss_after_an_abort_reads_the_slices_of_open_transactions_with_their_metadata() {
    let mut bench = Bench::<Hoop>::new(roomy(), 2);
    bench.begin(0, 1);
    bench.begin(1, 2);
    let tag = bench.put_word(0, 1, (0, 0), 1);
    for i in 0..9 {
        bench.put_word(1, 2, (i / 8, (i + 1) % 8), 10 + i);
    }
    bench.evict(0, tag, 1);
    bench.abort(0, 1);
    let Fill::Gather { gather, .. } = bench.fill(0, 0, None) else { panic!("it is in slices") };
    let lengths: Vec<u8> = gather.parts.iter().map(|part| part.len).collect();
    assert_eq!(lengths, [0, 8, 8, 8, 8, 8, 8, 8, 8], "the metadata, then the words of the line");
}

#[test]
fn a_full_line_table_is_collected_on_demand_and_then_aborts() {
    let mut bench = Bench::<Hoop>::new(HoopSpec { line_table_bytes: 3 * 8 + 7, ..roomy() }, 1);
    (1..=3).for_each(|tx| bench.stored(0, tx, (tx, 0), tx));
    bench.stored(0, 4, (3, 1), 4);
    assert_eq!((bench.counter("hoop.line_table_entries"), bench.counter("hoop.line_table_full")), (3.0, 0.0));
    bench.begin(0, 5);
    let mut tag = LineTag::NONE;
    let verdict = bench.offer(0, word(4, 0), 5, Some(5), &mut tag);
    assert!(matches!(verdict, Gate::Retry(_)), "{verdict:?}");
    assert_eq!(bench.counter("hoop.collections_on_demand"), 1.0);
    bench.settle();
    assert_eq!((words(&bench.pmem, &[(1, 0), (3, 1)]), bench.counter("hoop.line_table_entries")), (vec![1, 4], 0.0));
    for n in 4..7 {
        bench.put_word(0, 5, (n, 0), n);
    }
    let verdict = bench.offer(0, word(7, 0), 7, Some(5), &mut tag);
    assert_eq!(verdict, Gate::Abort(TxId(5), AbortCause::Capacity), "all entries are of open transactions");
    let verdict = bench.offer(0, word(6, 1), 7, Some(5), &mut tag);
    assert!(matches!(verdict, Gate::After(_)), "a line needs one entry: {verdict:?}");
    bench.abort(0, 5);
    assert_eq!(bench.counter("hoop.line_table_entries"), 0.0);
    bench.save_and_load();
}

#[test]
fn an_eviction_waits_for_the_search_of_the_tables() {
    let mut bench = Bench::<Hoop>::new(HoopSpec { search_cycles: 10, ..roomy() }, 1);
    bench.stored(0, 1, (0, 0), 1);
    for evicted in [1.0, 2.0] {
        assert_eq!(bench.evict(0, COMMITTED, 1), Evict::After(Wait::Cycles(10)));
        assert_eq!(bench.evict(0, COMMITTED, 1), Evict::Drop);
        assert_eq!(bench.counter("hoop.evicted_lines"), evicted);
    }
    assert_eq!(bench.evict(1, LineTag::NONE, 9), Evict::Proceed, "a line without the bit is not checked");
}

#[test]
fn a_plain_store_to_a_persistent_line_is_committed_in_its_turn() {
    let mut bench = Bench::<Hoop>::new(roomy(), 1);
    bench.stored(0, 1, (0, 0), 1);
    let mut tag = COMMITTED;
    while let Gate::Retry(Wait::Acked(_)) = bench.offer(0, word(0, 0), 2, None, &mut tag) {
        assert_eq!(bench.after_crash(&[(0, 0)]), [1]);
        bench.deliver_all();
    }
    bench.deliver_all();
    assert_eq!((bench.after_crash(&[(0, 0)]), bench.counter("hoop.routed_stores")), (vec![2], 1.0));
    bench.stored(0, 2, (0, 0), 3);
    assert_eq!(bench.after_crash(&[(0, 0)]), [3]);
    bench.collected();
    assert_eq!(bench.offer(0, word(0, 0), 4, None, &mut tag), Gate::Done);
    assert_eq!(tag, LineTag::NONE, "all is home: an ordinary line again");
    let flush = |bench: &mut Bench<Hoop>, tag| bench.call(0, |d, cx, out| d.flush(cx, line(0), tag, out));
    assert_eq!(flush(&mut bench, COMMITTED), FlushVerdict::Ignore);
    assert_eq!(flush(&mut bench, LineTag::NONE), FlushVerdict::Proceed);
}

/// Recovery orders commits by their entries, however many threads share them out.
#[test]
fn recovery_takes_the_newest_words_with_any_number_of_threads() {
    for recovery_threads in [1, 2, 3, 16] {
        let mut bench = Bench::<Hoop>::new(HoopSpec { recovery_threads, ..roomy() }, 1);
        (1..=20).for_each(|tx| bench.stored(0, tx, (tx % 3, 0), tx));
        let mut image = bench.crashed(&[], false);
        let report = Hoop::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
        assert_eq!((report.replayed, report.lines_written), (20, 3));
        assert_eq!(words(&image.pmem, &[(0, 0), (1, 0), (2, 0)]), [18, 19, 20]);
        assert_eq!(Hoop::recover(&bench.spec, &bench.geometry, &mut image), Ok(RecoveryReport::default()));
    }
}

#[test]
fn recovery_may_be_cut_before_any_of_its_writes() {
    let mut bench = Bench::<Hoop>::new(small(), 1);
    (1..=9).for_each(|tx| bench.stored(0, tx, (tx % 2, tx % 3), tx));
    let crashed = bench.crashed(&[], false);
    let mut whole = crashed.clone();
    Hoop::recover(&bench.spec, &bench.geometry, &mut whole).unwrap();
    assert!(whole.writes() > 4);
    let places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)];
    for cut in 1..=whole.writes() {
        let mut image = crashed.clone();
        image.cut_at(Some(cut));
        assert!(Hoop::recover(&bench.spec, &bench.geometry, &mut image).is_err());
        image.cut_at(None);
        Hoop::recover(&bench.spec, &bench.geometry, &mut image).unwrap();
        assert_eq!(words(&image.pmem, &places), words(&whole.pmem, &places), "cut at {cut}");
    }
}

#[test]
fn damaged_slices_are_losses_and_not_written() {
    let spec = small();
    let geometry = geometry::<Hoop>(&spec, 1);
    let (ring, region) = (geometry.region("oop_address_slices").base, geometry.region("oop_region").base);
    let mut bench = Bench::<Hoop>::new(spec.clone(), 1);
    bench.stored(0, 1, (0, 0), 7);
    let sound = bench.crashed(&[], false);
    let recover = |image: &mut CrashImage| Hoop::recover(&spec, &geometry, image).unwrap();
    let damaged = |at: PhysAddr, value: u64| {
        let mut image = sound.clone();
        image.write_u64(at, value).unwrap();
        let report = recover(&mut image);
        assert_eq!((report.lines_written, image.read_u64(word(0, 0))), (0, 0), "{value:#x} at {at}");
        assert_eq!(recover(&mut image), RecoveryReport::default());
        report.losses.len()
    };
    let entry = |number: u64, first: u64| number << 24 | first;
    assert_eq!(damaged(region.plus(64 + 40), 0), 1, "no slice");
    assert_eq!(damaged(region.plus(64 + 40), u64::MAX), 1);
    assert_eq!(damaged(region.plus(64), u64::MAX), 1, "the home is outside of persistent memory");
    assert_eq!(damaged(ring.plus(128 + 8), entry(1, 5)), 1, "a slice that was never written");
    assert_eq!(damaged(ring.plus(128 + 8), entry(1, 1 << 20)), 1, "a slice outside of the region");
    assert_eq!(damaged(ring.plus(128 + 8), entry(2, 0)), 0, "not the place of its number");
    assert_eq!(damaged(ring.plus(128 + 8), entry(1 + 16 * 5, 0)), 0, "of a round that cannot be");
    assert_eq!(damaged(ring, 1), 0, "it is collected");
    let mut image = sound.clone();
    assert_eq!((recover(&mut image).replayed, image.read_u64(word(0, 0))), (1, 7));
}

/// A slice that names itself as the next one does not hold recovery up without end.
#[test]
fn a_chain_with_a_cycle_is_a_loss() {
    let spec = small();
    let mut bench = Bench::<Hoop>::new(spec.clone(), 1);
    bench.begin(0, 1);
    for i in 0..17 {
        bench.put_word(0, 1, (i / 8, i % 8), i);
    }
    bench.commit(0, 1);
    let mut image = bench.crashed(&[], false);
    let second = bench.geometry.region("oop_region").base.plus(128 + 64 + 40);
    let fields = image.read_u64(second);
    image.write_u64(second, fields & !(0xff_ffff << 32) | 1 << 32).unwrap();
    let report = Hoop::recover(&spec, &bench.geometry, &mut image).unwrap();
    assert_eq!((report.replayed, report.losses.len()), (0, 1));
}

/// On a machine with durable caches, lines without the persistent bit are written to their home addresses and commits
/// wait for nothing.
#[test]
fn with_eadr_nothing_is_waited_for() {
    let spec = roomy();
    let mut bench = Bench::<Hoop>::new(spec.clone(), 1);
    bench.geometry.domain = durasim_types::Domain::Eadr;
    bench.rebuild();
    bench.begin(0, 1);
    let mut tag = LineTag::NONE;
    assert_eq!(bench.offer(0, word(0, 0), 7, Some(1), &mut tag), Gate::Done);
    assert_eq!(bench.call(0, |d, cx, out| d.tx_commit(cx, TxId(1), out)), Gate::Done);
    // The bench's queue stands for the queue and the write-back buffers.
    let lines = [cached(0, 1, LineTag::NONE, 8), cached(0, 2, LineTag(9), 9)];
    assert_eq!(words(&bench.recovered(&lines, true), &[(0, 0), (1, 0), (2, 0)]), [7, 8, 0]);
}

#[test]
fn what_cannot_be_built_is_refused() {
    let geometry = geometry::<Hoop>(&HoopSpec::default(), 4);
    let refusal = |spec: HoopSpec| Hoop::build(&spec, &geometry).map(drop).unwrap_err();
    let spec = HoopSpec { region_bytes_max: 5 * 256, block_bytes: 256, ..HoopSpec::default() };
    assert_eq!(refusal(spec).problem, "the OOP region has 5 blocks of 256 bytes, 6 are needed for 4 cores");
    assert_eq!(refusal(HoopSpec { oop_buffer_bytes: 128, ..HoopSpec::default() }).field, "oop_buffer_bytes");
    assert_eq!(refusal(HoopSpec { copies_in_flight: 0, ..HoopSpec::default() }).field, "copies_in_flight");
}

#[test]
fn the_cost_is_that_of_the_published_structures() {
    let geometry = geometry::<Hoop>(&HoopSpec::default(), 2);
    let cost = Hoop::cost(&HoopSpec::default(), &geometry);
    let bits = |name: &str| cost.structures.iter().find(|s| s.name == name).map(|s| (s.bits, s.instances)).unwrap();
    assert_eq!(bits("OOP data buffer"), (8192, 2));
    assert_eq!(bits("mapping table"), (8 << 21, 1));
    assert_eq!(bits("line table"), (8 << 21, 1));
    assert_eq!(bits("persistent bits l1d"), (geometry.l1d.lines(), 2));
    assert_eq!(bits("eviction buffer"), (2048 * (512 + 64 + 24), 1));
}

#[test]
fn without_a_line_table_every_persistent_line_goes_to_the_region() {
    let mut bench = Bench::<Hoop>::new(HoopSpec { line_table: false, search_cycles: 10, ..small() }, 1);
    bench.stored(0, 1, (1, 0), 1);
    bench.collected();
    assert_eq!(words(&bench.pmem, &[(1, 0)]), [1], "the line is whole at home");
    assert_eq!(bench.evict(1, COMMITTED, 1), Evict::Drop, "no table is searched");
    assert_eq!(bench.counter("hoop.evicted_lines"), 1.0);
    let (words, tag) = bench.miss(1);
    assert_eq!((words[0], tag), (1, COMMITTED), "nothing says that it is home");
    assert_eq!([1, 2].map(|n| bench.evict(n, COMMITTED, 1)), [Evict::Drop; 2]);
    // The mapping table is full of lines that are home, and there is nothing to collect.
    assert_eq!(bench.evict(3, COMMITTED, 3), Evict::After(Wait::Cycles(1)));
    assert_eq!(bench.evict(3, COMMITTED, 3), Evict::Drop);
    // An entry of a line with words that are not home stays.
    bench.begin(0, 2);
    let tag = bench.put_word(0, 2, (4, 0), 4);
    assert_eq!(bench.evict(4, tag, 4), Evict::Drop);
    assert_eq!(bench.evict(5, COMMITTED, 5), Evict::After(Wait::Cycles(1)));
    assert_eq!(bench.evict(5, COMMITTED, 5), Evict::Drop);
    assert_eq!(bench.miss(4).0[0], 4);
    bench.save_and_load();
}

#[test]
fn without_a_line_table_a_line_without_words_may_abort_a_transaction() {
    let mut bench = Bench::<Hoop>::new(HoopSpec { line_table: false, ..small() }, 1);
    bench.begin(0, 1);
    let tags = [1, 2].map(|n| bench.put_word(0, 1, (n, 0), n));
    assert_eq!([1, 2].map(|n| bench.evict(n, tags[0], n)), [Evict::Drop; 2]);
    assert_eq!(bench.evict(3, COMMITTED, 3), Evict::Abort(TxId(1), AbortCause::Capacity));
    bench.abort(0, 1);
    assert_eq!(bench.evict(3, COMMITTED, 3), Evict::Drop);
}

#[test]
fn a_commit_may_wait_for_the_medium() {
    let spec = HoopSpec { acknowledged_by: AcknowledgedBy::Medium, oop_buffer_bytes: 256, ..roomy() };
    let mut bench = Bench::<Hoop>::new(spec, 1);
    bench.begin(0, 1);
    bench.put_word(0, 1, (0, 0), 7);
    let commit = |bench: &mut Bench<Hoop>| bench.call(0, |d, cx, out| d.tx_commit(cx, TxId(1), out));
    for (writes, durable) in [(2, 0), (1, 7)] {
        let Gate::Retry(Wait::Acked(token)) = commit(&mut bench) else { panic!("it waits") };
        assert!(token.is_when_written());
        (0..writes).for_each(|_| assert!(bench.deliver()));
        assert_eq!(commit(&mut bench), Gate::Retry(Wait::Acked(token)), "the queue has it, the medium does not");
        assert_eq!(bench.after_crash(&[(0, 0)]), [durable], "what the queue has is durable");
        while bench.outstanding(token) {
            assert!(bench.write_out());
        }
    }
    assert_eq!(commit(&mut bench), Gate::Done);
    assert_eq!(bench.commits, 1);
}

#[test]
fn a_commit_may_wait_until_its_words_are_home() {
    let spec = HoopSpec { commit: CommitEnd::Migrated, ..roomy() };
    let mut bench = Bench::<Hoop>::new(spec, 1);
    bench.begin(0, 1);
    for i in 0..9 {
        bench.put_word(0, 1, (i / 8, i % 8), 10 + i);
    }
    let mut left = 100;
    while let Gate::Retry(_) = bench.call(0, |d, cx, out| d.tx_commit(cx, TxId(1), out)) {
        if !bench.deliver() {
            bench.call(0, |d, cx, out| d.woken(cx, HOMES, out));
        }
        left -= 1;
        assert!(left > 0, "it waits for nothing that comes");
    }
    assert_eq!(words(&bench.pmem, &[(0, 0), (0, 7), (1, 0)]), [10, 17, 18]);
    assert_eq!(["collections", "collected_transactions"].map(|n| bench.counter(&format!("hoop.{n}"))), [1.0, 1.0]);
}

#[test]
fn words_may_take_the_path_to_the_buffer() {
    let spec = HoopSpec { words: Words::Sent, oop_buffer_bytes: 384, ..roomy() };
    let mut bench = Bench::<Hoop>::new(spec, 1);
    bench.begin(0, 1);
    for i in 0..9 {
        bench.put_word(0, 1, (i / 8, i % 8), 10 + i);
    }
    assert_eq!(bench.counter("hoop.slices"), 0.0, "eight words are a slice, which waits for them");
    assert_eq!(bench.miss(0).0[7], 17, "a miss finds what is on the way");
    (0..7).for_each(|_| assert!(bench.deliver_message()));
    assert_eq!(bench.counter("hoop.slices"), 0.0);
    assert!(bench.deliver_message());
    assert_eq!(bench.counter("hoop.slices"), 1.0);
    let commit = |bench: &mut Bench<Hoop>| bench.call(0, |d, cx, out| d.tx_commit(cx, TxId(1), out));
    assert!(matches!(commit(&mut bench), Gate::Retry(Wait::Signal(_))), "the last word is on the way");
    bench.save_and_load();
    assert!(bench.deliver_message());
    assert!(matches!(commit(&mut bench), Gate::Retry(Wait::Acked(_))), "its slice is in flight");
    bench.commit(0, 1);
    assert_eq!(bench.after_crash(&[(0, 0), (0, 7), (1, 0)]), [10, 17, 18]);
    // Words of an aborted transaction come to nothing.
    bench.begin(0, 2);
    bench.put_word(0, 2, (0, 0), 99);
    bench.abort(0, 2);
    assert!(bench.deliver_message());
    assert_eq!(bench.after_crash(&[(0, 0)]), [10]);
}
