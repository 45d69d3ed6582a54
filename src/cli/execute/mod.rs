//! `tenterhook execute`: a small project of instructions, tools and hooks, in the terminal.

mod tree;

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::run::{GRACE, builder};
use super::{Global, OutputFormat, Status, logging, say};
use crate::agent::LoadedExecution;
use crate::conversation::message;
use crate::execute::{Controller, Execution, ExecutionEvent};

/// Arguments of `tenterhook execute`.
#[derive(Debug, Args)]
pub(super) struct ExecuteArgs {
    /// The project's folder: `execution.yml`, and beside it `hooks.py`, `tools.py`
    folder: PathBuf,
    /// What the user says; may be given more than once
    #[arg(short, long, value_name = "TEXT")]
    message: Vec<String>,
    /// How what happens looks on stdout
    #[arg(long, value_enum, default_value_t)]
    output_format: OutputFormat,
}

/// Runs the execution of a folder.
pub(super) fn run(arguments: &ExecuteArgs, global: &Global) -> anyhow::Result<Status> {
    crate::python::console(logging::of_python(global));
    let controller = Controller::new();
    let said = arguments.message.iter().map(|text| message("user", text)).collect();
    let loaded = Execution::loader(&arguments.folder)
        .hooks(builder(&arguments.folder, global))
        .messages(said)
        .signal(&controller)
        .load()?;
    for warning in &loaded.warnings {
        say(format_args!("{warning}"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let status = runtime.block_on(told(&loaded, &controller, arguments.output_format))?;
    if let Some(hooks) = &loaded.hooks {
        runtime.block_on(hooks.shutdown(GRACE));
    }
    Ok(status)
}

async fn told(loaded: &LoadedExecution, controller: &Controller, format: OutputFormat) -> anyhow::Result<Status> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let (mut events, mut out, mut status) = (loaded.execution.run(), io::stdout(), Status::Problems);
    let mut interrupted = false;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = interrupts.recv() => {
                if std::mem::replace(&mut interrupted, true) {
                    break;
                }
                // What runs hears of it, and the hooks for the end are still called; once more does not wait for them.
                controller.abort("interrupted");
                continue;
            }
        };
        let Some(event) = event else { break };
        if format == OutputFormat::Json {
            writeln!(out, "{}", json!(event))?;
        } else {
            for line in tree::lines(&event) {
                writeln!(out, "{line}")?;
            }
            if let ExecutionEvent::Message { text } = &event {
                writeln!(out, "{text}")?;
            }
            if let ExecutionEvent::Finished { result } = &event
                && result.is_success()
                && !result.output.is_null()
            {
                writeln!(out, "{}", serde_json::to_string_pretty(&result.output)?)?;
            }
        }
        if let ExecutionEvent::Finished { result } = &event
            && result.is_success()
        {
            status = Status::Clean;
        }
    }
    Ok(if interrupted { Status::Interrupted } else { status })
}
