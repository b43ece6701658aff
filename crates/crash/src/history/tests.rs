//! Each kind of violation by hand, and random small histories beside all that is allowed, enumerated.

use super::*;
use crate::byte_oracle::Verdict;
use durasim_types::{History, HistoryStep, TxId};

mod enumerated;

/// The reports of a transaction: object, old and new version.
type Reports = &'static [(u64, u64, u64)];

/// A history in the making.
#[derive(Default)]
struct Script {
    recorder: HistoryRecorder,
    initial: Vec<(u64, u64)>,
    epochs: Option<u32>,
}

impl Script {
    fn step(&mut self, step: HistoryStep) -> &mut Self {
        self.recorder.note(0, step);
        self
    }

    /// A transaction, which is an operation of its own, up to its commit.
    fn begin(&mut self, thread: u32, tx: u64, reports: &[(u64, u64, u64)]) -> &mut Self {
        self.step(HistoryStep::OperationBegins { thread, number: tx });
        self.attempt(thread, tx, reports)
    }

    fn attempt(&mut self, thread: u32, tx: u64, reports: &[(u64, u64, u64)]) -> &mut Self {
        self.step(HistoryStep::TransactionBegins { thread, tx: TxId(tx) });
        for &(object, old, new) in reports {
            self.step(HistoryStep::Object { thread, object });
            self.step(HistoryStep::Old { thread, version: old });
            self.step(HistoryStep::New { thread, version: new });
        }
        self
    }

    fn commit(&mut self, tx: u64) -> &mut Self {
        self.step(HistoryStep::Committing(TxId(tx)))
    }

    fn acknowledge(&mut self, tx: u64) -> &mut Self {
        self.step(HistoryStep::Acknowledged(TxId(tx)))
    }

    fn abort(&mut self, tx: u64) -> &mut Self {
        self.step(HistoryStep::Aborted(TxId(tx)))
    }

    fn done(&mut self, thread: u32, tx: u64, reports: Reports) -> &mut Self {
        self.begin(thread, tx, reports).commit(tx).acknowledge(tx)
    }

    fn oracle(&self) -> HistoryOracle {
        HistoryOracle::new(&self.recorder, &Dump::new(self.initial.clone()).unwrap(), self.epochs)
    }

    /// The verdict on a dump now.
    fn verdict(&self, pairs: &[(u64, u64)]) -> Verdict {
        self.oracle().judge(self.recorder.position(), &Dump::new(pairs.to_vec()).unwrap())
    }

    #[track_caller]
    fn right(&mut self, pairs: &[(u64, u64)]) -> &mut Self {
        assert_eq!(self.verdict(pairs), Verdict::Right);
        self
    }

    #[track_caller]
    fn wrong(&mut self, pairs: &[(u64, u64)], because: &str) -> &mut Self {
        match self.verdict(pairs) {
            Verdict::Wrong(what) if what.contains(because) => self,
            other => panic!("{other:?} does not say '{because}'"),
        }
    }
}

#[test]
fn a_reader_requires_those_it_read_from_if_a_later_one_requires_it() {
    let mut script = Script { epochs: Some(1), ..Script::default() };
    // Thread 0 writes object 5; thread 1 reads that, and then writes object 6. Nothing has to be kept yet.
    script.begin(0, 1, &[(5, 0, 1)]).commit(1);
    script.done(1, 2, &[(5, 1, 1)]).begin(1, 3, &[(6, 0, 2)]).commit(3);
    for right in [&[][..], &[(5, 1)], &[(5, 1), (6, 2)]] {
        assert_eq!(script.verdict(right), Verdict::Right, "{right:?}");
    }
    let Verdict::Wrong(what) = script.verdict(&[(6, 2)]) else { panic!("a version that was read may not be missing") };
    assert!(what.contains("whose version it read"), "{what}");
}

