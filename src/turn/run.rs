//! The loop of a turn.

use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use futures_util::future::{Either, join_all, select};
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::engine::Inner;
use super::event::TurnEvent;
use super::history::trimmed;
use super::input::{Said, TurnInput};
use super::responses::Response;
use super::running::Cancel;
use super::session;
use super::voice::Voice;
use crate::conversation::{Event, Object, as_messages, text_of_value};
use crate::dispatch::sleep;
use crate::hooks::{TurnFinishedPayload, TurnStartedPayload, TurnStatus};
use crate::step::{Asked, Call, Completion, Incoming, Preflight, complete, incoming, preflight, result, search};
use crate::telemetry::{TURN, fails};
use crate::tools::{Tool, ToolOutput, ToolSource, ToolSpec, Utterance};

/// The engine tool that searches the references.
const SEARCH: &str = "search_knowledge";

/// The engine tool by which the model says that it only waits for the user.
const LISTEN: &str = "listen";

/// How much of a hook's feedback the model is given, in characters.
const FEEDBACK: usize = 2_000;

/// Runs one turn; what happens is told to `out`.
pub(super) async fn run(engine: Arc<Inner>, input: TurnInput, out: UnboundedSender<TurnEvent>) {
    let cancel = Arc::new(Cancel::default());
    if input.interrupts {
        engine.turns.cancel(&input.sender_id);
    }
    let _place = engine.turns.take(&input.sender_id, &cancel).await;
    let turn_id = engine.new_id("turn");
    let identity = Arc::new(input.identity());
    let voice = Voice {
        engine: Arc::clone(&engine),
        identity,
        kept: Arc::default(),
        out,
        cancel: Arc::clone(&cancel),
        shows_changes: input.shows_changes,
    };
    let mut ending = Ending::begin(voice.clone(), turn_id);
    let span = tracing::info_span!(
        target: TURN, "invoke_agent", otel.name = format!("invoke_agent {}", engine.name), otel.status_code = Empty, error.type = Empty,
        gen_ai.operation.name = "invoke_agent", gen_ai.agent.name = engine.name, gen_ai.conversation.id = input.sender_id,
    );
    let work = pin!(Turn { voice: &voice, latched: false, feedback: None }.run(input).instrument(span.clone()));
    let status = match select(work, pin!(cancel.asked())).await {
        Either::Left((status, _)) => status,
        Either::Right(_) => TurnStatus::Cancelled,
    };
    if status == TurnStatus::Error {
        fails(&span, status.name());
    }
    ending.end(status);
}

/// The end of a turn: once, whatever happens. A turn whose stream is dropped is cancelled.
struct Ending {
    voice: Voice,
    turn_id: String,
    ended: bool,
}

impl Ending {
    fn begin(voice: Voice, turn_id: String) -> Self {
        let mut payload = TurnStartedPayload::new(&voice.identity.sender_id);
        payload.turn_id = Some(turn_id.clone());
        payload.is_voice = voice.identity.is_voice;
        voice.hooked().observe(&mut payload);
        voice.tell(TurnEvent::Started { turn_id: turn_id.clone() });
        Self { voice, turn_id, ended: false }
    }

    fn end(&mut self, mut status: TurnStatus) {
        self.ended = true;
        let Voice { engine, identity, .. } = &self.voice;
        let mut events = self.voice.kept().take();
        let at = Some(session::now_ms());
        events.push(Event::TurnFinished { turn_id: self.turn_id.clone(), status: status.name().to_owned(), at });
        if let Err(error) = engine.store.append(&identity.sender_id, &events) {
            tracing::error!(target: TURN, "The turn is not kept: {error}");
            status = TurnStatus::Error;
        }
        let mut payload = TurnFinishedPayload::new(&identity.sender_id, status);
        payload.turn_id = Some(self.turn_id.clone());
        self.voice.hooked().observe(&mut payload);
        self.voice.tell(TurnEvent::Finished { status });
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.ended {
            self.voice.cancel.cancel();
            self.end(TurnStatus::Cancelled);
        }
    }
}

struct Turn<'a> {
    voice: &'a Voice,
    /// The references have been searched: the model answers from what it has found.
    latched: bool,
    /// What a hook wants the next request to say.
    feedback: Option<String>,
}

