//! The way of a program to a mark: functional execution with a [`Journey`], and what is handed to the machine behind it.

use super::bus::FlatBus;
use super::journey::Journey;
use super::threads::RunQueue;
use super::watch::{Learn, Trained, Unwatched, Watch};
use super::{Stopped, load, run_threads};
use crate::Prepared;
use crate::scheduler::{Parked, Ready};
use crate::transplant::{Mark, Uprooted};
use durasim_core::ThreadContext;
use durasim_guest::{Output, ThreadId};
use durasim_isa::BlockCache;
use durasim_types::{Clock, ConfigError, Error};

/// What the bus tells a journey; nothing where there is none.
impl<W: Watch> FlatBus<W> {
    /// A thread is about to run.
    pub(super) fn seat(&mut self, thread: ThreadId) {
        self.account();
        self.watch.thread(thread);
        if let Some(journey) = &mut self.journey {
            journey.seat(thread, self.process.affinity(thread));
            self.watch.seat(journey.core);
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
    if warm {
        journey(prepared, to, Trained::new(prepared), max_instructions, output)
    } else {
        journey(prepared, to, Unwatched, max_instructions, output)
    }
}

fn journey<W: Learn>(
    prepared: &Prepared,
    to: Mark,
    watch: W,
    max_instructions: Option<u64>,
    output: &mut dyn Output,
) -> Result<Uprooted, Error> {
    let refuse = |problem: String| ConfigError::new("fast_forward", problem);
    let mark = match to {
        Mark::Number(number) => format!("the mark {number}"),
        Mark::Roi => "the region of interest".to_owned(),
    };
    let (mut bus, hart) = load(&prepared.config, &prepared.plan, &prepared.program, watch)?;
    bus.journey = Some(Box::new(Journey::new(prepared.config.cores.into(), to)));
    let mut queue = RunQueue::new(hart);
    let limit = max_instructions.unwrap_or(u64::MAX);
    let stopped = run_threads(&mut queue, &mut bus, &mut BlockCache::new(), limit, output)?;
    bus.account();
    let now_ns = bus.now_ns();
    let FlatBus { memory, process, data_base, data_range, journey, watch, .. } = bus;
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
    let (held, predictors) = watch.learnt();
    let (dram, pmem) = memory.into_pages();
    Ok(Uprooted {
        process,
        dram,
        pmem,
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
