//! `tenterhook execute` and `tenterhook check` of its folder, as their users run them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents::folder;
use crate::command::tenterhook;

const TOOLS: &str = "
import asyncio
from rasa.mantle.tools.decorator import tool


@tool(description='Twice a number')
async def twice(number: int) -> int:
    return 2 * number


@tool(description='Never ends')
async def hang() -> None:
    await asyncio.sleep(3600)
";

/// A folder whose model writes these codes, one after the other.
fn project(settings: &str, codes: &[&str], files: &[(&str, &str)]) -> TempDir {
    let answer = |code: &&str| json!({"calls": [{"tool": "run_python", "arguments": {"code": code}}]});
    let script = json!({"in_order": codes.iter().map(answer).collect::<Vec<_>>()}).to_string();
    let settings = format!("instructions: Count.\nmodel: {{provider: scripted, script: script.yml}}\n{settings}");
    let own = [("execution.yml", settings.as_str()), ("script.yml", script.as_str()), ("tools.py", TOOLS)];
    folder(&[&own[..], files].concat())
}

/// What the command gives: exit code, lines of stdout, stderr without the folder's name.
fn execute(folder: &TempDir, options: &[&str]) -> (Option<i32>, Vec<String>, String) {
    let done = tenterhook().arg("execute").arg(folder.path()).args(options).output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap().replace(&folder.path().display().to_string(), "DIR");
    let shown = String::from_utf8(done.stdout).unwrap();
    (done.status.code(), shown.lines().map(str::to_owned).collect(), told)
}

