//! A recorded run as a run of the model: every observation is a step that the model allows, and what recovery finds at a
//! crash point is what the model's recovery finds.
//!
//! Two things happen unobserved, and the replay adds their steps: a line that stores outside of transactions have left
//! leaves the caches before its write is accepted, and undo entries are reclaimed before the next look at the registers of
//! their controller. Neither changes what recovery finds.

use super::driver::Run;
use super::recorder::{Kept, LINES, Name, Observed};
use durasim_models::lad::{Action, Bounds, Dtx, Lad, Machine, Pending, Phase, Record, Stage, State, Version};
use std::collections::{BTreeMap, BTreeSet};

/// How often each step was seen, by name.
pub type Tally = BTreeMap<String, u64>;

struct Replay {
    model: Lad,
    state: State,
    /// Versions that stores have made.
    versions: BTreeMap<u64, Version>,
    /// Stamps of stores outside of transactions that a queue accepts at some time.
    written: BTreeSet<Version>,
    /// Where the oldest undo entry of each controller lies.
    heads: Vec<u64>,
    slots: u64,
    /// Writes to each line in its queue that change nothing.
    empty: Vec<u32>,
    tally: Tally,
}

/// Replays a run against this model; bounds are those of the machine.
pub fn replay(run: &Run, with: impl Fn(Bounds) -> Lad) -> Result<Tally, String> {
    let parameter = |name: &str| run.plan.spec[name].as_u64().expect("it is a number");
    let bounds = Bounds {
        threads: run.threads,
        controllers: run.plan.geometry.controllers as u8,
        lines: LINES,
        transactions_per_thread: u32::MAX,
        stores_per_line: u32::MAX,
        id_bits: parameter("dtx_id_bits") as u32,
        last_id: 0,
        queue_entries: usize::MAX,
        log_entries: parameter("undo_log_entries_max") as usize,
        first_ack: run.first_ack,
        plain_stores: u32::MAX,
        aborts: false,
        lives: 1,
    };
    let model = with(bounds);
    let mut replay = Replay {
        state: model.start(),
        heads: vec![0; usize::from(model.bounds.controllers)],
        slots: parameter("undo_log_entries_max"),
        model,
        versions: BTreeMap::from([(0, Version::Initial)]),
        written: BTreeSet::new(),
        empty: vec![0; usize::from(LINES)],
        tally: Tally::new(),
    };
    // What the log will say of stores outside of transactions: the number of each, and whether a queue accepts it.
    let plain = run.observed.iter().filter_map(|observed| match observed {
        Observed::PlainStore { stamp, .. } => Some(*stamp),
        _ => None,
    });
    let numbers: BTreeMap<u64, Version> = plain.zip((1..).map(Version::Plain)).collect();
    for observed in &run.observed {
        if let Observed::Accept { stamp: Some(stamp), .. } = observed {
            replay.written.extend(numbers.get(stamp));
        }
    }
    for (index, observed) in run.observed.iter().enumerate() {
        replay.observe(observed).map_err(|what| {
            let first = index.saturating_sub(12);
            let before: Vec<String> = run.observed[first..index].iter().map(|o| format!("{o:?}")).collect();
            format!("observation {index}, {observed:?}: {what}\n  before it: {}", before.join("\n    "))
        })?;
    }
    Ok(replay.tally)
}

impl Replay {
    fn machine(&self) -> &Machine {
        let State::Running(machine) = &self.state else { unreachable!("crashes are tried on copies") };
        machine
    }

    fn step(&mut self, action: Action) -> Result<(), String> {
        match self.model.step(&self.state, action) {
            Some(next) => self.state = next,
            None => {
                let m = self.machine();
                let threads: Vec<String> = m.threads.iter().map(|t| format!("{:?} {}", t.phase, t.id)).collect();
                let (pending, controllers) = (&m.pending, &m.controllers);
                return Err(format!(
                    "the model does not allow {action:?}: threads {threads:?}, commits {pending:?}, {controllers:?}"
                ));
            }
        }
        self.count(format!("{action:?}").split('(').next().expect("a name"));
        Ok(())
    }

    fn count(&mut self, what: &str) {
        *self.tally.entry(what.to_owned()).or_default() += 1;
    }

    fn version(&self, stamp: u64) -> Result<Version, String> {
        self.versions.get(&stamp).copied().ok_or_else(|| format!("nobody has written {stamp}"))
    }

