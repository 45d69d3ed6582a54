//! What tests of this room share: a model with a script, a sandbox that plays a list of statements, tools and hooks that do one thing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::controller::Controller;
use super::event::{ExecutionEvent, ExecutionResult};
use super::execution::{Execution, ExecutionBuilder};
use super::hooks::{ExecutionHook, ExecutionHooks, ExitSeen, HookFailure, Replacement, ToolMoment};
use super::iteration::{Iteration, IterationChange};
use super::playing::Player;
use super::trace::Trace;
use crate::conversation::{Object, text_of};
use crate::step::{Model, ModelError, ModelReply, ModelRequest, RequestedCall, Tokens, Usage};
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec};

/// What has happened, in order.
pub(super) type Log = Arc<Mutex<Vec<String>>>;

pub(super) fn log(log: &Log, line: impl Into<String>) {
    log.lock().unwrap().push(line.into());
}

/// The object that this is written as.
pub(super) fn object(value: Value) -> Object {
    if let Value::Object(object) = value { object } else { panic!("{value} is no object") }
}

/// What a hook does.
#[derive(Clone)]
pub(super) enum Does {
    Fails(&'static str),
    Thinks(&'static str, Value),
    Critical(&'static str),
    Aborts(&'static str),
    AbortsAndFails(&'static str),
    Hangs,
    Gives(Value),
    /// `on_trace` aborts when it hears a trace of this type.
    AbortsAt(&'static str, &'static str),
    Panics,
}

/// Hooks that write down when they are called, and do what is said of them, in that iteration or in each.
pub(super) struct TestHooks {
    does: Vec<(ExecutionHook, Option<u32>, Does)>,
    log: Log,
    heard: Arc<Mutex<Vec<(u32, Trace)>>>,
}

impl TestHooks {
    fn does(&self, hook: ExecutionHook, iteration: u32) -> Option<&Does> {
        let here =
            |(at, only, _): &&(ExecutionHook, Option<u32>, Does)| *at == hook && only.is_none_or(|n| n == iteration);
        self.does.iter().find(here).map(|(_, _, does)| does)
    }

    async fn act(
        &self,
        hook: ExecutionHook,
        iteration: u32,
        controller: &Controller,
    ) -> Result<Option<Value>, HookFailure> {
        match self.does(hook, iteration) {
            None | Some(Does::AbortsAt(..)) => Ok(None),
            Some(Does::Gives(value)) => Ok(Some(value.clone())),
            Some(Does::Fails(text)) => Err(HookFailure::failed(*text)),
            Some(Does::Thinks(reason, context)) => {
                Err(HookFailure::Think { reason: (*reason).into(), context: context.clone() })
            }
            Some(Does::Critical(text)) => Err(HookFailure::Critical { message: (*text).into() }),
            Some(Does::Aborts(reason)) => {
                controller.abort(*reason);
                Ok(None)
            }
            Some(Does::AbortsAndFails(reason)) => {
                controller.abort(*reason);
                Err(HookFailure::failed("failed as well"))
            }
            Some(Does::Hangs) => std::future::pending().await,
            Some(Does::Panics) => panic!("a hook that panics"),
        }
    }
}

impl ExecutionHooks for TestHooks {
    fn on_iteration_start<'a>(
        &'a self,
        iteration: &'a Iteration,
        controller: &'a Controller,
        context: &'a Value,
    ) -> BoxFuture<'a, Result<Option<IterationChange>, HookFailure>> {
        Box::pin(async move {
            let context = if context.is_null() { String::new() } else { format!(" {context}") };
            log(&self.log, format!("start {}{context}", iteration.number));
            let given = self.act(ExecutionHook::OnIterationStart, iteration.number, controller).await?;
            given.map(|given| IterationChange::read(object(given)).map_err(HookFailure::failed)).transpose()
        })
    }

    fn on_before_execution<'a>(
        &'a self,
        iteration: &'a Iteration,
        controller: &'a Controller,
    ) -> BoxFuture<'a, Result<Option<String>, HookFailure>> {
        Box::pin(async move {
            log(&self.log, format!("before {}", iteration.number));
            let given = self.act(ExecutionHook::OnBeforeExecution, iteration.number, controller).await?;
            Ok(given.map(|code| code.as_str().unwrap().to_owned()))
        })
    }

    fn on_before_tool<'a>(&'a self, moment: ToolMoment<'a>) -> BoxFuture<'a, Result<Replacement, HookFailure>> {
        Box::pin(async move {
            log(&self.log, format!("before_tool {} {}", moment.tool.name, moment.input));
            self.act(ExecutionHook::OnBeforeTool, moment.iteration.number, moment.controller).await
        })
    }

    fn on_after_tool<'a>(
        &'a self,
        moment: ToolMoment<'a>,
        output: &'a Value,
    ) -> BoxFuture<'a, Result<Replacement, HookFailure>> {
        Box::pin(async move {
            log(&self.log, format!("after_tool {} {} {output}", moment.tool.name, moment.input));
            self.act(ExecutionHook::OnAfterTool, moment.iteration.number, moment.controller).await
        })
    }

    fn on_trace(&self, trace: &Trace, iteration: u32, controller: &Controller) {
        self.heard.lock().unwrap().push((iteration, trace.clone()));
        match self.does(ExecutionHook::OnTrace, iteration) {
            Some(Does::AbortsAt(kind, reason)) if json!(trace)["type"] == *kind => controller.abort(*reason),
            Some(Does::Panics) => panic!("a hook that panics"),
            _ => {}
        }
    }

    fn on_exit<'a>(
        &'a self,
        exit: &'a ExitSeen,
        result: &'a Value,
        controller: &'a Controller,
    ) -> BoxFuture<'a, Result<(), HookFailure>> {
        Box::pin(async move {
            log(&self.log, format!("exit {} {result}", exit.name));
            self.act(ExecutionHook::OnExit, 0, controller).await.map(|_| ())
        })
    }

    fn on_iteration_end<'a>(
        &'a self,
        iteration: &'a Iteration,
        controller: &'a Controller,
    ) -> BoxFuture<'a, Result<(), HookFailure>> {
        Box::pin(async move {
            log(&self.log, format!("end {} {}", iteration.number, iteration.status.name()));
            self.act(ExecutionHook::OnIterationEnd, iteration.number, controller).await.map(|_| ())
        })
    }
}

