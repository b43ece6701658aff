//! Unit tests of the byte oracle.

use super::*;

const BASE: PhysAddr = PhysAddr(0x1000);

fn oracle() -> ByteOracle {
    let mut oracle = ByteOracle::new(Pages::new(BASE, 1 << 16));
    oracle.data_range(DataRange { base: BASE, size_bytes: 0x2000 });
    oracle
}

fn word(offset: u64, data: u64) -> Write {
    Write { addr: BASE.plus(offset), len: 8, data }
}

fn image(words: &[(u64, u64)]) -> Pages {
    let mut pages = Pages::new(BASE, 1 << 16);
    words.iter().for_each(|&(offset, data)| pages.write(BASE.plus(offset), &data.to_le_bytes()));
    pages
}

fn run(oracle: &mut ByteOracle, tx: u64, writes: &[(u64, u64)]) {
    oracle.begin(TxId(tx));
    writes.iter().for_each(|&(offset, data)| oracle.store(Some(TxId(tx)), word(offset, data)));
}

fn is_right(oracle: &ByteOracle, words: &[(u64, u64)]) -> bool {
    oracle.judge(&image(words)) == Verdict::Right
}

#[test]
fn a_promise_by_epochs_is_kept_by_the_ends_of_the_last_epochs_alone() {
    let mut o = ByteOracle::of_epochs(Pages::new(BASE, 1 << 16), 1);
    o.data_range(DataRange { base: BASE, size_bytes: 0x2000 });
    let commit = |o: &mut ByteOracle, tx: u64, writes: &[(u64, u64)]| {
        run(o, tx, writes);
        o.committing(TxId(tx));
        o.acknowledged(TxId(tx));
    };
    commit(&mut o, 1, &[(0, 7)]);
    commit(&mut o, 2, &[(64, 8)]);
    assert!(is_right(&o, &[]) && !is_right(&o, &[(0, 7)]) && !is_right(&o, &[(0, 7), (64, 8)]));
    o.epoch_ends();
    o.store(None, word(128, 9));
    assert!(is_right(&o, &[]) && is_right(&o, &[(0, 7), (64, 8)]) && !is_right(&o, &[(0, 7)]));
    assert!(!is_right(&o, &[(0, 7), (64, 8), (128, 9)]), "the epoch has not ended");
    o.epoch_ends();
    assert!(!is_right(&o, &[]), "one further epoch has ended");
    assert!(is_right(&o, &[(0, 7), (64, 8)]) && is_right(&o, &[(0, 7), (64, 8), (128, 9)]));
    assert_eq!(o.lines_in_question(&image(&[(0, 7), (64, 5)])), [BASE.plus(64).line()]);
    assert_eq!(o.allowed(BASE.plus(128).line()).len(), 2);
    let Verdict::Wrong(message) = o.judge(&image(&[(0, 7), (64, 5)])) else { panic!("it is no end of an epoch") };
    assert!(message.contains("0x40") && message.contains("of 2 epochs"), "{message}");
}

#[test]
fn acknowledged_means_kept_and_open_means_unseen() {
    let mut o = oracle();
    run(&mut o, 1, &[(0, 7), (64, 8)]);
    assert!(is_right(&o, &[]) && !is_right(&o, &[(0, 7), (64, 8)]) && !is_right(&o, &[(0, 7)]));
    o.committing(TxId(1));
    assert!(is_right(&o, &[]) && is_right(&o, &[(0, 7), (64, 8)]) && !is_right(&o, &[(0, 7)]));
    o.acknowledged(TxId(1));
    assert!(!is_right(&o, &[]) && is_right(&o, &[(0, 7), (64, 8)]) && !is_right(&o, &[(64, 8)]));
}

#[test]
fn what_a_commit_stores_after_the_image_is_allowed_as_a_whole() {
    let mut o = oracle();
    run(&mut o, 1, &[]);
    o.committing(TxId(1));
    let mut then = o.clone();
    assert!(then.awaits(&o) && !is_right(&then, &[(0, 7), (64, 8)]));
    for write in [word(0, 7), word(64, 8)] {
        o.store(Some(TxId(1)), write);
        then.allow_store_inside_commit(TxId(1), o.last_store(), &write);
        then.allow_store_inside_commit(TxId(2), o.last_store(), &word(128, 9));
    }
    o.acknowledged(TxId(1));
    assert!(!then.awaits(&o));
    assert!(is_right(&then, &[]) && is_right(&then, &[(0, 7), (64, 8)]));
    assert!(!is_right(&then, &[(0, 7)]) && !is_right(&then, &[(128, 9)]));
}