impl Turn<'_> {
    async fn run(mut self, input: TurnInput) -> TurnStatus {
        let engine = &self.voice.engine;
        let past = match engine.store.events(&input.sender_id) {
            Ok(events) if session::begins(&input.said, &events, engine.session_limit) => {
                self.voice.kept().done.push(Event::SessionStarted);
                Vec::new()
            }
            Ok(events) => as_messages(&events),
            Err(error) => {
                tracing::error!(target: TURN, "The turn does not run: {error}");
                return self.fails(Response::GenericFailure).await;
            }
        };
        if let Some(status) = self.hear(input).await {
            return status;
        }
        let system = message("system", &(engine.prompt)(&self.voice.identity));
        for iteration in 0..engine.max_iterations {
            if let Some(status) = self.iterate(iteration, &system, &past).await {
                return status;
            }
        }
        self.fails(Response::MaxIterations).await
    }

    /// Takes in what the user has sent; a status: the turn is over.
    async fn hear(&self, input: TurnInput) -> Option<TurnStatus> {
        let TurnInput { said, message_id, .. } = input;
        let user = |text, discarded| Event::UserMessage { text, message_id: message_id.clone(), discarded };
        let given = match said {
            Said::Text(text) => text,
            Said::Payload(text) => {
                self.voice.kept().done.push(user(text, false));
                return None;
            }
            Said::Nothing => {
                self.voice.kept().done.push(user(String::new(), false));
                return None;
            }
        };
        match incoming(self.voice.hooked(), &given, message_id.as_deref()).await {
            Incoming::Accepted(text) => {
                self.voice.kept().done.push(user(text, false));
                None
            }
            Incoming::Rejected { response } => {
                self.voice.kept().done.push(user(given, true));
                self.voice.fall_back(Response::IncomingRejected, response).await;
                Some(TurnStatus::Completed)
            }
            // Not even kept: the hook may have been there to take something out of it.
            Incoming::Failed => Some(self.fails(Response::GenericFailure).await),
        }
    }

    /// Asks the model once and does what it says; a status: the turn is over.
    async fn iterate(&mut self, iteration: u64, system: &Arc<Object>, past: &[Arc<Object>]) -> Option<TurnStatus> {
        let (voice, engine) = (self.voice, &self.voice.engine);
        let tools = self.offered();
        let current = as_messages(&voice.kept().done);
        let mut messages = trimmed(system, past, &current, engine.max_prompt_tokens);
        // After the trimming, before the hooks: the last message of this request, and of no other.
        messages.extend(self.feedback.take().map(|feedback| message("system", &feedback)));
        let specs = tools.iter().map(Offered::spec).collect();
        let (out, new_id) = (voice.out.clone(), || engine.new_id("call"));
        let heard = std::sync::atomic::AtomicBool::new(false);
        let tokens = |text: &str| {
            heard.store(true, std::sync::atomic::Ordering::Relaxed);
            let _ = out.send(TurnEvent::Token { text: text.to_owned() });
        };
        let asked = Asked { messages, tools: specs, iteration };
        let (text, calls) = match complete(voice.hooked(), &*engine.model, asked, Some(&tokens), &new_id).await {
            Completion::Answered { text, calls, usage, latency } => {
                voice.tell(TurnEvent::ModelAnswered { iteration, latency, usage, calls: calls.len() });
                (text.filter(|text| !text.trim().is_empty()), calls)
            }
            Completion::Retry { feedback } => {
                self.retry(iteration, &feedback);
                return None;
            }
            Completion::RequestFailed => return Some(self.fails(Response::RequestHookError).await),
            Completion::NoAnswer(error) => {
                tracing::error!(target: TURN, "{error}");
                return Some(self.fails(Response::GenericFailure).await);
            }
        };
        let streamed = heard.into_inner();
        if calls.is_empty() {
            if let Some(text) = text {
                voice.say(Utterance { streamed, ..text.into() }).await;
            }
            return Some(TurnStatus::Completed);
        }
        let calls = match preflight(voice.hooked(), calls).await {
            Preflight::Ready(calls) => calls,
            Preflight::Retry { feedback } => {
                self.retry(iteration, &feedback);
                return None;
            }
            Preflight::Failed => return Some(self.fails(Response::ToolCallHookError).await),
        };
        if let Some(text) = text {
            voice.say(Utterance { streamed, ..text.into() }).await;
        }
        let listens = calls.iter().all(|call| call.tool_name == LISTEN);
        self.latched |= calls.iter().any(|call| call.tool_name == SEARCH);
        self.dispatch(calls, &tools).await;
        listens.then_some(TurnStatus::Completed)
    }

    fn retry(&mut self, iteration: u64, feedback: &str) {
        self.feedback = Some(feedback.chars().take(FEEDBACK).collect());
        self.voice.tell(TurnEvent::Retried { iteration });
    }

    async fn fails(&self, response: Response) -> TurnStatus {
        self.voice.fall_back(response, None).await;
        TurnStatus::Error
    }

    /// The tools that the model is offered now. After a search the agent's own are withheld: the model is to answer.
    fn offered(&self) -> Vec<Offered> {
        let engine = &self.voice.engine;
        let search = engine.knowledge.is_there().then(|| Offered::Search(Arc::clone(&SEARCH_SPEC)));
        let own = engine.toolbox.offered().into_iter().map(Offered::Own);
        let listen = Offered::Listen(Arc::clone(&LISTEN_SPEC));
        search.into_iter().chain(own.filter(|_| !self.latched)).chain([listen]).collect()
    }

    /// Runs the calls of a batch at once; results are hooked and kept in the order of the calls.
    async fn dispatch(&self, calls: Vec<Call>, tools: &[Offered]) {
        let voice = self.voice;
        voice.kept().begin_batch();
        let outputs = join_all(calls.iter().map(|call| self.call(call, tools))).await;
        let mut events =
            vec![Event::ToolCalls { calls: calls.iter().map(|call| Arc::new(call.as_object())).collect() }];
        for (call, Done { output, source, mcp_server, span }) in calls.into_iter().zip(outputs) {
            let left = result(voice.hooked(), &call, &output).await;
            if let Some(span) = span {
                span.record("gen_ai.tool.call.arguments", json!(left.arguments).to_string());
                span.record("gen_ai.tool.call.result", text_of_value(&left.value));
            }
            let source = match source {
                ToolSource::Local => "local",
                ToolSource::Engine => "engine",
                ToolSource::Mcp => "mcp",
            };
            if let (Some(Event::ToolCalls { calls }), true) = (events.first_mut(), left.arguments != call.arguments) {
                // What a hook takes out of the arguments is to be nowhere.
                for kept in calls.iter_mut().filter(|kept| kept["id"] == call.id) {
                    Arc::make_mut(kept).insert("tool_args".into(), left.arguments.clone().into());
                }
            }
            events.push(Event::ToolExecuted {
                id: call.id,
                tool_name: call.tool_name,
                arguments: left.arguments,
                value: left.value,
                is_error: left.is_error,
                source: source.to_owned(),
                mcp_server,
            });
        }
        voice.kept().end_batch(events);
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
        let (source, mcp_server) = match tool {
            Some(Offered::Own(tool)) => (tool.source(), tool.mcp_server().map(str::to_owned)),
            Some(Offered::Search(_) | Offered::Listen(_)) => (ToolSource::Engine, None),
            None => (ToolSource::Local, None),
        };
        // What hooks leave of the result is what a span may show: it stays open until they have run.
        Done { output, source, mcp_server, span: self.voice.engine.records_content.then_some(span) }
    }

    async fn perform(&self, tool: &Offered, call: &Call) -> ToolOutput {
        let engine = &self.voice.engine;
        let tool = match tool {
            Offered::Search(_) => return search(self.voice.hooked(), &*engine.knowledge, &call.arguments).await,
            Offered::Listen(_) => return ToolOutput::of("ok"),
            Offered::Own(tool) => tool,
        };
        let limit = tool.timeout().unwrap_or_else(|| engine.toolbox.timeout());
        let called = tool.call(call.arguments.clone(), Arc::new(self.voice.clone()));
        match select(called, pin!(sleep(limit))).await {
            Either::Left((output, _)) => output,
            Either::Right(_) => {
                ToolOutput::error(format!("`{}` was not done after {} ms", call.tool_name, limit.as_millis()))
            }
        }
    }
}

