//! The order of steps: the next one belongs to the core with the smallest local time, or to the memory system if a core
//! waits for it. Threads get cores, lose them, and make system calls.

use super::batch_ends::STEP_INSTRUCTIONS;
use super::kernel_memory::KernelMemory;
use super::port::MachinePort;
use super::scheduler::{DrainReason, InterruptedStep};
use super::{Ending, Machine};
use crate::statistics::measurements::Moment;
use durasim_contract::Trap;
use durasim_core::{Exit, InstructionOrigin, ThreadContext};
use durasim_isa::{AccessFault, AccessFaultKind, Hart, Marker, Stop, disassemble};
use durasim_kernel::{LineWatch, Output, ProgramFault, SyscallOutcome, ThreadEvent, ThreadId};
use durasim_types::{CoreId, Cycle, Error, GuestFault, HistoryStep, Site, TxId};
use std::ops::Range;

/// Instructions between two polls for output and cancellation.
const SLICE: u64 = 1 << 20;

/// The next step of the machine.
enum NextStep {
    /// A core acts, up to this cycle.
    Core(CoreId, Cycle),
    /// The memory system processes its next pending event. Nothing else happens up to this cycle.
    Memory(Cycle),
    /// Threads that sleep are due.
    Sleepers(Cycle),
    /// No step is left, and no thread can run again.
    Deadlock,
}

/// A step that the machine has taken.
pub(super) struct StepTaken {
    /// The core that acted, if one did.
    pub core: Option<CoreId>,
    /// Instructions that it executed.
    pub executed: u64,
    /// The end of the run, if it ended.
    pub ending: Option<Ending>,
}

impl StepTaken {
    /// The run has ended before a core could act.
    const fn ended(ending: Ending) -> Self {
        StepTaken { core: None, executed: 0, ending: Some(ending) }
    }
}

impl Machine {
    /// Runs the program to its end, or until `max_instructions`, or until an observer stops it. A run that ended at the
    /// limit or at a snapshot point can be continued by another call, and then takes the same course as without the stop.
    ///
    /// # Errors
    /// Faults of the guest, and a machine that is stuck.
    pub fn run(&mut self, max_instructions: Option<u64>, output: &mut dyn Output) -> Result<Ending, Error> {
        let limit = max_instructions.unwrap_or(u64::MAX);
        let mut looked_at = 0;
        if self.passed_snapshot_point() {
            return Ok(Ending::SnapshotPoint);
        }
        let mut executed = self.instructions();
        loop {
            debug_assert_eq!(executed, self.instructions(), "instructions of all cores");
            if executed >= limit {
                return Ok(Ending::InstructionLimit);
            }
            if executed >= looked_at {
                looked_at = executed + SLICE;
                if output.stopped() {
                    return Ok(Ending::Stopped);
                }
                if self.measure.roi_begin.is_some() {
                    output.progress(self.measure.ops);
                }
            }
            let most = if self.measure.batches.is_some() { STEP_INSTRUCTIONS } else { u64::MAX };
            let step = self.take_step(most.min(limit - executed), output)?;
            if let Some(ending) = step.ending {
                return Ok(ending);
            }
            executed += step.executed;
            self.end_batch();
        }
    }

    /// Takes the next step of the machine. A core executes about `most` instructions in it, or fewer.
    ///
    /// # Errors
    /// As from [`Machine::run`].
    #[inline]
    pub(super) fn take_step(&mut self, most: u64, output: &mut dyn Output) -> Result<StepTaken, Error> {
        let most = if self.executes_singly { 1 } else { most };
        if self.is_over_cycles(0) {
            return Ok(StepTaken::ended(Ending::CycleLimit));
        }
        let (step, budget) = match self.interrupted_step.take() {
            Some(InterruptedStep { core, until, instructions }) => (NextStep::Core(core, until), instructions),
            None => {
                self.fill_cores()?;
                (self.next_step(), SLICE)
            }
        };
        if let NextStep::Memory(_) | NextStep::Sleepers(_) = step
            && self.is_over_cycles(self.next_due())
        {
            return Ok(StepTaken::ended(Ending::CycleLimit));
        }
        let core = if let NextStep::Core(core, _) = step { Some(core) } else { None };
        let before = core.map_or(0, |core| self.core(core).instructions());
        let ending = self.perform(step, budget, most, output)?;
        let executed = core.map_or(0, |core| self.core(core).instructions()) - before;
        Ok(StepTaken { core, executed, ending })
    }

