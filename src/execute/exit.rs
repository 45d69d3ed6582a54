//! The ends that generated code may reach.

use serde::Serialize;
use serde_json::Value;

use super::hooks::ExitSeen;

/// An end that generated code may reach, and what it has to give there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exit {
    /// Its name; upper and lower case are the same.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// What it is for, in the words that the model reads.
    pub description: String,
    /// The JSON schema of its result; none: anything.
    pub schema: Option<Value>,
}

impl Exit {
    /// An exit whose result may be anything.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), aliases: Vec::new(), description: description.into(), schema: None }
    }

    /// Gives it another name.
    #[must_use]
    pub fn alias(mut self, alias: impl Into<String>) -> Self {
        self.aliases.push(alias.into());
        self
    }

    /// Has its result fit a JSON schema.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// The exit as hooks see it.
    pub(super) fn seen(&self) -> ExitSeen {
        ExitSeen { name: self.name.clone(), description: self.description.clone() }
    }
}
