//! Logs of Rust and of Python, both to stderr.

use std::io::IsTerminal as _;

use tracing::Level;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

use super::{Global, LogFormat};
use crate::python::ConsoleLogs;

/// Starts Rust's logs. A second start in one process changes nothing.
pub(super) fn start(global: &Global) {
    let level = LevelFilter::from_level(level(global));
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

fn level(global: &Global) -> Level {
    match global.verbose {
        0 => Level::WARN,
        1 => Level::INFO,
        _ => Level::DEBUG,
    }
}