    /// Cycle in which the memory system or a thread that sleeps is due; 0 if neither will ever be.
    fn next_due(&self) -> Cycle {
        let due = self.system.due().min(self.scheduler.next_due().unwrap_or(Cycle::MAX));
        if due == Cycle::MAX { 0 } else { due }
    }

    /// Performs the next step, where no thread gets a core any more.
    pub(crate) fn take_last_step(&mut self, output: &mut dyn Output) -> Result<Option<Ending>, Error> {
        self.perform(self.next_step(), SLICE, u64::MAX, output)
    }

    fn perform(
        &mut self,
        step: NextStep,
        budget: u64,
        limit: u64,
        output: &mut dyn Output,
    ) -> Result<Option<Ending>, Error> {
        match step {
            NextStep::Core(core, until) => {
                if let Some(ending) = self.act(core, until, budget, limit, output)? {
                    return Ok(Some(ending));
                }
            }
            NextStep::Memory(until) => self.process_events(until),
            NextStep::Sleepers(due) => self.scheduler.wake_due(due),
            NextStep::Deadlock => return Err(self.deadlock()),
        }
        match self.system.error() {
            Some(error) => Err(error.clone()),
            None => Ok(self.system.halted().then_some(Ending::Stopped)),
        }
    }

    /// The memory system processes its next pending event, and those after it up to a cycle as long as no request of a core can
    /// be made again: the next step would be one of the memory system too.
    fn process_events(&mut self, until: Cycle) {
        let resumptions = self.system.resumptions();
        loop {
            let has_passed = self.system.pass_quiet_places(until.min(self.cycles_max));
            if !has_passed || self.system.due() <= until {
                self.system.step_once(Cycle::MAX);
            }
            let system = &self.system;
            let none_resumes = resumptions.is_some() && system.resumptions() == resumptions;
            let is_next = none_resumes && system.due() <= until && !system.halted() && system.error().is_none();
            if !is_next || self.is_over_cycles(self.next_due()) {
                return;
            }
        }
    }

    /// The step with the smallest local time. A core may act until the next one's time, with the skew that is allowed.
    fn next_step(&self) -> NextStep {
        let (mut first, mut earliest, mut second) = (None, Cycle::MAX, Cycle::MAX);
        let mut may_wait = false;
        for (index, core) in self.cores.iter().enumerate() {
            let id = CoreId(index as u16);
            if self.scheduler.running(id).is_none() {
                may_wait = true;
                continue;
            }
            if core.holds_lease() {
                return NextStep::Core(id, core.cycle().max(core.next_cycle().unwrap_or(0)));
            }
            let Some(at) = core.next_cycle().or_else(|| {
                may_wait = true;
                self.system.resumes_at(id)
            }) else {
                // It may continue once another core has acted, as early as it began to wait for filters.
                second = self.system.waits_for_filters_since(id).map_or(second, |since| second.min(since));
                continue;
            };
            if at < earliest {
                second = second.min(earliest);
                (first, earliest) = (Some(id), at);
            } else {
                second = second.min(at);
            }
        }
        // Only a core that waits, or one without a thread, can have a suspended request.
        debug_assert!(may_wait || !self.system.has_waiters());
        let waits = may_wait && self.system.has_waiters();
        let memory = if waits { self.system.due() } else { Cycle::MAX };
        let sleepers = self.scheduler.next_due().unwrap_or(Cycle::MAX);
        match first {
            Some(core) if earliest <= memory && earliest <= sleepers => {
                let bound = second.saturating_add(self.skew_cycles).min(memory).min(sleepers);
                let allowed = |thread, core: CoreId| self.process.affinity(thread) >> core.0 & 1 == 1;
                let slice = if self.scheduler.has_ready_threads() && self.scheduler.is_wanted(core, allowed) {
                    self.scheduler.slice_end(core)
                } else {
                    Cycle::MAX
                };
                NextStep::Core(core, bound.min(slice).min(self.pauses.next()).max(earliest))
            }
            _ if memory <= sleepers && memory < Cycle::MAX => {
                NextStep::Memory(earliest.saturating_sub(1).min(sleepers))
            }
            _ if sleepers < Cycle::MAX => NextStep::Sleepers(sleepers),
            // A core waits for an event that will not come: the memory system names it.
            _ if waits => NextStep::Memory(0),
            _ => NextStep::Deadlock,
        }
    }

