//! What is recorded of a run, in the order in which it happened.

use durasim_contract::CrashImage;
use durasim_machine::{Observer, PMEM_BASE, Plan, System};
use durasim_types::{Cause, CoreId, DataRange, EventKind, Journal, LineAddr, PersistEvent, PhysAddr, Rng, TxId, Write};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Lines of persistent memory that runs use, side by side.
pub const LINES: u8 = 32;

/// The number of a line, if it is one of those.
pub fn number(line: LineAddr) -> Option<u8> {
    let offset = line.base().0.checked_sub(PMEM_BASE.0)? / 64;
    (offset < u64::from(LINES)).then_some(offset as u8)
}

/// A line by its number.
pub fn line(number: u8) -> LineAddr {
    PMEM_BASE.plus(u64::from(number) * 64).line()
}

/// One observation. A stamp is what a store writes into the first word of its line; no two stores write the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// tx_begin was let through; where its TxLen lies.
    Begin {
        tx: TxId,
        tx_len: PhysAddr,
    },
    /// The TxLen at this address is zero.
    TxLenCleared {
        tx: TxId,
    },
    TaggedStore {
        tx: TxId,
        line: u8,
        stamp: u64,
    },
    PlainStore {
        line: u8,
        stamp: u64,
    },
    CommitRequested {
        tx: TxId,
    },
    TxLenStored {
        tx: TxId,
    },
    StatesReset {
        tx_len: PhysAddr,
    },
    Acknowledged {
        tx: TxId,
    },
    Abort {
        tx: TxId,
        conflict: bool,
    },
    Forgotten {
        tx: TxId,
    },
    /// A version took the place of the one below it.
    Overwrite {
        line: u8,
    },
    WriteHome {
        line: u8,
        stamp: u64,
    },
    Clean {
        line: u8,
    },
    PrematureFlush {
        line: u8,
        stamp: u64,
        at: PhysAddr,
    },
    Spill {
        slot: u32,
    },
    Reload {
        line: u8,
        by: Option<TxId>,
        from: PhysAddr,
    },
    Fetch {
        line: u8,
        by: Option<TxId>,
    },
    Access {
        line: u8,
        by: Option<TxId>,
    },
    MigrationStarted {
        line: u8,
        from: PhysAddr,
    },
    MigrationWritten {
        line: u8,
    },
    EntryFreed {
        line: u8,
    },
    Leave {
        tx: TxId,
    },
    Come {
        tx: TxId,
    },
    /// The stamps that a recovery finds if power fails here.
    Crash {
        found: Vec<u64>,
    },
}

/// The record of a run, and what the recorder has to remember to make it.
pub struct Log {
    pub observed: Vec<Observed>,
    /// TxLens that are about to be stored through the caches, and whether they are zero.
    pub tx_lens: BTreeMap<PhysAddr, (TxId, bool)>,
    /// The store outside of transactions that each core is about.
    pub plain: BTreeMap<CoreId, (u8, u64)>,
    /// Persist events that are crash points, in percent.
    crash_percent: u64,
    rng: Rng,
}

/// A log that the recorder, the observer and the journal of a run share.
#[derive(Clone)]
pub struct Shared {
    pub log: Arc<Mutex<Log>>,
    plan: Option<Plan>,
}

impl Shared {
    pub fn new(seed: u64, crash_percent: u64) -> Self {
        let (tx_lens, plain) = (BTreeMap::new(), BTreeMap::new());
        let log = Log { observed: Vec::new(), tx_lens, plain, crash_percent, rng: Rng::new(seed) };
        Shared { log: Arc::new(Mutex::new(log)), plan: None }
    }

    pub fn with_plan(&self, plan: &Plan) -> Self {
        Shared { plan: Some(plan.clone()), ..self.clone() }
    }

    pub fn with<T>(&self, work: impl FnOnce(&mut Log) -> T) -> T {
        work(&mut self.log.lock().expect("nobody panics with it"))
    }

    pub fn push(&self, observed: Observed) {
        self.with(|log| log.observed.push(observed));
    }

    /// Records what recovery would find now.
    pub fn crash(&self, system: &System) {
        let plan = self.plan.as_ref().expect("the observer has the plan");
        let (mut image, complete): (CrashImage, _) = system.crash_image(u64::MAX);
        complete.expect("unlimited energy suffices");
        (plan.variant.hardware.recover)(&plan.spec, &plan.geometry, &mut image).expect("recovery is not cut");
        let found = (0..LINES).map(|n| image.read_u64(line(n).base())).collect();
        self.push(Observed::Crash { found });
    }
}

impl Observer for Shared {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        let crash = self.with(|log| {
            match (event.kind, event.cause) {
                (EventKind::CacheStore, _) => {
                    if let Some((tx, zero)) = log.tx_lens.remove(&event.addr) {
                        log.observed.push(match zero {
                            true => Observed::TxLenCleared { tx },
                            false => Observed::TxLenStored { tx },
                        });
                    } else if let Some(core) = event.core
                        && let Some((line, stamp)) = log.plain.get(&core).copied()
                        && number(event.addr.line()) == Some(line)
                    {
                        log.plain.remove(&core);
                        log.observed.push(Observed::PlainStore { line, stamp });
                    }
                }
                (EventKind::QueueAccept, Some(Cause::Migration)) => {
                    if let Some(line) = number(event.addr.line()) {
                        log.observed.push(Observed::MigrationWritten { line });
                    }
                }
                _ => {}
            }
            log.rng.below(100) < log.crash_percent
        });
        if crash {
            self.crash(system);
        }
        true
    }
}

impl Journal for Shared {
    fn data_range(&mut self, _: DataRange) {}
    fn begin(&mut self, _: TxId) {}
    fn store(&mut self, _: Option<TxId>, _: Write) {}
    fn committing(&mut self, _: TxId) {}
    fn acknowledged(&mut self, tx: TxId) {
        self.push(Observed::Acknowledged { tx });
    }
    fn aborted(&mut self, _: TxId) {}
}
