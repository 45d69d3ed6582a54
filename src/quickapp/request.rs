//! A request, from the client's messages to the answer.
//!
//! ```text
//! start hooks, in order: each result joins the conversation as a call and its result
//! model ─▶ calls ─▶ results ─▶ model … until it answers, or asks for tools of the client's own
//! the answer is told
//! completion hooks, in order; their results are dropped
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tracing::Instrument as _;
use tracing::field::Empty;

use super::app::HookEvent;
use super::call_id::{Stamp, Tag};
use super::context::Moment;
use super::engine::{Inner, Ready, RequestInput};
use super::event::{RequestEvent, RequestStatus};
use super::hook::Running;
use super::placing::{Frequency, place};
use super::tools::{AppTools, Called};
use super::ttl;
use crate::conversation::{Object, message, text_of, text_of_value, with_content};
use crate::hooks::{TurnFinishedPayload, TurnStartedPayload, TurnStatus};
use crate::step::{
    Asked, Call, Completion, Hooked, Identity, Incoming, Outgoing, Preflight, Ran, Witness, complete, incoming,
    outgoing, preflight, result,
};
use crate::telemetry::{TURN, fails};
use crate::tools::{TOOL_TIMEOUT, ToolContext, ToolOutput, ToolSpec, Utterance};

/// What the model reads that asks for a tool which only hooks call. It is not to be an invitation to try again.
fn hidden(name: &str) -> String {
    format!("`{name}` is called by the platform by itself, and not by you: nothing was done. Go on without it.")
}

/// What it reads that asks for a tool which is not there.
fn unknown(name: &str) -> String {
    format!("There is no tool `{name}`: look at the names of those that you have.")
}

/// Hears what hook modules do.
struct Teller(UnboundedSender<RequestEvent>);

impl Witness for Teller {
    fn hook_ran(&self, ran: Ran) {
        let _ = self.0.send(RequestEvent::HookRan { point: ran.point, outcome: ran.outcome });
    }
}

/// The request as tools see it.
struct Request {
    sender_id: String,
    model: String,
}

impl ToolContext for Request {
    fn sender_id(&self) -> &str {
        &self.sender_id
    }

    /// An app's tools say nothing themselves: the answer is the model's.
    fn send(&self, _: Utterance) -> futures_util::future::BoxFuture<'_, ()> {
        tracing::debug!(target: TURN, "What a tool says while a request is answered is not told");
        Box::pin(async {})
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn model(&self) -> String {
        self.model.clone()
    }
}

/// Answers one request; what happens is told to `out`.
pub(super) async fn run(app: Arc<Inner>, input: RequestInput, out: UnboundedSender<RequestEvent>) {
    let identity = Identity { sender_id: input.sender_id.clone(), ..Identity::default() };
    let teller = Teller(out.clone());
    let hooked = Hooked { hooks: &*app.hooks, identity: &identity, witness: &teller };
    let mut ending = Ending::begin(hooked);
    let system = app.app.system_prompt.as_deref().map(|text| message("system", text));
    let context = Arc::new(Request { sender_id: input.sender_id, model: app.model.name().to_owned() });
    let mut request = Answering {
        app: &app,
        hooked,
        out: &out,
        context,
        tools: app.source.tools(),
        client_tools: input.client_tools,
        first: usize::from(system.is_some()),
        messages: system.into_iter().chain(input.messages).collect(),
        feedback: None,
        iterations: 0,
        calls: 0,
    };
    let span = tracing::info_span!(
        target: TURN, "invoke_agent", otel.name = format!("invoke_agent {}", app.app.name), otel.status_code = Empty, error.type = Empty,
        gen_ai.operation.name = "invoke_agent", gen_ai.agent.name = app.app.name, gen_ai.conversation.id = identity.sender_id,
    );
    let status = async {
        let status = request.answer().await;
        if status == RequestStatus::Completed {
            request.completed().await;
        }
        status
    };
    let status = status.instrument(span.clone()).await;
    if status == RequestStatus::Error {
        fails(&span, "error");
    }
    ending.status = if status == RequestStatus::Error { TurnStatus::Error } else { TurnStatus::Completed };
    drop(ending);
    let messages = request.messages.split_off(request.first);
    let _ = out.send(RequestEvent::Finished { status, messages });
}

