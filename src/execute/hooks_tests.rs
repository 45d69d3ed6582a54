//! The table of hooks: arguments, return values, what throws where.

use std::time::Duration;

use serde_json::json;

use super::hooks::ExecutionHook::{
    OnAfterTool, OnBeforeExecution, OnBeforeTool, OnExit, OnIterationEnd, OnIterationStart, OnTrace,
};
use super::status::Status;
use super::testing::{Does, Replies, Runs, scene};

const EXITS: &str = r#"exit done {"success": true, "result": 1}"#;

fn error_of(status: &Status) -> (&'static str, String) {
    let message = match status {
        Status::ExecutionError { message, .. }
        | Status::ExitError { message, .. }
        | Status::GenerationError { message }
        | Status::InvalidCodeError { message } => message.clone(),
        Status::Aborted { reason } => reason.clone(),
        _ => String::new(),
    };
    (status.name(), message)
}

#[tokio::test]
async fn hooks_run_in_the_order_of_the_diagram() {
    let code = format!("call search {{\"q\": \"tea\"}}\n{EXITS}");
    let done = scene(&["value 1", &code])
        .tool("search", Runs::Gives(json!("found")))
        .with(|builder| builder.context(json!({"user": 7})))
        .run()
        .await;
    assert_eq!(
        done.log,
        [
            r#"start 1 {"user":7}"#,
            "model",
            "before 1",
            "open",
            "code",
            "end 1 thinking_requested",
            r#"start 2 {"user":7}"#,
            "model",
            "before 2",
            "code",
            r#"before_tool search {"q":"tea"}"#,
            r#"tool search {"q":"tea"}"#,
            r#"after_tool search {"q":"tea"} "found""#,
            r#"exit done {"success":true,"result":1}"#,
            "end 2 exit_success",
        ]
    );
    assert!(done.result.is_success() && done.result.is("done"));
    assert_eq!(done.result.output, json!({"success": true, "result": 1}));
}

#[tokio::test]
async fn on_iteration_start_that_fails_costs_an_iteration_and_no_model_call() {
    let done = scene(&[EXITS]).hook_in(1, OnIterationStart, Does::Fails("start hook boom")).run().await;
    assert_eq!(done.log[..4], ["start 1", "end 1 execution_error", "start 2", "model"]);
    let message = "Error in on_iteration_start hook: start hook boom".to_owned();
    assert_eq!(error_of(&done.result.iterations[0].status), ("execution_error", message.clone()));
    assert!(done.told(0).contains(&message), "{}", done.told(0));
    assert_eq!(done.requests[0].messages.last().unwrap()["role"], "user", "and no result of a tool is made up");
    assert!(done.result.is_success());
}

#[tokio::test]
async fn on_iteration_start_that_fails_in_the_only_iteration_ends_the_execution_without_a_model_call() {
    let done = scene(&[EXITS])
        .hook(OnIterationStart, Does::Fails("start hook boom"))
        .with(|builder| builder.iterations(1))
        .run()
        .await;
    assert_eq!(done.log, ["start 1", "end 1 execution_error"]);
    assert!(done.error().starts_with("Loop exceeded: 1 iterations"), "{}", done.error());
}

#[tokio::test]
async fn a_partial_iteration_changes_the_model_the_messages_and_the_variables_of_its_iteration() {
    let change =
        json!({"model": "other", "messages": [{"role": "user", "content": "Only this."}], "variables": {"x": 1}});
    let done = scene(&["value 1", EXITS])
        .with(|builder| builder.variables(super::testing::object(json!({"x": 0, "y": 0}))))
        .hook_in(1, OnIterationStart, Does::Gives(change))
        .run()
        .await;
    assert_eq!(done.requests[0].messages.len(), 1);
    assert!(done.requests[1].messages.len() > 1);
    assert_eq!(
        done.log,
        [
            "start 1",
            "model other",
            "before 1",
            "open",
            r#"code {"x":1}"#,
            "end 1 thinking_requested",
            "start 2",
            "model",
            "before 2",
            "code",
            r#"exit done {"success":true,"result":1}"#,
            "end 2 exit_success",
        ]
    );
}

