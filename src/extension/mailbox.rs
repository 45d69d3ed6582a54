//! Outcomes on their way to a Python event loop: the thread on which one falls need not hold the GIL.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pythonize::pythonize;

use super::exceptions;
use super::turns::Told;
use crate::hooks::{AnyPayload, HandlerFailure, Outcome};
use crate::python::{Waker, payload_to_python};

/// The outcomes for one event loop, and the descriptor that tells it of them.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(super) struct Mailbox {
    letters: Mutex<VecDeque<Letter>>,
    waker: Waker,
}

/// A future, its result, and whether the result is an exception to raise.
type Delivery<'py> = (Py<PyAny>, Bound<'py, PyAny>, bool);

/// An answer for a future of the loop.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) future: Py<PyAny>,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// The outcome of a modify call; an unchanged payload comes back as the object that was given.
    Outcome { given: Py<PyAny>, outcome: Box<Outcome<AnyPayload>> },
    /// A shutdown is over: whether all ended by themselves.
    ShutDown { drained: bool },
    /// The next event of a turn or of what else tells some; none: it is over.
    Turn(Option<Box<Told>>),
}

impl Mailbox {
    /// Puts a letter in and wakes the loop.
    pub(super) fn put(&self, letter: Letter) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push_back(letter);
        let first = letters.len() == 1;
        drop(letters);
        if first {
            self.waker.wake();
        }
    }
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self { letters: Mutex::default(), waker: Waker::nonblocking()? })
    }

    /// The file descriptor that becomes readable when there are answers.
    fn fileno(&self) -> i32 {
        self.waker.fileno()
    }

    /// The answers that have come: future, result, and whether the result is an exception to raise.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<Delivery<'py>>> {
        self.waker.clear();
        let letters = std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner));
        let read = |letter: Letter| {
            let content = match letter.content {
                Content::Outcome { given, outcome } => outcome_to_python(py, given, *outcome),
                Content::Turn(event) => pythonize(py, &event).map(|event| (event, false)).map_err(Into::into),
                Content::ShutDown { drained } => Ok((drained.into_pyobject(py)?.to_owned().into_any(), false)),
            };
            // What cannot be read is told to the one who waits for it; the others get theirs.
            let (result, raised) =
                content.unwrap_or_else(|error| (error.into_value(py).into_bound(py).into_any(), true));
            Ok((letter.future, result, raised))
        };
        letters.into_iter().map(read).collect()
    }
}

/// The Python form of an outcome, and whether it is to be raised.
fn outcome_to_python(
    py: Python<'_>,
    given: Py<PyAny>,
    outcome: Outcome<AnyPayload>,
) -> PyResult<(Bound<'_, PyAny>, bool)> {
    let classes = py.import("tenterhook.outcome")?;
    let made = match outcome {
        Outcome::Proceed { payload, changed, failure, discarded_signal } => {
            let payload = if changed { payload_to_python(py, &payload)? } else { given.into_bound(py) };
            let failure = failure.map(|failure| failure_to_python(py, &failure)).transpose()?;
            let signal = discarded_signal.map(|signal| signal.kind().name());
            classes.getattr("Proceed")?.call1((payload, changed, failure, signal))?
        }
        Outcome::Retry { feedback } => classes.getattr("Retry")?.call1((feedback,))?,
        Outcome::Reject { reason, response } => classes.getattr("Reject")?.call1((reason, response))?,
        Outcome::Failed(failure) => {
            let raised = exceptions::execution_error(py, failure_to_python(py, &failure)?)?;
            return Ok((raised, true));
        }
    };
    Ok((made, false))
}

fn failure_to_python<'py>(py: Python<'py>, failure: &HandlerFailure) -> PyResult<Bound<'py, PyAny>> {
    let handler = &failure.handler;
    py.import("tenterhook.outcome")?.getattr("HandlerFailure")?.call1((
        handler.point.name(),
        handler.lane.name(),
        &handler.module,
        &handler.function,
        failure.elapsed.as_secs_f64() * 1e3,
        failure.cause.word(),
        failure.cause.to_string(),
    ))
}
