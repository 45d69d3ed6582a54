//! Hooks, tools and a model for tests: each writes down that it is called, and does one thing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::controller::Controller;
use super::hooks::{ExecutionHook, ExecutionHooks, ExitSeen, HookFailure, Replacement, ToolMoment};
use super::iteration::{Iteration, IterationChange};
use super::testing::{Log, log, object};
use super::trace::Trace;
use crate::conversation::Object;
use crate::step::{Model, ModelError, ModelReply, ModelRequest, Tokens};
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec};

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
    pub(super) does: Vec<(ExecutionHook, Option<u32>, Does)>,
    pub(super) log: Log,
    pub(super) heard: Arc<Mutex<Vec<(u32, Trace)>>>,
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

pub(super) struct TestTool(pub(super) Arc<ToolSpec>, pub(super) Runs, pub(super) Log, pub(super) Option<Duration>);

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

pub(super) struct TestModel {
    pub(super) name: &'static str,
    pub(super) replies: Arc<Mutex<VecDeque<Replies>>>,
    pub(super) requests: Arc<Mutex<Vec<ModelRequest>>>,
    pub(super) log: Log,
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
