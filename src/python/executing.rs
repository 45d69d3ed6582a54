//! What executions need of Python: their hooks and models as handlers, lanes that a loop of the caller's serves, and controllers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;

use super::crew::{LaneThread, PyCrew};
use super::lane::{Lane, PyHandler};
use crate::dispatch::{Crew, Dispatcher, FIRST, LaneId, LaneQueue, Order, Patience, QueueLimits, Wake};
use crate::execute::{self, ABORTED, ExecutionHook};
use crate::hooks::{HandlerId, Lane as HookLane, Point};

/// A hook of an execution that is written in Python.
#[derive(Debug)]
pub(crate) struct ExecutionHandler {
    pub(crate) hook: ExecutionHook,
    /// What it looks at of what it may be given.
    pub(crate) wants: Vec<String>,
    pub(crate) id: HandlerId,
    pub(crate) handler: PyHandler,
}

/// `tenterhook.execution.places.FoundHook`.
#[derive(FromPyObject)]
pub(crate) struct FoundExecutionHook {
    hook: String,
    wants: Vec<String>,
    module: String,
    function: String,
    file: PathBuf,
    line: u32,
    call: Py<PyAny>,
}

impl FoundExecutionHook {
    /// The hook, which may take so long; none: it is no hook.
    pub(crate) fn into_handler(self, timeout: Duration) -> Option<ExecutionHandler> {
        let hook = ExecutionHook::ALL.into_iter().find(|hook| hook.name() == self.hook)?;
        let wants = self.wants.clone();
        let (id, handler) = self.into_function(timeout);
        Some(ExecutionHandler { hook, wants, id, handler })
    }

    /// The same as a function that is no hook: a model.
    pub(crate) fn into_function(self, timeout: Duration) -> (HandlerId, PyHandler) {
        let id = HandlerId {
            point: Point::ToolCall,
            lane: HookLane::Modify,
            module: self.module,
            function: self.function,
            file: self.file,
            line: self.line,
            timeout,
        };
        (id, PyHandler::new(self.call))
    }
}

/// How long a call may wait before anybody looks whether the caller's loop answers. Nothing is ever done about one that does not.
const LOOKED_AT: Duration = Duration::from_secs(1);

/// Calls are never moved: there is one loop. As many times its own time would a call have to wait.
const NEVER: f64 = 1_000.0;

/// The crew of a loop that belongs to the caller: nobody is hired in its place, and its thread is never struck.
struct CallersOwn;

impl Crew<PyHandler> for CallersOwn {
    fn hire(&self, _: &Arc<LaneQueue<PyHandler>>, _: LaneId) -> Option<Wake> {
        None
    }

    fn order(&self, _: &Arc<LaneQueue<PyHandler>>, _: LaneId, _: Order) {}

    fn is_awake(&self, _: LaneId) -> bool {
        false
    }

    fn processor_time(&self, _: LaneId) -> Option<Duration> {
        None
    }

    fn lose(&self, _: &[Arc<HandlerId>]) -> bool {
        false
    }
}

/// A lane that a loop of the caller's serves.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(crate) struct CallerLane {
    lane: Py<Lane>,
    queue: Arc<LaneQueue<PyHandler>>,
}

impl CallerLane {
    /// What calls handlers on it.
    pub(crate) fn dispatcher(&self) -> Arc<Dispatcher<PyHandler>> {
        Arc::new(Dispatcher::new(Vec::new(), Arc::clone(&self.queue)))
    }
}

#[pymethods]
impl CallerLane {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let (thread, crew) = (LaneThread::new()?, Arc::new(PyCrew::new(Path::new(""), None)));
        let patience = Patience { answer: LOOKED_AT, share: NEVER, ..Patience::default() };
        let queue = LaneQueue::new(QueueLimits::default(), patience, Arc::new(CallersOwn), thread.wake());
        let lane = Py::new(py, Lane::new(Arc::clone(&queue), FIRST, thread, crew))?;
        Ok(Self { lane, queue })
    }

    /// The lane, for whoever serves it.
    #[getter]
    fn lane(&self, py: Python<'_>) -> Py<Lane> {
        self.lane.clone_ref(py)
    }

    /// Nobody serves it any more: what waits is answered, and what comes is refused.
    fn close(&self) {
        self.queue.stop();
        self.queue.end(FIRST);
    }
}

impl Drop for CallerLane {
    fn drop(&mut self) {
        self.close();
    }
}

/// Requests that executions be cancelled.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(crate) struct Controller(pub(crate) execute::Controller);

#[pymethods]
impl Controller {
    #[new]
    fn new() -> Self {
        Self(execute::Controller::new())
    }

    /// The controller of that number; `None`: its execution is over.
    #[staticmethod]
    fn of(number: u64) -> Option<Self> {
        execute::controller_of(number).map(Self)
    }

    /// Requests cancellation; only the first reason counts.
    #[pyo3(signature = (reason=None))]
    fn abort(&self, reason: Option<String>) {
        self.0.abort(reason.unwrap_or_else(|| ABORTED.to_owned()));
    }

    /// The reason, where cancellation has been requested.
    fn reason(&self) -> Option<String> {
        self.0.reason().map(str::to_owned)
    }
}

/// Raises an exception of the class `HandlerInterrupted` in a thread that works for a hook or tool whose time is over.
#[pyfunction]
fn interrupt_thread(py: Python<'_>, ident: u64) -> PyResult<()> {
    let class = py.import("tenterhook.lane")?.getattr("HandlerInterrupted")?.cast_into()?;
    super::raw::raise_in_thread(py, ident, Some(&class));
    Ok(())
}

/// Adds what executions need to the module `tenterhook._engine`.
pub(super) fn fill_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CallerLane>()?;
    module.add_class::<Controller>()?;
    module.add_function(wrap_pyfunction!(interrupt_thread, module)?)
}

impl std::fmt::Debug for FoundExecutionHook {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("FoundExecutionHook").field("hook", &self.hook).finish_non_exhaustive()
    }
}
