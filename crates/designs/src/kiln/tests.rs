//! Kiln beside a controller without caches: FIFOs, commits, the fall-back path, aborts, power failures, recovery.

use super::area::Area;
use super::spec::{OverflowOf, Versions};
use super::survivors::{LINES, REGISTERS, Survivor, save_lines, save_registers};
use super::{Blocking, Kiln, KilnSpec, recovery};
use crate::testing::{Bench, cached, geometry, line, word};
use durasim_contract::{
    AbortCause, Action, CachedLine, CommitRule, CopyRequest, CrashImage, Design, Evict, Fill, FlushVerdict, Gate,
    Geometry, LevelId, LineTag, Merge, RecoveryCut, RecoveryReport, Wait,
};
use durasim_types::{Domain, Pages, TxId};

fn small(fifo_entries: u32) -> KilnSpec {
    KilnSpec { fifo_entries, copy_area_lines: 8, ..KilnSpec::default() }
}

fn bench(spec: KilnSpec, domain: Domain) -> Bench<Kiln> {
    let mut bench = Bench::<Kiln>::new(spec, 2);
    bench.geometry.domain = domain;
    bench.rebuild();
    bench
}

fn kiln(fifo_entries: u32) -> Bench<Kiln> {
    bench(small(fifo_entries), Domain::NvLlc)
}

/// A store of a transaction to word 0 of a line that has no tag.
fn put(bench: &mut Bench<Kiln>, core: u16, tx: u64, number: u64) -> LineTag {
    let mut tag = LineTag::NONE;
    bench.store(core, word(number, 0), tx, Some(tx), &mut tag);
    tag
}

/// A line of the last level.
fn in_llc(number: u64, tx: u64, data: u64) -> CachedLine {
    CachedLine { level: LevelId::Llc, core: None, ..cached(0, number, LineTag(tx), data) }
}

fn words(pmem: &Pages, numbers: &[u64]) -> Vec<u64> {
    numbers.iter().map(|&number| pmem.read_u64(word(number, 0))).collect()
}

impl Bench<Kiln> {
    /// The image of a power failure with these lines in caches, on the machine of this bench.
    fn cut(&self, lines: &[CachedLine]) -> CrashImage {
        let mut image = CrashImage::new(self.pmem.clone());
        let view =
            durasim_contract::CrashView { domain: self.geometry.domain, geometry: &self.geometry, lines, staged: &[] };
        self.design.crash(&view, &mut durasim_contract::CrashSink::new(&mut image, u64::MAX)).unwrap();
        image
    }

    /// The recovered image of a power failure.
    fn survived(&self, lines: &[CachedLine]) -> Pages {
        let mut image = self.cut(lines);
        Kiln::recover(&self.spec, &self.geometry, &mut image).unwrap();
        image.pmem
    }

    fn try_commit(&mut self, core: u16, tx: u64) -> Gate {
        self.call(core, |design, cx, out| design.tx_commit(cx, TxId(tx), out))
    }

    fn area(&self) -> Area {
        Area::new(&self.spec, &self.geometry)
    }
}

#[test]
fn a_commit_flushes_the_lines_of_its_transaction_in_the_order_of_first_writes() {
    let mut bench = kiln(8);
    bench.begin(0, 1);
    bench.begin(1, 2);
    for number in [5, 3, 4] {
        let mut tag = put(&mut bench, 0, 1, number);
        bench.store(0, word(number, 1), 9, Some(1), &mut tag);
    }
    put(&mut bench, 1, 2, 7);
    // Versions before the transaction are pushed down first; they are not its commit.
    bench.pushed.clear();
    let gate = bench.try_commit(0, 1);
    assert!(matches!(gate, Gate::Retry(Wait::Acked(_))), "{gate:?}");
    assert_eq!(bench.pushed, [line(5), line(3), line(4)]);
    assert!(bench.design.live(LineTag(1)), "what is being flushed is uncommitted");
    bench.save_and_load();
    bench.deliver_all();
    assert_eq!(bench.try_commit(0, 1), Gate::After(Wait::Cycles(50 + 3)), "a cycle for each entry, and the states");
    assert!(!bench.design.live(LineTag(1)) && bench.design.live(LineTag(2)));
    assert_eq!((bench.commits, bench.counter("kiln.flushed_lines")), (1, 3.0));
}

