//! Logs of Rust and of Python, both to stderr.

use std::ffi::OsString;
use std::io::IsTerminal as _;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use super::{Global, LogFormat};
use crate::python::ConsoleLogs;
use crate::telemetry::{EXPORT, export};

/// Starts Rust's logs, and the export of spans where the environment asks for it. What is returned is to be kept until the command ends. A
/// second start in one process changes nothing.
pub(super) fn start(global: &Global, worker: bool) -> Option<export::Guard> {
    // What a worker's calls come to, and what it loads, the engine on the other side tells.
    let level = if worker { LevelFilter::ERROR } else { LevelFilter::from_level(level(global)) };
    // The protocol's library logs whole messages, and with them what is never to stand in a log.
    let level = Targets::new().with_default(level).with_target("rmcp", LevelFilter::OFF);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match global.log_format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // A worker has no turns. It inherits the environment all the same.
    let exported = if worker { Ok(None) } else { export::layer() };
    let (spans, guard, wrong) = match exported {
        Ok(Some((spans, guard))) => (Some(spans), Some(guard), None),
        Ok(None) => (None, None, None),
        Err(wrong) => (None, None, Some(wrong)),
    };
    // Each has a filter of its own: spans go out though the log shows only what is worse.
    let started = tracing_subscriber::registry().with(lines.with_filter(level)).with(spans).try_init();
    if let Some(wrong) = wrong {
        // Nobody could hear it before.
        tracing::warn!(target: EXPORT, "Spans are not exported: {wrong}");
    }
    // Only a second command in one process finds logs started already; its spans go where those of the first do.
    guard.filter(|_| started.is_ok())
}

/// How the logs of Python are to look.
pub(super) fn of_python(global: &Global) -> ConsoleLogs {
    let level = match level(global) {
        Level::ERROR | Level::WARN => "WARNING",
        Level::INFO => "INFO",
        Level::DEBUG | Level::TRACE => "DEBUG",
    };
    ConsoleLogs { level, json: global.log_format == LogFormat::Json }
}

/// The flags with which a worker logs as this command does.
pub(super) fn flags(global: &Global) -> Vec<OsString> {
    let format = (global.log_format == LogFormat::Json).then_some("--log-format=json");
    let verbose = std::iter::repeat_n("--verbose", global.verbose.into());
    format.into_iter().chain(verbose).map(Into::into).collect()
}

fn level(global: &Global) -> Level {
    match global.verbose {
        0 => Level::WARN,
        1 => Level::INFO,
        _ => Level::DEBUG,
    }
}
