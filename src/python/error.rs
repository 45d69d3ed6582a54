use std::path::PathBuf;
use std::time::Duration;

/// What can be wrong with the interpreter that an engine needs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No interpreter was found.
    #[error(
        "No Python interpreter was found\n  hint: give one with `--python PATH`, or activate a virtual environment"
    )]
    NoInterpreter,
    /// The interpreter could not be run.
    #[error("Python interpreter `{}` cannot be run: {reason}", path.display())]
    Unusable {
        /// The interpreter.
        path: PathBuf,
        /// What it or the system said.
        reason: String,
    },
    /// The interpreter is of another minor version than the library that is linked.
    #[error(
        "Python interpreter `{}` is Python {found}, but this engine is linked to Python {linked}\n  hint: choose a Python {linked} environment with `--python PATH`, or build the engine for Python {found}",
        path.display()
    )]
    OtherVersion {
        /// The interpreter.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The linked version.
        linked: String,
    },
    /// A package that the hook classes are built on is missing.
    #[error(
        "Python package `{package}` is not installed for `{}`\n  hint: run `{} -m pip install {package}`",
        python.display(), python.display()
    )]
    MissingPackage {
        /// The package.
        package: String,
        /// The interpreter.
        python: PathBuf,
    },
    /// The interpreter did not start.
    #[error("The Python interpreter did not start: {0}")]
    Start(String),
    /// The interpreter runs already, with another environment.
    #[error(
        "The Python interpreter of this process runs already with `{}`; it cannot change to `{}`",
        running.display(), wanted.display()
    )]
    AlreadyRunning {
        /// The one that runs.
        running: PathBuf,
        /// The one that was asked for.
        wanted: PathBuf,
    },
    /// The process was forked after an engine had been loaded.
    #[error(
        "An engine was loaded before this process was forked\n  hint: load engines after the fork, in each process its own"
    )]
    Forked,
    /// No file descriptor could be had to wake a lane.
    #[error("No event descriptor for a lane: {0}")]
    Waker(#[source] std::io::Error),
    /// The lane or the loader failed.
    #[error("The agent in `{}` could not be loaded: {message}", root.display())]
    Load {
        /// The agent's folder.
        root: PathBuf,
        /// What failed.
        message: String,
    },
    /// The import took too long.
    #[error(
        "The hook modules in `{}` were not imported within {limit:?}\n  hint: look for a loop, a sleep or a network call at module level",
        root.display()
    )]
    LoadTimeout {
        /// The agent's folder.
        root: PathBuf,
        /// The time it had.
        limit: Duration,
    },
    /// The thread that was to load the modules ended without an answer.
    #[error("The thread that was to load the modules ended without an answer")]
    LaneLost,
    /// A mark names a point or lane that the catalogue does not have.
    #[error("A handler is marked for lane `{lane}` of point `{point}`, which does not exist")]
    UnknownMark {
        /// The point.
        point: String,
        /// The lane.
        lane: String,
    },
    /// The schema of a tool's arguments is none.
    #[error("The tool `{tool}` has a schema that is not understood: {reason}")]
    ToolSchema {
        /// The tool.
        tool: String,
        /// Why.
        reason: String,
    },
}
