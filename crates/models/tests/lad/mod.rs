//! Runs of LAD and LAD-Base, and the steps of their model that they are. The transactions of threads write disjoint
//! lines, and none aborts.
//!
//! Two things happen unobserved, and the replay adds their steps: a line written outside of transactions leaves the
//! caches before its write is accepted, and undo entries are reclaimed before the next look at the registers of their
//! controller. Neither changes what recovery finds.

mod recorder;

use crate::harness::Subject;
use crate::harness::driver::{Driver, Run, core, one_of};
use crate::harness::log::{Observed, Shared, line};
use crate::harness::recorder::Observe;
use crate::harness::replay::Replay;
use durasim_contract::CrashImage;
use durasim_isa::CacheBlockOp;
use durasim_machine::System;
use durasim_models::lad::{Action, Bounds, Dtx, LadProtocol, Machine, Pending, Phase, Record, Stage, Version};
use durasim_models::protocol::Protocol;
use durasim_types::{Domain, EventKind, PersistEvent, Rng};
use recorder::{Kept, Name, Step, kept_in};
use std::collections::{BTreeMap, BTreeSet};

/// A run of LAD.
pub struct Lad {
    /// Whether it is LAD, or else LAD-Base.
    first_ack: bool,
}

/// The state of a replay besides the machine of the model.
pub struct Follower {
    /// Versions of stores outside of transactions that a queue accepts at some time.
    written: BTreeSet<Version>,
    /// The place of the oldest undo entry of each controller.
    heads: Vec<u64>,
    slots: u64,
    /// Writes to each line in its queue that change nothing.
    empty: Vec<u32>,
}

impl Subject for Lad {
    type Protocol = LadProtocol;
    type Follower = Follower;
    const DOMAIN: Domain = Domain::Adr;
    const SPARE_THREADS: u64 = 3;
    const SWITCH_PERCENT: [u64; 3] = [0, 2, 10];
    const INTERRUPTS_RECOVERY: bool = true;

    fn overrides(rng: &mut Rng, cores: u16) -> Vec<String> {
        let mut sets = vec![
            format!("cores={cores}"),
            one_of(rng, "design.lad.dtx_id_bits", &["2", "3", "8"]),
            one_of(rng, "design.lad.logging_percent", &["1", "50", "80", "100"]),
            one_of(rng, "design.lad.undo_log_entries", &["8", "16"]),
            one_of(rng, "design.lad.undo_log_entries_max", &["64", "256"]),
            one_of(rng, "design.lad.undo_log_growth_cycles", &["1", "1000"]),
            one_of(rng, "design.lad.reclaim_period_cycles", &["100", "10000", "1000000"]),
            one_of(rng, "pmem.controllers", &["1", "2", "4"]),
            "pmem.interleave_bytes=64".to_owned(),
            one_of(rng, "interconnect.inclusion", &["\"inclusive\"", "\"non-inclusive\""]),
            one_of(rng, "interconnect.write_back_buffers", &["1", "3", "64"]),
            one_of(rng, "pmem.controller.write_queue_entries", &["3", "4", "5", "8"]),
            one_of(rng, "pmem.controller.coalesce_writes", &["false", "true"]),
            one_of(rng, "pmem.media.write_latency_ns", &["100", "2000"]),
            one_of(rng, "l1d.size_bytes", &["256", "512"]),
            one_of(rng, "l2.size_bytes", &["256", "512"]),
            one_of(rng, "llc.size_bytes", &["512", "1024"]),
        ];
        // Controllers at a distance that is drawn for each message.
        if rng.below(2) == 0 {
            sets.push("interconnect.core_to_controller_cycles=400".to_owned());
            sets.push("interconnect.controller_to_core_cycles=100".to_owned());
            sets.push("interconnect.memory_request_cycles=10".to_owned());
            sets.push(one_of(rng, "interconnect.path_jitter_cycles", &["100", "20000"]));
        }
        sets
    }

