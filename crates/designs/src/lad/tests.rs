//! The protocol, hook by hook, without a machine.

use super::memory_controller::UNDO_TOKEN;
use super::recovery::{self, CONTROLLERS, Kept};
use super::regions::{PurgatoryHeader, UndoRegion, purgatory_count, purgatory_record, undo_header};
use super::{COMMIT_ACK, DTX_COMMIT, Lad, LadBase, LadSpec};
use crate::dtx::Dtx;
use crate::testing::{geometry_of, word};
use durasim_contract::{
    AbortCause, Accept, Action, Actions, Arrival, BeginRule, CrashImage, CrashSink, CrashView, Ctx, Departure, Design,
    Durability, Evict, FlushVerdict, Gate, Geometry, LevelId, LineTag, Message, Node, Occupancy, Probe, Request,
    Signal, StagedWrite, Store, Token, Wait, snapshot,
};
use durasim_types::{Cause, CoreId, Domain, Line, LineAddr, Pages, PhysAddr, TxId};

const ENTRIES: u32 = 8;

/// A design with a machine of four controllers, whose lines take turns.
struct Driver {
    design: Box<dyn Durability>,
    spec: LadSpec,
    geometry: Geometry,
}

fn cx(core: u16) -> Ctx {
    Ctx { core: CoreId(core), thread: core.into(), cycle: 0, instructions: 0 }
}

/// Identifiers of three bits and room for eight undo entries.
fn small() -> LadSpec {
    LadSpec { dtx_id_bits: 3, undo_log_entries: 8, undo_log_entries_max: 16, ..LadSpec::default() }
}

fn with<D: Design<Spec = LadSpec>>(spec: LadSpec) -> Driver {
    let geometry = Geometry { write_queue_entries: ENTRIES, ..geometry_of::<D>(&spec, 2, 4) };
    Driver { design: Box::new(D::build(&spec, &geometry).unwrap()), spec, geometry }
}

fn lad() -> Driver {
    with::<Lad>(LadSpec::default())
}

/// The n-th line of controller 0: blocks of two lines take turns.
fn line(n: u64) -> LineAddr {
    word(n / 2 * 8 + n % 2, 0).line()
}

fn line_of_controller_1() -> LineAddr {
    word(2, 0).line()
}

impl Driver {
    fn ask<T>(
        &mut self,
        core: u16,
        hook: impl FnOnce(&mut dyn Durability, &Ctx, &mut Actions) -> T,
    ) -> (T, Vec<Action>) {
        let mut out = Actions::default();
        let answer = hook(&mut *self.design, &cx(core), &mut out);
        (answer, out.as_slice().to_vec())
    }

    fn begin(&mut self, core: u16) -> Gate {
        self.ask(core, |design, cx, out| design.tx_begin(cx, TxId(1), out)).0
    }

    /// A store of a DTX; the tag of the line.
    fn store(&mut self, core: u16, at: LineAddr) -> LineTag {
        let store = Store { addr: at.base(), len: 8, data: 7, tx: Some(TxId(1)), before: &[0; 64], dirty: false };
        let mut tag = LineTag::NONE;
        let (gate, _) = self.ask(core, |design, cx, out| design.store(cx, &store, &mut tag, out));
        assert_eq!(gate, Gate::Done);
        tag
    }

    fn end(&mut self, core: u16) -> (Gate, Vec<Action>) {
        self.ask(core, |design, cx, out| design.tx_commit(cx, TxId(1), out))
    }

    fn acked(&mut self, token: Token, at: PhysAddr) -> Vec<Action> {
        self.ask(0, |design, cx, out| design.acked(cx, token, at, out)).1
    }

    /// A write of the line, for a queue with room and these numbers of held and ordinary entries.
    fn arrive(&mut self, at: LineAddr, token: Option<Token>, held: u32, ordinary: u32) -> (Accept, Vec<Action>) {
        let queue = Occupancy { entries: ENTRIES, held, ordinary };
        let controller = self.geometry.controller_of(at);
        let arrival = Arrival { controller, line: at, mask: u64::MAX, cause: Cause::Data, token, queue };
        self.ask(0, |design, cx, out| design.accept(cx, &arrival, out))
    }

