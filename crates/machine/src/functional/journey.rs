//! Functional execution up to a mark, on the way to a detailed run: what caches and branch predictors of the target
//! would have seen is noted, each thread on the core that it would have had.

use super::bus::FlatBus;
use super::tags::TagCaches;
use super::threads::RunQueue;
use super::{Stopped, load, run_threads};
use crate::scheduler::{Parked, Ready};
use crate::system::Held;
use crate::transplant::{Mark, Uprooted};
use crate::{Inclusion, Prepared};
use durasim_core::ThreadContext;
use durasim_core::branch::{BranchKind, Predictor};
use durasim_guest::{Output, ThreadId};
use durasim_isa::{Access, Class, Inst, Marker};
use durasim_types::{Clock, ConfigError, Error, PhysAddr};
use std::collections::BTreeMap;

/// Caches and predictors on the way.
struct Trained {
    caches: TagCaches,
    predictors: Vec<Predictor>,
}

/// What is noted on the way.
pub(super) struct Journey {
    to: Mark,
    arrived: bool,
    /// Why the way cannot be gone.
    obstacle: Option<String>,
    trained: Option<Trained>,
    /// The core of each thread that lives.
    seats: BTreeMap<ThreadId, usize>,
    /// The thread that had each core last.
    last: Vec<Option<ThreadId>>,
    thread: ThreadId,
    core: usize,
    /// When the running thread got its core.
    since_instructions: u64,
    instructions: Vec<u64>,
    open: BTreeMap<ThreadId, u64>,
    tx_count: u64,
}

impl Journey {
    fn new(prepared: &Prepared, to: Mark, warm: bool) -> Self {
        let (config, geometry) = (&prepared.config, &prepared.plan.geometry);
        let cores = usize::from(config.cores);
        let trained = warm.then(|| Trained {
            caches: TagCaches::new(
                cores,
                config.interconnect.inclusion == Inclusion::Inclusive,
                config.l1i.geometry(),
                geometry.l1d,
                geometry.l2,
                geometry.llc,
            ),
            predictors: (0..cores).map(|_| Predictor::new(&config.core.predictor)).collect(),
        });
        Journey {
            to,
            arrived: false,
            obstacle: None,
            trained,
            seats: BTreeMap::new(),
            last: vec![None; cores],
            thread: ThreadId::FIRST,
            core: 0,
            since_instructions: 0,
            instructions: vec![0; cores],
            open: BTreeMap::new(),
            tx_count: 0,
        }
    }

    pub(super) fn marker(&mut self, marker: Marker, argument: u64) {
        let obstacle = match marker {
            Marker::SnapshotMark => {
                self.arrived = self.to == Mark::Number(argument);
                None
            }
            Marker::RoiBegin if self.to == Mark::Roi => {
                self.arrived = true;
                None
            }
            Marker::RoiBegin => Some("the region of interest begins before that mark".to_owned()),
            Marker::TxBegin => {
                self.tx_count += 1;
                self.open.insert(self.thread, self.tx_count).map(|_| "a transaction begins inside another one".into())
            }
            Marker::TxCommit => {
                let none = self.open.remove(&self.thread).is_none();
                none.then(|| "a transaction is ended where none is open".into())
            }
            Marker::TxAbort => Some("the program aborts a transaction, which functional execution cannot undo".into()),
            _ => None,
        };
        if let Some(obstacle) = obstacle {
            self.obstacle.get_or_insert(obstacle);
        }
    }

    /// The core for a thread: the one it had, else the allowed one with the fewest threads.
    fn seat(&mut self, thread: ThreadId, affinity: u64) {
        let threads_on = |core: usize| self.seats.values().filter(|&&c| c == core).count();
        let cores = (0..self.last.len()).filter(|core| affinity >> core & 1 == 1);
        let had = self.seats.get(&thread).copied().filter(|core| affinity >> core & 1 == 1);
        self.core = had.or_else(|| cores.min_by_key(|&core| threads_on(core))).unwrap_or(0);
        self.seats.insert(thread, self.core);
        self.last[self.core] = Some(thread);
        self.thread = thread;
    }
}

/// What the bus tells a journey; nothing where there is none.
impl FlatBus {
    /// A thread is about to run.
    pub(super) fn seat(&mut self, thread: ThreadId) {
        self.account();
        if let Some(journey) = &mut self.journey {
            journey.seat(thread, self.process.affinity(thread));
        }
    }

    /// The instructions since the last thread came belong to its core.
    fn account(&mut self) {
        if let Some(journey) = &mut self.journey {
            journey.instructions[journey.core] += self.instructions - journey.since_instructions;
            journey.since_instructions = self.instructions;
        }
    }

