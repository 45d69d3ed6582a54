//! Which Python runs the hooks, and starting it once a process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

use super::error::Error;
use super::lane::{Job, Lane};
use super::loading::{Assistant, LoadOrder};

/// The Python side, carried in the crate: path below `python/`, source.
const PYTHON_SIDE: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/python_side.rs"));

/// How the interpreter is chosen, the first that is there: asked for, `VIRTUAL_ENV`, `.venv` beside the agent, `python3`.
#[derive(Clone, Debug, Default)]
pub(crate) struct PythonChoice {
    /// The interpreter, or the folder of a virtual environment, that the user asked for.
    pub(crate) asked: Option<PathBuf>,
    /// The agent's folder.
    pub(crate) agent: Option<PathBuf>,
}

/// The interpreter that runs, once it does.
static RUNNING: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Adds what the Python side needs of this room to the module `tenterhook._engine`.
pub(crate) fn fill_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Lane>()?;
    module.add_class::<Job>()?;
    module.add_class::<LoadOrder>()?;
    module.add_class::<Assistant>()
}

/// Starts the interpreter, if this process has none yet, and the assistant that starts lanes.
pub(crate) fn ensure_started(choice: &PythonChoice) -> Result<(), Error> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = &*running {
        return match &choice.asked {
            Some(asked) if executable_of(asked) != *running => {
                Err(Error::AlreadyRunning { running: running.clone(), wanted: asked.clone() })
            }
            _ => Ok(()),
        };
    }
    let python = if super::start::is_initialized() { start_assistant_in_host()? } else { start_embedded(choice)? };
    *running = Some(python);
    Ok(())
}

/// The process is a Python process, or its host has started the interpreter: only the assistant is missing.
fn start_assistant_in_host() -> Result<PathBuf, Error> {
    Python::attach(|py| {
        #[cfg(not(Py_LIMITED_API))]
        if py.import("tenterhook._engine").is_err() {
            install_python_side(py)?;
        }
        super::console::set_up(py)?;
        start_assistant(py)?;
        py.import("sys")?.getattr("executable")?.extract::<Option<PathBuf>>()
    })
    .map(Option::unwrap_or_default)
    .map_err(|error| Error::Start(error.to_string()))
}

#[cfg(Py_LIMITED_API)]
fn start_embedded(_choice: &PythonChoice) -> Result<PathBuf, Error> {
    Err(Error::Start("a module of the stable ABI runs inside a Python process only".into()))
}

#[cfg(not(Py_LIMITED_API))]
fn start_embedded(choice: &PythonChoice) -> Result<PathBuf, Error> {
    let executable = find(choice)?;
    let facts = ask(&executable)?;
    let linked = super::start::linked_version();
    if facts.version != linked {
        return Err(Error::OtherVersion { path: executable, found: facts.version, linked });
    }
    super::start::start(&executable, &facts.base_prefix).map_err(Error::Start)?;
    Python::attach(|py| -> Result<(), Error> {
        let start = |error: PyErr| Error::Start(error.to_string());
        install_python_side(py).map_err(start)?;
        for package in ["pydantic", "structlog"] {
            let found = py.import("importlib.util").and_then(|util| util.call_method1("find_spec", (package,)));
            if found.map_err(start)?.is_none() {
                return Err(Error::MissingPackage { package: package.into(), python: executable.clone() });
            }
        }
        super::console::set_up(py).map_err(start)?;
        start_assistant(py).map_err(start)
    })?;
    Ok(executable)
}

/// Puts the Python side of the crate on the interpreter's path of finders, before anything installed of that name.
#[cfg(not(Py_LIMITED_API))]
fn install_python_side(py: Python<'_>) -> PyResult<()> {
    let sources = PyDict::new(py);
    for (path, source) in PYTHON_SIDE {
        sources.set_item(path, source)?;
    }
    let (_, bootstrap) =
        PYTHON_SIDE.iter().find(|(path, _)| path.ends_with("embedded.py")).expect("the Python side has this file");
    let bootstrap = std::ffi::CString::new(*bootstrap)?;
    let bootstrap = PyModule::from_code(py, &bootstrap, c"tenterhook/embedded.py", c"_tenterhook_embedded")?;
    let native = PyModule::new(py, "tenterhook._engine")?;
    fill_module(&native)?;
    bootstrap.call_method1("install", (sources, native))?;
    Ok(())
}

fn start_assistant(py: Python<'_>) -> PyResult<()> {
    py.import("tenterhook.lane")?.call_method1("start_assistant", (Bound::new(py, Assistant::create())?,))?;
    Ok(())
}

/// What an interpreter says of itself.
struct Facts {
    version: String,
    base_prefix: PathBuf,
}

fn find(choice: &PythonChoice) -> Result<PathBuf, Error> {
    if let Some(asked) = &choice.asked {
        let executable = executable_of(asked);
        return if executable.is_file() {
            Ok(executable)
        } else {
            Err(Error::Unusable { path: asked.clone(), reason: "there is no such interpreter".into() })
        };
    }
    let environment = std::env::var_os("VIRTUAL_ENV").filter(|path| !path.is_empty()).map(PathBuf::from);
    let beside = choice.agent.iter().map(|agent| agent.join(".venv"));
    let in_environment = environment.into_iter().chain(beside).map(|folder| executable_of(&folder));
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<_> = std::env::split_paths(&on_path).map(|folder| folder.join("python3")).collect();
    in_environment.chain(on_path).find(|path| path.is_file()).ok_or(Error::NoInterpreter)
}

/// An interpreter as it is, that of a virtual environment by the environment's folder.
fn executable_of(path: &Path) -> PathBuf {
    let path = if path.is_dir() { path.join("bin/python") } else { path.to_owned() };
    std::path::absolute(&path).unwrap_or(path)
}

fn ask(executable: &Path) -> Result<Facts, Error> {
    let unusable = |reason: String| Error::Unusable { path: executable.to_owned(), reason };
    let question = "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.base_prefix)";
    let answer = Command::new(executable)
        .args(["-I", "-S", "-c", question])
        .env_remove("PYTHONHOME")
        .output()
        .map_err(|error| unusable(error.to_string()))?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let mut lines = text.lines();
    match (answer.status.success(), lines.next(), lines.next()) {
        (true, Some(version), Some(prefix)) => Ok(Facts { version: version.to_owned(), base_prefix: prefix.into() }),
        _ => Err(unusable(String::from_utf8_lossy(&answer.stderr).trim().to_owned())),
    }
}
