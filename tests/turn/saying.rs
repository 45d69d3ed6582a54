//! What is said to the user on its way out.

use serde_json::json;
use tenterhook::{
    AnyPayload, FixedResponses, Object, Outcome, Point, Rendered, Responses, ToolOutput, TurnEvent, TurnInput,
};

use crate::scene::{Scene, calls, play, retry, said};

fn shout(payload: &mut AnyPayload) {
    if let AnyPayload::OutgoingText(payload) = payload {
        payload.text = payload.text.to_uppercase();
    }
}

#[tokio::test]
async fn each_completed_utterance_passes_the_hook_those_of_tools_included() {
    let send = |_,
                context: std::sync::Arc<dyn tenterhook::ToolContext>|
     -> futures_util::future::BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            context.send("from a tool".into()).await;
            ToolOutput::of(1)
        })
    };
    let mut reply = calls([("c1", "tell", json!({}))]);
    reply.text = Some("one moment".into());
    let scene = Scene::new([reply, said("done")]).async_tool("tell", send).sets(Point::OutgoingText, shout);
    assert_eq!(scene.turn("hello").await.heard(), ["ONE MOMENT", "FROM A TOOL", "DONE"]);
    let kinds: Vec<_> = scene.stored().iter().map(|event| event["event"].clone()).collect();
    assert_eq!(kinds, ["user_message", "bot_message", "tool_calls", "tool_executed", "bot_message", "bot_message"]);
    assert_eq!(scene.requests()[1][3], json!({"role": "assistant", "content": "FROM A TOOL"}));
    let seen: Vec<_> = scene.observed(Point::OutgoingText).iter().map(|text| text["text"].clone()).collect();
    assert_eq!(seen, ["one moment", "from a tool", "done"]);
}

#[tokio::test]
async fn a_rejected_text_is_kept_as_discarded_and_the_fallback_is_said_without_the_hooks() {
    let scene = Scene::new([said("secret"), said("next")]).hook(Point::OutgoingText, |payload| match &payload {
        AnyPayload::OutgoingText(text) if text.text == "secret" => {
            Outcome::Reject { reason: "no".into(), response: None }
        }
        _ => crate::scene::proceed(payload),
    });
    let played = scene.turn("hello").await;
    assert_eq!((played.heard(), played.status()), (vec!["I'm sorry, but I can't share that."], "completed"));
    assert_eq!(
        scene.stored()[1..],
        [
            json!({"event": "bot_message", "text": "secret", "discarded": true}),
            json!({"event": "bot_message", "text": "I'm sorry, but I can't share that.", "response": "utter_outgoing_text_rejected"}),
        ]
    );
    assert_eq!(scene.observed(Point::OutgoingText).len(), 1);
    scene.turn("again").await;
    assert!(!json!(scene.requests()).to_string().contains("secret"));
}

#[tokio::test]
async fn a_failed_hook_sends_the_text_as_it_was() {
    let scene = Scene::new([said("as it was")]).failing(Point::OutgoingText);
    let played = scene.turn("hello").await;
    assert_eq!((played.heard(), played.status()), (vec!["as it was"], "completed"));
    assert_eq!(scene.stored()[1], json!({"event": "bot_message", "text": "as it was"}));
}

#[tokio::test]
async fn fallbacks_of_failures_do_not_pass_the_hook() {
    let scene = Scene::new([]).failing(Point::ModelRequest).sets(Point::OutgoingText, shout);
    assert_eq!(scene.turn("hello").await.heard(), ["I'm sorry, but I can't answer right now. Please try again."]);
    assert!(scene.observed(Point::OutgoingText).is_empty());
}

#[tokio::test]
async fn what_came_of_each_hook_is_told_without_what_it_saw() {
    let scene = Scene::new([said("secret")]).failing(Point::ModelResponse).sets(Point::OutgoingText, shout);
    let played = scene.turn("hello").await;
    let ran: Vec<_> = played
        .events
        .iter()
        .filter_map(|event| match event {
            TurnEvent::HookRan { point, outcome, .. } => Some((*point, *outcome)),
            _ => None,
        })
        .collect();
    assert_eq!(ran, [(Point::ModelResponse, "failed"), (Point::OutgoingText, "changed")]);
    assert!(!format!("{:?}", played.events).contains("secret"));
}

#[tokio::test]
async fn what_a_hook_changed_is_told_where_the_input_asks_for_it() {
    let scene = Scene::new([said("secret")]).sets(Point::OutgoingText, shout);
    let played = play(&scene.engine(), TurnInput { shows_changes: true, ..TurnInput::new("s", "hello") }).await;
    let changes: Vec<_> = played
        .events
        .iter()
        .filter_map(|event| match event {
            TurnEvent::HookRan { changed, .. } => Some(json!(changed)),
            _ => None,
        })
        .collect();
    assert_eq!(changes, [json!({"before": {"text": "secret"}, "after": {"text": "SECRET"}})]);
}

struct Rephrased;

impl Responses for Rephrased {
    fn render(&self, name: &str, values: &Object) -> Option<Rendered> {
        let rendered = FixedResponses.render(name, values)?;
        Some(Rendered { text: "Canned.".into(), rephrase: true, ..rendered })
    }
}

#[tokio::test]
async fn a_response_that_is_to_be_rephrased_is_by_a_quiet_call_with_the_hooks_of_the_model() {
    let rejecting = || {
        Scene::new([said("In other words.")])
            .with(|builder| builder.responses(Rephrased))
            .hook(Point::IncomingMessage, |_| Outcome::Reject { reason: "no".into(), response: None })
    };
    let scene = rejecting();
    assert_eq!(scene.turn("hello").await.heard(), ["In other words."]);
    assert_eq!(scene.raw_requests()[0].messages[1]["content"], "Canned.");
    assert_eq!((scene.observed(Point::ModelRequest).len(), scene.observed(Point::ModelResponse).len()), (1, 1));
    // Discarded or failed: the text as it is, and the turn goes on; the feedback goes nowhere.
    let scene = rejecting().hook(Point::ModelResponse, retry("FEEDBACK"));
    let played = scene.turn("hello").await;
    assert_eq!((played.heard(), played.status()), (vec!["Canned."], "completed"));
    assert!(!format!("{:?}{}", played.events, json!(scene.stored())).contains("FEEDBACK"));
    let scene = rejecting().failing(Point::ModelRequest);
    assert_eq!(scene.turn("hello").await.heard(), ["Canned."]);
    assert!(scene.raw_requests().is_empty());
}
