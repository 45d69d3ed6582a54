//! `chat` and `run` with a Quick App in the place of an agent: its manifest is a file.

use std::io::{self, BufReader, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::chat::{ChatArgs, lines};
use super::run::{Lines, RunArgs, builder, open};
use super::{Global, OutputFormat, Status, logging, say};
use crate::agent::{LoadedApp, folder_of};
use crate::conversation::{Object, message};
use crate::quickapp::{QuickApp, RequestEvent, RequestInput, RequestStatus};

fn load(manifest: &Path, global: &Global) -> anyhow::Result<LoadedApp> {
    crate::python::console(logging::of_python(global));
    let loaded = QuickApp::loader(manifest).hooks(builder(&folder_of(manifest), global)).load()?;
    for warning in &loaded.warnings {
        say(format_args!("{warning}"));
    }
    Ok(loaded)
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Talks to an app; the conversation is kept as long as the command runs.
pub(super) fn chat(arguments: &ChatArgs, global: &Global) -> anyhow::Result<Status> {
    anyhow::ensure!(
        arguments.store.is_none(),
        "A Quick App keeps no conversations: its client sends them with each request\n  hint: leave out `--store`"
    );
    let loaded = load(&arguments.agent, global)?;
    let runtime = runtime()?;
    let status = runtime.block_on(talk(arguments, &loaded.app))?;
    if let Some(hooks) = &loaded.hooks {
        runtime.block_on(hooks.shutdown(super::run::GRACE));
    }
    Ok(status)
}

async fn talk(arguments: &ChatArgs, app: &QuickApp) -> anyhow::Result<Status> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let (mut conversation, mut worst) = (Vec::new(), Status::Clean);
    let mut given = arguments.message.iter();
    let scripted = !arguments.message.is_empty();
    let at_terminal = io::stdin().is_terminal() && !scripted;
    if at_terminal {
        say(format_args!("Talk to {}. `/quit` or Ctrl-D ends; Ctrl-C cancels a request.", app.name()));
    }
    let mut typed = (!scripted).then(lines);
    loop {
        if at_terminal {
            print!("you> ");
            io::stdout().flush()?;
        }
        let line = match &mut typed {
            None => given.next().cloned(),
            Some(typed) => tokio::select! {
                line = typed.recv() => line,
                // At the prompt there is no request to cancel.
                _ = interrupts.recv() => { println!(); continue }
            },
        };
        match line.as_deref().map(str::trim) {
            None | Some("/quit") => return Ok(worst),
            Some("") => {}
            Some(text) => {
                let mut messages: Vec<_> = conversation.clone();
                messages.push(message("user", text));
                let asked = Asked { arguments, app, messages };
                match asked.answer(&mut interrupts).await? {
                    Some((status, messages)) => {
                        conversation = messages;
                        if status == RequestStatus::Error && !at_terminal {
                            worst = Status::Problems;
                        }
                    }
                    None if scripted => return Ok(Status::Interrupted),
                    None => {}
                }
            }
        }
    }
}

struct Asked<'a> {
    arguments: &'a ChatArgs,
    app: &'a QuickApp,
    messages: Vec<Arc<Object>>,
}

impl Asked<'_> {
    /// The end of the request; `None`: Ctrl-C has cancelled it.
    async fn answer(self, interrupts: &mut Signal) -> anyhow::Result<Option<(RequestStatus, Vec<Arc<Object>>)>> {
        let Self { arguments, app, messages } = self;
        let input = RequestInput { sender_id: arguments.sender.clone(), messages, client_tools: Vec::new() };
        let mut events = app.request(input);
        let (mut out, mut open_line) = (io::stdout(), false);
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                _ = interrupts.recv() => return Ok(None),
            };
            let Some(event) = event else { return Ok(None) };
            if arguments.output_format == OutputFormat::Json {
                writeln!(out, "{}", json!(event))?;
            } else {
                match &event {
                    RequestEvent::Token { text } => {
                        write!(out, "{text}")?;
                        out.flush()?;
                        open_line = true;
                    }
                    RequestEvent::Message { .. } if std::mem::take(&mut open_line) => writeln!(out)?,
                    RequestEvent::Message { text } => writeln!(out, "{text}")?,
                    other => {
                        if let Some(line) = traced(other).filter(|_| arguments.trace) {
                            say(format_args!("  {line}"));
                        }
                    }
                }
            }
            if let RequestEvent::Finished { status, messages } = event {
                if status == RequestStatus::Error {
                    say(format_args!("The request has ended without an answer; `--verbose` tells more"));
                }
                return Ok(Some((status, messages)));
            }
        }
    }
}

