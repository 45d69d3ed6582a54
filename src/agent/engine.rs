//! The engine: an agent's hooks, loaded and ready to be called.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use super::builder::HookEngineBuilder;
use super::error::Error;
use super::execution_hooks::{LaneHook, LaneHooks};
use super::execution_tools::LaneTool;
use super::lane_calls::Lanes;
use super::tooling::LoadedTool;
use futures_util::future::BoxFuture;

use crate::diagnostic::Diagnostic;
use crate::dispatch::{Dispatcher, EngineHealth, HandlerStatistics, Withdraw};
use crate::execute::ExecutionTool;
use crate::hooks::{AnyPayload, HandlerId, Lane, ModifiablePayload, Outcome, Payload, Point};
use crate::python::PyHandler;
use crate::step::Hooks;
use crate::worker::{Apart, Keeper};

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
pub(crate) struct LoadedHooks {
    pub(super) hooks: Run,
    /// The tools of the agent's own modules, where they were asked for.
    pub(super) tools: Vec<LoadedTool>,
    /// The hooks of an execution, where they were asked for.
    pub(super) execution_hooks: Vec<LaneHook>,
    pub(super) warnings: Vec<Diagnostic>,
}

/// Where the hooks run.
pub(super) enum Run {
    /// On threads of this process.
    Here(Dispatcher<PyHandler>),
    /// In a process of their own.
    Apart(Dispatcher<Apart>, Arc<Keeper>),
}

