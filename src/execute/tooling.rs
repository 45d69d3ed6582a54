//! One tool call of generated code: the hooks around it, its handler within its time.
//!
//! ```text
//! budget, arguments, repeats ─▶ on_before_tool ─▶ the agent's hook ─▶ the schema ─▶ handler ─▶ the agent's hook ─▶ on_after_tool ─▶ trace
//! ```

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use serde_json::Value;
use tracing::Instrument as _;
use tracing::field::Empty;

use super::binding::{bound, missing};
use super::budget::Verdict;
use super::calling::{Desk, Stop};
use super::execution::ExecutionTool;
use super::hooks::{ExecutionHook, HookFailure, ToolMoment};
use super::runner::{HostCall, HostRefusal};
use super::trace::Traced;
use super::under_way::{InExecution, UnderWay};
use crate::conversation::{Object, text_of_value};
use crate::dispatch::sleep;
use crate::step::{Call, Preflight, preflight, result};
use crate::telemetry::{EXECUTE, fails};
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec};

impl Desk {
    /// Calls a tool.
    pub(super) async fn tool(&self, call: HostCall) -> Result<Value, HostRefusal> {
        let Some(tool) = self.find(&call.name) else {
            return Err(self.raises("NameError", format!("name '{}' is not defined", call.name)));
        };
        let spec = Arc::clone(tool.tool.spec());
        let span = tracing::info_span!(
            target: EXECUTE, "execute_tool", otel.name = format!("execute_tool {}", spec.name), otel.status_code = Empty,
            error.type = Empty, gen_ai.operation.name = "execute_tool", gen_ai.tool.name = spec.name,
            gen_ai.tool.call.id = Empty, gen_ai.tool.type = "function",
        );
        let mut under_way = UnderWay::begin(self, &spec.name);
        span.record("gen_ai.tool.call.id", &under_way.id);
        let given = self.called(tool, &spec, call, &mut under_way).instrument(span.clone()).await;
        if given.is_err() {
            fails(&span, "tool_error");
        }
        match given {
            Ok(output) => {
                under_way.end(Some(output.clone()), None);
                if self.is_over() { Err(HostRefusal::Stop) } else { Ok(output) }
            }
            Err(Refused::Raises(kind, message)) => {
                under_way.end(None, Some(message.clone()));
                let raised = self.raises(kind, message);
                Err(if self.is_over() { HostRefusal::Stop } else { raised })
            }
            Err(Refused::Stops(stop, message)) => {
                under_way.end(None, Some(message));
                Err(stop.map_or(HostRefusal::Stop, |stop| self.stops(stop)))
            }
        }
    }

    fn find(&self, name: &str) -> Option<&ExecutionTool> {
        self.journal.running.plan.tools.iter().find(|tool| tool.tool.spec().name == name)
    }

    async fn called(
        &self,
        tool: &ExecutionTool,
        spec: &ToolSpec,
        call: HostCall,
        under_way: &mut UnderWay<'_>,
    ) -> Result<Value, Refused> {
        let running = &self.journal.running;
        under_way.input = Value::Object(call.named.clone());
        match running.budget.spend() {
            Verdict::Made => {}
            Verdict::Refused(why) => return Err(Refused::Raises("RuntimeError", why)),
            Verdict::Stopped(why) => return Err(Refused::Stops(Some(Stop::Overspent(why.clone())), why)),
        }
        let original = Value::Object(bound(spec, call).map_err(|wrong| Refused::Raises("TypeError", wrong))?);
        under_way.input.clone_from(&original);
        if let Some(reason) = running.budget.repeat(&spec.name, &original) {
            running.controller.abort(&reason);
            return Err(Refused::Stops(None, reason));
        }
        running.hooks().traces_heard().await;
        self.goes_on()?;
        let input = match self.before(spec, &under_way.id, original).await? {
            Given::Input(input) => input,
            Given::Instead(value) => return Ok(value),
        };
        let call = self.preflight(spec, &under_way.id, input).await?;
        // A hook of the agent's may have chosen another tool.
        let chosen = if call.tool_name == spec.name { Some(tool) } else { self.find(&call.tool_name) };
        let Some(chosen) = chosen else {
            return Err(Refused::Raises("RuntimeError", format!("There is no tool `{}`", call.tool_name)));
        };
        self.fits(chosen.tool.spec(), &call.arguments)?;
        let (output, kind) = self.handled(&*chosen.tool, &call.arguments, &under_way.id).await;
        if running.controller.is_aborted() {
            // It has run; nobody is there any more to look at what it gives.
            return if output.is_error { Err(Refused::Stops(None, output.text())) } else { Ok(output.value) };
        }
        self.after(chosen.tool.spec(), &call, output, kind).await
    }

