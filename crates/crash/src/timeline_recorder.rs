//! Records what happened to a few lines in a replayed trial: their stores and persist events, where their copies
//! lay when the power failed, and what recovery made of them.
//!
//! A trial is replayed twice. The first run finds the lines that matter, the second one records them.

use crate::byte_oracle::ByteOracle;
use crate::history::HistoryRecorder;
use crate::timeline_document::{
    LineContents, LineCopyRecord, Loss, PowerFailure, RecoveryWrite, RunKind, TimelineEvent, TimelinePhase, Trace,
    words,
};
use crate::trial::PowerFault;
use durasim_contract::{CrashImage, Geometry, ImageWrite, LevelId, LineTag, RecoveryReport};
use durasim_machine::{CopyLocation, LineCopy, System};
use durasim_types::{CoreId, Cycle, EventKind, Journal, Line, LineAddr, Pages, PersistEvent, PhysAddr, TxId, Write};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

/// Stores and events that are kept of each line, the last ones.
const EVENTS_MAX: usize = 60;
/// Places of a structure or region that name a line.
const TRACES_MAX: usize = 4;
const WORD_BYTES: usize = 8;

/// The record of a transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransactionRecord {
    pub core: u16,
    pub begun: Cycle,
    pub committing: Option<Cycle>,
    pub acknowledged: Option<Cycle>,
    pub aborted: Option<Cycle>,
    /// Lines in the order of its first stores to them.
    pub lines: Vec<LineAddr>,
    /// Its stores to lines that are followed, with what was there before, to take them back.
    stores: Vec<(PhysAddr, u8, u64, u64)>,
}

/// A run that is being written down.
#[derive(Clone, Debug, Default)]
struct RunRecording {
    program: RunKind,
    /// Core and cycle of the next report of the journal.
    moment: (u16, Cycle),
    regions: Vec<(&'static str, PhysAddr, u64)>,
    names: Option<HistoryRecorder>,
    transactions: BTreeMap<TxId, TransactionRecord>,
    /// The last transaction that stored something.
    last: Option<TxId>,
    newest: BTreeMap<LineAddr, Line>,
    events: BTreeMap<LineAddr, VecDeque<(u64, TimelineEvent)>>,
    steps: Vec<(u64, TxId, TimelineEvent)>,
    /// Lines that are followed and that a core has cleaned since its last fence.
    cleaned: BTreeMap<CoreId, BTreeSet<LineAddr>>,
    left_out: u64,
    order: u64,
    failure: Option<PowerFailure>,
    copies: BTreeMap<LineAddr, Vec<LineCopy>>,
    image: Option<CrashImage>,
    closed: bool,
}

#[derive(Debug, Default)]
struct TimelineData {
    /// The lines that are followed; `None`: it is to be found out which matter.
    lines: Option<Vec<LineAddr>>,
    run: RunRecording,
    phases: Vec<TimelinePhase>,
    in_question: Vec<LineAddr>,
    /// Transactions of the last run that ran the program's operations.
    transactions: BTreeMap<TxId, TransactionRecord>,
    last: Option<TxId>,
    names: Option<HistoryRecorder>,
    data_base: Option<PhysAddr>,
    data_bytes: u64,
    /// In the end: each line, and what it may be.
    end: BTreeMap<LineAddr, (Line, Vec<Line>)>,
    recovery_begins: usize,
    starts: Vec<(RunKind, Pages)>,
    recovered: Option<Pages>,
}

/// The record of a run up to a moment.
#[derive(Clone, Debug)]
pub(crate) struct TimelineMoment(RunRecording);

/// The record of a replay.
#[derive(Default)]
pub(crate) struct RecordedTimeline {
    pub phases: Vec<TimelinePhase>,
    /// Lines to which the oracle of bytes objects, or which recovery left in two ways.
    pub in_question: Vec<LineAddr>,
    pub transactions: BTreeMap<TxId, TransactionRecord>,
    pub last: Option<TxId>,
    pub names: Option<HistoryRecorder>,
    pub end: BTreeMap<LineAddr, (Line, Vec<Line>)>,
    pub data_base: Option<PhysAddr>,
    pub data_bytes: u64,
    /// The runs on the machine, each with persistent memory when it started.
    pub starts: Vec<(RunKind, Pages)>,
    /// Persistent memory after the last recovery by the hardware, unless that reported a loss.
    pub recovered: Option<Pages>,
}

impl RecordedTimeline {
    /// The offset of a line in the program's data.
    pub fn data_offset(&self, line: LineAddr) -> Option<u64> {
        let offset = line.base().0.checked_sub(self.data_base?.0)?;
        (offset < self.data_bytes).then_some(offset)
    }
}

/// Writes a replay down. Clones write on the same data.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimelineRecorder(Arc<Mutex<TimelineData>>);

impl TimelineRecorder {
    /// Finds out which lines matter.
    pub fn searching() -> Self {
        TimelineRecorder::default()
    }

