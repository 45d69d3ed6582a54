//! Spans of the command's turns, sent to a collector.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::collector::{Collector, Manner};

/// What ends late, ends later than this: 2 s for the last spans, as much again for a busy machine, and what the interpreter takes.
const LATE: Duration = Duration::from_secs(9);

/// What helps where nobody answers.
const LOOK: &str = "hint: look at `OTEL_EXPORTER_OTLP_ENDPOINT`, and whether a collector runs there";

/// The environment that its agents run in.
fn environment() -> String {
    std::env::var("VIRTUAL_ENV").unwrap_or_else(|_| format!("{}/.venv", env!("CARGO_MANIFEST_DIR")))
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenterhook"));
    command.env_clear().env("VIRTUAL_ENV", environment()).env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command
}

/// A new agent.
fn agent() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let done = command().arg("init").arg(folder.path().join("parcels")).output().unwrap();
    assert!(done.status.success());
    folder
}

struct Ran {
    elapsed: Duration,
    stdout: String,
    /// The log from its first level on.
    said: String,
}

fn chat(folder: &Path, said: &[&str], variables: &[(&str, &str)]) -> Ran {
    let began = Instant::now();
    let mut command = command();
    command.arg("chat").arg(folder.join("parcels")).args(said.iter().flat_map(|text| ["--message", text]));
    let done = command.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(done.stdout), text(done.stderr));
    assert!(done.status.success(), "{stderr}");
    let said = stderr.find("WARN ").map_or(stderr.as_str(), |at| &stderr[at..]).trim_end().to_owned();
    Ran { elapsed: began.elapsed(), stdout, said }
}

fn endpoint(collector: &Collector) -> (&'static str, &str) {
    ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address)
}

/// A tree without ids, which differ from run to run.
fn settled(tree: &str) -> String {
    let mut parts = tree.split("\"call_");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |settled, part| {
        settled + "\"call" + part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit())
    })
}

#[test]
fn the_spans_of_turns_arrive_as_trees_without_content() {
    let (collector, folder) = (Collector::start(Manner::Answers(200)), agent());
    let ran = chat(folder.path(), &["Where is my parcel?", "Is it insured?"], &[endpoint(&collector)]);
    assert_eq!(ran.said, "");
    let trees: Vec<_> = collector.trees().iter().map(|tree| settled(tree)).collect();
    insta::assert_snapshot!(trees.join("\n"));
    assert!(ran.elapsed < LATE, "{:?}", ran.elapsed);
}

#[test]
fn content_is_recorded_where_it_is_asked_for_as_hooks_have_left_it() {
    let (collector, folder) = (Collector::start(Manner::Answers(200)), agent());
    let hooks = "
from rasa.mantle.hooks import ToolResultPayload, modify_tool_result

@modify_tool_result()
async def redact(payload: ToolResultPayload) -> ToolResultPayload:
    return payload.model_copy(update={'value': '[redacted]'})
";
    std::fs::write(folder.path().join("parcels/hooks.py"), hooks).unwrap();
    let capture = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true");
    chat(folder.path(), &["Where is my parcel?"], &[endpoint(&collector), capture]);
    let tree = collector.trees().concat();
    let tool = tree.lines().find(|line| line.contains("execute_tool find_parcel")).unwrap();
    assert!(tool.contains(r#"gen_ai.tool.call.arguments="{\"number\":\"4711\"}""#), "{tool}");
    assert!(tool.contains(r#"gen_ai.tool.call.result="[redacted]""#), "{tool}");
    let chats: Vec<_> = tree.lines().filter(|line| line.contains("chat scripted")).collect();
    assert!(chats[0].contains("gen_ai.input.messages=") && chats[0].contains("Where is my parcel?"), "{}", chats[0]);
    assert!(chats[0].contains("gen_ai.output.messages=") && chats[0].contains("Let me look."), "{}", chats[0]);
    assert!(chats[1].contains("[redacted]") && !tree.contains("Hamburg\\\\\\\""), "{}", chats[1]);
}

#[test]
fn a_request_says_who_sends_and_has_the_headers_that_are_asked_for() {
    let (collector, folder) = (Collector::start(Manner::Answers(200)), agent());
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret,x-team = a");
    chat(folder.path(), &["hello"], &[endpoint(&collector), headers, ("OTEL_SERVICE_NAME", "till")]);
    let posted = &collector.posted()[0];
    assert_eq!(posted.line, "POST /v1/traces HTTP/1.1");
    let sent = ["content-type", "authorization", "x-team"].map(|name| posted.headers[name].as_str());
    assert_eq!(sent, ["application/x-protobuf", "Bearer secret", "a"]);
    assert!(collector.resource().starts_with(r#"service.name="till" telemetry.sdk.language="rust""#));
}

#[test]
fn a_wrong_setting_is_told_and_the_chat_goes_on() {
    let folder = agent();
    let ran = chat(folder.path(), &["hello"], &[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost")]);
    assert_eq!(ran.stdout, "Hello! Ask me about your parcel.\n");
    assert_eq!(
        ran.said,
        "WARN Spans are not exported: `OTEL_EXPORTER_OTLP_ENDPOINT` is no address: relative URL without a base\n  \
         hint: it begins with `http://` or `https://`, such as `http://localhost:4318`"
    );
}

#[test]
fn a_collector_that_is_not_there_is_told_once_and_holds_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let folder = agent();
    let ran = chat(folder.path(), &["hello"], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &address)]);
    assert_eq!(
        ran.said,
        format!("WARN Spans could not be exported to `{address}`: Connection refused (os error 111)\n  {LOOK}")
    );
    assert!(ran.elapsed < LATE, "{:?}", ran.elapsed);
}

#[test]
fn a_collector_that_hangs_holds_nobody() {
    let (collector, folder) = (Collector::start(Manner::Hangs), agent());
    let ran = chat(folder.path(), &["hello"], &[endpoint(&collector)]);
    assert_eq!(
        ran.said,
        format!(
            "WARN Spans could not be exported to `{}`: it has not taken the last ones within 2 s",
            collector.address
        )
    );
    assert!(ran.elapsed < LATE, "{:?}", ran.elapsed);
}

#[test]
fn a_collector_that_says_no_is_told_with_what_to_do() {
    let (collector, folder) = (Collector::start(Manner::Answers(401)), agent());
    let ran = chat(folder.path(), &["hello"], &[endpoint(&collector)]);
    assert_eq!(
        ran.said,
        format!(
            "WARN Spans could not be exported to `{}`: it answers `401 Unauthorized`\n  hint: look at `OTEL_EXPORTER_OTLP_HEADERS`: \
             the collector asks for a key",
            collector.address
        )
    );
}
