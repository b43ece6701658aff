//! Runs of Hercules, and the steps of its model that they are.
//!
//! Two things happen unobserved, and the replay adds their steps: an older committed version in the caches is replaced
//! by a newer one above it (no durability design is notified of that), and, where TxLen goes straight to the
//! controller, the moment in which it arrives there. One observation is no step: a pre-image that was written to its
//! home address stays dirty in its cache if the version that was to replace it is discarded by an abort just then; it
//! is written home again later, which changes nothing.

mod recorder;

pub use recorder::Fault;

use crate::harness::Subject;
use crate::harness::driver::{Driver, Run, core, one_of};
use crate::harness::log::{Shared, line};
use crate::harness::recorder::{Observe, observed_variant};
use crate::harness::replay::Replay;
use durasim_isa::CacheBlockOp;
use durasim_machine::{MachineConfig, Plan, System, presets};
use durasim_models::hercules::{Action, Bounds, Cause, HerculesProtocol, Machine, Phase, Version};
use durasim_models::protocol::Protocol;
use durasim_types::{ConfigError, Domain, EventKind, PersistEvent, PhysAddr, Rng, TxId};
use recorder::Step;
use std::collections::BTreeMap;

/// A run of Hercules.
pub struct Hercules {
    /// Log entries besides those of the smallest log zone that the design accepts.
    spare_entries: u64,
    /// Lines that are accessed: few that are often in each other's way, or many.
    lines: Vec<u8>,
}

/// The state of a replay besides the machine of the model.
#[derive(Default)]
pub struct Follower {
    /// The transaction whose TxLen has this address.
    tx_lens: BTreeMap<PhysAddr, TxId>,
    /// The TxLen of identifier 0.
    tx_len_base: Option<PhysAddr>,
    /// The data of log entry 0.
    log_base: Option<PhysAddr>,
    /// Whether TxLen goes straight to the controller.
    tx_len_goes_to_controller: bool,
}

impl Subject for Hercules {
    type Protocol = HerculesProtocol;
    type Follower = Follower;
    const DOMAIN: Domain = Domain::Eadr;
    const SPARE_THREADS: u64 = 2;
    const SWITCH_PERCENT: [u64; 3] = [0, 2, 8];
    const DISORDER_PERCENT: Option<[u64; 3]> = Some([0, 5, 50]);

    fn overrides(rng: &mut Rng, cores: u16) -> Vec<String> {
        let mut sets = vec![
            format!("cores={cores}"),
            "design.hercules.tx_id_bits=4".to_owned(),
            // The model has one log, which is neither extended nor collected: with a chunk as large as this, a full one
            // waits.
            "design.hercules.log_extension_bytes=0".to_owned(),
            "design.hercules.log_gc_chunk_entries=1048576".to_owned(),
            format!("design.hercules.ewpq_entries={}", 1 + rng.below(3)),
            format!("design.hercules.ewpq_extension_factor={}", 1 + rng.below(5)),
            format!("design.hercules.extension_block_entries={}", 1 + rng.below(3)),
            one_of(rng, "design.hercules.extension_lookup", &["\"by_address\"", "\"scan\""]),
            one_of(rng, "design.hercules.ewpq_home_bits", &["1", "2", "21"]),
            one_of(rng, "design.hercules.extension_chain_bytes", &["0", "65536"]),
            one_of(rng, "design.hercules.migration_period_instructions", &["1", "20", "200"]),
            one_of(rng, "design.hercules.conflict_loser", &["\"owner\"", "\"requester\""]),
            one_of(rng, "interconnect.inclusion", &["\"inclusive\"", "\"non-inclusive\""]),
            format!("interconnect.write_back_buffers={}", 1 + rng.below(3)),
            format!("pmem.controller.write_queue_entries={}", 1 + rng.below(4)),
            one_of(rng, "pmem.controller.coalesce_writes", &["true", "false"]),
            one_of(rng, "l1d.size_bytes", &["256", "512"]),
            one_of(rng, "l2.size_bytes", &["256", "512"]),
            one_of(rng, "llc.size_bytes", &["512", "1024"]),
        ];
        if rng.below(3) == 0 {
            sets.push("design.hercules.tx_len_store=\"controller\"".to_owned());
        }
        sets
    }

    fn draw(rng: &mut Rng) -> Self {
        let spare_entries = [0, 10, 100][rng.below(3) as usize];
        let count = 2 + rng.below(u64::from(Self::LINES) - 2) as u8;
        let stride = 1 + rng.below(4) as u8;
        Hercules { spare_entries, lines: (0..count).map(|n| n * stride % Self::LINES).collect() }
    }

