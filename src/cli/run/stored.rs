//! Messages as a conversation stores them: what hooks left alone stays as it was recorded.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::RecordedAnswer;
use crate::conversation::{Arguments, Object, RecordedCall, text_of_value, with_content};
use crate::step::Call;

/// The assistant message as it is stored after the hooks; `None`: they have left nothing of it.
pub(super) fn stored(answer: &RecordedAnswer, text: Option<&str>, calls: &[Call]) -> Option<Arc<Object>> {
    let recorded = &answer.completion;
    let same_calls = calls.len() == recorded.calls.len()
        && calls.iter().zip(answer.calls()).all(|(call, (id, recorded))| {
            call.id == id && call.tool_name == recorded.name && has_arguments_of(call, recorded)
        });
    let same_text = text == recorded.text.as_deref();
    if same_calls && same_text {
        return Some(Arc::clone(&recorded.message));
    }
    if text.is_none() && calls.is_empty() {
        return None;
    }
    let mut message = match text {
        _ if same_text => Object::clone(&recorded.message),
        Some(text) => with_content(&recorded.message, text.to_owned()),
        None => {
            let mut message = Object::clone(&recorded.message);
            message.insert("content".into(), Value::Null);
            message
        }
    };
    let calls: Vec<_> = calls.iter().map(|call| stored_call(answer, call)).collect();
    if calls.is_empty() {
        message.shift_remove("tool_calls");
    } else {
        message.insert("tool_calls".into(), calls.into());
    }
    Some(Arc::new(message))
}

fn stored_call(answer: &RecordedAnswer, call: &Call) -> Value {
    let arguments = call.broken.clone().unwrap_or_else(|| json!(call.arguments).to_string());
    let recorded = answer.completion.message.get("tool_calls");
    let known = answer.place_of(&call.id).and_then(|place| Some((recorded?.get(place)?, place)));
    let Some((known, place)) = known else {
        return json!({
            "id": call.id,
            "type": call.kind.as_deref().unwrap_or("function"),
            "function": {"name": call.tool_name, "arguments": arguments},
        });
    };
    let mut stored = known.clone();
    let function = &mut stored["function"];
    function["name"] = call.tool_name.clone().into();
    if !has_arguments_of(call, &answer.completion.calls[place]) {
        function["arguments"] = arguments.into();
    }
    stored
}

/// Whether the call's arguments are those that were recorded, however they were written.
fn has_arguments_of(call: &Call, recorded: &RecordedCall) -> bool {
    match &recorded.arguments {
        Arguments::Parsed(arguments) => call.broken.is_none() && call.arguments == *arguments,
        Arguments::Broken(text) => call.broken.as_ref() == Some(text),
    }
}

/// The tool message as it is stored after the hooks, which have left `value` of its content.
pub(super) fn stored_result(message: Arc<Object>, value: Value) -> Arc<Object> {
    match (message.get("content"), value) {
        (Some(recorded), value) if *recorded == value => message,
        // What was recorded as parts is stored as parts again.
        (Some(Value::Array(_)), Value::Array(parts)) => {
            let mut stored = Object::clone(&message);
            stored.insert("content".into(), parts.into());
            Arc::new(stored)
        }
        (_, value) => Arc::new(with_content(&message, text_of_value(&value))),
    }
}

/// What a recorded search has found.
pub(super) struct Found {
    pub(super) passages: Vec<Arc<Object>>,
    /// What stands beside them, where the result is an object as this engine gives it.
    around: Option<Object>,
}

impl Found {
    /// Reads a JSON list of objects, or an object that has one as `passages`.
    pub(super) fn read(content: &str) -> Option<Self> {
        let (passages, around): (Vec<Object>, _) = match serde_json::from_str(content).ok()? {
            Value::Object(mut object) => {
                (serde_json::from_value(object.get_mut("passages")?.take()).ok()?, Some(object))
            }
            list => (serde_json::from_value(list).ok()?, None),
        };
        Some(Self { passages: passages.into_iter().map(Arc::new).collect(), around })
    }

    /// The result with other passages, in the form that it was recorded in.
    pub(super) fn with(self, passages: &[Arc<Object>]) -> String {
        let passages = json!(passages);
        match self.around {
            Some(mut object) => {
                object.insert("passages".into(), passages);
                Value::Object(object).to_string()
            }
            None => passages.to_string(),
        }
    }
}
