//! Loading an agent: a lane is started, the modules are imported on its thread, and what they register is checked.
//!
//! No Rust thread attaches for it. An assistant, a thread of Python's that sleeps on an eventfd, starts the lanes.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

use super::crew::{GiveUp, Strike};
use super::error::Error;
use super::executing::{ExecutionHandler, FoundExecutionHook};
use super::lane::{Lane, PyHandler, Waker};
use super::sandbox_post::SandboxPost;
use crate::check::Admitted;
use crate::diagnostic::{Diagnostic, Severity};
use crate::dispatch::{LaneQueue, Patience, QueueLimits};
use crate::hooks::{HandlerId, Lane as HookLane, Point};
use crate::telemetry::LOAD;
use crate::tools::ToolSpec;

/// What is to be loaded.
pub(crate) struct LoadRequest {
    /// The agent's hook modules, below its absolute folder, in the order in which they are imported.
    pub(crate) modules: Admitted,
    /// How long the import of all of them may take.
    pub(crate) within: Duration,
    /// The default time-outs of the lanes.
    pub(crate) observe_timeout: Duration,
    /// See `observe_timeout`.
    pub(crate) modify_timeout: Duration,
    /// The bounds of the queue.
    pub(crate) limits: QueueLimits,
    /// How long a tool may take.
    pub(crate) tool_timeout: Duration,
    /// Where the modules are those of an execution: how long one of its hooks may take. The tools are then such as generated code calls.
    pub(crate) execution: Option<Duration>,
    /// How long things may take before something is done about them.
    pub(crate) patience: Patience,
    /// Where the process can be given up as a whole: hears that it has to be.
    pub(crate) lost: Option<GiveUp>,
}

/// What a load gave.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The handlers, in the order of registration; empty where a problem is an error.
    pub(crate) handlers: Vec<(HandlerId, PyHandler)>,
    /// The tools, in the order in which they were found.
    pub(crate) tools: Vec<ToolFound>,
    /// The hooks of an execution, where it was asked for them.
    pub(crate) execution_hooks: Vec<ExecutionHandler>,
    /// What is wrong with the modules.
    pub(crate) problems: Vec<Diagnostic>,
    /// The queue of the lane that runs the handlers.
    pub(crate) queue: Arc<LaneQueue<PyHandler>>,
}

/// Imports an agent's modules and registers their handlers. Blocks; needs the interpreter started, and the GIL not held.
pub(crate) fn load(request: LoadRequest) -> Result<Loaded, Error> {
    let first = Lane::first(request.modules.root(), request.limits, request.patience, request.lost.clone());
    let (lane, queue) = first.map_err(Error::Waker)?;
    let (told, heard) = mpsc::sync_channel(1);
    let (within, root) = (request.within, request.modules.root().to_owned());
    let (defaults, tool_timeout) = ((request.observe_timeout, request.modify_timeout), request.tool_timeout);
    let hook_timeout = request.execution.unwrap_or_default();
    ask(AssistantOrder::Load(Box::new(LoadOrder { lane: Mutex::new(Some(lane)), request, told })))?;
    match heard.recv_timeout(within) {
        Ok(Ok(Registration { handlers, tools, execution_hooks, problems })) => {
            let mut ids = Vec::with_capacity(handlers.len());
            for handler in handlers {
                ids.push(handler.into_handler(defaults)?);
            }
            let problems = problems.into_iter().map(Into::into).collect();
            let tools = tools.into_iter().map(|tool| tool.into_tool(tool_timeout)).collect::<Result<_, _>>()?;
            let execution_hooks =
                execution_hooks.into_iter().filter_map(|found| found.into_handler(hook_timeout)).collect();
            Ok(Loaded { handlers: ids, tools, execution_hooks, problems, queue })
        }
        Ok(Err(message)) => {
            queue.stop();
            Err(Error::Load { root, message })
        }
        Err(RecvTimeoutError::Timeout) => {
            queue.stop();
            queue.give_up();
            Err(Error::LoadTimeout { root, limit: within })
        }
        Err(RecvTimeoutError::Disconnected) => Err(Error::LaneLost),
    }
}