    /// Nothing begins any more once the execution is aborted.
    fn goes_on(&self) -> Result<(), Refused> {
        match self.journal.running.controller.reason() {
            Some(reason) => Err(Refused::Stops(None, format!("It was not called: {reason}"))),
            None if self.is_over() => Err(Refused::Stops(None, "It was not called: the code has ended".to_owned())),
            None => Ok(()),
        }
    }

    async fn before(&self, spec: &ToolSpec, id: &str, input: Value) -> Result<Given, Refused> {
        let running = &self.journal.running;
        let iteration = self.journal.now();
        let moment = ToolMoment {
            iteration: &iteration,
            tool: spec,
            tool_call_id: id,
            native_call_id: self.native_call_id.as_deref(),
            input: &input,
            controller: &running.controller,
        };
        let given = running.hook(ExecutionHook::OnBeforeTool, |hooks| hooks.on_before_tool(moment)).await;
        self.goes_on()?;
        match given {
            Ok(replacement) => Ok(Given::Input(replacement.unwrap_or(input))),
            Err(HookFailure::Think { reason, context }) => {
                self.thinks(reason, context.clone());
                Ok(Given::Instead(context))
            }
            Err(failure) => Err(refused(ExecutionHook::OnBeforeTool, failure)),
        }
    }

    /// Has the agent's own hooks look at the call.
    async fn preflight(&self, spec: &ToolSpec, id: &str, input: Value) -> Result<Call, Refused> {
        let arguments = match input {
            Value::Object(arguments) => arguments,
            Value::Null => Object::new(),
            _ => {
                let message = format!("`{}` received invalid input: its arguments are to be an object", spec.name);
                return Err(Refused::Raises("ValueError", message));
            }
        };
        let (id, kind, tool_name) = (id.to_owned(), Some("function".to_owned()), spec.name.clone());
        let call = Call { id, kind, tool_name, arguments, broken: None };
        let passed = preflight(self.journal.running.hooked(), vec![call]).await;
        self.goes_on()?;
        let not_called = |why: String| Err(Refused::Raises("RuntimeError", why));
        match passed {
            Preflight::Ready(calls) => match calls.into_iter().next() {
                Some(call) => Ok(call),
                None => not_called(format!("`{}` was not called", spec.name)),
            },
            Preflight::Retry { feedback } => not_called(format!("`{}` was not called: {feedback}", spec.name)),
            Preflight::Failed => {
                not_called(format!("`{}` was not called: a hook of the agent's has failed", spec.name))
            }
        }
    }

