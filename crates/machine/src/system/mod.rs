//! The memory system with its durability design, and the requests that cores make of it.
//!
//! [`System`] consists of [`parts`](crate::parts). It is one struct, because an observer of a persist event sees all of it
//! ([`persist_events`]): what a power failure would leave is in the caches, in the queues and in the design at once
//! ([`inspection`]). [`requests`] of cores use the parts, and leave to the work list ([`work`]) all that may move further
//! lines: actions of the design, evictions, writes to the controllers, waits, aborts.

pub(crate) mod inspection;
mod persist_events;
mod requests;
pub(crate) mod state;
mod work;

use crate::parts::agenda::Agenda;
use crate::parts::block_counts::BlockCounts;
use crate::parts::caches::Caches;
use crate::parts::design_port::DesignPort;
use crate::parts::filters::Filters;
use crate::parts::interconnect::Interconnect;
use crate::parts::line_locks::LineLocks;
use crate::parts::memories::Memories;
use crate::parts::observers::Observers;
use crate::parts::open_transactions::OpenTransactions;
use crate::parts::persist_buffers::PersistBuffers;
use crate::parts::stall_attribution::StallAttribution;
use crate::parts::work_list::WorkList;
use crate::setup::config::MachineConfig;
use crate::setup::plan;
use crate::setup::plan::Plan;
use crate::statistics::latency::{Latency, PhaseLatencies};
use crate::statistics::transactions::{HtmStats, TxStats};
use durasim_contract::{Checks, Ctx, Geometry, Hooks};
use durasim_memory::Command;
use durasim_types::{
    ConfigError, CoreId, Cycle, Domain, Error, EventKind, History, HistoryStep, Journal, PersistEvent, Site, Stats,
};
use std::hash::Hasher;

/// Observer of the persist events of a run. It sees the system exactly as it is at the event.
pub trait Observer: Send {
    /// `event` has just happened. The answer false stops the machine.
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool;
}

/// The memory system.
pub struct System {
    geometry: Geometry,
    domain: Domain,
    caches: Caches,
    interconnect: Interconnect,
    memories: Memories,
    persist_buffers: PersistBuffers,
    line_locks: LineLocks,
    filters: Filters,
    design: DesignPort,
    agenda: Agenda,
    transactions: OpenTransactions,
    observers: Observers<dyn Observer>,
    stalls: StallAttribution,
    block_counts: BlockCounts,
    work: WorkList,
}

impl System {
    /// Builds the memory system of `config` with the design of `plan`.
    ///
    /// # Errors
    /// A design that cannot be built with these parameters.
    pub fn new(config: &MachineConfig, plan: &Plan) -> Result<Self, ConfigError> {
        let hardware = &plan.variant.hardware;
        let geometry = &plan.geometry;
        let design = (hardware.build)(&plan.spec, geometry).map_err(|e| plan::refused_by(hardware.name, e))?;
        let threads = usize::from(config.hardware_threads());
        let design_accepts = hardware.hooks.has(Hooks::ACCEPT) && design.filters_queue_writes();
        let checks = &plan.checks;
        let mut system = System {
            domain: plan.domain,
            caches: Caches::new(config, geometry, checks.as_deref().map(Checks::look_up_cycles)),
            interconnect: Interconnect::new(config),
            memories: Memories::new(config, geometry, design_accepts),
            persist_buffers: match plan.domain {
                Domain::Bbb => PersistBuffers::new(&config.bbb, threads),
                _ => PersistBuffers::default(),
            },
            line_locks: LineLocks::new(threads),
            design: DesignPort::new(design, hardware.name, hardware.hooks, geometry)
                .for_threads(hardware.threads_max)
                .with_structures(hardware.structures),
            agenda: Agenda::new(threads),
            transactions: OpenTransactions::new(threads, config.timer_interrupt_cycles),
            observers: Observers::new(threads),
            stalls: StallAttribution::new(threads),
            block_counts: BlockCounts::default(),
            work: WorkList::default(),
            geometry: geometry.clone(),
            filters: Filters::new(checks.clone(), threads, geometry.planted),
        };
        if let Some(checks) = checks.as_ref().filter(|checks| checks.combines_persistent_writes()) {
            // It would not be asked about these stores.
            assert!(!system.design.has_hooks(), "{} has to be asked about each store", hardware.name);
            system.line_locks.combine_stores(checks.fence_holds_commit());
        }
        Ok(system)
    }

    /// The seed of the run: each cache that chooses at random starts a sequence of its own from it, and the path to the
    /// controllers, if latencies are drawn there.
    pub fn seed(&mut self, seed: u64) {
        self.caches.seed(seed);
        self.memories.seed(seed);
    }

    /// The machine's shape with the design in it.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The domain.
    pub fn domain(&self) -> Domain {
        self.domain
    }

