//! The seven hooks of an execution.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use super::controller::Controller;
use super::iteration::{Iteration, IterationChange};
use super::trace::Trace;
use crate::tools::ToolSpec;

/// How long a hook may take unless the execution says otherwise.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// The hooks, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionHook {
    /// Before the model call of an iteration.
    OnIterationStart,
    /// After the model has answered, before its code runs.
    OnBeforeExecution,
    /// Before a tool's handler runs.
    OnBeforeTool,
    /// After a tool has returned, before the code has its output.
    OnAfterTool,
    /// As traces are made.
    OnTrace,
    /// When the code reaches a valid exit, before the iteration finishes.
    OnExit,
    /// After an iteration, before it is decided what comes next.
    OnIterationEnd,
}

impl ExecutionHook {
    /// All of them, in the order of an iteration.
    pub const ALL: [Self; 7] = [
        Self::OnIterationStart,
        Self::OnBeforeExecution,
        Self::OnBeforeTool,
        Self::OnAfterTool,
        Self::OnTrace,
        Self::OnExit,
        Self::OnIterationEnd,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnIterationStart => "on_iteration_start",
            Self::OnBeforeExecution => "on_before_execution",
            Self::OnBeforeTool => "on_before_tool",
            Self::OnAfterTool => "on_after_tool",
            Self::OnTrace => "on_trace",
            Self::OnExit => "on_exit",
            Self::OnIterationEnd => "on_iteration_end",
        }
    }

    /// The name that the documented interface gives it, in camel case.
    pub const fn camel_name(self) -> &'static str {
        match self {
            Self::OnIterationStart => "onIterationStart",
            Self::OnBeforeExecution => "onBeforeExecution",
            Self::OnBeforeTool => "onBeforeTool",
            Self::OnAfterTool => "onAfterTool",
            Self::OnTrace => "onTrace",
            Self::OnExit => "onExit",
            Self::OnIterationEnd => "onIterationEnd",
        }
    }
}

/// A hook that did not do what it was called for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HookFailure {
    /// It has raised, or given something that cannot be used.
    Failed {
        /// What it says.
        message: String,
    },
    /// It was not done in time.
    TimedOut {
        /// The time that it had, in milliseconds.
        limit_ms: u64,
    },
    /// It wants the model to look at something before anything else happens.
    Think {
        /// Why.
        reason: String,
        /// What.
        context: Value,
    },
    /// It wants the execution to end: no model is asked any more.
    Critical {
        /// Why.
        message: String,
    },
}

impl HookFailure {
    /// A failure with that text.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into() }
    }

    /// What it says.
    pub fn message(&self) -> String {
        match self {
            Self::Failed { message } | Self::Critical { message } => message.clone(),
            Self::TimedOut { limit_ms } => format!("it was not done after {limit_ms} ms"),
            Self::Think { reason, .. } => reason.clone(),
        }
    }
}

/// A tool call, as hooks see it.
#[derive(Clone, Copy, Debug)]
pub struct ToolMoment<'a> {
    /// The iteration.
    pub iteration: &'a Iteration,
    /// The tool.
    pub tool: &'a ToolSpec,
    /// The call's id.
    pub tool_call_id: &'a str,
    /// The id under which the model asked for the code, where it did so by a native call.
    pub native_call_id: Option<&'a str>,
    /// What the tool is given: as the code gave it before `on_before_tool`, as that left it after.
    pub input: &'a Value,
    /// The execution's controller.
    pub controller: &'a Controller,
}

/// An exit, as hooks see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExitSeen {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
}

/// A value that a hook puts in the place of another; null is one as well.
pub type Replacement = Option<Value>;

/// The hooks of an execution; those that are not written do nothing.
///
/// Whatever a hook does, the execution goes on or ends as the table of `docs/execution.md` says: a hook that fails before a tool keeps the
/// tool from running, one that fails before code keeps the code from running.
pub trait ExecutionHooks: Send + Sync {
    /// Whether anything is to be called there.
    fn has(&self, _hook: ExecutionHook) -> bool {
        true
    }

    /// Whether the hooks' time is kept by whoever calls them, so that nobody else is to.
    fn keeps_time(&self) -> bool {
        false
    }

    /// Before the model call of an iteration.
    fn on_iteration_start<'a>(
        &'a self,
        _iteration: &'a Iteration,
        _controller: &'a Controller,
        _context: &'a Value,
    ) -> BoxFuture<'a, Result<Option<IterationChange>, HookFailure>> {
        Box::pin(async { Ok(None) })
    }

    /// After the model has answered, before its code runs; gives code to run in its place.
    fn on_before_execution<'a>(
        &'a self,
        _iteration: &'a Iteration,
        _controller: &'a Controller,
    ) -> BoxFuture<'a, Result<Option<String>, HookFailure>> {
        Box::pin(async { Ok(None) })
    }

    /// Before a tool's handler runs; gives an input in the place of the call's.
    fn on_before_tool<'a>(&'a self, _moment: ToolMoment<'a>) -> BoxFuture<'a, Result<Replacement, HookFailure>> {
        Box::pin(async { Ok(None) })
    }

    /// After a tool has returned; gives an output in the place of the tool's.
    fn on_after_tool<'a>(
        &'a self,
        _moment: ToolMoment<'a>,
        _output: &'a Value,
    ) -> BoxFuture<'a, Result<Replacement, HookFailure>> {
        Box::pin(async { Ok(None) })
    }

    /// A trace has been made. It is to return at once; what goes wrong in it is its own affair.
    fn on_trace(&self, _trace: &Trace, _iteration: u32, _controller: &Controller) {}

    /// Ends when the traces so far have been heard, or cannot be waited for any longer. For hooks that hear them elsewhere.
    fn traces_heard(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// The code has reached a valid exit.
    fn on_exit<'a>(
        &'a self,
        _exit: &'a ExitSeen,
        _result: &'a Value,
        _controller: &'a Controller,
    ) -> BoxFuture<'a, Result<(), HookFailure>> {
        Box::pin(async { Ok(()) })
    }

    /// The iteration has finished.
    fn on_iteration_end<'a>(
        &'a self,
        _iteration: &'a Iteration,
        _controller: &'a Controller,
    ) -> BoxFuture<'a, Result<(), HookFailure>> {
        Box::pin(async { Ok(()) })
    }
}

/// No hooks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoExecutionHooks;

impl ExecutionHooks for NoExecutionHooks {
    fn has(&self, _: ExecutionHook) -> bool {
        false
    }
}
