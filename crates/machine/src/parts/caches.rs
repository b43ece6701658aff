//! The caches: the arrays of all levels with their MSHRs and buffers, the directory, and the lines in service, which are no victims.

mod copies;
mod directory;
mod filter_buffers;
mod leaving;
mod llc_ports;
mod older;
#[cfg(test)]
mod tests;
mod warm;

pub(crate) use directory::AccessMode;
pub use directory::CoherenceStats;
pub(crate) use leaving::Resident;
pub(crate) use older::{is_older, line_of};
pub(crate) use warm::CachedLines;

use super::counters::cache_stats;
use super::design_port::DesignPort;
use super::level_counts::LevelCounts;
use crate::setup::config::{CacheConfig, Inclusion, MachineConfig};
use durasim_cache::{CacheArray, CacheStats, Directory, Mshrs};
use durasim_contract::{Geometry, LevelId, Levels, LineTag};
use durasim_types::{CoreId, Cycle, LineAddr, Rng, Stats};
use llc_ports::PortBookings;
use std::hash::Hasher;

super::part::part! {
    /// The part of the memory system that holds the caches.
    pub(crate) struct Caches saved as SavedCaches {
        saved {
            l1i: Vec<CacheArray>,
            l1d: Vec<CacheArray>,
            /// The lines of filters beside each L1D; empty on a machine whose design checks no accesses.
            filter_buffers: Vec<CacheArray>,
            /// The first line of the filters in each buffer: BFilter_Base_Addr.
            filter_bases: Vec<Option<LineAddr>>,
            /// Empty on a machine without an L2, as its MSHRs and buffers are.
            l2: Vec<CacheArray>,
            llc: CacheArray,
            directory: Directory,
            coherence_stats: CoherenceStats,
            /// Accesses and misses by level and thread; those for code are among them below the L1I.
            counts: LevelCounts,
            /// The line that each core has reserved by LR.
            reservations: Vec<Option<LineAddr>>,
            l1i_mshrs: Vec<Mshrs>,
            l1d_mshrs: Vec<Mshrs>,
            l2_mshrs: Vec<Mshrs>,
            /// Buffers for dirty lines moving from the L1D and from the L2: they are free again as MSHRs are.
            l1d_write_backs: Vec<Mshrs>,
            l2_write_backs: Vec<Mshrs>,
            llc_mshrs: Mshrs,
            /// The ports of the last level, if accesses may have to wait there.
            llc_ports: Option<PortBookings>,
            /// Lines in service: no victim is chosen among them.
            pinned: Vec<LineAddr>,
        }
        kept {
            levels: Levels,
            /// Two threads of a core share its caches.
            shared_by_threads: bool,
            inclusive: bool,
            request_cycles: Cycle,
            response_cycles: Cycle,
            snoop_cycles: Cycle,
            /// Cycles of a write into the last level.
            llc_write_cycles: Cycle,
            view_tags: Vec<LineTag>,
            view_ranks: Vec<u32>,
        }
    }
}

impl Caches {
    /// `filter_look_up` are the cycles of a look into the lines of filters, on a machine whose design checks accesses.
    pub(crate) fn new(config: &MachineConfig, geometry: &Geometry, filter_look_up: Option<Cycle>) -> Self {
        let cores = config.cores as usize;
        let arrays = |level, of: &CacheConfig| -> Vec<CacheArray> {
            (0..cores).map(|_| CacheArray::with_replacement(level, of.replacement, 0)).collect()
        };
        let new = if config.threads_per_core > 1 { Mshrs::shared_by_threads } else { Mshrs::new };
        let mshrs = |n: u32| (0..cores).map(|_| new(n as usize)).collect::<Vec<_>>();
        let ports = geometry.llc_ports;
        let links = &config.interconnect;
        let l2 = geometry.l2.zip(config.l2.as_ref());
        let levels = geometry.levels();
        let filter_buffers: Vec<CacheArray> =
            filter_look_up.iter().flat_map(|&cycles| (0..cores).map(move |_| filter_buffers::buffer(cycles))).collect();
        let mut caches = Caches {
            l1i: arrays(config.l1i.geometry(), &config.l1i),
            l1d: arrays(geometry.l1d, &config.l1d),
            filter_bases: vec![None; filter_buffers.len()],
            levels: if filter_buffers.is_empty() { levels } else { levels.with_filter_buffer() },
            filter_buffers,
            l2: l2.map_or_else(Vec::new, |(level, of)| arrays(level, of)),
            llc: CacheArray::with_replacement(geometry.llc, config.llc.replacement, 0),
            directory: Directory::new(config.cores),
            coherence_stats: CoherenceStats::default(),
            counts: LevelCounts::new(config.hardware_threads().into()),
            reservations: vec![None; config.hardware_threads().into()],
            l1i_mshrs: mshrs(config.l1i.mshrs),
            l1d_mshrs: mshrs(config.l1d.mshrs),
            l2_mshrs: l2.map_or_else(Vec::new, |(_, of)| mshrs(of.mshrs)),
            l1d_write_backs: mshrs(links.l1d_write_back_buffers),
            l2_write_backs: l2.map_or_else(Vec::new, |_| mshrs(links.l2_write_back_buffers())),
            llc_mshrs: Mshrs::new(config.llc.mshrs as usize),
            llc_ports: ports.map(PortBookings::new),
            pinned: Vec::new(),
            shared_by_threads: config.threads_per_core > 1,
            inclusive: links.inclusion == Inclusion::Inclusive,
            request_cycles: links.request_cycles,
            response_cycles: links.response_cycles,
            snoop_cycles: links.snoop_cycles,
            llc_write_cycles: ports.map_or(geometry.llc.latency_cycles, |ports| ports.write_latency_cycles),
            view_tags: Vec::new(),
            view_ranks: Vec::new(),
        };
        caches.seed(0);
        caches
    }

