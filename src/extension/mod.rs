//! The Python module `tenterhook._engine`: what the wheel's Python side is built on.

mod engine;
mod exceptions;
mod mailbox;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pythonize::pythonize;

use crate::agent::agent_files;
use crate::check::{CheckSettings, NEWEST_MINOR};
use crate::{cli, python};

/// The native half of the package `tenterhook`; `_engine.pyi` describes it.
#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::fill_module(module)?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<engine::PendingCall>()?;
    module.add_class::<mailbox::Mailbox>()?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

/// Checks the hooks in a folder, or one module, for Python 3.`minor`, without importing them; gives the problems as dicts.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python")]
fn check(py: Python<'_>, path: PathBuf, minor: u8) -> PyResult<Bound<'_, PyAny>> {
    let settings = CheckSettings { minor: minor.min(NEWEST_MINOR), ..CheckSettings::default() };
    let found = py.detach(|| agent_files(&path).map(|files| crate::check::check(&files, settings)));
    match found {
        Ok(found) => Ok(pythonize(py, &found)?),
        Err(error) => Err(exceptions::load_error(py, &error)),
    }
}

/// Runs the command with these arguments, the program's name first; gives its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| cli::run(arguments).code())
}
