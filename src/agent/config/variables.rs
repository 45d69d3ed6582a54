//! Variables of the environment in the values of a file, and what must not be shown of them.

use std::fmt;

use serde_json::{Number, Value};

use super::report::{Field, Report};
use super::yaml::{Node, Yaml};
use crate::conversation::Object;

/// The value of an environment variable.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// For a check of what may run elsewhere: a variable that is not set here has some value. An address can be wanted, or a key: this is
/// either.
pub(super) fn set_anywhere(name: &str) -> Option<String> {
    std::env::var(name).ok().or_else(|| Some("http://variable".to_owned()))
}

/// A text that is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// Hides a text.
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for the request that needs it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// Where the values of variables come from.
pub(super) struct Environment<'a>(pub(super) Variables<'a>);

impl Environment<'_> {
    /// A value as JSON, with the variables of its texts in place.
    pub(super) fn json(&self, field: &Field<'_>, report: &mut Report) -> Option<Value> {
        let of = |node: &Node, report: &mut Report| self.json(&Field { name: field.name.clone(), node }, report);
        match &field.node.value {
            Yaml::Text(text) => self.expanded(text, field, report).map(Value::String),
            Yaml::Float(number) if !number.is_finite() => {
                let message = format!("`{}` is a number that JSON does not have", field.name);
                report.error("invalid-value", field.node.place, message, None);
                None
            }
            Yaml::Float(number) => Number::from_f64(*number).map(Value::Number),
            Yaml::List(items) => items.iter().map(|item| of(item, report)).collect(),
            Yaml::Map(entries) => {
                let read = entries.iter().map(|entry| Some((entry.key.clone(), of(&entry.value, report)?)));
                read.collect::<Option<Object>>().map(Value::Object)
            }
            Yaml::Null | Yaml::Bool(_) | Yaml::Int(_) => Some(field.node.json()),
        }
    }

    /// A text with its variables in place.
    pub(super) fn text(&self, field: &Field<'_>, report: &mut Report) -> Option<String> {
        let text = report.text(field)?;
        self.expanded(&text, field, report)
    }

    /// A text with its variables in place, each value as `written` puts it.
    pub(super) fn text_with(
        &self,
        field: &Field<'_>,
        report: &mut Report,
        written: fn(&str) -> String,
    ) -> Option<String> {
        let text = report.text(field)?;
        self.expanded_with(&text, field, report, written)
    }

    /// The values of the variables that the texts of a value name.
    pub(super) fn values(&self, node: &Node) -> Vec<Secret> {
        match &node.value {
            Yaml::Text(text) => {
                let names = text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
                names.filter_map(|name| (self.0)(name)).filter(|value| !value.is_empty()).map(Secret::new).collect()
            }
            Yaml::List(items) => items.iter().flat_map(|item| self.values(item)).collect(),
            Yaml::Map(entries) => entries.iter().flat_map(|entry| self.values(&entry.value)).collect(),
            Yaml::Null | Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_) => Vec::new(),
        }
    }

    fn expanded(&self, text: &str, field: &Field<'_>, report: &mut Report) -> Option<String> {
        self.expanded_with(text, field, report, str::to_owned)
    }

    /// Puts the values of variables in place of `${NAME}`. What is said of a text never repeats it: it may hold a secret.
    fn expanded_with(
        &self,
        text: &str,
        field: &Field<'_>,
        report: &mut Report,
        written: fn(&str) -> String,
    ) -> Option<String> {
        let mut expanded = Some(String::with_capacity(text.len()));
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}').filter(|(name, _)| is_variable(name)) else {
                let message = format!("`{}` has a `${{` that begins no variable", field.name);
                let hint = "a variable is written `${NAME}`: letters, digits and `_`".to_owned();
                report.error("invalid-value", field.node.place, message, hint);
                report.without_excerpt();
                return None;
            };
            let value = self.value(name, field, report);
            expanded = expanded.zip(value).map(|(expanded, value)| expanded + before + &written(&value));
            rest = after;
        }
        expanded.map(|expanded| expanded + rest)
    }

    /// The value of a variable that `field` needs. An empty one is as none.
    pub(super) fn value(&self, name: &str, field: &Field<'_>, report: &mut Report) -> Option<String> {
        let value = (self.0)(name).filter(|value| !value.is_empty());
        if value.is_none() {
            let message = format!("The environment variable `{name}` is not set");
            let hint = format!("`{}` needs it: set it before the agent is started", field.name);
            report.error("missing-variable", field.node.place, message, hint);
        }
        value
    }
}

/// Whether a variable can have that name.
pub(super) fn is_variable(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::super::testing::told;

    #[test]
    fn a_missing_variable_is_named_and_no_other_value_is_told() {
        let set = "set it before the agent is started";
        let of = |key: &str| format!("hint: `model_groups[0].models[0].{key}` needs it: {set}");
        let missing = |column: u32, name: &str, key: &str| {
            format!(
                "integrations.yml:5:{column}: error[missing-variable]: The environment variable `{name}` is not set\n  {}",
                of(key)
            )
        };
        assert_eq!(
            told(
                "integrations.yml",
                "llm: {model_group: main}\nmodel_groups:\n  - id: main\n    models:\n      - {provider: x, model: \
                 '${A}${KEY}${B}', api_base: 'http://a', api_key: '${EMPTY}', top_p: ['${C}']}\n"
            ),
            [
                missing(30, "A", "model"),
                missing(30, "B", "model"),
                missing(79, "EMPTY", "api_key"),
                missing(99, "C", "top_p")
            ]
        );
    }
}
