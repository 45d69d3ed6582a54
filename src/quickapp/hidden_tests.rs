//! Tools that are hidden from the model: hooks call them, and nobody else does.

use std::sync::Arc;

use serde_json::json;

use super::heard::heard;
use super::scene::*;
use super::*;
use crate::conversation::Object;
use crate::tools::ToolSpec;

/// An app with two hidden tools and one that is not; its model says this.
fn with(replies: Vec<crate::step::ModelReply>) -> Scene {
    let hooks = vec![hook(START, "prime_memories", &json!({})), hook(HookEvent::Completion, "save_memory", &json!({}))];
    let tools = ["prime_memories", "save_memory", "search_memories"].map(|name| (name, gives(["x"])));
    scene(hooks, &tools, &["prime_memories", "save_memory"], replies)
}

fn names(tools: &[Arc<ToolSpec>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn a_hidden_tool_is_not_offered_and_hooks_call_it() {
    let scene = with(vec![said("Well.")]);
    let done = scene.ask(&[], "Hello").await;
    assert_eq!(names(&scene.requests.lock().unwrap()[0].tools), ["memory_search_memories"]);
    assert_eq!(names(&scene.app.tools()), ["memory_search_memories"], "nor is it found by who looks what there is");
    assert_eq!(scene.log(), ["memory_prime_memories {}", "model", "memory_save_memory {}"]);
    assert_eq!(done.status, RequestStatus::Completed);
}

#[tokio::test]
async fn a_model_that_asks_for_a_hidden_tool_is_told_so_and_goes_on() {
    let scene = with(vec![call("memory_save_memory"), said("Well.")]);
    let done = scene.ask(&[], "Hello").await;
    assert_eq!(
        scene.log(),
        ["memory_prime_memories {}", "model", "model", "memory_save_memory {}"],
        "the model's own call runs nothing"
    );
    assert_eq!(
        shown(&done.messages)[3..],
        [
            "assistant:  memory_save_memory",
            "tool: `memory_save_memory` is called by the platform by itself, and not by you: nothing was done. Go on without it.",
            "assistant: Well.",
        ]
    );
    assert_eq!(done.status, RequestStatus::Completed);
}

#[tokio::test]
async fn a_model_that_asks_for_a_tool_that_is_not_there_is_told_so_and_goes_on() {
    let scene = with(vec![call("memory_drop"), said("Well.")]);
    let done = scene.ask(&[], "Hello").await;
    assert_eq!(
        shown(&done.messages)[3..],
        [
            "assistant:  memory_drop",
            "tool: There is no tool `memory_drop`: look at the names of those that you have.",
            "assistant: Well.",
        ]
    );
}

#[tokio::test]
async fn the_log_names_hidden_and_unknown_tools_that_the_model_asks_for() {
    let arguments = Ok(Object::from_iter([("q".to_owned(), json!("s3cr3t"))]));
    let scene =
        with(vec![calls(&[("memory_save_memory", arguments.clone()), ("memory_drop", arguments)]), said("Well.")]);
    let (_, heard) = heard(scene.ask(&[], "Hello")).await;
    assert_eq!(
        heard.lines,
        [
            "WARN The model asks for a tool that is hidden from it tool=memory_save_memory",
            "ERROR The model asks for a tool that is not there tool=memory_drop",
        ]
    );
    assert!(!heard.everything.contains("s3cr3t"), "{}", heard.everything);
}

#[tokio::test]
async fn a_tool_of_the_client_cannot_have_the_name_of_one_of_the_apps() {
    for name in ["memory_save_memory", "memory_search_memories"] {
        let scene = with(vec![said("Well.")]);
        let (done, heard) = heard(scene.ask_with(&[], "Hello", vec![tool_of_client(name)])).await;
        assert_eq!((done.status, shown(&done.messages)), (RequestStatus::Error, vec!["user: Hello".to_owned()]));
        assert_eq!(
            heard.lines,
            [format!(
                "WARN A tool of the client's has the name of one of the app's: the request is refused tool={name}"
            )]
        );
        assert_eq!(scene.log(), Vec::<String>::new(), "no hook runs, and no model is asked");
    }
}

#[test]
fn hooks_look_among_visible_tools_before_hidden_ones() {
    let tool = |description: &str| {
        let tool = scene(vec![], &[("t", gives(["x"]))], &[], vec![]).app.0.source.tools().visible.remove(0);
        let spec = Arc::new(ToolSpec::new("memory_t", description));
        AppTool { spec, ..tool }
    };
    let found = |visible, hidden| {
        let tools = AppTools { visible, hidden };
        tools.for_hook("memory_t").map(|tool| tool.spec.description.clone())
    };
    assert_eq!(found(vec![tool("visible")], vec![tool("hidden")]).as_deref(), Some("visible"));
    assert_eq!(found(vec![], vec![tool("hidden")]).as_deref(), Some("hidden"));
    assert_eq!(found(vec![], vec![]), None);
}
