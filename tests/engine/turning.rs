//! Whole agents: their files become a turn engine, their tools run on the lane of their hooks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook::{
    ConversationStore, Error, Event, HookEngine, LoadedAgent, Model, ModelError, ModelReply, ModelRequest, Object,
    RequestedCall, SqliteStore, Tokens, TurnEngine, TurnEvent, TurnInput,
};

use crate::agents::{environment, folder};
use crate::command::tenterhook;

/// Asks for one tool, then says what came of it.
struct Calls {
    tool: &'static str,
    arguments: Value,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Model for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.requests.lock().unwrap().push(request.clone());
        let result = request.messages.iter().rfind(|message| message["role"] == "tool");
        let last = result.map(|message| message["content"].as_str().unwrap().to_owned());
        let arguments = if let Value::Object(arguments) = &self.arguments { arguments.clone() } else { Object::new() };
        let call = RequestedCall { id: Some("c1".into()), tool_name: self.tool.into(), arguments: Ok(arguments) };
        Box::pin(async move {
            Ok(match last {
                Some(result) => ModelReply::text(result),
                None => ModelReply { calls: vec![call], ..ModelReply::default() },
            })
        })
    }
}

struct Scene {
    agent: LoadedAgent,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    _folder: tempfile::TempDir,
}

/// An agent with these tools, whose model calls one of them.
fn scene(files: &[(&str, &str)], tool: &'static str, arguments: Value) -> Scene {
    let folder = folder(files);
    let requests = Arc::default();
    let model = Calls { tool, arguments, requests: Arc::clone(&requests) };
    let hooks = HookEngine::builder(folder.path()).python(environment());
    let agent =
        TurnEngine::loader(folder.path()).hooks(hooks).model(model).load().unwrap_or_else(|error| panic!("{error}"));
    Scene { agent, requests, _folder: folder }
}

impl Scene {
    async fn heard(&self) -> Vec<String> {
        let events: Vec<_> = self.agent.engine.turn(TurnInput::new("s", "hello")).collect().await;
        events
            .into_iter()
            .filter_map(|event| match event {
                TurnEvent::Message { text, .. } => Some(text),
                _ => None,
            })
            .collect()
    }
}

const TOOLS: &str = "
from __future__ import annotations
import asyncio, functools, time
from enum import Enum
from typing import Literal, Optional
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult
from rasa.mantle.orchestration.turn_context import current_turn_context
from lib.state import SEEN

class Size(Enum):
    SMALL = 'small'
    LARGE = 'large'

@tool(description='Adds numbers')
async def add(a: int, b: float = 0.5, size: Size = Size.SMALL, kind: Literal['x', 'y'] = 'x', note: Optional[str] = None,
              context: ToolContext = None) -> ToolResult:
    return ToolResult(llm_response={'sum': a + b, 'size': size.value, 'who': context.sender_id})

@tool(description='Fails')
async def fail() -> ToolResult:
    raise ValueError('SECRET')

@tool(description='Says something')
async def tell(context: ToolContext) -> ToolResult:
    await context.send('one')
    await context.send('two')
    return ToolResult(llm_response='told')

@tool(description='Sleeps')
async def slow() -> ToolResult:
    await asyncio.sleep(60)

@tool(description='Blocks')
async def block() -> ToolResult:
    while True:
        pass

@tool(description='Knows its turn and shares lib with the hooks')
async def who() -> ToolResult:
    return ToolResult(llm_response=[current_turn_context().sender_id, current_turn_context().is_cancelled, SEEN])

def logged(function):
    @functools.wraps(function)
    async def inner(*args, context=None, **kwargs):
        return await function(*args, context=context, **kwargs)
    return inner

@tool(description='Wrapped')
@logged
async def wrapped(n: int, context: ToolContext = None) -> ToolResult:
    return ToolResult(llm_response=n)
";

const HOOKS: &str = "
from rasa.mantle.hooks import *
from lib.state import SEEN

@modify_incoming_message()
async def note(message: IncomingMessagePayload) -> IncomingMessagePayload:
    SEEN.append(message.text)
    return message
";

fn tools(tool: &'static str, arguments: Value) -> Scene {
    scene(
        &[
            ("tools.py", TOOLS),
            ("hooks.py", HOOKS),
            ("lib/state.py", "SEEN = []\n"),
            ("agent.yml", "agent:\n  persona: x\ntool_timeout: 1\n"),
        ],
        tool,
        arguments,
    )
}

