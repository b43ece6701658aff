//! The way of a program to a mark: functional execution with a [`Journey`], and what is handed to the machine behind it.

use super::bus::FlatBus;
use super::journey::Journey;
use super::threads::RunQueue;
use super::{Stopped, load, run_threads};
use crate::Prepared;
use crate::scheduler::{Parked, Ready};
use crate::system::Held;
use crate::transplant::{Mark, Uprooted};
use durasim_core::ThreadContext;
use durasim_core::branch::BranchKind;
use durasim_guest::{Output, ThreadId};
use durasim_isa::{Access, Class, Inst};
use durasim_types::{Clock, ConfigError, Error, PhysAddr};

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
    let blocked =
        stopped.into_iter().map(|(thread, hart, until_ns, futex)| (thread, ThreadContext::new(*hart), until_ns, futex));
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
