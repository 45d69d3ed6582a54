//! Requests: when hooks run, what they are given, and what becomes of their results.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::scene::*;
use super::*;
use crate::conversation::Object;

#[tokio::test]
async fn a_start_hooks_result_joins_the_conversation_before_the_model_is_asked() {
    let hooks = vec![hook(START, "recall", &json!({"query": "${last_user_message.content}"}))];
    let scene = scene(hooks, &[("recall", gives(["likes tea"]))], &[], vec![said("Tea?")]);
    let done = scene.ask(&[], "Hello").await;
    assert_eq!(scene.log(), [r#"memory_recall {"query":"Hello"}"#, "model"]);
    assert_eq!(done.status, RequestStatus::Completed);
    assert_eq!(
        shown(&done.messages),
        ["user: Hello", "assistant:  memory_recall", "tool: likes tea", "assistant: Tea?"]
    );
    let asked = scene.requests.lock().unwrap()[0].clone();
    assert_eq!(
        shown(&asked.messages),
        ["system: Be brief.", "user: Hello", "assistant:  memory_recall", "tool: likes tea"]
    );
}

#[tokio::test]
async fn a_tool_is_called_once_with_the_rendered_arguments_and_the_pair_shows_them() {
    let mut search = hook(START, "search", &json!({"query": "${last_user_message.content}", "limit": 3}));
    search.name = Some("h".into());
    let scene = scene(vec![search], &[("search", gives(["cats"]))], &[], vec![said("Here.")]);
    let done = scene.ask(&[], "find cats").await;
    assert_eq!(scene.log(), [r#"memory_search {"query":"find cats","limit":3}"#, "model"]);
    assert_eq!(
        done.messages[1]["tool_calls"][0]["function"]["arguments"], r#"{"query":"find cats","limit":3}"#,
        "arguments are shown rendered"
    );
    assert_eq!(done.told(), ["h on_request_start", "token Here.", "message Here."]);
}

#[tokio::test]
async fn a_result_that_is_the_same_replaces_its_pair_and_another_is_added() {
    let hooks = vec![hook(START, "recall", &json!({}))];
    let scene = scene(hooks, &[("recall", gives(["one", "one", "two"]))], &[], vec![said("1"), said("2"), said("3")]);
    let first = scene.ask(&[], "a").await.messages;
    let second = scene.ask(&first, "b").await.messages;
    let third = scene.ask(&second, "c").await.messages;
    assert_eq!(
        shown(&third),
        [
            "user: a",
            "assistant:  memory_recall",
            "tool: one",
            "assistant: 1",
            "user: b",
            "assistant: 2",
            "user: c",
            "assistant:  memory_recall",
            "tool: two",
            "assistant: 3",
        ]
    );
}

#[tokio::test]
async fn a_pair_is_added_every_turn_where_the_manifest_says_always() {
    let always = hook(start(Frequency::Always, None), "recall", &json!({}));
    let scene = scene(vec![always], &[("recall", gives(["one"]))], &[], vec![said("1"), said("2")]);
    let first = scene.ask(&[], "a").await.messages;
    let second = scene.ask(&first, "b").await.messages;
    let pair = ["assistant:  memory_recall", "tool: one"];
    let expected = [&["user: a"], &pair[..], &["assistant: 1", "user: b"], &pair[..], &["assistant: 2"]].concat();
    assert_eq!(shown(&second), expected);
    assert_ne!(second[2]["tool_call_id"], second[6]["tool_call_id"]);
}

#[tokio::test]
async fn a_result_with_a_time_to_live_is_not_asked_for_again_within_it() {
    let event = start(Frequency::AppendIfChanged, Some(5));
    let scene =
        scene(vec![hook(event, "recall", &json!({}))], &[("recall", gives(["one"]))], &[], vec![said("1"), said("2")]);
    let first = scene.ask(&[], "a").await.messages;
    let second = scene.ask(&first, "b").await.messages;
    assert_eq!(scene.log(), ["memory_recall {}", "model", "model"]);
    assert_eq!(second[..4], first[..]);
    assert_eq!(shown(&second[4..]), ["user: b", "assistant: 2"]);
}

#[tokio::test]
async fn nothing_leaves_no_pair_and_an_empty_text_leaves_one() {
    let hooks = vec![hook(START, "none", &json!({})), hook(START, "empty", &json!({}))];
    let scene = scene(hooks, &[("none", Does::GivesNothing), ("empty", gives([""]))], &[], vec![said("Hm.")]);
    let done = scene.ask(&[], "Hello").await;
    assert_eq!(done.told()[..2], ["none on_request_start skipped", "empty on_request_start"]);
    assert_eq!(shown(&done.messages), ["user: Hello", "assistant:  memory_empty", "tool: ", "assistant: Hm."]);
}

#[tokio::test]
async fn a_hook_sees_the_system_prompt_the_restored_conversation_and_the_pairs_of_earlier_hooks() {
    let all = json!({"all": {"$eval": "messages"}, "event": "${event}"});
    let hooks = vec![hook(START, "recall", &all), hook(START, "recall", &json!({"q": {"$eval": "messages"}}))];
    let scene = scene(hooks, &[("recall", gives(["tea"]))], &[], vec![said("Tea?")]);
    scene.ask(&[crate::conversation::message("assistant", "Hi!")], "Hello").await;
    let contexts = scene.contexts();
    let seen = |context: &Object| {
        let of = |message: &Value| {
            let called = message["tool_calls"][0]["name"].as_str().unwrap_or_default();
            format!("{}: {}{called}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap())
        };
        context["messages"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(seen(&contexts[0]), ["system: Be brief.", "assistant: Hi!", "user: Hello"]);
    assert_eq!(contexts[0]["event"], "on_request_start");
    assert_eq!(
        seen(&contexts[1]),
        ["system: Be brief.", "assistant: Hi!", "user: Hello", "assistant: memory_recall", "tool: tea"]
    );
}

#[tokio::test]
async fn a_completion_hook_sees_the_whole_turn_and_its_numbers() {
    let numbers = json!({"m": {"$eval": "messages"}, "n": "${iteration_count} ${total_tool_calls}"});
    let hooks = vec![hook(HookEvent::Completion, "save", &numbers)];
    let good = Ok(Object::new());
    let replies = vec![
        calls(&[("memory_save", good.clone()), ("memory_prime", good.clone())]),
        calls(&[("gone", good.clone()), ("memory_save", Err("{".into())), ("memory_save", good)]),
        said("Done."),
    ];
    let scene = scene(hooks, &[("save", gives(["saved"])), ("prime", gives(["primed"]))], &["prime"], replies);
    let done = scene.ask(&[], "Hello").await;
    let [context] = &scene.contexts()[..] else { panic!("one hook is rendered") };
    assert_eq!((&context["iteration_count"], &context["total_tool_calls"]), (&json!(3), &json!(5)));
    let roles: Vec<_> = context["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "tool", "tool", "assistant"]
    );
    assert_eq!(context["messages"][9]["content"], "Done.");
    assert_eq!(done.messages.len(), 9);
}

#[tokio::test]
async fn completion_hooks_run_in_order_after_the_answer_and_leave_nothing() {
    let arguments = json!({"user": "${last_user_message.content}", "answer": "${last_assistant_message.content}"});
    let hooks = vec![
        hook(HookEvent::Completion, "save", &arguments),
        hook(HookEvent::Completion, "count", &json!({})),
        hook(START, "recall", &json!({})),
    ];
    let tools = [("save", gives(["saved"])), ("count", gives(["1"])), ("recall", gives(["nothing"]))];
    let scene = scene(hooks, &tools, &[], vec![said("Tea?")]);
    let done = scene.ask(&[], "Hello").await;
    let saved = r#"memory_save {"user":"Hello","answer":"Tea?"}"#;
    assert_eq!(scene.log(), ["memory_recall {}", "model", saved, "memory_count {}"]);
    assert_eq!(shown(&done.messages), ["user: Hello", "assistant:  memory_recall", "tool: nothing", "assistant: Tea?"]);
}

#[tokio::test]
async fn completion_hooks_do_not_overlap() {
    let takes = |millis| Does::Takes(Duration::from_millis(millis));
    let hooks = vec![hook(HookEvent::Completion, "a", &json!({})), hook(HookEvent::Completion, "b", &json!({}))];
    let scene = scene(hooks, &[("a", takes(30)), ("b", takes(1))], &[], vec![said("Tea?")]);
    scene.ask(&[], "Hello").await;
    assert_eq!(scene.log(), ["model", "memory_a {}", "memory_a done", "memory_b {}", "memory_b done"]);
}

#[tokio::test]
async fn the_answer_is_told_before_completion_hooks_run_and_the_end_after_them() {
    let hooks = vec![hook(HookEvent::Completion, "save", &json!({}))];
    let scene = scene(hooks, &[("save", Does::Takes(Duration::from_millis(50)))], &[], vec![said("Tea?")]);
    let input =
        RequestInput { messages: vec![crate::conversation::message("user", "Hello")], ..RequestInput::default() };
    let mut request = scene.app.request(input);
    let mut at = vec![];
    while let Some(event) = request.next().await {
        let told = serde_json::to_value(&event).unwrap()["event"].as_str().unwrap().to_owned();
        at.push((told, scene.log()));
    }
    let told = |event: &str, log: &[&str]| (event.to_owned(), log.iter().map(|line| (*line).to_owned()).collect());
    let expected: [(String, Vec<String>); 4] = [
        told("token", &["model", "memory_save {}"]),
        told("message", &[]),
        told("app_hook_ran", &["memory_save done"]),
        told("finished", &[]),
    ];
    assert_eq!(at, expected);
}

#[tokio::test]
async fn an_app_without_hooks_of_an_event_does_nothing_at_it() {
    let at_start = vec![hook(START, "recall", &json!({"q": "${event}"}))];
    for (hooks, expected) in [(vec![], &["model"][..]), (at_start, &[r#"memory_recall {"q":"${event}"}"#, "model"])] {
        let rendered = hooks.len();
        let scene = scene(hooks, &[("recall", gives(["x"]))], &[], vec![said("Hm.")]);
        scene.ask(&[], "Hello").await;
        assert_eq!(
            (scene.log(), scene.contexts().len()),
            (expected.iter().map(|line| (*line).into()).collect(), rendered)
        );
    }
}

#[tokio::test]
async fn completion_hooks_do_not_run_where_calls_are_handed_to_the_client() {
    let hooks = vec![hook(HookEvent::Completion, "save", &json!({}))];
    let scene = scene(hooks, &[("save", gives(["saved"]))], &[], vec![call("pick_file")]);
    let done = scene.ask_with(&[], "Open it", vec![tool_of_client("pick_file")]).await;
    assert_eq!(done.status, RequestStatus::ClientTools);
    assert_eq!(scene.log(), ["model"]);
    assert_eq!(shown(&done.messages), ["user: Open it", "assistant:  pick_file"]);
}

#[tokio::test]
async fn a_model_that_never_answers_ends_the_request() {
    let replies = (0..9).map(|_| call("memory_search")).collect();
    let scene =
        scene(vec![hook(HookEvent::Completion, "search", &json!({}))], &[("search", gives(["x"]))], &[], replies);
    let done = scene.ask(&[], "Hello").await;
    assert_eq!(done.status, RequestStatus::Error);
    let asked = ["model", "memory_search {}"];
    assert_eq!(scene.log(), [asked, asked, asked, asked].concat(), "and its completion hooks do not run");
}

#[tokio::test]
async fn completion_hooks_do_not_run_where_the_model_fails() {
    let scene =
        scene(vec![hook(HookEvent::Completion, "save", &json!({}))], &[("save", gives(["saved"]))], &[], vec![]);
    let done = scene.ask(&[], "Hello").await;
    assert_eq!((done.status, shown(&done.messages)), (RequestStatus::Error, vec!["user: Hello".to_owned()]));
    assert_eq!(scene.log(), ["model"]);
}

#[tokio::test]
async fn a_request_that_is_dropped_ends_with_its_hooks() {
    let scene = scene(vec![hook(START, "hang", &json!({}))], &[("hang", Does::Hangs)], &[], vec![said("Hm.")]);
    let input =
        RequestInput { messages: vec![crate::conversation::message("user", "Hello")], ..RequestInput::default() };
    let mut request = scene.app.request(input);
    let first = tokio::time::timeout(Duration::from_millis(50), request.next()).await;
    assert!(first.is_err(), "{first:?}");
    drop(request);
    assert_eq!(scene.log(), ["memory_hang {}", "memory_hang cancelled"]);
}

#[tokio::test]
async fn a_call_for_the_client_whose_arguments_are_broken_is_not_handed_over() {
    let broken = calls(&[("pick_file", Err("{\"kind\": ".into()))]);
    let scene = scene(vec![], &[], &[], vec![broken, said("Which one?")]);
    let done = scene.ask_with(&[], "Open it", vec![tool_of_client("pick_file")]).await;
    assert_eq!(done.status, RequestStatus::Completed);
    assert_eq!(
        shown(&done.messages),
        ["user: Open it", "assistant:  pick_file", "tool: The arguments are no JSON object", "assistant: Which one?"]
    );
}

#[tokio::test]
async fn a_request_that_a_tool_set_ends_leaves_no_call_without_an_answer() {
    let stop = fallback(&json!([{"type": "stop"}]));
    let both = calls(&[("pick_file", Ok(Object::new())), ("memory_recall", Ok(Object::new()))]);
    let scene = scene_with(stop, vec![], &[("recall", Does::Fails("no disk"))], &[], vec![both]);
    let done = scene.ask_with(&[], "Open it", vec![tool_of_client("pick_file")]).await;
    assert_eq!(done.status, RequestStatus::Error);
    let ids: Vec<_> = done.messages.iter().filter_map(|message| message.get("tool_call_id")).collect();
    assert_eq!(ids, ["c1", "c0"]);
}

#[test]
fn only_the_text_of_a_message_is_what_a_hook_makes_of_it() {
    let parts = json!([{"type": "text", "text": "my card"}, {"type": "image_url"}, {"text": "4111"}]);
    let message = Object::from_iter([("content".to_owned(), parts)]);
    let message = crate::conversation::with_content(&message, "[card]".into());
    let parts = message["content"].as_array().unwrap();
    assert_eq!(parts[..], [json!({"type": "text", "text": "[card]"}), json!({"type": "image_url"})]);
}
