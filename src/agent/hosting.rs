//! An engine for another process: loads an agent as it is told, and runs its hooks until the other side is gone.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::builder::{Isolation, StaticCheck};
use super::engine::{HookEngine, LoadedHooks, Run};
use super::error::Error;
use crate::python;
use crate::worker::{self, FoundHandler, FoundProblem, LoadSettings, Order, Pipe, Reader, Report};

/// How long what runs may take to end when it is told to.
const ENDING: Duration = Duration::from_millis(500);

/// Serves an engine that speaks to this process through `orders` and `reports`.
///
/// # Errors
///
/// The other side says what is not understood.
pub(crate) async fn host(
    root: &Path,
    python: Option<PathBuf>,
    orders: impl Read,
    reports: &Arc<Pipe>,
) -> io::Result<()> {
    let mut orders = Reader::new(orders);
    let settings = match orders.head()? {
        Some(Order::Load(settings)) => settings,
        Some(_) => return Err(io::Error::other("the first order is not to load")),
        None => return Ok(()),
    };
    let (tell, lost) = mpsc::channel();
    let engine = match load(root, python, &settings, tell) {
        Ok(engine) => engine,
        Err(error) => {
            let problems = match &error {
                Error::Invalid { problems, .. } => problems.iter().map(FoundProblem::from).collect(),
                _ => Vec::new(),
            };
            say(reports, &Report::Refused { message: error.to_string(), problems });
            return Ok(());
        }
    };
    let loaded = engine.loaded();
    let LoadedHooks { hooks: Run::Here(dispatcher), warnings, .. } = &*loaded else {
        unreachable!("a worker has no worker");
    };
    let stacks = python::watch_stacks().map_err(io::Error::other)?;
    say(
        reports,
        &Report::Loaded {
            handlers: dispatcher.handlers().map(|handler| FoundHandler::from(&*handler.id)).collect(),
            problems: warnings.iter().map(FoundProblem::from).collect(),
        },
    );
    let (watched, telling) = (Arc::clone(&loaded), Arc::clone(reports));
    thread::Builder::new().name("tenterhook-lost".into()).spawn(move || {
        if let Run::Here(dispatcher) = &watched.hooks {
            worker::tell_lost(dispatcher, &lost, stacks, &telling);
        }
    })?;
    let served = worker::host(dispatcher, &mut orders, reports);
    engine.close();
    dispatcher.ended_within(ENDING).await;
    reports.flush(ENDING);
    served
}

fn load(
    root: &Path,
    python: Option<PathBuf>,
    settings: &LoadSettings,
    lost: mpsc::Sender<Vec<Arc<crate::hooks::HandlerId>>>,
) -> Result<HookEngine, Error> {
    let mut builder = HookEngine::builder(root)
        // The engine on the other side has checked.
        .static_check(StaticCheck::Off)
        .isolation(Isolation::Thread)
        .spin(false)
        .observe_timeout(settings.observe_timeout)
        .modify_timeout(settings.modify_timeout)
        .load_timeout(settings.load_timeout)
        .patience(settings.answer)
        .takeover_share(settings.share)
        .lost(Arc::new(move |culprits: &[Arc<crate::hooks::HandlerId>]| drop(lost.send(culprits.to_vec()))));
    if let Some(python) = python {
        builder = builder.python(python);
    }
    builder.load()
}

/// Tells the engine something that it waits for.
fn say(reports: &Pipe, report: &Report) {
    reports.tell(report);
    reports.flush(ENDING);
}
