//! Logs of Rust and of Python, both to stderr.

use std::ffi::OsString;
use std::io::IsTerminal as _;

use tracing::Level;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

use super::{Global, LogFormat};
use crate::python::ConsoleLogs;

/// Starts Rust's logs. A second start in one process changes nothing.
pub(super) fn start(global: &Global, worker: bool) {
    // What a worker's calls come to, and what it loads, the engine on the other side tells.
    let level = if worker { LevelFilter::ERROR } else { LevelFilter::from_level(level(global)) };
    let builder = fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    // Only a second command in one process finds logs started already.
    let _ = match global.log_format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
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
