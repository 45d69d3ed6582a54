//! Quick Apps with the real interpreter and a real server: templates, hook modules beside a manifest, the example.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tenterhook::{HookEngine, ModelReply, Object, QuickApp, RequestEvent, RequestInput, RequestStatus};

use crate::agents::{environment, folder};
use crate::command::tenterhook;
use crate::scene::{Answers, said};

/// An app in a folder of its own with the example's server, these hooks, and what a model says.
pub(crate) fn app(hooks: &Value, files: &[(&str, &str)], replies: Vec<ModelReply>) -> (tempfile::TempDir, QuickApp) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks-examples/memory-app/servers/memory.py");
    let server = json!({"command": ["python3", script]});
    let set = json!({"type": "mcp", "name": "memory", "mcp_server_info": server, "hidden_from_model": ["save_memory"]});
    let manifest = json!({"tool_sets": [set], "hooks": hooks}).to_string();
    let files: Vec<_> = files.iter().copied().chain([("app.json", manifest.as_str())]).collect();
    load(&files, replies)
}

/// The app of `app.json` among these files.
pub(crate) fn load(files: &[(&str, &str)], replies: Vec<ModelReply>) -> (tempfile::TempDir, QuickApp) {
    let folder = folder(files);
    let hooks = HookEngine::builder(folder.path()).python(environment());
    let model = Answers { left: Arc::new(Mutex::new(replies.into())), ..Answers::default() };
    let loaded = QuickApp::loader(folder.path().join("app.json")).hooks(hooks).model(model).load();
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    (folder, loaded.app)
}

pub(crate) fn user(text: &str) -> Arc<Object> {
    Arc::new(json!({"role": "user", "content": text}).as_object().unwrap().clone())
}

/// The end of a request with one message.
pub(crate) async fn ask(app: &QuickApp, text: &str) -> (RequestStatus, Vec<Arc<Object>>) {
    let input = RequestInput { messages: vec![user(text)], ..RequestInput::default() };
    let events: Vec<_> = app.request(input).collect().await;
    let Some(RequestEvent::Finished { status, messages }) = events.into_iter().last() else { panic!("it ends") };
    (status, messages)
}

pub(crate) fn recall(arguments: &Value) -> Value {
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

/// A server that does what servers should not.
pub(crate) const BAD_SERVER: &str = r#"
import json, sys, time

def answer(method, given):
    if method == "initialize":
        return {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "bad", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ["huge", "hang", "well", "gone"]]}
    if method == "tools/call":
        name = given["name"]
        if name == "gone":
            sys.exit(3)
        if name == "hang":
            time.sleep(30)
        return {"content": [{"type": "text", "text": "x" * 50_000_000 if name == "huge" else "well"}]}
    return {}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"], message.get("params") or {})}), flush=True)
"#;

/// An app whose two tool sets, `bad` and `other`, are that server, each a process of its own.
pub(crate) fn bad_app(hooks: &Value, replies: Vec<ModelReply>) -> (tempfile::TempDir, QuickApp) {
    let set = |name: &str| json!({"type": "mcp", "name": name, "mcp_server_info": {"command": ["python3", "bad.py"]}});
    let manifest = json!({"tool_sets": [set("bad"), set("other")], "hooks": hooks}).to_string();
    load(&[("app.json", manifest.as_str()), ("bad.py", BAD_SERVER)], replies)
}

pub(crate) fn calls(event: &str, set: &str, tool: &str, seconds: u32) -> Value {
    json!({"kind": "tool_call", "event": event, "toolset_name": set, "tool_name": tool, "timeout_seconds": seconds})
}

#[test]
fn a_key_that_can_be_guessed_refuses_the_load() {
    let folder = folder(&[("app.json", "{}")]);
    let loader = QuickApp::loader(folder.path().join("app.json")).model(Answers::default()).key(*b"too short");
    let told = loader.load().unwrap_err().to_string();
    assert_eq!(
        told,
        "The key of the app has 9 bytes, and needs 16\n  hint: put at least 16 random bytes into `TENTERHOOK_APP_KEY`"
    );
}