/// A call that was made.
struct Done {
    output: ToolOutput,
    source: ToolSource,
    mcp_server: Option<String>,
    /// Its span, where content is recorded.
    span: Option<Span>,
}

/// A tool as the model is offered it.
enum Offered {
    Search(Arc<ToolSpec>),
    Listen(Arc<ToolSpec>),
    Own(Arc<dyn Tool>),
}

impl Offered {
    fn spec(&self) -> Arc<ToolSpec> {
        match self {
            Self::Search(spec) | Self::Listen(spec) => Arc::clone(spec),
            Self::Own(tool) => Arc::clone(tool.spec()),
        }
    }
}

/// Made once: a turn offers them at each iteration.
static LISTEN_SPEC: LazyLock<Arc<ToolSpec>> =
    LazyLock::new(|| Arc::new(ToolSpec::new(LISTEN, "Say nothing and wait for the user's next message.")));

static SEARCH_SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    let mut spec = ToolSpec::new(SEARCH, "Search the references for passages that answer the user's question.");
    spec.parameters.insert("properties".into(), json!({"query": {"type": "string"}}));
    spec.parameters.insert("required".into(), json!(["query"]));
    Arc::new(spec)
});

fn message(role: &str, content: &str) -> Arc<Object> {
    Arc::new(Object::from_iter([("role".to_owned(), role.into()), ("content".to_owned(), content.into())]))
}
