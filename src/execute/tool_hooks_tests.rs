//! The hooks around a tool call.

use std::time::Duration;

use serde_json::json;

use super::hooks::ExecutionHook::{OnAfterTool, OnBeforeTool};
use super::status::Status;
use super::testing::{Does, Replies, Runs, coded, scene};

const EXITS: &str = r#"exit done {"success": true, "result": 1}"#;

#[tokio::test]
async fn tool_hooks_replace_what_the_tool_and_the_code_are_given() {
    let done = scene(&[r#"call greet {"name": "Alice"}"#, EXITS])
        .tool("greet", Runs::Gives(json!("Hi")))
        .hook(OnBeforeTool, Does::Gives(json!({"name": "Jacques"})))
        .hook(OnAfterTool, Does::Gives(json!("HI JACQUES")))
        .run()
        .await;
    assert_eq!(
        done.log[5..8],
        [
            r#"before_tool greet {"name":"Alice"}"#,
            r#"tool greet {"name":"Jacques"}"#,
            r#"after_tool greet {"name":"Jacques"} "Hi""#
        ]
    );
    assert_eq!(done.result.iterations[0].variables["got"], "HI JACQUES");
    let call = json!({"tool_name": "greet", "input": {"name": "Alice"}, "output": "HI JACQUES", "success": true});
    assert_eq!(done.calls(0), [call]);
}

#[tokio::test]
async fn null_is_a_replacement_and_an_empty_input_of_a_tool() {
    let done = scene(&[r#"call f {"a": 1}"#, EXITS])
        .tool("f", Runs::Echoes)
        .hook(OnBeforeTool, Does::Gives(json!(null)))
        .hook(OnAfterTool, Does::Gives(json!(null)))
        .run()
        .await;
    assert_eq!(done.log[6..8], ["tool f {}", "after_tool f {} {}"]);
    assert_eq!(done.result.iterations[0].variables["got"], json!(null));
}

#[tokio::test]
async fn on_before_tool_that_fails_keeps_the_handler_from_running_and_raises_in_the_code() {
    let done = scene(&["try pay {}\nset after 1", EXITS])
        .tool("pay", Runs::Echoes)
        .hook(OnBeforeTool, Does::Fails("Not allowed."))
        .run()
        .await;
    assert_eq!(done.log[5..7], ["before_tool pay {}", "end 1 thinking_requested"]);
    assert_eq!(json!(done.result.iterations[0].variables), json!({"caught": "RuntimeError: Not allowed.", "after": 1}));
    assert_eq!(done.result.iterations[0].errors, ["RuntimeError: Not allowed."]);
    let call = json!({"tool_name": "pay", "input": {}, "error": "Not allowed.", "success": false});
    assert_eq!(done.calls(0), [call]);
}

#[tokio::test]
async fn on_before_tool_that_hangs_keeps_the_handler_from_running() {
    let done = scene(&["call pay {}", EXITS])
        .tool("pay", Runs::Echoes)
        .hook(OnBeforeTool, Does::Hangs)
        .with(|builder| builder.hook_timeout(Duration::from_millis(20)))
        .run()
        .await;
    assert_eq!(done.statuses(), ["execution_error", "exit_success"]);
    assert!(!done.log.contains(&"tool pay {}".to_owned()));
    let message = "RuntimeError: on_before_tool: it was not done after 20 ms".to_owned();
    let stack = "> 001 | call pay {}\n      | ^^^^^^^^^^^".to_owned();
    assert_eq!(done.result.iterations[0].status, Status::ExecutionError { message, stack });
}

#[tokio::test]
async fn on_after_tool_that_fails_raises_in_the_code_and_the_model_is_told_of_the_call() {
    let done = scene(&["call pay {}", EXITS])
        .tool("pay", Runs::Gives(json!("paid")))
        .hook(OnAfterTool, Does::Fails("No receipt."))
        .run()
        .await;
    assert_eq!(done.statuses(), ["execution_error", "exit_success"]);
    let told = done.told(1);
    assert!(
        told.contains("RuntimeError: No receipt.") && told.contains("- `pay` with {}: failed: No receipt."),
        "{told}"
    );
}

#[tokio::test]
async fn on_after_tool_is_not_called_where_the_tool_fails() {
    let done = scene(&["try pay {}", EXITS]).tool("pay", Runs::Fails("boom")).run().await;
    assert_eq!(done.log[5..8], ["before_tool pay {}", "tool pay {}", "end 1 thinking_requested"]);
    assert_eq!(done.calls(0), [json!({"tool_name": "pay", "input": {}, "error": "boom", "success": false})]);
}

#[tokio::test]
async fn a_tool_hook_that_thinks_gives_its_context_to_the_code_and_the_iteration_ends_with_a_look_at_it() {
    for (hook, runs) in [(OnBeforeTool, false), (OnAfterTool, true)] {
        let code = format!("call f {{}}\n{EXITS}");
        let done = scene(&[&code, EXITS])
            .tool("f", Runs::Gives(json!("x")))
            .hook_in(1, hook, Does::Thinks("Look", json!({"y": 2})))
            .run()
            .await;
        assert_eq!(done.statuses(), ["thinking_requested", "exit_success"]);
        assert_eq!(done.log.contains(&"tool f {}".to_owned()), runs);
        assert_eq!(done.result.iterations[0].variables["got"], json!({"y": 2}));
        assert_eq!(done.calls(0)[0]["success"], true);
        assert_eq!(done.log.iter().filter(|line| line.starts_with("exit ")).count(), 1, "its own exit is not taken");
    }
}

#[tokio::test]
async fn a_hook_sees_the_native_call_that_the_code_is_from() {
    let mut reply = coded(&format!("call f {{}}\n{EXITS}"));
    reply.calls[0].id = Some("toolu_1".into());
    let done = scene(&[]).replies(Replies::With(reply)).tool("f", Runs::Echoes).run().await;
    let calls = done.heard.iter().map(|(_, trace)| json!(trace)).filter(|trace| trace["type"] == "tool_call");
    assert_eq!(calls.map(|call| call["native_call_id"].clone()).collect::<Vec<_>>(), ["toolu_1"]);
}
