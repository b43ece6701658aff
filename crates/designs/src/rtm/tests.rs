//! Scenarios of hardware transactions.

use super::{Rtm, RtmSpec, status};
use crate::testing::{cached, geometry, word};
use durasim_contract::{
    AbortCause, Action, Actions, CrashImage, CrashSink, CrashView, Ctx, Design, Durability, Evict, Gate, LevelId,
    LineTag, Load, Probe, Request, Store, Trap,
};
use durasim_types::{CoreId, Domain, LineAddr, Pages, PhysAddr, TxId};
use std::collections::BTreeMap;

/// The word of a lock in DRAM, and one of SPHT's snapshot there.
const SGL: PhysAddr = PhysAddr(0x1000);
const SNAPSHOT: PhysAddr = PhysAddr(0x2000);

fn cx(core: u16) -> Ctx {
    Ctx { core: CoreId(core), thread: 0, cycle: 0, instructions: 0 }
}

/// A line in an L1D or below it: its first word, whether it is dirty, its tag.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Version {
    value: u64,
    dirty: bool,
    tag: LineTag,
}

/// L1Ds with what is below them. Each access asks the design as the machine does.
struct Bench {
    design: Box<dyn Durability>,
    l1d: BTreeMap<(u16, LineAddr), Version>,
    below: BTreeMap<LineAddr, u64>,
    aborted: Vec<(TxId, AbortCause)>,
}

impl Bench {
    fn new() -> Self {
        Bench::with(&RtmSpec::default())
    }

    fn with(spec: &RtmSpec) -> Self {
        let design = Rtm::build(spec, &geometry::<Rtm>(spec, 4)).expect("four cores are few");
        Bench { design: Box::new(design), l1d: BTreeMap::new(), below: BTreeMap::new(), aborted: Vec::new() }
    }

    fn begin(&mut self, core: u16, tx: u64) {
        assert_eq!(self.design.tx_begin(&cx(core), TxId(tx), &mut Actions::default()), Gate::Done);
    }

    fn abort(&mut self, tx: TxId, why: AbortCause) {
        let mut out = Actions::default();
        self.design.tx_abort(&cx(0), tx, why, &mut out);
        assert_eq!(out.as_slice(), [Action::InvalidateTagged(tx)]);
        let design = &self.design;
        self.l1d.retain(|_, version| !design.belongs_to(version.tag, tx));
        self.aborted.push((tx, why));
    }

    /// A request of a core for a line: those in its way abort, then it has the line alone or shared.
    fn request(&mut self, core: u16, line: LineAddr, tx: Option<u64>, write: bool) {
        let request = Request { line, tag: LineTag::NONE, tx: tx.map(TxId), write, holder: None };
        loop {
            match self.design.probe(&cx(core), &request, &mut Actions::default()) {
                Probe::Grant => break,
                Probe::Abort(rival, why) => self.abort(rival, why),
                Probe::Wait(wait) => panic!("{wait:?}"),
            }
        }
        let others: Vec<_> = self.l1d.keys().filter(|key| key.1 == line && key.0 != core).copied().collect();
        for key in others {
            let version = self.l1d[&key];
            if version.dirty {
                self.below.insert(line, version.value);
            }
            self.l1d.remove(&key);
        }
        let value = self.below.get(&line).copied().unwrap_or(0);
        self.l1d.entry((core, line)).or_insert(Version { value, ..Version::default() });
    }

    fn load(&mut self, core: u16, addr: PhysAddr, tx: Option<u64>) -> u64 {
        self.request(core, addr.line(), tx, false);
        let version = self.l1d.get_mut(&(core, addr.line())).expect("it was brought");
        if let Some(tx) = tx {
            let load = Load { addr, tx: Some(TxId(tx)) };
            let gate = self.design.load(&cx(core), &load, &mut version.tag, &mut Actions::default());
            assert_eq!(gate, Gate::Done);
        }
        version.value
    }