    /// A copy with the same lines and times. Large arrays are shared until one side changes them.
    pub(crate) fn fork(&mut self) -> Self {
        let forked = |arrays: &mut [CacheArray]| arrays.iter_mut().map(CacheArray::fork).collect::<Vec<_>>();
        Caches {
            l1i: forked(&mut self.l1i),
            l1d: forked(&mut self.l1d),
            filter_buffers: forked(&mut self.filter_buffers),
            filter_bases: self.filter_bases.clone(),
            l2: forked(&mut self.l2),
            llc: self.llc.fork(),
            directory: self.directory.clone(),
            coherence_stats: self.coherence_stats,
            counts: self.counts.clone(),
            reservations: self.reservations.clone(),
            l1i_mshrs: self.l1i_mshrs.clone(),
            l1d_mshrs: self.l1d_mshrs.clone(),
            l2_mshrs: self.l2_mshrs.clone(),
            l1d_write_backs: self.l1d_write_backs.clone(),
            l2_write_backs: self.l2_write_backs.clone(),
            llc_mshrs: self.llc_mshrs.clone(),
            llc_ports: self.llc_ports.clone(),
            pinned: self.pinned.clone(),
            levels: self.levels,
            shared_by_threads: self.shared_by_threads,
            inclusive: self.inclusive,
            request_cycles: self.request_cycles,
            response_cycles: self.response_cycles,
            snoop_cycles: self.snoop_cycles,
            llc_write_cycles: self.llc_write_cycles,
            view_tags: Vec::new(),
            view_ranks: Vec::new(),
        }
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut CacheArray> {
        let private = self.l1i.iter_mut().chain(&mut self.l1d).chain(&mut self.l2);
        private.chain([&mut self.llc]).chain(&mut self.filter_buffers)
    }

    /// Each cache that chooses at random starts a sequence of its own from the seed of the run.
    pub(crate) fn seed(&mut self, seed: u64) {
        let mut seeds = Rng::new(seed);
        for array in self.all_mut() {
            array.reseed(seeds.next_u64());
        }
    }

    /// The place of the private caches that a hardware thread uses: those of its core, which the second threads of cores
    /// follow in their order.
    #[inline(always)]
    fn place(&self, thread: CoreId) -> usize {
        let (thread, cores) = (usize::from(thread.0), self.l1d.len());
        if thread < cores { thread } else { thread - cores }
    }

    /// The first hardware thread of the core of this one. Its number is that of the core in the directory and wherever lines are
    /// held.
    #[inline]
    pub(crate) fn core_of(&self, thread: CoreId) -> CoreId {
        CoreId(self.place(thread) as u16)
    }

    /// Whether two threads of a core use the same caches.
    #[inline]
    pub(crate) fn are_shared_by_threads(&self) -> bool {
        self.shared_by_threads
    }

    #[inline]
    pub(crate) fn l1i_mut(&mut self, core: CoreId) -> &mut CacheArray {
        let place = self.place(core);
        &mut self.l1i[place]
    }

    #[inline]
    pub(crate) fn l1d(&self, core: CoreId) -> &CacheArray {
        let place = self.place(core);
        &self.l1d[place]
    }

    #[inline]
    pub(crate) fn l1d_mut(&mut self, core: CoreId) -> &mut CacheArray {
        let place = self.place(core);
        &mut self.l1d[place]
    }

    #[inline]
    pub(crate) fn llc(&self) -> &CacheArray {
        &self.llc
    }

    #[inline]
    pub(crate) fn llc_mut(&mut self) -> &mut CacheArray {
        &mut self.llc
    }

    /// The array of a level that a core uses.
    #[inline]
    pub(crate) fn array(&self, level: LevelId, core: CoreId) -> &CacheArray {
        let place = self.place(core);
        match level {
            LevelId::FilterBuffer => &self.filter_buffers[place],
            LevelId::L1d => &self.l1d[place],
            LevelId::L2 => &self.l2[place],
            LevelId::Llc => &self.llc,
        }
    }

    #[inline]
    pub(crate) fn array_mut(&mut self, level: LevelId, core: CoreId) -> &mut CacheArray {
        let place = self.place(core);
        match level {
            LevelId::FilterBuffer => &mut self.filter_buffers[place],
            LevelId::L1d => &mut self.l1d[place],
            LevelId::L2 => &mut self.l2[place],
            LevelId::Llc => &mut self.llc,
        }
    }

    pub(crate) fn l1i_mshrs(&mut self, core: CoreId) -> &mut Mshrs {
        let place = self.place(core);
        &mut self.l1i_mshrs[place]
    }

    /// The MSHRs of a level that a core uses.
    pub(crate) fn mshrs(&mut self, level: LevelId, core: CoreId) -> &mut Mshrs {
        let place = self.place(core);
        match level {
            LevelId::FilterBuffer | LevelId::L1d => &mut self.l1d_mshrs[place],
            LevelId::L2 => &mut self.l2_mshrs[place],
            LevelId::Llc => &mut self.llc_mshrs,
        }
    }

    pub(crate) fn cores(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.l1d.len() as u16).map(CoreId)
    }

