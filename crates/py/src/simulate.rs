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
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::atomic::Ordering;

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(profile, module)?)?;
    module.add_function(wrap_pyfunction!(crash, module)?)
}

/// What the guest wrote, in flight to the interpreter.
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
    watched(py, output, |line| durasim_machine::run(&request, ROWS, &mut Forward(line)))
}

/// What the transactions of a program write. `output` as for `run`.
#[pyfunction]
fn profile(py: Python<'_>, request: &str, output: &Bound<'_, PyAny>) -> PyResult<String> {
    let request: RunRequest = parse(py, request)?;
    watched(py, output, |line| durasim_machine::profile(&request, ROWS, &mut Forward(line)))
}

/// Does the work while `output` is told what the guest writes; gives its result as JSON.
fn watched<T: Serialize + Send>(
    py: Python<'_>,
    output: &Bound<'_, PyAny>,
    work: impl FnOnce(&Line<'_, Written>) -> Result<T, Error> + Send,
) -> PyResult<String> {
    let result = supervise(py, work, |py, (stream, bytes): Written| {
        let name = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        output.call1((name, PyBytes::new(py, &bytes)))?;
        Ok(true)
    })?;
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
