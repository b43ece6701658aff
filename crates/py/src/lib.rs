//! The module `durasim._core`: the binding with the designs of durasim and no others.

use pyo3::prelude::*;

/// The Rust core of the package `durasim`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    durasim_binding::fill(module, &[])
}
