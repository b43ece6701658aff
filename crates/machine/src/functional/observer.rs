//! Observers of functional execution: none, caches and branch predictors that
//! are trained, or a recorder of what transactions write.

use super::tags::TagCaches;
use crate::parts::caches::CachedLines;
use crate::setup::config::Inclusion;
use crate::setup::request::Prepared;
use durasim_core::branch::{BranchKind, Predictor};
use durasim_core::tlb::{CachedPages, Tlbs};
use durasim_isa::{Class, Inst, Marker};
use durasim_kernel::ThreadId;
use durasim_types::{PAGE_BYTES, PhysAddr};
use std::ops::Range;

/// No page of an address space.
const NO_PAGE: u64 = u64::MAX;

/// Receiver of what the running thread does, in program order.
pub(super) trait ExecutionObserver {
    /// Whether anything is to be reported at all.
    const SEES: bool;
    /// This thread runs from now on.
    fn thread(&mut self, _thread: ThreadId) {}
    /// The thread runs on this core from now on.
    fn assign_core(&mut self, _core: usize) {}
    /// A guest address is translated, of instructions or data: whether that takes a walk of the page table.
    fn walks(&mut self, _addr: u64, _is_code: bool) -> bool {
        false
    }
    /// Mappings of these pages have been removed, moved or lost a right.
    fn shoot_down(&mut self, _pages: &[Range<u64>]) {}
    /// The instruction at `addr` is about to be executed.
    fn fetch(&mut self, _addr: PhysAddr) {}
    /// Data at `addr` is used.
    fn data(&mut self, _addr: PhysAddr, _write: bool) {}
    /// `inst` at `pc`, the last of a block, has led to `target`, or to the instruction after it.
    fn flow(&mut self, _inst: Inst, _pc: u64, _target: Option<u64>) {}
    /// A marker was executed, the instruction of this number.
    fn marker(&mut self, _marker: Marker, _instructions: u64) {}
}

/// The trained state.
#[derive(Default)]
pub(super) struct TrainedState {
    pub(super) cached: CachedLines,
    /// By core; empty without TLBs, or if nothing was learnt.
    pub(super) cached_pages: Vec<CachedPages>,
    /// By core; empty if nothing was learnt.
    pub(super) predictors: Vec<Predictor>,
}

/// An observer that is trained by execution.
pub(super) trait TrainingObserver: ExecutionObserver {
    /// Lines in caches, translations in TLBs, and trained predictors.
    fn trained_state(self) -> TrainedState;
}

/// No observer.
pub(super) struct NoObserver;

impl ExecutionObserver for NoObserver {
    const SEES: bool = false;
}

impl TrainingObserver for NoObserver {
    fn trained_state(self) -> TrainedState {
        TrainedState::default()
    }
}

/// State of the caches and branch predictors of a machine after this execution.
pub(super) struct WarmingObserver {
    /// The hardware thread that runs.
    thread: usize,
    cores: usize,
    caches: TagCaches,
    predictors: Vec<Predictor>,
    /// Empty on a machine without TLBs.
    tlbs: Vec<Tlbs>,
    /// The last pages of data and instructions of each core: used again, they change no order.
    last_pages: Vec<[u64; 2]>,
}

impl WarmingObserver {
    pub(super) fn new(prepared: &Prepared) -> Self {
        let (config, geometry) = (&prepared.config, &prepared.plan.geometry);
        let (cores, threads) = (usize::from(config.cores), usize::from(config.hardware_threads()));
        let caches = TagCaches::new(
            cores,
            config.interconnect.inclusion == Inclusion::Inclusive,
            config.l1i.geometry(),
            geometry.l1d,
            geometry.l2,
            geometry.llc,
        );
        let predictors = (0..threads).map(|_| Predictor::new(&config.core.predictor)).collect();
        let tlbs = config.tlb.iter().flat_map(|tlb| (0..threads).map(|_| Tlbs::new(tlb, 0, 0))).collect();
        WarmingObserver { thread: 0, cores, caches, predictors, tlbs, last_pages: vec![[NO_PAGE; 2]; threads] }
    }
}

impl ExecutionObserver for WarmingObserver {
    const SEES: bool = true;

    fn assign_core(&mut self, core: usize) {
        self.thread = core;
    }

    #[inline(always)]
    fn walks(&mut self, addr: u64, is_code: bool) -> bool {
        let Some(tlbs) = self.tlbs.get_mut(self.thread) else { return false };
        let last = &mut self.last_pages[self.thread][usize::from(is_code)];
        std::mem::replace(last, addr / PAGE_BYTES) != addr / PAGE_BYTES && tlbs.misses(addr, is_code)
    }

    fn shoot_down(&mut self, pages: &[Range<u64>]) {
        self.tlbs.iter_mut().for_each(|tlbs| tlbs.shoot_down(pages));
        self.last_pages.fill([NO_PAGE; 2]);
    }

    #[inline(always)]
    fn fetch(&mut self, addr: PhysAddr) {
        self.caches.fetch(self.thread % self.cores, addr.line());
    }

    #[inline(always)]
    fn data(&mut self, addr: PhysAddr, write: bool) {
        self.caches.data(self.thread % self.cores, addr.line(), write);
    }

    #[inline]
    fn flow(&mut self, inst: Inst, pc: u64, target: Option<u64>) {
        // Entries of handlers and returns from them are not predicted.
        if matches!(inst.class(), Class::Branch | Class::Jump | Class::IndirectJump) {
            let next_pc = pc + u64::from(inst.len);
            let kind = BranchKind::of(inst);
            let predictor = &mut self.predictors[self.thread];
            predictor.predict_and_train(pc, kind, target.is_some(), target.unwrap_or(next_pc), next_pc);
        }
    }
}

impl TrainingObserver for WarmingObserver {
    fn trained_state(self) -> TrainedState {
        TrainedState {
            cached: self.caches.cached_lines(),
            cached_pages: self.tlbs.iter().map(Tlbs::cached_pages).collect(),
            predictors: self.predictors,
        }
    }
}