    /// Assigns free cores to threads that can run.
    ///
    /// # Errors
    /// A signal whose handler has no stack.
    fn fill_cores(&mut self) -> Result<(), Error> {
        while self.scheduler.has_ready_threads() {
            let process = &self.process;
            let allowed = |thread, core: CoreId| process.affinity(thread) >> core.0 & 1 == 1;
            let Some((id, mut ready)) = self.scheduler.next(allowed) else { return Ok(()) };
            if ready.timed_out {
                self.process.time_out(ready.thread, ready.context.hart_mut());
            }
            let from = ready.since.max(self.cores[id.0 as usize].cycle());
            if self.scheduler.take_signal(ready.thread) {
                let (hart, tx) = (std::mem::take(ready.context.hart_mut()), ready.context.store_tx());
                *ready.context.hart_mut() = self.interrupt(id, ready.thread, hart, tx, from)?;
            }
            let from = self.scheduler.assign_core(id, ready.thread, from, self.context_switch_cycles);
            self.system.assign_thread(id, ready.thread.0);
            let from = self.system.context_switch(id, None, ready.context.open_tx(), from);
            self.process.runs_on(ready.thread, id.0.into());
            self.measure.threads[id.0 as usize] = ready.thread;
            self.cores[id.0 as usize].put_context(ready.context, from);
            self.share_queues(id);
        }
        Ok(())
    }

    /// A signal interrupts a thread with these registers at a cycle, on a core; the registers with which its handler
    /// begins.
    fn interrupt(
        &mut self,
        id: CoreId,
        thread: ThreadId,
        mut hart: Hart,
        tx: Option<TxId>,
        at: Cycle,
    ) -> Result<Hart, Error> {
        let (epoch, code_epoch) = (self.process.space().epoch(), self.process.space().code_epoch());
        let now_ns = self.system.geometry().clock.picos(at) / 1000;
        let mut memory = KernelMemory { system: &mut self.system, core: id, tx, at };
        self.process.interrupt(thread, &mut hart, &mut memory, now_ns)?;
        if self.process.space().epoch() != epoch || self.process.space().code_epoch() != code_epoch {
            let code = self.process.space().code_epoch() != code_epoch;
            self.publish_mapping_changes(code);
        }
        Ok(hart)
    }

    /// The thread on a core is interrupted by a signal once its stores have left.
    fn interrupt_when_empty(&mut self, id: CoreId) {
        if self.drain_reasons[id.0 as usize].is_none() {
            self.traps(id, Trap::Interrupt);
            self.drain_reasons[id.0 as usize] = Some(DrainReason::Signal);
            self.cores[id.0 as usize].make_empty();
        }
    }

    /// Lets a core run with the units that it may share.
    fn run_core(&mut self, id: CoreId, until: Cycle, budget: u64) -> Exit {
        self.swap_units(id);
        self.process.space().run_on(id.0.into());
        let Machine { system, process, measure, inserted, call_stacks, cores, executes_singly, .. } = self;
        let mut port = MachinePort { system, process, measure, inserted, call_stacks, pc: 0 };
        let core = &mut cores[usize::from(id.0)];
        let exit = if *executes_singly { core.run_one(&mut port, until) } else { core.run(&mut port, until, budget) };
        self.swap_units(id);
        exit
    }

