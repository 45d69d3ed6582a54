//! An execution from a folder: what to do, a model, tools, and the hooks around all of it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::answering::model_of;
use super::builder::HookEngineBuilder;
use super::config::execution::{ExecutionConfig, load_execution};
use super::discovery;
use super::engine::HookEngine;
use super::error::Error;
use super::turning::refuse;
use crate::conversation::Object;
use crate::diagnostic::Diagnostic;
use crate::execute::{CodeRunner, Controller, Execution, HOOK_TIMEOUT};
use crate::step::{Identity, Model};
use crate::tools::TOOL_TIMEOUT;

/// An execution that has been loaded.
#[derive(Debug)]
pub struct LoadedExecution {
    /// Runs; each run begins anew.
    pub execution: Execution,
    /// Its modules, where it has any.
    pub hooks: Option<Arc<HookEngine>>,
    /// What is unwise in its files, though it does not keep it from running.
    pub warnings: Vec<Diagnostic>,
}

/// Settings for the load of an execution; made by [`Execution::loader`].
#[must_use]
pub struct ExecutionLoader {
    folder: PathBuf,
    hooks: HookEngineBuilder,
    model: Option<Arc<dyn Model>>,
    runner: Option<Arc<dyn CodeRunner>>,
    messages: Vec<Arc<Object>>,
    controller: Option<Controller>,
}

impl Execution {
    /// Settings for the load of the execution in a folder: `execution.yml`, and beside it `hooks.py` and `tools.py`.
    pub fn loader(folder: impl AsRef<Path>) -> ExecutionLoader {
        let folder = folder.as_ref().to_owned();
        ExecutionLoader {
            hooks: HookEngine::builder(&folder),
            folder,
            model: None,
            runner: None,
            messages: Vec::new(),
            controller: None,
        }
    }
}

impl ExecutionLoader {
    /// How modules are loaded; as [`HookEngine::builder`] does, for the same folder.
    pub fn hooks(mut self, hooks: HookEngineBuilder) -> Self {
        self.hooks = hooks;
        self
    }

    /// The model, whatever the file says.
    pub fn model(mut self, model: impl Model + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// What runs the code, in the place of the sandbox of the interpreter.
    pub fn runner(mut self, runner: Arc<dyn CodeRunner>) -> Self {
        self.runner = Some(runner);
        self
    }

    /// The conversation so far, in the form of Chat Completions.
    pub fn messages(mut self, messages: Vec<Arc<Object>>) -> Self {
        self.messages = messages;
        self
    }

    /// Who may abort it.
    pub fn signal(mut self, controller: &Controller) -> Self {
        self.controller = Some(controller.clone());
        self
    }

    /// Loads it. Blocks while modules are imported.
    ///
    /// # Errors
    ///
    /// The files are not well formed, no model is named, there is no sandbox, or no fitting interpreter.
    pub fn load(self) -> Result<LoadedExecution, Error> {
        let Self { folder, hooks, model, runner, messages, controller } = self;
        let root = std::path::absolute(&folder).map_err(|reason| Error::Unreadable { path: folder.clone(), reason })?;
        if !root.is_dir() {
            return Err(Error::NotFound(folder));
        }
        let (config, mut warnings) = load_execution(&folder, &|name| std::env::var(name).ok())?;
        refuse(&folder, &mut warnings)?;
        let Some(config) = config else { unreachable!("what has no value has an error") };
        let runner = match runner {
            Some(runner) => runner,
            None => hooks.sandbox()?,
        };
        let hooks = if discovery::has_modules(&root)? {
            let (hook, tool) = (config.hook_timeout, config.tool_timeout);
            let builder = hooks.for_execution(hook.unwrap_or(HOOK_TIMEOUT), tool.unwrap_or(TOOL_TIMEOUT));
            Some(Arc::new(builder.load()?))
        } else {
            None
        };
        warnings.extend(hooks.iter().flat_map(|hooks| hooks.warnings()));
        let model = match (model, &config.model) {
            (Some(model), _) => model,
            (None, Some(model)) => model_of(model)?,
            (None, None) => return Err(Error::NoExecutionModel(folder)),
        };
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut builder = planned(config).messages(messages).model(model).runner(runner);
        if let Some(controller) = &controller {
            builder = builder.signal(controller);
        }
        if let Some(hooks) = &hooks {
            builder = builder.hooks(Arc::new(hooks.execution_hooks()));
            for tool in hooks.execution_tools() {
                builder = builder.tool_returning(tool.tool, tool.returns);
            }
            // Points of the turn that its modules stand at are those of an agent.
            if crate::hooks::POINTS.iter().any(|point| !hooks.registered(point.point).is_empty()) {
                let identity = Identity { sender_id: name, ..Identity::default() };
                builder = builder.agent_hooks(Arc::<HookEngine>::clone(hooks), identity);
            }
        }
        Ok(LoadedExecution { execution: builder.build()?, hooks, warnings })
    }
}

/// What the file says of an execution.
fn planned(config: ExecutionConfig) -> crate::execute::ExecutionBuilder {
    let mut builder = Execution::builder()
        .instructions(config.instructions)
        .variables(config.variables)
        .limits(config.limits)
        .form(config.form)
        .chat(config.chat);
    for exit in config.exits {
        builder = builder.exit(exit);
    }
    if let Some(iterations) = config.iterations {
        builder = builder.iterations(i64::from(iterations));
    }
    if let Some(time) = config.hook_timeout {
        builder = builder.hook_timeout(time);
    }
    if let Some(time) = config.tool_timeout {
        builder = builder.tool_timeout(time);
    }
    if let Some(calls) = config.tool_calls {
        builder = builder.tool_calls(calls);
    }
    if let Some(times) = config.repeats {
        builder = builder.repeats(times);
    }
    builder
}

impl fmt::Debug for ExecutionLoader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExecutionLoader").field("folder", &self.folder).finish_non_exhaustive()
    }
}
