//! Writes down what a window of a run does.

use durasim_machine::{Observer, PMEM_BASE, System};
use durasim_types::{CoreId, Cycle, DataRange, EventRoom, Journal, LineAddr, PersistEvent, Site, TxId, Write};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// A transaction that has ended, or is open at the end of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransactionSlice {
    pub tx: TxId,
    pub thread: u32,
    pub begun: Cycle,
    /// Its commit instruction began, if it did.
    pub committing: Option<Cycle>,
    pub ended: Cycle,
    pub end: TransactionEnd,
    step: u64,
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionEnd {
    Committed,
    Aborted,
    /// It has not ended.
    Open,
}

/// A line that leaves a level to make room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Eviction {
    pub at: Cycle,
    pub core: CoreId,
    pub level: &'static str,
    pub line: LineAddr,
    pub is_written_back: bool,
    step: u64,
}

/// A structure with entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Occupied {
    /// The write queue of a controller of persistent memory.
    WriteQueue(u16),
    /// A structure of the design.
    Structure(&'static str),
}

/// The region of interest: its first and its last step, with their cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegionSteps {
    pub begin: (u64, Cycle),
    pub end: Option<(u64, Cycle)>,
}

#[derive(Clone, Copy, Debug)]
struct OpenTransaction {
    thread: u32,
    begun: Cycle,
    committing: Option<Cycle>,
}

/// The steps of the run in the window.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    window: Range<Cycle>,
    room: Option<EventRoom>,
    /// The number of the persist event after which power fails.
    failure: Option<u64>,
    failed_at: Option<Cycle>,
    /// Steps so far, in the order of calls: that of the counters.
    steps: u64,
    last_cycle: Cycle,
    moment: Cycle,
    thread: u32,
    open: BTreeMap<TxId, OpenTransaction>,
    last_occupancy: BTreeMap<Occupied, u64>,
    pub transactions: Vec<TransactionSlice>,
    pub evictions: Vec<Eviction>,
    /// Reads of persistent memory: the line, the cycle in which its controller was asked, and that in which it has the data.
    pub reads: Vec<(LineAddr, Cycle, Cycle)>,
    /// Persist events, and whether they come before the end of the region of interest.
    pub events: Vec<(PersistEvent, bool)>,
    /// Changes of the number of entries in use.
    pub occupancies: Vec<(Cycle, Occupied, u64)>,
    pub region: Option<RegionSteps>,
}

impl Recording {
    /// The cycle in which power fails, if it does.
    pub fn power_failure(&self) -> Option<Cycle> {
        self.failed_at
    }

    /// The last cycle in which something was recorded.
    pub fn last_cycle(&self) -> Cycle {
        self.last_cycle
    }

    /// Transactions that have not ended, as of a cycle.
    pub fn open_transactions(&self, at: Cycle) -> impl Iterator<Item = TransactionSlice> {
        self.open.iter().map(move |(&tx, open)| open.ended(tx, at, TransactionEnd::Open, self.steps))
    }

    /// Whether counters at the end of the region of interest have a step.
    fn is_counted(&self, step: u64) -> bool {
        self.region.is_none_or(|RegionSteps { begin, end }| begin.0 <= step && end.is_none_or(|(end, _)| step < end))
    }

    /// Whether counters have the end of a transaction.
    pub fn counts_transaction(&self, transaction: &TransactionSlice) -> bool {
        self.is_counted(transaction.step)
    }

    /// Whether counters have an eviction.
    pub fn counts_eviction(&self, eviction: &Eviction) -> bool {
        self.is_counted(eviction.step)
    }

    fn step(&mut self, at: Cycle) -> u64 {
        self.steps += 1;
        self.last_cycle = self.last_cycle.max(at);
        self.steps
    }

    /// Whether something at a cycle is in the window and has room.
    fn takes(&self, from: Cycle, until: Cycle) -> bool {
        let is_in_window = from < self.window.end && until >= self.window.start;
        is_in_window && self.room.as_ref().is_some_and(EventRoom::take)
    }

    fn end(&mut self, tx: TxId, end: TransactionEnd) {
        let (at, thread) = (self.moment, self.thread);
        let step = self.step(at);
        // One that began before the trace did, in the run that a snapshot was taken of, has no begin.
        let unknown = OpenTransaction { thread, begun: self.window.start.min(at), committing: None };
        let open = self.open.remove(&tx).unwrap_or(unknown);
        if self.takes(open.begun, at) {
            self.transactions.push(open.ended(tx, at, end, step));
        }
    }