    /// A core acts up to cycle `until`, or executes about `budget` instructions. Its turn ends early after `limit`.
    fn act(
        &mut self,
        id: CoreId,
        until: Cycle,
        budget: u64,
        limit: u64,
        output: &mut dyn Output,
    ) -> Result<Option<Ending>, Error> {
        let index = id.0 as usize;
        let before = self.cores[index].instructions();
        let exit = self.run_core(id, until, budget.min(limit));
        if let Some(error) = self.system.error() {
            return Err(error.clone());
        }
        let done = self.cores[index].instructions() - before;
        if let Some(rest) = self.rest_of_step(id, until, limit..budget, done).filter(|_| exit == Exit::Budget) {
            self.interrupted_step = Some(rest);
            return Ok(None);
        }
        match exit {
            Exit::Budget => self.preempt(id),
            Exit::Waiting => {}
            Exit::Empty => self.emptied(id)?,
            Exit::SystemCall if self.traps(id, Trap::SystemCall) => {}
            Exit::SystemCall => {
                if let Some(code) = self.system_call(id, output)? {
                    return self.exited(id, code).map(Some);
                }
            }
            Exit::Yield => {
                if self.region_marker(id) && self.stops_after_region {
                    return Ok(Some(Ending::RegionEnd));
                }
                if self.passed_snapshot_point() {
                    return Ok(Some(Ending::SnapshotPoint));
                }
            }
            Exit::Halted => return Ok(Some(Ending::Stopped)),
            Exit::Breakpoint if self.traps(id, Trap::Breakpoint) => {}
            Exit::AccessFault(stop) if stop != Stop::NestedTooDeep && self.traps(id, Trap::Fault) => {}
            Exit::Breakpoint => self.raise(id, None)?,
            Exit::NestedTransaction => {
                return Err(self.fault(id, "a transaction begins inside another one").into());
            }
            Exit::EndsInsideHardware => {
                let what = "a transaction commits or aborts inside a hardware transaction, which may still abort";
                return Err(self.fault(id, what).into());
            }
            Exit::TooManyThreads => return Err(self.too_many_threads(id).into()),
            Exit::LateAbort => return Err(self.lost_commit(id).into()),
            Exit::NoTransaction => {
                return Err(self.fault(id, "a transaction ends although none is open").into());
            }
            Exit::Suspension(fault) => {
                return Err(self.fault(id, fault.describe(self.system.design_name())).into());
            }
            Exit::AccessFault(Stop::AccessFault(AccessFault { addr, why: AccessFaultKind::CopyOnWrite, .. })) => {
                self.copy_page(id, addr)?
            }
            Exit::AccessFault(stop) => self.raise(id, Some(stop))?,
            Exit::BadMarker(fault) => return Err(self.explain(id, Stop::AccessFault(fault)).into()),
        }
        Ok(None)
    }

    /// The program has exited on a core with this code.
    fn exited(&mut self, id: CoreId, code: i32) -> Result<Ending, Error> {
        self.finish();
        if self.cores.iter().any(|core| core.lost_a_commit()) {
            return Err(self.lost_commit(id).into());
        }
        self.system.error().map_or(Ok(Ending::Exited(code)), |error| Err(error.clone()))
    }

    /// The rest of a step that ends only for a limit, after `done` instructions. `limits` are that limit and the budget of the
    /// step.
    fn rest_of_step(&self, core: CoreId, until: Cycle, limits: Range<u64>, done: u64) -> Option<InterruptedStep> {
        let is_between_looks = done > 0 && self.core(core).is_between_looks();
        // A budget that is used up between two looks lasts to the next one.
        let instructions = limits.end.saturating_sub(done).max(1);
        let rest = InterruptedStep { core, until, instructions };
        (limits.contains(&done) || is_between_looks).then_some(rest)
    }

    /// A core has let all its stores leave.
    fn emptied(&mut self, id: CoreId) -> Result<(), Error> {
        let index = id.0 as usize;
        let switches = self.drain_reasons[index] == Some(DrainReason::Switch);
        if self.drain_reasons[index] != Some(DrainReason::Repeat) && self.traps(id, Trap::Interrupt) {
            // The last instruction has begun a hardware transaction: the thread leaves when that is rolled back.
            self.cores[index].make_empty();
            return Ok(());
        }
        self.drain_reasons[index] = None;
        if switches {
            let (thread, context) = self.vacate(id)?;
            let since = self.cores[index].cycle();
            self.scheduler.make_ready(thread, context, since);
            return Ok(());
        }
        let Some(thread) = self.scheduler.running(id).filter(|&thread| self.scheduler.take_signal(thread)) else {
            return Ok(());
        };
        let (hart, tx, at) = {
            let core = &mut self.cores[index];
            (std::mem::take(&mut core.hart), core.store_tx(), core.cycle())
        };
        self.cores[index].hart = self.interrupt(id, thread, hart, tx, at)?;
        self.cores[index].resume_after_system_call(0);
        Ok(())
    }

