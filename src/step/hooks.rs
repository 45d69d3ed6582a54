//! The hooks of an agent as a step sees them.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::conversation::{CallInfo, ChannelInfo};
use crate::hooks::{AnyPayload, Changed, FailureCause, HandlerFailure, ModifiablePayload, Outcome, Payload, Point};
use crate::telemetry::{TURN, fails};

/// How much of a hook's feedback the model is given, in characters.
const FEEDBACK: usize = 2_000;

/// Calls an agent's hooks.
pub trait Hooks: Send + Sync {
    /// Hands a payload to the observers of its point; never waits.
    fn observe(&self, payload: AnyPayload);

    /// Calls the modify hook of the payload's point; without one the payload proceeds.
    fn modify(&self, payload: AnyPayload) -> BoxFuture<'_, Outcome<AnyPayload>>;

    /// Whether a modify hook stands at a point.
    fn modifies(&self, point: Point) -> bool;

    /// Whether an observe hook does.
    fn observes(&self, point: Point) -> bool;
}

/// An agent without hooks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn observe(&self, _: AnyPayload) {}

    fn modify(&self, payload: AnyPayload) -> BoxFuture<'_, Outcome<AnyPayload>> {
        Box::pin(async { Outcome::Proceed { payload, changed: false, failure: None, discarded_signal: None } })
    }

    fn modifies(&self, _: Point) -> bool {
        false
    }

    fn observes(&self, _: Point) -> bool {
        false
    }
}

/// Whose step it is: what every payload shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// The conversation.
    pub sender_id: String,
    /// Telephony and session metadata.
    pub call: CallInfo,
    /// The channel.
    pub channel: ChannelInfo,
    /// Whether it is a voice channel.
    pub is_voice: bool,
}

/// What a modify hook leaves of a payload, the control signals of its point aside.
#[derive(Debug)]
pub(crate) enum Passed<P> {
    /// Go on with this.
    On {
        payload: P,
        changed: bool,
    },
    Retry {
        feedback: String,
    },
    Rejected {
        reason: String,
        response: Option<String>,
    },
    /// The hook failed, and its point is closed.
    Failed(HandlerFailure),
}

/// Hears what came of each modify hook.
pub(crate) trait Witness: Send + Sync {
    /// Whether it is to hear what a hook has changed: that costs a comparison.
    fn hears_changes(&self) -> bool {
        false
    }

    /// Whether spans are to show content.
    fn records_content(&self) -> bool {
        false
    }

    /// A modify hook has run.
    fn hook_ran(&self, ran: Ran);
}

/// What came of a modify hook.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) point: Point,
    /// `unchanged`, `changed`, `retry`, `rejected` or `failed`.
    pub(crate) outcome: &'static str,
    pub(crate) elapsed: Duration,
    pub(crate) changed: Option<Changed>,
}

/// The hooks of one turn, request or execution.
#[derive(Clone, Copy)]
pub(crate) struct Hooked<'a> {
    pub(crate) hooks: &'a dyn Hooks,
    pub(crate) identity: &'a Identity,
    pub(crate) witness: &'a dyn Witness,
}

impl Hooked<'_> {
    /// Observers see the payload as it enters the point, then the modifier has it.
    pub(crate) async fn pass<P: ModifiablePayload>(&self, mut payload: P) -> Passed<P> {
        self.observe(&mut payload);
        if !self.hooks.modifies(P::POINT) {
            return Passed::On { payload, changed: false };
        }
        let before = self.witness.hears_changes().then(|| payload.clone().into_any());
        let start = Instant::now();
        let span = tracing::info_span!(
            target: TURN, "execute_hook", otel.name = format!("execute_hook {}", P::POINT.name()), otel.status_code = Empty,
            error.type = Empty, hook.point = P::POINT.name(), hook.outcome = Empty,
        );
        let outcome = self.hooks.modify(payload.into_any()).instrument(span.clone()).await;
        let word = match &outcome {
            Outcome::Proceed { failure: Some(_), .. } | Outcome::Failed(_) => "failed",
            Outcome::Proceed { changed: true, .. } => "changed",
            Outcome::Proceed { .. } => "unchanged",
            Outcome::Retry { .. } => "retry",
            Outcome::Reject { .. } => "rejected",
        };
        let elapsed = start.elapsed();
        span.record("hook.outcome", word);
        if let Outcome::Proceed { failure: Some(failure), .. } | Outcome::Failed(failure) = &outcome {
            fails(&span, failure.cause.word());
        }
        let changed = match (&before, &outcome) {
            (Some(before), Outcome::Proceed { payload, changed: true, .. }) => Some(Changed::between(before, payload)),
            _ => None,
        };
        self.witness.hook_ran(Ran { point: P::POINT, outcome: word, elapsed, changed });
        match outcome {
            Outcome::Proceed { payload, changed, .. } => {
                let payload = P::from_any(payload).unwrap_or_else(|| unreachable!("a payload keeps its point"));
                Passed::On { payload, changed }
            }
            Outcome::Retry { feedback } => Passed::Retry { feedback: feedback.chars().take(FEEDBACK).collect() },
            Outcome::Reject { reason, response } => Passed::Rejected { reason, response },
            Outcome::Failed(failure) => Passed::Failed(failure),
        }
    }

    /// Hands a payload to the observers alone.
    pub(crate) fn observe<P: Payload>(&self, payload: &mut P) {
        payload.came_by(&self.identity.call, &self.identity.channel);
        if self.hooks.observes(P::POINT) {
            self.hooks.observe(payload.clone().into_any());
        }
    }
}

/// What failed, for the log.
pub(crate) fn tell(failure: &HandlerFailure) {
    let cause: &FailureCause = &failure.cause;
    tracing::debug!(target: crate::telemetry::DISPATCH, handler = %failure.handler, "Its step does not happen: {cause}");
}

impl std::fmt::Debug for Hooked<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Hooked").field("identity", &self.identity).finish_non_exhaustive()
    }
}
