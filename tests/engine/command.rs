//! The command as its users run it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::agents::{environment, folder};
use crate::seed_modules::shared;

pub(crate) fn tenterhook() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenterhook"));
    command.env_clear().env("VIRTUAL_ENV", environment()).env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs the hooks of `agent` over `input`; the exit code and the JSON report without what varies from run to run.
pub(crate) fn report(agent: &Path, input: &Path, options: &[&str]) -> (i32, Value) {
    let done = tenterhook()
        .arg("run")
        .arg(agent)
        .arg("--input")
        .arg(input)
        .args(["--output-format", "json"])
        .args(options)
        .output();
    let done = done.unwrap();
    let mut report: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", text(&done.stderr)));
    let report_fields = report.as_object_mut().unwrap();
    for varying in ["agent", "input", "time"] {
        report_fields.remove(varying).unwrap();
    }
    for hook in report["hooks"].as_array_mut().unwrap() {
        for varying in ["p50_ms", "p99_ms", "handler_ms"] {
            hook.as_object_mut().unwrap().remove(varying).unwrap();
        }
    }
    (done.status.code().unwrap(), report)
}

/// Runs with this `hooks.py` over these lines.
pub(crate) fn run(hooks: &str, lines: &[&str], options: &[&str]) -> (i32, Value) {
    let agent =
        folder(&[("hooks.py", &format!("from rasa.mantle.hooks import *\n{hooks}")), ("in.jsonl", &lines.join("\n"))]);
    report(agent.path(), &agent.path().join("in.jsonl"), options)
}

const SAME: &str = "@modify_outgoing_text()\nasync def same(p: OutgoingTextPayload) -> OutgoingTextPayload: return p\n";

fn fails(arguments: &[&str]) -> String {
    let done = tenterhook().args(arguments).output().unwrap();
    assert_eq!((done.status.code(), text(&done.stdout).as_str()), (Some(2), ""));
    text(&done.stderr)
}

#[test]
fn what_cannot_be_run_exits_with_2_and_one_message() {
    let agent =
        folder(&[("hooks.py", &format!("from rasa.mantle.hooks import *\n{SAME}")), ("in.jsonl", ""), ("empty/x", "")]);
    let path = |name: &str| agent.path().join(name).display().to_string();
    let root = agent.path().display().to_string();
    let input = path("in.jsonl");
    assert_eq!(
        fails(&["run", &path("none"), "--input", &input]),
        format!("error: Agent folder `{}` does not exist\n", path("none"))
    );
    assert_eq!(
        fails(&["run", &path("hooks.py"), "--input", &input]),
        format!(
            "error: `{}` is a file\n  hint: give the agent's folder, the one that holds `hooks.py` or `hooks/`\n",
            path("hooks.py")
        )
    );
    assert!(fails(&["run", &path("empty"), "--input", &input]).contains("has no hook modules"));
    let missing = format!("error: Input `{}` cannot be read: No such file or directory (os error 2)\n", path("no"));
    assert_eq!(fails(&["run", &root, "--input", &path("no")]), missing);
    assert!(fails(&["run", &root, "--input", &root]).contains("is a folder\n  hint: give a file"));
    assert!(
        fails(&["run", &root, "--input", &input, "--python", &path("no")])
            .contains("cannot be run: there is no such interpreter")
    );
    assert!(fails(&["run", &root]).contains("--input <FILE>"));
    assert!(fails(&["ruin"]).contains("a similar subcommand exists: 'run'"));
}

