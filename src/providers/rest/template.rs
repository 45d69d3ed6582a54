//! Texts and JSON values with arguments in them.

use std::fmt;

use serde_json::Value;

use crate::conversation::{Object, text_of_value};

/// A text with arguments in it: `{name}`. `{{` and `}}` are braces.
#[derive(Clone, PartialEq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Argument(String),
}

/// A JSON value whose texts are templates. Keys are as they are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A text. Where an argument is all of it, it stands for the argument's value, whatever its type.
    Text(Template),
    /// A value without texts.
    Other(Value),
    /// A list.
    List(Vec<Shape>),
    /// An object.
    Map(Vec<(String, Shape)>),
}

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// What is wrong, in words that follow the name of the text; never a part of it, which may be secret.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let after = &rest[at + 1..];
            if let Some(escaped) = after.strip_prefix(brace) {
                plain.push_str(brace);
                rest = escaped;
                continue;
            }
            let Some((name, behind)) = after.split_once('}').filter(|(name, _)| brace == "{" && is_name(name)) else {
                return Err(if brace == "{" {
                    "has a `{` that begins no argument"
                } else {
                    "has a `}` that ends no argument"
                });
            };
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Argument(name.to_owned()));
            rest = behind;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self(pieces))
    }

    /// A text that is no template, written as one.
    pub(crate) fn escaped(text: &str) -> String {
        text.replace('{', "{{").replace('}', "}}")
    }

    /// The names of its arguments.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// The text with its arguments in place; `None`: one of them is not given.
    pub(super) fn text(&self, arguments: &Object) -> Option<String> {
        self.0.iter().try_fold(String::new(), |text, piece| {
            Some(match piece {
                Piece::Text(plain) => text + plain,
                Piece::Argument(name) => text + &text_of_value(given(arguments, name)?),
            })
        })
    }

    fn value(&self, arguments: &Object) -> Option<Value> {
        match &self.0[..] {
            [Piece::Argument(name)] => given(arguments, name).cloned(),
            _ => self.text(arguments).map(Value::String),
        }
    }
}

impl Shape {
    /// The names of its arguments.
    pub(crate) fn arguments(&self) -> Vec<&str> {
        match self {
            Self::Text(template) => template.arguments().collect(),
            Self::Other(_) => Vec::new(),
            Self::List(items) => items.iter().flat_map(Self::arguments).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(_, inner)| inner.arguments()).collect(),
        }
    }

    /// The value with its arguments in place. What names an argument that is not given is left out, and so is this (`None`).
    pub(super) fn value(&self, arguments: &Object) -> Option<Value> {
        match self {
            Self::Text(template) => template.value(arguments),
            Self::Other(value) => Some(value.clone()),
            Self::List(items) => Some(items.iter().filter_map(|item| item.value(arguments)).collect()),
            Self::Map(entries) => {
                let given = entries.iter().filter_map(|(key, inner)| Some((key.clone(), inner.value(arguments)?)));
                Some(Value::Object(given.collect()))
            }
        }
    }
}

/// An argument that is given; null is none.
pub(super) fn given<'a>(arguments: &'a Object, name: &str) -> Option<&'a Value> {
    arguments.get(name).filter(|value| !value.is_null())
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'))
}

/// Shows the arguments alone: what stands around them may be secret.
impl fmt::Debug for Template {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Template")?;
        out.debug_list().entries(self.arguments()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        let Value::Object(object) = value else { panic!("{value} is no object") };
        object
    }

    fn text(template: &str, arguments: Value) -> Option<String> {
        Template::parse(template).unwrap().text(&object(arguments))
    }

    #[test]
    fn arguments_are_put_into_a_text() {
        assert_eq!(text("a {b} c{d}", json!({"b": "ż", "d": 1.5})), Some("a ż c1.5".into()));
        assert_eq!(text("{{b}} }}{b}{{", json!({"b": true})), Some("{b} }true{".into()));
        assert_eq!(text("{b}", json!({"b": {"x": [1]}})), Some("{\"x\":[1]}".into()));
        assert_eq!(text("", json!({})), Some(String::new()));
        assert_eq!([text("a {b}", json!({})), text("{b}", json!({"b": null}))], [None, None]);
    }

    #[test]
    fn a_value_is_no_template() {
        assert_eq!(text("{a}{b}", json!({"a": "{b}", "b": "}{{"})), Some("{b}}{{".into()));
        let escaped = Template::escaped("a{b}}{");
        assert_eq!(text(&escaped, json!({"b": 1})), Some("a{b}}{".into()));
    }

    #[test]
    fn braces_that_are_no_argument_are_told() {
        for wrong in ["{", "a {b", "{}", "{a b}", "{\"a\": 1}", "{a{b}}"] {
            assert_eq!(Template::parse(wrong), Err("has a `{` that begins no argument"), "{wrong}");
        }
        for wrong in ["}", "a}b", "{a}}"] {
            assert_eq!(Template::parse(wrong), Err("has a `}` that ends no argument"), "{wrong}");
        }
    }

    #[test]
    fn values_keep_their_types_and_what_is_not_given_is_left_out() {
        let text = |text: &str| Shape::Text(Template::parse(text).unwrap());
        let shape = Shape::Map(vec![
            ("whole".into(), text("{n}")),
            ("within".into(), text("n={n}")),
            ("list".into(), Shape::List(vec![text("{n}"), text("{none}"), Shape::Other(json!(1))])),
            ("none".into(), text("{none}")),
            ("empty".into(), Shape::Map(vec![("none".into(), text("a{none}"))])),
        ]);
        assert_eq!(shape.arguments(), ["n", "n", "n", "none", "none", "none"]);
        let given = object(json!({"n": 12_345_678_901_234_567_890_u64, "none": null}));
        let expected = json!({
            "whole": 12_345_678_901_234_567_890_u64, "within": "n=12345678901234567890",
            "list": [12_345_678_901_234_567_890_u64, 1], "empty": {},
        });
        assert_eq!(shape.value(&given), Some(expected));
    }

    #[test]
    fn nothing_shows_the_text() {
        assert_eq!(format!("{:?}", Template::parse("key-1 {a}").unwrap()), "Template[\"a\"]");
    }
}