#[test]
fn a_transaction_that_changed_cores_flushes_all_its_lines() {
    let mut bench = kiln(8);
    bench.begin(0, 1);
    put(&mut bench, 0, 1, 0);
    put(&mut bench, 1, 1, 1);
    bench.pushed.clear();
    bench.commit(1, 1);
    assert_eq!(bench.pushed, [line(0), line(1)]);
}

#[test]
fn the_register_makes_the_change_of_many_states_one_step() {
    let mut bench = kiln(8);
    bench.begin(0, 1);
    let numbers = [0, 1, 2, 3];
    for number in numbers {
        put(&mut bench, 0, 1, number);
    }
    let lines = numbers.map(|number| in_llc(number, 1, 10 + number));
    assert_eq!(words(&bench.survived(&lines), &numbers), [0; 4], "uncommitted lines are dropped");
    bench.try_commit(0, 1);
    bench.deliver_all();
    assert_eq!(words(&bench.survived(&lines), &numbers), [0; 4], "they are all there, and uncommitted");
    // The steps of the commit, one by one.
    let core = 0;
    let mut out = durasim_contract::Actions::default();
    let cx = durasim_contract::Ctx { core: durasim_types::CoreId(core), thread: 0, cycle: 0, instructions: 0 };
    bench.design.tx_commit(&cx, TxId(1), &mut out);
    let mut images = Vec::new();
    loop {
        images.push(bench.cut(&lines));
        let resumed = out.as_slice().iter().find_map(|action| match action {
            Action::Resume { id } => Some(*id),
            _ => None,
        });
        let Some(id) = resumed else { break };
        out.clear();
        bench.design.woken(&cx, id, &mut out);
        if !bench.design.live(LineTag(1)) {
            break;
        }
    }
    assert_eq!(images.len(), 2, "before the first state changes, and between them");
    assert_eq!(images[1].structure(LINES).unwrap().len(), 2 * 80, "two lines are still uncommitted");
    for image in images {
        for cut in 1..=image.clone().writes() + 8 {
            let mut again = image.clone();
            again.cut_at(Some(cut));
            let _ = Kiln::recover(&bench.spec, &bench.geometry, &mut again);
            again.cut_at(None);
            Kiln::recover(&bench.spec, &bench.geometry, &mut again).unwrap();
            assert_eq!(words(&again.pmem, &numbers), [10, 11, 12, 13]);
        }
    }
}

#[test]
fn requests_wait_at_the_last_level_while_a_commit_is_flushed() {
    for (blocked_requests, waits) in
        [(Blocking::All, [true, true]), (Blocking::Lines, [true, false]), (Blocking::None, [false, false])]
    {
        let mut bench = bench(KilnSpec { blocked_requests, ..small(8) }, Domain::NvLlc);
        bench.begin(0, 1);
        put(&mut bench, 0, 1, 0);
        let ask = |bench: &mut Bench<Kiln>, number| bench.call(1, |design, cx, _| design.llc_request(cx, line(number)));
        assert_eq!(ask(&mut bench, 0), Gate::Done);
        bench.try_commit(0, 1);
        for (number, waits) in [0, 1].into_iter().zip(waits) {
            let gate = ask(&mut bench, number);
            assert_eq!(matches!(gate, Gate::Retry(Wait::Acked(_))), waits, "{blocked_requests:?}: {gate:?}");
        }
        bench.deliver_all();
        assert_eq!(ask(&mut bench, 0), Gate::Done);
    }
}