#[test]
fn without_pydantic_the_remedy_is_named() {
    let agent = folder(&[("hooks.py", SAME), ("in.jsonl", "")]);
    let bare = agent.path().join("bare");
    let made = Command::new(environment().join("bin/python")).args(["-m", "venv", "--without-pip"]).arg(&bare).status();
    assert!(made.unwrap().success());
    let done = tenterhook()
        .env("VIRTUAL_ENV", &bare)
        .arg("run")
        .arg(agent.path())
        .arg("--input")
        .arg(agent.path().join("in.jsonl"))
        .output()
        .unwrap();
    let python = bare.join("bin/python").display().to_string();
    assert_eq!(
        text(&done.stderr),
        format!(
            "error: Python package `pydantic` is not installed for `{python}`\n  hint: run `{python} -m pip install pydantic`\n"
        )
    );
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn the_environment_is_the_chosen_one_in_utf8_whatever_the_locale() {
    let (code, report) = run(
        "
import locale, sys
@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    facts = [sys.prefix, sys.executable, sys.stdout.encoding, sys.getfilesystemencoding(), locale.getpreferredencoding(False)]
    return p.model_copy(update={'text': ' '.join(facts)})
",
        &[r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#],
        &["--diff"],
    );
    let prefix = environment().display().to_string();
    let expected = format!("{prefix} {prefix}/bin/python utf-8 utf-8 utf-8");
    assert_eq!(
        (code, report["changes"][0]["after"]["text"].as_str().unwrap().to_lowercase()),
        (0, expected.to_lowercase())
    );
}

#[test]
fn a_line_that_is_no_conversation_is_skipped_with_its_number_and_the_rest_goes_on() {
    let good = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
    let (code, report) = run(
        SAME,
        &[
            good,
            "no json",
            "",
            r#"{"messages": [{"content": "x"}]}"#,
            r#"{"messages": [{"role": "tool", "tool_call_id": "1", "content": "x"}]}"#,
            good,
        ],
        &[],
    );
    let skipped = &report["conversations"]["skipped"];
    let told: Vec<_> = skipped
        .as_array()
        .unwrap()
        .iter()
        .map(|skip| format!("{}: {}", skip["line"], skip["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            "2: The line is no JSON object: expected ident at line 1 column 2",
            "4: `messages[0]` has no role",
            "5: `messages[0]` is a tool message that answers no call (`tool_call_id` is \"1\")",
        ]
    );
    assert_eq!((code, &report["conversations"]["played"], &report["hooks"][0]["calls"]), (1, &json!(2), &json!(2)));
}

#[test]
fn a_line_of_100_mb_is_skipped() {
    let agent = folder(&[("hooks.py", &format!("from rasa.mantle.hooks import *\n{SAME}"))]);
    let mut child = tenterhook()
        .arg("run")
        .arg(agent.path())
        .args(["--input", "-", "--output-format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let megabyte = vec![b'a'; 1 << 20];
    input.write_all(br#"{"messages": [{"role": "user", "content": ""#).unwrap();
    for _ in 0..100 {
        input.write_all(&megabyte).unwrap();
    }
    input.write_all(b"\"}]}\n{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n").unwrap();
    drop(input);
    let done = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(
        report["conversations"],
        json!({"played": 1, "skipped": [{"line": 1, "reason": "The line has 104857648 bytes; at most 67108864 are read"}]})
    );
}

#[test]
fn a_failed_handler_exits_with_1_and_is_counted_by_cause() {
    let line = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]}"#;
    let hooks = "
@modify_incoming_message()
async def fail(p: IncomingMessagePayload) -> IncomingMessagePayload:
    if p.text == 'a': raise ValueError('no')
    return None
";
    let (code, report) = run(hooks, &[line], &[]);
    let expected = json!({"raised": 1, "invalid-result": 1});
    assert_eq!((code, &report["hooks"][0]["failures"]), (1, &expected));
    assert_eq!(report["turns"], json!({"completed": 0, "rejected": 0, "failed": 2}));
    assert_eq!(report["skipped_messages"], json!(1));
}

#[test]
fn a_retry_drops_the_batch_and_the_next_recorded_completion_follows_with_the_feedback() {
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{\"n\": 1}"}});
    let line = json!({"messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "dropped", "tool_calls": [call("1", "fine"), call("2", "bad")]},
        {"role": "tool", "tool_call_id": "1", "content": "r1"},
        {"role": "tool", "tool_call_id": "2", "content": "r2"},
        {"role": "assistant", "content": "kept"},
    ]})
    .to_string();
    let hooks = "
@modify_tool_call()
async def guard(p: ToolCallPayload) -> ToolCallPayload:
    if p.tool_name == 'bad': raise RetryModel('not bad')
    return p

@modify_model_request()
async def show(p: ModelRequestPayload) -> ModelRequestPayload:
    return p.model_copy(update={'messages': [*p.messages, {'tools': p.tool_names, 'iteration': p.iteration}]})

@modify_tool_result()
async def never(p: ToolResultPayload) -> ToolResultPayload: return p

@modify_outgoing_text()
async def spoken(p: OutgoingTextPayload) -> OutgoingTextPayload: return p.model_copy(update={'text': p.text + '!'})
";
    let (code, report) = run(hooks, &[&line], &["--diff"]);
    assert_eq!(code, 0);
    let counts: Vec<_> = report["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hook| json!([hook["function"], hook["calls"], hook["retries"]]))
        .collect();
    assert_eq!(
        counts,
        [json!(["show", 2, 0]), json!(["guard", 2, 1]), json!(["never", 0, 0]), json!(["spoken", 1, 0])]
    );
    assert_eq!(report["dropped_completions"], json!(1));
    let changes: Vec<_> =
        report["changes"].as_array().unwrap().iter().filter(|change| change["outcome"] == "changed").collect();
    let second = &changes[1]["before"]["messages"];
    assert_eq!(second, &json!([{"role": "user", "content": "go"}, {"role": "system", "content": "not bad"}]));
    let added = &changes[1]["after"]["messages"][2];
    assert_eq!(added, &json!({"tools": ["fine", "bad"], "iteration": 1}));
    assert_eq!(changes[2]["after"], json!({"text": "kept!"}));
    assert_eq!(report["changes"][1]["feedback"], json!("not bad"));
}

#[test]
fn what_a_hook_changes_is_what_later_points_see() {
    let search = json!({"id": "1", "type": "function", "function": {"name": "search_knowledge", "arguments": "{\"query\": \"q\"}"}});
    let line = json!({"messages": [
        {"role": "user", "content": [{"type": "text", "text": "my secret"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        {"role": "assistant", "content": null, "tool_calls": [search]},
        {"role": "tool", "tool_call_id": "1", "content": "[{\"text\": \"low\", \"score\": 0.1}, {\"text\": \"high\", \"score\": 0.9}]"},
        {"role": "assistant", "content": "answer"},
        {"role": "user", "content": "more"},
        {"role": "assistant", "content": "end"},
    ]})
    .to_string();
    let hooks = "
import json
last = []

@modify_incoming_message()
async def hide(p: IncomingMessagePayload) -> IncomingMessagePayload:
    return p.model_copy(update={'text': p.text.replace('secret', '***')})

@modify_model_request()
async def keep(p: ModelRequestPayload) -> ModelRequestPayload:
    last[:] = p.messages
    return p

@modify_tool_call()
async def rename(p: ToolCallPayload) -> ToolCallPayload:
    return p.model_copy(update={'arguments': {'query': 'better'}})

@modify_knowledge_query()
async def query(p: KnowledgeQueryPayload) -> KnowledgeQueryPayload:
    assert p.query == 'better'
    return p.model_copy(update={'query': 'best'})

@modify_knowledge_results()
async def passages(p: KnowledgeResultsPayload) -> KnowledgeResultsPayload:
    assert p.query == 'best'
    return p.model_copy(update={'passages': [x for x in p.passages if x['score'] > 0.5]})

@modify_tool_result()
async def result(p: ToolResultPayload) -> ToolResultPayload:
    return p.model_copy(update={'value': json.loads(p.value)})

@modify_outgoing_text()
async def text(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={'text': json.dumps(last) if p.text == 'end' else p.text.upper()})
";
    let (code, report) = run(hooks, &[&line], &["--diff"]);
    assert_eq!(code, 0, "{report:#}");
    let shown = report["changes"].as_array().unwrap().last().unwrap()["after"]["text"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(shown).unwrap(),
        json!([
            {"role": "user", "content": [{"type": "text", "text": "my ***"}, {"type": "image_url", "image_url": {"url": "u"}}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "search_knowledge", "arguments": "{\"query\":\"better\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "1", "content": "[{\"text\":\"high\",\"score\":0.9}]"},
            {"role": "assistant", "content": "ANSWER"},
            {"role": "user", "content": "more"},
        ])
    );
}

#[test]
fn the_diff_for_people_shows_the_lines_that_changed() {
    let agent = folder(&[
        (
            "hooks.py",
            "from rasa.mantle.hooks import *\n@modify_outgoing_text()\nasync def trim(p: OutgoingTextPayload) -> OutgoingTextPayload:\n    return p.model_copy(update={'text': p.text.replace('two', 'TWO')})\n",
        ),
        (
            "in.jsonl",
            "{\"conversation_id\": \"c1\", \"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"one\\ntwo\\nthree\\nfour\"}]}",
        ),
    ]);
    let done = tenterhook()
        .arg("run")
        .arg(agent.path())
        .arg("--input")
        .arg(agent.path().join("in.jsonl"))
        .arg("--diff")
        .output()
        .unwrap();
    let shown = text(&done.stdout);
    let (diff, table) = shown.split_once("\n\n").unwrap();
    assert_eq!(diff, "c1 (line 1), turn 1: outgoing_text by hooks:trim\n  text\n    one\n  - two\n  + TWO\n    three");
    assert!(table.starts_with("point          lane    hook        calls  changed"), "{table}");
}

#[test]
fn jobs_change_nothing_but_times() {
    let Some(input) = shared().map(|shared| shared.join("data/airline/conversations.jsonl")) else { return };
    let agent = folder(&[(
        "hooks.py",
        "
from rasa.mantle.hooks import *
turns = {}

@on_turn_started()
async def start(p: TurnStartedPayload) -> None:
    turns[p.sender_id] = 0

@on_tool_call()
async def count(p: ToolCallPayload) -> None:
    turns[p.sender_id] += 1

@on_turn_finished()
async def finish(p: TurnFinishedPayload) -> None:
    turns.pop(p.sender_id)

@modify_model_response()
async def once(p: ModelResponsePayload) -> ModelResponsePayload:
    if turns[p.sender_id] == 2 and p.text: raise RetryModel('again')
    return p

@modify_outgoing_text()
async def text(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={'text': f'{p.text} {turns[p.sender_id]}'})
",
    )]);
    let first = report(agent.path(), &input, &["--jobs", "1", "--diff"]);
    assert_eq!((first.0, &first.1["conversations"]["played"], &first.1["messages"]), (0, &json!(200), &json!(5308)));
    assert!(first.1["dropped_completions"].as_u64().unwrap() > 0);
    for jobs in ["8", "1", "8"] {
        assert_eq!(report(agent.path(), &input, &["--jobs", jobs, "--diff"]), first);
    }
}

#[test]
fn an_interrupt_ends_the_run_with_a_report_of_what_was_played() {
    let agent = folder(&[(
        "hooks.py",
        "
import asyncio
from rasa.mantle.hooks import *

@modify_outgoing_text(timeout_ms=60_000)
async def wait(p: OutgoingTextPayload) -> OutgoingTextPayload:
    if p.text == 'slow':
        print('waiting', flush=True)
        await asyncio.sleep(60)
    return p
",
    )]);
    let line = |text: &str| {
        json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": text}]}).to_string()
    };
    std::fs::write(agent.path().join("in.jsonl"), [line("fast"), line("slow"), line("never")].join("\n")).unwrap();
    let mut child = tenterhook()
        .arg("run")
        .arg(agent.path())
        .arg("--input")
        .arg(agent.path().join("in.jsonl"))
        .args(["--output-format", "json", "--jobs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 8];
    std::io::Read::read_exact(child.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert_eq!(&said, b"waiting\n");
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let done = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done.status.code(), &report["interrupted"]), (Some(130), &json!(true)));
    assert_eq!((&report["conversations"]["played"], &report["hooks"][0]["withdrawn"]), (&json!(1), &json!(1)));
}

#[test]
fn an_interrupt_is_heard_while_the_input_is_a_pipe_on_which_nothing_comes() {
    let agent =
        folder(&[("hooks.py", &format!("from rasa.mantle.hooks import *\nprint('loaded', flush=True)\n{SAME}"))]);
    let mut child = tenterhook()
        .arg("run")
        .arg(agent.path())
        .args(["--input", "-", "--output-format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 7];
    std::io::Read::read_exact(child.stderr.as_mut().unwrap(), &mut said).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let stdin = child.stdin.take();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    drop(stdin);
}

#[test]
fn what_hooks_write_to_the_descriptor_of_stdout_goes_to_stderr() {
    let hooks = "
import os, subprocess
@modify_outgoing_text()
async def loud(p: OutgoingTextPayload) -> OutgoingTextPayload:
    os.write(1, b'by descriptor\\n')
    subprocess.run(['echo', 'by a child'])
    return p
";
    let (code, report) = run(
        hooks,
        &[r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#],
        &[],
    );
    assert_eq!((code, &report["hooks"][0]["calls"]), (0, &json!(1)));
}

#[test]
fn a_closed_stderr_and_a_path_that_is_no_utf8_are_no_crash() {
    use std::os::unix::ffi::OsStrExt as _;
    let done = Command::new("sh")
        .args(["-c", "\"$0\" run none --input none 2>&-"])
        .arg(env!("CARGO_BIN_EXE_tenterhook"))
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2));
    let parent = folder(&[]);
    let agent = parent.path().join(std::ffi::OsStr::from_bytes(b"agent-\xff"));
    std::fs::create_dir(&agent).unwrap();
    std::fs::write(agent.join("hooks.py"), format!("from rasa.mantle.hooks import *\n{SAME}")).unwrap();
    std::fs::write(
        agent.join("in.jsonl"),
        r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#,
    )
    .unwrap();
    let (code, report) = report(&agent, &agent.join("in.jsonl"), &[]);
    assert_eq!((code, &report["hooks"][0]["calls"], &report["hooks"][0]["file"]), (0, &json!(1), &json!("hooks.py")));
}

#[test]
fn a_hook_that_keeps_the_interpreter_to_itself_does_not_keep_the_process() {
    let start = std::time::Instant::now();
    let hooks = "
import re
@modify_outgoing_text(timeout_ms=100)
async def stuck(p: OutgoingTextPayload) -> OutgoingTextPayload:
    re.match(r'(a+)+$', 'a' * 40 + 'b')
    return p
";
    let (code, report) = run(
        hooks,
        &[r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#],
        &[],
    );
    assert_eq!((code, &report["hooks"][0]["failures"]), (1, &json!({"timeout": 1})));
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn a_run_ends_though_an_observer_blocks_for_ever_and_hears_an_interrupt_before() {
    let agent = folder(&[
        (
            "hooks.py",
            "
import time
from rasa.mantle.hooks import *
@on_turn_started()
async def block(p: TurnStartedPayload) -> None:
    print('blocking', flush=True)
    sum(range(10 ** 12))
@on_turn_finished()
async def waits(p: TurnFinishedPayload) -> None: ...
",
        ),
        ("in.jsonl", r#"{"messages": [{"role": "user", "content": "a"}]}"#),
    ]);
    let start = |stderr: Stdio| {
        let mut run = tenterhook();
        run.arg("run").arg(agent.path()).arg("--input").arg(agent.path().join("in.jsonl"));
        run.args(["--output-format", "json"]).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap()
    };
    let ended = start(Stdio::null());
    let mut child = start(Stdio::piped());
    let mut said = [0; 9];
    std::io::Read::read_exact(child.stderr.as_mut().unwrap(), &mut said).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    let ended = ended.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((ended.status.code(), &report["stalled"]), (Some(1), &json!(true)));
}

#[test]
fn what_a_hook_leaves_alone_is_stored_as_it_was_recorded() {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "index": 0, "function": {"name": "look", "arguments": arguments}});
    let parts =
        json!([{"type": "text", "text": "one", "cache_control": {}}, {"type": "image_url", "image_url": {"url": "u"}}]);
    let line = json!({"messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": parts, "tool_calls": [call("1", "{\"n\":  1}"), call("2", "{\"n\":  2}")]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "secret"}]},
        {"role": "tool", "tool_call_id": "2", "content": "r2"},
        {"role": "assistant", "content": "end"},
    ]})
    .to_string();
    let hooks = "
import json
last = []

@modify_tool_call()
async def change(p: ToolCallPayload) -> ToolCallPayload:
    return p.model_copy(update={'arguments': {'n': 9}}) if p.arguments['n'] == 2 else p

@modify_tool_result()
async def mask(p: ToolResultPayload) -> ToolResultPayload:
    return p.model_copy(update={'value': [{'type': 'text', 'text': 'masked'}]}) if isinstance(p.value, list) else p

@modify_model_request()
async def keep(p: ModelRequestPayload) -> ModelRequestPayload:
    last[:] = p.messages
    return p

@modify_outgoing_text()
async def text(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={'text': json.dumps(last)}) if p.text == 'end' else p
";
    let (_, report) = run(hooks, &[&line], &["--diff"]);
    let shown = report["changes"].as_array().unwrap().last().unwrap()["after"]["text"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(shown).unwrap(),
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": parts, "tool_calls": [call("1", "{\"n\":  1}"), call("2", "{\"n\":9}")]},
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "masked"}]},
            {"role": "tool", "tool_call_id": "2", "content": "r2"},
        ])
    );
}

