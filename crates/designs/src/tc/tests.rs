//! TC on several cores, hook by hook, and with random runs.

mod random;

use super::spec::TcSpec;
use super::{Commit, Order, SHARED, Tc, planted};
use crate::testing::{Bench, line, word};
use durasim_contract::{
    AbortCause, Action, Actions, ActiveFault, CommitRule, Ctx, Evict, Fill, Gate, LineTag, Token, Wait,
};
use durasim_types::{CoreId, Pages, TxId};

/// Entries are issued at their commit.
fn at_once() -> TcSpec {
    TcSpec { latency_read_cycles: 0, latency_write_cycles: 0, ..TcSpec::default() }
}

fn small(entries: u32) -> TcSpec {
    TcSpec { entries, copies_in_flight: 2, shadow_lines: 8, ..at_once() }
}

fn words(pmem: &Pages, places: &[(u64, u64)]) -> Vec<u64> {
    places.iter().map(|&(line, index)| pmem.read_u64(word(line, index))).collect()
}

/// A store of a transaction to a line that no cache has.
fn put(bench: &mut Bench<Tc>, core: u16, tx: u64, place: (u64, u64), data: u64) -> LineTag {
    let mut tag = LineTag::NONE;
    bench.store(core, word(place.0, place.1), data, Some(tx), &mut tag);
    tag
}

impl Bench<Tc> {
    /// The words of a line as a miss would bring it, and its tag.
    fn miss(&mut self, number: u64) -> ([u64; 8], LineTag) {
        let mut data = self.newest(line(number));
        let mut tag = LineTag::NONE;
        match self.fill(0, number, None) {
            Fill::Home { .. } => {}
            Fill::Gather { gather, tag: filled, .. } => {
                tag = filled;
                let overlay = gather.overlay.expect("entries are laid over");
                (0..64).filter(|i| overlay.mask >> i & 1 == 1).for_each(|i| data[i] = overlay.data[i]);
            }
            other => panic!("{other:?}"),
        }
        let word = |i: usize| u64::from_le_bytes(data[8 * i..8 * i + 8].try_into().unwrap());
        (std::array::from_fn(word), tag)
    }
}

#[test]
fn a_store_waits_for_what_another_core_has_committed_on_its_line() {
    // Core 0 recovers first: without the wait its newer word would come back as the older one of core 1.
    let mut bench = Bench::<Tc>::new(small(8), 2);
    bench.begin(1, 1);
    let mut tag = put(&mut bench, 1, 1, (0, 0), 1);
    bench.commit(1, 1);
    bench.begin(0, 2);
    let gate = bench.offer(0, word(0, 0), 2, Some(2), &mut tag);
    assert!(matches!(gate, Gate::Retry(Wait::Acked(_))), "{gate:?}");
    assert_eq!(bench.offer(0, word(1, 0), 2, Some(2), &mut LineTag(0)), Gate::Done, "another line is free");
    assert_eq!(words(&bench.recovered(&[], false), &[(0, 0)]), [1]);
    bench.deliver_all();
    assert_eq!(bench.offer(0, word(0, 0), 2, Some(2), &mut tag), Gate::Done);
    bench.commit(0, 2);
    assert_eq!(words(&bench.recovered(&[], false), &[(0, 0)]), [2]);
    assert_eq!(bench.counter("tc.order_waits"), 1.0);
}

#[test]
fn a_plain_store_waits_too_and_goes_through_its_own_cores_cache() {
    let mut bench = Bench::<Tc>::new(small(8), 2);
    bench.begin(1, 1);
    let mut tag = put(&mut bench, 1, 1, (0, 0), 1);
    bench.commit(1, 1);
    assert!(matches!(bench.offer(0, word(0, 0), 2, None, &mut tag), Gate::Retry(_)));
    bench.deliver_all();
    assert_eq!(bench.offer(0, word(0, 0), 2, None, &mut tag), Gate::Done);
    assert_eq!(words(&bench.recovered(&[], false), &[(0, 0)]), [2], "committed at once");
    assert!(matches!(bench.offer(1, word(0, 0), 3, None, &mut tag), Gate::Retry(_)), "core 1 waits for core 0 now");
    bench.deliver_all();
    assert_eq!(words(&bench.pmem, &[(0, 0)]), [2]);
}