#[test]
fn an_aborted_transaction_is_unseen_and_bytes_outside_the_range_do_not_count() {
    let mut o = oracle();
    run(&mut o, 1, &[(0, 7)]);
    o.aborted(TxId(1));
    assert!(!is_right(&o, &[(0, 7)]) && is_right(&o, &[(0x3000, 9)]));
}

#[test]
fn stores_outside_of_transactions_may_be_old_or_new() {
    let mut o = oracle();
    o.store(None, word(8, 1));
    o.store(None, word(8, 2));
    assert!(is_right(&o, &[]) && is_right(&o, &[(8, 1)]) && is_right(&o, &[(8, 2)]) && !is_right(&o, &[(8, 3)]));
    run(&mut o, 1, &[(8, 4)]);
    o.committing(TxId(1));
    o.acknowledged(TxId(1));
    assert!(is_right(&o, &[(8, 4)]) && !is_right(&o, &[(8, 2)]));
}

#[test]
fn lines_in_question_are_those_of_lost_and_of_torn_transactions() {
    let mut o = oracle();
    run(&mut o, 1, &[(0, 7)]);
    o.committing(TxId(1));
    o.acknowledged(TxId(1));
    run(&mut o, 2, &[(64, 8), (128, 9)]);
    o.committing(TxId(2));
    let lines = |words: &[(u64, u64)]| -> Vec<u64> {
        o.lines_in_question(&image(words)).iter().map(|line| line.base().0 - BASE.0).collect()
    };
    assert!(lines(&[(0, 7)]).is_empty() && lines(&[(0, 7), (64, 8), (128, 9)]).is_empty());
    assert_eq!(lines(&[(64, 8), (128, 9)]), [0]);
    assert_eq!(lines(&[(0, 7), (64, 8)]), [64, 128]);
    let allowed = o.allowed(BASE.plus(64).line());
    assert_eq!(allowed.iter().map(|line| line[0]).collect::<Vec<_>>(), [0, 8]);
}

#[test]
fn any_subset_inside_commit_is_allowed() {
    let mut o = oracle();
    for tx in 1..=2 {
        run(&mut o, tx, &[(64 * tx, tx)]);
        o.committing(TxId(tx));
    }
    for words in [&[][..], &[(64, 1)], &[(128, 2)], &[(64, 1), (128, 2)]] {
        assert!(is_right(&o, words), "{words:?}");
    }
}

#[test]
fn the_message_names_the_place_and_the_culprit() {
    let mut o = oracle();
    run(&mut o, 5, &[(0x40, 0xab)]);
    let Verdict::Wrong(message) = o.judge(&image(&[(0x40, 0xab)])) else { panic!("an open store was seen") };
    assert!(message.contains("0x40") && message.contains("0xab") && message.contains("transaction 5"), "{message}");
}

#[test]
fn the_newest_of_several_writes_counts_in_any_order_of_acknowledgement() {
    let mut o = oracle();
    o.begin(TxId(1));
    run(&mut o, 2, &[(8, 2)]);
    o.committing(TxId(2));
    // The machine has committed 2, whose core does not know yet: 1 gets the line.
    o.store(Some(TxId(1)), word(8, 1));
    o.committing(TxId(1));
    assert!(is_right(&o, &[]) && is_right(&o, &[(8, 2)]) && is_right(&o, &[(8, 1)]));
    let mut other = o.clone();
    o.acknowledged(TxId(2));
    assert!(is_right(&o, &[(8, 2)]) && is_right(&o, &[(8, 1)]) && !is_right(&o, &[]));
    o.acknowledged(TxId(1));
    other.acknowledged(TxId(1));
    assert!(is_right(&other, &[(8, 1)]) && !is_right(&other, &[(8, 2)]));
    other.acknowledged(TxId(2));
    for o in [o, other] {
        assert!(is_right(&o, &[(8, 1)]) && !is_right(&o, &[(8, 2)]) && !is_right(&o, &[]));
    }
}