#[test]
fn acknowledged_means_kept_and_open_means_unseen() {
    let mut s = Script::default();
    s.begin(0, 1, &[(7, 0, 11), (8, 0, 12)]);
    s.right(&[]).wrong(&[(7, 11), (8, 12)], "commit had not started").wrong(&[(7, 11)], "had not started");
    s.commit(1)
        .right(&[])
        .right(&[(7, 11), (8, 12)])
        .wrong(&[(8, 12)], "operation 1 of thread 0 (transaction 1) survived in part");
    s.acknowledge(1).wrong(&[], "operation 1 of thread 0 (transaction 1) is lost").right(&[(7, 11), (8, 12)]);
    s.wrong(&[(7, 11)], "is lost").wrong(&[(7, 11), (8, 13)], "no transaction wrote");
    s.wrong(&[(7, 11), (8, 12), (9, 1)], "no transaction wrote");
}

#[test]
fn an_old_version_is_lost_work() {
    let mut s = Script { initial: vec![(7, 10), (5, 1)], ..Script::default() };
    s.right(&[(5, 1), (7, 10)]).wrong(&[(7, 10)], "no transaction wrote");
    s.done(0, 1, &[(7, 10, 11)]).done(1, 2, &[(7, 11, 12)]).right(&[(5, 1), (7, 12)]);
    s.wrong(&[(5, 1), (7, 11)], "operation 2 of thread 1").wrong(&[(5, 1), (7, 10)], "operation 1 of thread 0");
    s.wrong(&[(5, 1)], "no transaction wrote");
}

#[test]
fn an_aborted_attempt_is_unseen_and_forgotten() {
    let mut s = Script::default();
    s.begin(0, 1, &[(7, 0, 11)]).abort(1);
    s.right(&[]).wrong(&[(7, 11)], "aborted");
    s.attempt(0, 2, &[(7, 0, 12)]).commit(2).acknowledge(2).right(&[(7, 12)]).wrong(&[(7, 11)], "aborted");
    // It may abort inside its commit: from then on nothing of it may be there.
    s.begin(0, 3, &[(7, 12, 13)]).commit(3).right(&[(7, 12)]).right(&[(7, 13)]);
    s.abort(3).right(&[(7, 12)]).wrong(&[(7, 13)], "aborted");
    s.attempt(0, 4, &[(7, 12, 13)]).right(&[(7, 12)]).commit(4).right(&[(7, 12)]).right(&[(7, 13)]);
    s.acknowledge(4).wrong(&[(7, 12)], "lost").right(&[(7, 13)]);
}

#[test]
fn an_attempt_that_is_about_to_abort_coexists_with_the_transaction_that_overtook_it() {
    let mut s = Script::default();
    s.begin(0, 1, &[(7, 0, 11), (8, 0, 12)]).commit(1).begin(1, 2, &[(7, 0, 13)]).commit(2);
    let both_inside = s.recorder.position();
    s.acknowledge(2);
    let before = s.recorder.position();
    s.abort(1).right(&[(7, 13)]).wrong(&[(7, 13), (8, 12)], "aborted");
    let oracle = s.oracle();
    let is_right = |at, pairs: &[(u64, u64)]| oracle.judge(at, &Dump::new(pairs.to_vec()).unwrap()) == Verdict::Right;
    let (neither, first, second, half) = ([], [(7, 11), (8, 12)], [(7, 13)], [(7, 13), (8, 12)]);
    let allowed = |at| [is_right(at, &neither), is_right(at, &first), is_right(at, &second), is_right(at, &half)];
    assert_eq!(allowed(both_inside), [true, true, true, false]);
    assert_eq!(allowed(before), [false, false, true, false]);
}

#[test]
fn a_surviving_transaction_requires_those_whose_versions_it_read_or_overwrote() {
    let mut s = Script::default();
    s.begin(0, 1, &[(7, 0, 11)]).commit(1).begin(1, 2, &[(7, 11, 11), (8, 0, 12)]).commit(2);
    s.right(&[]).right(&[(7, 11)]).right(&[(7, 11), (8, 12)]);
    s.wrong(&[(8, 12)], "not operation 1 of thread 0 (transaction 1), whose version it read");
    s.acknowledge(2).wrong(&[(8, 12)], "whose version it read").right(&[(7, 11), (8, 12)]);
    let mut s = Script::default();
    s.begin(0, 1, &[(7, 0, 11), (9, 0, 1)]).commit(1).begin(1, 2, &[(7, 11, 12)]).commit(2).acknowledge(2);
    s.right(&[(7, 12), (9, 1)]).wrong(&[(7, 12)], "survived in part").wrong(&[(9, 1)], "is lost");
}

