//! Abort at every point of the diagram: what still runs, what does not, what is reported.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::controller::Controller;
use super::event::ExecutionEvent;
use super::hooks::ExecutionHook::{
    self, OnAfterTool, OnBeforeExecution, OnBeforeTool, OnExit, OnIterationEnd, OnIterationStart, OnTrace,
};
use super::testing::{Does, Done, Replies, Runs, scene};

const EXITS: &str = r#"exit done {"success": true, "result": 1}"#;

/// Where it is aborted.
enum At {
    Hook(ExecutionHook),
    HookThatFails(ExecutionHook),
    Trace(&'static str),
}

/// The one iteration of all of these: it prints, calls two tools and exits.
async fn aborted(at: At) -> Done {
    let code = format!("print hello\ntry f {{}}\ntry g {{}}\n{EXITS}");
    let scene = scene(&[&code, EXITS]).tool("f", Runs::Gives(json!("f"))).tool("g", Runs::Gives(json!("g")));
    let scene = match at {
        At::Hook(hook) => scene.hook(hook, Does::Aborts("ABORTED")),
        At::HookThatFails(hook) => scene.hook(hook, Does::AbortsAndFails("ABORTED")),
        At::Trace(kind) => scene.hook(OnTrace, Does::AbortsAt(kind, "ABORTED")),
    };
    scene.run().await
}

#[tokio::test]
async fn nothing_begins_after_an_abort_at_any_point_and_the_iteration_is_finalised() {
    let to_code = ["start 1", "model", "before 1", "open", "code"];
    let all = [
        "before_tool f {}",
        "tool f {}",
        r#"after_tool f {} "f""#,
        "before_tool g {}",
        "tool g {}",
        r#"after_tool g {} "g""#,
        r#"exit done {"success":true,"result":1}"#,
    ];
    // How much of the code's own part still happens; before it: how much of the way to it.
    let rows = [
        (At::Hook(OnIterationStart), 1, 0),
        (At::HookThatFails(OnIterationStart), 1, 0),
        (At::Trace("llm_call_started"), 1, 0),
        (At::Trace("llm_call_success"), 2, 0),
        (At::Hook(OnBeforeExecution), 3, 0),
        (At::HookThatFails(OnBeforeExecution), 3, 0),
        (At::Trace("log"), 5, 0),
        (At::Hook(OnBeforeTool), 5, 1),
        (At::HookThatFails(OnBeforeTool), 5, 1),
        (At::Hook(OnAfterTool), 5, 3),
        (At::HookThatFails(OnAfterTool), 5, 3),
        (At::Trace("tool_call"), 5, 3),
        (At::Trace("code_execution"), 5, 6),
        (At::Hook(OnExit), 5, 7),
        (At::HookThatFails(OnExit), 5, 7),
    ];
    for (at, before, inside) in rows {
        let name = match &at {
            At::Hook(hook) => hook.name().to_owned(),
            At::HookThatFails(hook) => format!("{} that fails", hook.name()),
            At::Trace(kind) => format!("the trace {kind}"),
        };
        let done = aborted(at).await;
        let mut expected: Vec<&str> = to_code[..before].to_vec();
        expected.extend(&all[..inside]);
        expected.push("end 1 aborted");
        assert_eq!(done.log, expected, "{name}");
        assert_eq!(
            (done.error(), done.statuses(), done.result.is_success()),
            ("ABORTED", vec!["aborted"], false),
            "{name}"
        );
        let last = done.result.iterations[0].traces.last().map(|trace| json!(trace.what));
        assert_eq!(last, Some(json!({"type": "abort_signal", "reason": "ABORTED"})), "{name}");
        assert_eq!(done.result.iterations[0].error.as_deref(), Some("Aborted: ABORTED"), "{name}");
    }
}

#[tokio::test]
async fn an_abort_in_on_before_tool_leaves_the_trace_of_a_call_that_was_not_made() {
    let done = aborted(At::Hook(OnBeforeTool)).await;
    let call = json!({"tool_name": "f", "input": {}, "error": "It was not called: ABORTED", "success": false});
    assert_eq!(done.calls(0), [call]);
}

#[tokio::test]
async fn an_abort_in_on_after_tool_leaves_the_trace_of_a_call_that_was_made() {
    let done = aborted(At::Hook(OnAfterTool)).await;
    assert_eq!(done.calls(0), [json!({"tool_name": "f", "input": {}, "output": "f", "success": true})]);
}

#[tokio::test]
async fn an_abort_in_on_iteration_end_begins_no_further_iteration_and_leaves_the_status_as_it_is() {
    let codes = ["call think {}"; 10];
    let done = scene(&codes)
        .tool("think", Runs::Thinks("Look", json!({"x": 1})))
        .hook_in(3, OnIterationEnd, Does::Aborts("ABORTED"))
        .run()
        .await;
    assert_eq!(done.statuses(), ["thinking_requested"; 3]);
    assert_eq!((done.error(), done.requests.len()), ("ABORTED", 3));
}

#[tokio::test]
async fn an_abort_in_on_iteration_end_is_not_masked_by_the_limit() {
    let done = scene(&["value 1"])
        .hook(OnIterationEnd, Does::Aborts("ABORTED"))
        .with(|builder| builder.iterations(1))
        .run()
        .await;
    assert_eq!(done.error(), "ABORTED");
}

#[tokio::test]
async fn an_abort_after_an_exit_was_taken_does_not_take_it_back() {
    let done = scene(&[EXITS]).hook(OnIterationEnd, Does::Aborts("ABORTED")).run().await;
    assert_eq!((done.statuses(), done.result.is_success()), (vec!["exit_success"], true));
}

#[tokio::test]
async fn a_signal_that_is_aborted_already_ends_the_execution_at_once() {
    let signal = Controller::new();
    signal.abort("too late");
    let done = scene(&[EXITS]).with(|builder| builder.signal(&signal)).run().await;
    assert_eq!((done.log.len(), done.error(), done.result.iterations.len()), (0, "too late", 0));
}

#[tokio::test]
async fn an_executions_own_abort_is_not_its_callers() {
    let signal = Controller::new();
    let done = scene(&[EXITS])
        .hook(OnIterationStart, Does::Aborts("mine"))
        .with(|builder| builder.signal(&signal))
        .run()
        .await;
    assert_eq!((done.error(), signal.is_aborted()), ("mine", false));
}

#[tokio::test]
async fn a_model_that_fails_because_of_an_abort_is_that_abort() {
    let signal = Controller::new();
    let done =
        scene(&[]).replies(Replies::AbortsAndFails(signal.clone())).with(|builder| builder.signal(&signal)).run().await;
    assert_eq!(done.log, ["start 1", "model", "end 1 aborted"]);
    assert_eq!(done.error(), "ABORTED");
}

/// Aborts a scene from outside after a while.
async fn aborted_outside(scene: super::testing::Scene) -> (Done, Duration) {
    let signal = Controller::new();
    let scene = scene.with(|builder| builder.signal(&signal));
    let aborts = async {
        crate::dispatch::sleep(Duration::from_millis(60)).await;
        signal.abort("ABORTED");
    };
    let start = Instant::now();
    let (done, ()) = futures_util::future::join(scene.run(), aborts).await;
    (done, start.elapsed())
}

#[tokio::test]
async fn an_abort_ends_a_model_call() {
    let (done, elapsed) = aborted_outside(scene(&[]).replies(Replies::Hangs)).await;
    assert_eq!(done.log, ["start 1", "model", "end 1 aborted"]);
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
}

#[tokio::test]
async fn an_abort_ends_code_that_computes_without_an_end() {
    let (done, elapsed) = aborted_outside(scene(&["spin"])).await;
    assert_eq!((done.statuses(), done.error()), (vec!["aborted"], "ABORTED"));
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
}

#[tokio::test]
async fn an_abort_while_a_tool_runs_is_told_to_it_and_later_code_does_not_run() {
    let scene = scene(&["try f {}\ntry g {}"]).tool("f", Runs::Unwinds).tool("g", Runs::Echoes);
    let (done, elapsed) = aborted_outside(scene).await;
    assert_eq!(done.log[5..], ["before_tool f {}", "tool f {}", "tool f unwound", "end 1 aborted"]);
    assert_eq!(done.calls(0), [json!({"tool_name": "f", "input": {}, "error": "unwound", "success": false})]);
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
}

#[tokio::test]
async fn a_tool_that_aborts_and_goes_on_is_waited_for() {
    let signal = Controller::new();
    let runs = Runs::Aborts(signal.clone(), Duration::from_millis(50), Duration::from_millis(300));
    let done = scene(&["call f {}\nraise ValueError never", EXITS])
        .tool("f", runs)
        .with(|builder| builder.signal(&signal).iterations(2))
        .run()
        .await;
    assert_eq!(done.log[5..], ["before_tool f {}", "tool f {}", "tool f ended, cancelled: true", "end 1 aborted"]);
    assert_eq!((done.error(), done.result.iterations.len()), ("ABORTED", 1));
    let call: Value = json!({"tool_name": "f", "input": {}, "output": "late", "success": true});
    assert_eq!(done.calls(0), [call], "it has run, and that is reported");
}

#[tokio::test]
async fn a_tool_that_does_not_hear_of_an_abort_is_given_up_after_a_while() {
    let (done, elapsed) = aborted_outside(scene(&["call f {}"]).tool("f", Runs::Hangs)).await;
    assert_eq!((done.statuses(), done.error()), (vec!["aborted"], "ABORTED"));
    let call = json!({"tool_name": "f", "input": {}, "error": "It was given up before it was done", "success": false});
    assert_eq!(done.calls(0), [call]);
    assert!(Duration::from_secs(2) < elapsed && elapsed < Duration::from_secs(5), "{elapsed:?}");
}

#[tokio::test]
async fn an_abort_in_one_of_two_gathered_calls_ends_both() {
    let signal = Controller::new();
    let runs = Runs::Aborts(signal.clone(), Duration::from_millis(30), Duration::ZERO);
    let done = scene(&["both f {} ;; g {}\ntry h {}"])
        .tool("f", runs)
        .tool("g", Runs::Unwinds)
        .tool("h", Runs::Echoes)
        .with(|builder| builder.signal(&signal))
        .run()
        .await;
    assert_eq!(done.statuses(), ["aborted"]);
    assert!(!done.log.iter().any(|line| line.starts_with("tool h")), "{:?}", done.log);
    assert!(done.log.contains(&"tool g unwound".to_owned()), "{:?}", done.log);
}

#[tokio::test]
async fn an_execution_that_is_dropped_is_aborted() {
    let mut scene = scene(&["call f {}"]).tool("f", Runs::Hangs);
    let (execution, log) = (scene.execution(), scene.log.clone());
    let mut events = execution.run();
    while let Some(event) = events.next().await {
        if matches!(event, ExecutionEvent::Traced { .. }) && log.lock().unwrap().contains(&"code".to_owned()) {
            break;
        }
        if log.lock().unwrap().iter().any(|line| line == "open") {
            break;
        }
    }
    drop(events);
    let seen = log.lock().unwrap().clone();
    assert!(!seen.iter().any(|line| line.starts_with("end")), "nothing is called any more: {seen:?}");
}
