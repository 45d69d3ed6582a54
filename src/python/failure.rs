//! Exceptions as owned values: a control signal, or the cause of a failure.

use pyo3::exceptions::PyBaseExceptionGroup;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::binding::Binding;
use super::from_python::{type_name, whole_text};
use crate::dispatch::Answer;
use crate::hooks::{FailureCause, Signal, TraceFrame};

/// Characters of an exception's text that are kept.
const LONGEST_MESSAGE: usize = 2_000;

/// Frames of a traceback that are kept, the innermost.
const MOST_FRAMES: usize = 20;

/// The answer of a handler that raised.
pub(super) fn answer(binding: &Binding, raised: &Bound<'_, PyAny>) -> Answer {
    match signal(binding, raised) {
        Some(Ok(signal)) => Answer::Signal(signal),
        Some(Err(message)) => Answer::Failure(FailureCause::InvalidResult { message }),
        None => Answer::Failure(cause(raised)),
    }
}

/// The signal that `raised` is, or that it holds as a group of nothing else.
fn signal(binding: &Binding, raised: &Bound<'_, PyAny>) -> Option<Result<Signal, String>> {
    let py = raised.py();
    if raised.is_instance(binding.retry(py)).unwrap_or(false) {
        return Some(attribute(raised, "feedback").map(|feedback| Signal::Retry { feedback }));
    }
    if raised.is_instance(binding.rejection(py)).unwrap_or(false) {
        let response = match raised.getattr(intern!(py, "response_message")) {
            Ok(response) if !response.is_none() => Some(attribute(raised, "response_message")),
            _ => None,
        };
        return Some(
            attribute(raised, "reason")
                .and_then(|reason| Ok(Signal::Rejection { reason, response: response.transpose()? })),
        );
    }
    if raised.is_instance_of::<PyBaseExceptionGroup>() {
        let members = raised.getattr(intern!(py, "exceptions")).ok()?;
        let members = members.cast::<PyTuple>().ok()?;
        if members.len() == 1 {
            return signal(binding, &members.get_item(0).ok()?);
        }
    }
    None
}

fn attribute(signal: &Bound<'_, PyAny>, name: &str) -> Result<String, String> {
    let kind = type_name(signal);
    let value = signal.getattr(name).map_err(|_| format!("It raised `{kind}` without a `{name}`"))?;
    let text = value
        .cast::<PyString>()
        .map_err(|_| format!("It raised `{kind}` whose `{name}` is a `{}`; expected a `str`", type_name(&value)))?;
    whole_text(text).map_err(|refusal| format!("It raised `{kind}`: {}", refusal.describe(name)))
}

/// Why a handler failed that raised this.
pub(super) fn cause(raised: &Bound<'_, PyAny>) -> FailureCause {
    FailureCause::Raised { kind: kind(raised), message: message(raised), frames: frames(raised) }
}

/// The exception's type, with its module unless that is `builtins`.
fn kind(raised: &Bound<'_, PyAny>) -> String {
    let class = raised.get_type();
    let name = class.qualname().map_or_else(|_| "Exception".to_owned(), |name| name.to_string());
    match class.module() {
        Ok(module) if module != "builtins" => format!("{module}.{name}"),
        _ => name,
    }
}

/// The exception's text, bounded; a broken `__str__` is said, not raised.
pub(super) fn message(raised: &Bound<'_, PyAny>) -> String {
    let Ok(text) = raised.str() else {
        return "<its __str__ failed>".to_owned();
    };
    let text = text.to_string_lossy();
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}… ({} bytes in all)", &text[..end], text.len()),
        None => text.into_owned(),
    }
}

fn frames(raised: &Bound<'_, PyAny>) -> Vec<TraceFrame> {
    let py = raised.py();
    let mut frames = std::collections::VecDeque::new();
    let mut next = raised.getattr(intern!(py, "__traceback__")).ok();
    while let Some(traceback) = next.filter(|traceback| !traceback.is_none()) {
        let read = || -> PyResult<TraceFrame> {
            let code = traceback.getattr(intern!(py, "tb_frame"))?.getattr(intern!(py, "f_code"))?;
            Ok(TraceFrame {
                file: code.getattr(intern!(py, "co_filename"))?.extract()?,
                line: traceback.getattr(intern!(py, "tb_lineno"))?.extract()?,
                function: code.getattr(intern!(py, "co_name"))?.extract()?,
            })
        };
        if let Ok(frame) = read()
            && !frame.file.ends_with("tenterhook/lane.py")
        {
            if frames.len() == MOST_FRAMES {
                frames.pop_front();
            }
            frames.push_back(frame);
        }
        next = traceback.getattr(intern!(py, "tb_next")).ok();
    }
    frames.into()
}