    fn message(&mut self, at: Node, kind: u16, dtx: Dtx) -> Vec<Action> {
        let message = Message { kind, a: dtx.number(), b: 0 };
        self.ask(0, |design, cx, out| design.message(cx, at, message, out)).1
    }

    fn commits_at(&mut self, controller: u16, dtx: Dtx) -> Vec<Action> {
        self.message(Node::Controller(controller), DTX_COMMIT, dtx)
    }

    fn is_acknowledged(&mut self, dtx: Dtx) -> bool {
        self.message(Node::Core(CoreId(0)), COMMIT_ACK, dtx).contains(&Action::Raise(Signal(dtx.number())))
    }

    /// A DTX of core 0 that stores nothing, acknowledged by all controllers.
    fn empty_dtx(&mut self, dtx: Dtx) {
        assert_eq!(self.begin(0), Gate::Done);
        self.end(0);
        for controller in 0..4 {
            self.commits_at(controller, dtx);
            self.is_acknowledged(dtx);
        }
    }

    fn kept(&self, staged: &[StagedWrite], image: &mut CrashImage) {
        let view = CrashView { domain: Domain::Adr, geometry: &self.geometry, lines: &[], staged };
        self.design.crash(&view, &mut CrashSink::new(image, u64::MAX)).unwrap();
    }
}

fn flushes(actions: &[Action]) -> Vec<LineAddr> {
    let of = |action: &Action| match action {
        Action::CleanTo { line, to: None, token: Some(_) } => Some(*line),
        _ => None,
    };
    actions.iter().filter_map(of).collect()
}

fn dtx(tid: u8, id: u8) -> Dtx {
    Dtx { tid, id }
}

#[test]
fn a_dtx_prepares_then_notifies_every_controller_and_ends_at_the_first_acknowledgement() {
    for (mut driver, acknowledgements) in [(lad(), 1), (with::<LadBase>(LadSpec::default()), 4)] {
        assert_eq!(driver.design.begin_rule(), BeginRule::Drained);
        driver.begin(0);
        for at in [3, 1, 3] {
            driver.store(0, line(at));
        }
        let (gate, actions) = driver.end(0);
        let own = dtx(0, 1);
        assert_eq!(gate, Gate::Retry(Wait::Acked(Token(own.number()))));
        assert_eq!(flushes(&actions), [line(1), line(3)], "each marked line once");
        for at in [1, 3] {
            driver.acked(Token(own.number()), line(at).base());
        }
        let (gate, actions) = driver.end(0);
        assert_eq!(gate, Gate::After(Wait::Signal(Signal(own.number()))));
        let messages = actions.iter().filter(|action| matches!(action, Action::Send { to: Node::Controller(_), .. }));
        assert_eq!(messages.count(), 4);
        for n in 1..=4 {
            assert_eq!(driver.is_acknowledged(own), n == acknowledgements, "acknowledgement {n}");
        }
    }
}

#[test]
fn a_marked_line_is_flushed_when_it_leaves_or_is_wanted_and_marked_again_when_it_is_stored_to() {
    let mut driver = lad();
    driver.begin(0);
    let tag = driver.store(0, line(1));
    assert!(driver.design.live(tag) && driver.design.tags_follow_newest_data());
    let evict = |design: &mut dyn Durability, cx: &Ctx, out: &mut Actions| {
        design.evict(cx, LevelId::L1d, line(1), tag, &[0; 64], out)
    };
    let (answer, actions) = driver.ask(0, evict);
    assert_eq!((answer, flushes(&actions)), (Evict::Proceed, vec![line(1)]));
    assert!(flushes(&driver.ask(0, evict).1).is_empty(), "it is flushed");
    driver.store(0, line(1));
    let request = Request { line: line(1), tag, tx: None, write: false, holder: Some(CoreId(0)) };
    let (answer, actions) = driver.ask(1, |design, cx, out| design.probe(cx, &request, out));
    assert_eq!((answer, flushes(&actions)), (Probe::Grant, vec![line(1)]));
    driver.store(0, line(1));
    let (answer, actions) = driver.ask(1, |design, cx, out| design.flush(cx, line(1), tag, out));
    assert_eq!((answer, flushes(&actions)), (FlushVerdict::Ignore, vec![line(1)]), "a clean is a DTX_Flush");
    let (answer, _) = driver.ask(1, |design, cx, out| design.flush(cx, line(1), tag, out));
    assert_eq!(answer, FlushVerdict::Proceed);
}

