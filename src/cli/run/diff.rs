//! What a hook did to one payload, readably.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value, json};
use similar::{Algorithm, DiffOp, TextDiff, capture_diff_slices};

use crate::hooks::{AnyPayload, Outcome, Point};

/// Where in the input a hook was called.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) conversation: String,
    pub(super) turn: usize,
}

/// One dispatch that did more than give its payload back.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    #[serde(flatten)]
    place: Place,
    point: Point,
    hook: String,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Kind {
    /// The fields that changed, before and after.
    Changed {
        before: Map<String, Value>,
        after: Map<String, Value>,
    },
    Retry {
        feedback: String,
    },
    Reject {
        reason: String,
        response: Option<String>,
    },
    DiscardedSignal {
        signal: Value,
    },
    Failed {
        failure: String,
    },
}

impl Change {
    /// What `outcome` says of the payload `before`, or `None` where it is unchanged.
    pub(super) fn of(place: &Place, hook: String, before: &AnyPayload, outcome: Outcome<AnyPayload>) -> Option<Self> {
        let kind = match outcome {
            Outcome::Proceed { failure: Some(failure), .. } | Outcome::Failed(failure) => {
                Kind::Failed { failure: failure.cause.to_string() }
            }
            Outcome::Proceed { discarded_signal: Some(signal), .. } => Kind::DiscardedSignal { signal: json!(signal) },
            Outcome::Proceed { changed: false, .. } => return None,
            Outcome::Proceed { payload, .. } => {
                let (mut before, mut after) = (fields(before), fields(&payload));
                before.retain(|name, value| after.get(name) != Some(value));
                after.retain(|name, _| before.contains_key(name));
                Kind::Changed { before, after }
            }
            Outcome::Retry { feedback } => Kind::Retry { feedback },
            Outcome::Reject { reason, response } => Kind::Reject { reason, response },
        };
        Some(Self { place: place.clone(), point: before.point(), hook, kind })
    }
}

/// Writes changes for people. A hunk that the same hook has shown before in the conversation is not shown again: the history of
/// a conversation passes a request hook once an iteration.
pub(super) fn as_text(changes: &[Change]) -> String {
    let mut text = String::new();
    let mut shown = HashSet::new();
    for change in changes {
        let Place { line, conversation, turn } = &change.place;
        writeln!(text, "{conversation} (line {line}), turn {turn}: {} by {}", change.point, change.hook)
            .expect(TAKES_ALL);
        match &change.kind {
            Kind::Changed { before, after } => {
                let mut repeated = 0;
                for (name, old) in before {
                    for hunk in hunks(name, old, after.get(name).unwrap_or(&Value::Null)) {
                        if shown.insert((*line, change.point, change.hook.clone(), hunk.clone())) {
                            text.push_str(&hunk);
                        } else {
                            repeated += 1;
                        }
                    }
                }
                if repeated > 0 {
                    writeln!(text, "  as before ({repeated} shown already)").expect(TAKES_ALL);
                }
            }
            Kind::Retry { feedback } => writeln!(text, "  retry: {feedback}").expect(TAKES_ALL),
            Kind::Reject { reason, response: None } => writeln!(text, "  rejected: {reason}").expect(TAKES_ALL),
            Kind::Reject { reason, response: Some(response) } => {
                writeln!(text, "  rejected: {reason}\n  the user hears: {response}").expect(TAKES_ALL);
            }
            Kind::DiscardedSignal { signal } => writeln!(text, "  signal discarded: {signal}").expect(TAKES_ALL),
            Kind::Failed { failure } => writeln!(text, "  failed: {failure}").expect(TAKES_ALL),
        }
        text.push('\n');
    }
    text
}

const TAKES_ALL: &str = "a string takes all";

/// The differences of one field: of a list element by element, else line by line.
fn hunks(name: &str, old: &Value, new: &Value) -> Vec<String> {
    let (Value::Array(old), Value::Array(new)) = (old, new) else {
        return vec![line_hunk(name, &lines_of(old), &lines_of(new))];
    };
    let keys = |items: &[Value]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut hunks = Vec::new();
    for op in capture_diff_slices(Algorithm::Patience, &keys(old), &keys(new)) {
        let (was, is) = (op.old_range(), op.new_range());
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let paired = was.len().min(is.len());
        for (one, other) in was.clone().zip(is.clone()) {
            hunks.push(line_hunk(&format!("{name}[{one}]"), &lines_of(&old[one]), &lines_of(&new[other])));
        }
        for gone in was.skip(paired) {
            hunks.push(line_hunk(&format!("{name}[{gone}] taken out"), &lines_of(&old[gone]), ""));
        }
        for added in is.skip(paired) {
            hunks.push(line_hunk(&format!("{name}[{added}] put in"), "", &lines_of(&new[added])));
        }
    }
    hunks
}

fn line_hunk(heading: &str, old: &str, new: &str) -> String {
    let mut text = format!("  {heading}\n");
    for (number, hunk) in TextDiff::from_lines(old, new).unified_diff().context_radius(1).iter_hunks().enumerate() {
        if number > 0 {
            text.push_str("  ...\n");
        }
        for change in hunk.iter_changes() {
            write!(text, "  {} {}", change.tag(), change.value()).expect(TAKES_ALL);
        }
    }
    text
}

fn fields(payload: &AnyPayload) -> Map<String, Value> {
    match serde_json::to_value(payload) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// A value as lines to compare: plain text as it is, JSON, also as the text of one, indented.
fn lines_of(value: &Value) -> String {
    let mut text = match value {
        Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_str::<Value>(text).map_or_else(|_| text.clone(), |json| format!("{json:#}"))
        }
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    };
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_compared_element_by_element() {
        let (old, new) = (json!([{"a": 1}, {"b": "x"}, {"c": 1}]), json!([{"n": 0}, {"a": 1}, {"b": "y"}]));
        let text = hunks("messages", &old, &new).concat();
        assert_eq!(
            text,
            "  messages[0] put in
  + {
  +   \"n\": 0
  + }
  messages[1]
    {
  -   \"b\": \"x\"
  +   \"b\": \"y\"
    }
  messages[2] taken out
  - {
  -   \"c\": 1
  - }
"
        );
    }

    #[test]
    fn json_text_is_compared_indented() {
        let text = hunks("value", &json!("{\"a\": 1, \"b\": 2}"), &json!("{\"a\": 1, \"b\": 3}")).concat();
        assert_eq!(text, "  value\n      \"a\": 1,\n  -   \"b\": 2\n  +   \"b\": 3\n    }\n");
    }
}
