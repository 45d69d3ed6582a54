//! Settings for a load, and the load itself.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::checking::UNUSED_HOOK_MODULE;
use super::discovery;
use super::engine::{HookEngine, LoadedHooks, Run};
use super::error::Error;
use super::execution_hooks::LaneHook;
use super::sandbox::Sandbox;
use super::settings::Settings;
use super::tooling::LoadedTool;
use crate::check::Admitted;
use crate::diagnostic::{Diagnostic, Severity};
use crate::dispatch::{Dispatcher, Patience, QueueLimits, Registered};
use crate::execute::CodeRunner;
use crate::hooks::{MODIFY_TIMEOUT, OBSERVE_TIMEOUT};
use crate::python::{self, GiveUp, LoadRequest, PythonChoice, ToolFound};
use crate::tools::TOOL_TIMEOUT;
use crate::worker::{self, WorkerCommand};

/// How long the import of an agent's modules may take unless the builder says otherwise.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// In the place of a tool module's path: what renders templates (`tenterhook.loader`).
pub(super) const TEMPLATES: &str = "<templates>";

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

/// Where an agent's hooks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// On threads of this process: the fastest. What keeps the interpreter's lock in C code keeps all hooks of the process.
    #[default]
    Thread,
    /// In a process of their own, which is killed and started again where nothing else helps. A call costs about four wake-ups of a thread
    /// more; the state of the modules is lost with the process.
    Process,
}

/// Settings for a load; made by [`HookEngine::builder`].
#[derive(Clone)]
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
    spin: bool,
    isolation: Option<Isolation>,
    worker: Option<WorkerCommand>,
    worker_flags: Vec<OsString>,
    lost: Option<GiveUp>,
    /// How long a tool may take, where the agent's tools are loaded as well.
    tools: Option<Duration>,
    only_templates: bool,
    execution: Option<Duration>,
}

