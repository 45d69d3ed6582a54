//! An execution, and how it is described.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::sync::mpsc::unbounded_channel;

use super::controller::Controller;
use super::event::{ExecutionEvent, ExecutionResult};
use super::exit::Exit;
use super::hooks::{ExecutionHooks, HOOK_TIMEOUT, NoExecutionHooks};
use super::run;
use super::runner::{CodeLimits, CodeRunner};
use super::shape::Shape;
use crate::conversation::Object;
use crate::step::{EventStream, Hooks, Identity, Model, NoHooks};
use crate::tools::{TOOL_TIMEOUT, Tool};

/// The events of an execution.
pub type ExecutionStream = EventStream<ExecutionEvent>;

/// How many iterations an execution has unless it says otherwise.
pub const ITERATIONS: u32 = 10;
/// How many iterations an execution has at most.
pub const MOST_ITERATIONS: u32 = 100;

/// How many tools the code of one execution may call unless it says otherwise.
pub const TOOL_CALLS: u32 = 250;

/// After how long a tool that still runs is slow.
const SLOW_AFTER: Duration = Duration::from_secs(15);

/// How the model gives its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodeForm {
    /// As a native tool call, `run_python`.
    #[default]
    Native,
    /// In its text, between fences. For models that know no tool calls.
    Fenced,
}

/// A tool that generated code may call.
#[derive(Clone)]
pub struct ExecutionTool {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// What it gives, as a Python annotation: `list[Order]`, for instance. For the model alone.
    pub returns: Option<String>,
}

/// A model that answers with code, tools that the code calls, and exits that it may reach. Cheap to clone; each run begins anew.
#[derive(Clone)]
pub struct Execution(pub(super) Arc<Plan>);

/// What an execution is made of.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) instructions: String,
    pub(super) messages: Vec<Arc<Object>>,
    pub(super) context: Value,
    pub(super) variables: Object,
    pub(super) tools: Vec<ExecutionTool>,
    pub(super) exits: Vec<Exit>,
    /// The compiled schemas of the exits, in their order; made when the plan is checked.
    pub(super) shapes: Vec<Option<Arc<Shape>>>,
    pub(super) models: Vec<Arc<dyn Model>>,
    pub(super) runner: Option<Arc<dyn CodeRunner>>,
    pub(super) hooks: Arc<dyn ExecutionHooks>,
    pub(super) agent_hooks: Arc<dyn Hooks>,
    pub(super) identity: Identity,
    pub(super) controller: Controller,
    pub(super) iterations: i64,
    pub(super) limits: CodeLimits,
    pub(super) hook_timeout: Duration,
    pub(super) tool_timeout: Duration,
    /// After how long a tool that still runs is traced as slow.
    pub(super) slow_after: Duration,
    pub(super) tool_calls: u32,
    pub(super) repeats: Option<u32>,
    pub(super) form: CodeForm,
    pub(super) chat: bool,
}

/// Describes an execution.
#[derive(Clone)]
#[must_use = "an execution is made by `build`"]
pub struct ExecutionBuilder(Plan);

impl Execution {
    /// Describes one.
    pub fn builder() -> ExecutionBuilder {
        ExecutionBuilder(Plan {
            instructions: String::new(),
            messages: Vec::new(),
            context: Value::Null,
            variables: Object::new(),
            tools: Vec::new(),
            exits: Vec::new(),
            shapes: Vec::new(),
            models: Vec::new(),
            runner: None,
            hooks: Arc::new(NoExecutionHooks),
            agent_hooks: Arc::new(NoHooks),
            identity: Identity::default(),
            controller: Controller::new(),
            iterations: i64::from(ITERATIONS),
            limits: CodeLimits::default(),
            hook_timeout: HOOK_TIMEOUT,
            tool_timeout: TOOL_TIMEOUT,
            slow_after: SLOW_AFTER,
            tool_calls: TOOL_CALLS,
            repeats: None,
            form: CodeForm::default(),
            chat: false,
        })
    }

    /// Runs it; gives its events as they happen. It goes on while the stream is polled; when the stream is dropped, it is cancelled.
    pub fn run(&self) -> ExecutionStream {
        let (out, events) = unbounded_channel();
        ExecutionStream::new(Box::pin(run::run(Arc::clone(&self.0), out)), events)
    }

    /// Runs it to its end.
    pub async fn finished(&self) -> ExecutionResult {
        let mut events = self.run();
        while let Some(event) = events.next().await {
            if let ExecutionEvent::Finished { result } = event {
                return *result;
            }
        }
        unreachable!("the last event of an execution is its end")
    }
}

