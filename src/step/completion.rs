//! One hooked model call: request hooks, the model, again where it answers nothing, response hooks.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::hooks::{Hooked, Hooks, Identity, Passed, tell};
use super::model::{Model, ModelError, ModelReply, ModelRequest, Tokens, Usage};
use crate::conversation::Object;
use crate::hooks::{ModelRequestPayload, ModelResponsePayload, ModelSettings, Point};
use crate::telemetry::{TURN, fails};
use crate::tools::ToolSpec;

/// How often an empty answer is asked for again, with the request as the hooks have left it (Hooks document, `modify_model_request`).
const EMPTY_RETRIES: usize = 2;

/// What a model is asked.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) messages: Vec<Arc<Object>>,
    pub(crate) tools: Vec<Arc<ToolSpec>>,
    /// The iteration of the loop, from 0.
    pub(crate) iteration: u64,
}

/// A call that the model asks for, as hooks have left it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) kind: Option<String>,
    pub(crate) tool_name: String,
    pub(crate) arguments: Object,
    /// What the model wrote where a JSON object was expected.
    pub(crate) broken: Option<String>,
}

impl Call {
    /// The call as hooks see it, and as it is stored.
    pub(crate) fn as_object(&self) -> Object {
        let mut object = Object::new();
        object.insert("id".into(), self.id.clone().into());
        object.insert("tool_name".into(), self.tool_name.clone().into());
        object.insert("tool_args".into(), self.arguments.clone().into());
        if let Some(kind) = &self.kind {
            object.insert("type".into(), kind.clone().into());
        }
        object
    }
}

/// What comes of a hooked model call.
#[derive(Debug)]
pub(crate) enum Completion {
    /// The answer as the hooks have left it.
    Answered { text: Option<String>, calls: Vec<Call>, usage: Option<Usage>, latency: Option<Duration> },
    /// A hook has discarded the answer; the feedback is for the next request alone.
    Retry { feedback: String },
    /// The request hook failed: the model was not asked.
    RequestFailed,
    /// The model gave no answer.
    NoAnswer(ModelError),
}

/// Whether an answer is to be whole before anything of it is heard: a hook may still rewrite or discard it.
fn buffers(hooks: &dyn Hooks) -> bool {
    [Point::ModelResponse, Point::ToolCall, Point::OutgoingText].into_iter().any(|point| hooks.modifies(point))
}

/// Asks the model. `tokens` hears the text as it comes, where no hook may still change it.
pub(crate) async fn complete(
    hooked: Hooked<'_>,
    model: &dyn Model,
    asked: Asked,
    tokens: Option<Tokens<'_>>,
    new_id: &(dyn Fn() -> String + Send + Sync),
) -> Completion {
    let identity = hooked.identity;
    let mut payload = ModelRequestPayload::new(&identity.sender_id, asked.messages);
    payload.tool_names = asked.tools.iter().map(|tool| tool.name.clone()).collect();
    payload.iteration = asked.iteration;
    let payload = match hooked.pass(payload).await {
        Passed::On { payload, .. } => payload,
        Passed::Failed(failure) => {
            tell(&failure);
            return Completion::RequestFailed;
        }
        Passed::Retry { .. } | Passed::Rejected { .. } => unreachable!("a model request takes no signal"),
    };
    let request = ModelRequest { messages: payload.messages, tools: asked.tools, settings: payload.model_settings };
    let tokens = tokens.filter(|_| !buffers(hooked.hooks));
    let (mut reply, mut span) = (ModelReply::default(), Span::none());
    for _ in 0..=EMPTY_RETRIES {
        span = chat_span(identity, model, tokens.is_some());
        let answered = model.complete(&request, tokens).instrument(span.clone()).await;
        match answered {
            Ok(answered) => {
                record_usage(&span, &answered);
                reply = answered;
            }
            Err(error) => {
                fails(&span, &error.kind());
                return Completion::NoAnswer(error);
            }
        }
        if !reply.is_empty() {
            break;
        }
        tracing::debug!(target: TURN, model = model.name(), "The model has answered nothing");
    }
    if reply.is_empty() {
        let message = format!("it answered nothing {} times", EMPTY_RETRIES + 1);
        return Completion::NoAnswer(ModelError::Broken { model: model.name().to_owned(), message });
    }
    if !hooked.witness.records_content() {
        // The hooks' own time is not the model's.
        drop(span);
        return respond(hooked, reply, new_id).await;
    }
    span.record("gen_ai.input.messages", json!(request.messages).to_string());
    let completion = respond(hooked, reply, new_id).await;
    if let Completion::Answered { text, calls, .. } = &completion {
        let calls: Vec<_> = calls.iter().map(Call::as_object).collect();
        span.record(
            "gen_ai.output.messages",
            json!([{"role": "assistant", "content": text, "tool_calls": calls}]).to_string(),
        );
    }
    completion
}

