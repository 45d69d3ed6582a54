//! Plays one recorded conversation: what was recorded takes the place of the user, the model and the tools.
//!
//! What a hook changes is what later points see. The order of points is that of a live turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::answer::RecordedAnswer;
use super::diff::{Change, Place};
use super::hooks::PlayedHooks;
use super::stored::{Found, stored, stored_result};
use crate::agent::HookEngine;
use crate::conversation::{self, ChannelInfo, Object, Recording, TurnItem, text_of, with_content};
use crate::hooks::{TurnFinishedPayload, TurnStartedPayload, TurnStatus};
use crate::step::{
    Asked, Call, Completion, Hooked, Identity, Incoming, NOTHING_FOUND, Outgoing, Preflight, Query, SEARCH, complete,
    incoming, outgoing, passages, preflight, query, result,
};
use crate::tools::ToolSpec;

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
    let place = Place { line, conversation: sender_id.clone(), turn: 0 };
    let channel = ChannelInfo { name: Some("recording".into()), metadata: Object::new() };
    let mut player = Player {
        hooks: PlayedHooks::new(engine, place, diff),
        identity: Identity { sender_id, channel, ..Identity::default() },
        tools: recording.tool_names.iter().map(|name| Arc::new(ToolSpec::new(name, "Recorded"))).collect(),
        history: recording.opening,
        feedback: None,
        ids: AtomicUsize::default(),
        played: Played {
            messages: recording.messages,
            broken_arguments: recording.broken_arguments,
            ..Played::default()
        },
    };
    for (number, turn) in recording.turns.into_iter().enumerate() {
        player.hooks.place.turn = number + 1;
        player.turn(turn.user, turn.items).await;
    }
    Played { changes: player.hooks.into_changes(), ..player.played }
}

struct Player<'a> {
    hooks: PlayedHooks<'a>,
    identity: Identity,
    tools: Vec<Arc<ToolSpec>>,
    history: Vec<Arc<Object>>,
    /// What a retry tells the next model request; it is in no history.
    feedback: Option<String>,
    /// How many calls have been given an id.
    ids: AtomicUsize,
    played: Played,
}

/// How a turn, or a part of it, ends early.
enum Early {
    Rejected,
    Failed,
}

impl Player<'_> {
    fn hooked(&self) -> Hooked<'_> {
        Hooked { hooks: &self.hooks, identity: &self.identity, witness: &self.hooks }
    }

    async fn turn(&mut self, user: Arc<Object>, items: Vec<TurnItem>) {
        let sender_id = &self.identity.sender_id;
        let turn_id = Some(format!("{sender_id}#{}", self.hooks.place.turn));
        let mut started = TurnStartedPayload::new(sender_id);
        started.turn_id.clone_from(&turn_id);
        self.hooked().observe(&mut started);
        self.hooks.hand_over().await;
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
        let mut finished = TurnFinishedPayload::new(&self.identity.sender_id, status);
        finished.turn_id = turn_id;
        self.hooked().observe(&mut finished);
        self.hooks.hand_over().await;
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
                    self.completion(completion, iteration).await?;
                    iteration += 1;
                }
            }
            *left -= messages;
        }
        Ok(())
    }

    /// The user's text; a message without text runs no hooks.
    async fn incoming(&self, user: Arc<Object>) -> Result<Arc<Object>, Early> {
        let Some(text) = text_of(&user) else { return Ok(user) };
        match incoming(self.hooked(), &text, None).await {
            Incoming::Accepted(same) if same == text => Ok(user),
            Incoming::Accepted(text) => Ok(Arc::new(with_content(&user, text))),
            Incoming::Rejected { .. } => Err(Early::Rejected),
            Incoming::Failed => Err(Early::Failed),
        }
    }

    /// The request that the recorded completion answers.
    fn asked(&mut self, iteration: u64) -> Asked {
        let mut messages = self.history.clone();
        if let Some(feedback) = self.feedback.take() {
            let note = json!({"role": "system", "content": feedback});
            messages.extend(note.as_object().cloned().map(Arc::new));
        }
        Asked { messages, tools: self.tools.clone(), iteration }
    }

    async fn completion(&mut self, completion: conversation::Completion, iteration: u64) -> Result<(), Early> {
        let asked = self.asked(iteration);
        // The same in every run: the report may show it.
        let new_id = || format!("replayed_{}", self.ids.fetch_add(1, Ordering::Relaxed));
        let answer = RecordedAnswer::new(completion, new_id);
        let (mut text, calls) = match complete(self.hooked(), &answer, asked, None, &new_id).await {
            Completion::Answered { text, calls, .. } => (text, calls),
            Completion::Retry { feedback } => {
                self.drop_completion(feedback);
                return Ok(());
            }
            Completion::RequestFailed => return Err(Early::Failed),
            // An empty one was recorded: there is nothing in it for hooks, and what came after it is known.
            Completion::NoAnswer(_) => {
                self.history.push(answer.completion.message);
                return Ok(());
            }
        };
        let mut calls = match preflight(self.hooked(), calls).await {
            Preflight::Ready(calls) => calls,
            Preflight::Retry { feedback } => {
                self.drop_completion(feedback);
                return Ok(());
            }
            Preflight::Failed => return Err(Early::Failed),
        };
        if let Some(spoken) = text.as_deref().filter(|text| !text.trim().is_empty()) {
            text = match outgoing(self.hooked(), spoken).await {
                Outgoing::Say(text) => Some(text),
                Outgoing::Rejected { .. } => {
                    self.played.rejected_texts += 1;
                    None
                }
            };
        }
        let mut results = Vec::new();
        let mut known = 0;
        for call in &mut calls {
            let Some(place) = answer.place_of(&call.id) else {
                self.played.made_up_calls += 1;
                continue;
            };
            known += 1;
            if let Some(message) = &answer.completion.calls[place].result {
                results.push(self.result(call, Arc::clone(message)).await);
            }
        }
        self.played.removed_calls += answer.completion.calls.len() - known;
        self.history.extend(stored(&answer, text.as_deref(), &calls));
        self.history.extend(results);
        Ok(())
    }

    /// A recorded tool message, as it is stored. What hooks take out of the arguments is out of the call as well.
    async fn result(&self, call: &mut Call, message: Arc<Object>) -> Arc<Object> {
        let mut value = message.get("content").cloned().unwrap_or(Value::Null);
        if call.tool_name == SEARCH {
            self.search(call, &mut value).await;
        }
        let left = result(self.hooked(), call, value, false).await;
        if left.arguments != call.arguments {
            (call.arguments, call.broken) = (left.arguments, None);
        }
        stored_result(message, left.value)
    }

    /// A recorded search: the query, then the passages. An answer that is no list of passages runs no hooks.
    async fn search(&self, call: &Call, value: &mut Value) {
        let query = match query(self.hooked(), &call.arguments).await {
            Query::Put(query) => query,
            // What was answered then is known.
            Query::Unasked(_) => return,
            Query::Stopped(output) => {
                *value = output.text().into();
                return;
            }
        };
        let Some(found) = value.as_str().and_then(Found::read) else { return };
        if let Some(left) = passages(self.hooked(), query, &found.passages).await {
            // As it was recorded, or what a model reads where nothing is left.
            *value = if left.is_empty() { NOTHING_FOUND.into() } else { found.with(&left).into() };
        }
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