    fn occupied(&mut self, at: Cycle, what: Occupied, entries: u64) {
        if self.last_occupancy.insert(what, entries) != Some(entries) && self.takes(at, at) {
            self.occupancies.push((at, what, entries));
        }
    }
}

impl OpenTransaction {
    fn ended(self, tx: TxId, ended: Cycle, end: TransactionEnd, step: u64) -> TransactionSlice {
        let OpenTransaction { thread, begun, committing } = self;
        TransactionSlice { tx, thread, begun, committing, ended: ended.max(begun), end, step }
    }
}

/// Records a window of a run. Clones record the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Recording>>);

impl Recorder {
    /// A recorder of a window of a run, up to the persist event after which power fails, if one is given.
    pub fn new(window: Range<Cycle>, room: EventRoom, failure: Option<u64>) -> Self {
        let recording = Recording { window, room: Some(room), failure, ..Recording::default() };
        Recorder(Arc::new(Mutex::new(recording)))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Recording) -> T) -> T {
        act(&mut self.0.lock().expect("no thread panics while it holds the recording"))
    }

    /// The recorded steps; none are kept from now on.
    pub fn take(&self) -> Recording {
        self.with(std::mem::take)
    }
}

impl Journal for Recorder {
    fn moment(&mut self, _core: CoreId, cycle: Cycle) {
        self.with(|recording| recording.moment = cycle);
    }

    fn site(&mut self, site: Site) {
        self.with(|recording| recording.thread = site.thread);
    }

    fn data_range(&mut self, _range: DataRange) {}

    fn begin(&mut self, tx: TxId) {
        self.with(|recording| {
            let (thread, begun) = (recording.thread, recording.moment);
            recording.step(begun);
            recording.open.insert(tx, OpenTransaction { thread, begun, committing: None });
        });
    }

    fn store(&mut self, _tx: Option<TxId>, _write: Write) {}

    fn made_room(&mut self, core: CoreId, at: Cycle, level: &'static str, line: LineAddr, is_written_back: bool) {
        self.with(|recording| {
            let step = recording.step(at);
            if recording.takes(at, at) {
                recording.evictions.push(Eviction { at, core, level, line, is_written_back, step });
            }
        });
    }

    fn read_from_memory(&mut self, line: LineAddr, asked: Cycle, done: Cycle) {
        if line >= PMEM_BASE.line() {
            self.with(|recording| {
                recording.step(done);
                // Its begin and its end change the counter.
                if recording.takes(asked, done) && recording.takes(asked, done) {
                    recording.reads.push((line, asked, done));
                }
            });
        }
    }

    fn region(&mut self, at: Cycle, begins: bool) {
        self.with(|recording| {
            let step = recording.step(at);
            if begins {
                recording.region = Some(RegionSteps { begin: (step, at), end: None });
            } else {
                // It began before the trace did.
                let before = RegionSteps { begin: (0, recording.window.start), end: None };
                recording.region.get_or_insert(before).end = Some((step, at));
            }
        });
    }

    fn committing(&mut self, tx: TxId) {
        self.with(|recording| {
            let at = recording.moment;
            recording.step(at);
            if let Some(open) = recording.open.get_mut(&tx) {
                open.committing.get_or_insert(at);
            }
        });
    }

    fn acknowledged(&mut self, tx: TxId) {
        self.with(|recording| recording.end(tx, TransactionEnd::Committed));
    }

    fn aborted(&mut self, tx: TxId) {
        self.with(|recording| recording.end(tx, TransactionEnd::Aborted));
    }
}

