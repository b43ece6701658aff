//! A program that runs again and again on other contents of persistent memory: it is loaded once, and its code is decoded
//! once.

use super::boundaries::BoundaryContents;
use super::bus::FlatBus;
use super::memory::Flat;
use super::observer::NoObserver;
use super::threads::RunQueue;
use super::{FunctionalEnding, ending_of, run_threads};
use crate::setup::budget::Budget;
use crate::setup::config::MachineConfig;
use crate::setup::memory_map::{DRAM_BASE, PMEM_BASE};
use crate::setup::plan::Plan;
use crate::setup::program::{Program, process_config};
use durasim_isa::{BlockCache, Hart};
use durasim_kernel::{Output, PmemPool, Process};
use durasim_types::{Boundary, BoundaryKind, Error, Pages};

/// A program before its first instruction. A clone shares its memory and what was decoded.
#[derive(Clone)]
pub struct LoadedProgram {
    process: Process,
    hart: Hart,
    dram: Pages,
    blocks: BlockCache,
    plan: Plan,
}

impl LoadedProgram {
    /// Loads a program; persistent memory is given to each run. The namespace of `/pmem/` is that of the program's pool.
    ///
    /// # Errors
    /// Refusals before the first instruction.
    pub fn new(config: &MachineConfig, plan: &Plan, program: &Program) -> Result<Self, Error> {
        let files = match &program.pool {
            Some(pool) => pool.files.clone(),
            None => PmemPool::new(plan.geometry.pmem_data_bytes),
        };
        let pmem = Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20);
        let mut memory = Flat::new(Pages::new(DRAM_BASE, config.dram.capacity_mib << 20), pmem);
        let (process, hart) = Process::load(process_config(config, plan, program), files, &mut memory)?;
        Ok(LoadedProgram { process, hart, dram: memory.into_pages().0, blocks: BlockCache::new(), plan: plan.clone() })
    }

    /// Runs it as [`super::run_functionally`] does, no further than `budget`. Nothing of a run is left for the next one but the decoded code.
    ///
    /// # Errors
    /// Faults of the guest.
    pub fn run(&mut self, pmem: Pages, budget: Budget, output: &mut dyn Output) -> Result<FunctionalEnding, Error> {
        self.run_and_keep(None, pmem, budget, output).map(|(ending, _)| ending)
    }

    /// As [`LoadedProgram::run`]; also gives the boundaries of operations that it has passed, each with what persistent memory
    /// contained there. Pages that did not change between them are shared.
    ///
    /// # Errors
    /// Faults of the guest.
    pub fn run_with_boundaries(
        &mut self,
        boundaries: BoundaryKind,
        pmem: Pages,
        budget: Budget,
        output: &mut dyn Output,
    ) -> Result<(FunctionalEnding, Vec<(Boundary, Pages)>), Error> {
        self.run_and_keep(Some(boundaries), pmem, budget, output)
    }

    fn run_and_keep(
        &mut self,
        boundaries: Option<BoundaryKind>,
        pmem: Pages,
        budget: Budget,
        output: &mut dyn Output,
    ) -> Result<(FunctionalEnding, Vec<(Boundary, Pages)>), Error> {
        let memory = Flat::new(self.dram.clone(), pmem);
        let mut bus = FlatBus::new(memory, self.process.fork(), &self.plan, NoObserver);
        bus.boundaries = boundaries.map(BoundaryContents::new);
        let mut queue = RunQueue::new(self.hart.clone());
        let clears = self.blocks.clears();
        let stopped = run_threads(&mut queue, &mut bus, &mut self.blocks, budget, output);
        if self.blocks.clears() != clears {
            // The program changed its code: the next run starts with the old one.
            self.blocks = BlockCache::new();
        }
        let passed = bus.boundaries.take().map_or_else(Vec::new, BoundaryContents::into_passed);
        Ok((ending_of(bus, stopped?), passed))
    }
}
