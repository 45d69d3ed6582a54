//! What of a conversation a model is shown: the system prompt, as much of the past as fits, and the current turn.

use std::sync::Arc;

use serde_json::Value;

use crate::conversation::Object;

/// About how many tokens a message costs beside its text (role and separators; the Chat Completions cookbook counts 3 to 4).
const MESSAGE_TOKENS: usize = 4;

/// About how many characters a token has in English text; other languages have fewer, so that they are cut later than they could be.
const CHARACTERS_PER_TOKEN: usize = 4;

/// The messages of a request: `system`, then of `past` the newest whole exchanges that fit beside `current` into `most` tokens.
///
/// An exchange begins with a message of the user's and ends before the next; so no call is parted from its result. The system prompt and
/// the current turn always stay.
pub(super) fn trimmed(
    system: &Arc<Object>,
    past: &[Arc<Object>],
    current: &[Arc<Object>],
    most: Option<usize>,
) -> Vec<Arc<Object>> {
    let keep = most.map_or(0, |most| {
        let fixed = tokens(system) + current.iter().map(|message| tokens(message)).sum::<usize>();
        first_that_fits(past, most.saturating_sub(fixed))
    });
    let mut messages = Vec::with_capacity(1 + past.len() - keep + current.len());
    messages.push(Arc::clone(system));
    messages.extend(past[keep..].iter().chain(current).cloned());
    messages
}

/// Where the past begins that has at most `most` tokens.
fn first_that_fits(past: &[Arc<Object>], most: usize) -> usize {
    let (mut first, mut used) = (past.len(), 0);
    for (index, message) in past.iter().enumerate().rev() {
        used += tokens(message);
        if used > most {
            break;
        }
        if index == 0 || message.get("role").and_then(Value::as_str) == Some("user") {
            first = index;
        }
    }
    first
}

/// About how many tokens a message has.
fn tokens(message: &Object) -> usize {
    MESSAGE_TOKENS + message.values().map(characters).sum::<usize>() / CHARACTERS_PER_TOKEN
}

fn characters(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.iter().map(characters).sum(),
        Value::Object(object) => object.iter().map(|(key, value)| key.len() + characters(value)).sum(),
        Value::Null => 0,
        Value::Bool(_) | Value::Number(_) => 4,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn message(role: &str, text: &str) -> Arc<Object> {
        match json!({"role": role, "content": text}) {
            Value::Object(object) => Arc::new(object),
            _ => unreachable!(),
        }
    }

    fn contents(messages: &[Arc<Object>]) -> Vec<&str> {
        messages.iter().map(|message| message["content"].as_str().unwrap()).collect()
    }

    #[test]
    fn the_oldest_exchanges_go_first_and_whole() {
        let system = message("system", "sys");
        let past = [
            message("user", "one"),
            message("assistant", "call"),
            message("tool", "result"),
            message("assistant", "first"),
            message("user", "two"),
            message("assistant", "second"),
        ];
        let current = [message("user", "now")];
        let cut = |most| trimmed(&system, &past, &current, most);
        assert_eq!(contents(&cut(None)), ["sys", "one", "call", "result", "first", "two", "second", "now"]);
        assert_eq!(contents(&cut(Some(70))), ["sys", "one", "call", "result", "first", "two", "second", "now"]);
        assert_eq!(contents(&cut(Some(36))), ["sys", "two", "second", "now"]);
        assert_eq!(contents(&cut(Some(0))), ["sys", "now"], "the system prompt and the current turn stay");
    }

    proptest! {
        #[test]
        fn what_is_kept_is_an_end_of_the_past_that_begins_with_a_user(
            roles in prop::collection::vec(prop::sample::select(vec!["user", "assistant", "tool"]), 0..20), most in 0_usize..400,
        ) {
            let past: Vec<_> = roles.iter().map(|role| message(role, "some words")).collect();
            let cut = trimmed(&message("system", ""), &past, &[], Some(most));
            let kept = &cut[1..];
            prop_assert_eq!(kept, &past[past.len() - kept.len()..]);
            if let Some(first) = kept.first().filter(|_| kept.len() < past.len()) {
                prop_assert_eq!(first["role"].as_str(), Some("user"));
            }
        }
    }
}
