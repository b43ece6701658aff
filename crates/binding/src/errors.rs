//! The exceptions of the package. Each carries the exit code of the command line as `exit_code`.

use durasim_types::{Error, ExitCode};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(durasim, DurasimError, PyException, "Base of all errors of durasim. `exit_code` is the exit code.");
create_exception!(
    durasim,
    ConfigError,
    DurasimError,
    "A configuration, program or argument refused before cycle 0. `field` names it, `problem` says what is allowed."
);
create_exception!(
    durasim,
    GuestFault,
    DurasimError,
    "The guest program was stopped. `pc` is its program counter, `last_syscall` the last system call or None; both are None \
     if it failed by itself."
);
create_exception!(durasim, HostIoError, DurasimError, "A file of the host could not be read or written: `path`.");
create_exception!(
    durasim,
    StuckError,
    DurasimError,
    "The modelled machine cannot continue: a design waits for an event that will never occur, at `cycle`."
);
create_exception!(
    durasim,
    InternalError,
    DurasimError,
    "An assertion of durasim itself failed. Its results cannot be trusted; please report the command that led to it."
);

/// Adds the exception types and their exit codes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let types = [
        ("DurasimError", py.get_type::<DurasimError>(), ExitCode::Negative),
        ("ConfigError", py.get_type::<ConfigError>(), ExitCode::Usage),
        ("GuestFault", py.get_type::<GuestFault>(), ExitCode::GuestFault),
        ("HostIoError", py.get_type::<HostIoError>(), ExitCode::HostIo),
        ("StuckError", py.get_type::<StuckError>(), ExitCode::GuestFault),
        ("InternalError", py.get_type::<InternalError>(), ExitCode::GuestFault),
    ];
    for (name, exception, exit_code) in types {
        exception.setattr("exit_code", exit_code as u8)?;
        module.add(name, exception)?;
    }
    Ok(())
}

/// The exception for `error`, with the parts of the error as attributes.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let text = error.to_string();
    let (exception, attributes): (PyErr, Vec<(&str, Py<PyAny>)>) = match error {
        Error::Config(e) => (
            ConfigError::new_err(text),
            vec![("field", python_str(py, &e.field)), ("problem", python_str(py, &e.problem))],
        ),
        Error::Guest(e) => (
            GuestFault::new_err(text),
            vec![
                ("pc", e.pc.into_pyobject(py).expect("an integer converts").into_any().unbind()),
                ("last_syscall", e.last_syscall.as_ref().map_or_else(|| py.None(), |name| python_str(py, name))),
            ],
        ),
        Error::Failed(_) => (GuestFault::new_err(text), vec![("pc", py.None()), ("last_syscall", py.None())]),
        Error::HostIo { path, .. } => (HostIoError::new_err(text), vec![("path", python_str(py, path))]),
        Error::Stuck { cycle, .. } => (
            StuckError::new_err(text),
            vec![("cycle", cycle.into_pyobject(py).expect("an integer converts").into_any().unbind())],
        ),
    };
    for (name, value) in attributes {
        if let Err(failed) = exception.value(py).setattr(name, value) {
            return failed;
        }
    }
    exception
}

fn python_str(py: Python<'_>, text: &str) -> Py<PyAny> {
    pyo3::types::PyString::new(py, text).into_any().unbind()
}

/// The exception for a panic of a worker.
pub fn internal_error(panic: &(dyn std::any::Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned());
    InternalError::new_err(format!("durasim itself failed, please report it: {text}"))
}
