//! Batches of tool calls: all of them pass the hooks before any runs, and each result after.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenterhook::{AnyPayload, Outcome, Point, ToolOutput};

use crate::scene::{Scene, calls, proceed, said};

fn two() -> tenterhook::ModelReply {
    let mut reply = calls([("c1", "first", json!({"n": 1})), ("c2", "second", json!({"n": 2}))]);
    reply.text = Some("One moment.".into());
    reply
}

fn scene() -> Scene {
    Scene::new([two(), said("Done.")])
        .tool("first", |arguments| ToolOutput::of(arguments["n"].clone()))
        .tool("second", |_| ToolOutput::of("two"))
}

fn executed(scene: &Scene) -> Vec<Value> {
    scene.stored().into_iter().filter(|event| event["event"] == "tool_executed").collect()
}

#[tokio::test]
async fn every_call_passes_the_hook_in_batch_order_before_any_tool_runs() {
    let scene = scene().hook(Point::ToolCall, |payload| Outcome::Proceed {
        payload,
        changed: false,
        failure: None,
        discarded_signal: None,
    });
    scene.turn("hello").await;
    assert_eq!(scene.order()[..5], ["model", "modify tool_call", "modify tool_call", "tool first", "tool second"]);
    let names: Vec<_> = scene.observed(Point::ToolCall).iter().map(|call| call["tool_name"].clone()).collect();
    assert_eq!(names, ["first", "second"]);
}

#[tokio::test]
async fn a_call_and_its_result_are_stored_and_replayed() {
    let scene = scene();
    assert_eq!(scene.turn("hello").await.heard(), ["One moment.", "Done."]);
    assert_eq!(
        scene.stored()[1..5],
        [
            json!({"event": "bot_message", "text": "One moment."}),
            json!({"event": "tool_calls", "calls": [
                {"id": "c1", "tool_name": "first", "tool_args": {"n": 1}, "type": "function"},
                {"id": "c2", "tool_name": "second", "tool_args": {"n": 2}, "type": "function"}]}),
            json!({"event": "tool_executed", "id": "c1", "tool_name": "first", "arguments": {"n": 1}, "value": "1", "source": "local"}),
            json!({"event": "tool_executed", "id": "c2", "tool_name": "second", "arguments": {"n": 2}, "value": "two", "source": "local"}),
        ]
    );
    assert_eq!(
        scene.requests()[1][1..],
        [
            json!({"role": "assistant", "content": "One moment.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "first", "arguments": "{\"n\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "second", "arguments": "{\"n\":2}"}}]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "1"}),
            json!({"role": "tool", "tool_call_id": "c2", "content": "two"}),
        ]
    );
}

#[tokio::test]
async fn a_rewritten_call_is_what_runs_and_is_stored_while_its_id_and_type_stay() {
    let rename = |mut payload| {
        if let AnyPayload::ToolCall(call) = &mut payload
            && call.tool_name == "second"
        {
            (call.tool_name, call.arguments) = ("first".into(), json!({"n": 7}).as_object().unwrap().clone());
            call.headers.insert("authorization".into(), "HEADER".into());
        }
        proceed(payload)
    };
    let scene = scene().hook(Point::ToolCall, rename);
    let played = scene.turn("hello").await;
    assert_eq!(
        scene.stored()[2]["calls"][1],
        json!({"id": "c2", "tool_name": "first", "tool_args": {"n": 7}, "type": "function"})
    );
    assert_eq!(executed(&scene)[1]["value"], "7");
    let everywhere = format!("{}{:?}{:?}", json!(scene.stored()), played.events, scene.requests());
    assert!(!everywhere.contains("HEADER"), "headers reach nobody");
}

#[tokio::test]
async fn a_retry_for_a_later_call_discards_the_batch_and_the_text_beside_it() {
    let asked = std::sync::atomic::AtomicBool::new(false);
    let veto = move |payload| match &payload {
        AnyPayload::ToolCall(call)
            if call.tool_name == "second" && !asked.swap(true, std::sync::atomic::Ordering::Relaxed) =>
        {
            Outcome::Retry { feedback: "FEEDBACK".into() }
        }
        _ => proceed(payload),
    };
    let scene = scene().hook(Point::ToolCall, veto);
    let played = scene.turn("hello").await;
    assert_eq!((played.heard(), played.status()), (vec!["Done."], "completed"));
    assert!(!scene.order().iter().any(|step| step.starts_with("tool")));
    assert_eq!(scene.requests()[1][1], json!({"role": "system", "content": "FEEDBACK"}));
    assert_eq!(scene.stored().len(), 2);
}

#[tokio::test]
async fn a_failed_call_hook_runs_nothing_and_says_so() {
    let scene = scene().failing(Point::ToolCall);
    let played = scene.turn("hello").await;
    assert_eq!(
        (played.heard(), played.status()),
        (vec!["I'm sorry, but I can't do that right now. Please try again."], "error")
    );
    assert_eq!(scene.observed(Point::ToolCall).len(), 1, "the preflight ends at once");
    assert!(!scene.order().iter().any(|step| step.starts_with("tool")));
}

