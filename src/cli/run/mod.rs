//! `tenterhook run`: plays recorded conversations through an agent's hooks and reports what each hook did.

mod diff;
mod lines;
mod player;
mod report;

use std::fs::File;
use std::io::{self, BufReader, Read, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use futures_util::StreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Global, OutputFormat, Status, logging};
use crate::agent::{HookEngine, HookEngineBuilder};
use crate::conversation::Recording;
use crate::python;
use lines::Lines;
use player::Played;
use report::{Report, SkippedLine};

/// How long hooks have to end by themselves once everything has been played.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The agent's folder, the one that holds `hooks.py` or `hooks/`
    agent: PathBuf,
    /// Recorded conversations, one JSON object a line with `messages` in the Chat Completions shape; `-`: stdin
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Play the first N conversations only
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Conversations that are played at once; the report does not depend on it
    #[arg(long, value_name = "N", default_value = "8")]
    jobs: NonZeroUsize,
    /// Show what each hook changed
    #[arg(long)]
    diff: bool,
    /// How the report looks on stdout
    #[arg(long, value_enum, default_value_t)]
    output_format: OutputFormat,
}

pub(super) fn run(arguments: &RunArgs, global: &Global) -> anyhow::Result<Status> {
    let input = open(&arguments.input)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("Nothing to play on")?;
    // Before the interpreter starts: it leaves a handler alone that it finds.
    let interrupts = runtime.block_on(async { signal(SignalKind::interrupt()) }).context("Ctrl-C cannot be heard")?;
    let start = Instant::now();
    python::console(logging::of_python(global));
    let engine = Arc::new(builder(&arguments.agent, global).load()?);
    let start_up = start.elapsed();
    let mut report = runtime.block_on(play_all(arguments, &engine, input, interrupts))?;
    report.time.start_up = start_up;
    report.hooks = engine.statistics();
    report.time.in_handlers =
        Duration::from_secs_f64(report.hooks.iter().map(|hook| hook.handler_ms).sum::<f64>() / 1e3);
    let grace = if report.interrupted { Duration::ZERO } else { GRACE };
    runtime.block_on(engine.shutdown(grace));
    let mut out = io::stdout().lock();
    match arguments.output_format {
        OutputFormat::Table => write!(out, "{}", report.as_text(arguments.diff))?,
        OutputFormat::Json => writeln!(out, "{:#}", report.as_json(arguments.diff))?,
    }
    out.flush()?;
    Ok(report.status())
}

/// The engine's settings that the command line gives.
pub(super) fn builder(agent: &Path, global: &Global) -> HookEngineBuilder {
    let builder = HookEngine::builder(agent);
    match &global.python {
        Some(python) => builder.python(python),
        None => builder,
    }
}

fn open(path: &Path) -> anyhow::Result<Box<dyn Read>> {
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

async fn play_all(
    arguments: &RunArgs,
    engine: &Arc<HookEngine>,
    input: Box<dyn Read>,
    mut interrupts: Signal,
) -> anyhow::Result<Report> {
    let start = Instant::now();
    let bar = ProgressBar::new_spinner()
        .with_style(ProgressStyle::with_template("{spinner} {pos} conversations, {elapsed}")?);
    let mut report = Report::new(&arguments.agent, &arguments.input);
    let mut lines = Lines::new(BufReader::new(input));
    let mut broken = None;
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let recordings = std::iter::from_fn(|| match lines.next() {
        Ok(line) => line,
        Err(error) => {
            broken = Some(error);
            None
        }
    });
    let plays = recordings.take(limit).map(|(number, line)| {
        let recording = line.and_then(|line| Recording::from_line(&line));
        let engine = Arc::clone(engine);
        let diff = arguments.diff;
        async move {
            match recording {
                Ok(recording) => Ok(player::play(&engine, recording, number, diff).await),
                Err(reason) => Err(SkippedLine { line: number, reason }),
            }
        }
    });
    let mut plays = futures_util::stream::iter(plays).buffered(arguments.jobs.get());
    loop {
        let played: Option<Result<Played, SkippedLine>> = tokio::select! {
            played = plays.next() => played,
            _ = interrupts.recv() => {
                report.interrupted = true;
                None
            }
        };
        let Some(played) = played else { break };
        report.add(played);
        bar.inc(1);
    }
    drop(plays);
    if let Some(error) = broken {
        return Err(error).with_context(|| format!("Input `{}` cannot be read", arguments.input.display()));
    }
    if !report.interrupted {
        engine.drained().await;
    }
    bar.finish_and_clear();
    report.time.total = start.elapsed();
    Ok(report)
}
