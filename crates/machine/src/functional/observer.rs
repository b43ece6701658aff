//! Who looks on while a program runs functionally: nobody, caches and branch predictors that
//! learn, or who wants to know what transactions write.

use super::tags::TagCaches;
use crate::system::CachedLines;
use crate::{Inclusion, Prepared};
use durasim_core::branch::{BranchKind, Predictor};
use durasim_guest::ThreadId;
use durasim_isa::{Class, Inst, Marker};
use durasim_types::PhysAddr;

/// What the running thread does, told in program order.
pub(super) trait ExecutionObserver {
    /// Whether anything is to be told at all.
    const SEES: bool;
    /// This thread runs from now on.
    fn thread(&mut self, _thread: ThreadId) {}
    /// The thread runs on this core from now on.
    fn assign_core(&mut self, _core: usize) {}
    /// The instruction at `addr` is about to be executed.
    fn fetch(&mut self, _addr: PhysAddr) {}
    /// Data at `addr` is used.
    fn data(&mut self, _addr: PhysAddr, _write: bool) {}
    /// `inst` at `pc`, the last of a block, has led to `target`, or to the instruction after it.
    fn flow(&mut self, _inst: Inst, _pc: u64, _target: Option<u64>) {}
    /// A marker was executed, the instruction of this number.
    fn marker(&mut self, _marker: Marker, _instructions: u64) {}
}

/// Who learns from looking on.
pub(super) trait TrainingObserver: ExecutionObserver {
    /// Which lines caches hold and what predictors have learnt.
    fn trained_state(self) -> (CachedLines, Vec<Predictor>);
}

/// Nobody.
pub(super) struct NoObserver;

impl ExecutionObserver for NoObserver {
    const SEES: bool = false;
}

impl TrainingObserver for NoObserver {
    fn trained_state(self) -> (CachedLines, Vec<Predictor>) {
        (CachedLines::default(), Vec::new())
    }
}

/// What caches and branch predictors of a machine would have seen.
pub(super) struct WarmingObserver {
    core: usize,
    caches: TagCaches,
    predictors: Vec<Predictor>,
}

impl WarmingObserver {
    pub(super) fn new(prepared: &Prepared) -> Self {
        let (config, geometry) = (&prepared.config, &prepared.plan.geometry);
        let cores = usize::from(config.cores);
        let caches = TagCaches::new(
            cores,
            config.interconnect.inclusion == Inclusion::Inclusive,
            config.l1i.geometry(),
            geometry.l1d,
            geometry.l2,
            geometry.llc,
        );
        let predictors = (0..cores).map(|_| Predictor::new(&config.core.predictor)).collect();
        WarmingObserver { core: 0, caches, predictors }
    }
}

impl ExecutionObserver for WarmingObserver {
    const SEES: bool = true;

    fn assign_core(&mut self, core: usize) {
        self.core = core;
    }

    #[inline(always)]
    fn fetch(&mut self, addr: PhysAddr) {
        self.caches.fetch(self.core, addr.line());
    }

    #[inline(always)]
    fn data(&mut self, addr: PhysAddr, write: bool) {
        self.caches.data(self.core, addr.line(), write);
    }

    #[inline]
    fn flow(&mut self, inst: Inst, pc: u64, target: Option<u64>) {
        if target.is_some() || inst.class() == Class::Branch {
            let next_pc = pc + u64::from(inst.len);
            let kind = BranchKind::of(inst);
            let predictor = &mut self.predictors[self.core];
            predictor.predict_and_train(pc, kind, target.is_some(), target.unwrap_or(next_pc), next_pc);
        }
    }
}

impl TrainingObserver for WarmingObserver {
    fn trained_state(self) -> (CachedLines, Vec<Predictor>) {
        (self.caches.cached_lines(), self.predictors)
    }
}
