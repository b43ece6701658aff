//! From a request to a result.

use super::ending::{exit_code, memory_exceeded, save_pool};
use super::result::{Host, Region, RunEnd, RunResult};
use super::session::Session;
use crate::functional::{FunctionalEnding, TxProfile, run_functionally};
use crate::machine::Ending;
use crate::setup::budget::{Exceeded, Unfinished};
use crate::setup::request::{Prepared, RunRequest, prepare};
use crate::statistics::metrics::Metrics;
use durasim_contract::Variant;
use durasim_kernel::Output;
use durasim_types::{ConfigError, Error};
use std::time::Instant;

/// Runs a request to its end.
///
/// # Errors
/// Refusals before cycle 0, faults of the guest, a stuck machine, and host files that cannot be written.
pub fn run(request: &RunRequest, registry: &[Variant], output: &mut dyn Output) -> Result<RunResult, Error> {
    let prepared = prepare(request, registry)?;
    if request.functional {
        return run_flat(request, &prepared, output);
    }
    let mut session = Session::start(request, prepared, registry, output)?;
    let mut ending = session.run(request.snapshot_at, request.max_instructions, output)?;
    if let (Some(mark), Some(path)) = (request.snapshot_at, &request.snapshot) {
        if ending != Ending::SnapshotPoint {
            let problem = format!("the program did not reach the snapshot point {mark}: no snapshot was written");
            return Err(ConfigError::new("snapshot_at", problem).into());
        }
        session.save(Some(mark))?.write(path)?;
        ending = session.run(None, request.max_instructions, output)?;
    }
    session.finish(&ending)
}

/// Runs a request functionally to its end, and returns what its transactions write, for any design.
///
/// # Errors
/// Refusals before the first instruction, faults of the guest, and a program that fails.
pub fn profile(request: &RunRequest, registry: &[Variant], output: &mut dyn Output) -> Result<TxProfile, Error> {
    crate::functional::profile(&prepare(request, registry)?, output)
}

fn run_flat(request: &RunRequest, prepared: &Prepared, output: &mut dyn Output) -> Result<RunResult, Error> {
    let started = Instant::now();
    let budget = request.budget();
    let FunctionalEnding { exit_code, unfinished, instructions, roi, pool, .. } =
        run_functionally(&prepared.config, &prepared.plan, &prepared.program, budget, output)?;
    if let Some(Unfinished { exceeded: Exceeded::Memory, pc }) = unfinished {
        return Err(memory_exceeded(request, pc));
    }
    let ending = exit_code.map_or(Ending::InstructionLimit, Ending::Exited);
    let guest_exit_code = self::exit_code(&ending, request)?;
    let mut digest = durasim_types::Digest::default();
    pool.pages.digest(&mut digest);
    let region = |instructions| Region { instructions, cycles: 0, ipc: 0.0 };
    let ops = if roi.ops > 0 { Some(roi.ops) } else { (roi.tx.committed > 0).then_some(roi.tx.committed) };
    let per_tx = (roi.tx.committed > 0).then(|| roi.instructions as f64 / roi.tx.committed as f64);
    if let Some(path) = &request.pool {
        save_pool(path, &pool, prepared.plan.variant.name)?;
    }
    let end = RunEnd {
        ops: ops.or(request.ops),
        roi: region(roi.instructions),
        program: region(instructions),
        throughput_ops_per_us: None,
        metrics: Metrics { tx: roi.tx, instructions_per_transaction: per_tx, ..Metrics::default() },
        stats: roi.stats,
        digest: digest.hex(),
        guest_exit_code,
        persistence: None,
        batches: None,
        host: Host::new(instructions, started.elapsed()),
    };
    Ok(RunResult::of(request, prepared, end))
}
