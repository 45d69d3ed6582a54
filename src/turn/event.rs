//! What a turn tells while it runs.

use std::time::Duration;

use serde::Serialize;

use crate::conversation::{Event, Object};
use crate::hooks::{Changed, Point, TurnStatus};
use crate::step::Usage;

/// Something that happens in a turn, for whoever shows it. No text of an exception, and no feedback of a hook, is ever among it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnEvent {
    /// The turn begins.
    Started {
        /// Its id.
        turn_id: String,
    },
    /// A modify hook has run.
    HookRan {
        /// Where it stands.
        point: Point,
        /// `unchanged`, `changed`, `retry`, `rejected` or `failed`.
        outcome: &'static str,
        /// How long it took.
        #[serde(rename = "elapsed_ms", serialize_with = "some_millis")]
        elapsed: Duration,
        /// What it changed, where the input asks for it ([`TurnInput::shows_changes`](super::TurnInput)).
        #[serde(skip_serializing_if = "Option::is_none")]
        changed: Option<Changed>,
    },
    /// The model has been asked and has answered.
    ModelAnswered {
        /// The iteration of the loop, from 0.
        iteration: u64,
        /// How long it took, where that is known.
        #[serde(rename = "latency_ms", serialize_with = "millis")]
        latency: Option<Duration>,
        /// What it has cost, where that is known.
        #[serde(skip)]
        usage: Option<Usage>,
        /// How many calls it asks for.
        calls: usize,
    },
    /// A hook has discarded an answer: the model is asked again.
    Retried {
        /// The iteration of the loop, from 0.
        iteration: u64,
    },
    /// A piece of a text that the model is writing; [`TurnEvent::Message`] has all of it at its end.
    Token {
        /// The piece.
        text: String,
    },
    /// A completed text for the user.
    Message {
        /// The text.
        text: String,
        /// The name of the response that it is, where it is a fixed one.
        response: Option<String>,
        /// Its buttons.
        buttons: Vec<Object>,
        /// Whatever else a channel may make use of.
        #[serde(skip_serializing_if = "Object::is_empty")]
        metadata: Object,
        /// Whether all of it came in tokens before.
        streamed: bool,
    },
    /// A tool is about to run.
    ToolCalled {
        /// The call's id.
        id: String,
        /// The tool.
        tool_name: String,
    },
    /// A tool has run.
    ToolReturned {
        /// The call's id.
        id: String,
        /// The tool.
        tool_name: String,
        /// Whether the result is an error.
        is_error: bool,
        /// How long it took.
        #[serde(rename = "elapsed_ms", serialize_with = "some_millis")]
        elapsed: Duration,
    },
    /// The conversation stands elsewhere: a skill or a block has begun or ended, something is remembered, a call waits for the user's yes.
    Moved {
        /// What has happened. It is kept unless the turn is cancelled before the batch of calls that it belongs to is over.
        to: Event,
    },
    /// The turn has ended; the last of its events.
    Finished {
        /// How.
        status: TurnStatus,
    },
}

#[expect(clippy::ref_option, reason = "serde asks so")]
fn millis<S: serde::Serializer>(time: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => some_millis(time, out),
        None => out.serialize_none(),
    }
}

fn some_millis<S: serde::Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e3)
}
