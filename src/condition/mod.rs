//! The one-line expressions that decide whether something is offered, shown or said: `requires`, `if:`, `condition`.
//!
//! ```text
//! condition  = all, { "or", all } ;
//! all        = negation, { "and", negation } ;
//! negation   = "not", negation | comparison ;
//! comparison = operand, { sign, operand } ;
//! sign       = "==" | "!=" | "<" | "<=" | ">" | ">=" | "is" | "is", "not" ;
//! operand    = name | text | number | "True" | "False" | "None" | "(", condition, ")" ;
//! name       = "session.", ( skill id | "project" ), ".", entry ;
//! ```
//!
//! It is read as Python reads it, so that chains, `True == 1` and what counts as true are Python's. But:
//!
//! - There are `true`, `false` and `null` as well. A name may hold a `-`, as a skill's folder may: there is no arithmetic.
//! - What is compared is a name or a value, no condition: `x == ("a" or "b")` does not mean what it seems to.
//! - Lists have no order, and `is` compares with `None`, `True` and `False` only.
//! - Values without an order, as in `None < 3`, raise nothing: they clash. A clash is neither true nor false, and so is what
//!   hangs on it; a condition must be true to hold. A tool that requires `not session.order.total > 100` thus stays shut while
//!   the total is unset.

mod evaluate;
#[cfg(test)]
mod evaluation_tests;
mod name;
mod parse;
#[cfg(test)]
mod reading_tests;
mod tokens;
mod tree;

use std::fmt;
use std::ops::Range;

use serde_json::Value;
use thiserror::Error;

use evaluate::Evaluation;
pub(crate) use name::Name;
use tree::Node;

/// A condition that has been read once, to be looked at often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    root: Node,
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub(crate) struct ConditionError {
    /// What is wrong.
    pub(crate) message: String,
    /// How to mend it.
    pub(crate) hint: Option<String>,
    /// Where it is, in characters from the beginning of the text; empty where something is missing.
    pub(crate) range: Range<usize>,
}

impl Condition {
    /// Reads a text. White space around it is nothing, so that a folded text of YAML may end with a line break.
    pub(crate) fn parse(text: &str) -> Result<Self, ConditionError> {
        parse::parse(text).map(|root| Self { root })
    }

    /// The memory entries it names, in the order in which they stand, as often as they do.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.root.names().into_iter()
    }

    /// Whether it holds. `read` gives the value of an entry by its namespace and its name; none is as `None`.
    ///
    /// An entry that stands there twice may be read twice: `read` should look at one state of the memory.
    pub(crate) fn holds(&self, read: &dyn Fn(&str, &str) -> Option<Value>) -> bool {
        Evaluation { condition: self, read }.truth(&self.root) == Some(true)
    }
}

impl fmt::Display for Condition {
    /// The condition as Python's authors would write it, with no more brackets than it needs.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(out)
    }
}

impl ConditionError {
    fn new(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, range }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
