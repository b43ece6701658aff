//! The memory system with its durability design: caches, controllers, the design and the actions it asks for.
//!
//! One struct holds them all, because at each persist event the whole of it is looked at: what a power failure would
//! leave is in the caches, in the queues and in the design at once.

mod actions;
mod blocks;
mod coherence;
mod controllers;
mod copies;
mod counters;
mod crash;
mod evict;
mod gates;
mod hierarchy;
mod interconnect;
mod invariants;
mod log;
mod marks;
mod nonvolatile_llc;
mod persist_buffers;
mod push;
mod requests;
mod rest;
mod scan;
mod state;
mod transactions;
mod unfenced;

use crate::latency::Latency;
use crate::{CacheConfig, Inclusion, MachineConfig};
use durasim_cache::{CacheArray, Directory, Mshrs};
use durasim_design::{Actions, Ctx, Durability, Fault, Geometry, Hooks, LevelId, LineTag, Row, SpecError};
use durasim_memory::{Memory, Reservations};
use durasim_types::{
    Clock, ConfigError, CoreId, Cycle, DataRange, Domain, Error, EventKind, History, HistoryStep, Journal, LineAddr,
    PAGE_BYTES, Pages, PersistEvent, PhysAddr, Rng, Stats, TxId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::hash::Hasher;

pub use coherence::CoherenceStats;
pub use copies::{Copy, Place};
use counters::{cache_stats, memory_stats};
pub use crash::{Aftermath, Chances, PowerCut};
use interconnect::Crossbar;
use persist_buffers::PersistBuffers;
pub(crate) use rest::Held;
pub(crate) use state::{Read, Written};
pub use transactions::TxStats;

/// First byte of the DRAM.
pub const DRAM_BASE: PhysAddr = PhysAddr(0x8000_0000);
/// First byte of the persistent memory.
pub const PMEM_BASE: PhysAddr = PhysAddr(0x100_0000_0000);

/// Watches the persist events of a run. It sees the system exactly as it is at the event.
pub trait Observer: Send {
    /// `event` has just happened. The answer false stops the machine.
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool;
}

/// The parameters of a row on a machine, resolved and checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The row.
    pub row: Row,
    /// The domain of the machine.
    pub domain: Domain,
    /// The design's parameters, complete.
    pub spec: Value,
    /// The machine's shape with the design in it.
    pub geometry: Geometry,
}

impl Plan {
    /// Fits `row` into the machine.
    ///
    /// # Errors
    /// Parameters of the design that are unknown or out of range, regions that do not fit.
    pub fn new(config: &MachineConfig, row: &Row, domain: Domain) -> Result<Self, ConfigError> {
        let hardware = &row.hardware;
        if domain == Domain::Bbb && hardware.hooks != Hooks::NONE {
            let problem = format!(
                "{} keeps several versions of a line, which the persist buffers of {domain} would mix up",
                hardware.name
            );
            return Err(ConfigError::new("domain", problem));
        }
        let refuse = |e: SpecError| refused_by(hardware.name, e);
        let mut spec = (hardware.default_spec)();
        if let Some(section) = config.design.get(hardware.name) {
            let fields = spec.as_object_mut().expect("parameters are an object");
            for (key, value) in section {
                fields.insert(key.clone(), value.clone());
            }
        }
        (hardware.check)(&spec).map_err(refuse)?;
        let pmem_bytes = config.pmem.capacity_mib << 20;
        let mut geometry = Geometry {
            cores: config.cores,
            controllers: config.pmem.controllers,
            domain,
            clock: Clock { frequency_mhz: config.frequency_mhz },
            l1d: config.l1d.geometry(),
            l2: config.l2.geometry(),
            llc: config.llc.geometry(),
            llc_write_ports: None,
            interleave_bytes: config.pmem.interleave_bytes,
            inclusion: config.interconnect.inclusion.into(),
            pmem_base: PMEM_BASE,
            pmem_bytes,
            pmem_data_bytes: pmem_bytes,
            regions: Vec::new(),
            planted: Fault::NONE,
        };
        (hardware.adapt)(&spec, &mut geometry).map_err(refuse)?;
        let requests = (hardware.reserve)(&spec, &geometry).map_err(refuse)?;
        let sizes: Vec<u64> = requests.iter().map(|r| r.size_bytes.next_multiple_of(PAGE_BYTES)).collect();
        let reserved: u64 = sizes.iter().sum();
        if reserved + PAGE_BYTES > pmem_bytes {
            let problem = format!("{} reserves {reserved} bytes of {pmem_bytes}, nothing is left", hardware.name);
            return Err(ConfigError::new("pmem.capacity_mib", problem));
        }
        geometry.pmem_data_bytes = pmem_bytes - reserved;
        let mut base = PMEM_BASE.plus(geometry.pmem_data_bytes);
        for (request, size_bytes) in requests.iter().zip(sizes) {
            geometry.regions.push(durasim_design::PmRegion { name: request.name, base, size_bytes });
            base = base.plus(size_bytes);
        }
        if geometry.inclusion == durasim_design::Inclusion::Exclusive {
            // A design that could not work in such a hierarchy says why.
            (hardware.build)(&spec, &geometry).map_err(refuse)?;
            let problem = "exclusive caches are not built; choose inclusive or non-inclusive";
            return Err(ConfigError::new("interconnect.inclusion", problem));
        }
        Ok(Plan { row: *row, domain, spec, geometry })
    }

