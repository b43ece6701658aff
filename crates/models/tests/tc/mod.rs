//! Runs of the transaction cache, and the steps of its model that they are. The transactions of threads write disjoint
//! lines.
//!
//! Three things happen unobserved, and the replay adds their steps: a write arrives before it is acknowledged, an abort
//! restores lines before it ends, and a clean line leaves the caches before it is missed. None of them changes what
//! recovery finds.

mod recorder;

use crate::harness::Subject;
use crate::harness::driver::{Driver, Run, one_of};
use crate::harness::recorder::Observe;
use crate::harness::replay::Replay;
use durasim_models::protocol::Protocol;
use durasim_models::tc::{Action, Bounds, Entry, EntryState, Machine, Phase, TcProtocol};
use durasim_types::{Domain, Rng, TxId};
use recorder::Step;

/// A run of the transaction cache.
pub struct Tc;

impl Subject for Tc {
    type Protocol = TcProtocol;
    type Follower = ();
    const DOMAIN: Domain = Domain::NvTc;
    const SPARE_THREADS: u64 = 3;
    const SWITCH_PERCENT: [u64; 3] = [0, 2, 10];

    fn overrides(rng: &mut Rng, cores: u16) -> Vec<String> {
        vec![
            format!("cores={cores}"),
            one_of(rng, "design.tc.entries", &["2", "3", "4", "8"]),
            one_of(rng, "design.tc.overflow_percent", &["1", "50", "90", "100"]),
            one_of(rng, "design.tc.tx_id_bits", &["1", "2", "3"]),
            one_of(rng, "design.tc.shadow_lines", &["2", "4", "64"]),
            one_of(rng, "design.tc.copies_in_flight", &["1", "2", "4"]),
            one_of(rng, "design.tc.latency_read_cycles", &["0", "1", "40", "400"]),
            one_of(rng, "design.tc.latency_write_cycles", &["0", "1", "50", "400"]),
            one_of(rng, "interconnect.inclusion", &["\"inclusive\"", "\"non-inclusive\""]),
            one_of(rng, "interconnect.write_back_buffers", &["1", "3"]),
            one_of(rng, "pmem.controller.write_queue_entries", &["1", "2", "4"]),
            one_of(rng, "pmem.controller.coalesce_writes", &["false", "true"]),
            one_of(rng, "pmem.media.write_latency_ns", &["100", "2000"]),
            one_of(rng, "l1d.size_bytes", &["256", "512"]),
            one_of(rng, "l2.size_bytes", &["256", "512"]),
            one_of(rng, "llc.size_bytes", &["512", "1024"]),
        ]
    }

    fn draw(_: &mut Rng) -> Self {
        Tc
    }

    fn variant(&self) -> &'static str {
        "tc"
    }

    fn operate(driver: &mut Driver<Self>, port: usize, n: u8, choice: u64) {
        match (choice, driver.tx(port)) {
            (0..=29, _) => drop(driver.load(port, n)),
            (_, None) => driver.begin(port),
            (30..=84, Some(_)) => driver.store_locked(port, n),
            (85..=95, Some(tx)) => driver.commit(port, tx),
            (_, Some(tx)) => driver.abort(port, tx),
        }
    }

    fn bounds(run: &Run<Self>) -> Bounds {
        Bounds {
            threads: run.threads,
            cores: run.plan.geometry.cores as u8,
            lines: Self::LINES,
            transactions_per_thread: u32::MAX,
            stores_per_line: u32::MAX,
            largest_id: (1 << run.parameter("tx_id_bits")) - 1,
            entries: run.parameter("entries") as usize,
            copies_in_flight: run.parameter("copies_in_flight") as usize,
            lives: 1,
        }
    }

    fn follower(_: &Run<Self>) {}

    fn about(m: &Machine) -> String {
        let threads: Vec<String> = m.threads.iter().map(|t| format!("{:?} {}", t.phase, t.id)).collect();
        format!("threads {threads:?}, {:?}", m.fifos)
    }

    fn follow(replay: &mut Replay<Self>, step: &Step) -> Result<(), String> {
        match *step {
            Step::Begin { tx, core } => replay.begin(tx, core),
            Step::Store { tx, line, stamp } => replay.store(tx, line, stamp),
            Step::Commit { tx } => replay.commit(tx),
            Step::Abort { tx } => match replay.threads.get(&tx) {
                // The design is asked again until it has ended, and for transactions that found no identifier.
                Some(thread) if replay.machine.thread(*thread).phase == Phase::Running => {
                    replay.step(Action::Abort(*thread))
                }
                _ => Ok(()),
            },
            Step::Forgotten { tx } => replay.forget(tx),
            Step::Issue { line, stamp } => replay.issue(line, stamp),
            Step::Acknowledged { line } => {
                replay.step(Action::Written(line))?;
                replay.step(Action::Acknowledged(line))
            }
            Step::CopyStarted { line } => replay.start_copy(line),
            Step::Copied { line } => replay.finish_copy(line),
            Step::Drop { line } => match replay.machine.cached[usize::from(line)] {
                Some(_) => replay.step(Action::Evict(line)),
                None => Ok(()),
            },
            Step::Fetch { line, stamp } => replay.fetch(line, stamp),
        }
    }
}