#[test]
fn a_thread_leaves_its_core_when_what_it_marked_is_acknowledged_and_goes_on_elsewhere() {
    let mut driver = lad();
    driver.begin(0);
    driver.store(0, line(1));
    let leave =
        |design: &mut dyn Durability, cx: &Ctx, out: &mut Actions| design.context_switch(cx, Some(TxId(1)), None, out);
    let own = dtx(0, 1);
    let (gate, actions) = driver.ask(0, leave);
    assert_eq!((gate, flushes(&actions)), (Gate::Retry(Wait::Acked(Token(own.number()))), vec![line(1)]));
    driver.acked(Token(own.number()), line(1).base());
    assert_eq!(driver.ask(0, leave).0, Gate::Done);
    // The thread is on core 1 now.
    let moved = Ctx { core: CoreId(1), ..cx(0) };
    let mut out = Actions::default();
    driver.design.tx_commit(&moved, TxId(1), &mut out);
    let messages = out.as_slice().iter().filter(|action| matches!(action, Action::Send { .. }));
    assert_eq!(messages.count(), 4, "it has nothing left to flush");
}

#[test]
fn what_was_stored_before_a_dtx_goes_home_before_its_first_store() {
    let mut driver = lad();
    driver.begin(0);
    let store = Store { addr: line(1).base(), len: 8, data: 7, tx: Some(TxId(1)), before: &[0; 64], dirty: true };
    let mut tag = LineTag::NONE;
    let home = Action::CleanTo { line: line(1), to: None, token: None };
    let mut first = |driver: &mut Driver| driver.ask(0, |design, cx, out| design.store(cx, &store, &mut tag, out)).1;
    assert_eq!(first(&mut driver), [home]);
    assert!(first(&mut driver).is_empty(), "the line is marked");
}

#[test]
fn under_pressure_the_oldest_entry_is_logged_and_goes_in_place_and_each_line_is_logged_once() {
    let mut driver = lad();
    driver.begin(0);
    let (own, undo) = (dtx(0, 1), Token(UNDO_TOKEN));
    let flush = Some(Token(own.number()));
    for n in 0..5 {
        assert_eq!(driver.arrive(line(n), flush, n as u32, 0), (Accept::Queue { held: Some(own.number()) }, vec![]));
    }
    // Seven of eight would be more than 80 %, and two places are left to the log.
    let (answer, actions) = driver.arrive(line(5), flush, 6, 0);
    assert_eq!(answer, Accept::Refuse);
    let [Action::Copy(copy)] = actions[..] else { panic!("{actions:?}") };
    assert!(copy.below_held && copy.from == line(0).base() && copy.token == Some(undo));
    let actions = driver.acked(undo, copy.to);
    let [Action::Append { at, .. }] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(driver.geometry.controller_of(at.line()), 0, "the log is at its controller");
    let actions = driver.acked(undo, at);
    assert!(actions.contains(&Action::ReleaseHeld { controller: 0, group: own.number(), line: Some(line(0)) }));
    // The second flush of a logged line goes in place.
    assert_eq!(driver.arrive(line(0), flush, 4, 0).0, Accept::Queue { held: None });
    let departure = Departure {
        controller: 0,
        line: line(0),
        cause: Cause::Data,
        queue: Occupancy { entries: ENTRIES, held: 7, ordinary: 0 },
    };
    let (_, actions) = driver.ask(0, |design, cx, out| design.drained(cx, &departure, out));
    assert!(matches!(actions[..], [Action::Copy(copy)] if copy.from == line(1).base()), "first in, first out");
}

#[test]
fn a_flush_for_which_there_is_no_place_is_logged_itself() {
    let mut driver = lad();
    driver.begin(0);
    let flush = Some(Token(dtx(0, 1).number()));
    let (answer, actions) = driver.arrive(line(2), flush, 6, 0);
    assert!(answer == Accept::Refuse && matches!(actions[..], [Action::Copy(copy)] if copy.from == line(2).base()));
    for _ in 0..2 {
        driver.acked(Token(UNDO_TOKEN), line(0).base());
    }
    assert_eq!(driver.arrive(line(2), flush, 6, 0).0, Accept::Queue { held: None });
}

