//! What an execution tells while it runs, and what comes of it.

use serde::Serialize;
use serde_json::Value;

use super::iteration::{Iteration, Tokens};
use super::trace::Trace;
use crate::hooks::Point;

/// Something that happens in an execution.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecutionEvent {
    /// An iteration has begun.
    IterationStarted {
        /// Its number, from 1.
        iteration: u32,
    },
    /// A trace has been made.
    Traced {
        /// The iteration's number.
        iteration: u32,
        /// The trace.
        trace: Box<Trace>,
    },
    /// A text for the user, where the execution is a chat.
    Message {
        /// The text.
        text: String,
    },
    /// A modify hook of the agent's has run.
    HookRan {
        /// Where it stands.
        point: Point,
        /// `unchanged`, `changed`, `retry`, `rejected` or `failed`.
        outcome: &'static str,
    },
    /// An iteration has ended.
    IterationEnded {
        /// The iteration.
        iteration: Box<Iteration>,
    },
    /// The execution has ended; the last of its events.
    Finished {
        /// What has come of it.
        result: Box<ExecutionResult>,
    },
}

/// What has come of an execution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExecutionResult {
    /// The execution's id.
    pub id: String,
    /// How it ended.
    pub status: ExecutionStatus,
    /// The exit that was reached, where one was.
    pub exit: Option<String>,
    /// The exit's validated result.
    pub output: Value,
    /// Why it ended otherwise: the reason of an abort as it was given, or what went wrong.
    pub error: Option<String>,
    /// Its iterations, in order.
    pub iterations: Vec<Iteration>,
    /// The tokens of all of them.
    pub tokens: Tokens,
    /// What was given with it.
    pub context: Value,
}

/// How an execution has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    /// With a valid exit.
    Success,
    /// Otherwise.
    Error,
}

impl ExecutionResult {
    /// Whether it has ended with a valid exit.
    pub fn is_success(&self) -> bool {
        self.status == ExecutionStatus::Success
    }

    /// Whether it has ended with that exit.
    pub fn is(&self, exit: &str) -> bool {
        self.exit.as_deref() == Some(exit)
    }
}
