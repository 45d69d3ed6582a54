//! Quick Apps and what is too much for them: each request is answered, in bounded time and memory, and the answer is the whole one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tenterhook::{HookEngine, Object, QuickApp, RequestEvent, RequestInput, RequestStatus};
use tracing::instrument::WithSubscriber as _;

use crate::agents::{environment, folder};
use crate::quickapps::{app, ask, bad_app, calls, recall, user};
use crate::scene::{Answers, said};

/// The most memory that the process has had, in kB. Only with a process for each test it says something of the test.
fn peak_kb() -> Option<u64> {
    std::env::var_os("NEXTEST")?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().split(' ').next()?.parse().ok()
}

/// Asserts that no more than so many megabytes were taken since.
fn took_at_most(megabytes: u64, before: Option<u64>) {
    if let (Some(before), Some(now)) = (before, peak_kb()) {
        assert!(now - before < megabytes * 1_000, "{} kB more", now - before);
    }
}

/// What each hook has come to, in order: its name, and whether it ran.
fn ran(events: &[RequestEvent]) -> Vec<(String, bool)> {
    let of = |event: &RequestEvent| match event {
        RequestEvent::AppHookRan { name, skipped, .. } => Some((name.clone(), !skipped)),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

async fn events_of(app: &QuickApp, messages: Vec<Arc<Object>>) -> Vec<RequestEvent> {
    app.request(RequestInput { messages, ..RequestInput::default() }).collect().await
}

fn contents(messages: &[Arc<Object>]) -> Vec<&str> {
    messages.iter().map(|message| message["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_thousand_hooks_are_run_in_order() {
    let named = |index: usize| {
        let mut hook = calls("on_completion", "bad", "well", 30);
        hook["name"] = json!(format!("h{index}"));
        hook
    };
    let hooks: Vec<_> = (0..1_000).map(named).collect();
    let (_folder, app) = bad_app(&json!(hooks), vec![said("Hm.")]);
    let events = events_of(&app, vec![user("Hello")]).await;
    let expected: Vec<_> = (0..1_000).map(|index| (format!("h{index}"), true)).collect();
    assert_eq!(ran(&events), expected);
    let Some(RequestEvent::Finished { status, messages }) = events.last() else { panic!("it ends") };
    assert_eq!((*status, contents(messages)), (RequestStatus::Completed, vec!["Hello", "Hm."]));
}

#[tokio::test]
async fn a_manifest_of_a_megabyte_with_a_thousand_templates_is_loaded_and_its_request_answered() {
    let text = "x".repeat(780);
    let hook = |index: usize| {
        let mut hook = recall(&json!({"query": "${last_user_message.content}", "why": text}));
        (hook["name"], hook["timeout_seconds"]) = (json!(format!("h{index}")), json!(30));
        hook
    };
    let hooks: Vec<_> = (0..1_000).map(hook).collect();
    let size = json!(hooks).to_string().len();
    assert!((950_000..1 << 20).contains(&size), "{size}");
    let (start, before) = (Instant::now(), peak_kb());
    let (_folder, app) = app(&json!(hooks), &[], vec![said("Hm.")]);
    let events = events_of(&app, vec![user("Hello")]).await;
    assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
    took_at_most(300, before);
    let expected: Vec<_> = (0..1_000).map(|index| (format!("h{index}"), true)).collect();
    assert_eq!(ran(&events), expected);
    let Some(RequestEvent::Finished { status, messages }) = events.last() else { panic!("it ends") };
    assert_eq!(
        (*status, contents(messages)),
        (RequestStatus::Completed, vec!["Hello", "", "nothing yet", "Hm."]),
        "the same call with the same result is one pair"
    );
}

#[test]
fn a_template_that_is_nested_too_deep_refuses_the_load() {
    let nested = (0..500).fold(json!("${event}"), |inner, _| json!([inner]));
    let manifest = json!({"hooks": [recall(&json!({"query": nested}))]}).to_string();
    let folder = folder(&[("app.json", manifest.as_str())]);
    let hooks = HookEngine::builder(folder.path()).python(environment());
    let loaded = QuickApp::loader(folder.path().join("app.json")).hooks(hooks).model(Answers::default()).load();
    let told = loaded.unwrap_err().to_string().replace(folder.path().to_str().unwrap(), "APP");
    assert!(told.contains("error[invalid-json]: Values are nested deeper than 64 levels"), "{told}");
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
    let (start, before) = (Instant::now(), peak_kb());
    let (status, messages) = ask(&app, "Hello").await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    took_at_most(200, before);
    assert_eq!((status, contents(&messages)), (RequestStatus::Completed, vec!["Hello", "", "nothing yet", "Hm."]));
    assert_eq!(messages[1]["tool_calls"][0]["function"]["arguments"], r#"{"query":"Q: Hello"}"#);
}

#[tokio::test]
async fn a_server_that_hangs_dies_or_gives_too_much_costs_its_hook_alone() {
    let start = "on_request_start";
    let hooks = json!([
        calls(start, "bad", "huge", 30),
        calls(start, "other", "gone", 30),
        calls(start, "bad", "hang", 1),
        calls(start, "other", "well", 30),
    ]);
    let (_folder, app) = bad_app(&hooks, vec![said("Hm.")]);
    let (began, before) = (Instant::now(), peak_kb());
    let (status, messages) = ask(&app, "Hello").await;
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    took_at_most(100, before);
    let failed = "The tool failed and gave no result. Go on without it.";
    assert_eq!(
        (status, contents(&messages)),
        (RequestStatus::Completed, vec!["Hello", "", failed, "", failed, "", "well", "Hm."]),
        "what is too much and what died are told, what hangs is skipped"
    );
}

#[tokio::test]
async fn a_very_long_conversation_is_answered() {
    let turn = |index: usize| {
        let answer = json!({"role": "assistant", "content": format!("answer {index} {}", "y".repeat(200))});
        [user(&format!("question {index}")), Arc::new(answer.as_object().unwrap().clone())]
    };
    let mut messages: Vec<_> = (0..20_000).flat_map(turn).collect();
    messages.push(user(&"z".repeat(500_000)));
    messages.push(user("And now?"));
    let slow = |arguments: Value| {
        let mut hook = recall(&arguments);
        hook["timeout_seconds"] = json!(30);
        hook
    };
    let hooks = json!([
        slow(json!({"query": {"$eval": "messages"}})),
        slow(json!({"query": "${len(messages)} ${last_user_message.content} ${len(messages[-2].content)}"})),
        slow(json!({"query": "${last_user_message.content}"})),
        slow(json!({"query": "tea"})),
    ]);
    let (_folder, app) = app(&hooks, &[], vec![said("Hm.")]);
    let (start, before) = (Instant::now(), peak_kb());
    let events = events_of(&app, messages.clone()).await;
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    took_at_most(400, before);
    let ran: Vec<_> = ran(&events).into_iter().map(|(_, ran)| ran).collect();
    assert_eq!(ran, [false, true, true, true], "all of it is more than a tool takes, a part of it is not");
    let Some(RequestEvent::Finished { status, messages: given }) = events.last() else { panic!("it ends") };
    assert_eq!((*status, given.len()), (RequestStatus::Completed, messages.len() + 7));
    let shown: Vec<_> = [1, 3, 5].map(|at| &given[at]["tool_calls"][0]["function"]["arguments"]).into();
    assert_eq!(
        shown,
        [r#"{"query":"40002 And now? 500000"}"#, r#"{"query":"And now?"}"#, r#"{"query":"tea"}"#],
        "each pair behind the first message, in the manifest's order"
    );
    assert_eq!(given[given.len() - 1]["content"], "Hm.");
}

#[tokio::test]
async fn the_log_names_the_place_in_a_template_and_says_none_of_the_words() {
    let hooks = json!([recall(&json!({"query": "${last_user_message.content} ${messages[0].tool_calls[0].name}"}))]);
    let (folder, app) = app(&hooks, &[], vec![said("Hm.")]);
    let path = folder.path().join("log");
    let log = tracing_subscriber::fmt().with_writer(Arc::new(std::fs::File::create(&path).unwrap())).with_ansi(false);
    let log = log.with_max_level(tracing::Level::DEBUG).finish();
    let (status, messages) = ask(&app, "find cats").with_subscriber(log).await;
    assert_eq!((status, contents(&messages)), (RequestStatus::Completed, vec!["find cats", "Hm."]));
    let heard = std::fs::read_to_string(path).unwrap();
    let told = "Hook `recall` skipped (event=on_request_start): at template.query: index out of bounds";
    assert!(heard.contains(told) && !heard.contains("find cats"), "{heard}");
}

/// A server that gets another tool when it is asked to, and counts its calls.
const GROWING_SERVER: &str = r#"
import json, sys

tools, count = ["grow", "look"], 0

def tell(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def answer(method, given):
    global count
    if method == "initialize":
        return {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "s", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
    if method == "tools/call":
        count += 1
        if given["name"] == "grow":
            tools.append("later")
            tell({"method": "notifications/tools/list_changed"})
        return {"content": [{"type": "text", "text": f"call {count}"}]}
    return {}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        tell({"id": message["id"], "result": answer(message["method"], message.get("params") or {})})
"#;

/// An app of that server as the sets `free` and `pinned`, of which the second may have two tools.
fn growing_app(hooks: &Value) -> (tempfile::TempDir, QuickApp) {
    let set =
        |name: &str| json!({"type": "mcp", "name": name, "mcp_server_info": {"command": ["python3", "server.py"]}});
    let mut pinned = set("pinned");
    pinned["allowed_tools"] = json!(["grow", "look"]);
    pinned["hidden_from_model"] = json!(["grow"]);
    let mut free = set("free");
    free["hidden_from_model"] = json!(["grow"]);
    let manifest = json!({"tool_sets": [free, pinned], "hooks": hooks}).to_string();
    crate::quickapps::load(
        &[("app.json", manifest.as_str()), ("server.py", GROWING_SERVER)],
        vec![crate::scene::call("free_look", json!({})), said("Hm."), said("Hm.")],
    )
}

fn offered(app: &QuickApp) -> Vec<String> {
    app.tools().iter().map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn a_tool_that_a_server_adds_later_is_offered_unless_the_allowed_tools_pin_the_set() {
    let hooks = json!([calls("on_completion", "free", "grow", 9), calls("on_completion", "pinned", "grow", 9)]);
    let (_folder, app) = growing_app(&hooks);
    assert_eq!(offered(&app), ["free_look", "pinned_look"]);
    ask(&app, "Hello").await;
    let start = Instant::now();
    while offered(&app).len() < 3 && start.elapsed() < Duration::from_secs(10) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(offered(&app), ["free_look", "free_later", "pinned_look"]);
}

#[tokio::test]
async fn completion_hooks_speak_to_servers_in_the_session_of_their_request_and_of_the_next() {
    let mut recalls = calls("on_request_start", "free", "look", 9);
    recalls["frequency"] = json!("always");
    let (_folder, app) = growing_app(&json!([recalls, calls("on_completion", "free", "look", 9)]));
    let (_, first) = ask(&app, "Hello").await;
    assert_eq!(contents(&first), ["Hello", "", "call 1", "", "call 2", "Hm."], "the hook's call, then the model's");
    let (_, second) = ask(&app, "Hello").await;
    assert_eq!(contents(&second), ["Hello", "", "call 4", "Hm."], "the third was the completion hook's");
}
