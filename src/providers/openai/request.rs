//! The body of a request.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::settings::OpenAiSettings;
use crate::conversation::Object;
use crate::step::ModelRequest;

/// The keys that only the client itself writes.
const OWN: [&str; 5] = ["model", "messages", "tools", "stream", "stream_options"];

/// The body's bytes. With `streaming` the answer is to come in events, the last of which tells the usage.
pub(super) fn body(settings: &OpenAiSettings, request: &ModelRequest, streaming: bool) -> Vec<u8> {
    let further = settings.extra.iter().chain(request.settings.as_object());
    let body = Body {
        model: &settings.model,
        messages: &request.messages,
        tools: request.tools.iter().map(|tool| tool.as_function()).collect(),
        further: further.filter(|(key, _)| !OWN.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect(),
        stream: streaming.then_some(true),
        stream_options: streaming.then(|| json!({"include_usage": true})),
    };
    serde_json::to_vec(&body).expect("its keys are texts")
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: &'a [Arc<Object>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(flatten)]
    further: Object,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}