/// What `--trace` tells of an event.
fn traced(event: &RequestEvent) -> Option<String> {
    Some(match event {
        RequestEvent::AppHookRan { name, on, skipped, elapsed } => {
            let what = if *skipped { "was skipped" } else { "ran" };
            format!("hook {name} {what} ({on}, {:.1} ms)", elapsed.as_secs_f64() * 1e3)
        }
        RequestEvent::HookRan { point, outcome } => {
            format!("hook {} {outcome}", point.spec().modify.unwrap_or_default())
        }
        RequestEvent::ToolCalled { tool_name } => format!("tool {tool_name} called"),
        RequestEvent::ToolReturned { tool_name, is_error } => {
            format!("tool {tool_name} {}", if *is_error { "failed" } else { "returned" })
        }
        RequestEvent::Finished { status, .. } => format!("request {}", json!(status).as_str().unwrap_or_default()),
        _ => return None,
    })
}

/// Answers each conversation of a file; what comes of one is a line on stdout.
pub(super) fn run(arguments: &RunArgs, global: &Global) -> anyhow::Result<Status> {
    for (is_given, flag) in [(arguments.jobs.is_some(), "--jobs"), (arguments.diff, "--diff")] {
        anyhow::ensure!(
            !is_given,
            "`{flag}` is for recorded conversations of an agent: an app answers one conversation after another\n  hint: leave out `{flag}`"
        );
    }
    let mut lines = Lines::new(BufReader::new(open(&arguments.input)?));
    let loaded = load(&arguments.agent, global)?;
    let (runtime, mut worst, mut out) = (runtime()?, Status::Clean, io::stdout().lock());
    let mut left = arguments.limit.unwrap_or(usize::MAX);
    while left > 0 {
        let Some((number, line)) = lines.next().context("The input cannot be read")? else { break };
        left -= 1;
        let read = line.map_err(anyhow::Error::msg).and_then(|line| read(&line));
        let input = match read.with_context(|| format!("{}:{number}", arguments.input.display())) {
            Ok(input) => input,
            Err(error) => {
                say(format_args!("error: {error:#}"));
                worst = Status::Problems;
                continue;
            }
        };
        let events: Vec<_> = runtime.block_on(loaded.app.request(input).collect());
        if let Some(RequestEvent::Finished { status, messages }) = events.last() {
            writeln!(out, "{}", json!({"line": number, "status": status, "messages": messages}))?;
            if *status == RequestStatus::Error {
                worst = Status::Problems;
            }
        }
    }
    if let Some(hooks) = &loaded.hooks {
        runtime.block_on(hooks.shutdown(super::run::GRACE));
    }
    Ok(worst)
}

/// A conversation as a line of the input has it.
fn read(line: &str) -> anyhow::Result<RequestInput> {
    let value: Value = serde_json::from_str(line).context("This is no JSON")?;
    let messages = value.get("messages").cloned().context("The object has no `messages`")?;
    let messages: Vec<Arc<Object>> =
        serde_json::from_value(messages).context("`messages` is to be a list of objects")?;
    let sender = value.get("sender_id").and_then(Value::as_str).unwrap_or("run").to_owned();
    Ok(RequestInput { sender_id: sender, messages, client_tools: Vec::new() })
}
