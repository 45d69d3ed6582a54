//! What is remembered, and which values fit.

use serde_json::{Number, Value};

/// How much of a text a message repeats, in characters.
const SHOWN: usize = 60;

/// Whole numbers up to this are exact as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The entries of a skill, or of the project.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MemorySchema {
    /// The entries, in the order in which they stand, public ones first. No two have the same name.
    pub(crate) entries: Vec<MemoryEntry>,
    /// Whether there is more that could not be read: what is not among the entries may be there all the same.
    pub(crate) unread: bool,
}

/// Something that is remembered.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own in the file")]
pub(crate) struct MemoryEntry {
    /// Its name: `<entry>` in `session.<skill>.<entry>`.
    pub(crate) name: String,
    /// Which values it takes.
    pub(crate) kind: MemoryKind,
    /// What it means, in words for the model.
    pub(crate) description: Option<String>,
    /// Whether the model may set it; never true of the project's.
    pub(crate) llm_settable: bool,
    /// Its value at first; not null.
    pub(crate) initial_value: Option<Value>,
    /// Whether the channel may set it when a session starts. Of the project only.
    pub(crate) seed: bool,
    /// Whether its value is personal, and shown to no model.
    pub(crate) pii: bool,
    /// Whether it may be written more than once in a session. Always true of a skill's.
    pub(crate) mutable: bool,
    /// Who may read it.
    pub(crate) visibility: Visibility,
}

/// Who may read an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// All skills.
    #[default]
    Public,
    /// The skill that it belongs to.
    Private,
}

/// Which values an entry takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum MemoryKind {
    /// A text.
    Text,
    /// True or false.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A list.
    List,
    /// Whatever JSON has. Tools write lists, mappings and texts of JSON to such entries.
    Json,
    /// One of these texts, numbers or truth values; at least one.
    Categorical(Vec<Value>),
    /// Whatever JSON has.
    #[default]
    Any,
}

impl MemorySchema {
    /// An entry by its name.
    pub(crate) fn get(&self, name: &str) -> Option<&MemoryEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

impl MemoryEntry {
    /// An entry with nothing said of it but this.
    #[cfg(test)]
    pub(crate) fn of(name: &str, kind: MemoryKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            description: None,
            llm_settable: false,
            initial_value: None,
            seed: false,
            pii: false,
            mutable: true,
            visibility: Visibility::Public,
        }
    }

    /// The value as it is kept, or why it does not fit, in words that follow the entry's name.
    ///
    /// Null clears, whatever the kind is. Little is converted, since a value that is nearly right is better told to the model
    /// than guessed at:
    ///
    /// | Kind | Takes | But not |
    /// |---|---|---|
    /// | text | texts | numbers |
    /// | bool | `true`, `false` | `"true"`, `1` |
    /// | int | whole numbers; `3.0` becomes `3` | `3.5`, `"3"`, `true` |
    /// | float | numbers; `3` becomes `3.0` | `"3.5"`, `true` |
    /// | list | lists | texts |
    /// | categorical | what is written as a declared value, upper and lower case alike: it becomes that value | all else |
    /// | json, any | everything | |
    pub(crate) fn accepts(&self, value: &Value) -> Result<Value, String> {
        if value.is_null() {
            return Ok(Value::Null);
        }
        let fitting = match (&self.kind, value) {
            (MemoryKind::Json | MemoryKind::Any, _)
            | (MemoryKind::Text, Value::String(_))
            | (MemoryKind::Bool, Value::Bool(_))
            | (MemoryKind::List, Value::Array(_)) => Some(value.clone()),
            (MemoryKind::Int, Value::Number(number)) => whole(number).map(Value::Number),
            (MemoryKind::Float, Value::Number(number)) => number.as_f64().and_then(Number::from_f64).map(Value::Number),
            (MemoryKind::Categorical(values), _) => {
                let meant = written(value).map(|written| written.to_lowercase());
                let is_meant =
                    |known: &&Value| meant.is_some() && written(known).map(|text| text.to_lowercase()) == meant;
                values.iter().find(|known| *known == value).or_else(|| values.iter().find(is_meant)).cloned()
            }
            _ => None,
        };
        fitting.ok_or_else(|| format!("takes {}, not {}", self.kind, shown(value)))
    }
}