    /// Follows these lines.
    pub fn following(lines: &[LineAddr]) -> Self {
        TimelineRecorder(Arc::new(Mutex::new(TimelineData { lines: Some(lines.to_vec()), ..TimelineData::default() })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut TimelineData) -> T) -> T {
        act(&mut self.0.lock().expect("no thread panics while it holds the data"))
    }

    /// The record so far.
    pub fn recorded(&self) -> RecordedTimeline {
        self.with(|data| RecordedTimeline {
            phases: std::mem::take(&mut data.phases),
            in_question: std::mem::take(&mut data.in_question),
            transactions: std::mem::take(&mut data.transactions),
            last: data.last,
            names: data.names.take(),
            end: std::mem::take(&mut data.end),
            data_base: data.data_base,
            data_bytes: data.data_bytes,
            starts: std::mem::take(&mut data.starts),
            recovered: data.recovered.take(),
        })
    }

    /// A run begins.
    pub fn run_begins(&self, program: RunKind, pmem: Pages, geometry: &Geometry, names: Option<&HistoryRecorder>) {
        let regions = geometry.regions.iter().map(|region| (region.name, region.base, region.size_bytes)).collect();
        self.with(|data| {
            let mut newest = BTreeMap::new();
            for &line in data.lines.iter().flatten() {
                newest.insert(line, pmem.line(line));
            }
            data.starts.push((program, pmem));
            data.run = RunRecording { program, regions, newest, names: names.cloned(), ..RunRecording::default() };
        });
    }

    /// A persist event of the run.
    pub fn event(&self, event: &PersistEvent, system: &System) {
        self.with(|data| {
            let TimelineData { lines: Some(lines), run, .. } = data else { return };
            if run.failure.is_none() && !run.closed {
                run.event(lines, event, system);
            }
        });
    }

    /// The power fails after this event, and leaves this.
    pub fn power_fails(&self, event: &PersistEvent, fault: PowerFault, image: &CrashImage, system: &System) {
        self.with(|data| {
            let run = &mut data.run;
            run.failure = Some(PowerFailure::of(event, fault));
            run.closed = fault.revokes_accepted_writes();
            for &line in data.lines.iter().flatten() {
                run.copies.insert(line, system.copies(line));
            }
            run.image = Some(image.clone());
        });
    }

    /// The record of the run so far.
    pub fn moment(&self) -> TimelineMoment {
        self.with(|data| TimelineMoment(data.run.clone()))
    }

    /// Power has failed at this moment, and has left this.
    pub fn power_failed_at(&self, moment: TimelineMoment, left: &Pages) {
        self.with(|data| {
            let TimelineMoment(recorded) = moment;
            let RunRecording { failure, copies, mut image, .. } = std::mem::take(&mut data.run);
            if let Some(image) = &mut image {
                image.pmem = left.clone();
            }
            data.run = RunRecording { failure, copies, image, closed: true, ..recorded };
        });
    }

    /// The run has ended; what is acknowledged by now counts.
    pub fn run_ends(&self) {
        self.with(|data| {
            let mut run = std::mem::take(&mut data.run);
            if let Some(lines) = &data.lines {
                let phase = run.phase(lines);
                data.phases.extend(phase);
            }
            if run.program != RunKind::Recovery {
                (data.transactions, data.last, data.names) = (run.transactions, run.last, run.names);
            }
        });
    }

    /// The hardware's recovery begins: what is kept of it may be dropped again.
    pub fn recovery_begins(&self) {
        self.with(|data| data.recovery_begins = data.phases.len());
    }

    /// Drops the records since then: that recovery ran only to compare its result.
    pub fn forget_recovery(&self) {
        self.with(|data| data.phases.truncate(data.recovery_begins));
    }

    /// The hardware's recovery has run, to its end or to the write at which it was cut.
    pub fn recovered(&self, image: &mut CrashImage, cut: Option<u64>, report: Option<&RecoveryReport>) {
        let log = image.take_log();
        self.with(|data| {
            data.recovered = report.filter(|report| report.losses.is_empty()).map(|_| image.pmem.clone());
            let Some(lines) = &data.lines else { return };
            let writes_total = log.len() as u64;
            let mut writes = Vec::new();
            for (number, write) in (1..).zip(&log) {
                writes.extend(recovery_write(lines, number, write));
            }
            let seen = lines.iter().map(|&line| LineContents::of(line, &image.pmem)).collect();
            let count = |f: fn(&RecoveryReport) -> u64| report.map_or(0, f);
            data.phases.push(TimelinePhase::HardwareRecovery {
                cut_at_write: cut,
                writes_total,
                replayed: count(|r| r.replayed),
                discarded: count(|r| r.discarded),
                losses: report.map(|r| r.losses.clone()).unwrap_or_default(),
                writes,
                lines: seen,
            });
        });
    }

    /// The program's own recovery has run.
    pub fn program_recovered(&self, after: &Pages) {
        self.with(|data| {
            let Some(lines) = &data.lines else { return };
            let seen = lines.iter().map(|&line| LineContents::of(line, after)).collect();
            data.phases.push(TimelinePhase::ProgramRecovery { lines: seen });
        });
    }

    /// These lines are in question.
    pub fn question(&self, lines: Vec<LineAddr>) {
        self.with(|data| data.in_question = lines);
    }

    /// The end: what the oracle of bytes has looked at.
    pub fn judged(&self, oracle: &ByteOracle, pmem: &Pages) {
        let in_question = oracle.lines_in_question(pmem);
        self.with(|data| {
            if let Some(range) = oracle.data() {
                (data.data_base, data.data_bytes) = (Some(range.base), range.size_bytes);
            }
            data.in_question = in_question;
            for &line in data.lines.iter().flatten() {
                data.end.insert(line, (pmem.line(line), oracle.allowed(line)));
            }
        });
    }
}

fn recovery_write(lines: &[LineAddr], number: u64, write: &ImageWrite) -> Vec<RecoveryWrite> {
    let ImageWrite::Pmem(addr, bytes) = write else { return Vec::new() };
    let (begin, end) = (addr.0, addr.0 + bytes.len() as u64);
    let concerned = lines.iter().filter(|line| line.base().0 < end && begin < line.base().0 + size_of::<Line>() as u64);
    let one = |line: &LineAddr| {
        let (mut data, mut mask) = ([0; size_of::<Line>()], 0);
        for (at, byte) in (begin..).zip(bytes).filter(|(at, _)| PhysAddr(*at).line() == *line) {
            data[PhysAddr(at).offset()] = *byte;
            mask |= 1 << PhysAddr(at).offset();
        }
        RecoveryWrite { number, line: line.base().0, words: words(&data, mask) }
    };
    concerned.map(one).collect()
}

/// The value of `len` bytes of a line.
fn value(line: &Line, offset: usize, len: u8) -> u64 {
    let mut bytes = [0; WORD_BYTES];
    bytes[..len as usize].copy_from_slice(&line[offset..offset + len as usize]);
    u64::from_le_bytes(bytes)
}

/// Whether a word is the address of a line, as designs write it down: of its first byte, or the line's number.
fn names(word: &[u8], line: LineAddr) -> bool {
    word == line.base().0.to_le_bytes() || word == line.0.to_le_bytes()
}

impl RunRecording {
    fn next(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn add(&mut self, line: LineAddr, timeline_event: TimelineEvent) {
        let order = self.next();
        let kept = self.events.entry(line).or_default();
        kept.push_back((order, timeline_event));
        if kept.len() > EVENTS_MAX {
            kept.pop_front();
            self.left_out += 1;
        }
    }

    fn add_step(&mut self, tx: TxId, what: &str, cycle: Cycle, event: Option<u64>) {
        if self.transactions.get(&tx).is_some_and(|transaction| !transaction.stores.is_empty()) {
            let order = self.next();
            let after_failure_event = self.failure.is_some();
            let timeline_event =
                TimelineEvent { event, tx: Some(tx.0), after_failure_event, ..TimelineEvent::new(what, cycle) };
            self.steps.push((order, tx, timeline_event));
        }
    }

    fn event(&mut self, lines: &[LineAddr], event: &PersistEvent, system: &System) {
        let what = event.kind.name();
        let timeline_event = TimelineEvent {
            event: Some(event.number),
            core: event.core.map(|core| core.0),
            cause: event.cause.map(|cause| cause.name().to_owned()),
            ..TimelineEvent::new(what, event.cycle)
        };
        let line = event.addr.line();
        if lines.contains(&line) {
            self.add(line, TimelineEvent { line: Some(line.base().0), ..timeline_event });
            return;
        }
        if event.kind == EventKind::Commit {
            let by_core = |transaction: &&TransactionRecord| {
                event.core.is_some_and(|core| core.0 == transaction.core) && transaction.is_committing()
            };
            let tx = self.transactions.iter().rev().find(|(_, transaction)| by_core(transaction)).map(|(tx, _)| *tx);
            if let Some(tx) = tx {
                self.add_step(tx, what, event.cycle, Some(event.number));
            }
            return;
        }
        let inside = |region: &&(&str, PhysAddr, u64)| (region.1.0..region.1.0 + region.2).contains(&event.addr.0);
        let Some(&(name, base, _)) = self.regions.iter().find(inside) else { return };
        // The newest version of these that has left the caches determines the writer.
        let copies = system.copies(line);
        let Some(copy) =
            copies.iter().find(|copy| matches!(copy.place, CopyLocation::Queue { .. } | CopyLocation::Media))
        else {
            return;
        };
        for &wanted in lines {
            let named = copy.data.chunks_exact(WORD_BYTES).any(|word| names(word, wanted));
            let copied = self.newest.get(&wanted).is_some_and(|newest| *newest == copy.data && *newest != [0; 64]);
            if named || copied {
                let how = if copied { "a copy of the line" } else { "names the line" };
                let place = format!("{name}+{:#x}, {how}", event.addr.0 - base.0);
                self.add(
                    wanted,
                    TimelineEvent { line: Some(wanted.base().0), place: Some(place), ..timeline_event.clone() },
                );
            }
        }
    }

    /// A store by a core has been made, or is being made.
    fn store(&mut self, tx: Option<TxId>, write: &Write) {
        let (core, cycle) = self.moment;
        let line = write.addr.line();
        let Some(newest) = self.newest.get_mut(&line) else { return };
        let offset = write.addr.offset();
        let old = value(newest, offset, write.len);
        newest[offset..offset + write.len as usize].copy_from_slice(&write.data.to_le_bytes()[..write.len as usize]);
        let (data, new) = (*newest, value(newest, offset, write.len));
        if let Some(transaction) = tx.and_then(|tx| self.transactions.get_mut(&tx)) {
            transaction.stores.push((write.addr, write.len, old, new));
            if transaction.stores.len() == 1 {
                let (tx, begun) = (tx.expect("a transaction is of a transaction"), transaction.begun);
                self.add_step(tx, "begin", begun, None);
            }
        }
        if self.failure.is_some() {
            self.add_store_after_failure(line, CoreId(core), data);
        }
        let timeline_event = TimelineEvent {
            line: Some(line.base().0),
            core: Some(core),
            tx: tx.map(|tx| tx.0),
            offset: Some(offset as u64),
            size_bytes: Some(u64::from(write.len)),
            old: Some(format!("{old:#x}")),
            new: Some(format!("{new:#x}")),
            after_failure_event: self.failure.is_some(),
            ..TimelineEvent::new("store", cycle)
        };
        self.add(line, timeline_event);
    }

    /// A core cleans a line, or its fence has waited for that.
    fn add_clean(&mut self, line: LineAddr, core: CoreId, what: &str) {
        let timeline_event = TimelineEvent {
            line: Some(line.base().0),
            core: Some(core.0),
            after_failure_event: self.failure.is_some(),
            ..TimelineEvent::new(what, self.moment.1)
        };
        self.add(line, timeline_event);
    }

    /// The power fails before the next event, but after this store: it is in the L1D of its core, which has the line
    /// alone.
    fn add_store_after_failure(&mut self, line: LineAddr, core: CoreId, data: Line) {
        let Some(copies) = self.copies.get_mut(&line) else { return };
        let own = CopyLocation::Cache(LevelId::L1d, Some(core));
        copies.retain(|copy| match copy.place {
            CopyLocation::Cache(level, Some(other)) => other == core && level != LevelId::L1d,
            _ => true,
        });
        copies.insert(0, LineCopy { place: own, dirty: true, tag: LineTag::NONE, mask: u64::MAX, data });
    }

    fn roll_back(&mut self, tx: TxId) {
        let Some(transaction) = self.transactions.get_mut(&tx) else { return };
        for (addr, len, old, new) in std::mem::take(&mut transaction.stores).into_iter().rev() {
            let Some(newest) = self.newest.get_mut(&addr.line()) else { continue };
            if value(newest, addr.offset(), len) == new {
                newest[addr.offset()..addr.offset() + len as usize].copy_from_slice(&old.to_le_bytes()[..len as usize]);
            }
        }
    }

    fn phase(&mut self, lines: &[LineAddr]) -> Option<TimelinePhase> {
        let (failure, image) = (self.failure.take()?, self.image.take()?);
        let kept: BTreeSet<u64> =
            self.events.values().flatten().filter_map(|(_, timeline_event)| timeline_event.tx).collect();
        let steps =
            self.steps.drain(..).filter(|(_, tx, _)| kept.contains(&tx.0)).map(|(order, _, step)| (order, step));
        let mut events: Vec<(u64, TimelineEvent)> = self.events.values().flatten().cloned().chain(steps).collect();
        events.sort_by_key(|(order, _)| *order);
        let mut copies = Vec::new();
        for &line in lines {
            let left = image.pmem.line(line);
            copies.extend(
                self.copies.remove(&line).unwrap_or_default().iter().map(|copy| LineCopyRecord::of(line, copy, &left)),
            );
        }
        let traces = lines.iter().flat_map(|&line| self.traces(line, &image)).collect();
        Some(TimelinePhase::Run {
            program: self.program,
            events: events.into_iter().map(|(_, timeline_event)| timeline_event).collect(),
            events_left_out: self.left_out,
            failure,
            copies,
            left: lines.iter().map(|&line| LineContents::of(line, &image.pmem)).collect(),
            traces,
            loss: Loss { dirty_shutdown: image.dirty_shutdown },
        })
    }

    /// The places where nonvolatile structures and regions of the design name a line.
    fn traces(&self, line: LineAddr, image: &CrashImage) -> Vec<Trace> {
        let mut traces = Vec::new();
        let mut look = |place: &str, begin: u64, bytes: &[u8]| {
            for (at, _) in bytes.chunks_exact(WORD_BYTES).enumerate().filter(|(_, word)| names(word, line)) {
                let offset = begin + (at * WORD_BYTES) as u64;
                traces.push(Trace { line: line.base().0, place: place.to_owned(), offset });
            }
        };
        for (name, bytes) in &image.structures {
            look(name, 0, bytes);
        }
        for (name, base, size_bytes) in &self.regions {
            for (addr, page) in image.pmem.touched().filter(|(addr, _)| (base.0..base.0 + size_bytes).contains(&addr.0))
            {
                look(name, addr.0 - base.0, page);
            }
        }
        traces.truncate(TRACES_MAX);
        traces
    }
}

impl TransactionRecord {
    fn is_committing(&self) -> bool {
        self.committing.is_some() && self.acknowledged.is_none() && self.aborted.is_none()
    }

