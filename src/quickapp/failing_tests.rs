//! Hooks that fail: each is skipped or has its tool set's fallback, the log says which, and the request is answered.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::heard::{Heard, heard};
use super::scene::*;
use super::*;

const FAILED: &str = "The tool failed and gave no result. Go on without it.";

/// What comes of an app with one hook, labelled `h`, whose tool does this.
async fn one(event: HookEvent, does: Does, arguments: Value, strategies: Value) -> (Scene, Done, Heard) {
    let mut hook = hook(event, "recall", &arguments);
    (hook.name, hook.timeout) = (Some("h".into()), Duration::from_millis(80));
    if matches!(does, Does::GivesNothing) && event == HookEvent::Completion {
        hook.tool_name = "gone".into();
    }
    let scene = scene_with(fallback(&strategies), vec![hook], &[("recall", does)], &[], vec![said("Hm.")]);
    let (done, heard) = heard(scene.ask(&[], "Hello")).await;
    (scene, done, heard)
}

#[tokio::test]
async fn a_hook_that_cannot_be_rendered_hangs_or_names_no_tool_is_skipped() {
    let hooks = vec![
        hook(START, "recall", &json!({"q": "${last_assistant_message.content}"})),
        hook(START, "hang", &json!({})),
        hook(START, "gone", &json!({})),
        hook(START, "recall", &json!({})),
    ];
    let scene = scene(hooks, &[("recall", gives(["here"])), ("hang", Does::Hangs)], &[], vec![said("Hm.")]);
    let start = Instant::now();
    let done = scene.ask(&[], "Hello").await;
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(scene.log(), ["memory_hang {}", "memory_hang cancelled", "memory_recall {}", "model"]);
    assert_eq!(shown(&done.messages), ["user: Hello", "assistant:  memory_recall", "tool: here", "assistant: Hm."]);
    assert_eq!(
        done.told()[..4],
        [
            "recall on_request_start skipped",
            "hang on_request_start skipped",
            "gone on_request_start skipped",
            "recall on_request_start",
        ]
    );
}

#[tokio::test]
async fn each_failure_of_a_start_hook_is_logged_with_its_name_and_its_event() {
    let go_on = json!([{"type": "continue"}]);
    let missing = json!({"q": "${last_assistant_message.content}"});
    for (does, arguments, strategies, expected) in [
        (
            gives(["x"]),
            &missing,
            &go_on,
            "WARN Hook `h` skipped (event=on_request_start): at template.q: there is no field 'content'",
        ),
        (Does::Hangs, &json!({}), &go_on, "WARN Hook `h` timed out (event=on_request_start, timeout=0.08 s): skipped"),
        (Does::Panics, &json!({}), &go_on, "ERROR Hook `h` failed (event=on_request_start): skipped"),
        (
            Does::GivesNothing,
            &json!({}),
            &go_on,
            "WARN Hook `h` skipped (event=on_request_start): its tool gave nothing",
        ),
        (
            Does::Fails("no disk"),
            &json!({}),
            &json!([{"type": "stop"}]),
            "WARN Hook `h` (event=on_request_start): its tool failed, and the fallback of its tool set applies|WARN Hook `h` skipped \
             (event=on_request_start): its tool failed, and the tool set says `stop`",
        ),
    ] {
        let (_, done, heard) = one(START, does, arguments.clone(), strategies.clone()).await;
        assert_eq!(heard.lines.join("|"), expected);
        assert_eq!(
            (done.status, shown(&done.messages)),
            (RequestStatus::Completed, vec!["user: Hello".into(), "assistant: Hm.".into()])
        );
        assert_eq!(done.told(), ["h on_request_start skipped", "token Hm.", "message Hm."]);
    }
}

#[tokio::test]
async fn each_failure_of_a_completion_hook_is_logged_with_its_name_and_its_event() {
    let go_on = json!([{"type": "continue"}]);
    for (does, expected) in [
        (
            Does::GivesNothing,
            "WARN Hook `h` skipped (event=on_completion): tool 'memory_gone' not found in initialized tools",
        ),
        (Does::Hangs, "WARN Hook `h` timed out (event=on_completion, timeout=0.08 s): skipped"),
        (Does::Panics, "ERROR Hook `h` failed (event=on_completion): skipped"),
        (
            Does::Fails("no disk"),
            "WARN Hook `h` (event=on_completion): its tool failed, and the fallback of its tool set applies",
        ),
    ] {
        let (_, done, heard) = one(HookEvent::Completion, does, json!({}), go_on.clone()).await;
        assert_eq!(heard.lines, [expected]);
        assert_eq!(
            (done.status, shown(&done.messages)),
            (RequestStatus::Completed, vec!["user: Hello".into(), "assistant: Hm.".into()])
        );
    }
}

