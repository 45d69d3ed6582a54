//! Plays one recorded conversation: what was recorded takes the place of the user, the model and the tools.
//!
//! What a hook changes is what later points see. The order of points is that of a live turn.

use std::sync::Arc;

use serde_json::{Value, json};

use super::diff::{Change, Place};
use super::stored::{PlayedCall, passages_in, rebuilt, response_call, with_content};
use crate::agent::HookEngine;
use crate::conversation::{ChannelInfo, Completion, Object, RecordedCall, Recording, TurnItem, text_of};
use crate::hooks::{
    IncomingMessagePayload, KnowledgeQueryPayload, KnowledgeResultsPayload, ModelRequestPayload, ModelResponsePayload,
    ModifiablePayload, Outcome, OutgoingTextPayload, ToolCallPayload, ToolResultPayload, TurnFinishedPayload,
    TurnStartedPayload, TurnStatus,
};

/// The engine tool whose recorded calls drive the knowledge points.
const SEARCH_TOOL: &str = "search_knowledge";

/// What came of one conversation.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) messages: usize,
    pub(super) turns_completed: usize,
    pub(super) turns_rejected: usize,
    pub(super) turns_failed: usize,
    /// Recorded messages after the end of a turn that a rejection or a closed failure had ended.
    pub(super) skipped_messages: usize,
    /// Completions that a `RetryModel` dropped.
    pub(super) dropped_completions: usize,
    /// Calls whose arguments are no JSON object.
    pub(super) broken_arguments: usize,
    /// Calls that a hook took out, so that their recorded results were not used.
    pub(super) removed_calls: usize,
    /// Calls that a hook made up: no recording answers them.
    pub(super) made_up_calls: usize,
    /// Turns whose last recorded completion was dropped, so that they ended without an answer.
    pub(super) unanswered_turns: usize,
    /// Outgoing texts that a hook rejected.
    pub(super) rejected_texts: usize,
    pub(super) changes: Vec<Change>,
}

/// Plays `recording`, which stood on line `line` of the input, as the conversation `sender_id`.
pub(super) async fn play(
    engine: &HookEngine,
    recording: Recording,
    sender_id: String,
    line: u64,
    diff: bool,
) -> Played {
    let mut player = Player {
        engine,
        place: Place { line, conversation: sender_id.clone(), turn: 0 },
        sender_id,
        channel: ChannelInfo { name: Some("recording".into()), metadata: Object::new() },
        tool_names: recording.tool_names,
        history: recording.opening,
        feedback: None,
        diff,
        played: Played {
            messages: recording.messages,
            broken_arguments: recording.broken_arguments,
            ..Played::default()
        },
    };
    for (number, turn) in recording.turns.into_iter().enumerate() {
        player.place.turn = number + 1;
        player.turn(turn.user, turn.items).await;
    }
    player.played
}

struct Player<'a> {
    engine: &'a HookEngine,
    sender_id: String,
    channel: ChannelInfo,
    tool_names: Vec<String>,
    history: Vec<Arc<Object>>,
    /// What a retry tells the next model request; it is in no history.
    feedback: Option<String>,
    diff: bool,
    place: Place,
    played: Played,
}

/// How a turn, or a part of it, ends early.
enum Early {
    Rejected,
    Failed,
}

/// Sets the identity that all payloads of a conversation share.
macro_rules! identified {
    ($player:expr, $payload:expr) => {{
        let mut payload = $payload;
        payload.channel = $player.channel.clone();
        payload
    }};
}

