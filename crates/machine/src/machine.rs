//! A machine with a program on it.

use crate::MachineConfig;
use crate::kernel::KernelMemory;
use crate::latency::LoadLatency;
use crate::measure::{Measurements, Moment, RegionEnd};
use crate::metrics::{AccessesPerTx, Bytes, Latencies, Metrics, Phases};
use crate::pauses::Pauses;
use crate::port::MachinePort;
use crate::scheduler::{DrainReason, InterruptedTurn, Scheduler};
use crate::system::{DRAM_BASE, PMEM_BASE, Plan, System};
use durasim_core::tlb::TlbStats;
use durasim_core::{Core, CoreStats, StallCycles, StallPlace};
use durasim_isa::Hart;
use durasim_kernel::{MemoryMap, Output, PmemPool, PoolFile, Process, ProcessConfig};
use durasim_types::{ConfigError, CoreId, Cycle, Digest, Error, PAGE_BYTES, Pages, StallCause, Stats};

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

    /// A pool file with these contents, written by the variant `written_by`.
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
        cores: config.hardware_threads().into(),
        exe_link: program.exe_link.clone(),
        ..ProcessConfig::new(program.elf_name.clone(), program.elf.clone(), map)
    }
}

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

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program exited with this code.
    Exited(i32),
    /// The limit of instructions was reached.
    InstructionLimit,
    /// The limit of cycles was reached.
    CycleLimit,
    /// An observer, or whoever takes the output, stopped the machine.
    Stopped,
    /// The program has passed the mark that was asked for; the run can continue.
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
    /// Why each core is to become empty.
    pub(crate) drain_reasons: Vec<Option<DrainReason>>,
    /// A turn that a limit of instructions has interrupted.
    pub(crate) interrupted_turn: Option<InterruptedTurn>,
    /// The mark at which a run ends.
    pub(crate) stop_at_snapshot_point: Option<u64>,
    pub(crate) stops_after_region: bool,
    /// A run ends after this cycle.
    pub(crate) cycles_max: Cycle,
    pub(crate) context_switch_cycles: Cycle,
    pub(crate) skew_cycles: Cycle,
    /// Cores, each of which may have two hardware threads: a [`Core`] for each of these is in `cores`.
    pub(crate) physical_cores: usize,
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
            interrupted_turn: None,
            stop_at_snapshot_point: None,
            stops_after_region: false,
            cycles_max: Cycle::MAX,
            context_switch_cycles: config.core.context_switch_cycles,
            skew_cycles: config.skew_cycles,
            physical_cores: config.cores.into(),
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
        }
    }

    fn stats(&self) -> Stats {
        let mut stats = self.system.stats();
        let mut c = CoreStats::default();
        for (number, core) in self.cores.iter().enumerate() {
            c.add(&core.stats());
            if self.cores.len() > 1 && core.instructions() > 0 {
                let name = |what| format!("core.{}.{what}", self.name_of(number));
                stats.count(name("instructions"), core.instructions(), "Instructions of this core, since the start");
                stats.set(name("cycle"), core.cycle() as f64, "cycles", "The cycle that this core has reached");
            }
        }
        stats.count("core.branches", c.branches, "Conditional branches");
        stats.count("core.mispredictions", c.mispredictions, "Branches and jumps predicted wrongly");
        stats.count("core.loads", c.loads, "Loads executed");
        stats.count("core.forwards", c.forwards, "Loads whose data came from the store buffer");
        let violations = c.order_violations;
        stats.count("core.order_violations", violations, "Loads executed again because they passed an older store");
        stats.count("core.stores", c.stores, "Stores executed");
        stats.count("core.fences", c.fences, "Fences executed");
        let without = "Fences with W before that found no cache-block operation to wait for";
        stats.count("core.fences_without_cleans", c.fences_without_cleans, without);
        let cleans = self.measure.cache_block_operations;
        stats.count("core.cache_block_operations", cleans, "Cache-block operations executed");
        let waited = c.fence_stall_cycles as f64;
        stats.set("core.fence_stall_cycles", waited, "cycles", "Cycles in which fences held younger instructions");
        let waited = c.commit_stall_cycles as f64;
        stats.set("core.commit_stall_cycles", waited, "cycles", "Cycles in which commits held younger instructions");
        stats.count("core.system_calls", c.system_calls, "System calls");
        tlb_stats(&mut stats, &self.cores);
        stall_stats(&mut stats, &c.stalls, self.system.structures());
        load_stats(&mut stats, &self.measure.pmem_load_latency);
        stats.count("core.pmem_stores", self.measure.pmem_stores, "Stores that left for a line of persistent memory");
        if self.system.has_checks() {
            check_stats(&mut stats, &c);
        }
        let switches = self.scheduler.switches;
        stats.count("core.context_switches", switches, "Times a thread got the core, since the start");
        stats
    }

    /// All stores of all cores leave, acknowledgements come in.
    pub(crate) fn finish(&mut self) {
        for core in &mut self.cores {
            let mut port =
                MachinePort { system: &mut self.system, process: &mut self.process, measure: &mut self.measure };
            core.quiesce(&mut port);
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

    /// What an orderly shutdown leaves in `/pmem/`; see [`Machine::shut_down`].
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

/// Reads an ELF from the host.
///
/// # Errors
/// A file that cannot be read is a wrong argument, not a failure of the host's disk.
pub fn read_elf(path: &std::path::Path) -> Result<Vec<u8>, Error> {
    durasim_kernel::read_file(path)
        .map_err(|e| ConfigError::new("elf", format!("{} cannot be read: {e}", path.display())).into())
}

/// Keeps what a program writes.
#[derive(Clone, Debug, Default)]
pub struct Captured(Vec<u8>);

impl Captured {
    /// Both streams in the order of writing.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The bytes of both streams in the order of writing.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Output for Captured {
    fn write(&mut self, _: durasim_kernel::Stream, bytes: &[u8]) {
        self.0.extend(bytes);
    }
}

/// Counters of TLBs, on machines that have them.
fn tlb_stats(stats: &mut Stats, cores: &[Core]) {
    if cores.iter().all(|core| core.tlbs().is_none()) {
        return;
    }
    let mut t = TlbStats::default();
    cores.iter().filter_map(Core::tlbs).for_each(|tlbs| t.add(&tlbs.stats()));
    stats.count("tlb.data.accesses", t.data_accesses, "Look-ups of the TLBs for data");
    stats.count("tlb.data.misses", t.data_misses, "Look-ups of the TLBs for data that found nothing");
    stats.count("tlb.code.accesses", t.code_accesses, "Look-ups of the TLBs for instructions");
    stats.count("tlb.code.misses", t.code_misses, "Look-ups of the TLBs for instructions that found nothing");
    let second = t.data_misses + t.code_misses;
    stats.count("tlb.l2.accesses", second, "Look-ups of the second TLBs");
    stats.count("tlb.l2.misses", t.walks, "Look-ups of the second TLBs that found nothing: page walks");
    let cycles = t.walk_cycles as f64;
    stats.set(
        "tlb.walk_cycles",
        cycles,
        "cycles",
        "Cycles from misses of the second TLBs to translations, over all walks",
    );
    stats.count("tlb.shoot_downs", t.shoot_downs, "Translations dropped because mappings changed");
}

/// What a design with checked accesses adds up from other counters (P-INSPECT, MICRO 2020, Table IX).
fn check_stats(stats: &mut Stats, cores: &CoreStats) {
    let of = |name| stats.get(name).unwrap_or(0.0);
    let accesses = of("core.loads") - of("core.forwards") + of("core.stores");
    let persistent = of("core.pmem_loads.count") + of("core.pmem_stores");
    let writes = of("persistent_writes.writes");
    let share = if accesses > 0.0 { 100.0 * persistent / accesses } else { 0.0 };
    let description = "Share of the loads and stores that go to the caches that go to persistent memory";
    stats.set("p_inspect.nvm_access_percent", share, "percent", description);
    let description = "Stores that went to persistent memory in one operation with their clean";
    stats.count("p_inspect.persistent_writes", writes as u64, description);
    let description =
        "Stores that persist with a fence of their own, in one operation or as a store, a clean and a fence";
    stats.count("p_inspect.fenced_stores.count", cores.fenced_stores, description);
    let description = "Cycles from when each could leave the store buffer until it was acknowledged, overlap left out";
    stats.set("p_inspect.fenced_stores.cycles", cores.fenced_store_cycles as f64, "cycles", description);
}

/// Latencies of loads of persistent memory, as cores see them.
fn load_stats(stats: &mut Stats, latency: &LoadLatency) {
    let (count, mean, all) = latency.distribution();
    let name = |what| format!("core.pmem_loads.{what}");
    stats.count(name("count"), count, "Loads of persistent memory that go to the caches");
    stats.set(name("latency_mean"), mean, "cycles", "Mean time from the issue of such a load to its data");
    let percentiles = [
        ("latency_p50", 0.5, "Median"),
        ("latency_p90", 0.9, "90th percentile"),
        ("latency_p99", 0.99, "99th percentile"),
        ("latency_p999", 0.999, "99.9th percentile"),
        ("latency_max", 1.0, "Maximum"),
    ];
    for (what, quantile, description) in percentiles {
        let description = format!("{description} of that time, three digits exact");
        stats.set(name(what), all.value_at_quantile(quantile) as f64, "cycles", &description);
    }
}

/// Cycles in which cores committed nothing, by what stood at the head of the reorder buffer and why it waited.
fn stall_stats(stats: &mut Stats, stalls: &StallCycles, structures: &[&str]) {
    let mut set = |name: String, cycles: u64, what: &str| {
        stats.set(
            format!("core.stalls.{name}"),
            cycles as f64,
            "cycles",
            &format!("Cycles in which nothing committed: {what}"),
        );
    };
    set("front_end".into(), stalls.front_end, "the next instruction had not been fetched, decoded and renamed");
    set("execution".into(), stalls.execution, "the oldest instruction was computing");
    set("system".into(), stalls.system, "system calls, thread switches, instructions that empty the pipeline");
    set("abort".into(), stalls.abort, "a transaction was rolled back");
    for place in StallPlace::ALL {
        let what = match place {
            StallPlace::Load => "a load",
            StallPlace::Store => "a store or cache-block operation",
            StallPlace::StoreQueue => "the store queue was full, its oldest entry",
            StallPlace::Fence => "a fence, or what it waits for,",
            StallPlace::Atomic => "an atomic operation",
            StallPlace::Commit => "the commit of a transaction, or what it waits for,",
        };
        for cause in StallCause::ALL {
            let cycles = stalls.of(place, cause);
            // Most pairs never occur.
            if cycles > 0 {
                let name = match cause {
                    StallCause::Structure(number) => {
                        format!("{}.{}.{}", place.name(), cause.name(), structures[usize::from(number)])
                    }
                    _ => format!("{}.{}", place.name(), cause.name()),
                };
                set(name, cycles, &format!("{what} was {}", cause.description()));
            }
        }
    }
}