#[tokio::test]
async fn the_signature_is_the_schema_and_arguments_are_coerced_by_it() {
    let scene = tools("add", json!({"a": "2"}));
    assert_eq!(scene.heard().await, [r#"{"sum":2.5,"size":"small","who":"s"}"#]);
    let offered = scene.requests.lock().unwrap()[0].tools.clone();
    let add = offered.iter().find(|spec| spec.name == "add").unwrap();
    assert_eq!(add.description, "Adds numbers");
    assert_eq!(
        json!(add.parameters),
        json!({
            "$defs": {"Size": {"enum": ["small", "large"], "type": "string"}},
            "additionalProperties": false,
            "properties": {
                "a": {"type": "integer"},
                "b": {"default": 0.5, "type": "number"},
                "size": {"$ref": "#/$defs/Size", "default": "small"},
                "kind": {"default": "x", "enum": ["x", "y"], "type": "string"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
            },
            "required": ["a"],
            "type": "object",
        })
    );
    let wrapped = offered.iter().find(|spec| spec.name == "wrapped").unwrap();
    assert_eq!(wrapped.parameters["properties"], json!({"n": {"type": "integer"}}), "`functools.wraps` is followed");
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_to_the_model_by_their_names() {
    let heard = tools("add", json!({"a": "two", "c": 1})).heard().await;
    assert_eq!(
        heard,
        [
            "The arguments do not fit: `a`: Input should be a valid integer, unable to parse string as an integer; `c`: Extra inputs are not permitted"
        ]
    );
}

#[tokio::test]
async fn a_tool_that_raises_fails_and_its_words_are_for_the_log() {
    assert_eq!(tools("fail", json!({})).heard().await, ["`fail` failed"]);
}

#[tokio::test]
async fn what_a_tool_says_is_heard_before_its_result() {
    assert_eq!(tools("tell", json!({})).heard().await, ["one", "two", "told"]);
}

#[tokio::test]
async fn a_tool_streams_texts_sets_buttons_and_sees_what_has_happened() {
    let source = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Talks')
async def talk(context: ToolContext = None) -> ToolResult:
    async with context.stream(metadata={'pace': 'slow'}) as text:
        await text.write('piece ')
        await text.write('by piece')
        text.set_buttons([{'title': 'Yes', 'payload': '/yes'}])
    await context.send('whole', buttons=[{'title': 'No', 'payload': '/no'}])
    context.set_buttons([{'title': 'Next', 'payload': '/next'}])
    # What it says itself is on its way, and may be among them already.
    seen = [(type(event).__name__, event.text) for event in context.events[:1]]
    return ToolResult(llm_response={'seen': seen, 'model': context.model})
";
    let scene = scene(&[("tools.py", source)], "talk", json!({}));
    let events: Vec<_> = scene.agent.engine.turn(TurnInput::new("s", "hello")).collect().await;
    let shown: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, TurnEvent::Token { .. } | TurnEvent::Message { .. }))
        .map(|event| json!(event))
        .collect();
    let button = |title: &str, payload: &str| json!([{"title": title, "payload": payload}]);
    let seen = r#"{"seen":[["UserUttered","hello"]],"model":"calls"}"#;
    let message = |text: &str, buttons: Value, streamed: bool| json!({"event": "message", "text": text, "response": null, "buttons": buttons, "streamed": streamed});
    let mut streamed = message("piece by piece", button("Yes", "/yes"), true);
    streamed["metadata"] = json!({"pace": "slow"});
    let expected = [
        json!({"event": "token", "text": "piece "}),
        json!({"event": "token", "text": "by piece"}),
        streamed,
        message("whole", button("No", "/no"), false),
        message(seen, button("Next", "/next"), false),
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_tool_that_takes_too_long_or_blocks_is_given_up_and_the_next_turn_goes_on() {
    let scene = tools("slow", json!({}));
    assert_eq!(scene.heard().await, ["`slow` was not done after 1000 ms"]);
    let scene = tools("block", json!({}));
    assert_eq!(scene.heard().await, ["`block` was not done after 1000 ms"]);
    let hooks = scene.agent.hooks.as_ref().unwrap();
    let start = std::time::Instant::now();
    while hooks.health().stuck > 0 {
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", hooks.health());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn tools_know_their_turn_and_share_modules_with_the_hooks() {
    assert_eq!(tools("who", json!({})).heard().await, [r#"["s",false,["hello"]]"#]);
}

#[test]
fn a_tool_that_is_none_refuses_the_load() {
    for (source, expected) in [
        (
            "from rasa.mantle.tools.decorator import tool\n@tool\nasync def f(): pass\n",
            "A tool needs a description: write `@tool(description=\"...\")`",
        ),
        (
            "from rasa.mantle.tools.decorator import tool\n@tool(description='x')\ndef f(): pass\n",
            "The tool `f` is not async\n  hint: make it `async def`",
        ),
    ] {
        let folder = folder(&[("tools.py", source), ("agent.yml", "agent: {persona: x}\n")]);
        let hooks = HookEngine::builder(folder.path()).python(environment());
        let model = Calls { tool: "f", arguments: json!({}), requests: Arc::default() };
        let error = TurnEngine::loader(folder.path()).hooks(hooks).model(model).load().unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn what_is_wrong_in_the_configuration_is_told_with_its_place() {
    let folder = folder(&[("agent.yml", "agent:\n  persona: x\ntool_timeout: ten\n")]);
    let error = TurnEngine::load(folder.path()).unwrap_err().to_string();
    assert!(error.contains("agent.yml:3:15: error[wrong-type]"), "{error}");
    let folder = crate::agents::folder(&[("agent.yml", "agent:\n  persona: x\n")]);
    let error = TurnEngine::load(folder.path()).unwrap_err();
    assert!(matches!(error, Error::NoModel(_)), "{error}");
}

fn chat(arguments: &[&str], agent: &std::path::Path) -> (Option<i32>, String, String) {
    let done = tenterhook().arg("chat").arg(agent).args(arguments).output().unwrap();
    (done.status.code(), String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn the_agent_that_init_writes_answers_offline_and_remembers_in_its_store() {
    let home = tempfile::tempdir().unwrap();
    let agent = home.path().join("agent");
    let made = tenterhook().arg("init").arg(&agent).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let again = tenterhook().arg("init").arg(&agent).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "what is there is not overwritten");
    let store = home.path().join("talks.db");
    let (code, out, err) = chat(
        &[
            "--message",
            "Where is my parcel?",
            "--message",
            "my card is 4111 1111 1111 1111",
            "--store",
            store.to_str().unwrap(),
            "--trace",
        ],
        &agent,
    );
    assert_eq!(
        (code, out.as_str()),
        (
            Some(0),
            "Let me look.\nYour parcel 4711 is in Hamburg and comes tomorrow.\nPlease write to me without the number of your card.\n"
        ),
        "{err}"
    );
    assert!(err.contains("tool find_parcel returned after"), "{err}");
    let events = SqliteStore::open(&store).unwrap().events("terminal").unwrap();
    let executed: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolExecuted { tool_name, value, .. } => Some((tool_name.as_str(), value.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(executed, [("find_parcel", json!(r#"{"place":"Hamburg","arrives":"tomorrow"}"#))]);
    let checked = tenterhook().arg("check").arg(&agent).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

#[tokio::test]
async fn the_references_of_an_agent_are_searched_and_pass_its_hooks() {
    let hooks = "
from rasa.mantle.hooks import KnowledgeQueryPayload, KnowledgeResultsPayload, modify_knowledge_query, modify_knowledge_results

@modify_knowledge_query()
async def widen(payload: KnowledgeQueryPayload) -> KnowledgeQueryPayload:
    return payload.model_copy(update={'query': payload.query + ' fee'})

@modify_knowledge_results()
async def of_one_file(payload: KnowledgeResultsPayload) -> KnowledgeResultsPayload:
    kept = [passage for passage in payload.passages if passage['source'] == 'cards/fees.md']
    return payload.model_copy(update={'passages': kept})
";
    let files = [
        ("hooks.py", hooks),
        ("references/cards/fees.md", "# Fees\n\nA new card costs a fee of 5 euros.\n"),
        ("references/other.txt", "Every card has a number.\n"),
    ];
    let scene = scene(&files, "search_knowledge", json!({"query": "card"}));
    let heard = scene.heard().await;
    let found: Value = serde_json::from_str(&heard[0]).unwrap();
    let score = found["passages"][0]["score"].as_f64().unwrap();
    assert!(score > 0.0 && score < 1.0, "{score}");
    let expected = json!({"passages": [{
        "text": "# Fees\n\nA new card costs a fee of 5 euros.", "scope": "project", "source": "cards/fees.md", "score": score,
    }]});
    assert_eq!(found, expected);
    let offered: Vec<_> = scene.requests.lock().unwrap()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(offered, ["search_knowledge", "listen"]);
}

#[tokio::test]
async fn an_index_that_is_kept_is_below_the_agents_folder() {
    let folder = folder(&[("references/a.md", "A parcel costs 4.50.")]);
    let model = Calls { tool: "search_knowledge", arguments: json!({"query": "parcel"}), requests: Arc::default() };
    let agent = TurnEngine::loader(folder.path()).model(model).keep_index(true).load().unwrap();
    let events: Vec<_> = agent.engine.turn(TurnInput::new("s", "hello")).collect().await;
    assert!(events.iter().any(|event| matches!(event, TurnEvent::Message { text, .. } if text.contains("4.50"))));
    assert!(folder.path().join(".tenterhook/references.db").is_file());
}

#[tokio::test]
async fn a_recorded_model_answers_with_its_tools_in_the_place_of_the_agents_own() {
    let line = json!({"messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "recorded"},
        {"role": "assistant", "content": "It is recorded."},
    ]});
    let integrations =
        "llm: {model_group: main}\nmodel_groups: [{id: main, models: [{provider: recorded, recording: talk.jsonl}]}]\n";
    let folder = folder(&[("integrations.yml", integrations), ("talk.jsonl", &line.to_string())]);
    let agent = TurnEngine::load(folder.path()).unwrap();
    let events: Vec<_> = agent.engine.turn(TurnInput::new("s", "anything")).collect().await;
    assert!(events.iter().any(|event| matches!(event, TurnEvent::ToolReturned { is_error: false, .. })));
    assert!(events.iter().any(|event| matches!(event, TurnEvent::Message { text, .. } if text == "It is recorded.")));
}