#[test]
fn a_core_does_not_wait_for_itself() {
    let mut bench = Bench::<Tc>::new(small(8), 2);
    for tx in 1..4 {
        bench.begin(0, tx);
        assert_eq!(bench.offer(0, word(0, 0), tx, Some(tx), &mut LineTag(0)), Gate::Done);
        bench.commit(0, tx);
    }
    bench.deliver_all();
    assert_eq!(words(&bench.pmem, &[(0, 0)]), [3]);
}

#[test]
fn false_sharing_blocks_no_transaction() {
    let mut bench = Bench::<Tc>::new(small(8), 2);
    bench.begin(0, 1);
    bench.begin(1, 2);
    let mut tag = put(&mut bench, 0, 1, (0, 0), 1);
    assert_eq!(bench.offer(1, word(0, 1), 2, Some(2), &mut tag), Gate::Done);
    assert_eq!(tag, SHARED);
    assert_eq!(bench.offer(0, word(0, 2), 1, Some(1), &mut tag), Gate::Done);
    assert_eq!(bench.miss(0), ([1, 2, 1, 0, 0, 0, 0, 0], SHARED));
    bench.commit(1, 2);
    let places = [(0, 0), (0, 1), (0, 2)];
    assert_eq!(words(&bench.recovered(&[], false), &places), [0, 2, 0]);
    bench.deliver_all();
    assert_eq!(words(&bench.pmem, &places), [0, 2, 0]);
    bench.store(0, word(0, 2), 3, Some(1), &mut tag);
    assert_eq!(tag, LineTag(1), "the line is one transaction's again");
    bench.commit(0, 1);
    assert_eq!(words(&bench.recovered(&[], false), &places), [1, 2, 3]);
}

/// The tag of a line names its last writer; an abort has to reach the lines of the others too.
#[test]
fn an_abort_takes_its_words_out_of_shared_lines() {
    let mut bench = Bench::<Tc>::new(small(8), 2);
    bench.begin(0, 1);
    bench.begin(1, 2);
    let mut tag = put(&mut bench, 0, 1, (0, 0), 1);
    bench.store(1, word(0, 1), 2, Some(2), &mut tag);
    assert!(bench.design.belongs_to(tag, TxId(1)) && bench.design.belongs_to(tag, TxId(2)));
    bench.abort(0, 1);
    assert_eq!(bench.invalidated, [TxId(1)]);
    assert_eq!(bench.miss(0), ([0, 2, 0, 0, 0, 0, 0, 0], LineTag(2)));
    bench.commit(1, 2);
    bench.deliver_all();
    assert_eq!(words(&bench.pmem, &[(0, 0), (0, 1)]), [0, 2]);
}

/// Two open transactions write the same word, which programs must not do: the last to commit wins, and at no point does
/// the image go back.
#[test]
fn a_race_ends_with_the_last_commit() {
    for (first, second) in [((0, 1), (1, 2)), ((1, 2), (0, 1))] {
        let mut bench = Bench::<Tc>::new(small(8), 2);
        bench.begin(0, 1);
        bench.begin(1, 2);
        let mut tag = put(&mut bench, 0, 1, (0, 0), 1);
        bench.store(1, word(0, 0), 2, Some(2), &mut tag);
        bench.commit(first.0, first.1);
        assert_eq!(words(&bench.recovered(&[], false), &[(0, 0)]), [first.1]);
        let gate = bench.call(second.0, |design, cx, out| design.tx_commit(cx, TxId(second.1), out));
        assert!(matches!(gate, Gate::Retry(_)), "{gate:?}");
        bench.deliver_all();
        bench.commit(second.0, second.1);
        assert_eq!(words(&bench.recovered(&[], false), &[(0, 0)]), [second.1]);
        bench.deliver_all();
        assert_eq!(words(&bench.pmem, &[(0, 0)]), [second.1]);
    }
}

