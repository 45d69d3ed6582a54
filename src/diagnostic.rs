//! A problem in a file: whose rule, where, and how to mend it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Unwise, or surely not meant.
    Warning,
    /// The modules cannot be run like this.
    Error,
}

/// A problem that the author of a file can mend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    pub file: PathBuf,
    /// The line, from 1, where it is known.
    pub line: Option<u32>,
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
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(out, ": {severity}[{}]: {}", self.rule, self.message)?;
        match &self.hint {
            Some(hint) => write!(out, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}