#[test]
fn fifos_that_are_almost_full_give_up_their_oldest_lines_by_copy_on_write() {
    // Two FIFOs of four entries: from the eighth line on.
    let mut bench = kiln(4);
    bench.begin(0, 7);
    put(&mut bench, 0, 7, 0);
    bench.commit(0, 7);
    bench.deliver_all();
    bench.pmem.write(word(0, 0), &70u64.to_le_bytes());
    bench.begin(0, 1);
    for number in 0..12 {
        put(&mut bench, 0, 1, number);
    }
    assert!(bench.counter("kiln.fifo_overflows") >= 4.0);
    bench.deliver_all();
    let area = bench.area();
    assert_eq!(bench.pmem.read_u64(area.old_line(0)), 70, "the old line is kept");
    assert_eq!(bench.pmem.read_u64(area.record(0)), word(0, 0).0);
    assert_eq!(bench.pmem.read_u64(area.record(0).plus(8)), 1);
    bench.refuses_other_snapshots();
    bench.save_and_load();
    // The machine has brought the new line home: recovery takes it back.
    bench.pmem.write(word(0, 0), &1u64.to_le_bytes());
    assert_eq!(words(&bench.survived(&[]), &[0]), [70]);
    // It is found with the tag of its transaction.
    assert!(matches!(bench.fill(1, 0, None), Fill::Gather { tag: LineTag(1), dirty: false, .. }));
    assert!(matches!(bench.fill(1, 11, None), Fill::Home { .. }));
    // Written again, it takes an entry again.
    let before = bench.counter("kiln.tracked_lines");
    bench.store(0, word(0, 0), 2, Some(1), &mut LineTag(1));
    assert_eq!(bench.counter("kiln.tracked_lines"), before + 1.0);
    bench.commit(0, 1);
    assert_eq!(words(&bench.survived(&[]), &[0]), [1], "committed by the register while the record is there");
    bench.deliver_all();
    assert_eq!(bench.pmem.read_u64(area.record(0)), 0);
    assert_eq!(words(&bench.survived(&[]), &[0]), [1]);
}

#[test]
fn copies_begin_after_all_committed_versions_that_are_pushed_home() {
    // From the first entry on, two at a time.
    let mut bench = bench(KilnSpec { overflow_percent: 1, copies_in_flight: 2, ..small(3) }, Domain::NvLlc);
    bench.begin(0, 1);
    for number in 0..4 {
        put(&mut bench, 0, 1, number);
    }
    bench.deliver_all();
    // Lines 0 and 1 have left: lines 2 and 3 leave at once.
    let store =
        durasim_contract::Store { addr: word(4, 0), len: 8, data: 1, tx: Some(TxId(1)), before: &[0; 64], dirty: true };
    let cx = durasim_contract::Ctx { core: durasim_types::CoreId(0), thread: 0, cycle: 0, instructions: 0 };
    let mut out = durasim_contract::Actions::default();
    let mut tag = LineTag::NONE;
    assert_eq!(bench.design.store(&cx, &store, &mut tag, &mut out), Gate::Done);
    let resumed = out.as_slice().iter().position(|action| matches!(action, Action::Resume { .. })).unwrap();
    let (before, after) = out.as_slice().split_at(resumed);
    assert_eq!(before, [2, 3].map(|number| Action::PushToLlc { line: line(number), token: None }));
    // One step copies the lines of the whole transaction; the version before the store goes down after it.
    assert_eq!(after[1..], [Action::PushToLlc { line: line(4), token: None }]);
    let Action::Resume { id } = after[0] else { unreachable!() };
    out.clear();
    bench.design.woken(&cx, id, &mut out);
    let copied = out.as_slice().iter().map(|action| match action {
        Action::Copy(CopyRequest { from, .. }) => from.line(),
        other => panic!("{other:?}"),
    });
    assert_eq!(copied.collect::<Vec<_>>(), [line(2), line(3)]);
}

