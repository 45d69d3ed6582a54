//! Owned values become fresh Python objects. Nothing is validated: the values come from us.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString};
use serde_json::{Number, Value};

use super::originals;
use crate::conversation::Object;

/// The deepest nesting that crosses the border, either way; `serde_json` reads no deeper either.
pub(super) const DEEPEST: usize = 128;

/// Builds a `dict` from a JSON object.
pub(super) fn object<'py>(py: Python<'py>, object: &Object) -> PyResult<Bound<'py, PyDict>> {
    object_within(py, object, DEEPEST)
}

/// Builds a list of dicts.
pub(super) fn objects<'py>(py: Python<'py>, objects: &[Arc<Object>]) -> PyResult<Bound<'py, PyList>> {
    let known = objects.iter().zip(originals::of(py, objects));
    let dicts = known.map(|(message, original)| copied(py, message, original)).collect::<PyResult<Vec<_>>>()?;
    // All at once: a list that grows by appending is copied again and again.
    PyList::new(py, dicts)
}

/// A dict of a message that is the caller's own.
fn copied<'py>(
    py: Python<'py>,
    message: &Arc<Object>,
    original: Option<Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    if let Some(original) = original {
        return original.copy();
    }
    let dict = object(py, message)?;
    if originals::keep(message, &dict) { dict.copy() } else { Ok(dict) }
}

/// Builds a Python object from a JSON value.
pub(super) fn value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    value_within(py, value, DEEPEST)
}

fn object_within<'py>(py: Python<'py>, object: &Object, depth: usize) -> PyResult<Bound<'py, PyDict>> {
    let depth = deeper(depth)?;
    let dict = PyDict::new(py);
    for (name, item) in object {
        dict.set_item(key(py, name), value_within(py, item, depth)?)?;
    }
    Ok(dict)
}

fn value_within<'py>(py: Python<'py>, value: &Value, depth: usize) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => self::number(py, number),
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let depth = deeper(depth)?;
            let items = items.iter().map(|item| value_within(py, item, depth)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(inner) => object_within(py, inner, depth)?.into_any(),
    })
}

fn number<'py>(py: Python<'py>, number: &Number) -> Bound<'py, PyAny> {
    if let Some(whole) = number.as_i64() {
        PyInt::new(py, whole).into_any()
    } else if let Some(whole) = number.as_u64() {
        PyInt::new(py, whole).into_any()
    } else {
        PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any()
    }
}

fn deeper(depth: usize) -> PyResult<usize> {
    depth.checked_sub(1).ok_or_else(|| {
        pyo3::exceptions::PyValueError::new_err(format!("The payload is nested deeper than {DEEPEST} levels"))
    })
}

/// A dict key; those of chat messages are made once.
fn key<'py>(py: Python<'py>, name: &str) -> Bound<'py, PyString> {
    macro_rules! once {
        ($($known:literal)*) => {
            match name {
                $( $known => intern!(py, $known).clone(), )*
                other => PyString::new(py, other),
            }
        };
    }
    once!("role" "content" "tool_calls" "tool_call_id" "name" "id" "type" "function" "arguments" "tool_name" "tool_args"
        "text" "scope" "source" "score")
}