#[test]
fn a_transaction_that_overwrote_another_brings_it_along() {
    let mut o = oracle();
    run(&mut o, 2, &[(8, 2), (64, 2)]);
    o.committing(TxId(2));
    run(&mut o, 1, &[(8, 1), (128, 1)]);
    o.committing(TxId(1));
    assert!(is_right(&o, &[(8, 2), (64, 2)]) && is_right(&o, &[(8, 1), (64, 2), (128, 1)]));
    assert!(!is_right(&o, &[(8, 1), (128, 1)]) && !is_right(&o, &[(8, 2), (64, 2), (128, 1)]));
}

#[test]
fn a_plain_store_over_a_commit_that_is_not_acknowledged_may_be_lost_alone() {
    let mut o = oracle();
    run(&mut o, 1, &[(8, 1)]);
    o.committing(TxId(1));
    o.store(None, word(8, 2));
    assert!(is_right(&o, &[]) && is_right(&o, &[(8, 1)]) && is_right(&o, &[(8, 2)]));
    o.acknowledged(TxId(1));
    assert!(!is_right(&o, &[]) && is_right(&o, &[(8, 1)]) && is_right(&o, &[(8, 2)]));
    assert!(o.made_durable(BASE.plus(8), 8, o.last_store()));
    assert!(!is_right(&o, &[(8, 1)]) && is_right(&o, &[(8, 2)]));
    assert!(!o.made_durable(BASE.plus(8), 8, o.last_store()), "that was known");
}

#[test]
fn a_durable_store_may_not_be_lost_and_newer_ones_may() {
    let mut o = oracle();
    o.store(None, word(8, 1));
    let first = o.last_store();
    o.store(None, word(8, 2));
    assert!(o.made_durable(BASE.plus(8), 8, first));
    assert!(!is_right(&o, &[]) && is_right(&o, &[(8, 1)]) && is_right(&o, &[(8, 2)]));
}

const ONE: CoreId = CoreId(1);
const TWO: CoreId = CoreId(2);

fn line(offset: u64) -> LineAddr {
    BASE.plus(offset).line()
}

#[test]
fn a_fence_makes_durable_what_its_core_has_cleaned() {
    let mut o = oracle();
    o.store(None, word(8, 1));
    o.fenced(ONE);
    o.cleaned(ONE, line(0));
    o.cleaned(ONE, line(64));
    o.store(None, word(64, 2));
    assert!(is_right(&o, &[]), "no fence has followed");
    o.fenced(TWO);
    assert!(is_right(&o, &[]), "it is the fence of another core");
    o.fenced(ONE);
    assert!(!is_right(&o, &[]) && is_right(&o, &[(8, 1)]), "the clean of the other line came before its store");
    assert!(is_right(&o, &[(8, 1), (64, 2)]));
    o.fenced(ONE);
    assert!(is_right(&o, &[(8, 1)]), "a clean is waited for once");
}

#[test]
fn a_clean_covers_what_any_core_has_stored_before_it_and_nothing_after() {
    let mut o = oracle();
    o.store(None, word(8, 1));
    o.cleaned(ONE, line(0));
    o.store(None, word(8, 2));
    o.cleaned(TWO, line(0));
    o.store(None, word(8, 3));
    let mut other = o.clone();
    o.fenced(ONE);
    assert!(!is_right(&o, &[]) && [1, 2, 3].iter().all(|&value| is_right(&o, &[(8, value)])));
    o.fenced(TWO);
    assert!(!is_right(&o, &[(8, 1)]) && [2, 3].iter().all(|&value| is_right(&o, &[(8, value)])));
    other.fenced(TWO);
    assert!(!is_right(&other, &[(8, 1)]));
    other.fenced(ONE);
    assert!(!is_right(&other, &[(8, 1)]), "an older clean takes nothing back from a promise");
    // Of two cleans of one core the later one counts.
    o.cleaned(ONE, line(0));
    o.store(None, word(8, 4));
    o.cleaned(ONE, line(0));
    o.fenced(ONE);
    assert!(!is_right(&o, &[(8, 3)]) && is_right(&o, &[(8, 4)]));
}

