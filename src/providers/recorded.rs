//! A recorded conversation in the place of a model and its tools: the same answers and results again, whatever is asked.
//!
//! Which turn it is tells the number of the user's messages in the request, so a turn that a hook has ended early does not shift those
//! after it. Within a turn answers come in their order, and within an answer results.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::conversation::{Arguments, Completion, Object, RecordedCall, Recording, TurnItem, text_of};
use crate::step::{Model, ModelError, ModelReply, ModelRequest, RequestedCall, Tokens};
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec, Toolbox};

/// A recorded conversation, as the model and the toolbox of an engine that plays it again. Clones share where it stands.
///
/// Give the engine no limits beside it: `max_iterations(u64::MAX)` and no `max_prompt_tokens`, for a recording may be longer than either.
#[derive(Clone, Debug)]
pub struct RecordedConversation {
    turns: Arc<[Vec<Completion>]>,
    specs: Arc<[Arc<ToolSpec>]>,
    place: Arc<Mutex<Place>>,
}

/// How far the recording has been played.
#[derive(Debug, Default)]
struct Place {
    turn: usize,
    /// How many answers of the turn have been given.
    given: usize,
    /// The results of the last answer's calls that nobody has had yet: the tool and what it gave.
    results: VecDeque<(String, String)>,
}

impl RecordedConversation {
    /// Reads a line of a file of conversations: a JSON object whose `messages` have the form of the Chat Completions interface.
    ///
    /// # Errors
    ///
    /// A sentence that says why the line is no conversation.
    pub fn from_line(line: &str) -> Result<Self, String> {
        Recording::from_line(line).map(Self::of)
    }

    pub(crate) fn of(recording: Recording) -> Self {
        let completions = |items: Vec<TurnItem>| {
            let completion = |item| match item {
                TurnItem::Completion(completion) => Some(completion),
                TurnItem::Aside(_) => None,
            };
            items.into_iter().filter_map(completion).collect()
        };
        Self {
            turns: recording.turns.into_iter().map(|turn| completions(turn.items)).collect(),
            specs: recording.tool_names.iter().map(|name| Arc::new(ToolSpec::new(name, "Recorded"))).collect(),
            place: Arc::default(),
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let is_users = |message: &&Arc<Object>| message.get("role").and_then(Value::as_str) == Some("user");
        let turn = request.messages.iter().filter(is_users).count().saturating_sub(1);
        let mut place = self.place();
        if place.turn != turn {
            *place = Place { turn, ..Place::default() };
        }
        let completion =
            self.turns.get(turn).and_then(|completions| completions.get(place.given)).ok_or_else(|| {
                let (turn, given) = (turn + 1, place.given);
                ModelError::Exhausted(format!("The recording has no answer {} in turn {turn}", given + 1))
            })?;
        place.given += 1;
        let result =
            |call: &RecordedCall| Some((call.name.clone(), text_of(call.result.as_ref()?).unwrap_or_default()));
        place.results = completion.calls.iter().filter_map(result).collect();
        Ok(ModelReply {
            text: completion.text.clone(),
            calls: completion.calls.iter().map(requested).collect(),
            usage: None,
            latency: Some(Duration::ZERO),
        })
    }

    /// The next result of a tool; of another, where a hook has made the call one of a tool that was not called.
    fn result(&self, tool: &str) -> ToolOutput {
        let results = &mut self.place().results;
        let at = results.iter().position(|(name, _)| name == tool).unwrap_or(0);
        match results.remove(at) {
            Some((_, result)) => ToolOutput::of(result),
            None => ToolOutput::error(format!("The recording has no result of `{tool}` here")),
        }
    }
}

/// A recorded call as the model asks for it.
pub(crate) fn requested(call: &RecordedCall) -> RequestedCall {
    let arguments = match &call.arguments {
        Arguments::Parsed(arguments) => Ok(arguments.clone()),
        Arguments::Broken(text) => Err(text.clone()),
    };
    RequestedCall { id: Some(call.id.clone()), tool_name: call.name.clone(), arguments }
}

impl Model for RecordedConversation {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn provider(&self) -> &'static str {
        "recorded"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        tokens: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let reply = self.next(request)?;
            if let (Some(tokens), Some(text)) = (tokens, &reply.text) {
                tokens(text);
            }
            Ok(reply)
        })
    }
}

impl Toolbox for RecordedConversation {
    fn offered(&self) -> Vec<Arc<dyn Tool>> {
        let tool = |spec: &Arc<ToolSpec>| {
            Arc::new(RecordedTool { spec: Arc::clone(spec), conversation: self.clone() }) as Arc<dyn Tool>
        };
        self.specs.iter().map(tool).collect()
    }
}

struct RecordedTool {
    spec: Arc<ToolSpec>,
    conversation: RecordedConversation,
}

impl Tool for RecordedTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call(&self, _: Object, _: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async { self.conversation.result(&self.spec.name) })
    }
}
