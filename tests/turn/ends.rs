//! How a turn can end: the table of `docs/hook-points.md`, made from turns that were run.

use std::fmt::Write as _;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tenterhook::{AnyPayload, ModelError, Outcome, Passage, Point, ToolOutput, TurnEvent, TurnInput};

use crate::scene::{Played, Scene, calls, retry, said};

/// What the user says, and what the model and a tool say, in each of the turns.
const USER: &str = "hello";
const MODEL: &str = "Done.";

fn reject(_: AnyPayload) -> Outcome<AnyPayload> {
    Outcome::Reject { reason: "SECRET".into(), response: None }
}

/// A turn that calls a tool and then answers.
fn with_tool() -> Scene {
    Scene::new([calls([("c1", "find", json!({}))]), said(MODEL)]).tool("find", |_| ToolOutput::of(1))
}

/// A turn that searches the references and then answers.
fn with_search() -> Scene {
    let passage = Passage { text: "a passage".into(), scope: "project".into(), source: "a.md".into(), score: None };
    Scene::new([calls([("c1", "search_knowledge", json!({"query": "q"}))]), said(MODEL)])
        .references(Ok(Some(vec![passage])))
}

fn scenes() -> Vec<(&'static str, Scene)> {
    let broken = Scene::new([]);
    broken.answers(Err(ModelError::Broken { model: "m".into(), message: "SECRET".into() }));
    vec![
        ("all goes well", with_tool()),
        ("`modify_incoming_message` rejects", Scene::new([]).hook(Point::IncomingMessage, reject)),
        ("`modify_incoming_message` fails", Scene::new([]).failing(Point::IncomingMessage)),
        ("`modify_model_request` fails", Scene::new([]).failing(Point::ModelRequest)),
        ("`modify_model_response` fails", with_tool().failing(Point::ModelResponse)),
        ("`modify_model_response` raises `RetryModel` each time", {
            Scene::new((0..10).map(|_| said(MODEL))).hook(Point::ModelResponse, retry("SECRET"))
        }),
        ("`modify_tool_call` fails", with_tool().failing(Point::ToolCall)),
        ("`modify_tool_result` fails", with_tool().failing(Point::ToolResult)),
        ("`modify_knowledge_query` fails", with_search().failing(Point::KnowledgeQuery)),
        ("`modify_knowledge_results` fails", with_search().failing(Point::KnowledgeResults)),
        ("`modify_outgoing_text` rejects", Scene::new([said(MODEL)]).hook(Point::OutgoingText, reject)),
        ("`modify_outgoing_text` fails", Scene::new([said(MODEL)]).failing(Point::OutgoingText)),
        ("a tool fails", {
            Scene::new([calls([("c1", "find", json!({}))]), said(MODEL)]).tool("find", |_| ToolOutput::error("no"))
        }),
        ("the model asks for tools without end", {
            Scene::new((0..10).map(|_| calls([("c1", "find", json!({}))]))).tool("find", |_| ToolOutput::of(1))
        }),
        ("the model fails, or answers nothing three times", broken),
        ("the turn is cancelled while a tool runs", {
            Scene::new([calls([("c1", "find", json!({}))])]).async_tool("find", |_, _| Box::pin(std::future::pending()))
        }),
    ]
}

/// Plays a scene; one that is to be cancelled is, once its tool runs.
async fn played(what: &str, scene: &Scene) -> Played {
    let engine = scene.engine();
    let mut stream = engine.turn(TurnInput::new("s", USER));
    let mut events: Vec<TurnEvent> = Vec::new();
    while let Some(event) = stream.next().await {
        if matches!(event, TurnEvent::ToolCalled { .. }) && what.contains("cancelled") {
            assert!(engine.interrupt("s"));
        }
        events.push(event);
    }
    Played { events }
}

/// What is kept, in words.
fn kept(events: &[Value]) -> String {
    let mut words: Vec<(String, usize)> = Vec::new();
    for event in events {
        let word = match event["event"].as_str().unwrap() {
            "user_message" if event["discarded"] == true => "the message (discarded)",
            "user_message" => "the message",
            "bot_message" if event["discarded"] == true => "the text (discarded)",
            "bot_message" if event["response"].is_string() => "the fallback",
            "bot_message" => "the text",
            "tool_calls" => "the calls",
            "tool_executed" if event["is_error"] == true => "the error result",
            "tool_executed" => "the result",
            "turn_finished" => continue,
            other => panic!("{other} is new"),
        };
        match words.iter_mut().find(|(known, _)| known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word.to_owned(), 1)),
        }
    }
    let word = |(word, count): (String, usize)| if count > 1 { format!("{word} ({count} times)") } else { word };
    let words: Vec<_> = words.into_iter().map(word).collect();
    if words.is_empty() { "the end alone".to_owned() } else { words.join(", ") }
}

#[tokio::test]
async fn how_a_turn_ends_is_as_the_table_says() {
    let mut table = "| What happens | Status | The user hears | Kept beside the end |\n|---|---|---|---|\n".to_owned();
    for (what, scene) in scenes() {
        let played = played(what, &scene).await;
        let heard: Vec<_> = played
            .events
            .iter()
            .filter_map(|event| match event {
                TurnEvent::Message { response: Some(response), .. } => Some(format!("`{response}`")),
                TurnEvent::Message { text, .. } => {
                    assert_eq!(text, MODEL, "{what}");
                    Some("the model's text".to_owned())
                }
                _ => None,
            })
            .collect();
        let heard = if heard.is_empty() { "nothing".to_owned() } else { heard.join(", ") };
        let stored = scene.stored_with_ends();
        let ends = stored.iter().filter(|event| event["event"] == "turn_finished");
        assert_eq!(ends.count(), 1, "{what}");
        assert_eq!(stored.last().unwrap()["status"], played.status(), "{what}");
        let everywhere = format!("{:?}{}", played.events, json!(stored));
        assert!(!everywhere.contains("SECRET"), "{what}: {everywhere}");
        writeln!(table, "| {what} | `{}` | {heard} | {} |", played.status(), kept(&stored)).unwrap();
    }
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/hook-points.md")).unwrap();
    assert!(document.contains(&table), "The table of `docs/hook-points.md` is to be\n\n{table}");
}