    fn observe(&mut self, observed: &Observed) -> Result<(), String> {
        match *observed {
            Observed::Begin { thread, ref kept } => self.begin(thread, kept),
            Observed::Store { thread, line, stamp } => {
                self.leaves_first(line)?;
                self.step(Action::Store(thread, line))?;
                let version = self.machine().written(thread, line).expect("just written");
                self.versions.insert(stamp, version);
                Ok(())
            }
            Observed::PlainStore { line, stamp } => {
                self.leaves_first(line)?;
                self.step(Action::PlainStore(line))?;
                self.versions.insert(stamp, Version::Plain(self.machine().plain_stores));
                Ok(())
            }
            Observed::Load { line, stamp } => {
                let (found, version) = (self.model.found(self.machine(), line), self.version(stamp)?);
                self.count("Load");
                if found == version { Ok(()) } else { Err(format!("the model finds {found:?}, not {version:?}")) }
            }
            Observed::Flush { of, line } => self.flush(of, line, Action::Flush(line)),
            Observed::Clean { of: Some(of), line } => self.flush(of, line, Action::Clean(line)),
            Observed::Clean { of: None, line } => match self.machine().marked[usize::from(line)] {
                Some(thread) => Err(format!("thread {thread} marks it in the model")),
                None if self.machine().dirty[usize::from(line)].is_none() => Ok(()),
                None => self.step(Action::Clean(line)),
            },
            Observed::End { thread, ref lines } => {
                let marks = |line: &u8| self.machine().marked[usize::from(*line)] == Some(thread);
                let marked: Vec<u8> = (0..LINES).filter(marks).collect();
                if marked != *lines {
                    return Err(format!("the model flushes {marked:?}"));
                }
                self.step(Action::End(thread))
            }
            Observed::Commit { thread } => self.step(Action::Commit(thread)),
            Observed::Accept { controller, line, of, held, stamp } => self.accept(controller, line, of, held, stamp),
            Observed::FlushAck { thread } => self.step(Action::FlushAck(thread)),
            Observed::CommitArrives { of: (thread, id), controller } => {
                if self.machine().controllers[usize::from(controller)]
                    .has_committed(Dtx { thread, id }, self.model.bounds.ids())
                {
                    self.count("a commit comes late");
                }
                self.step(Action::CommitArrives(thread, id, controller as u8))
            }
            Observed::AckArrives { of } => self.acknowledge(of),
            Observed::Empty { line } => {
                self.empty[usize::from(line)] += 1;
                Ok(())
            }
            Observed::Drain { line } => self.drain(line),
            Observed::Log { line } => self.step(Action::Log(line)),
            Observed::OldValueWritten { controller } => self.step(Action::OldValueWritten(controller as u8)),
            Observed::Recorded { controller } => self.step(Action::Recorded(controller as u8)),
            Observed::Void { controller, line, of: (thread, id) } => {
                let log = &self.machine().controllers[usize::from(controller)].log;
                let is_meant = |record: &Record| record.line == line && record.dtx == Some(Dtx { thread, id });
                let index = log.iter().position(is_meant).ok_or("the model has no such undo entry")?;
                self.step(Action::Void(controller as u8, index as u8))
            }
            Observed::Crash { ref found, ref kept } => self.crash(found, kept),
        }
    }

    /// The registers of the controllers are those of the model, once that has reclaimed the same undo entries.
    fn compare_kept(&mut self, kept: &[Kept]) -> Result<(), String> {
        for (controller, (committed, head, records)) in kept.iter().enumerate() {
            while self.heads[controller] != *head {
                self.step(Action::Reclaim(controller as u8))?;
                self.heads[controller] = (self.heads[controller] + 1) % self.slots;
            }
            let of_model = &self.machine().controllers[controller];
            let same_ids = of_model.committed == committed[..of_model.committed.len()];
            if !same_ids || of_model.log.len() as u64 != *records {
                let of_threads = &committed[..of_model.committed.len()];
                return Err(format!(
                    "controller {controller} keeps {of_threads:?} and {records} entries, in the model {of_model:?}"
                ));
            }
        }
        Ok(())
    }

    fn begin(&mut self, thread: u8, kept: &[Kept]) -> Result<(), String> {
        self.compare_kept(kept)?;
        if self.machine().thread(thread).phase != Phase::Off {
            return Err("its last transaction is not complete".to_owned());
        }
        let is_pending = self.machine().pending.iter().any(|pending| pending.dtx.thread == thread);
        self.step(Action::Begin(thread))?;
        if is_pending {
            self.count("a begin before the last acknowledgement");
        }
        if self.machine().thread(thread).id == 0 {
            self.count("an identifier wraps around");
        }
        Ok(())
    }

    /// What a store outside of transactions has left leaves the caches before the next store, if a queue ever accepts it.
    fn leaves_first(&mut self, line: u8) -> Result<(), String> {
        match self.machine().dirty[usize::from(line)] {
            Some(version) if self.written.contains(&version) => self.step(Action::Evict(line)),
            _ => Ok(()),
        }
    }

