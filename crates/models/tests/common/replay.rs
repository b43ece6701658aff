//! A recorded run as a run of the model: every observation is a step that the model allows, and what recovery finds at a
//! crash point is what the model's recovery finds.
//!
//! Two things happen unobserved, and the replay adds their steps: an older committed version in the caches is replaced by
//! a newer one above it (no durability design is notified of that), and, where TxLen goes straight to the controller, the moment
//! in which it arrives there. One observation is no step: a pre-image that went home stays dirty in its cache if the
//! version that was to take its place is discarded by an abort just then; it goes home again later, which changes nothing.

use super::driver::Run;
use super::log::{LINES, Observed};
use durasim_models::hercules::{Action, Bounds, Cause, Hercules, Machine, Phase, State, Version};
use durasim_types::{PhysAddr, TxId};
use std::collections::BTreeMap;

/// How often each step was seen, by name.
pub type Tally = BTreeMap<String, u64>;

struct Replay {
    model: Hercules,
    state: State,
    /// Where each open transaction runs in the model.
    threads: BTreeMap<TxId, u8>,
    /// What the hardware calls them: where their TxLens lie.
    tx_lens: BTreeMap<PhysAddr, TxId>,
    /// The TxLen of identifier 0.
    tx_len_base: Option<PhysAddr>,
    /// The data of log entry 0.
    log_base: Option<PhysAddr>,
    /// Whether TxLen goes straight to the controller.
    tx_len_goes_to_controller: bool,
    /// Versions that stores have made.
    versions: BTreeMap<u64, Version>,
    tally: Tally,
}