    /// The same with a planted fault: for `durasim crash --planted` alone.
    ///
    /// # Errors
    /// The row's hardware has no fault of this name.
    pub fn plant(mut self, name: &str) -> Result<Self, ConfigError> {
        let planted = self.row.hardware.planted;
        let known = || planted.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
        let fault = planted.iter().find(|p| p.name == name).ok_or_else(|| {
            ConfigError::new("planted", format!("{} has no fault '{name}' (allowed: {})", self.row.name, known()))
        })?;
        self.geometry.planted = fault.fault();
        Ok(self)
    }
}

/// What a design refuses, with its place in the machine file.
fn refused_by(design: &str, e: SpecError) -> ConfigError {
    let field = match e.field.as_str() {
        "" => format!("design.{design}"),
        field => format!("design.{design}.{field}"),
    };
    ConfigError::new(field, e.problem)
}

/// Work that the system does by itself later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Later {
    Timer {
        id: u64,
    },
    Message {
        to: durasim_design::Node,
        message: durasim_design::Message,
    },
    /// The second half of a copy: its data was read, it is written now.
    Write(Box<durasim_memory::Write>),
    /// A line that was pushed down is in the last level.
    Pushed {
        line: LineAddr,
        token: durasim_design::Token,
    },
    Scan(scan::Scan),
    /// A read of the design's own arrives.
    Read(Box<ReadInFlight>),
}

/// A line of persistent memory on its way to the design that asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ReadInFlight {
    addr: PhysAddr,
    token: u64,
    #[serde(with = "serde_bytes")]
    data: durasim_types::Line,
}

