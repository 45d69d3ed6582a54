//! The Python module `tenterhook._engine`: what the wheel's Python side is built on.

mod apps;
mod engine;
mod exceptions;
mod executing;
mod lifecycle;
mod mailbox;
mod turns;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pythonize::pythonize;

use crate::agent::{Error, Settings, check_path};
use crate::{cli, python};

/// The native half of the package `tenterhook`; `_engine.pyi` describes it.
#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::fill_module(module)?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<engine::PendingCall>()?;
    module.add_class::<mailbox::Mailbox>()?;
    module.add_class::<apps::QuickApp>()?;
    module.add_class::<turns::TurnEngine>()?;
    module.add_class::<turns::Turn>()?;
    module.add_function(wrap_pyfunction!(executing::begin_execution, module)?)?;
    module.add_class::<lifecycle::Lifecycle>()?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(turns::end_export, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

/// Checks the hooks in a folder, or one module, without importing them, for Python 3.`minor`, or for the version that the
/// settings name, or for the running one; gives the problems as dicts.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python")]
fn check(py: Python<'_>, path: PathBuf, minor: Option<u8>) -> PyResult<Bound<'_, PyAny>> {
    let found = py.detach(|| -> Result<_, Error> {
        let settings = Settings::near(&path)?;
        let made_for = settings.for_environment(&path, None, minor)?;
        let mut found = check_path(&path, &made_for, None)?;
        found.retain(|problem| settings.wants(problem));
        Ok(found)
    });
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
