//! Tenterhook runs the Python hook modules of LLM agents, and never lets one hang, crash or corrupt a turn.
mod agent;
#[doc(hidden)]
pub mod cli;
mod conversation;
mod diagnostic;
mod dispatch;
mod extension;
mod hooks;
mod python;
mod telemetry;

pub use agent::{Error, HookEngine, HookEngineBuilder, RegisteredHook};
pub use conversation::{CallInfo, ChannelInfo, Object};
pub use diagnostic::{Diagnostic, Severity};
pub use dispatch::HandlerStatistics;
pub use hooks::*;
pub use python::Error as PythonError;