/// The memory system.
pub struct System {
    clock: Clock,
    domain: Domain,
    geometry: Geometry,
    inclusive: bool,
    request_cycles: Cycle,
    response_cycles: Cycle,
    memory_request_cycles: Cycle,
    memory_response_cycles: Cycle,
    hop_cycles: Cycle,
    snoop_cycles: Cycle,
    write_back_buffers: usize,
    l1i: Vec<CacheArray>,
    l1d: Vec<CacheArray>,
    l2: Vec<CacheArray>,
    llc: CacheArray,
    directory: Directory,
    coherence_stats: CoherenceStats,
    /// The line that each core has reserved by LR.
    reservations: Vec<Option<LineAddr>>,
    l1i_mshrs: Vec<Mshrs>,
    l1d_mshrs: Vec<Mshrs>,
    l2_mshrs: Vec<Mshrs>,
    /// Buffers for dirty lines on their way from the L1D and from the L2: they are free again as MSHRs are.
    l1d_write_backs: Vec<Mshrs>,
    l2_write_backs: Vec<Mshrs>,
    llc_mshrs: Mshrs,
    /// The ports through which lines are pushed into the last level, if it has such.
    llc_ports: Vec<Reservations>,
    /// The links between private caches and the last level, if messages may have to wait there.
    crossbar: Option<Crossbar>,
    pmem: Memory,
    dram: Memory,
    persist_buffers: PersistBuffers,
    design: Box<dyn Durability>,
    hooks: Hooks,
    exclusive_tags: bool,
    /// Whether tags make no versions.
    tags_are_notes: bool,
    /// By level, how many lines of a set may have live tags, if not all may.
    tag_limits: [Option<u32>; 3],
    /// By level, what an access of a line with a live tag takes more.
    tagged_access_cycles: [Cycle; 3],
    /// Whether a transaction's accesses of lines that it has tagged need not be told to the design.
    own_lines_are_silent: bool,
    /// Whether the last level keeps tagged versions while it can.
    llc_keeps_tagged: bool,
    /// Lists of actions that are not in use.
    spare: Vec<Actions>,
    view_tags: Vec<LineTag>,
    view_ranks: Vec<u32>,
    /// The cycle of the last wait that was over when it began, and how many such waits there were in it.
    standing: (Cycle, u32),
    /// Lines in service: no victim is chosen among them.
    pinned: Vec<LineAddr>,
    later: BinaryHeap<std::cmp::Reverse<(Cycle, u64, usize)>>,
    later_work: BTreeMap<usize, Later>,
    later_count: u64,
    /// Timers in retired instructions, by due count and the design's number.
    instruction_timers: BTreeSet<(u64, u64)>,
    next_instruction_timer: u64,
    /// Nothing happens by itself before this cycle.
    due: Cycle,
    /// Writes handed over and not acknowledged, by the design's token.
    outstanding: BTreeMap<u64, u32>,
    /// Cache-block operations of each core that are not acknowledged.
    cleans: Vec<u32>,
    /// When the last acknowledgement of one reaches each core; 0 once a fence has waited for it.
    clean_acks: Vec<Cycle>,
    raised: BTreeSet<u64>,
    /// The request of each core that waits while others go on.
    suspended: Vec<Option<gates::Suspension>>,
    /// The transaction that each core works on, from the moment its begin left the store buffer.
    running: Vec<Option<TxId>>,
    /// All transactions that have begun and not ended, those of threads without a core included.
    open: BTreeMap<TxId, transactions::OpenTx>,
    /// Whether some thread has left a core inside a transaction that is still open.
    moved_tx: bool,
    /// Aborts that a thread has not noticed yet.
    abort_notices: u32,
    event_count: u64,
    event_kinds: [u64; EventKind::COUNT],
    stamp: Cycle,
    observer: Option<Box<dyn Observer>>,
    journal: Option<Box<dyn Journal>>,
    unfenced: Option<Box<unfenced::Unfenced>>,
    history: Option<Box<dyn History>>,
    data_range: Option<DataRange>,
    instructions: u64,
    tx_count: u64,
    tx_stats: TxStats,
    tx_latency: Latency,
    halted: bool,
    error: Option<Error>,
}