/// What a tool does.
#[derive(Clone)]
pub(super) enum Runs {
    Gives(Value),
    /// Gives what it was given.
    Echoes,
    Fails(&'static str),
    Thinks(&'static str, Value),
    Hangs,
    Takes(Duration, Value),
    /// Aborts after a while, and ends after another.
    Aborts(Controller, Duration, Duration),
    /// Ends when it is cancelled.
    Unwinds,
    Says(&'static str),
}

struct TestTool(Arc<ToolSpec>, Runs, Log, Option<Duration>);

impl Tool for TestTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn timeout(&self) -> Option<Duration> {
        self.3
    }

    fn call(&self, arguments: Object, context: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        log(&self.2, format!("tool {} {}", self.0.name, Value::Object(arguments.clone())));
        Box::pin(async move {
            match &self.1 {
                Runs::Gives(value) => ToolOutput::of(value.clone()),
                Runs::Echoes => ToolOutput::of(Value::Object(arguments)),
                Runs::Fails(text) => ToolOutput::error(*text),
                Runs::Thinks(reason, value) => ToolOutput::thinking(*reason, value.clone()),
                Runs::Hangs => std::future::pending().await,
                Runs::Takes(time, value) => {
                    crate::dispatch::sleep(*time).await;
                    ToolOutput::of(value.clone())
                }
                Runs::Aborts(controller, before, after) => {
                    crate::dispatch::sleep(*before).await;
                    controller.abort("ABORTED");
                    crate::dispatch::sleep(*after).await;
                    log(&self.2, format!("tool {} ended, cancelled: {}", self.0.name, context.is_cancelled()));
                    ToolOutput::of("late")
                }
                Runs::Unwinds => {
                    context.cancelled().await;
                    log(&self.2, format!("tool {} unwound", self.0.name));
                    ToolOutput::error("unwound")
                }
                Runs::Says(text) => {
                    context.send((*text).into()).await;
                    ToolOutput::of(true)
                }
            }
        })
    }
}

/// What the model answers.
#[derive(Clone)]
pub(super) enum Replies {
    With(ModelReply),
    Not,
    Hangs,
    AbortsAndFails(Controller),
}

struct TestModel {
    name: &'static str,
    replies: Arc<Mutex<VecDeque<Replies>>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    log: Log,
}

impl Model for TestModel {
    fn name(&self) -> &str {
        self.name
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let other = if self.name == "model" { String::new() } else { format!(" {}", self.name) };
            log(&self.log, format!("model{other}"));
            self.requests.lock().unwrap().push(request.clone());
            let reply = self.replies.lock().unwrap().pop_front();
            let fails = || Err(ModelError::Unreachable { model: self.name.into(), message: "no route".into() });
            match reply {
                Some(Replies::With(reply)) => Ok(reply),
                Some(Replies::Hangs) => std::future::pending().await,
                Some(Replies::Not) => fails(),
                Some(Replies::AbortsAndFails(controller)) => {
                    controller.abort("ABORTED");
                    fails()
                }
                None => Err(ModelError::Exhausted("the script has ended".into())),
            }
        })
    }
}

/// An execution that is to be run.
pub(super) struct Scene {
    pub(super) builder: ExecutionBuilder,
    replies: Arc<Mutex<VecDeque<Replies>>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    heard: Arc<Mutex<Vec<(u32, Trace)>>>,
    does: Vec<(ExecutionHook, Option<u32>, Does)>,
    pub(super) log: Log,
    hooked: bool,
}

/// What has come of it.
pub(super) struct Done {
    pub(super) result: ExecutionResult,
    pub(super) events: Vec<ExecutionEvent>,
    pub(super) log: Vec<String>,
    pub(super) requests: Vec<ModelRequest>,
    pub(super) heard: Vec<(u32, Trace)>,
}

