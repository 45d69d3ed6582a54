//! Whole manifests: what they are read as, how large they may be, and that nothing is lost on any way by which they are read.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::testing::{manifest, mcp, read, told, yaml};
use super::{Manifest, load_manifest};
use crate::agent::check_path;
use crate::agent::config::model::ModelConfig;
use crate::agent::config::servers::{Authorization, Reached, ServerConfig};
use crate::agent::config::testing::changed;
use crate::agent::config::variables::Secret;
use crate::check::CheckSettings;
use crate::quickapp::{
    App, AppHook, FallbackConfiguration, Frequency, HookEvent, Strategy as Fallback, ToolSet, ToolSetKind,
};

const GOOD: &str = r#"{
  "$schema": "https://example.org/quickapp.json",
  "name": "Desk",
  "system_prompt": "You help \ud83d\ude00.",
  "model": {"provider": "self-hosted", "model": "qwen", "api_base": "http://${HOST}:1/v1", "api_key": "${KEY}", "temperature": 0},
  "max_iterations": 4,
  "tool_sets": [
    {"type": "mcp", "name": "notes",
     "mcp_server_info": {"url": "https://${HOST}/mcp", "authorization": {"type": "bearer", "token": "${KEY}"}, "protocol": "streamable_http"},
     "tool_timeout": 2.5, "allowed_tools": ["find", "keep", "drop"], "hidden_from_model": ["keep"],
     "fallback_configuration": {"strategies": [{"type": "stop"}], "display_error_in_stage": false}},
    {"type": "mcp", "name": "files", "mcp_server_info": {"command": "serve", "args": ["-x"], "env": {"T": "${KEY}"}, "cwd": "data"}},
    {"type": "internal", "name": "own", "tools": ["clock"]}
  ],
  "hooks": [
    {"kind": "tool_call", "event": "on_request_start", "name": "recall", "toolset_name": "notes", "tool_name": "find",
     "arguments": {"about": "${last_user_message.content}", "most": 9007199254740993}},
    {"kind": "tool_call", "event": "on_request_start", "tool_name": "clock", "timeout_seconds": 0.5, "frequency": "always",
     "refresh_condition": {"kind": "ttl", "ttl_minutes": 10}, "arguments": {"zone": "$${x}"}},
    {"kind": "tool_call", "event": "on_completion", "toolset_name": "notes", "tool_name": "keep"}
  ]
}"#;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn tool_sets() -> Vec<ToolSet> {
    let fallback =
        FallbackConfiguration { strategies: vec![Fallback::Stop { trigger_on: None }], display_error_in_stage: false };
    let of = |name: &str, kind| ToolSet {
        name: name.to_owned(),
        kind,
        allowed_tools: None,
        hidden_from_model: vec![],
        fallback: FallbackConfiguration::default(),
    };
    vec![
        ToolSet {
            allowed_tools: Some(texts(&["find", "keep", "drop"])),
            hidden_from_model: texts(&["keep"]),
            fallback,
            ..of("notes", ToolSetKind::Mcp)
        },
        of("files", ToolSetKind::Mcp),
        of("own", ToolSetKind::Internal(texts(&["clock"]))),
    ]
}

fn hooks() -> Vec<AppHook> {
    let of = |name: Option<&str>, event, set: Option<&str>, tool: &str, arguments, seconds| AppHook {
        name: name.map(str::to_owned),
        event,
        toolset_name: set.map(str::to_owned),
        tool_name: tool.to_owned(),
        is_template: arguments != json!({}),
        arguments: serde_json::from_value(arguments).unwrap(),
        timeout: Duration::from_secs_f64(seconds),
    };
    let start = |frequency, ttl_minutes| HookEvent::RequestStart { frequency, ttl_minutes };
    let about = json!({"about": "${last_user_message.content}", "most": 9_007_199_254_740_993_u64});
    vec![
        of(Some("recall"), start(Frequency::AppendIfChanged, None), Some("notes"), "find", about, 15.0),
        of(None, start(Frequency::Always, Some(10)), None, "clock", json!({"zone": "$${x}"}), 0.5),
        of(None, HookEvent::Completion, Some("notes"), "keep", json!({}), 30.0),
    ]
}

