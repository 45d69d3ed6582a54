//! The seven hooks of an execution, as functions of Python's: on the lanes of an agent, or on a loop of the caller's.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use super::lane_calls::Lanes;
use super::trace_delivery::TraceDelivery;
use crate::conversation::Object;
use crate::dispatch::{Answer, Registered};
use crate::execute::{
    Controller, ExecutionHook, ExecutionHooks, ExitSeen, HookFailure, Iteration, IterationChange, Replacement,
    ToolMoment, Trace,
};
use crate::hooks::{AnyPayload, FailureCause, Signal, ToolCallPayload};
use crate::python::{ExecutionHandler, PyHandler};

/// Under these names a hook's call tells what it wants (`tenterhook.execution.calling`).
const GIVEN: &str = "given";
pub(super) const THINK: &str = "think";
pub(super) const CONTEXT: &str = "context";
const CRITICAL: &str = "critical";

/// How long traces are waited for: an abort in `on_trace` is to stop the next tool.
const HEARING: Duration = Duration::from_millis(50);

/// The hooks of an execution that are written in Python. Their time is dispatch's, so that a verdict falls whatever the hook does.
pub struct LaneHooks {
    lanes: Lanes,
    hooks: Vec<LaneHook>,
    traces: Option<Arc<TraceDelivery>>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct LaneHook {
    pub(super) hook: ExecutionHook,
    /// What it looks at: nothing else is made for it.
    pub(super) wants: Vec<String>,
    pub(super) runs: Arc<Registered<PyHandler>>,
}

impl From<ExecutionHandler> for LaneHook {
    fn from(found: ExecutionHandler) -> Self {
        Self { hook: found.hook, wants: found.wants, runs: Registered::new(found.id, found.handler) }
    }
}

impl LaneHooks {
    /// Hooks that run on `lanes`.
    pub(crate) fn new(lanes: Lanes, hooks: impl IntoIterator<Item = ExecutionHandler>) -> Self {
        Self::of(lanes, hooks.into_iter().map(LaneHook::from).collect())
    }

    pub(super) fn of(lanes: Lanes, hooks: Vec<LaneHook>) -> Self {
        let hears = hooks.iter().find(|found| found.hook == ExecutionHook::OnTrace);
        let traces = hears.map(|found| TraceDelivery::new(lanes.clone(), Arc::clone(&found.runs)));
        Self { lanes, hooks, traces }
    }

    /// Ends when every trace so far has been heard, or when `within` is over.
    pub(crate) async fn traces_heard_within(&self, within: Duration) {
        if let Some(traces) = &self.traces {
            traces.heard_within(within).await;
        }
    }

    fn hook(&self, hook: ExecutionHook) -> Option<&LaneHook> {
        self.hooks.iter().find(|found| found.hook == hook)
    }

    /// Calls a hook; nothing where there is none, or it gives nothing.
    async fn call(
        &self,
        hook: ExecutionHook,
        subject: &str,
        controller: &Controller,
        given: impl FnOnce(&mut Given<'_>),
    ) -> Result<Option<Value>, HookFailure> {
        let Some(found) = self.hook(hook) else { return Ok(None) };
        let mut arguments = Given { wants: &found.wants, arguments: Object::new() };
        given(&mut arguments);
        let payload = payload(subject, arguments.arguments, controller);
        outcome(self.lanes.asked(&found.runs, payload).await)
    }

    async fn around_tool(
        &self,
        hook: ExecutionHook,
        moment: ToolMoment<'_>,
        output: Option<&Value>,
    ) -> Result<Replacement, HookFailure> {
        self.call(hook, &moment.tool.name, moment.controller, |given| {
            given.document("iteration", moment.iteration);
            given.document("tool", moment.tool);
            given.value("input", moment.input);
            given.value("tool_call_id", &Value::from(moment.tool_call_id));
            given.value("native_call_id", &Value::from(moment.native_call_id));
            if let Some(output) = output {
                given.value("output", output);
            }
        })
        .await
    }
}

/// What a hook is given, as far as it looks at it.
struct Given<'a> {
    wants: &'a [String],
    arguments: Object,
}

impl Given<'_> {
    fn wants(&self, name: &str) -> bool {
        self.wants.iter().any(|wanted| wanted == name)
    }