impl ExecutionBuilder {
    /// What the model is to do.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.0.instructions = instructions.into();
        self
    }

    /// The conversation so far, in the form of Chat Completions.
    pub fn messages(mut self, messages: Vec<Arc<Object>>) -> Self {
        self.0.messages = messages;
        self
    }

    /// Whatever hooks are to be given with each iteration, and the caller with the result. The model does not see it.
    pub fn context(mut self, context: Value) -> Self {
        self.0.context = context;
        self
    }

    /// Variables that the code begins with.
    pub fn variables(mut self, variables: Object) -> Self {
        self.0.variables = variables;
        self
    }

    /// A tool that the code may call.
    pub fn tool(self, tool: Arc<dyn Tool>) -> Self {
        self.tool_returning(tool, None)
    }

    /// As [`ExecutionBuilder::tool`], with what it gives as a Python annotation.
    pub fn tool_returning(mut self, tool: Arc<dyn Tool>, returns: Option<String>) -> Self {
        self.0.tools.push(ExecutionTool { tool, returns });
        self
    }

    /// An end that the code may reach. Without any there is `done`, and in a chat always `listen`.
    pub fn exit(mut self, exit: Exit) -> Self {
        self.0.exits.push(exit);
        self
    }

    /// The model. The first that is given is asked; a hook may choose another of them by its name.
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.0.models.push(model);
        self
    }

    /// What runs the code.
    pub fn runner(mut self, runner: Arc<dyn CodeRunner>) -> Self {
        self.0.runner = Some(runner);
        self
    }

    /// The seven hooks.
    pub fn hooks(mut self, hooks: Arc<dyn ExecutionHooks>) -> Self {
        self.0.hooks = hooks;
        self
    }

    /// An agent's own hooks: they stand around the model and tool calls of the execution.
    pub fn agent_hooks(mut self, hooks: Arc<dyn Hooks>, identity: Identity) -> Self {
        self.0.agent_hooks = hooks;
        self.0.identity = identity;
        self
    }

    /// Who may abort it: the execution's own controller is joined to this one.
    pub fn signal(mut self, controller: &Controller) -> Self {
        self.0.controller = controller.clone();
        self
    }

    /// How many iterations it has at most: 1 to 100, by default 10.
    pub fn iterations(mut self, iterations: i64) -> Self {
        self.0.iterations = iterations;
        self
    }

    /// What the code may use.
    pub fn limits(mut self, limits: CodeLimits) -> Self {
        self.0.limits = limits;
        self
    }

    /// How long the code of an iteration may compute, by default 60 s.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.0.limits.time = time;
        self
    }

    /// How long a hook may take, by default 5 s. One that is not done has failed.
    pub fn hook_timeout(mut self, time: Duration) -> Self {
        self.0.hook_timeout = time;
        self
    }

    /// How long a tool may take that says nothing of its own, by default 10 s.
    pub fn tool_timeout(mut self, time: Duration) -> Self {
        self.0.tool_timeout = time;
        self
    }

    /// Takes away what runs the code.
    #[cfg(test)]
    pub(super) fn without_runner(mut self) -> Self {
        self.0.runner = None;
        self
    }

    /// After how long a tool that still runs is traced as slow.
    #[cfg(test)]
    pub(super) fn slow_after(mut self, time: Duration) -> Self {
        self.0.slow_after = time;
        self
    }

    /// How many tool calls the code may make in all, by default 250. It is checked where the code calls.
    pub fn tool_calls(mut self, calls: u32) -> Self {
        self.0.tool_calls = calls;
        self
    }

    /// How often the code may call the same tool with the same arguments: the call after that aborts the execution. By default as often as it
    /// likes.
    pub fn repeats(mut self, times: u32) -> Self {
        self.0.repeats = Some(times);
        self
    }

    /// How the model gives its code.
    pub fn form(mut self, form: CodeForm) -> Self {
        self.0.form = form;
        self
    }

    /// Whether the model talks to a user: its texts are messages, and there is the exit `listen`.
    pub fn chat(mut self, chat: bool) -> Self {
        self.0.chat = chat;
        self
    }

    /// The execution.
    ///
    /// # Errors
    ///
    /// What was given cannot be run.
    pub fn build(self) -> Result<Execution, super::Error> {
        super::plan::checked(self.0).map(|plan| Execution(Arc::new(plan)))
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Execution").finish_non_exhaustive()
    }
}

impl fmt::Debug for ExecutionBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExecutionBuilder").finish_non_exhaustive()
    }
}

impl fmt::Debug for ExecutionTool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExecutionTool").field("name", &self.tool.spec().name).finish_non_exhaustive()
    }
}