#[test]
fn a_transaction_that_changes_cores_commits_and_aborts_as_one() {
    let mut bench = Bench::<Tc>::new(small(8), 2);
    let places = [(0, 0), (1, 0)];
    bench.begin(1, 1);
    let mut tag = put(&mut bench, 1, 1, (0, 0), 1);
    // Its thread comes back on core 0 and continues with the same line.
    bench.store(0, word(0, 0), 11, Some(1), &mut tag);
    put(&mut bench, 0, 1, (1, 0), 12);
    assert_eq!(words(&bench.recovered(&[], false), &places), [0, 0]);
    bench.save_and_load();
    bench.commit(0, 1);
    assert_eq!(words(&bench.recovered(&[], false), &places), [11, 12]);
    bench.deliver_all();
    assert_eq!(words(&bench.pmem, &places), [11, 12]);

    bench.begin(1, 2);
    put(&mut bench, 1, 2, (0, 0), 21);
    put(&mut bench, 0, 2, (1, 0), 22);
    bench.abort(0, 2);
    assert_eq!(bench.miss(0).0[0], 11);
    assert_eq!(bench.miss(1).0[0], 12);
}

/// The fall-back path brings words home before their commit. Undoing them leaves the words that others have committed
/// on the same line meanwhile.
#[test]
fn undoing_an_overflow_restores_words_not_lines() {
    let mut bench = Bench::<Tc>::new(small(4), 2);
    bench.begin(1, 7);
    put(&mut bench, 1, 7, (0, 0), 70);
    bench.commit(1, 7);
    bench.deliver_all();
    bench.begin(0, 1);
    let mut tag = put(&mut bench, 0, 1, (0, 0), 1);
    for number in 1..7 {
        put(&mut bench, 0, 1, (number, 0), 1);
    }
    bench.deliver_all();
    assert_eq!(words(&bench.pmem, &[(0, 0)]), [1], "the fall-back path has brought it home");
    assert!(bench.counter("tc.overflows") == 1.0 && bench.counter("tc.shadowed_lines") >= 3.0);
    bench.begin(1, 2);
    bench.store(1, word(0, 1), 2, Some(2), &mut tag);
    bench.commit(1, 2);
    bench.deliver_all();
    let places = [(0, 0), (0, 1), (1, 0)];
    assert_eq!(words(&bench.recovered(&[], false), &places), [70, 2, 0]);
    bench.refuses_other_snapshots();
    bench.save_and_load();
    bench.abort(0, 1);
    bench.deliver_all();
    assert_eq!(words(&bench.pmem, &places), [70, 2, 0]);
    assert_eq!(words(&bench.recovered(&[], false), &places), [70, 2, 0]);
}

/// Two threads take turns on core 0: the transaction cache is full of the one that waits.
#[test]
fn a_waiting_transaction_aborts_to_the_fall_back_path() {
    let mut bench = Bench::<Tc>::new(small(4), 2);
    bench.begin(0, 1);
    for number in 0..4 {
        put(&mut bench, 0, 1, (number, 0), 1);
    }
    bench.begin(0, 2);
    for number in 4..8 {
        put(&mut bench, 0, 2, (number, 0), 2);
    }
    // A plain store to a persistent line finds room too.
    bench.store(0, word(9, 0), 9, None, &mut LineTag(3));
    bench.commit(0, 2);
    let places: Vec<(u64, u64)> = (0..10).map(|number| (number, 0)).collect();
    assert_eq!(words(&bench.recovered(&[], false), &places), [0, 0, 0, 0, 2, 2, 2, 2, 0, 9]);
    bench.abort(0, 1);
    bench.deliver_all();
    assert_eq!(words(&bench.pmem, &places), [0, 0, 0, 0, 2, 2, 2, 2, 0, 9]);
}

