//! Recorded conversations through the turn engine: without hooks, what is stored is what was recorded.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};

use crate::conversation::{Arguments, Completion, Object, RecordedCall, Recording, TurnItem, as_messages, text_of};
use crate::step::{Model, ModelError, ModelReply, ModelRequest, RequestedCall, Tokens};
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec, Toolbox};
use crate::turn::{ConversationStore, MemoryStore, TurnEngine, TurnInput};

/// Answers as it was recorded, whatever it is asked; its tools answer by position as well.
#[derive(Clone, Default)]
struct Recorded {
    completions: Arc<Mutex<VecDeque<ModelReply>>>,
    results: Arc<Mutex<VecDeque<String>>>,
    specs: Vec<Arc<ToolSpec>>,
}

impl Recorded {
    fn of(recording: &Recording) -> Self {
        let recorded = Self {
            specs: recording.tool_names.iter().map(|name| Arc::new(ToolSpec::new(name, name))).collect(),
            ..Self::default()
        };
        for item in recording.turns.iter().flat_map(|turn| &turn.items) {
            if let TurnItem::Completion(Completion { text, calls, .. }) = item {
                let reply = ModelReply {
                    text: text.clone(),
                    calls: calls.iter().map(requested).collect(),
                    ..ModelReply::default()
                };
                recorded.completions.lock().unwrap().push_back(reply);
                let results = calls.iter().filter_map(|call| call.result.as_ref()).filter_map(|result| text_of(result));
                recorded.results.lock().unwrap().extend(results);
            }
        }
        recorded
    }
}

fn requested(call: &RecordedCall) -> RequestedCall {
    let arguments = match &call.arguments {
        Arguments::Parsed(arguments) => Ok(arguments.clone()),
        Arguments::Broken(text) => Err(text.clone()),
    };
    RequestedCall { id: Some(call.id.clone()), tool_name: call.name.clone(), arguments }
}

impl Model for Recorded {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn complete<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let next = self.completions.lock().unwrap().pop_front();
        Box::pin(async { next.ok_or_else(|| ModelError::Exhausted("The recording is over".into())) })
    }
}

struct RecordedTool {
    spec: Arc<ToolSpec>,
    results: Arc<Mutex<VecDeque<String>>>,
}

impl Tool for RecordedTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call(&self, _: Object, _: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        let result = self.results.lock().unwrap().pop_front();
        Box::pin(async { ToolOutput::of(result.expect("each recorded call has a result")) })
    }
}

impl Toolbox for Recorded {
    fn offered(&self) -> Vec<Arc<dyn Tool>> {
        let tool = |spec: &Arc<ToolSpec>| {
            Arc::new(RecordedTool { spec: Arc::clone(spec), results: Arc::clone(&self.results) }) as Arc<dyn Tool>
        };
        self.specs.iter().map(tool).collect()
    }
}

/// What counts of a recorded message: providers add keys of their own, and write arguments with other spaces.
fn essence(message: &Object) -> Value {
    let calls = message.get("tool_calls").and_then(Value::as_array).map(|calls| {
        let call = |call: &Value| {
            let text = call["function"]["arguments"].as_str().unwrap_or("{}");
            let arguments = serde_json::from_str::<Value>(text).unwrap_or_else(|_| text.into());
            json!([call["id"], call["function"]["name"], arguments])
        };
        calls.iter().map(call).collect::<Vec<_>>()
    });
    json!([message["role"], text_of(message), calls.filter(|calls| !calls.is_empty()), message.get("tool_call_id")])
}

fn conversations() -> (PathBuf, usize) {
    let shared = std::env::var_os("TENTERHOOK_SHARED").map(PathBuf::from);
    match shared.map(|shared| shared.join("data/airline/conversations.jsonl")).filter(|file| file.is_file()) {
        Some(file) => (file, 200),
        None => {
            let example = "hooks-examples/mask-private-data/conversations.jsonl";
            (Path::new(env!("CARGO_MANIFEST_DIR")).join(example), 1)
        }
    }
}

#[test]
fn recorded_conversations_are_stored_as_they_were_recorded() {
    let (file, at_least) = conversations();
    let text = std::fs::read_to_string(file).unwrap();
    let mut played = 0;
    for line in text.lines() {
        let recording = Recording::from_line(line).unwrap();
        // A conversation that ends in the middle of a turn has no last answer to give.
        let (recorded, store) = (Recorded::of(&recording), Arc::<MemoryStore>::default());
        let engine = TurnEngine::builder(recorded.clone())
            .toolbox(recorded.clone())
            .store(Arc::clone(&store))
            .max_iterations(1000)
            .build();
        let mut expected = Vec::new();
        for turn in &recording.turns {
            let events = engine.turn(TurnInput::new("s", text_of(&turn.user).unwrap())).collect::<Vec<_>>();
            // Nothing here waits for anything.
            events.now_or_never().expect("a recording answers at once");
            expected.push(essence(&turn.user));
            for item in &turn.items {
                let TurnItem::Completion(completion) = item else { continue };
                expected.push(essence(&completion.message));
                expected.extend(completion.calls.iter().filter_map(|call| call.result.as_deref()).map(essence));
            }
        }
        let stored = as_messages(&store.events("s").unwrap());
        let mut stored: Vec<_> = stored.iter().map(|message| essence(message)).collect();
        if recorded.completions.lock().unwrap().is_empty() && stored.len() == expected.len() + 1 {
            stored.pop();
        }
        assert_eq!(stored, expected, "{:?}", recording.id);
        played += 1;
    }
    assert!(played >= at_least, "{played}");
}
