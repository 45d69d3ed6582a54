//! How an iteration has ended.

use serde::Serialize;
use serde_json::Value;

use crate::conversation::Object;

/// How an iteration stands or has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It has not ended.
    #[default]
    Pending,
    /// The model gave no answer. The execution ends.
    GenerationError {
        /// Why.
        message: String,
    },
    /// What the model answered is no code that can be run. The model is told.
    InvalidCodeError {
        /// What is wrong.
        message: String,
    },
    /// The code, or a hook before it, has failed. The model is told.
    ExecutionError {
        /// What has failed.
        message: String,
        /// Where: a marked listing of the code, or nothing.
        stack: String,
    },
    /// There is something that the model is to look at before it goes on.
    ThinkingRequested {
        /// Why, where anybody has said so.
        reason: Option<String>,
        /// What it is to look at.
        variables: Object,
    },
    /// The code has reached a valid exit. The execution ends.
    ExitSuccess {
        /// The exit.
        exit_name: String,
        /// Its validated result.
        return_value: Value,
    },
    /// An exit was refused by a hook. The model is told.
    ExitError {
        /// The exit.
        exit: String,
        /// The result that it would have had.
        return_value: Value,
        /// Why.
        message: String,
    },
    /// It was aborted. The execution ends.
    Aborted {
        /// Why.
        reason: String,
    },
}

impl Status {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::GenerationError { .. } => "generation_error",
            Self::InvalidCodeError { .. } => "invalid_code_error",
            Self::ExecutionError { .. } => "execution_error",
            Self::ThinkingRequested { .. } => "thinking_requested",
            Self::ExitSuccess { .. } => "exit_success",
            Self::ExitError { .. } => "exit_error",
            Self::Aborted { .. } => "aborted",
        }
    }

    /// Whether the execution goes on after it.
    pub const fn goes_on(&self) -> bool {
        matches!(
            self,
            Self::Pending
                | Self::InvalidCodeError { .. }
                | Self::ExecutionError { .. }
                | Self::ThinkingRequested { .. }
                | Self::ExitError { .. }
        )
    }

    /// Whether nothing went wrong.
    pub const fn is_successful(&self) -> bool {
        matches!(self, Self::ThinkingRequested { .. } | Self::ExitSuccess { .. })
    }

    /// Whether something did.
    pub const fn is_failed(&self) -> bool {
        !matches!(self, Self::Pending) && !self.is_successful()
    }

    /// What went wrong, in one line.
    pub fn error(&self) -> Option<String> {
        Some(match self {
            Self::GenerationError { message } => format!("CodeGenerationError: {message}"),
            Self::InvalidCodeError { message } => format!("InvalidCodeError: {message}"),
            Self::ExecutionError { message, .. } => format!("CodeExecutionError: {message}"),
            Self::ExitError { message, .. } => format!("ExitError: {message}"),
            Self::Aborted { reason } => format!("Aborted: {reason}"),
            Self::Pending | Self::ThinkingRequested { .. } | Self::ExitSuccess { .. } => return None,
        })
    }
}