    fn store(&mut self, core: u16, addr: PhysAddr, data: u64, tx: Option<u64>) {
        let line = addr.line();
        self.request(core, line, tx, true);
        let version = self.l1d[&(core, line)];
        let live = version.tag.is_some() && self.design.live(version.tag);
        let mut tag = if live { version.tag } else { LineTag::NONE };
        let store = Store { addr, len: 8, data, tx: tx.map(TxId), before: &[0; 64], dirty: version.dirty };
        let mut out = Actions::default();
        assert_eq!(self.design.store(&cx(core), &store, &mut tag, &mut out), Gate::Done);
        for action in out.as_slice() {
            assert_eq!(*action, Action::CopyDown(line));
            self.below.insert(line, version.value);
        }
        self.l1d.insert((core, line), Version { value: data, dirty: true, tag });
    }

    fn commit(&mut self, core: u16, tx: u64) {
        assert_eq!(self.design.tx_commit(&cx(core), TxId(tx), &mut Actions::default()), Gate::Done);
    }

    /// The L1D of a core evicts a line.
    fn evict(&mut self, core: u16, addr: PhysAddr) -> Evict {
        let version = self.l1d[&(core, addr.line())];
        let mut out = Actions::default();
        let verdict = self.design.evict(&cx(core), LevelId::L1d, addr.line(), version.tag, &[0; 64], &mut out);
        if let Evict::Abort(tx, why) = verdict {
            self.abort(tx, why);
        }
        verdict
    }

    fn status(&self) -> u64 {
        let (_, why) = self.aborted.last().expect("something was aborted");
        self.design.abort_status(*why, false)
    }
}

#[test]
fn the_requester_wins() {
    let mut bench = Bench::new();
    bench.store(0, word(0, 0), 7, None);
    bench.begin(0, 1);
    bench.begin(1, 2);
    assert_eq!(bench.load(0, word(0, 0), Some(1)), 7);
    assert_eq!(bench.load(1, word(0, 0), Some(2)), 7, "readers do not conflict");
    assert!(bench.aborted.is_empty());
    bench.store(0, word(0, 0), 8, Some(1));
    assert_eq!(bench.aborted, [(TxId(2), AbortCause::Conflict)], "a writer takes the line from readers");
    assert_eq!(bench.status(), status::CONFLICT | status::RETRY);
    assert_eq!(bench.load(2, word(0, 0), None), 7, "a reader outside of transactions takes it from the writer");
    assert_eq!(bench.aborted[1], (TxId(1), AbortCause::Conflict));
}