#[test]
fn a_fence_promises_nothing_of_transactions() {
    let mut o = oracle();
    o.store(None, word(8, 1));
    run(&mut o, 1, &[(8, 2), (16, 3)]);
    o.cleaned(ONE, line(0));
    o.fenced(ONE);
    assert!(is_right(&o, &[(8, 1)]), "the store below the transaction is durable");
    assert!(!is_right(&o, &[]) && !is_right(&o, &[(8, 2), (16, 3)]));
    let mut aborted = o.clone();
    aborted.aborted(TxId(1));
    assert!(is_right(&aborted, &[(8, 1)]) && !is_right(&aborted, &[]));
    o.committing(TxId(1));
    assert!(is_right(&o, &[(8, 1)]) && is_right(&o, &[(8, 2), (16, 3)]) && !is_right(&o, &[(8, 2)]));
    o.acknowledged(TxId(1));
    assert!(is_right(&o, &[(8, 2), (16, 3)]) && !is_right(&o, &[(8, 1)]));
}

#[test]
fn a_durable_store_over_an_open_transaction_stays_when_that_commits() {
    let mut o = oracle();
    run(&mut o, 1, &[(8, 1), (16, 1), (24, 1)]);
    // Half of one word of the transaction, and a word that it stores to once more.
    o.store(None, Write { addr: BASE.plus(8), len: 4, data: 7 });
    o.store(None, word(24, 7));
    let mut unfenced = o.clone();
    o.cleaned(ONE, line(0));
    o.fenced(ONE);
    o.store(Some(TxId(1)), word(24, 9));
    for o in [&mut o, &mut unfenced] {
        o.committing(TxId(1));
    }
    assert!(is_right(&o, &[(8, 7), (24, 7)]) && is_right(&o, &[(8, 7), (16, 1), (24, 9)]));
    assert!(!is_right(&o, &[(8, 1), (16, 1), (24, 9)]) && !is_right(&o, &[]));
    assert!(is_right(&unfenced, &[(8, 1), (16, 1), (24, 1)]) && is_right(&unfenced, &[(8, 7), (16, 1), (24, 7)]));
    o.acknowledged(TxId(1));
    assert!(is_right(&o, &[(8, 7), (16, 1), (24, 9)]) && !is_right(&o, &[(8, 1), (16, 1), (24, 9)]));
}

#[test]
fn a_store_in_a_cache_that_survives_is_durable() {
    let mut o = oracle();
    o.store(None, word(8, 1));
    assert!(is_right(&o, &[]));
    o.store_is_durable(None, word(8, 1));
    assert!(!is_right(&o, &[]) && is_right(&o, &[(8, 1)]));
    o.begin(TxId(1));
    o.store(Some(TxId(1)), word(8, 2));
    o.store_is_durable(Some(TxId(1)), word(8, 2));
    assert!(is_right(&o, &[(8, 1)]) && !is_right(&o, &[(8, 2)]));
}

#[test]
fn a_promise_by_epochs_does_not_know_of_fences() {
    let mut o = ByteOracle::of_epochs(Pages::new(BASE, 1 << 16), 1);
    o.data_range(DataRange { base: BASE, size_bytes: 0x2000 });
    o.store(None, word(8, 1));
    o.cleaned(ONE, line(0));
    o.fenced(ONE);
    assert!(is_right(&o, &[]) && !is_right(&o, &[(8, 1)]));
}

#[test]
fn many_commits_that_share_nothing_are_judged_one_by_one() {
    let mut o = oracle();
    for tx in 1..=16 {
        run(&mut o, tx, &[(64 * tx, tx), (64 * tx + 8, tx)]);
        o.committing(TxId(tx));
    }
    assert!(is_right(&o, &[(64, 1), (72, 1), (1024, 16), (1032, 16)]));
    assert!(!is_right(&o, &[(64, 1), (72, 1), (1024, 16)]) && !is_right(&o, &[(2048, 1)]));
}
