//! The templates in a hook's arguments: whether there are any, and what is wrong in them.

use crate::agent::config::report::{Field, Report};
use crate::agent::config::yaml::{Node, Yaml};
use crate::diagnostic::Place;

/// Finds what is wrong in templates: their language is known elsewhere.
pub(crate) trait CheckTemplates {
    /// The problems of a hook's arguments, which are a JSON object, for an event (`on_request_start` or `on_completion`).
    fn check(&self, arguments: &str, event: &str) -> Vec<TemplateProblem>;
}

/// Something that is wrong in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplateProblem {
    /// Where it is: `arguments` and the way from there, such as `arguments.query[0]` or `arguments["a key"]`.
    pub(crate) path: String,
    /// What is wrong.
    pub(crate) message: String,
    /// How to mend it.
    pub(crate) hint: Option<String>,
}

/// What there is to be rendered in a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Content {
    /// Nothing: it is passed on as it is.
    #[default]
    Literal,
    /// Escapes only: every request has the same result.
    Escaped,
    /// Placeholders or operators.
    Template,
}

/// What there is to be rendered in a value.
pub(super) fn content(node: &Node) -> Content {
    match &node.value {
        Yaml::Text(text) => of_text(text),
        Yaml::List(items) => items.iter().map(content).max().unwrap_or(Content::Literal),
        Yaml::Map(entries) => {
            let parts = entries.iter().map(|entry| of_key(&entry.key).max(content(&entry.value)));
            parts.max().unwrap_or(Content::Literal)
        }
        Yaml::Null | Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_) => Content::Literal,
    }
}

/// `${` begins a placeholder, and `$${` is an escaped `${`.
fn of_text(text: &str) -> Content {
    let starts = text.match_indices("${");
    let parts = starts.map(|(at, _)| if text[..at].ends_with('$') { Content::Escaped } else { Content::Template });
    parts.max().unwrap_or(Content::Literal)
}

/// A key that begins with `$$` is one with a literal `$`; one that is `$` and a name is an operator, or is refused.
fn of_key(key: &str) -> Content {
    let is_name = |rest: &str| {
        rest.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && rest.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    match key.strip_prefix('$') {
        Some(rest) if rest.starts_with('$') => Content::Escaped,
        Some(rest) if is_name(rest) => Content::Template,
        _ => of_text(key),
    }
}

/// Tells what is wrong in the templates of a hook's arguments, each at its place.
pub(super) fn check(arguments: &Field<'_>, event: &str, templates: &dyn CheckTemplates, report: &mut Report) {
    let hook = arguments.name.strip_suffix("arguments").unwrap_or_default();
    for TemplateProblem { path, message, hint } in templates.check(&arguments.node.json().to_string(), event) {
        let place = place(arguments.node, path.strip_prefix("arguments").unwrap_or(&path));
        report.error("invalid-template", place, format!("`{hook}{path}`: {message}"), hint);
    }
}

/// The place of what a path leads to; where it leads nowhere, of the last value on the way.
fn place(node: &Node, path: &str) -> Place {
    let step = match &node.value {
        Yaml::List(items) => index(path).and_then(|(index, rest)| Some((items.get(index)?, rest))),
        Yaml::Map(entries) => {
            // A key may have dots and brackets in it: the longest that fits is meant.
            let steps = entries.iter().filter_map(|entry| Some((&entry.value, after_key(path, &entry.key)?)));
            steps.min_by_key(|(_, rest)| rest.len())
        }
        _ => None,
    };
    step.map_or(node.place, |(inner, rest)| place(inner, rest))
}

/// What follows an index such as `[0]`.
fn index(path: &str) -> Option<(usize, &str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest))
}

