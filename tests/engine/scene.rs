//! An agent with skills, and a model whose part is a list of answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook::{
    ConversationStore, Event, HookEngine, LoadedAgent, Model, ModelError, ModelReply, ModelRequest, Object,
    RequestedCall, SqliteStore, Tokens, TurnEngine, TurnEvent, TurnInput,
};

use crate::agents::{environment, folder};

/// Gives its answers one after the other.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) left: Arc<Mutex<VecDeque<ModelReply>>>,
    pub(crate) requests: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Model for Answers {
    fn name(&self) -> &'static str {
        "answers"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.requests.lock().unwrap().push(request.clone());
        let next = self.left.lock().unwrap().pop_front();
        Box::pin(async { next.ok_or_else(|| ModelError::Exhausted("there are no answers left".into())) })
    }
}

pub(crate) struct Scene {
    pub(crate) agent: LoadedAgent,
    left: Arc<Mutex<VecDeque<ModelReply>>>,
    pub(crate) requests: Arc<Mutex<Vec<ModelRequest>>>,
    pub(crate) folder: tempfile::TempDir,
}

/// The agent in these files, and a model that answers like this.
pub(crate) fn scene(files: &[(&str, &str)], replies: impl IntoIterator<Item = ModelReply>) -> Scene {
    let folder = folder(files);
    let (left, requests) = (Arc::new(Mutex::new(replies.into_iter().collect())), Arc::default());
    let model = Answers { left: Arc::clone(&left), requests: Arc::clone(&requests) };
    let hooks = HookEngine::builder(folder.path()).python(environment());
    let loader = TurnEngine::loader(folder.path()).hooks(hooks).model(model).store(folder.path().join("talks.db"));
    let agent = loader.load().unwrap_or_else(|error| panic!("{error}"));
    Scene { agent, left, requests, folder }
}

impl Scene {
    /// What the user hears when they say this.
    pub(crate) async fn say(&self, text: &str) -> Vec<String> {
        let events: Vec<_> = self.agent.engine.turn(TurnInput::new("s", text)).collect().await;
        let heard = |event| if let TurnEvent::Message { text, .. } = event { Some(text) } else { None };
        events.into_iter().filter_map(heard).collect()
    }

    pub(crate) fn answers(&self, replies: impl IntoIterator<Item = ModelReply>) {
        self.left.lock().unwrap().extend(replies);
    }

    /// The tools that each request offered.
    pub(crate) fn offered(&self) -> Vec<Vec<String>> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|request| request.tools.iter().map(|tool| tool.name.clone()).collect()).collect()
    }

    /// The system prompt of the last request.
    pub(crate) fn prompt(&self) -> String {
        let requests = self.requests.lock().unwrap();
        requests.last().unwrap().messages[0]["content"].as_str().unwrap().to_owned()
    }

    /// What is kept of these kinds.
    pub(crate) fn kept(&self, kinds: &[&str]) -> Vec<Value> {
        let store = SqliteStore::open(&self.folder.path().join("talks.db")).unwrap();
        let events: Vec<Event> = store.events("s").unwrap();
        events
            .iter()
            .map(|event| json!(event))
            .filter(|event| kinds.contains(&event["event"].as_str().unwrap()))
            .collect()
    }
}

pub(crate) fn said(text: &str) -> ModelReply {
    ModelReply::text(text)
}

pub(crate) fn call(tool: &str, arguments: Value) -> ModelReply {
    let Value::Object(arguments) = arguments else { panic!("{arguments} is no object") };
    let call = RequestedCall { id: None, tool_name: tool.into(), arguments: Ok::<Object, String>(arguments) };
    ModelReply { calls: vec![call], ..ModelReply::default() }
}

pub(crate) fn activate(skill: &str) -> ModelReply {
    call("activate_skill", json!({"skill_id": skill}))
}

/// Several calls at once.
pub(crate) fn batch<const N: usize>(calls: [(&str, Value); N]) -> ModelReply {
    let calls = calls.map(|(tool, arguments)| call(tool, arguments).calls.remove(0));
    ModelReply { calls: calls.into(), ..ModelReply::default() }
}

/// What came of the calls of a tool.
pub(crate) fn results(scene: &Scene, tool: &str) -> Vec<Value> {
    let executed = scene.kept(&["tool_executed"]).into_iter().filter(|event| event["tool_name"] == tool);
    executed.map(|event| event["value"].clone()).collect()
}
