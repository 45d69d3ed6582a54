//! What a hook's templates see of a request: plain JSON, made anew for each run, so that a later hook sees earlier hooks' pairs.
//!
//! The conversation comes from a client. Whatever it has, each message has the same four fields here, and none of another type than the
//! load-time check of templates assumes.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::conversation::Object;

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before the first call of the model.
    RequestStart,
    /// After the answer.
    Completion {
        /// How often the model was called in this turn.
        iteration_count: u64,
        /// How many tools it has asked for in this turn, unknown and hidden ones among them.
        total_tool_calls: u64,
    },
}

impl Moment {
    /// The manifest's name for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RequestStart => "on_request_start",
            Self::Completion { .. } => "on_completion",
        }
    }
}

/// The names of a context that cost something.
const DEAR: [&str; 3] = ["messages", "last_user_message", "last_assistant_message"];

/// Which of them a template names: the others need not be made. Most templates name the last words alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named([bool; DEAR.len()]);

impl Named {
    /// All of them.
    #[cfg(test)]
    pub(super) const ALL: Self = Self([true; DEAR.len()]);

    /// The names that stand anywhere in a template, which is JSON.
    ///
    /// An expression stands in a text or a key and has its names letter by letter; what is evaluated cannot be put together at run time. Only
    /// the built-in `defined` is given a name as a text, which can.
    pub(super) fn in_template(template: &str) -> Self {
        let any = template.contains("defined");
        Self(DEAR.map(|name| any || template.contains(name)))
    }
}

/// The context of a hook at this moment, as far as it is named; `messages` are the whole conversation as it is then.
///
/// Costs a copy of the text that is named, and the parsing of its arguments: a hook without a template needs none.
pub(super) fn context(moment: Moment, messages: &[Arc<Object>], Named(named): Named) -> Object {
    let last = |fits: fn(&Object) -> bool| {
        let message = messages.iter().rfind(|message| fits(message));
        message.map(|message| seen(message)).unwrap_or_default()
    };
    let mut context = Object::new();
    let mut put = |name: &str, value: Value| context.insert(name.to_owned(), value);
    put("event", moment.name().into());
    if named[0] {
        put("messages", messages.iter().map(|message| seen(message)).collect());
    }
    if named[1] {
        put("last_user_message", last(|message| role(message) == "user"));
    }
    if named[2] {
        put("last_assistant_message", last(|message| role(message) == "assistant" && calls(message).next().is_none()));
    }
    if let Moment::Completion { iteration_count, total_tool_calls } = moment {
        put("iteration_count", iteration_count.into());
        put("total_tool_calls", total_tool_calls.into());
    }
    context
}

/// A message as templates see it.
fn seen(message: &Object) -> Value {
    let calls: Vec<_> = calls(message).map(seen_call).collect();
    let answers = message.get("tool_call_id").and_then(Value::as_str);
    json!({"role": role(message), "content": text(message.get("content")), "tool_calls": calls, "tool_call_id": answers})
}

fn role(message: &Object) -> String {
    message.get("role").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase()
}

fn calls(message: &Object) -> impl Iterator<Item = &Object> {
    let calls = message.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    calls.iter().filter_map(Value::as_object)
}

