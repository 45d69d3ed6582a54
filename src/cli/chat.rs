//! `chat`: talk to an agent in the terminal, or give it one message in a script.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::thread;

use clap::Args;
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::hunks::hunks;
use super::run::builder;
use super::{Global, OutputFormat, Status, logging, say};
use crate::agent::LoadedAgent;
use crate::hooks::TurnStatus;
use crate::turn::{LifecycleEvent, TurnEngine, TurnEvent, TurnInput};

/// What `chat` is given.
#[derive(Debug, Args)]
pub(super) struct ChatArgs {
    /// The agent's folder, or the manifest of a Quick App
    pub(super) agent: PathBuf,
    /// Say one thing, print the answer and end; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(super) message: Vec<String>,
    /// Show each hook, model call and tool call of a turn on stderr, with times and with what hooks changed; between turns also which
    /// conversations are idle or have expired, which is then told to no other program that shares the store
    #[arg(long)]
    pub(super) trace: bool,
    /// The conversation: what was said in it before is remembered, where there is a store
    #[arg(long, value_name = "ID", default_value = "terminal")]
    pub(super) sender: String,
    /// Keep conversations in FILE
    #[arg(long, value_name = "FILE")]
    pub(super) store: Option<PathBuf>,
    /// How answers look on stdout
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(super) output_format: OutputFormat,
}

pub(super) fn run(arguments: &ChatArgs, global: &Global) -> anyhow::Result<Status> {
    crate::python::console(logging::of_python(global));
    let mut loader = TurnEngine::loader(&arguments.agent).hooks(builder(&arguments.agent, global));
    if let Some(file) = &arguments.store {
        loader = loader.store(file);
    }
    let agent = loader.load()?;
    for warning in &agent.warnings {
        say(format_args!("{warning}"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let status = runtime.block_on(talk(arguments, &agent))?;
    if let Some(hooks) = &agent.hooks {
        runtime.block_on(hooks.shutdown(crate::cli::run::GRACE));
    }
    Ok(status)
}

async fn talk(arguments: &ChatArgs, agent: &LoadedAgent) -> anyhow::Result<Status> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut worst = Status::Clean;
    if !arguments.message.is_empty() {
        for text in &arguments.message {
            match turn(arguments, agent, text, &mut interrupts).await? {
                TurnStatus::Completed => {}
                TurnStatus::Cancelled => return Ok(Status::Interrupted),
                TurnStatus::Error => worst = Status::Problems,
            }
        }
        return Ok(worst);
    }
    let at_terminal = io::stdin().is_terminal();
    if at_terminal {
        say(format_args!("Talk to {}. `/quit` or Ctrl-D ends; Ctrl-C cancels a turn.", arguments.agent.display()));
    }
    let mut lines = lines();
    // Not otherwise: what is told here is told nowhere else.
    let mut silence = arguments.trace.then(|| agent.engine.lifecycle());
    loop {
        if at_terminal {
            print!("you> ");
            io::stdout().flush()?;
        }
        let line = tokio::select! {
            line = lines.recv() => line,
            // At the prompt there is no turn to cancel.
            _ = interrupts.recv() => { println!(); continue }
            Some(event) = async { silence.as_mut()?.next().await } => {
                if at_terminal {
                    println!();
                }
                show_silence(arguments, &event)?;
                continue;
            }
        };
        match line.as_deref().map(str::trim) {
            None | Some("/quit") => return Ok(worst),
            Some("") => {}
            Some(text) => {
                if turn(arguments, agent, text, &mut interrupts).await? == TurnStatus::Error && !at_terminal {
                    worst = Status::Problems;
                }
            }
        }
    }
}

/// Lines of stdin, read on a thread of their own: a read cannot be cancelled.
pub(super) fn lines() -> mpsc::UnboundedReceiver<String> {
    let (send, lines) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Runs one turn and shows it; a Ctrl-C cancels it.
async fn turn(
    arguments: &ChatArgs,
    agent: &LoadedAgent,
    text: &str,
    interrupts: &mut Signal,
) -> anyhow::Result<TurnStatus> {
    let mut input = TurnInput::new(&arguments.sender, text);
    input.channel.name = Some("terminal".to_owned());
    input.shows_changes = arguments.trace;
    let mut events = agent.engine.turn(input);
    let mut shown =
        Shown { as_json: arguments.output_format == OutputFormat::Json, trace: arguments.trace, open_line: false };
    let mut status = TurnStatus::Cancelled;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = interrupts.recv() => {
                agent.engine.interrupt(&arguments.sender);
                continue;
            }
        };
        let Some(event) = event else { return Ok(status) };
        if let TurnEvent::Finished { status: ended } = &event {
            status = *ended;
        }
        shown.show(&event)?;
    }
}

/// Shows what has become of a conversation in which nobody says anything.
fn show_silence(arguments: &ChatArgs, event: &LifecycleEvent) -> anyhow::Result<()> {
    if arguments.output_format == OutputFormat::Json {
        writeln!(io::stdout(), "{}", serde_json::to_string(event)?)?;
        return Ok(());
    }
    match event {
        LifecycleEvent::Nudged { sender_id, .. } => say(format_args!("  nudge: the conversation {sender_id} is idle")),
        LifecycleEvent::Expired { sender_id, .. } => {
            say(format_args!("  expire: the conversation {sender_id} is over"));
        }
    }
    Ok(())
}

/// What of a turn is on the screen.
struct Shown {
    as_json: bool,
    trace: bool,
    /// Tokens have been written whose line is not over.
    open_line: bool,
}

impl Shown {
    fn show(&mut self, event: &TurnEvent) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.as_json {
            serde_json::to_writer(&mut out, event)?;
            writeln!(out)?;
            return Ok(());
        }
        match event {
            TurnEvent::Token { text } => {
                write!(out, "{text}")?;
                out.flush()?;
                self.open_line = true;
            }
            TurnEvent::Message { text, streamed, buttons, .. } => {
                self.end_line(&mut out)?;
                if !*streamed {
                    writeln!(out, "{text}")?;
                }
                for button in buttons {
                    let shown =
                        |key: &str| button.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
                    writeln!(out, "  [{}] {}", shown("title"), shown("payload"))?;
                }
            }
            other => {
                self.end_line(&mut out)?;
                drop(out);
                if let Some(line) = traced(other).filter(|_| self.trace) {
                    say(format_args!("  {line}"));
                }
            }
        }
        Ok(())
    }

    fn end_line(&mut self, out: &mut impl io::Write) -> io::Result<()> {
        if std::mem::take(&mut self.open_line) { writeln!(out) } else { Ok(()) }
    }
}

