//! The catalogue: which points exist, what each carries, and what a hook may answer there.

mod change;
mod field;
mod outcome;
mod payload;
mod point;
mod settings;
mod weight;

pub use change::Changed;
pub use field::{FieldKind, FieldSpec, Slot, SlotValue};
pub(crate) use outcome::as_millis;
pub use outcome::{FailureCause, HandlerFailure, HandlerId, Outcome, Signal, TraceFrame};
pub use payload::{
    AnyPayload, IncomingMessagePayload, KnowledgeQueryPayload, KnowledgeResultsPayload, ModelRequestPayload,
    ModelResponsePayload, ModifiablePayload, OutgoingTextPayload, Payload, ToolCallPayload, ToolResultPayload,
    TurnFinishedPayload, TurnStartedPayload, TurnStatus,
};
pub use point::{
    CATALOGUE_VERSION, FailPolicy, Lane, MODIFY_TIMEOUT, OBSERVE_TIMEOUT, OnClosed, POINTS, Point, PointSpec,
    SignalKind,
};
pub use settings::{ModelSettings, SettingKind};

/// Tools that the engine itself offers: no other tool can have their names.
pub(crate) const ENGINE_TOOLS: [&str; 8] = [
    "activate_skill",
    "complete_skill",
    "cancel_skill",
    "cannot_help",
    "set_fields",
    "listen",
    "resolve_tool_confirmation",
    "search_knowledge",
];