impl Observer for Recorder {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        self.with(|recording| {
            recording.step(event.cycle);
            if recording.failed_at.is_some() {
                return;
            }
            if recording.failure == Some(event.number) {
                recording.failed_at = Some(event.cycle);
            }
            if !recording.window.contains(&event.cycle) {
                return;
            }
            if recording.takes(event.cycle, event.cycle) {
                let is_counted = recording.region.is_none_or(|region| region.end.is_none());
                recording.events.push((*event, is_counted));
            }
            for controller in 0..system.geometry().controllers {
                let entries = system.write_queue_entries(controller).into();
                recording.occupied(event.cycle, Occupied::WriteQueue(controller), entries);
            }
            system.design_occupancies(&mut |structure, entries| {
                recording.occupied(event.cycle, Occupied::Structure(structure), entries);
            });
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: CoreId = CoreId(0);

    fn recorder(window: Range<Cycle>) -> Recorder {
        Recorder::new(window, EventRoom::new(100), None)
    }

    fn step(recorder: &mut Recorder, thread: u32, at: Cycle) {
        recorder.moment(CORE, at);
        recorder.site(Site { thread, ..Site::default() });
    }

    #[test]
    fn a_transaction_has_the_thread_of_its_begin_and_what_its_end_was() {
        let mut recorder = recorder(0..1000);
        step(&mut recorder, 3, 10);
        recorder.begin(TxId(1));
        step(&mut recorder, 4, 12);
        recorder.begin(TxId(2));
        recorder.begin(TxId(5));
        step(&mut recorder, 3, 20);
        recorder.committing(TxId(1));
        step(&mut recorder, 3, 25);
        recorder.committing(TxId(1));
        step(&mut recorder, 3, 30);
        recorder.acknowledged(TxId(1));
        step(&mut recorder, 3, 40);
        recorder.aborted(TxId(2));
        let recording = recorder.take();
        let ended: Vec<_> =
            recording.transactions.iter().map(|t| (t.tx.0, t.thread, t.begun, t.ended, t.end)).collect();
        assert_eq!(ended, [(1, 3, 10, 30, TransactionEnd::Committed), (2, 4, 12, 40, TransactionEnd::Aborted)]);
        assert_eq!(recording.transactions[0].committing, Some(20), "the first one counts");
        let open: Vec<_> = recording.open_transactions(50).map(|t| (t.tx.0, t.ended, t.end)).collect();
        assert_eq!(open, [(5, 50, TransactionEnd::Open)]);
    }

    #[test]
    fn only_what_touches_the_window_is_kept() {
        let mut recorder = recorder(100..200);
        let line = PMEM_BASE.line();
        for at in [99, 100, 199, 200] {
            recorder.made_room(CORE, at, "l2", line, true);
        }
        recorder.read_from_memory(line, 90, 99);
        recorder.read_from_memory(line, 90, 100);
        recorder.read_from_memory(line, 199, 300);
        recorder.read_from_memory(LineAddr(line.0 - 1), 150, 160);
        recorder.read_from_memory(line, 200, 300);
        for (tx, begun, ended) in [(1, 80, 90), (2, 90, 110), (3, 190, 250), (4, 200, 250)] {
            step(&mut recorder, 0, begun);
            recorder.begin(TxId(tx));
            step(&mut recorder, 0, ended);
            recorder.acknowledged(TxId(tx));
        }
        let recording = recorder.take();
        assert_eq!(recording.evictions.iter().map(|eviction| eviction.at).collect::<Vec<_>>(), [100, 199]);
        assert_eq!(recording.reads, [(line, 90, 100), (line, 199, 300)]);
        assert_eq!(recording.transactions.iter().map(|one| one.tx.0).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn counters_have_what_is_done_in_the_region_of_interest() {
        let mut recorder = recorder(0..1000);
        let line = PMEM_BASE.line();
        recorder.made_room(CORE, 10, "l1d", line, true);
        recorder.region(20, true);
        // Other cores may be behind the one that begins the region, and counters have what they do from now on.
        recorder.made_room(CORE, 15, "l1d", line, true);
        recorder.region(30, false);
        recorder.made_room(CORE, 25, "l1d", line, true);
        let recording = recorder.take();
        let counted: Vec<bool> = recording.evictions.iter().map(|one| recording.counts_eviction(one)).collect();
        assert_eq!(counted, [false, true, false]);
    }

    #[test]
    fn a_value_is_kept_when_it_changes() {
        let recorder = recorder(0..1000);
        recorder.with(|recording| {
            for (at, entries) in [(1, 0), (2, 3), (3, 3), (4, 2)] {
                recording.occupied(at, Occupied::WriteQueue(0), entries);
            }
        });
        let found: Vec<_> = recorder.take().occupancies.iter().map(|(at, _, entries)| (*at, *entries)).collect();
        assert_eq!(found, [(1, 0), (2, 3), (4, 2)]);
    }
}
