//! An app whose model, tools and templates are plain Rust, for the tests of requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, pending};
use serde_json::{Value, json};

use super::*;
use crate::conversation::Object;
use crate::step::{Model, ModelError, ModelReply, ModelRequest, NoHooks, RequestedCall, Tokens};
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec};

pub(super) type Log = Arc<Mutex<Vec<String>>>;

/// Gives its answers one after the other, and keeps what it was asked.
struct Answers(Mutex<VecDeque<ModelReply>>, Arc<Mutex<Vec<ModelRequest>>>, Log);

impl Model for Answers {
    fn name(&self) -> &'static str {
        "answers"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        tokens: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.1.lock().unwrap().push(request.clone());
        self.2.lock().unwrap().push("model".to_owned());
        let next = self.0.lock().unwrap().pop_front();
        if let (Some(tokens), Some(text)) = (tokens, next.as_ref().and_then(|reply| reply.text.as_deref())) {
            tokens(text);
        }
        Box::pin(async { next.ok_or_else(|| ModelError::Exhausted("there are no answers left".into())) })
    }
}

/// What a tool does.
#[derive(Clone)]
pub(super) enum Does {
    /// Gives these results one after the other, the last of them again and again.
    Gives(Arc<Mutex<VecDeque<&'static str>>>),
    /// Gives nothing, not even an empty text.
    GivesNothing,
    Fails(&'static str),
    Panics,
    /// Takes this long, and tells when it is done.
    Takes(Duration),
    /// Never ends, and tells when it is cancelled.
    Hangs,
    /// So too, and its own time is this long.
    HangsFor(Duration),
}

pub(super) fn gives<const N: usize>(results: [&'static str; N]) -> Does {
    Does::Gives(Arc::new(Mutex::new(results.into())))
}

struct Doing(Arc<ToolSpec>, Does, Log);

/// Tells that a call was dropped before it had ended.
struct Cancelled(String, Log);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(format!("{} cancelled", self.0));
    }
}

impl Tool for Doing {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn timeout(&self) -> Option<Duration> {
        if let Does::HangsFor(time) = self.1 { Some(time) } else { None }
    }

    fn call(&self, arguments: Object, _: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        let (name, log) = (self.0.name.clone(), Arc::clone(&self.2));
        log.lock().unwrap().push(format!("{name} {}", Value::Object(arguments)));
        match &self.1 {
            Does::Gives(results) => {
                let mut results = results.lock().unwrap();
                let next = if results.len() > 1 { results.pop_front() } else { results.front().copied() };
                Box::pin(async move { ToolOutput::of(next.unwrap_or_default()) })
            }
            Does::GivesNothing => Box::pin(async { ToolOutput::of(Value::Null) }),
            Does::Fails(why) => Box::pin(async { ToolOutput::error(*why) }),
            Does::Panics => Box::pin(async { panic!("s3cr3t") }),
            Does::Takes(time) => Box::pin(async move {
                tokio::time::sleep(*time).await;
                log.lock().unwrap().push(format!("{name} done"));
                ToolOutput::of("done")
            }),
            Does::Hangs | Does::HangsFor(_) => Box::pin(async {
                let _cancelled = Cancelled(name, log);
                pending().await
            }),
        }
    }
}

struct Source(AppTools);

impl ToolSource for Source {
    fn tools(&self) -> AppTools {
        self.0.clone()
    }
}

/// Puts the last words of both sides in their places, and fails where there are none yet; keeps each context.
struct Simple(Arc<Mutex<Vec<Object>>>);

impl Templates for Simple {
    fn render<'a>(&'a self, template: &'a str, context: Object) -> BoxFuture<'a, Result<Object, String>> {
        let mut text = template.to_owned();
        let mut wrong = None;
        for name in ["last_user_message", "last_assistant_message"] {
            let place = format!("${{{name}.content}}");
            match context.get(name).and_then(|message| message.get("content")?.as_str()) {
                Some(said) => text = text.replace(&place, said),
                None if text.contains(&place) => wrong = Some("at template.q: there is no field 'content'".to_owned()),
                None => {}
            }
        }
        self.0.lock().unwrap().push(context);
        let rendered = serde_json::from_str(&text).map_err(|error| error.to_string());
        Box::pin(async { wrong.map_or(rendered, Err) })
    }
}

/// A hook of a tool of the set `memory`.
pub(super) fn hook(event: HookEvent, tool: &str, arguments: &Value) -> AppHook {
    AppHook {
        name: None,
        event,
        toolset_name: Some("memory".into()),
        tool_name: tool.into(),
        arguments: arguments.as_object().unwrap().clone(),
        is_template: arguments.to_string().contains('$'),
        timeout: Duration::from_millis(200),
    }
}

pub(super) const START: HookEvent = start(Frequency::AppendIfChanged, None);

pub(super) const fn start(frequency: Frequency, ttl_minutes: Option<u64>) -> HookEvent {
    HookEvent::RequestStart { frequency, ttl_minutes }
}

pub(super) struct Scene {
    pub(super) app: QuickApp,
    pub(super) requests: Arc<Mutex<Vec<ModelRequest>>>,
    contexts: Arc<Mutex<Vec<Object>>>,
    log: Log,
}

/// An app with these hooks, tools (by their names in the set `memory`, some of them hidden) and answers of its model.
pub(super) fn scene(hooks: Vec<AppHook>, tools: &[(&str, Does)], hidden: &[&str], replies: Vec<ModelReply>) -> Scene {
    scene_with(FallbackConfiguration::default(), hooks, tools, hidden, replies)
}

pub(super) fn scene_with(
    fallback: FallbackConfiguration,
    hooks: Vec<AppHook>,
    tools: &[(&str, Does)],
    hidden: &[&str],
    replies: Vec<ModelReply>,
) -> Scene {
    let (log, requests, contexts) = (Log::default(), Arc::default(), Arc::default());
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
        templates: Box::new(Simple(Arc::clone(&contexts))),
        hooks: Arc::new(NoHooks),
        secret: b"secret".to_vec(),
    });
    Scene { app, requests, contexts, log }
}

