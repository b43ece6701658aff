//! Functional execution: a program on flat memory, without caches, timing or a durability design. This is how guest
//! recovery and checks run on the image that a crash left.
//!
//! One hart runs all threads, each for a slice of instructions in turn; nothing depends on the host.

mod boundaries;
mod bus;
mod fast_forward;
mod fast_forward_state;
mod loaded;
mod memory;
mod observer;
mod region;
mod slices;
mod tags;
mod threads;
mod tlb;
mod write_sets;

use crate::setup::budget::{Budget, Exceeded, Unfinished};
use crate::setup::config::MachineConfig;
use crate::setup::memory_map::{DRAM_BASE, PMEM_BASE};
use crate::setup::plan::Plan;
use crate::setup::program::{PoolContents, Program, process_config};
use bus::FlatBus;
use durasim_isa::{Access, BlockCache, BlockId, Flow, Hart, Op, Stop, disassemble, execute};
use durasim_kernel::{
    LineWatch, Output, PhysMemory, PmemPool, Process, ProgramFault, SyscallOutcome, ThreadId, WaitsFor,
};
use durasim_types::{DataRange, Error, GuestFault, Pages, Rng};
pub(crate) use fast_forward::fast_forward;
pub use loaded::LoadedProgram;
use memory::Flat;
use observer::{ExecutionObserver, NoObserver};
pub use region::FunctionalRegion;
use threads::{Next, RunQueue};
pub(crate) use write_sets::profile;
pub use write_sets::{TxLines, TxProfile};

/// Instructions between two polls for a request to stop.
const LOOK_PERIOD: u64 = 1 << 20;
/// Instructions after which a thread makes room for the next, drawn anew for each slice, alike in all runs; the block
/// being executed is finished. If all slices had one length, a thread that takes a lock again and again could always end
/// its slice with it.
const SLICE_INSTRUCTIONS: std::ops::Range<u64> = 5_000..15_000;

/// End of a functional run.
#[derive(Clone, Debug)]
pub struct FunctionalEnding {
    /// The exit code; `None` if a limit was reached or the output stopped the program.
    pub exit_code: Option<i32>,
    /// The limit that was reached, and where.
    pub unfinished: Option<Unfinished>,
    /// Bytes of memory that the run wrote, in whole pages.
    pub written_bytes: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// The region of interest; the whole program if it marks none.
    pub roi: FunctionalRegion,
    /// `/pmem/` afterwards.
    pub pool: PoolContents,
    /// The data range the program declared.
    pub data_range: Option<DataRange>,
}

/// Runs a program to its end or up to the limits of a budget. One instruction takes one nanosecond of the guest's clock.
///
/// # Errors
/// Refusals before the first instruction, and faults of the guest.
pub fn run_functionally(
    config: &MachineConfig,
    plan: &Plan,
    program: &Program,
    budget: Budget,
    output: &mut dyn Output,
) -> Result<FunctionalEnding, Error> {
    let (mut bus, hart) = load(config, plan, program, NoObserver)?;
    let mut queue = RunQueue::new(hart);
    let stopped = run_threads(&mut queue, &mut bus, &mut BlockCache::new(), budget, output)?;
    Ok(ending_of(bus, stopped))
}

/// End of a run, with the state that it leaves.
fn ending_of<W: ExecutionObserver>(bus: FlatBus<W>, stopped: Stopped) -> FunctionalEnding {
    let (exit_code, unfinished) = match stopped {
        Stopped::Exit(code) => (Some(code), None),
        Stopped::Early => (None, None),
        Stopped::Limit(unfinished) => (None, Some(unfinished)),
    };
    let written_bytes = bus.memory.written_bytes();
    let FlatBus { memory, process, instructions, data_range, region, filter_statistics, checks, .. } = bus;
    let roi = region.finish(instructions, checks.is_some(), &filter_statistics);
    let pool = PoolContents { files: process.into_pool(), pages: memory.into_pages().1 };
    FunctionalEnding { exit_code, unfinished, written_bytes, instructions, roi, pool, data_range }
}

