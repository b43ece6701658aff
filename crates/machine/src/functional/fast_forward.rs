//! The way of a program to a mark: functional execution with a [`FastForwardState`], and what is handed to the machine after it.

use super::bus::FlatBus;
use super::fast_forward_state::{ABORT_NOT_UNDONE, FastForwardState};
use super::observer::{ExecutionObserver, NoObserver, TrainedState, TrainingObserver, WarmingObserver};
use super::threads::RunQueue;
use super::{Stopped, load, run_threads};
use crate::machine::detached_program::{DetachedProgram, SnapshotPoint};
use crate::machine::scheduler::{DetachedThreads, Ready};
use crate::setup::budget::{Budget, Exceeded, Unfinished};
use crate::setup::request::Prepared;
use durasim_core::ThreadContext;
use durasim_isa::BlockCache;
use durasim_kernel::{Output, ThreadId};
use durasim_types::{Clock, ConfigError, Error};

/// Bookkeeping of a fast-forward; nothing is recorded outside of one.
impl<W: ExecutionObserver> FlatBus<W> {
    /// A thread is about to run.
    pub(super) fn assign_core(&mut self, thread: ThreadId) {
        self.account();
        self.slices.begin(thread, self.instructions);
        self.observer.thread(thread);
        if let Some(state) = &mut self.fast_forward_state {
            state.assign_core(thread, self.process.affinity(thread));
            self.observer.assign_core(state.core);
            self.process.space().run_on(state.core);
        }
    }

    /// The instructions since the last thread came belong to its core.
    fn account(&mut self) {
        if let Some(state) = &mut self.fast_forward_state {
            state.instructions[state.core] += self.instructions - state.since_instructions;
            state.since_instructions = self.instructions;
        }
    }

    /// A thread has ended.
    pub(super) fn leave(&mut self, thread: ThreadId) {
        if let Some(state) = &mut self.fast_forward_state {
            state.cores.remove(&thread);
        }
    }

    /// Whether the marker just executed is the end of the fast-forward.
    pub(super) fn has_arrived(&mut self, pc: u64) -> Result<bool, Error> {
        let refuse = |field, obstacle: &str| {
            let problem = format!("functional execution stops at pc {pc:#x}: {obstacle}");
            Err(ConfigError::new(field, problem).into())
        };
        match &self.fast_forward_state {
            None if self.undoes_aborts && self.region.has_aborted() => refuse("functional", ABORT_NOT_UNDONE),
            None => Ok(false),
            Some(state) => match &state.obstacle {
                Some(obstacle) => refuse("fast_forward", obstacle),
                None => Ok(state.arrived),
            },
        }
    }
}

/// Runs the program of `prepared` functionally up to a mark. One instruction takes one nanosecond of the guest's clock.
/// With `warm`, caches and branch predictors of the machine are trained on the way, without time.
///
/// # Errors
/// Refusals before the first instruction, faults of the guest, and a program that cannot be taken over at the mark
/// or does not come to it.
pub(crate) fn fast_forward(
    prepared: &Prepared,
    to: SnapshotPoint,
    warm: bool,
    budget: Budget,
    output: &mut dyn Output,
) -> Result<DetachedProgram, Error> {
    if warm {
        run_to_snapshot_point(prepared, to, WarmingObserver::new(prepared), budget, output)
    } else {
        run_to_snapshot_point(prepared, to, NoObserver, budget, output)
    }
}

fn run_to_snapshot_point<W: TrainingObserver>(
    prepared: &Prepared,
    to: SnapshotPoint,
    observer: W,
    budget: Budget,
    output: &mut dyn Output,
) -> Result<DetachedProgram, Error> {
    let refuse = |problem: String| ConfigError::new("fast_forward", problem);
    let mark = match to {
        SnapshotPoint::Number(number) => format!("the snapshot point {number}"),
        SnapshotPoint::Roi => "the region of interest".to_owned(),
    };
    let (mut bus, hart) = load(&prepared.config, &prepared.plan, &prepared.program, observer)?;
    let hardware = &prepared.plan.variant.hardware;
    let refusing_design = hardware.hooks.track_transactions().then_some(hardware.name);
    let state = FastForwardState::new(prepared.config.hardware_threads().into(), to, refusing_design);
    bus.fast_forward_state = Some(Box::new(state));
    let mut queue = RunQueue::new(hart);
    let stopped = run_threads(&mut queue, &mut bus, &mut BlockCache::new(), budget, output)?;
    bus.account();
    let now_ns = bus.now_ns();
    let FlatBus { memory, process, data_base, data_range, fast_forward_state, mut filter_statistics, observer, .. } =
        bus;
    filter_statistics.leave_functional_run();
    let state = *fast_forward_state.expect("it was put there");
    if let Stopped::Limit(Unfinished { exceeded: Exceeded::Memory, pc }) = stopped {
        let problem = format!("the program has written more memory than it may before {mark}, at pc {pc:#x}");
        return Err(ConfigError::new("max_memory_mib", problem).into());
    }
    if matches!(stopped, Stopped::Exit(_)) || !state.arrived {
        return Err(refuse(format!("the program does not reach {mark}")).into());
    }
    if !state.open.is_empty() {
        return Err(refuse(format!("a transaction is open at {mark}")).into());
    }
    // Times of a clock whose cycle is a nanosecond, as that of functional execution is.
    let clock = Clock { frequency_mhz: 1000 };
    let signalled = queue.take_signalled();
    let (ready, stopped) = queue.take_all();
    let ready = ready.into_iter().map(|(thread, hart)| Ready {
        thread,
        context: ThreadContext::new(*hart),
        since: now_ns,
        timed_out: false,
    });
    let blocked =
        stopped.into_iter().map(|(thread, hart, until_ns, futex)| (thread, ThreadContext::new(*hart), until_ns, futex));
    let TrainedState { cached, cached_pages, predictors } = observer.trained_state();
    let (dram, pmem) = memory.into_pages();
    Ok(DetachedProgram {
        process,
        dram,
        pmem,
        threads: DetachedThreads { last: state.last, ready: ready.collect(), blocked: blocked.collect(), signalled },
        clock,
        now_ps: clock.picos(now_ns),
        instructions: state.instructions,
        predictors,
        predictor_config: prepared.config.core.predictor.clone(),
        cached,
        cached_pages,
        data_base,
        data_range,
        tx_count: state.tx_count,
        filter_statistics,
    })
}
