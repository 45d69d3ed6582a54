//! What a tool that runs may ask of the turn that called it. Values go as the text of JSON.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::tools::{self, Said};

/// Adds the functions to the module `tenterhook._engine`.
pub(super) fn fill_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(tool_says, module)?)?;
    module.add_function(wrap_pyfunction!(tool_writes, module)?)?;
    module.add_function(wrap_pyfunction!(tool_sets_buttons, module)?)?;
    module.add_function(wrap_pyfunction!(tool_recalls, module)?)?;
    module.add_function(wrap_pyfunction!(tool_remembers, module)?)?;
    module.add_function(wrap_pyfunction!(tool_events, module)?)?;
    module.add_function(wrap_pyfunction!(tool_model, module)?)?;
    module.add_function(wrap_pyfunction!(tool_is_over, module)?)?;
    module.add_function(wrap_pyfunction!(tool_is_cancelled, module)?)
}

/// A tool says something to the user: an object with `text`, `buttons`, `metadata`, `streamed`.
#[pyfunction]
fn tool_says(invocation: u64, utterance: &str) -> PyResult<()> {
    tools::says(invocation, Said::Whole(read(utterance)?));
    Ok(())
}

/// A tool writes a piece of a text.
#[pyfunction]
fn tool_writes(invocation: u64, piece: String) {
    tools::says(invocation, Said::Piece(piece));
}

/// Buttons for the next text of the turn: a list of objects.
#[pyfunction]
fn tool_sets_buttons(invocation: u64, buttons: &str) -> PyResult<()> {
    tools::says(invocation, Said::Buttons(read(buttons)?));
    Ok(())
}

/// The value of an entry of memory, where it has one.
#[pyfunction]
fn tool_recalls(invocation: u64, entry: &str) -> Option<String> {
    tools::context_of(invocation)?.recall(entry).map(|value| value.to_string())
}

/// Writes an entry of memory; gives why that is refused.
#[pyfunction]
fn tool_remembers(invocation: u64, entry: &str, value: &str) -> PyResult<Option<String>> {
    let value = read(value)?;
    // What comes after its call is over nobody remembers.
    Ok(tools::context_of(invocation).and_then(|context| context.remember(entry, value).err()))
}

/// What has happened in the conversation: a list of objects.
#[pyfunction]
fn tool_events(py: Python<'_>, invocation: u64) -> PyResult<String> {
    // A store may read a disk.
    let events = py.detach(|| tools::context_of(invocation).map(|context| context.events()).unwrap_or_default());
    serde_json::to_string(&events).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The name of the agent's model.
#[pyfunction]
fn tool_model(invocation: u64) -> String {
    tools::context_of(invocation).map(|context| context.model()).unwrap_or_default()
}

/// The tool's function has ended.
#[pyfunction]
fn tool_is_over(invocation: u64) {
    tools::says(invocation, Said::Over);
}

/// Whether nobody waits for a tool any more.
#[pyfunction]
fn tool_is_cancelled(invocation: u64) -> bool {
    tools::is_cancelled(invocation)
}

fn read<T: serde::de::DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}