#[tokio::test]
async fn a_hook_without_a_name_is_logged_by_its_tool() {
    let hooks = vec![hook(START, "gone", &json!({}))];
    let scene = scene(hooks, &[], &[], vec![said("Hm.")]);
    let (_, heard) = heard(scene.ask(&[], "Hello")).await;
    assert_eq!(
        heard.lines,
        ["WARN Hook `gone` skipped (event=on_request_start): tool 'memory_gone' not found in initialized tools"]
    );
}

#[tokio::test]
async fn what_messages_arguments_and_results_say_is_never_logged() {
    const SECRET: &str = "s3cr3t";
    let arguments = json!({"q": "${last_user_message.content}", "key": SECRET});
    let missing = json!({"q": "${last_user_message.content} ${last_assistant_message.content}", "key": SECRET});
    let hooks = |event| {
        ["well", "fails", "hangs", "panics", "gone"]
            .map(|tool| AppHook { timeout: Duration::from_millis(50), ..hook(event, tool, &arguments) })
    };
    let skipped = [hook(START, "well", &missing)];
    let hooks = skipped.into_iter().chain(hooks(START)).chain(hooks(HookEvent::Completion));
    let tools =
        [("well", gives([SECRET])), ("fails", Does::Fails(SECRET)), ("hangs", Does::Hangs), ("panics", Does::Panics)];
    let replies = vec![call("memory_well"), call("memory_fails"), said(SECRET)];
    let scene = scene(hooks.collect(), &tools, &[], replies);
    let (done, heard) = heard(scene.ask(&[], SECRET)).await;
    assert_eq!(done.status, RequestStatus::Completed);
    assert_eq!(heard.lines.len(), 9, "{:?}", heard.lines);
    assert!(heard.everything.contains("execute_hook on_completion"), "{}", heard.everything);
    assert!(!heard.everything.contains(SECRET), "{}", heard.everything);
}

#[tokio::test]
async fn a_failed_tool_is_what_its_sets_fallback_makes_of_it() {
    let run = async |strategies: Value| {
        let hooks = vec![hook(START, "recall", &json!({}))];
        let tools = [("recall", Does::Fails("no disk"))];
        let scene = scene_with(fallback(&strategies), hooks, &tools, &[], vec![call("memory_recall"), said("Hm.")]);
        let done = scene.ask(&[], "Hello").await;
        (done.status, shown(&done.messages))
    };
    let told = |text: &str| {
        let pair = ["assistant:  memory_recall".to_owned(), format!("tool: {text}")];
        [&["user: Hello".to_owned()], &pair[..], &pair[..], &["assistant: Hm.".to_owned()]].concat()
    };
    for (strategies, text) in [
        (json!([{"type": "continue"}]), FAILED),
        (json!([{"type": "continue", "instructions": "Go on."}]), "Go on."),
        (json!([{"type": "continue", "forward_tool_error_message": true}]), "no disk"),
        (json!([{"type": "retry", "instructions": "Ask again."}]), "Ask again."),
        (json!([]), "no disk"),
    ] {
        assert_eq!(run(strategies).await, (RequestStatus::Completed, told(text)));
    }
    let (status, messages) = run(json!([{"type": "stop"}])).await;
    assert_eq!(status, RequestStatus::Error, "the model's own call ends the request, the hook's does not");
    assert_eq!(messages, ["user: Hello", "assistant:  memory_recall", "tool: `memory_recall` failed"]);
}

#[tokio::test]
async fn a_failed_tool_of_a_completion_hook_shows_only_in_the_log() {
    for strategies in [json!([{"type": "continue"}]), json!([{"type": "stop"}])] {
        let (_, done, _) = one(HookEvent::Completion, Does::Fails("no disk"), json!({}), strategies).await;
        assert_eq!(done.status, RequestStatus::Completed);
        assert_eq!(shown(&done.messages), ["user: Hello", "assistant: Hm."]);
    }
}