    /// Something that Python reads when it is looked at: the text of its JSON.
    fn document(&mut self, name: &str, document: &impl Serialize) {
        if self.wants(name) {
            self.arguments.insert(name.to_owned(), Value::String(text(document)));
        }
    }

    fn value(&mut self, name: &str, value: &Value) {
        if self.wants(name) {
            self.arguments.insert(name.to_owned(), value.clone());
        }
    }
}

/// The JSON of something whose form is known to have one.
pub(super) fn text(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_else(|error| unreachable!("all keys are texts: {error}"))
}

/// The call of a hook.
pub(super) fn payload(subject: &str, arguments: Object, controller: &Controller) -> ToolCallPayload {
    let mut payload = ToolCallPayload::new("", subject, arguments);
    payload.headers.insert("controller".to_owned(), controller.number().to_string());
    payload
}

/// What a hook's answer means.
fn outcome(answer: Answer) -> Result<Option<Value>, HookFailure> {
    let mut told = match answer {
        Answer::Unchanged => return Ok(None),
        Answer::Changed(AnyPayload::ToolCall(payload)) => payload.arguments,
        Answer::Failure(FailureCause::Timeout { limit_ms }) => return Err(HookFailure::TimedOut { limit_ms }),
        Answer::Failure(FailureCause::Raised { message, .. }) if !message.is_empty() => {
            return Err(HookFailure::failed(message));
        }
        Answer::Failure(FailureCause::Raised { kind, .. }) => return Err(HookFailure::failed(kind)),
        Answer::Failure(cause) => return Err(HookFailure::failed(cause.to_string())),
        Answer::Signal(Signal::Retry { feedback }) => return Err(HookFailure::failed(feedback)),
        Answer::Signal(Signal::Rejection { reason, .. }) => return Err(HookFailure::failed(reason)),
        Answer::Changed(_) | Answer::Dropped | Answer::Withdrawn => {
            return Err(HookFailure::failed(FailureCause::Lost.to_string()));
        }
    };
    if let Some(Value::String(message)) = told.remove(CRITICAL) {
        return Err(HookFailure::Critical { message });
    }
    if let Some(Value::String(reason)) = told.remove(THINK) {
        return Err(HookFailure::Think { reason, context: told.remove(CONTEXT).unwrap_or_default() });
    }
    Ok(told.remove(GIVEN))
}

impl ExecutionHooks for LaneHooks {
    fn has(&self, hook: ExecutionHook) -> bool {
        self.hook(hook).is_some()
    }

    fn keeps_time(&self) -> bool {
        true
    }

