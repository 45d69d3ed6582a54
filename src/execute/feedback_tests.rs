//! What the model reads of an iteration, word by word.

use serde_json::json;

use super::hooks::ExecutionHook::{OnExit, OnIterationStart};
use super::testing::{Does, Replies, Runs, Scene, coded, scene};

const EXITS: &str = r#"exit done {"success": true, "result": 1}"#;

/// What stands last in the request after the first iteration.
async fn told(scene: Scene) -> String {
    let done = scene.run().await;
    done.told(done.requests.len() - 1)
}

#[tokio::test]
async fn of_code_that_has_failed() {
    let code = "set total 7\ncall pay {\"sum\": 7}\nprint paid\ncall demo {}\nset never 1";
    let scene =
        scene(&[code, EXITS]).tool("pay", Runs::Gives(json!({"receipt": 12}))).tool("demo", Runs::Fails("boom"));
    insta::assert_snapshot!(told(scene).await);
}

#[tokio::test]
async fn of_code_that_cannot_be_read() {
    insta::assert_snapshot!(told(scene(&["syntax", EXITS])).await);
}

#[tokio::test]
async fn of_an_exit_that_was_refused() {
    insta::assert_snapshot!(told(scene(&[EXITS, EXITS]).hook(OnExit, Does::Fails("not allowed"))).await);
}

#[tokio::test]
async fn of_a_hook_that_failed_before_the_model_was_asked() {
    insta::assert_snapshot!(told(scene(&[EXITS]).hook_in(1, OnIterationStart, Does::Fails("no budget"))).await);
}

#[tokio::test]
async fn of_something_to_look_at_with_few_answers_left() {
    let thinks =
        Runs::Thinks("Two orders were found", json!({"orders": [{"id": 1}, {"id": 2, "open": true, "note": null}]}));
    let scene = scene(&["call f {}", EXITS]).tool("f", thinks).with(|builder| builder.iterations(2));
    insta::assert_snapshot!(told(scene).await);
}

#[tokio::test]
async fn of_an_answer_without_code() {
    insta::assert_snapshot!(told(scene(&[]).says("Hm.").replies(Replies::With(coded(EXITS)))).await);
}

#[tokio::test]
async fn long_values_and_many_calls_are_cut() {
    let code = "call f {}\n".repeat(50) + &format!("value {}", json!("x".repeat(9_000)));
    let told = told(scene(&[&code, EXITS]).tool("f", Runs::Gives(json!("y".repeat(900))))).await;
    assert!(told.len() < 30_000, "{}", told.len());
    assert!(told.contains("… (5002 more characters)") && told.contains("- and 10 more"), "{told}");
}