#[test]
fn an_uncommitted_line_leaves_the_last_level_only_after_its_old_version() {
    let mut bench = kiln(8);
    bench.pmem.write(word(0, 0), &70u64.to_le_bytes());
    bench.begin(0, 1);
    put(&mut bench, 0, 1, 0);
    let mut steps = 0;
    while let Evict::After(Wait::Acked(token)) = bench.evict(0, LineTag(1), 1) {
        steps += 1;
        assert_eq!(words(&bench.survived(&[]), &[0]), [70]);
        assert!(bench.outstanding(token));
        while bench.outstanding(token) {
            bench.deliver();
        }
    }
    assert_eq!(steps, 2, "the copy, then its record");
    bench.deliver_all();
    assert_eq!(words(&bench.pmem, &[0]), [1]);
    assert_eq!(words(&bench.survived(&[]), &[0]), [70]);
    bench.abort(0, 1);
    bench.deliver_all();
    assert_eq!((words(&bench.pmem, &[0]), bench.invalidated.clone()), (vec![70], vec![TxId(1)]));
    assert_eq!(bench.pmem.read_u64(bench.area().record(0)), 0);
    assert_eq!(bench.counter("kiln.undone_lines"), 1.0);
    // The place is free again.
    bench.begin(0, 2);
    put(&mut bench, 0, 2, 3);
    bench.evict(3, LineTag(2), 2);
    bench.deliver_all();
    assert_eq!(bench.pmem.read_u64(bench.area().record(0)), word(3, 0).0);
}

#[test]
fn a_full_copy_area_aborts() {
    let mut bench = bench(KilnSpec { copy_area_lines: 1, ..small(8) }, Domain::NvLlc);
    bench.begin(0, 1);
    put(&mut bench, 0, 1, 0);
    put(&mut bench, 0, 1, 1);
    assert!(matches!(bench.evict(0, LineTag(1), 1), Evict::After(_)));
    assert_eq!(bench.evict(1, LineTag(1), 1), Evict::Abort(TxId(1), AbortCause::Capacity));
    bench.deliver_all();
    bench.abort(0, 1);
    bench.begin(0, 2);
    put(&mut bench, 0, 2, 1);
    assert!(matches!(bench.evict(1, LineTag(2), 1), Evict::After(_)));
}

#[test]
fn a_store_aborts_if_its_fifos_are_full_and_cannot_drain() {
    let mut bench = bench(KilnSpec { copy_area_lines: 1, ..small(1) }, Domain::NvLlc);
    bench.begin(0, 1);
    for number in 0..2 {
        put(&mut bench, 0, 1, number);
    }
    put(&mut bench, 0, 1, 2);
    let gate = bench.offer(0, word(3, 0), 1, Some(1), &mut LineTag(0));
    assert_eq!(gate, Gate::Abort(TxId(1), AbortCause::Capacity));
}

#[test]
fn a_commit_waits_for_the_register_that_names_another_transaction() {
    let mut bench = kiln(8);
    for tx in [1, 2] {
        bench.begin(0, tx);
        put(&mut bench, 0, tx, tx);
    }
    while let Evict::After(_) = bench.evict(1, LineTag(1), 1) {
        bench.deliver_all();
    }
    // The lines of the second one are in the last level before the first one commits.
    assert!(matches!(bench.try_commit(0, 2), Gate::Retry(Wait::Acked(_))));
    bench.deliver_all();
    bench.commit(0, 1);
    // The record of the first one is still being cleared.
    let gate = bench.try_commit(0, 2);
    assert!(matches!(gate, Gate::Retry(Wait::Acked(token)) if bench.outstanding(token)), "{gate:?}");
    assert_eq!((bench.counter("kiln.register_waits"), bench.commits), (1.0, 1));
    bench.deliver_all();
    assert!(matches!(bench.try_commit(0, 2), Gate::After(_)));
    assert_eq!(bench.commits, 2);
}

#[test]
fn committed_versions_go_home_before_uncommitted_ones_take_their_place() {
    let mut bench = kiln(8);
    let mut merge = |resident, incoming| {
        bench.call(0, |design, _, _| design.merge(LevelId::Llc, line(0), LineTag(resident), LineTag(incoming)))
    };
    assert_eq!(merge(0, 1), Merge::PushDownFirst);
    assert_eq!(merge(1, 1), Merge::Overwrite);
    assert_eq!(merge(1, 0), Merge::Overwrite);
}

