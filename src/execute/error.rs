//! What keeps an execution from being run.

/// Why an execution cannot be run: what was given for it does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}\n  hint: {hint}")]
pub struct Error {
    /// What does not fit.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl Error {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}