/// Tells the hook modules that the request has begun and, once, whatever happens, that it has ended. One that is dropped is cancelled.
struct Ending<'a> {
    hooked: Hooked<'a>,
    status: TurnStatus,
}

impl<'a> Ending<'a> {
    fn begin(hooked: Hooked<'a>) -> Self {
        hooked.observe(&mut TurnStartedPayload::new(&hooked.identity.sender_id));
        Self { hooked, status: TurnStatus::Cancelled }
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut finished = TurnFinishedPayload::new(&self.hooked.identity.sender_id, self.status);
        self.hooked.observe(&mut finished);
    }
}

struct Answering<'a> {
    app: &'a Inner,
    hooked: Hooked<'a>,
    out: &'a UnboundedSender<RequestEvent>,
    context: Arc<Request>,
    tools: AppTools,
    client_tools: Vec<Arc<ToolSpec>>,
    /// The app's own prompt first, then what the client has sent, then what comes of it.
    messages: Vec<Arc<Object>>,
    /// Where the client's messages begin.
    first: usize,
    /// What a hook module wants the next request to say.
    feedback: Option<String>,
    iterations: u64,
    calls: u64,
}

impl Answering<'_> {
    async fn answer(&mut self) -> RequestStatus {
        let names: Vec<_> = self.tools.hidden.iter().chain(&self.tools.visible).map(|tool| &tool.spec.name).collect();
        if let Some(taken) = self.client_tools.iter().find(|tool| names.contains(&&tool.name)) {
            tracing::warn!(target: TURN, tool = taken.name, "A tool of the client's has the name of one of the app's: the request is refused");
            return RequestStatus::Error;
        }
        if let Some(status) = self.hear().await {
            return status;
        }
        self.started().await;
        let mut offered: Vec<_> = self.tools.visible.iter().map(|tool| Arc::clone(&tool.spec)).collect();
        offered.extend(self.client_tools.iter().cloned());
        for _ in 0..self.app.app.max_iterations {
            if let Some(status) = self.iterate(&offered).await {
                return status;
            }
        }
        tracing::error!(target: TURN, "The model asked for tools in each of its {} answers", self.app.app.max_iterations);
        RequestStatus::Error
    }

    /// Has the hook modules look at what the user has said since the last answer, message by message. What stands before has passed them in
    /// a request of its own, and the client has it as they left it.
    async fn hear(&mut self) -> Option<RequestStatus> {
        let role = |message: &Arc<Object>| message.get("role").and_then(Value::as_str).map(str::to_ascii_lowercase);
        let is_answer = |message: &Arc<Object>| matches!(role(message).as_deref(), Some("assistant" | "tool"));
        let unanswered = self.messages[self.first..].iter().rev().take_while(|message| !is_answer(message)).count();
        for at in self.messages.len() - unanswered..self.messages.len() {
            let said = &self.messages[at];
            let Some(text) = text_of(said).filter(|_| role(said).as_deref() == Some("user")) else { continue };
            match incoming(self.hooked, &text, None).await {
                Incoming::Accepted(accepted) if accepted == text => {}
                Incoming::Accepted(accepted) => {
                    self.messages[at] = Arc::new(with_content(&self.messages[at], accepted));
                }
                Incoming::Rejected { response } => {
                    self.messages.remove(at);
                    self.tell(RequestEvent::Message { text: response.unwrap_or_else(|| REJECTED.to_owned()) });
                    return Some(RequestStatus::Rejected);
                }
                Incoming::Failed => return Some(RequestStatus::Error),
            }
        }
        None
    }

    /// Runs the start hooks.
    async fn started(&mut self) {
        let mut earlier: BTreeSet<Tag> = BTreeSet::new();
        let app = self.app;
        for ready in &app.app_hooks {
            let HookEvent::RequestStart { frequency, ttl_minutes } = ready.hook.event else { continue };
            let origin = &ready.origin;
            let now = seconds();
            let is_due = ttl_minutes.is_none() || ttl::due(origin, &self.messages, now);
            let given = if is_due { self.run(ready, Moment::RequestStart).await } else { None };
            if let Some(given) = given {
                // What a fallback says of a failure is good for this turn alone.
                let expiry = ttl_minutes.filter(|_| !given.is_fallback).map(|minutes| ttl::expiry(now, minutes));
                let nonce = if frequency == Frequency::Always { app.nonce() } else { 0 };
                let pair = origin.pair(&given.arguments, given.content, Stamp { expiry, nonce });
                let messages = std::mem::take(&mut self.messages);
                self.messages = place(messages, &pair, frequency, &earlier);
            }
            earlier.insert(origin.tag());
        }
    }

    /// Runs the completion hooks; what they give is dropped.
    async fn completed(&self) {
        let moment = Moment::Completion { iteration_count: self.iterations, total_tool_calls: self.calls };
        for ready in self.app.app_hooks.iter().filter(|ready| ready.hook.event == HookEvent::Completion) {
            self.run(ready, moment).await;
        }
    }

    async fn run(&self, ready: &Ready, moment: Moment) -> Option<super::hook::Given> {
        let context: Arc<dyn ToolContext> = Arc::<Request>::clone(&self.context);
        let running = Running { tools: &self.tools, templates: &*self.app.templates, context };
        let start = Instant::now();
        let given = running.run(ready, moment, &self.messages).await;
        let (name, skipped) = (ready.hook.label().to_owned(), given.is_none());
        self.tell(RequestEvent::AppHookRan { name, on: moment.name(), skipped, elapsed: start.elapsed() });
        given
    }

    /// Asks the model once and does what it says; a status: the request is over.
    async fn iterate(&mut self, offered: &[Arc<ToolSpec>]) -> Option<RequestStatus> {
        let mut messages = self.messages.clone();
        messages.extend(self.feedback.take().map(|text| message("system", &text)));
        let asked = Asked { messages, tools: offered.to_vec(), iteration: self.iterations };
        self.iterations += 1;
        let tokens = |text: &str| self.tell(RequestEvent::Token { text: text.to_owned() });
        let new_id = || self.app.new_id();
        let completion = complete(self.hooked, &*self.app.model, asked, Some(&tokens), &new_id).await;
        let (text, calls) = match completion {
            Completion::Answered { text, calls, .. } => (text, calls),
            Completion::Retry { feedback } => {
                self.feedback = Some(feedback);
                return None;
            }
            Completion::RequestFailed => return Some(RequestStatus::Error),
            Completion::NoAnswer(error) => {
                tracing::error!(target: TURN, "{error}");
                return Some(RequestStatus::Error);
            }
        };
        let calls = match preflight(self.hooked, calls).await {
            Preflight::Ready(calls) => calls,
            Preflight::Retry { feedback } => {
                self.feedback = Some(feedback);
                return None;
            }
            Preflight::Failed => return Some(RequestStatus::Error),
        };
        let text = self.say(text).await;
        self.calls += calls.len() as u64;
        let mut answer = message("assistant", text.as_deref().unwrap_or_default());
        if calls.is_empty() {
            self.messages.push(answer);
            return Some(RequestStatus::Completed);
        }
        let mut results = Vec::new();
        let mut kept = Vec::new();
        let (mut of_client, mut stops) = (Vec::new(), false);
        for call in &calls {
            if call.broken.is_none() && self.client_tools.iter().any(|tool| tool.name == call.tool_name) {
                of_client.push(&call.id);
                kept.push(as_chat_call(call, &call.arguments));
                continue;
            }
            let (output, stop) = self.call(call).await;
            stops |= stop;
            let left = result(self.hooked, call, output.text().into(), output.is_error).await;
            kept.push(as_chat_call(call, &left.arguments));
            results.push(answer_to(&call.id, &text_of_value(&left.value)));
        }
        Arc::make_mut(&mut answer).insert("tool_calls".into(), kept.into());
        self.messages.push(answer);
        self.messages.extend(results);
        if stops {
            // The conversation goes on some day: no call is to stay without an answer.
            let ended = |id: &String| answer_to(id, "This was not called: the request has ended before.");
            self.messages.extend(of_client.into_iter().map(ended));
            return Some(RequestStatus::Error);
        }
        (!of_client.is_empty()).then_some(RequestStatus::ClientTools)
    }

    /// Calls a tool that the model asks for; whether its set ends the request with it.
    async fn call(&self, call: &Call) -> (ToolOutput, bool) {
        let name = &call.tool_name;
        if self.tools.is_hidden(name) {
            tracing::warn!(target: TURN, tool = name, "The model asks for a tool that is hidden from it");
            return (ToolOutput::error(hidden(name)), false);
        }
        if call.broken.is_some() {
            return (ToolOutput::error("The arguments are no JSON object"), false);
        }
        let Some(tool) = self.tools.for_model(name) else {
            tracing::error!(target: TURN, tool = name, "The model asks for a tool that is not there");
            return (ToolOutput::error(unknown(name)), false);
        };
        self.tell(RequestEvent::ToolCalled { tool_name: name.clone() });
        let context: Arc<dyn ToolContext> = Arc::<Request>::clone(&self.context);
        let span = tracing::info_span!(
            target: TURN, "execute_tool", otel.name = format!("execute_tool {name}"), otel.status_code = Empty, error.type = Empty,
            gen_ai.operation.name = "execute_tool", gen_ai.tool.name = name, gen_ai.tool.call.id = call.id,
            gen_ai.tool.type = "function",
        );
        let output = tool.call(call.arguments.clone(), context, Some(TOOL_TIMEOUT)).instrument(span.clone()).await;
        if output.is_error {
            fails(&span, "tool_error");
        }
        self.tell(RequestEvent::ToolReturned { tool_name: name.clone(), is_error: output.is_error });
        match tool.settled(output) {
            Called::Output { output, .. } => (*output, false),
            Called::Stop => (ToolOutput::error(format!("`{name}` failed")), true),
        }
    }

    /// Tells a text of the model's, as the hook modules leave it.
    async fn say(&self, text: Option<String>) -> Option<String> {
        let text = text.filter(|text| !text.trim().is_empty())?;
        let said = match outgoing(self.hooked, &text).await {
            Outgoing::Say(text) => text,
            Outgoing::Rejected { response } => response.unwrap_or_else(|| REJECTED.to_owned()),
        };
        self.tell(RequestEvent::Message { text: said.clone() });
        Some(said)
    }

    fn tell(&self, event: RequestEvent) {
        let _ = self.out.send(event);
    }
}

/// What is said in the place of a text that a hook module rejects.
const REJECTED: &str = "I'm sorry, I can't help with that.";

/// The answer to a call.
fn answer_to(id: &str, text: &str) -> Arc<Object> {
    let mut told = message("tool", text);
    Arc::make_mut(&mut told).insert("tool_call_id".into(), id.into());
    told
}

fn as_chat_call(call: &Call, arguments: &Object) -> Value {
    let arguments = Value::Object(arguments.clone()).to_string();
    json!({"id": call.id, "type": "function", "function": {"name": call.tool_name, "arguments": arguments}})
}

/// Seconds since 1970 (UTC).
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
