//! Runs and crash campaigns: a JSON request in, a JSON result out.

use crate::errors::to_python;
use crate::registry::variants;
use crate::supervise::{Cancellation, ProgressChannel, supervise};
use durasim_crash::CrashRequest;
use durasim_debugger::Waiting;
use durasim_kernel::{Output, Stream};
use durasim_machine::RunRequest;
use durasim_trace::TraceRequest;
use durasim_types::{ConfigError, Error};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::atomic::Ordering;

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Cancellation>()?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(profile, module)?)?;
    module.add_function(wrap_pyfunction!(crash, module)?)?;
    module.add_function(wrap_pyfunction!(record_run, module)?)?;
    module.add_function(wrap_pyfunction!(debug, module)?)?;
    module.add_function(wrap_pyfunction!(trace, module)?)
}

/// A message from a run to the interpreter.
enum GuestEvent {
    /// Bytes that the guest wrote to a stream.
    Written(Stream, Vec<u8>),
    /// The number of operations that the guest has done.
    Progress(u64),
}

struct Forward<'a, 'b>(&'a ProgressChannel<'b, GuestEvent>);

impl Output for Forward<'_, '_> {
    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        // `stopped` asks whether the interpreter still receives.
        self.0.send(GuestEvent::Written(stream, bytes.to_vec()));
    }

    fn stopped(&self) -> bool {
        self.0.stop().load(Ordering::Relaxed)
    }

    fn progress(&mut self, ops: u64) {
        self.0.send(GuestEvent::Progress(ops));
    }
}

/// Runs a program. `output` is called with the name of a stream and the bytes the guest wrote to it, `progress` now and
/// then with the operations done; a `cancellation` from another thread ends the run as Ctrl-C does on the main thread.
#[pyfunction]
#[pyo3(signature = (request, output, progress = None, cancellation = None))]
fn run(
    py: Python<'_>,
    request: &str,
    output: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
    cancellation: Option<&Cancellation>,
) -> PyResult<String> {
    let request: RunRequest = parse(py, request)?;
    watched(py, output, progress, cancellation, |channel| {
        durasim_machine::run(&request, variants(), &mut Forward(channel))
    })
}

/// The bytes and lines that the transactions of a program write. `output` as for `run`.
#[pyfunction]
fn profile(py: Python<'_>, request: &str, output: &Bound<'_, PyAny>) -> PyResult<String> {
    let request: RunRequest = parse(py, request)?;
    watched(py, output, None, None, |channel| durasim_machine::profile(&request, variants(), &mut Forward(channel)))
}

/// Runs a program and traces a window of the run: the result of the run with the size and the window of the trace, and the trace
/// itself. The other arguments are those of `run`.
#[pyfunction]
#[pyo3(signature = (request, output, progress = None, cancellation = None))]
fn trace<'py>(
    py: Python<'py>,
    request: &str,
    output: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
    cancellation: Option<&Cancellation>,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let request: TraceRequest = parse(py, request)?;
    let traced = watched_result(py, output, progress, cancellation, |channel| {
        durasim_trace::trace(&request, variants(), &mut Forward(channel))
    })?;
    let document = serde_json::to_string(&traced).expect("a result is plain data");
    Ok((document, PyBytes::new(py, &traced.trace)))
}

/// Does the work as [`watched_result`] does, and returns the result as JSON.
fn watched<T: Serialize + Send>(
    py: Python<'_>,
    output: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
    cancellation: Option<&Cancellation>,
    work: impl FnOnce(&ProgressChannel<'_, GuestEvent>) -> Result<T, Error> + Send,
) -> PyResult<String> {
    let result = watched_result(py, output, progress, cancellation, work)?;
    Ok(serde_json::to_string(&result).expect("a result is plain data"))
}

/// Does the work and passes the guest's output to `output` and its operations to `progress`.
fn watched_result<T: Send>(
    py: Python<'_>,
    output: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
    cancellation: Option<&Cancellation>,
    work: impl FnOnce(&ProgressChannel<'_, GuestEvent>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let result = supervise(py, cancellation, work, |py, event: GuestEvent| {
        match (event, progress) {
            (GuestEvent::Written(Stream::Stdout, bytes), _) => output.call1(("stdout", PyBytes::new(py, &bytes)))?,
            (GuestEvent::Written(Stream::Stderr, bytes), _) => output.call1(("stderr", PyBytes::new(py, &bytes)))?,
            (GuestEvent::Progress(ops), Some(progress)) => progress.call1((ops,))?,
            (GuestEvent::Progress(_), None) => return Ok(true),
        };
        Ok(true)
    })?;
    result.map_err(|error| to_python(py, &error))
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
        None,
        |channel| {
            durasim_crash::crash(&request, variants(), channel.stop(), &mut |done, total| channel.send((done, total)))
        },
        |_, (done, total): (u64, u64)| match progress {
            Some(progress) => progress.call1((done, total))?.extract(),
            None => Ok(true),
        },
    )?;
    let result = result.map_err(|error| to_python(py, &error))?;
    Ok(serde_json::to_string(&result).expect("a result is plain data"))
}

/// Records all steps of a run without a power failure. The request is that of a campaign; a `cancellation` from another thread ends
/// the run.
#[pyfunction]
#[pyo3(signature = (request, cancellation = None))]
fn record_run(py: Python<'_>, request: &str, cancellation: Option<&Cancellation>) -> PyResult<String> {
    let request: CrashRequest = parse(py, request)?;
    let record = supervise(
        py,
        cancellation,
        |channel: &ProgressChannel<'_, ()>| durasim_crash::record_run(&request, variants(), channel.stop()),
        |_, ()| Ok(true),
    )?;
    let record = record.map_err(|error| to_python(py, &error))?;
    Ok(serde_json::to_string(&record).expect("a record is plain data"))
}

/// Replays the trial that a request names under gdb. `listening` is called with the port, whether the replay is at the store that
/// the cause of the violation names, and a sentence about the place. Returns when gdb leaves.
#[pyfunction]
fn debug(py: Python<'_>, request: &str, port: u16, listening: &Bound<'_, PyAny>) -> PyResult<()> {
    let request: CrashRequest = parse(py, request)?;
    let ended = supervise(
        py,
        None,
        |channel| {
            durasim_debugger::debug(&request, variants(), port, channel.stop(), |waiting| {
                channel.send(waiting);
            })
        },
        |_, Waiting { port, is_at_blamed_store, place }: Waiting| {
            listening.call1((port, is_at_blamed_store, place))?;
            Ok(true)
        },
    )?;
    ended.map_err(|error| to_python(py, &error))
}