    /// A trap of the thread on a core aborts its hardware transaction. The core processes the abort at its next step;
    /// nothing else happens. False: none is open.
    fn traps(&mut self, id: CoreId, trap: Trap) -> bool {
        self.system.htm_trap(id, trap, self.cores[id.0 as usize].cycle())
    }

    fn fault(&self, core: CoreId, what: impl Into<String>) -> GuestFault {
        let last_syscall = self.process.last_syscall().map(str::to_owned);
        GuestFault { pc: self.cores[core.0 as usize].hart.pc, what: what.into(), last_syscall }
    }

    fn too_many_threads(&self, core: CoreId) -> GuestFault {
        let (thread, last) = (self.measure.threads[core.0 as usize].0, self.system.threads_max() - 1);
        self.fault(core, format!("a transaction begins in thread {thread}, and the design serves threads 0 to {last}"))
    }

    fn lost_commit(&self, core: CoreId) -> GuestFault {
        self.fault(
            core,
            "a transaction whose commit had retired exceeds what the design can undo: its fall-back path needs \
             more room",
        )
    }

    fn deadlock(&self) -> Error {
        let pc = |thread| self.scheduler.pc(thread).unwrap_or(0);
        let what = self.process.describe_deadlock(pc);
        let first = self.process.waiting().first().map_or(0, |w| pc(w.thread));
        GuestFault { pc: first, what, last_syscall: self.process.last_syscall().map(str::to_owned) }.into()
    }

    fn explain(&mut self, core: CoreId, stop: Stop) -> GuestFault {
        let what = match stop {
            Stop::AccessFault(fault) => self.process.space().describe(&fault),
            Stop::Illegal => {
                let bits = self.bits_at(self.cores[core.0 as usize].hart.pc);
                format!("illegal instruction: {}", disassemble(bits))
            }
            stop => stop.to_string(),
        };
        self.fault(core, what)
    }

    /// The encoding at a pc, for messages.
    fn bits_at(&mut self, pc: u64) -> u32 {
        let half = |machine: &mut Machine, addr| {
            let phys = machine.process.space().translate(addr, durasim_isa::Access::Execute).ok()?;
            Some(u32::from(machine.system.code(phys)))
        };
        let low = half(self, pc).unwrap_or(0);
        if low & 3 == 3 { low | half(self, pc + 2).unwrap_or(0) << 16 } else { low }
    }

