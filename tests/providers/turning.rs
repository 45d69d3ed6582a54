//! Turns with a served model and a store on disk: what a bad answer means for the user and for what is kept.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tenterhook::{ConversationStore as _, OpenAiModel, OpenAiSettings, SqliteStore, TurnEngine, TurnEvent, TurnInput};

use crate::server::{Server, Step, answer, event, stream};

const FAILED: &str = "I'm sorry, but something went wrong. Please try again.";

struct Played {
    heard: Vec<String>,
    tokens: Vec<String>,
    status: &'static str,
    stored: Vec<Value>,
}

/// One turn with a model on this server; the limits are short.
async fn play(server: &Server) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talks.db");
    let mut settings = OpenAiSettings::new("main", "m-1", &server.address);
    settings.retry_pause = Duration::from_millis(1);
    settings.total_timeout = Duration::from_millis(400);
    settings.longest_reply = 100_000;
    settings.retries = 1;
    let engine =
        TurnEngine::builder(OpenAiModel::new(settings).unwrap()).store(SqliteStore::open(&file).unwrap()).build();
    let events: Vec<_> = engine.turn(TurnInput::new("s", "hello")).collect().await;
    let mut played = Played { heard: Vec::new(), tokens: Vec::new(), status: "", stored: Vec::new() };
    for event in events {
        match event {
            TurnEvent::Message { text, .. } => played.heard.push(text),
            TurnEvent::Token { text } => played.tokens.push(text),
            TurnEvent::Finished { status } => played.status = status.name(),
            _ => {}
        }
    }
    // Another opening of the file sees the whole turn.
    let stored = SqliteStore::open(&file).unwrap().events("s").unwrap();
    played.stored = stored.iter().map(|event| json!(event)).collect();
    played
}

fn delta(text: &str) -> Step {
    event(&json!({"choices": [{"delta": {"content": text}}]}).to_string())
}

fn stop() -> Step {
    event(&json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}).to_string())
}

#[tokio::test]
async fn a_streamed_answer_is_heard_as_it_comes_and_kept_whole() {
    let server = Server::start([stream([delta("Hel"), delta("lo."), stop(), event("[DONE]")])]).await;
    let played = play(&server).await;
    assert_eq!(
        (played.tokens, played.heard, played.status),
        (vec!["Hel".into(), "lo.".into()], vec!["Hello.".to_owned()], "completed")
    );
    assert_eq!(
        played.stored[..2],
        [json!({"event": "user_message", "text": "hello"}), json!({"event": "bot_message", "text": "Hello."})]
    );
}

#[tokio::test]
async fn calls_come_in_pieces_and_broken_arguments_go_back_to_the_model() {
    let piece = |arguments: &str| {
        let call = json!({"index": 0, "id": "c1", "function": {"name": "find", "arguments": arguments}});
        event(&json!({"choices": [{"delta": {"tool_calls": [call]}}]}).to_string())
    };
    let asks = stream([
        piece("{\"q\""),
        piece(": 1"),
        event(&json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}).to_string()),
        event("[DONE]"),
    ]);
    let server = Server::start([asks, stream([delta("Sorry."), stop(), event("[DONE]")])]).await;
    let played = play(&server).await;
    assert_eq!((played.heard, played.status), (vec!["Sorry.".to_owned()], "completed"));
    let body: Value = serde_json::from_str(&server.asked()[1].body).unwrap();
    assert_eq!(body["messages"][3]["tool_call_id"], "c1");
    assert_eq!(body["messages"][3]["content"], "There is no tool `find`; the tools are listen");
}

#[tokio::test]
async fn a_refusal_is_asked_again_and_the_turn_goes_well() {
    let refusal = answer("429 Too Many Requests", "retry-after: 0\r\n", "{\"error\": {\"message\": \"slow down\"}}");
    let server = Server::start([refusal, stream([delta("Hello."), stop(), event("[DONE]")])]).await;
    assert_eq!(play(&server).await.status, "completed");
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn whatever_a_server_does_the_turn_ends_as_an_error_with_the_generic_response_and_the_store_is_whole() {
    let html = || answer("200 OK", "content-type: text/html\r\n", "<html>SECRET</html>");
    let bad: [(&str, Vec<Vec<Step>>); 8] = [
        ("HTML", vec![html(), html()]),
        ("half a JSON", vec![stream([event("{\"choices\": [{\"delta\": SECRET")])]),
        ("no choices", vec![stream([event("{\"choices\": [], \"secret\": \"SECRET\"}"), event("[DONE]")])]),
        ("an endless stream", vec![stream([delta("SECRET"), Step::Hold])]),
        ("a stream that breaks off", vec![stream([delta("SECRET")])]),
        (
            "a reply without end",
            vec![stream([Step::Repeat(b"data: {\"choices\": [{\"delta\": {\"content\": \"SECRET\"}}]}\n\n".to_vec())])],
        ),
        ("a server error", vec![answer("500 No", "", "SECRET"), answer("500 No", "", "SECRET")]),
        ("nobody there", vec![]),
    ];
    for (what, scripts) in bad {
        let server = Server::start(scripts).await;
        let played = play(&server).await;
        assert_eq!((played.heard.as_slice(), played.status), (&[FAILED.to_owned()][..], "error"), "{what}");
        assert_eq!(
            played.stored[..2],
            [
                json!({"event": "user_message", "text": "hello"}),
                json!({"event": "bot_message", "text": FAILED, "response": "utter_generic_failure"}),
            ],
            "{what}"
        );
        assert_eq!(played.stored[2]["status"], "error", "{what}");
        assert!(!json!(played.stored).to_string().contains("SECRET"), "{what}");
    }
}
