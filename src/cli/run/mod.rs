//! `tenterhook run`: plays recorded conversations through an agent's hooks and reports what each hook did.

mod answer;
mod diff;
mod hooks;
mod lines;
mod output;
mod player;
mod report;
mod stored;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use futures_util::{StreamExt as _, stream};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use super::{Global, OutputFormat, Status, logging};
use crate::agent::{HookEngine, HookEngineBuilder};
use crate::conversation::Recording;
use crate::python;
pub(super) use lines::Lines;
use player::Played;
use report::{Report, SkippedLine};

/// How long the run waits at its end while no observer ends: one that blocks its thread would keep it for ever.
const STALL: Duration = Duration::from_secs(10);

/// How many conversations are played at once unless it is said.
const JOBS: usize = 8;

/// How long hooks have to end by themselves once everything has been played.
pub(super) const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The agent's folder, the one that holds `hooks.py` or `hooks/`; or the manifest of a Quick App, which then answers each conversation
    pub(super) agent: PathBuf,
    /// Recorded conversations, one JSON object a line with `messages` in the Chat Completions shape; `-`: stdin
    #[arg(long, value_name = "FILE")]
    pub(super) input: PathBuf,
    /// Play the first N conversations only
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<usize>,
    /// Conversations that are played at once; the report does not depend on it [default: 8]
    #[arg(long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Show what each hook changed
    #[arg(long)]
    pub(super) diff: bool,
    /// How the report looks on stdout
    #[arg(long, value_enum, default_value_t)]
    output_format: OutputFormat,
}

pub(super) fn run(arguments: &RunArgs, global: &Global) -> anyhow::Result<Status> {
    let input = open(&arguments.input)?;
    let mut out = output::reserve_stdout().context("The report has nowhere to go")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("Nothing to play on")?;
    // Before the interpreter starts: it leaves a handler alone that it finds.
    let mut interrupts =
        runtime.block_on(async { signal(SignalKind::interrupt()) }).context("Ctrl-C cannot be heard")?;
    let start = Instant::now();
    python::console(logging::of_python(global));
    let Some(engine) = runtime.block_on(load(builder(&arguments.agent, global), &mut interrupts))? else {
        return Ok(Status::Interrupted);
    };
    let start_up = start.elapsed();
    let mut report = runtime.block_on(play_all(arguments, &engine, input, interrupts))?;
    report.time.start_up = start_up;
    report.hooks = engine.statistics();
    report.time.in_handlers = engine.time_in_hooks();
    let grace = if report.interrupted || report.stalled { Duration::ZERO } else { GRACE };
    runtime.block_on(engine.shutdown(grace));
    match arguments.output_format {
        OutputFormat::Table => write!(out, "{}", report.as_text(arguments.diff))?,
        OutputFormat::Json => writeln!(out, "{:#}", report.as_json(arguments.diff))?,
    }
    out.flush()?;
    Ok(report.status())
}

/// Loads on a thread of its own, so that Ctrl-C is heard meanwhile; `None`: it was.
async fn load(builder: HookEngineBuilder, interrupts: &mut Signal) -> anyhow::Result<Option<Arc<HookEngine>>> {
    let (tell, told) = oneshot::channel();
    thread::spawn(move || drop(tell.send(builder.load())));
    tokio::select! {
        loaded = told => Ok(Some(Arc::new(loaded.context("The load ended without an answer")??))),
        _ = interrupts.recv() => Ok(None),
    }
}

/// The engine's settings that the command line gives.
pub(super) fn builder(agent: &Path, global: &Global) -> HookEngineBuilder {
    let mut builder = HookEngine::builder(agent).worker_flags(logging::flags(global));
    if let Some(python) = &global.python {
        builder = builder.python(python);
    }
    match std::env::current_exe() {
        // The binary is its own worker; the wheel's command is a Python process, which knows another way.
        Ok(program) if python::package_command().is_none() => builder.worker_command(program, [""; 0]),
        _ => builder,
    }
}