    fn variant(&self) -> &'static str {
        "hercules"
    }

    fn build(
        &self,
        sets: &[String],
        shared: &Shared<Self>,
        planted: Option<Fault>,
    ) -> Result<(Plan, System), ConfigError> {
        let text = presets::text("tiny").expect("tiny is a preset");
        let build = |bytes: u64| {
            let set = format!("design.hercules.log_zone_bytes={bytes}");
            let sets: Vec<String> = sets.iter().cloned().chain([set]).collect();
            let config = MachineConfig::parse("tiny", text, &sets)?;
            let plan = Plan::new(&config, &observed_variant(self.variant(), shared, planted), Self::DOMAIN)?;
            System::new(&config, &plan).map(|system| (plan, system))
        };
        let mut sizes = (2000..200_000).step_by(500);
        let smallest = sizes.find(|bytes| build(*bytes).is_ok()).expect("a log zone is large enough");
        build(smallest + 80 * self.spare_entries)
    }

    fn line(&self, rng: &mut Rng) -> u8 {
        self.lines[rng.below(self.lines.len() as u64) as usize]
    }

    fn operate(driver: &mut Driver<Self>, port: usize, n: u8, choice: u64) {
        let now = *driver.now(port);
        match (choice, driver.tx(port)) {
            (0..=49, _) => driver.store(port, n),
            (50..=69, _) => drop(driver.load(port, n)),
            (70..=76, _) => {
                let ops = [CacheBlockOp::Clean, CacheBlockOp::Flush, CacheBlockOp::Inval];
                let op = ops[driver.rng.below(3) as usize];
                let done = driver.system.cache_block(core(port), op, line(n), now);
                *driver.now(port) = now.max(done);
            }
            (77..=78, _) => *driver.now(port) = driver.system.drain_queues(now),
            (_, None) => driver.begin(port),
            (79..=87, Some(tx)) => driver.commit(port, tx),
            (88, Some(tx)) => driver.abort(port, tx),
            _ => {}
        }
    }

    fn operated(driver: &mut Driver<Self>, port: usize) {
        let (instructions, now) = (driver.rng.below(8), *driver.now(port));
        driver.system.retired(core(port), instructions, now);
    }

    fn persisted(shared: &Shared<Self>, event: &PersistEvent, _: &System) {
        let line = Self::number(event.addr.line());
        shared.with(|log| match (event.kind, event.cause) {
            (EventKind::CacheStore, _) => {
                if let Some((tx, zero)) = log.notes.tx_lens.remove(&event.addr) {
                    log.push(if zero { Step::TxLenCleared { tx } } else { Step::TxLenStored { tx } });
                } else if let Some(core) = event.core
                    && let Some((of_store, stamp)) = log.notes.plain.get(&core).copied()
                    && line == Some(of_store)
                {
                    log.notes.plain.remove(&core);
                    log.push(Step::PlainStore { line: of_store, stamp });
                }
            }
            (EventKind::QueueAccept, Some(durasim_types::Cause::Migration)) => {
                if let Some(line) = line {
                    log.push(Step::MigrationWritten { line });
                }
            }
            _ => {}
        });
    }

    fn acknowledged(shared: &Shared<Self>, tx: TxId) {
        shared.push(Step::Acknowledged { tx });
    }

    fn bounds(run: &Run<Self>) -> Bounds {
        let ewpq_entries = run.parameter("ewpq_entries") as usize;
        Bounds {
            threads: run.threads,
            lines: Self::LINES,
            lines_per_thread: Self::LINES,
            transactions_per_thread: u32::MAX,
            stores_per_line: u32::MAX,
            plain_stores: u32::MAX,
            versions_on_chip: usize::MAX,
            tx_ids: 1 << run.parameter("tx_id_bits"),
            ewpq_entries,
            // Blocks that are chained to it make the extension area as large as it has to be.
            extension_entries: match run.parameter("extension_chain_bytes") {
                0 => ewpq_entries * run.parameter("ewpq_extension_factor") as usize,
                _ => usize::MAX,
            },
            log_entries: log_entries(run),
            context_switches: true,
            lives: 1,
        }
    }

    fn follower(run: &Run<Self>) -> Follower {
        let tx_len_goes_to_controller = run.plan.spec["tx_len_store"] == "controller";
        Follower { tx_len_goes_to_controller, ..Follower::default() }
    }

    fn about(m: &Machine) -> String {
        let threads: Vec<String> =
            m.threads.iter().map(|t| format!("{:?} with {} {}", t.phase, t.tx_id, t.on_core)).collect();
        let line = |n: u8| (m.home[usize::from(n)], &m.on_chip[usize::from(n)], m.flights.get(&n));
        let lines = (0..Self::LINES)
            .map(|n| (n, line(n)))
            .filter(|(_, (_, on_chip, flight))| !on_chip.is_empty() || flight.is_some());
        let lines: Vec<String> = lines
            .map(|(n, (home, on_chip, flight))| {
                format!("{n} at home {home:?}, in caches {on_chip:?}, in flight {flight:?}")
            })
            .collect();
        format!("threads {threads:?}; entries {:?}; lines {lines:#?}", m.entries)
    }

    fn rarity(replay: &Replay<Self>, action: &Action) -> Option<&'static str> {
        let m = &replay.machine;
        Some(match *action {
            Action::Abort(_, Cause::Conflict) => "Abort Conflict",
            Action::Abort(_, Cause::Other) => "Abort Other",
            Action::Reload(line, _) if m.flights.contains_key(&line) => "reloaded while migrating",
            Action::StatesReset(thread) if m.entries.iter().any(|e| e.tx == m.tx(thread)) => "committed off-chip",
            Action::PrematureFlush(_) if m.log.contains_key(&m.log_head) => "the log wraps around",
            Action::TxLenCleared(thread) if m.tx_lens.contains(&m.threads[usize::from(thread)].tx_id) => {
                "an identifier wraps around"
            }
            _ => return None,
        })
    }

    fn follow(replay: &mut Replay<Self>, step: &Step) -> Result<(), String> {
        match *step {
            Step::Begin { tx, tx_len } => replay.begin(tx, tx_len),
            Step::TxLenCleared { tx } => replay.step(Action::TxLenCleared(replay.thread(tx)?)),
            Step::TaggedStore { tx, line, stamp } => {
                let thread = replay.thread(tx)?;
                replay.step(Action::TaggedStore(thread, line))?;
                let version = replay.machine.written(thread, line).expect("just written");
                replay.stamped(stamp, version);
                Ok(())
            }
            Step::PlainStore { line, stamp } => {
                replay.step(Action::PlainStore(line))?;
                replay.stamped(stamp, Version { tx: None, store: replay.machine.plain_stores });
                Ok(())
            }
            Step::CommitRequested { tx } => replay.step(Action::CommitRequested(replay.thread(tx)?)),
            Step::TxLenStored { tx } => replay.step(Action::TxLenStored(replay.thread(tx)?)),
            Step::StatesReset { tx_len } => replay.reset_states(tx_len),
            Step::Acknowledged { tx } => {
                let thread = replay.thread(tx)?;
                replay.threads.remove(&tx);
                replay.step(Action::Acknowledged(thread))
            }
            // The begin of some transactions was refused.
            Step::Abort { tx, conflict } => {
                let cause = if conflict { Cause::Conflict } else { Cause::Other };
                replay.by(Some(tx)).map_or(Ok(()), |thread| replay.step(Action::Abort(thread, cause)))
            }
            Step::Forgotten { tx } => {
                replay.threads.remove(&tx).map_or(Ok(()), |thread| replay.step(Action::Forgotten(thread)))
            }
            Step::Overwrite { line } => replay.step(Action::Overwrite(line)),
            Step::WriteHome { line, stamp } => replay.write_home(line, stamp),
            // A clean line is not written.
            Step::Clean { line } if replay.machine.on_chip[usize::from(line)].is_empty() => Ok(()),
            Step::Clean { line } => replay.step(Action::Clean(line)),
            Step::PrematureFlush { line, stamp, at } => replay.premature_flush(line, stamp, at),
            Step::Spill { slot } => {
                let entry = replay.machine.entries.iter().find(|e| e.slot == slot && !e.extended);
                let line = entry.ok_or("no eWPQ entry has this log entry")?.line;
                replay.step(Action::Spill(line))
            }
            Step::Reload { line, by, from } => {
                replay.expect_slot(line, from)?;
                replay.step(Action::Reload(line, replay.by(by)))
            }
            Step::Fetch { line, by } => replay.step(Action::Fetch(line, replay.by(by))),
            Step::Access { line, by } => replay.step(Action::Access(line, replay.by(by))),
            Step::MigrationStarted { line, from } => {
                replay.expect_slot(line, from)?;
                replay.step(Action::MigrationStarted(line))
            }
            Step::MigrationWritten { line } => replay.step(Action::MigrationWritten(line)),
            Step::EntryFreed { line } => replay.step(Action::EntryFreed(line)),
            Step::Leave { tx } => replay.by(Some(tx)).map_or(Ok(()), |thread| replay.step(Action::Leave(thread))),
            Step::Come { tx } => replay.by(Some(tx)).map_or(Ok(()), |thread| replay.step(Action::Come(thread))),
        }
    }

    /// The controller has the TxLen of a commit, or not: recovery shows it, and it stays decided.
    fn decide(replay: &mut Replay<Self>, found: &[Version]) -> Result<(), String> {
        for thread in 0..replay.model.bounds.threads {
            if replay.controller_stores(thread) && replay.recovered(&replay.machine) != found {
                let stored = HerculesProtocol::run(&replay.model, &replay.machine, Action::TxLenStored(thread));
                let stored: Machine = stored.ok_or("TxLen is stored twice")?;
                let committed = replay.recovered(&stored);
                let lines: Vec<u8> = replay.machine.threads[usize::from(thread)].lines().collect();
                if lines.iter().all(|line| committed[usize::from(*line)] == found[usize::from(*line)]) {
                    replay.machine = stored;
                    replay.count("decided at the controller");
                }
            }
        }
        Ok(())
    }
}