impl HookEngineBuilder {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            python: None,
            observe_timeout: OBSERVE_TIMEOUT,
            modify_timeout: MODIFY_TIMEOUT,
            load_timeout: LOAD_TIMEOUT,
            limits: QueueLimits::default(),
            patience: Patience::default(),
            static_check: StaticCheck::default(),
            spin: true,
            isolation: None,
            worker: None,
            worker_flags: Vec::new(),
            lost: None,
            tools: None,
            only_templates: false,
            execution: None,
        }
    }

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

    /// Whether a call that comes alone may look for its answer, and the hooks' thread for the next call, for up to 50 µs before they
    /// sleep; true. It costs processor time and saves the two wake-ups, which take longer than a short handler. Without a second
    /// processor, and for callers in Python, it is never done.
    pub fn spin(mut self, spin: bool) -> Self {
        self.spin = spin;
        self
    }

    /// Where the hooks run; as the agent's settings say (`isolation`), else [`Isolation::Thread`].
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// The command of a worker process, what stands before `worker AGENT`; `tenterhook` on the path, in a Python process its interpreter. It
    /// is to be of the same version as this crate.
    pub fn worker_command<A: Into<OsString>>(
        mut self,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        self.worker = Some(WorkerCommand { program: program.into(), arguments });
        self
    }

    /// What stands behind `worker AGENT`: how the worker logs.
    pub(crate) fn worker_flags(mut self, flags: Vec<OsString>) -> Self {
        self.worker_flags = flags;
        self
    }

    /// Loads the agent's tools as well, which may take so long; then there need not be any hooks.
    pub(super) fn tools(mut self, timeout: Duration) -> Self {
        self.tools = Some(timeout);
        self
    }

    /// Loads the folder as that of an execution: its hooks, each of which may take so long, and its tools, which generated code calls and
    /// which may take so long.
    pub fn for_execution(mut self, hook_timeout: Duration, tool_timeout: Duration) -> Self {
        (self.execution, self.tools) = (Some(hook_timeout), Some(tool_timeout));
        self
    }

    /// The sandbox for generated code, in the interpreter that the modules use.
    pub(super) fn sandbox(&self) -> Result<Arc<dyn CodeRunner>, Error> {
        Sandbox::start_in(&self.folder, self.python.clone())
    }

    /// Loads what renders templates and nothing of the agent.
    pub(super) fn only_templates(mut self) -> Self {
        (self.tools, self.only_templates) = (Some(TOOL_TIMEOUT), true);
        self
    }

    /// Hears, in a worker, that the process has to be given up.
    pub(super) fn lost(mut self, lost: GiveUp) -> Self {
        self.lost = Some(lost);
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
        Ok(HookEngine::new(root, self, hooks))
    }

    pub(super) fn load_hooks(&self, root: &Path) -> Result<LoadedHooks, Error> {
        let settings = Settings::near(root)?;
        if self.only_templates {
            let modules = Admitted::unchecked(root, Vec::new()).with_tools(vec![PathBuf::from(TEMPLATES)]);
            return self.load_here(root, modules, Vec::new());
        }
        let (modules, warnings) = self.admitted(root, &settings)?;
        let modules = match self.tools {
            Some(_) => modules.with_tools(discovery::tool_modules(root)?),
            None => modules,
        };
        match self.isolation.or(settings.isolation).unwrap_or_default() {
            Isolation::Process if modules.tools().is_empty() && self.execution.is_none() => {
                self.load_apart(root, warnings)
            }
            Isolation::Process => Err(Error::ToolsApart(root.to_owned())),
            Isolation::Thread => self.load_here(root, modules, warnings),
        }
    }

    /// Loads the hooks in a worker, which finds and imports the modules by itself.
    fn load_apart(&self, root: &Path, mut warnings: Vec<Diagnostic>) -> Result<LoadedHooks, Error> {
        let loaded = worker::load(worker::LoadRequest {
            command: self.worker.clone().unwrap_or_else(|| match python::package_command() {
                Some(program) => WorkerCommand { program, arguments: vec!["-m".into(), "tenterhook".into()] },
                None => WorkerCommand::default(),
            }),
            flags: self.worker_flags.clone(),
            root: root.to_owned(),
            python: self.python.clone(),
            settings: worker::LoadSettings {
                observe_timeout: self.observe_timeout,
                modify_timeout: self.modify_timeout,
                load_timeout: self.load_timeout,
                answer: self.patience.answer,
                share: self.patience.share,
            },
            limits: self.limits,
        });
        let loaded = loaded.map_err(|error| match error {
            worker::Error::Load { problems, .. } if !problems.is_empty() => {
                Error::Invalid { root: root.to_owned(), problems }
            }
            other => Error::Worker(other),
        })?;
        let dispatcher = Dispatcher::new(loaded.handlers, loaded.queue);
        loaded.keeper.knows(&dispatcher);
        tell_new(loaded.problems.into_iter().map(Into::into), &mut warnings);
        let hooks = Run::Apart(dispatcher, loaded.keeper);
        Ok(LoadedHooks { hooks, tools: Vec::new(), execution_hooks: Vec::new(), warnings })
    }

    fn load_here(&self, root: &Path, modules: Admitted, mut warnings: Vec<Diagnostic>) -> Result<LoadedHooks, Error> {
        python::ensure_started(&PythonChoice { asked: self.python.clone(), agent: root.to_owned() })?;
        let loaded = python::load(LoadRequest {
            modules,
            within: self.load_timeout,
            observe_timeout: self.observe_timeout,
            modify_timeout: self.modify_timeout,
            limits: self.limits,
            tool_timeout: self.tools.unwrap_or(TOOL_TIMEOUT),
            execution: self.execution,
            patience: self.patience,
            lost: self.lost.clone(),
        })?;
        let refusal = if loaded.problems.iter().any(|problem| problem.severity == Severity::Error) {
            Some(Error::Invalid { root: root.to_owned(), problems: loaded.problems.clone() })
        } else if loaded.handlers.is_empty() && self.tools.is_none() {
            Some(Error::NoHooks(root.to_owned()))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            loaded.queue.stop();
            return Err(refusal);
        }
        loaded.queue.let_spin(self.spin);
        tell_new(loaded.problems, &mut warnings);
        let tool = |tool: ToolFound| LoadedTool {
            spec: Arc::new(tool.spec),
            skill: tool.skill,
            returns: tool.returns,
            runs: Registered::new(tool.id, tool.handler),
        };
        let tools = loaded.tools.into_iter().map(tool).collect();
        let execution_hooks = loaded.execution_hooks.into_iter().map(LaneHook::from).collect();
        let hooks = Run::Here(Dispatcher::new(loaded.handlers, loaded.queue));
        Ok(LoadedHooks { hooks, tools, execution_hooks, warnings })
    }

    /// The hook modules, let through by the static check, and what it finds that does not refuse the load.
    fn admitted(&self, root: &Path, settings: &Settings) -> Result<(Admitted, Vec<Diagnostic>), Error> {
        let modules = match discovery::hook_modules(root) {
            // Tools alone are an agent as well.
            Err(Error::NoModules(_) | Error::OnlyInit(_)) if self.tools.is_some() => {
                return Ok((Admitted::unchecked(root, Vec::new()), Vec::new()));
            }
            found => found?,
        };
        if self.static_check == StaticCheck::Off {
            return Ok((Admitted::unchecked(root, modules), Vec::new()));
        }
        let files = discovery::agent_files(root)?;
        let unasked = self.execution.map(|_| UNUSED_HOOK_MODULE);
        let wanted = |problem: &Diagnostic| settings.wants(problem) && Some(&*problem.rule) != unasked;
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

/// Adds the problems that are not among the warnings yet, and tells all.
fn tell_new(problems: impl IntoIterator<Item = Diagnostic>, warnings: &mut Vec<Diagnostic>) {
    for problem in problems {
        if !warnings.iter().any(|other| other.rule == problem.rule && other.file == problem.file) {
            warnings.push(problem);
        }
    }
    for problem in warnings {
        tracing::warn!(target: crate::telemetry::LOAD, "{problem}");
    }
}

impl fmt::Debug for HookEngineBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HookEngineBuilder").field("folder", &self.folder).finish_non_exhaustive()
    }
}