impl MemoryKind {
    /// The kind that `type` names; a categorical one has no values yet.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let kind = match name {
            "text" => Self::Text,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "float" => Self::Float,
            "list" => Self::List,
            "json" => Self::Json,
            "categorical" => Self::Categorical(vec![]),
            "any" => Self::Any,
            _ => return None,
        };
        Some(kind)
    }
}

impl std::fmt::Display for MemoryKind {
    /// What it takes, in words.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = match self {
            Self::Text => "a text",
            Self::Bool => "`true` or `false`",
            Self::Int => "a whole number",
            Self::Float => "a number",
            Self::List => "a list",
            Self::Json | Self::Any => "anything",
            Self::Categorical(values) => {
                let values: Vec<_> = values.iter().map(|value| format!("`{}`", shortened(value))).collect();
                return write!(out, "one of {}", values.join(", "));
            }
        };
        out.write_str(words)
    }
}

/// The number without a fraction that it does not have. A float beyond 2⁵³ is no whole number: it may stand for many.
fn whole(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return Some(number.clone());
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
    let whole = float as i64;
    Some(whole.into())
}

/// A text, number or truth value as it is written; lists and mappings are none of a category.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A value in words that follow "not".
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(_) => format!("the text `{}`", shortened(value)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

/// A value as a message may repeat it.
fn shortened(value: &Value) -> String {
    let text = written(value).unwrap_or_default();
    let mut letters = text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter });
    let mut short: String = letters.by_ref().take(SHOWN).collect();
    if letters.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn accepts(kind: MemoryKind, value: &Value) -> Result<Value, String> {
        MemoryEntry::of("x", kind).accepts(value)
    }

    #[test]
    fn a_value_that_fits_is_kept_as_its_kind() {
        let sizes = || MemoryKind::Categorical(vec![json!("Small"), json!("small"), json!(2), json!(true)]);
        for (kind, value, kept) in [
            (MemoryKind::Text, json!("3"), json!("3")),
            (MemoryKind::Bool, json!(false), json!(false)),
            (MemoryKind::Int, json!(18_446_744_073_709_551_615_u64), json!(18_446_744_073_709_551_615_u64)),
            (MemoryKind::Int, json!(-3.0), json!(-3)),
            (MemoryKind::Float, json!(3), json!(3.0)),
            (MemoryKind::List, json!([1]), json!([1])),
            (MemoryKind::Json, json!("{}"), json!("{}")),
            (MemoryKind::Any, json!({"a": 1}), json!({"a": 1})),
            (sizes(), json!("small"), json!("small")),
            (sizes(), json!("SMALL"), json!("Small")),
            (sizes(), json!("2"), json!(2)),
            (sizes(), json!("True"), json!(true)),
        ] {
            assert_eq!(accepts(kind, &value).map(|found| found.to_string()), Ok(kept.to_string()));
        }
    }

    #[test]
    fn what_does_not_fit_is_told_in_words_that_follow_the_name() {
        for (kind, value, why) in [
            (MemoryKind::Text, json!(3), "takes a text, not `3`"),
            (MemoryKind::Bool, json!("true"), "takes `true` or `false`, not the text `true`"),
            (MemoryKind::Bool, json!(1), "takes `true` or `false`, not `1`"),
            (MemoryKind::Int, json!(3.5), "takes a whole number, not `3.5`"),
            (MemoryKind::Int, json!(1e300), "takes a whole number, not `1e+300`"),
            (MemoryKind::Int, json!(true), "takes a whole number, not `true`"),
            (MemoryKind::Float, json!("3.5"), "takes a number, not the text `3.5`"),
            (MemoryKind::List, json!({}), "takes a list, not a mapping"),
            (
                MemoryKind::Categorical(vec![json!("a"), json!(1)]),
                json!("b\n"),
                "takes one of `a`, `1`, not the text `b\u{fffd}`",
            ),
            (MemoryKind::Categorical(vec![json!("a")]), json!([]), "takes one of `a`, not a list"),
        ] {
            assert_eq!(accepts(kind, &value), Err(why.to_owned()));
        }
    }

    #[test]
    fn null_clears_every_kind() {
        for kind in ["text", "bool", "int", "float", "list", "json", "categorical", "any"] {
            assert_eq!(accepts(MemoryKind::named(kind).unwrap(), &Value::Null), Ok(Value::Null));
        }
    }
}
