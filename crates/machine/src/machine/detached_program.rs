//! A program moves from one machine to another: from a snapshot into a machine with another design or other parameters,
//! or from functional execution into a machine.
//!
//! A moved program keeps the process with its files and threads, registers, both memories as they are newest, the guest's
//! clock, the number of instructions, the declared data range, and, if wanted, which lines the caches cached and what the
//! branch predictors learnt. It loses anything in flight (there is none: the old machine drains), the
//! design's structures and regions (recovery puts their contents home), reservations, statistics, persist events.

use super::kept_call_stacks::KeptCallStacks;
use super::scheduler::{DetachedThreads, DrainReason, Scheduler};
use super::{Machine, new_core};
use crate::parts::caches::CachedLines;
use crate::setup::pauses::Pauses;
use crate::setup::plan::Plan;
use crate::setup::program::memory_map;
use crate::setup::request::Prepared;
use crate::statistics::filter_statistics::FilterStatistics;
use crate::statistics::measurements::Measurements;
use crate::system::System;
use durasim_core::branch::{Predictor, PredictorConfig};
use durasim_core::tlb::{CachedPages, Tlbs};
use durasim_core::{Core, CoreConfig};
use durasim_isa::Hart;
use durasim_kernel::{Output, Process};
use durasim_types::{Clock, ConfigError, CoreId, Cycle, DataRange, Error, Pages, PhysAddr, Picos};

/// End of a functional phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotPoint {
    /// At the snapshot point of this number.
    Number(u64),
    /// At the begin of the region of interest.
    Roi,
}

impl SnapshotPoint {
    /// The mark of an option's value.
    pub(crate) fn parse(text: &str) -> Result<SnapshotPoint, ConfigError> {
        match text.parse() {
            _ if text == "roi" => Ok(SnapshotPoint::Roi),
            Ok(number) => Ok(SnapshotPoint::Number(number)),
            Err(_) => Err(ConfigError::new(
                "fast_forward",
                format!("'{text}' is neither 'roi' nor the number of a snapshot point"),
            )),
        }
    }
}

/// A program between two machines.
pub(crate) struct DetachedProgram {
    pub process: Process,
    pub dram: Pages,
    pub pmem: Pages,
    /// Times are those of `clock`.
    pub threads: DetachedThreads,
    pub clock: Clock,
    pub now_ps: Picos,
    /// Instructions by core.
    pub instructions: Vec<u64>,
    /// Predictors by core; empty if they were not trained.
    pub predictors: Vec<Predictor>,
    pub predictor_config: PredictorConfig,
    pub cached: CachedLines,
    /// Pages in the TLBs of each core; empty if there were none.
    pub cached_pages: Vec<CachedPages>,
    pub data_base: Option<PhysAddr>,
    pub data_range: Option<DataRange>,
    /// Transactions so far: their numbers are not used again.
    pub tx_count: u64,
    /// Contents of the filters of checked accesses, for their counters.
    pub filter_statistics: FilterStatistics,
}

fn refuse(problem: impl Into<String>) -> Error {
    ConfigError::new("from", problem).into()
}

impl Machine {
    /// Quiesces the machine and takes the program out of it.
    ///
    /// # Errors
    /// A program that cannot be moved right now, and its faults on the way.
    pub(crate) fn detach(mut self, plan: &Plan, output: &mut dyn Output) -> Result<DetachedProgram, Error> {
        if self.measure.roi_begin.is_some() {
            return Err(refuse(
                "the snapshot was taken in or after the region of interest, whose counters belong to the old machine: \
                 another machine can only continue a snapshot from before it",
            ));
        }
        self.quiesce_all_cores(output)?;
        if self.system.has_open_transactions() {
            return Err(refuse(
                "a transaction is open in the snapshot: another machine can only continue a program between its \
                 transactions",
            ));
        }
        let at = self.cycle();
        let clock = self.system.geometry().clock;
        let cached = self.system.cached_lines();
        let contents = self.shut_down(plan)?;
        let (data_range, tx_count) = self.system.declared();
        Ok(DetachedProgram {
            dram: self.system.quiesced_dram(),
            pmem: contents.pages,
            threads: self.scheduler.take_all(),
            clock,
            now_ps: clock.picos(at),
            instructions: self.cores.iter().map(Core::instructions).collect(),
            predictors: self.cores.iter().map(|core| core.predictor().clone()).collect(),
            predictor_config: self.predictor_config(),
            cached,
            cached_pages: self.cores.iter().filter_map(Core::tlbs).map(Tlbs::cached_pages).collect(),
            data_base: self.measure.data_base,
            data_range,
            tx_count,
            filter_statistics: self.system.filter_statistics().clone(),
            process: self.process,
        })
    }