/// The number of entries of the log: it wrapped around where the address went back to the first one.
fn log_entries(run: &Run<Hercules>) -> u32 {
    let places =
        run.steps().filter_map(|step| if let Step::PrematureFlush { at, .. } = step { Some(at.0) } else { None });
    let places: Vec<u64> = places.collect();
    let wraps = places.windows(2).find(|pair| pair[1] < pair[0]);
    wraps.map_or(1 << 20, |pair| ((pair[0] - places[0]) / 64) as u32 + 1)
}

impl Replay<Hercules> {
    /// The requester: a transaction whose begin has not been seen asks for nothing.
    fn by(&self, tx: Option<TxId>) -> Option<u8> {
        tx.and_then(|tx| self.threads.get(&tx).copied())
    }

    fn slot(&mut self, at: PhysAddr) -> u32 {
        ((at.0 - self.follower.log_base.get_or_insert(at).0) / 64) as u32
    }

    fn expect_slot(&mut self, line: u8, at: PhysAddr) -> Result<(), String> {
        let slot = self.slot(at);
        match self.machine.entry(line) {
            Some(entry) if entry.slot == slot => Ok(()),
            other => Err(format!("log entry {slot} is not that of the line: {other:?}")),
        }
    }

    fn begin(&mut self, tx: TxId, tx_len: PhysAddr) -> Result<(), String> {
        let thread = self.idle_thread(|m, thread| m.threads[thread].phase == Phase::Idle)?;
        if !self.machine.threads[usize::from(thread)].on_core {
            // Its last transaction aborted while it waited for a core.
            self.step(Action::Come(thread))?;
        }
        let tx_id = self.model.next_tx_id(&self.machine).ok_or("no identifier is free")?;
        let base = *self.follower.tx_len_base.get_or_insert(PhysAddr(tx_len.0 - 4 * u64::from(tx_id)));
        if base.plus(4 * u64::from(tx_id)) != tx_len {
            return Err(format!("the identifier is {}, not {tx_id}", (tx_len.0 - base.0) / 4));
        }
        self.step(Action::Begin(thread))?;
        self.threads.insert(tx, thread);
        self.follower.tx_lens.insert(tx_len, tx);
        Ok(())
    }

