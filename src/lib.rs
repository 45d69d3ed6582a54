//! Tenterhook runs the Python hook modules of LLM agents, and never lets one hang, crash or corrupt a turn.
//!
//! ```
//! use std::time::Duration;
//! use tenterhook::{HookEngine, Outcome, OutgoingTextPayload};
//!
//! # fn main() -> Result<(), tenterhook::Error> {
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let engine = HookEngine::load("hooks-examples/mask-private-data")?;
//! let text = OutgoingTextPayload::new("conversation-1", "Your card 4111 1111 1111 1111 is charged.");
//! engine.observe(&text);
//! let Outcome::Proceed { payload, changed, .. } = engine.modify(text).await else {
//!     panic!("this hook only changes");
//! };
//! assert!(changed);
//! assert_eq!(payload.text, "Your card [card ending 1111] is charged.");
//! engine.shutdown(Duration::from_secs(2)).await;
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! [`HookEngine`] loads an agent's hooks and calls them; [`Outcome`] says what the caller must do; [`POINTS`] is the catalogue.

mod agent;
mod check;
#[doc(hidden)]
pub mod cli;
mod condition;
mod conversation;
mod diagnostic;
mod dispatch;
mod execute;
mod extension;
mod hooks;
mod providers;
mod python;
mod quickapp;
mod skill;
mod step;
mod telemetry;
mod tools;
mod turn;
mod worker;

pub use agent::{
    AgentLoader, AppLoader, ConfigError, Error, ExecutionLoader, HookEngine, HookEngineBuilder, Isolation, LaneHooks,
    LoadedAgent, LoadedApp, LoadedExecution, RegisteredHook, Sandbox, StaticCheck,
};
pub use conversation::{CallInfo, ChannelInfo, Event, Idle, IdleStage, Object, as_messages};
pub use diagnostic::{Diagnostic, Place, Related, Severity};
pub use dispatch::{EngineHealth, HandlerStatistics, StuckThread, WorkerHealth};
pub use execute::{
    ABORTED, Code, CodeError, CodeErrorKind, CodeForm, CodeFrame, CodeHost, CodeLimits, CodeOutcome, CodeRunner,
    CodeSession, Controller, Error as ExecuteError, Execution, ExecutionBuilder, ExecutionEvent, ExecutionHook,
    ExecutionHooks, ExecutionResult, ExecutionStatus, ExecutionStream, ExecutionTokens, ExecutionTool, Exit, ExitSeen,
    HOOK_TIMEOUT, HookFailure, HostCall, HostRefusal, ITERATIONS, Iteration, IterationChange, Lack, MOST_ITERATIONS,
    NoExecutionHooks, Replacement, RunnerError, SANDBOX_LACKS, SANDBOX_MISSING_BUILTINS, SANDBOX_MISSING_MODULES,
    SANDBOX_MODULES, Status, TOOL_CALLS, ToolMoment, Trace, Traced,
};
pub use hooks::{
    AnyPayload, CATALOGUE_VERSION, Changed, FailPolicy, FailureCause, FieldKind, FieldSpec, HandlerFailure, HandlerId,
    IncomingMessagePayload, KnowledgeQueryPayload, KnowledgeResultsPayload, Lane, MODIFY_TIMEOUT, ModelRequestPayload,
    ModelResponsePayload, ModelSettings, ModifiablePayload, OBSERVE_TIMEOUT, OnClosed, Outcome, OutgoingTextPayload,
    POINTS, Payload, Point, PointSpec, SettingKind, Signal, SignalKind, Slot, SlotValue, ToolCallPayload,
    ToolResultPayload, TraceFrame, TurnFinishedPayload, TurnStartedPayload, TurnStatus,
};
pub use providers::{
    Chunking, HttpAuthorization, McpError, McpServerConfig, McpServers, McpTransport, OpenAiModel, OpenAiSettings,
    RecordedConversation, References, RestError, SettingsError, SqliteError, SqliteStore,
};
pub use python::Error as PythonError;
pub use quickapp::{AppHookStatistics, QuickApp, RequestEvent, RequestInput, RequestStatus, RequestStream};
pub use step::{
    EventStream, Hooks, Identity, Knowledge, Model, ModelError, ModelReply, ModelRequest, NoHooks, NoKnowledge,
    Passage, RequestedCall, Tokens, Usage,
};
pub use tools::{NoTools, TOOL_TIMEOUT, Tool, ToolContext, ToolOutput, ToolSource, ToolSpec, Toolbox, Utterance};
pub use turn::{
    ConversationStore, FixedResponses, Lifecycle, LifecycleEvent, LifecycleStream, MemoryStore, Rendered, Response,
    Responses, Said, StoreError, TurnEngine, TurnEngineBuilder, TurnEvent, TurnInput, TurnStream,
};
pub use worker::Error as WorkerError;