#[test]
fn a_manifest_is_read_as_it_is_written() {
    let (read, found) = manifest(GOOD);
    assert_eq!(found, Vec::<String>::new());
    let Manifest { app, model, servers, rest, deployments } = read.unwrap();
    assert_eq!((rest, deployments), (vec![], vec![]));
    let expected = App {
        name: "Desk".to_owned(),
        system_prompt: Some("You help 😀.".to_owned()),
        max_iterations: 4,
        tool_sets: tool_sets(),
        hooks: hooks(),
    };
    assert_eq!(app, expected);
    let secret = || Secret::new("k-123".to_owned());
    let Some(ModelConfig::Served(model)) = model else { panic!() };
    assert_eq!(
        (&*model.api_base, model.api_key, model.passed_on.len()),
        ("http://models.local:1/v1", Some(secret()), 1)
    );
    let server = |name: &str, reached, seconds: Option<f64>, hidden| ServerConfig {
        name: name.to_owned(),
        reached,
        tool_timeout: seconds.map(Duration::from_secs_f64),
        hidden,
    };
    let notes = Reached::Http {
        url: "https://models.local/mcp".into(),
        authorization: Some(Authorization::Bearer(secret())),
        sse: false,
    };
    let files = Reached::Program {
        command: texts(&["serve", "-x"]),
        env: vec![("T".to_owned(), secret())],
        folder: "data".into(),
    };
    assert_eq!(
        servers,
        [
            server("notes", notes, Some(2.5), vec![Secret::new("models.local".to_owned())]),
            server("files", files, None, vec![]),
        ]
    );
}

/// The two examples of the Hooks document, the second with the type of tool set that speaks to a server directly.
#[test]
fn the_documents_examples_are_read() {
    let example = r#"{
      "tool_sets": [
        {"type": "mcp", "name": "memory_server", "mcp_server_info": {"command": "serve"}},
        {"type": "mcp", "name": "AppMemory", "mcp_server_info": {"command": "serve"},
         "allowed_tools": ["prime_memories", "save_memory", "search_memories"], "hidden_from_model": ["prime_memories", "save_memory"]}
      ],
      "hooks": [
        {"kind": "tool_call", "event": "on_request_start", "name": "recall-memory", "toolset_name": "memory_server",
         "tool_name": "search_memories", "arguments": { "query": "${last_user_message.content}" }},
        {"kind": "tool_call", "event": "on_completion", "name": "save-memory", "toolset_name": "memory_server",
         "tool_name": "save_memory", "timeout_seconds": 20,
         "arguments": {"user_message": { "$eval": "last_user_message.content" }, "assistant_message": { "$eval": "last_assistant_message.content" }}},
        { "kind": "tool_call", "event": "on_request_start", "toolset_name": "AppMemory", "tool_name": "prime_memories" },
        { "kind": "tool_call", "event": "on_completion", "toolset_name": "AppMemory", "tool_name": "save_memory",
          "arguments": { "user_message": { "$eval": "last_user_message.content" } } }
      ]
    }"#;
    let (read, found) = manifest(example);
    assert_eq!(found, Vec::<String>::new());
    let hooks = read.unwrap().app.hooks;
    let shown: Vec<_> = hooks
        .iter()
        .map(|hook| (hook.label(), hook.function_name(), hook.timeout.as_secs(), hook.is_template))
        .collect();
    assert_eq!(
        shown,
        [
            ("recall-memory", "memory_server_search_memories".to_owned(), 15, true),
            ("save-memory", "memory_server_save_memory".to_owned(), 20, true),
            ("prime_memories", "AppMemory_prime_memories".to_owned(), 15, false),
            ("save_memory", "AppMemory_save_memory".to_owned(), 30, true),
        ]
    );
}

