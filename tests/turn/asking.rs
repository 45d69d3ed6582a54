//! The request on its way to the model.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook::{AnyPayload, ModelReply, Object, Point};

use crate::scene::{Scene, calls, said};

fn object(value: Value) -> Arc<Object> {
    if let Value::Object(object) = value { Arc::new(object) } else { panic!("{value} is no object") }
}

fn request(change: impl Fn(&mut tenterhook::ModelRequestPayload) + Send + Sync + 'static) -> impl Fn(&mut AnyPayload) {
    move |payload| {
        if let AnyPayload::ModelRequest(payload) = payload {
            change(payload);
        }
    }
}

#[tokio::test]
async fn the_hook_sees_the_messages_the_tools_names_the_iteration_and_no_settings() {
    let scene = Scene::new([calls([("c1", "find", json!({}))]), said("Found.")]).tool("find", |_| 1.into_output());
    scene.turn("hello").await;
    let seen = scene.observed(Point::ModelRequest);
    assert_eq!(
        seen[0],
        json!({
            "sender_id": "s", "call": {"phone_number": null, "metadata": {}}, "channel": {"name": null, "metadata": {}},
            "messages": [{"role": "system", "content": "You talk to s."}, {"role": "user", "content": "hello"}],
            "model_settings": {}, "tool_names": ["find", "listen"], "iteration": 0,
        })
    );
    assert_eq!(seen[1]["iteration"], 1);
}

trait IntoOutput {
    fn into_output(self) -> tenterhook::ToolOutput;
}

impl IntoOutput for i32 {
    fn into_output(self) -> tenterhook::ToolOutput {
        tenterhook::ToolOutput::of(self)
    }
}

#[tokio::test]
async fn messages_reach_the_model_as_the_json_they_are() {
    let odd = json!({"role": "oracle", "content": [{"type": "image_url", "image_url": {"url": "x"}}], "extra": {"deep": [1, null]}});
    let given = odd.clone();
    let scene = Scene::new([said("Fine.")])
        .sets(Point::ModelRequest, request(move |payload| payload.messages = vec![object(given.clone())]));
    scene.turn("hello").await;
    assert_eq!(json!(scene.raw_requests()[0].messages), json!([odd]));
}

#[tokio::test]
async fn an_empty_list_of_messages_still_asks_the_model() {
    let scene = Scene::new([said("Fine.")]).sets(Point::ModelRequest, request(|payload| payload.messages.clear()));
    assert_eq!(scene.turn("hello").await.heard(), ["Fine."]);
    assert!(scene.raw_requests()[0].messages.is_empty());
}

#[tokio::test]
async fn settings_of_a_hook_hold_for_that_call_alone() {
    let scene = Scene::new([calls([("c1", "listen", json!({}))]), said("Fine.")]).sets(
        Point::ModelRequest,
        request(|payload| {
            if payload.messages.len() == 2 {
                payload.model_settings.set("temperature", json!(0.2));
            }
        }),
    );
    scene.turn("hello").await;
    scene.turn("again").await;
    let settings: Vec<_> = scene.raw_requests().iter().map(|request| json!(request.settings)).collect();
    assert_eq!(settings, [json!({"temperature": 0.2}), json!({})]);
}

#[tokio::test]
async fn a_failed_request_hook_asks_no_model_and_says_so() {
    let scene = Scene::new([said("never")]).failing(Point::ModelRequest);
    let played = scene.turn("hello").await;
    assert_eq!(
        (played.heard(), played.status()),
        (vec!["I'm sorry, but I can't answer right now. Please try again."], "error")
    );
    assert!(scene.raw_requests().is_empty());
    assert_eq!(scene.stored()[1]["response"], "utter_model_request_hook_error");
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again_twice_with_the_same_request_and_without_the_hooks() {
    let scene = Scene::new([ModelReply::default(), said("  "), said("Third.")])
        .sets(Point::ModelRequest, request(|payload| assert!(payload.model_settings.set("seed", json!(7)))));
    let played = scene.turn("hello").await;
    assert_eq!((played.heard(), played.status()), (vec!["Third."], "completed"));
    assert_eq!(scene.order(), ["modify model_request", "model", "model", "model"]);
    let requests = scene.raw_requests();
    assert!(
        requests
            .iter()
            .all(|request| request.messages == requests[0].messages && request.settings == requests[0].settings)
    );
    assert_eq!(json!(requests[2].settings), json!({"seed": 7}));
}

#[tokio::test]
async fn three_empty_answers_fail_the_turn() {
    let scene = Scene::new([ModelReply::default(), ModelReply::default(), ModelReply::default(), said("never")]);
    let played = scene.turn("hello").await;
    assert_eq!(
        (played.heard(), played.status()),
        (vec!["I'm sorry, but something went wrong. Please try again."], "error")
    );
    assert_eq!(scene.raw_requests().len(), 3);
}

#[tokio::test]
async fn the_request_is_trimmed_before_the_hooks_see_it() {
    let scene = Scene::new([said("one"), said("two")]).with(|builder| builder.max_prompt_tokens(Some(30)));
    scene.turn(&"long ".repeat(30)).await;
    scene.turn("now").await;
    assert_eq!(
        scene.observed(Point::ModelRequest)[1]["messages"],
        json!([
            {"role": "system", "content": "You talk to s."}, {"role": "user", "content": "now"},
        ])
    );
}

#[tokio::test]
async fn observers_have_copies_of_their_own_and_cost_the_stream_nothing() {
    let scene = Scene::new([said("one two three")]);
    assert_eq!(scene.turn("hello").await.tokens(), ["one ", "two ", "three"]);
}