#[test]
fn a_full_shadow_area_aborts_the_requester_or_the_blocker() {
    let mut bench = Bench::<Tc>::new(TcSpec { shadow_lines: 2, ..small(4) }, 2);
    bench.begin(0, 1);
    for number in 0..6 {
        put(&mut bench, 0, 1, (number, 0), 1);
    }
    bench.deliver_all();
    bench.begin(0, 2);
    let mut tag = LineTag(9);
    let capacity = |tx| Gate::Abort(TxId(tx), AbortCause::Capacity);
    assert_eq!(bench.offer(0, word(9, 0), 5, Some(2), &mut tag), capacity(2));
    assert_eq!(bench.offer(0, word(9, 0), 5, None, &mut tag), capacity(1), "a plain store has nothing to abort");
    assert_eq!(bench.offer(1, word(9, 0), 5, None, &mut tag), Gate::Done, "the other core's cache has room");
    bench.deliver_all();
    bench.abort(0, 1);
    assert_eq!(bench.offer(0, word(9, 0), 6, None, &mut tag), Gate::Done);
    bench.deliver_all();
    let places: Vec<(u64, u64)> = (0..10).map(|number| (number, 0)).collect();
    assert_eq!(words(&bench.pmem, &places), [0, 0, 0, 0, 0, 0, 0, 0, 0, 6]);
}

/// The first identifiers of a core; a transaction that begins.
fn begins(bench: &mut Bench<Tc>, core: u16, tx: u64) -> Gate {
    bench.call(core, |design, cx, out| design.tx_begin(cx, TxId(tx), out))
}

/// Three identifiers, two in use: the third wraps around, and only when its entries are at their home addresses.
#[test]
fn an_identifier_wraps_around_past_those_in_use() {
    let mut bench = Bench::<Tc>::new(TcSpec { tx_id_bits: 2, ..small(8) }, 2);
    bench.begin(0, 1);
    bench.begin(0, 2);
    put(&mut bench, 0, 1, (0, 0), 1);
    put(&mut bench, 0, 2, (1, 0), 2);
    let mut marks = Vec::new();
    bench.design.marks(&mut |mark| marks.push(mark));
    assert!(!marks.contains(&"identifier_wrapped_around"), "{marks:?}");
    for tx in 3..6 {
        bench.begin(0, tx);
        put(&mut bench, 0, tx, (tx, 0), tx);
        bench.commit(0, tx);
        let waits = begins(&mut bench, 0, tx + 1);
        assert!(matches!(waits, Gate::Retry(Wait::Acked(_))), "its entry is in flight: {waits:?}");
        assert_eq!(begins(&mut bench, 1, 100 + tx), Gate::Done, "the other core has its own");
        bench.commit(1, 100 + tx);
        bench.deliver_all();
    }
    bench.begin(0, 6);
    bench.design.marks(&mut |mark| marks.push(mark));
    assert!(marks.contains(&"identifier_wrapped_around"), "{marks:?}");
    assert_eq!(begins(&mut bench, 0, 7), Gate::Abort(TxId(7), AbortCause::Conflict), "all are borne");
    bench.abort(0, 7);
    assert!(bench.invalidated.is_empty(), "it had none");
    bench.save_and_load();
    // A commit matches entries of its own identifier alone.
    bench.commit(0, 1);
    assert_eq!(words(&bench.recovered(&[], false), &[(0, 0), (1, 0)]), [1, 0]);
    bench.deliver_all();
    assert_eq!(begins(&mut bench, 0, 7), Gate::Done);
    assert!(bench.counter("tc.identifier_waits") == 4.0);
}

#[test]
fn six_bits_distinguish_63_transactions() {
    let mut bench = Bench::<Tc>::new(small(64), 1);
    for tx in 1..64 {
        bench.begin(0, tx);
    }
    assert!(matches!(begins(&mut bench, 0, 64), Gate::Abort(..)));
}

