//! Exceptions as owned values: a control signal, or the cause of a failure.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::from_python::{type_name, whole_text};
use crate::dispatch::Answer;
use crate::hooks::{FailureCause, HandlerId, Signal, TraceFrame};

/// Characters of an exception's text that are kept.
const LONGEST_MESSAGE: usize = 2_000;

/// Frames of a traceback that are kept, the innermost.
const MOST_FRAMES: usize = 20;

/// A control signal as the lane's Python side describes it: its kind, its first value, its second.
pub(super) type RaisedSignal<'py> = (String, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The answer of a handler that raised.
pub(super) fn answer(
    handler: &HandlerId,
    raised: &Bound<'_, PyAny>,
    kind: &Bound<'_, PyString>,
    text: Option<&Bound<'_, PyString>>,
    signal: Option<RaisedSignal<'_>>,
) -> Answer {
    match signal.map(|signal| read_signal(&signal)) {
        Some((signal, Err(message))) if handler.takes(&signal) => {
            Answer::Failure(FailureCause::InvalidResult { message })
        }
        // What has no effect need not be well formed.
        Some((signal, _)) => Answer::Signal(signal),
        None => Answer::Failure(FailureCause::Raised {
            kind: kind.to_string_lossy().into_owned(),
            message: text.map_or_else(|| "<its __str__ failed>".to_owned(), bounded),
            frames: frames(raised),
        }),
    }
}

/// The signal, and what is wrong with its words.
fn read_signal((kind, first, second): &RaisedSignal<'_>) -> (Signal, Result<(), String>) {
    if kind == "retry" {
        let (feedback, fault) = words("RetryModel", "feedback", first);
        return (Signal::Retry { feedback }, fault);
    }
    let (reason, fault) = words("HookRejection", "reason", first);
    if second.is_none() {
        return (Signal::Rejection { reason, response: None }, fault);
    }
    let (response, other) = words("HookRejection", "response_message", second);
    (Signal::Rejection { reason, response: Some(response) }, fault.and(other))
}

fn words(signal: &str, name: &str, value: &Bound<'_, PyAny>) -> (String, Result<(), String>) {
    let Ok(text) = value.cast::<PyString>() else {
        let fault = format!("It raised `{signal}` whose `{name}` is a `{}`; expected a `str`", type_name(value));
        return (String::new(), Err(fault));
    };
    match whole_text(text) {
        Ok(text) => (text, Ok(())),
        Err(refusal) => (String::new(), Err(format!("It raised `{signal}`: {}", refusal.describe(name)))),
    }
}

/// An exception's text, cut at [`LONGEST_MESSAGE`].
fn bounded(text: &Bound<'_, PyString>) -> String {
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
