//! What a hook changed, readably.

use serde::Serialize;
use serde_json::{Map, Value};
use similar::TextDiff;

use crate::hooks::{AnyPayload, Point};

/// Where in the input a change was made.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) conversation: String,
    pub(super) turn: usize,
}

/// One dispatch that changed its payload: the changed fields, before and after.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    #[serde(flatten)]
    place: Place,
    point: Point,
    hook: String,
    before: Map<String, Value>,
    after: Map<String, Value>,
}

/// Compares two payloads of one point, field by field.
pub(super) fn change(place: &Place, hook: String, before: &AnyPayload, after: &AnyPayload) -> Change {
    let (mut old, mut new) = (fields(before), fields(after));
    let same: Vec<_> =
        old.iter().filter(|(name, value)| new.get(*name) == Some(*value)).map(|(name, _)| name.clone()).collect();
    for name in same {
        old.shift_remove(&name);
        new.shift_remove(&name);
    }
    Change { place: place.clone(), point: before.point(), hook, before: old, after: new }
}

impl Change {
    /// The change for people: a heading, then a unified diff for each field.
    pub(super) fn as_text(&self) -> String {
        let Place { line, conversation, turn } = &self.place;
        let mut text = format!("{conversation} (line {line}), turn {turn}: {} by {}\n", self.point, self.hook);
        for (name, old) in &self.before {
            let (old, new) = (lines_of(old), lines_of(self.after.get(name).unwrap_or(&Value::Null)));
            let diff = TextDiff::from_lines(&old, &new);
            for hunk in diff.unified_diff().context_radius(1).iter_hunks() {
                text.push_str(&format!("  {name}\n"));
                for change in hunk.iter_changes() {
                    text.push_str(&format!("  {} {}", change.tag(), change.value()));
                }
            }
        }
        text
    }
}

fn fields(payload: &AnyPayload) -> Map<String, Value> {
    match serde_json::to_value(payload) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// A value as lines to compare: a text as it is, JSON text and other values indented.
fn lines_of(value: &Value) -> String {
    let mut text = match value {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    };
    text.push('\n');
    text
}
