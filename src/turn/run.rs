//! The loop of a turn.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::mpsc::UnboundedSender;
use tracing::Instrument as _;
use tracing::field::Empty;

use super::engine::Inner;
use super::event::TurnEvent;
use super::history::trimmed;
use super::input::{Said, TurnInput};
use super::lifecycle;
use super::offers::{LISTEN, Offered, Offers};
use super::responses::Response;
use super::running::Cancel;
use super::session;
use super::voice::Voice;
use crate::conversation::{Event, Object, as_messages, message};
use crate::dispatch::sleep;
use crate::hooks::{TurnFinishedPayload, TurnStartedPayload, TurnStatus};
use crate::step::{Asked, Completion, Incoming, Preflight, SEARCH, complete, incoming, preflight};
use crate::telemetry::{TURN, fails};
use crate::tools::Utterance;

/// How long tools of a cancelled turn have to unwind (Mantle's documentation, cancellation).
const UNWINDING: Duration = Duration::from_millis(500);

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
        stand: Arc::default(),
    };
    let mut ending = Ending::begin(voice.clone(), turn_id);
    let span = tracing::info_span!(
        target: TURN, "invoke_agent", otel.name = format!("invoke_agent {}", engine.name), otel.status_code = Empty, error.type = Empty,
        gen_ai.operation.name = "invoke_agent", gen_ai.agent.name = engine.name, gen_ai.conversation.id = input.sender_id,
    );
    let status = {
        // Dropped before the end is kept: what it still does in its drop is kept, too.
        let turn = Turn { voice: &voice, latched: false, feedback: None, past: Vec::new() };
        let work = pin!(turn.run(input).instrument(span.clone()));
        match select(work, pin!(cancel.asked())).await {
            Either::Left((status, _)) => status,
            Either::Right(((), work)) => {
                // Tools that run have a moment to clean up; the turn itself goes no further.
                let (unwound, limit) = (pin!(cancel.unwound()), pin!(sleep(UNWINDING)));
                select(select(unwound, limit), work).await;
                TurnStatus::Cancelled
            }
        }
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
        let mut events = self.voice.take_kept();
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

pub(super) struct Turn<'a> {
    pub(super) voice: &'a Voice,
    /// The references have been searched: the model answers from what it has found.
    pub(super) latched: bool,
    /// What a hook wants the next request to say.
    feedback: Option<String>,
    /// What the model is shown of the turns before.
    pub(super) past: Vec<Arc<Object>>,
}

impl Turn<'_> {
    async fn run(mut self, input: TurnInput) -> TurnStatus {
        let engine = &self.voice.engine;
        let mut fresh = true;
        // Before the past is read: whatever is told of the conversation until then is part of it.
        lifecycle::stir(engine, &input);
        self.past = match engine.store.events(&input.sender_id) {
            Ok(events) if session::begins(&input.said, &events, engine.session_limit) => {
                self.voice.happens(Event::SessionStarted);
                Vec::new()
            }
            Ok(events) => {
                fresh = session::is_fresh(&events);
                self.voice.stands(&events);
                as_messages(&events)
            }
            Err(error) => {
                tracing::error!(target: TURN, "The turn does not run: {error}");
                return self.fails(Response::GenericFailure).await;
            }
        };
        let opens = session::opens(&input.said);
        if let Some(status) = self.hear(input).await {
            return status;
        }
        if fresh && let Some(status) = self.begin_session(opens).await {
            return status;
        }
        let system = message("system", &(engine.prompt)(&self.voice.identity));
        for iteration in 0..engine.max_iterations {
            if let Some(status) = self.iterate(iteration, &system).await {
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
                self.voice.happens(user(text, false));
                return None;
            }
            Said::Nothing => {
                self.voice.happens(user(String::new(), false));
                return None;
            }
        };
        match incoming(self.voice.hooked(), &given, message_id.as_deref()).await {
            Incoming::Accepted(text) => {
                self.voice.happens(user(text, false));
                None
            }
            Incoming::Rejected { response } => {
                self.voice.happens(user(given, true));
                self.voice.fall_back(Response::IncomingRejected, response).await;
                Some(TurnStatus::Completed)
            }
            // Not even kept: the hook may have been there to take something out of it.
            Incoming::Failed => Some(self.fails(Response::GenericFailure).await),
        }
    }

    /// Asks the model once and does what it says; a status: the turn is over.
    async fn iterate(&mut self, iteration: u64, system: &Arc<Object>) -> Option<TurnStatus> {
        let (voice, engine) = (self.voice, &self.voice.engine);
        if let Some(status) = self.act_first().await {
            return Some(status);
        }
        let Offers { tools, prompt } = self.offers();
        let system = &below(system, &prompt);
        let current = as_messages(&voice.kept().done);
        let mut messages = trimmed(system, &self.past, &current, engine.max_prompt_tokens);
        messages.extend(reminder(&messages));
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
                self.retry(iteration, feedback);
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
            return Some(self.answered().await);
        }
        let calls = match preflight(voice.hooked(), calls).await {
            Preflight::Ready(calls) => calls,
            Preflight::Retry { feedback } => {
                self.retry(iteration, feedback);
                return None;
            }
            Preflight::Failed => return Some(self.fails(Response::ToolCallHookError).await),
        };
        if let Some(text) = text {
            voice.say(Utterance { streamed, ..text.into() }).await;
        }
        let listens = calls.iter().all(|call| call.tool_name == LISTEN);
        self.latched |= calls.iter().any(|call| call.tool_name == SEARCH);
        match self.dispatch(calls, &tools).await {
            None if listens => Some(self.answered().await),
            over => over,
        }
    }

    fn retry(&mut self, iteration: u64, feedback: String) {
        self.feedback = Some(feedback);
        self.voice.tell(TurnEvent::Retried { iteration });
    }

    pub(super) async fn fails(&self, response: Response) -> TurnStatus {
        self.voice.fall_back(response, None).await;
        TurnStatus::Error
    }
}

/// What stands last where the agent has spoken last: there are providers that take no request which ends with an assistant's message.
pub(super) fn reminder(messages: &[Arc<Object>]) -> Option<Arc<Object>> {
    let last = messages.last()?.get("role").and_then(serde_json::Value::as_str);
    (last == Some("assistant")).then(|| message("system", "The last message has been sent to the user already. Go on."))
}

/// The system prompt with more below it.
fn below(system: &Arc<Object>, prompt: &str) -> Arc<Object> {
    match system.get("content").and_then(serde_json::Value::as_str) {
        Some(text) if !prompt.is_empty() => message("system", &format!("{text}\n\n{prompt}")),
        _ => Arc::clone(system),
    }
}
