//! The forms of an answer, what the user is told, and an agent's own hooks.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::execution::CodeForm;
use super::exit::Exit;
use super::hooks::ExecutionHook::OnBeforeExecution;
use super::testing::{Does, Replies, Runs, coded, object, scene};
use crate::conversation::message;
use crate::hooks::Point::{self, ModelRequest, ModelResponse, OutgoingText, ToolCall, ToolResult};
use crate::hooks::{AnyPayload, Outcome};
use crate::step::{Hooks, Identity, ModelReply, RequestedCall};

const EXITS: &str = r#"exit done {"success": true, "result": 1}"#;

fn fenced(code: &str) -> String {
    format!("```python\n{code}\n```")
}

fn calls(calls: &[(&str, Result<Value, &str>)]) -> Replies {
    let call = |(index, (tool, arguments)): (usize, &(&str, Result<Value, &str>))| RequestedCall {
        id: Some(format!("c{index}")),
        tool_name: (*tool).into(),
        arguments: arguments.clone().map(object).map_err(str::to_owned),
    };
    let calls = calls.iter().enumerate().map(call).collect();
    Replies::With(ModelReply { calls, ..ModelReply::default() })
}

#[tokio::test]
async fn a_native_execution_offers_one_tool_and_a_fenced_one_none() {
    let done = scene(&[EXITS]).run().await;
    let offered: Vec<_> = done.requests[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(offered, ["run_python"]);
    let done = scene(&[]).says(&fenced(EXITS)).with(|builder| builder.form(CodeForm::Fenced)).run().await;
    assert!(done.requests[0].tools.is_empty() && done.result.is_success());
}

#[tokio::test]
async fn code_between_fences_is_run_where_there_is_no_call() {
    let done = scene(&[]).says(&format!("So:\n{}", fenced("value 1"))).says(&fenced(EXITS)).run().await;
    assert_eq!(done.statuses(), ["thinking_requested", "exit_success"]);
    let iteration = &done.result.iterations[0];
    assert_eq!((iteration.text.as_deref(), iteration.code.as_deref()), (Some("So:"), Some("value 1")));
    let last: Vec<_> = done.requests[1].messages[2..].iter().map(|message| message["role"].clone()).collect();
    assert_eq!(last, ["assistant", "user"]);
}

#[tokio::test]
async fn only_the_first_call_of_an_answer_is_run_and_the_others_are_told_so() {
    let both = calls(&[("run_python", Ok(json!({"code": "set a 1"}))), ("run_python", Ok(json!({"code": "set b 1"})))]);
    let done = scene(&[]).replies(both).replies(Replies::With(coded(EXITS))).run().await;
    assert_eq!(json!(done.result.iterations[0].variables), json!({"a": 1}));
    let told = &done.requests[1].messages[2..];
    assert_eq!(told[0]["tool_calls"].as_array().unwrap().len(), 2);
    let answers: Vec<_> =
        told[1..].iter().map(|tool| (tool["tool_call_id"].clone(), tool["content"].clone())).collect();
    assert_eq!(answers[1], (json!("c1"), json!("Not run: only the first call of an answer is.")));
    assert_eq!(answers[0].0, "c0");
}

#[tokio::test]
async fn an_answer_that_cannot_be_run_is_told_why_and_costs_an_iteration() {
    for (reply, why) in [
        (calls(&[("search", Ok(json!({})))]), "There is no `search` to call here"),
        (calls(&[("run_python", Err("{\"code\": "))]), "The arguments of `run_python` are no JSON object"),
        (calls(&[("run_python", Ok(json!({"code": " "})))]), "`run_python` takes the code as a text"),
        (Replies::With(ModelReply::text("I think so.")), "There is no code in the answer"),
        (Replies::With(ModelReply::text("```python\nvalue 1")), "The block of code has no end"),
    ] {
        let done = scene(&[]).replies(reply).replies(Replies::With(coded(EXITS))).run().await;
        assert_eq!(done.statuses(), ["invalid_code_error", "exit_success"], "{why}");
        assert!(done.told(1).contains(why), "{}", done.told(1));
    }
}

#[tokio::test]
async fn in_a_chat_a_text_is_a_message_and_waits_for_the_user() {
    let done = scene(&[]).says("Which order?").with(|builder| builder.chat(true)).run().await;
    assert_eq!(done.messages(), ["Which order?"]);
    assert_eq!(done.log, ["start 1", "model", "before 1", "exit listen null", "end 1 exit_success"]);
    assert_eq!((done.result.exit.as_deref(), &done.result.output), (Some("listen"), &Value::Null));
    assert_eq!(done.traces(0), ["llm_call_started", "llm_call_success", "message_delivery"]);
}

#[tokio::test]
async fn a_text_beside_code_is_sent_before_the_code_runs_and_once() {
    let mut reply = coded("print x");
    reply.text = Some("One moment.".into());
    let done = scene(&[]).replies(Replies::With(reply)).says("Done.").with(|builder| builder.chat(true)).run().await;
    assert_eq!(done.messages(), ["One moment.", "Done."]);
    assert_eq!(done.traces(0)[2..], ["message_delivery", "log", "code_execution"]);
    assert!(done.told(1).contains("was sent to the user: do not say it again"), "{}", done.told(1));
}

#[tokio::test]
async fn nothing_is_sent_that_on_before_execution_has_refused() {
    let done = scene(&[])
        .says("The password is 1234.")
        .says("I cannot say.")
        .hook_in(1, OnBeforeExecution, Does::Fails("no secrets"))
        .with(|builder| builder.chat(true))
        .run()
        .await;
    assert_eq!(done.messages(), ["I cannot say."]);
    assert_eq!(done.statuses(), ["execution_error", "exit_success"]);
}

#[tokio::test]
async fn outside_of_a_chat_nobody_is_told_anything() {
    let mut reply = coded(EXITS);
    reply.text = Some("Thinking.".into());
    let done = scene(&[]).replies(Replies::With(reply)).run().await;
    assert_eq!(done.messages(), Vec::<&str>::new());
}

#[tokio::test]
async fn a_silent_listen_can_be_caught_and_a_tool_may_have_spoken() {
    let done = scene(&["tryexit listen"]).says("Hello.").with(|builder| builder.chat(true)).run().await;
    assert_eq!(done.statuses(), ["thinking_requested", "exit_success"]);
    let caught = done.result.iterations[0].variables["caught"].as_str().unwrap();
    assert!(caught.starts_with("ValueError: The user has been told nothing yet"), "{caught}");
    let done = scene(&["call greet {}\nexit listen"])
        .tool("greet", Runs::Says("Hello!"))
        .with(|builder| builder.chat(true))
        .run()
        .await;
    assert_eq!((done.messages(), done.statuses()), (vec!["Hello!"], vec!["exit_success"]));
}

#[tokio::test]
async fn a_chat_has_its_own_exits_beside_listen() {
    let done = scene(&["exit refund 3"])
        .with(|builder| builder.chat(true).exit(Exit::new("refund", "Pays back.")))
        .run()
        .await;
    assert!(done.result.is("refund"));
}

/// An agent's hooks: they write down where they are called, and do one thing at one point.
struct AgentHooks(Mutex<Vec<Point>>, fn(&mut AnyPayload) -> Option<Outcome<AnyPayload>>);

impl Hooks for AgentHooks {
    fn observe(&self, _: AnyPayload) {}

    fn modify(&self, mut payload: AnyPayload) -> BoxFuture<'_, Outcome<AnyPayload>> {
        self.0.lock().unwrap().push(payload.point());
        let outcome = (self.1)(&mut payload);
        let on = Outcome::Proceed { payload, changed: true, failure: None, discarded_signal: None };
        Box::pin(async { outcome.unwrap_or(on) })
    }

    fn modifies(&self, _: Point) -> bool {
        true
    }

    fn observes(&self, _: Point) -> bool {
        false
    }
}

