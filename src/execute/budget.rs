//! How many tool calls generated code may make, and how often the same one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// How many calls beyond its budget code may make before it is stopped: enough to catch the error and come to an end.
const REFUSALS: u32 = 20;

/// The calls of one execution, counted.
pub(super) struct Budget {
    most: u32,
    repeats: Option<u32>,
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    calls: u32,
    refused: u32,
    /// How often each call has been made, by tool and arguments.
    same: HashMap<String, u32>,
}

/// What is to become of a call.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// It is made.
    Made,
    /// It raises.
    Refused(String),
    /// The code is stopped.
    Stopped(String),
}

impl Budget {
    pub(super) fn new(most: u32, repeats: Option<u32>) -> Self {
        Self { most, repeats, made: Mutex::default() }
    }

    /// Counts a call.
    pub(super) fn spend(&self) -> Verdict {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.calls < self.most {
            made.calls += 1;
            return Verdict::Made;
        }
        made.refused += 1;
        let spent = format!("The {} tool calls of this execution are used up", self.most);
        if made.refused > REFUSALS {
            return Verdict::Stopped(format!("{spent}, and the code went on calling"));
        }
        Verdict::Refused(format!("{spent}: no tool can be called any more"))
    }

    /// Counts a call by what it asks; a reason: it has been made too often.
    pub(super) fn repeat(&self, tool: &str, input: &Value) -> Option<String> {
        let repeats = self.repeats?;
        let mut key = format!("{tool} ");
        canonical(input, &mut key);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let times = made.same.entry(key).or_default();
        *times += 1;
        (*times > repeats).then(|| format!("`{tool}` was called {times} times with the same arguments"))
    }
}

/// JSON in which the order of keys makes no difference.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (key, value) in entries {
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        leaf => text.push_str(&leaf.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_beyond_the_budget_are_refused_and_then_stopped() {
        let budget = Budget::new(2, None);
        let verdicts: Vec<_> = (0..24).map(|_| budget.spend()).collect();
        assert_eq!(verdicts[..2], [Verdict::Made, Verdict::Made]);
        let refused = "The 2 tool calls of this execution are used up: no tool can be called any more";
        assert!(verdicts[2..22].iter().all(|verdict| *verdict == Verdict::Refused(refused.to_owned())));
        assert!(verdicts[22..].iter().all(|verdict| matches!(verdict, Verdict::Stopped(_))));
    }

    #[test]
    fn the_same_arguments_are_the_same_in_any_order_of_their_keys() {
        let budget = Budget::new(9, Some(1));
        assert_eq!(budget.repeat("search", &json!({"a": 1, "b": [{"c": 2, "d": 3}]})), None);
        assert_eq!(budget.repeat("search", &json!({"a": 2})), None);
        assert_eq!(budget.repeat("find", &json!({"a": 2})), None);
        assert_eq!(
            budget.repeat("search", &json!({"b": [{"d": 3, "c": 2}], "a": 1})).as_deref(),
            Some("`search` was called 2 times with the same arguments")
        );
    }
}
