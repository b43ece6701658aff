//! A machine with a program on it: cores, the memory system and the kernel, and the loop that gives each core its steps.

mod batch_ends;
mod counters;
pub(crate) mod debugging;
pub(crate) mod detached_program;
mod fork;
mod hardware_threads;
mod interleave;
mod kept_call_stacks;
mod kernel_memory;
mod port;
mod run_within;
pub(crate) mod scheduler;
pub(crate) mod snapshot;
pub(crate) mod stall_traces;

use crate::machine::kept_call_stacks::KeptCallStacks;
use crate::machine::kernel_memory::KernelMemory;
use crate::machine::port::MachinePort;
use crate::machine::scheduler::{DrainReason, InterruptedStep, Scheduler};
use crate::setup::config::MachineConfig;
use crate::setup::inserted::Inserted;
use crate::setup::pauses::Pauses;
use crate::setup::plan::Plan;
use crate::setup::program::{PoolContents, Program, process_config};
use crate::statistics::batches::BatchReadings;
use crate::statistics::measurements::{Measurements, Moment, RegionEnd};
use crate::statistics::metrics::{AccessesPerTx, Bytes, Latencies, Metrics, Phases};
use crate::system::System;
use durasim_core::Core;
use durasim_isa::Hart;
use durasim_kernel::{PmemPool, Process};
use durasim_types::{CoreId, Cycle, Digest, Error};

/// A core of the machine; the seed is that of the run.
pub(crate) fn new_core(config: &MachineConfig, plan: &Plan, id: CoreId, hart: Hart, seed: u64) -> Core {
    let l1d_latency = plan.geometry.l1d.latency_cycles;
    let mut core = Core::new(id, &config.core, l1d_latency, hart);
    if let Some(tlb) = &config.tlb {
        core = core.with_tlbs(tlb, l1d_latency, config.l1i.latency_cycles);
    }
    if let Some(pauses) = &config.place_pauses {
        core = core.with_place_pauses(pauses.of_core(seed, id));
    }
    core
}

/// End of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program exited with this code.
    Exited(i32),
    /// The limit of instructions was reached.
    InstructionLimit,
    /// The limit of cycles was reached.
    CycleLimit,
    /// An observer, or the receiver of the output, stopped the machine.
    Stopped,
    /// The program has passed the snapshot point that was asked for; the run can continue.
    SnapshotPoint,
    /// The region of interest has ended, where the run was to stop.
    RegionEnd,
}

/// A machine.
pub struct Machine {
    pub(crate) system: System,
    pub(crate) process: Process,
    pub(crate) cores: Vec<Core>,
    pub(crate) measure: Measurements,
    pub(crate) scheduler: Scheduler,
    pub(crate) pauses: Pauses,
    /// Reason for which each core is to become empty.
    pub(crate) drain_reasons: Vec<Option<DrainReason>>,
    /// A step that a limit of instructions has interrupted.
    pub(crate) interrupted_step: Option<InterruptedStep>,
    /// The snapshot point at which a run ends.
    pub(crate) stop_at_snapshot_point: Option<u64>,
    pub(crate) stops_after_region: bool,
    /// A run ends after this cycle.
    pub(crate) cycles_max: Cycle,
    pub(crate) context_switch_cycles: Cycle,
    pub(crate) skew_cycles: Cycle,
    /// Number of physical cores. Each may have two hardware threads, with a [`Core`] for each in `cores`.
    pub(crate) physical_cores: usize,
    /// Whether a core executes at most one instruction in a step.
    pub(crate) executes_singly: bool,
    /// Operations that are added to the program.
    pub(crate) inserted: Inserted,
    /// The call stacks of steps that a journal gets.
    pub(crate) call_stacks: KeptCallStacks,
}

impl Machine {
    /// Builds the machine and loads the program.
    ///
    /// # Errors
    /// Everything that is refused before cycle 0.
    pub fn new(config: &MachineConfig, plan: &Plan, program: &Program) -> Result<Self, Error> {
        let mut system = System::new(config, plan)?;
        system.seed(program.seed);
        let files = match &program.pool {
            Some(pool) => {
                system.load_pmem(&pool.pages);
                pool.files.clone()
            }
            None => PmemPool::new(plan.geometry.pmem_data_bytes),
        };
        let mut memory = KernelMemory { system: &mut system, core: CoreId(0), tx: None, at: 0 };
        let (process, hart) = Process::load(process_config(config, plan, program), files, &mut memory)?;
        let mut harts = vec![Hart::default(); config.hardware_threads().into()];
        harts[0] = hart;
        let cores = (0..).zip(harts).map(|(id, hart)| new_core(config, plan, CoreId(id), hart, program.seed)).collect();
        Ok(Machine {
            system,
            process,
            cores,
            measure: Measurements::new(config.hardware_threads()),
            scheduler: Scheduler::new(config.hardware_threads(), config.core.time_slice_cycles),
            pauses: Pauses::new(config.pauses, program.seed, 0),
            drain_reasons: vec![None; config.hardware_threads().into()],
            interrupted_step: None,
            stop_at_snapshot_point: None,
            stops_after_region: false,
            cycles_max: Cycle::MAX,
            context_switch_cycles: config.core.context_switch_cycles,
            skew_cycles: config.skew_cycles,
            physical_cores: config.cores.into(),
            executes_singly: false,
            inserted: program.inserted.clone(),
            call_stacks: KeptCallStacks::default(),
        })
    }