#[test]
fn a_write_that_would_wait_for_a_speculative_entry_takes_none_of_the_last_places() {
    let mut driver = lad();
    driver.begin(0);
    driver.arrive(line(2), Some(Token(dtx(0, 1).number())), 0, 0);
    assert_eq!(driver.arrive(line(3), None, 1, 6).0, Accept::Queue { held: None });
    assert_eq!(driver.arrive(line(2), None, 1, 5).0, Accept::Refuse);
    assert_eq!(driver.arrive(line(2), None, 1, 4).0, Accept::Queue { held: None });
}

#[test]
fn a_commit_that_comes_late_clears_its_entries_and_does_not_set_dtx_cid_back() {
    let mut driver = lad();
    for id in [1, 2] {
        driver.begin(0);
        driver.arrive(line(id.into()), Some(Token(dtx(0, id).number())), 0, 0);
        driver.end(0);
    }
    let released = |actions: &[Action]| actions.iter().any(|action| matches!(action, Action::ReleaseHeld { .. }));
    assert!(released(&driver.commits_at(0, dtx(0, 2))));
    assert!(released(&driver.commits_at(0, dtx(0, 1))));
    let mut image = CrashImage::new(Pages::new(driver.geometry.pmem_base, driver.geometry.pmem_bytes));
    driver.kept(&[], &mut image);
    let kept: Vec<Kept> = snapshot::from_bytes(image.structure(CONTROLLERS).unwrap()).unwrap();
    assert_eq!((kept[0].committed[0], kept[1].committed[0]), (2, 0));
}

#[test]
fn a_begin_waits_while_half_of_the_ids_are_in_use_and_undo_entries_are_voided_where_they_stand() {
    let mut driver = with::<Lad>(small());
    // Another thread's undo entry is the oldest, and stays.
    driver.begin(1);
    let undo = Token(UNDO_TOKEN);
    for (core, tid) in [(1, 1), (0, 0)] {
        if core == 0 {
            driver.begin(0);
        }
        driver.arrive(line(core), Some(Token(dtx(tid, 1).number())), 6, 0);
        driver.acked(undo, line(0).base());
        driver.acked(undo, line(0).base());
    }
    driver.end(0);
    for controller in 0..4 {
        driver.commits_at(controller, dtx(0, 1));
        driver.is_acknowledged(dtx(0, 1));
    }
    for id in 2..5 {
        driver.empty_dtx(dtx(0, id));
    }
    let (gate, actions) = driver.ask(0, |design, cx, out| design.tx_begin(cx, TxId(1), out));
    assert!(matches!(gate, Gate::Retry(Wait::Cycles(_))));
    let [Action::Append { at, payload, token: Some(token), .. }] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(payload.bytes(), [0; 8]);
    driver.acked(token, at);
    assert_eq!(driver.begin(0), Gate::Done);
}

#[test]
fn no_dtx_begins_whose_commit_would_be_half_of_the_ids_ahead_of_a_controller_that_lacks_the_oldest() {
    let mut driver = with::<Lad>(small());
    for id in 1..4 {
        assert_eq!(driver.begin(0), Gate::Done, "DTX {id}");
        driver.end(0);
        for controller in 1..4 {
            driver.commits_at(controller, dtx(0, id));
            driver.is_acknowledged(dtx(0, id));
        }
    }
    // DTX_CIDs are 0, 3, 3, 3; with the next they would be 0, 4, 4, 4, of eight numbers.
    assert!(matches!(driver.begin(0), Gate::Retry(Wait::Cycles(_))));
    driver.commits_at(0, dtx(0, 1));
    driver.is_acknowledged(dtx(0, 1));
    assert_eq!(driver.begin(0), Gate::Done);
}

#[test]
fn a_log_that_an_open_dtx_has_filled_to_its_largest_size_wakes_no_write() {
    let mut driver = with::<Lad>(LadSpec { undo_log_entries_max: 8, ..small() });
    driver.begin(0);
    let flush = Some(Token(dtx(0, 1).number()));
    for n in 0..9 {
        driver.arrive(line(n), flush, 6, 0);
        if n < 8 {
            driver.acked(Token(UNDO_TOKEN), line(0).base());
            driver.acked(Token(UNDO_TOKEN), line(0).base());
        }
    }
    let (_, actions) = driver.ask(0, |design, cx, out| design.woken(cx, super::RECLAIM, out));
    assert_eq!(actions, [], "the run ends as stuck; a timer would keep it going without end");
}