#[test]
fn what_is_not_said_has_defaults() {
    for (name, text) in [
        ("folder/help.desk.json", "{}"),
        ("help.desk.json", r#"{"hooks": null}"#),
        ("help.desk.json", r#"{"hooks": []}"#),
        ("help.desk.yml", "name: ~\nhooks:\ntool_sets: []\n"),
    ] {
        let (read, found) = read(name, text.as_bytes(), None, None);
        assert_eq!(found, Vec::<String>::new());
        let app = App {
            name: "help.desk".to_owned(),
            system_prompt: None,
            max_iterations: 10,
            tool_sets: vec![],
            hooks: vec![],
        };
        assert_eq!(read, Some(Manifest { app, model: None, servers: vec![], rest: vec![], deployments: vec![] }));
    }
}

#[test]
fn what_is_wrong_at_the_top_is_told() {
    let text = "{\n \"nam\": 1,\n \"max_iterations\": 0,\n \"system_prompt\": {\"a\": 1},\n \"model\": {\"provider\": \"opnai\", \
                \"model\": \"x\"},\n \"hooks\": {},\n \"tool_sets\": [1],\n \"persona\": 1,\n \"hidden_from_model\": []\n}";
    assert_eq!(
        told(text),
        [
            "app.json:2:2: warning[unknown-key]: `nam` has no effect: there is no such key\n  hint: did you mean `name`?",
            "app.json:3:20: error[invalid-value]: `max_iterations` is 0, not from 1 to 1000",
            "app.json:4:19: error[wrong-type]: `system_prompt` is a mapping, expected a text",
            "app.json:5:24: error[unsupported-provider]: The provider `opnai` is not supported without `api_base`\n  hint: did you \
             mean `openai`?",
            "app.json:6:11: error[wrong-type]: `hooks` is a mapping, expected a list of hooks\n  hint: put it in `[` and `]`",
            "app.json:7:16: error[wrong-type]: `tool_sets[0]` is a number, expected a mapping",
            "app.json:8:2: warning[unknown-key]: `persona` has no effect: there is no such key\n  hint: the keys here are `$schema`, \
             `name`, `system_prompt`, `model`, `max_iterations`, `tool_sets`, `hooks`, `dial_url`, `dial_api_key_env`",
            "app.json:9:2: warning[misplaced-key]: `hidden_from_model` has no effect: `hidden_from_model` belongs elsewhere\n  hint: \
             move it to `tool_sets[type=mcp]`",
        ]
    );
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    for (name, text, expected) in [
        ("a.json", &b""[..], "a.json: error[missing-key]: The file is empty"),
        ("a.yml", b"# none\n", "a.yml: error[missing-key]: The file is empty"),
        ("a.json", b"[]", "a.json:1:1: error[wrong-type]: `a.json` is a list, expected a mapping"),
        (
            "a.json",
            b"{\"name\": \"x\"\n \"hooks\": []}",
            "a.json:2:2: error[invalid-json]: This is no JSON: `\"` stands where `,` or `}` is expected",
        ),
        (
            "a.JSON",
            b"{\"hooks\": [], \"hooks\": []}",
            "a.JSON:1:15: error[duplicate-key]: The key `hooks` is there twice\n  hint: keep one of the two",
        ),
        (
            "a.json",
            b"{\"name\":\n\"\xff\"}",
            "a.json:2:1: error[invalid-json]: This is no UTF-8\n  hint: save the file as UTF-8",
        ),
        (
            "a.yaml",
            b"name: a: b",
            "a.yaml:1:8: error[invalid-yaml]: This is no YAML: mapping values are not allowed in this context\n  hint: put the text in \
             quotes: `: ` within it begins a value",
        ),
    ] {
        let (read, found) = read(name, text, None, None);
        assert_eq!((read, found), (None, vec![expected.to_owned()]));
    }
    let (_, found) = read("a.json", &vec![b' '; (1 << 20) + 1], None, None);
    assert_eq!(found, ["a.json: error[invalid-json]: The file is larger than 1 MiB"]);
    let error = load_manifest(Path::new("no/such.json"), &|_| None, None).unwrap_err();
    assert_eq!(error.to_string(), "`no/such.json` cannot be read: No such file or directory (os error 2)");
}

#[test]
fn a_manifest_with_an_error_is_none() {
    let wrong = GOOD.replace("\"max_iterations\": 4", "\"max_iterations\": 1001");
    let (read, found) = manifest(&wrong);
    assert_eq!((read, found.len()), (None, 1));
    // With a warning it is one.
    let (read, found) = manifest(&GOOD.replace("\"max_iterations\"", "\"max_iteration\""));
    assert_eq!((read.map(|read| read.app.max_iterations), found.len()), (Some(10), 1));
}

#[test]
fn a_check_reads_the_file_that_is_given_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let path = root.join("app.json");
    let tools = "from rasa.mantle.tools.decorator import tool\n\n\n@tool(description='Tell')\nasync def clock():\n    return 1\n";
    fs::write(root.join("tools.py"), tools).unwrap();
    fs::write(root.join("hooks.py"), "this is no Python").unwrap();
    fs::write(&path, GOOD).unwrap();
    let check = || {
        let found = check_path(&path, &CheckSettings::default(), None).unwrap();
        found.iter().map(|told| told.to_string().replace(&format!("{}/", root.display()), "")).collect::<Vec<_>>()
    };
    // `HOST` and `KEY` are not set here.
    assert_eq!(check(), Vec::<String>::new());
    fs::write(&path, GOOD.replace("\"clock\"", "\"clok\"")).unwrap();
    assert_eq!(
        check(),
        ["app.json:13:51: error[unknown-tool]: `clok` is no tool beside the manifest\n  hint: did you mean `clock`?"]
    );
    fs::write(root.join("tools.py"), "from elsewhere import *\n").unwrap();
    assert_eq!(check(), Vec::<String>::new());
    fs::remove_file(&path).unwrap();
    let error = check_path(&path, &CheckSettings::default(), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`{}` cannot be read: No such file or directory (os error 2)", path.display())
    );
}

#[test]
fn size_is_bounded() {
    let hook = |index: usize| json!({"kind": "tool_call", "event": "on_completion", "tool_name": format!("t{index}"), "arguments": {"a": "x".repeat(800)}});
    let with = |count: usize| {
        let hooks: Vec<_> = (0..count).map(hook).collect();
        let names: Vec<_> = (0..count).map(|index| format!("t{index}")).collect();
        json!({"hooks": hooks, "tool_sets": [{"type": "internal", "name": "own", "tools": names}]}).to_string()
    };
    let (read, found) = manifest(&with(1_000));
    assert_eq!((read.map(|read| read.app.hooks.len()), found), (Some(1_000), vec![]));
    let found = told(&with(1_001));
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with("error[invalid-value]: There are 1001 hooks, more than 1000"), "{found:?}");
    let sets: Vec<_> = (0..101).map(|index| mcp(&index.to_string())).collect();
    let found = told(&json!({"tool_sets": sets}).to_string());
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with("error[invalid-value]: There are 101 tool sets, more than 100"), "{found:?}");
    let nested = format!("{{\"hooks\": [{{\"arguments\": {{\"a\": {}{}}}}}]}}", "[".repeat(500), "]".repeat(500));
    assert_eq!(told(&nested), ["app.json:1:93: error[invalid-json]: Values are nested deeper than 64 levels"]);
}