/// The program in flat memory, with the registers it starts with.
fn load<W: ExecutionObserver>(
    config: &MachineConfig,
    plan: &Plan,
    program: &Program,
    observer: W,
) -> Result<(FlatBus<W>, Hart), Error> {
    let (files, pmem) = match &program.pool {
        Some(pool) => (pool.files.clone(), pool.pages.clone()),
        None => {
            let pages = Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20);
            (PmemPool::new(plan.geometry.pmem_data_bytes), pages)
        }
    };
    let mut memory = Flat::new(Pages::new(DRAM_BASE, config.dram.capacity_mib << 20), pmem);
    let (process, hart) = Process::load(process_config(config, plan, program), files, &mut memory)?;
    Ok((FlatBus::new(memory, process, plan, observer), hart))
}

/// Reason for which the threads stopped.
enum Stopped {
    /// The program exited.
    Exit(i32),
    /// The receiver of the output stopped the program, or a fast-forward has reached its snapshot point.
    Early,
    /// A limit was reached.
    Limit(Unfinished),
}

/// Runs all threads.
fn run_threads<W: ExecutionObserver>(
    queue: &mut RunQueue,
    bus: &mut FlatBus<W>,
    blocks: &mut BlockCache,
    budget: Budget,
    output: &mut dyn Output,
) -> Result<Stopped, Error> {
    let mut next_look = LOOK_PERIOD;
    let mut previous = None;
    let mut random = Rng::new(0);
    loop {
        let exceeded = match () {
            () if bus.instructions >= budget.instructions => Some(Exceeded::Instructions),
            () if bus.memory.written_bytes().saturating_add(output.kept_bytes()) > budget.memory_bytes => {
                Some(Exceeded::Memory)
            }
            () => None,
        };
        if let Some(exceeded) = exceeded {
            return Ok(Stopped::Limit(Unfinished { exceeded, pc: queue.last_pc() }));
        }
        if bus.instructions >= next_look {
            next_look = bus.instructions + LOOK_PERIOD;
            if output.stopped() {
                return Ok(Stopped::Early);
            }
        }
        let (thread, mut hart) = match queue.next(bus) {
            Next::Run(thread, hart) => (thread, hart),
            Next::Deadlock => {
                let first = bus.process.waiting()[0];
                let what = bus.process.describe_deadlock(|thread| queue.pc(thread));
                let after_call = u64::from(first.on != WaitsFor::Files) * 4;
                return Err(message(queue.pc(first.thread).wrapping_sub(after_call), bus, what).into());
            }
        };
        // Kept by a thread that continues independently: an SC that fails would make it execute more than on real hardware.
        if previous.replace(thread) != Some(thread) {
            bus.drop_reservation();
        }
        bus.assign_core(thread);
        if queue.take_signal(thread) {
            interrupt(&mut hart, thread, bus, blocks)?;
        }
        let slice = SLICE_INSTRUCTIONS.start + random.below(SLICE_INSTRUCTIONS.end - SLICE_INSTRUCTIONS.start);
        let end = budget.instructions.min(bus.instructions + slice);
        let left = run_slice(&mut hart, thread, bus, blocks, end, queue, output)?;
        match left {
            SliceEnd::SliceOver | SliceEnd::Call(SyscallOutcome::Continue | SyscallOutcome::Yield) => {
                queue.ready(thread, hart);
            }
            SliceEnd::Call(SyscallOutcome::Sleep { until_ns }) => queue.sleep(thread, hart, until_ns),
            SliceEnd::Call(SyscallOutcome::Wait { until_ns }) => queue.wait(thread, hart, until_ns),
            SliceEnd::Call(SyscallOutcome::ThreadExit) => bus.leave(thread),
            SliceEnd::Call(SyscallOutcome::Exit(code)) => return Ok(Stopped::Exit(code)),
            SliceEnd::Arrived => {
                queue.first(thread, hart);
                return Ok(Stopped::Early);
            }
        }
    }
}

