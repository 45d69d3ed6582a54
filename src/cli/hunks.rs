//! What a value was and is, readably: of a list element by element, else line by line.

use std::fmt::Write as _;

use serde_json::Value;
use similar::{Algorithm, DiffOp, TextDiff, capture_diff_slices};

const TAKES_ALL: &str = "a string takes all";

/// The differences of one field: of a list element by element, else line by line.
pub(super) fn hunks(name: &str, old: &Value, new: &Value) -> Vec<String> {
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
    use serde_json::json;

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