#[test]
fn while_one_log_is_full_for_good_the_others_are_visited_if_they_have_entries_to_reclaim() {
    let mut driver = with::<Lad>(LadSpec { undo_log_entries_max: 8, ..small() });
    let log = |driver: &mut Driver, of: Dtx, at: LineAddr| {
        let controller = u64::from(driver.geometry.controller_of(at));
        driver.arrive(at, Some(Token(of.number())), 6, 0);
        driver.acked(Token(UNDO_TOKEN | controller), at.base());
        driver.acked(Token(UNDO_TOKEN | controller), at.base())
    };
    let is_timer = |action: &Action| matches!(action, Action::Timer { .. });
    [0, 1].into_iter().for_each(|core| assert_eq!(driver.begin(core), Gate::Done));
    // An entry at controller 1, which the system's thread will visit.
    assert!(log(&mut driver, dtx(1, 1), line_of_controller_1()).iter().any(is_timer));
    (0..8).for_each(|n| drop(log(&mut driver, dtx(0, 1), line(n))));
    driver.arrive(line(8), Some(Token(dtx(0, 1).number())), 6, 0);
    let visit = super::RECLAIM | 1 << 8;
    let (_, actions) = driver.ask(0, |design, cx, out| design.woken(cx, visit, out));
    assert_eq!(actions, [], "no entry can be reclaimed: the run would go on without end");
    let actions = driver.commits_at(1, dtx(1, 1));
    assert!(actions.iter().any(is_timer), "the entry of a committed DTX is reclaimed: {actions:?}");
}

#[test]
fn a_flush_waits_for_ordinary_entries_to_leave_before_anything_is_logged() {
    let mut driver = lad();
    driver.begin(0);
    let flush = Some(Token(dtx(0, 1).number()));
    let (answer, actions) = driver.arrive(line(0), flush, 0, ENTRIES - 2);
    assert_eq!((answer, actions), (Accept::Refuse, Vec::new()), "speculative entries are below 80 %");
}

#[test]
fn an_entry_released_after_a_held_version_of_its_line_does_not_leave_by_itself() {
    let mut driver = lad();
    for tid in [0, 1] {
        driver.begin(tid.into());
        driver.arrive(line(0), Some(Token(dtx(tid, 1).number())), tid.into(), 0);
    }
    let is_marked = |driver: &Driver| {
        let mut found = false;
        driver.design.marks(&mut |name| found |= name == "held_below_released");
        found
    };
    assert!(!is_marked(&driver));
    driver.commits_at(0, dtx(1, 1));
    assert!(is_marked(&driver), "the commit of the older one is late");
    let (answer, actions) = driver.arrive(line(1), Some(Token(dtx(0, 1).number())), 1, ENTRIES - 3);
    assert!(answer == Accept::Refuse && matches!(actions[..], [Action::Copy(copy)] if copy.from == line(0).base()));
    driver.commits_at(0, dtx(0, 1));
    assert!(!is_marked(&driver));
}

#[test]
fn a_full_log_stalls_until_it_has_grown() {
    let mut driver = with::<Lad>(small());
    driver.begin(0);
    let flush = Some(Token(dtx(0, 1).number()));
    for n in 0..8 {
        driver.arrive(line(n), flush, 6, 0);
        for _ in 0..2 {
            driver.acked(Token(UNDO_TOKEN), line(0).base());
        }
    }
    let (answer, actions) = driver.arrive(line(8), flush, 6, 0);
    assert!(
        answer == Accept::Refuse && matches!(actions[..], [Action::Timer { .. }]),
        "it waits for room: {actions:?}"
    );
    let (_, actions) = driver.ask(0, |design, cx, out| design.woken(cx, super::GROWN, out));
    assert!(matches!(actions[..], [Action::Copy(copy)] if copy.from == line(8).base()));
}

