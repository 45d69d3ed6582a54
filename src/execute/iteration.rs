//! An iteration, as hooks see it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::runner::CodeOutcome;
use super::status::Status;
use super::trace::Trace;
use crate::conversation::Object;
use crate::step::Usage;

/// One round of model, code, tools and exits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Iteration {
    /// The execution's id and the number, with `_` between.
    pub id: String,
    /// From 1.
    pub number: u32,
    /// How it stands or has ended.
    pub status: Status,
    /// The model that is asked.
    pub model: String,
    /// What the model is sent.
    pub messages: Vec<Arc<Object>>,
    /// The code that is run: the model's, or a hook's in its place.
    pub code: Option<String>,
    /// The model's text beside the code.
    pub text: Option<String>,
    /// What has happened so far.
    pub traces: Vec<Trace>,
    /// The variables that are carried between iterations.
    pub variables: Object,
    /// The tokens that the model has read and written.
    pub tokens: Tokens,
    /// When it began, in milliseconds since 1970.
    pub started_ts: u64,
    /// When it ended.
    pub ended_ts: Option<u64>,
    /// What went wrong, in one line.
    pub error: Option<String>,
    /// Everything that went wrong, what the code has caught included.
    pub errors: Vec<String>,
    /// What has come of the code.
    #[serde(skip)]
    pub(crate) outcome: Option<Arc<CodeOutcome>>,
}

/// Tokens of one or more model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Those that were read.
    pub input: u64,
    /// Those that were written.
    pub output: u64,
    /// Both.
    pub total: u64,
}

impl Tokens {
    /// Adds those of a model call.
    pub(super) fn add(&mut self, usage: Usage) {
        self.sum(Self { input: usage.input, output: usage.output, total: usage.input.saturating_add(usage.output) });
    }

    /// Adds others.
    pub(super) fn sum(&mut self, others: Self) {
        self.input = self.input.saturating_add(others.input);
        self.output = self.output.saturating_add(others.output);
        self.total = self.total.saturating_add(others.total);
    }
}

impl Iteration {
    /// Whether it has ended with a valid exit.
    pub fn has_exited(&self) -> bool {
        matches!(self.status, Status::ExitSuccess { .. })
    }

    /// Whether it has ended with that exit.
    pub fn has_exited_with(&self, exit: &str) -> bool {
        matches!(&self.status, Status::ExitSuccess { exit_name, .. } if exit_name == exit)
    }
}

/// What a hook changes of the iteration that starts. What is not there stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IterationChange {
    /// The model, by name: one that the execution knows.
    pub model: Option<String>,
    /// What the model is sent.
    pub messages: Option<Vec<Arc<Object>>>,
    /// The variables that the code begins with.
    pub variables: Option<Object>,
    /// Code that is run in the place of whatever the model writes. The model is asked all the same, and told what was run.
    pub code: Option<String>,
}

impl IterationChange {
    /// The keys that a hook may give.
    pub const KEYS: [&'static str; 4] = ["model", "messages", "variables", "code"];

    /// Reads what a hook has given.
    ///
    /// # Errors
    ///
    /// A key that no hook may change, or a value that does not fit it.
    pub fn read(given: Object) -> Result<Self, String> {
        let mut change = Self::default();
        for (key, value) in given {
            let wrong = |expected: &str| format!("`{key}` is to be {expected}");
            match (key.as_str(), value) {
                (_, Value::Null) if Self::KEYS.contains(&key.as_str()) => {}
                ("model", Value::String(model)) => change.model = Some(model),
                ("model", _) => return Err(wrong("the name of a model")),
                ("code", Value::String(code)) => change.code = Some(code),
                ("code", _) => return Err(wrong("a text")),
                ("variables", Value::Object(variables)) => change.variables = Some(variables),
                ("variables", _) => return Err(wrong("an object")),
                ("messages", Value::Array(messages)) => {
                    let read = messages.into_iter().map(|message| match message {
                        Value::Object(message) => Ok(Arc::new(message)),
                        _ => Err(wrong("a list of objects")),
                    });
                    change.messages = Some(read.collect::<Result<_, _>>()?);
                }
                ("messages", _) => return Err(wrong("a list of objects")),
                _ => {
                    let keys = Self::KEYS.map(|key| format!("`{key}`")).join(", ");
                    return Err(format!("`{key}` of an iteration cannot be changed: what can is {keys}"));
                }
            }
        }
        Ok(change)
    }
}
