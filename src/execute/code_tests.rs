//! Calls from code: arguments, errors, time, budgets, exits, and what the end of code means.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::exit::Exit;
use super::runner::{CodeLimits, CodeRunner, CodeSession, RunnerError};
use super::status::Status;
use super::testing::{Runs, object, scene};
use crate::tools::ToolSpec;

const EXITS: &str = r#"exit done {"success": true, "result": 1}"#;

fn search() -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 3}},
        "required": ["query"],
    });
    ToolSpec { parameters: object(parameters), ..ToolSpec::new("search", "Searches.") }
}

/// What code that catches everything has caught or got.
async fn gives(code: &str) -> Value {
    let done = scene(&[code, EXITS]).tool_with(search(), Runs::Echoes, None).run().await;
    assert_eq!(done.statuses(), ["thinking_requested", "exit_success"]);
    json!(done.result.iterations[0].variables)
}

#[tokio::test]
async fn positional_arguments_are_given_the_names_of_the_parameters() {
    assert_eq!(gives(r#"pos search ["tea", 5]"#).await, json!({"got": {"query": "tea", "limit": 5}}));
}

#[tokio::test]
async fn a_call_that_does_not_fit_the_signature_is_a_type_error_in_the_code() {
    let caught = |text: &str| json!({"caught": format!("TypeError: {text}")});
    assert_eq!(gives(r#"try search {"q": "tea"}"#).await, caught("search() got an unexpected keyword argument 'q'"));
    assert_eq!(gives("try search {}").await, caught("search() missing 1 required argument: 'query'"));
    assert_eq!(gives("try search [1, 2, 3]").await, caught("search() takes 2 positional arguments but 3 were given"));
}

#[tokio::test]
async fn an_input_that_does_not_fit_the_schema_keeps_the_handler_from_running() {
    let done = scene(&[r#"try search {"query": 7}"#, EXITS]).tool_with(search(), Runs::Echoes, None).run().await;
    let error = "`search` received invalid input:\n  the value at `[\"query\"]`: want string, but got number";
    assert_eq!(done.result.iterations[0].variables["caught"], format!("ValueError: {error}"));
    assert_eq!(done.log[5..7], [r#"before_tool search {"query":7}"#, "end 1 thinking_requested"]);
    let call = json!({"tool_name": "search", "input": {"query": 7}, "error": error, "success": false});
    assert_eq!(done.calls(0), [call]);
}

#[tokio::test]
async fn what_a_tool_raises_can_be_caught_and_else_ends_the_code_with_its_place() {
    let done = scene(&["set x 1\n  call demo {}\nset y 2", EXITS])
        .tool("demo", Runs::Fails("This is a demo error"))
        .run()
        .await;
    let stack = "  001 | set x 1\n> 002 |   call demo {}\n      |   ^^^^^^^^^^^^\n  003 | set y 2";
    let status = Status::ExecutionError { message: "RuntimeError: This is a demo error".into(), stack: stack.into() };
    assert_eq!(done.result.iterations[0].status, status);
    assert_eq!(done.statuses(), ["execution_error", "exit_success"]);
    assert_eq!(json!(done.result.iterations[0].variables), json!({"x": 1}), "what was set before is carried on");
}

#[tokio::test]
async fn an_error_of_the_code_and_code_that_cannot_be_read_are_told_and_the_loop_goes_on() {
    let done = scene(&["raise ValueError kaboom", "syntax", EXITS]).run().await;
    assert_eq!(done.statuses(), ["execution_error", "invalid_code_error", "exit_success"]);
    assert!(done.told(1).contains("ValueError: kaboom") && done.told(2).contains("SyntaxError: invalid syntax"));
    assert_eq!(done.traces(1), ["llm_call_started", "llm_call_success", "invalid_code_exception"]);
}

#[tokio::test]
async fn a_tool_that_is_not_done_in_its_time_is_a_time_out_in_the_code() {
    let own = Some(Duration::from_millis(20));
    let done = scene(&["try slow {}", EXITS]).tool_with(ToolSpec::new("slow", "Slow."), Runs::Hangs, own).run().await;
    let caught = json!({"caught": "TimeoutError: `slow` was not done after 20 ms"});
    assert_eq!(json!(done.result.iterations[0].variables), caught);
    let done = scene(&["try slow {}", EXITS])
        .tool("slow", Runs::Hangs)
        .with(|builder| builder.tool_timeout(Duration::from_millis(30)))
        .run()
        .await;
    assert_eq!(done.result.iterations[0].variables["caught"], "TimeoutError: `slow` was not done after 30 ms");
}

#[tokio::test]
async fn a_tool_that_takes_long_is_traced_as_slow_once_while_it_runs() {
    let done = scene(&["call slow {}", EXITS])
        .tool("slow", Runs::Takes(Duration::from_millis(100), json!(1)))
        .with(|builder| builder.slow_after(Duration::from_millis(10)))
        .run()
        .await;
    assert_eq!(done.traces(0), ["llm_call_started", "llm_call_success", "tool_slow", "tool_call", "code_execution"]);
}

#[tokio::test]
async fn calls_that_are_gathered_run_at_once_and_keep_their_results() {
    let done = scene(&["both a {} ;; b {}", EXITS])
        .tool("a", Runs::Takes(Duration::from_millis(40), json!("a")))
        .tool("b", Runs::Gives(json!("b")))
        .run()
        .await;
    assert_eq!(done.result.iterations[0].variables["got"], json!(["a", "b"]));
    let order: Vec<_> = done.calls(0).iter().map(|call| call["tool_name"].clone()).collect();
    assert_eq!(order, ["b", "a"]);
}

#[tokio::test]
async fn calls_beyond_the_budget_raise_and_code_that_goes_on_calling_is_stopped() {
    let done = scene(&[&"try f {}\n".repeat(60), EXITS])
        .tool("f", Runs::Gives(json!(1)))
        .with(|builder| builder.tool_calls(3))
        .run()
        .await;
    assert_eq!(done.log.iter().filter(|line| *line == "tool f {}").count(), 3);
    assert_eq!(done.calls(0).len(), 24);
    let message = "The 3 tool calls of this execution are used up, and the code went on calling".to_owned();
    let status = Status::ExecutionError { message, stack: String::new() };
    assert_eq!(done.result.iterations[0].status, status);
    assert!(done.result.is_success(), "an exit is no tool call");
}

#[tokio::test]
async fn the_budget_is_the_executions_and_not_an_iterations() {
    let done = scene(&["call f {}", "try f {}", EXITS])
        .tool("f", Runs::Gives(json!(1)))
        .with(|builder| builder.tool_calls(1))
        .run()
        .await;
    let caught = "RuntimeError: The 1 tool calls of this execution are used up: no tool can be called any more";
    assert_eq!(done.result.iterations[1].variables["caught"], caught);
}

#[tokio::test]
async fn a_call_that_is_repeated_too_often_aborts_the_execution() {
    let done = scene(&[r#"try f {"a": 1, "b": 2}"#, r#"try f {"b": 2, "a": 1}"#, r#"try f {"a": 1, "b": 2}"#, EXITS])
        .tool("f", Runs::Gives(json!(1)))
        .with(|builder| builder.repeats(2))
        .run()
        .await;
    assert_eq!(done.statuses(), ["thinking_requested", "thinking_requested", "aborted"]);
    assert_eq!(done.error(), "`f` was called 3 times with the same arguments");
    assert_eq!(done.log.iter().filter(|line| line.starts_with("tool f")).count(), 2);
}

#[tokio::test]
async fn a_tool_that_thinks_gives_its_value_and_ends_the_iteration_with_a_look_at_it() {
    let code = format!("call f {{}}\nset x 1\n{EXITS}");
    let done = scene(&[&code, EXITS]).tool("f", Runs::Thinks("Three orders", json!({"orders": [1, 2, 3]}))).run().await;
    let status = Status::ThinkingRequested {
        reason: Some("Three orders".into()),
        variables: object(json!({"orders": [1, 2, 3]})),
    };
    assert_eq!(done.result.iterations[0].status, status);
    let variables = json!({"got": {"orders": [1, 2, 3]}, "x": 1});
    assert_eq!(json!(done.result.iterations[0].variables), variables, "the code was not interrupted");
    assert_eq!(done.traces(0)[2..], ["think_signal", "tool_call", "code_execution"]);
}

#[tokio::test]
async fn calls_that_were_not_waited_for_are_an_error_and_their_effects_are_told() {
    let code = format!("unawaited pay {{}}\n{EXITS}");
    let done = scene(&[&code, EXITS]).tool("pay", Runs::Gives(json!("paid"))).run().await;
    assert_eq!(done.statuses(), ["execution_error", "exit_success"]);
    let told = done.told(1);
    assert!(told.contains("without waiting for what it had called: `pay`"), "{told}");
    assert!(told.contains("- `pay` with {}: done, gave \"paid\""), "{told}");
    assert_eq!(done.log.iter().filter(|line| line.starts_with("exit")).count(), 1);
}

#[tokio::test]
async fn the_first_valid_exit_ends_the_code() {
    let done = scene(&[&format!("try f {{}}\n{EXITS}\ntry f {{}}")]).tool("f", Runs::Echoes).run().await;
    assert_eq!(done.log.iter().filter(|line| line.starts_with("tool")).count(), 1);
    assert!(done.result.is_success());
}

#[tokio::test]
async fn exits_are_found_by_name_then_by_alias_whatever_their_case() {
    let exits = |code: &str| {
        scene(&[code]).with(|builder| {
            builder
                .exit(Exit::new("refund", "Pays back.").alias("pay_back").alias("Reimburse"))
                .exit(Exit::new("hand_over", "Somebody else goes on."))
        })
    };
    for (code, exit) in [("exit REFUND 1", "refund"), ("exit reimburse 1", "refund"), ("exit hand_over 1", "hand_over")]
    {
        let done = exits(code).run().await;
        assert_eq!((done.result.exit.as_deref(), &done.result.output), (Some(exit), &json!(1)), "{code}");
    }
}

#[tokio::test]
async fn an_unknown_exit_and_a_payload_that_does_not_fit_can_be_caught() {
    let done = scene(&["tryexit nowhere 1\nset x 1", r#"tryexit done {"success": "maybe"}"#, EXITS]).run().await;
    assert_eq!(done.statuses(), ["thinking_requested", "thinking_requested", "exit_success"]);
    assert_eq!(
        done.result.iterations[0].variables["caught"],
        "ValueError: Code: INVALID_EXIT_INPUT\nThere is no exit `nowhere`. The exits are: done"
    );
    insta::assert_snapshot!(done.result.iterations[1].variables["caught"].as_str().unwrap());
}

#[tokio::test]
async fn an_exit_that_does_not_fit_and_is_not_caught_is_an_error_of_the_code() {
    let done = scene(&["exit nowhere 1", EXITS]).run().await;
    assert_eq!(done.statuses(), ["execution_error", "exit_success"]);
    assert!(done.told(1).contains("There is no exit `nowhere`"), "{}", done.told(1));
}

#[tokio::test]
async fn inspect_ends_the_code_and_shows_its_value() {
    let done = scene(&["inspect {\"rows\": [1, 2]}\nset never 1", EXITS]).run().await;
    let status = Status::ThinkingRequested {
        reason: Some("The code has shown a value".into()),
        variables: object(json!({"value": {"rows": [1, 2]}})),
    };
    assert_eq!(done.result.iterations[0].status, status);
    assert!(done.told(1).contains("- `value` (dict): {\"rows\": [1, 2]}"), "{}", done.told(1));
}

#[tokio::test]
async fn code_without_an_exit_shows_its_value_variables_and_prints() {
    let done = scene(&["set total 7\nprint seven\nvalue [1]", EXITS]).run().await;
    let told = "The code came to its end without an exit.\n\n- `total` (int): 7\n- `_` (list): [1]\n\nPrinted:\nseven\n\n\
                Do not run the code again: go on from here, or exit.";
    assert_eq!(done.told(1), told);
    assert_eq!(done.traces(0)[2..], ["log", "code_execution"]);
}

#[tokio::test]
async fn variables_and_the_session_stay_between_iterations() {
    let done = scene(&["set a 1", "set b 2", "set a 3", EXITS]).run().await;
    assert_eq!(done.log.iter().filter(|line| *line == "open").count(), 1);
    assert_eq!(json!(done.result.iterations[2].variables), json!({"a": 3, "b": 2}));
    assert_eq!(json!(done.result.iterations[3].variables), json!({"a": 3, "b": 2}));
}

#[tokio::test]
async fn a_session_that_is_over_is_opened_anew_with_the_variables_and_the_model_is_told() {
    let done = scene(&["set a 1", "over", EXITS]).run().await;
    let codes: Vec<_> = done.log.iter().filter(|line| line.starts_with("open") || line.starts_with("code")).collect();
    assert_eq!(codes, ["open", "code", "code", "open", r#"code {"a":1}"#]);
    assert!(done.told(2).contains("The sandbox has begun anew"), "{}", done.told(2));
    assert_eq!(done.statuses()[1], "execution_error");
}

#[tokio::test]
async fn an_execution_that_reaches_no_exit_ends_at_its_limit_and_says_so() {
    let done = scene(&["value 1", "raise ValueError no"]).with(|builder| builder.iterations(2)).run().await;
    let error =
        "Loop exceeded: 2 iterations have reached no exit; the last one ended with CodeExecutionError: ValueError: no";
    assert_eq!(done.error(), error);
    assert_eq!((done.result.exit.as_deref(), &done.result.output), (None, &Value::Null));
}

#[tokio::test]
async fn executions_of_the_same_description_have_nothing_in_common() {
    let mut scene = scene(&["set a 1", EXITS, "set b 2", EXITS]).tool("f", Runs::Echoes);
    let execution = scene.execution();
    let (first, second) = (execution.finished().await, execution.finished().await);
    assert_ne!(first.id, second.id);
    assert_eq!(json!(first.iterations[1].variables), json!({"a": 1}));
    assert_eq!(json!(second.iterations[1].variables), json!({"b": 2}));
}

struct NoRunner;

impl CodeRunner for NoRunner {
    fn open(&self, _: CodeLimits) -> BoxFuture<'_, Result<Box<dyn CodeSession>, RunnerError>> {
        Box::pin(async { Err(RunnerError::Missing("install `tenterhook[execute]`".into())) })
    }
}

#[tokio::test]
async fn without_a_sandbox_the_execution_ends_and_says_what_is_missing() {
    let done = scene(&["value 1", EXITS]).with(|builder| builder.runner(Arc::new(NoRunner))).run().await;
    assert_eq!(done.error(), "There is no sandbox for generated code: install `tenterhook[execute]`");
    assert_eq!((done.requests.len(), done.statuses()), (1, vec!["execution_error"]));
}