#[tokio::test]
async fn an_agents_hooks_stand_around_the_model_the_tools_and_what_is_said() {
    let hooks = Arc::new(AgentHooks(Mutex::default(), |payload| {
        match payload {
            AnyPayload::ToolCall(call) => call.arguments = object(json!({"card": "****"})),
            AnyPayload::ToolResult(result) => result.value = json!({"ok": true}).to_string().into(),
            AnyPayload::OutgoingText(text) => text.text = text.text.replace("4111", "****"),
            _ => {}
        }
        None
    }));
    let mut reply = coded(r#"call pay {"card": "4111"}"#);
    reply.text = Some("Your card 4111".into());
    let agent = Arc::clone(&hooks);
    let done = scene(&[])
        .replies(Replies::With(reply))
        .says("Paid.")
        .tool("pay", Runs::Gives(json!({"ok": false})))
        .with(|builder| {
            builder.chat(true).agent_hooks(agent, Identity { sender_id: "s".into(), ..Identity::default() })
        })
        .run()
        .await;
    let points =
        [ModelRequest, ModelResponse, OutgoingText, ToolCall, ToolResult, ModelRequest, ModelResponse, OutgoingText];
    assert_eq!(*hooks.0.lock().unwrap(), points);
    assert_eq!(done.messages(), ["Your card ****", "Paid."]);
    assert!(done.log.contains(&r#"tool pay {"card":"****"}"#.to_owned()), "{:?}", done.log);
    assert_eq!(done.result.iterations[0].variables["got"], json!({"ok": true}), "a document stays one");
    assert_eq!(done.calls(0)[0]["input"], json!({"card": "4111"}), "the trace has what the code gave");
}

#[tokio::test]
async fn an_agents_hook_that_discards_a_call_raises_in_the_code() {
    let hooks = Arc::new(AgentHooks(Mutex::default(), |payload| {
        matches!(payload, AnyPayload::ToolCall(_)).then(|| Outcome::Retry { feedback: "Ask the user first.".into() })
    }));
    let done = scene(&["try pay {}", EXITS])
        .tool("pay", Runs::Echoes)
        .with(|builder| builder.agent_hooks(hooks, Identity::default()))
        .run()
        .await;
    assert_eq!(
        done.result.iterations[0].variables["caught"],
        "RuntimeError: `pay` was not called: Ask the user first."
    );
    assert!(!done.log.iter().any(|line| line.starts_with("tool pay")));
}

#[tokio::test]
async fn an_agents_hook_that_discards_an_answer_costs_an_iteration_and_nothing_of_it_runs() {
    let hooks = Arc::new(AgentHooks(Mutex::default(), |payload| match payload {
        AnyPayload::ModelResponse(response) if response.tool_calls.len() == 1 && response.text.is_some() => {
            Some(Outcome::Retry { feedback: "Say nothing of prices.".into() })
        }
        _ => None,
    }));
    let mut reply = coded("call pay {}");
    reply.text = Some("It costs 3.".into());
    let done = scene(&[])
        .replies(Replies::With(reply))
        .replies(Replies::With(coded(EXITS)))
        .with(|builder| builder.agent_hooks(hooks, Identity::default()))
        .run()
        .await;
    assert_eq!(done.statuses(), ["invalid_code_error", "exit_success"]);
    assert_eq!(done.log[..3], ["start 1", "model", "end 1 invalid_code_error"]);
    assert!(done.told(1).contains("Say nothing of prices."), "{}", done.told(1));
}

#[tokio::test]
async fn the_conversation_and_what_came_of_earlier_answers_stand_in_each_request() {
    let done = scene(&["value 1", EXITS])
        .with(|builder| builder.messages(vec![message("user", "Where is my order?")]))
        .run()
        .await;
    let roles = |request: usize| -> Vec<_> {
        done.requests[request].messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(roles(0), ["system", "user"]);
    assert_eq!(roles(1), ["system", "user", "assistant", "tool"]);
    let call = &done.requests[1].messages[2]["tool_calls"][0];
    assert_eq!(call["function"], json!({"name": "run_python", "arguments": "{\"code\":\"value 1\"}"}));
    assert_eq!(call["id"], done.requests[1].messages[3]["tool_call_id"]);
}