/// Section 4.1: "the TC tail will not move or point to the next entry" before the acknowledgement.
#[test]
fn an_entry_in_the_middle_that_is_available_makes_no_room() {
    let mut bench = Bench::<Tc>::new(TcSpec { overflow_percent: 100, ..small(3) }, 1);
    bench.begin(0, 1);
    put(&mut bench, 0, 1, (0, 0), 1);
    bench.begin(0, 2);
    put(&mut bench, 0, 2, (1, 0), 2);
    put(&mut bench, 0, 2, (2, 0), 2);
    bench.commit(0, 2);
    bench.deliver_all();
    // The entries of the second are available, and the first one's is at the tail: it has to leave by the fall-back path.
    bench.begin(0, 3);
    let full = bench.offer(0, word(3, 0), 3, Some(3), &mut LineTag(0));
    assert!(matches!(full, Gate::Retry(Wait::Acked(_))), "{full:?}");
    bench.deliver_all();
    assert_eq!(bench.offer(0, word(3, 0), 3, Some(3), &mut LineTag(0)), Gate::Done);
    assert_eq!((bench.counter("tc.full_stalls"), bench.counter("tc.overflows")), (1.0, 1.0));
    assert_eq!(words(&bench.recovered(&[], false), &[(0, 0), (1, 0), (2, 0)]), [0, 2, 2]);
}

/// Section 4.1 frees the matching entry nearest the tail. The younger of two entries of a line was issued first here, for
/// its transaction has committed first.
#[test]
fn the_published_rule_frees_the_wrong_entry_where_threads_take_turns() {
    for (fault, kept) in [(ActiveFault::NONE, 1), (planted::ACK_FREES_NEAREST_TAIL.fault(), 0)] {
        let mut bench = Bench::<Tc>::new(small(8), 1);
        bench.geometry.planted = fault;
        bench.rebuild();
        bench.begin(0, 1);
        put(&mut bench, 0, 1, (0, 0), 1);
        bench.begin(0, 2);
        put(&mut bench, 0, 2, (0, 1), 2);
        bench.commit(0, 2);
        bench.commit(0, 1);
        assert!(bench.deliver(), "the write of the second is acknowledged");
        assert_eq!(words(&bench.recovered(&[], false), &[(0, 0), (0, 1)]), [kept, 2]);
    }
}

/// Acknowledgements of one line may overtake each other in flight. That of the third write frees the first entry; the
/// one of the first write, which comes next, has to free the second and not the third.
#[test]
fn acknowledgements_that_overtake_each_other_free_entries_in_the_order_of_issue() {
    for (fault, kept) in [(ActiveFault::NONE, 3), (planted::ACK_SWAPS_ENTRIES.fault(), 2)] {
        let mut bench = Bench::<Tc>::new(small(8), 1);
        bench.geometry.planted = fault;
        bench.rebuild();
        for tx in 1..4 {
            bench.begin(0, tx);
            put(&mut bench, 0, tx, (0, 0), tx);
            bench.commit(0, tx);
        }
        // The media has all three before the first message arrives.
        bench.pmem.write(word(0, 0), &3u64.to_le_bytes());
        let acknowledge = |bench: &mut Bench<Tc>, token| {
            bench.call(0, |design, cx, out| design.acked(cx, Token(token), word(0, 0), out));
        };
        acknowledge(&mut bench, 3);
        acknowledge(&mut bench, 1);
        assert_eq!(words(&bench.recovered(&[], false), &[(0, 0)]), [kept]);
        acknowledge(&mut bench, 2);
        assert_eq!(bench.crashed(&[], false).structures["tc.core0"].len(), 8, "all entries are free");
    }
}