/// An execution whose model writes these codes, one after the other.
pub(super) fn scene(codes: &[&str]) -> Scene {
    let (log, replies, requests) = (Log::default(), Arc::default(), Arc::default());
    let model = |name| TestModel {
        name,
        replies: Arc::clone(&replies),
        requests: Arc::clone(&requests),
        log: Arc::clone(&log),
    };
    let builder = Execution::builder()
        .instructions("Help.")
        .model(Arc::new(model("model")))
        .model(Arc::new(model("other")))
        .runner(Arc::new(Player(Arc::clone(&log))));
    let scene = Scene { builder, replies, requests, heard: Arc::default(), does: Vec::new(), log, hooked: true };
    codes.iter().fold(scene, |scene, code| scene.replies(Replies::With(coded(code))))
}

impl Scene {
    pub(super) fn replies(self, reply: Replies) -> Self {
        self.replies.lock().unwrap().push_back(reply);
        self
    }

    pub(super) fn says(self, text: &str) -> Self {
        self.replies(Replies::With(ModelReply::text(text)))
    }

    pub(super) fn tool(self, name: &str, runs: Runs) -> Self {
        self.tool_with(ToolSpec { parameters: open(), ..ToolSpec::new(name, "Does it.") }, runs, None)
    }

    pub(super) fn tool_with(mut self, spec: ToolSpec, runs: Runs, timeout: Option<Duration>) -> Self {
        self.builder = self.builder.tool(Arc::new(TestTool(Arc::new(spec), runs, Arc::clone(&self.log), timeout)));
        self
    }

    pub(super) fn hook(mut self, hook: ExecutionHook, does: Does) -> Self {
        self.does.push((hook, None, does));
        self
    }

    pub(super) fn hook_in(mut self, iteration: u32, hook: ExecutionHook, does: Does) -> Self {
        self.does.push((hook, Some(iteration), does));
        self
    }

    pub(super) fn unhooked(mut self) -> Self {
        self.hooked = false;
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(ExecutionBuilder) -> ExecutionBuilder) -> Self {
        self.builder = change(self.builder);
        self
    }

    pub(super) fn execution(&mut self) -> Execution {
        let mut builder = self.builder.clone();
        if self.hooked {
            let (does, log, heard) = (self.does.clone(), Arc::clone(&self.log), Arc::clone(&self.heard));
            builder = builder.hooks(Arc::new(TestHooks { does, log, heard }));
        }
        builder.build().unwrap()
    }

    pub(super) async fn run(mut self) -> Done {
        let events: Vec<_> = self.execution().run().collect().await;
        let Some(ExecutionEvent::Finished { result }) = events.last() else { panic!("an execution ends") };
        let (result, log) = ((**result).clone(), self.log.lock().unwrap().clone());
        let (requests, heard) = (self.requests.lock().unwrap().clone(), self.heard.lock().unwrap().clone());
        Done { result, events, log, requests, heard }
    }
}

impl Done {
    /// The statuses of the iterations.
    pub(super) fn statuses(&self) -> Vec<&'static str> {
        self.result.iterations.iter().map(|iteration| iteration.status.name()).collect()
    }

    pub(super) fn error(&self) -> &str {
        self.result.error.as_deref().unwrap_or_default()
    }

    /// The text of the last message of a request.
    pub(super) fn told(&self, request: usize) -> String {
        text_of(self.requests[request].messages.last().unwrap()).unwrap()
    }

    /// The types of the traces of an iteration.
    pub(super) fn traces(&self, iteration: usize) -> Vec<String> {
        let of = |trace: &Trace| json!(trace)["type"].as_str().unwrap().to_owned();
        self.result.iterations[iteration].traces.iter().map(of).collect()
    }

    /// The traces of tool calls of an iteration, without ids and times.
    pub(super) fn calls(&self, iteration: usize) -> Vec<Value> {
        let traces = self.result.iterations[iteration].traces.iter().map(|trace| json!(trace));
        let calls = traces.filter(|trace| trace["type"] == "tool_call");
        calls
            .map(|mut call| {
                for key in ["type", "started_at", "ended_at", "tool_call_id", "native_call_id"] {
                    call.as_object_mut().unwrap().shift_remove(key);
                }
                call
            })
            .collect()
    }

    /// What was told to the user.
    pub(super) fn messages(&self) -> Vec<&str> {
        let said = |event| if let &ExecutionEvent::Message { ref text } = event { Some(text.as_str()) } else { None };
        self.events.iter().filter_map(said).collect()
    }
}

/// An answer that asks for code by a native call.
pub(super) fn coded(code: &str) -> ModelReply {
    let arguments = Ok(object(json!({"code": code})));
    let call = RequestedCall { id: None, tool_name: "run_python".into(), arguments };
    let usage = Some(Usage { input: 10, output: 2 });
    ModelReply { calls: vec![call], usage, ..ModelReply::default() }
}

/// The schema of arguments that may be anything.
pub(super) fn open() -> Object {
    object(json!({"type": "object", "properties": {}, "additionalProperties": true}))
}
