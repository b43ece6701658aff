//! Runs and crash campaigns: a JSON request in, a JSON result out.

use crate::errors::to_python;
use crate::supervise::{Line, supervise};
use durasim_crash::CrashRequest;
use durasim_designs::ROWS;
use durasim_guest::{Output, Stream};
use durasim_machine::RunRequest;
use durasim_types::{ConfigError, Error};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::de::DeserializeOwned;
use std::sync::atomic::Ordering;

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(crash, module)?)?;
    module.add_function(wrap_pyfunction!(judge_history, module)?)
}

/// What the guest wrote, on its way to the interpreter.
type Written = (Stream, Vec<u8>);

struct Forward<'a, 'b>(&'a Line<'b, Written>);

impl Output for Forward<'_, '_> {
    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        // Whether anybody still listens is asked by `stopped`.
        self.0.send((stream, bytes.to_vec()));
    }

    fn stopped(&self) -> bool {
        self.0.stop().load(Ordering::Relaxed)
    }
}

/// Runs a program. `output` is called with the name of a stream and the bytes the guest wrote to it.
#[pyfunction]
fn run(py: Python<'_>, request: &str, output: &Bound<'_, PyAny>) -> PyResult<String> {
    let request: RunRequest = parse(py, request)?;
    let result = supervise(
        py,
        |line| durasim_machine::run(&request, ROWS, &mut Forward(line)),
        |py, (stream, bytes): Written| {
            let name = match stream {
                Stream::Stdout => "stdout",
                Stream::Stderr => "stderr",
            };
            output.call1((name, PyBytes::new(py, &bytes)))?;
            Ok(true)
        },
    )?;
    let result = result.map_err(|error| to_python(py, &error))?;
    Ok(serde_json::to_string(&result).expect("a result is plain data"))
}

pub(crate) fn parse<T: DeserializeOwned>(py: Python<'_>, request: &str) -> PyResult<T> {
    serde_json::from_str(request).map_err(|error| {
        let refusal: Error = ConfigError::new("request", error.to_string()).into();
        to_python(py, &refusal)
    })
}

/// Crashes a run. `progress` is called with the numbers of trials done and to do; False ends the campaign early.
#[pyfunction]
#[pyo3(signature = (request, progress = None))]
fn crash(py: Python<'_>, request: &str, progress: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
    let request: CrashRequest = parse(py, request)?;
    let result = supervise(
        py,
        |line| durasim_crash::crash(&request, ROWS, line.stop(), &mut |done, total| line.send((done, total))),
        |_, (done, total): (u64, u64)| match progress {
            Some(progress) => progress.call1((done, total))?.extract(),
            None => Ok(true),
        },
    )?;
    let result = result.map_err(|error| to_python(py, &error))?;
    Ok(serde_json::to_string(&result).expect("a result is plain data"))
}

/// Crashes a run at some persist events and judges each by the history of operations alone. The request is that of
/// `crash`, with a program built with a history whose check dumps.
#[pyfunction]
fn judge_history(py: Python<'_>, request: &str, points: u64) -> PyResult<String> {
    let request: CrashRequest = parse(py, request)?;
    let report = py.detach(|| durasim_crash::judge_history(&request, points, ROWS));
    let report = report.map_err(|error| to_python(py, &error))?;
    Ok(serde_json::to_string(&report).expect("a report is plain data"))
}