    /// Serves a system call; the exit code if it was the program's last.
    fn system_call(&mut self, id: CoreId, output: &mut dyn Output) -> Result<Option<i32>, Error> {
        let core = &mut self.cores[id.0 as usize];
        let thread = self.scheduler.running(id).expect("a thread makes the call");
        let (epoch, code_epoch) = (self.process.space().epoch(), self.process.space().code_epoch());
        let at = core.cycle();
        // Stores of the kernel are the program's, at the instruction that makes the call.
        if self.system.is_journal_kept() {
            let origin = InstructionOrigin::of(&core.hart);
            let call_stack = self.call_stacks.find(&self.system, &mut self.process, &origin, None);
            self.system.at_site(id, Site { pc: origin.pc, call_stack, thread: thread.0 });
        }
        let clock = self.system.geometry().clock;
        let mut memory = KernelMemory { system: &mut self.system, core: id, tx: core.store_tx(), at };
        let mut output = LineWatch::new(output);
        let now_ns = clock.picos(at) / 1000;
        let outcome = self.process.syscall(thread, &mut core.hart, &mut memory, now_ns, &mut output)?;
        // A call that waits for memory takes longer.
        let earliest = if memory.at > at { memory.at } else { 0 };
        if output.line_ended {
            self.system.note(id, HistoryStep::LinePrinted { thread: thread.0 });
        }
        self.system.take_reservation(id);
        core.resume_after_system_call(earliest);
        let since = core.cycle();
        for event in self.process.take_events() {
            match event {
                ThreadEvent::Spawned { thread, hart } => {
                    self.scheduler.make_ready(thread, ThreadContext::new(*hart), since);
                }
                ThreadEvent::Woken { thread } => self.scheduler.wake(thread, since),
                ThreadEvent::Signalled { thread } => {
                    if let Some(core) = self.scheduler.signal(thread, since) {
                        self.interrupt_when_empty(core);
                    }
                }
            }
        }
        // The call itself has begun what handlers there were.
        self.scheduler.take_signal(thread);
        if self.process.space().epoch() != epoch || self.process.space().code_epoch() != code_epoch {
            let code = self.process.space().code_epoch() != code_epoch;
            self.publish_mapping_changes(code);
        }
        let cycle_of = |ns: u64| clock.cycles(ns.saturating_mul(1000));
        match outcome {
            SyscallOutcome::Continue => {
                if self.process.affinity(thread) >> id.0 & 1 == 0 {
                    self.make_room_for_others(id);
                }
            }
            SyscallOutcome::Yield => self.make_room_for_others(id),
            SyscallOutcome::Sleep { until_ns } => {
                let (thread, context) = self.vacate(id)?;
                self.scheduler.block(thread, context, Some(cycle_of(until_ns).max(at)), false);
            }
            SyscallOutcome::Wait { until_ns } => {
                let (thread, context) = self.vacate(id)?;
                self.scheduler.block(thread, context, until_ns.map(|ns| cycle_of(ns).max(at)), true);
            }
            SyscallOutcome::ThreadExit => {
                self.vacate(id)?;
            }
            SyscallOutcome::Exit(code) => return Ok(Some(code)),
        }
        Ok(None)
    }

    /// The thread on a core, which is empty, gives it up.
    fn vacate(&mut self, id: CoreId) -> Result<(durasim_kernel::ThreadId, ThreadContext), Error> {
        let index = id.0 as usize;
        if self.cores[index].lost_a_commit() {
            return Err(self.lost_commit(id).into());
        }
        let Machine { system, process, measure, inserted, call_stacks, cores, .. } = self;
        let mut port = MachinePort { system, process, measure, inserted, call_stacks, pc: 0 };
        let context = cores[index].take_context(&mut port);
        let thread = self.scheduler.running(id).expect("a thread has the core");
        let at = self.cores[index].cycle();
        self.system.context_switch(id, context.open_tx(), None, at);
        self.scheduler.leave(id);
        self.share_queues(id);
        Ok((thread, context))
    }

    /// The thread on a core will give it up, once its stores have left, if another one wants it or it may not stay.
    fn make_room_for_others(&mut self, id: CoreId) {
        let Some(thread) = self.scheduler.running(id) else { return };
        let process = &self.process;
        let allowed = |thread, core: CoreId| process.affinity(thread) >> core.0 & 1 == 1;
        if (!allowed(thread, id) || self.scheduler.is_wanted(id, allowed))
            && self.drain_reasons[id.0 as usize].is_none()
        {
            self.traps(id, Trap::Interrupt);
            self.drain_reasons[id.0 as usize] = Some(DrainReason::Switch);
            self.cores[id.0 as usize].make_empty();
        }
    }

    /// Holds a core up if one of its pauses is due, interrupts it if its timer says so, and lets another thread have it if the running one has had its slice.
    fn preempt(&mut self, id: CoreId) {
        let now = self.cores[id.0 as usize].cycle();
        if now >= self.pauses.next() && self.cores[id.0 as usize].may_pause() {
            let end = self.pauses.end(now);
            self.cores[id.0 as usize].pause_until(end);
        }
        self.system.interrupt_hardware(id, self.cores[id.0 as usize].cycle());
        if self.cores[id.0 as usize].cycle() >= self.scheduler.slice_end(id) && self.scheduler.has_ready_threads() {
            self.make_room_for_others(id);
        }
    }