#[test]
fn conversations_of_one_id_are_told_apart() {
    let line = r#"{"conversation_id": "same", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
    let hooks = "
@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload: return p.model_copy(update={'text': p.sender_id})
";
    let (_, report) = run(hooks, &[line, line], &["--diff"]);
    let told: Vec<_> =
        report["changes"].as_array().unwrap().iter().map(|change| change["after"]["text"].clone()).collect();
    assert_eq!(told, [json!("same"), json!("same-line-2")]);
}

#[test]
fn time_in_handlers_counts_once_what_handlers_await_at_the_same_time() {
    let line = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
    let agent = folder(&[
        (
            "hooks.py",
            "
import asyncio
from rasa.mantle.hooks import *
@modify_outgoing_text()
async def wait(p: OutgoingTextPayload) -> OutgoingTextPayload:
    await asyncio.sleep(0.1)
    return p
",
        ),
        ("in.jsonl", &[line; 8].join("\n")),
    ]);
    let done = tenterhook()
        .arg("run")
        .arg(agent.path())
        .arg("--input")
        .arg(agent.path().join("in.jsonl"))
        .args(["--output-format", "json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let (total, in_handlers) =
        (report["time"]["total_ms"].as_f64().unwrap(), report["time"]["in_handlers_ms"].as_f64().unwrap());
    assert!((100.0..=total).contains(&in_handlers), "{report:#}");
}

#[test]
fn logs_say_what_was_dropped_ignored_and_discarded() {
    let agent = folder(&[
        (
            "hooks.py",
            "
from rasa.mantle.hooks import *

refusal = globals()['HookRejection']

@modify_model_request()
async def reject(p: ModelRequestPayload) -> ModelRequestPayload: raise refusal('no')

@on_model_request()
async def signal(p: ModelRequestPayload) -> None: raise RetryModel('no')

@modify_outgoing_text()
async def unknown(p: OutgoingTextPayload) -> OutgoingTextPayload: return p.model_copy(update={'bogus': 1})

@modify_model_response()
async def retry(p: ModelResponsePayload) -> ModelResponsePayload:
    if p.text == 'again': raise RetryModel('x')
    raise KeyError('k')
",
        ),
        (
            "in.jsonl",
            r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "again"}, {"role": "assistant", "content": "b"}]}"#,
        ),
    ]);
    let done = tenterhook()
        .arg("run")
        .arg(agent.path())
        .arg("--input")
        .arg(agent.path().join("in.jsonl"))
        .args(["-vv", "--log-format", "json"])
        .output()
        .unwrap();
    let lines: Vec<Value> = text(&done.stderr).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |message: &str| lines.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    assert_eq!(said("HookRejection discarded: this point does not take it").len(), 2);
    assert_eq!(said("RetryModel discarded: an observer raises no signals").len(), 2);
    assert_eq!(said("Unknown field dropped")[0]["field"], json!("bogus"));
    assert_eq!(said("Handler failed: it raised KeyError: 'k'")[0]["function"], json!("retry"));
    let outcomes: Vec<_> =
        said("Dispatched").iter().map(|line| line["span"]["outcome"].as_str().unwrap().to_owned()).collect();
    assert_eq!(outcomes, ["retry", "success"]);
}

