//! A turn on a stage: a model that answers as it is told, hooks that are closures, and all that was seen.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook::{
    AnyPayload, FailPolicy, FailureCause, HandlerFailure, HandlerId, Hooks, Knowledge, Lane, Model, ModelError,
    ModelReply, ModelRequest, Object, Outcome, Passage, Point, RequestedCall, Tokens, Tool, ToolContext, ToolOutput,
    ToolSpec, Toolbox, TurnEngine, TurnEngineBuilder, TurnEvent, TurnInput,
};

/// What a hook makes of a payload.
pub(crate) type Handler = Box<dyn Fn(AnyPayload) -> Outcome<AnyPayload> + Send + Sync>;

type ToolBody = dyn Fn(Object, Arc<dyn ToolContext>) -> BoxFuture<'static, ToolOutput> + Send + Sync;

#[derive(Default)]
struct State {
    replies: Mutex<VecDeque<Result<ModelReply, ModelError>>>,
    requests: Mutex<Vec<ModelRequest>>,
    observed: Mutex<Vec<AnyPayload>>,
    modifiers: Mutex<HashMap<Point, Handler>>,
    order: Mutex<Vec<String>>,
    tools: Mutex<Vec<Arc<dyn Tool>>>,
    searched: Mutex<Vec<String>>,
    store: Arc<tenterhook::MemoryStore>,
}

/// All of it; a clone is the same stage.
#[derive(Clone)]
pub(crate) struct Scene {
    state: Arc<State>,
    observes: bool,
    references: Option<Result<Option<Vec<Passage>>, String>>,
    settings: fn(TurnEngineBuilder) -> TurnEngineBuilder,
}

/// What came of a turn.
pub(crate) struct Played {
    pub(crate) events: Vec<TurnEvent>,
}

impl Scene {
    /// A model that gives these answers, one after the other.
    pub(crate) fn new(replies: impl IntoIterator<Item = ModelReply>) -> Self {
        let state = State::default();
        *state.replies.lock().unwrap() = replies.into_iter().map(Ok).collect();
        Self { state: Arc::new(state), observes: true, references: None, settings: |builder| builder }
    }

    pub(crate) fn answers(&self, reply: Result<ModelReply, ModelError>) {
        self.state.replies.lock().unwrap().push_back(reply);
    }

    /// A modify hook.
    pub(crate) fn hook(
        self,
        point: Point,
        handler: impl Fn(AnyPayload) -> Outcome<AnyPayload> + Send + Sync + 'static,
    ) -> Self {
        self.state.modifiers.lock().unwrap().insert(point, Box::new(handler));
        self
    }

    /// A modify hook that fails, as its point's policy has it.
    pub(crate) fn failing(self, point: Point) -> Self {
        self.hook(point, failed)
    }

    /// A modify hook that changes a field.
    pub(crate) fn sets(self, point: Point, change: impl Fn(&mut AnyPayload) + Send + Sync + 'static) -> Self {
        self.hook(point, move |mut payload| {
            change(&mut payload);
            proceed(payload)
        })
    }

    pub(crate) fn without_observers(mut self) -> Self {
        self.observes = false;
        self
    }

    pub(crate) fn with(mut self, settings: fn(TurnEngineBuilder) -> TurnEngineBuilder) -> Self {
        self.settings = settings;
        self
    }

    /// A tool that gives `output`.
    pub(crate) fn tool(
        self,
        name: &str,
        output: impl Fn(Object) -> ToolOutput + Send + Sync + Clone + 'static,
    ) -> Self {
        self.async_tool(name, move |arguments, _| {
            let output = output.clone();
            Box::pin(async move { output(arguments) })
        })
    }

    pub(crate) fn async_tool(
        self,
        name: &str,
        body: impl Fn(Object, Arc<dyn ToolContext>) -> BoxFuture<'static, ToolOutput> + Send + Sync + 'static,
    ) -> Self {
        let spec = Arc::new(ToolSpec::new(name, name));
        self.state.tools.lock().unwrap().push(Arc::new(TestTool {
            spec,
            body: Box::new(body),
            state: Arc::clone(&self.state),
        }));
        self
    }

    pub(crate) fn references(mut self, found: Result<Option<Vec<Passage>>, String>) -> Self {
        self.references = Some(found);
        self
    }

    pub(crate) fn engine(&self) -> TurnEngine {
        let builder = TurnEngine::builder(self.clone())
            .hooks(Arc::new(self.clone()))
            .toolbox(self.clone())
            .knowledge(self.clone())
            .store(Arc::clone(&self.state.store))
            .prompt(|identity| format!("You talk to {}.", identity.sender_id));
        (self.settings)(builder).build()
    }

    /// Runs one turn of the conversation `s`.
    pub(crate) async fn turn(&self, text: &str) -> Played {
        play(&self.engine(), TurnInput::new("s", text)).await
    }

    /// The messages of each request, the system prompt left out.
    pub(crate) fn requests(&self) -> Vec<Vec<Value>> {
        let requests = self.state.requests.lock().unwrap();
        let messages =
            |request: &ModelRequest| request.messages.iter().map(|message| json!(**message)).collect::<Vec<_>>();
        requests.iter().map(|request| messages(request).split_off(1.min(request.messages.len()))).collect()
    }

    pub(crate) fn raw_requests(&self) -> Vec<ModelRequest> {
        self.state.requests.lock().unwrap().clone()
    }

    /// What is kept of the conversation, its turn's ends left out.
    pub(crate) fn stored(&self) -> Vec<Value> {
        let mut events = self.stored_with_ends();
        events.retain(|event| event["event"] != "turn_finished");
        events
    }

