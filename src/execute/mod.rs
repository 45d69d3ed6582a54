//! Executions: a model that answers with code which calls tools, and seven hooks around each step.
//!
//! ```text
//! on_iteration_start ─▶ model ─▶ on_before_execution ─▶ code ─▶ on_before_tool ─▶ tool ─▶ on_after_tool ─▶ code …
//!                                                        └─▶ a valid exit ─▶ on_exit ─┐
//! the next iteration, or the end ◀─ on_iteration_end ◀────────────────────────────────┘        on_trace: all along
//! ```
//!
//! Which interpreter runs the code is not known here: [`CodeRunner`].

mod answering;
mod binding;
mod budget;
mod calling;
mod coding;
mod controller;
mod error;
mod event;
mod execution;
mod exit;
mod exiting;
mod feedback;
mod fences;
mod hooks;
mod iterating;
mod iteration;
mod journal;
mod listing;
mod plan;
mod prompt;
mod run;
mod runner;
mod running;
mod shape;
mod signature;
mod status;
mod subset;
mod tooling;
mod trace;

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
pub use trace::{Trace, Traced};