#[test]
fn uncommitted_lines_are_no_victims_while_there_are_others() {
    let mut bench = kiln(8);
    let mut victim = |level, full, tags: [u64; 4], ranks: [u32; 4]| {
        let tags = tags.map(LineTag);
        bench.call(0, |design, _, _| design.victim(level, LineTag::NONE, full, &tags, &ranks))
    };
    assert_eq!(victim(LevelId::Llc, true, [1, 0, 0, 1], [0, 2, 1, 3]), Some(2));
    assert_eq!(victim(LevelId::Llc, true, [1, 0, 0, 1], [0, 2, u32::MAX, 3]), Some(1), "what is in service stays");
    assert_eq!(victim(LevelId::Llc, true, [1; 4], [0, 1, 2, 3]), None, "the oldest leaves by copy-on-write");
    assert_eq!(victim(LevelId::Llc, false, [1, 0, 0, 1], [0, 2, 1, 3]), None);
    assert_eq!(victim(LevelId::L2, true, [1, 0, 0, 1], [0, 2, 1, 3]), None, "upper levels choose by age alone");
    let mut unpinned = bench_without_pins();
    let tags = [1, 0, 0, 1].map(LineTag);
    let choice =
        unpinned.call(0, |design, _, _| design.victim(LevelId::Llc, LineTag::NONE, true, &tags, &[0, 1, 2, 3]));
    assert_eq!(choice, None);
}

fn bench_without_pins() -> Bench<Kiln> {
    bench(KilnSpec { pinned_lines: false, ..small(8) }, Domain::NvLlc)
}

#[test]
fn where_upper_caches_survive_a_commit_flushes_nothing() {
    let mut bench = bench(small(1), Domain::Eadr);
    bench.begin(0, 1);
    let numbers = [0, 1, 2, 3, 4, 5];
    for number in numbers {
        put(&mut bench, 0, 1, number);
    }
    let lines = numbers.map(|number| cached(0, number, LineTag(1), 10 + number));
    assert_eq!(words(&bench.survived(&lines), &numbers), [0; 6]);
    assert_eq!(bench.try_commit(0, 1), Gate::After(Wait::Cycles(50)));
    assert!(bench.pushed.is_empty());
    assert_eq!(words(&bench.survived(&lines.map(|l| CachedLine { tag: LineTag::NONE, ..l })), &numbers)[5], 15);
}

#[test]
fn there_the_version_before_a_transaction_stays_below_it() {
    let mut bench = bench(small(1), Domain::Eadr);
    bench.begin(0, 1);
    let store =
        durasim_contract::Store { addr: word(0, 0), len: 8, data: 1, tx: Some(TxId(1)), before: &[0; 64], dirty: true };
    let mut out = durasim_contract::Actions::default();
    let cx = durasim_contract::Ctx { core: durasim_types::CoreId(0), thread: 0, cycle: 0, instructions: 0 };
    let mut tag = LineTag::NONE;
    bench.design.store(&cx, &store, &mut tag, &mut out);
    assert_eq!(out.as_slice(), [Action::CopyDown(line(0))]);
    out.clear();
    bench.design.store(&cx, &store, &mut tag, &mut out);
    assert!(out.is_empty(), "once for each transaction");
}

#[test]
fn lines_of_all_cores_count_towards_the_request_queue() {
    let lines_until = |overflow_of, first_core: u64| {
        let spec = KilnSpec { fifo_entries: 8, overflow_percent: 50, overflow_of, ..KilnSpec::default() };
        let geometry = Geometry { domain: Domain::NvLlc, write_queue_entries: 20, ..geometry::<Kiln>(&spec, 2) };
        let mut bench = Bench::<Kiln>::on(spec, geometry);
        bench.begin(0, 1);
        bench.begin(1, 2);
        (0..first_core).for_each(|n| bench.store(0, word(n, 0), 1, Some(1), &mut LineTag::NONE.clone()));
        let mut lines = 0;
        while bench.counter("kiln.fifo_overflows") == 0.0 {
            bench.store(1, word(20 + lines, 0), 1, Some(2), &mut LineTag::NONE.clone());
            lines += 1;
        }
        lines
    };
    // A store finds its FIFOs almost full after as many lines.
    assert_eq!(lines_until(OverflowOf::Fifos, 0), 9);
    assert_eq!(lines_until(OverflowOf::L1dFifo, 3), 5);
    assert_eq!([0, 3].map(|n| lines_until(OverflowOf::RequestQueue, n)), [11, 8]);
}

