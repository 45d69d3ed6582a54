//! The interpreter of the process: started once, or found running.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyModule;

use super::crew::Strike;
use super::error::Error;
use super::lane::{Job, Lane};
use super::loading::{Assistant, LoadOrder};
use super::sandbox_post::SandboxPost;

/// How the interpreter is chosen, the first that is there: asked for, `VIRTUAL_ENV`, `.venv` beside the agent, `python3`.
#[derive(Clone, Debug, Default)]
pub(crate) struct PythonChoice {
    /// The interpreter, or the folder of a virtual environment, that the user asked for.
    pub(crate) asked: Option<PathBuf>,
    /// The agent's folder.
    #[cfg_attr(Py_LIMITED_API, expect(dead_code, reason = "a module of a Python process has its interpreter"))]
    pub(crate) agent: PathBuf,
}

/// The interpreter that runs, once it does, and the process that started the assistant.
static RUNNING: Mutex<Option<(PathBuf, u32)>> = Mutex::new(None);

/// Adds what the Python side needs of this room to the module `tenterhook._engine`.
pub(crate) fn fill_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Lane>()?;
    module.add_class::<Job>()?;
    module.add_class::<LoadOrder>()?;
    module.add_class::<Strike>()?;
    module.add_class::<Assistant>()?;
    super::executing::fill_module(module)?;
    module.add_class::<SandboxPost>()?;
    super::tool_calls::fill_module(module)
}

/// Starts the interpreter, if this process has none yet, and the assistant that starts lanes.
pub(crate) fn ensure_started(choice: &PythonChoice) -> Result<(), Error> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if running.is_none() {
        *running = Some((start(choice)?, std::process::id()));
    }
    match (&choice.asked, &*running) {
        (_, Some((_, process))) if *process != std::process::id() => Err(Error::Forked),
        (Some(asked), Some((running, _))) if !is_same_environment(&executable_of(asked), running) => {
            Err(Error::AlreadyRunning { running: running.clone(), wanted: asked.clone() })
        }
        _ => Ok(()),
    }
}

/// An interpreter as it is, that of a virtual environment by the environment's folder.
pub(super) fn executable_of(path: &Path) -> PathBuf {
    let path = if path.is_dir() { path.join("bin/python") } else { path.to_owned() };
    std::path::absolute(&path).unwrap_or(path)
}

/// The interpreter that a load would run, found without running it.
pub(crate) fn chosen(choice: &PythonChoice) -> Result<PathBuf, Error> {
    #[cfg(not(Py_LIMITED_API))]
    return super::environment::find(choice);
    #[cfg(Py_LIMITED_API)]
    match &choice.asked {
        Some(asked) => Ok(executable_of(asked)),
        None => Python::attach(|py| {
            let executable = py.import("sys").and_then(|sys| sys.getattr("executable")?.extract::<PathBuf>());
            executable.map_err(|error| Error::Start(error.to_string()))
        }),
    }
}

/// The interpreter that runs the package `tenterhook` as a command: that of a Python process which has it. A program of Rust has none.
pub(crate) fn package_command() -> Option<PathBuf> {
    #[cfg(not(Py_LIMITED_API))]
    return None;
    #[cfg(Py_LIMITED_API)]
    chosen(&PythonChoice::default()).ok()
}

/// The minor version of the Python that this engine is linked to, or runs in.
pub(crate) fn linked_minor() -> u8 {
    #[cfg(not(Py_LIMITED_API))]
    let minor = super::raw::linked_version().split('.').nth(1).and_then(|minor| minor.parse().ok());
    #[cfg(Py_LIMITED_API)]
    let minor = Some(Python::attach(|py| py.version_info().minor));
    minor.unwrap_or(crate::check::OLDEST_MINOR)
}

/// Whether two interpreters are names of one: `python` and `python3` of one environment.
fn is_same_environment(one: &Path, other: &Path) -> bool {
    one == other || one.parent() == other.parent() && one.canonicalize().ok() == other.canonicalize().ok()
}

/// Gives the path of the interpreter that runs from now on.
fn start(choice: &PythonChoice) -> Result<PathBuf, Error> {
    #[cfg(not(Py_LIMITED_API))]
    if !super::raw::is_initialized() {
        return super::environment::start(choice, start_assistant);
    }
    let _ = choice;
    // The process is a Python process, or its host has started the interpreter: only the assistant is missing.
    let failed = |error: PyErr| Error::Start(error.to_string());
    Python::attach(|py| {
        #[cfg(not(Py_LIMITED_API))]
        if py.import("tenterhook._engine").is_err() {
            super::environment::install_python_side(py).map_err(failed)?;
        }
        start_assistant(py)?;
        let executable = py.import("sys").and_then(|sys| sys.getattr("executable")?.extract::<Option<PathBuf>>());
        executable.map(Option::unwrap_or_default).map_err(failed)
    })
}

fn start_assistant(py: Python<'_>) -> Result<(), Error> {
    let failed = |error: PyErr| Error::Start(error.to_string());
    for package in ["pydantic", "structlog"] {
        let found = py.import("importlib.util").and_then(|util| util.call_method1("find_spec", (package,)));
        if found.map_err(failed)?.is_none() {
            let python = py.import("sys").and_then(|sys| sys.getattr("executable")?.extract());
            return Err(Error::MissingPackage { package: package.into(), python: python.map_err(failed)? });
        }
    }
    let start = || -> PyResult<()> {
        super::console::set_up(py)?;
        py.import("tenterhook.lane")?.call_method1("start_assistant", (Bound::new(py, Assistant::create())?,))?;
        Ok(())
    };
    start().map_err(failed)
}