    /// Gives a page of a private mapping of persistent memory its copy in DRAM, after which the store is repeated. It
    /// takes the time of a system call.
    fn copy_page(&mut self, id: CoreId, addr: u64) -> Result<(), Error> {
        let core = &mut self.cores[id.0 as usize];
        if !core.is_empty() {
            // The copy has to hold what this core stored before.
            self.drain_reasons[id.0 as usize].get_or_insert(DrainReason::Repeat);
            core.make_empty();
            return Ok(());
        }
        let mut memory = KernelMemory { system: &mut self.system, core: id, tx: core.store_tx(), at: core.cycle() };
        if let Err(fault) = self.process.space().resolve_copy_on_write(&mut memory, addr) {
            return Err(self.explain(id, Stop::AccessFault(fault)).into());
        }
        core.resume_after_system_call(0);
        self.publish_mapping_changes(false);
        Ok(())
    }

    /// An instruction of the thread on a core cannot be executed, or is EBREAK (`stop` is None): the handler of its signal begins
    /// once the stores before have left. It takes the time of a system call.
    ///
    /// # Errors
    /// The program has no handler for it, or the handler has no stack.
    fn raise(&mut self, id: CoreId, stop: Option<Stop>) -> Result<(), Error> {
        let thread = self.scheduler.running(id).expect("a thread executes the instruction");
        let found = stop.map_or(Some(ProgramFault::Breakpoint), ProgramFault::of);
        let Some(found) = found.filter(|&found| self.process.handles(thread, found)) else {
            return Err(match stop {
                Some(stop) => self.explain(id, stop),
                None => self.fault(id, "the program executed an ebreak instruction"),
            }
            .into());
        };
        let index = id.0 as usize;
        if !self.cores[index].is_empty() {
            // The instruction is executed again then, and faults again.
            self.drain_reasons[index].get_or_insert(DrainReason::Repeat);
            self.cores[index].make_empty();
            return Ok(());
        }
        let (epoch, code_epoch) = (self.process.space().epoch(), self.process.space().code_epoch());
        let core = &mut self.cores[index];
        let mut memory = KernelMemory { system: &mut self.system, core: id, tx: core.store_tx(), at: core.cycle() };
        self.process.begin_fault_handler(thread, found, &mut core.hart, &mut memory)?;
        self.system.take_reservation(id);
        core.resume_after_system_call(0);
        if self.process.space().epoch() != epoch || self.process.space().code_epoch() != code_epoch {
            let code = self.process.space().code_epoch() != code_epoch;
            self.publish_mapping_changes(code);
        }
        Ok(())
    }

    /// Cores learn which translations are no longer valid, if any with an interrupt (a TLB shoot-down), and the memory system
    /// which pages of persistent memory have private copies. `code`: decoded instructions are not valid either.
    fn publish_mapping_changes(&mut self, code: bool) {
        let lost = self.process.space().take_lost();
        self.cores.iter_mut().for_each(|core| core.mappings_changed(&lost, code));
        if !lost.is_empty() {
            for id in (0..self.cores.len() as u16).map(CoreId) {
                self.traps(id, Trap::Interrupt);
            }
        }
        for copy in self.process.space().take_copies() {
            self.system.page_copied(copy.frame, copy.original);
        }
    }

    /// Whether the program has just passed the snapshot point at which the run is to end.
    fn passed_snapshot_point(&mut self) -> bool {
        let mark = self.measure.mark.take();
        let wanted = mark.is_some() && mark == self.stop_at_snapshot_point;
        if wanted {
            self.stop_at_snapshot_point = None;
        }
        wanted
    }

    /// The region of interest begins: what was counted so far belongs to no region.
    pub(crate) fn begin_region(&mut self, now: Moment) {
        self.system.reset_stats(now.cycle);
        self.cores.iter_mut().for_each(|core| core.reset_stats());
        self.measure.reset();
        self.measure.roi_begin = Some(now);
        self.measure.roi_end = None;
    }

    /// Processes a marker of the region of interest. True if the region ends with it.
    fn region_marker(&mut self, id: CoreId) -> bool {
        let Some((marker, _)) = self.measure.pending.take() else { return false };
        let now = Moment { instructions: self.instructions(), cycle: self.cores[id.0 as usize].cycle() };
        if marker == Marker::RoiBegin {
            self.begin_region(now);
        } else if self.measure.roi_begin.is_some() {
            self.measure.roi_end = Some(self.region_end(now));
            self.system.region_ends(now.cycle);
            self.cores.iter_mut().for_each(|core| core.end_traced_region());
            return true;
        }
        false
    }
}