#[test]
fn a_commit_may_hold_up_what_comes_after_it() {
    for (blocked_requests, rule) in [
        (Blocking::All, CommitRule::AtGate),
        (Blocking::Core, CommitRule::Blocking),
        (Blocking::AllAndCore, CommitRule::Blocking),
    ] {
        let spec = KilnSpec { blocked_requests, ..KilnSpec::default() };
        let bench = Bench::<Kiln>::new(spec, 1);
        assert_eq!(bench.design.commit_rule(), rule);
    }
}

#[test]
fn cleans_leave_uncommitted_lines_alone() {
    let mut bench = kiln(8);
    let mut flush = |tag| bench.call(0, |design, cx, out| design.flush(cx, line(0), LineTag(tag), out));
    assert_eq!([flush(1), flush(0)], [FlushVerdict::Ignore, FlushVerdict::Proceed]);
}

#[test]
fn numbers_of_transactions_run_out_as_conflicts() {
    let mut bench = bench(KilnSpec { tx_id_bits: 1, ..small(8) }, Domain::NvLlc);
    bench.begin(0, 1);
    let gate = bench.call(1, |design, cx, out| design.tx_begin(cx, TxId(2), out));
    assert_eq!(gate, Gate::Abort(TxId(2), AbortCause::Conflict));
    bench.commit(0, 1);
    bench.begin(1, 3);
}

/// Contents of the level, those of the register, records, losses, and the words that are found.
type Damage = (Vec<u8>, Vec<u8>, u64, usize, [u64; 2]);

/// Data that cannot be believed is a loss, and the rest is recovered.
#[test]
fn damaged_contents_are_losses_and_not_written() {
    let spec = small(8);
    let geometry = Geometry { domain: Domain::NvLlc, ..geometry::<Kiln>(&spec, 2) };
    let area = Area::new(&spec, &geometry);
    let pmem = Pages::new(geometry.pmem_base, geometry.pmem_bytes);
    let registers = save_registers(&[Some(TxId(1)), None]);
    let survivor = |number: u64, tx| Survivor { line: line(number), tx: TxId(tx), data: [7; 64] };
    let good = save_lines(&[survivor(0, 1), survivor(1, 2)]);
    let outside = Survivor { line: durasim_types::LineAddr(u64::MAX), tx: TxId(1), data: [7; 64] };
    let cases: [Damage; 6] = [
        (good.clone(), registers.clone(), 0, 0, [7, 0]),
        (good[1..].to_vec(), registers.clone(), 0, 1, [0, 0]),
        (good.clone(), registers[..8].to_vec(), 0, 1, [0, 0]),
        (save_lines(&[outside, survivor(0, 1)]), registers.clone(), 0, 1, [7, 0]),
        (good.clone(), registers.clone(), 13, 1, [7, 0]),
        (good.clone(), registers.clone(), word(1, 0).0, 0, [7, 9]),
    ];
    for (lines, registers, home, losses, found) in cases {
        let mut image = CrashImage::new(pmem.clone());
        image.keep(LINES, lines).unwrap();
        image.keep(REGISTERS, registers).unwrap();
        image.write_u64(area.record(3), home).unwrap();
        image.write_u64(area.record(3).plus(8), 2 * u64::from(home != 0)).unwrap();
        image.write_u64(area.old_line(3), 9).unwrap();
        let report = recovery::recover(&spec, &geometry, &mut image).unwrap();
        assert_eq!(report.losses.len(), losses, "{:?}", report.losses);
        assert_eq!([0, 1].map(|n| image.read_u64(word(n, 0)) & 0xff), found);
        assert_eq!(recovery::recover(&spec, &geometry, &mut image), Ok(RecoveryReport::default()));
    }
}