#[tokio::test]
async fn code_of_a_partial_iteration_is_run_in_the_place_of_the_models() {
    let done = scene(&["call never {}", EXITS])
        .tool("never", Runs::Echoes)
        .tool("instead", Runs::Echoes)
        .hook_in(1, OnIterationStart, Does::Gives(json!({"code": "call instead {}"})))
        .run()
        .await;
    assert_eq!(done.log[5..8], ["before_tool instead {}", "tool instead {}", "after_tool instead {} {}"]);
    assert_eq!(done.result.iterations[0].code.as_deref(), Some("call instead {}"));
    assert!(done.told(1).starts_with("EXECUTION OVERRIDE"), "{}", done.told(1));
}

#[tokio::test]
async fn a_partial_iteration_with_another_field_or_an_unknown_model_is_an_error_of_the_hook() {
    for change in [json!({"instructions": "Be rude."}), json!({"model": "none"}), json!({"messages": "x"})] {
        let done = scene(&[EXITS]).hook_in(1, OnIterationStart, Does::Gives(change.clone())).run().await;
        assert_eq!(done.statuses(), ["execution_error", "exit_success"], "{change}");
        let (_, message) = error_of(&done.result.iterations[0].status);
        assert!(message.starts_with("Error in on_iteration_start hook: "), "{message}");
    }
}

#[tokio::test]
async fn on_before_execution_that_fails_keeps_the_code_from_running() {
    for does in [Does::Fails("no"), Does::Hangs] {
        let done = scene(&["call search {}", EXITS])
            .tool("search", Runs::Echoes)
            .hook_in(1, OnBeforeExecution, does)
            .with(|builder| builder.hook_timeout(Duration::from_millis(20)))
            .run()
            .await;
        assert_eq!(done.log[..4], ["start 1", "model", "before 1", "end 1 execution_error"]);
        let (_, message) = error_of(&done.result.iterations[0].status);
        assert!(done.told(1).contains(&message) && message.starts_with("Error in on_before_execution hook: "));
        assert!(done.result.is_success());
    }
}

