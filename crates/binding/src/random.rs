//! Campaigns of the random tester: a JSON request in, a JSON result out.

use crate::errors::to_python;
use crate::registry::variants;
use crate::simulate::parse;
use crate::supervise::supervise;
use durasim_random::RandomRequest;
use pyo3::prelude::*;

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(random_campaign, module)?)?;
    module.add_function(wrap_pyfunction!(random_replay, module)?)
}

/// Runs drawn machines without programs. `progress` is called with the number of runs done; False ends the campaign early.
#[pyfunction]
#[pyo3(signature = (request, progress = None))]
fn random_campaign(py: Python<'_>, request: &str, progress: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
    let request: RandomRequest = parse(py, request)?;
    let result = supervise(
        py,
        None,
        |channel| durasim_random::campaign(&request, variants(), channel.stop(), &mut |done| channel.send(done)),
        |_, done: u64| match progress {
            Some(progress) => progress.call1((done,))?.extract(),
            None => Ok(true),
        },
    )?;
    let result = result.map_err(|error| to_python(py, &error.into()))?;
    Ok(serde_json::to_string(&result).expect("a result is plain data"))
}

/// Repeats one run of such a campaign. Returns its error and its last steps.
#[pyfunction]
#[pyo3(signature = (design, run, planted = None))]
fn random_replay(py: Python<'_>, design: &str, run: &str, planted: Option<String>) -> PyResult<String> {
    let result = supervise(
        py,
        None,
        |channel| durasim_random::replay(design, run, planted.as_ref(), variants(), channel.stop()),
        |_, ()| Ok(true),
    )?;
    let result = result.map_err(|error| to_python(py, &error.into()))?;
    Ok(serde_json::to_string(&result).expect("a result is plain data"))
}
