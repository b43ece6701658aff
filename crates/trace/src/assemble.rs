//! From what was recorded to tracks with their events.

use crate::lanes::{Slice, lanes};
use crate::perfetto::EventType;
use crate::recorder::{Eviction, Occupied, Recording, RegionSteps, TransactionEnd, TransactionSlice};
use durasim_contract::Interleave;
use durasim_machine::{CoreStalls, RunResult};
use durasim_types::{Cycle, PersistEvent};
use std::collections::BTreeMap;
use std::ops::Range;

/// The parts of a trace.
pub(crate) struct Parts {
    pub stalls: Vec<CoreStalls>,
    /// The structures of the design that stalls name.
    pub structures: &'static [&'static str],
    pub interleave: Interleave,
    pub recording: Recording,
    pub window: Range<Cycle>,
    /// The id of the power failure that the trace ends with.
    pub failure: Option<String>,
}

/// The kind of an event, by which Perfetto finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Category {
    Run,
    Transaction,
    Commit,
    Stall,
    Eviction,
    PersistEvent,
    Occupancy,
}

impl Category {
    pub const ALL: [Category; 7] = [
        Category::Run,
        Category::Transaction,
        Category::Commit,
        Category::Stall,
        Category::Eviction,
        Category::PersistEvent,
        Category::Occupancy,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Category::Run => "run",
            Category::Transaction => "transaction",
            Category::Commit => "commit",
            Category::Stall => "stall",
            Category::Eviction => "eviction",
            Category::PersistEvent => "persist_event",
            Category::Occupancy => "occupancy",
        }
    }
}

/// A further category: events that the counters of the result have.
pub(crate) const COUNTED: &str = "counted";

/// The value of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u64),
    Address(u64),
    Text(String),
}

/// The arguments of an event.
pub(crate) type Arguments = Vec<(&'static str, Value)>;

/// An event on a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub at: Cycle,
    pub track: u32,
    pub r#type: EventType,
    pub category: Category,
    pub is_counted: bool,
    /// Its number among the names; none for ends and values.
    pub name: Option<u32>,
    /// Its number among the arguments.
    pub arguments: Option<u32>,
    /// The value of a counter.
    pub value: i64,
}

/// A track, numbered from 1 in the order of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Track {
    pub name: String,
    pub parent: Option<u32>,
    /// Unit of the values of a counter.
    pub unit: Option<&'static str>,
}

/// All of a trace.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    pub tracks: Vec<Track>,
    pub names: Vec<String>,
    pub arguments: Vec<Arguments>,
    /// In order of time, and on a track in the order in which slices enclose each other.
    pub events: Vec<Event>,
    /// The number of each name.
    pub numbers: BTreeMap<String, u32>,
}

impl Tracks {
    fn track(&mut self, parent: Option<u32>, name: impl Into<String>) -> u32 {
        self.tracks.push(Track { name: name.into(), parent, unit: None });
        self.tracks.len() as u32
    }

    fn counter(&mut self, parent: u32, name: impl Into<String>, unit: &'static str) -> u32 {
        self.tracks.push(Track { name: name.into(), parent: Some(parent), unit: Some(unit) });
        self.tracks.len() as u32
    }