    fn flush(&mut self, (thread, id): Name, line: u8, action: Action) -> Result<(), String> {
        let of_model = self.machine().marked[usize::from(line)].map(|thread| self.machine().dtx(thread));
        if of_model != Some(Dtx { thread, id }) {
            return Err(format!("the mark of the model is {of_model:?}"));
        }
        if self.machine().thread(thread).flushed[usize::from(line)] {
            self.count("a line is flushed twice");
        }
        self.step(action)
    }

    fn accept(
        &mut self,
        controller: u16,
        line: u8,
        of: Option<Name>,
        held: bool,
        stamp: Option<u64>,
    ) -> Result<(), String> {
        let of_model = self.model.bounds.controller_of(line);
        if of_model != usize::from(controller) {
            return Err(format!("controller {of_model} has it in the model"));
        }
        let dtx = of.map(|(thread, id)| Dtx { thread, id });
        let version = match stamp {
            Some(stamp) => Some(self.version(stamp)?),
            None => None,
        };
        let is_in_flight = !self.machine().flights[usize::from(line)].is_empty();
        let is_dirty = self.machine().dirty[usize::from(line)].is_some();
        if !is_in_flight && !is_dirty && version == Some(self.model.found(self.machine(), line)) {
            // Two levels had the version dirty: its second write changes nothing.
            self.count("a version goes home again");
            self.empty[usize::from(line)] += 1;
            return Ok(());
        }
        if !is_in_flight && dtx.is_none() {
            // The LLC has dropped it.
            self.step(Action::Evict(line))?;
        }
        let flight = *self.machine().flights[usize::from(line)].first().ok_or("nothing is in flight in the model")?;
        if flight.dtx != dtx || version.is_some_and(|version| version != flight.version) {
            return Err(format!("{dtx:?} writes {version:?}, in the model it is {flight:?}"));
        }
        let is_behind = self.machine().controllers[of_model].of_line(line).any(|entry| entry.held.is_some());
        self.step(Action::Accept(line))?;
        let entry = self.machine().controllers[of_model].of_line(line).next_back().expect("just accepted");
        if entry.held.is_some() != held {
            return Err(format!("speculative: {held}, in the model {entry:?}"));
        }
        self.count(match (held, of.is_some(), is_behind) {
            (false, true, _) => "a flush goes in place",
            (false, false, true) => "an ordinary write behind a speculative one",
            _ => "another write",
        });
        Ok(())
    }

    /// Acknowledgements of a commit do not say whose they are: one that is in flight.
    fn acknowledge(&mut self, (thread, id): Name) -> Result<(), String> {
        let is_meant = |p: &&Pending| p.dtx == Dtx { thread, id } && p.stages.contains(&Stage::Answered);
        let pending = self.machine().pending.iter().find(is_meant).ok_or("no acknowledgement is in flight")?;
        let controller = pending.stages.iter().position(|stage| *stage == Stage::Answered).expect("there is one");
        self.step(Action::AckArrives(thread, id, controller as u8))
    }

    /// An entry leaves its queue. Those that change nothing are none of the model, and those that have joined leave there one by
    /// one: the model has an entry that may leave for each one that leaves and changes something.
    fn drain(&mut self, line: u8) -> Result<(), String> {
        let empty = &mut self.empty[usize::from(line)];
        match self.model.step(&self.state, Action::Drain(line)) {
            None if *empty > 0 => {
                *empty -= 1;
                Ok(())
            }
            _ => self.step(Action::Drain(line)),
        }
    }

    fn crash(&mut self, found: &[u64], kept: &[Kept]) -> Result<(), String> {
        self.compare_kept(kept)?;
        let found: Vec<Version> = found.iter().map(|stamp| self.version(*stamp)).collect::<Result<_, _>>()?;
        self.count("Crash");
        let mut state = self.model.step(&self.state, Action::Crash).ok_or("power cannot fail")?;
        while let Some(next) = self.model.step(&state, Action::RecoveryStep) {
            state = next;
        }
        let State::Recovering(recovery) = state else { unreachable!("recovery does not end by itself") };
        let differ = kept.iter().any(|(committed, ..)| *committed != kept[0].0);
        if differ {
            self.count("power fails between two receipts");
        }
        let expected = &recovery.durable.home;
        match (0u8..).zip(expected.iter().zip(&found)).find(|(_, (expected, found))| expected != found) {
            None => Ok(()),
            Some((line, (expected, found))) => {
                Err(format!("recovery finds {found:?} in line {line}, the model {expected:?}"))
            }
        }
    }
}