/// Reason for which a thread left the hart.
enum SliceEnd {
    SliceOver,
    Call(SyscallOutcome),
    /// At the snapshot point of a fast-forward.
    Arrived,
}

/// Runs one thread until `bus.instructions` is `end` or more, or until it does not continue after a system call.
fn run_slice<W: ExecutionObserver>(
    hart: &mut Hart,
    thread: ThreadId,
    bus: &mut FlatBus<W>,
    blocks: &mut BlockCache,
    end: u64,
    queue: &mut RunQueue,
    output: &mut dyn Output,
) -> Result<SliceEnd, Error> {
    while bus.instructions < end {
        let pc = hart.pc;
        let Some(block) = block_at(hart, thread, bus, blocks)? else { continue };
        let insts = blocks.insts(block);
        // All of a block is on one page, except the end of its last instruction.
        let code = if W::SEES { bus.translate_code(pc).ok() } else { None };
        if code.is_some() {
            bus.note_translation(pc, true);
        }
        let (mut at, mut target, mut calls, mut stopped) = (pc, None, false, None);
        let mut last = insts[insts.len() - 1];
        for (&inst, count) in insts.iter().zip(bus.instructions + 1..) {
            // Both are seldom looked at; to store them costs less than to find out when.
            bus.instructions = count;
            hart.pc = at;
            if let Some(code) = code {
                bus.observer.fetch(code.plus(at - pc));
            }
            match execute(hart, inst, bus) {
                Ok(Flow::Next) => {
                    at += u64::from(inst.len);
                    if inst.op == Op::Marker && bus.has_arrived(at)? {
                        hart.pc = at;
                        return Ok(SliceEnd::Arrived);
                    }
                }
                // A block ends with a branch, but not with a checked access.
                Ok(Flow::Jump(to)) => {
                    (at, target, last) = (to, Some(to), inst);
                    break;
                }
                // A block ends with this too.
                Ok(Flow::Ecall) => calls = true,
                Ok(Flow::Ebreak) => stopped = Some(None),
                Err(stop) => {
                    stopped = Some(Some(stop));
                    break;
                }
            }
        }
        if let Some(stop) = stopped {
            bus.instructions -= 1;
            raise(hart, thread, stop, bus, blocks)?;
            continue;
        }
        if W::SEES {
            bus.observer.flow(last, hart.pc, target);
        }
        hart.pc = at;
        if last.op == Op::FenceI {
            blocks.clear();
        }
        if calls {
            let outcome = system_call(hart, thread, bus, blocks, queue, output)?;
            if outcome != SyscallOutcome::Continue {
                return Ok(SliceEnd::Call(outcome));
            }
        }
    }
    Ok(SliceEnd::SliceOver)
}

/// The block of code at the pc of a thread; none if that cannot be fetched, and the handler of its signal begins.
#[inline]
fn block_at<W: ExecutionObserver>(
    hart: &mut Hart,
    thread: ThreadId,
    bus: &mut FlatBus<W>,
    blocks: &mut BlockCache,
) -> Result<Option<BlockId>, Error> {
    let found = blocks.get(hart.pc, |addr| {
        let phys = bus.process.space().translate(addr, Access::Execute)?;
        let mut half = [0; 2];
        bus.memory.read(phys, &mut half);
        Ok(u16::from_le_bytes(half))
    });
    match found {
        Ok(block) => Ok(Some(block)),
        Err(stop) => raise(hart, thread, Some(stop), bus, blocks).map(|()| None),
    }
}