/// What comes of a request.
pub(super) struct Done {
    pub(super) status: RequestStatus,
    /// All that is told before the end.
    pub(super) events: Vec<RequestEvent>,
    pub(super) messages: Vec<Arc<Object>>,
}

impl Scene {
    /// Goes on with a conversation.
    pub(super) async fn ask(&self, messages: &[Arc<Object>], text: &str) -> Done {
        self.ask_with(messages, text, vec![]).await
    }

    pub(super) async fn ask_with(
        &self,
        messages: &[Arc<Object>],
        text: &str,
        client_tools: Vec<Arc<ToolSpec>>,
    ) -> Done {
        let user = crate::conversation::message("user", text);
        let messages = messages.iter().cloned().chain([user]).collect();
        let input = RequestInput { sender_id: "s".into(), messages, client_tools };
        let mut events: Vec<_> = self.app.request(input).collect().await;
        let Some(RequestEvent::Finished { status, messages }) = events.pop() else { panic!("a request ends") };
        Done { status, events, messages }
    }

    /// What the model and the tools have done since this was asked last.
    pub(super) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    /// What the templates that were rendered since have seen.
    pub(super) fn contexts(&self) -> Vec<Object> {
        std::mem::take(&mut self.contexts.lock().unwrap())
    }
}

impl Done {
    /// Each event in short.
    pub(super) fn told(&self) -> Vec<String> {
        let short = |event: &RequestEvent| match event {
            RequestEvent::AppHookRan { name, on, skipped, .. } => {
                format!("{name} {on}{}", if *skipped { " skipped" } else { "" })
            }
            RequestEvent::Token { text } => format!("token {text}"),
            RequestEvent::Message { text } => format!("message {text}"),
            RequestEvent::ToolCalled { tool_name } => format!("calls {tool_name}"),
            RequestEvent::ToolReturned { tool_name, is_error } => format!("{tool_name} returns, error: {is_error}"),
            other => panic!("{other:?}"),
        };
        self.events.iter().map(short).collect()
    }
}

/// Messages in short: roles with what they say, call or give.
pub(super) fn shown(messages: &[Arc<Object>]) -> Vec<String> {
    let of = |message: &Arc<Object>| {
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let called =
            calls.map(|calls| calls.iter().map(|call| format!(" {}", call["function"]["name"].as_str().unwrap())));
        let called: String = called.into_iter().flatten().collect();
        format!("{}: {}{called}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap())
    };
    messages.iter().map(of).collect()
}

pub(super) fn said(text: &str) -> ModelReply {
    ModelReply::text(text)
}

pub(super) fn call(tool: &str) -> ModelReply {
    let call = RequestedCall { id: Some("c1".into()), tool_name: tool.into(), arguments: Ok(Object::new()) };
    ModelReply { calls: vec![call], ..ModelReply::default() }
}

pub(super) fn calls(calls: &[(&str, Result<Object, String>)]) -> ModelReply {
    let call = |(index, (tool, arguments)): (usize, &(&str, Result<Object, String>))| RequestedCall {
        id: Some(format!("c{index}")),
        tool_name: (*tool).into(),
        arguments: arguments.clone(),
    };
    ModelReply { calls: calls.iter().enumerate().map(call).collect(), ..ModelReply::default() }
}

/// A tool set whose failures are these strategies'.
pub(super) fn fallback(strategies: &Value) -> FallbackConfiguration {
    serde_json::from_value(json!({"strategies": strategies})).unwrap()
}

pub(super) fn tool_of_client(name: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec::new(name, ""))
}