impl System {
    /// Builds the memory system of `config` with the design of `plan`.
    ///
    /// # Errors
    /// A design that cannot be built with these parameters.
    pub fn new(config: &MachineConfig, plan: &Plan) -> Result<Self, ConfigError> {
        let hardware = &plan.row.hardware;
        let design = (hardware.build)(&plan.spec, &plan.geometry).map_err(|e| refused_by(hardware.name, e))?;
        let g = &plan.geometry;
        let cores = config.cores as usize;
        let arrays = |level, of: &CacheConfig| -> Vec<CacheArray> {
            (0..cores).map(|_| CacheArray::with_replacement(level, of.replacement, 0)).collect()
        };
        let mshrs = |n: u32| (0..cores).map(|_| Mshrs::new(n as usize)).collect::<Vec<_>>();
        let mut system = System {
            clock: g.clock,
            domain: plan.domain,
            inclusive: config.interconnect.inclusion == Inclusion::Inclusive,
            request_cycles: config.interconnect.request_cycles,
            response_cycles: config.interconnect.response_cycles,
            memory_request_cycles: config.interconnect.memory_request_cycles,
            memory_response_cycles: config.interconnect.memory_response_cycles,
            hop_cycles: config.interconnect.hop_cycles,
            snoop_cycles: config.interconnect.snoop_cycles,
            write_back_buffers: config.interconnect.write_back_buffers as usize,
            l1i: arrays(config.l1i.geometry(), &config.l1i),
            l1d: arrays(g.l1d, &config.l1d),
            l2: arrays(g.l2, &config.l2),
            llc: CacheArray::with_replacement(g.llc, config.llc.replacement, 0),
            directory: Directory::new(config.cores),
            coherence_stats: CoherenceStats::default(),
            reservations: vec![None; cores],
            l1i_mshrs: mshrs(config.l1i.mshrs),
            l1d_mshrs: mshrs(config.l1d.mshrs),
            l2_mshrs: mshrs(config.l2.mshrs),
            l1d_write_backs: mshrs(config.interconnect.l1d_write_back_buffers),
            l2_write_backs: mshrs(config.interconnect.l2_write_back_buffers),
            llc_mshrs: Mshrs::new(config.llc.mshrs as usize),
            llc_ports: vec![Reservations::default(); g.llc_write_ports.map_or(0, |w| w.ports as usize)],
            crossbar: Crossbar::new(&config.interconnect, cores),
            pmem: Memory::new(&config.pmem, Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20)),
            dram: Memory::new(&config.dram, Pages::new(DRAM_BASE, config.dram.capacity_mib << 20)),
            persist_buffers: match plan.domain {
                Domain::Bbb => PersistBuffers::new(&config.bbb, cores),
                _ => PersistBuffers::default(),
            },
            exclusive_tags: design.tags_are_exclusive(),
            tags_are_notes: design.tags_are_notes(),
            tag_limits: LevelId::ALL.map(|level| design.tag_limit(level).filter(|limit| *limit < g.level(level).ways)),
            tagged_access_cycles: LevelId::ALL.map(|level| design.tagged_access_cycles(level)),
            own_lines_are_silent: design.own_lines_are_silent(),
            llc_keeps_tagged: design.llc_keeps_tagged(),
            design,
            hooks: hardware.hooks,
            spare: Vec::new(),
            standing: (0, 0),
            view_tags: Vec::new(),
            view_ranks: Vec::new(),
            pinned: Vec::new(),
            later: BinaryHeap::new(),
            later_work: BTreeMap::new(),
            later_count: 0,
            instruction_timers: BTreeSet::new(),
            next_instruction_timer: u64::MAX,
            due: Cycle::MAX,
            outstanding: BTreeMap::new(),
            cleans: vec![0; cores],
            clean_acks: vec![0; cores],
            raised: BTreeSet::new(),
            suspended: vec![None; cores],
            running: vec![None; cores],
            open: BTreeMap::new(),
            moved_tx: false,
            abort_notices: 0,
            event_count: 0,
            event_kinds: [0; EventKind::COUNT],
            stamp: 0,
            observer: None,
            journal: None,
            unfenced: None,
            history: None,
            data_range: None,
            instructions: 0,
            tx_count: 0,
            tx_stats: TxStats::default(),
            tx_latency: Latency::new(),
            halted: false,
            error: None,
            geometry: plan.geometry.clone(),
        };
        system.seed(0);
        Ok(system)
    }

    /// The seed of the run: each cache that chooses at random starts a sequence of its own from it.
    pub fn seed(&mut self, seed: u64) {
        let mut seeds = Rng::new(seed);
        for array in self.l1i.iter_mut().chain(&mut self.l1d).chain(&mut self.l2).chain([&mut self.llc]) {
            array.reseed(seeds.next_u64());
        }
    }

    /// The machine's shape with the design in it.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The domain.
    pub fn domain(&self) -> Domain {
        self.domain
    }

    /// Sets who watches persist events.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// Takes the watcher back.
    pub fn take_observer(&mut self) -> Option<Box<dyn Observer>> {
        self.observer.take()
    }

    /// Sets who keeps the journal of the program's transactions.
    pub fn keep_journal(&mut self, journal: Box<dyn Journal>) {
        self.journal = Some(journal);
    }

    /// Sets who keeps the history of the program's operations.
    pub fn keep_history(&mut self, history: Box<dyn History>) {
        self.history = Some(history);
    }

    /// Tells the history of a step, if somebody keeps it.
    #[inline]
    pub(crate) fn note(&mut self, step: HistoryStep) {
        if let Some(history) = &mut self.history {
            history.note(self.event_count, step);
        }
    }

    /// Replaces the contents of persistent memory before the simulation starts.
    pub fn load_pmem(&mut self, pages: &Pages) {
        self.pmem.load(pages, PhysAddr(u64::MAX));
    }

    /// Persist events so far.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// Persist events so far, by kind in the order of `EventKind::ALL`.
    pub fn event_kinds(&self) -> [u64; EventKind::COUNT] {
        self.event_kinds
    }

    /// What went wrong in the memory system, if anything did.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Whether the machine has to stop.
    pub fn halted(&self) -> bool {
        self.halted
    }

    /// Instructions retired: background work that counts them may be due.
    #[inline]
    pub fn retired(&mut self, core: CoreId, instructions: u64, at: Cycle) {
        self.count_instructions(core, instructions, at);
    }

    #[inline]
    fn is_pmem(&self, line: LineAddr) -> bool {
        line.0 >= PMEM_BASE.line().0
    }

    #[inline]
    fn cx(&self, core: CoreId, cycle: Cycle) -> Ctx {
        Ctx { core, cycle, instructions: self.instructions }
    }

    fn array(&self, level: LevelId, core: CoreId) -> &CacheArray {
        match level {
            LevelId::L1d => &self.l1d[core.0 as usize],
            LevelId::L2 => &self.l2[core.0 as usize],
            LevelId::Llc => &self.llc,
        }
    }

    fn array_mut(&mut self, level: LevelId, core: CoreId) -> &mut CacheArray {
        match level {
            LevelId::L1d => &mut self.l1d[core.0 as usize],
            LevelId::L2 => &mut self.l2[core.0 as usize],
            LevelId::Llc => &mut self.llc,
        }
    }

    /// The tag if it still means anything.
    #[inline]
    fn live(&self, tag: LineTag) -> LineTag {
        if tag.is_some() && self.design.live(tag) { tag } else { LineTag::NONE }
    }

    /// Whether a line with this live tag is a version of its own, not to be mixed with what lies below it.
    #[inline]
    fn is_version(&self, tag: LineTag) -> bool {
        tag.is_some() && !self.tags_are_notes
    }

    fn actions(&mut self) -> Actions {
        self.spare.pop().unwrap_or_default()
    }

    fn cores(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.l1d.len() as u16).map(CoreId)
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
        self.halted = true;
    }

    /// Feeds caches, controllers and the design into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        for array in self.l1d.iter().chain(&self.l2).chain([&self.llc]) {
            array.digest(hasher, |tag| self.live(tag));
        }
        self.directory.digest(hasher);
        self.pmem.digest(hasher);
        self.dram.digest(hasher);
        self.persist_buffers.digest(hasher);
        self.design.digest(hasher);
        hasher.write_u64(self.event_count);
        hasher.write_u64(self.tx_count);
    }

    /// Counters start again from zero; state stays.
    pub fn reset_stats(&mut self) {
        for array in self.l1i.iter_mut().chain(&mut self.l1d).chain(&mut self.l2).chain([&mut self.llc]) {
            array.stats = durasim_cache::CacheStats::default();
        }
        self.coherence_stats = CoherenceStats::default();
        self.pmem.reset_stats();
        self.dram.reset_stats();
        self.persist_buffers.reset_stats();
        if let Some(crossbar) = &mut self.crossbar {
            crossbar.reset_stats();
        }
        self.tx_stats = TxStats::default();
        self.tx_latency.reset();
        self.design.reset_stats();
    }

    /// The counters of caches, controllers, transactions and the design.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for (name, arrays) in [("l1i", &self.l1i[..]), ("l1d", &self.l1d), ("l2", &self.l2)] {
            cache_stats(&mut stats, name, arrays);
        }
        cache_stats(&mut stats, "llc", std::slice::from_ref(&self.llc));
        let c = &self.coherence_stats;
        stats.count("coherence.transfers", c.transfers, "Lines that another core owned and gave up or shared");
        stats.count("coherence.invalidations", c.invalidations, "Copies that readers lost to a writer");
        stats.count("coherence.upgrades", c.upgrades, "Lines that a core could read and asked to write");
        stats.count("coherence.conflict_aborts", c.conflict_aborts, "Requests for which a transaction was aborted");
        for (name, memory) in [("pmem", &self.pmem), ("dram", &self.dram)] {
            memory_stats(&mut stats, name, memory);
        }
        for (kind, n) in EventKind::ALL.iter().zip(self.event_kinds) {
            stats.count(format!("events.{}", kind.name()), n, "Persist events of this kind since the start");
        }
        if let Some(crossbar) = &self.crossbar {
            crossbar.stats(&mut stats);
        }
        self.persist_buffers.stats(&mut stats);
        self.design.stats(&mut stats);
        stats
    }

    /// Bytes accepted by the media of persistent memory since the last reset, in the order of `Cause::ALL`.
    pub fn media_write_bytes(&self) -> [u64; 5] {
        self.pmem.stats().0.media_write_bytes
    }

    /// Counters of transactions since the last reset.
    pub fn tx_stats(&self) -> TxStats {
        self.tx_stats
    }

    /// Latencies of committed transactions in cycles since the last reset.
    pub(crate) fn tx_latency(&self) -> &Latency {
        &self.tx_latency
    }
}