/// The same of a dispatcher, wherever its hooks run.
macro_rules! wherever {
    ($loaded:expr, $dispatcher:ident => $what:expr) => {
        match &$loaded.hooks {
            Run::Here($dispatcher) => $what,
            Run::Apart($dispatcher, _) => $what,
        }
    };
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

    pub(super) fn new(root: PathBuf, settings: HookEngineBuilder, hooks: LoadedHooks) -> Self {
        Self { root, settings, loaded: RwLock::new(Arc::new(hooks)), earlier: Mutex::default() }
    }

    /// Settings for a load.
    pub fn builder(folder: impl AsRef<Path>) -> HookEngineBuilder {
        HookEngineBuilder::new(folder.as_ref())
    }

    /// Calls the modify hook of the payload's point and waits for the outcome, at most until the hook's deadline.
    ///
    /// Without a hook the payload proceeds, and Python is not touched. Dropping the future cancels the handler.
    pub async fn modify<P: ModifiablePayload>(&self, payload: P) -> Outcome<P> {
        let loaded = self.loaded();
        let outcome = wherever!(loaded, hooks => hooks.modified(payload.into_any()).await);
        outcome.map(|payload| P::from_any(payload).unwrap_or_else(|| unreachable!("a payload keeps its point")))
    }

    /// Hands the payload to the observe hooks of its point. Never waits; when too many observations wait, the oldest is
    /// dropped and counted.
    ///
    /// Observers see the payload as it enters the point: call this before [`HookEngine::modify`].
    pub fn observe<P: Payload>(&self, payload: &P) {
        wherever!(self.loaded(), hooks => hooks.observe(P::POINT, || payload.clone().into_any()));
    }

    /// As [`HookEngine::observe`], but waits for room in the queue, so that nothing is dropped. For players of recorded
    /// traffic; a live turn must not wait.
    pub async fn observe_with_room<P: Payload>(&self, payload: &P) {
        let loaded = self.loaded();
        wherever!(loaded, hooks => hooks.observe_with_room(P::POINT, || payload.clone().into_any()).await);
    }

    /// As [`HookEngine::observe_with_room`], of a payload whose point is known at run time only.
    pub(crate) async fn observe_any_with_room(&self, payload: AnyPayload) {
        let loaded = self.loaded();
        wherever!(loaded, hooks => hooks.observe_with_room(payload.point(), || payload).await);
    }

    /// The hooks at a point, observers first, in the order of registration.
    pub fn registered(&self, point: Point) -> Vec<Arc<RegisteredHook>> {
        wherever!(self.loaded(), hooks => hooks.at_point(point).map(|handler| Arc::clone(&handler.id)).collect())
    }

    /// What has come of each hook's calls since the load, in the order of the catalogue.
    pub fn statistics(&self) -> Vec<HandlerStatistics> {
        wherever!(self.loaded(), hooks => hooks.statistics())
    }

    /// How long at least one hook has been running since the load: the rest of the time is not the hooks' own.
    pub fn time_in_hooks(&self) -> Duration {
        wherever!(self.loaded(), hooks => hooks.occupied())
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
        wherever!(before, hooks => hooks.queue().finish_open());
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        earlier.retain(|loaded| wherever!(loaded, hooks => hooks.queue().open()) > 0);
        earlier.push(before);
        Ok(())
    }

    /// The hooks of an execution that its modules define, where it was loaded for one.
    pub fn execution_hooks(&self) -> LaneHooks {
        let loaded = self.loaded();
        let hooks = loaded.execution_hooks.clone();
        LaneHooks::of(Lanes::Agent(loaded), hooks)
    }

    /// Its tools, as generated code calls them, where it was loaded for an execution.
    pub fn execution_tools(&self) -> Vec<ExecutionTool> {
        let loaded = self.loaded();
        let lanes = Lanes::Agent(Arc::clone(&loaded));
        let root = loaded.tools.iter().filter(|tool| tool.skill.is_none());
        root.map(|tool| LaneTool::loaded(&lanes, tool)).collect()
    }

    /// The agent's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Ends when no call and no observation is waiting or running.
    pub async fn drained(&self) {
        let loaded = self.loaded();
        wherever!(loaded, hooks => hooks.drained().await);
    }

    /// As [`HookEngine::drained`], but at most `time`; the answer is whether all ended.
    pub async fn drained_within(&self, time: Duration) -> bool {
        let loaded = self.loaded();
        wherever!(loaded, hooks => hooks.drained_within(time).await)
    }

    /// How the engine's threads are, and what has become of those that hooks have blocked.
    pub fn health(&self) -> EngineHealth {
        let loaded = self.loaded();
        let mut health = wherever!(loaded, hooks => hooks.health());
        if let Run::Apart(_, keeper) = &loaded.hooks {
            keeper.complete(&mut health);
        }
        health
    }

    /// How many calls and observations are waiting or running.
    pub fn open_calls(&self) -> usize {
        wherever!(self.loaded(), hooks => hooks.queue().open())
    }

    /// Refuses new calls, waits at most `grace` for those that wait and run, and cancels the rest. The answer is whether all
    /// ended by themselves. A call that is refused or cancelled ends as a failure, by its point's policy.
    pub async fn shutdown(&self, grace: Duration) -> bool {
        let loaded = self.loaded();
        wherever!(loaded, hooks => hooks.queue().close());
        let drained = wherever!(loaded, hooks => hooks.drained_within(grace).await);
        self.close();
        wherever!(loaded, hooks => hooks.ended_within(LANE_END).await);
        drained
    }

    /// Refuses new calls and cancels whatever waits and runs, without waiting.
    pub fn close(&self) {
        let earlier = std::mem::take(&mut *self.earlier.lock().unwrap_or_else(PoisonError::into_inner));
        for hooks in earlier.iter().chain([&self.loaded()]) {
            wherever!(hooks, hooks => hooks.queue().stop());
        }
    }

    pub(super) fn loaded(&self) -> Arc<LoadedHooks> {
        Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls the modify hook of a payload whose point is known at run time only.
    pub(crate) fn modify_then(
        &self,
        payload: AnyPayload,
        then: impl FnOnce(Outcome<AnyPayload>) + Send + 'static,
    ) -> Option<Arc<dyn Withdraw>> {
        wherever!(self.loaded(), hooks => hooks.modify(payload, then).map(|call| call as Arc<dyn Withdraw>))
    }

    /// Hands over a payload whose point is known at run time only.
    pub(crate) fn observe_any(&self, payload: AnyPayload) {
        wherever!(self.loaded(), hooks => hooks.observe(payload.point(), || payload));
    }
}

impl Hooks for HookEngine {
    fn observe(&self, payload: AnyPayload) {
        self.observe_any(payload);
    }

    fn modify(&self, payload: AnyPayload) -> BoxFuture<'_, Outcome<AnyPayload>> {
        Box::pin(async move {
            let loaded = self.loaded();
            wherever!(loaded, hooks => hooks.modified(payload).await)
        })
    }

    fn modifies(&self, point: Point) -> bool {
        wherever!(self.loaded(), hooks => hooks.stands_at(point, Lane::Modify))
    }

    fn observes(&self, point: Point) -> bool {
        wherever!(self.loaded(), hooks => hooks.stands_at(point, Lane::Observe))
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
            .field("hooks", &wherever!(self.loaded(), hooks => format!("{hooks:?}")))
            .finish_non_exhaustive()
    }
}