/// The text of a content; none where there is no content. Images and other parts are left out.
fn text(content: Option<&Value>) -> Option<String> {
    let text = match content? {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter(|part| part.get("type").is_some_and(|kind| kind == "text"));
            texts.filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    Some(if text.trim().is_empty() { String::new() } else { text })
}

fn seen_call(call: &Object) -> Value {
    let function = call.get("function");
    let name = function.and_then(|function| function.get("name"));
    let arguments = function.and_then(|function| function.get("arguments"));
    json!({"id": word(call.get("id")), "name": word(name), "arguments": parsed(arguments)})
}

fn word(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

/// The arguments as an object: a model may have written anything.
fn parsed(arguments: Option<&Value>) -> Object {
    arguments.and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quickapp::testing::any_json;

    fn context_of(moment: Moment, messages: &Value) -> Value {
        let messages =
            messages.as_array().unwrap().iter().map(|message| Arc::new(message.as_object().unwrap().clone()));
        Value::Object(context(moment, &messages.collect::<Vec<_>>(), Named::ALL))
    }

    fn message(message: &Value) -> Value {
        context_of(Moment::RequestStart, &json!([message]))["messages"][0].clone()
    }

    fn seen(role: &str, content: Option<&str>, calls: &[Value], id: Option<&str>) -> Value {
        json!({"role": role, "content": content, "tool_calls": calls, "tool_call_id": id})
    }

    #[test]
    fn a_completion_has_its_conversation_and_its_numbers() {
        let function = json!({"name": "read", "arguments": "{\"file_path\": \"/a.txt\"}"});
        let call = json!({"id": "c1", "type": "function", "function": function});
        let messages = json!([
            {"role": "user", "content": "first question"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "file body"},
            {"role": "assistant", "content": "the answer"},
        ]);
        let read = json!({"id": "c1", "name": "read", "arguments": {"file_path": "/a.txt"}});
        let user = seen("user", Some("first question"), &[], None);
        let answer = seen("assistant", Some("the answer"), &[], None);
        assert_eq!(
            context_of(Moment::Completion { iteration_count: 2, total_tool_calls: 1 }, &messages),
            json!({
                "event": "on_completion",
                "messages": [
                    user,
                    seen("assistant", None, &[read], None),
                    seen("tool", Some("file body"), &[], Some("c1")),
                    answer,
                ],
                "last_user_message": user,
                "last_assistant_message": answer,
                "iteration_count": 2,
                "total_tool_calls": 1,
            })
        );
    }

    #[test]
    fn a_request_has_no_numbers_and_at_first_no_answer() {
        let context = context_of(Moment::RequestStart, &json!([{"role": "user", "content": "hello"}]));
        let keys: Vec<_> = context.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["event", "messages", "last_user_message", "last_assistant_message"]);
        assert_eq!((&context["event"], &context["last_assistant_message"]), (&json!("on_request_start"), &Value::Null));
        let empty = json!({"event": "on_request_start", "messages": [], "last_user_message": null, "last_assistant_message": null});
        assert_eq!(context_of(Moment::RequestStart, &json!([])), empty);
    }

    #[test]
    fn the_last_answer_is_the_last_without_calls() {
        let call = json!({"id": "c", "function": {"name": "t", "arguments": "{}"}});
        let context = context_of(
            Moment::RequestStart,
            &json!([
                {"role": "assistant", "content": "none", "tool_calls": null},
                {"role": "assistant", "content": "empty", "tool_calls": []},
                {"role": "assistant", "content": "calls", "tool_calls": [call]},
                {"role": "user", "content": "one"},
                {"role": "user", "content": "two"},
            ]),
        );
        assert_eq!(context["last_assistant_message"]["content"], "empty");
        assert_eq!(context["last_user_message"]["content"], "two");
    }

    #[test]
    fn content_is_text_or_null() {
        let part = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image_url", "image_url": {"url": "data:"}});
        for (content, expected) in [
            (json!("text"), json!("text")),
            (json!(" kept "), json!(" kept ")),
            (json!(""), json!("")),
            (json!(" \n\t"), json!("")),
            (Value::Null, Value::Null),
            (json!([part("one"), image, part("two")]), json!("one\ntwo")),
            (json!([image]), json!("")),
            (json!([part(" "), part("\n")]), json!("")),
            (json!([]), json!("")),
            (json!([part("one"), "two", 3, {"type": "text"}, {"type": "text", "text": 4}]), json!("one")),
            (json!(5), Value::Null),
        ] {
            assert_eq!(message(&json!({"role": "user", "content": content}))["content"], expected, "{content}");
        }
        assert_eq!(message(&json!({"role": "assistant"}))["content"], Value::Null);
    }

    #[test]
    fn arguments_are_an_object_whatever_the_model_has_written() {
        for (arguments, expected) in [
            (json!("{\"a\": [1, {\"b\": null}]}"), json!({"a": [1, {"b": null}]})),
            (json!("{\"a\": "), json!({})),
            (json!("[1]"), json!({})),
            (json!("3"), json!({})),
            (json!("null"), json!({})),
            (json!(""), json!({})),
            (Value::Null, json!({})),
            (json!("[".repeat(100_000)), json!({})),
        ] {
            let call = json!({"id": "c", "function": {"name": "t", "arguments": arguments}});
            let seen = message(&json!({"role": "assistant", "tool_calls": [call]}));
            assert_eq!(seen["tool_calls"], json!([{"id": "c", "name": "t", "arguments": expected}]));
        }
    }

    #[test]
    fn calls_are_a_list_whatever_stands_there() {
        for calls in [Value::Null, json!([]), json!("x"), json!({"id": "c"}), json!([1, null, "x"])] {
            assert_eq!(message(&json!({"role": "assistant", "tool_calls": calls}))["tool_calls"], json!([]), "{calls}");
        }
        let bare = json!([{"id": "", "name": "", "arguments": {}}]);
        assert_eq!(message(&json!({"role": "assistant", "tool_calls": [{}]}))["tool_calls"], bare);
    }

    #[test]
    fn what_a_template_does_not_name_is_not_made() {
        let messages = [Arc::new(Object::from_iter([("role".to_owned(), json!("user"))]))];
        for (template, expected) in [
            (r#"{"q":"${event}"}"#, &["event"][..]),
            (r#"{"q":"${last_user_message.content}"}"#, &["event", "last_user_message"]),
            (r#"{"k${last_assistant_message.role}":1}"#, &["event", "last_assistant_message"]),
            (r#"{"q":{"$map":{"$eval":"messages[-4:]"},"each(m)":"${m.role}"}}"#, &["event", "messages"]),
            (
                r#"{"q":{"$eval":"defined('mess' + 'ages')"}}"#,
                &["event", "messages", "last_user_message", "last_assistant_message"],
            ),
        ] {
            let context = context(Moment::RequestStart, &messages, Named::in_template(template));
            assert_eq!(context.keys().collect::<Vec<_>>(), expected, "{template}");
        }
    }

    #[test]
    fn a_role_is_in_small_letters() {
        assert_eq!(message(&json!({"role": "User"}))["role"], "user");
        assert_eq!(message(&json!({"role": 7}))["role"], "");
    }

    proptest! {
        #[test]
        fn every_message_has_the_same_fields(values in prop::collection::vec(any_json(), 0..6)) {
            let messages: Vec<_> = values.into_iter().map(|value| match value {
                Value::Object(message) => Arc::new(message),
                other => Arc::new(Object::from_iter([("content".to_owned(), other)])),
            }).collect();
            let context = context(Moment::RequestStart, &messages, Named::ALL);
            let seen = context["messages"].as_array().unwrap();
            prop_assert_eq!(seen.len(), messages.len());
            for message in seen {
                prop_assert_eq!(message.as_object().unwrap().len(), 4);
                prop_assert!(message["role"].is_string());
                prop_assert!(message["content"].is_string() || message["content"].is_null());
                prop_assert!(message["tool_call_id"].is_string() || message["tool_call_id"].is_null());
                for call in message["tool_calls"].as_array().unwrap() {
                    prop_assert!(call["id"].is_string() && call["name"].is_string() && call["arguments"].is_object());
                }
            }
        }
    }
}
