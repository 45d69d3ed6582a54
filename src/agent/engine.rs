//! The engine: an agent's hooks, loaded and ready to be called.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use super::discovery;
use super::error::Error;
use super::settings::Settings;
use crate::check::Admitted;
use crate::diagnostic::{Diagnostic, Severity};
use crate::dispatch::{Call, Dispatcher, EngineHealth, HandlerStatistics, Patience, QueueLimits};
use crate::hooks::{
    AnyPayload, HandlerId, MODIFY_TIMEOUT, ModifiablePayload, OBSERVE_TIMEOUT, Outcome, Payload, Point,
};
use crate::python::{self, LoadRequest, PyHandler, PythonChoice};

/// How long the import of an agent's modules may take unless the builder says otherwise.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a lane that has been told to stop may take to cancel its tasks and to flush what was printed.
const LANE_END: Duration = Duration::from_secs(1);

/// What [`HookEngine::registered`] tells of one handler.
pub type RegisteredHook = HandlerId;

/// An agent's hooks, loaded and ready to be called. Shared behind an `Arc`; dropping it cancels what runs.
///
/// All methods may be called from any thread and under any async runtime, or none: the engine's clock is a thread of its own.
pub struct HookEngine {
    root: PathBuf,
    settings: HookEngineBuilder,
    loaded: RwLock<Arc<LoadedHooks>>,
    /// What was loaded before a reload and may still run.
    earlier: Mutex<Vec<Arc<LoadedHooks>>>,
}

/// What one load gave.
struct LoadedHooks {
    dispatcher: Dispatcher<PyHandler>,
    warnings: Vec<Diagnostic>,
}

impl HookEngine {
    /// Loads the hooks of the agent in `folder` with the default settings. Blocks while the modules are imported.
    ///
    /// # Errors
    ///
    /// The folder has no hooks, they are not well formed, or no fitting interpreter is there.
    pub fn load(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder(folder).load()
    }

    /// Settings for a load.
    pub fn builder(folder: impl AsRef<Path>) -> HookEngineBuilder {
        HookEngineBuilder {
            folder: folder.as_ref().to_owned(),
            python: None,
            observe_timeout: OBSERVE_TIMEOUT,
            modify_timeout: MODIFY_TIMEOUT,
            load_timeout: LOAD_TIMEOUT,
            limits: QueueLimits::default(),
            patience: Patience::default(),
            static_check: StaticCheck::default(),
        }
    }

    /// Calls the modify hook of the payload's point and waits for the outcome, at most until the hook's deadline.
    ///
    /// Without a hook the payload proceeds, and Python is not touched. Dropping the future cancels the handler.
    pub async fn modify<P: ModifiablePayload>(&self, payload: P) -> Outcome<P> {
        let loaded = self.loaded();
        let outcome = loaded.dispatcher.modified(payload.into_any()).await;
        outcome.map(|payload| P::from_any(payload).unwrap_or_else(|| unreachable!("a payload keeps its point")))
    }

    /// Hands the payload to the observe hooks of its point. Never waits; when too many observations wait, the oldest is
    /// dropped and counted.
    ///
    /// Observers see the payload as it enters the point: call this before [`HookEngine::modify`].
    pub fn observe<P: Payload>(&self, payload: &P) {
        self.loaded().dispatcher.observe(P::POINT, || payload.clone().into_any());
    }

    /// As [`HookEngine::observe`], but waits for room in the queue, so that nothing is dropped. For players of recorded
    /// traffic; a live turn must not wait.
    pub async fn observe_with_room<P: Payload>(&self, payload: &P) {
        self.loaded().dispatcher.observe_with_room(P::POINT, || payload.clone().into_any()).await;
    }

    /// The hooks at a point, observers first, in the order of registration.
    pub fn registered(&self, point: Point) -> Vec<Arc<RegisteredHook>> {
        self.loaded().dispatcher.at_point(point).map(|handler| Arc::clone(&handler.id)).collect()
    }

    /// What has come of each hook's calls since the load, in the order of the catalogue.
    pub fn statistics(&self) -> Vec<HandlerStatistics> {
        self.loaded().dispatcher.statistics()
    }

    /// How long at least one hook has been running since the load: the rest of the time is not the hooks' own.
    pub fn time_in_hooks(&self) -> Duration {
        self.loaded().dispatcher.occupied()
    }

