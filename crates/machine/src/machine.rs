//! A machine with a program on it, and the loop that runs it.

use crate::MachineConfig;
use crate::kernel::KernelMemory;
use crate::measure::{Measurements, Moment, RegionEnd};
use crate::port::MachinePort;
use crate::scheduler::Scheduler;
use crate::system::{DRAM_BASE, PMEM_BASE, Plan, System};
use durasim_core::{Core, Exit, ThreadContext};
use durasim_guest::{
    MemoryMap, Output, PmemPool, PoolFile, Process, ProcessConfig, SyscallOutcome, ThreadEvent, ThreadId,
};
use durasim_isa::{Fault, FaultKind, Marker, Stop, disassemble};
use durasim_types::{ConfigError, CoreId, Cycle, Digest, Error, GuestFault, PAGE_BYTES, Pages, Stats};

/// Instructions between two looks at the outside world (output, cancellation).
const SLICE: u64 = 1 << 20;
/// The same where another thread may be due.
const CONTENDED_SLICE: u64 = 1 << 10;

/// A program for the machine.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The bytes of the executable.
    pub elf: Vec<u8>,
    /// Its name, which is its first argument.
    pub elf_name: String,
    /// Where its `/proc/self/exe` leads, if not to its name.
    pub exe_link: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub env: Vec<String>,
    /// The folder of the host that it sees.
    pub root: Option<std::path::PathBuf>,
    /// Seed of everything random.
    pub seed: u64,
    /// The pool it finds under `/pmem/`.
    pub pool: Option<PoolContents>,
}

/// The contents of `/pmem/`: the namespace and the bytes.
#[derive(Clone, Debug)]
pub struct PoolContents {
    /// Names, offsets and sizes.
    pub files: PmemPool,
    /// Persistent memory.
    pub pages: Pages,
}

impl PoolContents {
    /// The contents as a pool file holds them.
    pub fn of_file(file: &PoolFile) -> Self {
        let mut pages = Pages::new(PMEM_BASE, file.capacity_bytes());
        for (number, page) in &file.pages {
            pages.write(PMEM_BASE.plus(number * PAGE_BYTES), &page[..]);
        }
        PoolContents { files: file.files.clone(), pages }
    }

    /// A pool file with these contents, written by the row `written_by`.
    pub fn to_file(&self, written_by: &str) -> PoolFile {
        let data_bytes = self.files.capacity_bytes();
        let pages = self
            .pages
            .touched()
            .filter(|(addr, _)| addr.0 - PMEM_BASE.0 < data_bytes)
            .map(|(addr, page)| {
                let page: Box<[u8; 4096]> = Box::new(page.try_into().expect("a page has 4096 bytes"));
                ((addr.0 - PMEM_BASE.0) / PAGE_BYTES, page)
            })
            .collect();
        PoolFile { files: self.files.clone(), pages, written_by: written_by.to_owned() }
    }
}

/// The memories as a program on this plan finds them.
pub fn memory_map(config: &MachineConfig, plan: &Plan) -> MemoryMap {
    MemoryMap {
        dram_base: DRAM_BASE,
        dram_bytes: config.dram.capacity_mib << 20,
        pmem_base: PMEM_BASE,
        pmem_data_bytes: plan.geometry.pmem_data_bytes,
    }
}