#[test]
fn transactions_of_a_thread_stay_in_order() {
    let mut s = Script::default();
    s.begin(0, 1, &[(7, 0, 11)]).commit(1).begin(0, 2, &[(8, 0, 12)]).commit(2);
    s.right(&[]).right(&[(7, 11)]).right(&[(7, 11), (8, 12)]);
    s.wrong(&[(8, 12)], "which its thread committed before");
}

#[test]
fn a_reader_orders_writers_before_and_after_it() {
    let mut s = Script::default();
    // The second only reads what the first wrote; the third follows it on its thread.
    s.begin(0, 1, &[(7, 0, 11)]).commit(1).begin(1, 2, &[(7, 11, 11)]).commit(2).begin(1, 3, &[(8, 0, 12)]).commit(3);
    s.right(&[]).right(&[(7, 11)]).right(&[(7, 11), (8, 12)]);
    s.wrong(&[(8, 12)], "not operation 1 of thread 0 (transaction 1), whose version it read");
}

#[test]
fn versions_that_recur_are_distinguished_by_the_others() {
    let mut s = Script { initial: vec![(7, 1)], ..Script::default() };
    s.begin(0, 1, &[(7, 1, 0), (9, 0, 1)]).commit(1).begin(0, 2, &[(7, 0, 1), (9, 1, 2)]).commit(2);
    s.right(&[(7, 1)]).right(&[(9, 1)]).right(&[(7, 1), (9, 2)]);
    s.wrong(&[(7, 1), (9, 1)], "survived in part").wrong(&[(9, 2)], "survived in part").wrong(&[], "survived in part");
}

#[test]
fn buffered_durability_loses_the_last_epochs_and_nothing_before_them() {
    let mut s = Script { epochs: Some(1), ..Script::default() };
    s.done(0, 1, &[(7, 0, 11)]).done(1, 2, &[(8, 0, 12)]).done(1, 3, &[(8, 12, 13)]);
    s.right(&[]).right(&[(7, 11)]).right(&[(7, 11), (8, 13)]);
    // The second began after the first was acknowledged.
    s.wrong(&[(8, 12)], "not operation 1 of thread 0 (transaction 1), acknowledged before it began");
    s.step(HistoryStep::EpochEnds).right(&[]);
    s.done(0, 4, &[(7, 11, 14)]).right(&[]).right(&[(7, 11), (8, 13)]).right(&[(7, 14), (8, 13)]);
    s.wrong(&[(7, 14), (8, 12)], "acknowledged before it began");
    s.step(HistoryStep::EpochEnds).right(&[(7, 11), (8, 13)]).right(&[(7, 14), (8, 13)]);
    s.wrong(&[(7, 11), (8, 12)], "operation 3 of thread 1 (transaction 3) is lost").wrong(&[], "is lost");
    s.step(HistoryStep::EpochEnds).wrong(&[(7, 11), (8, 13)], "operation 4").right(&[(7, 14), (8, 13)]);
    // Transactions in progress at the same time may survive one without the other.
    let mut s = Script { epochs: Some(0), ..Script::default() };
    s.begin(0, 1, &[(7, 0, 11)]).begin(1, 2, &[(8, 0, 12)]).commit(1).commit(2).acknowledge(1).acknowledge(2);
    s.right(&[]).right(&[(7, 11)]).right(&[(8, 12)]).right(&[(7, 11), (8, 12)]);
    // An operation begins before its transaction, and before the attempts that abort.
    s.step(HistoryStep::OperationBegins { thread: 2, number: 3 }).attempt(2, 3, &[(9, 0, 5)]).abort(3);
    s.done(0, 4, &[(7, 11, 13)]).attempt(2, 5, &[(9, 0, 5)]).commit(5).acknowledge(5);
    s.right(&[(7, 11), (8, 12), (9, 5)]).right(&[(7, 13), (8, 12), (9, 5)]).right(&[(7, 13), (8, 12)]);
    s.step(HistoryStep::EpochEnds).right(&[(7, 13), (8, 12), (9, 5)]).wrong(&[(7, 11), (8, 12), (9, 5)], "is lost");
}

