//! A turn's start and end, one pair whatever happens; what is kept; turns of one conversation and of many.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;
use tenterhook::{ConversationStore, Event, ModelError, Point, StoreError, ToolOutput, TurnEvent, TurnInput};

use crate::scene::{Scene, calls, play, said};

/// The status that observers have heard, for each turn; each has a start before it.
fn pairs(scene: &Scene) -> Vec<String> {
    let (starts, ends) = (scene.observed(Point::TurnStarted), scene.observed(Point::TurnFinished));
    assert_eq!(starts.len(), ends.len());
    for (start, end) in starts.iter().zip(&ends) {
        assert_eq!(start["turn_id"], end["turn_id"]);
    }
    ends.iter().map(|end| end["status"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_turn_has_one_start_and_one_end() {
    let scene = Scene::new([said("Fine.")]);
    assert_eq!(scene.turn("hello").await.status(), "completed");
    assert_eq!(pairs(&scene), ["completed"]);
    assert_eq!(scene.stored_with_ends().last().unwrap()["status"], "completed");
}

#[tokio::test]
async fn a_model_that_fails_ends_the_turn_as_an_error_and_its_words_are_nowhere() {
    let scene = Scene::new([]);
    scene.answers(Err(ModelError::Broken { model: "m".into(), message: "SECRET".into() }));
    let played = scene.turn("hello").await;
    assert_eq!(
        (played.heard(), played.status()),
        (vec!["I'm sorry, but something went wrong. Please try again."], "error")
    );
    assert_eq!(pairs(&scene), ["error"]);
    let everywhere = format!("{:?}{}", played.events, json!(scene.stored_with_ends()));
    assert!(!everywhere.contains("SECRET"), "{everywhere}");
}

#[tokio::test]
async fn no_exception_of_a_hook_is_told_to_user_model_or_store() {
    for point in [
        Point::IncomingMessage,
        Point::ModelRequest,
        Point::ModelResponse,
        Point::ToolCall,
        Point::ToolResult,
        Point::OutgoingText,
    ] {
        let scene = Scene::new([calls([("c1", "find", json!({}))]), said("Done.")])
            .tool("find", |_| ToolOutput::of(1))
            .failing(point);
        let played = scene.turn("hello").await;
        let everywhere = format!("{:?}{}{:?}", played.events, json!(scene.stored_with_ends()), scene.requests());
        assert!(!everywhere.contains("SECRET") && !everywhere.contains("ValueError"), "{point}: {everywhere}");
        assert_eq!(pairs(&scene).len(), 1, "{point}");
    }
}

#[tokio::test]
async fn an_interrupted_turn_is_cancelled_keeps_its_pair_and_stores_no_half_batch() {
    let forever =
        |_, context: Arc<dyn tenterhook::ToolContext>| -> futures_util::future::BoxFuture<'static, ToolOutput> {
            Box::pin(async move {
                context.send("Wait.".into()).await;
                std::future::pending().await
            })
        };
    let scene = Scene::new([calls([("c1", "slow", json!({}))])]).async_tool("slow", forever).with(|builder| builder);
    let engine = scene.engine();
    let mut stream = engine.turn(TurnInput::new("s", "hello"));
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        if matches!(event, TurnEvent::Message { .. }) {
            assert!(engine.interrupt("s"));
        }
        events.push(event);
    }
    assert_eq!(pairs(&scene), ["cancelled"]);
    assert_eq!(
        scene.stored(),
        [json!({"event": "user_message", "text": "hello"}), json!({"event": "bot_message", "text": "Wait."})]
    );
    assert!(!engine.interrupt("s"), "no turn runs any more");
}

#[tokio::test]
async fn a_turn_whose_stream_is_dropped_is_cancelled_and_keeps_its_pair() {
    let scene = Scene::new([]);
    let engine = scene.engine();
    let mut stream = engine.turn(TurnInput::new("s", "hello"));
    assert!(matches!(stream.next().await, Some(TurnEvent::Started { .. })));
    assert!(tokio::time::timeout(Duration::from_millis(20), stream.next()).await.is_err(), "the model is silent");
    drop(stream);
    assert_eq!(pairs(&scene), ["cancelled"]);
    assert_eq!(scene.stored_with_ends().last().unwrap()["status"], "cancelled");
    // The conversation is free again.
    scene.answers(Ok(said("Fine.")));
    assert_eq!(play(&engine, TurnInput::new("s", "again")).await.heard(), ["Fine."]);
}

#[tokio::test]
async fn turns_of_one_conversation_follow_each_other_and_those_of_others_run_at_once() {
    for (other, most) in [("s", 1), ("other", 2)] {
        let (now, highest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&highest);
        let wait = move |_, _| -> futures_util::future::BoxFuture<'static, ToolOutput> {
            let (now, highest) = (Arc::clone(&now), Arc::clone(&highest));
            Box::pin(async move {
                highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(30)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                ToolOutput::of(1)
            })
        };
        let calls = || calls([("c1", "wait", json!({})), ("c2", "listen", json!({}))]);
        let replies = if most == 2 {
            [calls(), calls(), said("one"), said("two")]
        } else {
            [calls(), said("one"), calls(), said("two")]
        };
        let scene = Scene::new(replies).async_tool("wait", wait);
        let engine = scene.engine();
        tokio::join!(play(&engine, TurnInput::new("s", "hello")), play(&engine, TurnInput::new(other, "hello")));
        assert_eq!(seen.load(Ordering::SeqCst), most, "{other}");
        assert_eq!(pairs(&scene), ["completed", "completed"]);
    }
}

#[tokio::test]
async fn a_barge_in_cancels_the_turn_that_runs() {
    let scene = Scene::new([]);
    let engine = scene.engine();
    let first = play(&engine, TurnInput::new("s", "hello"));
    let second = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        scene.answers(Ok(said("Fine.")));
        let mut input = TurnInput::new("s", "stop");
        input.interrupts = true;
        play(&engine, input).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first.status(), second.status(), second.heard()), ("cancelled", "completed", vec!["Fine."]));
    assert_eq!(pairs(&scene), ["cancelled", "completed"]);
}

#[tokio::test]
async fn a_conversation_that_rested_too_long_begins_a_session_of_which_alone_the_model_is_shown() {
    let scene = Scene::new([said("One."), said("Two."), said("Three.")])
        .with(|builder| builder.session_limit(Some(Duration::from_millis(300))));
    scene.turn("first").await;
    scene.turn("second").await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    scene.turn("third").await;
    let user = |text: &str| json!({"role": "user", "content": text});
    assert_eq!(scene.requests()[1].last(), Some(&user("second")));
    assert_eq!(scene.requests()[1].len(), 3);
    assert_eq!(scene.requests()[2], [user("third")]);
    assert_eq!(scene.stored()[4], json!({"event": "session_started"}));
}

struct Broken;

impl ConversationStore for Broken {
    fn events(&self, _: &str) -> Result<Vec<Event>, StoreError> {
        Ok(Vec::new())
    }

    fn append(&self, _: &str, _: &[Event]) -> Result<(), StoreError> {
        Err(StoreError { what: "cannot be written to", reason: "the disk is full".into() })
    }
}

#[tokio::test]
async fn a_turn_that_cannot_be_kept_is_an_error() {
    let scene = Scene::new([said("Fine.")]).with(|builder| builder.store(Broken));
    assert_eq!(scene.turn("hello").await.status(), "error");
    assert_eq!(pairs(&scene), ["error"]);
}
