//! Requests with tools and templates that are plain Rust: what the document says of events, failures and hidden tools.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, pending};
use serde_json::{Value, json};

use super::*;
use crate::conversation::Object;
use crate::step::{Model, ModelError, ModelReply, ModelRequest, NoHooks, RequestedCall, Tokens};
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec};

type Log = Arc<Mutex<Vec<String>>>;

/// Gives its answers one after the other, and keeps what it was asked.
struct Answers(Mutex<VecDeque<ModelReply>>, Arc<Mutex<Vec<ModelRequest>>>, Log);

impl Model for Answers {
    fn name(&self) -> &'static str {
        "answers"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.1.lock().unwrap().push(request.clone());
        self.2.lock().unwrap().push("model".to_owned());
        let next = self.0.lock().unwrap().pop_front();
        Box::pin(async { next.ok_or_else(|| ModelError::Exhausted("there are no answers left".into())) })
    }
}

/// What a tool does.
#[derive(Clone)]
enum Does {
    /// Gives these results one after the other, the last of them again and again.
    Gives(Arc<Mutex<VecDeque<&'static str>>>),
    Fails(&'static str),
    Hangs,
}

struct Doing(Arc<ToolSpec>, Does, Log);

impl Tool for Doing {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn call(&self, arguments: Object, _: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        self.2.lock().unwrap().push(format!("{} {}", self.0.name, Value::Object(arguments)));
        match &self.1 {
            Does::Gives(results) => {
                let mut results = results.lock().unwrap();
                let next = if results.len() > 1 { results.pop_front() } else { results.front().copied() };
                Box::pin(async move { ToolOutput::of(next.unwrap_or_default()) })
            }
            Does::Fails(why) => Box::pin(async { ToolOutput::error(*why) }),
            Does::Hangs => Box::pin(pending()),
        }
    }
}

struct Source(AppTools);

impl ToolSource for Source {
    fn tools(&self) -> AppTools {
        self.0.clone()
    }
}

/// Puts the last user's words in the place of `${user}`, and fails without an answer where it is asked for one.
struct Simple;

impl Templates for Simple {
    fn render(&self, template: &Object, context: Object) -> BoxFuture<'_, Result<Object, String>> {
        let text = Value::Object(template.clone()).to_string();
        let rendered = if text.contains("${answer}") && context["last_assistant_message"].is_null() {
            Err("at template.q: there is no field 'content'".to_owned())
        } else {
            let user = context["last_user_message"]["content"].as_str().unwrap_or_default();
            let answer = context["last_assistant_message"]["content"].as_str().unwrap_or_default();
            let text = text.replace("${user}", user).replace("${answer}", answer);
            serde_json::from_str(&text).map_err(|error| error.to_string())
        };
        Box::pin(async { rendered })
    }
}

fn gives<const N: usize>(results: [&'static str; N]) -> Does {
    Does::Gives(Arc::new(Mutex::new(results.into())))
}

fn hook(event: HookEvent, tool: &str, arguments: &Value) -> AppHook {
    let is_template = arguments.to_string().contains("${");
    AppHook {
        name: None,
        event,
        toolset_name: Some("memory".into()),
        tool_name: tool.into(),
        arguments: arguments.as_object().unwrap().clone(),
        is_template,
        timeout: Duration::from_millis(200),
    }
}

const START: HookEvent = HookEvent::RequestStart { frequency: Frequency::AppendIfChanged, ttl_minutes: None };

struct Scene {
    app: QuickApp,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    log: Log,
}

fn scene(hooks: Vec<AppHook>, tools: &[(&str, Does)], hidden: &[&str], replies: Vec<ModelReply>) -> Scene {
    scene_with(FallbackConfiguration::default(), hooks, tools, hidden, replies)
}

fn scene_with(
    fallback: FallbackConfiguration,
    hooks: Vec<AppHook>,
    tools: &[(&str, Does)],
    hidden: &[&str],
    replies: Vec<ModelReply>,
) -> Scene {
    let (log, requests) = (Log::default(), Arc::default());
    let fallback = Arc::new(fallback);
    let mut of_app = AppTools::default();
    for (name, does) in tools {
        let spec = Arc::new(ToolSpec::new(function_name(Some("memory"), name), ""));
        let tool = Arc::new(Doing(Arc::clone(&spec), does.clone(), Arc::clone(&log)));
        let list = if hidden.contains(name) { &mut of_app.hidden } else { &mut of_app.visible };
        list.push(AppTool { spec, tool, fallback: Arc::clone(&fallback) });
    }
    let app = App {
        name: "app".into(),
        system_prompt: Some("Be brief.".into()),
        max_iterations: 4,
        tool_sets: vec![],
        hooks,
    };
    let model = Arc::new(Answers(Mutex::new(replies.into()), Arc::clone(&requests), Arc::clone(&log)));
    let app = QuickApp::new(Parts {
        app,
        model,
        source: Box::new(Source(of_app)),
        templates: Box::new(Simple),
        hooks: Arc::new(NoHooks),
        secret: b"secret".to_vec(),
    });
    Scene { app, requests, log }
}

/// What comes of a request.
struct Done {
    status: RequestStatus,
    said: Vec<String>,
    messages: Vec<Arc<Object>>,
}

impl Scene {
    async fn ask(&self, messages: &[Arc<Object>], text: &str) -> Done {
        self.ask_with(messages, text, vec![]).await
    }

    async fn ask_with(&self, messages: &[Arc<Object>], text: &str, client_tools: Vec<Arc<ToolSpec>>) -> Done {
        let user = crate::conversation::message("user", text);
        let messages = messages.iter().cloned().chain([user]).collect();
        let input = RequestInput { sender_id: "s".into(), messages, client_tools };
        let events: Vec<_> = self.app.request(input).collect().await;
        let said =
            |event: &RequestEvent| if let RequestEvent::Message { text } = event { Some(text.clone()) } else { None };
        let said = events.iter().filter_map(said).collect();
        let Some(RequestEvent::Finished { status, messages }) = events.last() else { panic!("a request ends") };
        Done { status: *status, said, messages: messages.clone() }
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

/// Messages in short: roles with what they say, call or give.
fn shown(messages: &[Arc<Object>]) -> Vec<String> {
    let of = |message: &Arc<Object>| {
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let called =
            calls.map(|calls| calls.iter().map(|call| format!(" {}", call["function"]["name"].as_str().unwrap())));
        let called: String = called.into_iter().flatten().collect();
        format!("{}: {}{called}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap())
    };
    messages.iter().map(of).collect()
}

fn said(text: &str) -> ModelReply {
    ModelReply::text(text)
}

fn call(tool: &str) -> ModelReply {
    let call = RequestedCall { id: Some("c1".into()), tool_name: tool.into(), arguments: Ok(Object::new()) };
    ModelReply { calls: vec![call], ..ModelReply::default() }
}

#[tokio::test]
async fn a_start_hooks_result_joins_the_conversation_before_the_model_is_asked() {
    let hooks = vec![hook(START, "recall", &json!({"query": "${user}"}))];
    let scene = scene(hooks, &[("recall", gives(["likes tea"]))], &[], vec![said("Tea?")]);
    let done = scene.ask(&[], "Hello").await;
    assert_eq!(scene.log(), [r#"memory_recall {"query":"Hello"}"#, "model"]);
    assert_eq!((done.status, done.said), (RequestStatus::Completed, vec!["Tea?".to_owned()]));
    assert_eq!(
        shown(&done.messages),
        ["user: Hello", "assistant:  memory_recall", "tool: likes tea", "assistant: Tea?"]
    );
    let asked = scene.requests.lock().unwrap()[0].clone();
    assert_eq!(shown(&asked.messages)[..2], ["system: Be brief.", "user: Hello"]);
    assert_eq!(asked.messages.len(), 4);
}

#[tokio::test]
async fn a_result_that_is_the_same_replaces_its_pair_and_another_is_added() {
    let hooks = vec![hook(START, "recall", &json!({}))];
    let scene = scene(hooks, &[("recall", gives(["one", "one", "two"]))], &[], vec![said("1"), said("2"), said("3")]);
    let first = scene.ask(&[], "a").await.messages;
    let second = scene.ask(&first, "b").await.messages;
    let third = scene.ask(&second, "c").await.messages;
    assert_eq!(
        shown(&third),
        [
            "user: a",
            "assistant:  memory_recall",
            "tool: one",
            "assistant: 1",
            "user: b",
            "assistant: 2",
            "user: c",
            "assistant:  memory_recall",
            "tool: two",
            "assistant: 3",
        ]
    );
}

#[tokio::test]
async fn a_result_with_a_time_to_live_is_not_asked_for_again_within_it() {
    let event = HookEvent::RequestStart { frequency: Frequency::AppendIfChanged, ttl_minutes: Some(5) };
    let scene =
        scene(vec![hook(event, "recall", &json!({}))], &[("recall", gives(["one"]))], &[], vec![said("1"), said("2")]);
    let first = scene.ask(&[], "a").await.messages;
    let second = scene.ask(&first, "b").await.messages;
    assert_eq!(scene.log(), ["memory_recall {}", "model", "model"]);
    assert_eq!(second.len(), first.len() + 2);
}

#[tokio::test]
async fn completion_hooks_run_in_order_after_the_answer_and_leave_nothing() {
    let arguments = json!({"user": "${user}", "answer": "${answer}"});
    let hooks = vec![
        hook(HookEvent::Completion, "save", &arguments),
        hook(HookEvent::Completion, "count", &json!({})),
        hook(START, "recall", &json!({})),
    ];
    let tools = [("save", gives(["saved"])), ("count", gives(["1"])), ("recall", gives(["nothing"]))];
    let scene = scene(hooks, &tools, &[], vec![said("Tea?")]);
    let done = scene.ask(&[], "Hello").await;
    let saved = r#"memory_save {"user":"Hello","answer":"Tea?"}"#;
    assert_eq!(scene.log(), ["memory_recall {}", "model", saved, "memory_count {}"]);
    assert_eq!(done.messages.len(), 4);
}

#[tokio::test]
async fn completion_hooks_do_not_run_where_calls_are_handed_to_the_client() {
    let hooks = vec![hook(HookEvent::Completion, "save", &json!({}))];
    let scene = scene(hooks, &[("save", gives(["saved"]))], &[], vec![call("pick_file")]);
    let done = scene.ask_with(&[], "Open it", vec![Arc::new(ToolSpec::new("pick_file", ""))]).await;
    assert_eq!(done.status, RequestStatus::ClientTools);
    assert_eq!(scene.log(), ["model"]);
    assert_eq!(shown(&done.messages), ["user: Open it", "assistant:  pick_file"]);
}

#[tokio::test]
async fn a_hook_that_cannot_be_rendered_hangs_or_names_no_tool_is_skipped() {
    let hooks = vec![
        hook(START, "recall", &json!({"q": "${answer}"})),
        hook(START, "hang", &json!({})),
        hook(START, "gone", &json!({})),
        hook(START, "recall", &json!({})),
    ];
    let scene = scene(hooks, &[("recall", gives(["here"])), ("hang", Does::Hangs)], &[], vec![said("Hm.")]);
    let start = Instant::now();
    let done = scene.ask(&[], "Hello").await;
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(scene.log(), ["memory_hang {}", "memory_recall {}", "model"]);
    assert_eq!(shown(&done.messages), ["user: Hello", "assistant:  memory_recall", "tool: here", "assistant: Hm."]);
}

#[tokio::test]
async fn a_failed_tool_is_what_its_sets_fallback_makes_of_it() {
    let with = |strategies: Value| FallbackConfiguration {
        strategies: serde_json::from_value(strategies).unwrap(),
        ..FallbackConfiguration::default()
    };
    let run = async |strategies: Value| {
        let hooks = vec![hook(START, "recall", &json!({}))];
        let tools = [("recall", Does::Fails("no disk"))];
        let scene = scene_with(with(strategies), hooks, &tools, &[], vec![call("memory_recall"), said("Hm.")]);
        let done = scene.ask(&[], "Hello").await;
        (done.status, shown(&done.messages))
    };
    let told = json!([{"type": "continue", "instructions": "Go on.", "forward_tool_error_message": false}]);
    let (status, messages) = run(told).await;
    assert_eq!(status, RequestStatus::Completed);
    assert_eq!(messages[2], "tool: Go on.");
    assert_eq!(messages[4], "tool: Go on.");
    let (status, messages) = run(json!([{"type": "stop"}])).await;
    assert_eq!(status, RequestStatus::Error, "the model's own call ends the request, the hook's does not");
    assert_eq!(messages, ["user: Hello", "assistant:  memory_recall", "tool: `memory_recall` failed"]);
}

#[tokio::test]
async fn a_hidden_tool_is_the_hooks_alone() {
    let hooks = vec![hook(HookEvent::Completion, "save", &json!({}))];
    let tools = [("save", gives(["saved"])), ("search", gives(["found"]))];
    let scene = scene(hooks, &tools, &["save"], vec![call("memory_save"), said("Well.")]);
    let done = scene.ask(&[], "Hello").await;
    let offered: Vec<_> = scene.requests.lock().unwrap()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(offered, ["memory_search"]);
    assert_eq!(
        scene.log(),
        ["model", "model", "memory_save {}"],
        "the model's own call runs nothing, the loop goes on"
    );
    assert_eq!(
        shown(&done.messages)[2],
        "tool: `memory_save` is called by the platform by itself, and not by you: nothing was done. Go on without it."
    );
    let taken = scene.ask_with(&[], "Hello", vec![Arc::new(ToolSpec::new("memory_save", ""))]).await;
    assert_eq!(taken.status, RequestStatus::Error, "a client's tool cannot take its name");
}

#[tokio::test]
async fn a_model_that_never_answers_ends_the_request() {
    let replies = (0..9).map(|_| call("memory_search")).collect();
    let scene =
        scene(vec![hook(HookEvent::Completion, "search", &json!({}))], &[("search", gives(["x"]))], &[], replies);
    let done = scene.ask(&[], "Hello").await;
    assert_eq!(done.status, RequestStatus::Error);
    assert_eq!(scene.log().iter().filter(|line| *line == "model").count(), 4, "and its completion hooks do not run");
}

#[tokio::test]
async fn a_request_that_is_dropped_ends_with_its_hooks() {
    let scene = scene(vec![hook(START, "hang", &json!({}))], &[("hang", Does::Hangs)], &[], vec![said("Hm.")]);
    let input =
        RequestInput { messages: vec![crate::conversation::message("user", "Hello")], ..RequestInput::default() };
    let mut request = scene.app.request(input);
    let first = tokio::time::timeout(Duration::from_millis(50), request.next()).await;
    assert!(first.is_err(), "{first:?}");
    drop(request);
    assert_eq!(scene.log(), ["memory_hang {}"]);
}

fn calls(calls: &[(&str, Result<Object, String>)]) -> ModelReply {
    let call = |(index, (tool, arguments)): (usize, &(&str, Result<Object, String>))| RequestedCall {
        id: Some(format!("c{index}")),
        tool_name: (*tool).into(),
        arguments: arguments.clone(),
    };
    ModelReply { calls: calls.iter().enumerate().map(call).collect(), ..ModelReply::default() }
}

#[tokio::test]
async fn a_call_for_the_client_whose_arguments_are_broken_is_not_handed_over() {
    let broken = calls(&[("pick_file", Err("{\"kind\": ".into()))]);
    let scene = scene(vec![], &[], &[], vec![broken, said("Which one?")]);
    let done = scene.ask_with(&[], "Open it", vec![Arc::new(ToolSpec::new("pick_file", ""))]).await;
    assert_eq!(done.status, RequestStatus::Completed);
    assert_eq!(shown(&done.messages)[2], "tool: The arguments are no JSON object");
}

#[tokio::test]
async fn a_request_that_a_tool_set_ends_leaves_no_call_without_an_answer() {
    let stop = serde_json::from_value(json!({"strategies": [{"type": "stop"}]})).unwrap();
    let both = calls(&[("pick_file", Ok(Object::new())), ("memory_recall", Ok(Object::new()))]);
    let scene = scene_with(stop, vec![], &[("recall", Does::Fails("no disk"))], &[], vec![both]);
    let done = scene.ask_with(&[], "Open it", vec![Arc::new(ToolSpec::new("pick_file", ""))]).await;
    assert_eq!(done.status, RequestStatus::Error);
    let ids: Vec<_> = done.messages.iter().filter_map(|message| message.get("tool_call_id")).collect();
    assert_eq!(ids, ["c1", "c0"]);
}

#[tokio::test]
async fn only_the_text_of_a_message_is_what_a_hook_makes_of_it() {
    let parts = json!([{"type": "text", "text": "my card"}, {"type": "image_url"}, {"text": "4111"}]);
    let message = Object::from_iter([("content".to_owned(), parts)]);
    let message = crate::conversation::with_content(&message, "[card]".into());
    let parts = message["content"].as_array().unwrap();
    assert_eq!(parts[..], [json!({"type": "text", "text": "[card]"}), json!({"type": "image_url"})]);
}
