//! An answer in pieces: server-sent events, each a part of the message.

use bytes::Bytes;
use futures_util::stream::{Stream, TryStreamExt as _};
use serde_json::Value;
use sse_stream::{Error, SseByteStream};

use super::answer;
use super::blame::{Blame, Failure};
use crate::step::{ModelError, ModelReply, RequestedCall, Tokens, Usage};

/// What ends the events of an answer.
const DONE: &str = "[DONE]";

/// Reads a completion to its end, and hands its text on as it comes.
pub(super) async fn read(
    chunks: impl Stream<Item = Result<Bytes, ModelError>>,
    tokens: Tokens<'_>,
    blame: &Blame,
) -> Result<ModelReply, Failure> {
    let mut events = std::pin::pin!(SseByteStream::new(chunks));
    let mut message = Message::default();
    loop {
        let event = match events.try_next().await {
            Ok(Some(event)) => event,
            // After the reason to stop only the usage could be missing.
            Ok(None) | Err(Error::Body(_)) if message.finished => break,
            Ok(None) => return Err(blame.broken("its stream ended before the answer did").into()),
            Err(error) => return Err(broken(error, blame)),
        };
        let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else { continue };
        if data.trim() == DONE {
            break;
        }
        let Ok(piece) = serde_json::from_str::<Value>(&data) else {
            let message = format!("an event of its stream is no JSON: `{}`", blame.excerpt(data.as_bytes()));
            return Err(blame.broken(&message).into());
        };
        if let Some(refusal) = answer::refusal(&piece, blame) {
            // Nobody can take back what was heard.
            return Err(Failure { is_passing: refusal.is_passing && message.text.is_empty(), ..refusal });
        }
        message.add(&piece, tokens);
    }
    message.reply(blame)
}

/// The message as far as it has come.
#[derive(Default)]
struct Message {
    text: String,
    calls: Vec<Call>,
    usage: Option<Usage>,
    /// Whether the model has said why it stopped.
    finished: bool,
    /// Whether there was a choice at all.
    chosen: bool,
}

impl Message {
    fn add(&mut self, piece: &Value, tokens: Tokens<'_>) {
        self.usage = answer::usage(piece).or(self.usage);
        let Some(choice) = piece.pointer("/choices/0") else { return };
        self.chosen = true;
        self.finished |= choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        let Some(delta) = choice.get("delta") else { return };
        if let Some(text) = answer::text(delta) {
            tokens(&text);
            self.text.push_str(&text);
        }
        for part in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(part).add(part);
        }
    }

    /// The call that a part belongs to: the last of its index, unless it has another id. Some servers number all their calls 0.
    fn call(&mut self, part: &Value) -> &mut Call {
        let index = part.get("index").and_then(Value::as_u64);
        let id = part.get("id").and_then(Value::as_str).unwrap_or_default();
        let known = self.calls.iter().rposition(|call| call.index == index);
        let known = known.filter(|at| id.is_empty() || self.calls[*at].id.is_empty() || self.calls[*at].id == id);
        let at = known.unwrap_or_else(|| {
            self.calls.push(Call { index, ..Call::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    fn reply(self, blame: &Blame) -> Result<ModelReply, Failure> {
        if !self.chosen {
            return Err(blame.broken("its stream has no choices").into());
        }
        Ok(ModelReply {
            text: (!self.text.is_empty()).then_some(self.text),
            calls: self.calls.into_iter().map(|call| call.requested(blame)).collect::<Result<_, _>>()?,
            usage: self.usage,
            latency: None,
        })
    }
}

/// A call as far as it has come.
#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Call {
    fn add(&mut self, part: &Value) {
        let piece = |place| part.pointer(place).and_then(Value::as_str).unwrap_or_default();
        if self.id.is_empty() {
            piece("/id").clone_into(&mut self.id);
        }
        // Some servers say the whole name each time.
        let name = piece("/function/name");
        if self.name != name {
            self.name.push_str(name);
        }
        match part.pointer("/function/arguments") {
            // Some servers of open models forget to write it as a text.
            Some(Value::Object(written)) => self.arguments = Value::from(written.clone()).to_string(),
            _ => self.arguments.push_str(piece("/function/arguments")),
        }
    }

    fn requested(self, blame: &Blame) -> Result<RequestedCall, Failure> {
        if self.name.is_empty() {
            return Err(blame.broken("a tool call names no tool").into());
        }
        Ok(RequestedCall {
            id: (!self.id.is_empty()).then_some(self.id),
            tool_name: self.name,
            arguments: answer::arguments(&self.arguments),
        })
    }
}

fn broken(error: Error, blame: &Blame) -> Failure {
    match error {
        Error::Body(error) => match error.downcast::<ModelError>() {
            Ok(error) => (*error).into(),
            Err(other) => blame.broken(&other.to_string()).into(),
        },
        other => blame.broken(&format!("its stream cannot be read: {other}")).into(),
    }
}