/// The configuration of a process that runs `program` on this plan.
pub(crate) fn process_config(config: &MachineConfig, plan: &Plan, program: &Program) -> ProcessConfig {
    let map = memory_map(config, plan);
    ProcessConfig {
        args: program.args.clone(),
        env: program.env.clone(),
        root: program.root.clone(),
        seed: program.seed,
        cores: config.cores.into(),
        exe_link: program.exe_link.clone(),
        ..ProcessConfig::new(program.elf_name.clone(), program.elf.clone(), map)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program exited with this code.
    Exited(i32),
    /// The limit of instructions was reached.
    InstructionLimit,
    /// An observer, or whoever takes the output, stopped the machine.
    Stopped,
}

/// A machine.
pub struct Machine {
    pub(crate) system: System,
    pub(crate) process: Process,
    cores: Vec<Core>,
    pub(crate) measure: Measurements,
    scheduler: Scheduler,
    context_switch_cycles: Cycle,
}

impl Machine {
    /// Builds the machine and loads the program.
    ///
    /// # Errors
    /// Everything that is refused before cycle 0.
    pub fn new(config: &MachineConfig, plan: &Plan, program: &Program) -> Result<Self, Error> {
        let mut system = System::new(config, plan)?;
        let files = match &program.pool {
            Some(pool) => {
                system.load_pmem(&pool.pages);
                pool.files.clone()
            }
            None => PmemPool::new(plan.geometry.pmem_data_bytes),
        };
        let mut memory = KernelMemory { system: &mut system, core: CoreId(0), tx: None, at: 0 };
        let (process, hart) = Process::load(process_config(config, plan, program), files, &mut memory)?;
        let cores = vec![Core::new(CoreId(0), &config.core, hart)];
        Ok(Machine {
            system,
            process,
            cores,
            measure: Measurements::new(),
            scheduler: Scheduler::new(config.core.time_slice_cycles),
            context_switch_cycles: config.core.context_switch_cycles,
        })
    }

    /// The memory system.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The memory system, to attach observers.
    pub fn system_mut(&mut self) -> &mut System {
        &mut self.system
    }

    /// The namespace of `/pmem/`.
    pub fn pool(&self) -> &PmemPool {
        self.process.pool()
    }

    /// Instructions and cycles so far.
    pub(crate) fn now(&self) -> Moment {
        Moment { instructions: self.cores[0].instructions(), cycle: self.cores[0].cycle() }
    }

    /// Runs the program to its end, or until `max_instructions`, or until an observer stops it.
    ///
    /// # Errors
    /// Faults of the guest, and a machine that is stuck.
    pub fn run(&mut self, max_instructions: Option<u64>, output: &mut dyn Output) -> Result<Ending, Error> {
        let limit = max_instructions.unwrap_or(u64::MAX);
        loop {
            let left = limit - self.cores[0].instructions().min(limit);
            if left == 0 {
                return Ok(Ending::InstructionLimit);
            }
            if output.stopped() {
                return Ok(Ending::Stopped);
            }
            let mut port =
                MachinePort { system: &mut self.system, process: &mut self.process, measure: &mut self.measure };
            let slice = if self.scheduler.is_contended() { CONTENDED_SLICE } else { SLICE };
            let exit = self.cores[0].run(&mut port, left.min(slice));
            if let Some(error) = self.system.error() {
                return Err(error.clone());
            }
            match exit {
                Exit::Budget => {}
                Exit::SystemCall => {
                    if let Some(code) = self.system_call(output)? {
                        self.finish();
                        if self.cores[0].lost_a_commit() {
                            return Err(self.lost_commit().into());
                        }
                        return match self.system.error() {
                            Some(error) => Err(error.clone()),
                            None => Ok(Ending::Exited(code)),
                        };
                    }
                }
                Exit::Yield => self.region_marker(),
                Exit::Halted => return Ok(Ending::Stopped),
                Exit::Breakpoint => return Err(self.fault("the program ran into an ebreak").into()),
                Exit::NestedTransaction => {
                    return Err(self.fault("a transaction begins inside another one").into());
                }
                Exit::LateAbort => return Err(self.lost_commit().into()),
                Exit::NoTransaction => {
                    return Err(self.fault("a transaction is ended where none is open").into());
                }
                Exit::Fault(Stop::Fault(Fault { addr, why: FaultKind::CopyOnWrite, .. })) => self.copy_page(addr)?,
                Exit::Fault(stop) => return Err(self.explain(stop).into()),
            }
            self.preempt()?;
        }
    }

    fn fault(&self, what: impl Into<String>) -> GuestFault {
        let last_syscall = self.process.last_syscall().map(str::to_owned);
        GuestFault { pc: self.cores[0].hart.pc, what: what.into(), last_syscall }
    }

    fn lost_commit(&self) -> GuestFault {
        self.fault(
            "a transaction whose commit had retired exceeds what the design can take back: its fall-back path needs \
             more room",
        )
    }

    fn explain(&mut self, stop: Stop) -> GuestFault {
        let what = match stop {
            Stop::Fault(fault) => self.process.space().describe(&fault),
            Stop::Illegal => {
                let bits = self.bits_at(self.cores[0].hart.pc);
                format!("illegal instruction: {}", disassemble(bits))
            }
        };
        self.fault(what)
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
    fn system_call(&mut self, output: &mut dyn Output) -> Result<Option<i32>, Error> {
        let core = &mut self.cores[0];
        let thread = self.scheduler.running();
        let (epoch, code_epoch) = (self.process.space().epoch(), self.process.space().code_epoch());
        let at = core.cycle();
        let now_ns = self.system.geometry().clock.picos(at) / 1000;
        let mut memory = KernelMemory { system: &mut self.system, core: CoreId(0), tx: core.open_tx(), at };
        let outcome = self.process.syscall(thread, &mut core.hart, &mut memory, now_ns, output)?;
        for event in self.process.take_events() {
            match event {
                ThreadEvent::Spawned { thread, hart } => self.scheduler.make_ready(thread, ThreadContext::new(*hart)),
                ThreadEvent::Woken { thread } => self.scheduler.wake(thread),
            }
        }
        if self.process.space().epoch() != epoch || self.process.space().code_epoch() != code_epoch {
            core.mappings_changed(self.process.space().code_epoch() != code_epoch);
        }
        let clock = self.system.geometry().clock;
        let cycle_of = |ns: u64| clock.cycles(ns.saturating_mul(1000));
        match outcome {
            SyscallOutcome::Continue => core.resume_after_system_call(0),
            SyscallOutcome::Yield => {
                core.resume_after_system_call(0);
                if self.scheduler.is_contended() {
                    self.give_way(|scheduler, thread, context| scheduler.make_ready(thread, context))?;
                }
            }
            SyscallOutcome::Sleep { until_ns } => {
                let until = cycle_of(until_ns);
                self.give_way(|scheduler, thread, context| scheduler.block(thread, context, Some(until), false))?;
            }
            SyscallOutcome::Wait { until_ns } => {
                let until = until_ns.map(cycle_of);
                self.give_way(|scheduler, thread, context| scheduler.block(thread, context, until, true))?;
            }
            SyscallOutcome::ThreadExit => self.give_way(|_, _, _| {})?,
            SyscallOutcome::Exit(code) => return Ok(Some(code)),
        }
        Ok(None)
    }

    /// The running thread gives up the core and is parked by `park`; the next one gets it.
    fn give_way(&mut self, park: impl FnOnce(&mut Scheduler, ThreadId, ThreadContext)) -> Result<(), Error> {
        let thread = self.scheduler.running();
        let mut port = MachinePort { system: &mut self.system, process: &mut self.process, measure: &mut self.measure };
        let context = self.cores[0].take_context(&mut port);
        if self.cores[0].lost_a_commit() {
            return Err(self.lost_commit().into());
        }
        if context.open_tx().is_some() {
            self.cores[0].put_context(context, 0);
            return Err(self
                .fault("a thread gives up the core inside a transaction, which is not supported yet")
                .into());
        }
        let pc = context.pc();
        park(&mut self.scheduler, thread, context);
        let now = self.cores[0].cycle();
        let Some(mut next) = self.scheduler.next(now) else {
            let what = self.process.describe_deadlock(|thread| self.scheduler.pc(thread).unwrap_or(pc));
            return Err(GuestFault { pc, what, last_syscall: self.process.last_syscall().map(str::to_owned) }.into());
        };
        if next.timed_out {
            self.process.time_out(next.parked.thread, next.parked.context.hart_mut());
        }
        let from = next.from + if next.parked.thread == thread { 0 } else { self.context_switch_cycles };
        let from = self.system.context_switch(CoreId(0), None, next.parked.context.open_tx(), from);
        self.measure.thread = next.parked.thread;
        self.cores[0].put_context(next.parked.context, from);
        Ok(())
    }

    /// Lets another thread have the core if the running one has had its slice. Transactions are not interrupted.
    fn preempt(&mut self) -> Result<(), Error> {
        let core = &self.cores[0];
        if core.open_tx().is_none() && self.scheduler.slice_is_over(core.cycle()) {
            self.give_way(|scheduler, thread, context| scheduler.make_ready(thread, context))?;
        }
        Ok(())
    }

    /// Gives a page of a private mapping of persistent memory its copy in DRAM, after which the store is repeated. It
    /// takes the time of a system call.
    fn copy_page(&mut self, addr: u64) -> Result<(), Error> {
        // The copy has to hold what this core stored before.
        self.finish();
        let core = &mut self.cores[0];
        let mut memory =
            KernelMemory { system: &mut self.system, core: CoreId(0), tx: core.open_tx(), at: core.cycle() };
        if let Err(fault) = self.process.space().resolve_copy_on_write(&mut memory, addr) {
            return Err(self.explain(Stop::Fault(fault)).into());
        }
        core.mappings_changed(false);
        core.resume_after_system_call(0);
        Ok(())
    }

    fn region_marker(&mut self) {
        let Some((marker, _)) = self.measure.pending.take() else { return };
        if marker == Marker::RoiBegin {
            self.system.reset_stats();
            self.cores[0].reset_stats();
            self.measure.reset();
            self.measure.roi_begin = Some(self.now());
            self.measure.roi_end = None;
        } else if self.measure.roi_begin.is_some() {
            self.measure.roi_end = Some(self.region_end());
        }
    }

    /// The state of all counters now.
    pub(crate) fn region_end(&self) -> RegionEnd {
        let latency = if self.measure.ops > 0 { &self.measure.op_latency } else { self.system.tx_latency() };
        RegionEnd {
            at: self.now(),
            stats: self.stats(),
            media_write_bytes: self.system.media_write_bytes(),
            residual_dirty_bytes: self.system.residual_dirty_bytes(),
            tx: self.system.tx_stats(),
            ops: self.measure.ops,
            latency: latency.clone(),
        }
    }

    fn stats(&self) -> Stats {
        let mut stats = self.system.stats();
        let c = self.cores[0].stats();
        stats.count("core.branches", c.branches, "Conditional branches");
        stats.count("core.mispredictions", c.mispredictions, "Branches and jumps predicted wrongly");
        stats.count("core.loads", c.loads, "Loads executed");
        stats.count("core.forwards", c.forwards, "Loads whose data came from the store buffer");
        stats.count("core.stores", c.stores, "Stores executed");
        stats.count("core.fences", c.fences, "Fences executed");
        let cleans = self.measure.cache_block_operations;
        stats.count("core.cache_block_operations", cleans, "Cache-block operations executed");
        let waited = c.fence_stall_cycles as f64;
        stats.set("core.fence_stall_cycles", waited, "cycles", "Cycles in which fences held younger instructions");
        let waited = c.commit_stall_cycles as f64;
        stats.set("core.commit_stall_cycles", waited, "cycles", "Cycles in which commits held younger instructions");
        stats.count("core.system_calls", c.system_calls, "System calls");
        let switches = self.scheduler.switches;
        stats.count("core.context_switches", switches, "Times a thread got the core, since the start");
        stats
    }

    /// All stores leave, acknowledgements come in.
    fn finish(&mut self) {
        let mut port = MachinePort { system: &mut self.system, process: &mut self.process, measure: &mut self.measure };
        self.cores[0].quiesce(&mut port);
    }

    /// An orderly shutdown: what persistent memory holds after all that is cached has been written, as recovery would
    /// leave it.
    ///
    /// # Errors
    /// Never in a working design; a recovery that reports lost work is an error of the run.
    pub(crate) fn shut_down(&mut self, prepared: &crate::Prepared) -> Result<PoolContents, Error> {
        let at = self.cycle();
        self.system.drain_queues(at);
        let (mut image, _) = self.system.crash_image(u64::MAX);
        self.system.write_caches_home(&mut image);
        let plan = &prepared.plan;
        let report = (plan.row.hardware.recover)(&plan.spec, &plan.geometry, &mut image)
            .expect("recovery is not cut in an orderly shutdown");
        if let Some(loss) = report.losses.first() {
            return Err(Error::Stuck { cycle: at, what: format!("work was lost in an orderly shutdown: {loss}") });
        }
        Ok(PoolContents { files: self.process.pool().clone(), pages: image.pmem })
    }

    /// Instructions executed so far.
    pub fn instructions(&self) -> u64 {
        self.now().instructions
    }

    /// A digest of the whole state.
    pub fn digest(&self) -> String {
        let mut digest = Digest::default();
        self.cores[0].digest(&mut digest);
        self.system.digest(&mut digest);
        self.process.pool().digest(&mut digest);
        digest.hex()
    }

    /// The youngest commit's cycle.
    pub fn cycle(&self) -> Cycle {
        self.cores[0].cycle()
    }
}

/// Reads an ELF from the host.
///
/// # Errors
/// A file that cannot be read is a wrong argument, not a failure of the host's disk.
pub fn read_elf(path: &std::path::Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|e| ConfigError::new("elf", format!("{} cannot be read: {e}", path.display())).into())
}

/// Keeps what a program writes.
#[derive(Clone, Debug, Default)]
pub struct Captured(Vec<u8>);

impl Captured {
    /// Both streams in the order of writing.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl Output for Captured {
    fn write(&mut self, _: durasim_guest::Stream, bytes: &[u8]) {
        self.0.extend(bytes);
    }
}
