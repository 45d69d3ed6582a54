//! One hooked text: of the user's on its way in, of the agent's on its way out.

use super::hooks::{Hooked, Passed, tell};
use crate::hooks::{IncomingMessagePayload, OutgoingTextPayload};
use crate::telemetry::TURN;

/// What becomes of a user's text.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// It is stored and seen like this.
    Accepted(String),
    /// A hook has rejected it.
    Rejected {
        /// What the user is to hear, where the hook says so.
        response: Option<String>,
    },
    /// The hook failed: the turn does not run.
    Failed,
}

/// Has a user's text pass the hooks.
pub(crate) async fn incoming(hooked: Hooked<'_>, text: &str, message_id: Option<&str>) -> Incoming {
    let identity = hooked.identity;
    let mut payload = IncomingMessagePayload::new(&identity.sender_id, text);
    payload.message_id = message_id.map(str::to_owned);
    match hooked.pass(payload).await {
        Passed::On { payload, .. } => Incoming::Accepted(payload.text),
        Passed::Rejected { response, reason } => {
            tracing::info!(target: TURN, "A hook has rejected the user's message: {reason}");
            Incoming::Rejected { response }
        }
        Passed::Failed(failure) => {
            tell(&failure);
            Incoming::Failed
        }
        Passed::Retry { .. } => unreachable!("an incoming message takes no retry"),
    }
}

/// What becomes of a text that is to be said.
#[derive(Debug, PartialEq)]
pub(crate) enum Outgoing {
    /// It is said like this.
    Say(String),
    /// A hook has rejected it.
    Rejected {
        /// What the user is to hear instead, where the hook says so.
        response: Option<String>,
    },
}

/// Has a text of the agent's pass the hooks.
pub(crate) async fn outgoing(hooked: Hooked<'_>, text: &str) -> Outgoing {
    let identity = hooked.identity;
    let mut payload = OutgoingTextPayload::new(&identity.sender_id, text);
    payload.is_voice = identity.is_voice;
    match hooked.pass(payload).await {
        Passed::On { payload, .. } => Outgoing::Say(payload.text),
        Passed::Rejected { response, reason } => {
            tracing::info!(target: TURN, "A hook has rejected a text of the agent's: {reason}");
            Outgoing::Rejected { response }
        }
        // The point is open.
        Passed::Failed(_) | Passed::Retry { .. } => Outgoing::Say(text.to_owned()),
    }
}
