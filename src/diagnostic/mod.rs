//! A problem in a file: whose rule, where, and how to mend it.

mod render;

pub(crate) use render::{Rendering, render, schema};

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Unwise, or surely not meant.
    Warning,
    /// The modules cannot be run like this.
    Error,
}

impl Severity {
    /// The severity in a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A problem that the author of a file can mend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// The rule's name, such as `duplicate-modify`.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
    /// The file.
    #[serde(serialize_with = "as_shown")]
    #[schemars(with = "String")]
    pub file: PathBuf,
    /// The line, from 1, where it is known.
    pub line: Option<u32>,
    /// The whole stretch, where it is known.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Other places that belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
}

/// A stretch of a file: lines and columns from 1, columns in characters, the end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Place {
    /// The line of its first character.
    #[serde(skip)]
    pub line: u32,
    /// The column of its first character.
    pub column: u32,
    /// The line of its end.
    pub end_line: u32,
    /// The column of its end.
    pub end_column: u32,
}

impl Place {
    /// Moves it down by some lines.
    pub(crate) fn shift(&mut self, lines: u32) {
        self.line = self.line.saturating_add(lines);
        self.end_line = self.end_line.saturating_add(lines);
    }
}

/// Another place that a problem concerns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Related {
    /// What is there.
    pub message: String,
    /// The file.
    #[serde(serialize_with = "as_shown")]
    #[schemars(with = "String")]
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u32,
    /// The whole stretch.
    #[serde(flatten)]
    pub place: Place,
}

/// A path for machines to read: JSON has no bytes, so that what is not UTF-8 is replaced.
pub(crate) fn as_shown<S: serde::Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&path.display())
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        if let Some(place) = self.place {
            write!(out, ":{}", place.column)?;
        }
        write!(out, ": {}[{}]: {}", self.severity.name(), self.rule, self.message)?;
        match &self.hint {
            Some(hint) => write!(out, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}