/// What `--trace` tells of an event.
fn traced(event: &TurnEvent) -> Option<String> {
    let millis = |time: &std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    Some(match event {
        TurnEvent::Started { turn_id } => format!("turn {turn_id}"),
        TurnEvent::ModelAnswered { iteration, latency, usage, calls } => {
            let time = latency.as_ref().map_or_else(String::new, |time| format!(" in {}", millis(time)));
            let tokens = usage.map_or_else(String::new, |usage| format!(", {} + {} tokens", usage.input, usage.output));
            let calls = if *calls == 0 { String::new() } else { format!(", {calls} calls") };
            format!("model answered{time} (iteration {iteration}{tokens}{calls})")
        }
        TurnEvent::HookRan { point, outcome, elapsed, changed } => {
            let mut lines =
                format!("hook {} {outcome} after {}", point.spec().modify.unwrap_or_default(), millis(elapsed));
            for (name, old) in changed.iter().flat_map(|changed| &changed.before) {
                let new = changed.as_ref().and_then(|changed| changed.after.get(name)).unwrap_or(&Value::Null);
                for line in hunks(name, old, new).concat().lines() {
                    lines.push_str("\n  ");
                    lines.push_str(line);
                }
            }
            lines
        }
        TurnEvent::Moved { to } => {
            let Ok(Value::Object(mut fields)) = serde_json::to_value(to) else { return None };
            let kind = fields
                .remove("event")
                .and_then(|kind| kind.as_str().map(|kind| kind.replace('_', " ")))
                .unwrap_or_default();
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name} {value}")).collect();
            format!("{kind}: {}", fields.join(", "))
        }
        TurnEvent::Retried { iteration } => format!("a hook discarded the answer of iteration {iteration}"),
        TurnEvent::ToolCalled { tool_name, .. } => format!("tool {tool_name} called"),
        TurnEvent::ToolReturned { tool_name, is_error, elapsed, .. } => {
            format!("tool {tool_name} {} after {}", if *is_error { "failed" } else { "returned" }, millis(elapsed))
        }
        TurnEvent::Finished { status } => format!("turn {}", status.name()),
        _ => return None,
    })
}