    /// The levels that there are.
    #[inline]
    pub(crate) fn levels(&self) -> Levels {
        self.levels
    }

    /// Whether there is one core only, which owns everything. It may have two threads.
    #[inline]
    pub(crate) fn is_single_core(&self) -> bool {
        self.l1d.len() == 1
    }

    /// Whether each level holds what the levels above it hold.
    #[inline]
    pub(crate) fn inclusive(&self) -> bool {
        self.inclusive
    }

    /// Cycles of a request moving from a level to the next one.
    #[inline]
    pub(crate) fn request_cycles(&self) -> Cycle {
        self.request_cycles
    }

    /// Cycles of a line moving from a level to the one above it.
    #[inline]
    pub(crate) fn response_cycles(&self) -> Cycle {
        self.response_cycles
    }

    /// Cycles of an answer moving through all levels up to a core.
    #[inline]
    pub(crate) fn way_up(&self) -> Cycle {
        self.levels.count() * self.response_cycles
    }

    /// Cycles of a line moving from the last level up to a core.
    #[inline]
    pub(crate) fn way_up_from_llc(&self) -> Cycle {
        (self.levels.count() - 1) * self.response_cycles
    }

    /// Cycles of a request of `core` from its L1D through the tags of all levels.
    pub(crate) fn way_down(&self, core: CoreId) -> Cycle {
        let latency = |&level: &LevelId| self.array(level, core).geometry().tag_latency_cycles;
        self.levels.all().iter().map(latency).sum::<Cycle>() + (self.levels.count() - 1) * self.request_cycles
    }

    /// Cycles of a look at the caches of another core.
    pub(crate) fn snoop_cycles(&self) -> Cycle {
        self.snoop_cycles
    }

    /// A line is in service.
    #[inline]
    pub(crate) fn pin(&mut self, line: LineAddr) {
        self.pinned.push(line);
    }

    /// The line that was pinned last is in service no more.
    #[inline]
    pub(crate) fn unpin(&mut self) {
        self.pinned.pop();
    }

    /// Feeds the levels with data and the directory into a digest.
    pub(crate) fn digest(&self, hasher: &mut dyn Hasher, design: &DesignPort) {
        for array in self.l1d.iter().chain(&self.l2).chain([&self.llc]).chain(&self.filter_buffers) {
            array.digest(hasher, |tag| design.live(tag));
        }
        self.directory.digest(hasher);
    }

    #[inline]
    pub(crate) fn count_l1d(&mut self, core: CoreId) {
        self.counts.access(core, LevelId::L1d);
    }

    #[inline]
    pub(crate) fn count_l1d_miss(&mut self, core: CoreId) {
        self.counts.miss(core, LevelId::L1d);
    }

    /// Another thread of the program comes to a hardware thread.
    pub(crate) fn assign_thread(&mut self, core: CoreId, thread: u32) {
        self.counts.assign(core, thread);
    }

    /// A lookup in a level below the L1D.
    pub(crate) fn count_lookup(&mut self, level: LevelId, core: CoreId, is_miss: bool) {
        self.counts.access(core, level);
        if is_miss {
            self.counts.miss(core, level);
        }
    }

    pub(crate) fn reset_stats(&mut self) {
        for array in self.all_mut() {
            array.stats = CacheStats::default();
        }
        self.coherence_stats = CoherenceStats::default();
        self.counts.reset();
        if let Some(ports) = &mut self.llc_ports {
            ports.reset_stats();
        }
    }

    /// Counters of the levels and of the directory.
    pub(crate) fn stats(&self, stats: &mut Stats) {
        let by_thread = |level| Some(self.counts.sum(level));
        let levels = [
            ("l1i", &self.l1i[..], None),
            ("l1d", &self.l1d, by_thread(LevelId::L1d)),
            ("l2", &self.l2, by_thread(LevelId::L2)),
            ("llc", std::slice::from_ref(&self.llc), by_thread(LevelId::Llc)),
            ("filter_buffer", &self.filter_buffers, None),
        ];
        for (name, arrays, by_thread) in levels.into_iter().filter(|(_, arrays, _)| !arrays.is_empty()) {
            cache_stats(stats, name, arrays, by_thread);
        }
        self.counts.stats(stats);
        if let Some(ports) = &self.llc_ports {
            ports.stats(stats);
        }
        self.coherence_stats.stats(stats);
    }
}