impl Replay<Tc> {
    fn begin(&mut self, tx: TxId, core: u8) -> Result<(), String> {
        let thread = self.idle_thread(|m, thread| m.threads[thread].phase == Phase::Idle)?;
        let last = self.machine.next_ids[usize::from(core)];
        self.step(Action::Begin(thread, core))?;
        if self.machine.thread(thread).id < last {
            self.count("an identifier wraps around");
        }
        self.threads.insert(tx, thread);
        Ok(())
    }

    fn store(&mut self, tx: TxId, line: u8, stamp: u64) -> Result<(), String> {
        let thread = self.thread(tx)?;
        if self.machine.cached[usize::from(line)].is_none() {
            // The LLC has dropped it, and the levels above have a copy.
            self.step(Action::Fetch(line))?;
        }
        self.step(Action::Store(thread, line))?;
        let version = self.machine.written(thread, line).expect("just written");
        self.stamped(stamp, version);
        Ok(())
    }

    fn commit(&mut self, tx: TxId) -> Result<(), String> {
        let thread = self.thread(tx)?;
        let own = self.machine.tx(thread);
        if self.machine.overflows.iter().any(|o| o.tx == own) {
            self.count("an overflowed transaction commits");
        }
        self.threads.remove(&tx);
        self.step(Action::Commit(thread))
    }

    /// Ends an abort: the lines that the transaction has written home are as they were before.
    fn forget(&mut self, tx: TxId) -> Result<(), String> {
        let Some(thread) = self.threads.remove(&tx) else { return Ok(()) };
        for line in 0..Tc::LINES {
            if self.machine.shadow(self.machine.tx(thread), line).is_some() {
                self.step(Action::Restored(thread, line))?;
            }
        }
        self.step(Action::Forgotten(thread))
    }

    /// Issues the entry that holds this version. An active one goes with the oldest of its line, in which the fall-back
    /// path gathers them.
    fn issue(&mut self, line: u8, stamp: u64) -> Result<(), String> {
        let version = self.version(stamp)?;
        let here = |fifo: &Vec<Entry>| {
            let holds = |e: &Entry| e.version == version && e.line == line && e.state != EntryState::Available;
            let found = fifo.iter().position(holds)?;
            let gathers = |e: &Entry| e.version.tx == version.tx && e.line == line && e.state == EntryState::Active;
            if gathers(&fifo[found]) { fifo.iter().position(gathers) } else { Some(found) }
        };
        let mut fifos = (0u8..).zip(&self.machine.fifos);
        let place = fifos.find_map(|(core, fifo)| Some((core, here(fifo)? as u8)));
        let (core, index) = place.ok_or_else(|| format!("no entry holds {version:?}"))?;
        self.step(Action::Issue(core, index))
    }

    /// Starts the copy of the core whose next one is of this line.
    fn start_copy(&mut self, line: u8) -> Result<(), String> {
        let starts = |core: &u8| {
            let next = TcProtocol::run(&self.model, &self.machine, Action::CopyStarted(*core));
            next.is_some_and(|next| copies(&next, *core, line) > copies(&self.machine, *core, line))
        };
        let core = (0..self.model.bounds.cores).find(starts);
        self.step(Action::CopyStarted(core.ok_or("the model copies another line")?))
    }

    fn finish_copy(&mut self, line: u8) -> Result<(), String> {
        match (0..self.model.bounds.cores).find(|core| copies(&self.machine, *core, line) > 0) {
            Some(core) => self.step(Action::Copied(core, line)),
            // Its transaction has committed meanwhile.
            None => {
                self.count("a copy comes late");
                Ok(())
            }
        }
    }

    /// A miss: it finds the newest entry of the line if the design found one.
    fn fetch(&mut self, line: u8, stamp: Option<u64>) -> Result<(), String> {
        if self.machine.cached[usize::from(line)].is_some() {
            self.step(Action::Evict(line))?;
        }
        self.step(Action::Fetch(line))?;
        let m = &self.machine;
        let found = m.cached[usize::from(line)].expect("just fetched");
        let has_entry = (0..m.fifos.len()).any(|core| m.occupied(core).any(|e| e.line == line));
        match stamp {
            Some(stamp) if self.version(stamp)? == found => {
                self.count("a miss finds an entry");
                Ok(())
            }
            None if !has_entry => Ok(()),
            _ => Err(format!("the model finds {found:?}")),
        }
    }
}

/// The number of copies of a line that are in progress from a core's entries.
fn copies(m: &Machine, core: u8, line: u8) -> usize {
    m.fifos[usize::from(core)].iter().filter(|e| e.line == line && e.state == EntryState::Copying).count()
}