    /// Runs the handler; with its output, what is raised where that is an error.
    async fn handled(&self, tool: &dyn Tool, arguments: &Object, id: &str) -> (ToolOutput, &'static str) {
        let plan = &self.journal.running.plan;
        let limit = tool.timeout().unwrap_or(plan.tool_timeout);
        let context: Arc<dyn ToolContext> = Arc::new(InExecution(Arc::clone(&self.journal)));
        let called = pin!(tool.call(arguments.clone(), context));
        let slow = async {
            if limit > plan.slow_after {
                sleep(plan.slow_after).await;
                let duration = u64::try_from(plan.slow_after.as_millis()).unwrap_or(u64::MAX);
                let (tool_name, tool_call_id) = (tool.spec().name.clone(), id.to_owned());
                self.journal.trace(Traced::ToolSlow { tool_name, tool_call_id, duration });
            }
            pending::<()>().await;
        };
        let (done, slow) = (pin!(sleep(limit)), pin!(slow));
        match select(called, select(done, slow)).await {
            Either::Left((output, _)) => {
                let kind = output.raised.unwrap_or("RuntimeError");
                (output, kind)
            }
            Either::Right(_) => {
                let message = format!("`{}` was not done after {} ms", tool.spec().name, limit.as_millis());
                (ToolOutput::error(message), "TimeoutError")
            }
        }
    }

    /// Whether the arguments, as hooks have left them, are what the tool takes.
    fn fits(&self, spec: &ToolSpec, arguments: &Object) -> Result<(), Refused> {
        if let Some(missing) = missing(spec, arguments) {
            return Err(Refused::Raises("TypeError", missing));
        }
        let Some(shape) = self.journal.running.shape_of(spec) else { return Ok(()) };
        let complaints = shape.complaints(&Value::Object(arguments.clone()));
        if complaints.is_empty() {
            return Ok(());
        }
        let message = format!("`{}` received invalid input:\n  {}", spec.name, complaints.join("\n  "));
        Err(Refused::Raises("ValueError", message))
    }

    async fn after(
        &self,
        spec: &ToolSpec,
        call: &Call,
        output: ToolOutput,
        kind: &'static str,
    ) -> Result<Value, Refused> {
        let running = &self.journal.running;
        let think = output.think.clone();
        let left = result(running.hooked(), call, output.text().into(), output.is_error).await;
        let value = changed(&output, left.value);
        if left.is_error {
            return Err(Refused::Raises(kind, text_of_value(&value)));
        }
        if let Some(reason) = think {
            self.thinks(reason, value.clone());
        }
        let iteration = self.journal.now();
        let input = Value::Object(call.arguments.clone());
        let moment = ToolMoment {
            iteration: &iteration,
            tool: spec,
            tool_call_id: &call.id,
            native_call_id: self.native_call_id.as_deref(),
            input: &input,
            controller: &running.controller,
        };
        match running.hook(ExecutionHook::OnAfterTool, |hooks| hooks.on_after_tool(moment, &value)).await {
            Ok(replacement) => Ok(replacement.unwrap_or(value)),
            Err(HookFailure::Think { reason, context }) => {
                self.thinks(reason, context.clone());
                Ok(context)
            }
            Err(failure) => Err(refused(ExecutionHook::OnAfterTool, failure)),
        }
    }
}

/// What goes on to the agent's hooks, or what the code is given without them.
enum Given {
    Input(Value),
    Instead(Value),
}

/// A call that gives no output.
enum Refused {
    /// It raises.
    Raises(&'static str, String),
    /// The code ends here; why, for the trace.
    Stops(Option<Stop>, String),
}

fn refused(hook: ExecutionHook, failure: HookFailure) -> Refused {
    match failure {
        HookFailure::Critical { message } => {
            let why = format!("Error in {} hook: {message}", hook.name());
            Refused::Stops(Some(Stop::Critical(why.clone())), why)
        }
        HookFailure::TimedOut { .. } => {
            Refused::Raises("RuntimeError", format!("{}: {}", hook.name(), failure.message()))
        }
        // What it says is meant for the code.
        HookFailure::Failed { message } | HookFailure::Think { reason: message, .. } => {
            Refused::Raises("RuntimeError", message)
        }
    }
}

/// The output, or what a hook of the agent's has made of its text: a document where the output is one and the text still is.
fn changed(output: &ToolOutput, left: Value) -> Value {
    match &left {
        Value::String(text) if *text == output.text() => output.value.clone(),
        Value::String(text) if !output.value.is_string() => serde_json::from_str(text).unwrap_or(left),
        _ => left,
    }
}
