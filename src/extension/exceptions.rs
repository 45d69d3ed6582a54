//! Where errors of the engine become Python exceptions; the classes are those of `tenterhook.errors`.

use pyo3::prelude::*;
use pythonize::pythonize;

use crate::agent::Error;

/// The exception of a load that failed.
pub(super) fn load_error(py: Python<'_>, error: &Error) -> PyErr {
    let made = || -> PyResult<Bound<'_, PyAny>> {
        let classes = py.import("tenterhook.errors")?;
        match error {
            Error::Invalid { problems, .. } | Error::Configuration { problems, .. } => {
                let problem = classes.getattr("Problem")?;
                let problems = problems
                    .iter()
                    .map(|found| problem.call_method1("of", (pythonize(py, found)?,)))
                    .collect::<PyResult<Vec<_>>>()?;
                classes.getattr("InvalidHooksError")?.call1((error.to_string(), problems))
            }
            Error::Python(_) | Error::Worker(_) => classes.getattr("InterpreterError")?.call1((error.to_string(),)),
            _ => classes.getattr("AgentError")?.call1((error.to_string(),)),
        }
    };
    made().map_or_else(|broken| broken, PyErr::from_value)
}

/// The exception of a handler that failed at a closed point.
pub(super) fn execution_error<'py>(py: Python<'py>, failure: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    py.import("tenterhook.errors")?.getattr("HookExecutionError")?.call1((failure,))
}

/// The exception of a payload that a caller made and the engine cannot take.
pub(super) fn payload_error(py: Python<'_>, message: &str) -> PyErr {
    let made = || py.import("tenterhook.errors")?.getattr("PayloadError")?.call1((message,));
    made().map_or_else(|broken| broken, PyErr::from_value)
}

/// The exception of an execution that cannot be run.
pub(super) fn execution_unfit(py: Python<'_>, message: &str) -> PyErr {
    let made = || py.import("tenterhook.errors")?.getattr("ExecutionError")?.call1((message,));
    made().map_or_else(|broken| broken, PyErr::from_value)
}

/// The exception of a call on an engine that is closed, or that a forked child has inherited.
pub(super) fn closed_error(py: Python<'_>, why: &str) -> PyErr {
    let made = || py.import("tenterhook.errors")?.getattr("EngineClosedError")?.call1((why,));
    made().map_or_else(|broken| broken, PyErr::from_value)
}
