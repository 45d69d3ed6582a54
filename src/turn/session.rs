//! When a conversation begins anew.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::input::Said;
use crate::conversation::{self, Event};

/// What a channel sends where a session is to begin.
const START: &str = "/session_start";

/// Whether a session begins after `past` with what the user has sent: the channel says so, the conversation has expired, or it has rested
/// for longer than `limit`. The first session of a conversation needs no mark, and what a program says of the user's silence belongs to the
/// session in which that is.
pub(super) fn begins(said: &Said, past: &[Event], limit: Option<Duration>) -> bool {
    if is_reaction(said) {
        return false;
    }
    let ended = |event: &&Event| matches!(event, Event::TurnFinished { .. });
    let Some(Event::TurnFinished { at, .. }) = past.iter().rev().find(ended) else { return false };
    let rested = at.map(|at| Duration::from_millis(now_ms().saturating_sub(at)));
    opens(said) || has_expired(past) || limit.zip(rested).is_some_and(|(limit, rested)| rested > limit)
}

/// Whether a channel has opened the conversation, and the user has said nothing yet.
pub(super) fn opens(said: &Said) -> bool {
    matches!(said, Said::Payload(text) if text.trim() == START)
}

/// Whether this is what a program says of the user's silence.
pub(super) fn is_reaction(said: &Said) -> bool {
    matches!(said, Said::Text(text) | Said::Payload(text) if conversation::is_reaction(text))
}

/// Whether the conversation has expired and the user has said nothing since.
fn has_expired(past: &[Event]) -> bool {
    let last = past.iter().rev().find(|event| match event {
        Event::ConversationExpired { .. } | Event::SessionStarted => true,
        Event::UserMessage { text, .. } => !conversation::is_reaction(text),
        _ => false,
    });
    matches!(last, Some(Event::ConversationExpired { .. }))
}

/// Whether nobody has said anything in the session that `past` ends with, what was rejected aside.
pub(super) fn is_fresh(past: &[Event]) -> bool {
    let session = past.iter().rev().take_while(|event| !matches!(event, Event::SessionStarted));
    !session.into_iter().any(|event| matches!(event, Event::UserMessage { discarded: false, .. }))
}

/// Milliseconds since 1970 (UTC).
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(ago: Option<u64>) -> Event {
        let at = ago.map(|ago| now_ms() - ago);
        Event::TurnFinished { turn_id: "t".into(), status: "completed".into(), at }
    }

    #[test]
    fn a_conversation_that_has_rested_too_long_begins_anew() {
        let (said, hour) = (Said::Text("hello".into()), Some(Duration::from_hours(1)));
        assert!(begins(&said, &[ended(Some(3_700_000))], hour));
        assert!(!begins(&said, &[ended(Some(3_500_000))], hour));
        assert!(!begins(&said, &[ended(Some(3_700_000)), ended(Some(5))], hour), "the last end counts");
        assert!(!begins(&said, &[ended(Some(3_700_000))], None));
        assert!(!begins(&said, &[ended(None)], hour), "nobody knows when that was");
        assert!(!begins(&said, &[], hour));
    }

    #[test]
    fn an_expired_conversation_begins_anew_with_the_users_next_message() {
        let user = |text: &str| Event::UserMessage { text: text.into(), message_id: None, discarded: false };
        let (expired, hello) = (Event::ConversationExpired { at: 9 }, Said::Text("hello".into()));
        let past = [user("hi"), ended(Some(5)), expired];
        assert!(begins(&hello, &past, None));
        assert!(!begins(&Said::Payload("/expire".into()), &past, None), "that belongs to what has been said");
        let reacted = [past.as_slice(), &[user("/expire"), ended(Some(5))]].concat();
        assert!(begins(&hello, &reacted, None));
        let back = [reacted.as_slice(), &[Event::SessionStarted, user("hello"), ended(Some(5))]].concat();
        assert!(!begins(&hello, &back, None));
    }

    #[test]
    fn a_session_is_fresh_until_the_user_is_heard() {
        let user = |discarded| Event::UserMessage { text: "hello".into(), message_id: None, discarded };
        assert!(is_fresh(&[]));
        assert!(is_fresh(&[user(true), ended(None)]));
        assert!(!is_fresh(&[user(false), ended(None)]));
        assert!(is_fresh(&[user(false), ended(None), Event::SessionStarted]));
    }

    #[test]
    fn a_channel_can_begin_a_session() {
        let start = Said::Payload("/session_start".into());
        assert!(begins(&start, &[ended(Some(5))], None));
        assert!(!begins(&start, &[], None), "it is the first");
        assert!(!begins(&Said::Payload("/other".into()), &[ended(Some(5))], None));
    }
}