/// What the assistant is asked to do.
pub(super) enum AssistantOrder {
    /// Start a thread that loads an agent and serves its first lane.
    Load(Box<LoadOrder>),
    /// Start a thread that serves a further lane.
    Serve(Lane),
    /// Do something about a lane that does not answer.
    Strike(Strike),
    /// Start the thread that sessions of generated code live on.
    Sandbox(SandboxPost),
}

/// The orders that wait for the assistant.
struct Orders {
    waiting: Mutex<VecDeque<AssistantOrder>>,
    waker: Result<Waker, String>,
}

static ASSISTANT: LazyLock<Orders> =
    LazyLock::new(|| Orders { waiting: Mutex::default(), waker: Waker::blocking().map_err(|error| error.to_string()) });

/// Gives the assistant an order; never waits.
pub(super) fn ask(order: AssistantOrder) -> Result<(), Error> {
    let waker = ASSISTANT.waker.as_ref().map_err(|message| Error::Waker(std::io::Error::other(message.clone())))?;
    ASSISTANT.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(order);
    waker.wake();
    Ok(())
}

/// The assistant's end of the orders, held by its thread.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(super) struct Assistant;

impl Assistant {
    pub(super) fn create() -> Self {
        Self
    }
}

#[pymethods]
impl Assistant {
    /// The file descriptor that the assistant's thread reads from while there is nothing to do.
    #[expect(clippy::unused_self, reason = "a method for Python")]
    fn fileno(&self) -> PyResult<i32> {
        let waker =
            ASSISTANT.waker.as_ref().map_err(|message| pyo3::exceptions::PyOSError::new_err(message.clone()))?;
        Ok(waker.fileno())
    }

    /// The next order, or `None`.
    #[expect(clippy::unused_self, reason = "a method for Python")]
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let order = ASSISTANT.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Ok(match order {
            None => None,
            Some(AssistantOrder::Load(order)) => Some(Bound::new(py, *order)?.into_any()),
            Some(AssistantOrder::Serve(lane)) => Some(Bound::new(py, lane)?.into_any()),
            Some(AssistantOrder::Strike(strike)) => Some(Bound::new(py, strike)?.into_any()),
            Some(AssistantOrder::Sandbox(post)) => Some(Bound::new(py, post)?.into_any()),
        })
    }
}

/// An order to start a lane and to import an agent's modules on it.
#[pyclass(frozen, module = "tenterhook._engine")]
pub(super) struct LoadOrder {
    lane: Mutex<Option<Lane>>,
    request: LoadRequest,
    told: SyncSender<Result<Registration, String>>,
}

#[pymethods]
impl LoadOrder {
    /// The lane to serve; given once.
    fn lane(&self) -> Option<Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The agent's folder.
    #[getter]
    fn root(&self) -> PathBuf {
        self.request.modules.root().to_owned()
    }

    /// Its hook modules, relative to the folder.
    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.request.modules.modules().to_vec()
    }

    /// Its tool modules.
    #[getter]
    fn tool_files(&self) -> Vec<PathBuf> {
        self.request.modules.tools().to_vec()
    }

    /// Whether the modules are those of an execution.
    #[getter]
    fn execution(&self) -> bool {
        self.request.execution.is_some()
    }

    /// The modules have been imported.
    fn done(
        &self,
        handlers: Vec<FoundHandler>,
        tools: Vec<FoundTool>,
        execution_hooks: Vec<FoundExecutionHook>,
        problems: Vec<FoundProblem>,
    ) {
        // A load that was given up has nobody who listens.
        let _ = self.told.try_send(Ok(Registration { handlers, tools, execution_hooks, problems }));
    }

    /// The lane could not be started, or the loader itself failed.
    fn failed(&self, message: String) {
        let _ = self.told.try_send(Err(message));
    }
}

