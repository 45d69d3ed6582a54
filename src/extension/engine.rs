//! The engine as Python sees it. Methods are leaves; what waits does so in Python.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyList;
use pythonize::pythonize;

use super::exceptions;
use super::mailbox::{Content, Letter, Mailbox};
use crate::agent::{HookEngine, Isolation};
use crate::dispatch::Withdraw;
use crate::hooks::{Outcome, POINTS, Point};
use crate::python::read_payload;

/// An agent's hooks, loaded.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(super) struct Engine {
    hooks: Arc<HookEngine>,
    closed: AtomicBool,
    /// The process that loaded it: in a forked child neither its clock nor its lane exists.
    process: u32,
}

#[pymethods]
impl Engine {
    /// Loads the hooks of the agent in `folder`; times are in milliseconds.
    #[staticmethod]
    #[pyo3(signature = (folder, *, observe_timeout_ms=None, modify_timeout_ms=None, load_timeout_ms=None, observer_queue=None, isolation=None))]
    fn load(
        py: Python<'_>,
        folder: PathBuf,
        observe_timeout_ms: Option<u64>,
        modify_timeout_ms: Option<u64>,
        load_timeout_ms: Option<u64>,
        observer_queue: Option<usize>,
        isolation: Option<&str>,
    ) -> PyResult<Self> {
        // Callers in Python need the interpreter's lock, which a thread that looks for work would take from them.
        let mut builder = HookEngine::builder(folder).spin(false);
        if let Some(timeout) = observe_timeout_ms {
            builder = builder.observe_timeout(Duration::from_millis(timeout));
        }
        if let Some(timeout) = modify_timeout_ms {
            builder = builder.modify_timeout(Duration::from_millis(timeout));
        }
        if let Some(timeout) = load_timeout_ms {
            builder = builder.load_timeout(Duration::from_millis(timeout));
        }
        if let Some(observations) = observer_queue {
            builder = builder.observer_queue(observations);
        }
        builder = match isolation {
            None => builder,
            Some("thread") => builder.isolation(Isolation::Thread),
            Some("process") => builder.isolation(Isolation::Process),
            Some(other) => {
                let message = format!("`isolation` is {other:?}; expected 'thread' or 'process'");
                return Err(pyo3::exceptions::PyValueError::new_err(message));
            }
        };
        let loaded = py.detach(|| builder.load());
        match loaded {
            Ok(engine) => {
                Ok(Self { hooks: Arc::new(engine), closed: AtomicBool::new(false), process: std::process::id() })
            }
            Err(error) => Err(exceptions::load_error(py, &error)),
        }
    }

    /// Calls the modify hook of the payload's point; `future` gets the outcome through `mailbox`.
    fn modify(
        &self,
        py: Python<'_>,
        payload: Bound<'_, PyAny>,
        mailbox: Py<Mailbox>,
        future: Py<PyAny>,
    ) -> PyResult<Option<PendingCall>> {
        let engine = self.open(py)?;
        let owned = read_payload(&payload).map_err(|message| exceptions::payload_error(py, &message))?;
        if owned.point().spec().modify.is_none() {
            let message = format!("The point {} has no modify lane: `observe` the payload", owned.point());
            return Err(exceptions::payload_error(py, &message));
        }
        let given = payload.unbind();
        let then = move |outcome: Outcome<_>| {
            let content = Content::Outcome { given, outcome: Box::new(outcome) };
            mailbox.get().put(Letter { future, content });
        };
        Ok(engine.modify_then(owned, then).map(|call| PendingCall { call }))
    }

    /// Hands the payload to the observe hooks of its point.
    fn observe(&self, payload: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = payload.py();
        let engine = self.open(py)?;
        let owned = read_payload(payload).map_err(|message| exceptions::payload_error(py, &message))?;
        engine.observe_any(owned);
        Ok(())
    }

    /// The hooks at a point, or all; as dicts.
    #[pyo3(signature = (point=None))]
    fn registered<'py>(&self, py: Python<'py>, point: Option<&str>) -> PyResult<Bound<'py, PyList>> {
        let engine = self.open(py)?;
        let points: Vec<Point> = match point {
            None => POINTS.iter().map(|spec| spec.point).collect(),
            Some(name) => vec![Point::from_name(name).ok_or_else(|| {
                let names: Vec<_> = POINTS.iter().map(|spec| spec.point.name()).collect();
                pyo3::exceptions::PyValueError::new_err(format!(
                    "No point `{name}`; the points are {}",
                    names.join(", ")
                ))
            })?],
        };
        let hooks = PyList::empty(py);
        for hook in points.into_iter().flat_map(|point| engine.registered(point)) {
            hooks.append(pythonize(py, &*hook)?)?;
        }
        Ok(hooks)
    }

    /// What has come of each hook's calls; as dicts.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.open(py)?.statistics())?)
    }

    /// How the engine's threads are; as a dict.
    fn health<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.open(py)?.health())?)
    }

    /// Loads the agent again and swaps.
    fn reload(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.open(py)?;
        py.detach(|| engine.reload()).map_err(|error| exceptions::load_error(py, &error))
    }

    /// What is unwise in the modules; as dicts.
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.open(py)?.warnings())?)
    }

    /// Refuses new calls and waits at most `grace` seconds for the others; `future` hears of the end through `mailbox`.
    fn shutdown(&self, py: Python<'_>, grace: f64, mailbox: Py<Mailbox>, future: Py<PyAny>) -> PyResult<()> {
        let grace = Duration::try_from_secs_f64(grace)
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(format!("`grace` is no time: {error}")))?;
        if self.is_inherited() {
            return Err(exceptions::closed_error(py, FORKED));
        }
        self.closed.store(true, Ordering::Release);
        let engine = Arc::clone(&self.hooks);
        let wait = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let drained = runtime.is_ok_and(|runtime| runtime.block_on(engine.shutdown(grace)));
            mailbox.get().put(Letter { future, content: Content::ShutDown { drained } });
        };
        // The thread never attaches.
        py.detach(|| std::thread::Builder::new().name("tenterhook-shutdown".into()).spawn(wait))?;
        Ok(())
    }

    /// Cancels whatever runs, without waiting.
    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if !self.is_inherited() {
            self.hooks.close();
        }
    }
}

/// Why an engine cannot be used in a forked child.
pub(super) const FORKED: &str = "The engine was loaded before this process was forked: load it after the fork";

impl Engine {
    fn open(&self, py: Python<'_>) -> PyResult<&HookEngine> {
        if self.is_inherited() {
            Err(exceptions::closed_error(py, FORKED))
        } else if self.closed.load(Ordering::Acquire) {
            Err(exceptions::closed_error(py, "The engine has been shut down"))
        } else {
            Ok(&self.hooks)
        }
    }

    fn is_inherited(&self) -> bool {
        std::process::id() != self.process
    }
}

/// A modify call that is under way.
#[pyclass(frozen, module = "tenterhook._engine")]
pub(super) struct PendingCall {
    call: Arc<dyn Withdraw>,
}

#[pymethods]
impl PendingCall {
    /// The caller no longer waits: the handler is cancelled.
    fn withdraw(&self) {
        self.call.withdraw();
    }
}