/// The power failed while the media wrote a record, or cleared it: the line is home.
#[test]
fn half_of_a_record_brings_nothing_back_and_is_cleared() {
    let spec = small(8);
    let geometry = Geometry { domain: Domain::NvLlcMedia, ..geometry::<Kiln>(&spec, 2) };
    let area = Area::new(&spec, &geometry);
    for (home, tx) in [(word(1, 0).0, 0), (0, 2)] {
        let mut image = CrashImage::new(Pages::new(geometry.pmem_base, geometry.pmem_bytes));
        image.write_u64(area.record(3), home).unwrap();
        image.write_u64(area.record(3).plus(8), tx).unwrap();
        image.write_u64(area.old_line(3), 9).unwrap();
        let report = recovery::recover(&spec, &geometry, &mut image).unwrap();
        assert_eq!((report.losses.len(), image.read_u64(word(1, 0))), (0, 0));
        assert_eq!(area.read_record(&image, 3), None);
    }
}

#[test]
fn recovery_comes_to_the_same_end_wherever_it_is_cut() {
    let spec = small(8);
    let geometry = Geometry { domain: Domain::NvLlc, ..geometry::<Kiln>(&spec, 2) };
    let area = Area::new(&spec, &geometry);
    let mut image = CrashImage::new(Pages::new(geometry.pmem_base, geometry.pmem_bytes));
    let survivor = |number: u64, tx| Survivor { line: line(number), tx: TxId(tx), data: [tx as u8; 64] };
    image.keep(LINES, save_lines(&[survivor(0, 1), survivor(1, 2), survivor(2, 3)])).unwrap();
    image.keep(REGISTERS, save_registers(&[Some(TxId(1)), Some(TxId(3))])).unwrap();
    for (slot, (number, tx)) in [(4, 1), (5, 2), (6, 3)].into_iter().enumerate() {
        image.write(area.record(slot as u64), &Area::record_of(line(number), TxId(tx))).unwrap();
        image.write(area.old_line(slot as u64), &[9; 64]).unwrap();
        image.write(word(number, 0), &[tx as u8; 64]).unwrap();
    }
    let mut whole = image.clone();
    whole.cut_at(None);
    recovery::recover(&spec, &geometry, &mut whole).unwrap();
    let bytes = |image: &CrashImage| [0, 1, 2, 4, 5, 6].map(|number| image.read_u64(word(number, 0)) & 0xff);
    assert_eq!(bytes(&whole), [1, 0, 3, 1, 9, 3]);
    for cut in 1..=whole.writes() {
        let mut again = image.clone();
        again.cut_at(Some(cut));
        assert_eq!(recovery::recover(&spec, &geometry, &mut again), Err(RecoveryCut));
        again.cut_at(None);
        recovery::recover(&spec, &geometry, &mut again).unwrap();
        assert_eq!(bytes(&again), bytes(&whole), "cut at {cut}");
    }
}

/// The actions of a hook, without executing them.
fn actions(
    bench: &mut Bench<Kiln>,
    hook: impl FnOnce(&mut dyn durasim_contract::Durability, &mut durasim_contract::Actions),
) -> Vec<Action> {
    let mut out = durasim_contract::Actions::default();
    hook(&mut *bench.design, &mut out);
    out.as_slice().to_vec()
}