/// Algorithm 2: transactions read the lock in DRAM, so an acquisition of the lock aborts them all.
#[test]
fn taking_the_global_lock_aborts_all_who_have_read_it() {
    let mut bench = Bench::new();
    for (core, tx) in [(0, 1), (1, 2)] {
        bench.begin(core, tx);
        assert_eq!(bench.load(core, SGL, Some(tx)), 0);
        bench.store(core, word(u64::from(core), 0), 5, Some(tx));
    }
    bench.store(2, SGL, 1, None);
    assert_eq!(bench.aborted.iter().map(|(tx, _)| tx.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!([0, 1].map(|line| bench.load(2, word(line, 0), None)), [0, 0]);
}

/// Algorithm 4: the log in persistent memory and the snapshot in DRAM commit together, and an abort undoes both.
#[test]
fn log_and_snapshot_are_one_write_set() {
    let mut bench = Bench::new();
    let log = word(9, 0);
    bench.store(0, SNAPSHOT, 3, None);
    for (tx, code) in [(1, Some(0x2a)), (2, None)] {
        bench.begin(0, tx);
        bench.store(0, log, 4, Some(tx));
        bench.store(0, SNAPSHOT, 4, Some(tx));
        assert_eq!(bench.below[&SNAPSHOT.line()], 3, "the dirty version before it lies one level down");
        match code {
            // Algorithm 1, line 13: the log is full.
            Some(code) => bench.abort(TxId(tx), AbortCause::Requested(code)),
            None => bench.commit(0, tx),
        }
        let expected = if code.is_some() { (0, 3) } else { (4, 4) };
        assert_eq!((bench.load(1, log, None), bench.load(1, SNAPSHOT, None)), expected);
        if code.is_some() {
            assert_eq!(bench.status(), status::EXPLICIT | 0x2a << status::CODE_SHIFT);
        }
    }
}

#[test]
fn a_written_line_that_leaves_the_l1d_aborts_and_a_read_one_does_not() {
    let mut bench = Bench::new();
    bench.begin(0, 1);
    bench.load(0, word(0, 0), Some(1));
    bench.store(0, SNAPSHOT, 1, Some(1));
    assert_eq!(bench.evict(0, word(0, 0)), Evict::Proceed);
    bench.l1d.remove(&(0, word(0, 0).line()));
    assert_eq!(bench.evict(0, SNAPSHOT), Evict::Abort(TxId(1), AbortCause::Capacity));
    assert_eq!(bench.status(), status::CAPACITY, "a new attempt would not fit either");
    bench.begin(0, 2);
    bench.load(0, word(0, 0), Some(2));
    bench.l1d.clear();
    bench.store(1, word(0, 0), 1, None);
    assert_eq!(bench.aborted[1], (TxId(2), AbortCause::Conflict), "the line is in no cache, and in the read set");
}

#[test]
fn a_read_set_has_a_limit() {
    let mut bench = Bench::with(&RtmSpec { read_set_lines: 2 });
    bench.begin(0, 1);
    for line in [0, 1, 0, 1] {
        bench.load(0, word(line, 0), Some(1));
    }
    let load = Load { addr: word(2, 0), tx: Some(TxId(1)) };
    let gate = bench.design.load(&cx(0), &load, &mut LineTag::default(), &mut Actions::default());
    assert_eq!(gate, Gate::Abort(TxId(1), AbortCause::Capacity));
}

#[test]
fn traps_and_nesting_have_their_status() {
    let bench = Bench::new();
    let status_of = |why, nested| bench.design.abort_status(why, nested);
    for trap in [Trap::SystemCall, Trap::Fault, Trap::Interrupt, Trap::CacheBlock] {
        assert_eq!(status_of(AbortCause::Trapped(trap), false), 0, "no bit stands for {trap:?}");
    }
    assert_eq!(status_of(AbortCause::Trapped(Trap::Breakpoint), false), status::DEBUG);
    assert_eq!(status_of(AbortCause::Trapped(Trap::SystemCall), true), status::NESTED);
    assert_eq!(status_of(AbortCause::Requested(255), true), status::EXPLICIT | status::NESTED | 0xff << 24);
}

#[test]
fn what_is_saved_goes_on_as_it_was() {
    let mut bench = Bench::new();
    bench.begin(0, 1);
    bench.load(0, word(0, 0), Some(1));
    bench.store(0, word(1, 0), 1, Some(1));
    let spec = RtmSpec::default();
    bench.design = Rtm::load(&spec, &geometry::<Rtm>(&spec, 4), &bench.design.save()).expect("it was saved");
    bench.store(1, word(0, 0), 2, None);
    assert_eq!(bench.aborted, [(TxId(1), AbortCause::Conflict)]);
}

/// On a machine with durable caches, a power failure keeps committed lines, pre-images among them, and no open write set.
#[test]
fn a_power_failure_ends_open_write_sets() {
    let geometry = geometry::<Rtm>(&RtmSpec::default(), 2);
    let mut design = Rtm::build(&RtmSpec::default(), &geometry).expect("two cores are few");
    for tx in [1, 2] {
        design.tx_begin(&cx(tx as u16 - 1), TxId(tx), &mut Actions::default());
    }
    design.tx_commit(&cx(0), TxId(1), &mut Actions::default());
    let lines = [cached(0, 1, LineTag::NONE, 30), cached(0, 0, LineTag(1), 10), cached(0, 1, LineTag(2), 31)];
    let view = CrashView { domain: Domain::Eadr, geometry: &geometry, lines: &lines, staged: &[] };
    let mut image = CrashImage::new(Pages::new(geometry.pmem_base, geometry.pmem_bytes));
    design.crash(&view, &mut CrashSink::new(&mut image, u64::MAX)).unwrap();
    assert_eq!([0, 1].map(|number| image.read_u64(word(number, 0))), [10, 30]);
}
