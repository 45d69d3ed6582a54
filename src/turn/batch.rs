//! A batch of calls, once hooks have let it through: run, hooked, kept.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::{Either, join_all, select};
use serde_json::json;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::event::TurnEvent;
use super::offers::Offered;
use super::run::Turn;
use super::voice::FollowUp;
use crate::conversation::{CONFIRMED, Event, Object, text_of_value};
use crate::dispatch::sleep;
use crate::hooks::TurnStatus;
use crate::step::{Call, result, search};
use crate::telemetry::{TURN, fails};
use crate::tools::{Tool, ToolOutput, ToolSource};

/// A call that was made.
struct Done {
    output: ToolOutput,
    source: ToolSource,
    mcp_server: Option<String>,
    /// Its span, where content is recorded.
    span: Option<Span>,
}

impl Turn<'_> {
    /// Runs the calls of a batch at once, or one after the other where one of them has a gate or moves between skills; results are hooked
    /// and kept in the order of the calls. A status: the turn is over.
    pub(super) async fn dispatch(&self, calls: Vec<Call>, tools: &[Offered]) -> Option<TurnStatus> {
        let voice = self.voice;
        voice.begin_batch();
        let outputs = if calls.iter().any(|call| self.is_alone(call, tools)) {
            let mut outputs = Vec::new();
            for call in &calls {
                outputs.push(self.call(call, tools).await);
            }
            outputs
        } else {
            join_all(calls.iter().map(|call| self.call(call, tools))).await
        };
        let mut events =
            vec![Event::ToolCalls { calls: calls.iter().map(|call| Arc::new(call.as_object())).collect() }];
        for (call, Done { output, source, mcp_server, span }) in calls.into_iter().zip(outputs) {
            let left = result(voice.hooked(), &call, output.text().into(), output.is_error).await;
            if let Some(span) = span {
                span.record("gen_ai.tool.call.arguments", json!(left.arguments).to_string());
                span.record("gen_ai.tool.call.result", text_of_value(&left.value));
            }
            if let (Some(Event::ToolCalls { calls }), true) = (events.first_mut(), left.arguments != call.arguments) {
                // What a hook takes out of the arguments is to be nowhere.
                for kept in calls.iter_mut().filter(|kept| kept["id"] == call.id) {
                    Arc::make_mut(kept).insert("tool_args".into(), left.arguments.clone().into());
                }
            }
            if let Some(confirmed) = output.confirmed {
                // What a hook takes out of the answer is to be out of the tool's own event, too.
                events.push(Event::ToolExecuted {
                    id: voice.engine.new_id("call"),
                    tool_name: confirmed.tool_name,
                    arguments: confirmed.arguments,
                    value: left.value.clone(),
                    is_error: left.is_error,
                    source: CONFIRMED.to_owned(),
                    mcp_server: confirmed.mcp_server,
                });
            }
            events.push(Event::ToolExecuted {
                id: call.id,
                tool_name: call.tool_name,
                arguments: left.arguments,
                value: left.value,
                is_error: left.is_error,
                source: source.name().to_owned(),
                mcp_server,
            });
            voice.activate(output.next);
        }
        voice.kept().end_batch(events);
        self.follow_up().await
    }

    async fn call(&self, call: &Call, tools: &[Offered]) -> Done {
        let start = Instant::now();
        let (id, tool_name) = (call.id.clone(), call.tool_name.clone());
        self.voice.tell(TurnEvent::ToolCalled { id: id.clone(), tool_name: tool_name.clone() });
        let tool = tools.iter().find(|tool| tool.spec().name == call.tool_name);
        let span = tracing::info_span!(
            target: TURN, "execute_tool", otel.name = format!("execute_tool {}", call.tool_name), otel.status_code = Empty,
            error.type = Empty, gen_ai.operation.name = "execute_tool", gen_ai.tool.name = call.tool_name,
            gen_ai.tool.call.id = call.id, gen_ai.tool.type = "function",
            gen_ai.tool.call.arguments = Empty, gen_ai.tool.call.result = Empty,
        );
        let output = match tool {
            None => {
                let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
                ToolOutput::error(format!("There is no tool `{}`; the tools are {}", call.tool_name, names.join(", ")))
            }
            Some(tool) => match &call.broken {
                Some(text) => ToolOutput::error(format!("The arguments are no JSON object: {text}")),
                None => self.perform(tool, call).instrument(span.clone()).await,
            },
        };
        if output.is_error {
            fails(&span, "tool_error");
        }
        self.voice.tell(TurnEvent::ToolReturned { id, tool_name, is_error: output.is_error, elapsed: start.elapsed() });
        let (source, mcp_server) = tool.map_or((ToolSource::Local, None), Offered::source);
        // What hooks leave of the result is what a span may show: it stays open until they have run.
        Done { output, source, mcp_server, span: self.voice.engine.records_content.then_some(span) }
    }

    async fn perform(&self, tool: &Offered, call: &Call) -> ToolOutput {
        match tool {
            Offered::Search(_) => search(self.voice.hooked(), &*self.voice.engine.knowledge, &call.arguments).await,
            Offered::Listen(_) => ToolOutput::of("ok"),
            Offered::Engine(tool, _) => self.act(*tool, &call.arguments).await,
            Offered::Own(tool, skill) => match self.held(call, skill.as_deref()) {
                Some(output) => output,
                None => self.run_tool(&**tool, call.arguments.clone(), skill.as_deref()).await,
            },
        }
    }

    /// Runs a tool within its time.
    pub(super) async fn run_tool(&self, tool: &dyn Tool, arguments: Object, skill: Option<&str>) -> ToolOutput {
        let name = &tool.spec().name;
        let limit = tool.timeout().unwrap_or_else(|| self.voice.engine.toolbox.timeout());
        let called = tool.call(arguments, Arc::new(self.voice.clone()));
        let cancel = &self.voice.cancel;
        let unwinding = tool.unwinds().then(|| cancel.unwinding());
        let output = match select(called, pin!(sleep(limit))).await {
            Either::Left((output, _)) => output,
            Either::Right(_) => ToolOutput::error(format!("`{name}` was not done after {} ms", limit.as_millis())),
        };
        if unwinding.is_some() && cancel.is_asked() {
            // It has unwound: nothing of the turn goes on.
            drop(unwinding);
            return pending().await;
        }
        self.voice.follow(self.said_after(skill, name, &output).map(FollowUp::Say));
        output
    }
}