#[test]
fn with_two_versions_the_committed_one_stays_until_the_commit() {
    let mut bench = bench(KilnSpec { versions: Versions::TwoInLlc, ..small(8) }, Domain::NvLlc);
    let merge = |bench: &mut Bench<Kiln>, level| bench.design.merge(level, line(0), LineTag::NONE, LineTag(1));
    bench.begin(0, 1);
    assert_eq!(merge(&mut bench, LevelId::Llc), Merge::KeepBoth);
    assert_eq!(merge(&mut bench, LevelId::L2), Merge::PushDownFirst, "above it a committed version goes down");
    assert_eq!(bench.design.merge(LevelId::Llc, line(0), LineTag(1), LineTag(1)), Merge::Overwrite);
    let counters = ["committed_kept", "committed_pushed_home"].map(|name| bench.counter(&format!("kiln.{name}")));
    assert_eq!(counters, [1.0, 0.0]);
    put(&mut bench, 0, 1, 0);
    put(&mut bench, 0, 1, 1);
    while let Gate::Retry(Wait::Acked(token)) = bench.try_commit(0, 1) {
        // Before the register is written the version beside it is the one that counts.
        let lines = [in_llc(0, 0, 5), in_llc(0, 1, 6)];
        assert_eq!(words(&bench.survived(&lines), &[0]), [5]);
        while bench.outstanding(token) {
            bench.deliver();
        }
    }
    bench.begin(0, 2);
    put(&mut bench, 0, 2, 3);
    let cx = durasim_contract::Ctx { core: durasim_types::CoreId(0), thread: 0, cycle: 0, instructions: 0 };
    let commit = |design: &mut dyn durasim_contract::Durability, out: &mut _| {
        design.tx_commit(&cx, TxId(2), out);
    };
    let mut resumed = actions(&mut bench, commit);
    bench.deliver_all();
    let mut dropped = Vec::new();
    for _ in 0..4 {
        let id = resumed.iter().find_map(|action| if let Action::Resume { id } = action { Some(*id) } else { None });
        dropped.extend(resumed.iter().filter(|action| matches!(action, Action::DropOlder(_))).copied());
        resumed = match id {
            Some(id) => actions(&mut bench, |design, out| design.woken(&cx, id, out)),
            None => {
                let Some(Action::PushToLlc { token: Some(token), .. }) = resumed.first().copied() else { break };
                bench.call(0, |design, cx, out| design.acked(cx, token, line(3).base(), out));
                actions(&mut bench, commit)
            }
        };
    }
    assert_eq!(dropped, [Action::DropOlder(line(3))]);
}

#[test]
fn with_two_versions_the_older_one_goes_home_before_it_is_copied() {
    let mut bench = bench(KilnSpec { versions: Versions::TwoInLlc, ..small(8) }, Domain::NvLlc);
    bench.begin(0, 1);
    put(&mut bench, 0, 1, 0);
    let cx = durasim_contract::Ctx { core: durasim_types::CoreId(0), thread: 0, cycle: 0, instructions: 0 };
    let evicted = |design: &mut dyn durasim_contract::Durability, out: &mut _| {
        let verdict = design.evict(&cx, LevelId::Llc, line(0), LineTag(1), &[0; 64], out);
        assert!(matches!(verdict, Evict::After(_)));
    };
    let asked = actions(&mut bench, evicted);
    assert!(matches!(asked[..], [Action::WriteOlderHome(_), Action::Copy(_)]), "{asked:?}");
}

#[test]
fn where_queues_are_lost_a_commit_waits_for_what_has_gone_home() {
    for (domain, waits) in [(Domain::NvLlc, 0), (Domain::NvLlcMedia, 1)] {
        let mut bench = bench(KilnSpec { overflow_percent: 1, copies_in_flight: 2, ..small(3) }, domain);
        bench.begin(0, 1);
        for number in 0..4 {
            put(&mut bench, 0, 1, number);
        }
        bench.deliver_all();
        assert!(!bench.cleaned.is_empty(), "lines have left the FIFO");
        let mut waited = 0;
        // Nothing is flushed before the writes that have left are on the media.
        while let Gate::Retry(Wait::Acked(_)) = bench.try_commit(0, 1) {
            waited += u64::from(bench.pushed.is_empty() || bench.counter("kiln.flushed_lines") == 0.0);
            bench.deliver_all();
        }
        assert_eq!(waited, waits, "{domain}");
    }
}