impl Player<'_> {
    async fn turn(&mut self, user: Arc<Object>, items: Vec<TurnItem>) {
        let turn_id = Some(format!("{}#{}", self.sender_id, self.place.turn));
        let mut started = identified!(self, TurnStartedPayload::new(&self.sender_id));
        started.turn_id.clone_from(&turn_id);
        self.engine.observe_with_room(&started).await;
        let mut left = items.iter().map(messages_in).sum();
        let end = self.play_turn(user, items, &mut left).await;
        // A retry that no further completion answered.
        self.played.unanswered_turns += usize::from(self.feedback.take().is_some());
        let status = match end {
            Ok(()) => {
                self.played.turns_completed += 1;
                TurnStatus::Completed
            }
            Err(early) => {
                self.played.skipped_messages += left;
                match early {
                    Early::Rejected => {
                        self.played.turns_rejected += 1;
                        TurnStatus::Completed
                    }
                    Early::Failed => {
                        self.played.turns_failed += 1;
                        TurnStatus::Error
                    }
                }
            }
        };
        let mut finished = identified!(self, TurnFinishedPayload::new(&self.sender_id, status));
        finished.turn_id = turn_id;
        self.engine.observe_with_room(&finished).await;
    }

    async fn play_turn(&mut self, user: Arc<Object>, items: Vec<TurnItem>, left: &mut usize) -> Result<(), Early> {
        let user = self.incoming(user).await?;
        self.history.push(user);
        let mut iteration = 0;
        for item in items {
            let messages = messages_in(&item);
            match item {
                TurnItem::Aside(message) => self.history.push(message),
                TurnItem::Completion(completion) => {
                    self.request(iteration).await?;
                    iteration += 1;
                    self.completion(completion).await?;
                }
            }
            *left -= messages;
        }
        Ok(())
    }

    /// The user's text; a message without text runs no hooks.
    async fn incoming(&mut self, user: Arc<Object>) -> Result<Arc<Object>, Early> {
        let Some(text) = text_of(&user) else { return Ok(user) };
        let payload = identified!(self, IncomingMessagePayload::new(&self.sender_id, text));
        match self.pass(payload).await {
            Outcome::Proceed { changed: false, .. } => Ok(user),
            Outcome::Proceed { payload, .. } => Ok(Arc::new(with_content(&user, payload.text))),
            Outcome::Reject { .. } | Outcome::Retry { .. } => Err(Early::Rejected),
            Outcome::Failed(_) => Err(Early::Failed),
        }
    }

    /// The request that the recorded completion answers.
    async fn request(&mut self, iteration: u64) -> Result<(), Early> {
        let mut messages = self.history.clone();
        if let Some(feedback) = self.feedback.take() {
            let note = json!({"role": "system", "content": feedback});
            messages.extend(note.as_object().cloned().map(Arc::new));
        }
        let mut payload = identified!(self, ModelRequestPayload::new(&self.sender_id, messages));
        payload.tool_names.clone_from(&self.tool_names);
        payload.iteration = iteration;
        match self.pass(payload).await {
            Outcome::Failed(_) => Err(Early::Failed),
            _ => Ok(()),
        }
    }

    async fn completion(&mut self, completion: Completion) -> Result<(), Early> {
        let mut payload = identified!(self, ModelResponsePayload::new(&self.sender_id));
        payload.text.clone_from(&completion.text);
        payload.tool_calls = completion.calls.iter().map(response_call).collect();
        let (payload, mut changed) = match self.pass(payload).await {
            Outcome::Proceed { payload, changed, .. } => (payload, changed),
            Outcome::Retry { feedback } => {
                self.drop_completion(feedback);
                return Ok(());
            }
            Outcome::Reject { .. } => return Err(Early::Rejected),
            Outcome::Failed(_) => return Err(Early::Failed),
        };
        let Completion { message, calls: recorded, .. } = completion;
        let mut calls = Vec::with_capacity(payload.tool_calls.len());
        for call in &payload.tool_calls {
            let mut call = PlayedCall::new(call);
            if let Value::Object(arguments) = call.arguments.clone() {
                let payload = identified!(self, ToolCallPayload::new(&self.sender_id, call.name.clone(), arguments));
                match self.pass(payload).await {
                    Outcome::Proceed { payload, changed: rewritten, .. } => {
                        call.name = payload.tool_name;
                        call.arguments = payload.arguments.into();
                        changed |= rewritten;
                    }
                    Outcome::Retry { feedback } => {
                        self.drop_completion(feedback);
                        return Ok(());
                    }
                    Outcome::Reject { .. } => return Err(Early::Rejected),
                    Outcome::Failed(_) => return Err(Early::Failed),
                }
            }
            calls.push(call);
        }
        let mut text = payload.text;
        if let Some(spoken) = text.as_deref().filter(|text| !text.is_empty()) {
            let payload = identified!(self, OutgoingTextPayload::new(&self.sender_id, spoken));
            match self.pass(payload).await {
                Outcome::Proceed { payload, changed: rewritten, .. } => {
                    text = Some(payload.text);
                    changed |= rewritten;
                }
                Outcome::Reject { .. } | Outcome::Retry { .. } => {
                    self.played.rejected_texts += 1;
                    text = None;
                    changed = true;
                }
                Outcome::Failed(_) => return Err(Early::Failed),
            }
        }
        let mut results = Vec::new();
        let mut recorded: Vec<Option<RecordedCall>> = recorded.into_iter().map(Some).collect();
        for call in &mut calls {
            let known = recorded.iter_mut().find(|known| known.as_ref().is_some_and(|known| known.id == call.id));
            let Some(known) = known.and_then(Option::take) else {
                self.played.made_up_calls += 1;
                continue;
            };
            let Some(result) = known.result else { continue };
            let (result, rewritten) = self.result(call, result).await?;
            changed |= rewritten;
            results.push(result);
        }
        self.played.removed_calls += recorded.into_iter().flatten().count();
        if !changed {
            self.history.push(message);
        } else if text.is_some() || !calls.is_empty() {
            self.history.push(Arc::new(rebuilt(&message, text.as_deref(), &calls)));
        }
        self.history.extend(results);
        Ok(())
    }

    /// A recorded tool message; the answer is the message as it is stored, and whether the call's arguments were rewritten.
    async fn result(&mut self, call: &mut PlayedCall, message: Arc<Object>) -> Result<(Arc<Object>, bool), Early> {
        let mut value = message.get("content").cloned().unwrap_or(Value::Null);
        if call.name == SEARCH_TOOL {
            self.search(call, &mut value).await?;
        }
        let arguments = call.arguments.as_object().cloned().unwrap_or_default();
        let payload = identified!(
            self,
            ToolResultPayload::new(&self.sender_id, call.name.clone(), arguments.clone(), value.clone())
        );
        let payload = match self.pass(payload).await {
            Outcome::Proceed { payload, .. } => payload,
            Outcome::Reject { .. } | Outcome::Retry { .. } => return Err(Early::Rejected),
            Outcome::Failed(_) => return Err(Early::Failed),
        };
        let rewritten = payload.arguments != arguments;
        if rewritten {
            call.arguments = payload.arguments.into();
        }
        if message.get("content") == Some(&payload.value) {
            return Ok((message, rewritten));
        }
        let stored = match (message.get("content"), payload.value) {
            // What was recorded as parts is stored as parts again.
            (Some(Value::Array(_)), Value::Array(parts)) => {
                let mut stored = Object::clone(&message);
                stored.insert("content".into(), parts.into());
                stored
            }
            (_, Value::String(text)) => with_content(&message, text),
            (_, other) => with_content(&message, other.to_string()),
        };
        Ok((Arc::new(stored), rewritten))
    }

    /// A recorded search: the query, then the passages. An empty query and an answer that is no list of passages run no hooks.
    async fn search(&mut self, call: &PlayedCall, value: &mut Value) -> Result<(), Early> {
        let query = call.arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        if query.trim().is_empty() {
            return Ok(());
        }
        let payload = identified!(self, KnowledgeQueryPayload::new(&self.sender_id, query));
        let query = match self.pass(payload).await {
            Outcome::Proceed { payload, .. } => payload.query,
            // Closed means here: no search, and the model gets what it gets when nothing was found.
            Outcome::Failed(_) | Outcome::Reject { .. } | Outcome::Retry { .. } => {
                *value = "[]".into();
                return Ok(());
            }
        };
        let Some(passages) = value.as_str().and_then(passages_in) else { return Ok(()) };
        let payload = identified!(self, KnowledgeResultsPayload::new(&self.sender_id, query, passages));
        if let Outcome::Proceed { payload, changed: true, .. } = self.pass(payload).await {
            *value = json!(payload.passages).to_string().into();
        }
        Ok(())
    }

    /// One point: its observers, then its modifier.
    async fn pass<P: ModifiablePayload>(&mut self, payload: P) -> Outcome<P> {
        self.engine.observe_with_room(&payload).await;
        if !self.diff {
            return self.engine.modify(payload).await;
        }
        let before = payload.clone().into_any();
        let outcome = self.engine.modify(payload).await;
        let hook = self.engine.registered(P::POINT).pop().map(|hook| hook.to_string()).unwrap_or_default();
        let change = Change::of(&self.place, hook, &before, outcome.clone().map(P::into_any));
        self.played.changes.extend(change);
        outcome
    }

    fn drop_completion(&mut self, feedback: String) {
        self.played.dropped_completions += 1;
        self.feedback = Some(feedback);
    }
}

fn messages_in(item: &TurnItem) -> usize {
    match item {
        TurnItem::Aside(_) => 1,
        TurnItem::Completion(completion) => 1 + completion.calls.iter().filter(|call| call.result.is_some()).count(),
    }
}