#[test]
fn an_abort_restores_youngest_first_and_ends_like_a_commit() {
    let mut driver = lad();
    driver.begin(0);
    driver.store(0, line(1));
    driver.store(0, line(2));
    let abort = |design: &mut dyn Durability, cx: &Ctx, out: &mut Actions| {
        design.tx_abort(cx, TxId(1), AbortCause::Requested(1), out)
    };
    let (gate, actions) = driver.ask(0, abort);
    let restored: Vec<PhysAddr> =
        actions.iter().filter_map(|a| if let Action::Restore { addr, .. } = a { Some(*addr) } else { None }).collect();
    assert_eq!((gate, restored), (Gate::Retry(Wait::Cycles(200)), vec![line(2).base(), line(1).base()]));
    assert!(matches!(driver.ask(0, abort).0, Gate::Retry(Wait::Acked(_))));
    let (gate, actions) = driver.ask(0, abort);
    assert_eq!(
        (gate, flushes(&actions)),
        (Gate::Retry(Wait::Acked(Token(dtx(0, 1).number()))), vec![line(1), line(2)])
    );
    assert!(matches!(driver.ask(0, abort).0, Gate::After(_)));
}

/// An image after a failure with an undo entry of an open DTX, one of a committed DTX, and a purgatory; `committed` has
/// DTX_CID of thread 0 at each controller.
fn failed(driver: &Driver, committed: [u8; 4]) -> CrashImage {
    let g = &driver.geometry;
    let mut image = CrashImage::new(Pages::new(g.pmem_base, g.pmem_bytes));
    let region = UndoRegion::new(g);
    for (slot, (at, of)) in [(line(1), dtx(1, 1)), (line(2), dtx(0, 1))].into_iter().enumerate() {
        image.pmem.write(region.old_value(0, slot as u64), &[1; 64]);
        image.pmem.write(region.header(0, slot as u64), &undo_header(at, of));
        image.pmem.write(at.base(), &[2; 64]);
    }
    let staged = |n: u64, of: Option<Dtx>, value: u8| StagedWrite {
        controller: 0,
        group: of.map(Dtx::number),
        line: line(n),
        mask: u64::MAX,
        data: [value; 64] as Line,
    };
    let queue = [staged(3, Some(dtx(0, 1)), 3), staged(4, Some(dtx(1, 1)), 4), staged(3, None, 5)];
    driver.kept(&queue, &mut image);
    let kept: Vec<Kept> = committed
        .iter()
        .map(|id| {
            let mut of_threads = vec![0; 256];
            of_threads[0] = *id;
            Kept { committed: of_threads, head: 0, records: 0 }
        })
        .enumerate()
        .map(|(n, kept)| Kept { records: if n == 0 { 2 } else { 0 }, ..kept })
        .collect();
    image.structures.insert(CONTROLLERS.to_owned(), snapshot::to_bytes(&kept));
    image
}

fn values(image: &CrashImage) -> [u8; 4] {
    [1, 2, 3, 4].map(|n| image.line(line(n).base())[0])
}

#[test]
fn recovery_commits_what_any_controller_has_committed() {
    let driver = lad();
    for committed in [[1, 0, 0, 0], [0, 0, 0, 1]] {
        let mut image = failed(&driver, committed);
        let report = recovery::recover(&driver.spec, &driver.geometry, &mut image).unwrap();
        assert_eq!(values(&image), [1, 2, 5, 0], "the open DTX is undone, the write-back comes after the commit");
        assert_eq!((report.replayed, report.discarded), (1, 1));
    }
    let mut image = failed(&driver, [0; 4]);
    recovery::recover(&driver.spec, &driver.geometry, &mut image).unwrap();
    assert_eq!(values(&image), [1, 1, 5, 0], "nothing was committed");
}

#[test]
fn recovery_may_be_cut_anywhere_and_begins_anew() {
    let driver = lad();
    let mut whole = failed(&driver, [0, 1, 0, 0]);
    recovery::recover(&driver.spec, &driver.geometry, &mut whole).unwrap();
    for cut in 1..8 {
        let mut image = failed(&driver, [0, 1, 0, 0]);
        image.cut_at(Some(cut));
        let is_cut = recovery::recover(&driver.spec, &driver.geometry, &mut image).is_err();
        image.cut_at(None);
        if is_cut {
            recovery::recover(&driver.spec, &driver.geometry, &mut image).unwrap();
        }
        assert_eq!(values(&image), values(&whole), "cut at {cut}");
    }
    let again = recovery::recover(&driver.spec, &driver.geometry, &mut whole).unwrap();
    assert_eq!((again.lines_written, values(&whole)), (0, [1, 2, 5, 0]), "the logs are empty");
}

