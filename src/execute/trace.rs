//! What happens in an iteration, as `on_trace` hears it.

use serde::Serialize;
use serde_json::Value;

use super::runner::CodeFrame;

/// Something that has happened in an iteration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// What.
    #[serde(flatten)]
    pub what: Traced,
    /// When it began, in milliseconds since 1970.
    pub started_at: u64,
    /// When it ended; none: it has no length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
}

/// The kinds of traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Traced {
    /// The model is asked.
    LlmCallStarted {
        /// Its name.
        model: String,
    },
    /// The model has answered.
    LlmCallSuccess {
        /// Its name.
        model: String,
        /// The code that it wrote, where it wrote any.
        code: Option<String>,
    },
    /// A text of the model's goes to the user.
    MessageDelivery {
        /// The text.
        value: String,
    },
    /// The code has printed something.
    Log {
        /// What.
        message: String,
    },
    /// A tool has been called, or was kept from running.
    ToolCall {
        /// The tool.
        tool_name: String,
        /// The call's id.
        tool_call_id: String,
        /// The id under which the model asked for the code, where it did so by a native call.
        #[serde(skip_serializing_if = "Option::is_none")]
        native_call_id: Option<String>,
        /// The input as the code gave it, before any hook.
        input: Value,
        /// The output as the code received it.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        /// What was raised in the code instead.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Whether it gave an output.
        success: bool,
    },
    /// A tool has been running for long.
    ToolSlow {
        /// The tool.
        tool_name: String,
        /// The call's id.
        tool_call_id: String,
        /// For how long so far, in milliseconds.
        duration: u64,
    },
    /// A tool or a hook wants the model to look at something.
    ThinkSignal {
        /// Why.
        reason: String,
        /// What.
        context: Value,
    },
    /// The code has come to its end.
    CodeExecution {
        /// How many lines it has.
        lines: usize,
    },
    /// The code has failed.
    CodeExecutionException {
        /// Where: line and column, from 1.
        position: Option<CodeFrame>,
        /// What it says.
        message: String,
        /// A marked listing of the code.
        stack_trace: String,
    },
    /// The code cannot be read.
    InvalidCodeException {
        /// What is wrong.
        message: String,
        /// The code.
        code: String,
    },
    /// The execution was aborted.
    AbortSignal {
        /// Why.
        reason: String,
    },
}