struct Registration {
    handlers: Vec<FoundHandler>,
    tools: Vec<FoundTool>,
    execution_hooks: Vec<FoundExecutionHook>,
    problems: Vec<FoundProblem>,
}

/// `tenterhook.registration.FoundHandler`.
#[derive(FromPyObject)]
struct FoundHandler {
    point: String,
    lane: String,
    module: String,
    function: String,
    file: PathBuf,
    line: u32,
    timeout_ms: Option<u64>,
    call: Py<PyAny>,
}

impl FoundHandler {
    fn into_handler(self, (observe, modify): (Duration, Duration)) -> Result<(HandlerId, PyHandler), Error> {
        let unknown = || Error::UnknownMark { point: self.point.clone(), lane: self.lane.clone() };
        let point = Point::from_name(&self.point).ok_or_else(unknown)?;
        let lane = [HookLane::Observe, HookLane::Modify].into_iter().find(|lane| lane.name() == self.lane);
        let lane = lane.filter(|lane| point.spec().decorator(*lane).is_some()).ok_or_else(unknown)?;
        let default = match lane {
            HookLane::Observe => observe,
            HookLane::Modify => modify,
        };
        let id = HandlerId {
            point,
            lane,
            module: self.module,
            function: self.function,
            file: self.file,
            line: self.line,
            timeout: self.timeout_ms.map_or(default, Duration::from_millis),
        };
        tracing::info!(
            target: LOAD, point = point.name(), lane = lane.name(), module = id.module, function = id.function,
            timeout_ms = id.timeout.as_millis(), "Registered",
        );
        Ok((id, PyHandler::new(self.call)))
    }
}

/// A tool that a load has found.
#[derive(Debug)]
pub(crate) struct ToolFound {
    pub(crate) spec: ToolSpec,
    /// The skill that it belongs to; none: it lies at the agent's root.
    pub(crate) skill: Option<String>,
    /// What it gives, as a Python annotation.
    pub(crate) returns: Option<String>,
    pub(crate) id: HandlerId,
    pub(crate) handler: PyHandler,
}

/// `tenterhook.tooling.FoundTool`.
#[derive(FromPyObject)]
pub(crate) struct FoundTool {
    name: String,
    description: String,
    schema: String,
    module: String,
    file: PathBuf,
    line: u32,
    skill: Option<String>,
    returns: Option<String>,
    call: Py<PyAny>,
}

impl FoundTool {
    /// The tool; its calls are those of a handler that changes the call into its result.
    pub(crate) fn into_tool(self, timeout: Duration) -> Result<ToolFound, Error> {
        let parameters = serde_json::from_str(&self.schema);
        let parameters =
            parameters.map_err(|error| Error::ToolSchema { tool: self.name.clone(), reason: error.to_string() })?;
        let id = HandlerId {
            point: Point::ToolCall,
            lane: HookLane::Modify,
            module: self.module,
            function: self.name.clone(),
            file: self.file,
            line: self.line,
            timeout,
        };
        tracing::info!(target: LOAD, tool = self.name, module = id.module, "Registered a tool");
        let spec = ToolSpec { name: self.name, description: self.description, parameters };
        Ok(ToolFound { spec, skill: self.skill, returns: self.returns, id, handler: PyHandler::new(self.call) })
    }
}

/// `tenterhook.registration.Problem`.
#[derive(FromPyObject)]
struct FoundProblem {
    rule: String,
    severity: String,
    message: String,
    hint: Option<String>,
    file: PathBuf,
    line: Option<u32>,
}

impl From<FoundProblem> for Diagnostic {
    fn from(found: FoundProblem) -> Self {
        let severity = if found.severity == "warning" { Severity::Warning } else { Severity::Error };
        Self {
            rule: found.rule,
            severity,
            message: found.message,
            hint: found.hint,
            file: found.file,
            line: found.line,
            place: None,
            related: Vec::new(),
        }
    }
}