/// What follows a key: `.key` or `["key"]`.
fn after_key<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    let dotted = path.strip_prefix('.').and_then(|path| path.strip_prefix(key));
    dotted.filter(|rest| rest.is_empty() || rest.starts_with(['.', '['])).or_else(|| {
        let quoted = path.strip_prefix('[')?;
        let mut texts = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
        let is_key = texts.next()?.is_ok_and(|text| text == key);
        quoted[texts.byte_offset()..].strip_prefix(']').filter(|_| is_key)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::testing::{manifest_with, problem};
    use super::*;
    use crate::agent::config::json;

    fn node(text: &str) -> Node {
        json::parse(text).unwrap().unwrap()
    }

    #[test]
    fn a_template_is_what_has_placeholders_or_operators() {
        for (value, expected) in [
            (json!("hello"), Content::Literal),
            (json!("x ${a} y"), Content::Template),
            (json!("${"), Content::Template),
            (json!({"$eval": "a"}), Content::Template),
            (json!({"a": [1, {"b": "${c}"}]}), Content::Template),
            (json!({"k${x}": 1}), Content::Template),
            (json!({"$schema": 1}), Content::Template),
            (json!("$${nope}"), Content::Escaped),
            (json!("$$${nope}"), Content::Escaped),
            (json!("$${a} ${b}"), Content::Template),
            (json!({"$$eval": "x"}), Content::Escaped),
            (json!({"$$k${x}": 1}), Content::Escaped),
            (json!({"$$eval": "${x}"}), Content::Template),
            (json!({"$": "a $ {b} $$", "$1": "{x}", "$a-b": 1}), Content::Literal),
            (json!([1, 2.5, true, null, [], {}]), Content::Literal),
        ] {
            assert_eq!(content(&node(&value.to_string())), expected, "{value}");
        }
    }

    #[test]
    fn a_path_leads_to_its_place() {
        let root = node(r#"{"query": ["a", {"b.c": "x", "b": 1}], "a key": 2, "ü\"": [3], "": 4}"#);
        for (path, column) in [
            ("", 1),
            (".query", 11),
            (".query[0]", 12),
            (".query[1].b", 35),
            (".query[1].b.c", 25),
            (".query[1][\"b.c\"]", 25),
            ("[\"a key\"]", 49),
            ("[\"\\u00fc\\\"\"][0]", 60),
            (".", 68),
            // What is not there has the place of the last that is.
            (".query[7]", 11),
            (".query[1].zz.y", 17),
            (".zz", 1),
            ("[\"a key", 1),
            (".query[99999999999999999999999]", 11),
        ] {
            assert_eq!(place(&root, path).column, column, "{path}");
        }
    }

    #[test]
    fn problems_are_told_at_their_places() {
        let text = r#"{"hooks": [
            {"kind": "tool_call", "event": "on_completion", "tool_name": "save",
             "arguments": {"limit": 3, "query": ["${last_user_message.contnet}"]}},
            {"kind": "tool_call", "event": "on_request_start", "tool_name": "save", "arguments": {"q": "$${x}"}},
            {"kind": "tool_call", "event": "on_request_start", "tool_name": "save", "arguments": {"q": "x"}}],
          "tool_sets": [{"type": "internal", "name": "own", "tools": ["save"]}]}"#;
        let seen = std::cell::RefCell::new(vec![]);
        let check = |arguments: &str, event: &str| {
            seen.borrow_mut().push((arguments.to_owned(), event.to_owned()));
            if event == "on_completion" {
                vec![problem(
                    "arguments.query[0]",
                    "unknown field 'contnet' on Message",
                    Some("did you mean `content`?"),
                )]
            } else {
                vec![]
            }
        };
        assert_eq!(
            manifest_with(text, Some(&check)).1,
            [
                "app.json:3:50: error[invalid-template]: `hooks[0].arguments.query[0]`: unknown field 'contnet' on Message\n  hint: \
                 did you mean `content`?"
            ]
        );
        let all = |parts: &[(&str, &str)]| {
            parts.iter().map(|(one, other)| ((*one).into(), (*other).into())).collect::<Vec<_>>()
        };
        assert_eq!(
            seen.into_inner(),
            all(&[
                (r#"{"limit":3,"query":["${last_user_message.contnet}"]}"#, "on_completion"),
                (r#"{"q":"$${x}"}"#, "on_request_start"),
            ])
        );
    }

    proptest! {
        #[test]
        fn no_path_makes_it_panic(path in "[\\[\\]\"\\\\.a0é]{0,12}", any in any::<String>()) {
            let root = node(&Value::to_string(&json!({"a": [{"é": 1, "": 2}], "0": "a"})));
            place(&root, &path);
            place(&root, &any);
        }
    }
}
