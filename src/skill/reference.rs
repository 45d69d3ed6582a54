//! What a file names that stands elsewhere, and where it does so: it can be looked up only when all files have been read.

use std::path::PathBuf;

use serde_json::Value;

use super::Import;
use crate::diagnostic::Place;

/// The references of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct References {
    /// The file.
    pub(crate) file: PathBuf,
    /// The skill that it belongs to. None: it is one of the project.
    pub(crate) owner: Option<String>,
    /// In the order in which they were read.
    pub(crate) all: Vec<Reference>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reference {
    /// As it is written.
    pub(crate) shown: String,
    /// Where.
    pub(crate) place: Place,
    /// What it is meant to name.
    pub(crate) to: Referent,
}

/// What is meant by a reference.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Referent {
    /// A skill.
    Skill(String),
    /// A tool that the skill may call.
    Tool(String),
    /// A tool that the skill wants to be given.
    Import(Import),
    /// A response.
    Response(String),
    /// A memory entry that is read.
    Entry {
        /// A skill's id, or `project`.
        namespace: String,
        /// The entry's own name.
        entry: String,
    },
    /// An entry of the skill's own memory that the user is asked for.
    Collected(String),
    /// An entry that a tool writes to, as it names it.
    Remembered {
        /// Bare, or with its namespace before it.
        entry: String,
        /// The value, where it is written out.
        value: Option<Value>,
    },
    /// A skill, or a block of one, that a tool begins.
    Activated {
        /// The skill's id.
        skill: String,
        /// The block's.
        block: Option<String>,
    },
    /// An entry that a value is written to, the skill's own one before the project's.
    Written {
        /// The entry's own name.
        entry: String,
        /// The value.
        value: Value,
    },
}
