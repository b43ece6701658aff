//! The log of a history: recorded once, while the machine runs.

use durasim_types::{Boundary, BoundaryKind, History, HistoryStep, TxId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// A step that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// A moment of a run: the number of steps of its history before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub(super) u64);

/// A moment of a run, by all that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedMoment {
    pub position: Position,
    markers: usize,
    lines: usize,
}

impl RecordedMoment {
    /// The number of boundaries of a kind that the run has passed.
    pub fn boundaries(&self, kind: BoundaryKind) -> usize {
        if kind == BoundaryKind::Markers { self.markers } else { self.lines }
    }
}

/// The report of a transaction about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub object: u64,
    pub old: u64,
    pub new: u64,
}

/// A transaction with its place in the history; steps are numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub tx: TxId,
    pub thread: u32,
    /// The operation that it is a part of.
    pub operation: Option<u64>,
    /// The begin of its operation, or its own if it is not part of one.
    pub begun: u64,
    pub committing: u64,
    pub acknowledged: u64,
    pub aborted: u64,
    pub touched: Vec<Touch>,
    /// It has made all its reports.
    pub has_reported: bool,
}

impl Unit {
    /// Its name in messages.
    pub fn name(&self) -> String {
        match self.operation {
            Some(number) => format!("operation {number} of thread {} (transaction {})", self.thread, self.tx.0),
            None => format!("transaction {} of thread {}", self.tx.0, self.thread),
        }
    }
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    /// Number and begin of its operation.
    operation: Option<(u64, u64)>,
    /// Its last transaction.
    unit: Option<usize>,
    /// The report that is being made.
    object: Option<u64>,
    old: Option<u64>,
}

/// BoundaryKind of operations, each with the number of the persist event before it.
#[derive(Clone, Debug, Default)]
struct BoundaryLog {
    boundaries: Vec<(u64, Boundary)>,
    threads: BTreeSet<u32>,
}

impl BoundaryLog {
    fn pass(&mut self, after: u64, thread: u32, boundary: Boundary) {
        self.boundaries.push((after, boundary));
        self.threads.insert(thread);
    }
}

/// The recorded history.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// In the order in which they began.
    pub units: Vec<Unit>,
    /// For each step the number of the persist event before it.
    pub after: Vec<u64>,
    /// The steps at which an epoch ended.
    pub epoch_ends: Vec<u64>,
    /// The first report that makes no sense, with its step.
    pub nonsense: Option<(u64, String)>,
    threads: BTreeMap<u32, Thread>,
    /// The begins and ends of operations, and the lines that were printed.
    markers: BoundaryLog,
    lines: BoundaryLog,
    /// Transactions that are neither acknowledged nor aborted.
    open: BTreeMap<TxId, usize>,
}

impl Log {
    /// A new step, and its number.
    fn step(&mut self, after: u64) -> u64 {
        self.after.push(after);
        self.after.len() as u64 - 1
    }

    /// A report makes no sense. That is a step of its own.
    fn refuse(&mut self, after: u64, what: String) {
        let now = self.step(after);
        self.nonsense.get_or_insert((now, what));
    }

    fn operation_begins(&mut self, after: u64, thread: u32, number: u64) {
        self.markers.pass(after, thread, Boundary::Begins(number));
        let begun = self.step(after);
        let state = self.threads.entry(thread).or_default();
        *state = Thread { operation: Some((number, begun)), ..Thread::default() };
    }

    fn operation_ends(&mut self, after: u64, thread: u32) {
        let ended = self.threads.insert(thread, Thread::default());
        let number = ended.and_then(|thread| thread.operation).map_or(0, |(number, _)| number);
        self.markers.pass(after, thread, Boundary::Ends(number));
    }

    /// A part of a report of a thread: it belongs to the thread's last transaction.
    fn report(&mut self, after: u64, thread: u32, what: impl FnOnce(&mut Thread) -> Option<Touch>) {
        let state = self.threads.entry(thread).or_default();
        let Some(unit) = state.unit.and_then(|unit| self.units.get_mut(unit)) else {
            return self.refuse(after, format!("thread {thread} reports an object outside of a transaction"));
        };
        let Some(touch) = what(state) else { return };
        if unit.aborted == NEVER && unit.has_reported {
            let what = format!("{} reports object {:#x} after its commit", unit.name(), touch.object);
            return self.refuse(after, what);
        }
        unit.touched.push(touch);
    }
}

