//! The model's answer, before anything of it is heard or run.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook::{AnyPayload, ModelResponsePayload, Object, Outcome, Point, ToolOutput};

use crate::scene::{Scene, calls, proceed, retry, said};

fn response(change: impl Fn(&mut ModelResponsePayload) + Send + Sync + 'static) -> impl Fn(&mut AnyPayload) {
    move |payload| {
        if let AnyPayload::ModelResponse(payload) = payload {
            change(payload);
        }
    }
}

fn object(value: Value) -> Arc<Object> {
    if let Value::Object(object) = value { Arc::new(object) } else { panic!("{value} is no object") }
}

/// Discards the first answer.
fn once(feedback: &'static str) -> impl Fn(AnyPayload) -> Outcome<AnyPayload> + Send + Sync {
    let asked = std::sync::atomic::AtomicBool::new(false);
    move |payload| {
        let again = asked.swap(true, std::sync::atomic::Ordering::Relaxed);
        if again { proceed(payload) } else { retry(feedback)(payload) }
    }
}

#[tokio::test]
async fn the_hook_sees_text_calls_and_latency() {
    let mut reply = calls([("c1", "find", json!({"q": 1}))]);
    reply.text = Some("One moment.".into());
    reply.latency = Some(std::time::Duration::from_micros(1500));
    let scene = Scene::new([reply, said("Done.")]).tool("find", |_| ToolOutput::of(1));
    scene.turn("hello").await;
    let seen = &scene.observed(Point::ModelResponse)[0];
    assert_eq!(
        (&seen["text"], &seen["tool_calls"], &seen["latency_ms"]),
        (
            &json!("One moment."),
            &json!([{"id": "c1", "tool_name": "find", "tool_args": {"q": 1}, "type": "function"}]),
            &json!(1.5)
        )
    );
}

#[tokio::test]
async fn a_text_can_become_a_call_and_a_call_a_text() {
    let add = response(|payload| {
        if payload.text.as_deref() == Some("look") {
            payload.text = None;
            payload.tool_calls = vec![object(json!({"tool_name": "find", "tool_args": {"q": 2}}))];
        }
    });
    let scene =
        Scene::new([said("look"), said("Done.")]).sets(Point::ModelResponse, add).tool("find", |_| ToolOutput::of(2));
    assert_eq!(scene.turn("hello").await.heard(), ["Done."]);
    let stored = scene.stored();
    let id = stored[1]["calls"][0]["id"].as_str().unwrap();
    assert!(id.starts_with("call_"), "a call that a hook adds gets an id");
    assert_eq!((&stored[2]["id"], &stored[2]["arguments"]), (&json!(id), &json!({"q": 2})));

    let drop_calls = response(|payload| {
        payload.tool_calls.clear();
        payload.text = Some("No.".into());
    });
    let scene = Scene::new([calls([("c1", "find", json!({}))])]).sets(Point::ModelResponse, drop_calls);
    assert_eq!(scene.turn("hello").await.heard(), ["No."]);
    assert_eq!(scene.stored().len(), 2);
}

#[tokio::test]
async fn the_search_latch_follows_what_the_hooks_leave() {
    let unsearch = response(|payload| {
        for call in &mut payload.tool_calls {
            Arc::make_mut(call).insert("tool_name".into(), "find".into());
        }
    });
    let scene = Scene::new([calls([("c1", "search_knowledge", json!({"query": "x"}))]), said("Done.")])
        .references(Ok(Some(Vec::new())))
        .tool("find", |_| ToolOutput::of(2))
        .sets(Point::ModelResponse, unsearch);
    scene.turn("hello").await;
    let offered: Vec<_> =
        scene.observed(Point::ModelRequest).iter().map(|request| request["tool_names"].clone()).collect();
    assert_eq!(offered, [json!(["search_knowledge", "find", "listen"]), json!(["search_knowledge", "find", "listen"])]);
    assert!(scene.searched().is_empty());
}

