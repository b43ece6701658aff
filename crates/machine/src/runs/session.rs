//! A run that can be interrupted: started anew, from a snapshot or after a functional phase, continued, saved, and
//! brought to its result.

use super::ending::{blend, exit_code, memory_exceeded, save_pool};
use super::result::{Host, Region, RunEnd, RunResult, ops_of};
use crate::machine::detached_program::SnapshotPoint;
use crate::machine::snapshot::Snapshot;
use crate::machine::{Ending, Machine};
use crate::setup::budget::Budget;
use crate::setup::request::{Prepared, RunRequest};
use crate::statistics::measurements::Moment;
use crate::statistics::persistence::PersistenceRecorder;
use durasim_contract::Variant;
use durasim_kernel::Output;
use durasim_types::{Clock, Error};
use serde_json::json;
use std::time::{Duration, Instant};

/// A run in progress.
pub struct Session {
    request: RunRequest,
    prepared: Prepared,
    machine: Machine,
    /// Wall time of the simulation so far.
    elapsed: Duration,
    /// Instructions that were executed before.
    skipped: u64,
    /// Recorder of the use of persistent memory, if that is to be reported.
    persistence: Option<PersistenceRecorder>,
}

impl Session {
    /// Builds the machine, and brings it to where the run starts.
    ///
    /// # Errors
    /// Refusals before cycle 0, and faults of a functional phase.
    pub fn start(
        request: &RunRequest,
        mut prepared: Prepared,
        registry: &[Variant],
        output: &mut dyn Output,
    ) -> Result<Session, Error> {
        let mut machine = if let Some(path) = &request.from {
            let snapshot = Snapshot::read(path)?;
            snapshot.check_program(&prepared)?;
            prepared.pool_hash = snapshot.about.pool_hash.clone();
            prepared.start = snapshot.about.start.clone();
            prepared.snapshot_hash = snapshot.file_hash().map(str::to_owned);
            if snapshot.fits(&prepared) {
                Machine::restore(&snapshot, &prepared)?
            } else {
                let old = snapshot.prepared(registry, &prepared)?;
                let rest = Machine::restore(&snapshot, &old)?.detach(&old.plan, output)?;
                let about = &snapshot.about;
                prepared.start = Some(json!({
                    "kind": "moved_program", "mark": about.mark, "instructions": about.instructions, "warm": request.warm,
                    "design": about.design, "domain": about.domain, "machine": about.machine.name, "before": about.start,
                }));
                rest.attach(&prepared, request.warm)?
            }
        } else if let Some(text) = &request.fast_forward {
            let mark = SnapshotPoint::parse(text)?;
            let rest = crate::functional::fast_forward(&prepared, mark, request.warm, request.budget(), output)?;
            prepared.start = Some(json!({ "kind": "fast_forward", "mark": text, "warm": request.warm }));
            let mut machine = rest.attach(&prepared, request.warm)?;
            machine.pass_snapshot_point(mark);
            machine
        } else {
            Machine::new(&prepared.config, &prepared.plan, &prepared.program)?
        };
        machine.record_batches(request.batches)?;
        let skipped = machine.instructions();
        let persistence = request.persistence_report.then(PersistenceRecorder::default);
        if let Some(recorder) = &persistence {
            machine.system_mut().keep_journal(Box::new(recorder.clone()));
        }
        Ok(Session { request: request.clone(), prepared, machine, elapsed: Duration::ZERO, skipped, persistence })
    }

    /// The machine.
    pub fn machine(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// The resolved request that it was built from.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The machine as it is now.
    ///
    /// # Errors
    /// Open files of the host that cannot be read.
    pub fn save(&self, mark: Option<u64>) -> Result<Snapshot, Error> {
        self.machine.save(&self.prepared, mark)
    }

    /// Continues with another machine instead, which is one of the same request.
    pub fn replace(&mut self, machine: Machine) {
        self.machine = machine;
    }

    /// Runs up to the snapshot point if one is given, else to the end of the program, for at most `max_instructions`.
    ///
    /// # Errors
    /// Faults of the guest, and a machine that is stuck.
    pub fn run(
        &mut self,
        mark: Option<u64>,
        max_instructions: Option<u64>,
        output: &mut dyn Output,
    ) -> Result<Ending, Error> {
        let started = Instant::now();
        self.machine.stop_at_snapshot_point(mark);
        self.machine.stop_after_region(self.request.stop_after_roi);
        let budget = Budget { instructions: max_instructions.unwrap_or(u64::MAX), ..self.request.budget() };
        let ended = self.machine.run_within_memory(budget, output);
        self.elapsed += started.elapsed();
        ended?.map_err(|unfinished| memory_exceeded(&self.request, unfinished.pc))
    }

    /// The result of a run that has ended.
    ///
    /// # Errors
    /// A program that has not come to its end, and a pool that cannot be written.
    pub fn finish(mut self, ending: &Ending) -> Result<RunResult, Error> {
        let guest_exit_code = exit_code(ending, &self.request)?;
        let (request, prepared, machine) = (&self.request, &self.prepared, &mut self.machine);
        let end = machine.now();
        let (begin, region) = match (machine.measure.roi_begin, machine.measure.roi_end.take()) {
            (Some(begin), Some(region)) => (begin, region),
            (Some(begin), None) => (begin, machine.region_end(end)),
            (None, _) => (Moment::default(), machine.region_end(end)),
        };
        let clock: Clock = machine.system().geometry().clock;
        let roi = Region::between(begin, region.at);
        let ops = ops_of(&region).or(request.ops);
        let microseconds = clock.nanos(roi.cycles) / 1000.0;
        let mut digest = machine.digest();
        if let Some(hash) = &prepared.pool_hash {
            digest = blend(&digest, hash);
        }
        let end = RunEnd {
            ops,
            roi,
            program: Region::between(Moment::default(), end),
            throughput_ops_per_us: ops.filter(|_| microseconds > 0.0).map(|n| n as f64 / microseconds),
            metrics: region.metrics,
            stats: region.stats,
            digest,
            guest_exit_code,
            batches: region.batches,
            persistence: self.persistence.as_ref().map(|report| report.report(&request.elf, &prepared.program.elf)),
            host: Host::new(end.instructions - self.skipped, self.elapsed),
        };
        let result = RunResult::of(request, prepared, end);
        if let Some(path) = &request.pool {
            save_pool(path, &machine.shut_down(&prepared.plan)?, prepared.plan.variant.name)?;
        }
        Ok(result)
    }
}