/// A commit is durable at once; its entries are issued when the array has been written and each of them read. The array
/// is busy with the store when the commit comes, and its read port with the first entry when the second one's turn is.
#[test]
fn a_commit_takes_its_turn_at_the_array_and_so_do_the_reads_of_its_entries() {
    for (pipelined, written, issued) in [(true, 2 + 50, [2 + 50 + 40, 3 + 50 + 40]), (false, 150, [190, 230])] {
        let latencies = TcSpec { latency_read_cycles: 40, latency_write_cycles: 50, pipelined, ..small(4) };
        for (commit, gate) in [
            (Commit::Early, Gate::Done),
            (Commit::Accepted, Gate::After(Wait::Cycles(written))),
            (Commit::Acknowledged, Gate::Retry(Wait::Cycles(1))),
        ] {
            let mut bench = Bench::<Tc>::new(TcSpec { commit, ..latencies.clone() }, 2);
            bench.begin(0, 1);
            let mut tag = put(&mut bench, 0, 1, (0, 0), 1);
            put(&mut bench, 0, 1, (1, 0), 1);
            assert_eq!(bench.call(0, |design, cx, out| design.tx_commit(cx, TxId(1), out)), gate);
            assert_eq!(bench.design.commit_rule(), CommitRule::Early);
            assert_eq!(words(&bench.recovered(&[], false), &[(0, 0), (1, 0)]), [1, 1]);
            assert!(!bench.deliver(), "nothing is issued yet");
            bench.begin(1, 2);
            assert_eq!(bench.offer(1, word(0, 0), 2, Some(2), &mut tag), Gate::Retry(Wait::Cycles(issued[0])));
            let at = |cycle| Ctx { core: CoreId(0), thread: 0, cycle, instructions: 0 };
            for (cycle, count) in [(issued[0] - 1, 0), (issued[0], 1), (issued[1] - 1, 0), (issued[1], 1)] {
                let mut out = Actions::default();
                bench.design.woken(&at(cycle), 0, &mut out);
                let appends = out.as_slice().iter().filter(|action| matches!(action, Action::Append { .. }));
                assert_eq!(appends.count(), count, "cycle {cycle}");
            }
        }
    }
}

#[test]
fn a_commit_that_waits_for_the_nvram_ends_when_all_its_entries_are_home() {
    let mut bench = Bench::<Tc>::new(TcSpec { commit: Commit::Acknowledged, ..small(8) }, 1);
    bench.begin(0, 1);
    put(&mut bench, 0, 1, (0, 0), 1);
    put(&mut bench, 0, 1, (1, 0), 2);
    let ask = |bench: &mut Bench<Tc>| bench.call(0, |design, cx, out| design.tx_commit(cx, TxId(1), out));
    assert_eq!(ask(&mut bench), Gate::Retry(Wait::Cycles(1)));
    for _ in 0..2 {
        assert!(matches!(ask(&mut bench), Gate::Retry(Wait::Acked(_))));
        assert!(bench.deliver());
    }
    assert_eq!(ask(&mut bench), Gate::Done);
    assert_eq!(words(&bench.pmem, &[(0, 0), (1, 0)]), [1, 2]);
}

#[test]
fn a_miss_reads_the_entries_of_its_line_one_after_the_other() {
    for (pipelined, cycles) in [(true, 2 + 40), (false, 3 * 40)] {
        let spec = TcSpec { latency_read_cycles: 40, pipelined, ..small(8) };
        let mut bench = Bench::<Tc>::new(spec, 1);
        bench.begin(0, 1);
        for word in 0..3 {
            put(&mut bench, 0, 1, (0, word), 1);
        }
        let Fill::Gather { search_cycles, .. } = bench.fill(0, 0, None) else { panic!("the entries are there") };
        assert_eq!(search_cycles, cycles);
        let Fill::Home { search_cycles, .. } = bench.fill(0, 5, None) else { panic!("nothing is there") };
        assert_eq!(search_cycles, 40, "a look at the tags");
    }
}

/// Two cores write other bytes of one line.
#[test]
fn a_store_waits_for_committed_entries_of_its_line_or_of_its_bytes() {
    for (order, waits) in [(Order::Line, true), (Order::Bytes, false)] {
        let mut bench = Bench::<Tc>::new(TcSpec { order, latency_write_cycles: 50, ..small(8) }, 2);
        bench.begin(0, 1);
        let mut tag = put(&mut bench, 0, 1, (0, 0), 1);
        bench.commit(0, 1);
        bench.begin(1, 2);
        let other = bench.offer(1, word(0, 1), 2, Some(2), &mut tag);
        assert_eq!(matches!(other, Gate::Retry(_)), waits, "{order:?}");
        assert!(matches!(bench.offer(1, word(0, 0), 2, Some(2), &mut tag), Gate::Retry(_)));
    }
}

