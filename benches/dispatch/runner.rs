//! The three ways to call a handler that are measured against each other.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures_util::future::join_all;
use pyo3::prelude::*;
use pyo3_async_runtimes::{TaskLocals, into_future_with_locals};
use pythonize::{depythonize, pythonize};
use serde_json::{Value, json};
use tenterhook::{HookEngine, ModelRequestPayload, Object, Outcome};
use tokio::runtime::Runtime;

/// How long a call may take: the default of a modify hook.
const LIMIT: Duration = Duration::from_millis(500);

/// Calls one handler with one payload, over and over.
pub(crate) trait Runner {
    /// What the handler makes of the messages. Untimed.
    fn once(&self) -> anyhow::Result<Value>;

    /// How long `batches` batches take, each of `at_once` calls at a time.
    fn measure(&self, batches: usize, at_once: usize) -> anyhow::Result<Duration>;
}

/// Runs `call` as told on the calling thread, which has a Python thread state for good: attaching is as cheap as it can be.
fn timed<T, F>(runtime: &Runtime, batches: usize, at_once: usize, call: impl Fn() -> F) -> anyhow::Result<Duration>
where
    F: Future<Output = anyhow::Result<T>>,
{
    runtime.block_on(async {
        let start = Instant::now();
        for _ in 0..batches {
            if at_once == 1 {
                call().await?;
            } else {
                for result in join_all((0..at_once).map(|_| call())).await {
                    result?;
                }
            }
        }
        Ok(start.elapsed())
    })
}

/// [`HookEngine::modify`]: from a payload in Rust to the outcome in Rust.
pub(crate) struct Tenterhook<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) engine: &'a HookEngine,
    pub(crate) payload: ModelRequestPayload,
}

impl Tenterhook<'_> {
    async fn call(&self) -> anyhow::Result<ModelRequestPayload> {
        match self.engine.modify(self.payload.clone()).await {
            Outcome::Proceed { payload, failure: None, .. } => Ok(payload),
            other => bail!("The engine's outcome is {other:?}"),
        }
    }
}

impl Runner for Tenterhook<'_> {
    fn once(&self) -> anyhow::Result<Value> {
        Ok(json!(self.runtime.block_on(self.call())?.messages))
    }

    fn measure(&self, batches: usize, at_once: usize) -> anyhow::Result<Duration> {
        timed(self.runtime, batches, at_once, || self.call())
    }
}

/// The module `runners.py` in the interpreter, with a loop for each of the runners that need one.
pub(crate) struct PythonSide {
    module: Py<PyModule>,
    plain_loop: Py<PyAny>,
    bridge: TaskLocals,
    /// The interpreter's version and the kind of the loops.
    pub(crate) about: (String, String),
}

impl PythonSide {
    /// Imports the module. With `asyncio`, whoever wants uvloop from now on does not find it.
    pub(crate) fn new(asyncio: bool) -> anyhow::Result<Self> {
        Python::attach(|py| -> PyResult<_> {
            let source = std::ffi::CString::new(include_str!("runners.py"))?;
            let module = PyModule::from_code(py, &source, c"runners.py", c"measured_runners")?;
            if asyncio {
                module.call_method0("keep_from_uvloop")?;
            }
            let plain_loop = module.call_method0("start_loop")?;
            let about = module.call_method1("about", (&plain_loop,))?.extract()?;
            let bridge = TaskLocals::new(module.call_method0("start_loop")?);
            Ok(Self { module: module.unbind(), plain_loop: plain_loop.unbind(), bridge, about })
        })
        .context("The Python side of the benchmark cannot be started")
    }

    /// The handler of the agent in `folder`, as a Python function.
    pub(crate) fn handler(&self, folder: &Path) -> PyResult<Py<PyAny>> {
        let file = folder.join("hooks.py");
        Python::attach(|py| Ok(self.module.bind(py).call_method1("handler_in", (file.to_string_lossy(),))?.unbind()))
    }

    /// The plain runner of a handler.
    pub(crate) fn plain(&self, handler: &Py<PyAny>, messages: &[Arc<Object>]) -> PyResult<PlainPython> {
        Python::attach(|py| {
            let arguments = (&self.plain_loop, handler, pythonize(py, messages)?);
            Ok(PlainPython(self.module.bind(py).call_method1("Plain", arguments)?.unbind()))
        })
    }

    /// The bridge to a handler.
    pub(crate) fn bridge<'a>(
        &self,
        runtime: &'a Runtime,
        handler: &Py<PyAny>,
        messages: &'a [Arc<Object>],
    ) -> PyResult<Bridge<'a>> {
        Python::attach(|py| {
            let build = self.module.bind(py).getattr("build")?.unbind();
            Ok(Bridge { runtime, handler: handler.clone_ref(py), build, locals: self.bridge.clone(), messages })
        })
    }
}

/// `await asyncio.wait_for(handler(payload.model_copy(deep=True)), 0.5)`, and `asyncio.gather` of such: nothing leaves Python.
pub(crate) struct PlainPython(Py<PyAny>);

impl Runner for PlainPython {
    fn once(&self) -> anyhow::Result<Value> {
        Python::attach(|py| Ok(depythonize(&self.0.bind(py).call_method0("once")?)?))
    }

    fn measure(&self, batches: usize, at_once: usize) -> anyhow::Result<Duration> {
        let seconds: f64 = Python::attach(|py| self.0.bind(py).call_method1("measure", (batches, at_once))?.extract())?;
        ensure!(seconds.is_finite() && seconds > 0.0, "Python's clock stands still");
        Ok(Duration::from_secs_f64(seconds))
    }
}

/// What is at hand without an engine: pyo3-async-runtimes to await the handler, pythonize for the messages of both ways, and
/// tokio's clock for the deadline.
pub(crate) struct Bridge<'a> {
    runtime: &'a Runtime,
    handler: Py<PyAny>,
    build: Py<PyAny>,
    locals: TaskLocals,
    messages: &'a [Arc<Object>],
}

impl Bridge<'_> {
    async fn call(&self) -> anyhow::Result<Value> {
        let result = Python::attach(|py| -> PyResult<_> {
            let payload = self.build.bind(py).call1((pythonize(py, self.messages)?,))?;
            into_future_with_locals(&self.locals, self.handler.bind(py).call1((payload,))?)
        })?;
        let payload = tokio::time::timeout(LIMIT, result).await??;
        Python::attach(|py| Ok(depythonize(&payload.into_bound(py).getattr("messages")?)?))
    }
}

impl Runner for Bridge<'_> {
    fn once(&self) -> anyhow::Result<Value> {
        self.runtime.block_on(self.call())
    }

    fn measure(&self, batches: usize, at_once: usize) -> anyhow::Result<Duration> {
        timed(self.runtime, batches, at_once, || self.call())
    }
}