    fn predictor_config(&self) -> PredictorConfig {
        self.cores[0].config().predictor.clone()
    }

    /// All threads leave their cores, once what they have begun is done.
    fn quiesce_all_cores(&mut self, output: &mut dyn Output) -> Result<(), Error> {
        self.interrupted_step = None;
        for index in 0..self.cores.len() {
            if self.scheduler.running(CoreId(index as u16)).is_some() {
                self.drain_reasons[index] = Some(DrainReason::Switch);
                self.cores[index].make_empty();
            }
        }
        while (0..self.cores.len()).any(|index| self.scheduler.running(CoreId(index as u16)).is_some()) {
            if self.take_last_step(output)?.is_some() {
                return Err(refuse("the program ends while its machine drains"));
            }
        }
        Ok(())
    }

    /// The snapshot point up to which a functional phase went counts as passed just now.
    pub(crate) fn pass_snapshot_point(&mut self, mark: SnapshotPoint) {
        match mark {
            SnapshotPoint::Number(number) => self.measure.mark = Some(number),
            SnapshotPoint::Roi => self.begin_region(self.now()),
        }
    }
}

impl DetachedProgram {
    /// A new machine with the program on it. Without `warm` its caches are empty and its predictors know nothing.
    ///
    /// # Errors
    /// A machine that the program does not fit into.
    pub(crate) fn attach(mut self, prepared: &Prepared, warm: bool) -> Result<Machine, Error> {
        let Prepared { config, plan, program, .. } = prepared;
        if self.instructions.len() != usize::from(config.hardware_threads()) {
            let problem = format!(
                "the program was started on a machine with {} cores and cannot continue with {}",
                self.instructions.len(),
                config.hardware_threads()
            );
            return Err(refuse(problem));
        }
        self.process.move_to(memory_map(config, plan))?;
        let mut system = System::new(config, plan)?;
        system.seed(program.seed);
        system.load_memories(&self.dram, &self.pmem);
        let clock = system.geometry().clock;
        let start = clock.cycles(self.now_ps);
        system.resume_at(start, self.instructions.iter().sum(), (self.data_range, self.tx_count));
        system.put_filter_statistics(self.filter_statistics);
        for copy in self.process.space().private_copies() {
            system.page_copied(copy.frame, copy.original);
        }
        if warm {
            system.warm(&self.cached);
        } else {
            self.predictors.clear();
            self.cached_pages.clear();
        }
        let mut measure = Measurements::new(config.hardware_threads());
        measure.data_base = self.data_base;
        let mut predictors = self.predictors.into_iter();
        let mut cached_pages = self.cached_pages.iter();
        let cores = (0..).zip(&self.instructions).map(|(id, &instructions)| {
            let mut core = new_core(config, plan, CoreId(id), Hart::default(), program.seed);
            if let (Some(tlbs), Some(pages)) = (core.tlbs_mut(), cached_pages.next()) {
                tlbs.warm(pages);
            }
            core.resume_at(start, instructions, predictors.next().map(|p| (&self.predictor_config, p)));
            core
        });
        let cores = cores.collect();
        let elsewhere = self.clock;
        let here = |cycle| clock.cycles(elsewhere.picos(cycle));
        let scheduler = Scheduler::resumed(self.threads, config.core.time_slice_cycles, start, here);
        let CoreConfig { context_switch_cycles, .. } = config.core;
        Ok(Machine {
            system,
            process: self.process,
            cores,
            measure,
            scheduler,
            pauses: Pauses::new(config.pauses, program.seed, start),
            drain_reasons: vec![None; config.hardware_threads().into()],
            interrupted_step: None,
            stop_at_snapshot_point: None,
            stops_after_region: false,
            cycles_max: Cycle::MAX,
            context_switch_cycles,
            skew_cycles: config.skew_cycles,
            physical_cores: config.cores.into(),
            executes_singly: false,
            inserted: program.inserted.clone(),
            call_stacks: KeptCallStacks::default(),
        })
    }
}