    fn draw(rng: &mut Rng) -> Self {
        Lad { first_ack: rng.below(4) > 0 }
    }

    fn variant(&self) -> &'static str {
        if self.first_ack { "lad" } else { "lad-base" }
    }

    fn operate(driver: &mut Driver<Self>, port: usize, n: u8, choice: u64) {
        match (choice, driver.tx(port)) {
            (0..=24, _) => {
                let stamp = driver.load(port, n);
                driver.log.push(Step::Load { line: n, stamp });
            }
            (25..=30, _) => {
                let now = *driver.now(port);
                let done = driver.system.cache_block(core(port), CacheBlockOp::Clean, line(n), now);
                *driver.now(port) = now.max(done);
            }
            (31..=45, None) if driver.is_free(n) => driver.store(port, n),
            (_, None) => driver.begin(port),
            (31..=84, Some(_)) => driver.store_locked(port, n),
            (_, Some(tx)) => driver.commit(port, tx),
        }
    }

    fn persisted(shared: &Shared<Self>, event: &PersistEvent, system: &System) {
        let of_line = Self::number(event.addr.line()).filter(|_| event.kind == EventKind::QueueAccept);
        let is_unknown = |last: Option<&Observed<Step>>| match last {
            Some(Observed::Step(Step::Accept { line, of: None, stamp: None, .. })) => Some(*line) == of_line,
            _ => false,
        };
        // An ordinary write is the youngest of its line, so recovery leaves what it writes.
        if shared.with(|log| is_unknown(log.observed.last())) {
            let (_, found) = shared.recovered(system, None);
            shared.with(|log| {
                if let Some(Observed::Step(Step::Accept { line, stamp, .. })) = log.observed.last_mut() {
                    *stamp = Some(found[usize::from(*line)]);
                }
            });
        }
    }

    fn fails(image: &CrashImage) -> Option<Step> {
        Some(Step::PowerFails { kept: kept_in(image) })
    }

    fn bounds(run: &Run<Self>) -> Bounds {
        Bounds {
            threads: run.threads,
            controllers: run.plan.geometry.controllers as u8,
            lines: Self::LINES,
            transactions_per_thread: u32::MAX,
            stores_per_line: u32::MAX,
            id_bits: run.parameter("dtx_id_bits") as u32,
            last_id: 0,
            queue_entries: usize::MAX,
            log_entries: run.parameter("undo_log_entries_max") as usize,
            first_ack: run.subject.first_ack,
            plain_stores: u32::MAX,
            aborts: false,
            lives: 1,
        }
    }

    fn follower(run: &Run<Self>) -> Follower {
        // The log later shows of each store outside of transactions its number and whether a queue accepts it.
        let plain = run.steps().filter_map(|step| match step {
            Step::PlainStore { stamp, .. } => Some(*stamp),
            _ => None,
        });
        let numbers: BTreeMap<u64, Version> = plain.zip((1..).map(Version::Plain)).collect();
        let accepted = run.steps().filter_map(|step| match step {
            Step::Accept { stamp: Some(stamp), .. } => numbers.get(stamp).copied(),
            _ => None,
        });
        Follower {
            written: accepted.collect(),
            heads: vec![0; usize::from(run.plan.geometry.controllers)],
            slots: run.parameter("undo_log_entries_max"),
            empty: vec![0; usize::from(Self::LINES)],
        }
    }

    fn about(m: &Machine) -> String {
        let threads: Vec<String> = m.threads.iter().map(|t| format!("{:?} {}", t.phase, t.id)).collect();
        format!("threads {threads:?}, commits {:?}, {:?}", m.pending, m.controllers)
    }

    fn follow(replay: &mut Replay<Self>, step: &Step) -> Result<(), String> {
        match *step {
            Step::Begin { thread, ref kept } => replay.begin(thread, kept),
            Step::Store { thread, line, stamp } => {
                replay.leaves_first(line)?;
                replay.step(Action::Store(thread, line))?;
                let version = replay.machine.written(thread, line).expect("just written");
                replay.stamped(stamp, version);
                Ok(())
            }
            Step::PlainStore { line, stamp } => {
                replay.leaves_first(line)?;
                replay.step(Action::PlainStore(line))?;
                replay.stamped(stamp, Version::Plain(replay.machine.plain_stores));
                Ok(())
            }
            Step::Load { line, stamp } => {
                let (found, version) = (replay.model.found(&replay.machine, line), replay.version(stamp)?);
                replay.count("Load");
                if found == version { Ok(()) } else { Err(format!("the model finds {found:?}, not {version:?}")) }
            }
            Step::Flush { of, line } => replay.flush(of, line, Action::Flush(line)),
            Step::Clean { of: Some(of), line } => replay.flush(of, line, Action::Clean(line)),
            Step::Clean { of: None, line } => match replay.machine.marked[usize::from(line)] {
                Some(thread) => Err(format!("thread {thread} marks it in the model")),
                None if replay.machine.dirty[usize::from(line)].is_none() => Ok(()),
                None => replay.step(Action::Clean(line)),
            },
            Step::End { thread, ref lines } => {
                let marks = |line: &u8| replay.machine.marked[usize::from(*line)] == Some(thread);
                let marked: Vec<u8> = (0..Self::LINES).filter(marks).collect();
                if marked != *lines {
                    return Err(format!("the model flushes {marked:?}"));
                }
                replay.step(Action::End(thread))
            }
            Step::Commit { thread } => replay.step(Action::Commit(thread)),
            Step::Accept { controller, line, of, held, stamp } => replay.accept(controller, line, of, held, stamp),
            Step::FlushAck { thread } => replay.step(Action::FlushAck(thread)),
            Step::CommitArrives { of: (thread, id), controller } => {
                let of_model = &replay.machine.controllers[usize::from(controller)];
                if of_model.has_committed(Dtx { thread, id }, replay.model.bounds.ids()) {
                    replay.count("a commit comes late");
                }
                replay.step(Action::CommitArrives(thread, id, controller as u8))
            }
            Step::AckArrives { of } => replay.acknowledge(of),
            Step::Empty { line } => {
                replay.follower.empty[usize::from(line)] += 1;
                Ok(())
            }
            Step::Drain { line } => replay.drain(line),
            Step::Log { line } => replay.step(Action::Log(line)),
            Step::OldValueWritten { controller } => replay.step(Action::OldValueWritten(controller as u8)),
            Step::Recorded { controller } => replay.step(Action::Recorded(controller as u8)),
            Step::Void { controller, line, of: (thread, id) } => {
                let log = &replay.machine.controllers[usize::from(controller)].log;
                let is_meant = |record: &Record| record.line == line && record.dtx == Some(Dtx { thread, id });
                let index = log.iter().position(is_meant).ok_or("the model has no such undo entry")?;
                replay.step(Action::Void(controller as u8, index as u8))
            }
            Step::PowerFails { ref kept } => {
                if kept.iter().any(|(committed, ..)| *committed != kept[0].0) {
                    replay.count("power fails between two receipts");
                }
                replay.compare_kept(kept)
            }
        }
    }
}