#[test]
fn a_megabyte_of_mistakes_takes_no_long_time() {
    let names = |what: &str, count: usize| (0..count).map(|index| format!("{what}_{index}")).collect::<Vec<_>>();
    let mut keys = String::from("{\"x\": 1");
    for key in names("hooks", 60_000) {
        write!(keys, ",\"{key}\":1").unwrap();
    }
    let hooks: Vec<_> = (0..1_000)
        .map(|index| json!({"kind": "tool_call", "event": "on_completion", "toolset_name": "a", "tool_name": format!("tol_{index}")}))
        .collect();
    let mut set = mcp("a");
    set["allowed_tools"] = json!(names("tool", 40_000));
    set["hidden_from_model"] = json!(names("hidden", 10_000));
    for text in [
        format!("{keys}}}"),
        format!("{{\"model\":{keys}}},\"tool_sets\":{}}}", json!(names("set", 1_000))),
        json!({"hooks": hooks, "tool_sets": [set]}).to_string(),
    ] {
        assert!(text.len() < 1 << 20);
        let start = std::time::Instant::now();
        assert!(told(&text).len() >= 100);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        told(&text);
        yaml(&text);
    }

    #[test]
    fn no_change_of_a_good_manifest_makes_it_panic(
        changes in prop::collection::vec((any::<Index>(), 0..6_usize, "[\\[\\]{}:,\"\\\\0.$-]{0,3}"), 1..6),
    ) {
        let text = changed(GOOD, changes);
        let (json, found) = manifest(&text);
        prop_assert!(json.is_some() || !found.is_empty());
        yaml(&text);
    }

    /// Values that no key expects, at any place.
    #[test]
    fn no_value_in_a_place_of_another_makes_it_panic(
        which in any::<Index>(),
        value in prop::sample::select(vec![json!(null), json!([]), json!({}), json!("x"), json!(-1), json!(1.5), json!(true), json!([[]])]),
    ) {
        let mut root: Value = serde_json::from_str(GOOD).unwrap();
        let mut places = vec![];
        paths(&root, "", &mut places);
        *root.pointer_mut(which.get::<String>(&places)).unwrap() = value;
        told(&root.to_string());
    }
}

/// The pointers of all values below one.
fn paths(value: &Value, above: &str, found: &mut Vec<String>) {
    let mut below = |key: &str, value: &Value| {
        let path = format!("{above}/{key}");
        paths(value, &path, found);
        found.push(path);
    };
    match value {
        Value::Object(entries) => entries.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| below(&index.to_string(), value)),
        _ => {}
    }
}