/// Asks the model something of the engine's own, which no hook sees: whether a skill is done, for instance.
pub(crate) async fn ask_unseen(
    identity: &Identity,
    model: &dyn Model,
    messages: Vec<Arc<Object>>,
) -> Result<ModelReply, ModelError> {
    let span = chat_span(identity, model, false);
    let request = ModelRequest { messages, tools: Vec::new(), settings: ModelSettings::default() };
    let answered = model.complete(&request, None).instrument(span.clone()).await;
    match &answered {
        Ok(reply) => record_usage(&span, reply),
        Err(error) => fails(&span, &error.kind()),
    }
    answered
}

fn record_usage(span: &Span, reply: &ModelReply) {
    if let Some(usage) = reply.usage {
        // Signed: an unsigned number would be exported as a text.
        span.record("gen_ai.usage.input_tokens", usage.input.cast_signed());
        span.record("gen_ai.usage.output_tokens", usage.output.cast_signed());
    }
}

fn chat_span(identity: &Identity, model: &dyn Model, streams: bool) -> Span {
    tracing::info_span!(
        target: TURN, "chat", otel.name = format!("chat {}", model.name()), otel.kind = "client", otel.status_code = Empty,
        error.type = Empty, gen_ai.operation.name = "chat", gen_ai.provider.name = model.provider(),
        gen_ai.request.model = model.name(), gen_ai.request.stream = streams,
        gen_ai.conversation.id = identity.sender_id,
        gen_ai.usage.input_tokens = Empty, gen_ai.usage.output_tokens = Empty,
        gen_ai.input.messages = Empty, gen_ai.output.messages = Empty,
    )
}

async fn respond(hooked: Hooked<'_>, reply: ModelReply, new_id: &(dyn Fn() -> String + Send + Sync)) -> Completion {
    let (usage, latency) = (reply.usage, reply.latency);
    let mut ids = HashSet::new();
    let calls: Vec<Call> = reply
        .calls
        .into_iter()
        .map(|call| {
            let id = call.id.filter(|id| !id.is_empty() && ids.insert(id.clone())).unwrap_or_else(new_id);
            let (arguments, broken) = match call.arguments {
                Ok(arguments) => (arguments, None),
                Err(text) => (Object::new(), Some(text)),
            };
            Call { id, kind: Some("function".into()), tool_name: call.tool_name, arguments, broken }
        })
        .collect();
    let identity = hooked.identity;
    let mut payload = ModelResponsePayload::new(&identity.sender_id);
    payload.text.clone_from(&reply.text);
    payload.tool_calls = calls.iter().map(|call| Arc::new(call.as_object())).collect();
    payload.latency_ms = latency.map(|latency| latency.as_secs_f64() * 1e3);
    match hooked.pass(payload).await {
        Passed::On { payload, changed: true } => match rewritten(&payload.tool_calls, &calls, new_id) {
            Ok(calls) => Completion::Answered { text: payload.text, calls, usage, latency },
            Err(wrong) => {
                tracing::warn!(target: TURN, "The answer stays as it was: a hook has left {wrong}");
                Completion::Answered { text: reply.text, calls, usage, latency }
            }
        },
        Passed::Retry { feedback } => Completion::Retry { feedback },
        // The point is open: whatever else comes of the hook, the answer stays.
        Passed::On { .. } | Passed::Rejected { .. } | Passed::Failed(_) => {
            Completion::Answered { text: reply.text, calls, usage, latency }
        }
    }
}

/// The calls that a hook has left; an error for what is none.
fn rewritten(
    left: &[Arc<Object>],
    given: &[Call],
    new_id: &(dyn Fn() -> String + Send + Sync),
) -> Result<Vec<Call>, String> {
    let mut ids = HashSet::new();
    left.iter()
        .enumerate()
        .map(|(index, call)| {
            let Some(Value::String(tool_name)) = call.get("tool_name") else {
                return Err(format!("`tool_calls[{index}]` without a `tool_name`"));
            };
            let arguments = match call.get("tool_args") {
                Some(Value::Object(arguments)) => arguments.clone(),
                None => Object::new(),
                Some(_) => return Err(format!("`tool_calls[{index}].tool_args` that are no object")),
            };
            let id = match call.get("id") {
                Some(Value::String(id)) if !id.is_empty() => id.clone(),
                None | Some(Value::Null) => new_id(),
                Some(_) => return Err(format!("`tool_calls[{index}].id` that is no text")),
            };
            if !ids.insert(id.clone()) {
                return Err(format!("`tool_calls[{index}].id` twice"));
            }
            let known = given.iter().find(|known| known.id == id);
            let broken = known.filter(|known| known.arguments == arguments).and_then(|known| known.broken.clone());
            let kind = match call.get("type") {
                Some(Value::String(kind)) => Some(kind.clone()),
                _ => known.and_then(|known| known.kind.clone()),
            };
            Ok(Call { id, kind, tool_name: tool_name.clone(), arguments, broken })
        })
        .collect()
}
