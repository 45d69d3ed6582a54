//! Executions as Python sees them: they run where turns do, their hooks and tools on the caller's loop, and events come by letters.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::exceptions;
use super::turns::{Told, Turn, TurnEngine, begin, ready};
use crate::agent::{LaneHooks, LaneModel, LaneTool, Lanes, Sandbox, model_of_entry};
use crate::conversation::Object;
use crate::execute::{CodeForm, CodeLimits, Execution, ExecutionBuilder, ExecutionEvent, Exit};
use crate::python::{CallerLane, Controller, FoundExecutionHook, FoundTool};
use crate::step::{Hooks, Identity, NoHooks};

/// How long a model that is a function may take: as long as one that is served.
const MODEL_TIMEOUT: Duration = Duration::from_mins(5);

/// What `tenterhook.execution` says of an execution. Times are in seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    instructions: String,
    sender_id: String,
    messages: Vec<Object>,
    variables: Object,
    exits: Vec<DescribedExit>,
    iterations: i64,
    timeout: f64,
    hook_timeout: f64,
    tool_timeout: f64,
    tool_calls: u32,
    repeats: Option<u32>,
    limits: DescribedLimits,
    is_fenced: bool,
    is_chat: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedExit {
    name: String,
    aliases: Vec<String>,
    description: String,
    schema: Option<Value>,
}

/// Those of [`CodeLimits`] beside the time, as far as the caller says them.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DescribedLimits {
    memory: Option<usize>,
    recursion: Option<usize>,
    output: Option<usize>,
    source: Option<usize>,
    calls: Option<usize>,
}

/// A model, as Python gives it: the entry of a manifest as JSON, or a function.
#[derive(Debug, FromPyObject)]
pub(super) enum GivenModel {
    Entry(String),
    Function(FoundExecutionHook),
}

/// Begins an execution whose hooks, tools and models run on `lane`. With `listens` all its events are told, else the last alone.
#[pyfunction]
#[pyo3(signature = (description, lane, *, hooks, tools, models, signal=None, agent=None, listens=false))]
#[expect(
    clippy::too_many_arguments,
    clippy::needless_pass_by_value,
    reason = "arguments come from Python by their names"
)]
pub(super) fn begin_execution(
    py: Python<'_>,
    description: &str,
    lane: &CallerLane,
    hooks: Vec<FoundExecutionHook>,
    tools: Vec<FoundTool>,
    models: Vec<GivenModel>,
    signal: Option<Py<Controller>>,
    agent: Option<Py<TurnEngine>>,
    listens: bool,
) -> PyResult<Turn> {
    ready()?;
    let unfit = |message: String| exceptions::execution_unfit(py, &message);
    let described: Described = serde_json::from_str(description).map_err(|error| unfit(error.to_string()))?;
    let (hook_timeout, tool_timeout) = (seconds(described.hook_timeout), seconds(described.tool_timeout));
    let lanes = Lanes::Caller(lane.dispatcher());
    // Its first start needs a lock that somebody may hold who waits for the interpreter.
    let runner = py.detach(Sandbox::start).map_err(|error| exceptions::load_error(py, &error))?;
    let identity = Identity { sender_id: described.sender_id.clone(), ..Identity::default() };
    let mut builder = described.builder().runner(runner);
    for tool in tools {
        let found = tool.into_tool(tool_timeout).map_err(|error| unfit(error.to_string()))?;
        let tool = LaneTool::found(&lanes, found);
        builder = builder.tool_returning(tool.tool, tool.returns);
    }
    for model in models {
        builder = match model {
            GivenModel::Entry(entry) => {
                builder.model(model_of_entry(&entry, Path::new(".")).map_err(|error| unfit(error.to_string()))?)
            }
            GivenModel::Function(function) => {
                let (id, handler) = function.into_function(MODEL_TIMEOUT);
                builder.model(Arc::new(LaneModel::new(lanes.clone(), id, handler)))
            }
        };
    }
    let mut around: Arc<dyn Hooks> = Arc::new(NoHooks);
    if let Some(agent) = &agent {
        let agent = &agent.get().agent;
        if let Some(hooks) = &agent.hooks {
            around = hooks.clone();
        }
        builder = builder.model(agent.engine.model());
    }
    builder = builder.agent_hooks(around, identity);
    if let Some(signal) = &signal {
        builder = builder.signal(&signal.get().0);
    }
    let hooks = hooks.into_iter().filter_map(|hook| hook.into_handler(hook_timeout));
    let hooks = Arc::new(LaneHooks::new(lanes, hooks));
    let execution = builder.hooks(hooks.clone()).build().map_err(|error| unfit(error.to_string()))?;
    begin(Box::pin(events(&execution, hooks, hook_timeout, listens)), Told::Execution)
}

/// The events that the caller hears. Before the last every trace has been heard.
fn events(
    execution: &Execution,
    hooks: Arc<LaneHooks>,
    within: Duration,
    listens: bool,
) -> impl futures_util::Stream<Item = ExecutionEvent> + Send + use<> {
    execution.run().filter_map(move |event| {
        let hooks = Arc::clone(&hooks);
        async move {
            let is_last = matches!(event, ExecutionEvent::Finished { .. });
            if is_last {
                hooks.traces_heard_within(within).await;
            }
            (is_last || listens).then_some(event)
        }
    })
}

impl Described {
    fn builder(self) -> ExecutionBuilder {
        let (given, usual) = (self.limits, CodeLimits::default());
        let limits = CodeLimits {
            time: seconds(self.timeout),
            memory: given.memory.unwrap_or(usual.memory),
            recursion: given.recursion.unwrap_or(usual.recursion),
            output: given.output.unwrap_or(usual.output),
            source: given.source.unwrap_or(usual.source),
            calls: given.calls.unwrap_or(usual.calls),
        };
        let mut builder = Execution::builder()
            .instructions(self.instructions)
            .messages(self.messages.into_iter().map(Arc::new).collect())
            .variables(self.variables)
            .iterations(self.iterations)
            .limits(limits)
            .hook_timeout(seconds(self.hook_timeout))
            .tool_timeout(seconds(self.tool_timeout))
            .tool_calls(self.tool_calls)
            .form(if self.is_fenced { CodeForm::Fenced } else { CodeForm::Native })
            .chat(self.is_chat);
        if let Some(times) = self.repeats {
            builder = builder.repeats(times);
        }
        self.exits.into_iter().fold(builder, |builder, exit| {
            builder.exit(Exit {
                name: exit.name,
                aliases: exit.aliases,
                description: exit.description,
                schema: exit.schema,
            })
        })
    }
}

/// A time that Python has checked: it is positive, and no longer than a year.
fn seconds(time: f64) -> Duration {
    Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX)
}
