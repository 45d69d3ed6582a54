//! An answer in one piece. It is read leniently: what a server leaves out, or writes as null, is not there.

use serde_json::Value;

use super::blame::{Blame, Failure};
use crate::conversation::Object;
use crate::step::{ModelReply, RequestedCall, Usage};

/// Reads a completion.
pub(super) fn read(body: &[u8], blame: &Blame) -> Result<ModelReply, Failure> {
    let answer = document(body, blame)?;
    if let Some(refusal) = refusal(&answer, blame) {
        return Err(refusal);
    }
    let Some(message) = answer.pointer("/choices/0/message") else {
        return Err(blame.broken(&format!("its answer has no choices: `{}`", blame.excerpt(body))).into());
    };
    let calls = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Ok(ModelReply {
        text: text(message),
        calls: calls.iter().map(|call| requested(call, blame)).collect::<Result<_, _>>()?,
        usage: usage(&answer),
        latency: None,
    })
}

/// The error that a provider sends in place of an answer, with whatever status.
pub(super) fn refusal(answer: &Value, blame: &Blame) -> Option<Failure> {
    let error = answer.get("error").filter(|error| !error.is_null())?;
    // Gateways put the status of the server behind them there (OpenRouter, LiteLLM).
    let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let status = status.filter(|code| (400..600).contains(code)).unwrap_or(200);
    Some(blame.refused(status, &stated(answer).unwrap_or_else(|| error.to_string())))
}

/// What the body of a refusal says; empty where it is.
pub(super) fn reason(body: &[u8]) -> String {
    serde_json::from_slice(body)
        .ok()
        .and_then(|answer| stated(&answer))
        .unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned())
}

/// The assistant's text: a string, or the texts of its parts.
pub(super) fn text(message: &Value) -> Option<String> {
    let text = match message.get("content")? {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    };
    (!text.is_empty()).then_some(text)
}

/// The arguments of a call: the JSON object that a text holds; no text, no arguments.
pub(super) fn arguments(text: &str) -> Result<Object, String> {
    if text.trim().is_empty() {
        return Ok(Object::new());
    }
    serde_json::from_str(text).map_err(|_| text.to_owned())
}

/// What the answer has cost.
pub(super) fn usage(answer: &Value) -> Option<Usage> {
    let usage = answer.get("usage")?;
    let tokens = |key| usage.get(key).and_then(Value::as_u64);
    match (tokens("prompt_tokens"), tokens("completion_tokens")) {
        (None, None) => None,
        (input, output) => Some(Usage { input: input.unwrap_or(0), output: output.unwrap_or(0) }),
    }
}

fn document(body: &[u8], blame: &Blame) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        let message = if body.trim_ascii().is_empty() {
            "its answer has no body".to_owned()
        } else if body.trim_ascii_start().starts_with(b"<") {
            format!("its answer is a page and no JSON: `{}`", blame.excerpt(body))
        } else if error.is_eof() {
            format!("its answer is JSON that ends too early, after {} bytes: `{}`", body.len(), blame.excerpt(body))
        } else {
            format!("its answer is no JSON: {error}: `{}`", blame.excerpt(body))
        };
        blame.broken(&message).into()
    })
}

/// The reason, in one of the shapes that are usual; Google's is in a list.
fn stated(answer: &Value) -> Option<String> {
    let answer = answer.get(0).unwrap_or(answer);
    ["/error/message", "/error", "/message", "/detail"]
        .into_iter()
        .find_map(|place| answer.pointer(place)?.as_str())
        .map(|reason| reason.trim().to_owned())
}

fn requested(call: &Value, blame: &Blame) -> Result<RequestedCall, Failure> {
    let name = call.pointer("/function/name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let Some(name) = name else { return Err(blame.broken("a tool call names no tool").into()) };
    Ok(RequestedCall {
        id: call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned),
        tool_name: name.to_owned(),
        arguments: match call.pointer("/function/arguments") {
            None | Some(Value::Null) => Ok(Object::new()),
            // Some servers of open models forget to write it as a text.
            Some(Value::Object(written)) => Ok(written.clone()),
            Some(Value::String(text)) => arguments(text),
            Some(other) => Err(other.to_string()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_found_in_many_shapes() {
        for body in [
            r#"{"error": {"message": "too long"}}"#,
            r#"{"error": " too long "}"#,
            r#"[{"error": {"code": 400, "message": "too long"}}]"#,
            r#"{"message": "too long"}"#,
            r#"{"detail": "too long"}"#,
            "too long\n",
        ] {
            assert_eq!(reason(body.as_bytes()), "too long", "{body}");
        }
        assert_eq!(reason(br#"{"detail": [{"loc": 1}]}"#), r#"{"detail": [{"loc": 1}]}"#);
        assert_eq!(reason(b""), "");
    }
}