#[test]
fn damaged_logs_write_nothing_outside_of_the_data() {
    let driver = lad();
    let g = &driver.geometry;
    let mut image = failed(&driver, [1; 4]);
    image.structures.insert(CONTROLLERS.to_owned(), vec![0xff; 100]);
    image.pmem.write(purgatory_count(g), &u64::MAX.to_le_bytes());
    let wrong = PurgatoryHeader { home: g.region("undo-log").base, dtx: None, mask: u64::MAX };
    image.pmem.write(purgatory_record(g, 0), &wrong.bytes());
    let before = image.line(g.region("undo-log").base);
    let report = recovery::recover(&driver.spec, g, &mut image).unwrap();
    assert_eq!(image.line(g.region("undo-log").base), before);
    assert!(matches!(&report.losses[..], [loss] if loss.contains("DTX_CID")), "{:?}", report.losses);
}

#[test]
fn where_the_dtx_cids_are_damaged_nothing_counts_as_committed() {
    let driver = lad();
    let of_one = snapshot::to_bytes(&vec![Kept { committed: vec![0; 256], head: 0, records: 0 }]);
    for damaged in [of_one, vec![]] {
        // By serial numbers half of all ids lie before 0.
        let mut image = CrashImage::new(Pages::new(driver.geometry.pmem_base, driver.geometry.pmem_bytes));
        let group = Some(dtx(0, 200).number());
        driver.kept(&[StagedWrite { controller: 0, group, line: line(3), mask: u64::MAX, data: [3; 64] }], &mut image);
        image.structures.insert(CONTROLLERS.to_owned(), damaged);
        let report = recovery::recover(&driver.spec, &driver.geometry, &mut image).unwrap();
        assert_eq!((values(&image)[2], report.losses.len()), (0, 1));
    }
}

#[test]
fn the_cost_is_that_of_the_paper() {
    let spec = LadSpec::default();
    let mut geometry = geometry_of::<Lad>(&spec, 1, 1);
    geometry.l1d.sets = 256;
    geometry.l1d.ways = 2;
    geometry.write_queue_entries = 64;
    let cost = spec.cost(&geometry);
    let bits = |name: &str| {
        let found = cost.structures.iter().filter(|s| s.name.contains(name));
        found.map(|structure| structure.bits).sum::<u64>()
    };
    assert_eq!((bits("bit vector") + bits("DTX_State")) / 8, 70, "section 4.2");
    assert_eq!((bits("queue entries") + bits("DTX_CID")) / 8, 392, "section 4.3");
}

#[test]
fn what_cannot_be_built_is_refused() {
    let refused = |spec: LadSpec| {
        let geometry = geometry_of::<Lad>(&LadSpec::default(), 1, 4);
        Lad::build(&spec, &geometry).map(|_| ()).unwrap_err()
    };
    let refusals = [
        (LadSpec { dtx_id_bits: 9, ..LadSpec::default() }, "dtx_id_bits"),
        (LadSpec { logging_percent: 0, ..LadSpec::default() }, "logging_percent"),
        (LadSpec { undo_log_entries: 100, undo_log_entries_max: 99, ..LadSpec::default() }, "undo_log_entries_max"),
        (LadSpec { undo_log_entries: 7, ..LadSpec::default() }, "undo_log_entries"),
        (LadSpec { purgatory_entries: 255, ..LadSpec::default() }, "purgatory_entries"),
    ];
    for (spec, field) in refusals {
        assert_eq!(refused(spec).field, field);
    }
}

#[test]
fn its_variants_share_a_section_of_parameters() {
    use super::variant::{VARIANT, VARIANT_BASE};
    assert_eq!((VARIANT.name, VARIANT_BASE.name), ("lad", "lad-base"));
    assert_eq!(VARIANT.hardware.name, VARIANT_BASE.hardware.name);
    assert_eq!(VARIANT.hardware.threads_max, 256);
}
