//! Recorded conversations through the turn engine: without hooks, what is stored is what was recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};

use super::recorded::RecordedConversation;
use crate::conversation::{Object, Recording, TurnItem, as_messages, text_of};
use crate::turn::{ConversationStore, MemoryStore, TurnEngine, TurnEvent, TurnInput};

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
        let (recorded, store) = (RecordedConversation::from_line(line).unwrap(), Arc::<MemoryStore>::default());
        let engine = TurnEngine::builder(recorded.clone())
            .toolbox(recorded)
            .store(Arc::clone(&store))
            .max_iterations(u64::MAX)
            .build();
        let mut unanswered = false;
        let mut expected = Vec::new();
        for turn in &recording.turns {
            let events = engine.turn(TurnInput::new("s", text_of(&turn.user).unwrap())).collect::<Vec<_>>();
            // Nothing here waits for anything.
            let events = events.now_or_never().expect("a recording answers at once");
            unanswered = matches!(events.last(), Some(TurnEvent::Finished { status }) if status.name() == "error");
            expected.push(essence(&turn.user));
            for item in &turn.items {
                let TurnItem::Completion(completion) = item else { continue };
                expected.push(essence(&completion.message));
                expected.extend(completion.calls.iter().filter_map(|call| call.result.as_deref()).map(essence));
            }
        }
        let stored = as_messages(&store.events("s").unwrap());
        let mut stored: Vec<_> = stored.iter().map(|message| essence(message)).collect();
        // A conversation that ends in the middle of a turn has no last answer to give: there the fallback stands.
        if unanswered {
            stored.pop();
        }
        assert_eq!(stored, expected, "{:?}", recording.id);
        played += 1;
    }
    assert!(played >= at_least, "{played}");
}

#[test]
fn each_turn_has_its_own_answers_and_one_that_was_not_recorded_fails() {
    let line = json!({"messages": [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "first"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "second"},
    ]});
    let recorded = RecordedConversation::from_line(&line.to_string()).unwrap();
    let engine = TurnEngine::builder(recorded).build();
    let heard = |text: &str| {
        let events = engine.turn(TurnInput::new("s", text)).collect::<Vec<_>>().now_or_never().unwrap();
        let text = |event| if let TurnEvent::Message { text, .. } = event { Some(text) } else { None };
        events.into_iter().filter_map(text).collect::<Vec<_>>()
    };
    assert_eq!(heard("anything"), ["first"]);
    assert_eq!(heard("else"), ["second"]);
    assert_eq!(heard("more"), ["I'm sorry, but something went wrong. Please try again."]);
}
