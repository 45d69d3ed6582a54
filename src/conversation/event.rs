//! What is kept of a conversation, in order, and what a model is shown of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Object;

/// The `source` of a tool that ran after the user's yes.
pub(crate) const CONFIRMED: &str = "tool_confirmation";

/// What a model is shown in place of a message that a hook has rejected.
const MASKED: &str = "[This message was discarded.]";

/// Something that has happened in a conversation. Serialized with its kind as `event`; kinds and fields are only ever added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A session begins: what was said before is kept, and no model is shown it any more.
    SessionStarted,
    /// The user has said something.
    UserMessage {
        /// The text: as a hook has rewritten it, or, where one has rejected it, as it was.
        text: String,
        /// The message's id, where the channel gives one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// A hook has rejected it: it is kept, and no model sees it.
        #[serde(default, skip_serializing_if = "is_false")]
        discarded: bool,
    },
    /// Something was said to the user.
    BotMessage {
        /// The text.
        text: String,
        /// The name of the response that it is, where it is a fixed one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<String>,
        /// Its buttons.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        buttons: Vec<Object>,
        /// Whatever else a channel may make use of.
        #[serde(default, skip_serializing_if = "Object::is_empty")]
        metadata: Object,
        /// A hook has rejected it: it is kept, and neither the user nor a model has seen it.
        #[serde(default, skip_serializing_if = "is_false")]
        discarded: bool,
    },
    /// The model has asked for tools, all at once.
    ToolCalls {
        /// The calls: objects with `id`, `tool_name`, `tool_args` and, where known, `type`.
        calls: Vec<Arc<Object>>,
    },
    /// A tool has run.
    ToolExecuted {
        /// The call's id.
        id: String,
        /// The tool that ran.
        tool_name: String,
        /// The arguments, as hooks have left them.
        arguments: Object,
        /// The result, as hooks have left it.
        value: Value,
        /// Whether it is an error.
        #[serde(default, skip_serializing_if = "is_false")]
        is_error: bool,
        /// `local`, `engine` or `mcp`; `tool_confirmation` for a tool that ran after the user's yes.
        source: String,
        /// The server that the tool is from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mcp_server: Option<String>,
    },
    /// An entry of memory has a value.
    MemorySet {
        /// A skill's id, or `project`.
        namespace: String,
        /// The entry.
        entry: String,
        /// The value.
        value: Value,
    },
    /// An entry of memory has none any more.
    MemoryCleared {
        /// A skill's id, or `project`.
        namespace: String,
        /// The entry.
        entry: String,
    },
    /// A write to memory was taken back: the entry is as it was at first.
    MemoryForgotten {
        /// A skill's id, or `project`.
        namespace: String,
        /// The entry.
        entry: String,
    },
    /// A skill is active, and begins with what it remembers at first; what was active waits for it.
    SkillActivated {
        /// The skill.
        skill_id: String,
    },
    /// The skill that was active is done.
    SkillCompleted {
        /// The skill.
        skill_id: String,
    },
    /// The skill that was active is given up.
    SkillCancelled {
        /// The skill.
        skill_id: String,
    },
    /// An ordered block is active.
    BlockEntered {
        /// The skill that it belongs to.
        skill_id: String,
        /// The block.
        block_id: String,
        /// Its first step.
        step: Option<String>,
    },
    /// The block that is active has gone on.
    StepEntered {
        /// The step; none: there is no further one.
        step: Option<String>,
    },
    /// The step has asked the user, or called a skill or a block, and waits.
    StepAsked,
    /// The block that was active is done.
    BlockCompleted {
        /// The skill that it belongs to.
        skill_id: String,
        /// The block.
        block_id: String,
    },
    /// The user is asked whether a tool may run.
    ConfirmationAsked {
        /// The skill whose gate it is.
        skill_id: String,
        /// The tool.
        tool_name: String,
        /// The arguments, as hooks have left them.
        arguments: Object,
    },
    /// The user has answered.
    ConfirmationAnswered {
        /// The tool.
        tool_name: String,
        /// Whether it may run.
        accepted: bool,
    },
    /// A turn has ended; all of it stands before this.
    TurnFinished {
        /// The turn's id.
        turn_id: String,
        /// `completed`, `cancelled` or `error`.
        status: String,
        /// When, in milliseconds since 1970 (UTC).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
    },
    /// It was told that the user has said nothing for some time ([`LifecycleEvent::Nudged`](crate::LifecycleEvent::Nudged)).
    ConversationNudged {
        /// When, in milliseconds since 1970 (UTC).
        at: u64,
    },
    /// It was told that the conversation has expired ([`LifecycleEvent::Expired`](crate::LifecycleEvent::Expired)): the user's next
    /// message begins a session.
    ConversationExpired {
        /// When, in milliseconds since 1970 (UTC).
        at: u64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The events as a model sees them: chat messages, each call with its result.
pub fn as_messages(events: &[Event]) -> Vec<Arc<Object>> {
    let mut messages: Vec<Arc<Object>> = Vec::new();
    // A text right before calls was said beside them.
    let mut beside = false;
    for event in events {
        let said = match event {
            Event::SessionStarted => {
                messages.clear();
                continue;
            }
            Event::UserMessage { discarded: true, .. } => json!({"role": "user", "content": MASKED}),
            Event::UserMessage { text, .. } => json!({"role": "user", "content": text}),
            // It answers no call of the model's: what it gave stands in the answer to the confirmation.
            Event::ToolExecuted { source, .. } if source == CONFIRMED => continue,
            Event::BotMessage { text, discarded: false, .. } => json!({"role": "assistant", "content": text}),
            Event::ToolCalls { calls } => {
                let calls: Vec<_> = calls.iter().map(|call| as_chat_call(call)).collect();
                match messages.last_mut().filter(|_| beside) {
                    Some(last) => {
                        Arc::make_mut(last).insert("tool_calls".into(), calls.into());
                        beside = false;
                        continue;
                    }
                    None => json!({"role": "assistant", "content": null, "tool_calls": calls}),
                }
            }
            Event::ToolExecuted { id, value, .. } => {
                json!({"role": "tool", "tool_call_id": id, "content": text_of_value(value)})
            }
            Event::BotMessage { discarded: true, .. }
            | Event::MemorySet { .. }
            | Event::MemoryCleared { .. }
            | Event::MemoryForgotten { .. }
            | Event::SkillActivated { .. }
            | Event::SkillCompleted { .. }
            | Event::SkillCancelled { .. }
            | Event::BlockEntered { .. }
            | Event::StepEntered { .. }
            | Event::StepAsked
            | Event::BlockCompleted { .. }
            | Event::ConfirmationAsked { .. }
            | Event::ConfirmationAnswered { .. }
            | Event::TurnFinished { .. }
            | Event::ConversationNudged { .. }
            | Event::ConversationExpired { .. } => continue,
        };
        beside = matches!(event, Event::BotMessage { .. });
        if let Value::Object(message) = said {
            messages.push(Arc::new(message));
        }
    }
    messages
}

/// A message in the form of the Chat Completions interface.
pub(crate) fn message(role: &str, content: &str) -> Arc<Object> {
    Arc::new(Object::from_iter([("role".to_owned(), role.into()), ("content".to_owned(), content.into())]))
}

/// The message with another text; the parts of a list that are no text stay.
pub(crate) fn with_content(message: &Object, text: String) -> Object {
    let mut message = message.clone();
    match message.get_mut("content") {
        Some(Value::Array(parts)) => {
            let first = parts.iter().position(|part| part.get("text").is_some());
            let mut index = 0;
            parts.retain(|part| {
                let keep = part.get("text").is_none() || Some(index) == first;
                index += 1;
                keep
            });
            if let Some(part) = parts.iter_mut().find(|part| part.get("text").is_some()) {
                part["text"] = text.into();
            }
        }
        _ => {
            message.insert("content".into(), text.into());
        }
    }
    message
}

/// A result as the model reads it: a text as it is, else the text of the JSON document.
pub(crate) fn text_of_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A call in the form of the Chat Completions interface.
fn as_chat_call(call: &Object) -> Value {
    let arguments = call.get("tool_args").map_or_else(|| "{}".to_owned(), Value::to_string);
    let kind = call.get("type").cloned().unwrap_or_else(|| "function".into());
    json!({"id": call.get("id"), "type": kind, "function": {"name": call.get("tool_name"), "arguments": arguments}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        if let Value::Object(object) = value { object } else { panic!("{value} is no object") }
    }

    #[test]
    fn a_model_sees_calls_with_the_text_beside_them_and_no_discarded_text() {
        let said = |text: &str, discarded| Event::BotMessage {
            text: text.into(),
            response: None,
            buttons: Vec::new(),
            metadata: Object::new(),
            discarded,
        };
        let asked = |text: &str, discarded| Event::UserMessage { text: text.into(), message_id: None, discarded };
        let call = object(json!({"id": "c1", "tool_name": "find", "tool_args": {"q": 1}}));
        let events = [
            asked("my card is 4111", true),
            said("Please do not.", false),
            asked("hello", false),
            said("bad", true),
            said("One moment.", false),
            Event::ToolCalls { calls: vec![call.into()] },
            Event::ToolExecuted {
                id: "c1".into(),
                tool_name: "find".into(),
                arguments: object(json!({"q": 1})),
                value: json!({"found": 2}),
                is_error: false,
                source: "local".into(),
                mcp_server: None,
            },
            said("Two.", false),
            Event::TurnFinished { turn_id: "t".into(), status: "completed".into(), at: None },
        ];
        let shown: Vec<_> = as_messages(&events).iter().map(|message| Value::Object((**message).clone())).collect();
        assert_eq!(
            shown,
            [
                json!({"role": "user", "content": "[This message was discarded.]"}),
                json!({"role": "assistant", "content": "Please do not."}),
                json!({"role": "user", "content": "hello"}),
                json!({"role": "assistant", "content": "One moment.", "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"q\":1}"}}]}),
                json!({"role": "tool", "tool_call_id": "c1", "content": "{\"found\":2}"}),
                json!({"role": "assistant", "content": "Two."}),
            ]
        );
    }

    #[test]
    fn a_model_is_shown_the_session_that_runs() {
        let asked = |text: &str| Event::UserMessage { text: text.into(), message_id: None, discarded: false };
        let shown = as_messages(&[asked("before"), Event::SessionStarted, asked("after")]);
        assert_eq!(shown.iter().map(|message| &message["content"]).collect::<Vec<_>>(), ["after"]);
    }

    #[test]
    fn an_event_is_written_with_its_kind_and_without_what_is_usual() {
        let event = Event::UserMessage { text: "hello".into(), message_id: None, discarded: false };
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(text, r#"{"event":"user_message","text":"hello"}"#);
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }
}