impl History for Log {
    fn note(&mut self, after: u64, step: HistoryStep) {
        match step {
            HistoryStep::OperationBegins { thread, number } => self.operation_begins(after, thread, number),
            HistoryStep::OperationEnds { thread } => self.operation_ends(after, thread),
            HistoryStep::TransactionBegins { thread, tx } => {
                let now = self.step(after);
                let index = self.units.len();
                let state = self.threads.entry(thread).or_default();
                *state = Thread { operation: state.operation, unit: Some(index), ..Thread::default() };
                self.units.push(Unit {
                    tx,
                    thread,
                    operation: state.operation.map(|(number, _)| number),
                    begun: state.operation.map_or(now, |(_, begun)| begun),
                    committing: NEVER,
                    acknowledged: NEVER,
                    aborted: NEVER,
                    touched: Vec::new(),
                    has_reported: false,
                });
                self.open.insert(tx, index);
            }
            HistoryStep::Object { thread, object } => self.report(after, thread, |state| {
                (state.object, state.old) = (Some(object), None);
                None
            }),
            HistoryStep::Old { thread, version } => self.report(after, thread, |state| {
                state.old = Some(version);
                None
            }),
            HistoryStep::New { thread, version } => self.report(after, thread, |state| {
                let (object, old) = (state.object.take(), state.old.take());
                Some(Touch { object: object?, old: old?, new: version })
            }),
            HistoryStep::MayCommit(tx) | HistoryStep::Committing(tx) => {
                let now = self.step(after);
                if let Some(&index) = self.open.get(&tx) {
                    let unit = &mut self.units[index];
                    unit.committing = unit.committing.min(now);
                    unit.has_reported |= matches!(step, HistoryStep::Committing(_));
                }
            }
            HistoryStep::Acknowledged(tx) => {
                let now = self.step(after);
                if let Some(index) = self.open.remove(&tx) {
                    self.units[index].acknowledged = now;
                }
            }
            HistoryStep::Aborted(tx) => {
                let now = self.step(after);
                if let Some(index) = self.open.remove(&tx) {
                    self.units[index].aborted = now;
                }
            }
            HistoryStep::LinePrinted { thread } => {
                let printed = self.lines.boundaries.len() as u64 + 1;
                self.lines.pass(after, thread, Boundary::Printed(printed));
            }
            HistoryStep::EpochEnds => {
                let now = self.step(after);
                self.epoch_ends.push(now);
            }
        }
    }
}

/// Records the history of a run: one half is given to the machine, the other kept.
#[derive(Clone, Debug, Default)]
pub struct HistoryRecorder(Arc<Mutex<Log>>);

impl HistoryRecorder {
    /// The half for the machine: `system_mut().keep_history(...)`.
    pub fn for_machine(&self) -> Box<dyn History> {
        Box::new(self.clone())
    }

    /// The thread of a transaction, and the operation that it is part of.
    pub(crate) fn place_of(&self, tx: TxId) -> Option<(u32, Option<u64>)> {
        self.with(|log| log.units.iter().find(|unit| unit.tx == tx).map(|unit| (unit.thread, unit.operation)))
    }

    /// The boundaries that divide what the program does: its markers of operations, or the lines that it prints if it has none.
    pub(crate) fn kind_of_boundaries(&self) -> Option<BoundaryKind> {
        self.with(|log| match (log.markers.boundaries.is_empty(), log.lines.boundaries.is_empty()) {
            (false, _) => Some(BoundaryKind::Markers),
            (true, false) => Some(BoundaryKind::Lines),
            (true, true) => None,
        })
    }

    /// The boundaries of a kind, each with the number of the persist event before it, and the number of threads that have passed them.
    pub(crate) fn boundaries(&self, kind: BoundaryKind) -> (Vec<(u64, Boundary)>, usize) {
        self.with(|log| {
            let BoundaryLog { boundaries, threads } =
                if kind == BoundaryKind::Markers { &log.markers } else { &log.lines };
            (boundaries.clone(), threads.len())
        })
    }

    /// The moment up to which the run has been recorded.
    pub fn position(&self) -> Position {
        self.with(|log| Position(log.after.len() as u64))
    }

    /// As [`HistoryRecorder::position`], with the boundaries.
    pub(crate) fn moment(&self) -> RecordedMoment {
        self.with(|log| RecordedMoment {
            position: Position(log.after.len() as u64),
            markers: log.markers.boundaries.len(),
            lines: log.lines.boundaries.len(),
        })
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Log) -> T) -> T {
        act(&mut self.0.lock().expect("no thread panics while it holds the log"))
    }
}

impl History for HistoryRecorder {
    fn note(&mut self, after: u64, step: HistoryStep) {
        self.with(|log| log.note(after, step));
    }
}
