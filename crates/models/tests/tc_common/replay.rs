//! A recorded run as a run of the model: every observation is a step that the model allows, and what recovery finds at a
//! crash point is what the model's recovery finds.
//!
//! Three things happen unobserved, and the replay adds their steps: a write arrives before it is acknowledged, an abort
//! brings lines back before it ends, and a clean line leaves the caches before it is missed. None of them changes what
//! recovery finds.

use super::driver::Run;
use super::recorder::{LINES, Observed};
use durasim_models::tc::{Action, Bounds, Entry, EntryState, Machine, Phase, State, TransactionCaches, Version};
use durasim_types::TxId;
use std::collections::BTreeMap;

/// How often each step was seen, by name.
pub type Tally = BTreeMap<String, u64>;

struct Replay {
    model: TransactionCaches,
    state: State,
    /// Where each open transaction runs in the model.
    threads: BTreeMap<TxId, u8>,
    /// Versions that stores have made.
    versions: BTreeMap<u64, Version>,
    tally: Tally,
}

/// Replays a run against this model; bounds are those of the machine.
pub fn replay(run: &Run, with: impl Fn(Bounds) -> TransactionCaches) -> Result<Tally, String> {
    let parameter = |name: &str| run.plan.spec[name].as_u64().expect("it is a number");
    let bounds = Bounds {
        threads: run.threads,
        cores: run.plan.geometry.cores as u8,
        lines: LINES,
        transactions_per_thread: u32::MAX,
        stores_per_line: u32::MAX,
        largest_id: (1 << parameter("tx_id_bits")) - 1,
        entries: parameter("entries") as usize,
        copies_in_flight: parameter("copies_in_flight") as usize,
        lives: 1,
    };
    let model = with(bounds);
    let mut replay = Replay {
        state: model.start(),
        model,
        threads: BTreeMap::new(),
        versions: BTreeMap::from([(0, Version::default())]),
        tally: Tally::new(),
    };
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
                return Err(format!("the model does not allow {action:?}: threads {threads:?}, {:?}", m.fifos));
            }
        }
        self.count(format!("{action:?}").split('(').next().expect("a name"));
        Ok(())
    }

    fn count(&mut self, what: &str) {
        *self.tally.entry(what.to_owned()).or_default() += 1;
    }

    fn thread(&self, tx: TxId) -> Result<u8, String> {
        self.threads.get(&tx).copied().ok_or_else(|| format!("transaction {} is not open", tx.0))
    }

    fn version(&self, stamp: u64) -> Result<Version, String> {
        self.versions.get(&stamp).copied().ok_or_else(|| format!("nobody has written {stamp}"))
    }

    fn observe(&mut self, observed: &Observed) -> Result<(), String> {
        match *observed {
            Observed::Begin { tx, core } => self.begin(tx, core),
            Observed::Store { tx, line, stamp } => self.store(tx, line, stamp),
            Observed::Commit { tx } => self.commit(tx),
            Observed::Abort { tx } => match self.threads.get(&tx) {
                // The design is asked again until it has ended, and for transactions that found no identifier.
                Some(thread) if self.machine().thread(*thread).phase == Phase::Running => {
                    self.step(Action::Abort(*thread))
                }
                _ => Ok(()),
            },
            Observed::Forgotten { tx } => self.forget(tx),
            Observed::Issue { line, stamp } => self.issue(line, stamp),
            Observed::Acknowledged { line } => {
                self.step(Action::Written(line))?;
                self.step(Action::Acknowledged(line))
            }
            Observed::CopyStarted { line } => self.start_copy(line),
            Observed::Copied { line } => self.finish_copy(line),
            Observed::Drop { line } => match self.machine().cached[usize::from(line)] {
                Some(_) => self.step(Action::Evict(line)),
                None => Ok(()),
            },
            Observed::Fetch { line, stamp } => self.fetch(line, stamp),
            Observed::Crash { ref found } => self.crash(found),
        }
    }

    fn begin(&mut self, tx: TxId, core: u8) -> Result<(), String> {
        let m = self.machine();
        let idle = |thread: &u8| m.thread(*thread).phase == Phase::Idle;
        let thread = (0..self.model.bounds.threads).find(idle).ok_or("more transactions than threads")?;
        let last = m.next_ids[usize::from(core)];
        self.step(Action::Begin(thread, core))?;
        if self.machine().thread(thread).id < last {
            self.count("an identifier wraps around");
        }
        self.threads.insert(tx, thread);
        Ok(())
    }

    fn store(&mut self, tx: TxId, line: u8, stamp: u64) -> Result<(), String> {
        let thread = self.thread(tx)?;
        if self.machine().cached[usize::from(line)].is_none() {
            // The LLC has dropped it, and the levels above have a copy.
            self.step(Action::Fetch(line))?;
        }
        self.step(Action::Store(thread, line))?;
        let version = self.machine().written(thread, line).expect("just written");
        self.versions.insert(stamp, version);
        Ok(())
    }

    fn commit(&mut self, tx: TxId) -> Result<(), String> {
        let thread = self.thread(tx)?;
        let own = self.machine().tx(thread);
        if self.machine().overflows.iter().any(|o| o.tx == own) {
            self.count("an overflowed transaction commits");
        }
        self.threads.remove(&tx);
        self.step(Action::Commit(thread))
    }

    /// Ends an abort: what the transaction has brought home is as it was before.
    fn forget(&mut self, tx: TxId) -> Result<(), String> {
        let Some(thread) = self.threads.remove(&tx) else { return Ok(()) };
        for line in 0..LINES {
            if self.machine().shadow(self.machine().tx(thread), line).is_some() {
                self.step(Action::Restored(thread, line))?;
            }
        }
        self.step(Action::Forgotten(thread))
    }

    /// Issues the entry that holds this version. An active one goes with the oldest of its line, in which the fall-back path
    /// gathers them.
    fn issue(&mut self, line: u8, stamp: u64) -> Result<(), String> {
        let version = self.version(stamp)?;
        let here = |fifo: &Vec<Entry>| {
            let holds = |e: &Entry| e.version == version && e.line == line && e.state != EntryState::Available;
            let found = fifo.iter().position(holds)?;
            let gathers = |e: &Entry| e.version.tx == version.tx && e.line == line && e.state == EntryState::Active;
            if gathers(&fifo[found]) { fifo.iter().position(gathers) } else { Some(found) }
        };
        let mut fifos = (0u8..).zip(&self.machine().fifos);
        let place = fifos.find_map(|(core, fifo)| Some((core, here(fifo)? as u8)));
        let (core, index) = place.ok_or_else(|| format!("no entry holds {version:?}"))?;
        self.step(Action::Issue(core, index))
    }

    /// Starts the copy of the core whose next one is of this line.
    fn start_copy(&mut self, line: u8) -> Result<(), String> {
        let starts = |core: &u8| match self.model.step(&self.state, Action::CopyStarted(*core)) {
            Some(State::Running(next)) => copies(&next, *core, line) > copies(self.machine(), *core, line),
            _ => false,
        };
        let core = (0..self.model.bounds.cores).find(starts);
        self.step(Action::CopyStarted(core.ok_or("the model copies another line")?))
    }

    fn finish_copy(&mut self, line: u8) -> Result<(), String> {
        match (0..self.model.bounds.cores).find(|core| copies(self.machine(), *core, line) > 0) {
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
        if self.machine().cached[usize::from(line)].is_some() {
            self.step(Action::Evict(line))?;
        }
        self.step(Action::Fetch(line))?;
        let m = self.machine();
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

    fn crash(&mut self, found: &[u64]) -> Result<(), String> {
        let found: Vec<Version> = found.iter().map(|stamp| self.version(*stamp)).collect::<Result<_, _>>()?;
        self.count("Crash");
        let mut state = self.model.step(&self.state, Action::Crash).ok_or("power cannot fail")?;
        while let Some(next) = self.model.step(&state, Action::RecoveryStep) {
            state = next;
        }
        let State::Recovering(recovery) = state else { unreachable!("recovery does not end by itself") };
        let expected = &recovery.durable.home;
        match (0u8..).zip(expected.iter().zip(&found)).find(|(_, (expected, found))| expected != found) {
            None => Ok(()),
            Some((line, (expected, found))) => {
                Err(format!("recovery finds {found:?} in line {line}, the model {expected:?}"))
            }
        }
    }
}

/// How many copies of a line are in progress from a core's entries.
fn copies(m: &Machine, core: u8, line: u8) -> usize {
    m.fifos[usize::from(core)].iter().filter(|e| e.line == line && e.state == EntryState::Copying).count()
}
