//! The Python module `tenterhook._engine`: what the wheel's Python side is built on.

mod engine;
mod exceptions;
mod mailbox;

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::{cli, python};

/// The native half of the package `tenterhook`; `_engine.pyi` describes it.
#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::fill_module(module)?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<engine::PendingCall>()?;
    module.add_class::<mailbox::Mailbox>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

/// Runs the command with these arguments, the program's name first; gives its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| cli::run(arguments).code())
}