#[tokio::test]
async fn a_tools_own_time_comes_before_its_hooks() {
    let (scene, done, heard) =
        one(START, Does::HangsFor(Duration::from_millis(10)), json!({}), json!([{"type": "continue"}])).await;
    assert_eq!(scene.log(), ["memory_recall {}", "memory_recall cancelled", "model"]);
    assert_eq!(
        heard.lines,
        ["WARN Hook `h` (event=on_request_start): its tool failed, and the fallback of its tool set applies"],
        "that is the tool's failure, not the hook's"
    );
    assert_eq!(
        shown(&done.messages),
        ["user: Hello", "assistant:  memory_recall", &format!("tool: {FAILED}"), "assistant: Hm."]
    );
}

#[tokio::test]
async fn what_a_fallback_says_is_good_for_one_turn() {
    let hooks = vec![hook(start(Frequency::AppendIfChanged, Some(60)), "recall", &json!({}))];
    let scene = scene(hooks, &[("recall", Does::Fails("no disk"))], &[], vec![said("1"), said("2")]);
    let first = scene.ask(&[], "a").await.messages;
    let second = scene.ask(&first, "b").await.messages;
    assert_eq!(
        scene.log(),
        ["memory_recall {}", "model", "memory_recall {}", "model"],
        "its time to live does not count"
    );
    let told = format!("tool: {FAILED}");
    assert_eq!(
        shown(&second),
        ["user: a", "assistant:  memory_recall", &told, "assistant: 1", "user: b", "assistant: 2"]
    );
}

#[tokio::test]
async fn each_hook_has_its_statistics() {
    let on = |event, tool: &str| AppHook { timeout: Duration::from_millis(50), ..hook(event, tool, &json!({})) };
    let stopped = hook(START, "recall", &json!({"q": "${last_assistant_message.content}"}));
    let start = ["well", "fails", "none", "gone", "panics"].map(|tool| on(START, tool));
    let hooks = start.into_iter().chain([stopped, on(HookEvent::Completion, "hangs")]).collect();
    let tools = [
        ("well", gives(["x"])),
        ("fails", Does::Fails("no disk")),
        ("none", Does::GivesNothing),
        ("panics", Does::Panics),
        ("hangs", Does::Hangs),
    ];
    let scene = scene(hooks, &tools, &[], vec![said("Hm."), said("Hm.")]);
    scene.ask(&[], "Hello").await;
    // A second request is dropped while its completion hook hangs.
    let user = crate::conversation::message("user", "Hello");
    let mut request = scene.app.request(RequestInput { messages: vec![user], ..RequestInput::default() });
    while !matches!(request.next().await, Some(RequestEvent::Message { .. })) {}
    drop(request);
    let of = |name: &str, on: &str, ran: u64, fallbacks: u64, failed: Value, withdrawn: u64| {
        let calls = 2 - withdrawn;
        json!({
            "name": name, "on": on, "calls": calls, "ran": ran, "fallbacks": fallbacks, "failures": failed, "withdrawn": withdrawn,
        })
    };
    let start = "on_request_start";
    let expected = [
        of("well", start, 2, 0, json!({}), 0),
        of("fails", start, 2, 2, json!({}), 0),
        of("none", start, 0, 0, json!({"no-result": 2}), 0),
        of("gone", start, 0, 0, json!({"unknown-tool": 2}), 0),
        of("panics", start, 0, 0, json!({"raised": 2}), 0),
        of("recall", start, 0, 0, json!({"unrendered": 2}), 0),
        of("hangs", "on_completion", 0, 0, json!({"timeout": 1}), 1),
    ];
    let mut found: Vec<_> = scene.app.statistics().iter().map(|hook| serde_json::to_value(hook).unwrap()).collect();
    let times: Vec<_> = found
        .iter_mut()
        .map(|hook| {
            ["p50_ms", "p99_ms"].map(|time| hook.as_object_mut().unwrap().remove(time).unwrap().as_f64().unwrap())
        })
        .collect();
    assert_eq!(found, expected);
    assert!(times.iter().flatten().all(|time| (0.0..2_000.0).contains(time)) && times[6][0] >= 50.0, "{times:?}");
}