/// The events of an execution.
fn events(folder: &TempDir, options: &[&str]) -> (Option<i32>, Vec<Value>) {
    let (code, lines, _) = execute(folder, &[&["--output-format", "json"], options].concat());
    (code, lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn each_event_is_a_line_of_json_and_the_last_has_the_result() {
    let folder = project("", &["exit('done', success=True, result=twice(21))"], &[]);
    let (code, events) = events(&folder, &[]);
    let kind = |event: &Value| match event["event"].as_str().unwrap() {
        "traced" => event["trace"]["type"].as_str().unwrap().to_owned(),
        other => other.to_owned(),
    };
    let kinds: Vec<_> = events.iter().map(kind).collect();
    assert_eq!(
        kinds,
        [
            "iteration_started",
            "llm_call_started",
            "llm_call_success",
            "tool_call",
            "code_execution",
            "iteration_ended",
            "finished"
        ]
    );
    let result = &events[6]["result"];
    assert_eq!(
        (code, &result["status"], &result["exit"], &result["output"], &result["error"]),
        (Some(0), &json!("success"), &json!("done"), &json!({"success": true, "result": 42}), &Value::Null)
    );
}

#[test]
fn an_execution_without_an_exit_is_a_problem() {
    let folder = project("iterations: 2", &["twice(1)", "twice(2)"], &[]);
    let (code, lines, _) = execute(&folder, &[]);
    assert_eq!(
        (code, lines.last().unwrap().as_str()),
        (Some(1), "no exit: Loop exceeded: 2 iterations have reached no exit")
    );
}

#[test]
fn a_chat_says_what_its_model_does() {
    let script = "in_order: [{text: 'Two times two is four.'}]";
    let files = [
        ("execution.yml", "instructions: Count.\nmodel: {provider: scripted, script: script.yml}\nchat: true\n"),
        ("script.yml", script),
    ];
    let (code, lines, told) = execute(&folder(&files), &["--message", "2 times 2?"]);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    assert!(lines.contains(&"Two times two is four.".to_owned()), "{lines:#?}");
    assert_eq!(lines.last().unwrap(), "listen after 1 iteration");
}

#[test]
fn an_agents_hooks_in_the_same_modules_stand_around_its_calls() {
    let hooks = "
from rasa.mantle.hooks import ToolCallPayload, ToolResultPayload, modify_tool_call, modify_tool_result

seen = []

@modify_tool_call()
async def more(payload: ToolCallPayload) -> ToolCallPayload:
    return payload.model_copy(update={'arguments': {'number': payload.arguments['number'] + 1}})

@modify_tool_result()
async def less(payload: ToolResultPayload) -> ToolResultPayload:
    return payload.model_copy(update={'value': 0})

async def on_before_tool(input):
    return {'input': {'number': input['number'] * 10}}

async def on_after_tool(input, output):
    return {'output': [input, output]}
";
    let folder = project("", &["exit('done', success=True, result=twice(1))"], &[("hooks.py", hooks)]);
    let (code, events) = events(&folder, &[]);
    let hook = |event: &Value| (event["event"] == "hook_ran").then(|| event["point"].clone());
    let ran: Vec<_> = events.iter().filter_map(hook).collect();
    assert_eq!((code, ran), (Some(0), vec![json!("tool_call"), json!("tool_result")]));
    let output = &events.last().unwrap()["result"]["output"]["result"];
    // The agent's hooks stand next to the tool: it is given what they leave, and `on_after_tool` what it was given.
    assert_eq!(*output, json!([{"number": 11}, 0]));
}

#[test]
fn what_cannot_be_run_is_told_with_what_to_do() {
    let empty = folder(&[("tools.py", TOOLS)]);
    let (code, lines, told) = execute(&empty, &[]);
    assert_eq!((code, lines), (Some(2), vec![]));
    let hint = "hint: write one with `instructions` (or a file `instructions.md` beside it) and a `model`";
    assert!(told.contains("There is no `execution.yml`") && told.contains(hint), "{told}");

    let unnamed = folder(&[("execution.yml", "instructions: Count.\n")]);
    let (code, _, told) = execute(&unnamed, &[]);
    assert_eq!(
        (code, told.as_str()),
        (
            Some(2),
            "error: The execution in `DIR` names no model\n  hint: name one in its `execution.yml`: `model: {provider: openai, model: …}`\n"
        )
    );

    let misnamed = project("", &[], &[("hooks.py", "async def on_before_tool(tol): ...\n")]);
    let (code, _, told) = execute(&misnamed, &[]);
    assert_eq!(code, Some(2));
    assert!(told.contains("hooks.py:1") && told.contains("`tol`") && told.contains("did you mean `tool`?"), "{told}");
}

#[test]
fn a_hook_that_is_misspelt_is_warned_of() {
    let hooks = "async def on_before_tol(tool):\n    pass\n";
    let folder = project("", &["exit('done', success=True, result=1)"], &[("hooks.py", hooks)]);
    let (code, _, told) = execute(&folder, &[]);
    assert_eq!(code, Some(0));
    let expected = "DIR/hooks.py:1:1: warning[unknown-hook]: `on_before_tol` is no hook: nothing calls it\n  hint: did you mean `on_before_tool`?";
    assert!(told.contains(expected) || told.contains(&expected.replace(":1:1:", ":1:")), "{told}");
}

#[test]
fn ctrl_c_aborts_what_runs() {
    let folder = project("tool_timeout: 600", &["await hang()"], &[]);
    let start = Instant::now();
    let running = tenterhook()
        .arg("execute")
        .arg(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(5));
    let interrupted = std::process::Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let done = running.wait_with_output().unwrap();
    let shown = String::from_utf8(done.stdout).unwrap();
    assert_eq!((done.status.code(), shown.lines().last().unwrap()), (Some(130), "no exit: interrupted"));
    assert!(start.elapsed() < Duration::from_mins(1));
}

#[test]
fn the_check_reads_the_file_and_asks_for_no_decorators() {
    let folder = project("iterations: 0", &[], &[("hooks.py", "async def on_exit():\n    pass\n")]);
    let done = tenterhook().args(["check", "--output-format", "concise"]).arg(folder.path()).output().unwrap();
    let shown = String::from_utf8(done.stdout).unwrap().replace(&folder.path().display().to_string(), "DIR");
    assert_eq!(
        (done.status.code(), shown.as_str()),
        (Some(1), "DIR/execution.yml:3:13: error[invalid-value]: `iterations` is 0, not from 1 to 100\n")
    );
}
