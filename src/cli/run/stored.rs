//! Messages as a conversation stores them: what hooks left alone stays as it was recorded.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::conversation::{Arguments, Object, RecordedCall, text_of};

/// A call as the hooks have left it.
pub(super) struct PlayedCall {
    pub(super) id: String,
    pub(super) kind: Option<String>,
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl PlayedCall {
    /// Reads a call of a response payload; a hook may have made it.
    pub(super) fn new(call: &Object) -> Self {
        let text = |key| call.get(key).and_then(Value::as_str);
        Self {
            id: text("id").unwrap_or_default().to_owned(),
            kind: text("type").map(str::to_owned),
            name: text("tool_name").unwrap_or_default().to_owned(),
            arguments: call.get("tool_args").cloned().unwrap_or_else(|| json!({})),
        }
    }
}

/// A recorded call as a response payload shows it.
pub(super) fn response_call(call: &RecordedCall) -> Arc<Object> {
    let arguments = match &call.arguments {
        Arguments::Parsed(object) => Value::Object(object.clone()),
        Arguments::Broken(text) => Value::String(text.clone()),
    };
    let mut shown = Object::new();
    shown.insert("id".into(), call.id.clone().into());
    shown.insert("tool_name".into(), call.name.clone().into());
    shown.insert("tool_args".into(), arguments);
    if let Some(kind) = &call.kind {
        shown.insert("type".into(), kind.clone().into());
    }
    Arc::new(shown)
}

/// The assistant message as it is stored after the hooks: what they left alone stays as it was recorded.
pub(super) fn rebuilt(message: &Object, text: Option<&str>, calls: &[PlayedCall]) -> Object {
    let mut stored = match (text, text_of(message)) {
        (same, recorded) if same == recorded.as_deref() => message.clone(),
        (Some(text), _) => with_content(message, text.to_owned()),
        (None, _) => {
            let mut stored = message.clone();
            stored.insert("content".into(), Value::Null);
            stored
        }
    };
    let recorded = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let calls: Vec<_> = calls.iter().map(|call| rebuilt_call(recorded, call)).collect();
    if calls.is_empty() {
        stored.shift_remove("tool_calls");
    } else {
        stored.insert("tool_calls".into(), calls.into());
    }
    stored
}

fn rebuilt_call(recorded: &[Value], call: &PlayedCall) -> Value {
    let arguments = match &call.arguments {
        Value::String(broken) => broken.clone(),
        other => other.to_string(),
    };
    let Some(known) = recorded.iter().find(|known| known["id"] == *call.id) else {
        return json!({
            "id": call.id,
            "type": call.kind.as_deref().unwrap_or("function"),
            "function": {"name": call.name, "arguments": arguments},
        });
    };
    let mut stored = known.clone();
    let function = &mut stored["function"];
    function["name"] = call.name.clone().into();
    let same = match &function["arguments"] {
        Value::String(text) => {
            serde_json::from_str::<Value>(text).map_or(*text == arguments, |parsed| parsed == call.arguments)
        }
        other => *other == call.arguments,
    };
    if !same {
        function["arguments"] = arguments.into();
    }
    stored
}

/// The message with another text; the parts of a list that are no text stay.
pub(super) fn with_content(message: &Object, text: String) -> Object {
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

/// The passages of a recorded search: a JSON list of objects.
pub(super) fn passages_in(content: &str) -> Option<Vec<Arc<Object>>> {
    let passages: Vec<Object> = serde_json::from_str(content).ok()?;
    Some(passages.into_iter().map(Arc::new).collect())
}