impl Replay<Lad> {
    /// The registers of the controllers are those of the model, once that has reclaimed the same undo entries.
    fn compare_kept(&mut self, kept: &[Kept]) -> Result<(), String> {
        for (controller, (committed, head, records)) in kept.iter().enumerate() {
            while self.follower.heads[controller] != *head {
                self.step(Action::Reclaim(controller as u8))?;
                self.follower.heads[controller] = (self.follower.heads[controller] + 1) % self.follower.slots;
            }
            let of_model = &self.machine.controllers[controller];
            let of_threads = &committed[..of_model.committed.len()];
            if of_model.committed != of_threads || of_model.log.len() as u64 != *records {
                return Err(format!(
                    "controller {controller} keeps {of_threads:?} and {records} entries, in the model {of_model:?}"
                ));
            }
        }
        Ok(())
    }

    fn begin(&mut self, thread: u8, kept: &[Kept]) -> Result<(), String> {
        self.compare_kept(kept)?;
        if self.machine.thread(thread).phase != Phase::Off {
            return Err("its last transaction is not complete".to_owned());
        }
        let is_pending = self.machine.pending.iter().any(|pending| pending.dtx.thread == thread);
        self.step(Action::Begin(thread))?;
        if is_pending {
            self.count("a transaction starts before the last acknowledgement");
        }
        if self.machine.thread(thread).id == 0 {
            self.count("an identifier wraps around");
        }
        Ok(())
    }