pub(super) fn open(path: &Path) -> anyhow::Result<Box<dyn Read + Send>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).with_context(|| format!("Input `{}` cannot be read", path.display()))?;
    anyhow::ensure!(
        !file.metadata()?.is_dir(),
        "Input `{}` is a folder\n  hint: give a file, one conversation a line",
        path.display()
    );
    Ok(Box::new(file))
}

/// A line of the input, read: its number, and the conversation or why it is none.
type Line = (u64, Result<Recording, String>);

/// Reads the input on a thread of its own, a few lines ahead: a pipe on which nothing comes keeps nothing else waiting.
fn read_ahead(input: Box<dyn Read + Send>, limit: usize, ahead: usize) -> mpsc::Receiver<io::Result<Line>> {
    let (tell, told) = mpsc::channel(ahead);
    thread::spawn(move || {
        let mut lines = Lines::new(BufReader::new(input));
        let mut good = 0;
        while good < limit {
            let read = match lines.next() {
                Ok(None) => break,
                Ok(Some((number, line))) => Ok((number, line.and_then(|line| Recording::from_line(&line)))),
                Err(error) => Err(error),
            };
            good += usize::from(matches!(&read, Ok((_, Ok(_)))));
            let broken = read.is_err();
            if tell.blocking_send(read).is_err() || broken {
                break;
            }
        }
    });
    told
}

async fn play_all(
    arguments: &RunArgs,
    engine: &Arc<HookEngine>,
    input: Box<dyn Read + Send>,
    mut interrupts: Signal,
) -> anyhow::Result<Report> {
    let start = Instant::now();
    let bar = ProgressBar::new_spinner()
        .with_style(ProgressStyle::with_template("{spinner} {pos} conversations, {elapsed}")?);
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut report = Report::new(&arguments.agent, &arguments.input);
    let jobs = arguments.jobs.map_or(JOBS, NonZeroUsize::get);
    let lines = read_ahead(input, arguments.limit.unwrap_or(usize::MAX), jobs);
    let mut senders = HashSet::new();
    let plays = stream::unfold(lines, |mut lines| async { lines.recv().await.map(|line| (line, lines)) }).map(|line| {
        let line = line.map(|(number, recording)| (number, recording, Arc::clone(engine)));
        let line = line.map(|(number, recording, engine)| {
            let sender = recording.as_ref().ok().map(|recording| sender_of(recording, number, &mut senders));
            (number, recording, engine, sender.unwrap_or_default())
        });
        async move {
            let (number, recording, engine, sender) = line?;
            Ok(match recording {
                Ok(recording) => Ok(player::play(&engine, recording, sender, number, arguments.diff).await),
                Err(reason) => Err(SkippedLine { line: number, reason }),
            })
        }
    });
    let mut plays = pin!(plays.buffered(jobs));
    loop {
        let played: Option<io::Result<Result<Played, SkippedLine>>> = tokio::select! {
            played = plays.next() => played,
            _ = interrupts.recv() => {
                report.interrupted = true;
                None
            }
        };
        let Some(played) = played else { break };
        report.add(played.with_context(|| format!("Input `{}` cannot be read", arguments.input.display()))?);
        bar.inc(1);
    }
    while !report.interrupted && !report.stalled {
        let open = engine.open_calls();
        tokio::select! {
            drained = engine.drained_within(STALL) => {
                if drained {
                    break;
                }
                // Something may still end; nothing has for a while.
                report.stalled = engine.open_calls() >= open;
            }
            _ = interrupts.recv() => report.interrupted = true,
        }
    }
    bar.finish_and_clear();
    report.time.total = start.elapsed();
    Ok(report)
}

/// The conversation's id for the hooks: each has its own, also where a recording has none or one that came before.
fn sender_of(recording: &Recording, line: u64, seen: &mut HashSet<String>) -> String {
    let mut sender = recording.id.clone().unwrap_or_else(|| format!("line-{line}"));
    if !seen.insert(sender.clone()) {
        sender = format!("{sender}-line-{line}");
        seen.insert(sender.clone());
    }
    sender
}