    fn on_iteration_start<'a>(
        &'a self,
        iteration: &'a Iteration,
        controller: &'a Controller,
        context: &'a Value,
    ) -> BoxFuture<'a, Result<Option<IterationChange>, HookFailure>> {
        let hook = ExecutionHook::OnIterationStart;
        Box::pin(async move {
            let given = self.call(hook, hook.name(), controller, |given| {
                given.document("iteration", iteration);
                given.value("context", context);
            });
            match given.await? {
                Some(Value::Object(change)) => IterationChange::read(change).map(Some).map_err(HookFailure::failed),
                _ => Ok(None),
            }
        })
    }

    fn on_before_execution<'a>(
        &'a self,
        iteration: &'a Iteration,
        controller: &'a Controller,
    ) -> BoxFuture<'a, Result<Option<String>, HookFailure>> {
        let hook = ExecutionHook::OnBeforeExecution;
        Box::pin(async move {
            let given = self.call(hook, hook.name(), controller, |given| given.document("iteration", iteration));
            match given.await? {
                Some(Value::String(code)) => Ok(Some(code)),
                _ => Ok(None),
            }
        })
    }

    fn on_before_tool<'a>(&'a self, moment: ToolMoment<'a>) -> BoxFuture<'a, Result<Replacement, HookFailure>> {
        Box::pin(self.around_tool(ExecutionHook::OnBeforeTool, moment, None))
    }

    fn on_after_tool<'a>(
        &'a self,
        moment: ToolMoment<'a>,
        output: &'a Value,
    ) -> BoxFuture<'a, Result<Replacement, HookFailure>> {
        Box::pin(self.around_tool(ExecutionHook::OnAfterTool, moment, Some(output)))
    }

    fn on_trace(&self, trace: &Trace, iteration: u32, controller: &Controller) {
        if let Some(traces) = &self.traces {
            traces.put(trace, iteration, controller);
        }
    }

    fn traces_heard(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.traces_heard_within(HEARING))
    }

    fn on_exit<'a>(
        &'a self,
        exit: &'a ExitSeen,
        result: &'a Value,
        controller: &'a Controller,
    ) -> BoxFuture<'a, Result<(), HookFailure>> {
        let hook = ExecutionHook::OnExit;
        Box::pin(async move {
            let given = self.call(hook, hook.name(), controller, |given| {
                given.document("exit", exit);
                given.value("result", result);
            });
            given.await.map(drop)
        })
    }

    fn on_iteration_end<'a>(
        &'a self,
        iteration: &'a Iteration,
        controller: &'a Controller,
    ) -> BoxFuture<'a, Result<(), HookFailure>> {
        let hook = ExecutionHook::OnIterationEnd;
        Box::pin(async move {
            let given = self.call(hook, hook.name(), controller, |given| given.document("iteration", iteration));
            given.await.map(drop)
        })
    }
}

impl fmt::Debug for LaneHooks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.hooks.iter().map(|found| found.hook.name()).collect();
        out.debug_struct("LaneHooks").field("hooks", &names).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn answered(arguments: Value) -> Answer {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        Answer::Changed(AnyPayload::ToolCall(ToolCallPayload::new("", "hook", arguments)))
    }

    fn raised(kind: &str, message: &str) -> Answer {
        Answer::Failure(FailureCause::Raised { kind: kind.into(), message: message.into(), frames: Vec::new() })
    }

    #[test]
    fn what_a_hook_answers_is_a_replacement_or_a_failure() {
        let failed = |message: &str| Err(HookFailure::failed(message));
        let think = HookFailure::Think { reason: "look".into(), context: json!({"a": 1}) };
        let signal = Signal::Rejection { reason: "no".into(), response: None };
        let lost = "its thread ended without an answer";
        for (answer, expected) in [
            (Answer::Unchanged, Ok(None)),
            (answered(json!({})), Ok(None)),
            (answered(json!({"given": null})), Ok(Some(Value::Null))),
            (answered(json!({"given": {"a": 1}})), Ok(Some(json!({"a": 1})))),
            (answered(json!({"think": "look", "context": {"a": 1}})), Err(think)),
            (answered(json!({"critical": "stop"})), Err(HookFailure::Critical { message: "stop".into() })),
            (raised("ValueError", "too long"), failed("too long")),
            (raised("ValueError", ""), failed("ValueError")),
            (Answer::Failure(FailureCause::Timeout { limit_ms: 5 }), Err(HookFailure::TimedOut { limit_ms: 5 })),
            (Answer::Failure(FailureCause::ShutDown), failed("the engine is shut down")),
            (Answer::Signal(signal), failed("no")),
            (Answer::Withdrawn, failed(lost)),
        ] {
            assert_eq!(outcome(answer), expected);
        }
    }

    #[test]
    fn a_hook_is_given_what_it_looks_at_and_nothing_else() {
        let wants = vec!["iteration".to_owned(), "input".to_owned()];
        let mut given = Given { wants: &wants, arguments: Object::new() };
        given.document("iteration", &json!({"number": 1}));
        given.document("tool", &PathBuf::from("never written"));
        given.value("input", &Value::Null);
        given.value("output", &json!(2));
        assert_eq!(Value::Object(given.arguments), json!({"iteration": "{\"number\":1}", "input": null}));
    }
}