#[tokio::test]
async fn on_before_execution_puts_other_code_in_the_place_of_the_models_and_the_model_is_told() {
    let done = scene(&["call original {}", EXITS])
        .tool("original", Runs::Echoes)
        .tool("other", Runs::Gives(json!("modified")))
        .hook_in(1, OnBeforeExecution, Does::Gives(json!("call other {}")))
        .run()
        .await;
    assert_eq!(done.log[5..8], ["before_tool other {}", "tool other {}", r#"after_tool other {} "modified""#]);
    insta::assert_snapshot!(done.told(1), @r#"
    EXECUTION OVERRIDE: your code was not run. This was run in its place:

    ```python
    call other {}
    ```

    Nothing of your code has happened: no tool of it was called and no exit of it was applied. Do not call its tools only to make up for that.

    The code came to its end without an exit.

    - `got` (str): "modified"

    Do not run the code again: go on from here, or exit.

    Tool calls of this step:
    - `other` with {}: done, gave "modified"
    "#);
}

#[tokio::test]
async fn an_override_that_is_the_models_own_code_is_not_told() {
    let done = scene(&["value 1", EXITS]).hook_in(1, OnBeforeExecution, Does::Gives(json!("value 1\n"))).run().await;
    assert!(!done.told(1).contains("EXECUTION OVERRIDE"));
}

#[tokio::test]
async fn blank_code_of_a_hook_is_ignored() {
    let done = scene(&[EXITS]).hook(OnBeforeExecution, Does::Gives(json!(" \n"))).run().await;
    assert_eq!(done.statuses(), ["exit_success"]);
    assert_eq!(done.result.iterations[0].code.as_deref(), Some(EXITS));
}

#[tokio::test]
async fn on_before_execution_runs_where_the_model_has_written_no_code_and_may_give_some() {
    let done = scene(&[])
        .says("I would rather talk.")
        .tool("demo", Runs::Echoes)
        .hook(OnBeforeExecution, Does::Gives(json!(format!("call demo {{\"text\": \"hello 123\"}}\n{EXITS}"))))
        .run()
        .await;
    assert_eq!(done.statuses(), ["exit_success"]);
    assert!(done.log.contains(&r#"tool demo {"text":"hello 123"}"#.to_owned()), "{:?}", done.log);
}

#[tokio::test]
async fn on_trace_hears_every_trace_once_in_order_with_its_iteration() {
    let code = format!("print hello\ncall f {{}}\n{EXITS}");
    let done = scene(&["raise ValueError no", &code]).tool("f", Runs::Echoes).run().await;
    let stored = done.result.iterations.iter().flat_map(|i| i.traces.iter().map(|trace| (i.number, trace.clone())));
    assert_eq!(done.heard, stored.collect::<Vec<_>>());
    assert_eq!(done.traces(0), ["llm_call_started", "llm_call_success", "code_execution_exception"]);
    assert_eq!(done.traces(1), ["llm_call_started", "llm_call_success", "log", "tool_call", "code_execution"]);
}

#[tokio::test]
async fn on_trace_that_panics_keeps_nothing_from_happening() {
    let done = scene(&[EXITS]).hook(OnTrace, Does::Panics).run().await;
    assert_eq!(done.statuses(), ["exit_success"]);
    assert_eq!(done.heard.len(), done.result.iterations[0].traces.len());
}

#[tokio::test]
async fn on_exit_that_fails_is_an_error_of_the_exit_and_the_loop_goes_on() {
    let done = scene(&[EXITS, EXITS])
        .hook(OnExit, Does::Fails("not allowed"))
        .with(|builder| builder.iterations(2))
        .run()
        .await;
    let status = Status::ExitError {
        exit: "done".into(),
        return_value: json!({"success": true, "result": 1}),
        message: "Error executing exit done: not allowed".into(),
    };
    assert_eq!(done.result.iterations[1].status, status);
    assert_eq!(done.statuses(), ["exit_error", "exit_error"]);
    assert!(done.told(1).starts_with("The exit `done` was not taken: Error executing exit done: not allowed"));
    assert!(done.error().starts_with("Loop exceeded"), "{}", done.error());
}

#[tokio::test]
async fn on_iteration_end_that_fails_changes_nothing() {
    for does in [Does::Fails("boom"), Does::Thinks("look", json!(1)), Does::Hangs] {
        let done = scene(&["value 1", EXITS])
            .hook(OnIterationEnd, does)
            .with(|builder| builder.hook_timeout(Duration::from_millis(20)))
            .run()
            .await;
        assert_eq!(done.statuses(), ["thinking_requested", "exit_success"]);
        assert!(done.result.is_success());
    }
}

#[tokio::test]
async fn a_hook_outside_of_tools_that_thinks_shows_the_model_what_it_says() {
    for (hook, log) in [
        (OnIterationStart, vec!["start 1", "end 1 thinking_requested"]),
        (OnBeforeExecution, vec!["start 1", "model", "before 1", "end 1 thinking_requested"]),
    ] {
        let thinks = Does::Thinks("The shop is closed", json!({"opens": "9:00"}));
        let done = scene(&[EXITS, EXITS]).hook_in(1, hook, thinks).run().await;
        assert_eq!(done.log[..log.len()], log);
        let told = done.told(done.requests.len() - 1);
        assert!(told.contains("The shop is closed") && told.contains("- `opens` (str): \"9:00\""), "{told}");
    }
}

#[tokio::test]
async fn a_critical_failure_of_any_hook_stops_the_run_without_a_further_model_call() {
    for (hook, requests) in [
        (OnIterationStart, 0),
        (OnBeforeExecution, 1),
        (OnBeforeTool, 1),
        (OnAfterTool, 1),
        (OnExit, 1),
        (OnIterationEnd, 1),
    ] {
        let code = format!("try f {{}}\n{EXITS}");
        let done = scene(&[&code, EXITS]).tool("f", Runs::Echoes).hook(hook, Does::Critical("no more")).run().await;
        assert_eq!((done.requests.len(), done.result.iterations.len()), (requests, 1), "{hook:?}");
        assert_eq!(done.error(), format!("Error in {} hook: no more", hook.name()));
        assert!(!done.result.is_success());
        assert!(done.log.last().unwrap().starts_with("end 1"), "{:?}", done.log);
    }
}

#[tokio::test]
async fn a_model_that_fails_ends_the_execution_after_its_iteration_is_finalised() {
    let done = scene(&[]).replies(Replies::Not).with(|builder| builder.iterations(5)).run().await;
    assert_eq!(done.log, ["start 1", "model", "end 1 generation_error"]);
    assert!(done.error().contains("no route"), "{}", done.error());
    assert_eq!(done.statuses(), ["generation_error"]);
}

#[tokio::test]
async fn without_hooks_nothing_is_called_and_all_the_same_happens() {
    let done = scene(&[EXITS]).unhooked().run().await;
    assert_eq!(done.log, ["model", "open", "code"]);
    assert!(done.result.is_success());
    assert_eq!(done.result.tokens, super::iteration::Tokens { input: 10, output: 2, total: 12 });
}