#[test]
fn a_history_without_an_order_is_wrong_without_a_crash() {
    let mut s = Script::default();
    s.done(0, 1, &[(7, 0, 11)]).done(1, 2, &[(7, 0, 12)]).wrong(&[(7, 12)], "0xb was committed before it");
    let mut s = Script::default();
    s.begin(0, 1, &[(7, 0, 11)]).done(1, 2, &[(7, 11, 11)]).wrong(&[], "which no transaction had committed");
    let mut s = Script::default();
    s.done(0, 1, &[(7, 0, 11)]).done(1, 2, &[(7, 0, 0)]).wrong(&[(7, 11)], "which was acknowledged before it began");
    // Begun before the other was acknowledged, it may have read before the other wrote.
    let mut s = Script::default();
    s.begin(1, 2, &[(7, 0, 0)]).done(0, 1, &[(7, 0, 11)]).commit(2).right(&[(7, 11)]);
    // But two of them may not both have read before the other wrote.
    let mut s = Script::default();
    s.begin(0, 1, &[(7, 0, 0), (8, 0, 11)]).begin(1, 2, &[(7, 0, 12), (8, 0, 0)]).commit(1).acknowledge(1).commit(2);
    s.wrong(&[(8, 11)], "which comes before it");
    let mut s = Script::default();
    s.done(0, 1, &[(7, 0, 11), (7, 12, 13)]).wrong(&[(7, 13)], "left version 0xb of object 0x7 and then found");
    let mut s = Script::default();
    s.step(HistoryStep::Object { thread: 3, object: 1 }).wrong(&[], "thread 3 reports an object outside");
}

/// A search as deep as there are objects in question.
#[test]
fn a_transaction_of_very_many_objects_survives_as_a_whole() {
    let reports: Vec<(u64, u64, u64)> = (0..100_000).map(|object| (object, 0, 1)).collect();
    let all: Vec<(u64, u64)> = reports.iter().map(|&(object, _, new)| (object, new)).collect();
    let mut s = Script::default();
    s.begin(0, 1, &reports).commit(1).right(&[]).right(&all).wrong(&all[1..], "survived in part");
}

#[test]
fn a_transaction_may_report_until_its_commit_starts() {
    let report = |s: &mut Script| {
        s.step(HistoryStep::Object { thread: 0, object: 1 });
        s.step(HistoryStep::Old { thread: 0, version: 0 });
        s.step(HistoryStep::New { thread: 0, version: 5 });
    };
    let mut early = Script::default();
    early.begin(0, 1, &[]).step(HistoryStep::MayCommit(TxId(1)));
    report(&mut early);
    early.right(&[]).right(&[(1, 5)]).commit(1).acknowledge(1).right(&[(1, 5)]).wrong(&[], "is lost");
    let mut late = Script::default();
    late.begin(0, 1, &[]).step(HistoryStep::MayCommit(TxId(1)));
    late.commit(1);
    report(&mut late);
    late.wrong(&[], "after its commit");
}

#[test]
fn a_crash_is_judged_by_what_had_happened_up_to_the_next_event() {
    let recorder = HistoryRecorder::default();
    let mut machine = recorder.for_machine();
    let thread = 0;
    machine.note(3, HistoryStep::TransactionBegins { thread, tx: TxId(1) });
    machine.note(3, HistoryStep::Object { thread, object: 7 });
    machine.note(3, HistoryStep::Old { thread, version: 0 });
    machine.note(3, HistoryStep::New { thread, version: 11 });
    machine.note(5, HistoryStep::Committing(TxId(1)));
    machine.note(8, HistoryStep::Acknowledged(TxId(1)));
    let oracle = HistoryOracle::new(&recorder, &Dump::default(), None);
    let (old, new) = (Dump::default(), Dump::new(vec![(7, 11)]).unwrap());
    let allowed = |event| {
        let at = oracle.position_after(event);
        (oracle.judge(at, &old) == Verdict::Right, oracle.judge(at, &new) == Verdict::Right)
    };
    assert_eq!((allowed(1), allowed(4)), ((true, false), (true, false)));
    assert_eq!((allowed(5), allowed(7), allowed(8)), ((true, true), (true, true), (false, true)));
    assert_eq!((oracle.transactions(), oracle.objects()), (1, 1));
}