    /// What is unwise in the modules, though it does not keep them from running.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.loaded().warnings.clone()
    }

    /// Loads the agent again, with the settings of the first load: checks and imports beside what runs, then swaps. Calls in flight
    /// end on the modules that they were made on; statistics, health and quarantine begin anew. Blocks while the modules are imported.
    ///
    /// # Errors
    ///
    /// As those of a load; what was loaded then goes on.
    pub fn reload(&self) -> Result<(), Error> {
        let fresh = Arc::new(self.settings.load_hooks(&self.root)?);
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *loaded, fresh);
        drop(loaded);
        before.dispatcher.queue().finish_open();
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        earlier.retain(|hooks| hooks.dispatcher.queue().open() > 0);
        earlier.push(before);
        Ok(())
    }

    /// The agent's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Ends when no call and no observation is waiting or running.
    pub async fn drained(&self) {
        self.loaded().dispatcher.drained().await;
    }

    /// As [`HookEngine::drained`], but at most `time`; the answer is whether all ended.
    pub async fn drained_within(&self, time: Duration) -> bool {
        self.loaded().dispatcher.drained_within(time).await
    }

    /// How the engine's threads are, and what has become of those that hooks have blocked.
    pub fn health(&self) -> EngineHealth {
        self.loaded().dispatcher.health()
    }

    /// How many calls and observations are waiting or running.
    pub fn open_calls(&self) -> usize {
        self.loaded().dispatcher.queue().open()
    }

    /// Refuses new calls, waits at most `grace` for those that wait and run, and cancels the rest. The answer is whether all
    /// ended by themselves. A call that is refused or cancelled ends as a failure, by its point's policy.
    pub async fn shutdown(&self, grace: Duration) -> bool {
        let loaded = self.loaded();
        loaded.dispatcher.queue().close();
        let drained = loaded.dispatcher.drained_within(grace).await;
        self.close();
        loaded.dispatcher.ended_within(LANE_END).await;
        drained
    }

    /// Refuses new calls and cancels whatever waits and runs, without waiting.
    pub fn close(&self) {
        let earlier = std::mem::take(&mut *self.earlier.lock().unwrap_or_else(PoisonError::into_inner));
        for hooks in earlier.iter().chain([&self.loaded()]) {
            hooks.dispatcher.queue().stop();
        }
    }

    fn loaded(&self) -> Arc<LoadedHooks> {
        Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls the modify hook of a payload whose point is known at run time only.
    pub(crate) fn modify_then(
        &self,
        payload: AnyPayload,
        then: impl FnOnce(Outcome<AnyPayload>) + Send + 'static,
    ) -> Option<Arc<Call<PyHandler>>> {
        self.loaded().dispatcher.modify(payload, then)
    }

    /// Hands over a payload whose point is known at run time only.
    pub(crate) fn observe_any(&self, payload: AnyPayload) {
        self.loaded().dispatcher.observe(payload.point(), || payload);
    }
}

impl Drop for HookEngine {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for HookEngine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HookEngine")
            .field("root", &self.root)
            .field("dispatcher", &self.loaded().dispatcher)
            .finish_non_exhaustive()
    }
}

/// What the static check of a load may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaticCheck {
    /// Refuse the load where it finds an error.
    #[default]
    Error,
    /// Tell what it finds among the warnings.
    Warn,
    /// Nothing: it is left out.
    Off,
}

/// Settings for a load; made by [`HookEngine::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct HookEngineBuilder {
    folder: PathBuf,
    python: Option<PathBuf>,
    observe_timeout: Duration,
    modify_timeout: Duration,
    load_timeout: Duration,
    limits: QueueLimits,
    patience: Patience,
    static_check: StaticCheck,
}

impl HookEngineBuilder {
    /// What the static check may do, which reads the source before anything is imported; [`StaticCheck::Error`].
    pub fn static_check(mut self, mode: StaticCheck) -> Self {
        self.static_check = mode;
        self
    }

    /// The interpreter, or the folder of the virtual environment, whose packages the hooks use. Without it: `VIRTUAL_ENV`,
    /// `.venv` beside the agent, `python3` on the path. A process has one interpreter: the first load decides.
    pub fn python(mut self, python: impl Into<PathBuf>) -> Self {
        self.python = Some(python.into());
        self
    }

    /// How long an observe hook may take unless its decorator says otherwise; 100 ms.
    pub fn observe_timeout(mut self, timeout: Duration) -> Self {
        self.observe_timeout = timeout;
        self
    }

    /// How long a modify hook may take unless its decorator says otherwise; 500 ms.
    pub fn modify_timeout(mut self, timeout: Duration) -> Self {
        self.modify_timeout = timeout;
        self
    }