    fn reset_states(&mut self, tx_len: PhysAddr) -> Result<(), String> {
        let tx = *self.follower.tx_lens.get(&tx_len).ok_or("no transaction has this TxLen")?;
        let thread = self.thread(tx)?;
        if self.controller_stores(thread) {
            self.step(Action::TxLenStored(thread))?;
        }
        self.step(Action::StatesReset(thread))
    }

    fn premature_flush(&mut self, line: u8, stamp: u64, at: PhysAddr) -> Result<(), String> {
        let version = self.version(stamp)?;
        let slot = self.slot(at);
        self.step(Action::PrematureFlush(line))?;
        let m = &self.machine;
        let entry = m.entry(line).expect("just made");
        if (entry.slot, m.log[&entry.slot].version) == (slot, version) {
            return Ok(());
        }
        Err(format!("it takes {version:?} to log entry {slot}, not what {entry:?} says"))
    }

    fn write_home(&mut self, line: u8, stamp: u64) -> Result<(), String> {
        let version = self.version(stamp)?;
        let n = usize::from(line);
        if self.machine.home[n] == version && self.machine.on_chip[n].iter().all(|copy| copy.version != version) {
            self.count("WriteHome again");
            return Ok(());
        }
        // Older versions have been replaced by newer ones, unobserved.
        while let [.., _, oldest] = &self.machine.on_chip[n][..]
            && oldest.version != version
        {
            self.step(Action::Overwrite(line))?;
        }
        match self.machine.on_chip[n].last() {
            Some(oldest) if oldest.version == version => self.step(Action::WriteHome(line)),
            other => Err(format!("{version:?} is written home, the caches have {other:?}")),
        }
    }

    /// Whether a commit waits for the controller, which may have its TxLen already.
    fn controller_stores(&self, thread: u8) -> bool {
        let t = &self.machine.threads[usize::from(thread)];
        let waits = t.phase == Phase::Committing && t.lines().next().is_some();
        waits && self.follower.tx_len_goes_to_controller
    }
}