#[test]
fn the_masking_example_plays_every_shared_conversation() {
    let Some(input) = shared().map(|shared| shared.join("data/airline/conversations.jsonl")) else { return };
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks-examples/mask-private-data");
    let (code, report) = report(&example, &input, &[]);
    assert_eq!((code, &report["conversations"]), (0, &json!({"played": 200, "skipped": []})));
    assert_eq!((&report["messages"], &report["turns"]["completed"]), (&json!(5308), &json!(1490)));
    let calls: Vec<_> =
        report["hooks"].as_array().unwrap().iter().map(|hook| hook["calls"].as_u64().unwrap()).collect();
    assert_eq!(calls, [1490, 2454, 1164, 1380]);
}

#[test]
fn points_prints_the_catalogue() {
    let done = tenterhook().arg("points").output().unwrap();
    insta::assert_snapshot!(text(&done.stdout));
    let done = tenterhook().args(["points", "--output-format", "json"]).output().unwrap();
    insta::assert_json_snapshot!(serde_json::from_slice::<Value>(&done.stdout).unwrap());
}

#[test]
fn points_of_an_agent_prints_what_is_registered_where() {
    let agent = folder(&[(
        "hooks/a.py",
        "from rasa.mantle.hooks import *\n\n@on_tool_call(timeout_ms=7)\nasync def f(p: ToolCallPayload) -> None: ...\n",
    )]);
    let done = tenterhook().arg("points").arg(agent.path()).output().unwrap();
    assert_eq!(
        text(&done.stdout),
        "point      lane     hook       time-out  place\ntool_call  observe  hooks.a:f  7 ms      hooks/a.py:4\n"
    );
    let done = tenterhook().args(["points", "--output-format", "json"]).arg(agent.path()).output().unwrap();
    let points: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(points["points"][4]["hooks"][0]["timeout_ms"], json!(7));
    assert_eq!(points["points"][0]["hooks"], json!([]));
}

