//! What the command asks of the interpreter: its output on stderr, and an orderly end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How the logs of Python look on stderr.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsoleLogs {
    /// The name of the lowest level that is shown, as Python's `logging` writes it.
    pub(crate) level: &'static str,
    /// One JSON object a line instead of text.
    pub(crate) json: bool,
}

/// Whether there is something to end in order.
static SET_UP: AtomicBool = AtomicBool::new(false);

static WANTED: Mutex<Option<ConsoleLogs>> = Mutex::new(None);

/// Has Python's output and logs go to stderr once the interpreter is started. For the command, before the first load.
pub(crate) fn console(logs: ConsoleLogs) {
    *WANTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(logs);
}

/// Sets up what [`console`] asked for, in an interpreter that has just been started.
pub(super) fn set_up(py: Python<'_>) -> PyResult<()> {
    let wanted = *WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(ConsoleLogs { level, json }) = wanted {
        py.import("tenterhook.console")?.call_method1("set_up", (level, json))?;
        SET_UP.store(true, Ordering::Release);
    }
    Ok(())
}

/// How long the exit functions may take.
const FINISH: Duration = Duration::from_secs(1);

/// Flushes what Python has not written yet and runs its exit functions, where the interpreter is ours and is never finalised. A Python
/// process does so itself.
pub(crate) fn finish() {
    if cfg!(not(Py_LIMITED_API)) {
        wind_up();
    }
}

/// As [`finish`], for a process that ends without going back to Python.
pub(crate) fn wind_up() {
    if !SET_UP.load(Ordering::Acquire) {
        return;
    }
    // On a thread of its own: a hook that keeps the interpreter to itself must not keep the process from ending.
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let finished = Python::attach(|py| py.import("tenterhook.console")?.call_method0("finish").map(drop));
        // The process may be over.
        let _ = tell.send(finished.map_err(|error| error.to_string()));
    });
    match told.recv_timeout(FINISH) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("Python did not end in order: {error}"),
        Err(_) => tracing::warn!("Python did not end within {FINISH:?}: a hook keeps the interpreter to itself"),
    }
}