/// Makes the system call that a thread asks for, and forgets translations and code that it has changed.
fn system_call<W: ExecutionObserver>(
    hart: &mut Hart,
    thread: ThreadId,
    bus: &mut FlatBus<W>,
    blocks: &mut BlockCache,
    queue: &mut RunQueue,
    output: &mut dyn Output,
) -> Result<SyscallOutcome, Error> {
    let epochs = epochs(bus);
    let now_ns = bus.now_ns();
    let mut output = LineWatch::new(output);
    let outcome = bus.process.syscall(thread, hart, &mut bus.memory, now_ns, &mut output)?;
    if let Some(boundaries) = bus.boundaries.as_mut().filter(|_| output.line_ended) {
        boundaries.line_printed(&bus.memory);
    }
    bus.drop_reservation();
    queue.take_events(&mut bus.process);
    forget_changed(epochs, bus, blocks);
    Ok(outcome)
}

/// A signal interrupts a thread.
fn interrupt<W: ExecutionObserver>(
    hart: &mut Hart,
    thread: ThreadId,
    bus: &mut FlatBus<W>,
    blocks: &mut BlockCache,
) -> Result<(), Error> {
    let epochs = epochs(bus);
    let now_ns = bus.now_ns();
    bus.process.interrupt(thread, hart, &mut bus.memory, now_ns)?;
    forget_changed(epochs, bus, blocks);
    Ok(())
}

/// An instruction of a thread cannot be executed, or is EBREAK (`stop` is None): the handler of its signal begins.
///
/// # Errors
/// The program has no handler for it, or the handler has no stack.
fn raise<W: ExecutionObserver>(
    hart: &mut Hart,
    thread: ThreadId,
    stop: Option<Stop>,
    bus: &mut FlatBus<W>,
    blocks: &mut BlockCache,
) -> Result<(), Error> {
    let found = stop.map_or(Some(ProgramFault::Breakpoint), ProgramFault::of);
    let Some(found) = found.filter(|&found| bus.process.handles(thread, found)) else {
        return Err(match stop {
            Some(stop) => fault(hart.pc, bus, stop),
            None => message(hart.pc, bus, "the program executed an ebreak instruction".into()),
        }
        .into());
    };
    let epochs = epochs(bus);
    bus.process.begin_fault_handler(thread, found, hart, &mut bus.memory)?;
    bus.drop_reservation();
    forget_changed(epochs, bus, blocks);
    Ok(())
}

/// The numbers of changes of mappings, and of code.
fn epochs<W: ExecutionObserver>(bus: &mut FlatBus<W>) -> (u64, u64) {
    (bus.process.space().epoch(), bus.process.space().code_epoch())
}

/// Forgets translations and code that the kernel has changed since `before`.
fn forget_changed<W: ExecutionObserver>(before: (u64, u64), bus: &mut FlatBus<W>, blocks: &mut BlockCache) {
    bus.follow_moved_pages();
    let (epoch, code_epoch) = epochs(bus);
    if epoch != before.0 {
        bus.mappings_changed();
    }
    if code_epoch != before.1 {
        blocks.clear();
    }
}

fn message<W: ExecutionObserver>(pc: u64, bus: &FlatBus<W>, what: String) -> GuestFault {
    GuestFault { pc, what, last_syscall: bus.process.last_syscall().map(str::to_owned) }
}

fn fault<W: ExecutionObserver>(pc: u64, bus: &mut FlatBus<W>, stop: Stop) -> GuestFault {
    let what = match stop {
        Stop::AccessFault(fault) => bus.process.space().describe(&fault),
        Stop::Illegal => {
            let mut bits = 0;
            for half in [0, 2] {
                if let Ok(phys) = bus.process.space().translate(pc + half, Access::Execute) {
                    let mut bytes = [0; 2];
                    bus.memory.read(phys, &mut bytes);
                    bits |= u32::from(u16::from_le_bytes(bytes)) << (8 * half);
                }
            }
            format!("illegal instruction: {}", disassemble(bits))
        }
        stop => stop.to_string(),
    };
    message(pc, bus, what)
}