#[test]
fn tools_that_are_not_there_are_told_of_when_the_app_is_loaded() {
    let set = json!({"type": "mcp", "name": "bad", "mcp_server_info": {"command": ["python3", "bad.py"]}, "hidden_from_model": ["wll"]});
    let manifest = json!({"tool_sets": [set], "hooks": [calls("on_completion", "bad", "wel", 1)]}).to_string();
    let folder = folder(&[("app.json", manifest.as_str()), ("bad.py", BAD_SERVER)]);
    let loaded = QuickApp::loader(folder.path().join("app.json")).model(Answers::default()).load().unwrap();
    let told: Vec<_> = loaded.warnings.iter().map(|warning| warning.message.clone()).collect();
    assert_eq!(
        told,
        [
            "The tool set `bad` names `wll`, which it does not have",
            "Hook `wel`: tool 'bad_wel' not found in initialized tools",
        ]
    );
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

const MASKING: &str = "
from rasa.mantle.hooks import HookRejection, IncomingMessagePayload, modify_incoming_message

@modify_incoming_message()
async def mask(payload: IncomingMessagePayload) -> IncomingMessagePayload:
    if payload.text == 'no':
        raise HookRejection('not that', 'Not that.')
    return payload.model_copy(update={'text': payload.text.replace('4111', '[card]')})
";

/// What is said in a request of these messages, by their roles and texts, and how it ends.
async fn masked(messages: &[(&str, &str)]) -> (RequestStatus, Vec<String>) {
    let (_folder, app) = app(&json!([]), &[("hooks.py", MASKING)], vec![said("Hm.")]);
    let message =
        |(role, text): &(&str, &str)| Arc::new(json!({"role": role, "content": text}).as_object().unwrap().clone());
    let input = RequestInput { messages: messages.iter().map(message).collect(), ..RequestInput::default() };
    let events: Vec<_> = app.request(input).collect().await;
    let Some(RequestEvent::Finished { status, messages }) = events.into_iter().last() else { panic!("it ends") };
    (status, messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect())
}

#[tokio::test]
async fn what_the_user_has_said_since_the_last_answer_passes_the_incoming_hook() {
    let earlier = [("user", "My card is 4111"), ("assistant", "Well?")];
    for (messages, expected) in [
        (&[("user", "4111")][..], &["[card]", "Hm."][..]),
        (&[("user", "4111"), ("User", "Or 4111?")], &["[card]", "Or [card]?", "Hm."]),
        (&[earlier[0], earlier[1], ("user", "4111")], &["My card is 4111", "Well?", "[card]", "Hm."]),
        (&[("user", "4111"), ("system", "4111")], &["[card]", "4111", "Hm."]),
    ] {
        let expected: Vec<_> = expected.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(masked(messages).await, (RequestStatus::Completed, expected));
    }
}

#[tokio::test]
async fn a_message_that_the_incoming_hook_rejects_is_taken_out_and_nothing_is_asked() {
    let (status, messages) = masked(&[("user", "4111"), ("user", "no"), ("user", "And 4111?")]).await;
    assert_eq!((status, messages), (RequestStatus::Rejected, vec!["[card]".to_owned(), "And 4111?".to_owned()]));
}

/// What a command says of the app of a folder: its exit code, and both outputs without the folder's name.
fn command(folder: &tempfile::TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let done = tenterhook().current_dir(folder.path()).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn a_check_that_connects_tells_what_the_servers_do_not_have() {
    let bad = json!({"command": [environment().join("bin/python"), "bad.py"]});
    let set = |name: &str, info: &Value| json!({"type": "mcp", "name": name, "mcp_server_info": info});
    let mut memory = set("bad", &bad);
    memory["allowed_tools"] = json!(["well", "wll"]);
    let gone = set("gone", &json!({"url": "http://127.0.0.1:1/mcp"}));
    let hooks = json!([
        calls("on_completion", "bad", "well", 1),
        calls("on_completion", "other", "wel", 1),
        calls("on_completion", "gone", "x", 1),
    ]);
    let manifest = json!({"tool_sets": [memory, set("other", &bad), gone], "hooks": hooks}).to_string();
    let folder = folder(&[("app.json", manifest.as_str()), ("bad.py", BAD_SERVER)]);
    let concise = ["check", "app.json", "--output-format", "concise"];
    assert_eq!(command(&folder, &concise), (Some(0), String::new(), "No problems found\n".into()));
    let (code, told, _) = command(&folder, &[&concise[..], &["--connect"]].concat());
    let told: Vec<_> = told.lines().map(|line| line.splitn(4, ':').nth(3).unwrap().trim()).collect();
    assert_eq!(
        (code, told),
        (
            Some(1),
            vec![
                "warning[unknown-tool]: The server of the tool set `bad` has no tool `wll`",
                "error[unreachable-server]: The MCP server `gone` cannot be reached at `http://127.0.0.1:1/mcp`: Connection refused \
                 (os error 111)",
                "error[unknown-tool]: tool 'other_wel' not found in initialized tools",
            ]
        )
    );
    let (code, _, told) = command(&folder, &["check", ".", "--connect"]);
    assert_eq!(
        (code, &*told),
        (
            Some(2),
            "error: `.` is no manifest of a Quick App\n  hint: leave out `--connect`, which asks the servers of manifests\n"
        )
    );
}

#[test]
fn a_manifest_that_is_not_there_is_told_as_one() {
    let folder = folder(&[("app.JSON", "[]")]);
    let (code, _, told) = command(&folder, &["chat", "other.yml"]);
    assert_eq!(
        (code, &*told),
        (Some(2), "error: `other.yml` cannot be read: No such file or directory (os error 2)\n")
    );
    let (code, _, told) = command(&folder, &["chat", "app.JSON"]);
    assert!(code == Some(2) && told.contains("expected a mapping"), "{told}");
}

#[test]
fn a_line_that_is_no_conversation_costs_itself_alone_and_blank_ones_do_not_count() {
    let manifest = json!({"model": {"provider": "scripted", "script": "script.yml"}}).to_string();
    let folder =
        folder(&[("app.json", manifest.as_str()), ("script.yml", "in_order:\n  - {text: One.}\n  - {text: Two.}\n")]);
    let line = |text: &str| json!({"messages": [{"role": "user", "content": text}]}).to_string();
    let lines = [b"\n\xff\n \n", line("a").as_bytes(), b"\n\n", line("b").as_bytes(), b"\n"].concat();
    std::fs::write(folder.path().join("talks.jsonl"), lines).unwrap();
    let run = ["run", "app.json", "--input", "talks.jsonl"];
    let (code, heard, told) = command(&folder, &[&run[..], &["--limit", "2"]].concat());
    let answers: Vec<Value> = heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (code, answers.len(), &answers[0]["line"], &answers[0]["messages"][1]["content"]),
        (Some(1), 1, &json!(4), &json!("One."))
    );
    assert!(told.starts_with("error: talks.jsonl:2: The line is not UTF-8: invalid utf-8"), "{told}");
    for flags in [&["--jobs", "2"][..], &["--diff"]] {
        let (code, heard, told) = command(&folder, &[&run[..], flags].concat());
        let flag = flags[0];
        let expected = format!(
            "error: `{flag}` is for recorded conversations of an agent: an app answers one conversation after another\n  hint: leave out \
             `{flag}`\n"
        );
        assert_eq!((code, heard, told), (Some(2), String::new(), expected));
    }
}
