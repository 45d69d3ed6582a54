//! Quick Apps with the real interpreter and a real server: templates, hook modules beside a manifest, the example.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tenterhook::{HookEngine, ModelReply, Object, QuickApp, RequestEvent, RequestInput, RequestStatus};

use crate::agents::{environment, folder};
use crate::command::tenterhook;
use crate::scene::{Answers, said};

/// An app in a folder of its own with the example's server, these hooks, and what a model says.
fn app(hooks: &Value, files: &[(&str, &str)], replies: Vec<ModelReply>) -> (tempfile::TempDir, QuickApp) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks-examples/memory-app/servers/memory.py");
    let server = json!({"command": ["python3", script]});
    let set = json!({"type": "mcp", "name": "memory", "mcp_server_info": server, "hidden_from_model": ["save_memory"]});
    let manifest = json!({"tool_sets": [set], "hooks": hooks}).to_string();
    let files: Vec<_> = files.iter().copied().chain([("app.json", manifest.as_str())]).collect();
    let folder = folder(&files);
    let hooks = HookEngine::builder(folder.path()).python(environment());
    let model = Answers { left: Arc::new(Mutex::new(replies.into())), ..Answers::default() };
    let loaded = QuickApp::loader(folder.path().join("app.json")).hooks(hooks).model(model).load();
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    (folder, loaded.app)
}

fn user(text: &str) -> Arc<Object> {
    Arc::new(json!({"role": "user", "content": text}).as_object().unwrap().clone())
}

/// The end of a request with one message.
async fn ask(app: &QuickApp, text: &str) -> (RequestStatus, Vec<Arc<Object>>) {
    let input = RequestInput { messages: vec![user(text)], ..RequestInput::default() };
    let events: Vec<_> = app.request(input).collect().await;
    let Some(RequestEvent::Finished { status, messages }) = events.into_iter().last() else { panic!("it ends") };
    (status, messages)
}

fn recall(arguments: &Value) -> Value {
    json!({
        "kind": "tool_call", "event": "on_request_start", "name": "recall", "toolset_name": "memory",
        "tool_name": "search_memories", "arguments": arguments, "timeout_seconds": 1,
    })
}

#[test]
fn the_memory_app_gives_its_golden_transcript() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks-examples/memory-app");
    let manifest = folder.join("app.json");
    let messages = std::fs::read_to_string(folder.join("messages.txt")).unwrap();
    let said = messages.lines().flat_map(|text| ["--message", text]);
    let done = tenterhook().arg("chat").arg(&manifest).args(said).args(["--output-format", "json"]).output().unwrap();
    let (heard, told) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(done.status.success(), "{told}");
    let last: Value = serde_json::from_str(heard.lines().last().unwrap()).unwrap();
    let shown = |message: &Value| {
        let mut line = format!("{}: {}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap());
        for call in message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["function"]) {
            let (name, arguments) = (call["name"].as_str().unwrap(), call["arguments"].as_str().unwrap());
            line.extend([" ", name, "(", arguments, ")"]);
        }
        line + "\n"
    };
    let transcript: String = last["messages"].as_array().unwrap().iter().map(shown).collect();
    insta::assert_snapshot!("memory-app", transcript);
    let warned = "The model asks for a tool that is hidden from it";
    assert!(told.lines().count() == 1 && told.contains(warned), "{told}");
    let checked = tenterhook().arg("check").arg(&manifest).output().unwrap();
    assert_eq!(String::from_utf8(checked.stdout).unwrap(), "");
}

#[tokio::test]
async fn a_template_that_runs_on_costs_its_hook_alone() {
    let endless = json!({"query": {"$map": {"$eval": "range(0, 9999)"}, "each(a)": {"$map": {"$eval": "range(0, 9999)"}, "each(b)": {"$if": "false", "then": 1}}}});
    let large = json!({"query": {"$eval": "range(0, 1000000000)"}});
    let missing = json!({"query": "${last_assistant_message.content}"});
    let hooks = json!([
        recall(&endless),
        recall(&large),
        recall(&missing),
        recall(&json!({"query": "Q: ${last_user_message.content}"}))
    ]);
    let (_folder, app) = app(&hooks, &[], vec![said("Hm.")]);
    let start = Instant::now();
    let (status, messages) = ask(&app, "Hello").await;
    assert_eq!(status, RequestStatus::Completed);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let called: Vec<_> = messages.iter().filter_map(|message| message.get("tool_calls")).collect();
    assert_eq!(called.len(), 1);
    assert_eq!(called[0][0]["function"]["arguments"], r#"{"query":"Q: Hello"}"#);
}

const MODULE: &str = "
from rasa.mantle.hooks import (
    ModelRequestPayload, OutgoingTextPayload, ToolResultPayload, modify_model_request, modify_outgoing_text, modify_tool_result,
)

seen = []

@modify_model_request()
async def see(payload: ModelRequestPayload) -> ModelRequestPayload:
    seen.append(' '.join(payload.tool_names))
    return payload

@modify_tool_result()
async def redact(payload: ToolResultPayload) -> ToolResultPayload:
    return payload.model_copy(update={'value': payload.value.upper()})

@modify_outgoing_text()
async def tell(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    return payload.model_copy(update={'text': f'{payload.text} ({seen[0]})'})
";

#[tokio::test]
async fn hook_modules_stand_beside_a_manifest() {
    let replies = vec![crate::scene::call("memory_search_memories", json!({"query": "tea"})), said("So it is.")];
    let (_folder, app) = app(&json!([]), &[("hooks.py", MODULE)], replies);
    let (status, messages) = ask(&app, "Tea?").await;
    let contents: Vec<_> = messages.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(status, RequestStatus::Completed);
    assert_eq!(contents, ["Tea?", "", "NOTHING YET", "So it is. (memory_search_memories)"]);
}
