//! The binding to Python: JSON strings in and out, so that everything with a shape is defined once, in the machine
//! and in the typed results of the Python package.

mod errors;
mod lists;
mod random;
mod simulate;
mod snapshots;
mod supervise;
mod test_plans;

use pyo3::prelude::*;

/// The Rust core of the package `durasim`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("__build__", env!("DURASIM_BUILD"))?;
    errors::register(module)?;
    test_plans::register(module)?;
    lists::register(module)?;
    random::register(module)?;
    simulate::register(module)?;
    snapshots::register(module)
}
