//! What is told of conversations in which nobody says anything, by whole agents over a file.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tenterhook::{ConversationStore as _, LifecycleEvent, SqliteStore, TurnEngine, TurnInput};

use crate::agents::folder;
use crate::command::tenterhook;
use crate::scene::{Answers, said};

const HOURS: Duration = Duration::from_hours(1);

/// An agent in `root`, loaded once more, that answers once.
fn load(root: &Path) -> TurnEngine {
    let model = Answers::default();
    model.left.lock().unwrap().push_back(said("Fine."));
    let loader = TurnEngine::loader(root).model(model).store(root.join("talks.db"));
    loader.load().unwrap_or_else(|error| panic!("{error}")).engine
}

async fn says(engine: &TurnEngine, text: &str) {
    engine.turn(TurnInput::new("s", text)).collect::<Vec<_>>().await;
}

/// All that is due so long from now, by kind.
fn due(engine: &TurnEngine, later: Duration) -> Vec<&'static str> {
    let now = SystemTime::now() + later;
    let events = std::iter::from_fn(|| engine.due(now).unwrap());
    let kind = |event| match event {
        LifecycleEvent::Nudged { .. } => "nudge",
        LifecycleEvent::Expired { .. } => "expire",
        other => panic!("{other:?}"),
    };
    events.map(kind).collect()
}

#[tokio::test]
async fn what_was_told_before_a_restart_is_not_told_after_it() {
    let agent = folder(&[("agent.yml", "agent: {persona: x}\nlifecycle: {nudge_after: 30, expire_after: 180}\n")]);
    let engine = load(agent.path());
    says(&engine, "hello").await;
    assert_eq!(due(&engine, HOURS), ["nudge"]);
    drop(engine);
    let engine = load(agent.path());
    assert_eq!(due(&engine, 2 * HOURS), Vec::<&str>::new());
    assert_eq!(due(&engine, 4 * HOURS), ["expire"]);
    drop(engine);
    assert_eq!(due(&load(agent.path()), 9 * HOURS), Vec::<&str>::new());
}

#[tokio::test]
async fn what_fell_due_while_no_engine_ran_is_told_after_the_start() {
    let agent = folder(&[("agent.yml", "agent: {persona: x}\nlifecycle: {nudge_after: 30, expire_after: 180}\n")]);
    says(&load(agent.path()), "hello").await;
    assert_eq!(due(&load(agent.path()), 9 * HOURS), ["expire"]);
    says(&load(agent.path()), "back again").await;
    assert_eq!(due(&load(agent.path()), HOURS), ["nudge"]);
    let kept = SqliteStore::open(&agent.path().join("talks.db")).unwrap().events("s").unwrap();
    let kinds: Vec<_> = kept.iter().map(|event| json!(event)["event"].as_str().unwrap().to_owned()).collect();
    let turn = ["user_message", "bot_message", "turn_finished"];
    let all = [&turn[..], &["conversation_expired", "session_started"], &turn, &["conversation_nudged"]].concat();
    assert_eq!(kinds, all);
}

#[tokio::test]
async fn one_of_two_engines_over_a_file_tells_an_event() {
    let agent = folder(&[("agent.yml", "agent: {persona: x}\nlifecycle: {nudge_after: 0.0005}\n")]);
    let engines = [load(agent.path()), load(agent.path())];
    says(&engines[0], "hello").await;
    let streams = engines.map(|engine| engine.lifecycle());
    let mut both = futures_util::stream::select_all(streams);
    let first = tokio::time::timeout(Duration::from_secs(10), both.next()).await.unwrap();
    assert!(matches!(first, Some(LifecycleEvent::Nudged { .. })), "{first:?}");
    tokio::time::timeout(Duration::from_millis(300), both.next()).await.unwrap_err();
}

#[tokio::test]
async fn an_agent_without_a_lifecycle_tells_nothing() {
    let agent = folder(&[("agent.yml", "agent: {persona: x}\n")]);
    let engine = load(agent.path());
    says(&engine, "hello").await;
    assert_eq!(due(&engine, 9000 * HOURS), Vec::<&str>::new());
    assert_eq!(engine.lifecycle().next().await, None);
}

/// `chat` with a lifecycle of milliseconds, until a line has been told that begins so: stderr, without times, and stdout.
fn chat(options: &[&str], until: &str) -> (Vec<String>, String) {
    let home = tempfile::tempdir().unwrap();
    let agent = home.path().join("agent");
    assert!(tenterhook().arg("init").arg(&agent).output().unwrap().status.success());
    let yaml = "agent: {persona: x}\nlifecycle: {nudge_after: 0.002, expire_after: 0.006}\n";
    std::fs::write(agent.join("agent.yml"), yaml).unwrap();
    let mut command = tenterhook();
    command.arg("chat").arg(&agent).args(options);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hello\n").unwrap();
    let (mut out, err) = (BufReader::new(child.stdout.take().unwrap()), BufReader::new(child.stderr.take().unwrap()));
    let (mut told, mut heard) = (Vec::new(), String::new());
    if options.contains(&"json") {
        while !heard.lines().last().is_some_and(|line| line.starts_with(until)) {
            assert!(out.read_line(&mut heard).unwrap() > 0, "{heard}");
        }
    } else {
        for line in err.lines() {
            told.push(line.unwrap());
            if told.last().unwrap().starts_with(until) {
                break;
            }
        }
    }
    drop(stdin);
    out.read_to_string(&mut heard).unwrap();
    assert!(child.wait().unwrap().success());
    (told, heard)
}

#[test]
fn chat_shows_at_its_prompt_which_conversations_are_silent_where_it_traces() {
    let (told, heard) = chat(&["--trace"], "  expire");
    let silence = ["  nudge: the conversation terminal is idle", "  expire: the conversation terminal is over"];
    assert_eq!(told[told.len() - 2..], silence);
    assert_eq!(heard, "Hello! Ask me about your parcel.\n");
}

#[test]
fn chat_writes_them_for_machines() {
    let (_, heard) = chat(&["--trace", "--output-format", "json"], r#"{"event":"expire""#);
    let lines: Vec<Value> = heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [.., finished, nudge, expire] = &lines[..] else { panic!("{heard}") };
    let since = &nudge["idle_since_ms"];
    let due = |after: u64| json!(since.as_u64().unwrap() + after);
    let event = |kind: &str, after| json!({"event": kind, "sender_id": "terminal", "idle_since_ms": since, "due_ms": due(after)});
    assert_eq!(*finished, json!({"event": "finished", "status": "completed"}));
    assert_eq!((nudge, expire), (&event("nudge", 120), &event("expire", 360)));
}
