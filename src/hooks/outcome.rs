//! What a dispatch gives: an outcome for the caller, a failure for the log.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::point::{Lane, Point, SignalKind};

/// What the caller of a modify hook must do. A closed failure has no payload to go on with.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome<P> {
    /// Go on with this payload.
    Proceed {
        /// The payload, changed by the hook or as it was given.
        payload: P,
        /// Whether it differs from what was given.
        changed: bool,
        /// The handler failed at an open point; the payload is the last good one.
        failure: Option<HandlerFailure>,
        /// The handler raised a signal that this point does not take; it has no effect.
        discarded_signal: Option<Signal>,
    },
    /// Discard the model's answer, or the whole batch of calls, and ask again.
    Retry {
        /// A note for the next model request of the turn; never stored and never shown to the user.
        feedback: String,
    },
    /// The action is vetoed.
    Reject {
        /// Why, for the log.
        reason: String,
        /// What the user is to hear, where the hook says so; else the point's fallback.
        response: Option<String>,
    },
    /// The handler failed at a closed point: the step must not happen.
    Failed(HandlerFailure),
}

impl<P> Outcome<P> {
    /// The same outcome with another form of its payload.
    pub fn map<Q>(self, form: impl FnOnce(P) -> Q) -> Outcome<Q> {
        match self {
            Self::Proceed { payload, changed, failure, discarded_signal } => {
                Outcome::Proceed { payload: form(payload), changed, failure, discarded_signal }
            }
            Self::Retry { feedback } => Outcome::Retry { feedback },
            Self::Reject { reason, response } => Outcome::Reject { reason, response },
            Self::Failed(failure) => Outcome::Failed(failure),
        }
    }
}

/// A control signal that a modify handler raised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case")]
pub enum Signal {
    /// `RetryModel(feedback)`
    Retry {
        /// The note for the model.
        feedback: String,
    },
    /// `HookRejection(reason, response_message)`
    Rejection {
        /// Why.
        reason: String,
        /// What the user is to hear.
        response: Option<String>,
    },
}

impl Signal {
    /// Which signal it is.
    pub const fn kind(&self) -> SignalKind {
        match self {
            Self::Retry { .. } => SignalKind::RetryModel,
            Self::Rejection { .. } => SignalKind::HookRejection,
        }
    }
}

/// Which handler: where it is called and where it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HandlerId {
    /// The point it is called at.
    pub point: Point,
    /// Its lane.
    pub lane: Lane,
    /// Its module as the author names it, such as `hooks.redact_pii`.
    pub module: String,
    /// Its qualified name inside the module.
    pub function: String,
    /// The file it is written in.
    #[serde(serialize_with = "crate::diagnostic::as_shown")]
    pub file: PathBuf,
    /// The line of its `def`, from 1.
    pub line: u32,
    /// How long a call may take.
    #[serde(rename = "timeout_ms", serialize_with = "as_millis")]
    pub timeout: Duration,
}

impl HandlerId {
    /// Whether `signal` has an effect when this handler raises it.
    pub(crate) fn takes(&self, signal: &Signal) -> bool {
        self.lane == Lane::Modify && self.point.spec().signals.contains(&signal.kind())
    }
}

impl fmt::Display for HandlerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.module, self.function)
    }
}

/// A handler that failed at run time: whose, where, after how long and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandlerFailure {
    /// The handler.
    pub handler: Arc<HandlerId>,
    /// How long after dispatch the verdict fell.
    #[serde(rename = "elapsed_ms", serialize_with = "as_fractional_millis")]
    pub elapsed: Duration,
    /// Why it failed.
    pub cause: FailureCause,
}

impl fmt::Display for HandlerFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` at {} ({}) failed: {}", self.handler, self.handler.point, self.handler.lane, self.cause)
    }
}

impl std::error::Error for HandlerFailure {}

/// Why a handler failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureCause {
    /// It was not done at its deadline.
    Timeout {
        /// The time it had, in milliseconds.
        limit_ms: u64,
    },
    /// It raised an exception that is no control signal.
    Raised {
        /// The exception's type.
        kind: String,
        /// Its text, cut at 2,000 characters.
        message: String,
        /// Where it was raised, the innermost frame last; at most 20.
        frames: Vec<TraceFrame>,
    },
    /// It returned something that the point does not take.
    InvalidResult {
        /// What was returned, what was expected, and at which path.
        message: String,
    },
    /// It was not called: the payload cannot be given to Python.
    InvalidPayload {
        /// What Python cannot be given.
        message: String,
    },
    /// It was not called: too many calls wait already.
    EngineFull,
    /// It was not called, or was cancelled, because the engine is shut down.
    ShutDown,
    /// Another handler blocked the event loop on which it was suspended.
    LoopLost,
    /// It was not called: it has cost three threads, and is called again only after a reload.
    Quarantined,
    /// It was not called: too many threads are stuck in hooks.
    ThreadsExhausted,
    /// The process that its agent's hooks run in ended, or was being started again.
    WorkerRestarted,
    /// The thread that ran it ended without an answer.
    Lost,
}

impl FailureCause {
    /// The cause in one word, as reports and spans write it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Timeout { .. } => "timeout",
            Self::Raised { .. } => "raised",
            Self::InvalidResult { .. } => "invalid-result",
            Self::InvalidPayload { .. } => "invalid-payload",
            Self::EngineFull => "engine-full",
            Self::ShutDown => "shut-down",
            Self::LoopLost => "loop-lost",
            Self::Quarantined => "quarantined",
            Self::ThreadsExhausted => "threads-exhausted",
            Self::WorkerRestarted => "worker-restarted",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { limit_ms } => write!(out, "it was not done after {limit_ms} ms"),
            Self::Raised { kind, message, .. } if message.is_empty() => write!(out, "it raised {kind}"),
            Self::Raised { kind, message, .. } => write!(out, "it raised {kind}: {message}"),
            Self::InvalidResult { message } => out.write_str(message),
            Self::InvalidPayload { message } => write!(out, "it was not called: {message}"),
            Self::EngineFull => out.write_str("too many calls wait already"),
            Self::ShutDown => out.write_str("the engine is shut down"),
            Self::LoopLost => out.write_str("it was waiting on an event loop that another hook blocked"),
            Self::Quarantined => {
                out.write_str("it is quarantined, since it has blocked three threads for good; reload the engine")
            }
            Self::ThreadsExhausted => out.write_str("too many threads are stuck in hooks"),
            Self::WorkerRestarted => out.write_str("the process that its hooks run in was started again"),
            Self::Lost => out.write_str("its thread ended without an answer"),
        }
    }
}

/// One frame of a Python traceback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFrame {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function's name.
    pub function: String,
}

pub(crate) fn as_millis<S: serde::Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn as_fractional_millis<S: serde::Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e3)
}