#[tokio::test]
async fn calls_that_are_none_leave_the_answer_as_it_was() {
    let broken: [fn(&mut ModelResponsePayload); 4] = [
        |payload| payload.tool_calls = vec![object(json!({"id": "c1", "tool_args": {}}))],
        |payload| payload.tool_calls = vec![object(json!({"id": "c1", "tool_name": "find", "tool_args": []}))],
        |payload| payload.tool_calls.push(Arc::clone(&payload.tool_calls[0])),
        |payload| payload.tool_calls = vec![object(json!({"id": 7, "tool_name": "find"}))],
    ];
    for change in broken {
        let change = move |payload: &mut ModelResponsePayload| {
            if !payload.tool_calls.is_empty() {
                payload.text = Some("changed".into());
                change(payload);
            }
        };
        let scene = Scene::new([calls([("c1", "find", json!({"q": 1}))]), said("Done.")])
            .tool("find", |_| ToolOutput::of(2))
            .sets(Point::ModelResponse, response(change));
        assert_eq!(scene.turn("hello").await.heard(), ["Done."]);
        assert_eq!(
            scene.stored()[1]["calls"],
            json!([{"id": "c1", "tool_name": "find", "tool_args": {"q": 1}, "type": "function"}])
        );
    }
}

#[tokio::test]
async fn a_retry_emits_and_runs_nothing_and_steers_the_next_request_alone() {
    let mut first = calls([("c1", "find", json!({}))]);
    first.text = Some("One moment.".into());
    let scene = Scene::new([first, calls([("c2", "find", json!({}))]), said("Done.")])
        .tool("find", |_| ToolOutput::of(1))
        .hook(Point::ModelResponse, once("FEEDBACK"));
    let played = scene.turn("hello").await;
    assert_eq!(played.heard(), ["Done."]);
    let requests = scene.requests();
    let feedback = json!({"role": "system", "content": "FEEDBACK"});
    assert_eq!(requests[1], [json!({"role": "user", "content": "hello"}), feedback.clone()]);
    assert!(!requests[2].contains(&feedback));
    assert_eq!(scene.observed(Point::ModelRequest)[1]["messages"][2], feedback, "the request hooks see it");
    let elsewhere = format!("{}{:?}", json!(scene.stored()), played.events);
    assert!(!elsewhere.contains("FEEDBACK") && !elsewhere.contains("One moment"), "{elsewhere}");
    assert_eq!(scene.stored().iter().filter(|event| event["event"] == "tool_executed").count(), 1);
}

#[tokio::test]
async fn feedback_is_cut_at_two_thousand_characters() {
    let long: &'static str = "ü".repeat(3000).leak();
    let scene = Scene::new([said("bad"), said("good")]).hook(Point::ModelResponse, once(long));
    scene.turn("hello").await;
    assert_eq!(scene.requests()[1][1]["content"].as_str().unwrap().chars().count(), 2000);
}

#[tokio::test]
async fn retries_count_toward_the_cap_and_reaching_it_is_an_error() {
    let scene = Scene::new([said("bad"), said("bad"), said("bad")])
        .hook(Point::ModelResponse, retry("no"))
        .with(|builder| builder.max_iterations(3));
    let played = scene.turn("hello").await;
    assert_eq!(
        (played.heard(), played.status()),
        (vec!["I'm sorry, but this is taking me too long. Please try again."], "error")
    );
    assert_eq!(scene.raw_requests().len(), 3);
}

#[tokio::test]
async fn a_failed_response_hook_leaves_the_answer_as_it_was() {
    let scene = Scene::new([said("as it was")]).failing(Point::ModelResponse);
    let played = scene.turn("hello").await;
    assert_eq!((played.heard(), played.status()), (vec!["as it was"], "completed"));
}

#[tokio::test]
async fn a_hook_that_may_change_the_answer_buffers_it_and_delivers_it_once() {
    let unchanged = |payload| Outcome::Proceed { payload, changed: false, failure: None, discarded_signal: None };
    for point in [Point::ModelResponse, Point::ToolCall, Point::OutgoingText] {
        let scene = Scene::new([said("one two")]).hook(point, unchanged);
        let played = scene.turn("hello").await;
        assert_eq!((played.tokens(), played.heard()), (vec![], vec!["one two"]), "{point}");
    }
    let scene = Scene::new([said("one two")]).hook(Point::ModelRequest, unchanged);
    assert_eq!(scene.turn("hello").await.tokens(), ["one ", "two"]);
    let scene = Scene::new([said("one two")]).without_observers();
    assert_eq!(scene.turn("hello").await.tokens(), ["one ", "two"]);
}