    fn name(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.to_owned(), number);
        self.names.push(name.to_owned());
        number
    }

    fn push(&mut self, at: Cycle, track: u32, r#type: EventType, category: Category, is_counted: bool) -> &mut Event {
        let event = Event { at, track, r#type, category, is_counted, name: None, arguments: None, value: 0 };
        self.events.push(event);
        self.events.last_mut().expect("it was just pushed")
    }

    /// A slice begins, or an instant is.
    fn named(
        &mut self,
        at: Cycle,
        track: u32,
        r#type: EventType,
        (category, is_counted): (Category, bool),
        name: &str,
        arguments: Arguments,
    ) {
        let name = self.name(name);
        let number = (!arguments.is_empty()).then_some(self.arguments.len() as u32);
        if number.is_some() {
            self.arguments.push(arguments);
        }
        let event = self.push(at, track, r#type, category, is_counted);
        (event.name, event.arguments) = (Some(name), number);
    }

    fn end(&mut self, at: Cycle, track: u32, category: Category) {
        self.push(at, track, EventType::SliceEnd, category, false);
    }

    fn value(&mut self, at: Cycle, track: u32, value: u64) {
        self.push(at, track, EventType::Counter, Category::Occupancy, false).value = value as i64;
    }
}

/// Makes the trace of a run.
pub(crate) fn assemble(parts: Parts, run: &RunResult) -> Tracks {
    let mut tracks = Tracks::default();
    let Parts { stalls, structures, interleave, recording, window, failure } = parts;
    add_run(&mut tracks, run, &recording, &window, failure.as_deref());
    add_transactions(&mut tracks, &recording, &window);
    add_stalls(&mut tracks, &stalls, structures, &window);
    add_evictions(&mut tracks, &recording, &window);
    add_events(&mut tracks, &recording.events, &window);
    let memory = tracks.track(None, "persistent memory");
    add_reads(&mut tracks, memory, &recording, interleave, &window);
    add_occupancies(&mut tracks, memory, run.design, &recording, &window);
    tracks.events.sort_by_key(|event| event.at);
    tracks
}

/// The run, its region of interest and its power failure.
fn add_run(tracks: &mut Tracks, run: &RunResult, recording: &Recording, window: &Range<Cycle>, failure: Option<&str>) {
    let track = tracks.track(None, "run (1 ns is 1 cycle)");
    let text = |text: &str| Value::Text(text.to_owned());
    let arguments = vec![
        ("design", text(run.design)),
        ("workload", text(&run.workload)),
        ("machine", text(&run.machine)),
        ("domain", text(run.domain)),
        ("seed", Value::Number(run.seed)),
        ("digest", text(&run.digest)),
        ("durasim", text(run.durasim_version)),
    ];
    let name = format!("{} {}", run.design, run.workload);
    tracks.named(window.start, track, EventType::SliceBegin, (Category::Run, false), &name, arguments);
    if let Some(RegionSteps { begin, end }) = recording.region {
        let (from, until) = (begin.1.max(window.start), end.map_or(window.end, |end| end.1).min(window.end));
        if from < until {
            let of_run = (Category::Run, false);
            tracks.named(from, track, EventType::SliceBegin, of_run, "region of interest", Vec::new());
            tracks.end(until, track, Category::Run);
        }
    }
    if let (Some(id), Some(at)) = (failure, recording.power_failure()) {
        let arguments = vec![("replay", text(id))];
        tracks.named(at, track, EventType::InstantEvent, (Category::Run, false), "power failure", arguments);
    }
    tracks.end(window.end, track, Category::Run);
}

/// The transactions of each thread, with their commits.
fn add_transactions(tracks: &mut Tracks, recording: &Recording, window: &Range<Cycle>) {
    let group = tracks.track(None, "threads");
    let mut by_thread: BTreeMap<u32, Vec<Slice<(TransactionSlice, bool)>>> = BTreeMap::new();
    let all = recording.transactions.iter().cloned().chain(recording.open_transactions(window.end));
    for mut transaction in all.filter(|one| one.begun < window.end && one.ended >= window.start) {
        let is_counted = transaction.end != TransactionEnd::Open && recording.counts_transaction(&transaction);
        if transaction.ended >= window.end {
            transaction.end = TransactionEnd::Open;
        }
        let (from, until) = (transaction.begun.max(window.start), transaction.ended.min(window.end));
        let what = (transaction, is_counted);
        by_thread.entry(what.0.thread).or_default().push(Slice { from, until, what });
    }
    for (thread, slices) in by_thread {
        for (number, lane) in lanes(slices).into_iter().enumerate() {
            let track = tracks.track(Some(group), lane_name(&format!("thread {thread}"), number));
            lane.iter().for_each(|slice| add_transaction(tracks, track, slice));
        }
    }
}

fn add_transaction(tracks: &mut Tracks, track: u32, slice: &Slice<(TransactionSlice, bool)>) {
    let (transaction, is_counted) = &slice.what;
    let name = match transaction.end {
        TransactionEnd::Committed => "transaction",
        TransactionEnd::Aborted => "aborted transaction",
        TransactionEnd::Open => "open transaction",
    };
    let tx = || vec![("transaction", Value::Number(transaction.tx.0))];
    let of_transaction = (Category::Transaction, *is_counted && transaction.end != TransactionEnd::Open);
    tracks.named(slice.from, track, EventType::SliceBegin, of_transaction, name, tx());
    if let Some(committing) = transaction.committing.filter(|committing| *committing < slice.until) {
        let from = committing.max(slice.from);
        tracks.named(from, track, EventType::SliceBegin, (Category::Commit, false), "committing", Vec::new());
        tracks.end(slice.until, track, Category::Commit);
    }
    tracks.end(slice.until, track, Category::Transaction);
    if transaction.end == TransactionEnd::Committed {
        let of_commit = (Category::Commit, *is_counted);
        tracks.named(slice.until, track, EventType::InstantEvent, of_commit, "commit", tx());
    }
}

fn lane_name(name: &str, number: usize) -> String {
    if number == 0 { name.to_owned() } else { format!("{name} ({})", number + 1) }
}

/// The stalls of each core.
fn add_stalls(tracks: &mut Tracks, stalls: &[CoreStalls], structures: &[&str], window: &Range<Cycle>) {
    let group = tracks.track(None, "cores");
    for CoreStalls { core, slices } in stalls {
        let inside = slices.iter().filter(|slice| slice.from < window.end).map(|stall| Slice {
            from: stall.from,
            until: stall.until.min(window.end),
            what: (stall.kind, stall.is_in_region),
        });
        for (number, lane) in lanes(inside.collect()).into_iter().enumerate() {
            let track = tracks.track(Some(group), lane_name(&format!("core {core}: stalls"), number));
            for Slice { from, until, what: (kind, is_counted) } in lane {
                let name = kind.name(structures);
                let of_stall = (Category::Stall, is_counted);
                tracks.named(from, track, EventType::SliceBegin, of_stall, &name, Vec::new());
                tracks.end(until, track, Category::Stall);
            }
        }
    }
}

/// Lines that leave caches to make room.
fn add_evictions(tracks: &mut Tracks, recording: &Recording, window: &Range<Cycle>) {
    let group = tracks.track(None, "caches");
    let mut of_level: BTreeMap<(&str, Option<u16>), u32> = BTreeMap::new();
    for eviction in recording.evictions.iter().filter(|eviction| window.contains(&eviction.at)) {
        let Eviction { at, core, level, line, is_written_back, .. } = eviction;
        // The last level is one, and its victims leave for the request of a core.
        let core_of_level = (*level != "llc").then_some(core.0);
        let track = *of_level.entry((level, core_of_level)).or_insert_with(|| match core_of_level {
            Some(core) => tracks.track(Some(group), format!("{level} of core {core}: evictions")),
            None => tracks.track(Some(group), format!("{level}: evictions")),
        });
        let name = if *is_written_back { "write-back" } else { "eviction" };
        let arguments = vec![("line", Value::Address(line.base().0)), ("core", Value::Number(core.0.into()))];
        let of_eviction = (Category::Eviction, recording.counts_eviction(eviction));
        tracks.named(*at, track, EventType::InstantEvent, of_eviction, name, arguments);
    }
}

/// The persist events, a track for each kind.
fn add_events(tracks: &mut Tracks, events: &[(PersistEvent, bool)], window: &Range<Cycle>) {
    let group = tracks.track(None, "persist events");
    let mut of_kind = BTreeMap::new();
    for (event, is_counted) in events.iter().filter(|(event, _)| window.contains(&event.cycle)) {
        let track = *of_kind.entry(event.kind).or_insert_with(|| tracks.track(Some(group), event.kind.name()));
        let mut arguments = vec![("event", Value::Number(event.number)), ("address", Value::Address(event.addr.0))];
        arguments.extend(event.core.map(|core| ("core", Value::Number(core.0.into()))));
        arguments.extend(event.cause.map(|cause| ("cause", Value::Text(cause.name().to_owned()))));
        let of_event = (Category::PersistEvent, *is_counted);
        tracks.named(event.cycle, track, EventType::InstantEvent, of_event, event.kind.name(), arguments);
    }
}

/// Reads that controllers of persistent memory have in flight.
fn add_reads(tracks: &mut Tracks, group: u32, recording: &Recording, interleave: Interleave, window: &Range<Cycle>) {
    let mut changes: BTreeMap<u16, BTreeMap<Cycle, i64>> = BTreeMap::new();
    for &(line, asked, done) in recording.reads.iter().filter(|(_, asked, _)| *asked < window.end) {
        let of_controller = changes.entry(interleave.controller_of(line)).or_default();
        *of_controller.entry(asked.max(window.start)).or_default() += 1;
        *of_controller.entry(done.max(window.start)).or_default() -= 1;
    }
    for (controller, changes) in changes {
        let track = tracks.counter(group, format!("controller {controller}: reads in flight"), "reads");
        let mut in_flight = 0;
        for (at, change) in changes.into_iter().filter(|(at, change)| *at < window.end && *change != 0) {
            in_flight += change;
            tracks.value(at, track, in_flight as u64);
        }
    }
}

/// Entries in use of write queues and of structures of the design.
fn add_occupancies(tracks: &mut Tracks, memory: u32, design: &str, recording: &Recording, window: &Range<Cycle>) {
    let mut of_structure: BTreeMap<Occupied, u32> = BTreeMap::new();
    let mut group_of_design = None;
    for &(at, structure, entries) in recording.occupancies.iter().filter(|(at, ..)| window.contains(at)) {
        let track = *of_structure.entry(structure).or_insert_with(|| match structure {
            Occupied::WriteQueue(controller) => {
                tracks.counter(memory, format!("controller {controller}: write queue"), "entries")
            }
            Occupied::Structure(name) => {
                let group = *group_of_design.get_or_insert_with(|| tracks.track(None, format!("design {design}")));
                tracks.counter(group, name, "entries")
            }
        });
        tracks.value(at, track, entries);
    }
}
