//! The front door to the sandbox for generated code.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::Error;
use crate::execute::CodeRunner;
use crate::python::{PySandbox, PythonChoice};

/// The sandbox for code that a model has written: worker processes that reach nothing of the machine.
///
/// It is the package `pydantic-monty` of the environment whose interpreter runs: `pip install 'tenterhook[execute]'`. Where that is not
/// installed no session opens; nothing weaker takes its place.
#[derive(Clone, Copy, Debug)]
pub struct Sandbox;

impl Sandbox {
    /// Starts the interpreter, if the process has none yet: that of `VIRTUAL_ENV`, of `.venv` in the working directory, or `python3`.
    ///
    /// # Errors
    ///
    /// No fitting interpreter is there, or it does not start.
    pub fn start() -> Result<Arc<dyn CodeRunner>, Error> {
        Self::start_in(Path::new("."), None)
    }

    /// As [`start`](Self::start), with the interpreter, or the folder of the virtual environment, that is to be used; without one, that of
    /// `VIRTUAL_ENV`, of `.venv` in `folder`, or `python3`. A process has one interpreter: who comes first decides.
    ///
    /// # Errors
    ///
    /// No fitting interpreter is there, it does not start, or another one runs already.
    pub fn start_in(folder: &Path, python: Option<PathBuf>) -> Result<Arc<dyn CodeRunner>, Error> {
        let choice = PythonChoice { asked: python, agent: folder.to_owned() };
        Ok(Arc::new(PySandbox::start(&choice)?))
    }
}