#[tokio::test]
async fn the_result_hook_sees_the_text_and_what_it_leaves_is_stored_and_replayed() {
    let redact = |mut payload| {
        if let AnyPayload::ToolResult(result) = &mut payload {
            assert!(result.value.is_string(), "a result reaches hooks as text");
            (result.value, result.is_error) = ("redacted".into(), true);
            result.arguments.clear();
        }
        proceed(payload)
    };
    let scene = scene().hook(Point::ToolResult, redact);
    scene.turn("my SECRET").await;
    assert_eq!(
        executed(&scene)[0],
        json!({"event": "tool_executed", "id": "c1", "tool_name": "first", "arguments": {}, "value": "redacted", "is_error": true, "source": "local"})
    );
    assert_eq!(scene.stored()[2]["calls"][0]["tool_args"], json!({}));
    assert_eq!(scene.requests()[1][2]["content"], "redacted");
    assert_eq!(scene.requests()[1][1]["tool_calls"][0]["function"]["arguments"], "{}");
}

#[tokio::test]
async fn a_failed_result_hook_keeps_the_result() {
    let scene = scene().failing(Point::ToolResult);
    assert_eq!(scene.turn("hello").await.status(), "completed");
    assert_eq!(executed(&scene)[0]["value"], "1");
}

#[tokio::test]
async fn the_calls_of_a_batch_run_at_once_and_their_results_stand_in_batch_order() {
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let wait = |barrier: &Arc<tokio::sync::Barrier>, pause: u64| {
        let barrier = Arc::clone(barrier);
        move |_, _| -> futures_util::future::BoxFuture<'static, ToolOutput> {
            let barrier = Arc::clone(&barrier);
            Box::pin(async move {
                barrier.wait().await;
                tokio::time::sleep(Duration::from_millis(pause)).await;
                ToolOutput::of(pause)
            })
        }
    };
    let scene = Scene::new([two(), said("Done.")])
        .async_tool("first", wait(&barrier, 20))
        .async_tool("second", wait(&barrier, 0));
    scene.turn("hello").await;
    let results: Vec<_> = executed(&scene).iter().map(|event| (event["id"].clone(), event["value"].clone())).collect();
    assert_eq!(results, [(json!("c1"), json!("20")), (json!("c2"), json!("0"))]);
}

#[tokio::test]
async fn unknown_tools_and_arguments_that_are_none_are_errors_that_pass_the_hooks_too() {
    let scene = Scene::new([calls([("c1", "no_such", json!({})), ("c2", "first", json!("{\"n\": "))]), said("Done.")])
        .tool("first", |_| ToolOutput::of(1));
    assert_eq!(scene.turn("hello").await.status(), "completed");
    let texts: Vec<_> = scene
        .observed(Point::ToolResult)
        .iter()
        .map(|result| (result["value"].clone(), result["is_error"].clone()))
        .collect();
    assert_eq!(
        texts,
        [
            (json!("There is no tool `no_such`; the tools are first, listen"), json!(true)),
            (json!("The arguments are no JSON object: {\"n\": "), json!(true)),
        ]
    );
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_an_error_result() {
    let forever = |_, _| -> futures_util::future::BoxFuture<'static, ToolOutput> { Box::pin(std::future::pending()) };
    let scene = Scene::new([calls([("c1", "slow", json!({}))]), said("Done.")]).async_tool("slow", forever);
    assert_eq!(scene.turn("hello").await.status(), "completed");
    assert_eq!(executed(&scene)[0]["value"], "`slow` was not done after 100 ms");
}

#[tokio::test]
async fn a_batch_of_listen_alone_ends_the_turn() {
    let scene = Scene::new([calls([("c1", "listen", json!({}))])]);
    let played = scene.turn("hello").await;
    assert_eq!((played.heard(), played.status()), (vec![], "completed"));
    assert_eq!(executed(&scene)[0]["source"], "engine");
    assert_eq!(scene.observed(Point::ToolCall).len(), 1, "engine tools pass the hooks");
}

#[tokio::test]
async fn routing_reads_the_names_that_the_hooks_leave() {
    let rename = |mut payload| {
        if let AnyPayload::ToolCall(call) = &mut payload {
            call.tool_name = "listen".into();
        }
        proceed(payload)
    };
    let scene = Scene::new([calls([("c1", "first", json!({}))])])
        .tool("first", |_| ToolOutput::of(1))
        .hook(Point::ToolCall, rename);
    assert_eq!(scene.turn("hello").await.status(), "completed");
    assert!(!scene.order().contains(&"tool first".to_owned()));
}

#[tokio::test]
async fn the_observer_of_calls_alone_does_not_buffer() {
    let mut reply = calls([("c1", "first", json!({}))]);
    reply.text = Some("One moment.".into());
    let scene = Scene::new([reply, said("Done.")]).tool("first", |_| ToolOutput::of(1));
    assert_eq!(scene.turn("hello").await.tokens(), ["One ", "moment.", "Done."]);
}