    /// How long the import of all hook modules may take; 10 s.
    pub fn load_timeout(mut self, timeout: Duration) -> Self {
        self.load_timeout = timeout;
        self
    }

    /// How many observations may wait before the oldest is dropped; 4,096.
    pub fn observer_queue(mut self, observations: usize) -> Self {
        self.limits.watch = observations.max(1);
        self
    }

    /// About how many bytes the payloads of waiting observations may hold before the oldest is dropped; 64 MiB.
    pub fn observer_bytes(mut self, bytes: usize) -> Self {
        self.limits.watch_bytes = bytes;
        self
    }

    /// How many modify calls may wait before more of them fail at once; 16,384.
    pub fn call_queue(mut self, calls: usize) -> Self {
        self.limits.turn = calls.max(1);
        self
    }

    /// How long a thread may leave a wake-up unanswered before something is done about it; 20 ms. So long a waiting call waits at least
    /// before it is moved to a fresh thread, and so long a cancelled handler has to end before its thread is interrupted.
    pub fn patience(mut self, answer: Duration) -> Self {
        self.patience.answer = answer.max(Duration::from_millis(1));
        self
    }

    /// The part of its time after which a call that has not started is moved from a thread that does not answer; 0.25.
    pub fn takeover_share(mut self, share: f64) -> Self {
        self.patience.share = share.clamp(0.0, 1.0);
        self
    }

    /// How many threads may be stuck in hooks at once; 8. Beyond, calls fail by policy until one comes back.
    pub fn most_lost_threads(mut self, threads: usize) -> Self {
        self.patience.threads = threads;
        self
    }

    /// Loads the hooks.
    ///
    /// # Errors
    ///
    /// The folder has no hooks, they are not well formed, or no fitting interpreter is there.
    pub fn load(self) -> Result<HookEngine, Error> {
        let root = std::path::absolute(&self.folder)
            .map_err(|reason| Error::Unreadable { path: self.folder.clone(), reason })?;
        let hooks = self.load_hooks(&root)?;
        Ok(HookEngine { root, settings: self, loaded: RwLock::new(Arc::new(hooks)), earlier: Mutex::default() })
    }

    fn load_hooks(&self, root: &Path) -> Result<LoadedHooks, Error> {
        let (modules, mut warnings) = self.admitted(root)?;
        python::ensure_started(&PythonChoice { asked: self.python.clone(), agent: root.to_owned() })?;
        let loaded = python::load(LoadRequest {
            modules,
            within: self.load_timeout,
            observe_timeout: self.observe_timeout,
            modify_timeout: self.modify_timeout,
            limits: self.limits,
            patience: self.patience,
        })?;
        let refusal = if loaded.problems.iter().any(|problem| problem.severity == Severity::Error) {
            Some(Error::Invalid { root: root.to_owned(), problems: loaded.problems.clone() })
        } else if loaded.handlers.is_empty() {
            Some(Error::NoHooks(root.to_owned()))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            loaded.queue.stop();
            return Err(refusal);
        }
        let known = |problem: &Diagnostic| {
            warnings.iter().any(|other| other.rule == problem.rule && other.file == problem.file)
        };
        let new: Vec<_> = loaded.problems.into_iter().filter(|problem| !known(problem)).collect();
        warnings.extend(new);
        for problem in &warnings {
            tracing::warn!(target: crate::telemetry::LOAD, "{problem}");
        }
        Ok(LoadedHooks { dispatcher: Dispatcher::new(loaded.handlers, loaded.queue), warnings })
    }

    /// The hook modules, let through by the static check, and what it finds that does not refuse the load.
    fn admitted(&self, root: &Path) -> Result<(Admitted, Vec<Diagnostic>), Error> {
        let modules = discovery::hook_modules(root)?;
        if self.static_check == StaticCheck::Off {
            return Ok((Admitted::unchecked(root, modules), Vec::new()));
        }
        let settings = Settings::near(root)?;
        let files = discovery::agent_files(root)?;
        let wanted = |problem: &Diagnostic| settings.wants(problem);
        match Admitted::after_check(root, modules.clone(), &files, &settings.for_check(python::linked_minor()), wanted)
        {
            Ok(admitted) => Ok(admitted),
            Err(problems) if self.static_check == StaticCheck::Warn => {
                Ok((Admitted::unchecked(root, modules), problems))
            }
            Err(mut problems) => {
                problems.retain(|problem| problem.severity == Severity::Error);
                Err(Error::Invalid { root: root.to_owned(), problems })
            }
        }
    }
}