    /// A run ends with [`Ending::SnapshotPoint`] when the program passes the snapshot point of this number, once.
    pub fn stop_at_snapshot_point(&mut self, mark: Option<u64>) {
        self.stop_at_snapshot_point = mark;
    }

    /// A run ends with [`Ending::RegionEnd`] when the region of interest ends.
    pub fn stop_after_region(&mut self, wanted: bool) {
        self.stops_after_region = wanted;
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

    /// Instructions of all cores and the cycle of the one that is furthest.
    pub(crate) fn now(&self) -> Moment {
        Moment { instructions: self.instructions(), cycle: self.cycle() }
    }

    /// The state of all counters now.
    pub(crate) fn region_end(&self, at: Moment) -> RegionEnd {
        let latency = if self.measure.ops > 0 { &self.measure.op_latency } else { self.system.tx_latency() };
        let instructions = at.instructions - self.measure.roi_begin.unwrap_or_default().instructions;
        let tx = self.system.tx_stats();
        RegionEnd {
            at,
            stats: self.stats(),
            metrics: Metrics {
                pmem_write_bytes: Bytes::of(self.system.media_write_bytes()),
                pmem_residual_dirty_bytes: self.system.residual_dirty_bytes(),
                latency_ns: Latencies::of(latency.histogram(), self.system.geometry().clock),
                instructions_per_transaction: (tx.committed > 0).then(|| instructions as f64 / tx.committed as f64),
                phases: Phases::of(self.system.tx_phases()),
                accesses_per_tx: (tx.committed > 0).then(|| {
                    let [reads, writes] = self.system.media_accesses().map(|n| n as f64 / tx.committed as f64);
                    AccessesPerTx { reads, writes }
                }),
                tx,
                replay: self.system.replay_stats(at.cycle),
            },
            ops: self.measure.ops,
            batches: self.measure.batches.as_ref().map(BatchReadings::result),
        }
    }

    /// Drains the store buffers of all cores and waits for acknowledgements.
    pub(crate) fn finish(&mut self) {
        let Machine { system, process, measure, inserted, call_stacks, cores, .. } = self;
        for core in cores {
            core.quiesce(&mut MachinePort {
                system: &mut *system,
                process: &mut *process,
                measure: &mut *measure,
                inserted,
                call_stacks,
                pc: 0,
            });
        }
    }

    /// An orderly shutdown: what persistent memory holds after all that is cached has been written, as recovery would
    /// leave it.
    ///
    /// # Errors
    /// Never in a working design; a recovery that reports lost work is an error of the run.
    pub(crate) fn shut_down(&mut self, plan: &Plan) -> Result<PoolContents, Error> {
        let at = self.cycle();
        self.system.drain_queues(at);
        let (mut image, _) = self.system.crash_image(u64::MAX);
        self.system.write_caches_home(&mut image);
        self.system.shut_down_design(&mut image);
        let report = (plan.variant.hardware.recover)(&plan.spec, &plan.geometry, &mut image)
            .expect("nothing interrupts recovery in an orderly shutdown");
        if let Some(loss) = report.losses.first() {
            return Err(Error::Stuck { cycle: at, what: format!("an orderly shutdown lost committed work: {loss}") });
        }
        Ok(PoolContents { files: self.process.pool().clone(), pages: image.pmem })
    }

    /// Contents of `/pmem/` after an orderly shutdown; see [`Machine::shut_down`].
    ///
    /// # Errors
    /// A recovery that reports lost work.
    pub fn into_pool_contents(mut self, plan: &Plan) -> Result<PoolContents, Error> {
        self.shut_down(plan)
    }

    /// Instructions executed so far.
    pub fn instructions(&self) -> u64 {
        self.cores.iter().map(Core::instructions).sum()
    }

    /// A core.
    pub fn core(&self, id: CoreId) -> &Core {
        &self.cores[usize::from(id.0)]
    }

    /// A digest of the whole state.
    pub fn digest(&self) -> String {
        let mut digest = Digest::default();
        self.cores.iter().for_each(|core| core.digest(&mut digest));
        self.system.digest(&mut digest);
        self.process.pool().digest(&mut digest);
        digest.hex()
    }

    /// The cycle of the youngest commit on any core.
    pub fn cycle(&self) -> Cycle {
        self.cores.iter().map(Core::cycle).max().expect("a machine has a core")
    }
}