    /// Its state when the power failed.
    pub fn state(&self) -> &'static str {
        match (self.aborted, self.acknowledged, self.committing) {
            (Some(_), ..) => "aborted",
            (_, Some(_), _) => "acknowledged",
            (.., Some(_)) => "committing",
            _ => "open",
        }
    }
}

impl Journal for TimelineRecorder {
    fn moment(&mut self, core: CoreId, cycle: Cycle) {
        self.with(|data| data.run.moment = (core.0, cycle));
    }

    fn data_range(&mut self, range: durasim_types::DataRange) {
        self.with(|data| (data.data_base, data.data_bytes) = (Some(range.base), range.size_bytes));
    }

    fn begin(&mut self, tx: TxId) {
        self.open(|run| {
            let (core, begun) = run.moment;
            run.transactions.insert(tx, TransactionRecord { core, begun, ..TransactionRecord::default() });
        });
    }

    fn store(&mut self, tx: Option<TxId>, write: Write) {
        self.open(|run| {
            if let Some((tx, transaction)) = tx.and_then(|tx| Some((tx, run.transactions.get_mut(&tx)?))) {
                run.last = Some(tx);
                if !transaction.lines.contains(&write.addr.line()) {
                    transaction.lines.push(write.addr.line());
                }
            }
            run.store(tx, &write);
        });
    }

