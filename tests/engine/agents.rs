//! Agents for tests: folders with hook modules, loaded with the environment of the checkout.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tenterhook::{EngineHealth, Error, HookEngine, HookEngineBuilder, ModifiablePayload, Outcome, StaticCheck};

/// The virtual environment that the tests are run in: one that `make` creates.
pub(crate) fn environment() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join(std::env::var_os("VIRTUAL_ENV").unwrap_or_else(|| ".venv".into()))
}

/// A folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Settings for a load of `folder`.
pub(crate) fn builder(folder: &TempDir) -> HookEngineBuilder {
    HookEngine::builder(folder.path()).python(environment())
}

/// An engine and the folder of its agent, which must outlive it.
pub(crate) struct Agent {
    pub(crate) engine: HookEngine,
    pub(crate) folder: TempDir,
}

/// Loads an agent of these files; what `rasa.mantle.hooks` offers is imported in `hooks.py` when that begins otherwise.
pub(crate) fn agent_of(files: &[(&str, &str)]) -> Agent {
    let folder = folder(files);
    // What goes wrong at run time is tested here: the static check would refuse much of it.
    let engine = builder(&folder).static_check(StaticCheck::Off).load().unwrap_or_else(|error| panic!("{error}"));
    Agent { engine, folder }
}

/// Loads an agent whose `hooks.py` is this, with all names of `rasa.mantle.hooks` imported.
pub(crate) fn agent(hooks: &str) -> Agent {
    agent_of(&[("hooks.py", &format!("from rasa.mantle.hooks import *\n{hooks}"))])
}

/// What a load of these files is refused with by the import, the agent's folder written as `AGENT`.
pub(crate) fn refusal(files: &[(&str, &str)]) -> String {
    let folder = folder(files);
    let error = builder(&folder).static_check(StaticCheck::Off).load().expect_err("the load is refused");
    error.to_string().replace(folder.path().to_str().unwrap(), "AGENT")
}

/// The problems that a load of these files is refused with by the import, one line each without the hints.
pub(crate) fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let folder = folder(files);
    match builder(&folder).static_check(StaticCheck::Off).load() {
        Err(Error::Invalid { problems, .. }) => problems
            .iter()
            .map(|problem| {
                let text = problem.to_string().replace(folder.path().to_str().unwrap(), "AGENT");
                text.lines().next().unwrap().to_owned()
            })
            .collect(),
        other => panic!("the modules are refused, not {other:?}"),
    }
}

/// The payload that proceeds, and whether it was changed; anything else is a failure of the test.
pub(crate) fn proceeded<P: ModifiablePayload>(outcome: Outcome<P>) -> (P, bool) {
    match outcome {
        Outcome::Proceed { payload, changed, failure: None, discarded_signal: None } => (payload, changed),
        other => panic!("expected to proceed without failure or signal, got {other:?}"),
    }
}

/// Why a handler failed, in a sentence; anything else is a failure of the test.
pub(crate) fn failure<P: ModifiablePayload>(outcome: Outcome<P>) -> String {
    match outcome {
        Outcome::Failed(failure) | Outcome::Proceed { failure: Some(failure), changed: false, .. } => {
            failure.cause.to_string()
        }
        other => panic!("expected a failure, got {other:?}"),
    }
}

/// Lines as they stand in the body of a function.
pub(crate) fn indented(body: &str) -> String {
    body.lines().map(|line| format!("    {line}\n")).collect::<Vec<_>>().concat()
}

/// Waits until the engine's health is as `hoped`.
pub(crate) async fn until(agent: &Agent, hoped: impl Fn(&EngineHealth) -> bool) -> EngineHealth {
    let start = Instant::now();
    loop {
        let health = agent.engine.health();
        if hoped(&health) {
            return health;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{health:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