    pub(crate) fn stored_with_ends(&self) -> Vec<Value> {
        tenterhook::ConversationStore::events(&self.state.store, "s")
            .unwrap()
            .iter()
            .map(|event| json!(event))
            .collect()
    }

    /// The payloads that observers of a point have seen.
    pub(crate) fn observed(&self, point: Point) -> Vec<Value> {
        let observed = self.state.observed.lock().unwrap();
        observed.iter().filter(|payload| payload.point() == point).map(|payload| json!(payload)).collect()
    }

    /// Hooks, model calls and tools, in the order in which they ran.
    pub(crate) fn order(&self) -> Vec<String> {
        self.state.order.lock().unwrap().clone()
    }

    pub(crate) fn searched(&self) -> Vec<String> {
        self.state.searched.lock().unwrap().clone()
    }

    fn note(&self, what: impl Into<String>) {
        self.state.order.lock().unwrap().push(what.into());
    }
}

/// Runs one turn to its end.
pub(crate) async fn play(engine: &TurnEngine, input: TurnInput) -> Played {
    Played { events: engine.turn(input).collect().await }
}

impl Played {
    /// What the user has heard.
    pub(crate) fn heard(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                TurnEvent::Message { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn tokens(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                TurnEvent::Token { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The status: the turn has told its start and its end exactly once, at its two ends.
    pub(crate) fn status(&self) -> &'static str {
        let ends =
            self.events.iter().filter(|event| matches!(event, TurnEvent::Started { .. } | TurnEvent::Finished { .. }));
        assert_eq!(ends.count(), 2, "{:?}", self.events);
        assert!(matches!(self.events.first(), Some(TurnEvent::Started { .. })));
        match self.events.last() {
            Some(TurnEvent::Finished { status }) => status.name(),
            other => panic!("the last event is {other:?}"),
        }
    }
}

/// What a hook gives that changes nothing, or something.
pub(crate) fn proceed(payload: AnyPayload) -> Outcome<AnyPayload> {
    Outcome::Proceed { payload, changed: true, failure: None, discarded_signal: None }
}

pub(crate) fn failed(payload: AnyPayload) -> Outcome<AnyPayload> {
    let point = payload.point();
    let handler = Arc::new(HandlerId {
        point,
        lane: Lane::Modify,
        module: "hooks".into(),
        function: "broken".into(),
        file: "hooks.py".into(),
        line: 1,
        timeout: Duration::from_millis(500),
    });
    let cause = FailureCause::Raised { kind: "ValueError".into(), message: "SECRET".into(), frames: Vec::new() };
    let failure = HandlerFailure { handler, elapsed: Duration::ZERO, cause };
    match point.spec().policy {
        Some(FailPolicy::Closed) => Outcome::Failed(failure),
        _ => Outcome::Proceed { payload, changed: false, failure: Some(failure), discarded_signal: None },
    }
}

pub(crate) fn retry(feedback: &str) -> impl Fn(AnyPayload) -> Outcome<AnyPayload> + use<> {
    let feedback = feedback.to_owned();
    move |_| Outcome::Retry { feedback: feedback.clone() }
}

/// An answer that asks for tools.
pub(crate) fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> ModelReply {
    let call = |(id, tool_name, arguments): (&str, &str, Value)| RequestedCall {
        id: Some(id.to_owned()),
        tool_name: tool_name.to_owned(),
        arguments: match arguments {
            Value::Object(arguments) => Ok(arguments),
            other => Err(other.as_str().unwrap_or_default().to_owned()),
        },
    };
    ModelReply { calls: calls.map(call).into(), ..ModelReply::default() }
}

pub(crate) fn said(text: &str) -> ModelReply {
    ModelReply::text(text)
}

impl Model for Scene {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        tokens: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            self.note("model");
            self.state.requests.lock().unwrap().push(request.clone());
            let reply = self.state.replies.lock().unwrap().pop_front();
            let Some(reply) = reply else { std::future::pending().await };
            if let (Ok(ModelReply { text: Some(text), .. }), Some(tokens)) = (&reply, tokens) {
                for piece in text.split_inclusive(' ') {
                    tokens(piece);
                }
            }
            reply
        })
    }
}

impl Hooks for Scene {
    fn observe(&self, payload: AnyPayload) {
        self.state.observed.lock().unwrap().push(payload);
    }

    fn modify(&self, payload: AnyPayload) -> BoxFuture<'_, Outcome<AnyPayload>> {
        self.note(format!("modify {}", payload.point()));
        let outcome = self.state.modifiers.lock().unwrap()[&payload.point()](payload);
        Box::pin(async { outcome })
    }

    fn modifies(&self, point: Point) -> bool {
        self.state.modifiers.lock().unwrap().contains_key(&point)
    }

    fn observes(&self, _: Point) -> bool {
        self.observes
    }
}

struct TestTool {
    spec: Arc<ToolSpec>,
    body: Box<ToolBody>,
    state: Arc<State>,
}

impl Tool for TestTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call(&self, arguments: Object, context: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        self.state.order.lock().unwrap().push(format!("tool {}", self.spec.name));
        (self.body)(arguments, context)
    }
}

impl Toolbox for Scene {
    fn offered(&self) -> Vec<Arc<dyn Tool>> {
        self.state.tools.lock().unwrap().clone()
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(100)
    }
}

impl Knowledge for Scene {
    fn is_there(&self) -> bool {
        self.references.is_some()
    }

    fn search<'a>(&'a self, query: &'a str) -> BoxFuture<'a, Result<Option<Vec<Passage>>, String>> {
        self.note("search");
        self.state.searched.lock().unwrap().push(query.to_owned());
        Box::pin(async { self.references.clone().unwrap() })
    }
}