    /// A line written outside of transactions leaves the caches before the next store, if a queue ever accepts it.
    fn leaves_first(&mut self, line: u8) -> Result<(), String> {
        match self.machine.dirty[usize::from(line)] {
            Some(version) if self.follower.written.contains(&version) => self.step(Action::Evict(line)),
            _ => Ok(()),
        }
    }

    fn flush(&mut self, (thread, id): Name, line: u8, action: Action) -> Result<(), String> {
        let of_model = self.machine.marked[usize::from(line)].map(|thread| self.machine.dtx(thread));
        if of_model != Some(Dtx { thread, id }) {
            return Err(format!("the mark of the model is {of_model:?}"));
        }
        if self.machine.thread(thread).flushed[usize::from(line)] {
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
        let version = stamp.map(|stamp| self.version(stamp)).transpose()?;
        let is_in_flight = !self.machine.flights[usize::from(line)].is_empty();
        let is_dirty = self.machine.dirty[usize::from(line)].is_some();
        if !is_in_flight && !is_dirty && version == Some(self.model.found(&self.machine, line)) {
            // Two levels had the version dirty: its second write changes nothing.
            self.count("a version is written home again");
            self.follower.empty[usize::from(line)] += 1;
            return Ok(());
        }
        if !is_in_flight && dtx.is_none() {
            // The LLC has dropped it.
            self.step(Action::Evict(line))?;
        }
        let flight = *self.machine.flights[usize::from(line)].first().ok_or("nothing is in flight in the model")?;
        if flight.dtx != dtx || version.is_some_and(|version| version != flight.version) {
            return Err(format!("{dtx:?} writes {version:?}, in the model it is {flight:?}"));
        }
        let follows_held = self.machine.controllers[of_model].of_line(line).any(|entry| entry.held.is_some());
        self.step(Action::Accept(line))?;
        let entry = self.machine.controllers[of_model].of_line(line).next_back().expect("just accepted");
        if entry.held.is_some() != held {
            return Err(format!("speculative: {held}, in the model {entry:?}"));
        }
        self.count(match (held, of.is_some(), follows_held) {
            (false, true, _) => "a flush goes in place",
            (false, false, true) => "an ordinary write after a speculative one",
            _ => "another write",
        });
        Ok(())
    }

    /// Acknowledgements of a commit do not name their controller: one that is in flight.
    fn acknowledge(&mut self, (thread, id): Name) -> Result<(), String> {
        let is_meant = |p: &&Pending| p.dtx == Dtx { thread, id } && p.stages.contains(&Stage::Answered);
        let pending = self.machine.pending.iter().find(is_meant).ok_or("no acknowledgement is in flight")?;
        let controller = pending.stages.iter().position(|stage| *stage == Stage::Answered).expect("there is one");
        self.step(Action::AckArrives(thread, id, controller as u8))
    }

    /// An entry leaves its queue. The model has no entries that change nothing, and joined entries leave its queue one
    /// by one: it has an entry that may leave for each one that leaves and changes something.
    fn drain(&mut self, line: u8) -> Result<(), String> {
        let may_drain = LadProtocol::run(&self.model, &self.machine, Action::Drain(line)).is_some();
        let empty = &mut self.follower.empty[usize::from(line)];
        if !may_drain && *empty > 0 {
            *empty -= 1;
            return Ok(());
        }
        self.step(Action::Drain(line))
    }
}
