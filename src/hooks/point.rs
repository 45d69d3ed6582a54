//! The ten points of a turn, in one table. Help, `tenterhook points` and the tests are made from it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::field::FieldSpec;
use super::payload::AnyPayload;

/// Raised when the JSON form of the catalogue changes its shape.
pub const CATALOGUE_VERSION: u32 = 1;

/// How long an observe handler may take unless its decorator says otherwise (Hooks document, *Timeouts*).
pub const OBSERVE_TIMEOUT: Duration = Duration::from_millis(100);

/// How long a modify handler may take unless its decorator says otherwise (Hooks document, *Timeouts*).
pub const MODIFY_TIMEOUT: Duration = Duration::from_millis(500);

/// A place in a turn where hooks are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// The turn begins.
    TurnStarted,
    /// The user's final text, before it is stored.
    IncomingMessage,
    /// A request is about to be sent to the model.
    ModelRequest,
    /// The model has answered; nothing has been emitted or dispatched yet.
    ModelResponse,
    /// A tool call of the model's batch, before any of the batch runs.
    ToolCall,
    /// A tool has returned; its result is not stored yet.
    ToolResult,
    /// The references are about to be searched.
    KnowledgeQuery,
    /// The search has returned passages.
    KnowledgeResults,
    /// A completed text is about to be sent to the user.
    OutgoingText,
    /// The turn has ended, however it ended.
    TurnFinished,
}

/// Which of the two kinds of hook a handler is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Watches; cannot change anything and is never awaited.
    Observe,
    /// Is awaited; may change the payload or raise a control signal.
    Modify,
}

/// A control signal's kind, by the name of its Python exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SignalKind {
    /// Veto this action.
    HookRejection,
    /// Discard the model's answer and ask again with feedback.
    RetryModel,
}

/// What a time-out, a crash, an invalid result or a full engine means at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailPolicy {
    /// The last good payload goes on.
    Open,
    /// The step does not happen.
    Closed,
}

/// What `closed` stops at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnClosed {
    /// The turn ends and the user hears a fallback.
    StopTurn,
    /// Only this step is skipped; the turn goes on.
    SkipStep,
}

/// One row of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct PointSpec {
    /// The point.
    pub point: Point,
    /// The Python class of its payload.
    pub payload: &'static str,
    /// The observe decorator.
    pub observe: &'static str,
    /// The modify decorator, where the point has a modify lane.
    pub modify: Option<&'static str>,
    /// The control signals that a modify handler may raise here.
    pub signals: &'static [SignalKind],
    /// The fail policy of the modify lane.
    pub policy: Option<FailPolicy>,
    /// What `closed` stops, where the policy is closed.
    pub on_closed: Option<OnClosed>,
}

use FailPolicy::{Closed, Open};
use SignalKind::{HookRejection, RetryModel};

/// Every point, in the order in which a turn meets them.
#[rustfmt::skip]
pub const POINTS: [PointSpec; 10] = [
    watch(Point::TurnStarted, "TurnStartedPayload", "on_turn_started"),
    closed(Point::IncomingMessage, "IncomingMessagePayload", "on_incoming_message", "modify_incoming_message", &[HookRejection], OnClosed::StopTurn),
    closed(Point::ModelRequest, "ModelRequestPayload", "on_model_request", "modify_model_request", &[], OnClosed::StopTurn),
    open(Point::ModelResponse, "ModelResponsePayload", "on_model_response", "modify_model_response", &[RetryModel]),
    closed(Point::ToolCall, "ToolCallPayload", "on_tool_call", "modify_tool_call", &[RetryModel], OnClosed::StopTurn),
    open(Point::ToolResult, "ToolResultPayload", "on_tool_result", "modify_tool_result", &[]),
    closed(Point::KnowledgeQuery, "KnowledgeQueryPayload", "on_knowledge_query", "modify_knowledge_query", &[], OnClosed::SkipStep),
    open(Point::KnowledgeResults, "KnowledgeResultsPayload", "on_knowledge_results", "modify_knowledge_results", &[]),
    open(Point::OutgoingText, "OutgoingTextPayload", "on_outgoing_text", "modify_outgoing_text", &[HookRejection]),
    watch(Point::TurnFinished, "TurnFinishedPayload", "on_turn_finished"),
];

const fn watch(point: Point, payload: &'static str, observe: &'static str) -> PointSpec {
    PointSpec { point, payload, observe, modify: None, signals: &[], policy: None, on_closed: None }
}

const fn open(
    point: Point,
    payload: &'static str,
    observe: &'static str,
    modify: &'static str,
    signals: &'static [SignalKind],
) -> PointSpec {
    PointSpec { point, payload, observe, modify: Some(modify), signals, policy: Some(Open), on_closed: None }
}

const fn closed(
    point: Point,
    payload: &'static str,
    observe: &'static str,
    modify: &'static str,
    signals: &'static [SignalKind],
    on_closed: OnClosed,
) -> PointSpec {
    PointSpec {
        point,
        payload,
        observe,
        modify: Some(modify),
        signals,
        policy: Some(Closed),
        on_closed: Some(on_closed),
    }
}

impl PointSpec {
    /// The payload's fields, the three of the identity first.
    pub fn fields(&self) -> &'static [FieldSpec] {
        AnyPayload::fields_of(self.point)
    }

    /// How long a handler of `lane` may take unless its decorator or the builder says otherwise.
    pub const fn default_timeout(lane: Lane) -> Duration {
        match lane {
            Lane::Observe => OBSERVE_TIMEOUT,
            Lane::Modify => MODIFY_TIMEOUT,
        }
    }

    /// The decorator of a lane, where the point has that lane.
    pub const fn decorator(&self, lane: Lane) -> Option<&'static str> {
        match lane {
            Lane::Observe => Some(self.observe),
            Lane::Modify => self.modify,
        }
    }
}

impl Point {
    /// The point's row in the catalogue.
    pub fn spec(self) -> &'static PointSpec {
        // The points are declared in the order of the table; a test proves it.
        &POINTS[self as usize]
    }

    /// The point's name as Python and JSON write it, such as `model_request`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TurnStarted => "turn_started",
            Self::TurnFinished => "turn_finished",
            Self::IncomingMessage => "incoming_message",
            Self::ModelRequest => "model_request",
            Self::ModelResponse => "model_response",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::KnowledgeQuery => "knowledge_query",
            Self::KnowledgeResults => "knowledge_results",
            Self::OutgoingText => "outgoing_text",
        }
    }

    /// The point of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        POINTS.iter().map(|spec| spec.point).find(|point| point.name() == name)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl Lane {
    /// The lane's name as the marks on a decorated function write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Modify => "modify",
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl SignalKind {
    /// The name of the signal's Python exception.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HookRejection => "HookRejection",
            Self::RetryModel => "RetryModel",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_one_row_and_is_found_by_its_name() {
        for spec in &POINTS {
            assert_eq!(Point::from_name(spec.point.name()), Some(spec.point));
            assert_eq!(POINTS[spec.point as usize].point, spec.point);
            assert_eq!(spec.point.spec().payload, spec.payload);
            assert_eq!(serde_json::to_value(spec.point).unwrap(), spec.point.name());
        }
    }

    #[test]
    fn a_closed_point_says_what_it_stops() {
        for spec in &POINTS {
            assert_eq!(spec.on_closed.is_some(), spec.policy == Some(Closed), "{}", spec.point);
            assert_eq!(spec.policy.is_some(), spec.modify.is_some(), "{}", spec.point);
            assert!(spec.modify.is_some() || spec.signals.is_empty(), "{}", spec.point);
        }
    }
}