/// Replays a run against this model; bounds are those of the machine.
pub fn replay(run: &Run, with: impl Fn(Bounds) -> Hercules) -> Result<Tally, String> {
    let parameter = |name: &str| run.plan.spec[name].as_u64().expect("it is a number");
    let ewpq_entries = parameter("ewpq_entries") as usize;
    let bounds = Bounds {
        threads: run.threads,
        lines: LINES,
        lines_per_thread: LINES,
        transactions_per_thread: u32::MAX,
        stores_per_line: u32::MAX,
        plain_stores: u32::MAX,
        versions_on_chip: usize::MAX,
        tx_ids: 1 << parameter("tx_id_bits"),
        ewpq_entries,
        // Blocks that are chained to it make the extension area as large as it has to be.
        extension_entries: match parameter("extension_chain_bytes") {
            0 => ewpq_entries * parameter("ewpq_extension_factor") as usize,
            _ => usize::MAX,
        },
        log_entries: log_entries(&run.observed),
        context_switches: true,
        lives: 1,
    };
    let model = with(bounds);
    let mut replay = Replay {
        state: model.start(),
        model,
        threads: BTreeMap::new(),
        tx_lens: BTreeMap::new(),
        tx_len_base: None,
        log_base: None,
        tx_len_goes_to_controller: run.plan.spec["tx_len_store"] == "controller",
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

/// How many entries the log has: it wrapped around where the address went back to the first one.
fn log_entries(observed: &[Observed]) -> u32 {
    let places =
        observed.iter().filter_map(|o| if let Observed::PrematureFlush { at, .. } = o { Some(at.0) } else { None });
    let places: Vec<u64> = places.collect();
    let round = places.windows(2).find(|pair| pair[1] < pair[0]);
    round.map_or(1 << 20, |pair| ((pair[0] - places[0]) / 64) as u32 + 1)
}

impl Replay {
    fn machine(&self) -> &Machine {
        let State::Running(machine) = &self.state else { unreachable!("crashes are tried on copies") };
        machine
    }

    fn step(&mut self, action: Action) -> Result<(), String> {
        self.mark(action);
        match self.model.step(&self.state, action) {
            Some(next) => self.state = next,
            None => return Err(format!("the model does not allow {action:?}: {}", self.about(action))),
        }
        let name = format!("{action:?}");
        let name = match action {
            Action::Abort(_, cause) => format!("Abort {cause:?}"),
            _ => name.split('(').next().expect("a name").to_owned(),
        };
        self.count(&name);
        Ok(())
    }

    fn count(&mut self, what: &str) {
        *self.tally.entry(what.to_owned()).or_default() += 1;
    }

    /// Counts the rare situations that a step is made in.
    fn mark(&mut self, action: Action) {
        let m = self.machine();
        let mark = match action {
            Action::Reload(line, _) if m.flights.contains_key(&line) => "reloaded while migrating",
            Action::StatesReset(thread) if m.entries.iter().any(|e| e.tx == m.tx(thread)) => "committed off-chip",
            Action::PrematureFlush(_) if m.log.contains_key(&m.log_head) => "the log wraps around",
            Action::TxLenCleared(thread) if m.tx_lens.contains(&m.threads[usize::from(thread)].tx_id) => {
                "an identifier wraps around"
            }
            _ => return,
        };
        self.count(mark);
    }

    /// What the model knows of the line of an action, and of the threads.
    fn about(&self, action: Action) -> String {
        let m = self.machine();
        let line = match action {
            Action::TaggedStore(_, line) | Action::PlainStore(line) | Action::Overwrite(line) => Some(line),
            Action::WriteHome(line) | Action::Clean(line) | Action::PrematureFlush(line) => Some(line),
            Action::Spill(line) | Action::Reload(line, _) | Action::Fetch(line, _) => Some(line),
            Action::Access(line, _) | Action::MigrationStarted(line) => Some(line),
            Action::MigrationWritten(line) | Action::EntryFreed(line) => Some(line),
            _ => None,
        };
        let line = line.map(|line| self.about_line(line)).unwrap_or_default();
        let threads = m.threads.iter().map(|t| format!("{:?} with {} {}", t.phase, t.tx_id, t.on_core));
        format!("{line}; threads {:?}; entries {:?}", threads.collect::<Vec<_>>(), m.entries)
    }

    fn about_line(&self, line: u8) -> String {
        let m = self.machine();
        let n = usize::from(line);
        format!(
            "line {line} at home {:?}, in caches {:?}, in flight {:?}",
            m.home[n],
            m.on_chip[n],
            m.flights.get(&line)
        )
    }

    fn thread(&self, tx: TxId) -> Result<u8, String> {
        self.threads.get(&tx).copied().ok_or_else(|| format!("transaction {} is not open", tx.0))
    }

    /// Who asks: a transaction whose begin has not been seen asks for nothing.
    fn by(&self, tx: Option<TxId>) -> Option<u8> {
        tx.and_then(|tx| self.threads.get(&tx).copied())
    }

    fn version(&self, stamp: u64) -> Result<Version, String> {
        self.versions.get(&stamp).copied().ok_or_else(|| format!("nobody has written {stamp}"))
    }

    fn slot(&mut self, at: PhysAddr) -> u32 {
        ((at.0 - self.log_base.get_or_insert(at).0) / 64) as u32
    }

    fn expect_slot(&mut self, line: u8, at: PhysAddr) -> Result<(), String> {
        let slot = self.slot(at);
        match self.machine().entry(line) {
            Some(entry) if entry.slot == slot => Ok(()),
            other => Err(format!("log entry {slot} is not that of the line: {other:?}")),
        }
    }

    fn observe(&mut self, observed: &Observed) -> Result<(), String> {
        match *observed {
            Observed::Begin { tx, tx_len } => self.begin(tx, tx_len),
            Observed::TxLenCleared { tx } => self.step(Action::TxLenCleared(self.thread(tx)?)),
            Observed::TaggedStore { tx, line, stamp } => self.tagged_store(tx, line, stamp),
            Observed::PlainStore { line, stamp } => {
                self.step(Action::PlainStore(line))?;
                let version = Version { tx: None, store: self.machine().plain_stores };
                self.versions.insert(stamp, version);
                Ok(())
            }
            Observed::CommitRequested { tx } => self.step(Action::CommitRequested(self.thread(tx)?)),
            Observed::TxLenStored { tx } => self.step(Action::TxLenStored(self.thread(tx)?)),
            Observed::StatesReset { tx_len } => self.reset_states(tx_len),
            Observed::Acknowledged { tx } => {
                let thread = self.thread(tx)?;
                self.threads.remove(&tx);
                self.step(Action::Acknowledged(thread))
            }
            Observed::Abort { tx, conflict } => match self.by(Some(tx)) {
                Some(thread) => self.step(Action::Abort(thread, if conflict { Cause::Conflict } else { Cause::Other })),
                // Its begin was refused.
                None => Ok(()),
            },
            Observed::Forgotten { tx } => match self.threads.remove(&tx) {
                Some(thread) => self.step(Action::Forgotten(thread)),
                None => Ok(()),
            },
            Observed::Overwrite { line } => self.step(Action::Overwrite(line)),
            Observed::WriteHome { line, stamp } => self.write_home(line, stamp),
            // What is clean is not written.
            Observed::Clean { line } if self.machine().on_chip[usize::from(line)].is_empty() => Ok(()),
            Observed::Clean { line } => self.step(Action::Clean(line)),
            Observed::PrematureFlush { line, stamp, at } => self.premature_flush(line, stamp, at),
            Observed::Spill { slot } => {
                let entry = self.machine().entries.iter().find(|e| e.slot == slot && !e.extended);
                let line = entry.ok_or("no eWPQ entry has this log entry")?.line;
                self.step(Action::Spill(line))
            }
            Observed::Reload { line, by, from } => {
                self.expect_slot(line, from)?;
                self.step(Action::Reload(line, self.by(by)))
            }
            Observed::Fetch { line, by } => self.step(Action::Fetch(line, self.by(by))),
            Observed::Access { line, by } => self.step(Action::Access(line, self.by(by))),
            Observed::MigrationStarted { line, from } => {
                self.expect_slot(line, from)?;
                self.step(Action::MigrationStarted(line))
            }
            Observed::MigrationWritten { line } => self.step(Action::MigrationWritten(line)),
            Observed::EntryFreed { line } => self.step(Action::EntryFreed(line)),
            Observed::Leave { tx } => self.by(Some(tx)).map_or(Ok(()), |thread| self.step(Action::Leave(thread))),
            Observed::Come { tx } => self.by(Some(tx)).map_or(Ok(()), |thread| self.step(Action::Come(thread))),
            Observed::Crash { ref found } => self.crash(found),
        }
    }

    fn begin(&mut self, tx: TxId, tx_len: PhysAddr) -> Result<(), String> {
        let idle = |thread: &u8| self.machine().threads[usize::from(*thread)].phase == Phase::Idle;
        let thread = (0..self.model.bounds.threads).find(idle).ok_or("more transactions than threads")?;
        if !self.machine().threads[usize::from(thread)].on_core {
            // Its last transaction aborted while it waited for a core.
            self.step(Action::Come(thread))?;
        }
        let tx_id = self.model.next_tx_id(self.machine()).ok_or("no identifier is free")?;
        let base = *self.tx_len_base.get_or_insert(PhysAddr(tx_len.0 - 4 * u64::from(tx_id)));
        if base.plus(4 * u64::from(tx_id)) != tx_len {
            return Err(format!("the identifier is {}, not {tx_id}", (tx_len.0 - base.0) / 4));
        }
        self.step(Action::Begin(thread))?;
        self.threads.insert(tx, thread);
        self.tx_lens.insert(tx_len, tx);
        Ok(())
    }

    fn tagged_store(&mut self, tx: TxId, line: u8, stamp: u64) -> Result<(), String> {
        let thread = self.thread(tx)?;
        self.step(Action::TaggedStore(thread, line))?;
        let version = self.machine().written(thread, line).expect("just written");
        self.versions.insert(stamp, version);
        Ok(())
    }

    fn reset_states(&mut self, tx_len: PhysAddr) -> Result<(), String> {
        let tx = *self.tx_lens.get(&tx_len).ok_or("nobody has this TxLen")?;
        let thread = self.thread(tx)?;
        let t = &self.machine().threads[usize::from(thread)];
        if self.controller_stores(t.phase, thread) {
            self.step(Action::TxLenStored(thread))?;
        }
        self.step(Action::StatesReset(thread))
    }

    fn premature_flush(&mut self, line: u8, stamp: u64, at: PhysAddr) -> Result<(), String> {
        let version = self.version(stamp)?;
        let slot = self.slot(at);
        self.step(Action::PrematureFlush(line))?;
        let m = self.machine();
        let entry = m.entry(line).expect("just made");
        if (entry.slot, m.log[&entry.slot].version) == (slot, version) {
            return Ok(());
        }
        Err(format!("it takes {version:?} to log entry {slot}, not what {entry:?} says"))
    }

    fn write_home(&mut self, line: u8, stamp: u64) -> Result<(), String> {
        let version = self.version(stamp)?;
        let m = self.machine();
        let n = usize::from(line);
        if m.home[n] == version && m.on_chip[n].iter().all(|copy| copy.version != version) {
            self.count("WriteHome again");
            return Ok(());
        }
        // Older versions have given way to newer ones, unobserved.
        while let [.., _, oldest] = &self.machine().on_chip[usize::from(line)][..]
            && oldest.version != version
        {
            self.step(Action::Overwrite(line))?;
        }
        match self.machine().on_chip[usize::from(line)].last() {
            Some(oldest) if oldest.version == version => self.step(Action::WriteHome(line)),
            other => Err(format!("{version:?} goes home, the caches have {other:?}")),
        }
    }

    /// Whether a commit waits for the controller, which may have its TxLen already.
    fn controller_stores(&self, phase: Phase, thread: u8) -> bool {
        let written = self.machine().threads[usize::from(thread)].lines().next().is_some();
        phase == Phase::Committing && written && self.tx_len_goes_to_controller
    }

    /// What recovery would find.
    fn recovered(&self, state: &State) -> Result<Vec<Version>, String> {
        let mut state = self.model.step(state, Action::Crash).ok_or("power cannot fail")?;
        while let Some(next) = self.model.step(&state, Action::RecoveryStep) {
            state = next;
        }
        let State::Recovering(recovery) = state else { unreachable!("recovery does not end by itself") };
        Ok(recovery.durable.home)
    }

    fn crash(&mut self, found: &[u64]) -> Result<(), String> {
        let found: Vec<Version> = found.iter().map(|stamp| self.version(*stamp)).collect::<Result<_, _>>()?;
        self.count("Crash");
        let mut expected = self.recovered(&self.state)?;
        for thread in 0..self.model.bounds.threads {
            let phase = self.machine().threads[usize::from(thread)].phase;
            if expected != found && self.controller_stores(phase, thread) {
                // The controller has it, or not: that decides, and it stays decided.
                let stored =
                    self.model.step(&self.state, Action::TxLenStored(thread)).ok_or("TxLen is stored twice")?;
                let lines: Vec<u8> = self.machine().threads[usize::from(thread)].lines().collect();
                let committed = self.recovered(&stored)?;
                if lines.iter().all(|line| committed[usize::from(*line)] == found[usize::from(*line)]) {
                    self.state = stored;
                    self.count("decided at the controller");
                    expected = committed;
                }
            }
        }
        let wrong = (0..).zip(expected.iter().zip(&found)).find(|(_, (expected, found))| expected != found);
        match wrong {
            None => Ok(()),
            Some((line, (expected, found))) => {
                let line: u8 = line;
                Err(format!(
                    "recovery finds {found:?} in line {line}, the model {expected:?}: {}",
                    self.about_line(line)
                ))
            }
        }
    }
}