/// Stores to a few lines fill the cache again and again: each line is written home once for each time that it is almost
/// full.
#[test]
fn the_fall_back_path_gathers_the_entries_of_a_line() {
    let mut bench = Bench::<Tc>::new(TcSpec { shadow_lines: 8, copies_in_flight: 1, ..small(16) }, 1);
    bench.begin(0, 1);
    for number in 0..64 {
        bench.store(0, word(number % 2, number / 2 % 8), number, Some(1), &mut LineTag(0));
    }
    bench.commit(0, 1);
    bench.deliver_all();
    let expected: Vec<u64> = (0..16).map(|place| 48 + place).collect();
    let places: Vec<(u64, u64)> = (0..16).map(|place| (place % 2, place / 2)).collect();
    assert_eq!(words(&bench.pmem, &places), expected);
    let writes = bench.counter("tc.home_writes");
    assert!(writes < 40.0, "{writes} writes for 64 stores");
}

/// A line with the flag no longer has a way to its home address: all further stores to it, and earlier ones, take the
/// side path.
#[test]
fn mixed_lines_lose_nothing_when_they_are_dropped() {
    let mut bench = Bench::<Tc>::new(small(8), 1);
    let mut tag = LineTag::NONE;
    assert_eq!(bench.offer(0, word(0, 1), 5, None, &mut tag), Gate::Done);
    assert_eq!(tag, LineTag::NONE, "V: the caches alone");
    assert!(matches!(bench.evict(0, tag, 0), Evict::Proceed), "and home from there");
    bench.begin(0, 1);
    bench.cleaned.clear();
    put(&mut bench, 0, 1, (0, 0), 1);
    assert_eq!(bench.cleaned.len(), 1, "the flag changes from V to P: what was dirty goes home first");
    bench.store(0, word(0, 0), 2, Some(1), &mut LineTag(1));
    assert_eq!(bench.cleaned.len(), 1, "once");
    bench.commit(0, 1);
    let mut tag = LineTag(1);
    bench.store(0, word(0, 2), 7, None, &mut tag);
    assert_eq!(tag, LineTag(1), "P stays P");
    assert_eq!(bench.evict(0, tag, 0), Evict::Drop);
    assert_eq!(bench.miss(0).0[..3], [2, 0, 7]);
    assert_eq!(words(&bench.recovered(&[], false), &[(0, 0), (0, 2)]), [2, 7]);
    bench.deliver_all();
    assert_eq!(words(&bench.pmem, &[(0, 0), (0, 2)]), [2, 7]);
    assert_eq!(bench.counter("tc.routed_stores"), 1.0);
}

/// The fall-back path never fails as long as the shadow area has room: each line takes one slot of it.
#[test]
fn a_transaction_of_many_lines_commits_and_aborts() {
    let spec = TcSpec { shadow_lines: TcSpec::default().shadow_lines, copies_in_flight: 4, ..small(64) };
    let mut bench = Bench::<Tc>::new(spec, 1);
    for commits in [true, false] {
        let tx = if commits { 1 } else { 2 };
        bench.begin(0, tx);
        for number in 0..4_000 {
            let address = bench.geometry.pmem_base.plus(64 * number);
            bench.store(0, address, tx, Some(tx), &mut LineTag(0));
        }
        if commits {
            bench.commit(0, tx)
        } else {
            bench.abort(0, tx)
        }
        bench.deliver_all();
        let found = (0..4_000).filter(|n| bench.pmem.read_u64(bench.geometry.pmem_base.plus(64 * n)) == 1).count();
        assert_eq!(found, 4_000);
    }
    assert_eq!(bench.counter("tc.overflows"), 2.0);
    assert!(bench.counter("tc.shadowed_lines") > 2.0 * (4_000.0 - 64.0));
}
