//! Which environment's Python runs the hooks, and starting it inside this process.

use std::path::{Path, PathBuf};
use std::process::Command;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

use super::error::Error;
use super::interpreter::{PythonChoice, executable_of, fill_module};
use super::raw;

/// The Python side, carried in the crate: path below `python/`, source.
const PYTHON_SIDE: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/python_side.rs"));

/// Starts the interpreter of the chosen environment and, with it, what `then` starts.
pub(super) fn start(choice: &PythonChoice, then: fn(Python<'_>) -> Result<(), Error>) -> Result<PathBuf, Error> {
    let executable = find(choice)?;
    let facts = ask(&executable)?;
    let linked = raw::linked_version();
    if facts.version != linked {
        return Err(Error::OtherVersion { path: executable, found: facts.version, linked });
    }
    raw::start(&facts.executable, &facts.base_prefix).map_err(Error::Start)?;
    Python::attach(|py| -> Result<(), Error> {
        let failed = |error: PyErr| Error::Start(error.to_string());
        install_python_side(py).map_err(failed)?;
        then(py)
    })?;
    Ok(executable)
}

/// Puts the Python side of the crate on the interpreter's path of finders, before anything installed of that name.
pub(super) fn install_python_side(py: Python<'_>) -> PyResult<()> {
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

/// What an interpreter says of itself.
struct Facts {
    version: String,
    base_prefix: PathBuf,
    /// The interpreter itself, where the path that was found leads to a launcher.
    executable: PathBuf,
}

pub(super) fn find(choice: &PythonChoice) -> Result<PathBuf, Error> {
    if let Some(asked) = &choice.asked {
        let executable = executable_of(asked);
        return if executable.is_file() {
            Ok(executable)
        } else {
            Err(Error::Unusable { path: asked.clone(), reason: "there is no such interpreter".into() })
        };
    }
    let environment = std::env::var_os("VIRTUAL_ENV").filter(|path| !path.is_empty()).map(PathBuf::from);
    let in_environment =
        environment.into_iter().chain([choice.agent.join(".venv")]).map(|folder| executable_of(&folder));
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<_> = std::env::split_paths(&on_path).map(|folder| folder.join("python3")).collect();
    in_environment.chain(on_path).find(|path| path.is_file()).ok_or(Error::NoInterpreter)
}

fn ask(executable: &Path) -> Result<Facts, Error> {
    let unusable = |reason: String| Error::Unusable { path: executable.to_owned(), reason };
    let question = "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.base_prefix); print(sys.executable)";
    let answer = Command::new(executable)
        .args(["-I", "-S", "-c", question])
        .env_remove("PYTHONHOME")
        .output()
        .map_err(|error| unusable(error.to_string()))?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let mut lines = text.lines();
    match (answer.status.success(), lines.next(), lines.next(), lines.next()) {
        (true, Some(version), Some(prefix), own) => Ok(Facts {
            version: version.to_owned(),
            base_prefix: prefix.into(),
            executable: own.filter(|own| !own.is_empty()).map_or_else(|| executable.to_owned(), PathBuf::from),
        }),
        _ => Err(unusable(String::from_utf8_lossy(&answer.stderr).trim().to_owned())),
    }
}
