//! Functions for tests and measurements of snapshots and forks: a run in pieces, and the duration of forks.

use crate::errors::to_python;
use crate::registry::variants;
use crate::simulate::parse;
use durasim_machine::{Captured, Ending, Machine, RunRequest, RunResult, Session, Snapshot, prepare};
use durasim_types::{ConfigError, Error};
use pyo3::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_in_pieces, module)?)?;
    module.add_function(wrap_pyfunction!(time_forks, module)?)
}

#[derive(Serialize)]
struct Pieces {
    result: RunResult,
    /// Output of the guest.
    output: String,
    /// Activities that were in progress at stops, with the number of stops.
    in_progress: BTreeMap<&'static str, u64>,
    /// Number of stops before the end of the program.
    stops: u64,
    /// Digest, exit code and further output of each fork that ran ahead.
    ahead: Vec<(String, i32, String)>,
    /// Bytes of the largest snapshot file.
    snapshot_bytes: usize,
}

/// Runs a program and stops it after each number of instructions. At a stop the run continues with a copy: `how` is "save"
/// (through the bytes of a snapshot), "fork", "ahead" (a fork runs to the end first, then the original continues), or "singly" (the
/// original continues, from then on with one instruction in a step).
#[pyfunction]
fn run_in_pieces(py: Python<'_>, request: &str, stops: Vec<u64>, how: &str) -> PyResult<String> {
    let request: RunRequest = parse(py, request)?;
    let pieces = py.detach(|| pieces(&request, &stops, how)).map_err(|error| to_python(py, &error))?;
    Ok(serde_json::to_string(&pieces).expect("a result is plain data"))
}

fn pieces(request: &RunRequest, stops: &[u64], how: &str) -> Result<Pieces, Error> {
    let mut output = Captured::default();
    let mut session = Session::start(request, prepare(request, variants())?, variants(), &mut output)?;
    let mut in_progress = BTreeMap::new();
    let (mut made, mut ahead, mut snapshot_bytes) = (0, Vec::new(), 0);
    for &stop in stops {
        let ending = session.run(None, Some(stop), &mut output)?;
        if ending != Ending::InstructionLimit {
            let result = session.finish(&ending)?;
            return Ok(Pieces { result, output: output.text(), in_progress, stops: made, ahead, snapshot_bytes });
        }
        made += 1;
        for name in session.machine().system().in_progress() {
            *in_progress.entry(name).or_default() += 1;
        }
        match how {
            "save" => {
                let mut bytes = Vec::new();
                session.save(None)?.encode(&mut bytes).expect("memory takes all bytes");
                snapshot_bytes = snapshot_bytes.max(bytes.len());
                let snapshot = Snapshot::decode("the snapshot", &bytes)?;
                let machine = Machine::restore(&snapshot, session.prepared())?;
                session.replace(machine);
            }
            "fork" => {
                let fork = session.machine().fork();
                session.replace(fork);
            }
            "ahead" => {
                let mut fork = session.machine().fork();
                let mut further = Captured::default();
                let ending = fork.run(None, &mut further)?;
                let Ending::Exited(code) = ending else { unreachable!("nothing else ends this run") };
                ahead.push((fork.digest(), code, further.text()));
            }
            "singly" => session.machine().execute_singly(),
            _ => return Err(ConfigError::new("how", format!("'{how}' is not one of save, fork, ahead, singly")).into()),
        }
    }
    let ending = session.run(None, None, &mut output)?;
    let result = session.finish(&ending)?;
    Ok(Pieces { result, output: output.text(), in_progress, stops: made, ahead, snapshot_bytes })
}

/// Runs a program up to a mark and forks its machine `count` times, each time after it has gone on for `between`
/// instructions. Returns the microseconds of each fork, and the lines that the LLC held.
#[pyfunction]
fn time_forks(py: Python<'_>, request: &str, mark: u64, count: u32, between: u64) -> PyResult<(Vec<f64>, usize)> {
    let request: RunRequest = parse(py, request)?;
    py.detach(|| forks(&request, mark, count, between)).map_err(|error| to_python(py, &error))
}

fn forks(request: &RunRequest, mark: u64, count: u32, between: u64) -> Result<(Vec<f64>, usize), Error> {
    let mut output = Captured::default();
    let mut session = Session::start(request, prepare(request, variants())?, variants(), &mut output)?;
    if session.run(Some(mark), None, &mut output)? != Ending::SnapshotPoint {
        return Err(ConfigError::new("mark", format!("the program did not reach the snapshot point {mark}")).into());
    }
    let mut times = Vec::new();
    for _ in 0..count {
        let stop = session.machine().instructions() + between;
        session.run(None, Some(stop), &mut output)?;
        let started = Instant::now();
        let fork = session.machine().fork();
        times.push(started.elapsed().as_secs_f64() * 1e6);
        drop(fork);
    }
    Ok((times, session.machine().system().llc_lines()))
}
