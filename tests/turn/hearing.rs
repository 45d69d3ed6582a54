//! The user's text on its way in.

use serde_json::json;
use tenterhook::{AnyPayload, Outcome, Point, TurnInput};

use crate::scene::{Scene, play, said};

fn rewrites(text: &'static str) -> impl Fn(&mut AnyPayload) {
    move |payload| {
        if let AnyPayload::IncomingMessage(payload) = payload {
            payload.text = text.into();
        }
    }
}

#[tokio::test]
async fn a_rewritten_text_is_the_one_that_is_stored_and_seen_and_the_original_is_nowhere() {
    let scene = Scene::new([said("Fine.")]).sets(Point::IncomingMessage, rewrites("my card is [card]"));
    assert_eq!(scene.turn("my card is 4111").await.heard(), ["Fine."]);
    assert_eq!(scene.requests(), [[json!({"role": "user", "content": "my card is [card]"})]]);
    assert_eq!(scene.stored()[0], json!({"event": "user_message", "text": "my card is [card]"}));
    assert!(!json!(scene.stored()).to_string().contains("4111"));
}

#[tokio::test]
async fn observers_see_the_text_as_it_came() {
    let scene = Scene::new([said("Fine.")]).sets(Point::IncomingMessage, rewrites("other"));
    scene.turn("as it came").await;
    assert_eq!(scene.observed(Point::IncomingMessage)[0]["text"], "as it came");
}

#[tokio::test]
async fn a_rejected_text_is_kept_as_discarded_masked_from_the_model_and_answered_with_the_fallback() {
    let scene = Scene::new([said("Fine.")]);
    let reject = |payload: AnyPayload| match payload {
        AnyPayload::IncomingMessage(payload) if payload.text == "spam" => {
            Outcome::Reject { reason: "spam".into(), response: None }
        }
        payload => crate::scene::proceed(payload),
    };
    let scene = scene.hook(Point::IncomingMessage, reject);
    let played = scene.turn("spam").await;
    assert_eq!((played.heard(), played.status()), (vec!["I'm sorry, but I can't process that message."], "completed"));
    assert_eq!(
        scene.stored(),
        [
            json!({"event": "user_message", "text": "spam", "discarded": true}),
            json!({"event": "bot_message", "text": "I'm sorry, but I can't process that message.",
                "response": "utter_incoming_message_rejected"}),
        ]
    );
    assert_eq!(scene.turn("hello").await.heard(), ["Fine."]);
    assert_eq!(
        scene.requests(),
        [[
            json!({"role": "user", "content": "[This message was discarded.]"}),
            json!({"role": "assistant", "content": "I'm sorry, but I can't process that message."}),
            json!({"role": "user", "content": "hello"}),
        ]]
    );
}

#[tokio::test]
async fn a_rejection_may_say_what_the_user_is_to_hear() {
    let scene = Scene::new([]).hook(Point::IncomingMessage, |_| Outcome::Reject {
        reason: "no".into(),
        response: Some("Please write without your card.".into()),
    });
    assert_eq!(scene.turn("spam").await.heard(), ["Please write without your card."]);
}

#[tokio::test]
async fn a_failed_hook_keeps_the_turn_from_running_on_the_original() {
    let scene = Scene::new([said("never")]).failing(Point::IncomingMessage);
    let played = scene.turn("my card is 4111").await;
    assert_eq!(
        (played.heard(), played.status()),
        (vec!["I'm sorry, but something went wrong. Please try again."], "error")
    );
    assert!(scene.requests().is_empty());
    assert!(!json!(scene.stored()).to_string().contains("4111"), "it might have taken that out");
}

#[tokio::test]
async fn messages_without_words_do_not_run_the_hooks() {
    let scene = Scene::new([said("Hi."), said("Hi.")]).failing(Point::IncomingMessage);
    for text in ["/session_start", ""] {
        assert_eq!(scene.turn(text).await.heard(), ["Hi."]);
    }
    assert!(scene.observed(Point::IncomingMessage).is_empty());
    assert_eq!(scene.requests()[0], [json!({"role": "user", "content": "/session_start"})]);
}

#[tokio::test]
async fn what_the_turn_is_given_is_what_every_payload_shows() {
    let scene = Scene::new([said("Fine.")]);
    let mut input = TurnInput::new("s", "hello");
    input.message_id = Some("m1".into());
    input.channel.name = Some("rest".into());
    input.call.phone_number = Some("+49".into());
    input.is_voice = true;
    play(&scene.engine(), input).await;
    let points = [
        Point::TurnStarted,
        Point::IncomingMessage,
        Point::ModelRequest,
        Point::ModelResponse,
        Point::OutgoingText,
        Point::TurnFinished,
    ];
    for point in points {
        let seen = scene.observed(point);
        assert_eq!(seen.len(), 1, "{point}");
        assert_eq!(
            (&seen[0]["sender_id"], &seen[0]["channel"]["name"], &seen[0]["call"]["phone_number"]),
            (&json!("s"), &json!("rest"), &json!("+49"))
        );
    }
    assert_eq!(scene.observed(Point::IncomingMessage)[0]["message_id"], "m1");
    assert_eq!(scene.observed(Point::TurnStarted)[0]["is_voice"], true);
    assert_eq!(scene.observed(Point::OutgoingText)[0]["is_voice"], true);
}