#[test]
fn logs_are_on_stderr_and_can_be_json_with_a_span_for_each_dispatch() {
    let agent = folder(&[
        ("hooks.py", &format!("from rasa.mantle.hooks import *\n{SAME}")),
        (
            "in.jsonl",
            r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "a secret"}]}"#,
        ),
    ]);
    let run = |options: &[&str]| -> Output {
        tenterhook()
            .arg("run")
            .arg(agent.path())
            .arg("--input")
            .arg(agent.path().join("in.jsonl"))
            .args(options)
            .output()
            .unwrap()
    };
    assert_eq!(text(&run(&[]).stderr), "");
    let done = run(&["-vv", "--log-format", "json"]);
    let lines: Vec<Value> = text(&done.stderr).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let dispatched = lines.iter().find(|line| line["message"] == "Dispatched").unwrap();
    let span = &dispatched["span"];
    assert_eq!(
        (&span["name"], &span["point"], &span["lane"], &span["module"], &span["function"], &span["outcome"]),
        (
            &json!("dispatch"),
            &json!("outgoing_text"),
            &json!("modify"),
            &json!("hooks"),
            &json!("same"),
            &json!("success")
        )
    );
    assert!(span["elapsed_ms"].as_f64().unwrap() > 0.0);
    assert!(!text(&done.stderr).contains("secret"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let done = Command::new("sh")
        .args(["-c", "\"$0\" points --output-format json | head -c 1 > /dev/null; echo ${PIPESTATUS:-ok}"])
        .arg(env!("CARGO_BIN_EXE_tenterhook"))
        .output()
        .unwrap();
    assert_eq!(text(&done.stderr), "");
}

#[test]
fn hooks_in_a_process_of_their_own_give_the_same_report() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks-examples");
    for example in ["mask-private-data", "guard-tool-calls"] {
        let example = root.join(example);
        let agent = folder(&[("tenterhook.toml", "isolation = \"process\"\n")]);
        let copied = Command::new("cp").arg("-r").arg(example.join(".")).arg(agent.path()).status();
        assert!(copied.unwrap().success());
        let input = example.join("conversations.jsonl");
        let [mut here, mut apart] = [&example, agent.path()].map(|agent| report(agent, &input, &["--diff"]));
        for report in [&mut here.1, &mut apart.1] {
            report.as_object_mut().unwrap().remove("agent");
        }
        assert_eq!(here, apart);
    }
}