    /// A thread has ended.
    pub(super) fn leave(&mut self, thread: ThreadId) {
        if let Some(journey) = &mut self.journey {
            journey.seats.remove(&thread);
        }
    }

    #[inline]
    pub(super) fn note_data(&mut self, addr: PhysAddr, write: bool) {
        if let Some(journey) = &mut self.journey
            && let Some(trained) = &mut journey.trained
        {
            trained.caches.data(journey.core, addr.line(), write);
        }
    }

    /// The instruction at `pc` is about to be executed.
    pub(super) fn note_fetch(&mut self, pc: u64) {
        // It was decoded from there, so there is a page.
        let Ok(phys) = self.translate(pc, Access::Execute) else { return };
        if let Some(journey) = &mut self.journey
            && let Some(trained) = &mut journey.trained
        {
            trained.caches.fetch(journey.core, phys.line());
        }
    }

    /// An instruction has led to the next one, or to `target`.
    #[inline]
    pub(super) fn note_flow(&mut self, inst: Inst, pc: u64, target: Option<u64>) {
        if let Some(journey) = &mut self.journey
            && let Some(trained) = &mut journey.trained
            && (target.is_some() || inst.class() == Class::Branch)
        {
            let next_pc = pc + u64::from(inst.len);
            let kind = BranchKind::of(inst);
            let predictor = &mut trained.predictors[journey.core];
            predictor.predict_and_train(pc, kind, target.is_some(), target.unwrap_or(next_pc), next_pc);
        }
    }

    /// Whether the marker just executed is the end of the journey.
    pub(super) fn has_arrived(&mut self, pc: u64) -> Result<bool, Error> {
        let Some(journey) = &self.journey else { return Ok(false) };
        match &journey.obstacle {
            Some(obstacle) => {
                let problem = format!("functional execution cannot go on at pc {pc:#x}: {obstacle}");
                Err(ConfigError::new("fast_forward", problem).into())
            }
            None => Ok(journey.arrived),
        }
    }
}

/// Runs the program of `prepared` functionally up to a mark. One instruction takes one nanosecond of the guest's clock.
/// With `warm`, caches and branch predictors of the machine are trained on the way, without time.
///
/// # Errors
/// What is refused before the first instruction, faults of the guest, and a program that cannot be taken over at the mark
/// or does not come to it.
pub(crate) fn fast_forward(
    prepared: &Prepared,
    to: Mark,
    warm: bool,
    max_instructions: Option<u64>,
    output: &mut dyn Output,
) -> Result<Uprooted, Error> {
    let refuse = |problem: String| ConfigError::new("fast_forward", problem);
    let mark = match to {
        Mark::Number(number) => format!("the mark {number}"),
        Mark::Roi => "the region of interest".to_owned(),
    };
    let (mut bus, hart) = load(&prepared.config, &prepared.plan, &prepared.program)?;
    bus.journey = Some(Box::new(Journey::new(prepared, to, warm)));
    let mut queue = RunQueue::new(hart);
    let limit = max_instructions.unwrap_or(u64::MAX);
    let stopped = run_threads(&mut queue, &mut bus, limit, output)?;
    bus.account();
    let now_ns = bus.now_ns();
    let FlatBus { memory, process, data_base, data_range, journey, .. } = bus;
    let journey = *journey.expect("it was put there");
    if matches!(stopped, Stopped::Exit(_)) || !journey.arrived {
        return Err(refuse(format!("the program does not come to {mark}")).into());
    }
    if !journey.open.is_empty() {
        return Err(refuse(format!("a transaction is open at {mark}")).into());
    }
    // Times of a clock whose cycle is a nanosecond, as that of functional execution is.
    let clock = Clock { frequency_mhz: 1000 };
    let (ready, stopped) = queue.take_all();
    let ready = ready.into_iter().map(|(thread, hart)| Ready {
        thread,
        context: ThreadContext::new(*hart),
        since: now_ns,
        timed_out: false,
    });
    let blocked = stopped.into_iter().map(|(thread, hart, until_ns, futex)| {
        (thread, ThreadContext::new(*hart), until_ns, futex)
    });
    let (held, predictors) = match journey.trained {
        Some(trained) => (trained.caches.held(), trained.predictors),
        None => (Held::default(), Vec::new()),
    };
    Ok(Uprooted {
        process,
        dram: memory.dram,
        pmem: memory.pmem,
        threads: Parked { last: journey.last, ready: ready.collect(), blocked: blocked.collect() },
        clock,
        now_ps: clock.picos(now_ns),
        instructions: journey.instructions,
        predictors,
        predictor_config: prepared.config.core.predictor.clone(),
        held,
        data_base,
        data_range,
        tx_count: journey.tx_count,
    })
}
