//! Executions: a model that answers with code which calls tools, and seven hooks around each step.
//!
//! ```text
//! on_iteration_start ─▶ model ─▶ on_before_execution ─▶ code ─▶ on_before_tool ─▶ tool ─▶ on_after_tool ─▶ code …
//!                                                        └─▶ a valid exit ─▶ on_exit ─┐
//! the next iteration, or the end ◀─ on_iteration_end ◀────────────────────────────────┘        on_trace: all along
//! ```
//!
//! Which interpreter runs the code is not known here: [`CodeRunner`].

#[cfg(test)]
mod abort_tests;
#[cfg(test)]
mod answer_tests;
mod answering;
mod binding;
mod budget;
mod calling;
#[cfg(test)]
mod code_tests;
mod coding;
mod controller;
#[cfg(test)]
mod doubles;
mod error;
mod event;
mod execution;
mod exit;
mod exiting;
#[cfg(test)]
mod exiting_tests;
mod feedback;
#[cfg(test)]
mod feedback_tests;
mod fences;
mod hooks;
#[cfg(test)]
mod hooks_tests;
mod iterating;
mod iteration;
mod journal;
mod listing;
mod plan;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod playing;
mod prompt;
mod reserved;
mod run;
mod runner;
mod running;
mod shape;
mod signature;
#[cfg(test)]
mod span_tests;
mod status;
mod subset;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tool_hooks_tests;
mod tooling;
mod trace;
mod under_way;

pub(crate) use controller::controller_of;
pub use controller::{ABORTED, Controller};
pub use error::Error;
pub use event::{ExecutionEvent, ExecutionResult, ExecutionStatus};
pub use execution::{
    CodeForm, Execution, ExecutionBuilder, ExecutionStream, ExecutionTool, ITERATIONS, MOST_ITERATIONS, TOOL_CALLS,
};
pub use exit::Exit;
pub use hooks::{
    ExecutionHook, ExecutionHooks, ExitSeen, HOOK_TIMEOUT, HookFailure, NoExecutionHooks, Replacement, ToolMoment,
};
pub use iteration::{Iteration, IterationChange, Tokens as ExecutionTokens};
pub use runner::{
    Code, CodeError, CodeErrorKind, CodeFrame, CodeHost, CodeLimits, CodeOutcome, CodeRunner, CodeSession, HostCall,
    HostRefusal, RunnerError,
};
pub use status::Status;
pub use subset::{Lack, SANDBOX_LACKS, SANDBOX_MISSING_BUILTINS, SANDBOX_MISSING_MODULES, SANDBOX_MODULES};
pub use trace::{Trace, Traced};