    fn cleaned(&mut self, core: CoreId, line: LineAddr) {
        self.open(|run| {
            if run.newest.contains_key(&line) {
                run.cleaned.entry(core).or_default().insert(line);
                run.add_clean(line, core, "clean");
            }
        });
    }

    fn fenced(&mut self, core: CoreId) {
        self.open(|run| {
            for line in run.cleaned.remove(&core).into_iter().flatten() {
                run.add_clean(line, core, "fence");
            }
        });
    }

    fn suspended(&mut self, tx: TxId) {
        self.open(|run| run.add_step(tx, "suspended", run.moment.1, None));
    }

    fn resumed(&mut self, tx: TxId) {
        self.open(|run| run.add_step(tx, "resumed", run.moment.1, None));
    }

    fn committing(&mut self, tx: TxId) {
        self.open(|run| {
            let cycle = run.moment.1;
            if let Some(transaction) =
                run.transactions.get_mut(&tx).filter(|transaction| transaction.committing.is_none())
            {
                transaction.committing = Some(cycle);
                run.add_step(tx, "committing", cycle, None);
            }
        });
    }

    fn acknowledged(&mut self, tx: TxId) {
        self.open(|run| {
            let cycle = run.moment.1;
            if let Some(transaction) = run.transactions.get_mut(&tx) {
                transaction.acknowledged = Some(cycle);
            }
            run.add_step(tx, "acknowledged", cycle, None);
        });
    }

    fn aborted(&mut self, tx: TxId) {
        self.open(|run| {
            let cycle = run.moment.1;
            if let Some(transaction) = run.transactions.get_mut(&tx) {
                transaction.aborted = Some(cycle);
            }
            run.add_step(tx, "aborted", cycle, None);
            run.roll_back(tx);
        });
    }
}

impl TimelineRecorder {
    fn open(&self, act: impl FnOnce(&mut RunRecording)) {
        self.with(|data| {
            if !data.run.closed {
                act(&mut data.run);
            }
        });
    }
}
