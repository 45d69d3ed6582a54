//! Names of memory entries: `session.<skill id | project>.<entry>`.

use std::fmt;
use std::ops::Range;

use super::ConditionError;
use super::tokens::shown;

/// The form of a name, for hints.
const FORM: &str = "`session.project.<entry>` or `session.<skill id>.<entry>`";

/// Words that are written otherwise elsewhere, in small letters, and how they are written here.
const KEYWORDS: [(&str, &str); 9] = [
    ("and", "and"),
    ("or", "or"),
    ("not", "not"),
    ("is", "is"),
    ("true", "True"),
    ("false", "False"),
    ("none", "None"),
    ("null", "None"),
    ("undefined", "None"),
];

/// A memory entry that a condition names. Two that stand at different places are equal.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    /// The skill's id, or `project`.
    pub(crate) namespace: String,
    /// The entry's own name.
    pub(crate) entry: String,
    /// Where it stands, in characters from the beginning of the text.
    pub(crate) range: Range<usize>,
}

impl Name {
    /// Reads a word that is no keyword.
    pub(super) fn read(word: &str, range: Range<usize>) -> Result<Self, ConditionError> {
        let parts: Vec<&str> = word.split('.').collect();
        let told = shown(word.chars());
        let (message, hint) = match *parts {
            _ if parts.contains(&"") => (format!("`{told}` is no name of a memory entry"), format!("write {FORM}")),
            ["session", namespace, entry] => {
                return Ok(Self { namespace: namespace.to_owned(), entry: entry.to_owned(), range });
            }
            ["session", "project"] => (format!("`{told}` has 2 parts, expected 3"), format!("write {FORM}")),
            ["session", entry] => {
                let entry = shown(entry.chars());
                let hint = format!("write `session.project.{entry}` or `session.<skill id>.{entry}`");
                (format!("`{told}` has 2 parts, expected 3"), hint)
            }
            ["session", _, _, ..] => {
                let hint = "only the whole value of an entry can be looked at".to_owned();
                (format!("`{told}` has {} parts, expected 3", parts.len()), hint)
            }
            _ => (format!("Unknown name `{told}` in condition expression"), advice(&parts, &told)),
        };
        Err(ConditionError::new(range, message).hint(hint))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        (&self.namespace, &self.entry) == (&other.namespace, &other.entry)
    }
}

impl Eq for Name {}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "session.{}.{}", self.namespace, self.entry)
    }
}

/// The keyword that was meant by a word that is none.
pub(super) fn keyword(word: &str) -> Option<String> {
    let meant = KEYWORDS.iter().find(|(small, keyword)| word.eq_ignore_ascii_case(small) && word != *keyword);
    meant.map(|(_, keyword)| format!("did you mean `{keyword}`?"))
}

/// How to mend an unknown name.
fn advice(parts: &[&str], told: &str) -> String {
    match *parts {
        ["session"] => format!("write {FORM}"),
        [word] => keyword(word).unwrap_or_else(|| {
            format!("write `session.project.{told}` for an entry of the project, or `\"{told}\"` for a text")
        }),
        [_, _] => format!("did you mean `session.{told}`?"),
        _ => format!("write {FORM}"),
    }
}
