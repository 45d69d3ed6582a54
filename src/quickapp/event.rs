//! What a request tells while it is answered.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::conversation::Object;
use crate::hooks::Point;

/// How a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// With an answer.
    Completed,
    /// A hook module has rejected the user's message; it is not in the conversation any more.
    Rejected,
    /// With calls for tools of the client's own: it is to call them, and to send the conversation again.
    ClientTools,
    /// Without an answer: the model gave none, asked for tools too often, or a tool set or a hook module has ended it.
    Error,
}

/// Something that happens while a request is answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequestEvent {
    /// A hook of the manifest has run.
    AppHookRan {
        /// Its name, or its tool's.
        name: String,
        /// `on_request_start` or `on_completion`.
        on: &'static str,
        /// Whether it was skipped.
        skipped: bool,
        /// How long it took.
        #[serde(skip)]
        elapsed: Duration,
    },
    /// A modify hook of a Python module has run.
    HookRan {
        /// Where it stands.
        point: Point,
        /// `unchanged`, `changed`, `retry`, `rejected` or `failed`.
        outcome: &'static str,
    },
    /// A piece of the text that the model is writing.
    Token {
        /// The piece.
        text: String,
    },
    /// A completed text.
    Message {
        /// The text.
        text: String,
    },
    /// A tool is about to run.
    ToolCalled {
        /// The tool.
        tool_name: String,
    },
    /// A tool has run, or was refused.
    ToolReturned {
        /// The tool.
        tool_name: String,
        /// Whether the result is an error.
        is_error: bool,
    },
    /// The request has ended; the last of its events.
    Finished {
        /// How.
        status: RequestStatus,
        /// The conversation as the client is to send it again: its own messages, the pairs of hooks, calls, results and the answer.
        messages: Vec<Arc<Object>>,
    },
}
