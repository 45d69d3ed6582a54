//! The turn engine as Python sees it. A turn runs on threads of the engine's own, which never attach; its events come by letters.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use futures_util::{Stream, StreamExt as _};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pythonize::pythonize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::AbortHandle;

use super::exceptions;
use super::lifecycle::Lifecycle;
use super::mailbox::{Content, Letter, Mailbox};
use crate::agent::{HookEngine, LoadedAgent};
use crate::execute::ExecutionEvent;
use crate::python::read_json;
use crate::quickapp::RequestEvent;
use crate::telemetry::export;
use crate::turn::{LifecycleEvent, TurnEngine as Turns, TurnEvent, TurnInput};

/// Threads that turns run on: they wait for models and tools, and do little themselves.
const THREADS: usize = 2;

/// What exports spans, where the environment asks for it.
static EXPORT: Once = Once::new();
static EXPORTS: Mutex<Option<(u32, export::Guard)>> = Mutex::new(None);

fn exporting() -> MutexGuard<'static, Option<(u32, export::Guard)>> {
    EXPORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends the spans that have not been sent; for the process's end.
#[pyfunction]
pub(super) fn end_export(py: Python<'_>) {
    py.detach(|| match exporting().take() {
        // A forked child has no thread that sends: to wait for it would be for nothing.
        Some((process, guard)) if process != std::process::id() => std::mem::forget(guard),
        guard => drop(guard),
    });
}

/// Where turns run; made at the first load, and never ended: the process's end ends it.
pub(super) fn runtime() -> PyResult<&'static Runtime> {
    static RUNTIME: OnceLock<(u32, Runtime)> = OnceLock::new();
    if let Some((process, runtime)) = RUNTIME.get() {
        // In a forked child there are none of its threads.
        return if *process == std::process::id() {
            Ok(runtime)
        } else {
            Err(PyOSError::new_err(super::engine::FORKED))
        };
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let made = builder.worker_threads(THREADS).thread_name("tenterhook-turns").enable_all().build();
    let made = made.map_err(|error| PyOSError::new_err(error.to_string()))?;
    Ok(&RUNTIME.get_or_init(|| (std::process::id(), made)).1)
}

/// An agent, loaded.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(super) struct TurnEngine {
    pub(super) agent: LoadedAgent,
    /// In a forked child there are none of the engine's threads.
    process: u32,
}

#[pymethods]
impl TurnEngine {
    /// Loads the agent in `folder`; conversations are kept in the file `store`, or in memory.
    #[staticmethod]
    #[pyo3(signature = (folder, *, store=None))]
    #[expect(clippy::needless_pass_by_value, reason = "arguments come from Python")]
    fn load(py: Python<'_>, folder: PathBuf, store: Option<PathBuf>) -> PyResult<Self> {
        ready()?;
        let mut loader = Turns::loader(&folder).hooks(HookEngine::builder(&folder).spin(false));
        if let Some(store) = store {
            loader = loader.store(store);
        }
        let agent = py.detach(|| loader.load()).map_err(|error| exceptions::load_error(py, &error))?;
        Ok(Self { agent, process: std::process::id() })
    }

    /// Begins a turn.
    #[pyo3(signature = (
        sender_id, text, *, message_id=None, channel=None, call=None, is_voice=false, interrupts=false, shows_changes=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "arguments come from Python by their names")]
    fn turn(
        &self,
        py: Python<'_>,
        sender_id: String,
        text: String,
        message_id: Option<String>,
        channel: Option<Bound<'_, PyAny>>,
        call: Option<Bound<'_, PyAny>>,
        is_voice: bool,
        interrupts: bool,
        shows_changes: bool,
    ) -> PyResult<Turn> {
        if std::process::id() != self.process {
            return Err(exceptions::closed_error(py, super::engine::FORKED));
        }
        let mut input = TurnInput::new(sender_id, text);
        input.channel = channel.map(|channel| given("channel", &channel)).transpose()?.unwrap_or_default();
        input.call = call.map(|call| given("call", &call)).transpose()?.unwrap_or_default();
        (input.message_id, input.is_voice) = (message_id, is_voice);
        (input.interrupts, input.shows_changes) = (interrupts, shows_changes);
        begin(self.agent.engine.turn(input), Told::Turn)
    }

    /// Begins to tell which conversations are idle.
    fn lifecycle(&self, py: Python<'_>) -> PyResult<Lifecycle> {
        if std::process::id() != self.process {
            return Err(exceptions::closed_error(py, super::engine::FORKED));
        }
        Ok(Lifecycle::new(self.agent.engine.lifecycle()))
    }

    /// Cancels the turn of a conversation that runs.
    fn interrupt(&self, sender_id: &str) -> bool {
        self.agent.engine.interrupt(sender_id)
    }

    /// What is unwise in the agent's files; as dicts.
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.agent.warnings)?)
    }

    /// Cancels whatever runs on the agent's own thread, without waiting.
    fn close(&self) {
        if std::process::id() != self.process {
            return;
        }
        if let Some(hooks) = &self.agent.hooks {
            hooks.close();
        }
        let servers = Arc::clone(&self.agent.servers);
        if let Ok(runtime) = runtime() {
            runtime.spawn(async move { servers.close().await });
        }
    }
}

/// What a caller gives, as it is used here. It is read with a limit to its depth: what contains itself would end the process.
pub(super) fn given<T: DeserializeOwned>(what: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    let read = read_json(what, value)
        .and_then(|json| serde_json::from_value(json).map_err(|error| format!("Invalid `{what}`: {error}")));
    read.map_err(|message| exceptions::payload_error(value.py(), &message))
}

/// What a turn, a request, an execution or a lifecycle tells.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Told {
    Turn(TurnEvent),
    Request(RequestEvent),
    Execution(ExecutionEvent),
    Lifecycle(LifecycleEvent),
}

/// Has a turn, a request or an execution run on the engine's threads.
pub(super) fn begin<E: Send + 'static>(
    mut events: impl Stream<Item = E> + Send + Unpin + 'static,
    told: impl Fn(E) -> Told + Send + 'static,
) -> PyResult<Turn> {
    let (send, heard) = mpsc::unbounded_channel();
    let run = runtime()?.spawn(async move {
        while let Some(event) = events.next().await {
            if send.send(told(event)).is_err() {
                return;
            }
        }
    });
    Ok(Turn { events: Arc::new(AsyncMutex::new(heard)), run: run.abort_handle() })
}

/// Starts the threads that turns run on, and the export of their spans where the environment asks for it.
pub(super) fn ready() -> PyResult<()> {
    runtime()?;
    EXPORT.call_once(|| *exporting() = export::start().map(|guard| (std::process::id(), guard)));
    Ok(())
}

/// A turn that runs, or a request, or an execution.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(super) struct Turn {
    events: Arc<AsyncMutex<mpsc::UnboundedReceiver<Told>>>,
    run: AbortHandle,
}

#[pymethods]
impl Turn {
    /// `future` gets the next event as a dict, or `None` after the last, through `mailbox`.
    fn next(&self, mailbox: Py<Mailbox>, future: Py<PyAny>) -> PyResult<()> {
        let events = Arc::clone(&self.events);
        runtime()?.spawn(async move {
            let event = events.lock().await.recv().await;
            mailbox.get().put(Letter { future, content: Content::Turn(event.map(Box::new)) });
        });
        Ok(())
    }

    /// Nobody listens any more: the turn is cancelled.
    fn close(&self) {
        self.run.abort();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.run.abort();
    }
}
