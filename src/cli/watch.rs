//! `--watch`: the same work again whenever a file changes.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use notify::{Event, EventKind, RecursiveMode, Watcher as _};

use super::{Status, say};

/// How long nothing may change before the work is done again: an editor that saves touches a file several times.
const QUIET: Duration = Duration::from_millis(50);

/// The folders of an agent that hold modules; whatever else is there, a virtual environment for instance, is not watched.
const FOLDERS: [&str; 3] = ["hooks", "lib", "tools"];

/// Works, then again after each change at `paths`, until the process is interrupted. What cannot be done now is said, and tried
/// again after the next change.
pub(super) fn repeat(paths: &[PathBuf], work: impl Fn() -> anyhow::Result<Status>) -> anyhow::Result<Status> {
    loop {
        // Watched before the work: what changes meanwhile is not lost. Made anew each time: folders come and go.
        let (tell, told) = mpsc::channel();
        let named: Vec<_> = paths.iter().filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| counts(&event, &named)) {
                let _ = tell.send(());
            }
        })?;
        for (folder, mode) in watched(paths) {
            watcher.watch(&folder, mode)?;
        }
        if io::stdout().is_terminal() {
            write!(io::stdout(), "\x1b[2J\x1b[H")?;
        }
        if let Err(error) = work() {
            say(format_args!("error: {error:#}"));
        }
        say(format_args!("Watching for changes, Ctrl-C ends"));
        told.recv()?;
        while told.recv_timeout(QUIET) != Err(RecvTimeoutError::Timeout) {}
    }
}

/// The folders to watch: of an agent itself and those that hold modules, of a file the one that holds it.
fn watched(paths: &[PathBuf]) -> Vec<(PathBuf, RecursiveMode)> {
    let mut watched = Vec::new();
    for path in paths {
        if path.is_dir() {
            watched.push((path.clone(), RecursiveMode::NonRecursive));
            let inner = FOLDERS.map(|folder| path.join(folder)).into_iter().filter(|folder| folder.is_dir());
            watched.extend(inner.map(|folder| (folder, RecursiveMode::Recursive)));
        } else {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            watched.push((folder.to_owned(), RecursiveMode::NonRecursive));
        }
    }
    watched
}

/// Whether an event concerns a module, a settings file, a folder that may hold some, or a file that was `named`.
fn counts(event: &Event, named: &[OsString]) -> bool {
    let of_kind = |path: &PathBuf| match path.extension() {
        Some(kind) => {
            kind == "py" || kind == "toml" || path.file_name().is_some_and(|name| named.iter().any(|own| own == name))
        }
        None => !path.ends_with("__pycache__"),
    };
    !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(of_kind)
}