    /// Sets the observer of persist events.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observers.observe(observer);
    }

    /// Removes and returns the observer.
    pub fn take_observer(&mut self) -> Option<Box<dyn Observer>> {
        self.observers.take_observer()
    }

    /// Sets the journal of the program's transactions.
    pub fn keep_journal(&mut self, journal: Box<dyn Journal>) {
        self.observers.keep_journal(journal);
    }

    /// Sets the history of the program's operations.
    pub fn keep_history(&mut self, history: Box<dyn History>) {
        self.observers.keep_history(history);
    }

    /// Reports a step of the thread on `core` to the history, if one is kept.
    #[inline]
    pub(crate) fn note(&mut self, core: CoreId, step: HistoryStep) {
        self.observers.note(core, step);
    }

    /// Whether steps are reported to a journal or a history.
    #[inline]
    pub(crate) fn is_journal_kept(&self) -> bool {
        self.observers.are_kept()
    }

    /// The requests that a core makes from now on are those of this instruction, for a journal that is kept.
    #[inline]
    pub(crate) fn at_site(&mut self, core: CoreId, site: Site) {
        self.observers.at_site(core, site);
    }

    /// From now on, notes which cleans no fence has waited for.
    pub fn track_unfenced_cleans(&mut self) {
        self.memories.track_unfenced_cleans();
    }

    /// Keeps the commands to all media from now on. Forks of this system do not.
    pub fn start_traces(&mut self) {
        self.memories.start_traces();
    }

    /// The commands to the DRAM and to persistent memory since then; none are kept from now on. Where both share controllers
    /// all commands are with persistent memory.
    pub fn take_traces(&mut self) -> [Vec<Command>; 2] {
        self.memories.take_traces(self.observers.stamp())
    }

    /// Persist events so far.
    pub fn event_count(&self) -> u64 {
        self.observers.event_count()
    }

    /// Persist events so far, by kind in the order of `EventKind::ALL`.
    pub fn event_kinds(&self) -> [u64; EventKind::COUNT] {
        self.observers.event_kinds()
    }

    /// The error of the memory system, if there was one.
    pub fn error(&self) -> Option<&Error> {
        self.observers.error()
    }

    /// Whether the machine has to stop.
    #[inline]
    pub fn halted(&self) -> bool {
        self.observers.halted()
    }

    /// Whether the last level keeps its lines without power, and the levels above do not: the domains `nv-llc` and
    /// `nv-llc-media` (Kiln: Zhao, Li, Yoon, Xie and Jouppi, MICRO 2013). What is in the last level, in its write-back
    /// buffers, on the media, and in `nv-llc` in the write queue, survives. A line becomes durable when a dirty version of it
    /// arrives from above, which is a persist event (DEVIATIONS.md, nv-llc).
    #[inline]
    pub(in crate::system) fn llc_alone_is_durable(&self) -> bool {
        self.domain.llc_alone_is_durable()
    }

    /// Whether the design has hardware transactions.
    pub fn has_hardware_transactions(&self) -> bool {
        self.design.has(Hooks::HARDWARE_TX)
    }

    /// The cycle before which nothing is scheduled.
    pub fn due(&self) -> Cycle {
        self.agenda.due()
    }

    /// The circumstances in which the design is asked.
    #[inline]
    fn cx(&self, core: CoreId, cycle: Cycle) -> Ctx {
        let thread = self.transactions.thread_on(core);
        Ctx { core, thread, cycle, instructions: self.agenda.instructions() }
    }

    /// Feeds caches, controllers and the design into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        self.caches.digest(hasher, &self.design);
        self.memories.digest(hasher);
        self.persist_buffers.digest(hasher);
        self.design.digest(hasher);
        hasher.write_u64(self.observers.event_count());
        hasher.write_u64(self.transactions.count());
    }

    /// Counters start again from zero; state stays.
    pub fn reset_stats(&mut self, now: Cycle) {
        self.caches.reset_stats();
        self.interconnect.reset_stats();
        self.memories.reset_stats();
        self.persist_buffers.reset_stats();
        self.line_locks.reset_stats();
        self.block_counts.reset();
        self.filters.reset_stats();
        self.transactions.reset_stats(now);
        self.design.reset_stats();
        self.observers.region(now, true);
    }

    /// The region of interest has ended, and its counters were read.
    pub(crate) fn region_ends(&mut self, now: Cycle) {
        self.observers.region(now, false);
    }

    /// Entries in use of the write queue of a controller of persistent memory.
    pub fn write_queue_entries(&self, controller: u16) -> u32 {
        let queue = self.memories.occupancy(controller);
        queue.held + queue.ordinary
    }

    /// Entries in use of structures of the design, by the name of the structure.
    pub fn design_occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.design.occupancies(report);
    }

    /// The counters of caches, controllers, transactions and the design.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.caches.stats(&mut stats);
        self.memories.stats(&mut stats);
        for (kind, n) in EventKind::ALL.iter().zip(self.event_kinds()) {
            stats.count(format!("events.{}", kind.name()), n, "Persist events of this kind since the start");
        }
        self.interconnect.stats(&mut stats);
        self.persist_buffers.stats(&mut stats);
        self.line_locks.stats(&mut stats);
        self.block_counts.stats(&mut stats);
        self.filters.stats(&mut stats);
        self.design.stats(&mut stats);
        stats
    }

    /// Bytes accepted by the media of persistent memory since the last reset, in the order of `Cause::ALL`.
    pub fn media_write_bytes(&self) -> [u64; 5] {
        self.memories.media_write_bytes()
    }

    /// Lines that all media read and wrote since the last reset.
    pub(crate) fn media_accesses(&self) -> [u64; 2] {
        self.memories.media_accesses()
    }

    /// The structures of the design that requests may wait for, by their number.
    pub fn structures(&self) -> &'static [&'static str] {
        self.design.structures()
    }

    /// Counters of transactions since the last reset.
    pub fn tx_stats(&self) -> TxStats {
        let stats = self.transactions.stats();
        if !self.design.has(Hooks::HARDWARE_TX) {
            return stats;
        }
        let HtmStats { holding_commits, aborted_by } = self.transactions.htm_stats();
        TxStats {
            htm_committed: Some(holding_commits),
            sgl_committed: Some(stats.committed - holding_commits.min(stats.committed)),
            aborted_by: Some(aborted_by),
            ..stats
        }
    }

    /// Latencies of committed transactions in cycles since the last reset.
    pub(crate) fn tx_latency(&self) -> &Latency {
        self.transactions.latency()
    }

    /// Latencies of committed transactions in cycles since the last reset, by phase.
    pub(crate) fn tx_phases(&self) -> &PhaseLatencies {
        self.transactions.phases()
    }
}
